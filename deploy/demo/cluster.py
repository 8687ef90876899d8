"""A cluster's operator, scripted: takes the node of the training job's incident all the way, through the public API.

The network card's incident is handed to the cluster, the node drained, the card replaced and the node returned, with a
key of its own; then a burn-in runs until Dossier has judged it, and the job goes on until nothing blames the card any
more and the incident is resolved. Whether the proof comes is up to the rows, of the burn-in and of the job. Each step
follows from what the API says of the incident, so that a restart goes on and a person may do any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from deploy.demo.burn_in import BurnIn
from deploy.demo.screen import Screen
from deploy.demo.sender import RequestRejectedError, Sender, SenderStoppedError
from deploy.demo.training_job import LEFT, UNTIL
from deploy.demo.world import MINUTE, Demo

PERIOD = 4.0
"""Seconds between steps, and between rounds of the burn-in."""
ANALYZERS = frozenset({"c4d", "perftracker", "skeletonhunter"})
"""All of them have blamed the card before the node is handed over, or the fault is over."""
MOST_ROUNDS = 12
PATIENCE = 75
"""Periods without news after which the operator gives up."""
NEW_CARD = "nic/MT2648X00404"
BY = "demo-cluster"

Json = Mapping[str, Any]


class ClusterOperator:
    """`sender` has a key that may hand over and answer, `telemetry` one for rows; `minutes()` of the demo were sent."""

    def __init__(
        self, sender: Sender, telemetry: Sender, screen: Screen, demo: Demo, minutes: Callable[[], int]
    ) -> None:
        self.sender, self.telemetry, self.screen = sender, telemetry, screen
        self.demo, self.minutes = demo, minutes
        self.burn_in = BurnIn(demo.training)
        self.rounds = self.waited = 0
        self.proved = False
        self.rejected: tuple[str, ...] = ()

    def run(self) -> None:
        """Steps until the incident is resolved or the operator gives up."""
        going = True
        with suppress(SenderStoppedError):  # the demo ends
            while going and not self.sender.stop.wait(PERIOD):
                going = self._step_once()

    def _step_once(self) -> bool:
        try:
            return self.step()
        except RequestRejectedError as error:
            # An answer that was lost, or a person who was faster: what the API says next decides.
            self.rejected = (*self.rejected, str(error))
            if len(self.rejected) > 1:
                self.screen.say(f"  Cluster: Dossier refused the operator: {error}")
                return False
            return True

    def step(self) -> bool:
        """The next step, where its time has come; False after the last one."""
        incident = self._incident()
        if incident is None:
            return not self._tired(f"no incident of {self.demo.training.culprit} to hand over")
        found = incident["remediation"]
        if incident["state"] == "resolved":
            if self.proved:
                self._say(incident, f"resolved by {incident['resolved_by']}")
            return False
        if found is None:
            return self._hand_over(incident)
        if found["stage"] == "returned":
            self._let_job_go_on(found)
            return self._watch(incident) if self.proved else self._prove(incident, found)
        return self._answer(incident, found)

    def _incident(self) -> Json | None:
        """The latest incident of the demo that names the card."""
        path = f"/api/v1/incidents?component={quote(self.demo.training.culprit, safe='')}"
        found = (
            one
            for one in self.sender.get(path)["results"]
            if datetime.fromisoformat(one["opened_at"]) >= self.demo.start
        )
        return next(found, None)

    def _hand_over(self, incident: Json) -> bool:
        blamed = {one["analyzer"] for one in incident["opinions"] if one["first_at"] is not None}
        if not blamed >= ANALYZERS and self.minutes() < self.demo.minutes:
            return True
        body = {
            "reason": f"slow network card, seen by {', '.join(sorted(blamed))}",
            "component": self.demo.training.culprit,
            "target": "",
            "proof_required": True,
        }
        answer = self.sender.post(f"{_path(incident)}/remediation", body)
        self._say(incident, f"node {answer['remediation']['node']} handed to the cluster")
        return True

    def _answer(self, incident: Json, found: Json) -> bool:
        stage, node = found["stage"], found["node"]
        if stage == "requested" and self.minutes() >= UNTIL:
            self._post(incident, found, "drained", note="no jobs on the node")
            self._say(incident, f"{node} drained")
        elif stage == "drained":
            self._post(incident, found, "replaced", part=NEW_CARD)
            self._say(incident, f"{found['component']} replaced by {NEW_CARD}")
        elif stage == "replaced" and self.minutes() >= self.demo.minutes:
            # Rows after the return are of real time: before the stories have caught up with it they would end
            # windows for which the recorders still have rows to send.
            self._post(incident, found, "returned")
            self._say(incident, f"{node} returned; burn-in beside {len(self.burn_in.nodes) - 1} neighbours")
        elif stage in ("refused", "failed"):
            return False
        return True

    def _post(self, incident: Json, found: Json, answer: str, **more: str) -> None:
        body = {"request": found["request"], "answer": answer, "by": BY, **more}
        self.sender.post(f"{_path(incident)}/remediation/answers", body)

    def _let_job_go_on(self, found: Json) -> None:
        """Uptime rows from the minute after the return; in real time, so not before the end of the stories."""
        if self.demo.training.back is None:
            returned = datetime.fromisoformat(found["answers"][-1]["at"])
            minute = int((returned - self.demo.start) / MINUTE) + 1
            self.demo.training.go_on(max(minute, self.demo.minutes), replaced=_is_replaced(found))

    def _watch(self, incident: Json) -> bool:
        """False once the job has ended and the incident is open still; says why it is."""
        back = self.demo.training.back
        if back is None or self.minutes() < back + LEFT:
            return True
        why = self.sender.get(f"{_path(incident)}/remediation")["left_open"]
        self._say(incident, why or "still open")
        return False

    def _prove(self, incident: Json, found: Json) -> bool:
        proof = found["proof"]
        if proof is not None and proof["verdict"] != "unknown":
            self._say(incident, f"{found['node']} {proof['summary']}")
            self.proved = proof["verdict"] == "repaired"
            return self.proved
        if self.rounds == MOST_ROUNDS:
            reason = "the burn-in was not judged" if proof is None else proof["summary"]
            return not self._tired(
                f"no proof of repair of {found['node']} after {self.rounds} rounds: {reason}"
            )
        at = datetime.now(UTC)
        rows = self.burn_in.rows(self.rounds, at, replaced=_is_replaced(found))
        self.telemetry.post_rows("benchmark", rows, f"demo-burn-in-{at:%Y%m%dT%H%M%S%f}")
        self.rounds, self.waited = self.rounds + 1, 0
        return True

    def _tired(self, why: str) -> bool:
        """Count a period without changes after the end of the stories; prints the reason with the last one."""
        if self.minutes() < self.demo.minutes:
            return False
        self.waited += 1
        if self.waited == PATIENCE:
            self.screen.say(f"  Cluster: {why}")
        return self.waited >= PATIENCE

    def _say(self, incident: Json, what: str) -> None:
        self.rejected, self.waited = (), 0
        self.screen.say(f"  Cluster #{incident['number']}: {what}")


def _is_replaced(found: Json) -> bool:
    return any(one["answer"] == "replaced" for one in found["answers"])


def _path(incident: Json) -> str:
    return f"/api/v1/incidents/{incident['number']}"
