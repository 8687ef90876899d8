"""All configuration as one file: exported, compared, applied whole or not at all."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError

from incidents.chat.models import ChatWorkspace
from incidents.saved_views.models import SavedView
from incidents.teams.models import Route, Team
from incidents.webhooks.models import Webhook
from ingest.queries import configured
from tests.places import ROOT

pytestmark = pytest.mark.usefixtures("log_database")


def config(*arguments: str) -> str:
    out = StringIO()
    call_command("config", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "dossier.yaml"


def test_what_is_exported_changes_nothing_when_it_is_applied(file: Path) -> None:
    config("export", str(file))
    assert "slug: storage" in file.read_text()
    assert config("apply", str(file), "--prune") == "Nothing to change.\n"


def test_a_diff_says_what_would_change_and_changes_nothing(file: Path) -> None:
    file.write_text("teams:\n- slug: storage\n  name: Block storage\n")
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("config", "diff", str(file), stdout=out)
    assert ended.value.code == 1
    assert '~ teams storage\n    name: "Storage" -> "Block storage"\n1 change to be made.' in out.getvalue()
    assert Team.objects.get(slug="storage").name == "Storage"


def test_a_file_is_applied_with_who_did_it_and_a_second_time_changes_nothing(file: Path) -> None:
    file.write_text("teams:\n- slug: storage\n  name: Block storage\n")
    assert config("apply", str(file)).endswith("1 change made.\n")
    assert config("apply", str(file)) == "Nothing to change.\n"
    (event,) = configured("team", "storage")
    assert event.actor.startswith("shell:")


def test_the_views_of_a_team_are_configuration_and_those_of_a_person_are_not(file: Path) -> None:
    alice = get_user_model().objects.create(username="alice")
    SavedView.objects.create(maker=alice, name="Mine", query="search=mine")
    file.write_text(
        "saved_views:\n- slug: storage-disks\n  name: Disks\n  team: storage\n"
        "  search: component:disk/ severity:critical\n"
    )
    assert config("apply", str(file)).endswith("1 change made.\n")
    config("export", str(file))
    assert "search: component:disk/ severity:critical" in file.read_text()
    assert "mine" not in file.read_text()
    assert config("apply", str(file), "--prune") == "Nothing to change.\n"
    file.write_text("saved_views: []\n")
    assert config("apply", str(file), "--prune").endswith("1 change made.\n")
    assert [view.name for view in SavedView.objects.filter(removed_at=None)] == ["Mine"]


ENDPOINTS = """\
webhooks:
- name: chat
  url: ${WEBHOOK_URL_CHAT}
integrations:
- name: prom
  scopes: [alerts]
  endpoints: [alertmanager]
analysis_schedules:
- name: watch
  analyzer: deepview
  region: r1
  length: 1h
  every: 5m
report_subscriptions:
- schedule: daily
  address: alice@example.com
"""


def test_endpoints_webhooks_and_schedules_are_in_the_file_without_a_secret(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(ENDPOINTS)
    with pytest.raises(
        CommandError, match=r"line 3: webhooks\[1\].url: set WEBHOOK_URL_CHAT in the environment"
    ):
        config("apply", str(file))
    monkeypatch.setenv("WEBHOOK_URL_CHAT", "https://example.com/hooks/s3cret")
    assert config("apply", str(file)).endswith("4 changes made.\n")
    monkeypatch.delenv("WEBHOOK_URL_CHAT")
    assert config("apply", str(file)) == "Nothing to change.\n"
    config("export", str(file))
    assert "s3cret" not in file.read_text()
    assert config("apply", str(file), "--prune") == "Nothing to change.\n"
    monkeypatch.setenv("WEBHOOK_URL_CHAT", "https://example.com/hooks/0ther")
    assert '-> "${WEBHOOK_URL_CHAT} (changed)"' in config("apply", str(file))
    assert Webhook.objects.get().url.endswith("0ther")


WORKSPACE = """\
chat_workspaces:
- name: acme
  token: "${CHAT_TOKEN_ACME}"
  signing_secret: "${CHAT_SIGNING_SECRET_ACME}"
  channel: C0123456789
  rooms: {storage: C0000000002}
"""
TOKEN, SECRET = "xoxb-1111-2222-abcdefgh", "0123456789abcdef0123456789abcdef"


def test_a_chat_workspace_is_in_the_file_without_a_secret(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(WORKSPACE)
    with pytest.raises(
        CommandError, match=r"chat_workspaces\[1\].token: set CHAT_TOKEN_ACME in the environment"
    ):
        config("apply", str(file))
    monkeypatch.setenv("CHAT_TOKEN_ACME", "xoxp-no-bot-token")
    monkeypatch.setenv("CHAT_SIGNING_SECRET_ACME", SECRET)
    with pytest.raises(CommandError, match="must be a bot token"):
        config("apply", str(file))
    monkeypatch.setenv("CHAT_TOKEN_ACME", TOKEN)
    assert config("apply", str(file)).endswith("1 change made.\n")
    row = ChatWorkspace.objects.get()
    assert (row.token, row.signing_secret, row.rooms) == (TOKEN, SECRET, {"storage": "C0000000002"})
    ChatWorkspace.objects.update(failures=3, error="it fails")
    for again in ("", "xoxb-other-2222-abcdefgh"):
        monkeypatch.setenv("CHAT_TOKEN_ACME", again)
        config("export", str(file))
        assert not {TOKEN, SECRET} & set(file.read_text().split())
        said = config("apply", str(file), "--prune")
        assert ('-> "${CHAT_TOKEN_ACME} (changed)"' in said) == bool(again)
        assert (said == "Nothing to change.\n") == (not again)
        assert ChatWorkspace.objects.get().failures == (0 if again else 3)
    assert ChatWorkspace.objects.get().token == "xoxb-other-2222-abcdefgh"
    (event, *_) = configured("chat_workspace", "acme")[::-1]
    assert (event.body["after"]["token"], event.body["after"]["signing_secret"]) == ("changed", "set")


def test_what_the_file_has_no_more_ends_and_is_recorded(file: Path) -> None:
    file.write_text(ENDPOINTS.replace("${WEBHOOK_URL_CHAT}", "https://example.com/"))
    config("apply", str(file))
    file.write_text("webhooks: []\nintegrations: []\nreport_subscriptions: []\n")
    assert config("apply", str(file), "--prune").endswith("3 changes made.\n")
    assert configured("report_subscription", "daily/alice@example.com")[-1].body["after"] is None
    assert configured("integration", "prom")[-1].body["after"]["revoked"] is True


def test_a_view_whose_search_cannot_be_read_is_named_with_its_line(file: Path) -> None:
    file.write_text("saved_views:\n- slug: a\n  name: A\n  team: storage\n  search: severity:hgih\n")
    with pytest.raises(CommandError, match=r"line 5: saved_views\[1\].search: .*critical"):
        config("apply", str(file))


def test_things_may_name_each_other_in_any_order(file: Path) -> None:
    file.write_text(
        "routes:\n- name: lamps-dim\n  parent: lamps\n  pattern: lamp/dim*\n  follow_suggestion: true\n"
        "- name: lamps\n  pattern: lamp/*\n  team: light\n  order: 90\n"
        "teams:\n- slug: light\n  name: Light\n"
    )
    assert config("apply", str(file)).endswith("3 changes made.\n")
    dim = Route.objects.get(name="lamps-dim")
    assert dim.parent is not None
    assert (dim.parent.name, dim.follow_suggestion) == ("lamps", True)
    config("export", str(file))
    file.write_text(file.read_text().replace("follow_suggestion: true", "follow_suggestion: false"))
    assert "follow_suggestion: true -> false" in config("apply", str(file))


def test_one_bad_value_applies_nothing_and_is_told_with_its_line(file: Path) -> None:
    file.write_text("teams:\n- slug: light\n  name: Light\n- slug: 'dark side'\n  name: Dark\n")
    with pytest.raises(CommandError, match=r"line 4: teams\[2\].slug: .*\nNothing was changed") as told:
        config("apply", str(file))
    assert told.value.returncode == 2
    assert not Team.objects.filter(slug="light").exists()


def test_what_is_missing_goes_only_when_asked_and_only_of_kinds_that_are_there(file: Path) -> None:
    config("export", str(file))
    text = file.read_text()
    file.write_text(text[: text.index("teams:")] + "routes: []\n")
    assert config("apply", str(file)) == "Nothing to change.\n"
    assert Route.objects.exists()
    assert "- routes" in config("apply", str(file), "--prune")
    assert (Route.objects.count(), Team.objects.count() > 1) == (0, True)


def test_a_team_that_routes_name_is_not_pruned(file: Path) -> None:
    file.write_text("teams:\n- slug: on-call\n  name: On-call\n")
    with pytest.raises(CommandError, match="line 1: teams: `network` is missing here and cannot be removed"):
        config("apply", str(file), "--prune")
    assert Team.objects.filter(slug="storage").exists()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"none\.yaml: cannot be read"):
        config("apply", str(tmp_path / "none.yaml"))


def test_a_policy_is_applied_and_what_is_wrong_with_it_has_its_line(file: Path) -> None:
    policy = (
        "escalation_policies:\n- slug: gold\n  name: Gold\n  team: storage\n  steps:\n"
        "  - after: 0\n    actions:\n    - team: storage\n"
    )
    file.write_text(policy)
    assert config("apply", str(file)).endswith("1 change made.\n")
    assert config("apply", str(file)) == "Nothing to change.\n"
    file.write_text(policy.replace("team: storage\n  steps", "team: storage\n  repeats: many\n  steps"))
    with pytest.raises(CommandError, match=r"line 5: .*repeats"):
        config("apply", str(file))
    file.write_text(policy.replace("- team: storage", "- team: nobody"))
    with pytest.raises(CommandError, match=r"line [2-8]: .*no such team"):
        config("apply", str(file))


def test_the_file_that_the_documentation_shows_can_be_applied(file: Path) -> None:
    get_user_model().objects.create(username="demo", is_staff=True)
    shown = (ROOT / "frontend/docs/operate/configuration-file.md").read_text()
    file.write_text(shown.partition("```yaml\n# called.yaml\n")[2].partition("```")[0])
    assert config("apply", str(file)).endswith("2 changes made.\n")
    assert config("apply", str(file)) == "Nothing to change.\n"
