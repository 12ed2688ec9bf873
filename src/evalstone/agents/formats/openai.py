"""OpenAI's chat completions and Responses, also of other providers with these APIs, and its Agents SDK."""

from __future__ import annotations

from typing import Any

from evalstone.agents.formats.format import Layout
from evalstone.agents.formats.parts import ITEM_ROLES, types_in
from evalstone.agents.formats.values import (
    Entries,
    checked_entries,
    entries_of,
    normal,
    objects_in,
    only,
    plain,
    read_cost,
    read_usage,
)


def is_chat_completion(value: Any) -> bool:
    """Whether this is a chat completion of OpenAI's API."""
    return any("message" in choice for choice in objects_in(entries_of(value).get("choices")))


def read_chat_completion(value: Any) -> Layout:
    """The message of the only choice, with the tokens and, where a gateway says it, the cost."""
    completion = entries_of(value)
    choice = only(completion["choices"], "choices")
    usage = entries_of(completion.get("usage"))
    layout = Layout(usage=read_usage(usage), cost=read_cost(usage.get("cost")))
    layout.add(checked_entries(choice.get("message"), "choices[0].message"), "choices[0].message")
    return layout


def is_response(value: Any) -> bool:
    """Whether this is a response of OpenAI's Responses API."""
    entries = entries_of(value)
    return entries.get("object") == "response" and isinstance(entries.get("output"), list)


def read_response(value: Any) -> Layout:
    """The instructions, the items of the output, the tokens."""
    response = entries_of(value)
    layout = Layout(usage=read_usage(response.get("usage")))
    instructions = response.get("instructions")
    if isinstance(instructions, list):
        layout.extend(instructions, "instructions")
    elif instructions:
        layout.add({"role": "system", "content": instructions}, "instructions")
    layout.extend(response["output"], "output")
    return layout


def is_item(item: Entries) -> bool:
    """Whether this is an item of the Responses API, or a message with its parts."""
    kinds = {"input_text", "output_text", "input_image", "input_file"}
    known = normal(str(item.get("type"))) in ITEM_ROLES or item.get("type") == "message"
    return known or not types_in(item).isdisjoint(kinds)


def read_agents_run(run: Any) -> Layout:
    """The result of a run of the OpenAI Agents SDK."""
    usage = getattr(getattr(run, "context_wrapper", None), "usage", None)
    counts = {name: getattr(usage, name, None) for name in ("input_tokens", "output_tokens", "requests")}
    details = getattr(usage, "input_tokens_details", None)
    counts["cached_tokens"] = getattr(details, "cached_tokens", None)
    layout = Layout(usage=read_usage(counts), output=getattr(run, "final_output", None))
    layout.extend(plain(run.to_input_list()), "to_input_list()")
    return layout
