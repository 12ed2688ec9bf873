"""Texts that attack a report, and the runs, comparisons and views that hold them everywhere."""

from __future__ import annotations

from dataclasses import replace

from evalstone import Message, Run, Sample, Score, ToolCall, compare, evaluate
from evalstone.report.view import View
from evalstone.results.views.comparison import comparison_view
from evalstone.results.views.run import run_view
from evalstone.types import JudgeCall, Record, note
from tests.runs import Claimed, Given

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "<svg/onload=alert(3)>",
    "javascript:alert(4)",
    "\u202eevil\u202c \u2066x\u2069",
    "a\u2028b\u2029c",
    "]]>--><!--<script>",
    "\ud800 lone",
    "\x1b[31mred\x07\x00",
    "'\" onmouseover=alert(5) x='",
    "<style>*{display:none}</style>",
    "<base href=http://evil/>",
    "&lt;b&gt;",
)
MARKUP = "<img src=x onerror=alert(1)>'\""


def hostile_run() -> Run:
    """Every field of every sample, every claim, reason and judge call holds a hostile text."""
    samples = [
        Sample(
            id=f"{number} {text}",
            input=text,
            output=f"{text}. The sky is blue.",
            context=[text, "The sky is blue."],
            reference=text,
            instructions=text,
            messages=[Message(role="user", content=text, tool_calls=[ToolCall(name=text, arguments={text: text})])],
            metadata={"kind": text, text: {text: [text]}},
        )
        for number, text in enumerate(HOSTILE)
    ]
    run = evaluate(samples, [Claimed()], ledger=None)
    records = [replace(record, calls=(_call(record.sample_id),)) for record in run.records]
    return replace(run, records=tuple(records))


def _call(text: str) -> JudgeCall:
    return JudgeCall(question=text, fingerprint="", judge=text, answer=text, reply=text)


def hostile_evidence_run() -> Run:
    """Evidence of a shape that no scorer has, hostile at every depth."""
    run = hostile_run()
    records = [
        replace(
            record,
            outcome=Score(
                0.25, reason=text, evidence=({text: text, "verdict": text, "deep": [{text: [text, {text: 1}]}]},)
            ),
        )
        for record, text in zip(run.records, HOSTILE, strict=True)
    ]
    return replace(run, records=tuple(records))


def hostile_words_run() -> Run:
    """What is said of a run as a whole is hostile."""
    run = evaluate([Sample(id=text, output=text) for text in ("0.5", "0.75", "fail")], [Given()], ledger=None)
    broken: list[Record] = [replace(r, outcome=replace(r.outcome, error=MARKUP)) if r.value is None else r for r in run]
    summary = tuple(replace(line, reasons=((MARKUP, 1),), only_verdict=(MARKUP, 2)) for line in run.summary)
    return replace(
        run,
        records=tuple(broken),
        summary=summary,
        id=MARKUP,
        dataset_name=MARKUP,
        judge=MARKUP,
        judge_note=MARKUP,
        stop_reason=MARKUP,
        started=MARKUP,
        dataset_version=MARKUP,
        warnings={MARKUP: 2},
        judge_stats={MARKUP: {"kind": "panel", "questions": 1, "verdicts": 0, "no_answer": {MARKUP: 1}}},
    )


def hostile_comparison() -> View:
    """A comparison of hostile runs with hostile slices and names."""

    def scored(score: str) -> Run:
        samples = [
            Sample(id=f"{number} {text}", input=text, output=score, metadata={"kind": text})
            for number, text in enumerate(HOSTILE * 5)
        ]
        return replace(evaluate(samples, [Given()], ledger=None), dataset_name=MARKUP)

    comparison = compare(scored("0.5"), scored("0.75"), slice_by="kind")
    return comparison_view(
        replace(comparison, names={"A": MARKUP, "B": MARKUP}, notes=(note("same_run", "fact", runs=(MARKUP, MARKUP)),)),
        most=20,
    )


def hostile_views() -> dict[str, View]:
    """Every report of hostile values."""
    run = hostile_run()
    return {
        "run": run_view(run, worst=20, slices=run.slices("kind")),
        "evidence": run_view(hostile_evidence_run(), worst=20),
        "words": run_view(hostile_words_run()),
        "comparison": hostile_comparison(),
    }
