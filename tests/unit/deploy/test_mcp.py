"""The endpoint of assistants in a web process: nothing slow happens on its event loop."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator

from deploy import mcp


def imports_of(node: ast.AST, within: str = "") -> Iterator[tuple[str, str]]:
    """Function and package of each import below a node, but those for types alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from ((within, one.name) for one in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield within, child.module or ""
        inner = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else within
        yield from imports_of(child, inner)


def test_the_package_is_loaded_on_a_thread_and_not_on_the_event_loop() -> None:
    """Loaded on the loop it once took longer, on a busy machine, than the supervisor waits for a heartbeat."""
    found = list(imports_of(ast.parse(inspect.getsource(mcp))))
    slow = {within for within, name in found if name.split(".")[0] == "mcp" or name == "deploy.client.mcp"}
    assert slow == {"_load"}
    assert {within for within, name in found if within} == {"_load", "_open"}
