"""Flight-recorder dumps, lines of the NCCL Inspector and answers of NCCL RAS as rows of `collective`."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from ingest.integrations import flight_recorder, nccl
from ingest.integrations.flight_recorder import InvalidDumpError
from ingest.integrations.nccl import InvalidNcclError
from ingest.telemetry.decode.body import decode_array
from ingest.telemetry.decode.columns import Bounds
from ingest.telemetry.kinds import KINDS

T0 = 1_772_366_400_000_000_000
Json = dict[str, Any]


def taken(rows: list[Json]) -> list[Json]:
    """The rows, after the endpoint for telemetry has taken them."""
    if rows:
        decoded = decode_array(KINDS["collective"], json.dumps(rows).encode(), "default", Bounds())
        assert decoded.count == len(rows)
    return rows


# Flight recorder
# ----------------------------------------------------------------------------------------------------------
def entry(number: int, **more: Any) -> Json:
    """One all_reduce as `dump_json` writes it: absent times are 0."""
    return {
        "record_id": number, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": number + 1,
        "p2p_seq_id": 0, "op_id": number + 1, "profiling_name": "nccl:all_reduce", "is_p2p": False,
        "time_created_ns": T0 + number * 10**6, "input_sizes": [[3, 4]], "input_dtypes": ["BFloat16"],
        "output_sizes": [[3, 4]], "output_dtypes": ["BFloat16"], "state": "completed", "duration_ms": 0.5,
        "time_discovered_started_ns": 0, "time_discovered_completed_ns": 0, "retired": True, "timeout_ms": 600000,
        "thread_id": "1", "thread_name": "main", **more,
    }  # fmt: skip


def dump(*entries: Json, ranks: str = "[0, 1]", **more: Any) -> bytes:
    group = {"name": "0", "desc": "default_pg", "ranks": ranks}
    whole = {
        "version": "2.9",
        "comm_lib_version": "2.26.6",
        "pg_config": {"0": group},
        "pg_status": {},
        **more,
    }
    return json.dumps({**whole, "entries": list(entries)} if entries else whole).encode()


def converted(**files: bytes) -> flight_recorder.Converted:
    """Files by the end of their names: `rank_0=...`."""
    dumps = [flight_recorder.read(f"/dumps/nccl_trace_{name}.json", body) for name, body in files.items()]
    made = flight_recorder.convert(dumps, "j")
    taken(made.rows)
    return made


def test_an_operation_has_its_launch_its_duration_and_its_size() -> None:
    (row,) = converted(rank_1=dump(entry(0))).rows
    assert row == {
        "time": T0, "job": "j", "communicator": "0", "seq": 1, "op": "all_reduce", "rank": 1, "state": "completed",
        "bytes": 24, "ranks": 2, "start_ns": T0, "end_ns": T0 + 500_000,
    }  # fmt: skip


def test_a_rank_that_never_launched_has_no_row_and_one_that_is_stuck_has_its_state() -> None:
    stuck = entry(1, state="started", duration_ms=None)
    made = converted(rank_0=dump(entry(0), stuck), rank_1=dump(entry(0)))
    assert [(row["rank"], row["seq"], row["state"]) for row in made.rows] == [
        (0, 1, "completed"), (0, 2, "started"), (1, 1, "completed")
    ]  # fmt: skip
    assert made.notes == []


def test_a_dump_of_gloo_has_an_unnamed_group_and_no_states() -> None:
    group: Json = {"pg_config": {"": {"name": "", "desc": "", "ranks": "[0, 1]"}}}
    waiting: Json = {"profiling_name": "gloo:all_reduce", "state": "scheduled", "duration_ms": None}
    done, open_ = entry(0, **waiting), entry(1, **waiting, retired=False)
    rows = converted(rank_0=dump(done, open_, **group), rank_1=dump(done, **group)).rows
    assert [(row["communicator"], row["rank"], row["seq"], row["state"]) for row in rows] == [
        ("0", 0, 1, "completed"), ("0", 0, 2, "scheduled"), ("0", 1, 1, "completed")
    ]  # fmt: skip


def test_a_rank_without_a_dump_is_named() -> None:
    assert converted(rank_0=dump(entry(0))).notes == [
        "no dump of rank 1: without rows, as if launching nothing"
    ]


def test_a_transfer_is_numbered_by_direction_and_has_global_ranks() -> None:
    config: Json = {"pg_config": {"3": {"name": "3", "desc": "pp", "ranks": "[5, 9]"}}}
    common = {"process_group": ["3", "pp"], "is_p2p": True, "collective_seq_id": 0}
    send = entry(0, **common, profiling_name="nccl:send 0->1", p2p_seq_id=7)
    receive = entry(0, **common, profiling_name="nccl:recv 1<-0", p2p_seq_id=2)
    rows = converted(rank_5=dump(send, **config), rank_9=dump(receive, **config)).rows
    assert {(row["communicator"], row["seq"], row["src"], row["dst"], row["ranks"]) for row in rows} == {
        ("3/5>9", 1, 5, 9, 2)
    }
    assert [(row["rank"], row["op"]) for row in rows] == [(5, "send"), (9, "recv")]


def test_transfers_of_a_buffer_that_dropped_its_beginning_are_left_out_and_counted() -> None:
    send = entry(4, is_p2p=True, profiling_name="nccl:send 0->1", p2p_seq_id=4)
    made = converted(rank_0=dump(send, entry(5)))
    assert [row["op"] for row in made.rows] == ["all_reduce"]
    assert made.notes[0].startswith("rank 0: 1 transfers left out")


def test_groups_of_one_name_and_other_ranks_are_different_communicators() -> None:
    made = converted(rank_0=dump(entry(0), ranks="[0]"), rank_1=dump(entry(0), ranks="[1]"))
    assert [row["communicator"] for row in made.rows] == ["0@0", "0@1"]


def test_a_dump_without_operations_has_no_rows() -> None:
    assert converted(rank_0=dump(ranks="[0]")).rows == []


def test_a_pickle_is_refused_with_the_command_that_makes_json() -> None:
    with pytest.raises(
        InvalidDumpError, match=r'pickle.*python3 -c "import json,pickle,sys; .*< f_rank_0 > f_rank_0.json'
    ):
        flight_recorder.read("f_rank_0", pickle.dumps({"version": "2.9"}))


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"rank_0": dump(entry(0))[:-9]}, "not whole JSON"),
        ({"rank_0": b'{"traceEvents": []}'}, "no dump of the flight recorder: Object missing required field `version`"),
        ({"rank_0": dump(entry(0), version="1.1")}, "version 1.1 of the format"),
        ({"rank_x": dump(entry(0))}, "does not end in the rank"),
        ({"rank_7": dump(entry(0))}, "rank 7 .* is none of the 2 ranks of process group '0'"),
        ({"rank_0": dump(entry(0)), "b_rank_0": dump(entry(0))}, "rank 0 is also the rank of"),
        ({"rank_0": dump(entry(0)), "rank_1": dump(entry(0), ranks="[0, 1, 2]")}, "has 3 ranks here and 2 in another"),
        ({"rank_0": dump(entry(0), entry(1, collective_seq_id=1, op_id=1))}, "record 1: sequence number 1 .* twice"),
        ({"rank_0": dump(entry(0), entry(1, time_created_ns=T0 - 2 * 10**9))}, "record 1: time_created_ns is 2.0 s"),
        ({"rank_0": dump(entry(0, state="lost"))}, "state 'lost' is not"),
        ({"rank_0": dump(entry(0, duration_ms=-1))}, "duration_ms -1.0 is not"),
        ({"rank_0": dump(entry(0, process_group=["8", ""]))}, "process group '8' is not in pg_config"),
        ({"rank_0": dump(entry(0), ranks="all")}, "'all' is not a list of ranks"),
    ],
)  # fmt: skip
def test_a_wrong_dump_gets_one_reason(files: dict[str, bytes], reason: str) -> None:
    with pytest.raises(InvalidDumpError, match=reason) as refused:
        converted(**files)
    assert "\n" not in str(refused.value)


# Inspector
# ----------------------------------------------------------------------------------------------------------
def line(
    rank: int = 0, sn: int = 1, at: int = 0, id_: str = "0xa", pid: int | None = None, **more: Any
) -> Json:
    done = {"coll": "ReduceScatter", "coll_sn": sn, "coll_msg_size_bytes": 4096, "coll_exec_time_us": 61,
        "coll_timing_source": "kernel_gpu", "coll_algobw_gbs": 277.2, "coll_busbw_gbs": 485.0}  # fmt: skip
    metadata = {"inspector_output_format_version": "v4.0", "git_rev": "", "rec_mechanism": "nccl_profiler_interface",
        "dump_timestamp_us": T0 // 1000 + at, "hostname": "gpu-1", "pid": rank if pid is None else pid}  # fmt: skip
    header = {"id": id_, "rank": rank, "n_ranks": 4, "nnodes": 1}
    return {"header": header, "metadata": metadata, "coll_perf": done} | more


def inspected(*lines: Json | bytes) -> nccl.Converted:
    body = b"\n".join(one if isinstance(one, bytes) else json.dumps(one).encode() for one in lines)
    made = nccl.inspector([("a.jsonl", body)], "j")
    taken(made.rows)
    return made


def test_a_line_has_its_duration_up_to_the_time_of_the_dump() -> None:
    (row,) = inspected(line(2, 7)).rows
    assert row == {
        "time": T0, "job": "j", "communicator": "0xa/reduce_scatter", "seq": 7, "op": "reduce_scatter", "rank": 2,
        "state": "completed", "bytes": 4096, "start_ns": T0 - 61_000, "end_ns": T0, "ranks": 4, "node": "node/gpu-1",
    }  # fmt: skip


def test_a_verbose_line_ends_with_its_last_kernel() -> None:
    stop = T0 // 1000 - 500
    done = line()["coll_perf"] | {
        "event_trace_ts": {"kernel_events": [{"kernel_stop_ts": stop}, {"kernel_stop_ts": 0}]}
    }
    (row,) = inspected(line(coll_perf=done)).rows
    assert (row["end_ns"], row["end_ns"] - row["start_ns"]) == (stop * 1000, 61_000)


def test_ranks_of_a_small_communicator_become_those_of_the_largest() -> None:
    small = line(0, id_="0xb", pid=3) | {"header": {"id": "0xb", "rank": 0, "n_ranks": 2, "nnodes": 1}}
    rows = inspected(*(line(rank) for rank in range(4)), small).rows
    assert [(row["rank"], row["ranks"]) for row in rows if row["communicator"].startswith("0xb")] == [(3, 2)]


def test_a_transfer_knows_its_peer() -> None:
    sent = {"p2p": "Send", "p2p_sn": 3, "p2p_peer": 1, "p2p_msg_size_bytes": 8, "p2p_exec_time_us": 5.0}
    rows = inspected(line(0), line(1), {**line(0), "coll_perf": None, "p2p_perf": sent}).rows
    assert [(row["src"], row["dst"]) for row in rows if row["op"] == "send"] == [(0, 1)]


def test_a_process_outside_of_the_largest_communicator_is_left_out_and_counted() -> None:
    stranger = line(0, id_="0xb", pid=99) | {"header": {"id": "0xb", "rank": 0, "n_ranks": 2, "nnodes": 1}}
    assert inspected(line(0), stranger).notes[0].startswith("1 processes are in no communicator of 4 ranks")


def test_a_line_of_another_record_is_counted() -> None:
    other = {**line(0), "coll_perf": None, "proxy_perf": {}}
    assert inspected(line(0), other).notes == ["1 lines hold neither a collective nor a transfer"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((line(), json.dumps(line()).encode()[:-9]), "a.jsonl: line 2: is not whole JSON"),
        ((line(), {"time": 1}), "line 2: is no line of the NCCL Inspector: Object missing required field"),
        ((line(metadata=line()["metadata"] | {"inspector_output_format_version": "v9"}),), "format v9 cannot be read"),
        ((line(4),), "rank 4 is none of 4 ranks"),
        ((line(), line(1, header={"id": "0xa", "rank": 1, "n_ranks": 8})), "has 8 ranks here and 4 before"),
        ((line(sn=5), line(sn=5)), "line 2: sequence number 5 of reduce_scatter .* at a.jsonl: line 1"),
        ((line(), line(sn=2, at=-2_000_000)), "line 2: dump_timestamp_us is before"),
    ],
)  # fmt: skip
def test_a_wrong_line_gets_one_reason(lines: tuple[Json | bytes, ...], reason: str) -> None:
    with pytest.raises(InvalidNcclError, match=reason):
        inspected(*lines)


# RAS
# ----------------------------------------------------------------------------------------------------------
def ras_rank(rank: int, count: int, pid: int | None = None) -> Json:
    status = {
        "init_state": 0,
        "async_error": 0,
        "finalize_called": False,
        "destroy_flag": False,
        "abort_flag": False,
    }
    return {"rank": rank, "host": "10.0.0.1", "pid": rank if pid is None else pid, "cuda_dev": 0, "nvml_dev": 0,
        "status": status, "collective_counts": {"AllReduce": count, "AllGather": 0}}  # fmt: skip


def ras_answer(*ranks: Json, size: int = 3, missing: tuple[Json, ...] = (), **more: Any) -> bytes:
    one = {"hash": "0xa", "secondary_hash": "0x1:0x2", "size": size, "ranks_count": len(ranks),
        "missing_ranks_count": len(missing), "ranks": list(ranks), "missing_ranks": list(missing)}  # fmt: skip
    head = {"nccl_version": "2.28.3", "cuda_runtime_version": 13000, "timestamp": "2026-03-01 12:00:00"}
    return json.dumps({**head, "communicators_count": 1, "communicators": [one], "ras": {}, **more}).encode()


def test_a_rank_has_its_last_launch_and_one_that_did_not_answer_no_row() -> None:
    gone = {
        "rank": 2,
        "host": "10.0.0.2",
        "pid": 9,
        "cuda_dev": 0,
        "nvml_dev": 0,
        "status": {"considered_dead": True},
    }
    made = nccl.ras(ras_answer(ras_rank(0, 7), ras_rank(1, 6), missing=(gone,)), "j")
    assert [(row["rank"], row["seq"], row["state"], row["ranks"]) for row in taken(made.rows)] == [
        (0, 7, "scheduled", 3), (1, 6, "scheduled", 3)
    ]  # fmt: skip
    assert made.rows[0]["communicator"] == "0xa/all_reduce"
    assert made.rows[0]["time"] == datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp() * 1e9
    assert made.notes == ["1 ranks did not answer and have no row"]


def test_replies_of_the_port_before_the_answer_are_passed_over() -> None:
    assert len(nccl.ras(b"OK\n" + ras_answer(ras_rank(0, 1), size=1), "j").rows) == 1


def test_the_time_that_is_given_counts() -> None:
    at = datetime(2026, 3, 1, 11, 0, 0, 700_000, UTC)
    assert nccl.ras(ras_answer(ras_rank(0, 1), size=1), "j", at).rows[0]["time"] == 1_772_362_800_700_000_000


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (ras_answer(ras_rank(0, 1), size=1)[:-5], "not whole JSON"),
        (b"[]", "no JSON of NCCL RAS"),
        (ras_answer(ras_rank(0, 1)), "communicator 0xa: has 3 ranks and lists 1"),
        (ras_answer(ras_rank(0, 1), ras_rank(0, 1), ras_rank(1, 1)), "a rank comes twice"),
        (ras_answer(ras_rank(0, 1), size=1, timestamp="noon"), "timestamp: 'noon' is not a time"),
    ],
)
def test_a_wrong_answer_gets_one_reason(body: bytes, reason: str) -> None:
    with pytest.raises(InvalidNcclError, match=reason):
        nccl.ras(body, "j")


# The command
# ----------------------------------------------------------------------------------------------------------
def test_the_command_writes_the_rows_of_each_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"nccl_trace_rank_0.json": dump(entry(0)), "a.jsonl": json.dumps(line()).encode(),
        "ras.json": ras_answer(ras_rank(0, 7), size=1)}  # fmt: skip
    out = tmp_path / "out.ndjson"
    for (name, body), source in zip(
        files.items(), ("flight-recorder", "nccl-inspector", "nccl-ras"), strict=True
    ):
        (tmp_path / name).write_bytes(body)
        call_command("convert", source, str(tmp_path / name), "--job", "j", "--out", str(out))
        (row,) = map(json.loads, out.read_text().splitlines())
        assert (row["job"], row["rank"]) == ("j", 0)
        assert capsys.readouterr().err.startswith("note: 1 rows of 1 rank")


def test_the_command_writes_nothing_of_a_wrong_dump(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad, out = tmp_path / "r_0.json", tmp_path / "r_1.json", tmp_path / "out.ndjson"
    good.write_bytes(dump(entry(0)))
    bad.write_bytes(dump(entry(0))[:-3])
    with pytest.raises(SystemExit):
        call_command("convert", "flight-recorder", str(good), str(bad), "--out", str(out))
    assert capsys.readouterr().err.startswith(f"{bad}: is not whole JSON")
    assert not out.exists()


# Any bytes
# ----------------------------------------------------------------------------------------------------------
READERS: dict[str, tuple[bytes, Callable[[bytes], object], type[Exception]]] = {
    "dump": (dump(entry(0)), lambda body: flight_recorder.read("r_0", body), InvalidDumpError),
    "inspector": (
        json.dumps(line()).encode(),
        lambda body: nccl.inspector([("a", body)], "j"),
        InvalidNcclError,
    ),
    "ras": (ras_answer(ras_rank(0, 1), size=1), lambda body: nccl.ras(body, "j"), InvalidNcclError),
}


@pytest.mark.parametrize("reader", READERS)
def test_bytes_that_were_changed_are_read_or_refused(reader: str) -> None:
    good, read, error = READERS[reader]
    chance = random.Random(1)
    for _ in range(300):
        body = bytearray(good[: chance.randrange(1, len(good) + 1)])
        body[chance.randrange(len(body))] = chance.randrange(256)
        with suppress(error):
            read(bytes(body))
