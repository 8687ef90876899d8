"""Reading the sources, once and quickly: most of a syntax tree is inside of expressions."""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.places import ROOT

LAYERS = ["deploy", "frontend", "incidents", "analyzers", "ingest"]


@dataclass
class Survey:
    """Files that catch everything, classes as (name, file, names of their bases), and as (file, name) functions,
    modules' constants and variables: parameters, fields, and what statements assign at any depth.
    """

    functions: list[tuple[str, str]] = field(default_factory=list)
    broad: set[str] = field(default_factory=set)
    classes: list[tuple[str, str, list[str]]] = field(default_factory=list)
    constants: list[tuple[str, str]] = field(default_factory=list)
    variables: set[tuple[str, str]] = field(default_factory=set)


def sources() -> Iterator[Path]:
    for layer in LAYERS:
        yield from (path for path in sorted((ROOT / layer).rglob("*.py")) if "migrations" not in path.parts)


@functools.cache
def survey() -> Survey:
    """One pass over all sources. The trees themselves are not kept."""
    found = Survey()
    for path in sources():
        file = str(path.relative_to(ROOT))
        tree = ast.parse(path.read_text())
        found.constants += [(file, name) for node in tree.body for name in assigned(node)]
        for node in statements(tree):
            found.variables |= {(file, name) for name in assigned(node)}
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.functions.append((file, node.name))
                given = node.args
                found.variables |= {
                    (file, one.arg) for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)
                }
            elif isinstance(node, ast.ExceptHandler) and catches_everything(node):
                found.broad.add(file)
            elif isinstance(node, ast.ClassDef):
                bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
                found.classes.append((node.name, file, bases))
    return found


def assigned(node: ast.AST) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    for target in targets:
        for one in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(one, ast.Name):
                yield one.id


def catches_everything(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or ast.unparse(kind) in {"Exception", "BaseException"} for kind in kinds)


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Statements and handlers at any depth; what is inside of expressions is left out, and is most of a tree."""
    inside = [tree]
    while inside:
        node = inside.pop()
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            children = getattr(node, name, ())
            if isinstance(children, list):
                inside += children
