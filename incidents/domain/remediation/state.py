"""The node's way from suspect to repaired: handed to the cluster, drained, replaced, returned, proved. Pure.

The stages and their order follow NVSentinel's ExternalRemediationRequest (NVIDIA/NVSentinel, ADR-040: one system owns
a node at a time; a failure may be taken back, a success not) and Slurm's node states (scontrol(1): drain, resume).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal, get_args

from incidents.domain.values import CommandRefusedError, InvalidValueError, parse_rfc3339, rfc3339

AnswerKind = Literal["drained", "replaced", "returned", "refused", "failed"]
Stage = Literal["requested", "drained", "replaced", "returned", "refused", "failed"]
Verdict = Literal["unknown", "repaired", "not_repaired"]
ANSWERS: Final[tuple[AnswerKind, ...]] = get_args(AnswerKind)
STAGES: Final[tuple[Stage, ...]] = get_args(Stage)
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)

NEXT: Final[Mapping[Stage, tuple[AnswerKind, ...]]] = {
    "requested": ("drained", "refused", "failed"),
    "drained": ("replaced", "returned", "failed"),
    "replaced": ("returned", "failed"),
    # The cluster may go on with what it gave up.
    "failed": ("drained", "replaced", "returned"),
    "refused": (),
    "returned": (),
}
"""The answers that may follow each stage."""
IN_PROGRESS: Final = frozenset[Stage]({"requested", "drained", "replaced"})
DRAINED: Final = frozenset[Stage]({"drained", "replaced"})
"""The node runs no jobs."""

_NODE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")


def check_node(name: str) -> str:
    """The name of a node that every scheduler reads as one node.

    Slurm expands brackets and commas to many nodes and takes `ALL` for all of them, so neither is accepted. Raises
    InvalidValueError.
    """
    if _NODE.fullmatch(name) is None or name.lower() == "all":
        raise InvalidValueError(
            "node",
            "must be the name of one node: letters, digits, dots, dashes and underscores, at most 253, and not ALL",
        )
    return name


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the cluster. `by` is the person or system that it names, `actor` whoever sent it."""

    answer: AnswerKind
    at: datetime
    by: str
    actor: str
    note: str = ""
    part: str | None = None
    """The part that is in the place of `replaced` now, where the answer says so."""
    replaced: str | None = None

    def repeats(self, other: Answer) -> bool:
        """Whether `other` was recorded already as this one: the same fact, whoever sends it again."""
        return (self.answer, self.part) == (other.answer, other.part)

    def as_json(self) -> dict[str, Any]:
        return {
            "answer": self.answer,
            "at": rfc3339(self.at),
            "by": self.by,
            "actor": self.actor,
            "note": self.note,
            "part": self.part,
            "replaced": self.replaced,
        }


def answer_from(body: Mapping[str, Any]) -> Answer:
    """Reads `Answer.as_json`."""
    return Answer(**{**body, "at": parse_rfc3339(body["at"])})


@dataclass(frozen=True, slots=True)
class Waived:
    """A person resolved the incident without the proof that it demands."""

    by: str
    at: datetime
    reason: str

    def as_json(self) -> dict[str, Any]:
        return {"by": self.by, "at": rfc3339(self.at), "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Remediation:
    """Request of an incident to a cluster, and its progress.

    `part` is the component that is watched after the return: the part that failed or the one in its place; None where
    the node itself is meant. `proof` holds the verdict and the figures of the sequential test, None before the return.
    """

    request: str
    component: str
    node: str
    part: str | None
    target: str | None
    reason: str
    requested_at: datetime
    requested_by: str
    proof_required: bool
    stage: Stage = "requested"
    answers: tuple[Answer, ...] = ()
    proof: Mapping[str, Any] | None = None
    waived: Waived | None = None
    reopened: bool = False
    """Reopened after the proof of repair: then a person resolves it, not the proof."""

    @property
    def returned_at(self) -> datetime | None:
        """Time of the node's return; None until then."""
        return self.answers[-1].at if self.stage == "returned" else None

    @property
    def last_at(self) -> datetime:
        return self.answers[-1].at if self.answers else self.requested_at

    @property
    def verdict(self) -> Verdict:
        return "unknown" if self.proof is None else self.proof["verdict"]

    @property
    def is_watched(self) -> bool:
        """Whether the sequential test goes on."""
        return self.stage == "returned" and self.verdict == "unknown"

    @property
    def demands_proof(self) -> bool:
        """Whether the incident may not be resolved yet without a reason."""
        return (
            self.proof_required
            and self.stage != "refused"
            and self.verdict != "repaired"
            and self.waived is None
        )

    @property
    def resolves(self) -> bool:
        """Whether the demanded proof is there and resolves the incident as soon as nothing is left to wait for."""
        return self.proof_required and self.verdict == "repaired" and not self.reopened

    def with_answer(self, answer: Answer) -> Remediation:
        """The remediation once an answer is recorded."""
        return replace(
            self,
            stage=answer.answer,
            answers=(*self.answers, answer),
            part=answer.part or self.part,
            proof=None,
        )

    def is_news(self, answer: Answer) -> bool:
        """Whether an answer is to be recorded: False where it was before. Raises CommandRefusedError where it does not
        follow."""
        if any(one.repeats(answer) for one in self._current()):
            return False
        if answer.answer not in NEXT[self.stage]:
            follows = " or ".join(NEXT[self.stage]) or "nothing"
            raise CommandRefusedError(
                f"{self.node} is {WORDS[self.stage]}: {answer.answer} cannot follow that, {follows} can"
            )
        if answer.at < self.last_at:
            raise CommandRefusedError(
                f"{answer.answer} at {rfc3339(answer.at)} is before {WORDS[self.stage]} at {rfc3339(self.last_at)}"
            )
        return True

    def _current(self) -> tuple[Answer, ...]:
        """The answers since it last failed: what is said again after a failure is a new fact."""
        failed = [i for i, one in enumerate(self.answers) if one.answer == "failed"]
        return self.answers[failed[-1] :] if failed else self.answers

    def as_json(self) -> dict[str, Any]:
        return {
            "request": self.request,
            "component": self.component,
            "node": self.node,
            "part": self.part,
            "target": self.target,
            "reason": self.reason,
            "requested_at": rfc3339(self.requested_at),
            "requested_by": self.requested_by,
            "proof_required": self.proof_required,
            "stage": self.stage,
            "answers": [one.as_json() for one in self.answers],
            "proof": None if self.proof is None else dict(self.proof),
            "waived": None if self.waived is None else self.waived.as_json(),
            "reopened": self.reopened,
        }


WORDS: Final[Mapping[Stage, str]] = {
    "requested": "handed to the cluster",
    "drained": "drained",
    "replaced": "replaced",
    "returned": "returned",
    "refused": "refused by the cluster",
    "failed": "given up by the cluster",
}


def remediation_from(body: Mapping[str, Any]) -> Remediation:
    """Reads `Remediation.as_json`."""
    waived = body["waived"]
    return Remediation(
        **{
            **body,
            "requested_at": parse_rfc3339(body["requested_at"]),
            "answers": tuple(answer_from(one) for one in body["answers"]),
            "waived": None if waived is None else Waived(**{**waived, "at": parse_rfc3339(waived["at"])}),
        }
    )
