"""One form of a component's name for endpoints, verdicts and incidents."""

import json

import pytest

from incidents.domain.values import InvalidValueError, check_component
from ingest.telemetry.decode.body import decode_ndjson
from ingest.telemetry.errors import InvalidRowsError
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.kinds.declare import is_component
from ingest.telemetry.windows.offline import ALWAYS, REGION

GOOD = ["tor/dc1-t12", "Rack/A", "link/a~b", "instance/ts-order.7f", "nic/ü", "a/" + "n" * 190]
BAD = ["tor", "/t1", "tor/", "tor/a b", "tor/a\u00a0b", "1/x", "a/" + "n" * 191, "k" * 64 + "/x"]


def take_in(name: str) -> None:
    row = {"time": 1, "components": [name], "attempts": 1, "failures": 0}
    decode_ndjson(KINDS["path_outcome"], json.dumps(row).encode(), REGION, ALWAYS)


@pytest.mark.parametrize("name", GOOD)
def test_what_an_endpoint_takes_a_ticket_can_name(name: str) -> None:
    take_in(name)
    assert is_component(name)
    assert check_component("component", name) == name


@pytest.mark.parametrize("name", BAD)
def test_what_a_ticket_cannot_name_no_endpoint_takes(name: str) -> None:
    assert not is_component(name)
    with pytest.raises(InvalidRowsError, match="kind/name"):
        take_in(name)
    with pytest.raises(InvalidValueError, match="kind/name"):
        check_component("component", name)
