"""Messages in which an agent took several steps, as the AI SDK and Mastra write them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from evalstone._core.guards import is_array, is_object
from evalstone.agents.formats.roles import role_of
from evalstone.agents.formats.values import Entries, entries_of, part_text
from evalstone.types.accounts import first_shown


def in_steps(item: Entries) -> list[tuple[int, Entries]]:
    """A message of the AI SDK or of Mastra as one for each step of the agent; any other message as it is.

    Each with the number of its first part in the whole message.

    Mastra repeats the last text beside the parts; what was said before it is a message of its own. For pydantic-ai,
    what was said before the last call of a provider's own tool is no part of the answer.
    """
    content = item.get("content")
    in_content = is_object(content)
    body = content if in_content else item
    if role_of(item) != "assistant" or not is_array(body.get("parts")):
        return [(0, item)]
    parts = body["parts"]
    types = [str(entries_of(part).get("type")) for part in parts]
    said = body.get("content")
    texts = [at for at, part in enumerate(parts) if types[at] == "text" and part_text(entries_of(part))]
    starts = {at for at, kind in enumerate(types) if kind == "step-start"}
    starts |= {at + more for at, kind in enumerate(types) if kind == "steering-message" for more in (0, 1)}
    last_start = max((at for at in starts if at <= texts[-1]), default=0) if texts else 0
    if said and any(last_start <= at for at in texts[:-1]) and part_text(entries_of(parts[texts[-1]])) == said:
        starts.add(texts[-1])
    own_calls = [at for at, part in enumerate(parts) if entries_of(part).get("builtin") is True]
    if own_calls and any(at < own_calls[-1] for at in texts) and any(at > own_calls[-1] for at in texts):
        starts.add(own_calls[-1] + 1)
    edges = [0, *sorted(starts - {0, len(parts)}), len(parts)]
    spans = [(start, end) for start, end in pairwise(edges) if set(types[start:end]) != {"step-start"}]
    if len(spans) < 2:
        return [(0, item)]
    beside = [*body["toolInvocations"]] if is_array(body.get("toolInvocations")) else []
    every = [str(part_text(entries_of(parts[at]))) for at in texts]
    if len(texts) > 1 and said in ("".join(every), "\n".join(every)):
        body = {**body, "content": None}
    steps: list[tuple[int, Entries]] = []
    marks = {"origin": item["origin"]} if "origin" in item else {}
    for start, end in spans:
        if types[start] == "steering-message":
            steps.append((start, {"role": "user", "parts": entries_of(parts[start]).get("parts"), **marks}))
            continue
        last = (start, end) == spans[-1]
        own = beside if last else [call for call in beside if any(_is_call(part, call) for part in parts[start:end])]
        beside = [call for call in beside if not any(call is each for each in own)]
        step = {
            **(body if last else {}),
            "parts": parts[start:end],
            "toolInvocations": own,
        }
        if in_content:
            step = {**(item if last else {}), "content": step}
        steps.append((start, {"role": item.get("role"), "continued": not last, **marks, **step}))
    return steps


def _is_call(part: Any, call: Any) -> bool:
    """Whether a part is of a call beside the parts: by their IDs if both have one, else by name and arguments."""
    item = entries_of(part)
    one, other = entries_of(item.get("toolInvocation")) or item, entries_of(call)
    if one.get("toolCallId") and other.get("toolCallId"):
        return one["toolCallId"] == other["toolCallId"]
    name = one.get("toolName") or str(item.get("type")).removeprefix("tool-")
    return name == other.get("toolName") and first_shown(one.get("args"), one.get("input")) == other.get("args")
