"""The telemetry endpoint: what is accepted is stored, what is refused is not."""

from __future__ import annotations

import gzip
import io
import json
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
import zstandard
from django.db import connection, connections
from django.test import Client
from pytest_django import Settings

from ingest.api import keys
from ingest.log.read import read_stream
from ingest.queries import data_clock, regions, telemetry_receipt

pytestmark = pytest.mark.usefixtures("log_database")

NOW = datetime.now(UTC).replace(microsecond=0)
NDJSON = "application/x-ndjson"
Post = Callable[..., Any]


def failure(unit: str = "vm/1", ago: timedelta = timedelta(minutes=1), **more: object) -> dict[str, object]:
    return {"time": (NOW - ago).isoformat(), "unit": unit, **more}


def ndjson(*rows: Mapping[str, object]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def count(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        return int(cursor.fetchone()[0])


@pytest.fixture
def post() -> Post:
    """Posts a body to a kind's endpoint with a good key."""
    secret = keys.create("feeder", ["telemetry"])

    def send(kind: str, body: bytes, content_type: str = NDJSON, **headers: str) -> Any:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return Client(headers={"Authorization": f"Bearer {secret}", **names}).post(
            f"/api/v1/telemetry/{kind}", body, content_type=content_type
        )

    return send


def test_accepted_rows_are_stored_with_a_receipt(post: Post) -> None:
    answer = post("unit_failure", ndjson(failure(), failure("vm/2", symptom="disk")))
    assert answer.status_code == 202
    assert answer.json() == {"accepted": 2, "receipt": answer["Dossier-Receipt"]}
    assert count("telemetry_unit_failure") == 2


def test_rows_of_names_that_were_met_before_are_stored_under_them(post: Post) -> None:
    rows = [failure("vm/1", symptom="disk"), failure("vm/2"), failure("vm/1")]
    for _ in range(2):  # the second time they come by their numbers
        assert post("unit_failure", ndjson(*rows)).status_code == 202
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT u.name, s.name, count(*) FROM telemetry_unit_failure AS f JOIN telemetry_name AS u ON u.id = f.unit"
            " JOIN telemetry_name AS s ON s.id = f.symptom GROUP BY 1, 2 ORDER BY 1, 2"
        )
        assert cursor.fetchall() == [("vm/1", "", 2), ("vm/1", "disk", 2), ("vm/2", "", 2)]


def test_an_answer_carries_its_length_and_the_request_its_id(post: Post) -> None:
    answer = post("unit_failure", ndjson(failure()), X_Request_ID="abc")
    assert int(answer["Content-Length"]) == len(answer.content)
    assert answer["X-Request-ID"] == "abc"
    assert read_stream(f"receipt/{answer['Dossier-Receipt']}")[0].trace == "abc"


def test_the_log_says_what_was_received(post: Post) -> None:
    receipt = post("unit_failure", ndjson(failure()))["Dossier-Receipt"]
    (event,) = read_stream(f"receipt/{receipt}")
    assert (event.type, event.actor) == ("telemetry.received", "key:feeder")
    assert event.body["rows"] == 1
    assert event.body["region"] == "default"
    assert event.body["first"] == (NOW - timedelta(minutes=1)).isoformat(timespec="microseconds")[:26] + "Z"


def test_each_region_of_a_body_has_its_event(post: Post) -> None:
    receipt = post(
        "unit_failure", ndjson(failure(region="north"), failure(region="south"), failure(region="south"))
    )
    found = telemetry_receipt(receipt["Dossier-Receipt"])
    assert found is not None
    assert {one.region: one.rows for one in found.stored} == {"north": 1, "south": 2}
    assert regions() == ["north", "south"]


def test_the_data_clock_stands_at_the_newest_row(post: Post) -> None:
    post("unit_failure", ndjson(failure(), failure(ago=timedelta(minutes=9))))
    post("unit_failure", ndjson(failure(ago=timedelta(minutes=5))))
    clock = data_clock("default", ["unit_failure", "placement"])
    assert clock.latest == NOW - timedelta(minutes=1)
    assert clock.arrived_at is not None


def test_a_region_without_rows_has_no_clock() -> None:
    assert data_clock("nowhere", ["unit_failure"]).latest is None


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_compressed_bodies_are_read(post: Post, encoding: str) -> None:
    squeeze = gzip.compress if encoding == "gzip" else zstandard.ZstdCompressor().compress
    answer = post("unit_failure", squeeze(ndjson(failure())), Content_Encoding=encoding)
    assert answer.status_code == 202


def test_a_json_array_is_read(post: Post) -> None:
    assert post("unit_failure", json.dumps([failure()]).encode(), "application/json").json()["accepted"] == 1


def test_an_arrow_stream_is_read(post: Post) -> None:
    table = pa.table(
        {"time": pa.array([NOW], pa.timestamp("ms", "UTC")), "unit": pa.array(["vm/1"]).dictionary_encode()}
    )
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    answer = post("unit_failure", stream.getvalue(), "application/vnd.apache.arrow.stream")
    assert answer.json()["accepted"] == 1


def test_every_kind_has_an_endpoint(post: Post) -> None:
    time = NOW.isoformat()
    rows: dict[str, dict[str, object]] = {
        "path_outcome": {"time": time, "components": ["a/1", "b/2"], "attempts": 3, "failures": 1},
        "placement": {"time": time, "unit": "vm/1", "components": ["host/1"]},
        "topology": {"time": time, "component": "host/1", "parents": ["tor/1"], "labels": {"row": "4"}},
        "unit_failure": failure(),
    }
    for kind, row in rows.items():
        assert post(kind, ndjson(row)).status_code == 202
        assert count(f"telemetry_{kind}") == 1


def test_an_unknown_kind_is_answered_with_the_kinds_there_are(post: Post) -> None:
    answer = post("nonsense", b"")
    assert answer.status_code == 404
    assert "unit_failure" in answer.json()["kinds"]


def test_another_media_type_is_refused(post: Post) -> None:
    assert post("unit_failure", b"<rows/>", "application/xml").status_code == 415


def test_refused_rows_are_named_and_nothing_is_stored(post: Post) -> None:
    answer = post("unit_failure", ndjson(failure(), {"time": "noon", "unit": "vm/1"}))
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert [(e["row"], e["field"]) for e in answer.json()["errors"]] == [(2, "time")]
    assert count("telemetry_unit_failure") == count("log_event") == 0


def test_without_a_key_nothing_is_taken() -> None:
    answer = Client().post("/api/v1/telemetry/unit_failure", ndjson(failure()), content_type=NDJSON)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_a_key_without_the_scope_is_refused() -> None:
    secret = keys.create("alerts only", ["alerts"])
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    assert (
        client.post("/api/v1/telemetry/unit_failure", ndjson(failure()), content_type=NDJSON).status_code
        == 403
    )


def test_rows_without_a_region_go_to_that_of_the_key() -> None:
    secret = keys.create("north feeder", ["telemetry"], region="north")
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    client.post("/api/v1/telemetry/unit_failure", ndjson(failure()), content_type=NDJSON)
    assert regions() == ["north"]


def test_a_repeated_idempotency_key_gets_the_first_answer(post: Post) -> None:
    first, second = (post("unit_failure", ndjson(failure()), Idempotency_Key="once") for _ in range(2))
    assert second.status_code == 202
    assert second.json() == first.json()
    assert count("telemetry_unit_failure") == 1


def test_a_re_send_may_be_compressed_anew(post: Post) -> None:
    body = ndjson(failure())
    first, second = (
        post("unit_failure", gzip.compress(body, mtime=at), Content_Encoding="gzip", Idempotency_Key="once")
        for at in (1, 2)
    )
    assert second.json() == first.json()


def test_an_idempotency_key_is_not_for_another_body(post: Post) -> None:
    post("unit_failure", ndjson(failure()), Idempotency_Key="once")
    answer = post("unit_failure", ndjson(failure("vm/2")), Idempotency_Key="once")
    assert answer.status_code == 409
    assert "Idempotency-Key" in answer.json()["detail"]
    assert count("telemetry_unit_failure") == 1


def test_two_at_once_with_one_idempotency_key_store_once(post: Post) -> None:
    answers: list[dict[str, object]] = []
    together = threading.Barrier(4)

    def send() -> None:
        together.wait()
        answers.append(post("unit_failure", ndjson(failure()), Idempotency_Key="once").json())
        connections.close_all()

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4
    assert all(answer == answers[0] for answer in answers)
    assert count("telemetry_unit_failure") == 1


def test_bodies_with_the_same_new_names_do_not_block_each_other(post: Post) -> None:
    codes: list[int] = []

    def send(shift: int) -> None:
        rows = [failure(f"vm/{(i * 7 + shift) % 500}") for i in range(500)]
        codes.append(post("unit_failure", ndjson(*rows)).status_code)
        connections.close_all()

    threads = [threading.Thread(target=send, args=(shift,)) for shift in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [202] * 4
    assert count("telemetry_name WHERE name LIKE 'vm/%'") == 500


def test_too_large_a_body_is_refused(post: Post, settings: Settings) -> None:
    settings.TELEMETRY_MAX_BODY = 100
    assert post("unit_failure", ndjson(failure(), failure())).status_code == 413


def test_a_zip_bomb_is_refused_before_it_unfolds(post: Post, settings: Settings) -> None:
    settings.TELEMETRY_MAX_DECODED_BODY = 10_000
    bomb = gzip.compress(b"\n" * 50_000_000)
    assert post("unit_failure", bomb, Content_Encoding="gzip").status_code == 413


def test_the_kinds_document_themselves() -> None:
    kinds = {kind["kind"]: kind for kind in Client().get("/api/v1/telemetry").json()["kinds"]}
    assert set(kinds) >= {"path_outcome", "placement", "topology", "unit_failure"}
    fields = [field["name"] for field in kinds["unit_failure"]["fields"]]
    assert fields == ["time", "unit", "symptom", "region"]


def test_a_field_says_what_may_stand_in_it_and_what_is_taken_for_nothing() -> None:
    fields = {field["name"]: field for field in Client().get("/api/v1/telemetry/probe").json()["fields"]}
    assert fields["layer"]["choices"] == ["underlay", "overlay"]
    assert (fields["layer"]["default"], fields["rtt_us"]["default"]) == ("underlay", [])
    (end,) = (f for f in Client().get("/api/v1/telemetry/outage").json()["fields"] if f["name"] == "end")
    assert (end["optional"], "default" in end) == (True, False)


def test_without_its_database_the_endpoint_asks_to_try_again(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    post("unit_failure", ndjson(failure()))  # the key is remembered
    connections.close_all()
    monkeypatch.setitem(connection.settings_dict, "HOST", "/nowhere")
    monkeypatch.setattr(keys, "find", lambda _: keys.Key("feeder", frozenset({"telemetry"})))
    answer = post("unit_failure", ndjson(failure()))
    assert answer.status_code == 503
    assert answer["Retry-After"]
