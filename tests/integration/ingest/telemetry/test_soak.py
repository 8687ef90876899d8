"""Ten minutes of telemetry at ten times the field's headline rate (`make soak`)."""

import pytest

from tests.benchmarks import soak_ingest


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_the_rate_is_held_while_partitions_rotate_and_windows_are_read() -> None:
    held, behind, dropped, _ = soak_ingest.main()
    assert held["value"] >= soak_ingest.RATE * 0.99
    assert behind["value"] <= soak_ingest.BEHIND
    assert dropped["value"] >= soak_ingest.SECONDS // 60 - 4
