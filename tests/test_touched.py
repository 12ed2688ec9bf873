"""Which tests `make quick` runs for which changes."""

from __future__ import annotations

import pytest

from tools.touched import MOST_IMPORTERS, ROOT, importers
from tools.touched import tests_of as of


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("src/evalstone/ledger/base.py", ["tests/ledger"]),
        ("src/evalstone/models/batch/openai.py", ["tests/models"]),
        ("tests/run/test_budget.py", ["tests/run"]),
        ("tests/scorers/custom/test_judge.py", ["tests/scorers/custom"]),
        ("tests/test_errors.py", ["tests/test_errors.py"]),
        ("src/evalstone/errors.py", ["tests/test_errors.py"]),
        ("docs/gates.md", ["tests/test_docs.py", "tests/test_doc_examples.py", "tests/test_doc_messages.py"]),
        ("tools/required_mutants.py", ["tests/test_required_mutants.py"]),
        ("uv.lock", []),
        ("", []),
    ],
)
def test_a_file_has_the_tests_of_its_folder(file: str, tests: list[str]) -> None:
    found = of([file])
    assert set(tests) <= set(found)
    assert bool(found) == bool(tests)


def test_what_many_tests_share_is_tested_by_those_of_its_own_folder_and_each_folder_is_named_once() -> None:
    assert of(["tests/serving.py"]) == ["tests/models"]
    assert of(["src/evalstone/run/budget.py", "src/evalstone/run/sessions.py"]).count("tests/run") == 1


def test_a_module_has_the_tests_of_other_folders_that_import_it_unless_these_are_many() -> None:
    assert "tests/test_json_page.py" in of(["src/evalstone/results/human_labels.py"])
    assert "tests/testing/test_explain.py" in of(["src/evalstone/results/gate_criteria.py"])
    assert len(importers()["evalstone.types"]) > MOST_IMPORTERS
    assert of(["src/evalstone/types/__init__.py"]) == ["tests/types"] * (ROOT / "tests/types").exists()
