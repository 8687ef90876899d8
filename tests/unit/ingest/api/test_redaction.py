"""Secrets as good as a password are taken out of what people and logs get to see."""

from __future__ import annotations

import pytest

from deploy.observability.logs import without_secrets
from ingest.api.redact import masked

KEY = "dsr_" + "aB3-_" * 8
MAIL = "abcdefghijklmnopqrstuvwxyz234567"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"Not Found: /integrations/alertmanager/{KEY}/", "Not Found: /integrations/alertmanager/dsr_…/"),
        (f"To: Alerts <{MAIL}@dossier.example>", "To: Alerts <…@dossier.example>"),
        (f"to=OPS+{MAIL.upper()}@dossier.example", "to=OPS+…@dossier.example"),
        (f"bounce+{MAIL}=dossier.example@relay", "bounce+…=dossier.example@relay"),
        ("GET /api/v1/on_call/feeds/s3cr3t-s3cr3t.ics", "GET /api/v1/on_call/feeds/…"),
        ("/reports/unsubscribe/WyJk:1x:y?a=b", "/reports/unsubscribe/…?a=b"),
        ("disk d7 of dsr_short on host 0123456789abcdef0123456789abcdef", None),
        ("abcdefghijklmnopqrstuvwxyz234567 is no address", None),
    ],
)
def test_secrets_are_named_and_not_told(text: str, shown: str | None) -> None:
    assert masked(text) == (text if shown is None else shown)


def test_no_line_of_a_log_has_a_key_in_it() -> None:
    line = {
        "event": f"Service Unavailable: /integrations/heartbeat/{KEY}",
        "exception": f"… {KEY} …",
        "ms": 3,
    }
    assert KEY not in str(without_secrets(None, "error", line))
