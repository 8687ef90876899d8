"""Second generators simulate whole worlds: `make check` leaves them to `make test`."""

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    """Called for the tests below this directory only."""
    item.add_marker(pytest.mark.simulated)
