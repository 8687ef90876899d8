"""Post-incident reviews over HTTP: drafted from the log, written, published, and their actions."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers as s
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from incidents.api.incident import serializers as shapes
from incidents.api.incident.views import ERRORS, MISSING, IncidentAPI, parameters
from incidents.api.inputs import context, fields
from incidents.domain.values import InvalidValueError
from incidents.reviews import commands
from incidents.reviews.models import Review
from incidents.reviews.pdf import pdf_of

MOST = 500
CHANGED = {
    409: OpenApiResponse(shapes.ConflictShape, "Changed by someone else in the meantime."),
    **ERRORS,
    **MISSING,
}


class ActionShape(s.Serializer[Any]):
    id = s.IntegerField()
    text = s.CharField()
    owner = s.CharField(help_text="user name; empty: not assigned")
    due = s.CharField(help_text="due date; empty: none")
    done_at = s.CharField(help_text="time of completion; empty: open")
    done_by = s.CharField()


class ReviewShape(s.Serializer[Any]):
    incident = s.IntegerField()
    text = s.CharField(help_text="Markdown")
    actions = ActionShape(many=True)
    published_at = s.DateTimeField(allow_null=True)
    edition = s.IntegerField(help_text="revision of the text, to be sent with a new text")
    updated_at = s.DateTimeField()
    updated_by = s.CharField()


class ReviewChangeShape(s.Serializer[Any]):
    text = s.CharField(required=False)
    edition = s.IntegerField(
        required=False, help_text="revision that the change is based on; required with `text`"
    )
    published = s.BooleanField(required=False)


class NewActionShape(s.Serializer[Any]):
    text = s.CharField()
    owner = s.CharField(required=False)
    due = s.CharField(required=False, help_text="date, such as 2026-12-24")


class ActionChangeShape(s.Serializer[Any]):
    text = s.CharField(required=False)
    owner = s.CharField(required=False)
    due = s.CharField(required=False)
    done = s.BooleanField(required=False)


class ListedActionShape(ActionShape):
    incident = s.IntegerField()


class ActionsShape(s.Serializer[Any]):
    results = ListedActionShape(many=True)


class ReviewAPI(IncidentAPI):
    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, commands.UnknownReviewError):
            exc = NotFound(f"{exc.args[0][:1].upper()}{exc.args[0][1:]}.")
        return super().handle_exception(exc)


class ReviewView(ReviewAPI):
    @extend_schema(operation_id="incidents_review", responses={200: ReviewShape, **ERRORS, **MISSING})
    def get(self, request: Request, reference: str) -> Response:
        """The review of an incident; 404 before it is drafted."""
        parameters(request)
        return _answer(commands.find(reference))

    @extend_schema(
        operation_id="incidents_review_draft", request=None, responses={200: ReviewShape, **CHANGED}
    )
    def post(self, request: Request, reference: str) -> Response:
        """Draft the review from the log; an existing review is unchanged."""
        fields(request, shapes.NothingShape)
        return _answer(commands.begin(reference, context(request)))

    @extend_schema(
        operation_id="incidents_review_write",
        request=ReviewChangeShape,
        responses={200: ReviewShape, **CHANGED},
    )
    def patch(self, request: Request, reference: str) -> Response:
        """Change the text, publish, or withdraw the publication."""
        body, by = fields(request, ReviewChangeShape), context(request)
        if "text" in body:
            if "edition" not in body:
                raise InvalidValueError(
                    "edition", "is required with a text: the revision that the change is based on"
                )
            commands.write(reference, body["text"], body["edition"], by)
        if "published" in body:
            commands.publish(reference, body["published"], by)
        return _answer(commands.find(reference))


class ReviewPDFView(ReviewAPI):
    @extend_schema(
        operation_id="incidents_review_pdf",
        responses={(200, "application/pdf"): OpenApiTypes.BINARY, **CHANGED},
    )
    def get(self, request: Request, reference: str) -> HttpResponse:
        """The review of an incident with its actions as PDF; 404 before it is drafted."""
        parameters(request)
        return pdf_response(commands.find(reference))


class ReviewActionsView(ReviewAPI):
    @extend_schema(
        operation_id="incidents_review_add_action",
        request=NewActionShape,
        responses={200: ReviewShape, **CHANGED},
    )
    def post(self, request: Request, reference: str) -> Response:
        """Add an action with an owner and a date."""
        return _answer(commands.add_action(reference, fields(request, NewActionShape), context(request)))


class ReviewActionView(ReviewAPI):
    @extend_schema(
        operation_id="incidents_review_change_action",
        request=ActionChangeShape,
        responses={200: ReviewShape, **CHANGED},
    )
    def patch(self, request: Request, reference: str, action: int) -> Response:
        """Change an action, or mark it as done."""
        body = fields(request, ActionChangeShape)
        return _answer(commands.change_action(reference, action, body, context(request)))

    @extend_schema(operation_id="incidents_review_remove_action", responses={200: ReviewShape, **CHANGED})
    def delete(self, request: Request, reference: str, action: int) -> Response:
        """Remove an action."""
        return _answer(commands.remove_action(reference, action, context(request)))


class OpenActionsView(ReviewAPI):
    @extend_schema(
        operation_id="review_actions",
        parameters=[OpenApiParameter("owner", str, description="actions of this user only")],
        responses={200: ActionsShape, **ERRORS},
    )
    def get(self, request: Request) -> Response:
        """Open actions of all reviews, earliest date first; at most 500."""
        given = parameters(request, "owner")
        found = [
            {"incident": row.number, **one}
            for row in Review.objects.iterator()
            for one in row.actions
            if not one["done_at"] and given.get("owner", one["owner"]) == one["owner"]
        ]
        found.sort(key=lambda one: (one["due"] or "9999", one["incident"], one["id"]))
        return Response({"results": found[:MOST]})


def pdf_response(row: Review) -> HttpResponse:
    """The PDF of a review, to be saved as a file."""
    name = f'attachment; filename="review-{row.number}.pdf"'
    return HttpResponse(pdf_of(row), content_type="application/pdf", headers={"Content-Disposition": name})


def _answer(row: Review) -> Response:
    more = {"edition": row.edition, "updated_at": row.updated_at, "updated_by": row.updated_by}
    return Response({**commands.as_json(row), **more})
