"""Questions of an incident over HTTP: read the best measurements, ask agents for one, record an answer."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers as s
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from incidents import queries
from incidents.alerts.receipts import receipt_of
from incidents.api.incident import serializers as shapes
from incidents.api.incident.views import ERRORS, MISSING, PROBLEM, IncidentAPI, parameters
from incidents.api.inputs import context, fields, time_of
from incidents.domain.questions import KINDS, OUTCOMES
from incidents.incident.repository import CommandResult
from incidents.questions import commands
from incidents.questions.queries import questions_of
from ingest.queries import now_utc


class SuspectShape(s.Serializer[Any]):
    component = s.CharField(help_text="`none`: none of the suspects is at fault")
    probability = s.FloatField(help_text="after all answers")


class QuestionShape(s.Serializer[Any]):
    """A measurement. It is positive if one of `tests` is at fault."""

    id = s.CharField(help_text="the same for the same measurement")
    kind = s.ChoiceField(choices=KINDS)
    target = s.CharField()
    text = s.CharField(help_text="what to do")
    positive = s.CharField(help_text="what a positive outcome is")
    tests = s.ListField(child=s.CharField())
    detection = s.FloatField(help_text="probability of a positive outcome if one of `tests` is at fault")
    false_alarm = s.FloatField(help_text="the same if none of them is")
    minutes = s.FloatField()
    cost = s.FloatField(help_text="beside the minutes, in minutes of an engineer or of lost capacity")
    bits = s.FloatField(help_text="expected reduction of the entropy of `suspects`")
    bits_per_minute = s.FloatField(help_text="bits / (minutes + cost); the list is ordered by it")
    src = s.CharField(help_text="of probes; empty for others")
    dst = s.CharField()
    hops = s.ListField(child=s.CharField())
    packets = s.IntegerField(help_text="probes to send")
    rate = s.FloatField(help_text="share of packets that the fault is taken to lose")
    judged_by_rows = s.BooleanField(help_text="whether agents can be asked, and `probe` rows answer it")


class RequestedShape(s.Serializer[Any]):
    question = s.DictField()
    at = s.DateTimeField()
    until = s.DateTimeField()
    by = s.CharField()


class AnsweredShape(s.Serializer[Any]):
    """An answer as it was recorded, with the probabilities before and after it."""

    question = s.DictField()
    outcome = s.ChoiceField(choices=OUTCOMES)
    by = s.CharField(help_text="`telemetry`: rows")
    at = s.DateTimeField(help_text="when it was measured")
    recorded_at = s.DateTimeField()
    effect = s.CharField(
        help_text="narrowed, moved, contradicts, repeated, unclear, no_suspect or late (the incident was resolved)"
    )
    prior = s.DictField(child=s.FloatField())
    posterior = s.DictField(child=s.FloatField())
    bits_expected = s.FloatField()
    bits_gained = s.FloatField(help_text="negative where the answer surprises")


class QuestionsShape(s.Serializer[Any]):
    suspects = SuspectShape(many=True)
    bits = s.FloatField(help_text="entropy of `suspects`")
    reason = s.CharField(allow_null=True, help_text="why no question is listed")
    questions = QuestionShape(many=True, help_text="the best first")
    requested = RequestedShape(many=True, help_text="probes on the ping lists")
    answers = AnsweredShape(many=True, help_text="oldest first")


class AnswerShape(s.Serializer[Any]):
    outcome = s.ChoiceField(choices=OUTCOMES, help_text="`positive` is what the question says it is")
    at = s.DateTimeField(required=False, help_text="when it was measured; default: now")
    note = s.CharField(required=False, max_length=2000)
    by = s.CharField(required=False, max_length=255, help_text="who or what measured; default: the sender")


CHANGED = {
    409: OpenApiResponse(shapes.ConflictShape, "It does not fit the incident's state: `detail` says why."),
    404: OpenApiResponse(
        PROBLEM, "There is no such incident, or it has no such question; nothing was recorded."
    ),
    **ERRORS,
}


class QuestionsAPI(IncidentAPI):
    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, commands.UnknownQuestionError):
            exc = NotFound(f"{exc.reason}.")
        return super().handle_exception(exc)


class QuestionsView(QuestionsAPI):
    @extend_schema(operation_id="incidents_questions", responses={200: QuestionsShape, **ERRORS, **MISSING})
    def get(self, request: Request, reference: str) -> Response:
        """The measurements that would tell the suspects apart, ranked by expected bits per minute and cost, with the
        probability of each suspect, the probes asked of agents, and the answers."""
        parameters(request)
        return Response(questions_of(queries.get(reference).incident, now_utc()).as_json())


class RequestProbeView(QuestionsAPI):
    @extend_schema(
        operation_id="incidents_request_probe",
        request=None,
        responses={200: OpenApiResponse(QuestionsShape, "On the ping lists for 30 minutes."), **CHANGED},
    )
    def post(self, request: Request, reference: str, question: str) -> Response:
        """Put a probe on the ping lists that agents poll. Rows of its path that arrive answer the question."""
        fields(request, shapes.NothingShape)
        incident_id = queries.get(reference).incident.id
        return _answer(commands.request(incident_id, question, context(request)))


class AnswerQuestionView(QuestionsAPI):
    @extend_schema(
        operation_id="incidents_answer_question",
        request=AnswerShape,
        responses={
            200: OpenApiResponse(QuestionsShape, "Recorded, or recorded before (then without a receipt)."),
            **CHANGED,
        },
    )
    def post(self, request: Request, reference: str, question: str) -> Response:
        """Record the outcome of a measurement. The probabilities move and the cause narrows; an answer to a resolved
        incident is recorded as late and changes no cause."""
        body = fields(request, AnswerShape)
        by = context(request)
        done = commands.answer(
            queries.get(reference).incident.id,
            question,
            body["outcome"],
            body.get("by") or by.actor.removeprefix("user:"),
            by,
            note=body.get("note", ""),
            at=time_of("at", body.get("at")),
        )
        return _answer(done)


def _answer(done: CommandResult) -> Response:
    response = Response(questions_of(done.incident, now_utc()).as_json())
    if done.events:
        response["Dossier-Receipt"] = receipt_of(done.incident.id, done.events)
    return response
