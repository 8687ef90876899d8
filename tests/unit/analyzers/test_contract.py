"""The contract is what plugins import: light, frozen, and alone."""

import subprocess
import sys
from dataclasses import FrozenInstanceError

import pytest

from analyzers import contract
from analyzers.builtin.deepview import ANALYZER
from analyzers.contract import AsOf, Count, Input, Reduction


def test_importing_the_contract_imports_neither_django_nor_numpy() -> None:
    program = "import sys, analyzers.contract; print([m for m in ('django', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_the_contract_promises_is_there() -> None:
    assert [name for name in contract.__all__ if not hasattr(contract, name)] == []


def test_an_analyzer_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        ANALYZER.version = "2.0.0"  # type: ignore[misc]


def test_an_input_needs_the_kinds_of_its_reductions_and_of_what_they_join() -> None:
    joined = Reduction("a", "unit_failure", ("components",), {"n": Count()}, as_of=AsOf("placement", "unit"))
    assert Input("both", (joined, joined)).kinds == ("unit_failure", "placement")
