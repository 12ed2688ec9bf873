"""A sample as reports show it: its texts, the outcome of each scorer, and the judge's evidence."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal, TypeVar, cast

from evalstone._core.display import digits_for, listed
from evalstone._core.json import to_jsonable
from evalstone._core.reasoning import Split, split_reasoning
from evalstone.report.view import Block, OutcomeView, SampleView, Tone, tone_of
from evalstone.results.grounding_labels import FIELD, grounding_label
from evalstone.results.losses import Loss, LossRule
from evalstone.results.summary import ScorerInfo
from evalstone.types import OUTCOME_NAMES, Failed, JudgeCall, Message, Record, Sample, Score

K = TypeVar("K", bound=Hashable)

VERDICTS: Mapping[str, tuple[str, Tone]] = {
    "supported": ("✓ supported", "good"),
    "contradicted": ("✕ contradicted", "bad"),
    "not_mentioned": ("? not mentioned", "unsure"),
    "high": ("high relevance", "good"),
    "medium": ("medium relevance", "unsure"),
    "low": ("low relevance", "unsure"),
    "none": ("no relevance", "bad"),
}
"""The labels of judges' verdicts and levels."""
HARMS = ("biased", "toxic", "redundant", "refused")
"""Yes-or-no verdicts where yes is the bad answer."""
NEUTRAL = ("used", "useful")
"""Yes-or-no verdicts where no is not a fault."""
_LABELS = ("verdict", "level", "choice", "impact")
_FAULTS: Mapping[tuple[str, str], str] = {
    ("addresses", "no"): "off topic",
    ("match", "missing"): "missing",
    ("verdict", "no"): "no",
}
"""Entries of evidence with a value that is a fault, and what it is called."""
_FAULT_NAMES = ("addresses", "match")
_HANDLED = ("reason", "passages", "passage", *_LABELS)


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


def sample_view(
    name: str,
    sample: Sample | None,
    records: Sequence[Record],
    scorers: Mapping[str, ScorerInfo],
    titles: Mapping[str, str],
    mean_goodness: float | None,
    *,
    keeps_reasoning: bool,
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
    """
    scored = scored_answer(sample or Sample(), keeps_reasoning=keeps_reasoning)
    evidence = {r.signature: to_jsonable(r.evidence) for r in records}
    claims = _claims(evidence, titles)
    passages = sample.context if sample is not None and sample.context else ()
    outcomes = tuple(
        _outcome(record, scorers[record.signature], titles, evidence[record.signature]) for record in records
    )
    panel = [] if sample is not None else [Block("note", text="The texts of this sample are not available.")]
    panel += _texts(sample, scored, _passages(passages, evidence)) if sample is not None else []
    where, why = _loss(records, scorers, titles)
    panel += [Block("loss", "Loss", why, ((where, "unsure"),))] if where else []
    panel += claims
    panel += [
        _explained(record, outcome, evidence[record.signature], shown_above=bool(passages))
        for record, outcome in zip(records, outcomes, strict=True)
    ]
    findings = [item for block in claims for item in block.items if any(tone != "good" for _, tone in item.labels)]
    return SampleView(
        id=name,
        question=_question(sample),
        answer=scored.answer,
        label=_label(sample),
        loss=f"{where}: {why}" if where else "",
        goodness=mean_goodness,
        outcomes=outcomes,
        headline=_headline(findings, records, outcomes, scorers),
        findings=tuple(findings),
        panel=tuple(panel),
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
        reason = re.split("[;:]", outcome.reason)[0] if _is_claims(evidence) else outcome.reason
        return OutcomeView(
            title, outcome.value, score_text(outcome.value, info.scale), tone_of(goodness(record, info)), reason
        )
    if isinstance(outcome, Failed):
        return OutcomeView(title, None, OUTCOME_NAMES[Failed], "bad", outcome.error)
    return OutcomeView(title, None, OUTCOME_NAMES[type(outcome)], "dim", outcome.reason)


# ---- The sample's own texts ----


def _texts(sample: Sample, scored: Split, passages: Sequence[Block]) -> Iterator[Block]:
    texts = [
        Block(kind, title, text)
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
    ]
    others = [
        ("State", to_jsonable(sample.state)),
        ("Metadata", to_jsonable(sample.metadata)),
        ("Trajectory", to_jsonable(sample.trajectory)),
        ("Expected trajectory", to_jsonable(sample.expected_trajectory)),
    ]
    texts += [Block("data", title, items=(_data(value),), folded=True) for title, value in others if value]
    right = [Block("group", "Passages", items=tuple(passages))] if passages else []
    if sample.messages:
        right.append(Block("group", "Conversation", items=tuple(map(_message, sample.messages))))
    yield Block("columns", items=(Block("group", items=tuple(texts)), Block("group", items=tuple(right))))


def _message(message: Message) -> Block:
    calls = [
        Block(
            "data",
            call.name,
            labels=((call.state, "bad" if call.state == "error" else "dim"),),
            items=tuple(
                Block("group", title, items=(_data(to_jsonable(value)),))
                for title, value in (
                    ("arguments", call.arguments),
                    ("error" if call.error else "result", call.error or call.result),
                )
                if value not in (None, {})
            ),
        )
        for call in message.tool_calls
    ]
    notes = (Block("part", "note", note) for note in message.notes)
    return Block("message", message.role, message.content, items=(*calls, *notes))


def _data(value: Any) -> Block:
    """A sample's data, unchanged: names with plain values first, then names with nested values."""
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value).items()
        nested = [(name, item) for name, item in entries if _is_nested(item)]
        pairs = tuple((name, _exact(item)) for name, item in entries if not _is_nested(item))
        return Block(
            "item", pairs=pairs, items=tuple(Block("group", name, items=(_data(item),)) for name, item in nested)
        )
    if _is_nested(value):
        return Block("group", items=tuple(map(_data, cast("list[Any]", value))))
    return Block("part", text=_exact(value))


def _is_nested(value: Any) -> bool:
    return bool(value) and (isinstance(value, dict) or (isinstance(value, list) and not _is_flat(value)))


def _exact(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _passages(passages: Sequence[str], evidence: Mapping[str, Any]) -> list[Block]:
    """The passages, each with the judge's labels."""
    labels: dict[int, dict[tuple[str, Tone], None]] = {}
    for value in evidence.values():
        for item in _about_passages(value):
            labels.setdefault(item["passage"], {}).update(dict.fromkeys(_labels(item)))
    return [
        Block("passage", f"Passage {number}", text, labels=tuple(labels.get(number, ())))
        for number, text in enumerate(passages, start=1)
    ]


# ---- Evidence ----


def _objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list that contains nothing else; empty for any other value."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return cast("list[dict[str, Any]]", items) if all(isinstance(item, dict) for item in items) else []


def _is_claims(value: Any) -> bool:
    items = _objects(value)
    return bool(items) and all(isinstance(i.get("claim"), str) and isinstance(i.get("verdict"), str) for i in items)


def _about_passages(value: Any) -> list[dict[str, Any]]:
    """The objects of the evidence that are about passages by number."""
    inside = cast("dict[str, Any]", value).get("passages") if isinstance(value, dict) else value
    items = _objects(inside)
    return items if all(isinstance(item.get("passage"), int) for item in items) else []


def _claims(evidence: Mapping[str, Any], titles: Mapping[str, str]) -> list[Block]:
    """The claims with their verdicts, once for scorers that share them."""
    shared: dict[str, tuple[list[dict[str, Any]], list[str]]] = {}
    for scorer, value in evidence.items():
        if _is_claims(value):
            shared.setdefault(json.dumps(value, sort_keys=True), (_objects(value), []))[1].append(titles[scorer])
    several = len(shared) > 1
    return [
        Block("claims", f"Claims: {listed(names)}" if several else "Claims", items=tuple(map(_item, items)))
        for items, names in shared.values()
    ]


def _explained(record: Record, outcome: OutcomeView, evidence: Any, *, shown_above: bool) -> Block:
    """A scorer's outcome: its reason, evidence that isn't shown with the claims and passages, and its judge calls."""
    items: list[Block] = []
    if evidence and not _is_claims(evidence) and not (shown_above and _about_passages(evidence)):
        items.append(laid_out(evidence))
    if isinstance(record.outcome, Failed):
        failed = {"The judge's raw reply": record.outcome.reply, "Traceback": record.outcome.traceback}
        for title, text in failed.items():
            if text:
                items.append(Block("data", title, items=(Block("raw", text=text),), folded=True))
    if record.calls:
        calls = tuple(Block("note", text=_judge_call(call)) for call in record.calls)
        items.append(Block("data", "Judge calls", items=calls, folded=True))
    return Block("outcome", outcome.title, outcome.reason, ((outcome.text, outcome.tone),), items=tuple(items))


def _judge_call(call: JudgeCall) -> str:
    text = f"{call.question}: {'answered' if call.answer is not None else 'not answered'} by {call.judge}"
    text += f", {call.seconds:.2f} s" if call.source == "asked" else f", {call.source}"
    text += f", ${call.cost:.4f}" if call.cost else ""
    text += "" if call.probability is None else f", probability {call.probability:.2f}"
    citations = (call.detail or {}).get("citations")
    return f"{text}. Doubtful citations: {citations}" if citations else text


def findings_in(evidence: Any) -> Iterator[tuple[str, str]]:
    """What is wrong by the evidence, as data: the label and the text of each item whose label isn't good, such as a
    claim that no passage supports. Items that are named by a number, such as passages, have no text of their own."""
    if isinstance(evidence, list):
        for item in cast("list[Any]", evidence):
            yield from findings_in(item)
    elif isinstance(evidence, dict):
        item = cast("dict[str, Any]", evidence)
        label = next((text for text, tone in _labels(item) if tone in ("bad", "unsure")), "")
        label = label or next((said for (name, value), said in _FAULTS.items() if item.get(name) == value), "")
        text = next(
            (v for name, v in item.items() if isinstance(v, str) and name not in (*_HANDLED, *_FAULT_NAMES)), ""
        )
        if label and text:
            yield label, text
        for value in item.values():
            if isinstance(value, dict | list):
                yield from findings_in(value)


def laid_out(value: Any) -> Block:
    """Any evidence as a block: verdicts as labels, lists as items, everything else as names and values."""
    if isinstance(value, dict):
        return _item(cast("dict[str, Any]", value))
    if isinstance(value, list):
        return Block("group", items=tuple(map(laid_out, cast("list[Any]", value))))
    return Block("part", text=_plain(value))


def _item(item: Mapping[str, Any]) -> Block:
    """One object of the evidence: its main text, its verdict, the reason, the passages it cites, and the rest."""
    rest = {name: value for name, value in item.items() if name not in _HANDLED and value not in (None, "", [], {})}
    headline = next((name for name, value in rest.items() if isinstance(value, str)), None)
    text = str(rest.pop(headline)) if headline is not None else ""
    if isinstance(item.get("passage"), int):
        text = text or f"Passage {item['passage']}"
    nested: dict[str, Any] = {
        k: v for k, v in rest.items() if isinstance(v, dict) or (isinstance(v, list) and not _is_flat(v))
    }
    pairs = [
        (_words(name), _plain(value))
        for name, value in rest.items()
        if name not in nested and not isinstance(value, bool)
    ]
    if isinstance(item.get("passages"), list):
        cited = cast("list[Any]", item["passages"])
        if not all(isinstance(number, int) for number in cited):
            nested["passages"] = cited
    cites = tuple(cast("list[int]", item["passages"])) if _cites(item) else ()
    inside = tuple(
        Block("group", _words(name), items=laid_out(value).items or (laid_out(value),))
        for name, value in nested.items()
    )
    cited = f"passage {listed(map(str, cites))}" if cites else ""
    why = " · ".join(filter(None, (str(item.get("reason") or ""), cited)))
    kind = "claim" if isinstance(item.get("claim"), str) else "item"
    return Block(kind, "", text, tuple(_labels(item)), why, tuple(pairs), inside, cites)


def _cites(item: Mapping[str, Any]) -> bool:
    cited = item.get("passages")
    return isinstance(cited, list) and all(isinstance(number, int) for number in cast("list[Any]", cited))


def _labels(item: Mapping[str, Any]) -> Iterator[tuple[str, Tone]]:
    for name, value in item.items():
        if name in _LABELS and isinstance(value, str):
            yield VERDICTS.get(value, (_words(value), ""))
        elif isinstance(value, bool):
            tone = "good" if value != (name in HARMS) else "dim" if name in NEUTRAL else "bad"
            yield (_words(name) if value else f"not {_words(name)}", tone)


def _is_flat(value: Any) -> bool:
    """Whether a value is a list without nested lists or objects."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return isinstance(value, list) and not any(isinstance(item, dict | list) for item in items)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.15g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return listed(map(_plain, cast("list[Any]", value)))
    return "none" if value is None else str(value)
