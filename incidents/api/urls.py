"""Addresses of incidents under /api/v1/."""

from __future__ import annotations

from typing import Any

from django.urls import include, path
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.routers import SimpleRouter

from incidents import commands, queries
from incidents.api import notifications
from incidents.api.alerts.receipts import ReceiptView
from incidents.api.alerts.views import MemberAlertsView
from incidents.api.changes.risk import ChangeOutcomesView, ChangeRisksView, ChangeRiskView
from incidents.api.changes.validation import ChangeValidationView
from incidents.api.changes.views import ChangesView, IncidentChangesView
from incidents.api.chat import ChatWorkspacesView
from incidents.api.comparison import ConfigurationCompareView, GridCompareView, IncidentCompareView
from incidents.api.components.grid import GridView
from incidents.api.components.views import BlastRadiusView
from incidents.api.data_sources import DataSourcesView
from incidents.api.escalation import EscalationView, PoliciesView
from incidents.api.incident import serializers as shapes
from incidents.api.incident.bulk import BulkView
from incidents.api.incident.evidence_file import EvidenceFileView, EvidenceKeyView
from incidents.api.incident.views import EventsView, EvidenceView, IncidentsView, IncidentView, action
from incidents.api.inputs import context, reference, sequence, time_of
from incidents.api.oncall import views
from incidents.api.oncall.schedules import CalendarsView, SchedulesView
from incidents.api.people import MembersView, MemberView, UsersView
from incidents.api.proposals import ProposalsView
from incidents.api.questions import AnswerQuestionView, QuestionsView, RequestProbeView
from incidents.api.remediation.mitigation import MitigationView
from incidents.api.remediation.views import REQUEST_SCOPE, RemediationAnswersView, RemediationView
from incidents.api.reviews import (
    OpenActionsView,
    ReviewActionsView,
    ReviewActionView,
    ReviewPDFView,
    ReviewView,
)
from incidents.api.routing.preview import ExplainView, ReplayView
from incidents.api.routing.services import ServicesView
from incidents.api.routing.views import RoutesView
from incidents.api.saved_views import SavedViewsView
from incidents.api.scorecards import BacktestsView, BacktestView, CancelView
from incidents.api.similarity import SimilarView
from incidents.api.status_pages import (
    NoticesView,
    NoticeView,
    StatusDraftView,
    StatusPagesView,
    StatusSubscribersView,
    StatusSubscriberView,
    StatusUpdatesView,
    StatusUpdateView,
)
from incidents.api.suppression.silences import IncidentMatchersView, SilencesView, SilenceView
from incidents.api.suppression.views import InhibitionsView, MaintenanceView
from incidents.api.teams.members import TeamsView
from incidents.api.theories import TheoriesView
from incidents.api.webhooks import WebhooksView
from incidents.domain.values import InvalidValueError
from incidents.escalation.commands import escalate
from ingest.api.keys import Key


def split(id: str, body: dict[str, Any], request: Request) -> commands.CommandResult:
    """Of a merged incident, or from its target's side."""
    merged = reference("incident", body["incident"]) if "incident" in body else id
    if merged != id and queries.get(merged).incident.merged_into != id:
        raise InvalidValueError("incident", "is not merged into this one")
    return commands.split(merged, body.get("reason", ""), context(request))


def link(id: str, body: dict[str, Any], request: Request) -> commands.CommandResult:
    """To a page, or to another incident."""
    if ("href" in body) == ("incident" in body):
        raise InvalidValueError("href", "give either `href` or `incident`")
    if "incident" in body:
        return commands.relate(id, reference("incident", body["incident"]), context(request))
    return commands.link(id, body["href"], body.get("text", ""), context(request))


def resolve(id: str, body: dict[str, Any], request: Request) -> commands.CommandResult:
    """With or without the proof of repair; a key waives it where it may hand incidents to a cluster."""
    waived = body.get("without_proof", "")
    if waived and isinstance(request.auth, Key) and not request.auth.allows(REQUEST_SCOPE):
        raise PermissionDenied(f"The key lacks the scope {REQUEST_SCOPE}, which `without_proof` needs.")
    return commands.resolve(id, body["confirmed_cause"], body.get("note", ""), context(request), waived)


ACTIONS = {
    "acknowledge": action(
        "acknowledge",
        "Acknowledge the incident. The sender becomes the owner of an incident without one. A"
        " second acknowledgement is rejected.",
        shapes.NothingShape,
        lambda id, _, request: commands.acknowledge(id, context(request)),
    ),
    "unacknowledge": action(
        "unacknowledge",
        "Withdraw the acknowledgement.",
        shapes.NothingShape,
        lambda id, _, request: commands.unacknowledge(id, context(request)),
    ),
    "assign": action(
        "assign",
        "Assign an owner; null removes the owner.",
        shapes.AssignShape,
        lambda id, body, request: commands.assign(id, body["owner"], context(request)),
    ),
    "hand_over": action(
        "hand_over",
        "Reassign the incident to another team, with a reason. Counts as a hand-over; the new"
        " team has to accept it or acknowledge.",
        shapes.HandOverShape,
        lambda id, body, request: commands.hand_over(id, body["team"], body["reason"], context(request)),
    ),
    "accept": action(
        "accept",
        "Accept a hand-over to your team. Rejected with 409 if no hand-over is pending.",
        shapes.NothingShape,
        lambda id, _, request: commands.accept(id, context(request)),
    ),
    "bounce": action(
        "bounce",
        "Reject a hand-over that is not accepted yet, with a reason: the incident returns to the"
        " previous team and owner.",
        shapes.BounceShape,
        lambda id, body, request: commands.bounce(id, body["reason"], context(request)),
    ),
    "undo": action(
        "undo",
        "Undo the last merge, snooze or pending hand-over.",
        shapes.UndoShape,
        lambda id, body, request: commands.undo(id, body.get("what"), context(request)),
    ),
    "snooze": action(
        "snooze",
        "Snooze the incident until a time, or until a change: an alert or report joins, or"
        " another analyzer blames it. A higher severity ends the snooze at once. Afterwards it is"
        " open, with its owner; nothing that joins meanwhile is lost.",
        shapes.SnoozeShape,
        lambda id, body, request: commands.snooze(
            id, time_of("until", body.get("until")), body.get("reason", ""), context(request)
        ),
    ),
    "merge": action(
        "merge",
        "Merge the incident into another one, which gets its alerts, reports and findings from"
        " then on. Recorded in both. Rejected if either is resolved.",
        shapes.MergeShape,
        lambda id, body, request: commands.merge(
            id, reference("into", body["into"]), body.get("reason", ""), context(request)
        ),
    ),
    "split": action(
        "split",
        "Split off a merged incident, with those of its alerts that still fire: addressed to the"
        " merged incident, or to its target with `incident`. Rejected while another incident is"
        " open for its dedup key.",
        shapes.SplitShape,
        split,
    ),
    "split_off": action(
        "split_off",
        "Move some of its alerts into a new incident of the same team, which is returned. The new"
        " incident is acknowledged if this one is. Rejected if no alert would remain. `undo` with"
        " `split_off` on the new incident reverts it.",
        shapes.SplitOffShape,
        lambda id, body, request: commands.split_off(
            id, body["alerts"], context(request), body.get("title", ""), body.get("reason", "")
        ),
    ),
    "escalate": action(
        "escalate",
        "Run the next step of the escalation policy now, with a reason. If the policy is not"
        " running (acknowledged, snoozed, or all steps done), it starts again and the incident is"
        " open.",
        shapes.EscalateShape,
        lambda id, body, request: escalate(id, body["reason"], context(request)),
    ),
    "set_severity": action(
        "set_severity",
        "Set the severity. Findings and reports no longer change it.",
        shapes.SetSeverityShape,
        lambda id, body, request: commands.set_severity(id, body["severity"], context(request)),
    ),
    "set_title": action(
        "set_title",
        "Change the title.",
        shapes.SetTitleShape,
        lambda id, body, request: commands.set_title(id, body["title"], context(request)),
    ),
    "comment": action(
        "comment",
        "Add a comment in Markdown to the timeline, with links; possible on a resolved incident.",
        shapes.CommentShape,
        lambda id, body, request: commands.comment(
            id, body["text"], context(request), sequence("links", body.get("links", ()))
        ),
    ),
    "link": action(
        "link",
        "Add a link, at most 50 per incident: to a page (`href`) or to a related incident"
        " (`incident`), which gets a link back.",
        shapes.LinkToShape,
        link,
    ),
    "resolve": action(
        "resolve",
        "Resolve the incident with the confirmed cause: the component at fault, a class of causes"
        " such as `firmware`, or `none`. An incident that requires proof of repair waits for it,"
        " unless `without_proof` has a reason.",
        shapes.ResolveShape,
        resolve,
    ),
    "reopen": action(
        "reopen",
        "Reopen a resolved incident. Rejected while another incident is open for the same dedup key.",
        shapes.ReopenShape,
        lambda id, body, request: commands.reopen(id, body.get("reason", ""), context(request)),
    ),
}

CONTACTS = [
    path(f"{whose}/{rest}", view.as_view(), name=f"api-{name}")
    for whose, owner in (("me", "my"), ("users/<str:username>", "user"))
    for rest, view, name in (
        ("contact_methods", notifications.MethodsView, f"{owner}-methods"),
        ("contact_methods/<str:method>", notifications.MethodView, f"{owner}-method"),
        ("contact_methods/<str:method>/test", notifications.TryMethodView, f"{owner}-method-test"),
        ("notification_rules", notifications.PreferencesView, f"{owner}-notification-rules"),
    )
]
CONTACTS += [
    path("channels", notifications.ChannelsView.as_view(), name="api-channels"),
    path("channels/<str:method>", notifications.ChannelView.as_view(), name="api-channel"),
    path("channels/<str:method>/test", notifications.TryChannelView.as_view(), name="api-channel-test"),
]

router = SimpleRouter(trailing_slash=False)
router.register("escalation_policies", PoliciesView, basename="escalation_policies")
router.register("teams", TeamsView, basename="teams")
router.register("services", ServicesView, basename="services")
router.register("routes", RoutesView, basename="routes")
router.register("schedules", SchedulesView, basename="schedules")
router.register("calendars", CalendarsView, basename="calendars")
router.register("users", UsersView, basename="users")
router.register("data_sources", DataSourcesView, basename="data_sources")
router.register("webhooks", WebhooksView, basename="webhooks")
router.register("chat_workspaces", ChatWorkspacesView, basename="chat_workspaces")
router.register("maintenance", MaintenanceView, basename="maintenance")
router.register("saved_views", SavedViewsView, basename="saved_views")
router.register("inhibitions", InhibitionsView, basename="inhibitions")
router.register("status_pages", StatusPagesView, basename="status_pages")

urlpatterns = [
    path("incidents", IncidentsView.as_view(), name="api-incidents"),
    path("incidents/bulk", BulkView.as_view(), name="api-incidents-bulk"),
    path("incidents/<str:reference>", IncidentView.as_view(), name="api-incident"),
    path("incidents/<str:reference>/events", EventsView.as_view(), name="api-incident-events"),
    path("incidents/<str:reference>/evidence", EvidenceView.as_view(), name="api-incident-evidence"),
    path(
        "incidents/<str:reference>/evidence-file",
        EvidenceFileView.as_view(),
        name="api-incident-evidence-file",
    ),
    path("evidence-key", EvidenceKeyView.as_view(), name="api-evidence-key"),
    path("incidents/<str:reference>/mitigation", MitigationView.as_view(), name="api-incident-mitigation"),
    path("incidents/<str:reference>/proposals", ProposalsView.as_view(), name="api-incident-proposals"),
    path("incidents/<str:reference>/theories", TheoriesView.as_view(), name="api-incident-theories"),
    path("incidents/<str:reference>/questions", QuestionsView.as_view(), name="api-incident-questions"),
    path(
        "incidents/<str:reference>/questions/<str:question>/request",
        RequestProbeView.as_view(),
        name="api-incident-request-probe",
    ),
    path(
        "incidents/<str:reference>/questions/<str:question>/answer",
        AnswerQuestionView.as_view(),
        name="api-incident-answer-question",
    ),
    path("incidents/<str:reference>/review", ReviewView.as_view(), name="api-incident-review"),
    path("incidents/<str:reference>/review/pdf", ReviewPDFView.as_view(), name="api-incident-review-pdf"),
    path(
        "incidents/<str:reference>/review/actions",
        ReviewActionsView.as_view(),
        name="api-incident-review-actions",
    ),
    path(
        "incidents/<str:reference>/review/actions/<int:action>",
        ReviewActionView.as_view(),
        name="api-incident-review-action",
    ),
    path(
        "incidents/<str:reference>/status_draft", StatusDraftView.as_view(), name="api-incident-status-draft"
    ),
    path(
        "status_pages/<slug:slug>/subscribers", StatusSubscribersView.as_view(), name="api-status-subscribers"
    ),
    path(
        "status_pages/<slug:slug>/subscribers/<int:id>",
        StatusSubscriberView.as_view(),
        name="api-status-subscriber",
    ),
    path("status_pages/<slug:slug>/notices", NoticesView.as_view(), name="api-status-notices"),
    path("status_pages/<slug:slug>/notices/<uuid:id>", NoticeView.as_view(), name="api-status-notice"),
    path(
        "status_pages/<slug:slug>/notices/<uuid:id>/updates",
        StatusUpdatesView.as_view(),
        name="api-status-updates",
    ),
    path(
        "status_pages/<slug:slug>/notices/<uuid:id>/updates/<int:number>",
        StatusUpdateView.as_view(),
        name="api-status-update",
    ),
    path("review_actions", OpenActionsView.as_view(), name="api-review-actions"),
    path("incidents/<str:reference>/escalation", EscalationView.as_view(), name="api-incident-escalation"),
    path(
        "incidents/<str:reference>/notifications",
        notifications.NotificationsView.as_view(),
        name="api-incident-notifications",
    ),
    path("incidents/<str:reference>/alerts", MemberAlertsView.as_view(), name="api-incident-alerts"),
    path("incidents/<str:reference>/matchers", IncidentMatchersView.as_view(), name="api-incident-matchers"),
    path("incidents/<str:reference>/similar", SimilarView.as_view(), name="api-incident-similar"),
    path("incidents/<str:reference>/remediation", RemediationView.as_view(), name="api-incident-remediation"),
    path(
        "incidents/<str:reference>/remediation/answers",
        RemediationAnswersView.as_view(),
        name="api-incident-remediation-answers",
    ),
    path("incidents/<str:reference>/compare", IncidentCompareView.as_view(), name="api-incident-compare"),
    path("incidents/<str:reference>/changes", IncidentChangesView.as_view(), name="api-incident-changes"),
    *(
        path(f"incidents/<str:reference>/{verb}", view.as_view(), name=f"api-incident-{verb}")
        for verb, view in ACTIONS.items()
    ),
    *CONTACTS,
    path("changes", ChangesView.as_view(), name="api-changes"),
    path("changes/outcomes", ChangeOutcomesView.as_view(), name="api-change-outcomes"),
    path("changes/risk", ChangeRiskView.as_view(), name="api-change-risk"),
    path("changes/risks", ChangeRisksView.as_view(), name="api-change-risks"),
    path("changes/<str:id>/validation", ChangeValidationView.as_view(), name="api-change-validation"),
    path("silences", SilencesView.as_view(), name="api-silences"),
    path("silences/<str:id>", SilenceView.as_view(), name="api-silence"),
    path("on_call", views.OnCallView.as_view(), name="api-on-call"),
    path("on_call/feeds/<str:secret>.ics", views.SecretCalendarView.as_view(), name="api-on-call-feed"),
    path("schedules/<slug:slug>.ics", views.ScheduleCalendarView.as_view(), name="api-schedule-calendar"),
    path("schedules/<str:slug>/on_call", views.ScheduleOnCallView.as_view(), name="api-schedule-on-call"),
    path("schedules/<str:slug>/shifts", views.ShiftsView.as_view(), name="api-schedule-shifts"),
    path("schedules/<str:slug>/overrides", views.OverridesView.as_view(), name="api-overrides"),
    path("schedules/<str:slug>/overrides/<str:id>", views.OverrideView.as_view(), name="api-override"),
    path("schedules/<str:slug>/swaps", views.SwapsView.as_view(), name="api-swaps"),
    path("schedules/<str:slug>/swaps/<str:id>", views.SwapView.as_view(), name="api-swap"),
    path("schedules/<str:slug>/feeds", views.FeedsView.as_view(), name="api-feeds"),
    path("schedules/<str:slug>/feeds/<str:id>", views.FeedView.as_view(), name="api-feed"),
    path("routes/explain", ExplainView.as_view(), name="api-routes-explain"),
    path("routes/replay", ReplayView.as_view(), name="api-routes-replay"),
    path(
        "components/<path:component>/blast_radius",
        BlastRadiusView.as_view(),
        name="api-component-blast-radius",
    ),
    path("teams/<slug:slug>/members", MembersView.as_view(), name="api-team-members"),
    path("teams/<slug:slug>/members/<str:username>", MemberView.as_view(), name="api-team-member"),
    path("grid/compare", GridCompareView.as_view(), name="api-grid-compare"),
    path("configuration/compare", ConfigurationCompareView.as_view(), name="api-configuration-compare"),
    path("grid", GridView.as_view(), name="api-grid"),
    path("push_key", notifications.PushKeyView.as_view(), name="api-push-key"),
    path("receipts/<str:id>", ReceiptView.as_view(), name="api-receipt"),
    path("", include("incidents.reports.urls")),
    path("backtests", BacktestsView.as_view(), name="api-backtests"),
    path("backtests/<uuid:id>", BacktestView.as_view(), name="api-backtest"),
    path("backtests/<uuid:id>/cancel", CancelView.as_view(), name="api-backtest-cancel"),
    path("", include("incidents.scorecards.urls")),
    path("", include(router.urls)),
]
