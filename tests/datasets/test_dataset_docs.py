from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import evalstone
from evalstone.datasets import FIELD_NAMES
from evalstone.results.grounding_labels import FIELD
from evalstone.scorers import SCORERS
from evalstone.types import USER_METADATA
from evalstone.types.reserved_metadata import RESERVED_METADATA

SOURCE = Path(evalstone.__file__).parent
PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_the_page_lists_the_names_that_are_understood() -> None:
    for field, ranks in FIELD_NAMES.items():
        names = " ▸ ".join(", ".join(f"`{name}`" for name in rank) for rank in ranks)
        assert f"| `{field}` | {names} |\n" in PAGE


def test_the_page_has_the_table_of_the_entries_of_metadata_that_are_read() -> None:
    rows = [f"| `{name}` | {what} |\n" for name, what in RESERVED_METADATA.items()]
    assert "| entry | read by |\n|---|---|\n" + "".join(rows) in PAGE
    assert list(RESERVED_METADATA) == sorted(RESERVED_METADATA, key=str.lower)


def _entries_read(file: Path) -> Iterator[str]:
    """The entries of a sample's metadata that a module reads by a name in its code."""
    holders = r"(sample|turn|recorded|answered|each|last)\.metadata"
    if "scorers" in file.parts:
        holders += r"|metadata|metadata or \{\}"
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(ast.Attribute(holder, "get"), [ast.Constant(str(name)), *_]):
                pass
            case ast.Subscript(holder, ast.Constant(str(name)), ast.Load()):
                pass
            case ast.Call(ast.Name("texts_in"), [_, holder, ast.Constant(str(name))]):
                pass
            case _:
                continue
        if re.fullmatch(holders, ast.unparse(holder)):
            yield name


@pytest.mark.slow
def test_no_entry_of_the_metadata_is_read_that_is_not_in_the_table() -> None:
    found = {name: file.name for file in SOURCE.rglob("*.py") for name in _entries_read(file)}
    for kind in SCORERS.values():
        found |= {path.partition(".")[0]: kind.name for path in kind.case_metadata}
    found |= dict.fromkeys((*USER_METADATA, FIELD), "a constant")
    assert {"goal", "relevant", "target", "criterion", "trace", "started"} <= found.keys()
    assert {name: where for name, where in found.items() if name not in RESERVED_METADATA} == {}


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_every_block_of_the_page_is_true(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "docs/data.md", "exec"), {})
