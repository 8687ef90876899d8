"""Messages of incidents in a chat."""

from __future__ import annotations

import json
from dataclasses import replace

from incidents.domain import chat, mattermost
from tests.unit.incidents.incident.cases import after, opened

URL = "https://dossier.example.com/incidents/1"


def test_a_message_states_the_probability_once() -> None:
    for verdict in ("tor/a drops packets, 97 % likely at fault.", "tor/a drops packets."):
        one = replace(after(opened()), verdict=verdict, confidence=0.97)
        for message in (chat.message(one, URL), mattermost.attachment(one, URL, ())):
            assert json.dumps(message, ensure_ascii=False).count("likely at fault") == 1
