"""Links to runbooks of an incident's alerts, and the value that an inbox row shows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from frontend.incident_page import AlertList, Shown
from frontend.views.inbox.figures import value_words
from incidents.domain.alert_metric import AlertMetric, alert_metric
from ingest.integrations.normalized import Alert
from ingest.queries import Alert as CurrentAlert

NOW = datetime(2026, 11, 21, tzinfo=UTC)
DISK, FANS = "https://books.example.com/disk", "https://books.example.com/fans"


def listed(*alerts: tuple[str, str, str]) -> AlertList:
    """An incident's alerts, each by its rule, the address and the text of its link."""
    found = []
    for place, (rule, href, text) in enumerate(alerts):
        link = {"href": href, "text": text}
        alert = Alert(f"{place}", "firing", f"{rule} on h{place}", group=rule, links=(link,))
        current = CurrentAlert(f"{place}", "prom", "generic", alert, "firing", False, "", NOW, NOW, 0, None)
        found.append(Shown(current, NOW))
    return AlertList(found, len(found), 0, None, None)


def test_alerts_with_the_same_runbook_have_one_link() -> None:
    assert listed(("Disk", DISK, "Runbook"), ("Disk", DISK, "Runbook")).runbooks == [(DISK, "Runbook")]


def test_two_runbooks_of_the_same_text_have_the_names_of_their_alerts() -> None:
    alerts = listed(("Disk", DISK, "Runbook"), ("Fans", FANS, "Runbook"), ("Other", DISK, "Runbook"))
    assert alerts.runbooks == [(DISK, "Runbook: Disk"), (FANS, "Runbook: Fans")]


def test_two_runbooks_of_one_rule_have_the_titles_of_their_alerts() -> None:
    alerts = listed(("Disk", DISK, "Runbook"), ("Disk", FANS, "Runbook"))
    assert alerts.runbooks == [(DISK, "Runbook: Disk on h0"), (FANS, "Runbook: Disk on h1")]


def test_runbooks_of_different_texts_keep_them_and_other_links_are_none() -> None:
    alerts = listed(
        ("Disk", DISK, "Runbook"), ("Disk", FANS, "Runbook of fans"), ("Disk", "https://x.example", "Panel")
    )
    assert alerts.runbooks == [(DISK, "Runbook"), (FANS, "Runbook of fans")]


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ({"value": "0.92333333333"}, "0.9233"),
        ({"value": "91.2%", "threshold": "90"}, "91.2%, threshold 90"),
        ({"value": "95", "expr": "max(disk_used) > 90"}, "95, threshold > 90"),
        ({"current_value": "1234567.8"}, "1,234,568"),
        ({"value": "NaN"}, "nan"),
        ({"value": "x" * 60}, "x" * 39 + "…"),
    ],
)
def test_a_value_is_short_and_stands_beside_its_threshold(annotations: dict[str, str], words: str) -> None:
    assert value_words(alert_metric({}, annotations, "", ())) == words


def test_a_threshold_that_is_an_expression_has_its_sign() -> None:
    assert value_words(AlertMetric(sign="<=", threshold=0.5, value_text="0.25")) == "0.25, threshold <= 0.5"
