"""The scorers in code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from evalstone.scorers import Completeness, ContentSimilarity, KeywordCoverage, TextualDifference, ToneConsistency
from evalstone.types import Sample
from tests.parity.adapters.common import MASTRA, OLDER, Adapted, Adapter, Case, sample_of, texts_of


def completeness(case: Case) -> Adapted:
    """Completeness over the element lists that were recorded; where there are none, over our own.

    They were recorded by side, and are found by the whole text of the side as the package joins it.
    """
    details: Mapping[str, Sequence[str]] = case.get("details") or {}
    if not details:
        return Completeness(definition=MASTRA), sample(case), []
    recorded = {", ".join(texts_of(case, side)): details[f"{side}Elements"] for side in ("input", "output")}
    return Completeness(definition=MASTRA, elements=recorded.__getitem__), sample(case), []


def sample(case: Case) -> Sample:
    """The sample of a case. A side that was not recorded is an empty text."""
    given = {side: "" for side in ("input", "output") if not texts_of(case, side)}
    return sample_of(case, **given)


def content_similarity(case: Case) -> Adapted:
    """Where one option is given, the package takes the other one as off."""
    ignore_case = case["options"].get("ignoreCase", not case["options"])
    return ContentSimilarity(definition=MASTRA, ignore_case=ignore_case), sample(case), []


def older_content_similarity(case: Case) -> Adapted:
    return ContentSimilarity(ignore_case=case["options"].get("ignoreCase", True)), sample(case), []


def by(
    kind: type[KeywordCoverage | TextualDifference | ToneConsistency], definition: Literal["mastra", "mastra_0_13"]
) -> Adapter:
    """A scorer without options."""

    def adapt(case: Case) -> Adapted:
        return kind(definition=definition), sample(case), []

    return adapt


def tone_consistency(case: Case) -> Adapted:
    scorer = ToneConsistency(definition=MASTRA, reference_tone=case["options"].get("referenceTone") or "")
    return scorer, sample(case), []


CODE: Mapping[str, Adapter] = {
    "completeness": completeness,
    "content-similarity": content_similarity,
    "keyword-coverage": by(KeywordCoverage, MASTRA),
    "legacy-completeness": completeness,
    "legacy-content-similarity": older_content_similarity,
    "legacy-keyword-coverage": by(KeywordCoverage, OLDER),
    "legacy-textual-difference": by(TextualDifference, OLDER),
    "legacy-tone-consistency": by(ToneConsistency, OLDER),
    "textual-difference": by(TextualDifference, MASTRA),
    "tone-consistency": tone_consistency,
}
