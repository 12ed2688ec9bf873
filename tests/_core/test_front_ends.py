"""Settings in texts: each front end names what its reader can change."""

from __future__ import annotations

import pickle

import pytest

from evalstone._core.front_ends import COMMAND_LINE, MARK, NOTHING, PYTHON, TOML, FrontEnd, Hint, Setting, SettingValue
from evalstone.errors import ConfigError, DataError


@pytest.mark.parametrize(
    ("setting", "value", "names"),
    [
        ("missing", None, ("missing", "--missing", "missing", "missing")),
        ("missing", "worst", ('missing="worst"', "--missing worst", 'missing="worst"', 'missing = "worst"')),
        ("min", {"a": 0.5, "b(c=d)": 1}, ('min={"a": 0.5, "b(c=d)": 1}', "--min a=0.5 --min 'b(c=d)=1'",
                                          'min={"a": 0.5, "b(c=d)": 1}', '[min] a = 0.5, "b(c=d)" = 1')),
        ("map", {"context": ("a", "b")}, ('map={"context": ["a", "b"]}', "--map context=a --map context=b",
                                          'map={"context": ["a", "b"]}', '[map] context = ["a", "b"]')),
        ("look", 2, ("look=2", "--look 2", "", "look = 2")),
        ("labels", ..., ("labels=…", "--labels", "", "labels")),
        ("scorers", ("a", "b"), ('scorers=["a", "b"]', "--scorer a --scorer b", 'scorers=["a", "b"]',
                                 'scorers = ["a", "b"]')),
        ("allow_mismatch", True, ("allow_mismatch=True", "--allow-mismatch", "allow_mismatch=True",
                                  "allow_mismatch = true")),
        ("alpha", NOTHING, ("alpha=None", "--alpha none", "alpha=None", 'alpha = "none"')),
    ],
)  # fmt: skip
def test_each_front_end_has_its_own_name(setting: str, value: SettingValue, names: tuple[str, ...]) -> None:
    kinds: tuple[FrontEnd, ...] = (PYTHON, COMMAND_LINE, MARK, TOML)
    assert [kind.term(setting, value) for kind in kinds] == list(names)


def test_an_error_names_settings_as_each_front_end_writes_them() -> None:
    inner = ConfigError(Setting("missing", "ignore"), " is wrong", Hint.of("; use ", Setting("labels", ...)))
    error = DataError("a.csv: ", inner.advised("read on")).located("row 1: ")
    assert str(error) == error.text(PYTHON)
    for front_end, middle in (
        (PYTHON, 'missing="ignore" is wrong; use labels=…'),
        (COMMAND_LINE, "--missing ignore is wrong; use --labels"),
        (MARK, 'missing="ignore" is wrong'),
    ):
        assert error.text(front_end) == f"row 1: a.csv: {middle}; read on"
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.text(MARK)) == (str(error), error.text(MARK))


def test_an_error_quotes_any_exception() -> None:
    assert str(ConfigError("it broke: ", ValueError("odd"))) == "it broke: odd"
