"""Read models of incidents. Every row follows from the log alone and can be dropped and rebuilt."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models


class IncidentRow(models.Model):
    """An incident as it stands at `position`: the columns are the fields of `domain.incident.state.Incident`."""

    id = models.UUIDField(primary_key=True)
    version = models.IntegerField()
    position = models.CharField(max_length=36)
    number = models.BigIntegerField(unique=True)
    title = models.TextField()
    titled_by_analyzer = models.BooleanField(default=False)
    description = models.TextField()
    state = models.CharField(max_length=12)
    severity = models.CharField(max_length=8)
    severity_rank = models.SmallIntegerField()
    quiet = models.BooleanField(default=False)
    severity_by_person = models.BooleanField()
    component = models.TextField(null=True)
    ambiguous_with = ArrayField(models.TextField())
    region = models.TextField(null=True)
    team = models.CharField(max_length=60)
    routing = models.TextField()
    service = models.CharField(max_length=60, null=True)
    policy = models.CharField(max_length=60, null=True)
    group_key = models.TextField(null=True)
    dedup_key = models.TextField()
    labels = models.JSONField()
    links = models.JSONField()
    opened_at = models.DateTimeField()
    opened_by = models.TextField()
    verdict = models.TextField(null=True)
    confidence = models.FloatField(null=True)
    analyzer = models.TextField(null=True)
    owner = models.TextField(null=True)
    alerts = models.IntegerField()
    firing = models.IntegerField(default=0)
    flapping = models.BooleanField(default=False)
    alert_at = models.DateTimeField(null=True)
    findings = models.IntegerField()
    hops = models.IntegerField()
    rejections = models.IntegerField(default=0)
    handed_over = models.JSONField(null=True)
    handed_from = models.CharField(max_length=60, null=True)
    accepted_at = models.DateTimeField(null=True)
    accepted_by = models.TextField(null=True)
    team_since = models.DateTimeField()
    team_seconds = models.JSONField(default=dict)
    owner_seconds = models.JSONField(default=dict)
    counted_at = models.DateTimeField()
    seconds_to_team = models.FloatField(null=True)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.TextField(null=True)
    took_ownership = models.BooleanField(default=False)
    resolved_at = models.DateTimeField(null=True)
    resolved_by = models.TextField(null=True)
    confirmed_cause = models.TextField(null=True)
    snoozed_until = models.DateTimeField(null=True)
    snoozed_by = models.TextField(null=True)
    silence = models.UUIDField(null=True)
    overridden = models.JSONField(default=list)
    known_until = models.JSONField(default=dict)
    merged_into = models.UUIDField(null=True)
    merged_number = models.BigIntegerField(null=True)
    merged = models.JSONField(default=dict)
    related = models.JSONField(default=dict)
    failing_since = models.DateTimeField(null=True)
    last_failure = models.DateTimeField(null=True)
    last_blamed = models.DateTimeField(null=True)
    blamed_by = ArrayField(models.TextField())
    shown = models.JSONField(encoder=DjangoJSONEncoder)
    opinions = models.JSONField(default=dict)
    reported_at = models.DateTimeField(null=True)
    missed_by = models.JSONField(default=dict)
    remediation = models.JSONField(null=True)
    questions = models.JSONField(null=True)
    proposals = models.JSONField(null=True)
    cause = ArrayField(models.TextField())

    class Meta:
        db_table = "incident"
        constraints = (
            # What makes "one open incident for one key" true whatever runs at the same time.
            models.UniqueConstraint(
                fields=("dedup_key",), condition=~models.Q(state="resolved"), name="one_open_incident_per_key"
            ),
        )
        indexes = (
            models.Index(fields=("state", "severity_rank", "quiet", "-number"), name="incident_inbox"),
            models.Index(fields=("opened_at",), name="incident_opened_at"),
            # Few beside those that are resolved: whatever else is asked of them, these are all that is looked at.
            models.Index(
                fields=("number",), condition=~models.Q(state="resolved"), name="incident_unresolved"
            ),
            models.Index(
                fields=("handed_from",),
                condition=models.Q(handed_from__isnull=False),
                name="incident_unanswered",
            ),
            models.Index(
                fields=("snoozed_until",),
                condition=models.Q(snoozed_until__isnull=False),
                name="incident_alarms",
            ),
            models.Index(
                fields=("dedup_key",),
                condition=models.Q(merged_into__isnull=False),
                name="incident_merged_key",
            ),
            models.Index(
                fields=("group_key", "-number"),
                condition=models.Q(group_key__isnull=False),
                name="incident_group",
            ),
            models.Index(
                fields=("number",),
                condition=models.Q(remediation__isnull=False),
                name="incident_remediation",
            ),
            models.Index(
                fields=("number",), condition=models.Q(questions__isnull=False), name="incident_questions"
            ),
            models.Index(
                fields=("number",), condition=models.Q(proposals__isnull=False), name="incident_proposals"
            ),
            GinIndex(fields=("cause",), name="incident_cause"),
        )


class TimelineEntry(models.Model):
    """One line of an incident's timeline: an event, or a run of like findings counted together."""

    incident = models.ForeignKey(IncidentRow, on_delete=models.CASCADE, related_name="timeline")
    version = models.IntegerField()
    last_version = models.IntegerField()
    count = models.IntegerField()
    type = models.TextField()
    at = models.DateTimeField()
    last_at = models.DateTimeField()
    actor = models.TextField()
    trace = models.TextField(null=True)
    text = models.TextField()
    body = models.JSONField()
    position = models.CharField(max_length=36)

    class Meta:
        db_table = "incident_timeline"
        constraints = (models.UniqueConstraint(fields=("incident", "version"), name="one_entry_per_event"),)


class EvidenceItem(models.Model):
    """A table, chart or text on an incident, with the run that made it."""

    incident = models.ForeignKey(IncidentRow, on_delete=models.CASCADE, related_name="evidence")
    version = models.IntegerField()
    place = models.IntegerField()
    kind = models.CharField(max_length=8)
    title = models.TextField()
    columns = models.JSONField()
    rows = models.JSONField()
    chart = models.JSONField()
    text = models.TextField()
    at = models.DateTimeField()
    actor = models.TextField()
    analyzer = models.TextField(null=True)
    finding = models.JSONField(null=True)
    params = models.JSONField(null=True)

    class Meta:
        db_table = "incident_evidence"
        constraints = (
            models.UniqueConstraint(fields=("incident", "version", "place"), name="one_item_per_place"),
        )


class FindingPlacement(models.Model):
    """Incident that a finding opened, joined or was recorded on. A finding that waits has no row."""

    run = models.TextField()
    component = models.TextField()
    outcome = models.CharField(max_length=10)
    incident = models.ForeignKey(IncidentRow, on_delete=models.CASCADE, related_name="+")
    version = models.IntegerField()

    class Meta:
        db_table = "incident_finding"
        constraints = (
            # A finding takes effect once, however often it is delivered.
            models.UniqueConstraint(fields=("run", "component"), name="a_finding_is_placed_once"),
        )


class MemberAlert(models.Model):
    """An alert that joined an incident, by event `version`; it rests once it fires no more.

    Without a foreign key in the database: a storm would pay for the check of each row, and a rebuild drops strangers.
    """

    # Its two indexes lead to the members of an incident, and to the incidents of an alert.
    incident = models.ForeignKey(
        IncidentRow, on_delete=models.CASCADE, related_name="members", db_constraint=False, db_index=False
    )
    version = models.IntegerField()
    alert = models.UUIDField()
    resolved = models.BooleanField()
    at = models.DateTimeField()

    class Meta:
        db_table = "incident_alert"
        constraints = (
            models.UniqueConstraint(fields=("alert", "incident"), name="an_alert_joins_an_incident_once"),
        )
        indexes = (
            # A page of an incident with 100,000 of them is read without sorting them all.
            models.Index(fields=("incident", "resolved", "-at", "-id"), name="incident_alert_page"),
        )


class SuppressedAlert(models.Model):
    """A firing alert that notifies nobody, and why; once it is over (`ended_at`) the reason stays for its receipts, as
    long as they are kept. State, not rebuilt: it holds what the silences of that moment said."""

    alert = models.UUIDField(primary_key=True)
    silence = models.UUIDField()
    """The silence, edition of a maintenance window or key of inhibition that suppresses it."""
    why = models.TextField()
    at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, db_index=True)

    class Meta:
        db_table = "incident_suppressed_alert"


class PendingAlertResolution(models.Model):
    """A firing alert whose incident a person resolved, until that is said of it too: a storm has 20,000, some hundred a
    transaction. Not rebuilt, as `SuppressedAlert` is not. `position` is the place in the log of the resolution."""

    alert = models.UUIDField(primary_key=True)
    incident = models.UUIDField()
    cause = models.TextField()
    position = models.CharField(max_length=36)
    resolved_at = models.DateTimeField()

    class Meta:
        db_table = "incident_pending_alert_resolution"
        indexes = (
            models.Index(fields=("resolved_at", "incident", "alert"), name="pending_resolution_order"),
        )


class PendingAutoAssign(models.Model):
    """An incident whose route says to follow the suggested team, until that was looked at. Not rebuilt: once
    is enough.
    """

    incident = models.UUIDField(primary_key=True)
    route = models.CharField(max_length=60)

    class Meta:
        db_table = "incident_pending_auto_assign"


class AnalyzerOutcomeRow(models.Model):
    """Outcome of an analyzer on an incident as it was resolved, counted by score-cards. None while it is open."""

    incident = models.ForeignKey(IncidentRow, on_delete=models.CASCADE, related_name="analyzer_outcomes")
    version = models.IntegerField()
    analyzer = models.TextField()
    analyzer_version = models.TextField()
    outcome = models.CharField(max_length=8)
    component = models.TextField(null=True)
    score = models.FloatField(null=True)
    first = models.BooleanField()
    alone = models.BooleanField()
    lead_seconds = models.FloatField(null=True)

    class Meta:
        db_table = "incident_analyzer_outcome"
        constraints = (
            models.UniqueConstraint(fields=("incident", "analyzer"), name="one_outcome_per_analyzer"),
        )
        indexes = (models.Index(fields=("analyzer",), name="outcome_analyzer"),)


class ScheduleWindowRow(models.Model):
    """Causes blamed by the latest windows of a schedule, for the count of a weak finding."""

    schedule = models.TextField()
    start = models.DateTimeField()
    end = models.DateTimeField()
    run = models.TextField()
    causes = models.JSONField()

    class Meta:
        db_table = "incident_schedule_window"
        constraints = (
            models.UniqueConstraint(fields=("schedule", "end"), name="one_row_per_schedule_window"),
        )


class RebuildProgress(models.Model):
    """A rebuild of the read models that is not finished: how far it is, and what differed so far."""

    began_at = models.DateTimeField()
    moved_at = models.DateTimeField()
    position = models.CharField(max_length=36, blank=True)
    """Of the last `incident.opened` whose incident is done."""
    incidents = models.IntegerField(default=0)
    differed = models.JSONField(default=list)

    class Meta:
        db_table = "incident_rebuild"
