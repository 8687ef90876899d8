"""Mails as alerts: subjects of real monitoring systems, charsets, HTML, robots, and whatever else comes by mail."""

from __future__ import annotations

import time
from email.message import EmailMessage

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.integrations import mail
from ingest.integrations.generic.apply import mapping
from ingest.integrations.normalized import LONGEST_NAME, Alert, InvalidPayloadError


def a_mail(subject: str = "Disk is full", text: str = "98 % of /var", **headers: str) -> bytes:
    told = EmailMessage()
    told["From"] = "Monitor of Alice <monitor@example.com>"
    told["Subject"] = subject
    for name, value in headers.items():
        told[name.replace("_", "-")] = value
    told.set_content(text)
    return told.as_bytes()


def alert(raw: bytes) -> Alert:
    (one,) = mail.alerts(raw, mail.DEFAULT).alerts
    return one


@pytest.mark.parametrize(
    ("problem", "recovery"),
    [
        ("[FIRING:1] DiskFull (db-1 critical)", "[RESOLVED] DiskFull (db-1 critical)"),
        (
            "** PROBLEM Service Alert: web1/HTTP is CRITICAL **",
            "** RECOVERY Service Alert: web1/HTTP is OK **",
        ),
        ("Problem: CPU of db-1 is above 90 %", "Resolved in 5m 20s: CPU of db-1 is above 90 %"),
        ('ALARM: "cpu-high" in US East (Ohio)', 'OK: "cpu-high" in US East (Ohio)'),
        ("Monitor is DOWN: shop", "Monitor is UP: shop"),
        ("Backup of db-1 failed", "Re: Backup of db-1 failed"),
    ],
)
def test_problem_and_recovery_of_a_monitoring_system_are_the_same_alert(problem: str, recovery: str) -> None:
    first, second = alert(a_mail(problem)), alert(a_mail(recovery))
    assert (first.key, first.status) == (second.key, "firing")
    assert second.status == ("firing" if recovery.startswith("Re:") else "resolved")


def test_a_word_of_status_within_a_sentence_means_nothing() -> None:
    assert alert(a_mail("Backup up to date on db-1")).status == "firing"
    assert mail.read(a_mail("The lights are ok"))["topic"] == "The lights are ok"


def test_a_severity_in_the_subject_is_the_alerts() -> None:
    assert alert(a_mail("[CRITICAL] Fan stands still")).severity == "critical"
    assert alert(a_mail("Fan stands still")).severity == "warning"


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", "windows-1252", "koi8-r"])
def test_texts_in_any_charset_are_read(charset: str) -> None:
    word = "диск" if charset == "koi8-r" else "Gehäuse"
    told = EmailMessage()
    told["Subject"] = word
    told.set_content(word, charset=charset, cte="base64")
    one = alert(told.as_bytes())
    assert (one.title, one.description) == (word, word)


def test_bytes_without_a_charset_are_read_as_utf_8_where_they_are_and_never_refused() -> None:
    raw = b"Subject: " + "Gehäuse".encode() + b"\nContent-Type: text/plain; charset=none\n\n\xff\xfe heat\n"
    one = alert(raw)
    assert one.title == "Gehäuse"
    assert "heat" in one.description


def test_of_a_mail_in_html_its_text_is_shown() -> None:
    told = EmailMessage()
    told["Subject"] = "Report"
    html = "<style>p {}</style><p>Fan&nbsp;2 <b>stands</b><br>still &amp; cold</p><script>x</script> 1 < 2"
    told.set_content(html, subtype="html")
    assert alert(told.as_bytes()).description == "Fan 2 stands\nstill & cold\n1 < 2"


def test_attachments_are_counted_and_not_opened() -> None:
    told = EmailMessage()
    told["Subject"] = "Graph"
    told.set_content("see there")
    told.add_attachment(b"\x89PNG" * 100, maintype="image", subtype="png", filename="g.png")
    fields = mail.read(told.as_bytes())
    assert fields["attachments"] == [{"name": "g.png", "type": "image/png", "bytes": 400}]
    assert fields["text"] == "see there"


@pytest.mark.parametrize(
    "headers",
    [
        {"Auto_Submitted": "auto-replied"},
        {"X_Autoreply": "yes"},
        {"Precedence": "auto_reply"},
        {"X_Dossier": "https://dossier.example.com"},
    ],
)
def test_what_robots_answer_and_what_dossier_sends_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(InvalidPayloadError):
        mail.read(a_mail(**headers))


def test_what_monitoring_systems_send_by_themselves_is_taken() -> None:
    assert alert(a_mail(Auto_Submitted="auto-generated", Precedence="bulk")).status == "firing"


def test_a_bounce_is_refused() -> None:
    raw = b'Subject: failed\nContent-Type: multipart/report; boundary="b"\n\n--b\n\nx\n--b--\n'
    with pytest.raises(InvalidPayloadError, match="report about another mail"):
        mail.read(raw)


def test_a_mail_that_went_round_in_circles_is_refused() -> None:
    with pytest.raises(InvalidPayloadError, match="circles"):
        mail.read(b"Received: from a by b\n" * 51 + a_mail())


def test_a_mapping_of_its_own_decides_about_key_and_status() -> None:
    how = mapping(
        {
            "title": "$.subject",
            "key": {"from": "$.subject", "find": r"#(\d+)"},
            "status": {"from": "$.subject", "find": "(?i)all good", "words": {"all good": "resolved"}}
            | {"default": "firing"},
        }
    )
    (fires,) = mail.alerts(a_mail("Case #12 of db-1"), how).alerts
    (over,) = mail.alerts(a_mail("Closing case #12: All good now"), how).alerts
    assert (fires.key, fires.status) == ("12", "firing")
    assert (over.key, over.status) == ("12", "resolved")


def test_parts_within_parts_without_end_do_not_end_the_endpoint() -> None:
    raw = b"Subject: deep\n"
    for depth in range(3_000):
        raw += b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (depth, depth)
    assert alert(raw).title == "deep"


def test_odd_html_takes_time_linear_in_its_length() -> None:
    began = time.perf_counter()
    for odd in ("<", "<!--", "<script>", "&#", "<a href='", "<" * 9 + ">"):
        mail.text_of_html(odd * (200_000 // len(odd)))
    assert time.perf_counter() - began < 5


PIECES = st.sampled_from(
    b"Subject: |From: |Content-Type: |multipart/mixed; boundary=b|text/html; charset=|\n\n|\n|=?utf-8?b?|?=|--b\n|"
    b"Content-Transfer-Encoding: base64\n|x-uuencode|\xff|\0|[RESOLVED]|a b|idna|unicode_escape|uu_codec|"
    b"Content-Disposition: attachment; filename*=utf-8''%ff".split(b"|")
)


@given(raw=st.lists(PIECES | st.binary(max_size=8), max_size=14).map(b"".join))
def test_any_bytes_are_an_alert_or_a_refusal(raw: bytes) -> None:
    try:
        parsed = mail.alerts(raw, mail.DEFAULT)
    except InvalidPayloadError:
        return
    for one in parsed.alerts:
        assert 1 <= len(one.key) <= LONGEST_NAME
        "".join([one.key, one.title, one.description, *one.labels.values()]).encode()
