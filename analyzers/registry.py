"""The analyzers that are installed, by name.

Built-in and third-party analyzers come in by one door, the entry-point group `dossier.analyzers`; the project
itself is installed editable, so that its own entry points are there too. An analyzer that is broken, doubled or
misnamed is a `Problem` that names the plugin, the reason and the cure: it cannot be used, the others can. The console,
`/readyz`, `/metrics` and `manage.py check` show problems, because a missing analyzer looks like a healthy fleet.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from types import MappingProxyType

from analyzers.contract import Analyzer, Deferred, Input, Param, refusal
from ingest.telemetry.windows.reductions import plan

GROUP = "dossier.analyzers"
OURS = "analyzers.builtin."
"""Package of the built-in analyzers; a plugin cannot take the name of one."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


@dataclass(frozen=True, slots=True)
class Problem:
    """Reason why an analyzer cannot be used: its name, the plugin with its package, the reason, and the cure."""

    name: str
    plugin: str
    reason: str
    cure: str

    def __str__(self) -> str:
        return f"analyzer plugin {self.plugin}: {self.reason}. {self.cure}."


class UnknownAnalyzerError(LookupError):
    """No analyzer of that name can be used."""


class RegistryError(UnknownAnalyzerError):
    """The analyzer is installed and has a `problem`."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))


@dataclass(frozen=True, slots=True)
class Loaded:
    analyzers: Mapping[str, Analyzer]
    problems: tuple[Problem, ...]


def installed() -> Mapping[str, Analyzer]:
    """The analyzers that can be used, by name, in alphabetical order."""
    return _installed().analyzers


def get(name: str) -> Analyzer:
    """The analyzer of that name. Raises UnknownAnalyzerError with the nearest name, RegistryError for a faulty one."""
    analyzers = installed()
    if name not in analyzers:
        for problem in problems():
            if problem.name == name or not analyzers:
                raise RegistryError(problem)
        near = difflib.get_close_matches(name, analyzers, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise UnknownAnalyzerError(f"No analyzer {name!r}.{hint} Installed: {', '.join(analyzers)}.")
    return analyzers[name]


def problems() -> tuple[Problem, ...]:
    """Problems of installed analyzers; empty when all is well."""
    return _installed().problems


def refresh() -> None:
    """Look again at what is installed (packages installed after start-up)."""
    _installed.cache_clear()


@cache
def _installed() -> Loaded:
    return load(entry_points(group=GROUP))


def load(points: Iterable[EntryPoint]) -> Loaded:
    """Load and check entry points. Pure apart from importing what they name."""
    found = sorted(points, key=lambda point: (point.name, point.value))
    if not found:
        missing = Problem(
            "", "(none)", "no analyzer is installed", "Run `uv pip install --no-deps -e .` where Dossier is"
        )
        return Loaded(MappingProxyType({}), (missing,))
    doubled = {name for name, times in Counter(point.name for point in found).items() if times > 1}
    problems = [_doubled(name, [p for p in found if p.name == name]) for name in sorted(doubled)]
    analyzers: dict[str, Analyzer] = {}
    for point in found:
        if point.name in doubled and not _is_ours(point):
            continue
        loaded = _load_one(point)
        if isinstance(loaded, Analyzer):
            analyzers[point.name] = loaded
        else:
            problems.append(loaded)
    return Loaded(MappingProxyType(analyzers), tuple(problems))


def _load_one(point: EntryPoint) -> Analyzer | Problem:
    plugin = _plugin(point)
    try:
        loaded = point.load()
        if not isinstance(loaded, Analyzer):
            reason = f"{point.value} is {type(loaded).__name__}, not an Analyzer"
            cure = "Point the entry point at an `analyzers.contract.Analyzer`"
            return Problem(point.name, plugin, reason, cure)
        if loaded.name != point.name:
            reason = f"its entry point is called {point.name} but the analyzer is called {loaded.name}"
            return Problem(point.name, plugin, reason, "Give both the same name")
        faults = list(faults_of(loaded))
    except (Exception, SystemExit) as error:  # noqa: BLE001  an import can raise anything; it gets a name
        reason = f"{point.value} cannot be loaded ({type(error).__name__}: {error})"
        module = point.value.partition(":")[0]
        cure = f"Repair or uninstall the package; `python -c 'import {module}'` shows the traceback"
        if isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]:
            # An editable install adds a line to a .pth file, which a Python process reads only when it starts.
            cure = f"Restart Dossier if the package was installed while it ran. Otherwise {cure[0].lower()}{cure[1:]}"
        return Problem(point.name, plugin, reason, cure)
    if faults:
        return Problem(point.name, plugin, "; ".join(faults), "Correct the declaration of the analyzer")
    return loaded


def _doubled(name: str, points: list[EntryPoint]) -> Problem:
    """One name for several analyzers: a built-in one keeps it, of others none has it."""
    owners = " and ".join(_plugin(point) for point in points)
    if any(map(_is_ours, points)):
        effect, cure = "the built-in one is used", "Uninstall or rename the other"
    else:
        effect, cure = "none is used", "Uninstall or rename one of them"
    return Problem(name, name, f"two analyzers are called {name}: {owners}; {effect}", cure)


def _is_ours(point: EntryPoint) -> bool:
    return point.value.startswith(OURS)


def _plugin(point: EntryPoint) -> str:
    package = point.dist.name if point.dist is not None else "unknown package"
    return f"{point.name} ({package}, {point.value})"


def faults_of(analyzer: Analyzer) -> Iterable[str]:
    """Faults of a declaration, one sentence each."""
    if not _NAME.fullmatch(analyzer.name):
        yield f"name {analyzer.name!r} is not lower case letters, digits and underscores"
    if not _VERSION.fullmatch(analyzer.version):
        yield f"version {analyzer.version!r} is not major.minor.patch"
    if not analyzer.title.strip():
        yield "the title is empty"
    if not callable(getattr(analyzer, "analyze", None)):
        yield "analyze cannot be called"
    if isinstance(analyzer.analyze, Deferred) and not _exists(analyzer.analyze):
        yield f"analyze leads to {analyzer.analyze.address!r}, which is no `package.module:function`"
    if isinstance(analyzer.history, bool) or analyzer.history < 0:
        yield f"history {analyzer.history!r} is not a count of windows"
    loose = [part for part in ("inputs", "params") if not isinstance(getattr(analyzer, part), tuple)]
    if loose:
        yield f"{' and '.join(loose)} must be a tuple; a tuple of one ends with a comma: (ONE,)"
        return
    if not analyzer.inputs:
        yield "it declares no input"
    yield from _repeated("input", (one.name for one in analyzer.inputs))
    for one in analyzer.inputs:
        yield from _input_faults(one)
    yield from _repeated("parameter", (param.name for param in analyzer.params))
    for param in analyzer.params:
        yield from _param_faults(param)


def _input_faults(one: Input) -> Iterable[str]:
    if not one.reductions:
        yield f"input {one.name} has no reduction"
    names = (reduction.name for reduction in one.reductions)
    yield from _repeated(f"reduction of input {one.name}", names)
    for reduction in one.reductions:
        if not reduction.aggregates:
            yield f"reduction {reduction.name} of input {one.name} sums nothing"
        if type(reduction.group_by) is not tuple:
            yield (
                f"group_by of reduction {reduction.name} of input {one.name} must be a tuple of names, such as"
                f" ({reduction.group_by!r},)"
            )
            continue
        if "slice" in reduction.group_by:
            yield f"reduction {reduction.name} of input {one.name} groups by slice, which `slice` adds itself"
            continue
        try:
            plan(reduction)
        except ValueError as error:
            yield f"input {one.name}, {error}"


def _exists(method: Deferred) -> bool:
    module, colon, name = method.address.partition(":")
    try:
        return bool(colon and name) and find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _param_faults(param: Param) -> Iterable[str]:
    if not _NAME.fullmatch(param.name):
        yield f"parameter name {param.name!r} is not lower case letters, digits and underscores"
    if not param.help.strip():
        yield f"parameter {param.name} has no help"
    reason = refusal(param, param.default)
    if reason is not None:
        yield f"default {param.default!r} of parameter {param.name} {reason}"


def _repeated(what: str, names: Iterable[str]) -> Iterable[str]:
    for name, times in Counter(names).items():
        if times > 1:
            yield f"{what} {name} is declared {times} times"
