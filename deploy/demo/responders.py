"""The people of the demo at work, scripted, through the public API: each signed in under their own name.

Scenes beside the stories: an acknowledgement, a snooze, an incident that is resolved and reviewed, a network change
that is validated, an incident that is handed over, a storm of alerts. Each step follows from what the API says of the
incident, so that a restart goes on, and a person who was faster is left in peace.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta
from typing import Any, Final
from urllib.parse import quote

from analyzers.simulators.region import stamp
from deploy.demo import roster
from deploy.demo.network import CHANGED
from deploy.demo.screen import Screen
from deploy.demo.sender import RequestRejectedError, Sender, SenderStoppedError
from deploy.demo.world import Demo

PERIOD = 2.0
"""Seconds between steps."""
REBOOT_IS_OVER, HAND_OVER_AT = 120, 172
"""Minutes of the demo."""
STORM_LASTS = 5
"""Minutes after the stories for which the alerts of the storm go on."""
MANY = 2
"""Failed VMs on a host from which on the rule of hosts fires."""
VM_RULE, HOST_RULE = "VMLostItsDisk", "HostLosesVMs"
RULES = {VM_RULE: "Disk timeouts on", HOST_RULE: f"{MANY} or more VMs failed on"}
LAGGING = "storage_cluster/d1-s2"
DAY = timedelta(days=1)

Json = dict[str, Any]
Scene = Callable[[], bool]

CAUSE: Final = "_Why did it fail, and why was it not caught before?_"
HELPED: Final = "_What ended it? What would have ended it sooner?_"
LACKED: Final = "_What was missing, misleading or slow: alerts, runbooks, access, hand-overs?_"
"""Prompts of a drafted review."""
FINDINGS: Final = {
    CAUSE: "The watchdog of the switch restarted it after a memory leak of its telemetry agent. Nothing watches the"
    " memory of switches.",
    HELPED: "It came back by itself. The analyzer named the switch before any host was looked at.",
    LACKED: "Reboots that nobody planned raise no alert.",
}


class Responders:
    """`people` are signed in; `alerts` sends as a monitoring system does; `minutes()` of the demo were sent."""

    def __init__(
        self,
        people: Mapping[str, Sender],
        alerts: Sender,
        screen: Screen,
        demo: Demo,
        minutes: Callable[[], int],
    ) -> None:
        self.people, self.alerts, self.screen = people, alerts, screen
        self.demo, self.minutes = demo, minutes
        self.fired: set[tuple[str, str]] = set()
        """Rule and component of the alerts that this process sent."""
        self.scenes: list[Scene] = [
            self._acknowledge, self._snooze, self._resolve_and_review, self._change_the_network, self._hand_over,
            self._storm,
        ]  # fmt: skip
        self.refused: Counter[Scene] = Counter()

    def run(self) -> None:
        """Play until every scene is over."""
        stop = self.alerts.stop
        with suppress(SenderStoppedError):  # the demo ends
            while self.scenes and not stop.wait(PERIOD):
                self.step()

    def step(self) -> None:
        """A step of each scene; scenes that are over leave."""
        self.scenes = [scene for scene in self.scenes if not self._is_over(scene)]

    def _is_over(self, scene: Scene) -> bool:
        try:
            return scene()
        except RequestRejectedError as error:
            # A person who was faster, or an answer that was lost: what the API says next decides.
            self.refused[scene] += 1
            if self.refused[scene] > 1:
                self.screen.say(f"  People: Dossier refused a step: {error}")
            return self.refused[scene] > 1

    def _acknowledge(self) -> bool:
        """The storage cluster that fails for a day: somebody works on it."""
        fault = self.demo.world.lasting[0].component
        incident = self._incident(fault)
        if incident is None or incident["state"] != "open":
            return incident is not None
        self._act(roster.STORAGE_LEAD, incident, "acknowledge")
        text = "The new disk firmware is suspected. It takes no new volumes until the vendor has answered."
        self._act(roster.STORAGE_LEAD, incident, "comment", text=text)
        return True

    def _snooze(self) -> bool:
        """One of the two switches with bad firmware: nothing to do before it is upgraded."""
        incident = self._incident(self.demo.month.culprits[0])
        if incident is None or incident["state"] != "open":
            return incident is not None
        until = datetime.combine(datetime.now(UTC).date() + 2 * DAY, time(6), UTC)
        reason = f"Firmware upgrade is planned for {until:%Y-%m-%d %H:%M} UTC"
        self._act(roster.NETWORK, incident, "snooze", until=until.isoformat(), reason=reason)
        return True

    def _resolve_and_review(self) -> bool:
        """The ToR that reboots once: acknowledged, resolved, reviewed."""
        tor = self.demo.world.truth["stories"][0]["faults"][0]["component"]
        incident = self._incident(tor)
        if incident is None:
            return False
        if incident["state"] == "open":
            self._act(roster.NETWORK, incident, "acknowledge")
        elif incident["state"] == "acknowledged" and self.minutes() >= REBOOT_IS_OVER:
            note = "Rebooted by its watchdog; no failure since."
            self._act(roster.NETWORK, incident, "resolve", confirmed_cause=tor, note=note)
        elif incident["state"] == "resolved":
            self._review(incident)
            return True
        return incident["state"] not in ("open", "acknowledged")

    def _review(self, incident: Json) -> None:
        path, writer = f"{_path(incident)}/review", self.people[roster.NETWORK]
        review = writer.post(path, {})
        text = review["text"]
        for prompt, finding in FINDINGS.items():
            text = text.replace(prompt, finding)
        if text != review["text"]:
            review = writer.patch(path, {"text": text, "edition": review["edition"]})
        if not review["actions"]:
            today = datetime.now(UTC).date()
            for what, owner, days in (
                ("Alert on reboots of switches without a planned change", roster.NETWORK, 7),
                ("Ask the vendor for a fix of the telemetry agent", roster.NETWORK_LEAD, 14),
            ):
                body = {"text": what, "owner": owner, "due": (today + days * DAY).isoformat()}
                writer.post(f"{path}/actions", body)
        writer.patch(path, {"published": True})
        self._say(incident, f"{roster.NETWORK} published a review")

    def _change_the_network(self) -> bool:
        """A drain before the link loses packets: reported by the automation, its forwarding validated."""
        if self.minutes() < CHANGED:
            return False
        drain, network = self.demo.network.drain(), self.people[roster.NETWORK]
        made = next(
            (one for one in network.get("/api/v1/changes")["results"] if one["summary"] == drain.summary),
            None,
        )
        if made is None:
            at = stamp(self.demo.start, CHANGED)
            about = {"component": self.demo.network.culprit}
            payload = {"summary": drain.summary, "source": "network-automation", "timestamp": at}
            change = {"routing_key": self.alerts.key, "payload": {**payload, "custom_details": about}}
            self.alerts.post("/v2/change/enqueue", change)
            return False
        if made["validation"] is None:
            body = {name: getattr(drain, name) for name in ("before", "after", "specification")}
            found = network.post(f"/api/v1/changes/{made['id']}/validation", body)["validation"]
            broken = f"{found['classes_violated']} of {found['classes']} traffic classes"
            self.screen.say(f"  Change “{drain.summary}”: specification {found['verdict']} by {broken}")
        return True

    def _hand_over(self) -> bool:
        """An alert on a storage cluster whose cause is the network: to the team of the lossy link."""
        if self.minutes() < HAND_OVER_AT:
            return False
        incident = self._incident(LAGGING)
        if incident is None:
            self._fire([self._lag_alert()])
        elif incident["state"] == "open" and incident["team"] == "storage" and not incident["hops"]:
            self._act(roster.STORAGE_LEAD, incident, "acknowledge")
        elif incident["state"] == "acknowledged" and incident["team"] == "storage" and not incident["hops"]:
            if (lossy := self._incident(self.demo.network.culprit)) is not None:
                number = lossy["number"]
                reason = f"Disks are healthy, the replication traffic is retransmitted; see #{number}"
                self._act(roster.STORAGE_LEAD, incident, "link", incident=str(number))
                self._act(roster.STORAGE_LEAD, incident, "hand_over", team="network", reason=reason)
        elif incident["team"] == "network" and incident["accepted_at"] is None:
            self._act(roster.NETWORK, incident, "accept")
            self._act(roster.NETWORK, incident, "acknowledge")
            return True
        else:
            return incident["state"] == "resolved" or bool(incident["hops"])
        return False

    def _lag_alert(self) -> Json:
        return {
            "labels": {"alertname": "ReplicationLag", "component": LAGGING, "severity": "warning"},
            "annotations": {
                "summary": f"Replication of {LAGGING} is 40 minutes behind",
                "runbook_url": RUNBOOK.format("replication-lag"),
                "value": "2400",
                "expr": f"max(replication_lag_seconds{{cluster={json.dumps(LAGGING)}}}) > 900",
            },
            "startsAt": stamp(self.demo.start, self.minutes() - 5),
            "endsAt": (datetime.now(UTC) + DAY).isoformat(),
        }

    def _storm(self) -> bool:
        """Alerts on VMs and hosts of the last story: hundreds, which end after it."""
        sent = self.minutes()
        if sent >= self.demo.minutes + STORM_LASTS:
            if self.fired:
                self._fire(
                    [self._storm_alert(*one, stamp(self.demo.start, sent)) for one in sorted(self.fired)]
                )
            return True
        firing = storm(self.demo, sent) - self.fired
        if firing:
            ends = (datetime.now(UTC) + DAY).isoformat()
            self._fire([self._storm_alert(*one, ends) for one in sorted(firing)])
            self.fired |= firing
        return False

    def _storm_alert(self, rule: str, component: str, ends: str) -> Json:
        return {
            "labels": {"alertname": rule, "component": component, "severity": "error"},
            "annotations": {
                "summary": f"{RULES[rule]} {component}",
                "runbook_url": RUNBOOK.format(rule.lower()),
            },
            "startsAt": stamp(self.demo.start, storm_begins(self.demo)),
            "endsAt": ends,
        }

    def _fire(self, alerts: list[Json]) -> None:
        self.alerts.post("/api/v2/alerts", alerts)

    def _incident(self, component: str) -> Json | None:
        """The latest incident of the demo that names the component, or None."""
        path = f"/api/v1/incidents?component={quote(component, safe='')}"
        found: Iterator[Json] = (
            one
            for one in self.people[roster.NETWORK].get(path)["results"]
            if datetime.fromisoformat(one["opened_at"]) >= self.demo.start
        )
        return next(found, None)

    def _act(self, name: str, incident: Json, verb: str, /, **body: Any) -> None:
        self.people[name].post(f"{_path(incident)}/{verb}", body)
        if verb in SHOWN:
            self._say(incident, f"{name} {SHOWN[verb].format(**body)}")

    def _say(self, incident: Json, what: str) -> None:
        self.screen.say(f"  People #{incident['number']}: {what}")


RUNBOOK: Final = "https://runbooks.example.com/{}"
SHOWN: Final = {
    "acknowledge": "acknowledged it",
    "snooze": "snoozed it: {reason}",
    "resolve": "resolved it, confirmed cause {confirmed_cause}",
    "hand_over": "handed it over to {team}: {reason}",
    "accept": "accepted it",
}
"""Lines on the screen for what people do."""


def storm_begins(demo: Demo) -> float:
    """Minute of the demo at which the compute cluster of the last story begins to fail."""
    start = datetime.fromisoformat(demo.world.truth["stories"][-1]["faults"][0]["start"])
    return (start - demo.start) / timedelta(minutes=1)


def storm(demo: Demo, sent: int) -> set[tuple[str, str]]:
    """Rule and component of each alert that fires because of failures up to minute `sent`."""
    first, last = stamp(demo.start, storm_begins(demo)), stamp(demo.start, min(sent, demo.minutes))
    failed = {row["unit"] for row in demo.world.failures if first <= row["time"] < last}
    hosts = Counter(
        next(name for name in row["components"] if name.startswith("host/"))
        for row in (demo.world.placement if failed else ())
        if row["unit"] in failed
    )
    on_hosts = {(HOST_RULE, host) for host, count in hosts.items() if count >= MANY}
    return on_hosts | {(VM_RULE, unit) for unit in failed}


def _path(incident: Json) -> str:
    return f"/api/v1/incidents/{incident['number']}"
