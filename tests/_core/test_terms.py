"""Settings in texts: each front end names what its reader can change."""

from __future__ import annotations

import pytest

from evalstone._core.terms import COMMAND_LINE, MARK, PYTHON, FrontEnd, Value, front_end, term


@pytest.mark.parametrize(
    ("setting", "value", "names"),
    [
        ("missing", None, ("missing", "--missing", "missing")),
        ("missing", "worst", ('missing="worst"', "--missing worst", 'missing="worst"')),
        ("minimum", {"a": 0.5, "b": 1}, ('minimum={"a": 0.5, "b": 1}', "--min a=0.5 --min b=1",
                                         'fail_under={"a": 0.5, "b": 1}')),
        ("look", 2, ("look=2", "--look 2", "")),
        ("labels", ..., ("labels=…", "--labels", "")),
        ("allow_mismatch", True, ("allow_mismatch=True", "--allow-mismatch", "")),
    ],
)  # fmt: skip
def test_each_front_end_has_its_own_name(setting: str, value: Value, names: tuple[str, ...]) -> None:
    kinds: tuple[FrontEnd, ...] = (PYTHON, COMMAND_LINE, MARK)
    for kind, name in zip(kinds, names, strict=True):
        with front_end(kind):
            assert term(setting, value) == name
    assert term(setting, value) == names[0]
