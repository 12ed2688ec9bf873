"""What decides in an answer: which members of it are verdicts, what they are verdicts on, and which is better.

A verdict is a word out of a fixed list, a yes or no, or a number. Reasons, citations and the lists that a judge makes
by itself (claims, toxic parts, what is missing) are none: nobody can say which of two lists is right.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args, get_origin

from evalstone.questions import (
    alignment,
    checklist,
    claims,
    context_statements,
    coverage,
    custom,
    grade,
    harm,
    rating,
    relevance,
    robustness,
    similarity,
    statements,
    tool_use,
)
from evalstone.questions.base import Question
from evalstone.questions.verdict import Choice


@dataclass(frozen=True)
class Scale:
    """What one verdict may be. worst_first: its words from the least favourable on; empty where no order is known.
    number: it is a number; where the order is known, the lower the worse. whole: it is a whole one. ordered: whether
    the order is known."""

    worst_first: tuple[Any, ...] = ()
    number: bool = False
    whole: bool = False
    ordered: bool = True


@dataclass(frozen=True)
class Verdict:
    """The verdicts in one kind of value, by field. of: the field that says what they are on."""

    scales: Mapping[str, Scale]
    of: str | None = None


_YES = Scale((False, True))
_BAD = Scale((True, False))
_NUMBER = Scale(number=True)


def _words(field: str, *worst_first: str, of: str | None = None) -> Verdict:
    return Verdict({field: Scale(worst_first)}, of)


KNOWN: Mapping[type, Verdict] = {
    claims.ClaimVerdict: _words("verdict", "contradicted", "not_mentioned", "supported", of="claim"),
    Choice: _words("verdict", "no", "undecided", "yes"),
    custom.Chosen: Verdict({"choice": Scale(ordered=False)}),
    custom.Number: Verdict({"score": _NUMBER}),
    grade.Grade: Verdict({"score": _NUMBER}),
    rating.Mark: Verdict({"score": Scale(number=True, whole=True)}),
    alignment.AlignmentPart: Verdict({"score": _NUMBER}),
    alignment.InstructionVerdict: _words("followed", "no", "not_applicable", "yes", of="instruction"),
    tool_use.ToolCallVerdict: Verdict({"appropriate": _YES}, "call"),
    tool_use.StepVerdict: Verdict({"necessary": _YES, "in_order": _YES}, "step"),
    checklist.CriterionVerdict: Verdict({"met": _YES}, "criterion"),
    context_statements.PassageStatement: Verdict({"relevant": _YES}, "statement"),
    coverage.QuestionVerdict: Verdict({"answered": _YES}, "question"),
    harm.OpinionVerdict: Verdict({"biased": _BAD}, "opinion"),
    harm.ToxicityVerdict: Verdict({"toxic": _BAD}, "part"),
    relevance.PassageRating: Verdict({"level": Scale(tuple(reversed(relevance.LEVELS))), "used": _YES}, "passage"),
    relevance.PassageVerdict: Verdict({"useful": _YES}, "passage"),
    robustness.NoiseImpact: Verdict({"impact": Scale(tuple(reversed(robustness.IMPACTS)))}, "dimension"),
    robustness.Robustness: Verdict({"robustness": _NUMBER}),
    similarity.StatementMatch: Verdict({"match": Scale(tuple(reversed(similarity.MATCHES)))}, "statement"),
    statements.StatementVerdict: _words("addresses", "no", "partly", "yes", of="statement"),
}


@functools.cache
def verdict_of(kind: type) -> Verdict:
    """The verdicts in a kind of value: as the table has them, else its fields that are a Literal, bool or number."""
    if (known := KNOWN.get(kind)) is not None:
        return known
    try:
        hints = typing.get_type_hints(kind)
    except NameError:  # a type of a function's own, whose names cannot be looked up from outside
        return Verdict({})
    scales = {field.name: _hinted(hints[field.name]) for field in dataclasses.fields(kind)}
    return Verdict({name: scale for name, scale in scales.items() if scale is not None})


def _hinted(hint: Any) -> Scale | None:
    if get_origin(hint) is Literal:
        return Scale(get_args(hint), ordered=False)
    if hint is bool:
        return Scale((False, True), ordered=False)
    return Scale(number=True, whole=hint is int, ordered=False) if hint in (int, float) else None


def is_votable(question: Question[Any]) -> bool:
    """Whether answers to a question hold verdicts outside lists that the judge makes.

    Read off the reply's schema: a word out of a list, true or false, or a number. Plain text counts as a verdict: the
    one question that is answered so asks for yes or no.
    """
    schema = question.schema()
    return schema is None or any(_decides(node) for node in nodes(schema, schema.get("$defs", {})))


def nodes(
    node: Mapping[str, Any], defined: Mapping[str, Any], seen: set[str] | None = None
) -> Iterator[Mapping[str, Any]]:
    """A schema's parts, the whole first, without what stands in lists; what is defined by name is gone into once."""
    seen = set() if seen is None else seen
    if "$ref" in node:
        name = str(node["$ref"]).rpartition("/")[2]
        if name in seen:
            return
        seen.add(name)
        node = defined[name]
    yield node
    for one in (*cast("Mapping[str, Any]", node.get("properties", {})).values(), *node.get("anyOf", ())):
        yield from nodes(one, defined, seen)


def _decides(node: Mapping[str, Any]) -> bool:
    return "enum" in node or node.get("type") in ("boolean", "integer", "number")
