"""A sample as reports show it: its texts, the outcome of each scorer, and the judge's evidence."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal, TypeVar

from evalstone._core.display import digits_for, listed
from evalstone._core.json import to_jsonable
from evalstone._core.reasoning import Split, split_reasoning
from evalstone.report.view import Block, OutcomeView, SampleView, Tone, tone_of
from evalstone.results.grounding_labels import FIELD, grounding_label
from evalstone.results.losses import Loss, LossRule
from evalstone.results.summary import ScorerInfo
from evalstone.results.views.calls import Prompts, call_block
from evalstone.results.views.conversation import conversation, data_blocks, took
from evalstone.results.views.evidence import about_passages, claims_of, is_claims, labels_of, laid_out
from evalstone.types import OUTCOME_NAMES, Failed, Record, Sample, Score

K = TypeVar("K", bound=Hashable)


def goodness(record: Record, info: ScorerInfo) -> float | None:
    """How good a score is, as `ScorerInfo.goodness` gives it; None for a skipped or failed result."""
    return None if record.value is None else info.goodness(record.value)


def with_texts(
    data: Iterable[Sample] | None, names: Iterable[K], key: Callable[[Sample], K] = attrgetter("key")
) -> Iterator[tuple[K, Sample | None]]:
    """The named samples in the order of the data, then the names of those whose texts are not available.

    key: returns the name of a sample.
    """
    rest = dict.fromkeys(names)
    for sample in data or () if rest else ():
        if (name := key(sample)) in rest:
            del rest[name]
            yield name, sample
            if not rest:  # the data may be a large file
                return
    yield from ((name, None) for name in rest)


def scored_answer(sample: Sample, *, keeps_reasoning: bool) -> Split:
    """The reasoning in front of a sample's output that wasn't scored, "" if it was, and the answer that was."""
    return Split("", sample.output or "") if keeps_reasoning else split_reasoning(sample.output or "")


@dataclass(frozen=True, kw_only=True)
class SampleParts:
    """What is shown of a sample, part by part."""

    answer: str
    """The answer that was scored."""
    texts: tuple[Block, ...]
    """The sample's own texts and data."""
    passages: Block | None
    messages: Block | None
    loss: Block | None
    """Where a low answer is lost."""
    claims: tuple[Block, ...]
    """The claims that judges checked."""
    outcomes: tuple[OutcomeView, ...]
    """By record."""
    explained: tuple[Block, ...]
    """By record, its outcome with the reason, judge calls, and evidence that isn't shown with claims and passages."""

    @property
    def panel(self) -> Iterator[Block]:
        """All of it, in the order of a page."""
        right = tuple(block for block in (self.passages, self.messages) if block is not None)
        if self.texts or right:
            yield Block("columns", items=(Block("group", items=self.texts), Block("group", items=right)))
        yield from (self.loss,) if self.loss is not None else ()
        yield from self.claims
        yield from self.explained


def sample_parts(
    sample: Sample | None,
    records: Sequence[Record],
    scorers: Mapping[str, ScorerInfo],
    titles: Mapping[str, str],
    *,
    keeps_reasoning: bool,
    prompts: Mapping[str, Prompts] | None = None,
) -> SampleParts:
    """What is shown of a sample with its outcomes; the arguments are those of `sample_view`."""
    scored = scored_answer(sample or Sample(), keeps_reasoning=keeps_reasoning)
    evidence = {r.signature: to_jsonable(r.evidence) for r in records}
    passages = sample.context if sample is not None and sample.context else ()
    outcomes = tuple(
        _outcome(record, scorers[record.signature], titles, evidence[record.signature]) for record in records
    )
    where, why = _loss(records, scorers, titles)
    return SampleParts(
        answer=scored.answer,
        texts=tuple(_texts(sample, scored)) if sample is not None else (),
        passages=Block("group", "Passages", items=tuple(_passages(passages, evidence))) if passages else None,
        messages=conversation(sample) if sample is not None else None,
        loss=Block("loss", "Loss", why, ((where, "unsure"),)) if where else None,
        claims=tuple(claims_of(evidence, titles)),
        outcomes=outcomes,
        explained=tuple(
            _explained(
                record,
                outcome,
                evidence[record.signature],
                scorers[record.signature],
                None if prompts is None else prompts.get(record.signature, Prompts()),
                shown_above=bool(passages),
            )
            for record, outcome in zip(records, outcomes, strict=True)
        ),
    )


def sample_view(
    name: str,
    sample: Sample | None,
    records: Sequence[Record],
    scorers: Mapping[str, ScorerInfo],
    titles: Mapping[str, str],
    mean_goodness: float | None,
    *,
    keeps_reasoning: bool,
    prompts: Mapping[str, Prompts] | None = None,
) -> SampleView:
    """A sample with its outcomes.

    Args:
        name: The sample's key.
        sample: The sample; None if its texts are not available.
        records: Its records, one for each scorer.
        scorers: The scorers by signature.
        titles: Their titles by signature.
        mean_goodness: The mean of its scores, as `goodness` gives them.
        keeps_reasoning: Whether the reasoning in front of the output was scored. If not, it isn't shown as the answer.
        prompts: What the judges were asked, by the signature of the scorer; None to leave it out.
    """
    parts = sample_parts(sample, records, scorers, titles, keeps_reasoning=keeps_reasoning, prompts=prompts)
    where, why = _loss(records, scorers, titles)
    findings = [
        item for block in parts.claims for item in block.items if any(tone != "good" for _, tone in item.labels)
    ]
    no_texts = () if sample is not None else (Block("note", text="The texts of this sample are not available."),)
    return SampleView(
        id=name,
        question=_question(sample),
        answer=parts.answer,
        label=_label(sample),
        loss=f"{where}: {why}" if where else "",
        goodness=mean_goodness,
        outcomes=parts.outcomes,
        headline=_headline(findings, records, parts.outcomes, scorers),
        findings=tuple(findings),
        panel=(*no_texts, *parts.panel),
    )


def _headline(
    findings: Sequence[Block],
    records: Sequence[Record],
    outcomes: Sequence[OutcomeView],
    scorers: Mapping[str, ScorerInfo],
) -> str:
    """What is wrong with a sample: an unsupported claim, or else the reason of its worst score."""
    if findings:
        return f"{findings[0].labels[0][0]}: {findings[0].text}"
    scored = [(good, at) for at, r in enumerate(records) if (good := goodness(r, scorers[r.signature])) is not None]
    at = min(scored)[1] if scored else 0
    return f"{outcomes[at].title}: {outcomes[at].reason}" if outcomes and outcomes[at].reason else ""


_WHERE: Mapping[Loss, str] = {
    "retrieval": "the passages lack what the answer needs",
    "generation": "the passages had what the answer needs",
    "unknown": "no score tells what the passages had",
}


def _loss(
    records: Sequence[Record], scorers: Mapping[str, ScorerInfo], titles: Mapping[str, str]
) -> tuple[Loss | Literal[""], str]:
    """Where a low answer is lost, and how that is known; "" for other answers."""
    rule = LossRule.of(scorers.values())
    loss = None if rule is None else rule.loss_in(records)
    if rule is None or loss is None:
        return "", ""
    values = {record.signature: record.value for record in records}
    known = (
        f"{titles[info.signature]} {score_text(value, info.scale)}"
        for info in (rule.answer, rule.passages)
        if (value := values.get(info.signature)) is not None
    )
    return loss, f"{_WHERE[loss]} ({listed(known)})"


def _label(sample: Sample | None) -> str:
    """The label of grounding that the data has of a sample; "" without one."""
    return "" if sample is None or grounding_label(sample) is None else str(sample.metadata[FIELD])


def _question(sample: Sample | None) -> str:
    if sample is None:
        return ""
    return sample.input or next((m.content for m in sample.messages if m.role == "user"), "")


def score_text(value: float, scale: float) -> str:
    """A score without trailing zeros, and its scale if that is not 1."""
    text = f"{value:.{digits_for(scale)}f}".rstrip("0").rstrip(".")
    return text if scale == 1 else f"{text} of {scale:g}"


def _outcome(record: Record, info: ScorerInfo, titles: Mapping[str, str], evidence: Any) -> OutcomeView:
    outcome, title = record.outcome, titles[record.signature]
    if isinstance(outcome, Score):
        # The claims are shown anyway, so the reason's list of them is cut off.
        reason = re.split("[;:]", outcome.reason)[0] if is_claims(evidence) else outcome.reason
        return OutcomeView(
            title, outcome.value, score_text(outcome.value, info.scale), tone_of(goodness(record, info)), reason
        )
    if isinstance(outcome, Failed):
        return OutcomeView(title, None, OUTCOME_NAMES[Failed], "bad", outcome.error)
    return OutcomeView(title, None, OUTCOME_NAMES[type(outcome)], "dim", outcome.reason)


# ---- The sample's own texts ----


def _texts(sample: Sample, scored: Split) -> Iterator[Block]:
    spent = took(sample)
    yield from (
        Block(kind, title, text, spent if kind == "answer" else ())
        for kind, title, text in (
            ("part", "Question", sample.input),
            ("part", "Reasoning, not scored", scored.reasoning),
            ("answer", "Answer", scored.answer),
            ("part", "Label of the data", _label(sample)),
            ("part", "Reference", sample.reference),
            ("part", "Instructions", sample.instructions),
            ("part", "Group", sample.group),
            ("part", "Weight", None if sample.weight is None else f"{sample.weight:g}"),
        )
        if text
    )
    yield from data_blocks(
        [
            ("State", to_jsonable(sample.state)),
            ("Metadata", to_jsonable(sample.metadata)),
            ("Trajectory", to_jsonable(sample.trajectory)),
            ("Expected trajectory", to_jsonable(sample.expected_trajectory)),
        ]
    )


def _passages(passages: Sequence[str], evidence: Mapping[str, Any]) -> list[Block]:
    """The passages, each with the judge's labels."""
    labels: dict[int, dict[tuple[str, Tone], None]] = {}
    for value in evidence.values():
        for item in about_passages(value):
            labels.setdefault(item["passage"], {}).update(dict.fromkeys(labels_of(item)))
    return [
        Block("passage", f"Passage {number}", text, labels=tuple(labels.get(number, ())))
        for number, text in enumerate(passages, start=1)
    ]


def _explained(
    record: Record,
    outcome: OutcomeView,
    evidence: Any,
    info: ScorerInfo,
    prompts: Prompts | None,
    *,
    shown_above: bool,
) -> Block:
    """A scorer's outcome: its reason, evidence that isn't shown with the claims and passages, and its judge calls."""
    items, imported = list[Block](), bool(info.tool)
    if evidence and not is_claims(evidence) and not (shown_above and about_passages(evidence)):
        items.append(laid_out(evidence, named=imported))
    if isinstance(record.outcome, Failed):
        failed = {"The judge's raw reply": record.outcome.reply, "Traceback": record.outcome.traceback}
        for title, text in failed.items():
            if text:
                items.append(Block("data", title, items=(Block("raw", text=text),), folded=True))
    if record.calls:
        calls = tuple(call_block(call, prompts, named=imported) for call in record.calls)
        items.append(Block("calls", "Judge calls", labels=((str(len(calls)), "dim"),), items=calls, folded=True))
    return Block("outcome", outcome.title, outcome.reason, ((outcome.text, outcome.tone),), items=tuple(items))
