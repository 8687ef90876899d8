"""Shapes of schedules, overrides, swaps and calendars: what is read and written, and what is checked of it."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth import get_user_model
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as s

from incidents.api.incident.serializers import Strict
from incidents.domain.oncall.layers import DAYS, read_layers
from incidents.domain.values import InvalidValueError, check_line, read_zone
from incidents.oncall import calendars
from incidents.oncall.models import Calendar, OnCallSchedule
from incidents.oncall.queries import active
from incidents.teams.models import Team


class TimesShape(s.Serializer[Any]):
    days = s.ListField(child=s.ChoiceField(choices=DAYS), min_length=1)
    to = s.CharField(help_text="end, such as 17:00; if not later than `from`, on the next day")

    def get_fields(self) -> dict[str, s.Field[Any, Any, Any, Any]]:
        return {**super().get_fields(), "from": s.CharField(help_text="start, such as 09:00")}


class LayerShape(s.Serializer[Any]):
    """People who take turns. All times are local to the time zone of the layer."""

    name = s.CharField(max_length=60)
    people = s.ListField(
        child=s.CharField(max_length=150),
        min_length=1,
        max_length=100,
        help_text="people, in the order of their turns",
    )
    start = s.CharField(help_text="start of the first turn, such as 2026-01-05T09:00, without an offset")
    end = s.CharField(required=False, allow_null=True, help_text="end of the last turn; null: no end")
    turn = s.CharField(help_text="length of a turn, such as 12h, 1d or 1w")
    times = TimesShape(many=True, required=False, help_text="times at which the layer applies; empty: always")
    time_zone = s.CharField(
        required=False, allow_null=True, help_text="IANA time zone; null: that of the schedule"
    )
    holidays = s.ChoiceField(
        choices=["include", "only", "exclude"],
        required=False,
        help_text="on holidays of the schedule: include: applies too; only: applies only then; exclude:"
        " does not apply",
    )


@extend_schema_field(LayerShape(many=True))
class LayersField(s.JSONField):
    pass


class PersonField(s.SlugRelatedField[Any]):
    def __init__(self, **more: Any) -> None:
        users = get_user_model()
        super().__init__(
            slug_field=users.USERNAME_FIELD, queryset=users.objects.filter(is_active=True), **more
        )


class OnCallScheduleSerializer(Strict, s.ModelSerializer[OnCallSchedule]):
    team = s.SlugRelatedField(
        slug_field="slug",
        queryset=Team.objects.all(),
        allow_null=True,
        required=False,
        help_text="slug of the team; null: no team",
    )
    layers = LayersField(help_text="later layers override earlier ones")
    holidays = s.SlugRelatedField(
        slug_field="slug",
        queryset=Calendar.objects.filter(person=None),
        many=True,
        required=False,
        help_text="calendars of public holidays",
    )

    class Meta:
        model = OnCallSchedule
        fields = ("slug", "name", "team", "time_zone", "layers", "holidays")
        extra_kwargs: ClassVar[dict[str, Any]] = {
            "time_zone": {"help_text": "IANA time zone, such as Europe/Berlin; default: UTC"}
        }

    def validate_slug(self, slug: str) -> str:
        if self.instance is not None and slug != self.instance.slug:
            raise s.ValidationError("cannot change: escalation policies refer to it; create a new schedule")
        return slug

    def validate_name(self, name: str) -> str:
        return _checked("name", name, 120)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The layers in the zone, and that those who are put into them may sign in."""
        before = self.instance
        try:
            zone = read_zone("time_zone", attrs.get("time_zone", before.time_zone if before else "UTC"))
            layers = read_layers(attrs["layers"] if "layers" in attrs or not before else before.layers, zone)
        except InvalidValueError as invalid:
            raise s.ValidationError({invalid.field: [invalid.reason]}) from None
        # Those who were there before and have left since are no reason to refuse a change: they are warned about.
        stored = {person for layer in (before.layers if before else ()) for person in layer["people"]}
        people = {person for layer in layers for person in layer.people} - stored
        if missing := sorted(people - active(people)):
            raise s.ValidationError({"layers": [f"no active user {missing[0]!r}"]})
        return attrs


class SpanShape(s.Serializer[Any]):
    start = s.DateTimeField()
    end = s.DateTimeField()


class OnCallStatusShape(s.Serializer[Any]):
    """Current state, with warnings in `gaps` and `gone`."""

    person = s.CharField(allow_null=True, help_text="person on call; null: no one")
    until = s.DateTimeField(
        allow_null=True, help_text="time of the next hand-over; null: none within 400 days"
    )
    then = s.CharField(allow_null=True, help_text="person on call from then on; null: no one")
    gaps = SpanShape(many=True, help_text="uncovered times in the next 14 days")
    gone = s.ListField(
        child=s.CharField(), help_text="people in layers whose accounts are inactive; they are skipped"
    )


class OnCallScheduleShape(OnCallScheduleSerializer):
    """A schedule with its current state."""

    status = OnCallStatusShape(read_only=True)

    class Meta(OnCallScheduleSerializer.Meta):
        fields = (*OnCallScheduleSerializer.Meta.fields, "status")  # type: ignore[assignment]


class CalendarSerializer(Strict, s.ModelSerializer[Calendar]):
    person = PersonField(
        allow_null=True, required=False, help_text="person who is away on these dates; null: public holidays"
    )
    text = s.CharField(
        max_length=calendars.MOST_TEXT, trim_whitespace=False, help_text="iCalendar file (.ics)"
    )
    entries = s.SerializerMethodField(help_text="number of entries, from a month ago to two years ahead")

    class Meta:
        model = Calendar
        fields = ("slug", "name", "person", "text", "entries")

    def get_entries(self, row: Calendar) -> int:
        return len(row.spans)

    def validate_name(self, name: str) -> str:
        return _checked("name", name, 120)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        before = self.instance
        if before is not None and attrs.get("person") and before.schedules.exists():
            raise s.ValidationError(
                {"person": ["schedules use it for public holidays; remove it there first"]}
            )
        if "text" in attrs and (before is None or before.text != attrs["text"]):
            now = timezone.now()
            try:
                attrs |= {"spans": calendars.expand(attrs["text"], now), "read_until": now + calendars.AHEAD}
            except InvalidValueError as invalid:
                raise s.ValidationError({invalid.field: [invalid.reason]}) from None
        return attrs


class OverrideShape(s.Serializer[Any]):
    id = s.UUIDField()
    person = s.CharField()
    starts_at = s.DateTimeField()
    ends_at = s.DateTimeField()
    reason = s.CharField()
    swap = s.UUIDField(allow_null=True, help_text="id of the swap that it is part of; null: none")
    made_by = s.CharField()


class OverrideListShape(s.Serializer[Any]):
    results = OverrideShape(many=True)


class NewOverrideShape(s.Serializer[Any]):
    person = s.CharField(
        required=False, help_text="person on call during the override; default: the signed-in user"
    )
    starts_at = s.DateTimeField(required=False, help_text="default: now; not in the past")
    ends_at = s.DateTimeField()
    reason = s.CharField(max_length=500)


class StretchShape(s.Serializer[Any]):
    person = s.CharField(help_text="person on call for the whole time, who hands it over")
    starts_at = s.DateTimeField(required=False)
    ends_at = s.DateTimeField()


class NewSwapShape(s.Serializer[Any]):
    first = StretchShape(help_text="time that the second person takes over")
    second = StretchShape(help_text="time that the first person takes over")
    reason = s.CharField(max_length=500)


class SwapShape(s.Serializer[Any]):
    id = s.UUIDField()
    overrides = OverrideShape(many=True)


class ShiftShape(s.Serializer[Any]):
    start = s.DateTimeField()
    end = s.DateTimeField()
    person = s.CharField()
    layer = s.CharField(allow_null=True, help_text="layer that the shift comes from; null: an override")
    override = s.UUIDField(allow_null=True)


class ShiftsShape(s.Serializer[Any]):
    schedule = s.CharField()
    start = s.DateTimeField()
    end = s.DateTimeField()
    shifts = ShiftShape(many=True)
    gaps = SpanShape(many=True, help_text="uncovered times")
    hours = s.DictField(child=s.FloatField(), help_text="hours on call by person")


class OnCallShape(s.Serializer[Any]):
    schedule = s.CharField()
    name = s.CharField()
    at = s.DateTimeField()
    people = s.ListField(child=s.CharField(), help_text="user names; empty: no one on call")


class OnCallListShape(s.Serializer[Any]):
    results = OnCallShape(many=True)


class NewFeedShape(s.Serializer[Any]):
    mine = s.BooleanField(required=False, help_text="true: only your shifts")


class FeedShape(s.Serializer[Any]):
    id = s.UUIDField()
    mine = s.BooleanField()
    url = s.CharField(help_text="secret address; shown only once")


class KnownFeedShape(s.Serializer[Any]):
    id = s.UUIDField()
    mine = s.BooleanField()
    made_at = s.DateTimeField()


class FeedListShape(s.Serializer[Any]):
    results = KnownFeedShape(many=True)


def _checked(field: str, text: str, limit: int) -> str:
    try:
        return check_line(field, text, limit)
    except InvalidValueError as invalid:
        raise s.ValidationError(invalid.reason) from None
