"""Answers of a caller's own type, voted on as data along their schema, and read back as that type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from evalstone.errors import ReplyError
from evalstone.judges.verdicts import Scale
from evalstone.judges.voting import Ballot, Settled, VerdictVote, decided
from evalstone.plain import plain
from evalstone.questions.custom import AnswerAs

_CHOICE = Scale(ordered=False)


def settle_form(question: AnswerAs, values: Sequence[Any], ballot: Ballot) -> Settled[Any]:
    """One value of the question's type out of many.

    Voted on are its words out of a list, truth values and numbers, in objects within objects too; the rest, lists among
    it, comes from the answer that agrees with most of that. Where the parts that won do not make a value of the type
    (a model may have rules across its members), that answer is taken whole.
    """
    data = [plain(value) for value in values]
    schema = question.schema()
    within = isinstance(data[0], dict) and set(cast("dict[str, Any]", data[0])) == set(schema["properties"])
    node = schema if within else schema["properties"]["answer"]
    found = _Along(schema.get("$defs", {}), ballot).settle(data, node, "")
    speaker = values[found.agreeing.index(max(found.agreeing))]
    try:
        value = question.interpret(found.value if within else {"reason": "", "answer": found.value})
    except ReplyError:
        value = speaker
    return Settled(value, found.verdicts, found.agreeing)


class _Along:
    """Voting along a schema."""

    def __init__(self, defined: Mapping[str, Any], ballot: Ballot) -> None:
        self.defined = defined
        self.ballot = ballot

    def settle(self, data: Sequence[Any], node: Mapping[str, Any], at: str) -> Settled[Any]:
        node = self._resolved(node)
        if "properties" in node and all(isinstance(one, dict) for one in data):
            return self._object([cast("dict[str, Any]", one) for one in data], node, at)
        if "enum" in node or node.get("type") == "boolean":
            return decided(data, _CHOICE, self.ballot, at, self.ballot.sure)
        if node.get("type") in ("integer", "number"):
            scale = Scale(number=True, whole=node["type"] == "integer", ordered=False)
            return decided(data, scale, self.ballot, at, self.ballot.sure)
        return Settled(data[0], (), tuple(0.0 for _ in data))

    def _object(self, data: Sequence[dict[str, Any]], node: Mapping[str, Any], at: str) -> Settled[Any]:
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
        return Settled({**speaker, **won}, tuple(verdicts), tuple(agreeing))

    def _resolved(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        if "$ref" in node:
            return self._resolved(self.defined[str(node["$ref"]).rpartition("/")[2]])
        return node
