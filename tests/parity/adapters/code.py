"""The scorers in code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalstone.scorers import Completeness, ContentSimilarity, KeywordCoverage, TextualDifference, ToneConsistency
from evalstone.types import Sample
from tests.parity.adapters.common import Adapted, Adapter, Case, sample_of


def joined(case: Case, **fields: Any) -> Sample:
    """The sample of a case; several messages are one text, a comma between them."""
    given = {side: text_of(case, side) for side in ("input", "output")}
    return sample_of(case, **{**given, **fields})


def text_of(case: Case, side: str) -> str:
    """The text of one side of a case."""
    messages: Sequence[str] | None = case.get(f"{side}_messages")
    return ", ".join(messages) if messages is not None else case.get(side) or ""


def completeness(case: Case) -> Adapted:
    """Completeness over the element lists that were recorded; where there are none, over our own."""
    details: Mapping[str, Sequence[str]] = case.get("details") or {}
    if not details:
        return Completeness(without_elements="compare"), joined(case), []
    recorded = {text_of(case, side): details[f"{side}Elements"] for side in ("input", "output")}
    return Completeness(elements=recorded.__getitem__, without_elements="compare"), joined(case), []


def content_similarity(case: Case) -> Adapted:
    options = case["options"]
    scorer = ContentSimilarity(
        ignore_case=options.get("ignoreCase", True), ignore_whitespace=options.get("ignoreWhitespace", True)
    )
    return scorer, joined(case), []


def content_similarity_without_merged_options(case: Case) -> Adapted:
    """Where one option is given, the newer package takes the other one as off."""
    options = case["options"]
    both = {"ignoreCase": False, "ignoreWhitespace": False, **options} if options else options
    return content_similarity({**case, "options": both})


def keyword_coverage(counts_as: Any) -> Adapter:
    """Keyword coverage; the packages differ in what an input without keywords counts as."""

    def adapt(case: Case) -> Adapted:
        return KeywordCoverage(without_keywords=counts_as), joined(case), []

    return adapt


def textual_difference(method: Any) -> Adapter:
    """Textual difference; the older package looks at matching blocks."""

    def adapt(case: Case) -> Adapted:
        return TextualDifference(method=method), joined(case), []

    return adapt


def tone_consistency(case: Case) -> Adapted:
    return ToneConsistency(reference_tone=case["options"].get("referenceTone") or ""), joined(case), []


def legacy_tone_consistency(case: Case) -> Adapted:
    """The older package compares both texts, and where it is given one alone, calls that the input."""
    alone = not text_of(case, "output")
    if alone:
        return ToneConsistency(), joined(case, output=text_of(case, "input")), []
    return ToneConsistency(compare_to="input"), joined(case), []


CODE: Mapping[str, Adapter] = {
    "completeness": completeness,
    "content-similarity": content_similarity_without_merged_options,
    "keyword-coverage": keyword_coverage("covered"),
    "legacy-completeness": completeness,
    "legacy-content-similarity": content_similarity,
    "legacy-keyword-coverage": keyword_coverage("missed"),
    "legacy-textual-difference": textual_difference("blocks"),
    "legacy-tone-consistency": legacy_tone_consistency,
    "textual-difference": textual_difference("subsequence"),
    "tone-consistency": tone_consistency,
}
