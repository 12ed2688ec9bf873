"""What a text writes out in the fields that are texts: a conversation, an object, or alternative references.

In most sources a text differs from a list or an object. In a CSV file it doesn't: what pandas, LangSmith or json.dumps
wrote for a list looks like an answer that is a list. A text is read where its column or its form tells what it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from contextlib import suppress
from typing import Any, cast

from evalstone._core.display import excerpt
from evalstone._core.guards import is_array, is_object
from evalstone._core.literals import written_list, written_value
from evalstone._core.names import normal
from evalstone.agents.formats.messages import is_conversation, is_parts
from evalstone.agents.formats.registry import translated
from evalstone.agents.formats.values import objects_in
from evalstone.errors import DataError

_LISTS_OF_ANSWERS = ("groundtruths", "answers", "expectedfacts", "referenceoutputs")
"""The columns for a reference whose text is a list or an object if it is written like one."""
_OBJECTS = ("vars", "expectations")
"""The columns that have objects, of promptfoo and MLflow."""
_OBJECTS_IN_CELLS = ("inputs", "outputs")
"""The columns that have objects in the CSV files of LangSmith. In other sources a text there is a text."""
_OF_DEEPEVAL = frozenset(("actualoutput", "expectedoutput", "retrievalcontext", "context", "sourcefile"))
"""Columns of all CSV and JSON Lines files that DeepEval's `save_as` writes, in which it joins passages by `|`."""
_ROLES = r"""["'](?:role|type|from)["']\s*+:\s*+["'](?:system|user|human|assistant|ai|gpt)["']"""
_PARTS = r"""["']type["']\s*+:\s*+["'](?:text|input_text|output_text)["']"""
_CONVERSATION = re.compile(rf"\s*+\[\s*+\{{(?=.*{_ROLES})", re.DOTALL)
_MESSAGE = re.compile(rf"\s*+(?:\{{(?=.*{_ROLES})|\[\s*+\{{(?=.*{_PARTS}))", re.DOTALL)
_PRINTED = re.compile(r"\s*+(?:\[\s*+)?(?:[A-Z]\w*Message(?:Chunk)?|ChatCompletion)\(\w++=")
_MAY_WRITE_OUT = re.compile(r"\s*+(?:[\[{(]|content=|[A-Z]\w*\()")
"""What every text begins with that `written_in_text` and `written_in_cell` don't leave as it is, and others do."""


def may_write_out(text: str) -> bool:
    """Whether the text of a column for text may be anything but itself. False only if `written_in_text` and
    `written_in_cell` return it."""
    return _MAY_WRITE_OUT.match(text) is not None


def is_text_column(column: str) -> bool:
    """Whether a text in a column is itself unless it `may_write_out`."""
    return _name(column) not in (*_LISTS_OF_ANSWERS, *_OBJECTS)


def is_ground_truth(field: str, column: str) -> bool:
    """Whether a column has Mastra's ground truth, which may be any JSON value."""
    return field == "reference" and _name(column) == "groundtruth"


def written_in_text(text: str, field: str, column: str) -> Any:
    """The conversation, message, object, ground truth or alternative references that a text writes out; any other text
    unchanged.

    Raises DataError for a list that is cut off or broken, and for messages as Python prints them.
    """
    if is_ground_truth(field, column):
        if not text.lstrip().startswith(("[", "(", "{")):
            return text
        with suppress(DataError):  # a text that only resembles a list is a ground truth like any other
            return text if _is_json(text) else written_value(text)  # JSON is compared as it is written
        return text
    if field == "reference" and _name(column) in _LISTS_OF_ANSWERS:
        return written_list(text)
    if _name(column) in _OBJECTS:
        return written_value(text)
    if field not in ("input", "output"):
        return text
    if _is_printed(text):
        raise DataError(f"must be text, not a message as Python prints it: {excerpt(text)}; save its text")
    if _CONVERSATION.match(text):
        value = written_value(text)
        return cast("Any", value) if is_array(value) and is_conversation(value) else text
    if _MESSAGE.match(text):
        with suppress(DataError):  # an answer may resemble a message
            value = written_value(text)
            return value if _is_message(value) else text
    return _messages_without_roles(text) or text


def written_in_cell(text: str, field: str, column: str) -> Any:
    """The object that a cell of a CSV file writes out in a column for objects, or a ground truth that is a list of one
    item or none; any other text unchanged.

    Raises DataError for what could be a text as well as an object or a list that would be read otherwise: an object as
    Python prints it, and a list of texts as the reference.
    """
    if text.lstrip()[:1] not in ("[", "{", "("):
        return text
    if is_ground_truth(field, column):
        value = json.loads(text) if _is_json(text) else None
        return cast("Any", value) if is_array(value) and len(value) < 2 else text
    name = _name(column)
    if name in _LISTS_OF_ANSWERS or name in _OBJECTS:
        return text
    try:
        value = written_value(text)
    except DataError:
        return text
    if is_object(value) and name in _OBJECTS_IN_CELLS:
        return value
    if is_object(value) and not _is_json(text) and not _is_message(value):
        raise DataError(
            f"must be text, not an object as Python prints it: {excerpt(text)}; save the data as JSON Lines, which "
            "tells objects from texts"
        )
    if field == "reference" and is_array(value) and _are_texts(value):
        raise DataError(
            f"must be text, not a list: {excerpt(text)}; name the column ground_truths if these are alternatives (the "
            "first is used), or ground_truth if the list is the answer"
        )
    return text


def check_not_joined(text: str, columns: Collection[str]) -> None:
    """Raise DataError for the context in a row of DeepEval's that may be several passages, joined by `|`.

    columns: the columns of the row.
    """
    if "|" in text and {normal(column) for column in columns} >= _OF_DEEPEVAL and written_list(text) == text:
        raise DataError(
            f"must be a list, not text with |, by which DeepEval joins passages: {excerpt(text)}; save the dataset "
            "with save_as('json'), which keeps lists"
        )


def _name(column: str) -> str:
    return normal(column.rpartition(".")[2])


def _is_printed(text: str) -> bool:
    """Whether a text is a message, or a list of messages, as LangChain and OpenAI print them."""
    if text.startswith(("content='", 'content="')):
        return " additional_kwargs={" in text and " response_metadata={" in text
    return _PRINTED.match(text) is not None and text.rstrip().endswith((")", ")]"))


def _messages_without_roles(text: str) -> list[Any] | None:
    """The messages in a JSON text of a format that has no roles; None for any other text."""
    if not text.lstrip().startswith("["):
        return None
    value = json.loads(text) if _is_json(text) else None
    objects = objects_in(value)
    return cast("list[Any]", value) if objects and translated(objects[0]) is not None else None


def _is_message(value: Any) -> bool:
    """Whether a value is a message or the list of its parts."""
    if is_array(value):
        return is_parts(value)
    entries = value if is_object(value) else {}
    return not entries.keys().isdisjoint(("content", "tool_calls")) and is_conversation([entries])


def _are_texts(items: list[Any]) -> bool:
    return any(isinstance(item, str) for item in items) and all(item is None or isinstance(item, str) for item in items)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
