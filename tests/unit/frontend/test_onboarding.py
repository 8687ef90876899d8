"""The first steps, the pages of settings, and a sample for an analyzer."""

from __future__ import annotations

import pytest

from analyzers.examples import judge_sample
from frontend.onboarding import NAMES, slug_of, steps
from frontend.settings_map import groups_for, section_of


def opened(done: set[str], skipped: set[str], asked: str = "") -> list[str]:
    return [one.name for one in steps(done, skipped, asked) if one.open]


def test_the_first_step_that_is_left_is_unfolded() -> None:
    assert opened({"team"}, {"sender"}) == ["sample"]


def test_a_step_that_is_asked_for_is_unfolded_instead_whatever_its_state() -> None:
    assert opened({"team"}, set(), "team") == ["team"]


def test_nothing_is_unfolded_when_all_is_done_or_left() -> None:
    assert opened({"team", "reach", "call"}, {"sender", "sample"}) == []


def test_what_was_skipped_and_then_done_is_done() -> None:
    [step] = [one for one in steps({"sender"}, {"sender"}) if one.name == "sender"]
    assert (step.done, step.skipped) == (True, False)


def test_a_step_that_there_is_none_of_is_as_if_nothing_was_asked() -> None:
    assert opened(set(), set(), "mars") == [NAMES[0]]


@pytest.mark.parametrize(
    ("name", "taken", "slug"),
    [
        ("GPU fleet", (), "gpu-fleet"),
        ("  Größe / 7 ", (), "gr-e-7"),
        ("日本", (), "team"),
        ("disk", ("disk", "disk-2"), "disk-3"),
        ("x" * 200, (), "x" * 50),
    ],
    ids=str,
)
def test_a_short_name_is_made_of_a_name(name: str, taken: tuple[str, ...], slug: str) -> None:
    assert slug_of(name, taken) == slug


def test_who_is_not_staff_is_offered_no_page_for_staff_and_no_empty_group() -> None:
    groups = groups_for(staff=False)
    assert not any(section.staff for group in groups for section in group.sections)
    assert all(group.sections for group in groups)


@pytest.mark.parametrize(
    ("address", "section"),
    [("routes", "routes"), ("integration_mapping", "integrations"), ("inbox", ""), ("", "")],
)
def test_a_page_belongs_to_the_section_that_leads_to_it(address: str, section: str) -> None:
    assert section_of(address) == section


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_a_sample_is_judged_by_the_analyzer_which_names_what_was_planted(seed: int) -> None:
    sample = judge_sample(seed)
    assert sample.named
    assert sample.verdict["analyzer"] == "deepview"


def test_the_same_seed_plants_and_finds_the_same() -> None:
    one, other = judge_sample(3), judge_sample(3)
    assert (one.planted, one.verdict["suspects"]) == (other.planted, other.verdict["suspects"])
