"""Structured output: which reply format and settings an endpoint supports, learned from its refusals.

The formats, strictest first: a JSON schema, the schema without bounds, JSON mode plus the schema (llama.cpp, Together,
Fireworks), JSON mode, and the prompt alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalstone._core.guards import is_list, is_mapping
from evalstone.models.catalog import SETTINGS
from evalstone.models.provider import ChatMessage, ReplyForm, RequestSettings
from evalstone.models.refusals import says_itself

SCHEMA, WITHOUT_BOUNDS, BESIDE_JSON_MODE, JSON_MODE, PROMPT = range(5)
"""The formats. After a refusal, the next one is used."""

_NAMES = {name: re.compile(rf"(?<![a-z]){name.replace('_', '[_ .-]?')}(?![a-z])") for name in SETTINGS}
"""How refusals name them: reasoning_effort is also reasoningEffort, or reasoning.effort."""
_OF_OTHERS = frozenset({401, 402, 407, 408, 409, 413, 425, 429})
"""Statuses of refusals that are about something else than the request's settings."""

SYSTEM = "system"
"""The system role, in the refused settings of models whose chat template has none (Gemma, o1-mini)."""
_NO_SYSTEM_ROLE = re.compile(
    r"only user(?:,| and) assistant.{0,40}(?:supported|allowed)|"
    r"system (?:role|messages?|instructions?)\W.{0,40}not (?:supported|enabled|allowed)"
    r"|(?:unsupported|does not support|doesn't support|not support).{0,40}\bsystem\b"
    r"|developer instruction is not enabled|roles must alternate"
)

BOUNDS = frozenset(
    """
    maxLength minLength maxItems minItems maximum minimum exclusiveMaximum exclusiveMinimum pattern
    """.split()  # noqa: SIM905 - one word a line would be ten lines
)
OF_FORM = re.compile(
    r"response[_ ]?format|schema|grammar|output_config|output[_ ]format|json[_ ]mode|structured[_ -]?output"
    r"|(?:guided|constrained)[_ ](?:decoding|json)"
)
"""Words of refusals of a reply format."""
_OF_BOUNDS = re.compile("|".join(sorted(BOUNDS)).lower())
_OF_ONE_SCHEMA = re.compile("too |complex|depth|nest|exceed")
"""Words in refusals of one particular schema. A simpler schema may be accepted."""
_LOGPROBS = re.compile("logprobs")


class ModelCapabilities:
    """What an endpoint supports in requests to one model. What it refused is not sent again.

    If the endpoint has never accepted a format, a refusal rules it out for every kind of question. If it has accepted
    the format before, or a schema is too complex, a refusal rules it out for that kind of question only.
    """

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self._form = SCHEMA
        self._accepted = PROMPT
        self._by_name: Counter[str] = Counter()
        self._seen: set[tuple[str, int]] = set()

    def refused_of(self, settings: RequestSettings) -> tuple[str, ...]:
        """The settings that the endpoint refuses, so they aren't sent. `max_tokens` is renamed instead."""
        names = [name for name in SETTINGS if name in self.refused and name != "max_tokens"]
        return tuple(name for name in names if not _is_unset(getattr(settings, name)))

    def level(self, form: ReplyForm | None) -> int:
        """The strictest format that is supported for a form."""
        return PROMPT if form is None else max(self._form, self._by_name[form.name])

    def response_format(self, form: ReplyForm | None) -> Mapping[str, Any] | None:
        """OpenAI's `response_format` with the strictest supported format; None for the prompt alone."""
        level = self.level(form)
        if form is None or level == PROMPT:
            return None
        if level == JSON_MODE:
            return {"type": "json_object"}
        if level == BESIDE_JSON_MODE:
            return {"type": "json_object", "schema": form.schema}
        schema = form.schema if level == SCHEMA else without_bounds(form.schema)
        return {"type": "json_schema", "json_schema": {"name": form.name, "strict": True, "schema": schema}}

    def accept(self, form: ReplyForm | None, level: int) -> None:
        """Record that the endpoint answered a request for JSON in this format."""
        if form is None or (form.name, level) in self._seen:
            return
        self._seen.add((form.name, level))
        if level == SCHEMA and not has_bounds(form.schema):
            level = WITHOUT_BOUNDS
        self._accepted = min(self._accepted, level)
        self._form = min(self._form, level)

    def learn(self, form: ReplyForm | None, payload: Mapping[str, Any], status: int, message: str) -> bool:
        """Learn from the refusal of a chat completion. Returns whether the adapted request is worth sending."""
        if status in _OF_OTHERS:
            return False
        asked: Mapping[str, Any] = payload.get("response_format") or {}
        refused = {"json_schema": WITHOUT_BOUNDS, "json_object": JSON_MODE}.get(asked.get("type", ""), PROMPT)
        if "schema" in asked:
            refused = BESIDE_JSON_MODE
        elif refused == WITHOUT_BOUNDS and has_bounds(asked["json_schema"]["schema"]):
            refused = SCHEMA
        return self.learn_from(form, refused, payload, message)

    def learn_from(self, form: ReplyForm | None, level: int, sent: Mapping[str, Any], message: str) -> bool:
        """Learn from the refusal of a request with this format and these settings. Returns whether anything changed.

        What the refusal repeats of the request teaches nothing.
        """
        messages: Sequence[Mapping[str, Any]] = sent.get("messages", ())
        request = "\n".join(each["content"] for each in messages)

        def says(words: re.Pattern[str]) -> bool:
            return says_itself(words, message, request)

        # Questions request logprobs, not the caller, so they are the first to be dropped.
        if "logprobs" in sent and says(_LOGPROBS):
            self.refused |= {"logprobs", "top_logprobs"}
            return True
        if any(each["role"] == "system" for each in messages) and says(_NO_SYSTEM_ROLE):
            self.refused.add(SYSTEM)
            return True
        of_form = says(OF_FORM)
        if not of_form:
            for setting in SETTINGS:
                if setting in sent and says(_NAMES[setting]):
                    self.refused.add(setting)
                    return True
        if form is None or level == PROMPT or not (of_form or (level == SCHEMA and says(_OF_BOUNDS))):
            return False
        # Requests that were already in flight may be refused for a format that was dropped since.
        self._by_name[form.name] = max(self._by_name[form.name], level + 1)
        if level < self._accepted and not says(_OF_ONE_SCHEMA):
            self._form = max(self._form, level + 1)
        return True

    def to_dict(self) -> dict[str, Any]:
        """The capabilities as data, for another process."""
        return {
            "settings": sorted(self.refused),
            "form": self._form,
            "accepted": self._accepted,
            "forms": dict(self._by_name),
        }

    def update(self, data: Mapping[str, Any]) -> None:
        """Add what another process learned."""
        self.refused |= set(data.get("settings", ()))
        self._accepted = min(self._accepted, data.get("accepted", PROMPT))
        self._form = min(max(self._form, data.get("form", SCHEMA)), self._accepted)
        for kind, form in data.get("forms", {}).items():
            self._by_name[kind] = max(self._by_name[kind], form)


def _is_unset(value: Any) -> bool:
    return value is None or value is False  # a temperature of 0 equals False


def with_form(messages: Sequence[ChatMessage], form: ReplyForm | None, level: int) -> Sequence[ChatMessage]:
    """The messages. If no schema is sent, the form is appended to the last one."""
    if level < JSON_MODE or form is None or not form.text:
        return messages
    *before, last = messages
    return [*before, replace(last, content=f"{last.content}\n\n{form.text}")]


def without_system(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """The messages with the system message at the beginning of the first user message."""
    first, *others = messages
    if first.role != "system":
        return messages
    user = next(place for place, message in enumerate(others) if message.role == "user")
    others[user] = replace(others[user], content=f"{first.content}\n\n{others[user].content}")
    return others


def without_bounds(schema: Any) -> Any:
    """A schema without the bounds that many endpoints refuse. Replies are validated against them anyway."""
    if is_mapping(schema):
        return {name: without_bounds(value) for name, value in schema.items() if not _is_bound(name, value)}
    if is_list(schema):
        return [without_bounds(inner) for inner in schema]
    return schema


def has_bounds(schema: Any) -> bool:
    """Whether a schema has bounds on a text, a list or a number."""
    return any(_is_bound(name, value) for name, value in _members(schema))


def _members(schema: Any) -> Iterator[tuple[str, Any]]:
    if is_mapping(schema):
        for name, value in schema.items():
            yield name, value
            yield from _members(value)
    elif is_list(schema):
        for inner in schema:
            yield from _members(inner)


def _is_bound(name: str, value: Any) -> bool:
    # A property may have the name of a bound, but then its value is a schema.
    return name in BOUNDS and not isinstance(value, Mapping)
