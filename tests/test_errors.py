from __future__ import annotations

import inspect
import pickle
import re
import time
from collections.abc import Callable
from typing import Any, cast

import pytest

from evalstone import errors, load, parse_judge
from evalstone._core.front_ends import Setting
from evalstone.errors import (
    ConfigError,
    DataError,
    EvalstoneError,
    JudgeDeclined,
    JudgeError,
    LedgerError,
    MissingDependency,
    Problem,
    ReplyError,
    RunAborted,
    absent,
    invalid,
    near,
    repeated,
    unknown,
)
from evalstone.scorers import SCORERS
from evalstone.targets import parse_target
from evalstone.targets.users import parse_user

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, EvalstoneError)]


def drawn_tree() -> dict[str, str]:
    """Each class in the docstring's drawing, and the class that it hangs under."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"    ((?:│   |    )*(?:[├└]── )?)([A-Z]\w+)\b", line):
            depth = len(found[1]) // 4
            path = [*path[:depth], found[2]]
            parents[found[2]] = path[depth - 1] if depth else "Exception"
    return parents


def test_the_tree_in_the_docstring_is_the_tree_of_the_classes():
    assert drawn_tree() == {kind.__name__: kind.__bases__[0].__name__ for kind in CLASSES}


def test_the_errors_that_callers_catch_are_exported_at_the_top():
    import evalstone  # noqa: PLC0415

    exported = {kind for name in evalstone.__all__ if isinstance(kind := getattr(evalstone, name), type)}
    assert {ConfigError, EvalstoneError, JudgeError, RunAborted, LedgerError} <= exported


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if kind is not MissingDependency], ids=lambda k: k.__name__)
def test_every_error_survives_pickling(kind: type[EvalstoneError]):
    copy = pickle.loads(pickle.dumps(kind("what came")))
    assert type(copy) is kind
    assert str(copy) == "what came"


def test_a_missing_extra_survives_pickling():
    copy = pickle.loads(pickle.dumps(MissingDependency("pyarrow", "parquet")))
    assert isinstance(copy, MissingDependency)
    assert (copy.kind, copy.field, copy.extra) == ("dependency", "pyarrow", "parquet")
    assert "[parquet]" in str(copy)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (ConfigError("x"), ValueError),
        (DataError("x"), ValueError),
        (MissingDependency("pandas", "pandas"), ImportError),
    ],
)
def test_code_that_knows_only_python_catches_what_its_caller_can_fix(error: ConfigError, builtin: type[Exception]):
    with pytest.raises(builtin) as caught:
        raise error
    assert caught.value is error


def test_a_missing_extra_has_the_name_of_an_import_error():
    assert MissingDependency("pandas", "pandas").name == "pandas"


def test_a_judge_error_keeps_the_raw_reply_also_when_pickled():
    error = ReplyError("no", reply="raw")
    assert error.reply == "raw"
    assert pickle.loads(pickle.dumps(error)).reply == "raw"
    assert JudgeError("no").reply is None


def test_a_judge_that_declines_is_no_broken_reply():
    assert not issubclass(JudgeDeclined, ReplyError)


SECRET = "sk-" + "a1B2c3D4" * 4
SAID = [
    (
        unknown("scorer", "fathfulness", ["recall", "faithfulness"]),
        "unknown scorer 'fathfulness'; did you mean faithfulness?",
    ),
    (unknown("judge", "zzz", ["b", "a"]), "unknown judge 'zzz'; known: a, b"),
    (unknown("parameter", "heat", []), "unknown parameter 'heat'; known: none"),
    (invalid("trials", "a whole number from 1 to 100", 0), "trials must be a whole number from 1 to 100, not 0"),
    (invalid(Setting("alpha"), "below 0.5", 0.7), "alpha must be below 0.5, not 0.7"),
    (invalid("a pair", "2 items", 3, verb="must have"), "a pair must have 2 items, not 3"),
    (invalid("name", "text", 1, "int: 1"), "name must be text, not int: 1"),
    (invalid("", "an object", []), "must be an object, not []"),
    (absent("steps", "steps is missing"), "steps is missing"),
    (repeated("--min", "f1", "--min names f1 twice"), "--min names f1 twice"),
]


@pytest.mark.parametrize(("problem", "said"), SAID, ids=[said for _, said in SAID])
def test_what_is_wrong_is_a_sentence(problem: Problem, said: str):
    assert str(problem) == str(ConfigError(problem)) == said


def test_an_error_has_what_is_wrong_as_values():
    error = ConfigError("the guard: ", unknown("scorer", "fathfulness", ["recall", "faithfulness"]))
    assert (error.kind, error.field, error.value) == ("unknown", "scorer", "fathfulness")
    assert (error.known, error.near) == (("faithfulness", "recall"), ("faithfulness",))
    error = ConfigError(invalid(Setting("alpha"), "below 0.5", 0.7))
    assert (error.kind, error.field, error.value, error.allowed) == ("invalid", "alpha", 0.7, "below 0.5")
    error = ConfigError(absent("steps", "no steps", known=["b", "a"]))
    assert (error.kind, error.field, error.known) == ("missing", "steps", ("a", "b"))
    error = ConfigError(repeated("scorers", "f1", "f1 stands twice"))
    assert (error.kind, error.field, error.value) == ("repeated", "scorers", "f1")
    error = ConfigError("it is too dark")
    assert (error.kind, error.field, error.value, error.allowed, error.known, error.near) == ("", "", None, "", (), ())


def test_an_error_that_quotes_another_has_its_values_also_when_pickled():
    inner = ConfigError(invalid("trials", "1 or more", 0)).advised("use trials=1")
    outer = pickle.loads(pickle.dumps(DataError("cases.jsonl, line 3: ", inner)))
    assert str(outer) == f"cases.jsonl, line 3: {inner}"
    assert (outer.kind, outer.field, outer.value, outer.allowed) == ("invalid", "trials", 0, "1 or more")
    located = ConfigError(invalid("trials", "1 or more", 0)).located("line 3: ")
    assert (located.field, str(located).startswith("line 3: trials")) == ("trials", True)


def test_an_error_is_plain_data():
    error = ConfigError(unknown("judge", "zzz", ["b", "a"])).advised("see evalstone judges")
    assert error.to_dict() == {
        "error": "ConfigError",
        "message": error.problem,
        "advice": "see evalstone judges",
        "kind": "unknown",
        "field": "judge",
        "value": "zzz",
        "known": ["a", "b"],
    }
    assert RunAborted("late").to_dict() == {"error": "RunAborted", "message": "late"}


def test_an_invalid_empty_text_is_in_the_plain_data():
    assert ConfigError(invalid("log", "a path", "")).to_dict()["value"] == ""


def test_the_value_of_an_error_has_no_secrets_and_can_be_pickled():
    assert SECRET not in str(ConfigError(invalid("log", "a path", f"Bearer {SECRET}")).to_dict())
    error = ConfigError(invalid("read", "a plain function", lambda: None))
    assert isinstance(pickle.loads(pickle.dumps(error)).value, str)


@pytest.mark.parametrize(
    ("name", "known", "guesses"),
    [
        ("FAITHFULNESS", ["faithfulness"], ("faithfulness",)),
        ("f1", ["f1_tokens", "tool_called", "tool_order", "no_tool_calls", "no_tool_errors"], ("f1_tokens",)),
        ("tool", ["f1_tokens", "tool_called", "tool_order", "no_tool_calls", "no_tool_errors"], ()),
    ],
)
def test_an_unknown_name_is_near_names_that_few_have_in_common(name: str, known: list[str], guesses: tuple[str, ...]):
    assert unknown("scorer", name, known).near == guesses


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("token_f1", "f1_tokens"),
        ("f1_score", "f1_tokens"),
        ("answer_relevance", "answer_relevancy"),
        ("hallucinations", "hallucination"),
        ("HallucinationMetric", "hallucination"),
        ("exactmatch", "exact_match"),
        ("bleu_score", "bleu"),
        ("rougeL", "rouge_l"),
        ("rouge", "rouge_l"),
        ("levenstein", "levenshtein"),
        ("valid_json", "json_valid"),
        ("is_json", "json_valid"),
        ("toxic", "toxicity"),
        ("bias_score", "bias"),
        ("contextual_recall", "context_recall"),
        ("tool_accuracy", "tool_call_accuracy"),
        ("ndcg", "ndcg_at_k"),
        ("number_match", "numeric_match"),
        ("instruction_following", "instruction_alignment"),
        ("factuality", "factual_correctness"),
    ],
)
def test_the_nearest_name_of_a_scorer_has_the_same_words(name: str, first: str) -> None:
    assert near(name, SCORERS)[0] == first


def test_a_name_that_is_too_long_for_a_misspelling_is_near_nothing() -> None:
    assert near("faithfulness_" * 50_000, SCORERS) == []


def test_an_unknown_name_near_several_is_told_with_at_most_three():
    found = unknown("field", "context_", ["context_a", "context_b", "context_c", "context_d"])
    assert len(found.near) == 3
    assert str(found).endswith(f"{found.near[0]} or {found.near[1]} or {found.near[2]}?")


def test_an_unknown_name_of_great_length_is_told_without_delay():
    started = time.process_time()
    unknown("scorer", "x" * 1_000_000, ["faithfulness", "recall"])
    assert time.process_time() - started < 20


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("judge", lambda: parse_judge(cast("Any", 5))),
        ("model", lambda: parse_judge({"model": 5})),
        ("panel", lambda: parse_judge({"panel": 5})),
        ("target", lambda: parse_target(5)),
        ("user", lambda: parse_user(5)),
        ("map", lambda: load([{"input": "q"}], map=cast("Any", 5))),
    ],
)
def test_what_is_of_another_type_is_named_with_its_value(field: str, call: Callable[[], object]) -> None:
    with pytest.raises(ConfigError) as raised:
        call()
    assert (raised.value.kind, raised.value.field, raised.value.value) == ("invalid", field, 5)
