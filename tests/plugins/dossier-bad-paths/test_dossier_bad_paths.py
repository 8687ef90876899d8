import pytest
from dossier_bad_paths import ANALYZER

from analyzers.testing import (
    MakeCase,
    check_analyzer,
    check_quiet,
    clumped_cases,
    crossing_cases,
    recovered_cases,
    sparse_cases,
)

CASES = [cases("paths") for cases in (crossing_cases, sparse_cases, clumped_cases, recovered_cases)]


@pytest.mark.parametrize("cases", CASES)
def test_it_names_what_fails_and_nobody_else(cases: MakeCase) -> None:
    check_analyzer(ANALYZER, cases)


def test_a_healthy_region_is_quiet() -> None:
    check_quiet(ANALYZER, "deepview_healthy")
