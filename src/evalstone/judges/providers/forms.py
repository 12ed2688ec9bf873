"""Answers of a caller's own type, voted on as data along their schema, and read back as that type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from evalstone._core.json import to_jsonable
from evalstone.errors import ReplyError
from evalstone.judges.voting import VerdictVote, VoteConfig, VoteResult, decided
from evalstone.questions.custom import AnswerAs
from evalstone.questions.reply import LabelOrder

_CHOICE = LabelOrder(ordered=False)


def settle_form(question: AnswerAs, values: Sequence[Any], ballot: VoteConfig) -> VoteResult[Any]:
    """One value of the question's type out of many.

    Voted on are its words out of a list, truth values and numbers, in objects within objects too; the rest, lists among
    it, comes from the answer that agrees with most of that. Where the parts that won do not make a value of the type
    (a model may have rules across its members), that answer is taken whole.
    """
    data = [to_jsonable(value) for value in values]
    schema = question.json_schema
    within = isinstance(data[0], dict) and set(cast("dict[str, Any]", data[0])) == set(schema["properties"])
    node = schema if within else schema["properties"]["answer"]
    found = _Along(schema.get("$defs", {}), ballot).settle(data, node, "")
    speaker = values[found.agreeing.index(max(found.agreeing))]
    try:
        value = question.from_json(found.value if within else {"reason": "", "answer": found.value})
    except ReplyError:
        value = speaker
    return VoteResult(value, found.verdicts, found.agreeing)


class _Along:
    """Voting along a schema."""

    def __init__(self, defined: Mapping[str, Any], ballot: VoteConfig) -> None:
        self.defined = defined
        self.ballot = ballot

    def settle(self, data: Sequence[Any], node: Mapping[str, Any], at: str) -> VoteResult[Any]:
        node = self._resolved(node)
        if "anyOf" in node:
            return self._either(data, [self._resolved(option) for option in node["anyOf"]], at)
        if "properties" in node and all(isinstance(one, dict) for one in data):
            return self._object([cast("dict[str, Any]", one) for one in data], node, at)
        if "enum" in node or node.get("type") == "boolean":
            return decided(data, _CHOICE, self.ballot, at, self.ballot.sure)
        if node.get("type") in ("integer", "number"):
            scale = LabelOrder(number=True, whole=node["type"] == "integer", ordered=False)
            return decided(data, scale, self.ballot, at, self.ballot.sure)
        return VoteResult(data[0], (), tuple(0.0 for _ in data))

    def _either(self, data: Sequence[Any], options: Sequence[Mapping[str, Any]], at: str) -> VoteResult[Any]:
        """One value of several forms: a vote on the form, such as whether there is a value at all, then one among the
        values of that form."""
        common = next((option for option in options if all(_fits(one, option) for one in data)), None)
        forms = [common or next((option for option in options if _fits(one, option)), options[-1]) for one in data]
        told = [_form_of(form, options) for form in forms]
        vote = decided(told, _CHOICE, self.ballot, at, self.ballot.sure)
        chosen = [place for place, name in enumerate(told) if name == vote.value]
        among = _Along(self.defined, VoteConfig(self.ballot.vote, tuple(self.ballot.sure[place] for place in chosen)))
        found = among.settle([data[place] for place in chosen], forms[chosen[0]], at)
        agreeing = dict(zip(chosen, found.agreeing, strict=True))
        # That all have one form is no verdict, but that there is no value is one.
        counts = len(set(told)) > 1 or data[chosen[0]] is None
        return VoteResult(
            found.value,
            (*(vote.verdicts if counts else ()), *found.verdicts),
            tuple(counts * vote.agreeing[place] + agreeing.get(place, 0.0) for place in range(len(data))),
        )

    def _object(self, data: Sequence[dict[str, Any]], node: Mapping[str, Any], at: str) -> VoteResult[Any]:
        verdicts: list[VerdictVote] = []
        agreeing = [0.0] * len(data)
        won: dict[str, Any] = {}
        for name, inner in node["properties"].items():
            if not all(name in one for one in data):
                continue
            found = self.settle([one[name] for one in data], inner, f"{at}.{name}" if at else name)
            if found.verdicts:
                won[name] = found.value
                verdicts += found.verdicts
                agreeing = [a + b for a, b in zip(agreeing, found.agreeing, strict=True)]
        speaker = data[agreeing.index(max(agreeing))]
        return VoteResult({**speaker, **won}, tuple(verdicts), tuple(agreeing))

    def _resolved(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        if "$ref" in node:
            return self._resolved(self.defined[str(node["$ref"]).rpartition("/")[2]])
        return node


def _fits(value: Any, node: Mapping[str, Any]) -> bool:
    """Whether a value has the form of one of several nodes of a schema; told by its kind alone."""
    if "enum" in node:
        return value in node["enum"]
    match node.get("type"):
        case "object":
            return isinstance(value, dict) and set(cast("dict[str, Any]", value)) == set(node.get("properties", ()))
        case "boolean":
            return isinstance(value, bool)
        case "integer" | "number" as kind:
            return isinstance(value, int if kind == "integer" else int | float) and not isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case "null":
            return value is None
        case _:
            return isinstance(value, str)


def _form_of(node: Mapping[str, Any], options: Sequence[Mapping[str, Any]]) -> str:
    """What one of several forms is called in the votes: its type, or its place where another has that as well."""
    kind = node.get("type", "words")
    alike = sum(option.get("type", "words") == kind for option in options)
    return "none" if kind == "null" else str(kind) if alike < 2 else f"form {options.index(node) + 1}"
