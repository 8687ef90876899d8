"""Verdicts of pingmesh on windows of simulated probes, and on odd ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.pingmesh import ANALYZER
from analyzers.builtin.pingmesh.analyzer import FEW, FINE
from analyzers.builtin.pingmesh.observed import limit_bin
from analyzers.contract import Sums, Window
from analyzers.runner import judge
from analyzers.simulators.deepview import EPOCH
from analyzers.simulators.mesh import SPINE, Fault, Mesh, State, build, draw_fault
from analyzers.simulators.mesh_windows import BENIGN, Scene, scene, window_of, with_event
from analyzers.testing import Case, check_analyzer

MESH = build(3, 5, 6)
TRIES = 60


def drawn(seed: int, *kinds: str, mesh: Mesh = MESH, event: str | None = None, tries: int = TRIES) -> Case:
    rng = np.random.default_rng(seed)
    faults = [draw_fault(mesh, rng, kind, 0) for kind in kinds]
    one = scene(mesh, rng, faults)
    if event is not None:
        one = with_event(one, rng, event)
    return Case(seen(one, rng, tries), tuple(fault.component for fault in faults))


def seen(one: Scene, rng: np.random.Generator, tries: int = TRIES) -> Window:
    return window_of(one, rng, FEW, FINE, tries)


def verdict_of(window: Window, **params: object) -> dict[str, Any]:
    return judge(ANALYZER, window, params)


def named(verdict: dict[str, Any]) -> list[str]:
    return [one["component"] for one in verdict["suspects"]]


@pytest.mark.simulated
@pytest.mark.parametrize("kind", ["podset_storm", "black_hole_1"])
def test_it_has_the_properties_of_an_analyzer(kind: str) -> None:
    check_analyzer(
        ANALYZER,
        lambda seed, faulty: drawn(seed, *([kind] if faulty else []), mesh=build(3, 4, 4)),
        seeds=[1],
    )


@pytest.mark.simulated
@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        ("podset_down", "podset_down"),
        ("podset_leaf", "podset_failure"),
        ("podset_storm", "podset_failure"),
        ("spine", "spine"),
        ("pod_down", "pod_down"),
        ("tor_drops", "pod_failure"),
        ("server_drops", "server_failure"),
    ],
)
def test_each_fault_makes_its_pattern_and_names_its_component(kind: str, pattern: str) -> None:
    case = drawn(11, kind, tries=200)
    verdict = verdict_of(case.window)
    assert (verdict["measures"]["pattern"], named(verdict)) == (pattern, list(case.culprits))


@pytest.mark.simulated
@pytest.mark.parametrize("event", BENIGN)
def test_a_benign_event_blames_nobody(event: str) -> None:
    assert named(verdict_of(drawn(5, event=event).window)) == []


@pytest.mark.simulated
@pytest.mark.parametrize("kind", ["black_hole_1", "black_hole_2", "leaf_black_hole"])
def test_a_black_hole_is_put_down_to_its_switch(kind: str) -> None:
    case = drawn(2, kind)
    assert named(verdict_of(case.window)) == list(case.culprits)


def test_a_ticket_about_a_pod_that_is_down_says_so_in_its_title() -> None:
    (suspect,) = verdict_of(drawn(11, "pod_down").window)["suspects"]
    assert suspect["phrase"] == "is down: 6 of its 6 servers are silent"


def test_reloads_above_the_budget_are_advised_to_wait() -> None:
    rng = np.random.default_rng(3)
    faults = [draw_fault(MESH, rng, "black_hole_1", 0) for _ in range(2)]
    assert len({fault.component for fault in faults}) == 2
    window = seen(scene(MESH, rng, faults), rng)
    verdict = verdict_of(window, reloads_per_day=1)
    (advice,) = [one["text"] for one in verdict["evidence"] if one["title"] == "Next steps"]
    assert advice.startswith(f"Reload {verdict['suspects'][0]['component']}:")
    assert f"Let wait until tomorrow: {verdict['suspects'][1]['component']}." in advice


def test_a_black_hole_above_the_tors_is_no_reason_to_reload_them() -> None:
    verdict = verdict_of(drawn(2, "leaf_black_hole").window)
    (advice,) = [one["text"] for one in verdict["evidence"] if one["title"] == "Next steps"]
    assert advice.startswith("Do not reload ToRs")


def test_without_topology_a_server_is_named_and_nothing_larger() -> None:
    case = drawn(4, "server_drops", tries=200)
    sums = {name: one for name, one in case.window.sums.items() if name not in ("places", "needs")}
    window = Window(case.window.start, case.window.end, "synthetic", "probe", sums)
    assert named(verdict_of(window)) == list(case.culprits)


def test_two_podsets_leave_open_whether_the_spine_or_an_uplink_is_at_fault() -> None:
    (suspect,) = verdict_of(drawn(8, "spine", mesh=build(2, 6, 8), tries=400).window)["suspects"]
    assert (suspect["component"], suspect["ambiguous_with"]) == (SPINE, ["podset/p01", "podset/p02"])


def test_a_fault_that_lasts_two_minutes_is_shown_and_not_named() -> None:
    rng = np.random.default_rng(6)
    fault = draw_fault(MESH, rng, "podset_storm", 8)
    verdict = verdict_of(seen(scene(MESH, rng, [fault]), rng, 200))
    assert (verdict["status"], verdict["measures"]["passing"]) != ("named", 0)
    assert "Seen, but not for long enough" in {one["title"] for one in verdict["evidence"]}


def test_the_time_of_a_fault_is_told_by_the_minute() -> None:
    rng = np.random.default_rng(7)
    fault = draw_fault(MESH, rng, "podset_storm", 4)
    (suspect,) = verdict_of(seen(scene(MESH, rng, [fault]), rng, 200))["suspects"]
    assert suspect["first_failure"] == (EPOCH + timedelta(minutes=4)).isoformat().replace("+00:00", "Z")


def test_every_podset_red_is_no_pattern() -> None:
    rng = np.random.default_rng(9)
    everywhere = Fault("all", "nobody", 0.1, 0, _slow_everywhere)
    verdict = verdict_of(seen(scene(MESH, rng, [everywhere]), rng))
    assert (verdict["status"], verdict["measures"]["pattern"]) == ("inconclusive", "unclassified")


def _slow_everywhere(state: State) -> State:
    return replace(state, slow=np.full_like(state.slow, 0.1))


def test_losses_of_probes_that_are_never_repeated_are_no_black_hole_unless_whole() -> None:
    case = drawn(2, "black_hole_2")
    answers = case.window.sums["answers"]
    once = np.asarray(answers.keys["bin"]) < limit_bin(1e5)
    keys = {name: _kept(key, once) for name, key in answers.keys.items()}
    thinned = Sums(keys, {"answers": answers.values["answers"][once]}, int(once.sum()))
    window = replace(case.window, sums={**case.window.sums, "answers": thinned})
    assert (named(verdict_of(case.window)), named(verdict_of(window))) == (list(case.culprits), [])


def _kept(key: Any, rows: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Any:
    return key[rows] if isinstance(key, np.ndarray) else tuple(np.array(key)[rows].tolist())


@pytest.mark.simulated
def test_every_server_slow_accuses_none_of_them_where_nothing_says_what_they_share() -> None:
    rows = [(f"host/{a}", f"host/{b}", 500, 0, [9e3] * 500) for a in "abcdef" for b in "abcdef" if a != b]
    verdict = verdict_of(mesh_of(rows, minutes=1))
    assert (verdict["status"], verdict["suspects"]) == ("inconclusive", [])
    assert "shared cause" in verdict["reason"]


def mesh_of(rows: Sequence[tuple[str, str, int, int, list[float]]], minutes: int = 10) -> Window:
    """A window of (source, destination, sent, lost, times in microseconds), all in the first minute."""

    def sums(keys: dict[str, list[Any]], values: dict[str, list[int]]) -> Sums:
        count = len(next(iter(keys.values())))
        table: dict[str, Any] = {
            name: np.array(key, dtype=np.int64) if name in ("bin", "slice") else tuple(key)
            for name, key in keys.items()
        }
        table["layer"] = ("underlay",) * count
        return Sums(table, {name: np.array(value, dtype=np.int64) for name, value in values.items()}, count)

    def binned(edges: Sequence[float]) -> list[tuple[str, str, int]]:
        return [
            (src, dst, int(np.searchsorted(edges, time, side="right")))
            for src, dst, _, _, times in rows
            for time in times
        ]

    few, fine = binned(FEW), binned(FINE)
    silent = [row for row in rows if row[3]]
    tables = {
        "pairs": sums(
            {"src": [row[0] for row in rows], "dst": [row[1] for row in rows]},
            {"sent": [row[2] for row in rows], "lost": [row[3] for row in rows]},
        ),
        "answers": sums(
            {"src": [one[0] for one in few], "dst": [one[1] for one in few], "bin": [one[2] for one in few]},
            {"answers": [1] * len(few)},
        ),
        "servers": sums(
            {"src": [one[0] for one in fine], "bin": [one[2] for one in fine]}, {"answers": [1] * len(fine)}
        ),
        "minutes": sums(
            {"src": [one[0] for one in few], "slice": [0] * len(few), "bin": [one[2] for one in few]},
            {"answers": [1] * len(few)},
        ),
        "silent": sums(
            {
                "src": [row[0] for row in silent],
                "dst": [row[1] for row in silent],
                "slice": [0] * len(silent),
            },
            {"lost": [row[3] for row in silent]},
        ),
    }
    return Window(EPOCH, EPOCH + timedelta(minutes=minutes), "synthetic", "probe", tables)


def test_the_drop_rate_counts_three_and_nine_seconds_once_and_the_unanswered_never() -> None:
    times = [250.0] * 6 + [3.0e6, 9.1e6]
    window = mesh_of([("host/a", "host/b", 10, 2, times), ("host/b", "host/a", 2, 0, [250.0, 260.0])])
    assert verdict_of(window)["measures"]["drop_rate"] == 0.2


def test_one_drop_in_a_hundred_probes_is_no_alert() -> None:
    window = mesh_of([("host/a", "host/b", 100, 0, [250.0] * 99 + [3.0e6])])
    assert verdict_of(window)["measures"]["alerts"] == 0


def test_twenty_drops_in_a_hundred_probes_are_an_alert() -> None:
    window = mesh_of([("host/a", "host/b", 100, 0, [250.0] * 80 + [3.0e6] * 20)])
    assert verdict_of(window)["measures"]["alerts"] == 1


def test_an_empty_window_is_inconclusive() -> None:
    verdict = verdict_of(mesh_of([]))
    assert (verdict["status"], verdict["reason"]) == ("inconclusive", "there are no probes in this window")


def test_a_window_in_which_nobody_answers_is_inconclusive() -> None:
    none: list[float] = []
    rows = [(f"host/{a}", f"host/{b}", 20, 20, none) for a in "abcd" for b in "abcd" if a != b]
    verdict = verdict_of(mesh_of(rows))
    assert verdict["status"] == "inconclusive"
    assert "no probe has an answer" in verdict["reason"]


def test_probes_without_times_are_said_to_be_so() -> None:
    verdict = verdict_of(mesh_of([("host/a", "host/b", 20, 0, []), ("host/b", "host/a", 20, 0, [])]))
    assert verdict["status"] == "inconclusive"
    assert "round-trip time" in verdict["reason"]


def test_a_limit_between_two_bins_is_taken_to_the_nearer() -> None:
    text = json.dumps(verdict_of(drawn(1).window, p99_alert_us=5200.0)["evidence"])
    assert "above 5 ms" in text


def test_the_heat_map_shows_a_sign_beside_each_colour() -> None:
    verdict = verdict_of(drawn(11, "podset_storm").window)
    (chart,) = [one["chart"] for one in verdict["evidence"] if one["kind"] == "chart"]
    signs = {(one["state"], one["sign"]) for one in chart["data"]["values"]}
    assert signs == {("well", ""), ("above a limit", "✕")}


@pytest.mark.parametrize(
    ("kind", "state"), [("podset_down", "hardly any answers"), ("black_hole_1", "answers missing")]
)
def test_the_heat_map_shows_where_answers_are_missing(kind: str, state: str) -> None:
    verdict = verdict_of(drawn(11, kind).window)
    (chart,) = [one["chart"] for one in verdict["evidence"] if one["kind"] == "chart"]
    (suspect,) = verdict["suspects"]
    place = suspect["component"].partition("/")[2]
    struck = [one for one in chart["data"]["values"] if one["state"] == state]
    assert struck
    assert all(place in one["from"] or place in one["to"] for one in struck)
