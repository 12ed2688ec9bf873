"""A user's own template for an evaluator: checked when the evaluator is built, with Spring's names for placeholders."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from evalstone._core.prompts import Prompt
from evalstone.errors import PromptError
from evalstone.questions.base import Question

# `context` stands last under `reference`: Spring AI Alibaba hands the known good answer over as context.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "question": ("query", "user_text", "input"),
    "answer": ("response", "student_answer", "actual_output", "response_content", "output"),
    "context": ("document", "documents", "data_list"),
    "document": ("context", "documents", "data_list"),
    "claim": ("response", "response_content"),
    "reference": ("correct_answer", "expected_output", "reference_output", "reference_answer", "context"),
}
_DOUBLE = re.compile(r"(\{\{\s*)([A-Za-z_][A-Za-z0-9_]*)(\s*\}\})")
_SINGLE = re.compile(r"((?<![\\{])\{\s*)([A-Za-z_][A-Za-z0-9_]*)(\s*\})")


def default_prompt(kind: type[Question[Any]]) -> Prompt:
    """The prompt that a kind of question is put with unless another is given."""
    return next(f.default for f in fields(kind) if f.name == "prompt" and isinstance(f.default, Prompt))


@dataclass(frozen=True)
class Reading:
    """A template read in one style of braces, for one kind of question."""

    text: str
    doubled: bool
    kind: type[Question[Any]]

    @property
    def style(self) -> re.Pattern[str]:
        return _DOUBLE if self.doubled else _SINGLE

    @property
    def wanted(self) -> tuple[str, ...]:
        return default_prompt(self.kind).placeholders

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the template's placeholders, as the user wrote them."""
        return _names(self.text, self.style)

    @property
    def missing(self) -> list[str]:
        present = {_ours(name, self.wanted) for name in self.names}
        return sorted(set(self.wanted) - present)

    @property
    def extra(self) -> list[str]:
        return sorted(name for name in self.names if _ours(name, self.wanted) not in self.wanted)

    @property
    def distance(self) -> tuple[int, bool, int]:
        """How far the reading is from what is wanted; one that finds no placeholder is no better than one that does."""
        return len(self.missing), not self.names, len(self.extra)

    @property
    def renamed(self) -> str:
        """The template with our names; in single braces, a name in two is text in one, as in Python's formats."""
        text = self.text if self.doubled else _DOUBLE.sub(r"\\{\2\\}", self.text)
        return self.style.sub(lambda found: found[1] + _ours(found[2], self.wanted) + found[3], text)

    def shown(self, name: str) -> str:
        """A placeholder as it is written in this style."""
        return "{{" + name + "}}" if self.doubled else "{" + name + "}"

    def check(self) -> None:
        """Raise PromptError unless the template has exactly the placeholders that are wanted."""
        told: list[str] = []
        if self.missing:
            told.append(f"the template lacks {', '.join(map(self._offered, self.missing))}")
        if strays := self._in_other_braces():
            which, others = ("single", "double") if self.doubled else ("double", "single")
            verb = "stands" if len(strays) == 1 else "stand"
            told.append(f"{', '.join(strays)} {verb} in {which} braces, where placeholders are read in {others} ones")
        if self.extra:
            named = "; ".join(self._unknown(name) for name in self.extra)
            what = "a placeholder" if len(self.extra) == 1 else "placeholders"
            told.append(f"the template has {what} that nothing fills: {named}")
        if told:
            raise PromptError("; ".join(told))

    def _offered(self, name: str) -> str:
        """A missing placeholder, with Spring's name for it where the template uses Spring's names."""
        spring = any(written not in self.wanted for written in self.names) and ALIASES.get(name)
        return f"{self.shown(name)} (or {self.shown(spring[0])})" if spring else self.shown(name)

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name.lower(), [*self.wanted, *_aliases(self.missing)], n=1, cutoff=0.5)
        offered = map(self.shown, near or sorted(self.wanted))
        return f"{self.shown(name)}; {'did you mean' if near else 'known:'} {', '.join(offered)}{'?' if near else ''}"

    def _in_other_braces(self) -> list[str]:
        """The placeholders that are missing only because they stand in the other style of braces."""
        other = Reading(self.text, not self.doubled, self.kind)
        return [other.shown(name) for name in other.names if _ours(name, self.wanted) in self.missing]


def own_prompt(given: Prompt | str, kinds: Sequence[type[Question[Any]]], form: str) -> Prompt:
    """A template with our names in its placeholders, fit for one of these kinds of question.

    A text is taken in single or double braces, whichever reading fits better, and gets `form`, which says how to reply,
    as its instructions. Raises PromptError naming the missing and the unknown placeholders as they are written, by the
    kind of question that the template fits best.
    """
    text = given if isinstance(given, str) else given.template
    if not text.strip():
        raise PromptError("the template is empty")
    styles = (True, False) if isinstance(given, str) else (True,)
    readings = (Reading(text, doubled, kind) for doubled in styles for kind in kinds)
    reading = min(readings, key=lambda reading: reading.distance)
    reading.check()
    default = default_prompt(reading.kind)
    if isinstance(given, str):
        return Prompt.parse(
            reading.renamed,
            placeholders=default.placeholders,
            braces="double" if reading.doubled else "single",
            instructions=form if default.fenced else "",
            fenced=default.fenced,
        )
    passages = tuple(_ours(name, default.placeholders) if name in reading.names else name for name in given.passages)
    prompt = replace(given, template=reading.renamed, passages=passages)
    prompt.check(default.placeholders)
    return prompt


def _aliases(placeholders: Sequence[str]) -> list[str]:
    return [alias for placeholder in placeholders for alias in ALIASES.get(placeholder, ())]


def _names(text: str, style: re.Pattern[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found[2] for found in style.finditer(text)))


def _ours(name: str, wanted: Sequence[str]) -> str:
    if name in wanted:
        return name
    return next((ours for ours in wanted if name in ALIASES.get(ours, ())), name)
