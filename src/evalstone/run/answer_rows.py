"""The rows of a target's answers in the ledger: their keys, and the outcomes that are read from them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from evalstone._core.files import unchanged
from evalstone._core.json import content_hash, to_jsonable
from evalstone._core.validation import read_data
from evalstone.errors import EvalstoneError
from evalstone.ledger import Key, StoredAnswer
from evalstone.ledger.base import TARGET
from evalstone.models.replies import IN_PLACE
from evalstone.targets import Answer
from evalstone.types import NO_USAGE, Failed, Sample, Skipped, Usage, trace_metadata


class TargetCost(NamedTuple):
    """The cost of a call to the target, or of a conversation with it."""

    cost: float | None
    """The target's, in US dollars; None if unknown."""
    usage: Usage
    user_cost: float | None = 0.0
    """The simulated user's, in US dollars; None if unknown."""

    def added_to(self, stored: StoredAnswer) -> StoredAnswer:
        """A row with the target's cost added: that of earlier calls, whose rows this one overwrites."""
        known = [cost for cost in (self.cost, stored.cost) if cost is not None]
        return replace(stored, cost=sum(known) if known else None, usage=self.usage + stored.usage)


class TargetOutcome(NamedTuple):
    """The outcome of a call to the target, or of a conversation with it, for a sample."""

    sample: Sample
    """The sample with the answer, or unchanged if there is none."""
    problem: Failed | Skipped | None = None
    """Why there is no answer that can be scored."""
    cost: float | None = None
    """The target's cost in US dollars; None if unknown."""
    usage: Usage = NO_USAGE
    user_cost: float | None = 0.0
    """The simulated user's cost in US dollars; None if unknown."""
    seconds: float | None = None
    """The duration of the target's calls; None if it wasn't called to the end."""
    restored: bool = False
    """Whether the outcome was read from the ledger."""
    paid: bool = True
    """Whether this run paid for it, in this invocation or before it was interrupted."""
    unanswered: bool = False
    """Whether it is not stored, so that a resumed run calls the target again."""


def answer_key(sample: Sample, inputs: Sequence[str], scope: str, user: str = "") -> Key:
    """The key of the answer to a sample and trial: its id and the fields that the target reads.

    user: the identity of the simulated user, if there is one.
    """
    content: list[Any] = [sample.id, {name: getattr(sample, name) for name in inputs}]
    if sample.turns:
        content += [[turn.content_hash for turn in sample.turns], sample.messages]  # the answer includes the messages
    elif user:
        content += [user, sample.input, sample.messages, sample.metadata]  # a simulated user reads all of them
    return Key(content_hash(content), scope, sample.trial or 1)


def answer_row(key: Key, reply: str, *, usage: Usage, cost: float | None, seconds: float, run: str) -> StoredAnswer:
    """The row of an answer, or of a conversation. reply: a `TargetReply` as JSON. run: the ID of the run that paid."""
    return StoredAnswer(
        question=key.question,
        judge=key.judge,
        repeat_index=key.repeat_index,
        kind=TARGET,
        reply=reply,
        usage=usage,
        cost=cost,
        seconds=seconds,
        probability=None,
        run=run,
    )


@dataclass(frozen=True)
class TargetReply:
    """What a call to the target, or a conversation with it, gave: an answer, or a failure. A row of the ledger has it
    as JSON."""

    answer: Answer | None = None
    failed: Failed | None = None
    skipped: str | None = None
    """Why the answer can't be scored."""
    conversation: TargetCost | None = None
    """What a conversation cost: its turns have rows of their own, which this run may not have paid for. None for a
    call."""
    trace: Mapping[str, str] | None = None
    """The trace of the call, if it was traced."""
    unanswered: bool = False
    """Whether it is not stored, so that a resumed run calls the target again."""

    def to_json(self, known: Mapping[str, str] | None = None) -> str:
        """The reply as a row has it. known: The JSON of some fields of the answer, in ASCII."""
        line: dict[str, Any] = {}
        if self.failed is not None:
            line["failed"] = to_jsonable(self.failed)
        if self.skipped is not None:
            line["skipped"] = self.skipped
        if self.conversation is not None:
            line |= to_jsonable(self.conversation._asdict())
        if self.trace is not None:
            line["trace"] = dict(self.trace)
        if self.answer is None:
            return json.dumps(line)
        answer = self.answer.to_json(known)
        return f'{{"answer": {answer}, {json.dumps(line)[1:]}' if line else f'{{"answer": {answer}}}'

    @classmethod
    def from_json(cls, text: str) -> TargetReply:
        """The reply in a row. Raises ValueError, KeyError, TypeError, AttributeError or EvalstoneError if it can't be
        read."""
        line = json.loads(text, object_hook=unchanged if len(text) > IN_PLACE else None)
        failed = line.get("failed")
        return cls(
            answer=None if failed is not None else Answer.from_dict(line["answer"]),
            failed=None if failed is None else read_data(Failed, failed),
            skipped=line.get("skipped"),
            conversation=TargetCost(line["cost"], read_data(Usage, line["usage"]), line["user_cost"])
            if "user_cost" in line
            else None,
            trace=line.get("trace"),
        )

    def outcome(
        self, sample: Sample, stored: StoredAnswer, *, restored: bool = False, paid: bool = True
    ) -> TargetOutcome:
        """The outcome for a sample. Raises DataError if the answer contradicts the sample.

        Args:
            sample: The sample.
            stored: The row of the reply.
            restored: Whether it was read from the ledger.
            paid: Whether this run paid for it.
        """
        sample, problem = _answered_in(sample, self.trace), self.failed
        if self.answer is not None:
            sample = self.answer.fill(sample, seconds=stored.seconds)
            problem = None if self.skipped is None else Skipped(self.skipped)
        cost = self.conversation or TargetCost(stored.cost, stored.usage)
        return TargetOutcome(sample, problem, *cost, stored.seconds, restored, paid, self.unanswered)


_HALVES = re.compile("[\ud800-\udfff]")


def as_stored(answer: Answer) -> Answer:
    """The answer as it is read from a row, so that a resumed run scores the same: the values in tool calls are JSON
    data, and the two halves of a character that Python keeps apart are one character."""
    messages = answer.messages
    texts = (answer.output, answer.instructions, *(answer.context or ()), *(message.content for message in messages))
    halves = any(text is not None and not text.isascii() and _HALVES.search(text) for text in texts)
    if not halves and not answer.turns and not any(message.tool_calls for message in messages):
        return answer
    return Answer.from_dict(json.loads(TargetReply(answer).to_json())["answer"])


def read_answer(sample: Sample, stored: StoredAnswer, *, paid: bool = False) -> TargetOutcome | None:
    """The outcome in a row of the ledger; None if it can't be read, so that the target is called again. paid: whether
    this run paid for it."""
    try:
        return TargetReply.from_json(stored.reply).outcome(sample, stored, restored=True, paid=paid)
    except (ValueError, KeyError, TypeError, AttributeError, EvalstoneError):
        return None


def _answered_in(sample: Sample, trace: Mapping[str, str] | None) -> Sample:
    """The sample with the trace of the call that answered it. Replaces the trace of an answer in the dataset."""
    metadata = dict(sample.metadata)
    if "trace_id" in trace_metadata(sample):
        del metadata["trace"]
    if trace is not None:
        metadata["trace"] = trace
    return sample if metadata == sample.metadata else replace(sample, metadata=metadata)
