"""OpenAI's protocol of decision models (`POST /v1/decisions`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from evalstone.errors import JudgeDeclined, ReplyError
from evalstone.models.decisions import DecisionProvider, check_count, check_present, predicate
from evalstone.models.replies import as_list, as_object, as_text, shown
from evalstone.models.typed_questions import State, TypedQuestion


class OpenAIDecisions(DecisionProvider):
    """A decision model that takes a list of questions about one input."""

    path = "/v1/decisions"

    def payload(self, state: State, decisions: Sequence[TypedQuestion]) -> dict[str, Any]:
        asked = [_question(decision) for decision in decisions]
        return {"model": self.name, "input": json.dumps(state, ensure_ascii=False, indent=1), "questions": asked}

    def answers(self, data: Mapping[str, Any], decisions: Sequence[TypedQuestion]) -> Sequence[Mapping[str, Any]]:
        answers = as_list(data.get("answers"))
        check_count(decisions, answers)
        return [_probabilities(*pair) for pair in zip(decisions, answers, strict=True)]


def _question(decision: TypedQuestion) -> dict[str, Any]:
    if decision.kind == "predicate":
        meanings = [f"{word}: {meaning}" for word, meaning in decision.options.items() if meaning]
        instructions = "\n".join([decision.instructions, *meanings])
        return {"type": "predicate", "name": decision.name, "instructions": instructions}
    key, member = ("value", "choices") if decision.kind == "choice" else ("label", "levels")
    options = [
        {key: option, "description": meaning} if meaning else {key: option}
        for option, meaning in decision.options.items()
    ]
    return {"type": decision.kind, "name": decision.name, "instructions": decision.instructions, member: options}


def _probabilities(decision: TypedQuestion, answer: Any) -> Mapping[str, Any]:
    if as_object(answer).get("type") == "refusal":
        raise JudgeDeclined(f"the model refused to decide {decision.name}")
    found = check_present(decision, answer, decision.kind)
    if found.get("name") not in (None, decision.name):
        raise ReplyError(f"the answer to {decision.name} is named {shown(found.get('name'))}")
    if decision.kind == "predicate":
        return predicate(found.get("probability"))
    key = "value" if decision.kind == "choice" else "label"
    listed = [as_object(each) for each in as_list(found.get("probabilities"))]
    named = [as_text(each.get(key)) for each in listed]
    if len(set(named)) < len(named):
        raise ReplyError(f"the answer to {decision.name} names an option twice: {shown(named)}")
    return {name: each.get("probability") for name, each in zip(named, listed, strict=True)}
