"""Simulated networks: sizes, names, routes, losses."""

import numpy as np
import pytest

from analyzers.simulators.fabric import (
    CLASSES,
    VIGIL,
    Fabric,
    Routes,
    Shape,
    build,
    draw_links,
    fat_tree,
    leaf_spine,
    path_table,
    send,
)

SMALL = build(Shape(pods=2, tors=2, t1s=2, t2s=3, hosts=2))
TREE = build(fat_tree(4))


def some_flows(fabric: Fabric, count: int, seed: int = 0) -> tuple[Routes, np.random.Generator]:
    rng = np.random.default_rng(seed)
    src = rng.integers(0, fabric.hosts, count)
    dst = (src + rng.integers(1, fabric.hosts, count)) % fabric.hosts
    return fabric.route(src, dst, rng), rng


def test_the_topology_of_007_has_4160_directed_links() -> None:
    assert len(build(VIGIL).links) == 4160


def test_a_fat_tree_of_48_ports_would_have_82944_links() -> None:
    hosts, tors, t1s, _ = fat_tree(48).counts
    assert hosts + tors * 24 + t1s * 24 == 82_944


def test_a_fat_tree_of_8_ports_with_a_prober_a_rack_has_288_links_and_512_bounces() -> None:
    fabric = build(fat_tree(8, hosts=1), directed=False)
    assert (len(fabric.links), len(fabric.bounces(range(fabric.hosts)))) == (288, 512)


@pytest.mark.parametrize("fabric", [SMALL, TREE, build(leaf_spine(3, 2, 2))])
def test_a_route_leads_from_device_to_device_without_a_gap(fabric: Fabric) -> None:
    routes, _ = some_flows(fabric, 200)
    for row in range(len(routes)):
        ends = fabric.ends[routes[row]]
        assert (ends[1:, 0] == ends[:-1, 1]).all()


def test_a_route_begins_and_ends_at_its_hosts() -> None:
    src, dst = np.array([0, 1, 0]), np.array([1, 7, 2])
    routes = SMALL.route(src, dst, np.random.default_rng(0))
    ends = [SMALL.ends[routes[row]] for row in range(3)]
    assert [(int(one[0, 0]), int(one[-1, 1])) for one in ends] == [(0, 1), (1, 7), (0, 2)]


def test_links_are_named_by_the_devices_at_their_ends_in_their_direction() -> None:
    for link, (low, high) in zip(TREE.links, TREE.ends.tolist(), strict=True):
        shorts = [TREE.devices[end].partition("/")[2] for end in (low, high)]
        assert link == f"link/{shorts[0]}~{shorts[1]}"


def test_no_two_links_share_a_name() -> None:
    assert len(set(TREE.links)) == len(TREE.links)


def test_the_class_of_a_link_says_which_tiers_it_joins() -> None:
    tiers = [
        tuple(TREE.devices[end].partition("/")[0] for end in ends)
        for ends in (TREE.ends[TREE.links_of([name])[0]] for name in CLASSES)
    ]
    assert ["-".join(pair) for pair in tiers] == list(CLASSES)


@pytest.mark.parametrize(("dst", "paths"), [(1, 1), (2, 2), (4, 12)])
def test_all_equal_cost_paths_are_enumerated_once(dst: int, paths: int) -> None:
    routes = SMALL.every_path(0, dst)
    assert len({tuple(routes[row]) for row in range(len(routes))}) == paths


def test_a_fat_tree_has_one_path_between_pods_for_each_core() -> None:
    assert len(TREE.every_path(0, TREE.hosts - 1)) == 4


def test_drawn_routes_cover_the_equal_cost_paths_evenly() -> None:
    routes = SMALL.route(np.zeros(6000, dtype=int), np.full(6000, 4), np.random.default_rng(1))
    _, counts = np.unique(routes.padded(), axis=0, return_counts=True)
    assert len(counts) == 12
    assert abs(counts - 500).max() < 100


def test_routes_avoid_a_drained_switch() -> None:
    drained = SMALL.devices.index("t1/p1-a1")
    rng = np.random.default_rng(2)
    src = rng.integers(0, 4, 300)
    routes = SMALL.route(src, src + 4, rng, closed=[drained])
    assert not routes.crossing(SMALL.links_at([drained]), len(SMALL.links)).any()


def test_closing_the_only_way_is_refused() -> None:
    with pytest.raises(ValueError, match="no path around"):
        SMALL.route(np.array([0]), np.array([4]), np.random.default_rng(0), closed=[8])


def test_a_flow_to_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="two different hosts"):
        SMALL.route(np.array([3]), np.array([3]), np.random.default_rng(0))


@pytest.mark.parametrize(
    "shape", [Shape(2, 2, 2, 0, 1), Shape(2, 2, 2, 3, 1, planes=True), Shape(0, 1, 1, 1, 1)]
)
def test_a_shape_that_cannot_be_wired_is_refused(shape: Shape) -> None:
    with pytest.raises(ValueError, match=r"fabric needs|cannot join"):
        build(shape)


def test_losses_are_placed_on_the_routes_that_lost_them() -> None:
    routes, rng = some_flows(TREE, 400)
    losses = send(routes, np.full(400, 100), np.full(len(TREE.links), 0.01), rng)
    assert all(link in routes[flow] for flow, link in zip(losses.flow, losses.link, strict=True))
    assert np.array_equal(np.bincount(losses.flow, losses.packets, minlength=400), losses.lost)


def test_links_lose_the_share_of_what_reaches_them() -> None:
    routes, rng = some_flows(TREE, 2000)
    bad = int(routes.indices[1])
    loss = np.zeros(len(TREE.links))
    loss[bad] = 0.3
    losses = send(routes, np.full(2000, 50), loss, rng)
    reached = 50 * np.count_nonzero(routes.indices == bad)
    assert set(losses.link.tolist()) == {bad}
    assert abs(losses.lost.sum() / reached - 0.3) < 0.03


def test_a_link_that_loses_all_leaves_nothing_to_those_behind_it() -> None:
    routes = TREE.every_path(0, TREE.hosts - 1)
    loss = np.ones(len(TREE.links))
    losses = send(routes, np.full(4, 10), loss, np.random.default_rng(0))
    assert (losses.lost.tolist(), set(losses.link.tolist())) == ([10] * 4, {0})


def test_drawn_links_are_distinct_links_between_switches() -> None:
    links = draw_links(TREE, np.random.default_rng(3), 20)
    assert len(set(links.tolist())) == 20
    assert not {CLASSES[i] for i in TREE.link_class[links]} & {"host-tor", "tor-host"}


def test_more_broken_links_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot draw"):
        draw_links(build(leaf_spine(2, 2, 1)), np.random.default_rng(0), 9)


def test_the_path_table_holds_each_routes_links_in_its_row() -> None:
    routes, _ = some_flows(SMALL, 100)
    paths, row = path_table(SMALL.links, routes)
    for flow in range(100):
        assert set(paths[row[flow]]) == {SMALL.links[link] for link in routes[flow]}


def test_the_rows_of_the_path_table_are_distinct_and_sorted() -> None:
    routes, _ = some_flows(SMALL, 300)
    paths, _ = path_table(SMALL.links, routes)
    rows = [paths[i] for i in range(len(paths))]
    assert rows == sorted(set(rows))


def test_no_routes_make_an_empty_table() -> None:
    nothing = np.empty(0, dtype=np.int64)
    routes = SMALL.route(nothing, nothing, np.random.default_rng(0))
    paths, row = path_table(SMALL.links, routes)
    assert (len(paths), len(row)) == (0, 0)
