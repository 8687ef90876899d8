"""Value, threshold and query of an alert, as Prometheus, Alertmanager and Grafana deliver them."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from incidents.domain.alert_metric import alert_metric, compared


def graph(expression: str) -> list[dict[str, str]]:
    address = f"http://prometheus:9090/graph?{urlencode({'g0.expr': expression, 'g0.tab': '1'})}"
    return [{"href": "https://wiki.example.com/run", "text": "Runbook"}, {"href": address, "text": "Query"}]


@pytest.mark.parametrize(
    ("query", "plain", "sign", "threshold"),
    [
        ("up == 0", "up", "==", 0.0),
        ('rate(x{code=~"5.."}[5m]) > 0.05', 'rate(x{code=~"5.."}[5m])', ">", 0.05),
        ("(a / b >= bool 1e3)", "a / b", ">=", 1000.0),
        ("sum(a > 1)", "sum(a > 1)", "", None),
        ("a > 1 and b > 2", "a > 1 and b > 2", "", None),
        ("(a > 1) and (b > 2)", "(a > 1) and (b > 2)", "", None),
        ("a > b", "a > b", "", None),
        ("absent(up)", "absent(up)", "", None),
        ('x{l="a)b"} < -3', 'x{l="a)b"}', "<", -3.0),
        ("(unclosed > 3", "(unclosed > 3", "", None),
        ("", "", "", None),
    ],
)
def test_the_threshold_is_the_number_that_the_whole_query_is_compared_with(
    query: str, plain: str, sign: str, threshold: float | None
) -> None:
    assert compared(query) == (plain, sign, threshold)


def test_an_alert_of_prometheus_has_its_query_in_the_link() -> None:
    found = alert_metric({}, {"value": "91.2%"}, "", graph("disk_used > 90"))
    assert (found.query, found.plain, found.sign, found.threshold) == ("disk_used > 90", "disk_used", ">", 90)
    assert (found.value, found.value_text) == (91.2, "91.2%")
    assert found.link.startswith("http://prometheus:9090/graph?")


def test_annotations_come_before_the_query() -> None:
    said = {"Threshold": "80", "expr": "other > 1"}
    assert alert_metric({}, said, "", graph("x > 90")).threshold == 80
    assert alert_metric({}, said, "", []).plain == "other"


@pytest.mark.parametrize(
    "description",
    ["Disks fill.\nValues: B = 12.5, C = 1", "[ var='B' labels={instance=a} value=12.5 ]"],
)
def test_grafana_says_the_value_in_the_description(description: str) -> None:
    links = [{"href": "https://grafana.example.com/alerting/1", "text": "Rule in Grafana"}]
    found = alert_metric({}, {}, description, links)
    assert (found.value, found.link) == (12.5, "https://grafana.example.com/alerting/1")


def test_an_alert_without_any_of_these_says_nothing() -> None:
    links = [{"href": "http://[bad", "text": "x"}]
    assert not alert_metric({"alertname": "Test"}, {}, "Something is wrong.", links).known
