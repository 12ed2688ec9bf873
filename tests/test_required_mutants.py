"""The faults that the tests have to notice are faults of the code as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.mutants import mutants_of
from tools.required_mutants import REQUIRED, Mutant

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("mutant", REQUIRED, ids=lambda mutant: mutant.title)
def test_every_required_mutant_changes_its_file_and_names_tests_that_exist(mutant: Mutant) -> None:
    source = (ROOT / mutant.path).read_text(encoding="utf-8")
    assert (mutant.changed or mutant.applied(source)) != source
    assert mutant.tests
    assert all((ROOT / name.partition("::")[0]).exists() for name in mutant.tests)


def test_a_module_has_a_mutant_of_each_kind_in_the_order_of_its_lines() -> None:
    source = (
        '"""A module."""\n'
        "def f(x: int = 1) -> bool:\n"
        '    """Text with 1 < 2."""\n'
        "    if not x and x >= 2:\n"
        '        return g("é", x - 1, key=x)\n'
        "    x += 1\n"
        "    return False\n"
    )
    found = [(mutant.line, mutant.before, mutant.after) for mutant in mutants_of("m.py", source, ())]
    assert sorted(found) == sorted(
        [
            (2, "1", "2"),
            (4, "not x and x >= 2", "(not (not x and x >= 2))"),
            (4, "not x and x >= 2", "(not x or x >= 2)"),
            (4, "not x", "(x)"),
            (4, "x >= 2", "(x > 2)"),
            (4, "2", "3"),
            (5, 'return g("é", x - 1, key=x)', "return None"),
            (5, 'g("é", x - 1, key=x)', "g('é', key=x)"),
            (5, 'g("é", x - 1, key=x)', "g('é', x - 1)"),
            (5, "x - 1", "(x + 1)"),
            (5, "1", "2"),
            (6, "x += 1", "x -= 1"),
            (6, "1", "2"),
            (7, "False", "True"),
        ]
    )
    assert [line for line, *_ in found] == sorted(line for line, *_ in found)
    changed = next(m.changed for m in mutants_of("m.py", source, ()) if m.before == "x - 1")
    assert changed == source.replace("x - 1", "(x + 1)")
