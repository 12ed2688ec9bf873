"""What scorers that are data share: a name of their own, and needs that follow from their templates."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from evalstone._core.json import to_jsonable
from evalstone._core.prompts import Material, Prompt
from evalstone.errors import ConfigError, PromptError, unknown
from evalstone.scorers.base import FIELDS, ContextScorer
from evalstone.types import Message, Sample

PLACEHOLDERS = ("input", "output", "context", "reference", "messages", "instructions")
SHOWN = ("input", "output")

_NAME = re.compile(r"[^\W\d]\w*")
_SINGLE = re.compile(r"(?<![\\{])\{\s*(" + "|".join(PLACEHOLDERS) + r")\s*\}(?!\})")


@dataclass(frozen=True, kw_only=True)
class CustomScorer(ContextScorer, ABC):
    """A scorer that is made of data, not written as a class.

    name: letters, digits and underscores; without one, the first words of what it asks. version: raise it when
    something changes that the signature does not show, such as a function that a step calls. lower_is_better: the
    direction. Passages are found as every scorer finds them: `context_from`, `context`, the sample, its tools' results.
    """

    unsigned: ClassVar[tuple[str, ...]] = ("name", "version")

    name: str = ""
    version: int = 1
    lower_is_better: bool = False

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", name_from(self.meaning()))
        elif not isinstance(cast(object, self.name), str) or not _NAME.fullmatch(self.name):
            raise ConfigError(f"a scorer's name has letters, digits and underscores only; it was {self.name!r}")
        super().__post_init__()

    @property
    @abstractmethod
    def needs(self) -> tuple[str, ...]:
        """The sample fields without which there is no score."""

    def values(self, sample: Sample) -> dict[str, Any]:
        found = {name: getattr(sample, name) for name in self.needs}
        if "context" in found:
            found["context"] = self.passages_for(sample)
        return found


def name_from(text: str) -> str:
    """A name made of a text's first words."""
    words = re.findall(r"[^\W_]+", re.sub(r"\{\{.*?\}\}", " ", text).lower())
    name = "_".join(words[:6])
    return name if _NAME.fullmatch(name) else f"scorer_{name}".rstrip("_")


def own_prompt(template: str, instructions: str, *, placeholders: Iterable[str] = PLACEHOLDERS) -> Prompt:
    """A prompt from a caller's template. Raises PromptError for an unknown placeholder, and for single braces."""
    if not template.strip():
        raise PromptError("the template is empty")
    allowed = tuple(placeholders)
    prompt = Prompt(instructions, template)
    for placeholder in prompt.placeholders:
        if placeholder not in allowed:
            problem = unknown("placeholder", placeholder, allowed)
            raise PromptError(f"the template has a placeholder that nothing fills: {problem}")
    if single := _SINGLE.search(template):
        raise PromptError(f"{single[0]} has single braces; a placeholder has two: {{{{{single[1]}}}}}")
    prompt.check(prompt.placeholders)
    return prompt


def with_fields(text: str, fields: Sequence[str] | None) -> str:
    """A template that shows the fields in front of the text, but for those that have a placeholder in it.

    Without fields: input and output, if the text has no placeholder at all.
    """
    present = Prompt("", text).placeholders
    wanted = (SHOWN if not present else ()) if fields is None else fields
    for field in wanted:
        if field not in PLACEHOLDERS:
            raise ConfigError(unknown("sample field", str(field), PLACEHOLDERS))
    shown = [f"{{{{{field}}}}}" for field in wanted if field not in present]
    return "\n\n".join([*shown, text])


def check_needs(names: Iterable[str]) -> tuple[str, ...]:
    """Names of sample fields, each once. Raises ConfigError for any other name."""
    found = tuple(dict.fromkeys([names] if isinstance(names, str) else names))
    for name in found:
        if name not in FIELDS:
            raise ConfigError(unknown("sample field", name, FIELDS))
    return found


def inputs(values: Mapping[str, Any]) -> dict[str, Material]:
    """What fills the placeholders of sample fields."""
    return {name: as_material(value) for name, value in values.items() if name in PLACEHOLDERS}


def as_material(value: Any) -> Material:
    """Any value as material: text and lists of texts as they are, messages a line each, other things as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        items = cast("Sequence[Any]", value)
        if all(isinstance(item, str) for item in items):
            return tuple(items)
        if all(isinstance(item, Message) for item in items):
            return tuple(line for message in items for line in _lines(message))
    return json.dumps(to_jsonable(value), ensure_ascii=False, indent=1)


def _lines(message: Message) -> list[str]:
    lines = [f"{message.role}: {message.content}"] if message.content.strip() or not message.tool_calls else []
    for call in message.tool_calls:
        arguments = json.dumps(to_jsonable(call.arguments), ensure_ascii=False)
        came = call.error if call.error is not None else json.dumps(to_jsonable(call.result), ensure_ascii=False)
        lines.append(f"{message.role} called {call.name}({arguments}): {came if call.state != 'call' else 'no result'}")
    return lines
