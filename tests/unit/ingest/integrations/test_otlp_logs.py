"""OTLP log records: which become alerts, and which of them are the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.integrations.normalized import Alert
from ingest.integrations.otlp import logs as otlp_logs
from ingest.integrations.otlp.messages import SIGNALS
from tests.unit.ingest.integrations.otlp_cases import AT, NOW, attribute, reread


def logs(*records: dict[str, Any], scope: str = "shop.db", **resource: str) -> Any:
    request: Any = SIGNALS["logs"].request()
    told = request.resource_logs.add()
    for key, value in (resource or {"service__name": "cart", "host__name": "h1"}).items():
        attribute(told.resource.attributes, key.replace("__", "."), value)
    of_scope = told.scope_logs.add(scope={"name": scope})
    for record in records:
        made = of_scope.log_records.add(time_unix_nano=AT, severity_number=record.get("severity", 17))
        made.severity_text = record.get("severity_text", "")
        made.body.string_value = record.get("body", "no disk space left on 7")
        for key, value in record.get("attributes", {}).items():
            attribute(made.attributes, key, value)
    return request


def found(request: Any) -> tuple[Alert, ...]:
    return otlp_logs.alerts(reread("logs", request), NOW).parsed.alerts


def test_an_error_becomes_an_alert_of_its_service() -> None:
    (alert,) = found(
        logs({"attributes": {"exception.type": "IOError", "exception.stacktrace": "at a.py", "disk": 7}})
    )
    assert (alert.title, alert.severity, alert.status) == ("cart: no disk space left on 7", "error", "firing")
    assert (alert.component, alert.group) == ("service/cart", "cart/shop.db")
    assert alert.description == "no disk space left on 7\n\nIOError\n\nat a.py"
    assert alert.labels == {"disk": "7", "host.name": "h1", "logger": "shop.db", "service.name": "cart"}
    assert alert.expires_at == NOW + otlp_logs.QUIET


@pytest.mark.parametrize(
    ("record", "severity"),
    [
        ({"severity": 17}, "error"), ({"severity": 20}, "error"), ({"severity": 21}, "critical"),
        ({"severity": 0, "severity_text": "Error"}, "error"), ({"severity": 0, "severity_text": "FATAL"}, "critical"),
        ({"severity": 16}, None), ({"severity": 9}, None), ({"severity": 0}, None),
        ({"severity": 0, "severity_text": "WARN"}, None), ({"severity": 9, "severity_text": "ERROR"}, None),
    ],
)  # fmt: skip
def test_the_severity_decides_what_becomes_an_alert(record: dict[str, Any], severity: str | None) -> None:
    assert [alert.severity for alert in found(logs(record))] == ([severity] if severity else [])


XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."


def test_a_line_of_the_kernel_with_an_xid_is_an_alert_of_its_gpu() -> None:
    (alert,) = found(logs({"severity": 13, "body": XID}, {"severity": 9, "body": XID}, host__name="gpu-17"))
    assert alert.title == "Xid 79 on GPU 0000:3b:00 of gpu-17: GPU has fallen off the bus."
    assert (alert.component, alert.severity, alert.group) == ("gpu/gpu-17-0000:3b:00", "critical", "Xid 79")
    assert alert.labels == {"node": "gpu-17", "slot": "gpu-17:0000:3b:00", "xid": "79"}
    assert alert.starts_at is not None


def test_two_xids_of_one_gpu_are_two_alerts() -> None:
    other = XID.replace(" 79,", " 48,")
    assert len(found(logs({"body": XID}, {"body": other}, {"body": other}, host__name="gpu-17"))) == 2


def test_what_is_no_error_is_refused_and_counted() -> None:
    told = otlp_logs.alerts(reread("logs", logs({}, {"severity": 9}, {"severity": 5})), NOW)
    assert (len(told.parsed.alerts), told.refusals.total) == (1, 2)
    assert "Dossier keeps no logs" in told.refusals.sentence()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("timeout after 250 ms", "timeout after 17 ms", True),
        ("user 4bf92f35-77b3 not found", "user a3ce929d-0e0e not found", True),
        ("cannot reach 10.0.0.1:5432", "cannot reach 10.0.0.2:5432", True),
        ("lost deadbeefcafe", "lost cafedeadbeef", True),
        ("failed\nat line 3 of a.py", "failed\nat line 4 of b.py", True),
        ("disk full", "disk broken", False),
    ],
)
def test_numbers_do_not_tell_errors_apart(one: str, other: str, same: bool) -> None:
    first, second = (found(logs({"body": body}))[0].key for body in (one, other))
    assert (first == second) is same


def test_services_and_loggers_tell_errors_apart_and_instances_do_not() -> None:
    here = found(logs({}))[0].key
    assert found(logs({}, service__name="cart", host__name="h2"))[0].key == here
    assert found(logs({}, service__name="shop"))[0].key != here
    assert found(logs({}, scope="shop.web"))[0].key != here


def test_the_same_errors_of_one_request_are_one_alert() -> None:
    (alert,) = found(logs(*({"body": f"timeout after {ms} ms"} for ms in range(5))))
    assert alert.title == "cart: timeout after 0 ms"
    assert alert.notes == ("5 such records came in one request; the first is shown",)


def test_a_request_tells_of_a_thousand_errors_at_most() -> None:
    words = ("".join(chr(ord("g") + int(digit)) for digit in str(number)) for number in range(1_003))
    told = otlp_logs.alerts(reread("logs", logs(*({"body": word} for word in words))), NOW)
    assert (len(told.parsed.alerts), told.refusals.total) == (1_000, 3)


def test_what_is_kept_of_a_long_request_gives_the_same_alerts() -> None:
    request = logs({}, {"severity": 9, "body": "x" * 1000}, {"severity": 21, "body": "gone"})
    told = otlp_logs.alerts(reread("logs", request), NOW)
    again = otlp_logs.alerts(SIGNALS["logs"].read.FromString(told.shown), NOW)
    assert again.parsed == told.parsed
    assert len(told.shown) < 500


def test_the_component_that_a_record_names_counts() -> None:
    (alert,) = found(logs({"attributes": {"component": "gpu/h1-3"}}))
    assert alert.component == "gpu/h1-3"
    (alert,) = found(logs({}, host__name="h1"))
    assert alert.component == "host/h1"


@given(st.text(max_size=700))
def test_any_text_has_a_template_and_a_title(body: str) -> None:
    for alert in found(logs({"body": body})):
        assert alert.title
        assert len(otlp_logs.template(body)) <= otlp_logs.LONGEST_TEMPLATE
