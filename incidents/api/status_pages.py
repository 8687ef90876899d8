"""Status pages and their notices over HTTP, as /api/v1/status_pages. Publishing needs `incidents:write`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers as s
from rest_framework.exceptions import NotFound
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from incidents import queries
from incidents.api import inputs
from incidents.api.editable import BySlug, Catalog
from incidents.api.incident import serializers as shapes
from incidents.api.incident.serializers import Strict
from incidents.api.incident.views import ERRORS, MISSING, IncidentAPI, parameters
from incidents.api.inputs import context, fields
from incidents.domain.status_pages import (
    STATES,
    STATUSES,
    Notice,
    Publish,
    services_from,
    slugs_in,
)
from incidents.domain.values import InvalidValueError
from incidents.status_pages import commands, mail
from incidents.status_pages.models import StatusNotice, StatusPage, StatusSubscriber
from incidents.status_pages.projection import notice_of
from incidents.status_pages.queries import (
    UnknownStatusPageError,
    draft_of,
    json_of,
    notice_called,
    page_called,
)
from incidents.teams.models import Service, Team
from ingest.api.authentication import HasScope
from ingest.api.keys import ADMIN
from ingest.queries import configured

MOST = 200
CHANGED = {
    409: OpenApiResponse(shapes.ConflictShape, "The notice was withdrawn or is full."),
    **ERRORS,
    **MISSING,
}


# Pages
# ----------------------------------------------------------------------------------------------------------
class PublicServiceShape(s.Serializer[Any]):
    key = s.CharField(
        required=False, help_text="key used in updates; default: derived from the name; cannot be changed"
    )
    name = s.CharField(help_text="name on the page")
    group = s.CharField(required=False, allow_blank=True, help_text="heading on the page")
    covers = s.ListField(
        child=s.CharField(),
        required=False,
        help_text="slugs of services and globs over components, for drafts; not shown on the page",
    )


@extend_schema_field(PublicServiceShape(many=True))
class PublicServicesField(s.JSONField):
    pass


class StatusPageSerializer(Strict, s.ModelSerializer[StatusPage]):
    slug = s.SlugField(max_length=60, help_text="address of the page: /status/<slug>; cannot be changed")
    public = s.BooleanField(required=False, help_text="true: visible without signing in; default: false")
    team = s.SlugRelatedField(
        slug_field="slug",
        queryset=Team.objects.all(),
        allow_null=True,
        required=False,
        help_text="slug of the team whose responders publish; null: responders of any team",
    )
    services = PublicServicesField(required=False)

    class Meta:
        model = StatusPage
        fields = ("slug", "name", "description", "public", "team", "services")

    def validate_slug(self, slug: str) -> str:
        if self.instance is not None:
            if slug != self.instance.slug:
                raise s.ValidationError("cannot be changed; create another page")
        elif StatusPage.objects.filter(slug=slug).exists():
            raise s.ValidationError("is the address of another status page")
        return slug

    def validate_name(self, name: str) -> str:
        return shapes.line("name", name)

    def validate_services(self, given: object) -> list[dict[str, Any]]:
        try:
            found = services_from(given)
        except InvalidValueError as invalid:
            inner = invalid.field.removeprefix("services").lstrip(".")
            raise s.ValidationError(f"{inner}: {invalid.reason}" if inner else invalid.reason) from None
        named = slugs_in(found)
        known = set(Service.objects.filter(slug__in=named).values_list("slug", flat=True))
        if unknown := sorted(named - known):
            raise s.ValidationError(
                f"cover {unknown[0]!r}, which is neither a service nor a glob over components such as disk/*"
            )
        return [one.as_json() for one in found]


class StatusPagesView(Catalog):
    """Pages that show outsiders, or everyone who is signed in, what fails and what is planned."""

    kind = "status_page"
    queryset = StatusPage.objects.select_related("team")
    serializer_class: type[BaseSerializer[StatusPage]] = StatusPageSerializer
    pagination_class = BySlug
    lookup_field = "slug"

    def keep(self, serializer: BaseSerializer[StatusPage]) -> None:
        row = serializer.instance
        # A page that is made once more must not have a version that some cache knows from before.
        version = 1 + (_events_of(serializer) if row is None else row.version)
        serializer.save(version=version)


def _events_of(serializer: BaseSerializer[StatusPage]) -> int:
    """More than the version that a removed page of this address had."""
    slug = serializer.validated_data["slug"]
    return 1_000_000 * len(configured(StatusPagesView.kind, slug))


# Notices
# ----------------------------------------------------------------------------------------------------------
class StatusUpdateShape(s.Serializer[Any]):
    number = s.IntegerField(help_text="from 1")
    at = s.DateTimeField()
    status = s.CharField()
    text = s.CharField()
    services = s.DictField(child=s.ChoiceField(choices=list(STATES)), help_text="state by key of the service")
    edited_at = s.DateTimeField(allow_null=True)


class NoticeShape(s.Serializer[Any]):
    id = s.UUIDField()
    kind = s.ChoiceField(choices=list(STATUSES))
    title = s.CharField()
    status = s.CharField()
    began_at = s.DateTimeField()
    ended_at = s.DateTimeField(allow_null=True)
    updates = StatusUpdateShape(many=True, help_text="newest first")
    incident = s.IntegerField(allow_null=True, help_text="incident number; not shown on the page")
    withdrawn = s.BooleanField()


class NoticesShape(s.Serializer[Any]):
    results = NoticeShape(many=True)


class PublishShape(s.Serializer[Any]):
    status = s.CharField(help_text="; ".join(f"{kind}: {', '.join(of)}" for kind, of in STATUSES.items()))
    text = s.CharField(help_text="plain text, at most 5000 characters")
    services = s.DictField(
        child=s.ChoiceField(choices=list(STATES)),
        required=False,
        help_text="state of each service until the next update; services left out are operational",
    )
    title = s.CharField(required=False, help_text="required for a new notice")


class OpenNoticeShape(PublishShape):
    kind = s.ChoiceField(choices=list(STATUSES), required=False, help_text="default incident")
    incident = s.CharField(required=False, help_text="id or number of the incident; not shown on the page")


class EditShape(s.Serializer[Any]):
    text = s.CharField()


class StatusDraftShape(s.Serializer[Any]):
    title = s.CharField()
    status = s.CharField()
    text = s.CharField()
    services = s.DictField(child=s.ChoiceField(choices=list(STATES)))


class StatusPageAPI(IncidentAPI):
    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, UnknownStatusPageError):
            exc = NotFound(f"{exc.args[0][:1].upper()}{exc.args[0][1:]}.")
        return super().handle_exception(exc)


class NoticesView(StatusPageAPI):
    @extend_schema(operation_id="status_page_notices", responses={200: NoticesShape, **ERRORS, **MISSING})
    def get(self, request: Request, slug: str) -> Response:
        """Notices of a page, newest first, including withdrawn ones; at most 200."""
        parameters(request)
        page = page_called(slug)
        rows = StatusNotice.objects.filter(page=page.slug)[:MOST]
        return Response({"results": [_as_json(notice_of(row), page) for row in rows]})

    @extend_schema(
        operation_id="status_page_open_notice",
        request=OpenNoticeShape,
        responses={201: NoticeShape, **CHANGED},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Publish the first update of a new notice."""
        body = fields(request, OpenNoticeShape)
        about = inputs.reference("incident", body["incident"]) if "incident" in body else None
        notice = commands.open_notice(slug, _publish(body, about), context(request))
        return Response(_as_json(notice, page_called(slug)), status=201)


class NoticeView(StatusPageAPI):
    @extend_schema(operation_id="status_page_notice", responses={200: NoticeShape, **ERRORS, **MISSING})
    def get(self, request: Request, slug: str, id: str) -> Response:
        """A notice with its updates."""
        parameters(request)
        page, notice = page_called(slug), notice_called(str(id))
        if notice.page != page.slug:
            raise UnknownStatusPageError(f"{page.slug} has no notice {id}")
        return Response(_as_json(notice, page))

    @extend_schema(operation_id="status_page_withdraw_notice", responses={200: NoticeShape, **CHANGED})
    def delete(self, request: Request, slug: str, id: str) -> Response:
        """Withdraw a notice from its page."""
        return Response(
            _as_json(commands.withdraw_notice(slug, str(id), context(request)), page_called(slug))
        )


class StatusUpdatesView(StatusPageAPI):
    @extend_schema(
        operation_id="status_page_publish_update",
        request=PublishShape,
        responses={200: NoticeShape, **CHANGED},
    )
    def post(self, request: Request, slug: str, id: str) -> Response:
        """Publish a further update of a notice."""
        command = _publish(fields(request, PublishShape), None)
        return Response(
            _as_json(commands.update_notice(slug, str(id), command, context(request)), page_called(slug))
        )


class StatusUpdateView(StatusPageAPI):
    @extend_schema(
        operation_id="status_page_edit_update", request=EditShape, responses={200: NoticeShape, **CHANGED}
    )
    def patch(self, request: Request, slug: str, id: str, number: int) -> Response:
        """Correct the text of a published update."""
        text = fields(request, EditShape)["text"]
        notice = commands.edit_update(slug, str(id), number, text, context(request))
        return Response(_as_json(notice, page_called(slug)))


class StatusSubscriberShape(s.Serializer[Any]):
    id = s.IntegerField()
    address = s.CharField()
    requested_at = s.DateTimeField()
    confirmed_at = s.DateTimeField(
        allow_null=True, help_text="time of confirmation; null: not confirmed, gets no mail"
    )


class StatusSubscribersShape(s.Serializer[Any]):
    results = StatusSubscriberShape(many=True)


class StatusSubscribersView(StatusPageAPI):
    def get_permissions(self) -> list[BasePermission]:
        return [HasScope(ADMIN)]

    @extend_schema(
        operation_id="status_page_subscribers",
        parameters=[OpenApiParameter("after", int, description="ids greater than this")],
        responses={200: StatusSubscribersShape, **ERRORS, **MISSING},
    )
    def get(self, request: Request, slug: str) -> Response:
        """Mail subscribers in order of their ids; at most 200."""
        given = parameters(request, "after")
        after = given.get("after", "0")
        if not (after.isdecimal() and after.isascii() and len(after) < 19):
            raise InvalidValueError("after", "must be the id of a subscriber")
        rows = StatusSubscriber.objects.filter(page=page_called(slug).slug, pk__gt=int(after))[:MOST]
        fields = ("id", "address", "requested_at", "confirmed_at")
        return Response({"results": [{name: getattr(row, name) for name in fields} for row in rows]})


class StatusSubscriberView(StatusPageAPI):
    def get_permissions(self) -> list[BasePermission]:
        return [HasScope(ADMIN)]

    @extend_schema(operation_id="status_page_remove_subscriber", responses={204: None, **ERRORS, **MISSING})
    def delete(self, request: Request, slug: str, id: int) -> Response:
        """Delete a subscriber and their queued mail."""
        row = StatusSubscriber.objects.filter(page=page_called(slug).slug, pk=id).first()
        if row is None:
            raise UnknownStatusPageError(f"{slug} has no subscriber {id}")
        mail.remove(row, context(request))
        return Response(status=204)


class StatusDraftView(StatusPageAPI):
    @extend_schema(
        operation_id="incidents_status_draft",
        parameters=[OpenApiParameter("page", str, required=True, description="slug of the status page")],
        responses={200: StatusDraftShape, **ERRORS, **MISSING},
    )
    def get(self, request: Request, reference: str) -> Response:
        """Draft of a first update for a status page, from the incident; nothing is published."""
        given = parameters(request, "page")
        if "page" not in given:
            raise InvalidValueError("page", "is required: the slug of a status page")
        found = draft_of(page_called(given["page"]), queries.get(reference).incident)
        return Response(
            {
                "title": found.title,
                "status": found.status,
                "text": found.text,
                "services": dict(found.services),
            }
        )


def _publish(body: Mapping[str, Any], about: str | None) -> Publish:
    return Publish(
        status=body["status"],
        text=body["text"],
        services=body.get("services", {}),
        kind=body.get("kind", "incident"),
        title=body.get("title"),
        incident=about,
    )


def _as_json(notice: Notice, page: StatusPage) -> dict[str, Any]:
    names = {one.key: one.name for one in page.entries}
    number = None if notice.incident is None else queries.get(notice.incident).incident.number
    return {**json_of(notice, names), "incident": number, "withdrawn": notice.withdrawn}
