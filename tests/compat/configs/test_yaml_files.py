"""YAML as configurations have it."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from evalstone.compat.configs.yaml_files import MOST_DEEP, line_of, read_yaml
from evalstone.errors import DataError, MissingDependency


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("a: yes\nb: on\nc: 2024-01-01\nd: 1_000\ne: 0x1F\nf: 1e3\ng: ~\nh: True\ni: tRUE", {
            "a": "yes", "b": "on", "c": "2024-01-01", "d": 1000, "e": 31, "f": 1000.0, "g": None, "h": True,
            "i": "tRUE",
        }),
        ("a: '1'\nb: !!str 1\nc: |\n  1\nd: \"true\"", {"a": "1", "b": "1", "c": "1\n", "d": "true"}),
        (r'{"a": "x\ud83d\ude00\ud83c\udf89 \\ud83d\\ude00 \u00e9"}', {"a": "x\U0001f600\U0001f389 \\ud83d\\ude00 é"}),
        ('a: |\n  {"b": "\\ud83d\\ude00"}', {"a": '{"b": "\U0001f600"}'}),
        ("{q: Why?, 1: a}", {"q": "Why?", "1": "a"}),
        ("x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}\nz: {<<: [{a: 5}, *x]}", {
            "x": {"a": 1, "b": 2}, "y": {"a": 1, "b": 3}, "z": {"a": 5, "b": 2},
        }),
        ('{"a": [1, null], "b": "\\u00e9"}', {"a": [1, None], "b": "é"}),
    ],
)  # fmt: skip
def test_plain_scalars_are_read_as_in_yaml_1_2(text: str, value: Any):
    assert read_yaml(text, "f") == value


def test_values_know_their_lines():
    value = read_yaml("a: 1\nb:\n- x\n- {c: 2}\n", "f")
    assert (line_of(value, "b"), line_of(value["b"], 1), line_of(value["b"][1], "c"), line_of(3)) == (2, 4, 4, None)


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: 2\na: 3", "f: line 3: the key 'a' is repeated: it is on line 1 too"),
        (
            "a: !!python/object/apply:os.system ['true']",
            "f: line 1: the tag !!python/object/apply:os.system isn't read",
        ),
        ("a: !env X", "f: line 1: the tag !env isn't read"),
        ("a: &a [*a]", "f: line 1: *a is an alias within itself"),
        ("a: *b", "f:"),
        (
            f"a: &a '{'x' * 100_000}'\nb: [{'*a, ' * 400}]",
            "f: line 2: with its aliases written out, it has more than 1,000,000 values, or 32,000,000 characters",
        ),
        (BOMB, "f: line 6: with its aliases written out, it has more than 1,000,000 values"),
        ("[" * (MOST_DEEP + 1), f"f: line 1: nested too deeply: {MOST_DEEP} levels are the most"),
        ("a: 1\n---\nb: 2", "f: line 2: a second document"),
        ("? [a]\n: 1", "f: line 1: a key must be text"),
        ("a: [1", "f: line"),
        ("<<: 3", "f: line 1: << must name a mapping"),
        ("a: \x01", "f:"),
    ],
)
def test_what_is_more_than_data_is_refused(text: str, problem: str):
    with pytest.raises(DataError) as error:
        read_yaml(text, "f")
    assert str(error.value).startswith(problem)


def test_without_its_library_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingDependency, match="PyYAML is not installed"):
        read_yaml("a: 1", "f")
