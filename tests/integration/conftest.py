"""What several tests of runs need installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from analyzers import registry
from tests.integration.runs_cases import TALLY, install_plugin


@pytest.fixture
def tally(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The analyzer `tally`, installed for one test."""
    install_plugin(tmp_path, "tally", TALLY)
    monkeypatch.syspath_prepend(tmp_path)
    registry.refresh()
    yield
    registry.refresh()
