"""Changed code is another scorer: closures, defaults, constants and helpers count."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, cast

import pytest

from evalstone._core.code_identity import ANSWERED_BY, class_hash, code_hash, program_hash


def defined(source: str, module: str = "user_code") -> Any:
    """The `f` that a module's source defines."""
    scope: dict[str, Any] = {"__name__": module}
    exec(compile(source, module, "exec", dont_inherit=True), scope)
    return scope["f"]


SAME = [
    ("def f(x): return x + 1", "# comment\ndef f(x):\n    '''Docstring.'''\n    return x + 1"),
    ("def f(x): return x in {'a', 'b', 'c'}", "def f(x): return x in {'c', 'b', 'a'}"),
    ("unused = 1\ndef f(x): return x", "unused = 2\ndef f(x): return x"),
    ("def f(x): return f(x - 1)", "def f(x): return f(x - 1)"),
]
DIFFERENT = [
    ("def f(x): return x + 1", "def f(x): return x + 2"),
    ("def f(x): return x.a", "def f(x): return x.b"),
    ("def f(x, y=1): return y", "def f(x, y=2): return y"),
    ("def f(x, *, y=1): return y", "def f(x, *, y=2): return y"),
    ("def g(k):\n    return lambda x: k\nf = g(.2)", "def g(k):\n    return lambda x: k\nf = g(.9)"),
    ("LIMIT = 1\ndef f(x): return LIMIT", "LIMIT = 2\ndef f(x): return LIMIT"),
    ("import re\nP = re.compile('a')\ndef f(x): return P", "import re\nP = re.compile('b')\ndef f(x): return P"),
    ("def g(): return 1\ndef f(x): return g()", "def g(): return 2\ndef f(x): return g()"),
    ("def g(): return 1\ndef f(x): return [g() for _ in x]", "def g(): return 2\ndef f(x): return [g() for _ in x]"),
    (
        "import functools\ndef g(a, b): return a\nf = functools.partial(g, 1)",
        "import functools\ndef g(a, b): return a\nf = functools.partial(g, 2)",
    ),
    (
        "class C:\n    def __init__(self, k): self.k = k\n    def __call__(self, x): return self.k\nf = C(1)",
        "class C:\n    def __init__(self, k): self.k = k\n    def __call__(self, x): return self.k\nf = C(2)",
    ),
    (
        "class C:\n    def m(self): return 1\nf = C().m",
        "class C:\n    def m(self): return 2\nf = C().m",
    ),
    ("f = len", "f = max"),
    (
        "import re\nP = re.compile('a' * 300 + 'b')\ndef f(): return P",
        "import re\nP = re.compile('a' * 300)\ndef f(): return P",
    ),
    ("import re\nP = re.compile('a')\ndef f(): return P", "import re\nP = re.compile('a', re.I)\ndef f(): return P"),
    ("f = {'search': ValueError('one')}", "f = {'search': ValueError('two')}"),
    ("f = {'search': ValueError('one')}", "f = {'search': TypeError('one')}"),
    *[
        (source, source.replace("1", "2"))
        for source in (
            "import functools\ndef g(x, *, k): return k\nf = functools.partial(g, k=1)",
            "import functools\nclass f:\n    def g(self, k): return k\n    h = functools.partialmethod(g, 1)",
            "import functools\nclass f:\n    def g(self, *, k): return k\n    h = functools.partialmethod(g, k=1)",
            "class f:\n    @property\n    def k(self): return 1",
            "class C:\n    __slots__ = ('k',)\n    def __call__(self): return self.k\nf = C()\nf.k = 1",
        )
    ],
    *[
        (
            f"import datetime, decimal, fractions, pathlib, uuid\nf = {{'now': {one}}}",
            f"import datetime, decimal, fractions, pathlib, uuid\nf = {{'now': {other}}}",
        )
        for one, other in (
            ("datetime.date(2025, 1, 1)", "datetime.date(2025, 1, 2)"),
            ("datetime.datetime(2025, 1, 1, 5)", "datetime.datetime(2025, 1, 1, 6)"),
            ("datetime.timedelta(1)", "datetime.timedelta(2)"),
            ("decimal.Decimal('1.0')", "decimal.Decimal('1.1')"),
            ("fractions.Fraction(1, 2)", "fractions.Fraction(1, 3)"),
            ("pathlib.PurePosixPath('a')", "pathlib.PurePosixPath('b')"),
            ("uuid.UUID(int=1)", "uuid.UUID(int=2)"),
            ("bytearray(b'a')", "bytearray(b'b')"),
            ("range(2)", "range(3)"),
        )
    ],
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_equal_code_has_one_hash(one: str, other: str) -> None:
    assert code_hash(defined(one)) == code_hash(defined(other))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_code_has_another_hash(one: str, other: str) -> None:
    assert code_hash(defined(one)) != code_hash(defined(other))


def test_without_a_file_a_mutable_value_counts_as_it_was_when_it_was_first_seen() -> None:
    source = "prompts = {'a': %r}\ndef f(x):\n    prompts[x] = 1\n    return prompts"
    one, same, other = (defined(source % word) for word in ("one", "one", "two"))
    before = code_hash(one)
    one("b")
    assert code_hash(one) == before == code_hash(same) != code_hash(other)


def test_in_a_notebook_a_value_is_the_cells_that_define_it() -> None:
    def hashed(*cells: str) -> str:
        scope: dict[str, Any] = {"__name__": "__main__", "In": ["", *cells, "def f(): return PROMPTS"]}
        for cell in scope["In"]:
            exec(cell, scope)
        scope["PROMPTS"]["later"] = 1
        return code_hash(scope["f"])

    assert hashed("PROMPTS = {}", "PROMPTS['a'] = 1") == hashed("other = 2", "PROMPTS = {}", "PROMPTS['a'] = 1")
    assert hashed("PROMPTS = {}", "PROMPTS['a'] = 1") != hashed("PROMPTS = {}", "PROMPTS['a'] = 2")


@pytest.mark.parametrize("module", ["user_code", "evalstone.targets.tools"])
def test_what_answers_in_place_of_a_function_is_part_of_it(module: str) -> None:
    one, same, other = (defined("def f(x): return x", module) for _ in range(3))
    for function, identity in ((one, "recording 1"), (same, "recording 1"), (other, "recording 2")):
        setattr(function, ANSWERED_BY, identity)
    assert code_hash(one) == code_hash(same) != code_hash(other)


def test_an_object_that_counts_its_calls_stays_the_same() -> None:
    source = (
        "class C:\n    n = %r\n    def __init__(self): self.n = self.n\n    def __call__(self): self.n += 1\nf = C()"
    )
    one, other = defined(source % 1), defined(source % 2)
    before = code_hash(one)
    one()
    assert code_hash(one) == before != code_hash(other)


FILLED_AT_FIRST_USE = {
    "an attribute of an object": """
class C:
    def __init__(self): self.model = None
    def __call__(self):
        if self.model is None: self.model = 'loaded'
f = C()
""",
    "an attribute of a class": """
class C:
    model = None
    def __call__(self):
        if C.model is None: C.model = 'loaded'
f = C()
""",
    "an attribute that a class lacks": """
class C:
    @classmethod
    def load(cls):
        if not hasattr(cls, 'model'): cls.model = 'loaded'
        return cls.model
    def __call__(self): return self.load()
f = C()
""",
    "an attribute of a function": """
def f():
    if not hasattr(f, 'model'): f.model = 'loaded'
    return f.model
""",
    "a variable of an outer function": """
def made():
    model = None
    def f():
        nonlocal model
        if model is None: model = 'loaded'
    return f
f = made()
""",
    "a cached property": """
import functools
class C:
    @functools.cached_property
    def model(self): return 'loaded'
    def __call__(self): return self.model
f = C()
""",
    "a cached property of a data class in a closure": """
import dataclasses, functools
@dataclasses.dataclass(frozen=True)
class C:
    k: int = 1
    @functools.cached_property
    def model(self): return 'loaded'
def made(c):
    def f(): return c.model
    return f
f = made(C())
""",
    "what a frozen data class keeps beside its fields": """
import dataclasses
@dataclasses.dataclass(frozen=True)
class C:
    k: int = 1
    def __call__(self): object.__setattr__(self, 'model', 'loaded')
f = C()
""",
    "a dictionary of a data class that can't be hashed": """
import dataclasses
@dataclasses.dataclass
class C:
    known: dict = dataclasses.field(default_factory=dict)
    def __call__(self): self.known['a'] = 1
f = C()
""",
    "a cached property of a pydantic model in a default": """
import functools, pydantic
class C(pydantic.BaseModel):
    k: int = 1
    @functools.cached_property
    def model(self): return 'loaded'
def f(c=C()): return c.model
""",
}


@pytest.mark.parametrize("case", FILLED_AT_FIRST_USE)
def test_what_code_fills_at_its_first_use_is_no_part_of_it(case: str) -> None:
    source = FILLED_AT_FIRST_USE[case]
    f, other = defined(source), defined(source)
    kind = cast("type[Any]", type(f))
    before, of_kind = code_hash(f), class_hash(kind)
    f()
    assert code_hash(f) == before == code_hash(other)
    assert class_hash(kind) == of_kind


def test_what_is_set_from_outside_is_a_part_of_code_even_if_it_was_empty() -> None:
    source = """
class C:
    prompt = None
    def set(self, prompt): self.prompt = prompt
    def __call__(self): return self.prompt
f = C()
"""
    f = defined(source)
    hashes = [code_hash(f)]
    f.prompt = "one"
    hashes.append(code_hash(f))
    f.set("two")
    assert len({*hashes, code_hash(f)}) == 3


def test_what_a_default_holds_is_read_with_and_without_descriptions() -> None:
    source = "def search(): %r\ndef f(x, *, tools=search): return tools"
    one, other = defined(source % "one"), defined(source % "two")
    assert code_hash(one) == code_hash(other)
    assert program_hash(one) != program_hash(other)


def test_a_value_that_holds_itself_has_a_hash() -> None:
    f = defined("held = []\nheld += [held, held]\ndef f(x): return held")
    assert code_hash(f) == code_hash(f)


def test_the_hash_is_the_same_in_every_process() -> None:
    code = (
        "from evalstone._core.code_identity import code_hash\n"
        "def f(x, y=frozenset('abc')): return x in {'a', 'b', 'c', 'd'}\n"
        "print(code_hash(f))"
    )
    hashes = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(hashes) == 1


def test_a_class_is_its_methods_constants_and_bases_but_not_what_dataclasses_write() -> None:
    def made(value: int, limit: int = 1) -> type[Any]:
        @dataclass(frozen=True)
        class Base:
            size: int = limit

            @functools.cached_property
            def one(self) -> int:
                return value

        class Kind(Base):
            @staticmethod
            def two() -> int:
                return 2

        return Kind

    assert class_hash(made(1)) == class_hash(made(1))
    assert len({class_hash(made(1)), class_hash(made(2)), class_hash(made(1, limit=2))}) == 3
    assert class_hash(int) == class_hash(FunctionType)


def test_functions_that_call_each_other_end() -> None:
    even: Callable[[int], bool] = defined("def g(x): return not f(x - 1)\ndef f(x): return x == 0 or not g(x - 1)")
    assert code_hash(even) == code_hash(even)


def test_a_class_whose_methods_hold_one_of_its_own_instances_has_a_hash() -> None:
    def made(value: int) -> type[Any]:
        class Kind:
            def one(self) -> Any:
                return instance

            def two(self) -> int:
                return value

        instance = Kind()
        return Kind

    assert class_hash(made(1)) == class_hash(made(1)) != class_hash(made(2))
