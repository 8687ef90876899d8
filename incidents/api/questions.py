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
    component = s.CharField(help_text="suspect; `none`: none of the suspects is at fault")
    probability = s.FloatField(help_text="probability after all answers")


class QuestionShape(s.Serializer[Any]):
    """A measurement. It is positive if one of `tests` is at fault."""

    id = s.CharField(help_text="id of the measurement, stable across requests")
    kind = s.ChoiceField(choices=KINDS)
    target = s.CharField()
    text = s.CharField(help_text="instruction")
    positive = s.CharField(help_text="definition of a positive outcome")
    tests = s.ListField(child=s.CharField())
    detection = s.FloatField(help_text="probability of a positive outcome if one of `tests` is at fault")
    false_alarm = s.FloatField(help_text="probability of a positive outcome if none of `tests` is at fault")
    minutes = s.FloatField()
    cost = s.FloatField(
        help_text="cost in addition to the time, in minutes of an engineer or of lost capacity"
    )
    bits = s.FloatField(help_text="expected information that tells the remaining `suspects` apart")
    bits_per_minute = s.FloatField(help_text="bits / (minutes + cost), the order of the list")
    src = s.CharField(help_text="source of probes; empty for other measurements")
    dst = s.CharField()
    hops = s.ListField(child=s.CharField())
    packets = s.IntegerField(help_text="number of probes to send")
    rate = s.FloatField(help_text="assumed share of packets lost by the fault")
    judged_by_rows = s.BooleanField(help_text="true: agents can run it, and `probe` rows answer it")


class RequestedShape(s.Serializer[Any]):
    question = s.DictField()
    at = s.DateTimeField()
    until = s.DateTimeField()
    by = s.CharField()


class AnsweredShape(s.Serializer[Any]):
    """A recorded answer, with the probabilities before and after it."""

    question = s.DictField()
    outcome = s.ChoiceField(choices=OUTCOMES)
    by = s.CharField(help_text="person or key; `telemetry`: answered by rows")
    at = s.DateTimeField(help_text="time of the measurement")
    recorded_at = s.DateTimeField()
    effect = s.CharField(
        help_text="effect on the suspects: narrowed, moved, contradicts, repeated, unclear, no_suspect or"
        " late (the incident was resolved)"
    )
    prior = s.DictField(child=s.FloatField())
    posterior = s.DictField(child=s.FloatField())
    bits_expected = s.FloatField()
    bits_gained = s.FloatField(help_text="information gained; negative for a surprising answer")


class QuestionsShape(s.Serializer[Any]):
    suspects = SuspectShape(many=True)
    bits = s.FloatField(help_text="entropy of `suspects`")
    reason = s.CharField(allow_null=True, help_text="reason for an empty list; null: questions are listed")
    questions = QuestionShape(many=True, help_text="best first")
    requested = RequestedShape(many=True, help_text="probes currently on the ping lists")
    answers = AnsweredShape(many=True, help_text="oldest first")


class AnswerShape(s.Serializer[Any]):
    outcome = s.ChoiceField(choices=OUTCOMES, help_text="outcome; `positive` as defined by the question")
    at = s.DateTimeField(required=False, help_text="time of the measurement; default: now")
    note = s.CharField(required=False, max_length=2000)
    by = s.CharField(
        required=False, max_length=255, help_text="person or system that measured; default: the sender"
    )


CHANGED = {
    409: OpenApiResponse(
        shapes.ConflictShape, "Not possible in the state of the incident; `detail` has the reason."
    ),
    404: OpenApiResponse(PROBLEM, "Incident or question not found; nothing was recorded."),
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
        """Measurements that would tell the suspects apart, ranked by expected bits per minute and cost,
        with the probability of each suspect, requested probes and answers."""
        parameters(request)
        return Response(questions_of(queries.get(reference).incident, now_utc()).as_json())


class RequestProbeView(QuestionsAPI):
    @extend_schema(
        operation_id="incidents_request_probe",
        request=None,
        responses={200: OpenApiResponse(QuestionsShape, "On the ping lists for 30 minutes."), **CHANGED},
    )
    def post(self, request: Request, reference: str, question: str) -> Response:
        """Put a probe on the ping lists that agents poll. Incoming rows of its path answer the question."""
        fields(request, shapes.NothingShape)
        incident_id = queries.get(reference).incident.id
        return _answer(commands.request(incident_id, question, context(request)))


class AnswerQuestionView(QuestionsAPI):
    @extend_schema(
        operation_id="incidents_answer_question",
        request=AnswerShape,
        responses={
            200: OpenApiResponse(QuestionsShape, "Recorded, or already recorded (no receipt)."),
            **CHANGED,
        },
    )
    def post(self, request: Request, reference: str, question: str) -> Response:
        """Record the outcome of a measurement, which updates the probabilities and narrows the cause. An
        answer to a resolved incident is recorded as late and changes no cause."""
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
