"""Addresses of people and channels at rest: sealed in the table, moved from key to key, and lost with the key."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.exceptions import FieldError
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from pytest_django import Settings

from incidents.notifications.models import ContactMethod
from incidents.notifications.results import masked

pytestmark = pytest.mark.django_db
ADDRESS = "https://chat.example/hook/very-secret"


def kept() -> tuple[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT address, secret FROM notifications_contactmethod WHERE name = 'chat'")
        row: Any = cursor.fetchone()
    return row[0], row[1]


@pytest.fixture
def chat() -> ContactMethod:
    return ContactMethod.objects.create(name="chat", kind="webhook", address=ADDRESS, secret="s3cret")


def read() -> ContactMethod:
    return ContactMethod.objects.get(name="chat")


def with_keys(settings: Settings, new: str, *old: str) -> None:
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = new, list(old)


@pytest.mark.usefixtures("chat")
def test_an_address_and_its_secret_are_not_readable_in_the_table() -> None:
    assert all(text.startswith("sealed:") for text in kept())
    assert "secret" not in kept()[0]
    assert (read().address, read().secret) == (ADDRESS, "s3cret")


def test_what_was_kept_in_the_clear_is_read_and_sealed_when_saved(chat: ContactMethod) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE notifications_contactmethod SET address = %s WHERE id = %s", (ADDRESS, chat.pk)
        )
    assert read().address == ADDRESS
    read().save(update_fields=("address", "secret"))
    assert kept()[0].startswith("sealed:")
    assert read().address == ADDRESS


@pytest.mark.usefixtures("chat")
def test_a_new_key_opens_it_with_the_old_one_until_it_is_sealed_anew(settings: Settings) -> None:
    before = str(settings.SECRET_KEY)
    with_keys(settings, "new", before)
    call_command("reencrypt", stdout=StringIO())
    with_keys(settings, "new")
    assert (read().address, read().secret) == (ADDRESS, "s3cret")


@pytest.mark.usefixtures("chat")
def test_under_another_key_it_is_no_address_and_comes_back_with_the_right_one(settings: Settings) -> None:
    before = str(settings.SECRET_KEY)
    with_keys(settings, "another")
    lost = read()
    assert (lost.address, masked(lost)) == ("", "cannot be decrypted: enter it again")
    lost.save()
    with pytest.raises(CommandError, match="Nothing was changed"):
        call_command("reencrypt", stdout=StringIO())
    with_keys(settings, before)
    assert read().address == ADDRESS


def test_a_process_whose_key_nobody_else_has_seals_nothing(settings: Settings, chat: ContactMethod) -> None:
    settings.SECRET_KEY_IS_STORED = False
    chat.save()
    assert kept() == (ADDRESS, "s3cret")


@pytest.mark.usefixtures("chat")
def test_it_cannot_be_searched_for() -> None:
    with pytest.raises(FieldError):
        ContactMethod.objects.filter(address=ADDRESS).exists()
