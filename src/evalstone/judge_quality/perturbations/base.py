"""What an edit is: a small controlled change of a sample that leaves what it says as it was."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from evalstone._core.json import content_hash
from evalstone.scorers import Scorer
from evalstone.types import Sample

Family: TypeAlias = Literal[
    "position", "options", "verbosity", "self-preference", "formatting", "canary", "paraphrase", "repetition"
]


@dataclass(frozen=True)
class Edit:
    """One small change that a good judge does not mind.

    name: for tables. family: what it probes. why: what a judge that minds it would be swayed by. apply: the edited
    sample, with the same id; None where there is nothing to edit. wants: +1 where the edit itself asks for praise, -1
    for blame, else 0. rescore: of an edit that changes how the judge is asked and leaves the sample alone, the scorer
    that asks so; None where a scorer cannot.
    """

    name: str
    family: Family
    why: str
    apply: Callable[[Sample], Sample | None]
    wants: int = 0
    rescore: Callable[[Scorer], Scorer | None] | None = None


def as_it_is(sample: Sample) -> Sample:
    """The sample."""
    return sample


def on_output(change: Callable[[str], str | None]) -> Callable[[Sample], Sample | None]:
    """An edit of the output, from a change of text; None, and a text that stays as it is, mean not applicable."""

    def apply(sample: Sample) -> Sample | None:
        if sample.output is None or not sample.output.strip():
            return None
        changed = change(sample.output)
        return None if changed is None or changed == sample.output else replace(sample, output=changed)

    return apply


def on_context(
    change: Callable[[Sequence[str], random.Random], Sequence[str] | None],
) -> Callable[[Sample], Sample | None]:
    """An edit of the passages, from a change of their list; chance is drawn by the sample's id, the same each time."""

    def apply(sample: Sample) -> Sample | None:
        if not sample.context:
            return None
        changed = change(sample.context, random.Random(content_hash(sample.id)))
        return None if changed is None or tuple(changed) == tuple(sample.context) else replace(sample, context=changed)

    return apply
