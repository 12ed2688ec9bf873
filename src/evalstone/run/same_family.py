"""Whether a judge is of the same family of models as the model that it judges: it may favor its own kind of answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from evalstone.judges.base import Judge, leaves
from evalstone.judges.logging import LoggingJudge
from evalstone.models.families import lineage_of
from evalstone.models.model import LanguageModel, Model
from evalstone.targets import Target
from evalstone.types import Note, Sample, note

MODEL = "model"
"""The entry of a sample's metadata with the model that answered."""


def families_of(judge: Judge) -> dict[str, str]:
    """The families of a judge's models that are known, each with the name of one of them."""
    asked = (leaf.judge if isinstance(leaf, LoggingJudge) else leaf for leaf in leaves(judge))
    names = [leaf.model for leaf in asked if isinstance(leaf, Model)]
    return {family: name for name in reversed(names) if (family := lineage_of(name))}


def family_of_target(target: Target | None) -> str:
    """The family of a target's model; "" if it isn't known."""
    model: object = getattr(target, "model", None)
    name = model.model if isinstance(model, LanguageModel) else model
    return lineage_of(name) if isinstance(name, str) else ""


def family_of_answer(sample: Sample) -> str:
    """The family of the model that answered, by the sample's metadata; "" if it isn't known."""
    name = (sample.metadata or {}).get(MODEL)
    return lineage_of(name) if isinstance(name, str) else ""


def answered_by_family(families: Collection[str], samples: Iterable[Sample]) -> set[str]:
    """The IDs of the samples that models of these families answered."""
    return {sample.id for sample in samples if families and family_of_answer(sample) in families}


def same_family_notes(judge: Judge, target: Target | None, samples: Iterable[Sample]) -> tuple[Note, ...]:
    """A note for each family of a judge's models of which the model is that answered the samples."""
    families = families_of(judge)
    if not families:
        return ()
    own = family_of_target(target)
    found = dict.fromkeys(families, 0)
    total = 0
    for sample in samples:
        total += 1
        family = own or family_of_answer(sample)
        if family in found:
            found[family] += 1
    return tuple(
        note("same_family", "caution", judge=families[family], family=family, samples=times, of=total)
        for family, times in found.items()
        if times
    )
