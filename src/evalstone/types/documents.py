"""Passages: the one reader behind data files, tables, dictionaries, `Sample(context=…)` and the answers of targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, TypeAlias, cast

from evalstone._core.guards import is_array, is_mapping, is_object, is_sequence
from evalstone._core.literals import written_list
from evalstone._core.names import normal
from evalstone.errors import DataError, invalid, of_another_type

Passages: TypeAlias = "str | Sequence[Any] | Set[Any]"
"""A text, or a list or a set of texts, objects with a text, or documents of a library, such as LangChain."""
_NAMES = ("text", "pagecontent", "content", "chunk", "passage", "passagetext", "contexts")
"""Where an object has the text of a passage."""
_AROUND = ("node", "document", "payload", "kwargs")
"""Where an object has the object with the text, such as a node of LlamaIndex beside its score."""
_ATTRIBUTES = ("page_content", "text", "content", "node")
"""What documents of libraries have, without being objects of JSON."""
_EXPECTED = "text or an object with text, page_content, content or chunk"


def read_passages(value: object) -> list[str | None]:
    """Passages in order, None for a missing one.

    A passage is a text, or an object with the text under `text`, `page_content`, `content` or `chunk`, also as the
    value of an attribute, or a pair of such an object and its score, or of a title and a list of sentences. An object
    whose values are all None is a missing passage. A text is the list or object that it writes out,
    or else one passage (see `written_list`). A set has no order, so its passages are sorted.

    Raises DataError for anything else. Its message continues the name of the field.
    """
    if isinstance(value, str):
        value = written_list(value, sets=True)
    return _passages(value)


def document_text(item: object, name: str) -> str | None:
    """The text of a document, as that of a passage; None if it has none, such as an image.

    name: What the document is called in errors.

    Raises DataError for anything that has no place for a text, or another value in it.
    """
    text = item if item is None or isinstance(item, str) else _inner(item)
    if isinstance(text, str) or item is None:
        return text
    values = _values(item)
    if values.keys().isdisjoint(_NAMES) or any(values.get(each) is not None for each in (*_NAMES, *_AROUND)):
        raise DataError(invalid(name, _EXPECTED, item))
    return None


def _passages(value: object) -> list[str | None]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Set):
        items = cast("Set[object]", value)
        return [*sorted(_passage(item, number) for number, item in enumerate(items, start=1) if item is not None)]
    for method in ("tolist", "to_list"):  # of numpy and pandas, of polars
        if callable(listed := getattr(value, method, None)):
            value = listed()
            break
    if is_sequence(value):
        return [None if _is_missing(item) else _passage(item, number) for number, item in enumerate(value, start=1)]
    if (titled := _titled(value)) is not None:
        return titled
    if (inner := _inner(value)) is not None:
        return _passages(inner)
    raise DataError(of_another_type("a list of passages", value))


def _is_missing(item: object) -> bool:
    """Whether there is no item: Parquet files and data frames may have objects without values for it."""
    return item is None or (is_object(item) and bool(item) and all(value is None for value in item.values()))


def _passage(item: object, number: int) -> str:
    if is_sequence(item) and len(item) == 2:
        first, second = item
        if isinstance(first, str) and is_array(second):
            return _under_title(first, second)  # of HotpotQA
        if isinstance(second, int | float):
            item = first  # a document and its score
    try:
        text = document_text(item, f"passage {number}")
    except DataError as error:
        raise DataError("must be a list of passages; ", error) from None
    if text is None:
        raise DataError("must be a list of passages; ", invalid(f"passage {number}", _EXPECTED, item))
    return text


def _inner(item: object) -> Any:
    """What an object has under the first of the names of a passage's text; None for anything else."""
    by_name = _values(item)
    text = next((by_name[name] for name in _NAMES if by_name.get(name) is not None), None)
    if text is not None:
        return text if is_mapping(item) or isinstance(text, str) else None
    around = next((by_name[name] for name in _AROUND if by_name.get(name) is not None), None)
    return None if around is None or isinstance(around, str) else _inner(around)


def _values(item: object) -> dict[str, Any]:
    """What an object has, by the names that it may have a text or another object under."""
    if is_mapping(item):
        return {normal(str(key)): value for key, value in item.items()}
    values = ((name, getattr(item, name)) for name in _ATTRIBUTES if hasattr(item, name))
    return {normal(name): value for name, value in values if not callable(value)}


def _titled(value: object) -> list[str | None] | None:
    """One passage per title from HotpotQA's format in Parquet files, {"title": […], "sentences": [[…], …]}; None for
    anything else.

    A title without sentences gives a blank passage.
    """
    entries: Mapping[str, Any] = value if is_object(value) else {}
    titles, texts = entries.get("title"), entries.get("sentences")
    if not is_array(titles) or not is_array(texts):
        return None
    if len(titles) != len(texts):
        raise DataError(f"must have sentences for every title; it has {len(titles)} titles and {len(texts)} lists")
    return [_under_title(title, sentences) for title, sentences in zip(titles, texts, strict=True)]


def _under_title(title: object, sentences: object) -> str:
    text = " ".join(text.strip() for text in _passages(sentences) if text)
    return f"{title}: {text}" if text else ""
