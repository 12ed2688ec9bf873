"""Recorded cases of another package, and what our scorers make of them: the whole path, with a scripted judge."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from evalstone.errors import EvalstoneError
from evalstone.judges import ScriptedJudge
from evalstone.questions.base import Question
from evalstone.questions.claims import VerifyClaims
from evalstone.questions.statements import CompareStatements
from evalstone.run.scoring import score_sample
from evalstone.run.session import Session
from evalstone.scorers.base import Scorer
from evalstone.scorers.sources import ContextScorer
from evalstone.types import OUTCOME_NAMES, Failed, Outcome, Sample, Score
from tests.parity.adapters import ADAPTERS
from tests.parity.adapters.common import Said
from tests.parity.adapters.recorded import Invented, Repeated

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
class Told:
    """An adapted case: our scorer, its sample, what the recorded judge says in it, and the part that ours asked for."""

    scorer: Scorer
    sample: Sample
    said: Sequence[Said]
    heard: Sequence[Said]


@dataclass(frozen=True)
class Invention:
    """What a recorded judge made up, so that no honest reply has its judgment: ours is refused.

    refusal: a pattern that the error has. holds: whether it is so in a case. always: whether ours must refuse such a
    case; otherwise a score has to be the recorded one.
    """

    what: str
    refusal: str
    holds: Callable[[Told], bool]
    always: bool = True


def texts_in(reply: Any) -> Iterator[str]:
    """The texts anywhere in a reply."""
    if isinstance(reply, str):
        yield reply
    elif isinstance(reply, Mapping):
        for value in cast("Mapping[str, Any]", reply).values():
            yield from texts_in(value)
    elif isinstance(reply, Sequence):
        for value in cast("Sequence[Any]", reply):
            yield from texts_in(value)


def says(kind: type[str], *, comparing: bool | None = None) -> Callable[[Told], bool]:
    """Whether the judge says a text of this kind. comparing: in a comparison of statements, or elsewhere."""

    def holds(told: Told) -> bool:
        said = [one for one in told.heard if comparing in (None, one.kind is CompareStatements)]
        return any(isinstance(text, kind) for one in said for reply in one.replies for text in texts_in(reply))

    return holds


def cites_nothing(told: Told) -> bool:
    """Whether passages decide a verdict, and there are none."""
    scorer, sample = told.scorer, told.sample
    if not isinstance(scorer, ContextScorer):
        return False
    passages = scorer.passages_for(sample) if scorer.context_from is None else scorer.context_from(sample)
    replies = [reply for one in told.heard if one.kind is VerifyClaims for reply in one.replies]
    verdicts: list[Any] = [v for reply in replies if isinstance(reply, Mapping) for v in cast("Any", reply)["verdicts"]]
    return not passages and any(verdict["passages"] for verdict in verdicts)


def lists_twice(told: Told) -> bool:
    """Whether two different replies were recorded for one question."""
    return any(
        one.kind is other.kind and one.about == other.about and one.replies != other.replies
        for one, other in itertools.combinations(told.said, 2)
    )


INVENTIONS = (
    Invention(
        "the judge listed parts of an empty text",
        r"is not (from|in) the (text|answer)|the list repeats itself",
        says(Invented, comparing=False),
    ),
    Invention(
        "the judge decided claims by passages, but there are none",
        "cites passage 1; there are 0 passages",
        cites_nothing,
    ),
    Invention(
        "the judge matched the reference with statements of the answer, but had listed no statements",
        r"is not in the (answer|reference)",
        says(Invented, comparing=True),
    ),
    Invention(
        "the judge listed more texts than there are different excerpts",
        r"the list repeats itself|is not (from|in) the|is a placeholder",
        says(Repeated),
        always=False,
    ),
    Invention(
        "the judge listed different statements of the same text",
        r"\d+ reference statements?, \d+ match|the reference makes no statement",
        lists_twice,
        always=False,
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

    heard: what was said. unrecorded: the questions that nothing was recorded for. An outcome after one of them says
    nothing.
    """

    def __init__(self, said: Sequence[Said]) -> None:
        self.left = [(one, iter(one.replies)) for one in said]
        self.heard: list[Said] = []
        self.unrecorded: list[Question[Any]] = []

    def __call__(self, question: Question[Any]) -> Any:
        for one, replies in self.left:
            if one.to(question):
                self.heard.append(one)
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
    return _outcome(case)[0]


def _outcome(case: Case) -> tuple[Outcome, Invention | None]:
    """The outcome of a case, and what the recorded judge made up in it, if ours must be refused or is."""
    try:
        scorer, sample, said = ADAPTERS[case["scorer"]](case)
    except EvalstoneError as error:
        return Failed(str(error)), None
    recorded = RecordedJudge(said)
    judge = ScriptedJudge(recorded, retries=RETRIES)
    outcome = asyncio.run(score_sample(scorer, sample, Session(judge))).outcome
    if recorded.unrecorded:
        raise LookupError(f"the recorded judge was not asked this: {recorded.unrecorded[0]}")
    why = "" if isinstance(outcome, Score) else outcome.error if isinstance(outcome, Failed) else outcome.reason
    refused = [one for one in INVENTIONS if re.search(one.refusal, why)]
    must_be = [one for one in INVENTIONS if one.always and isinstance(outcome, Score)]
    told = Told(scorer, sample, said, recorded.heard)
    return outcome, next((one for one in (*refused, *must_be) if one.holds(told)), None)


def round2(value: float) -> float:
    """Two decimals as the recorded package rounds: half up, after adding the smallest difference from 1."""
    return math.floor((value + sys.float_info.epsilon) * 100 + 0.5) / 100


def check_score(case: Case) -> Verdict:
    """Whether our score is the recorded one: rounded where that was rounded, else to the last digits.

    A recorded number below 0 or above the scale measures nothing; ours must then be a failure, with its error. Nor does
    a scale of 0, which ours refuses when it is built: where 0 was recorded on it, ours must give a score on scale 1.
    """
    outcome, invention = _outcome(case)
    recorded = case["score"]
    scale = case["options"].get("scale")
    if scale == 0 and case["scorer"] not in ZERO_SCALE_IS_ONE:
        same, expected = isinstance(outcome, Score) and recorded == 0, f"{recorded} was recorded on scale 0"
    elif not 0 <= recorded <= (scale or 1):
        same, expected = isinstance(outcome, Failed), f"{recorded} is out of range"
    else:
        same, expected = isinstance(outcome, Score) and _is_same(outcome.value, recorded), f"{recorded} was recorded"
    return _verdict(case, outcome, same, expected, invention)


def _is_same(value: float, recorded: float) -> bool:
    return round2(value) == recorded or math.isclose(value, recorded, rel_tol=1e-9)


def check_policy(case: Case) -> Verdict:
    """Whether our outcome is of the kind that the case asks for.

    A stated difference: without a ground truth the recorded context recall asked its judge about nothing, and one case
    asks for the failure of what the judge said then. Ours asks nothing, and must skip.
    """
    outcome, invention = _outcome(case)
    nothing = case["scorer"] == "context-recall" and not case.get("ground_truth")
    expected = "skipped" if nothing else case["policy"]
    same = POLICIES[OUTCOME_NAMES[type(outcome)]] == expected
    return _verdict(case, outcome, same, f"not {expected}", invention)


def _verdict(case: Case, outcome: Outcome, same: bool, expected: str, invention: Invention | None) -> Verdict:
    """The verdict on a case; where the recorded judge made something up, ours may be refused, or has to be."""
    if invention is not None and isinstance(outcome, Score):
        return Verdict(case, False, f"{case['id']}: {outcome}, but {invention.what}", invention)
    if same or invention is not None:
        return Verdict(case, True, invention=None if same else invention)
    return Verdict(case, False, f"{case['id']}: {outcome}, {expected}")


def check_all(cases: Iterable[Case], *, edge: bool) -> list[Verdict]:
    """The verdicts of all cases that a scorer of ours covers."""

    check = check_policy if edge else check_score
    return [_checked(case, check) for case in cases if covered(case)]


def _checked(case: Case, check: Callable[[Case], Verdict]) -> Verdict:
    try:
        return check(case)
    except Exception as error:  # noqa: BLE001 - whatever one case breaks on, the others are still told
        return Verdict(case, equal=False, told=f"{case.get('id')}: {error!r}")
