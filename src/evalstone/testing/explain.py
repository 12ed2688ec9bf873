"""Why scores fail a test: each score with what is required, the claims and passages behind it, the judge's reasons.

All texts of samples and judges are written on one line each, with what is invisible in them spelled out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from evalstone._core.display import count, safe
from evalstone._core.truth import NoTruthValue
from evalstone.report.view import Block
from evalstone.results.summary import ScorerInfo, scorer_titles
from evalstone.results.views.samples import sample_view, score_text
from evalstone.types import Failed, Record, Sample, Score, Skipped, reaches

LONGEST = 400
MOST_FINDINGS = 8


@dataclass(frozen=True)
class Check(NoTruthValue):
    """A score, and what it must reach."""

    info: ScorerInfo
    record: Record
    threshold: float | None = None
    """At least that, or at most where lower is better; None if there must be a score, and no more."""

    @property
    def passed(self) -> bool:
        """Whether there is a score, and it reaches the threshold."""
        value, info = self.record.value, self.info
        if value is None or self.threshold is None:
            return value is not None
        return reaches(value, self.threshold, info.scale, lower_is_better=info.lower_is_better)

    def text(self, title: str) -> str:
        """The outcome in a few words, with what is required if it is not met."""
        title = safe(title)
        match self.record.outcome:
            case Skipped(reason):
                return f"{title} was skipped: {safe(reason, LONGEST)}"
            case Failed(error):
                return f"{title} failed: {safe(error, LONGEST)}"
            case Score(value):
                text = f"{title} is {score_text(value, self.info.scale)}"
                if self.passed or self.threshold is None:
                    return text
                side = "at most" if self.info.lower_is_better else "at least"
                return f"{text}, and must be {side} {self.threshold:g}"


def explained(checks: Sequence[Check], sample: Sample, *, keeps_reasoning: bool) -> str:
    """Why checks of a sample fail: in the first line what is wrong, then the evidence, the answer, and other scores."""
    titles = scorer_titles([check.info for check in checks])
    missed = [check for check in checks if not check.passed]
    heads = [check.text(titles[check.info.signature]) for check in missed]
    first = heads[0] if len(heads) == 1 else f"{count(len(heads), 'score')} of {len(checks)} missed: {'; '.join(heads)}"
    lines = [first, *(f"  {line}" for line in sample_lines(missed, sample, keeps_reasoning=keeps_reasoning))]
    lines += [f"  {check.text(titles[check.info.signature])}" for check in checks if check.passed]
    return "\n".join(lines)


def sample_lines(checks: Iterable[Check], sample: Sample, *, keeps_reasoning: bool) -> Iterator[str]:
    """The claims that are at fault, with the passages they were checked against, the judge's reasons, and the texts.

    keeps_reasoning: whether the reasoning in front of the output was scored.
    """
    checks = tuple(checks)
    scorers = {check.info.signature: check.info for check in checks}
    titles = scorer_titles(list(scorers.values()))
    records = [check.record for check in checks]
    view = sample_view(sample.id, sample, records, scorers, titles, None, keeps_reasoning=keeps_reasoning)
    for check, outcome in zip(checks, view.outcomes, strict=True):
        if isinstance(check.record.outcome, Score) and outcome.reason:
            yield f"{safe(outcome.title)}: {safe(outcome.reason, LONGEST)}"
        if isinstance(check.record.outcome, Failed) and check.record.outcome.reply:
            yield f"the judge's reply: “{safe(check.record.outcome.reply, LONGEST)}”"
    passages = sample.context or ()
    cited: dict[int, None] = {}
    for finding in view.findings[:MOST_FINDINGS]:
        yield from _finding(finding)
        cited.update(dict.fromkeys(finding.cites))
    if (more := len(view.findings) - MOST_FINDINGS) > 0:
        yield f"and {count(more, 'more claim')}"
    if view.findings:
        if not all(finding.cites for finding in view.findings):  # a claim that cites none was checked against all
            cited.update(dict.fromkeys(range(1, len(passages) + 1)))
        for number in [number for number in cited if 1 <= number <= len(passages)][:MOST_FINDINGS]:
            yield f"passage {number}: “{safe(passages[number - 1], LONGEST)}”"
    answered = not all(isinstance(o := check.record.outcome, Failed) and o.by_target for check in checks)
    for name, text in (("question", view.question), ("answer", view.answer if answered else "")):
        if text:
            yield f"{name}: “{safe(text, LONGEST)}”"


def _finding(finding: Block) -> Iterator[str]:
    yield f"{safe(finding.labels[0][0])}: “{safe(finding.text, LONGEST)}”"
    if finding.why:
        yield f"  {safe(finding.why, LONGEST)}"
