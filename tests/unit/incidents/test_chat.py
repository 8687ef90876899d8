"""Messages of incidents in a chat."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from incidents.domain import chat, mattermost
from tests.unit.incidents.incident.cases import after, opened

URL = "https://dossier.example.com/incidents/1"


def test_a_message_states_the_probability_once() -> None:
    for verdict in ("tor/a drops packets, 97 % likely at fault.", "tor/a drops packets."):
        one = replace(after(opened()), verdict=verdict, confidence=0.97)
        for message in (chat.message(one, URL), mattermost.attachment(one, URL, ())):
            assert json.dumps(message, ensure_ascii=False).count("likely at fault") == 1


@pytest.mark.parametrize(
    ("sent", "typed"),
    [
        ("see <https://wiki.example.com/d7?a=1&amp;b=2>", "see https://wiki.example.com/d7?a=1&b=2"),
        ("the <https://wiki.example.com/d7|runbook>", "the runbook (https://wiki.example.com/d7)"),
        ("at <http://wiki.example.com|wiki.example.com>", "at http://wiki.example.com"),
        ("write to <mailto:a@example.com|a@example.com>", "write to a@example.com"),
        ("<@U2> and <@U9>, in <#C1|storage>", "@bob and @U9, in #storage"),
        ("<!here>, <!subteam^S1|@storage>", "@here, @storage"),
        ("1 &lt; 2 &amp;&amp; x &gt; &amp;lt;", "1 < 2 && x > &lt;"),
        ("&lt;@U2&gt; a <b", "<@U2> a <b"),
    ],
)
def test_a_message_of_slack_reads_as_it_was_typed(sent: str, typed: str) -> None:
    assert chat.plain_text(sent, lambda one: {"U2": "bob"}.get(one, one)) == typed
