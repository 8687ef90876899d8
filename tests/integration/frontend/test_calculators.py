"""Pages of what-if and their API: the address carries the inputs, and what cannot be computed says so."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from analyzers.queries import CALCULATORS

pytestmark = pytest.mark.django_db
ASIDE = {"HX-Request": "true"}


@pytest.fixture
def bob() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create(username="bob"))
    return client


def shown(client: Client, slug: str, **inputs: str) -> str:
    return client.get(reverse("what_if", args=[slug]), inputs).content.decode()


@pytest.mark.parametrize("slug", CALCULATORS)
def test_a_calculator_begins_with_an_example(bob: Client, slug: str) -> None:
    assert bob.get(reverse("what_if", args=[slug])).status_code == 200


def test_the_talks_example_is_the_first_that_is_shown(bob: Client) -> None:
    assert '<p class="shown">99.99993 %</p>' in shown(bob, "tor-availability")


def test_the_address_carries_the_inputs(bob: Client) -> None:
    page = shown(bob, "tor-availability", rebooted="10")
    assert '<p class="shown">99.993 %</p>' in page
    assert "rebooted=10&amp;soft=90" in page


def test_what_cannot_be_taken_is_named_at_its_field_and_kept_as_typed(bob: Client) -> None:
    answer = bob.get(reverse("what_if", args=["colocation"]), {"far_failures": "<many>"})
    page = answer.content.decode()
    assert answer.status_code == 400
    assert 'value="&lt;many&gt;"' in page
    assert "must be a whole number from 0 to 1,000,000,000" in page


def test_inputs_that_do_not_fit_together_say_why(bob: Client) -> None:
    page = shown(bob, "availability", days="1", outages="2", minutes="1440")
    assert "2 outages of 24 h are more than 1 day" in page


def test_an_answer_beside_the_page_is_shown_also_when_it_is_a_refusal(bob: Client) -> None:
    wrong = bob.get(reverse("what_if", args=["colocation"]), {"far_failures": "x"}, headers=ASIDE)
    assert wrong.status_code == 200


def test_there_is_no_calculator_of_another_name(bob: Client) -> None:
    assert bob.get("/reports/what-if/weather").status_code == 404


def test_the_api_computes_the_same(bob: Client) -> None:
    answer = bob.get("/api/v1/what_if/tor-availability", {"target_nines": "6"}).json()
    assert (answer["measures"]["shown"], answer["measures"]["met"]) == ("99.99993 %", False)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("tor-availability?soft=101", 400),
        ("tor-availability?softness=1", 400),
        ("tor-availability?rebooted=1000&hard_minutes=43200&soft=0", 400),
        ("weather", 404),
    ],
)
def test_the_api_refuses_what_makes_no_sense(bob: Client, path: str, status: int) -> None:
    answer = bob.get(f"/api/v1/what_if/{path}")
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/problem+json")
