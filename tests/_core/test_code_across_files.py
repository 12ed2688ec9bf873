"""Code is followed through the files of its user: a change in any of them is another function."""

from __future__ import annotations

import importlib
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evalstone._core.code_identity import code_files, code_hash, program_hash

FOLLOWED = {
    "an imported function": """
# app.py
from helper import say
def agent(*, input):
    return say(input)
# helper.py
def say(x):
    return WORD
""",
    "a function two files away": """
# app.py
from helper import say
def agent(*, input):
    return say(input)
# helper.py
from more import tell
def say(x):
    return tell(x)
# more.py
def tell(x):
    return WORD
""",
    "an attribute of a module": """
# app.py
import helper
def agent(*, input):
    return helper.say(input)
# helper.py
def say(x):
    return WORD
""",
    "an attribute of a module of a package": """
# app.py
import deep.helper
def agent(*, input):
    return deep.helper.say(input)
# deep/helper.py
def say(x):
    return WORD
""",
    "a relative import": """
# deep/__init__.py
# app.py
from deep.main import agent
# deep/main.py
from .helper import say
def agent(*, input):
    return say(input)
# deep/helper.py
def say(x):
    return WORD
""",
    "an import in the body": """
# app.py
def agent(*, input):
    from helper import say
    return say(input)
# helper.py
def say(x):
    return WORD
""",
    "a module imported in the body": """
# app.py
def agent(*, input):
    import helper
    return helper.say(input)
# helper.py
def say(x):
    return WORD
""",
    "what a module imports that is imported in the body": """
# deep/__init__.py
# deep/main.py
def agent(*, input):
    from . import helper
    return helper.say(input)
# deep/helper.py
from .more import say
# deep/more.py
def say(x):
    return WORD
# app.py
from deep.main import agent
""",
    "a constant": """
# app.py
from helper import PROMPT
def agent(*, input):
    return PROMPT
# helper.py
PROMPT = 'WORD'
""",
    "a dictionary": """
# app.py
from helper import PROMPTS
def agent(*, input):
    return PROMPTS['a']
# helper.py
PROMPTS = {'a': 'WORD'}
""",
    "an entry that is added to a dictionary": """
# app.py
from helper import PROMPTS as P
def agent(*, input):
    return P['a']
# helper.py
PROMPTS = {}
if True:
    PROMPTS['a'] = 'WORD'
""",
    "a constant in a dictionary": """
# app.py
from helper import *
def agent(*, input):
    return PROMPTS['a']
# helper.py
from more import ONE
PROMPTS = {'a': ONE}
# more.py
ONE = 'WORD'
""",
    "a function in a list of defaults": """
# app.py
from helper import say
def agent(*, input, tools=[say]):
    return tools
# helper.py
def say(x):
    return WORD
""",
    "an attribute of a module in a dictionary": """
# app.py
from helper import PROMPTS
def agent(*, input):
    return PROMPTS['a']
# helper.py
import more
PROMPTS = {'a': more.ONE}
# more.py
ONE = 'WORD'
""",
    "a relative import in the body of a method": """
# deep/__init__.py
# app.py
from deep.main import model
def agent(*, input):
    return model
# deep/main.py
import functools
@functools.singledispatchmethod
def model(self, x):
    from .helper import say
    return say(x)
# deep/helper.py
def say(x):
    return WORD
""",
    "a function that registers itself": """
# app.py
from helper import TOOLS
def agent(*, input):
    return TOOLS['a']()
# helper.py
TOOLS = {}
def tool(f):
    TOOLS['a'] = f
    return f
@tool
def search():
    return WORD
""",
    "a class": """
# app.py
from helper import Say
def agent(*, input):
    return Say().say()
# helper.py
class Say:
    def say(self):
        return WORD
""",
    "a dictionary of a class": """
# app.py
from helper import Say
def agent(*, input):
    return Say.ALL
# helper.py
class Say:
    ALL = {'a': 'WORD'}
""",
    "a dictionary of a class that is defined twice": """
# app.py
from helper import Say
def agent(*, input):
    return Say.ALL
# helper.py
class Say:
    ALL = {'a': 'before'}
class Say:
    ALL = {'a': 'WORD'}
""",
    "a module that can't be parsed": """
# app.py
def agent(*, input):
    import helper
# helper.py
in another language: WORD
""",
    "the types of a class": """
# app.py
from helper import Reply
def agent(*, input):
    return Reply
# helper.py
import typing
class Reply(typing.TypedDict):
    a: typing.Literal['WORD']
""",
    "an object": """
# app.py
from helper import SAY
def agent(*, input):
    return SAY.word
# helper.py
class Say:
    def __init__(self, word): self.word = word
SAY = Say('WORD')
""",
    "a data class": """
# app.py
from helper import SAY
def agent(*, input):
    return SAY.word
# helper.py
import dataclasses
@dataclasses.dataclass(frozen=True)
class Say:
    word: str
SAY = Say('WORD')
""",
    "a default that a data class makes": """
# app.py
from helper import Say
def agent(*, input):
    return Say().words
# helper.py
import dataclasses
@dataclasses.dataclass
class Say:
    words: list = dataclasses.field(default_factory=lambda: [WORD])
""",
    "an object of an installed package": """
# app.py
from helper import client
def agent(*, input):
    return client
# helper.py
import pytest
client = pytest.approx(WORD)
""",
    "a tool of an object of an installed package": """
# app.py
from helper import model
def agent(*, input):
    return model
# helper.py
import functools
model = functools.singledispatchmethod(len)
@model.register
def _(x: int): 'WORD'
""",
    "a cached function": """
# app.py
from helper import say
def agent(*, input):
    return say(input)
# helper.py
import functools
@functools.cache
def say(x):
    return WORD
""",
    "a decorator": """
# app.py
from helper import logged
@logged
def agent(*, input):
    return 1
# helper.py
import functools
def logged(f):
    @functools.wraps(f)
    def inner(**k):
        return [f(**k), WORD]
    return inner
""",
    "an enumeration": """
# app.py
from helper import E
def agent(*, input):
    return E.A
# helper.py
import enum
class E(enum.Enum):
    A = 'WORD'
""",
    "a class attribute that is read from another module": """
# app.py
import helper
class A(helper.Base):
    pass
agent = A().answer
# helper.py
class Base:
    def answer(self, *, input):
        return WORD
""",
    "the state of an object": """
# app.py
from helper import made
agent = made()
# helper.py
import more
def made():
    return more.A('WORD').answer
# more.py
class A:
    def __init__(self, word): self.word = word
    def answer(self, *, input):
        return self.word
""",
    "a closure": """
# app.py
from helper import made
agent = made()
# helper.py
def made(word='WORD'):
    def agent(*, input):
        return word
    return agent
""",
    "a default of a pydantic model": """
# app.py
from helper import C
def agent(*, input):
    return C().word
# helper.py
from pydantic import BaseModel, Field
class C(BaseModel):
    word: str = 'WORD'
""",
    "a description in a pydantic model": """
# app.py
from helper import C
def agent(*, input):
    return C.model_json_schema()
# helper.py
from pydantic import BaseModel, Field
class C(BaseModel):
    word: str = Field('a', description='WORD')
""",
    "a description in a model of another model": """
# app.py
from helper import C
def agent(*, input):
    return C.model_json_schema()
# helper.py
from pydantic import BaseModel, Field
class Inner(BaseModel):
    word: str = Field('a', description='WORD')
class C(BaseModel):
    inner: list[Inner] | None
""",
    "a description in a model of another model whose types are text": """
# app.py
from helper import C
def agent(*, input):
    return C.model_json_schema()
# helper.py
from __future__ import annotations
from pydantic import BaseModel, Field
class Inner(BaseModel):
    word: str = Field('a', description='WORD')
class C(BaseModel):
    inner: list[Inner]
""",
    "a constant in the description of a field": """
# app.py
from helper import TEXT
from pydantic import BaseModel, Field
class C(BaseModel):
    word: str = Field('a', description=TEXT)
def agent(*, input):
    return C.model_json_schema()
# helper.py
TEXT = 'WORD'
""",
    "an object of a pydantic model": """
# app.py
from helper import settings
def agent(*, input):
    return settings.word
# helper.py
from pydantic import BaseModel, Field
class C(BaseModel):
    word: str = 'WORD'
settings = C()
""",
    "a default of a data class with slots": """
# app.py
from helper import settings
def agent(*, input):
    return settings.word
# helper.py
from dataclasses import dataclass
@dataclass(slots=True)
class C:
    word: str = 'WORD'
settings = C()
""",
    "the metadata of a field": """
# app.py
from helper import C
def agent(*, input):
    return C.__dataclass_fields__['a'].metadata
# helper.py
from dataclasses import dataclass, field
@dataclass
class C:
    a: str = field(default='a', metadata={'word': 'WORD'})
""",
    "the setter of a property": """
# app.py
from helper import C
def agent(*, input):
    return setattr(C(), 'word', input)
# helper.py
class C:
    @property
    def word(self): return self._word
    @word.setter
    def word(self, value): self._word = WORD
""",
    "a metaclass": """
# app.py
from helper import C
def agent(*, input):
    return C.word()
# helper.py
class Meta(type):
    def word(cls): return WORD
class C(metaclass=Meta): pass
""",
    "a function for one type": """
# app.py
from helper import say
def agent(*, input):
    return say(input)
# helper.py
import functools
@functools.singledispatch
def say(x): return 1
@say.register
def _(x: str): return WORD
""",
    "an attribute of a function": """
# app.py
from helper import say
def agent(*, input):
    return say(input)
# helper.py
def say(x): return say.word
say.word = 'WORD'
""",
    "an attribute that setattr sets": """
# app.py
from helper import P
def agent(*, input):
    return P.word
# helper.py
class C: pass
P = C()
setattr(P, 'word', 'WORD')
""",
    "a namespace package that is imported in the body": """
# app.py
def agent(*, input):
    from deep.down.helper import say
    return say(input)
# deep/down/helper.py
def say(x):
    return WORD
""",
    "an object of an installed package in a class": """
# app.py
from helper import C
def agent(*, input):
    return C.parts.render()
# helper.py
from jinja2 import Template
class Other:
    parts = Template('a')
class C:
    class Inner:
        parts = Template('b')
    parts = Template('WORD')
""",
    "an object that registers itself": """
# app.py
import more
from helper import KNOWN
def agent(*, input):
    return KNOWN['Say'].say(input)
# helper.py
KNOWN = {}
def known(kind):
    KNOWN[kind.__name__] = kind()
    return kind
# more.py
from helper import known
@known
class Say:
    def say(self, x): return WORD
""",
    "a function in an object that is registered": """
# app.py
import more
from helper import KNOWN
def agent(*, input):
    return KNOWN['say'].function(input)
# helper.py
KNOWN = {}
class Tool:
    def __init__(self, function): self.function = function
def known(f):
    KNOWN[f.__name__] = Tool(f)
    return f
# more.py
from helper import known
@known
def say(x):
    return WORD
""",
    "a function that registers itself in an object": """
# app.py
import more
from helper import KNOWN
def agent(*, input):
    return KNOWN.tools['say'](input)
# helper.py
class Registry:
    def __init__(self): self.tools = {}
    def add(self, f):
        self.tools[f.__name__] = f
        return f
KNOWN = Registry()
known = KNOWN.add
# more.py
from helper import known
@known
def say(x):
    return WORD
""",
    "a subclass that registers itself in its base": """
# app.py
import more
from helper import Base
def agent(*, input):
    return Base.known['Say']().say(input)
# helper.py
class Base:
    known = {}
    def __init_subclass__(cls): Base.known[cls.__name__] = cls
# more.py
from helper import Base
class Say(Base):
    def say(self, x): return WORD
""",
    "a module that is imported by its name": """
# app.py
import importlib
def agent(*, input):
    return importlib.import_module('helper').say(input)
# helper.py
def say(x):
    return WORD
""",
    "a module that __import__ loads": """
# app.py
import importlib
def agent(*, input):
    return __import__('helper').say(input)
# helper.py
def say(x):
    return WORD
""",
    "an attribute that is read by its name": """
# app.py
import helper
def agent(*, input):
    return getattr(helper, 'say')(input)
# helper.py
def say(x):
    return WORD
""",
    "a method of a text in an enumeration": """
# app.py
from helper import LEVEL
def agent(*, input):
    return LEVEL.say()
# helper.py
from enum import Enum
class Level(str, Enum):
    LOW = 'low'
    def say(self): return WORD
LEVEL = Level.LOW
""",
    "a type in a default": """
# app.py
from helper import say
def agent(*, input):
    return say(input)
# helper.py
from typing import Literal
def say(x, kind=Literal['WORD']):
    return kind
""",
    "a partial of a function": """
# app.py
import functools
from helper import say
agent = functools.partial(say, more=1)
# helper.py
def say(*, input, more):
    return WORD
""",
    "a cached function in a closure": """
# app.py
from helper import say
def made(f):
    def agent(*, input):
        return f(input)
    return agent
agent = made(say)
# helper.py
import functools
@functools.cache
def say(x):
    return WORD
""",
    "an import that has another if it fails": """
# app.py
try: from helper import P
except ImportError: from nothing_of_this_name import P
def agent(*, input):
    return P
# helper.py
P = {'a': 'WORD'}
""",
    "a module beside the package that is imported in the body": """
# app.py
def agent(*, input):
    from deep.helper import say
    return say(input)
# deep/__init__.py
# deep/helper.py
import more
say = more.say
# more.py
def say(x):
    return WORD
""",
    "what a package imports that is imported in the body": """
# app.py
def agent(*, input):
    import deep
    return deep.say(input)
# deep/__init__.py
from .more import say
# deep/more.py
def say(x):
    return WORD
""",
    "a function that registers itself in a tuple": """
# app.py
import more
from helper import KNOWN
def agent(*, input):
    return KNOWN['say']
# helper.py
import functools
KNOWN = {}
def known(f):
    KNOWN[f.__name__] = (f, 'a')
    return f
# more.py
from helper import known
@known
def say(x):
    return WORD
""",
    "a function that registers itself in a dictionary": """
# app.py
import more
from helper import KNOWN
def agent(*, input):
    return KNOWN['say']
# helper.py
import functools
KNOWN = {}
def known(f):
    KNOWN[f.__name__] = {'function': f}
    return f
# more.py
from helper import known
@known
def say(x):
    return WORD
""",
    "a function that registers itself in a list": """
# app.py
import more
from helper import KNOWN
def agent(*, input):
    return KNOWN['say']
# helper.py
import functools
KNOWN = {}
def known(f):
    KNOWN[f.__name__] = [f]
    return f
# more.py
from helper import known
@known
def say(x):
    return WORD
""",
    "a function that registers itself in a partial": """
# app.py
import more
from helper import KNOWN
def agent(*, input):
    return KNOWN['say']
# helper.py
import functools
KNOWN = {}
def known(f):
    KNOWN[f.__name__] = functools.partial(f)
    return f
# more.py
from helper import known
@known
def say(x):
    return WORD
""",
}
for kind, statements in {
    "in an except block": "try: import nothing_of_this_name\nexcept ImportError: PROMPTS = {'a': 'WORD'}",
    "in a case block": "match 1:\n    case _: PROMPTS = {'a': 'WORD'}",
    "by a with statement": "import contextlib\nwith contextlib.nullcontext({'a': 'WORD'}) as PROMPTS: pass",
    "by the values of a loop": "PROMPTS = {}\nfor key in ('WORD', 'a'): PROMPTS[key] = 1",
    "by a function": "def fill():\n    global PROMPTS\n    PROMPTS = {'a': 'WORD'}\nfill()",
    "by a call of a method": "PROMPTS = {}\nPROMPTS.update(a='WORD')",
}.items():
    FOLLOWED[f"a dictionary that is filled {kind}"] = f"""
# app.py
from helper import PROMPTS
def agent(*, input):
    return PROMPTS['a']
# helper.py
{statements}
"""

for kind, block in {
    "an if statement": "if MODE == '1': P = {'a': 1}\nelse: P = {'a': 2}",
    "an if statement around another": "if MODE == '1':\n    if True: P = {'a': 1}\nelse: P = {'a': 2}",
    "a match statement": "match MODE:\n    case '1': P = {'a': 1}\n    case _: P = {'a': 2}",
    "a case": "match '1':\n    case 'WORD': P = {'a': 1}\n    case _: P = {'a': 2}",
    "a while statement": "P = {}\nwhile len(P) < int(MODE): P[len(P)] = 1",
    "an if statement around an except block": "if MODE == '1':\n    try: import nothing_of_this_name\n"
    "    except ImportError: P = {'a': 1}\nelse: P = {'a': 2}",
}.items():
    FOLLOWED[f"a dictionary that depends on the condition of {kind}"] = f"""
# app.py
from helper import P
def agent(*, input):
    return P
# helper.py
MODE = 'WORD'
{block}
"""

UNCHANGED = {
    "a comment": """
# app.py
from helper import say
def agent(*, input):
    return say(input)
# helper.py
def say(x):
    return 1  # WORD
""",
    "another function": """
# app.py
from helper import say
def agent(*, input):
    return say(input)
# helper.py
def say(x):
    return 1
def other():
    return WORD
""",
    "another constant": """
# app.py
from helper import say
def agent(*, input):
    return say(input)
# helper.py
def say(x):
    return 1
OTHER = 'WORD'
""",
    "a comment in a dictionary": """
# app.py
from helper import P
def agent(*, input):
    return P
# helper.py
P = {'a': 1,  # WORD
}
""",
    "a module that isn't imported": """
# app.py
from helper import say
def agent(*, input):
    return say(input)
# helper.py
def say(x):
    return 1
# other.py
X = 'WORD'
""",
    "functions that call each other in two modules": """
# app.py
import helper
def agent(*, input):
    return helper.odd(input)
# helper.py
import app
def odd(x):
    return app.agent(input=x)  # WORD
""",
    "modules that import each other in bodies": """
# app.py
def agent(*, input):
    import helper
    return helper.odd(input)
# helper.py
def odd(x):
    import app
    return app.agent(input=x)  # WORD
""",
    "another class with an attribute of the same name": """
# app.py
from helper import C
def agent(*, input):
    return C.parts.render()
# helper.py
from jinja2 import Template
class C:
    parts = Template('a')
class Other:
    parts = Template('WORD')
""",
    "what the standard library has at the time": """
# app.py
import sys
def agent(*, input):
    return sys.path  # WORD
""",
    "a condition of something else": """
# app.py
from helper import P
def agent(*, input):
    return P['a']
# helper.py
P = {'a': 1}
if WORD:
    OTHER = 1
""",
    "a comment in a pydantic model": """
# app.py
from helper import C
def agent(*, input):
    return C().word
# helper.py
from pydantic import BaseModel
class C(BaseModel):
    word: str = 'a'  # WORD
""",
}


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Imports `app` from files, each time from a new folder. Each file follows a line with its name."""
    number = itertools.count()
    names = {"app", "helper", "more", "other", "deep"}

    def forget() -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] in names]:
            del sys.modules[name]

    def load(files: str, word: str = "1", under: str = "") -> Any:
        forget()
        folder = tmp_path / f"edition{next(number)}" / under
        _, *parts = re.split(r"(?m)^# (\S+\.py)\n", files.replace("WORD", word))
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
        return importlib.import_module("app")

    yield load
    forget()


@pytest.mark.parametrize("case", FOLLOWED)
@pytest.mark.parametrize("hashed", [code_hash, program_hash])
def test_a_change_in_any_file_is_another_function(
    imported: Callable[..., Any], hashed: Callable[[Any], str], case: str
) -> None:
    first, same, second = (hashed(imported(FOLLOWED[case], word).agent) for word in ("1", "1", "2"))
    assert first == same != second


@pytest.mark.parametrize("case", UNCHANGED)
def test_what_code_does_not_read_is_not_part_of_it(imported: Callable[..., Any], case: str) -> None:
    first, second = (program_hash(imported(UNCHANGED[case], word).agent) for word in ("1", "2"))
    assert first == second


@pytest.mark.parametrize("case", [case for case in FOLLOWED if case != "the state of an object"])
def test_the_file_of_each_change_is_named(imported: Callable[..., Any], case: str) -> None:
    *_, changed = (
        name
        for name, text in re.findall(r"(?ms)^# (\S+\.py)\n(.*?)(?=^# \S+\.py|\Z)", FOLLOWED[case])
        if "WORD" in text
    )
    assert any(path.endswith(f"/{changed}") for path in code_files(imported(FOLLOWED[case]).agent))


@pytest.mark.parametrize(
    "case", ["an import in the body", "what a module imports that is imported in the body", "a relative import"]
)
def test_a_module_beside_the_code_is_found_where_its_folder_is_not_on_the_path(
    imported: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    hashes: list[str] = []
    for word in ("1", "1", "2"):
        module = imported(FOLLOWED[case], word)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "path", [path for path in sys.path if "edition" not in path])
            hashes.append(program_hash(module.agent))
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_file_that_is_written_again_is_read_again(imported: Callable[..., Any]) -> None:
    agent = imported(FOLLOWED["an import in the body"]).agent
    before = code_hash(agent)
    (helper,) = (Path(path) for path in code_files(agent) if path.endswith("helper.py"))
    helper.write_text(helper.read_text(encoding="utf-8").replace("return 1", "return 2"), encoding="utf-8")
    assert code_hash(agent) != before


def test_calls_do_not_change_a_function(imported: Callable[..., Any]) -> None:
    module = imported(
        """
# app.py
import functools
from helper import CACHE, Answer, bot
calls = []
def made(seen=[]):
    mine = {}
    def agent(*, input):
        calls.append(input), seen.append(input), mine.update({input: 1}), CACHE.update({input: Answer(1)}), twice(input)
        bot.last = input
        return input
    return agent
@functools.cache
def twice(x):
    return x
agent = made()
# helper.py
CACHE = {}
class Answer:
    def __init__(self, text): self.text = text
class Bot:
    def __init__(self): self.last, self.handlers = "", [self.handle]
    def handle(self): return self.last
bot = Bot()
"""
    )
    for hashed in (code_hash, program_hash):
        before = hashed(module.agent)
        module.agent(input="a")
        assert hashed(module.agent) == before


def test_a_global_that_code_fills_at_its_first_use_is_no_part_of_it(imported: Callable[..., Any]) -> None:
    files = """
# app.py
import helper
def agent(*, input):
    return helper.model(), helper.prompt(), helper.count(), helper.LIMIT
# helper.py
MODEL, PROMPT, CALLS, LIMIT = None, "", 0, 0
def model():
    global MODEL
    if MODEL is None: MODEL = count
    return MODEL
def prompt():
    global PROMPT
    PROMPT = PROMPT or "loaded"
    return PROMPT
def count():
    global CALLS
    CALLS += 1
def limit(number):
    global LIMIT
    LIMIT = number
"""
    module = imported(files)
    before = code_hash(module.agent)
    module.agent(input="a")
    assert code_hash(module.agent) == before == code_hash(imported(files).agent)
    module.helper.limit(5)
    assert code_hash(module.agent) != before


def test_what_a_question_of_ones_own_keeps_is_no_part_of_its_scorer(imported: Callable[..., Any]) -> None:
    module = imported(
        """
# app.py
from dataclasses import dataclass
from typing import Literal
from evalstone import Ask, Prompt, Question, Score, Scorer
@dataclass(frozen=True)
class Verdict:
    reason: str
    verdict: Literal['direct', 'vague']
class JudgeDirect(Question[Verdict]):
    kind = 'judge_direct'
    output: str
    prompt: Prompt = Prompt(instructions='Decide.', template='{{output}}')
class Direct(Scorer):
    name = 'direct'
    questions = (JudgeDirect,)
    async def score(self, ask: Ask, *, output: str) -> Score:
        return Score(float((await ask(JudgeDirect(output=output))).verdict == 'direct'))
"""
    )
    before = module.Direct().signature
    question = module.JudgeDirect(output="a")
    assert question.fingerprint
    assert question.render()
    assert question.json_schema
    assert module.Direct().signature == before


@pytest.mark.parametrize(("one", "other"), [("Search.", "Find."), ("x: int", "x: str"), ("A query.", "A question.")])
def test_descriptions_of_tools_are_part_of_a_program_but_not_of_a_scorer(
    imported: Callable[..., Any], one: str, other: str
) -> None:
    files = """
# app.py
from helper import Query, search
def agent(*, input):
    return [search, Query]
# helper.py
class Query:
    '''A query.'''
def search(x: int):
    '''Search.'''
"""
    first, second = imported(files).agent, imported(files.replace(one, other)).agent
    assert code_hash(first) == code_hash(second)
    assert program_hash(first) != program_hash(second)


def test_code_of_an_installed_package_is_followed_through_its_own_package(imported: Callable[..., Any]) -> None:
    case = FOLLOWED["what a module imports that is imported in the body"]
    first, second = (code_hash(imported(case, word, "site-packages").agent) for word in ("1", "2"))
    assert first != second


def test_installed_packages_and_the_standard_library_are_not_followed(imported: Callable[..., Any]) -> None:
    module = imported("# app.py\nimport json, pytest\ndef agent(*, input): return json.dumps(pytest.approx(input))\n")
    assert [Path(path).name for path in code_files(module.agent)] == ["app.py"]


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
@pytest.mark.parametrize("case", ["an imported function", "an import in the body"])
def test_an_installed_package_is_followed_by_its_name_alone(
    imported: Callable[..., Any], case: str, folder: str
) -> None:
    first, second = (program_hash(imported(FOLLOWED[case], word, folder).agent) for word in ("1", "2"))
    assert first == second


def test_a_set_is_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "from enum import Enum\n"
        "Word = Enum('Word', ['A', 'B', 'C', 'D', 'E'])\n"
        "WORDS, LETTERS = frozenset(Word), frozenset('abcdef')\n"
        "def agent(*, input): return WORDS, LETTERS\n"
        "from evalstone._core.code_identity import code_hash\n"
        "print(code_hash(agent))\n",
        encoding="utf-8",
    )
    seeds = [{**os.environ, "PYTHONHASHSEED": str(seed)} for seed in range(1, 5)]
    run = [sys.executable, str(tmp_path / "app.py")]
    assert len({subprocess.run(run, env=env, check=True, capture_output=True).stdout for env in seeds}) == 1


def test_a_cell_of_a_notebook_that_defines_what_a_function_reads_is_part_of_it() -> None:
    def hashed(word: str) -> str:
        cells = [
            "from jinja2 import Template",
            f"ASKED = Template({word!r})",
            "!ls",
            "def agent(*, input): return ASKED",
        ]
        namespace: dict[str, Any] = {"__name__": "__main__", "In": cells}
        for cell in cells:
            if not cell.startswith("!"):
                exec(cell, namespace)
        return program_hash(namespace["agent"])

    assert hashed("a") == hashed("a") != hashed("b")


def test_a_long_chain_of_objects_is_described_as_far_as_it_can_be(imported: Callable[..., Any]) -> None:
    files = """
# app.py
class Link:
    def __init__(self, before): self.before = before
def made(link=None):
    for _ in range(5000): link = Link(link)
    def agent(*, input):
        return link
    return agent
agent = made()
"""
    assert code_hash(imported(files).agent) == code_hash(imported(files).agent)
