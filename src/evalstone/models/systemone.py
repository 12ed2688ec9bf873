"""TypeSafe's protocol of decision models (`POST /v1/systemone`), which llama.cpp, vLLM and gateways serve too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalstone.errors import ReplyError
from evalstone.models.decisions import DecisionProvider, check_present, predicate
from evalstone.models.replies import as_object, shown
from evalstone.models.typed_questions import State, TypedQuestion


class SystemOne(DecisionProvider):
    """A decision model that takes named questions about one state."""

    path = "/v1/systemone"
    too_long = "max_tokens_exceeded"

    def payload(self, state: State, decisions: Sequence[TypedQuestion]) -> dict[str, Any]:
        return {"model": self.name, "state": state, "questions": {each.name: _question(each) for each in decisions}}

    def answers(self, data: Mapping[str, Any], decisions: Sequence[TypedQuestion]) -> Sequence[Mapping[str, Any]]:
        answers = as_object(data.get("answers"))
        asked = {decision.name for decision in decisions}
        if unknown := [name for name in answers if name not in asked]:
            raise ReplyError(f"there is an answer to {unknown[0]!r:.60}, which was not asked")
        return [_probabilities(decision, answers.get(decision.name)) for decision in decisions]


def _question(decision: TypedQuestion) -> dict[str, Any]:
    question: dict[str, Any] = {"instructions": decision.instructions}
    if decision.kind == "predicate":
        question = {"type": "noul", **question}
        if any(decision.options.values()):
            question["criteria"] = {"true": decision.options["yes"], "false": decision.options["no"]}
    elif decision.kind == "choice":
        described = {option: meaning or None for option, meaning in decision.options.items()}
        question = {"type": "choice", **question, "criteria": described}
    else:
        question = {"type": "score", **question, "criteria": _levels(decision)}
    return question


def _levels(decision: TypedQuestion) -> list[str]:
    """The levels of a score, from the lowest, as they are sent."""
    return [f"{level}: {meaning}" if meaning else level for level, meaning in decision.options.items()]


_KINDS = {"predicate": "noul", "choice": "choice", "score": "score"}


def _probabilities(decision: TypedQuestion, answer: Any) -> Mapping[str, Any]:
    found = check_present(decision, answer, _KINDS[decision.kind])
    if decision.kind == "predicate":
        return predicate(found.get("noul"))
    probabilities = as_object(found.get("probabilities"))
    if decision.kind == "choice":
        return probabilities
    places = {str(place): level for place, level in enumerate(decision.options)}
    if probabilities.keys() != places.keys():
        listed = shown(list(probabilities))
        raise ReplyError(f"the answer to {decision.name} has the levels {listed}; expected 0 to {len(places) - 1}")
    levels, legend = _levels(decision), as_object(found.get("legend"))
    for place, level in enumerate(levels):
        named = legend.get(str(place), level)
        if named != level and named in levels:
            raise ReplyError(
                f"the answer to {decision.name} has the level {named!r:.60} at {place}; expected {level!r:.60}"
            )
    return {places[place]: probability for place, probability in probabilities.items()}
