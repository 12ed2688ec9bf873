"""A user's own template for an evaluator: checked when the evaluator is built, with Spring's names for the holes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from evalstone.prompt import Prompt
from evalstone.question import Question

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
_SINGLE = re.compile(r"((?<![\\{])\{\s*)([A-Za-z_][A-Za-z0-9_]*)(\s*\}(?!\}))")


def default_prompt(kind: type[Question[Any]]) -> Prompt:
    """The prompt that a kind of question is put with unless another is given."""
    return next(f.default for f in fields(kind) if f.name == "prompt" and isinstance(f.default, Prompt))


def own_prompt(given: Prompt | str, kinds: Sequence[type[Question[Any]]], form: str) -> Prompt:
    """A template with our names in its holes, fit for one of these kinds of question.

    A text is taken in single or double braces and gets `form`, which says how to reply, as its instructions. Raises
    PromptError naming the missing and the unknown holes, by the kind of question that the template fits best.
    """
    styles = (_DOUBLE, _SINGLE) if isinstance(given, str) else (_DOUBLE,)
    text = given if isinstance(given, str) else given.template
    style = next((style for style in styles if style.search(text)), styles[0])
    renamed = {kind: _rename(text, style, default_prompt(kind).holes) for kind in kinds}
    kind = min(kinds, key=lambda kind: len(set(default_prompt(kind).holes) ^ _names(renamed[kind], style)))
    default = default_prompt(kind)
    if isinstance(given, str):
        return Prompt.parse(
            renamed[kind], holes=default.holes, instructions=form if default.fenced else "", fenced=default.fenced
        )
    present = _names(text, style)
    passages = tuple(_ours(name, default.holes) if name in present else name for name in given.passages)
    prompt = replace(given, template=renamed[kind], passages=passages)
    prompt.check(default.holes)
    return prompt


def _names(text: str, style: re.Pattern[str]) -> set[str]:
    return {found.group(2) for found in style.finditer(text)}


def _rename(text: str, style: re.Pattern[str], wanted: Sequence[str]) -> str:
    return style.sub(lambda found: found.group(1) + _ours(found.group(2), wanted) + found.group(3), text)


def _ours(name: str, wanted: Sequence[str]) -> str:
    if name in wanted:
        return name
    return next((ours for ours in wanted if name in ALIASES.get(ours, ())), name)
