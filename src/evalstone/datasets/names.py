"""The field names of other tools, and which column becomes which sample field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

Ranks: TypeAlias = tuple[tuple[str, ...], ...]

FIELD_NAMES: Mapping[str, Ranks] = {
    "id": (
        ("id", "_id"),
        ("sample_id", "case_id", "test_case_id", "example_id", "item_id", "record_id"),
        ("uid", "uuid", "guid"),
        ("trace_id",),
    ),
    "input": (
        ("input",),
        ("user_input", "user_text", "user_query", "user_message", "input_messages", "inputs"),
        ("question", "query", "request"),
        ("prompt", "instruction"),
    ),
    "output": (
        ("output",),
        ("response", "actual_output", "response_content", "model_output", "model_response", "outputs"),
        ("answer", "completion", "generation", "prediction", "generated_answer"),
    ),
    "context": (
        ("retrieval_context",),
        ("context",),
        ("retrieved_contexts", "retrieved_context", "contexts"),
        ("documents", "passages", "data_list", "chunks", "ctxs", "retrieved_documents"),
    ),
    "reference": (
        ("reference",),
        ("expected_output", "expected_response", "expected_answer", "expected"),
        ("ground_truth", "reference_answer", "gold_answer", "correct_answer"),
        ("ground_truths", "answers", "ideal", "target", "expectations"),
        ("expected_facts",),
    ),
    "messages": (
        ("messages",),
        ("conversation", "conversations", "turns"),
        ("tools_called", "tool_calls"),
    ),
    "instructions": (
        ("instructions",),
        ("system_prompt", "system_message", "system_instructions", "system_instruction"),
        ("system",),
    ),
    "metadata": (
        ("metadata",),
        ("additional_metadata",),
    ),
    "trajectory": (
        ("trajectory",),
        ("actual_trajectory", "agent_trajectory"),
    ),
    "expected_trajectory": (
        ("expected_trajectory",),
        ("reference_trajectory",),
    ),
}
"""The names each sample field goes by, in ranks: an earlier rank wins, names of one rank are equals.

Case, `-`, `_` and blanks do not count. `retrieval_context` stands before `context`, because a deepeval row that has
both means the ideal context by the latter.
"""

CONTENT = frozenset(("input", "output", "context", "reference", "messages", "instructions", "trajectory"))
"""The fields of which a row must have one."""

_SEPARATORS = re.compile(r"[-_\s]+")


def normal(name: str) -> str:
    """A name without case and separators: `User_Input` and `userInput` are one name."""
    return _SEPARATORS.sub("", name).casefold()


_KNOWN: Mapping[str, tuple[str, int]] = {
    normal(name): (field, rank)
    for field, ranks in FIELD_NAMES.items()
    for rank, names in enumerate(ranks)
    for name in names
}

Claim: TypeAlias = tuple[tuple[int, bool], str]


def claims(columns: tuple[str, ...]) -> Mapping[str, tuple[Claim, ...]]:
    """For each sample field that some column claims: the columns with their ranks, the first rank first.

    The second part of a rank puts the field's own name, spelled as it is, before other spellings of it.
    """
    found: dict[str, list[Claim]] = {}
    for column in columns:
        known = _KNOWN.get(normal(column))
        if known is not None:
            field, rank = known
            respelled = column != field and normal(column) == normal(field)
            found.setdefault(field, []).append(((rank, respelled), column))
    return {field: tuple(sorted(items, key=lambda claim: claim[0])) for field, items in found.items()}


def inner_names(field: str) -> tuple[str, ...]:
    """The normal names under which an object may hold the text of a field: the field's own, then `text`, `content`."""
    return (*(normal(name) for rank in FIELD_NAMES[field] for name in rank), "text", "content")
