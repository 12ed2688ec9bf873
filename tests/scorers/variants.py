"""A sample that has every field, and other values than the default for every parameter of every scorer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalstone._core.text import sentences, words
from evalstone.judges import ScriptedJudge
from evalstone.scorers import Criterion, Penalties, TrajectoryWeights
from evalstone.scorers.needs import METADATA, TOOL_RESULTS, Need
from evalstone.types import Message, Sample, ToolCall, Trajectory, TrajectoryExpectation

FULL: dict[str, Any] = {
    "input": "When was Ada born?",
    "output": "In 1815. Not in 1816.",
    "context": ["Ada, 1815.", "Bob."],
    "reference": "1815.",
    "messages": [
        Message(role="user", content="When?"),
        Message(role="assistant", content="In 1815.", tool_calls=[ToolCall(name="search", state="call")]),
    ],
    "trajectory": Trajectory.read([{"step_type": "tool_call", "name": "search"}]),
    "expected_trajectory": TrajectoryExpectation.read([{"name": "search"}, {"name": "read"}]),
    "instructions": "Answer in one sentence.",
    "metadata": {"noisy_query": "When, in 1816?", "rubric": "- It names a year", "criterion": "A year is named"}
    | {"retrieved": ["a", "b"], "relevant": {"b": 2, "c": 1}, "goal": "Ada's year of birth", "topics": ["history"]},
}
STANDS_IN: Mapping[str, dict[str, Any]] = {
    TOOL_RESULTS: {
        "messages": [
            Message(role="user", content="When?"),
            Message(role="assistant", content="", tool_calls=[ToolCall(name="search", result="Ada, 1815.")]),
        ]
    },
    "messages": {
        "messages": [
            Message(role="user", content=FULL["input"]),
            Message(role="assistant", content=FULL["output"], tool_calls=[ToolCall(name="search", state="call")]),
        ]
    },
    "turns": {"turns": [{"input": FULL["input"], "output": FULL["output"]}]},
    "metadata.rubrics": {"metadata": {"rubrics": ["It names a year"]}},
    "metadata.requestContext.rubric": {"metadata": {"requestContext": {"rubric": "- It names a year"}}},
    "metadata.additionalContext.rubric": {"metadata": {"additionalContext": {"rubric": "- It names a year"}}},
}
"""Values of the fields that stand in for another one, where they aren't those of the full sample."""


def without(fields: Sequence[str]) -> dict[str, Any]:
    """The full sample without some fields, or entries of its metadata."""
    absent = {name.removeprefix(METADATA) for name in fields}
    metadata = {name: value for name, value in FULL["metadata"].items() if name not in absent}
    return {name: value for name, value in FULL.items() if name not in fields} | {"metadata": metadata}


def with_one(need: Need, field: str) -> Sample:
    """The full sample with one of the fields that meet a need, without the others."""
    values = without(need.fields)
    if field in STANDS_IN:
        added: dict[str, Any] = STANDS_IN[field]
    elif field.startswith(METADATA):
        name = field.removeprefix(METADATA)
        added = {"metadata": {name: FULL["metadata"][name]}}
    else:
        added = {field: FULL[field]}
    fields: dict[str, Any] = {**values, **added, "metadata": {**values["metadata"], **added.get("metadata", {})}}
    return Sample(**fields)


def passages_of(sample: Sample) -> Sequence[str]:
    return sample.context or ("none",)


def other_passages_of(sample: Sample) -> Sequence[str]:
    return ("other",)


def text_of(sample: Sample) -> str:
    return sample.input or "none"


def other_text_of(sample: Sample) -> str:
    return "other"


OTHERS: Mapping[str, list[Any]] = {
    "text": ["all", "first"],
    "scale": [10, 0.1, 0.1000001, 0.10000001, 1e-7, 100.0],
    "explain": [True],
    "judge": [ScriptedJudge([])],
    "beta": [0.5, 2.0],
    "context": [("a",), ("a", "b"), ("ab",)],
    "context_from": [passages_of, other_passages_of],
    "uncertainty_weight": [0.5, 0.0, 0.3000001, 0.30000001],
    "penalties": [
        Penalties(unused=0.05),
        Penalties(missing=0.2),
        Penalties(missing_limit=1),
        Penalties(unused=0.0500001),
    ],
    "high": [0.9],
    "medium": [0.6, 0.61],
    "low": [0.2],
    "none": [0.1],
    "tool": ["search"],
    "order": [("search",), ("search", "read")],
    "strict": [True],
    "tools": [("search",), ("search", "read")],
    "expected": [TrajectoryExpectation(), TrajectoryExpectation(max_steps=3)],
    "ordering": ["strict", "unordered"],
    "allow_repeated_steps": [False],
    "defaults": [TrajectoryExpectation(), TrajectoryExpectation(max_steps=3)],
    "weights": [TrajectoryWeights(accuracy=1), TrajectoryWeights(forbidden=0)],
    "necessary": [0.7],
    "in_order": [0.2],
    "missing": [0.05],
    "minimal": [0.8],
    "moderate": [0.5],
    "significant": [0.2],
    "severe": [0.05],
    "baseline": ["In 1815.", "1815."],
    "noisy_query": ["When, in 1816?"],
    "noise": ["misinformation"],
    "discrepancy": [0.1],
    "issue": [0.05],
    "issue_limit": [0.5],
    "semantic": [0.9],
    "exact_bonus": [0.0],
    "contradiction": [0.5],
    "extra": [0.01],
    "require_reference": [False],
    "mode": ["user", "system"],
    "history": [1, 10],
    "criteria": [(Criterion("It names a year"),), (Criterion("It names a year", required=False),)],
    "criterion": ["A year is named"],
    "instructions": [("Be brief.",), ("Be brief.", "Be kind.")],
    "source": ["Ada was born in 1815."],
    "source_from": [text_of, other_text_of],
    "max_questions": [5, 2.5],
    "compare_to": ["input", "reference"],
    "ignore_case": [False, True],
    "ignore_whitespace": [False, True],
    "lowercase": [True],
    "tokenize": ["char", "intl"],
    "smooth": ["none", "floor"],
    "word_order": [1, 2],
    "chrf.beta": [1, 3],
    "case_sensitive": [True],
    "normalized": [True],
    "no_punct": [True],
    "k": [1, 5],
    "min_grade": [1.0, 2],
    "gain": ["exponential"],
    "pairwise.compare_to": ["answer_of_b", "other"],
    "pairwise.criterion": ["It is shorter."],
    "elements": [words, sentences],
    "reference_tone": ["Good.", "Bad."],
    "threshold": [0.9],
    "on_undecided": ["fail", "raise"],
    "when_empty": ["fail"],
    "by_sentence": [False],
    "topics": [("history",), ("history", "baking")],
    "measure": ["precision", "recall", "accuracy"],
    "out_of_order": [0.0, 1],
    "arguments": ["subset", "ignore"],
    "longest": [50],
    "layout": ["minicheck"],
    "generate": [True],
}
