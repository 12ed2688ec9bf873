"""What an endpoint turns out to refuse of the requests to one model, so that it is asked for it once and no more.

Endpoints differ in how they can be made to answer in JSON. The ways are tried from the strictest on; a refusal of one
leads to the next: a JSON schema, JSON mode with the schema beside it (llama.cpp, Together, Fireworks), JSON mode, and
the prompt alone, which asks for the object in words in any case.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from evalstone.questions.base import Question

FORM_WORDS = ("response_format", "json_schema")
_ANSWERED_SO = re.compile(r"refused the request \(HTTP (400|422|5\d\d): ")
_OF_FORM = (*FORM_WORDS, "schema", "grammar")
_SETTINGS = ("temperature", "seed", "max_tokens", "reasoning_effort", "logprobs")


class ModelCapabilities:
    """What is left out from now on: settings by name, and for each kind of question the first ways to ask for JSON."""

    def __init__(self) -> None:
        self.settings: set[str] = set()
        # By kind: a schema that is too much for an endpoint must not take the schema from all other questions.
        self._forms: Counter[str] = Counter()

    def response_format(self, question: Question[Any]) -> Mapping[str, Any] | None:
        """The strictest form that is left in which a reply can be asked for; None for the prompt alone."""
        schema = question.json_schema
        return None if schema is None else _form(self._forms[question.kind], question.kind, schema)

    def learn(self, question: Question[Any], payload: Mapping[str, Any], told: str) -> bool:
        """Leave out what a refused request had and the refusal names. Whether there is something, so that asking again
        makes sense."""
        if not _ANSWERED_SO.search(told):
            return False
        if "response_format" in payload and any(word in told for word in _OF_FORM):
            # Of many requests under way, the late ones are refused for what was given up already.
            refused = _place(payload["response_format"])
            self._forms[question.kind] = max(self._forms[question.kind], refused + 1)
            return True
        for name in _SETTINGS:
            if name in payload and name in told:
                self.settings |= {name, "top_logprobs"} if name == "logprobs" else {name}
                return True
        return False

    def told(self) -> dict[str, Any]:
        """All of it as data, for those who take it up later."""
        return {"settings": sorted(self.settings), "forms": dict(self._forms)}

    def take_up(self, told: Mapping[str, Any]) -> None:
        """Leave out as well what others found to be refused."""
        self.settings |= set(told.get("settings", ()))
        for kind, form in told.get("forms", {}).items():
            self._forms[kind] = max(self._forms[kind], form)


def _form(place: int, name: str, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    match place:
        case 0:
            return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}
        case 1:
            return {"type": "json_object", "schema": schema}
        case 2:
            return {"type": "json_object"}
        case _:
            return None


def _place(form: Mapping[str, Any]) -> int:
    if form["type"] == "json_schema":
        return 0
    return 1 if "schema" in form else 2
