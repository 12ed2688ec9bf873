"""Judges with alignments that are written by hand."""

from __future__ import annotations

from typing import Any

from evalstone import Judge, Sample
from evalstone.judges import Aligned, AlignmentFile
from evalstone.questions import AgreesWithContext
from evalstone.questions.base import Question
from evalstone.scorers.registry import parse_scorer
from evalstone.types import AlignedQuestion, WorkedExample

WORDING = "Compare the times."
OTHER_ANSWER = "It never opens."


def aligned(judge: Judge, scorer: str, asked: Question[Any], **changes: Any) -> Aligned:
    """The judge with another wording and other changes for a scorer's question."""
    chosen = AlignedQuestion(kind=asked.kind, prompt=asked.prompt.digest, wording=WORDING, **changes)
    signature = parse_scorer(scorer).signature
    return Aligned(judge, AlignmentFile(judge=judge.identity, scorer=scorer, signature=signature, chosen=chosen))


def aligned_checker(judge: Judge, sample: Sample) -> Aligned:
    """The judge with two examples for `relevancy_check`: the sample itself, and one with another answer."""
    own = AgreesWithContext(
        question=sample.input or "", answer=sample.output or "", context=tuple(sample.context or ())
    )
    examples = (
        WorkedExample(inputs=own.inputs(), label="yes"),
        WorkedExample(inputs={**own.inputs(), "answer": OTHER_ANSWER}, label="no"),
    )
    return aligned(judge, "relevancy_check", own, examples=examples)
