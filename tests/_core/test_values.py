"""Subclasses of Scorer, Question, Judge, Target and User are frozen dataclasses by themselves."""

from __future__ import annotations

import pickle
import types
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import FrozenInstanceError, InitVar, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import pytest

import evalstone.scorers
from evalstone import (
    ConfigError,
    Judge,
    LexicalJudge,
    Panel,
    Prompt,
    Question,
    Score,
    Scorer,
    ScriptedJudge,
    StopSignal,
    evaluate,
)
from evalstone.compat.spring import JudgeEvaluator
from evalstone.scorers.parameters import documentation
from evalstone.scorers.rag.graded import FactCheck
from evalstone.targets import Target
from evalstone.targets.users import User

BASES = (Scorer, Question, Judge, Target, User)


class MaxWords(Scorer):
    """Whether the answer stays within a number of words."""

    name = "max_words"
    unit: ClassVar[str] = "words"
    limit: int = 5
    ignored: tuple[str, ...] = ()

    def score(self, *, output: str) -> Score:
        return Score(float(len(output.split()) <= self.limit))


class Counted(Scorer, ABC):
    """A step between: abstract, with a parameter of its own."""

    limit: int = 5

    @abstractmethod
    def count(self, text: str) -> int: ...

    def score(self, *, output: str) -> Score:
        return Score(float(self.count(output) <= self.limit))


class Offset(Scorer):
    """A second parent, with a required parameter."""

    offset: int

    def score(self, *, output: str) -> Score:
        return Score(0.0)


class MaxLetters(Counted, Offset):
    """Both parents' parameters, and one that is computed."""

    name = "max_letters"
    limit: int = 7
    sum: int = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sum", self.limit + self.offset)

    def count(self, text: str) -> int:
        return len(text) + self.offset


T = TypeVar("T")


class Found(Question[T], Generic[T]):
    """A generic question."""

    kind = "found"
    text: str
    prompt: Prompt = Prompt("Look.", "{{text}}")


class FoundIn(Found[str]):
    """A subclass that adds a required field after one with a default."""

    place: str
    prompt: Prompt = Prompt("Look.", "{{text}} {{place}}")


def test_a_scorer_s_parameters_are_in_its_signature_whatever_they_are() -> None:
    assert MaxWords(limit=2).signature != MaxWords(limit=50).signature
    assert "limit=2" in MaxWords(limit=2).signature
    assert MaxWords(limit=2) == MaxWords(limit=2) != MaxWords(limit=50)
    assert len({MaxWords(limit=2), MaxWords(limit=2), MaxWords()}) == 2


def test_an_interrupted_run_is_not_resumed_with_another_parameter(tmp_path: Path) -> None:
    rows = [{"id": str(n), "output": "one two three"} for n in range(200)]
    stop = StopSignal()
    first = evaluate(
        rows, MaxWords(limit=2), ledger=tmp_path / "l.db", stop=stop, on_record=lambda _: stop.request("enough"),
        concurrency=1,
    )  # fmt: skip
    second = evaluate(rows, MaxWords(limit=50), ledger=tmp_path / "l.db")
    assert 0 < len(first) < 200
    assert (second.resumed, second["max_words"].mean) == (0, 1.0)


def test_parameters_are_frozen_and_keyword_only() -> None:
    scorer: Any = MaxWords()
    with pytest.raises(FrozenInstanceError):
        scorer.limit = 6
    kind: Any = MaxWords
    with pytest.raises(ConfigError, match=r"MaxWords takes its parameters by name: write MaxWords\(limit=…\)"):
        kind(6)
    assert all(each.kw_only for each in fields(MaxWords))
    assert "unit" not in {each.name for each in fields(MaxWords)}


def test_a_value_is_copied_and_pickled_with_its_fields() -> None:
    scorer = MaxWords(limit=3, ignored=("a",))
    assert replace(scorer, limit=4) == MaxWords(limit=4, ignored=("a",))
    assert pickle.loads(pickle.dumps(scorer)) == scorer
    assert pickle.loads(pickle.dumps(scorer)).signature == scorer.signature


def test_steps_between_and_several_parents_add_up() -> None:
    scorer = MaxLetters(offset=1)
    assert (scorer.limit, scorer.offset, scorer.sum) == (7, 1, 8)
    assert {"limit", "offset"} <= {each.name for each in fields(MaxLetters)}
    assert is_dataclass(Counted)
    kind: Any = Counted
    with pytest.raises(ConfigError, match="Counted is a base class: derive a class that defines count"):
        kind()


def test_a_generic_question_and_its_subclass_have_all_fields() -> None:
    asked = FoundIn(text="Ada", place="London")
    assert asked.inputs() == {"text": "Ada", "place": "London"}
    assert asked.fingerprint != FoundIn(text="Ada", place="Paris").fingerprint
    assert Found[str](text="Ada") == Found[str](text="Ada")


def _subclass(base: type[Any], body: dict[str, Any], **options: Any) -> type[Any]:
    return types.new_class("Own", (base,), options, lambda namespace: namespace.update(__module__=__name__, **body))


def _init(self: Any, limit: int = 5) -> None:
    object.__setattr__(self, "limit", limit)


@pytest.mark.parametrize("base", [*BASES, JudgeEvaluator, FactCheck], ids=lambda base: base.__name__)
def test_a_class_whose_parameters_would_be_in_no_identity_is_refused(base: type[Any]) -> None:
    more: dict[str, Any] = {"scorer": FactCheck} if base is JudgeEvaluator else {}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"__init__": _init}, "Own defines __init__"),
        ({"__annotations__": {"limit": InitVar[int]}, "limit": 5}, "limit is an InitVar"),
        ({"__annotations__": {"limit": "InitVar[int]"}, "limit": 5}, "limit is an InitVar"),
        ({"__annotations__": {"words": "list"}, "words": []}, "words"),
        ({"words": field(default=1)}, "words"),
        ({"limit": 7}, "the field limit would not be what Own sets"),
        ({"limit": property(lambda _: 7)}, "the field limit would not be what Own sets"),
    ]
    parent = _subclass(base, {**more, "__annotations__": {"limit": "int"}, "limit": 5})
    for body, told in wrong:
        with pytest.raises(ConfigError, match=f"{told}"):
            _subclass(parent, {**more, **body})
    own = _subclass(base, {**more, "__annotations__": {"limit": "int"}, "limit": 5})
    assert vars(own)["__dataclass_params__"].frozen
    assert vars(own)["__dataclass_fields__"]["limit"].kw_only


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.__name__)
@pytest.mark.parametrize(
    "decorator",
    [dataclass, dataclass(frozen=True), dataclass(frozen=True, kw_only=True), dataclass(frozen=True, slots=True)],
    ids=["plain", "frozen", "as a value is", "slots"],
)
def test_a_second_decorator_is_refused_because_it_would_lose_the_options_of_fields(
    base: type[Any], decorator: Callable[[type[Any]], type[Any]]
) -> None:
    own = _subclass(base, {"__annotations__": {"words": "tuple"}, "words": field(default=(), compare=False)})
    with pytest.raises(ConfigError, match=r"Own .* remove @dataclass"):
        decorator(own)
    assert not vars(own)["__dataclass_fields__"]["words"].compare


def test_a_field_is_not_set_on_the_class_where_it_would_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="limit"):
        monkeypatch.setattr(MaxWords, "limit", 7)
    assert MaxWords().limit == MaxWords.limit == 5
    before = MaxWords(limit=3).signature
    monkeypatch.setattr(MaxWords, "version", 7)
    assert MaxWords(limit=3).signature != before


class Sevens:
    """No dataclass, with attributes of the names of fields."""

    limit = 7
    scale: float = 7.0


class Initialized:
    def __init__(self, limit: int = 5) -> None:
        object.__setattr__(self, "limit", limit)


class Closable(Protocol):
    def close(self) -> None: ...


@pytest.mark.parametrize(("name", "other"), [("limit", "scale"), ("scale", "limit")])
def test_a_field_that_another_parent_sets_is_refused(name: str, other: str) -> None:
    body = {"__annotations__": {other: "float"}, other: 1.0}
    with pytest.raises(ConfigError, match=f"the field {name} would not be what Sevens sets"):
        types.new_class("Own", (Sevens, MaxWords), {}, lambda namespace: namespace.update(body))


def test_a_field_with_two_defaults_from_parents_is_refused() -> None:
    same, other = _subclass(MaxWords, {}), _subclass(MaxWords, {"__annotations__": {"limit": "int"}, "limit": 7})
    with pytest.raises(ConfigError, match="limit"):
        types.new_class("Both", (same, other))
    assert types.new_class("Both", (other, same))().limit == 7


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.__name__)
def test_the_init_of_a_parent_is_not_lost_silently(base: type[Any]) -> None:
    with pytest.raises(ConfigError, match=r"would lose Initialized\.__init__"):
        types.new_class("Own", (Initialized, base))


def test_a_judge_with_an_init_keeps_it_in_a_subclass_that_says_so() -> None:
    with pytest.raises(ConfigError, match="init=False"):
        _subclass(Panel, {})
    judges = (LexicalJudge(), ScriptedJudge(lambda question: "yes"))
    assert _subclass(Panel, {}, init=False)(*judges).members == judges
    with pytest.raises(ConfigError, match="quorum"):
        _subclass(Panel, {"__annotations__": {"quorum": "int"}, "quorum": 1}, init=False)


@pytest.mark.parametrize("option", ["frozen", "slots", "order"])
@pytest.mark.parametrize("base", BASES, ids=lambda base: base.__name__)
def test_an_option_that_values_do_not_have_is_refused(base: type[Any], option: str) -> None:
    with pytest.raises(ConfigError, match=f"{option}.*kw_only"):
        _subclass(base, {}, **{option: True})


def test_values_that_are_equal_to_themselves_alone_do_not_compare_the_fields_of_their_parent() -> None:
    own = _subclass(MaxWords, {"__annotations__": {"language": "str"}, "language": "en"}, eq=False)
    one = own()
    assert one != own()
    assert own(language="de") != own(language="en")
    assert len({one, own()}) == 2


def test_a_class_without_a_docstring_is_shown_by_its_name_and_not_by_its_parameters() -> None:
    class Plain(Scorer):
        name = "plain"
        limit: int = 5

        def score(self, *, output: str) -> Score:
            return Score(1.0)

    class Kept(Plain):
        """What it is.

        Attributes:
            limit: How many.
        """

        name = "kept"

    assert Plain.__doc__ is None
    assert (Plain().description(), documentation(Plain)) == ("plain", "plain")
    assert (Kept().description(), documentation(Kept)) == ("What it is.", "What it is.")


def test_a_value_may_follow_a_protocol() -> None:
    for parents in ((MaxWords, Closable), (Closable, MaxWords)):
        own: Any = types.new_class("Own", parents)
        assert own(limit=3) == own(limit=3) != own()
        assert isinstance(own(), MaxWords)


def test_a_field_that_is_declared_again_must_still_be_what_its_parent_requires() -> None:
    own = _subclass(MaxWords, {"__annotations__": {"scale": "float"}, "scale": 10.0})
    assert own().scale == 10.0
    with pytest.raises(ConfigError) as raised:
        own(scale=-1)
    assert (raised.value.field, raised.value.value) == ("scale", -1)


def test_a_constant_is_no_parameter_and_an_error_says_why() -> None:
    own = _subclass(MaxWords, {"most": 3})
    with pytest.raises(ConfigError, match="most is a constant of Own"):
        own(most=5)


def test_an_own_init_is_a_choice_that_the_class_names() -> None:
    own = _subclass(MaxWords, {"__init__": _init}, init=False)
    assert own(7).limit == 7


def test_a_target_shows_its_name_instead_of_its_settings() -> None:
    class Own(Target):
        name = "own"
        key: str = "secret"

        async def call(self, sample: Any, *, trial: int, thread: str) -> str:
            return self.key

    assert repr(Own()) == "<Own own>"


def _below(kind: type[Any]) -> list[type[Any]]:
    return [each for own in kind.__subclasses__() for each in (own, *_below(own))]


def test_every_subclass_in_the_package_is_a_frozen_dataclass() -> None:
    assert all(getattr(evalstone.scorers, name) for name in dir(evalstone.scorers))  # imports all of them
    kinds = [kind for base in (*BASES, JudgeEvaluator) for kind in _below(base) if "evalstone." in kind.__module__]
    assert len(kinds) > 150
    assert [kind for kind in kinds if not vars(kind)["__dataclass_params__"].frozen] == []
