"""Members of teams, channels and silences in the file of configuration."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from pathlib import Path
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone

from incidents.domain.notifications.delivery import KINDS
from incidents.incident.models import SuppressedAlert
from incidents.notifications.models import ContactMethod, Preferences
from incidents.suppression.models import SilenceRecurrence
from incidents.teams.models import Membership, Silence, Team
from ingest.api import keys
from ingest.queries import configured

NOW = timezone.now()
ROOM = "https://chat.example/hooks/verysecret"
CHANNEL = "channels:\n- name: ops-room\n  kind: webhook\n  address: ${CHANNEL_ADDRESS_OPS_ROOM}\n"
ID = "0a4f9a4e-0d5c-4f0e-9c36-5a1f6a7a3b11"


def config(*arguments: str) -> str:
    out = StringIO()
    call_command("config", *arguments, stdout=out)
    return out.getvalue()


def differences(file: Path) -> str:
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("config", "diff", str(file), stdout=out)
    return out.getvalue()


def day(days: int) -> str:
    return f"{NOW + timedelta(days=days):%Y-%m-%dT00:00:00Z}"


def silence(matcher: str = 'disk=\\"d1\\"', end: str = "", more: str = "") -> str:
    return (
        f'silences:\n- id: {ID}\n  matchers: ["{matcher}"]\n  starts_at: {day(-3)}\n  ends_at: {end or day(3)}\n'
        f"  comment: Being replaced\n  created_by: alice\n{more}"
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "dossier.yaml"


@pytest.fixture(autouse=True)
def people(db: None) -> None:  # noqa: ARG001
    for name in ("alice", "bob"):
        get_user_model().objects.create(username=name, email=f"{name}@example.org")


def test_an_empty_installation_becomes_what_was_exported(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHANNEL_ADDRESS_OPS_ROOM", ROOM)
    monkeypatch.setenv("CHANNEL_SECRET_OPS_ROOM", "shared")
    again = (
        f"  recurrence: {{rule: FREQ=DAILY, time_zone: Europe/Berlin, until: {day(30)}}}\n"
        f"- id: {uuid4()}\n  matchers: [env=test]\n  starts_at: {day(2)}\n  ends_at: {day(4)}\n  comment: Later\n"
    )
    file.write_text(
        "members:\n- {team: storage, user: alice, role: manager}\n- {team: storage, user: bob, role: viewer}\n"
        + f"{CHANNEL}  secret: ${{CHANNEL_SECRET_OPS_ROOM}}\n  most: 5\n"
        + silence(end=day(-2), more=again)
    )
    assert config("apply", str(file)).endswith("5 changes made.\n")
    exported = config("export")
    for model in (Membership, ContactMethod, Silence):
        model.objects.all().delete()
    file.write_text(exported)
    assert config("apply", str(file)).endswith("5 changes made.\n")
    assert config("export") == exported
    assert config("apply", str(file), "--prune") == "Nothing to change.\n"
    assert (ContactMethod.objects.get().address, ContactMethod.objects.get().secret) == (ROOM, "shared")


def test_people_stand_in_one_order_whoever_was_changed_last() -> None:
    for name in ("charlie", "bob", "alice"):
        get_user_model().objects.get_or_create(username=name)[0].save()
    told = [line for line in config("export").splitlines() if line.startswith("- username:")]
    assert told == [f"- username: {name}" for name in ("alice", "bob", "charlie")]


def test_how_people_are_reached_becomes_what_was_exported(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METHOD_ADDRESS_ALICE__PHONE", ROOM)
    file.write_text(
        "notification_rules:\n- user: alice\n  rules: [{method: phone, delay: 60, severities: [critical]}]\n"
        "  quiet_hours: {zone: Europe/Berlin, start: '22:00', end: '07:00'}\n"
        "contact_methods:\n- user: alice\n  name: phone\n  kind: webhook\n  address: "
        "${METHOD_ADDRESS_ALICE__PHONE}\n"
    )
    assert config("apply", str(file)).endswith("2 changes made.\n")
    exported = config("export")
    assert "verysecret" not in exported
    Preferences.objects.all().delete()
    ContactMethod.objects.all().delete()
    file.write_text(exported)
    assert config("apply", str(file)).endswith("2 changes made.\n")
    assert config("export") == exported
    assert config("apply", str(file), "--prune") == "Nothing to change.\n"
    assert ContactMethod.objects.get().address == ROOM


def test_methods_and_the_rules_that_use_them_are_pruned_together_and_once(file: Path) -> None:
    alice = get_user_model().objects.get(username="alice")
    ContactMethod.objects.create(user=alice, name="phone", kind="webhook", address=ROOM)
    Preferences.objects.create(user=alice, rules=[{"method": "phone"}])
    file.write_text("notification_rules: []\ncontact_methods: []\n")
    assert config("apply", str(file), "--prune").endswith("2 changes made.\n")
    assert config("apply", str(file), "--prune") == "Nothing to change.\n"
    assert [event.body["after"] for event in configured("contact_method", "alice/phone")] == [None]


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_new_contact_method_a_preview_misses_only_the_secret(kind: str, file: Path) -> None:
    file.write_text(
        f"contact_methods:\n- user: alice\n  name: phone\n  kind: {kind}\n  address: ${{PHONE}}\n"
    )
    told = differences(file)
    assert "Set before `config apply`: PHONE." in told
    assert "must be" not in told


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "notification_rules:\n- user: alice\n  rules:\n  - method: pigeon\n",
            r"line 4: notification_rules\[1\].rules\[1\].method: no contact method pigeon",
        ),
        ("notification_rules:\n- user: eve\n", r"line 2: notification_rules\[1\].user: no user eve"),
        (
            "notification_rules:\n- user: alice\n  bundle_seconds: -1\n",
            r"line 3: notification_rules\[1\].bundle_seconds: must be a whole number",
        ),
        (
            "notification_rules:\n- user: alice\n  quiet_hours: {zone: Mars/Base, start: a, end: b}\n",
            r"line 3: notification_rules\[1\].quiet_hours.zone: must be an IANA time zone",
        ),
        (
            "contact_methods:\n- user: alice\n  name: phone\n  kind: webhook\n  address: ${PHONE}\n",
            r"line 5: contact_methods\[1\].address: set PHONE in",
        ),
    ],
)
def test_what_is_wrong_with_how_somebody_is_reached_is_told_with_its_line(
    file: Path, text: str, fault: str
) -> None:
    file.write_text(text)
    with pytest.raises(CommandError, match=fault):
        config("apply", str(file))
    assert not Preferences.objects.exists()


def test_what_is_reported_when_is_in_the_file(file: Path) -> None:
    file.write_text(
        "report_schedules:\n- name: storage-weekly\n  title: Storage, weekly\n  cadence: weekly\n"
        "  team: storage\n  zone: Europe/Berlin\n"
    )
    assert config("apply", str(file)).startswith("+ report_schedules storage-weekly")
    file.write_text(config("export"))
    assert config("apply", str(file), "--prune") == "Nothing to change.\n"


def test_members_come_change_and_go_on_the_record(file: Path) -> None:
    file.write_text("members:\n- team: storage\n  user: alice\n  role: viewer\n")
    assert config("apply", str(file)).startswith("+ members storage/alice")
    file.write_text(file.read_text().replace("viewer", "admin"))
    assert '~ members storage/alice\n    role: "viewer" -> "admin"' in differences(file)
    config("apply", str(file))
    file.write_text("members: []\n")
    assert config("apply", str(file)) == "Nothing to change.\n"
    assert config("apply", str(file), "--prune").startswith("- members storage/alice")
    told = configured("member", "storage/alice")
    assert [event.body["after"] and event.body["after"]["role"] for event in told] == [
        "viewer",
        "admin",
        None,
    ]


@pytest.mark.parametrize(
    ("members", "fault"),
    [
        ("- team: storage\n  user: eve\n  role: viewer\n", r"line 3: members\[1\].user: no user eve"),
        ("- team: nobody\n  user: bob\n  role: viewer\n", r"line 2: members\[1\].team: no team"),
        ("- team: storage\n  user: bob\n  role: boss\n", r"line 4: members\[1\].role: "),
        ("- team: storage\n  user: bob\n", r"line 2: members\[1\].role: "),
        ('- team: storage\n  user: "b\\0b"\n  role: viewer\n', r"line 3: members\[1\].user: is required"),
        (
            "- team: storage\n  user: bob\n  role: viewer\n- team: storage\n  user: bob\n  role: admin\n",
            r"line 6: members\[2\].user: `storage/bob` is a duplicate",
        ),
    ],
)
def test_what_is_wrong_with_a_member_is_told_with_its_line(file: Path, members: str, fault: str) -> None:
    file.write_text(f"members:\n{members}")
    with pytest.raises(CommandError, match=fault):
        config("apply", str(file))
    assert not Membership.objects.exists()


def test_whoever_has_a_shell_configures_also_where_people_have_roles(file: Path) -> None:
    Membership.objects.create(
        team=Team.objects.get(slug="storage"), user=get_user_model().objects.get(username="alice")
    )
    file.write_text("teams:\n- slug: storage\n  name: Block storage\n")
    assert config("apply", str(file)).endswith("1 change made.\n")


def test_people_are_not_pruned(file: Path) -> None:
    file.write_text("users: []\n")
    with pytest.raises(CommandError, match=r"`alice` is missing here and cannot be removed: .*deactivate"):
        config("apply", str(file), "--prune")


def test_the_address_of_a_channel_is_in_no_file_and_no_diff(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(CHANNEL.replace("${CHANNEL_ADDRESS_OPS_ROOM}", ROOM))
    assert "verysecret" not in differences(file) + config("apply", str(file)) + config("export")
    assert "address: ${CHANNEL_ADDRESS_OPS_ROOM}\n" in config("export")
    file.write_text(CHANNEL)
    monkeypatch.setenv("CHANNEL_ADDRESS_OPS_ROOM", "https://chat.example/hooks/another")
    assert 'OPS_ROOM}" -> "${CHANNEL_ADDRESS_OPS_ROOM} (changed)"' in config("apply", str(file))
    assert config("apply", str(file)) == "Nothing to change.\n"
    assert configured("channel", "ops-room")[-1].body["after"]["address"] == "https://chat.example… (changed)"


def test_a_channel_whose_variable_is_not_set_keeps_its_address_and_a_new_one_is_refused(file: Path) -> None:
    file.write_text(CHANNEL)
    with pytest.raises(CommandError, match=r"line 4: channels\[1\].address: set CHANNEL_ADDRESS_OPS_ROOM in"):
        config("apply", str(file))
    ContactMethod.objects.create(name="ops-room", kind="webhook", address=ROOM)
    assert config("apply", str(file)) == "Nothing to change.\n"
    file.write_text(f"{CHANNEL}  most: 3\n")
    assert "most: null -> 3" in config("apply", str(file))
    assert ContactMethod.objects.get().address == ROOM


def test_a_policy_and_the_channel_that_it_calls_come_in_one_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHANNEL_ADDRESS_OPS_ROOM", ROOM)
    file.write_text(
        "escalation_policies:\n- slug: gold\n  name: Gold\n  team: storage\n  steps:\n"
        f"  - {{after: 0, actions: [{{channel: ops-room}}]}}\n{CHANNEL}"
    )
    assert config("apply", str(file)).endswith("2 changes made.\n")


@pytest.mark.parametrize(
    ("was", "now", "fault"),
    [
        ("kind: webhook", "kind: pigeon", r"line 3: channels\[1\].kind: "),
        ("${CHANNEL_ADDRESS_OPS_ROOM}", "no-address-at-all", r"line 4: channels\[1\].address: (?!.*at-all)"),
        ("ops-room\n", "ops room\n", r"line 2: channels\[1\].name: must be letters"),
        ("kind: webhook", "most: many\n  kind: webhook", r"line 3: channels\[1\].most: "),
        ("kind: webhook", "most: 0\n  kind: webhook", r"line 3: channels\[1\].most: must be a whole number"),
        ("kind: webhook", "colour: red\n  kind: webhook", r"line 3: channels\[1\].colour: is not a field"),
    ],
)
def test_what_is_wrong_with_a_channel_is_told_with_its_line(
    file: Path, monkeypatch: pytest.MonkeyPatch, was: str, now: str, fault: str
) -> None:
    monkeypatch.setenv("CHANNEL_ADDRESS_OPS_ROOM", ROOM)
    file.write_text(CHANNEL.replace(was, now))
    with pytest.raises(CommandError, match=fault):
        config("apply", str(file))
    assert not ContactMethod.objects.exists()


def test_a_silence_is_known_by_its_id_and_its_change_is_on_the_record(file: Path) -> None:
    file.write_text(silence())
    assert config("apply", str(file)).startswith(f"+ silences {ID}\n")
    assert config("apply", str(file)) == "Nothing to change.\n"
    file.write_text(silence().replace("Being replaced", "Broken"))
    assert 'comment: "Being replaced" -> "Broken"' in differences(file)
    config("apply", str(file))
    assert [event.body["after"]["comment"] for event in configured("silence", ID)] == [
        "Being replaced",
        "Broken",
    ]


def test_a_silence_of_any_length_is_exported_and_applied_with_its_annotations(file: Path) -> None:
    key = keys.create("amtool", ["incidents:write"])
    told = {
        "matchers": [{"name": "disk", "value": "d1", "isRegex": False}],
        "startsAt": day(-3),
        "endsAt": "2300-01-01T00:00:00Z",
        "createdBy": "alice",
        "comment": "moved",
        "annotations": {"ticket": "OPS-7"},
    }
    headers = {"Authorization": f"Bearer {key}"}
    assert Client().post("/api/v2/silences", told, "application/json", headers=headers).status_code == 200
    exported = config("export")
    Silence.objects.all().delete()
    file.write_text(exported[exported.index("silences:") :].split("\n\n")[0])
    config("apply", str(file))
    row = Silence.objects.get()
    assert (row.ends_at.year, row.annotations) == (2300, {"ticket": "OPS-7"})
    assert config("apply", str(file)) == "Nothing to change.\n"


def test_a_change_in_a_file_leaves_the_annotations_of_a_silence_as_they_are(file: Path) -> None:
    file.write_text(silence())
    config("apply", str(file))
    Silence.objects.update(annotations={"ticket": "OPS-7"})
    file.write_text(silence().replace("Being replaced", "Broken"))
    config("apply", str(file))
    row = Silence.objects.get()
    assert (row.comment, row.annotations) == ("Broken", {"ticket": "OPS-7"})


def test_what_other_matchers_no_longer_hold_is_looked_at_again(file: Path) -> None:
    file.write_text(silence())
    config("apply", str(file))
    SuppressedAlert.objects.create(alert=uuid4(), silence=ID, why="", at=timezone.now())
    file.write_text(silence('disk=\\"d2\\"'))
    config("apply", str(file))
    assert str(SuppressedAlert.objects.get().silence) != ID


def test_a_silence_that_is_over_is_neither_made_nor_kept_nor_exported(file: Path) -> None:
    file.write_text(silence(end=day(-1)))
    assert config("apply", str(file)) == "Nothing to change.\n"
    assert not Silence.objects.exists()
    file.write_text(silence())
    config("apply", str(file))
    file.write_text("silences: []\n")
    assert config("apply", str(file), "--prune") == f"- silences {ID}\n1 change made.\n"
    assert Silence.objects.get().ends_at <= timezone.now()
    assert "silences: []\n" in config("export")


def test_a_silence_that_recurs_no_more_holds_once(file: Path) -> None:
    file.write_text(
        silence(end=day(-2), more=f"  recurrence: {{rule: 'FREQ=WEEKLY;BYDAY=SU', until: {day(60)}}}\n")
    )
    config("apply", str(file))
    assert SilenceRecurrence.objects.get().time_zone == "UTC"
    file.write_text(silence())
    assert "recurrence: {" in config("apply", str(file))
    assert not SilenceRecurrence.objects.exists()
    assert config("apply", str(file)) == "Nothing to change.\n"


@pytest.mark.parametrize(
    ("was", "now", "fault"),
    [
        (ID, "disk", r"line 2: silences\[1\].id: must be a UUID"),
        (ID, ID.upper(), rf"line 2: silences\[1\].id: must be written as {ID}"),
        ('["disk=\\"d1\\""]', "[]", r"line 3: silences\[1\].matchers: "),
        ('["disk=\\"d1\\""]', "['disk=~.*']", r"line 3: silences\[1\].matchers: at least one"),
        ("starts_at: 20", "starts_at: 10", r"line 4: silences\[1\].starts_at: must be between"),
        (day(3), day(-4), r"line 5: silences\[1\].ends_at: must be later"),
        ("Being replaced", "''", r"line 6: silences\[1\].comment: "),
        ("created_by: alice", "recurrence: {rule: SOON}", r"line 7: silences\[1\].recurrence.until"),
        (
            "created_by: alice",
            "recurrence: {rule: SOON, until: '2030-01-01T00:00:00Z'}",
            r"line 7: silences\[1\].recurrence.rule: must be an RFC 5545 rule",
        ),
        ("created_by: alice", "recurrence: weekly", r"line 7: silences\[1\].recurrence: "),
    ],
)
def test_what_is_wrong_with_a_silence_is_told_with_its_line(
    file: Path, was: str, now: str, fault: str
) -> None:
    file.write_text(silence().replace(was, now))
    with pytest.raises(CommandError, match=fault):
        config("apply", str(file))
    assert not Silence.objects.exists()
