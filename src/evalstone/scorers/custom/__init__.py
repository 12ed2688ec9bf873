"""Scorers made from data or functions instead of a class, and what they share: names, and fields from placeholders."""

from __future__ import annotations

import json
import re
from abc import ABC
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from evalstone._core.declarations import check_settings
from evalstone._core.guards import is_sequence, is_texts
from evalstone._core.json import to_jsonable
from evalstone._core.prompts import Material, Prompt
from evalstone.errors import ConfigError, PromptError, unknown
from evalstone.scorers.base import SCORER_NAME
from evalstone.scorers.sources import ContextScorer
from evalstone.types import Message

PLACEHOLDERS = ("input", "output", "context", "reference", "messages", "instructions")
DEFAULT_FIELDS = ("input", "output")

_SINGLE = re.compile(r"(?<![\\{])\{\s*(" + "|".join(PLACEHOLDERS) + r")\s*\}(?!\})")


class CustomScorer(ContextScorer, ABC):
    """A scorer made from data, not written as a class. Its `required_fields` are set on the instance.

    Attributes:
        name: Letters, digits and underscores; by default the first words of the question or criterion.
        version: Increase it when something changes that the signature does not show, such as a function that a step
            calls.
        lower_is_better: Whether a lower score is better.
    """

    name: Annotated[str, SCORER_NAME] = ""  # pyright: ignore[reportIncompatibleVariableOverride] - a field where scorers are data
    version: int = 1  # pyright: ignore[reportIncompatibleVariableOverride]
    lower_is_better: bool = False  # pyright: ignore[reportIncompatibleVariableOverride]

    def __post_init__(self) -> None:
        # Before the name is made from them.
        check_settings(self, self.name if SCORER_NAME.holds(self.name) else type(self).__name__)
        if not self.name:
            object.__setattr__(self, "name", name_from(self.description()))
        super().__post_init__()


def is_field(placeholder: str) -> bool:
    """Whether a placeholder is a field of the sample, or an entry of its metadata: `metadata.NAME`."""
    return placeholder in PLACEHOLDERS or placeholder.startswith("metadata.")


def name_from(text: str) -> str:
    """A name made from a text's first words."""
    words = re.findall(r"[^\W_]+", re.sub(r"\{\{.*?\}\}", " ", text).lower())
    name = "_".join(words[:6])
    return name if SCORER_NAME.holds(name) else f"scorer_{name}".rstrip("_")


def template_prompt(template: str, instructions: str, *, placeholders: Iterable[str] = PLACEHOLDERS) -> Prompt:
    """The prompt of a user's template. Raises PromptError for an unknown placeholder, and for single braces."""
    if not template.strip():
        raise PromptError("the template is empty")
    known = tuple(placeholders)
    prompt = Prompt(instructions, template)
    for placeholder in prompt.placeholders:
        if placeholder not in known and not is_field(placeholder):
            raise PromptError(
                "the template has a placeholder that nothing fills: ", unknown("placeholder", placeholder, known)
            )
    if single := _SINGLE.search(template):
        raise PromptError(f"{single[0]} has single braces; a placeholder has two: {{{{{single[1]}}}}}")
    prompt.check(prompt.placeholders)
    return prompt


def with_fields(text: str, fields: Sequence[str] | None) -> str:
    """A template that shows the fields before the text, except for fields with a placeholder in it.

    If fields is None, it shows input and output before a text that has no placeholder at all.
    """
    present = Prompt("", text).placeholders
    names = (DEFAULT_FIELDS if not present else ()) if fields is None else fields
    for name in names:
        if not is_field(name):
            raise ConfigError(unknown("sample field", str(name), PLACEHOLDERS))
    shown = [f"{{{{{name}}}}}" for name in names if name not in present]
    return "\n\n".join([*shown, text])


def inputs(values: Mapping[str, Any]) -> dict[str, Material]:
    """The values for the placeholders of sample fields."""
    return {name: as_material(value) for name, value in values.items() if is_field(name)}


def as_material(value: Any) -> Material:
    """Any value for a prompt: texts and lists of texts unchanged, messages one per line, anything else as JSON."""
    if isinstance(value, str):
        return value
    if is_texts(value):
        return tuple(value)
    if is_sequence(value) and all(isinstance(item, Message) for item in value):
        return tuple(line for message in value for line in _lines(message))
    return json.dumps(to_jsonable(value), ensure_ascii=False, indent=1)


def _lines(message: Message) -> list[str]:
    lines = [f"{message.role}: {message.content}"] if message.content.strip() or not message.tool_calls else []
    for call in message.tool_calls:
        arguments = json.dumps(to_jsonable(call.arguments), ensure_ascii=False)
        result = call.error if call.error is not None else json.dumps(to_jsonable(call.result), ensure_ascii=False)
        result = "no result" if call.state == "call" else result
        lines.append(f"{message.role} called {call.name}({arguments}): {result}")
    return lines
