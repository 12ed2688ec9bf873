"""The judge calls behind a score as blocks: what was asked and replied, what was read from it, and what it took."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from evalstone._core.display import count, money
from evalstone._core.guards import is_list, is_mapping
from evalstone.report.view import Block, Cell, Column, Tone, bare_member, words
from evalstone.results.views.conversation import tokens_text
from evalstone.results.views.evidence import laid_out
from evalstone.types import NO_USAGE, JudgeCall

Missing: TypeAlias = Literal[
    "no_texts", "own_code", "imported", "settings", "other_version", "no_alignment", "not_rebuilt"
]
MISSING: Mapping[Missing, str] = {
    "no_texts": "The run was saved without the texts of this sample, so the prompt can't be rebuilt.",
    "own_code": "The prompt isn't shown: its scorer has code that isn't evalstone's. It is run only if you name "
    "the scorer with --scorer, unchanged since the run.",
    "imported": "The prompt isn't shown: the score is another tool's, and was imported without it.",
    "settings": "The prompt isn't shown: the run doesn't have the settings of its scorer.",
    "other_version": "The prompt isn't shown: this version of evalstone has other prompts for this scorer.",
    "no_alignment": "The prompt isn't shown: the wording and examples that its judge was aligned with aren't stored "
    "with the score.",
    "not_rebuilt": "The prompt can't be rebuilt from the sample and the other answers of this record.",
}
"""Why a prompt isn't shown."""
CACHED = "not known: the answer is from the ledger, which keeps only the reply that was read"
"""What is known of the malformed replies before an answer from the ledger. Answers of a batch are too."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a judge was asked."""

    texts: tuple[tuple[str, str], ...]
    """The role and the text of each message; of a judge that reads no prompt, the name and the text of each input."""
    is_prompt: bool = False
    schema: Any = None
    """The JSON schema of the reply."""

    def to_dict(self) -> dict[str, Any]:
        """The question as plain data."""
        if not self.is_prompt:
            return {"inputs": dict(self.texts)}
        messages = [{"role": role, "content": text} for role, text in self.texts]
        return {"messages": messages, "schema": self.schema}


@dataclass(frozen=True)
class Prompts:
    """What the judges of a record were asked."""

    asked: Mapping[tuple[str, str], Asked] = field(default_factory=dict[tuple[str, str], Asked])
    """By the question's fingerprint and the judge's identity."""
    missing: Missing = "not_rebuilt"
    """Why others aren't known."""

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """The questions by fingerprint and judge, as plain data."""
        data: dict[str, dict[str, Any]] = {}
        for (fingerprint, judge), asked in self.asked.items():
            data.setdefault(fingerprint, {})[judge] = asked.to_dict()
        return data


def call_block(call: JudgeCall, prompts: Prompts | None = None, *, named: bool = False) -> Block:
    """A judge call, folded. prompts: what was asked; None to leave it out. named: as for `laid_out`."""
    labels: list[tuple[str, Tone]] = [] if call.answer is not None else [("no answer", "bad")]
    labels.append((bare_member(call.judge), "dim"))
    source = next(call.sources(), "") if not call.members else ""
    labels.extend((text, "dim") for text in (source, *_took(call)) if text)
    corrections = _corrections(call)
    if corrections:
        labels.append((count(len(corrections), "correction"), "unsure"))
    title = "Answer" if call.reply is None else "Read from the reply"
    read = Block("group", title, items=(laid_out(call.answer, named=named),))
    reply = [Block("raw", "Reply", call.reply)] if call.reply is not None else []
    is_brief = prompts is None and call.reply is not None  # the evidence says what was read
    replied = [*corrections, *reply, *([read] if call.answer is not None and not is_brief else [])]
    items = [Block("about", pairs=facts)] if (facts := tuple(_facts(call))) else []
    if call.members:
        items += (Block("group", "Members", items=tuple(call_block(each, prompts) for each in call.members)), *replied)
    elif prompts is None:
        items += replied
    elif (asked := prompts.asked.get((call.fingerprint, call.judge))) is None:
        items += (Block("note", text=MISSING[prompts.missing]), *replied)
    else:
        items.append(Block("columns", items=(_prompt(asked), Block("group", items=tuple(replied)))))
    return Block("call", call.question, labels=tuple(labels), items=tuple(items), folded=True)


CALL_COLUMNS = (*map(words, ("question", "judge", "answer", "source")), *map(Column, ("tokens", "time", "cost")))


def call_rows(call: JudgeCall, depth: int = 0) -> Iterator[Sequence[Cell | str]]:
    """A judge call, and those of a composite judge's members, as rows of a table with `CALL_COLUMNS`."""
    answer = "none" if call.answer is None else "given"
    source = "" if call.members else next(call.sources(), "")
    tokens = f"{call.usage.input:,} + {call.usage.output:,}" if call.usage != NO_USAGE else ""
    question = Cell(call.question, level=depth)
    yield question, bare_member(call.judge), answer, source, tokens, f"{call.seconds:.2f} s", money(call.cost)
    for member in call.members:
        yield from call_rows(member, depth + 1)


def _took(call: JudgeCall) -> Iterator[str]:
    if call.usage.input or call.usage.output:
        yield tokens_text(call.usage)
    if call.seconds >= 0.005:
        yield f"{call.seconds:.2f} s"
    if call.cost is None or call.cost > 0:
        yield "cost unknown" if call.cost is None else money(call.cost)


def _facts(call: JudgeCall) -> Iterator[tuple[str, str]]:
    """What is to say of a call besides its texts."""
    detail = dict(call.detail or {})
    detail.pop("corrections", None)
    if call.judge != bare_member(call.judge):
        yield "judge", call.judge
    if call.repeat_index:
        yield "repetition", str(call.repeat_index)
    if call.source == "cached" and call.reply is not None and not call.members and not _decides(call.reply):
        yield "malformed replies before this one", CACHED
    if call.probability is not None:
        yield "probability of this answer", f"{call.probability:.3f}"
    if call.alternatives:
        yield "alternatives", ", ".join(f"{word} {share:.3f}" for word, share in call.alternatives.items())
    if call.refused_settings:
        yield "without", ", ".join(call.refused_settings)
    for name, value in detail.items():
        if value is None or name == "probability":
            continue
        yield name.replace("_", " "), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _decides(reply: str) -> bool:
    """Whether a stored reply is one of probabilities, which are numbers that nothing corrects."""
    try:
        data: object = json.loads(reply)
    except ValueError:
        return False
    return is_mapping(data) and set(data) == {"asked", "probabilities"}


def _prompt(asked: Asked) -> Block:
    texts = tuple(
        Block("raw", f"Prompt: {name}" if asked.is_prompt else f"Input: {name}", text) for name, text in asked.texts
    )
    return Block("group", items=texts)


def _corrections(call: JudgeCall) -> list[Block]:
    """The replies that were corrected, each with what was wrong."""
    found = (call.detail or {}).get("corrections")
    items = cast("list[Any]", found) if is_list(found) else []
    return [
        Block("raw", f"Reply {number}, corrected", str(item.get("reply", "")), why=str(item.get("error", "")))
        for number, item in enumerate(filter(is_mapping, items), start=1)
    ]
