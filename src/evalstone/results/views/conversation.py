"""The messages of a sample in their order, with the tool calls in them and what they took, as blocks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

from evalstone._core.display import money
from evalstone._core.guards import is_mapping, is_number
from evalstone._core.json import to_jsonable
from evalstone.report.view import Block, Tone
from evalstone.results.views.evidence import is_flat
from evalstone.types import Message, Sample, ToolCall, Usage

Labels = tuple[tuple[str, Tone], ...]
LONGEST_ARGUMENTS = 80
"""Characters of a tool call's arguments beside its name."""


def conversation(sample: Sample) -> Block | None:
    """The messages of a sample, by turn if it has some; None without any."""
    if not sample.messages:
        return None
    turns = [turn.messages for turn in sample.turns]
    if len(turns) > 1 and tuple(message for turn in turns for message in turn) == tuple(sample.messages):
        items = tuple(
            Block("turn", f"Turn {number}", labels=took(turn), items=tuple(map(_message, turn.messages)))
            for number, turn in enumerate(sample.turns, start=1)
        )
    else:
        items = tuple(map(_message, sample.messages))
    return Block("group", "Conversation", items=items)


def took(sample: Sample) -> Labels:
    """The time, tokens and cost of the target's answer, as far as its metadata have them."""
    call = sample.metadata.get("target")
    if not is_mapping(call):
        return ()
    usage = call.get("usage")
    counts = [usage.get(name) for name in ("input", "output")] if is_mapping(usage) else []
    texts: list[str] = []
    if is_number(seconds := call.get("seconds")) and seconds >= 0.005:
        texts.append(f"{seconds:.2f} s")
    if all(map(is_number, counts)) and any(counts):
        texts.append(tokens_text(Usage(*map(int, cast("list[int]", counts)))))
    if is_number(cost := call.get("cost")) and cost > 0:
        texts.append(money(cost))
    return tuple((text, "dim") for text in texts)


def tokens_text(usage: Usage) -> str:
    """The tokens of a request and its reply."""
    cached = f", {usage.cached:,} cached" if usage.cached else ""
    return f"{usage.input:,} + {usage.output:,} tokens{cached}"


def _message(message: Message) -> Block:
    labels: list[tuple[str, Tone]] = [(kind, "dim") for kind in message.attachments]
    if message.usage is not None and (message.usage.input or message.usage.output):
        labels.append((tokens_text(message.usage), "dim"))
    inside = [Block("part", text=message.reasoning)] if message.reasoning else []
    reasoning = (Block("data", "Reasoning", items=tuple(inside), folded=True),) if inside else ()
    calls = map(_tool_call, message.tool_calls)
    notes = (Block("part", "note", note) for note in message.notes)
    return Block("message", message.role, message.content, tuple(labels), items=(*reasoning, *calls, *notes))


def _tool_call(call: ToolCall) -> Block:
    arguments = to_jsonable(call.arguments)
    line = ", ".join(f"{name}={_exact(value)}" for name, value in arguments.items())
    short = line if len(line) <= LONGEST_ARGUMENTS else f"{line[: LONGEST_ARGUMENTS - 1]}…"
    state: Tone = "bad" if call.state == "error" else "dim" if call.state == "result" else "unsure"
    return Block(
        "tool",
        f"{call.name}({short})",
        labels=() if call.state == "result" else ((call.state, state),),
        items=tuple(
            Block("group", title, items=(data_block(to_jsonable(value)),))
            for title, value in (
                ("arguments", call.arguments if short != line else None),
                ("error" if call.error else "result", call.error or call.result),
            )
            if value not in (None, {})
        ),
        folded=call.state != "error",
    )


def data_block(value: Any) -> Block:
    """A sample's data, unchanged: names with plain values first, then names with nested values."""
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value).items()
        nested = [(name, item) for name, item in entries if _is_nested(item)]
        pairs = tuple((name, _exact(item)) for name, item in entries if not _is_nested(item))
        return Block(
            "item", pairs=pairs, items=tuple(Block("group", name, items=(data_block(item),)) for name, item in nested)
        )
    if _is_nested(value):
        return Block("group", items=tuple(map(data_block, cast("list[Any]", value))))
    return Block("part", text=_exact(value))


def data_blocks(values: Sequence[tuple[str, Any]]) -> Iterator[Block]:
    """Data with titles, folded; nothing for what is empty."""
    for title, value in values:
        if value:
            yield Block("data", title, items=(data_block(value),), folded=True)


def _is_nested(value: Any) -> bool:
    return bool(value) and (isinstance(value, dict) or (isinstance(value, list) and not is_flat(value)))


def _exact(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
