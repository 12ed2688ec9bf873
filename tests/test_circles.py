"""No module imports itself through others, not even inside functions. Imports for types alone don't count."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src"
MODULES = {
    ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__"): path
    for path in SOURCES.rglob("*.py")
}


class Imports(ast.NodeVisitor):
    """The modules of this project that a file imports when it runs."""

    def __init__(self, text: str) -> None:
        self.found: set[str] = set()
        self.visit(ast.parse(text))

    def visit_If(self, node: ast.If) -> None:
        for inner in node.orelse if "TYPE_CHECKING" in ast.unparse(node.test) else [*node.body, *node.orelse]:
            self.visit(inner)

    def visit_Import(self, node: ast.Import) -> None:
        self.found.update(alias.name for alias in node.names if alias.name in MODULES)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.found.update(self._of(node.module or "", node.names))

    def _of(self, module: str, names: list[ast.alias]) -> Iterator[str]:
        for alias in names:
            inner = f"{module}.{alias.name}"
            yield from (name for name in (inner if inner in MODULES else module,) if name in MODULES)


@pytest.mark.slow
def test_no_module_imports_itself_through_others() -> None:
    graph = {name: Imports(path.read_text("utf-8")).found - {name} for name, path in MODULES.items()}
    assert sum(map(len, graph.values())) > 1_000
    graphlib.TopologicalSorter(graph).prepare()


def test_imports_inside_functions_count_and_those_for_types_do_not() -> None:
    text = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from evalstone.api import evaluate
def late():
    from evalstone import api
    from evalstone.errors import ConfigError
"""
    assert Imports(text).found == {"evalstone.api", "evalstone.errors"}
