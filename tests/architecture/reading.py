"""Reading the sources, quickly: most of a syntax tree is inside of expressions."""

import ast
from collections.abc import Iterator


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
