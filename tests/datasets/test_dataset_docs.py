from __future__ import annotations

import re
from pathlib import Path

import pytest

from evalstone.datasets import FIELD_NAMES
from evalstone.scorers import SCORERS

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_the_page_lists_the_names_that_are_understood() -> None:
    for field, ranks in FIELD_NAMES.items():
        names = " ▸ ".join(", ".join(f"`{name}`" for name in rank) for rank in ranks)
        assert f"| `{field}` | {names} |\n" in PAGE


def test_the_page_names_the_entries_of_metadata_that_scorers_read() -> None:
    (paragraph,) = (text for text in PAGE.split("\n\n") if text.startswith("Most scorers ignore metadata."))
    for name, kind in SCORERS.items():
        for entry in kind.case_metadata[:1]:
            assert f"`{entry}`" in paragraph, name


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_every_block_of_the_page_is_true(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "docs/data.md", "exec"), {})
