"""The rows of a target's answers in the ledger: their keys, and the outcomes that are read from them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from evalstone._core.files import unchanged
from evalstone._core.json import content_hash
from evalstone.errors import EvalstoneError
from evalstone.ledger import Key, StoredAnswer
from evalstone.models.replies import IN_PLACE
from evalstone.targets import Answer
from evalstone.types import NO_USAGE, Failed, Sample, Skipped, Usage, trace_metadata


class Answered(NamedTuple):
    """The outcome of a call to the target, or of a conversation with it."""

    sample: Sample
    """The sample with the answer, or unchanged if there is none."""
    problem: Failed | Skipped | None = None
    """Why there is no answer that can be scored."""
    cost: float | None = None
    """The target's cost in US dollars; None if unknown."""
    usage: Usage = NO_USAGE
    user_cost: float | None = 0.0
    """The simulated user's cost in US dollars; None if unknown."""


class EarlierCost(NamedTuple):
    """The cost of earlier calls whose rows are overwritten."""

    cost: float | None
    usage: Usage

    def added_to(self, stored: StoredAnswer) -> StoredAnswer:
        """The row with this cost added, so that it is not lost."""
        known = [cost for cost in (self.cost, stored.cost) if cost is not None]
        return replace(stored, cost=sum(known) if known else None, usage=self.usage + stored.usage)


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


def read_answer(sample: Sample, stored: StoredAnswer) -> Answered | None:
    """The outcome in a row of the ledger; None if it can't be read, so that the target is called again."""
    try:
        line = json.loads(stored.reply, object_hook=unchanged if len(stored.reply) > IN_PLACE else None)
        sample = _answered_in(sample, line.get("trace"))
        paid: dict[str, Any] = {"cost": stored.cost, "usage": stored.usage}
        if "user_cost" in line:  # a conversation has its cost beside the answer: its turns have rows of their own
            paid = {"cost": line["cost"], "usage": Usage(**line["usage"]), "user_cost": line["user_cost"]}
        if (problem := line.get("failed")) is not None:
            return Answered(sample, Failed(**problem), **paid)
        filled = Answer.from_dict(line["answer"]).fill(sample, seconds=stored.seconds)
        skipped = line.get("skipped")
        return Answered(filled, None if skipped is None else Skipped(skipped), **paid)
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
