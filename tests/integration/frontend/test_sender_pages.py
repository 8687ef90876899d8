"""The pages about endpoints: one for every endpoint, with an address and a key to paste."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import get_resolver

from frontend.senders import BY_SLUG, SENDERS, Sender
from ingest.api import root_urls

OF_OTHER_FILES = {"alertmanager-alerts", "opsgenie-alerts", "remote-write"}


def test_every_endpoint_has_a_page() -> None:
    named = {name for sender in SENDERS for name in sender.views}
    assert named - OF_OTHER_FILES == {str(pattern.name) for pattern in root_urls.urlpatterns}


def test_a_page_describes_addresses_that_exist() -> None:
    known = get_resolver().reverse_dict
    assert [name for sender in SENDERS for name in sender.views if name not in known] == []


@pytest.mark.parametrize("slug", BY_SLUG)
def test_a_page_of_an_endpoint_shows_what_to_paste(log_database: str, slug: str) -> None:  # noqa: ARG001
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice"))
    response = client.get(f"/docs/integrate/{slug}")
    body = response.content.decode()
    assert response.status_code == 200
    assert "KEY" in body
    assert "dossier.example.com" not in body


def test_a_configuration_holds_the_address_and_the_key_that_are_given() -> None:
    (_, text), *_ = BY_SLUG["prometheus"].configured("http://monitor:8000", "dsr_secret")
    assert 'targets: ["monitor:8000"]' in text
    assert "scheme: http\n" in text
    assert "credentials: dsr_secret" in text


@pytest.mark.parametrize("sender", SENDERS, ids=lambda sender: sender.slug)
def test_what_is_pasted_holds_the_key_wherever_it_belongs(sender: Sender) -> None:
    assert "KEY" not in str(sender.configured("http://monitor:8000", "dsr_secret"))


def test_the_page_of_limits_tells_of_every_endpoint(log_database: str) -> None:  # noqa: ARG001
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice"))
    body = client.get("/docs/integrate/limits").content.decode()
    assert "1,000 a second" in body
    assert "64 MiB" in body
    assert [sender.title for sender in SENDERS if f">{sender.title}</a></td>" not in body] == []
