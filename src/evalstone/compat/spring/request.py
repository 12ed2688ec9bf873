"""What an evaluator is given: a user's text, the documents, the response, and a reference answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from evalstone.errors import ConfigError

TEXT_NAMES = ("text", "content", "page_content")


@dataclass(frozen=True)
class EvaluationRequest:
    """One response to be judged, and what it is judged by.

    user_text: what the user asked. data_list: the documents that the response was to be written from; texts, or objects
    or mappings with a `text`, `content` or `page_content`, as the documents of Spring AI, LlamaIndex, Haystack and
    LangChain have. They are kept as texts: those without text (media) and blank ones are left out. One text counts as
    one document. response_content: the text that is judged. reference: the known good answer. metadata: anything else;
    never judged.

    Spring's short forms are written with names: `EvaluationRequest(user_text=…, response_content=…)` and
    `EvaluationRequest(data_list=…, response_content=…)`. Raises ConfigError when a field has the wrong type, and when
    there is no response; an empty response is one.
    """

    user_text: str = ""
    data_list: Sequence[object] = ()
    # A default only because the fields before it have one: without a response there is no request.
    response_content: str = cast(str, None)
    reference: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)

    def __post_init__(self) -> None:
        if cast(object, self.response_content) is None:
            raise ConfigError(
                "response_content is missing: there is nothing to judge; with two values, write "
                "EvaluationRequest(user_text=…, response_content=…) or "
                "EvaluationRequest(data_list=…, response_content=…)"
            )
        for name in ("user_text", "response_content", "reference"):
            value = getattr(self, name)
            if not isinstance(value, str) and not (name == "reference" and value is None):
                raise ConfigError(f"{name} must be text, not {type(value).__name__}")
        object.__setattr__(self, "data_list", document_texts(self.data_list))

    @property
    def documents(self) -> tuple[str, ...]:
        """The texts of the documents, in order."""
        return cast("tuple[str, ...]", self.data_list)


def document_texts(documents: object) -> tuple[str, ...]:
    """The texts of documents of any kind, in order, without blank ones. Raises ConfigError naming what has no text."""
    if isinstance(documents, str):
        documents = (documents,)
    if isinstance(documents, Mapping) or not isinstance(documents, Sequence):
        raise ConfigError(f"data_list must be a list of documents, not {type(cast(object, documents)).__name__}")
    items = cast("Sequence[object]", documents)
    texts = [_text(item, number) for number, item in enumerate(items, start=1)]
    return tuple(text for text in texts if text is not None and text.strip())


def _text(item: object, number: int) -> str | None:
    if item is None or isinstance(item, str):
        return item
    given = _fields(item)
    for name, value in given.items():
        if isinstance(value, str):
            return value
        if value is not None:
            raise ConfigError(f"document {number}: {name} must be text, not {type(value).__name__}")
    if given:
        return None
    kind = type(item).__name__
    raise ConfigError(f"document {number} must be text, or have text, content or page_content, not {kind}")


def _fields(item: object) -> dict[str, object]:
    """The fields of a document that may hold its text, in order. A method of such a name is none."""
    if isinstance(item, Mapping):
        mapping = cast("Mapping[str, object]", item)
        return {name: mapping[name] for name in TEXT_NAMES if name in mapping}
    found = {name: getattr(item, name) for name in TEXT_NAMES if hasattr(item, name)}
    return {name: value for name, value in found.items() if not callable(value)}
