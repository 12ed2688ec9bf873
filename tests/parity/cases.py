"""Recorded cases of another package, and what our scorers make of them: the whole path, with a scripted judge."""

from __future__ import annotations

import asyncio
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalstone.errors import EvalstoneError
from evalstone.judges import ScriptedJudge
from evalstone.questions.base import Question
from evalstone.run.runner import score_sample
from evalstone.run.session import Session
from evalstone.types import OUTCOME_NAMES, Failed, Outcome, Score
from tests.parity.adapters import ADAPTERS
from tests.parity.adapters.common import Said

Case = Mapping[str, Any]

POLICIES = {"score": "scored", "skipped": "skipped", "failed": "failed"}
RETRIES = 1
ZERO_SCALE_IS_ONE = {
    "bias",
    "context-precision",
    "context-recall",
    "context-relevance",
    "faithfulness",
    "hallucination",
    "prompt-alignment",
    "toxicity",
}
"""The recorded scorers in which a scale of 0 counts as 1; in the others that have a scale every score is 0 then."""


@dataclass(frozen=True)
class Invention:
    """What a recorded judge made up, so that no honest reply has its judgment: ours is refused, and must be.

    refusal: a pattern that the error has. cases: their numbers, by scorer.
    """

    what: str
    refusal: str
    cases: Mapping[str, Sequence[int]]

    def __contains__(self, case: Case) -> bool:
        return case["id"] in {f"{scorer}-{number}" for scorer, numbers in self.cases.items() for number in numbers}


INVENTIONS = (
    Invention(
        "the judge listed parts of an empty text",
        r"is not (from|in) the (text|answer)",
        {
            "answer-similarity": [8],
            "bias": [3],
            "hallucination": [3],
            "legacy-answer-relevancy": [3],
            "legacy-bias": [3],
            "legacy-faithfulness": [3],
            "legacy-hallucination": [3],
            "legacy-summarization": [4],
            "legacy-toxicity": [3],
            "summarization": [5, 6],
            "toxicity": [3],
        },
    ),
    Invention(
        "the judge decided claims by passages, but there are none",
        "cites passage 1; there are 0 passages",
        {
            "faithfulness": [5, 48, 64, 88],
            "hallucination": [5, 21, 28, 42, 56, 63, 84],
            "legacy-faithfulness": [4],
        },
    ),
    Invention(
        "the judge matched the reference with statements of the answer, but had listed no statements",
        r"match \d+\.answer: .* is not in the answer",
        {"answer-similarity": [11, 25, 34, 42, 44, 49, 54, 69, 87, 89, 95, 96, 107]},
    ),
)


@dataclass(frozen=True)
class Verdict:
    """One case: whether it held, what came and was expected where it did not, and why a recorded score was not."""

    case: Case
    equal: bool
    told: str = ""
    invention: Invention | None = None


class RecordedJudge:
    """A script by question: each gets what was said to it, and nothing more once that is used up.

    unrecorded: the questions that nothing was recorded for. An outcome after one of them says nothing.
    """

    def __init__(self, said: Sequence[Said]) -> None:
        self.left = [(one, iter(one.replies)) for one in said]
        self.unrecorded: list[Question[Any]] = []

    def __call__(self, question: Question[Any]) -> Any:
        for one, replies in self.left:
            if one.to(question):
                return next(replies, None)
        self.unrecorded.append(question)
        return None


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a JSONL file."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def covered(case: Case) -> bool:
    """Whether there is a scorer of ours for this case."""
    return case["scorer"] in ADAPTERS


def outcome_of(case: Case) -> Outcome:
    """What our scorer makes of a case. A scorer that refuses its options has failed."""
    try:
        scorer, sample, said = ADAPTERS[case["scorer"]](case)
    except EvalstoneError as error:
        return Failed(str(error))
    recorded = RecordedJudge(said)
    judge = ScriptedJudge(recorded, retries=RETRIES)
    outcome = asyncio.run(score_sample(scorer, sample, Session(judge))).outcome
    if recorded.unrecorded:
        raise LookupError(f"the recorded judge was not asked this: {recorded.unrecorded[0]}")
    return outcome


def round2(value: float) -> float:
    """Two decimals as the recorded package rounds: half up, after adding the smallest difference from 1."""
    return math.floor((value + sys.float_info.epsilon) * 100 + 0.5) / 100


def check_score(case: Case) -> Verdict:
    """Whether our score is the recorded one: rounded where that was rounded, else to the last digits.

    A recorded number below 0 or above the scale measures nothing; ours must then be a failure, with its error. Nor does
    a scale of 0, which ours refuses when it is built: where 0 was recorded on it, ours must give a score on scale 1.
    """
    outcome, recorded = outcome_of(case), case["score"]
    if case["options"].get("scale") == 0 and case["scorer"] not in ZERO_SCALE_IS_ONE:
        same = isinstance(outcome, Score) and recorded == 0
        return Verdict(case, same, "" if same else f"{case['id']}: {outcome}, {recorded} was recorded on scale 0")
    if not 0 <= recorded <= (case["options"].get("scale") or 1):
        same = isinstance(outcome, Failed)
        return Verdict(case, same, "" if same else f"{case['id']}: {outcome}, {recorded} is out of range")
    if not isinstance(outcome, Score):
        return Verdict(case, False, f"{case['id']}: {outcome}, {recorded} was recorded")
    same = round2(outcome.value) == recorded or math.isclose(outcome.value, recorded, rel_tol=1e-9)
    return Verdict(case, same, "" if same else f"{case['id']}: {outcome.value!r}, {recorded} was recorded")


def check_policy(case: Case) -> Verdict:
    """Whether our outcome is of the kind that the case asks for.

    A stated difference: without a ground truth the recorded context recall asked its judge about nothing, and one case
    asks for the failure of what the judge said then. Ours asks nothing, and must skip.
    """
    outcome = outcome_of(case)
    came = POLICIES[OUTCOME_NAMES[type(outcome)]]
    nothing = case["scorer"] == "context-recall" and not case.get("ground_truth")
    expected = "skipped" if nothing else case["policy"]
    return Verdict(case, came == expected, "" if came == expected else f"{case['id']}: {outcome}, not {expected}")


def check_invention(case: Case, invention: Invention) -> Verdict:
    """Whether ours fails because of what the recorded judge made up."""
    outcome = outcome_of(case)
    refused = isinstance(outcome, Failed) and re.search(invention.refusal, outcome.error) is not None
    return Verdict(case, refused, "" if refused else f"{case['id']}: {outcome}, but {invention.what}", invention)


def check_all(cases: Iterable[Case], *, edge: bool) -> list[Verdict]:
    """The verdicts of all cases that a scorer of ours covers."""

    def check(case: Case) -> Verdict:
        if invention := next((one for one in INVENTIONS if case in one), None):
            return check_invention(case, invention)
        return check_policy(case) if edge else check_score(case)

    return [_checked(case, check) for case in cases if covered(case)]


def _checked(case: Case, check: Callable[[Case], Verdict]) -> Verdict:
    try:
        return check(case)
    except Exception as error:  # noqa: BLE001 - whatever one case breaks on, the others are still told
        return Verdict(case, equal=False, told=f"{case.get('id')}: {error!r}")
