"""What a model judge's settings may be, and what is said of those that they may not be."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal

import pytest

from evalstone._core.declarations import TEXTS, Range, allowed_values, check_argument, check_settings
from evalstone._core.front_ends import COMMAND_LINE
from evalstone.errors import ConfigError
from evalstone.judges import LexicalJudge, ModelJudge, parse_judge
from evalstone.judges.embeddings import EmbeddingModel
from evalstone.models.limits import Limits
from evalstone.models.model import LanguageModel
from tests.refusals import refused

MODEL = "openai/gpt-5.1"
NAMES_OF_TEXTS = ("base_url", "api_key", "language", "reasoning_effort")
POSITIVE = ("context_window", "max_tokens")


def made(**settings: Any) -> ModelJudge:
    return ModelJudge(MODEL, **settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in NAMES_OF_TEXTS for value in (3, True, b"x", ["x"])),
        *((name, value) for name in POSITIVE for value in (0, -1, 1.5, "3", True, [1])),
        *(("temperature", value) for value in (-0.1, 2.1, "0", True, math.nan, math.inf)),
        *(("seed", value) for value in (1.0, "1", True)),
        *(("retries", value) for value in (-1, 1.0, "3", True, None)),
        *(
            (name, value)
            for name in ("timeout", "total_timeout")
            for value in (0, -1, "9", True, None, math.nan, math.inf)
        ),
        *(("timeout", value) for value in (10**400, 1j)),
        *(("logprobs", value) for value in (1, "yes")),
        *(("prices", value) for value in (3, "12", [1], [1, 2, 3], [1, "2"], [1, -1], [1, math.nan], [1, math.inf])),
        *(("prices", value) for value in ([True, 1], {1: 2, 3: 4}, {1, 2}, [10**400, 1])),
        *(("headers", value) for value in (None, "X: 1", [("X", "1")], {"X": 1}, {1: "X"}, {"X": None})),
    ],
)
def test_a_setting_of_the_wrong_kind_or_out_of_range_is_refused_by_name(name: str, value: Any):
    with pytest.raises(ConfigError, match=f"^{name} must be .+, not .+"):
        made(**{name: value})
    with pytest.raises(ConfigError, match=f"^{name} must be"):
        parse_judge({"model": MODEL, name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in NAMES_OF_TEXTS for value in (None, "http://x")),
        *((name, value) for name in POSITIVE for value in (None, 1, 10**9)),
        *(("temperature", value) for value in (None, 0, 2, 0.5)),
        *(("seed", value) for value in (None, 0, -1)),
        *(("retries", value) for value in (0, 5)),
        *((name, value) for name in ("timeout", "total_timeout") for value in (1, 0.001)),
        *(("logprobs", value) for value in (None, True, False)),
        *(("prices", value) for value in (None, (0, 0), (1.25, 10))),
        *(("headers", value) for value in ({}, {"X": "1"}, MappingProxyType({"X": "1"}))),
    ],
)
def test_a_setting_within_its_range_is_taken(name: str, value: Any):
    assert getattr(made(**{name: value}), name) == value


@pytest.mark.parametrize("name", ["requests_per_minute", "tokens_per_minute", "max_concurrency", "max_requests"])
@pytest.mark.parametrize("value", [-1, 1.5, "3", True, [1], math.nan])
def test_a_limit_that_is_not_a_whole_number_is_refused_by_name(name: str, value: Any):
    with refused(name, f"a whole number of {int(name != 'max_requests')} or more"):
        Limits(**{name: value})
    with pytest.raises(ConfigError, match=f"^{name} must be"):
        parse_judge({"model": MODEL, name: value})


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"retries": "3"}, "retries must be a whole number from 0 to 1000, not '3' (str)"),
        ({"temperature": 3}, "temperature must be a number from 0 to 2 or 'auto', not 3 (int)"),
        ({"timeout": 0}, "timeout must be a number above 0, not 0 (int)"),
        ({"seed": 1.5}, "seed must be a whole number, not 1.5 (float)"),
        ({"limits": 5}, "limits must be a Limits, not 5 (int)"),
        ({"logprobs": 1}, "logprobs must be true or false, not 1 (int)"),
        (
            {"prices": [1]},
            "prices must be two numbers of 0 or more, dollars per million input and output tokens, not [1] (list)",
        ),
    ],
)
def test_a_refusal_says_what_was_expected_and_what_came(settings: dict[str, Any], told: str):
    with pytest.raises(ConfigError) as raised:
        made(**settings)
    assert str(raised.value) == told


def test_a_refusal_shows_no_secret_and_no_long_value():
    for settings in ({"api_key": b"hidden"}, {"headers": {"X-Key": "hidden", "n": 1}}):
        with pytest.raises(ConfigError) as raised:
            made(**settings)
        assert "hidden" not in str(raised.value)
    with pytest.raises(ConfigError) as raised:
        made(retries="x" * 100_000)
    assert len(str(raised.value)) < 200


def test_a_price_from_a_file_is_a_value():
    judge = parse_judge({"model": MODEL, "prices": [1, 10]})
    assert isinstance(judge, ModelJudge)
    assert judge.prices == (1, 10)
    assert made(prices=[1, 10]).prices == (1, 10)
    assert pickle.loads(pickle.dumps(judge)).prices == (1, 10)


@pytest.mark.parametrize("model", [3, None, b"openai/x", ["openai/x"]])
def test_a_model_that_is_no_text_is_refused(model: Any):
    with pytest.raises(ConfigError, match=r"^model must"):
        ModelJudge(model)


@pytest.mark.parametrize("spec", [3, None, "", [MODEL], b"lexical", ModelJudge, LexicalJudge])
def test_what_is_no_judge_is_told_what_a_judge_is(spec: Any):
    with pytest.raises(ConfigError, match=r"^a judge is `lexical`"):
        parse_judge(spec)


def test_a_table_with_odd_names_is_refused_and_not_stumbled_over():
    odd: Any = {3: 1, "seed": 1}
    with pytest.raises(ConfigError, match="needs a model"):
        parse_judge(odd)
    with pytest.raises(ConfigError, match=r"lexical .* 3, seed$"):
        parse_judge({"model": "lexical", **odd})
    with pytest.raises(ConfigError, match="unknown setting '3'"):
        parse_judge({"model": MODEL, **odd})


def test_an_error_carries_the_field_its_value_and_what_is_allowed():
    allowed = "a whole number from 0 to 1000"
    with pytest.raises(ConfigError) as raised:
        made(retries=-1)
    for error in (raised.value, pickle.loads(pickle.dumps(raised.value))):
        assert (error.field, error.value, error.allowed) == ("retries", -1, allowed)
    with pytest.raises(ConfigError) as raised:
        made(api_key=b"hidden")
    assert (raised.value.field, raised.value.value) == ("api_key", None)


@dataclass(frozen=True)
class Declared:
    """Each kind of annotation."""

    share: Annotated[float, Range(0, 1, exclusive=True)] = 1.0
    word: Literal["a", "b"] = "a"
    flag: bool = False
    optional: Annotated[int | None, Range(1)] | None = None
    names: Annotated[Sequence[str], TEXTS] = ()
    plain: int = 0
    share_of: float | None = None
    items: tuple[str, ...] = ()
    unknown: Nowhere = None  # type: ignore[name-defined]  # noqa: F821 # pyright: ignore[reportUndefinedVariable]

    def __post_init__(self) -> None:
        check_settings(self, "declared")


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("share", 0, "a number above 0 and up to 1"),
        ("share", True, "a number above 0 and up to 1"),
        ("word", "c", "'a' or 'b'"),
        ("flag", 1, "true or false"),
        ("optional", 0, "a whole number of 1 or more"),
        ("names", "ab", "a list of texts that are not blank"),
        ("names", ["a", " "], "a list of texts that are not blank"),
    ],
)
def test_a_class_of_the_users_own_is_checked_for_what_it_declares(field: str, value: Any, allowed: str):
    with refused(field, allowed):
        Declared(**{field: value})
    assert allowed_values(Declared)[field] == allowed


def test_what_is_not_checked_is_shown_by_its_type():
    shown = allowed_values(Declared)
    assert (shown["plain"], shown["share_of"], shown["items"]) == (
        "a whole number",
        "a finite number",
        "a list of texts",
    )
    assert shown["unknown"] == ""


def test_plain_types_of_the_users_own_classes_are_not_checked():
    anything: Any = object()
    assert Declared(plain=anything, unknown=anything).plain is anything


def test_a_list_becomes_the_tuple_that_its_field_holds():
    assert Declared(names=["a", "b"]).names == ("a", "b")
    assert hash(Declared(names=["a"])) == hash(Declared(names=("a",)))


@pytest.mark.parametrize("kind", [ModelJudge, Limits, EmbeddingModel, LanguageModel])
def test_every_setting_of_a_model_declares_what_it_may_be(kind: type[Any]):
    assert all(allowed_values(kind).values())


@pytest.mark.parametrize(
    ("declared", "value", "kept"),
    [
        (tuple[int, int], [1, 2], (1, 2)),
        (tuple[int, ...], [1, 2, 3], (1, 2, 3)),
        (tuple[int, int] | None, [1, 2], (1, 2)),
        (tuple[int, int] | None, None, None),
        (Annotated[Sequence[str] | None, TEXTS], None, None),
        (Annotated[Sequence[str] | None, TEXTS], ["a"], ("a",)),
        (list[int], (1, 2), [1, 2]),
        (tuple, [1, "a"], (1, "a")),
        (object, 5, 5),
        (Any, 5, 5),
        (Annotated[int, Range(1, 3)], 3, 3),
    ],
)
def test_an_argument_is_kept_as_it_is_declared(declared: Any, value: Any, kept: Any):
    read = check_argument("x", value, declared)
    assert (read, type(read)) == (kept, type(kept))


@pytest.mark.parametrize(
    ("declared", "value", "told"),
    [
        (tuple[int, int], [1, 2, 3], "x must be 2 whole numbers, not [1, 2, 3] (list)"),
        (tuple[int, int], [1], "x must be 2 whole numbers, not [1] (list)"),
        (tuple[int, int], None, "x must be 2 whole numbers, not None (NoneType)"),
        (Annotated[Sequence[str], TEXTS], None, "x must be a list of texts that are not blank, not None (NoneType)"),
        (int, "https://user:pa55word@host", "x must be a whole number, not 'https://user:***@host' (str)"),
    ],
)
def test_a_refused_argument_is_shown_without_secrets(declared: Any, value: Any, told: str):
    with pytest.raises(ConfigError) as raised:
        check_argument("x", value, declared)
    assert str(raised.value) == told
    assert raised.value.text(COMMAND_LINE) == f"--{told}"
    assert "pa55word" not in repr(raised.value.value)
    with pytest.raises(ConfigError) as raised:
        check_argument("x", value, declared, "Thing")
    assert raised.value.text(COMMAND_LINE) == f"Thing: {told}"


def test_a_plain_type_beside_an_explicit_one_is_not_checked_in_a_class_of_ones_own():
    @dataclass(frozen=True)
    class Own:
        x: float | Literal["auto"] = 1.0
        y: bool | Literal["auto"] = False

    check_settings(Own(x="other"))  # type: ignore[arg-type]
    with refused("y", "true or false or 'auto'"):
        check_settings(Own(y=1))  # type: ignore[arg-type]
