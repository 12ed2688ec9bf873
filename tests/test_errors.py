from __future__ import annotations

import importlib.metadata
import inspect
import pickle
import re
import time

import pytest

from evalstone import errors
from evalstone.errors import (
    ConfigError,
    EvalstoneError,
    JudgeDeclined,
    JudgeError,
    LedgerError,
    MissingDependency,
    ReplyError,
    RunAborted,
    near,
    requirements,
    unknown,
)
from evalstone.scorers import SCORERS

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


def test_a_missing_extra_survives_pickling_with_its_install_line():
    copy = pickle.loads(pickle.dumps(MissingDependency("pyarrow", "parquet")))
    assert str(copy) == 'pyarrow is not installed; install it with: pip install "pyarrow>=18"'
    assert isinstance(copy, ConfigError)


def test_a_missing_extra_names_the_libraries_that_it_installs():
    assert requirements("otel").split()[0].startswith('"opentelemetry-')
    extras = importlib.metadata.metadata("evalstone").get_all("Provides-Extra") or []
    assert {"metrics", "otel", "parquet", "providers", "postgres"} <= {*extras}
    assert all(requirements(extra).startswith('"') for extra in extras)
    assert "pydantic-ai-slim[anthropic,google]" in requirements("providers")


def test_a_judge_error_keeps_the_raw_reply_also_when_pickled():
    error = ReplyError("no", reply="raw")
    assert error.reply == "raw"
    assert pickle.loads(pickle.dumps(error)).reply == "raw"
    assert JudgeError("no").reply is None


def test_a_judge_that_declines_is_no_broken_reply():
    assert not issubclass(JudgeDeclined, ReplyError)


def test_an_unknown_name_is_told_with_the_nearest_known_ones():
    assert unknown("scorer", "fathfulness", ["recall", "faithfulness"]) == (
        "unknown scorer 'fathfulness'; did you mean faithfulness?"
    )


def test_an_unknown_name_in_capitals_is_told_with_the_nearest_one():
    assert "did you mean faithfulness?" in unknown("scorer", "FAITHFULNESS", ["faithfulness"])


def test_an_unknown_name_that_is_a_word_of_known_ones_is_told_with_them():
    names = ["f1_tokens", "tool_called", "tool_order", "no_tool_calls", "no_tool_errors"]
    assert unknown("scorer", "f1", names) == "unknown scorer 'f1'; did you mean f1_tokens?"
    assert "known: f1_tokens, no_tool_calls" in unknown("scorer", "tool", names)


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


def test_an_unknown_name_near_nothing_is_told_with_all_known_ones_sorted():
    assert unknown("judge", "zzz", ["b", "a"]) == "unknown judge 'zzz'; known: a, b"


def test_an_unknown_name_where_none_is_known_is_told_so():
    assert unknown("parameter", "heat", []) == "unknown parameter 'heat'; known: none"


def test_an_unknown_name_near_several_is_told_with_at_most_three():
    told = unknown("field", "context_", ["context_a", "context_b", "context_c", "context_d"])
    assert told.count(" or ") == 2


@pytest.mark.no_cover
def test_an_unknown_name_of_great_length_is_told_without_delay():
    started = time.process_time()
    unknown("scorer", "x" * 1_000_000, ["faithfulness", "recall"])
    assert time.process_time() - started < 20
