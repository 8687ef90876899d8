"""For authors of analyzers: properties that every analyzer must have, and synthetic windows to try them on.

    from analyzers.testing import check_analyzer, check_quiet, sparse_cases

    def test_it_names_what_fails_and_nobody_else() -> None:
        check_analyzer(ANALYZER, sparse_cases("outcomes"))

    def test_a_healthy_region_is_quiet() -> None:
        check_quiet(ANALYZER, "deepview_healthy")

Both raise AssertionError naming property, seed and what was seen. Stable: plugins import it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from analyzers import offline
from analyzers.contract import Analyzer, Paths, Sums, Window, check_params
from analyzers.registry import faults_of
from analyzers.runner import judge, verdict_json
from analyzers.simulators.scenarios import SCENARIOS
from analyzers.simulators.tables import paths_of, sums_of

__all__ = [
    "Case",
    "MakeCase",
    "check_analyzer",
    "check_calculator",
    "check_quiet",
    "clumped_cases",
    "crossing_cases",
    "paths_of",
    "recovered_cases",
    "sparse_cases",
    "sums_of",
]

START = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Case:
    """A window and what was planted in it, worst first; nothing for a quiet window."""

    window: Window
    culprits: tuple[str, ...] = ()


MakeCase = Callable[[int, bool], Case]
"""Makes a case from a seed: with a fault or quiet."""


def check_analyzer(
    analyzer: Analyzer,
    make_case: MakeCase,
    params: Mapping[str, object] | None = None,
    seeds: Iterable[int] = range(3),
    names: Mapping[str, str] | None = None,
    numbered: Collection[str] = (),
) -> None:
    """Check every property on a faulty and a quiet window of each seed.

    `names` are keys that hold names without their kind, and the kind that a verdict gives them: an analyzer
    that reads `service` and blames `service/NAME` says `{"service": "service"}`. A component that stands in a label
    is `{"labels.node": ""}`, or with its kind where the label has it not. `numbered` are kinds whose components are
    called by a number that is no name in the input, such as `rank/7`: they keep it.
    """
    faults = list(faults_of(analyzer))
    assert not faults, f"{analyzer.name} is malformed: {'; '.join(faults)}"
    for seed in seeds:
        where = f"{analyzer.name}, seed {seed}"
        for planted in (True, False):
            case = make_case(seed, planted)
            verdict = judge(analyzer, case.window, params)
            if planted:
                _check_names_the_culprit(case, verdict, where)
            else:
                _check_is_quiet(verdict, where)
            _check_is_pure(analyzer, case.window, verdict, params, where, seed, names or {}, numbered)


def check_calculator(
    analyzer: Analyzer,
    make_case: MakeCase,
    params: Mapping[str, object] | None = None,
    seeds: Iterable[int] = range(3),
) -> None:
    """Check every property of an analyzer that measures and accuses no one, faults or not."""
    faults = list(faults_of(analyzer))
    assert not faults, f"{analyzer.name} is malformed: {'; '.join(faults)}"
    for seed in seeds:
        where = f"{analyzer.name}, seed {seed}"
        for case in (make_case(seed, True), make_case(seed, False)):
            verdict = judge(analyzer, case.window, params)
            _check_is_quiet(verdict, where)
            _check_is_pure(analyzer, case.window, verdict, params, where, seed, {})


def check_quiet(
    analyzer: Analyzer,
    scenario: str,
    params: Mapping[str, object] | None = None,
    seeds: Iterable[int] = range(3),
    every: timedelta = timedelta(hours=1),
) -> None:
    """Check that nobody is accused in the windows of a scenario in which nothing is wrong.

    `scenario` is a name that `manage.py simulate` lists; its files are cut into windows of length `every`, as
    `manage.py analyze --every` does. Windows that a planted fault touches are left out. Raises ValueError for an
    unknown scenario, `analyzers.offline.AnalysisInputError` for one without the telemetry that the analyzer reads.
    """
    if scenario not in SCENARIOS:
        raise ValueError(f"no scenario {scenario!r}; there are {', '.join(SCENARIOS)}")
    for seed in seeds:
        for window in _healthy_windows(analyzer, scenario, seed, every):
            where = f"{analyzer.name}, {scenario}, seed {seed}, window from {window.start:%Y-%m-%d %H:%M}"
            _check_is_quiet(judge(analyzer, window, params), where)


def _healthy_windows(analyzer: Analyzer, scenario: str, seed: int, every: timedelta) -> Iterator[Window]:
    with TemporaryDirectory() as folder:
        written = SCENARIOS[scenario].write(seed, Path(folder))
        faults = json.loads((Path(folder) / "truth.json").read_text())["faults"]
        files = {path.stem: path for path in written if path.suffix == ".ndjson"}
        chosen = offline.choose_input(analyzer, files)
        tables = offline.read([f"{kind}={files[kind]}" for kind in chosen.kinds], BytesIO())
    spans = [(datetime.fromisoformat(one["start"]), datetime.fromisoformat(one["end"])) for one in faults]
    for window in offline.windows(analyzer, chosen, tables, every):
        if not any(start < window.end and window.start < end for start, end in spans):
            yield window


Given = Mapping[str, object] | None
Verdict = Mapping[str, Any]


def _check_is_pure(
    analyzer: Analyzer,
    window: Window,
    verdict: Verdict,
    params: Given,
    where: str,
    seed: int,
    names: Mapping[str, str],
    numbered: Collection[str] = (),
) -> None:
    """`verdict` is what the window got; every property but one compares it with another one."""
    _check_is_deterministic(analyzer, window, verdict, params, where)
    _check_leaves_its_input(analyzer, window, params, where)
    _check_row_order(analyzer, window, verdict, params, where, seed)
    _check_renaming(analyzer, window, verdict, params, where, names, numbered)


def _check_names_the_culprit(case: Case, verdict: Verdict, where: str) -> None:
    assert verdict["suspects"], f"{where}: the planted {case.culprits} is not named: {verdict['status']}"
    first = verdict["suspects"][0]
    entry = {first["component"], *first["ambiguous_with"]}
    assert entry & set(case.culprits), f"{where}: {first['component']} is named first, not {case.culprits}"
    shown = json.dumps(verdict["evidence"])
    for suspect in verdict["suspects"]:
        assert suspect["component"] in shown, f"{where}: no evidence mentions {suspect['component']}"


def _check_is_quiet(verdict: Verdict, where: str) -> None:
    accused = [suspect["component"] for suspect in verdict["suspects"]]
    assert not accused, f"{where}: a quiet window accuses {accused}"


def _check_is_deterministic(
    analyzer: Analyzer, window: Window, verdict: Verdict, params: Given, where: str
) -> None:
    again = judge(analyzer, window, params)
    assert verdict_json(again) == verdict_json(verdict), f"{where}: the same window gave two verdicts"


def _check_leaves_its_input(analyzer: Analyzer, window: Window, params: Given, where: str) -> None:
    before = _digest(window)
    analyzer.analyze(window, check_params(analyzer, params or {}))
    assert _digest(window) == before, f"{where}: it wrote to the window it was given"


def _check_row_order(
    analyzer: Analyzer, window: Window, verdict: Verdict, params: Given, where: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    shuffled = _each_sums(window, lambda sums: _taken(sums, rng.permutation(sums.rows)))
    back = judge(analyzer, shuffled, params)
    assert _gist(verdict) == _gist(back), f"{where}: the order of rows changes the verdict"


def _check_renaming(
    analyzer: Analyzer,
    window: Window,
    verdict: Verdict,
    params: Given,
    where: str,
    names: Mapping[str, str],
    numbered: Collection[str],
) -> None:
    def rename(component: str) -> str:
        return component if component.partition("/")[0] in numbered else alias(component)

    renamed = _each_sums(window, lambda sums: _renamed(sums, names))
    back = judge(analyzer, renamed, params)
    assert _gist(verdict, rename) == _gist(back), (
        f"{where}: renaming components does more than rename the answer"
    )


def alias(component: str) -> str:
    """Another name of the same kind, in another alphabetical order."""
    kind, slash, name = component.partition("/")
    return f"{kind}{slash}{hashlib.sha256(name.encode()).hexdigest()[:12]}" if slash else component


def _gist(verdict: Mapping[str, Any], rename: Callable[[str], str] = str) -> Any:
    """Part that must not depend on rows and names: each entry's components, and its score to six digits.

    Which of components that cannot be told apart leads the entry may depend on the names.
    """
    entries = []
    for suspect in verdict["suspects"]:
        names = sorted(rename(name) for name in (suspect["component"], *suspect["ambiguous_with"]))
        score = suspect["score"]
        entries.append((names, None if score is None else round(score, 6)))
    return verdict["status"], sorted(entries)


def _each_sums(window: Window, change: Callable[[Sums], Sums]) -> Window:
    sums = {name: change(one) for name, one in window.sums.items()}
    return replace(window, sums=sums, history=tuple(_each_sums(past, change) for past in window.history))


def _taken(sums: Sums, order: Any) -> Sums:
    keys: dict[str, Any] = {}
    for name, key in sums.keys.items():
        if isinstance(key, Paths):
            sets = [key[row] for row in order.tolist()]
            keys[name] = _same_names(paths_of(sets), key)
        elif isinstance(key, np.ndarray):
            keys[name] = key[order]
        else:
            keys[name] = tuple(key[row] for row in order.tolist())
    return replace(sums, keys=keys, values={name: value[order] for name, value in sums.values.items()})


def _same_names(made: Paths, original: Paths) -> Paths:
    """`made` in the numbering of `original`, which may hold names that no row uses."""
    number = {name: i for i, name in enumerate(original.names)}
    renumber = np.array([number[name] for name in made.names], dtype=np.int32)
    indices = renumber[made.indices] if len(made.names) else made.indices
    return Paths(original.names, made.indptr, indices)


def _renamed(sums: Sums, names: Mapping[str, str]) -> Sums:
    """The same sums with every component under its alias, rows in the order that the new names give."""
    keys: dict[str, Any] = {}
    for name, key in sums.keys.items():
        if isinstance(key, Paths):
            keys[name] = paths_of([[alias(member) for member in key[row]] for row in range(len(key))])
        elif isinstance(key, np.ndarray):
            keys[name] = key
        elif labels := {
            one.partition(".")[2]: kind for one, kind in names.items() if one.startswith(f"{name}.")
        }:
            keys[name] = tuple(_renamed_labels(value, labels) for value in key)
        elif name in names:
            keys[name] = tuple(alias(f"{names[name]}/{value}").partition("/")[2] for value in key)
        else:
            keys[name] = tuple(alias(value) for value in key)
    renamed = replace(sums, keys=keys)
    columns = [key if not isinstance(key, np.ndarray) else key.tolist() for key in keys.values()]
    order = sorted(range(sums.rows), key=lambda row: tuple(column[row] for column in columns))
    return _taken(renamed, np.array(order, dtype=np.int64))


def _renamed_labels(text: str, kinds: Mapping[str, str]) -> str:
    """Labels as canonical JSON with aliases of the components in those of `kinds`."""
    labels = json.loads(text)
    for label, kind in kinds.items():
        if label in labels:
            value = labels[label]
            labels[label] = alias(f"{kind}/{value}").partition("/")[2] if kind else alias(value)
    return json.dumps(labels, separators=(",", ":"), sort_keys=True)


def _digest(window: Window) -> str:
    """A hash over every array and name of a window."""
    seen = hashlib.sha256(repr((window.start, window.end, window.region, window.input)).encode())
    for name in sorted(window.sums):
        sums = window.sums[name]
        for key, column in (*sorted(sums.keys.items()), *sorted(sums.values.items())):
            seen.update(f"{name}.{key}".encode())
            parts = (column.indptr, column.indices) if isinstance(column, Paths) else (column,)
            for part in parts:
                seen.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
            if isinstance(column, Paths):
                seen.update(repr(column.names).encode())
    return seen.hexdigest() + "".join(_digest(past) for past in window.history)


def crossing_cases(
    reduction: str,
    rate: float = 0.2,
    size: int = 6,
    history: int = 6,
    attempts: float = 100.0,
    noise: float = 0.0005,
    clumped: float = 0.0,
    recovered: float = 0.0,
) -> MakeCase:
    """Cases in which `left/1..size` and `right/1..size` cross, for an input of one reduction over
    `path_outcome`.

    Its `attempts` and `failures` are sums by component set. The fault is one component that fails a share `rate` of
    what passes through it. `attempts` is the mean of a path and window, of which a share `noise` fails anyway. In
    every window a share `clumped` of the paths loses a fifth of its attempts, with no component to blame. `recovered`
    is the rate of a fault of another component in two windows of the history, which is over.
    """

    def make(seed: int, faulty: bool) -> Case:
        rng = np.random.default_rng(seed)
        sets = [(f"left/{i + 1}", f"right/{j + 1}") for i in range(size) for j in range(size)]
        culprit = sets[int(rng.integers(0, len(sets)))][int(rng.integers(0, 2))]
        others = sorted({name for pair in sets for name in pair} - {culprit})
        earlier = {others[seed % len(others)]: recovered} if recovered else {}
        draw = partial(_crossing, rng, reduction, sets, attempts=attempts, noise=noise, clumped=clumped)
        past = tuple(draw(earlier if back in (2, 3) else {}, -back) for back in range(history, 0, -1))
        now = draw({culprit: rate} if faulty else {}, 0)
        return Case(replace(now, history=past), (culprit,) if faulty else ())

    return make


def sparse_cases(reduction: str, rate: float = 0.6) -> MakeCase:
    """`crossing_cases` with about five attempts a path, of which one in a hundred fails anyway: shares of single paths,
    and of components with few attempts, say little."""
    return crossing_cases(reduction, rate, size=8, attempts=4.0, noise=0.01)


def clumped_cases(reduction: str, rate: float = 0.2) -> MakeCase:
    """`crossing_cases` in which one path in fifteen loses a fifth of its attempts by itself: a path that fails much is
    no proof against what it passes."""
    return crossing_cases(reduction, rate, size=8, clumped=1 / 15)


def recovered_cases(reduction: str, rate: float = 0.2) -> MakeCase:
    """`crossing_cases` with a fault of another component in the history, which is over: means over the history are
    too high, and what was at fault then is not at fault now."""
    return crossing_cases(reduction, rate, recovered=0.5)


def _crossing(
    rng: np.random.Generator,
    reduction: str,
    sets: list[tuple[str, str]],
    faults: Mapping[str, float],
    hour: int,
    *,
    attempts: float,
    noise: float,
    clumped: float,
) -> Window:
    tried = rng.poisson(attempts, len(sets)) + 1
    survive = np.array([np.prod([1 - faults.get(name, 0.0) for name in one]) * (1 - noise) for one in sets])
    if clumped:
        survive = np.where(rng.random(len(sets)) < clumped, 0.8 * survive, survive)
    failures = rng.binomial(tried, 1 - survive.astype(float))
    sums = {reduction: sums_of(sets, {"attempts": tried, "failures": failures})}
    start = START + timedelta(hours=hour)
    return Window(start, start + timedelta(hours=1), "synthetic", "path_outcome", sums)
