"""What a report says of a run, whichever format lays it out."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from typing import Any

import pytest
from rich.console import Console

from evalstone import Cascade, Panel, Run, Sample, Score, Scorer, compare, evaluate
from evalstone.judges import ScriptedJudge
from evalstone.models.provider import Completion
from evalstone.questions.base import Ask, Question
from evalstone.questions.verdict import AgreesWithContext
from evalstone.report.html import page
from evalstone.report.markdown import lines
from evalstone.report.terminal import show
from evalstone.report.view import Block, Column, HistogramChart, View, table
from evalstone.results.calibration import Calibration, LabeledScore
from evalstone.results.views.calibration import calibration_notes
from evalstone.results.views.comparison import comparison_view
from evalstone.results.views.evidence import laid_out
from evalstone.results.views.run import retries, run_notes, run_view
from evalstone.types import Message, ToolCall
from tests.fakes import claims, verdicts
from tests.report.hostile import hostile_views
from tests.runs import Given, Harm, run_of


def on_screen(view: View, width: int = 5000) -> str:
    out = io.StringIO()
    show(view, Console(file=out, width=width, highlight=False))
    return out.getvalue()


def reports(view: View) -> list[str]:
    return [on_screen(view), "".join(page(view)), "\n".join(lines(view)).replace("\\", "")]


def blocks(parts: Sequence[Block]) -> list[Block]:
    """The blocks with those inside them."""
    return [block for part in parts for block in (part, *blocks(part.items))]


def test_the_worst_samples_are_those_with_the_lowest_mean_goodness_worst_first() -> None:
    view = run_view(run_of(["0.9", "0.5", "fail", "0.1", "1", "skip"]), worst=2)
    assert [sample.id for sample in view.examples[0].samples] == ["s4", "s2"]
    harmful = run_view(run_of(["0.9", "0.1", "0.5"], [Harm()]), worst=2)
    assert [sample.id for sample in harmful.examples[0].samples] == ["s1", "s3"]


@pytest.mark.parametrize("keep", [False, True])
def test_the_answer_is_what_was_scored_and_pages_have_the_reasoning_beside_it(keep: bool) -> None:
    thought = "<think>It is Berlin? </think>Bern"
    run = evaluate([{"output": thought}], "exact_match(expected=Basel)", keep_reasoning=keep, ledger=None)
    samples = run_view(run).samples
    assert samples is not None
    (sample,) = samples.samples
    shown = {block.title: block.text for block in blocks(sample.panel) if block.kind in ("answer", "part")}
    assert sample.answer == shown["Answer"] == (thought if keep else "Bern")
    assert shown.get("Reasoning, not scored") == (None if keep else "It is Berlin?")
    assert all(("Berlin" in report) is keep for report in (on_screen(run_view(run)), "\n".join(lines(run_view(run)))))


def test_perfect_samples_are_not_among_the_worst() -> None:
    assert run_view(run_of(["1", "1"])).examples == ()
    assert run_view(run_of(["0.5", "1"]), worst=0).examples == ()


def test_the_tone_of_a_score_follows_the_direction_of_better() -> None:
    (sample,) = run_view(run_of(["0.9"], [Given(), Harm()])).examples[0].samples
    assert [(outcome.text, outcome.tone) for outcome in sample.outcomes] == [("0.9", "good"), ("0.9", "bad")]


def test_a_run_says_how_many_samples_and_which_judge() -> None:
    assert run_view(run_of(["0.5"])).lead.startswith("1 sample · no judge")
    assert run_view(replace(run_of(["0.5", "1"]), judge="lexical@2")).lead == "2 samples · judge lexical@2"
    stopped = replace(run_of(["0.5", "1"]), stop_reason="the budget is spent", n_samples=5)
    assert run_view(stopped).lead.startswith("2 of 5 samples · no")
    assert stopped.stop_reason in run_view(stopped).warnings[0]


def test_calls_retries_and_resumed_results_are_counted() -> None:
    run = run_of(["0.5"])
    summary = (replace(run.summary[0], asked=240, shared=180, cached=0),)
    view = run_view(
        replace(run, summary=summary, resumed=16, warnings={"HTTP 429": 40, "malformed replies": 17, "timeouts": 2})
    )
    for line in (
        "judge calls: 240 asked, 180 shared, 0 cached",
        "resumed: 16 results from the interrupted run",
        "retried 40 × HTTP 429; 2 timeouts",
    ):
        assert line in [fact.line for fact in view.facts]
    assert retries({"malformed replies": 1}) == ""
    assert retries({"timeouts": 1}) == "1 timeout"
    assert retries({"temperature refused": 2, "HTTP 429": 3}) == "retried 3 × HTTP 429"


def test_a_resumed_run_says_since_when_which_code_is_unchanged() -> None:
    def line(when: datetime, *code: str) -> str:
        run = replace(run_of(["0.5"]), resumed=4, started=when.isoformat(), resumed_at=when.isoformat(), code=code)
        return next(fact.line for fact in run_view(run).facts if fact.line.startswith("resumed"))

    now = datetime.now(UTC)
    clock = f"{now.astimezone():%H:%M}"
    assert line(now) == f"resumed: 4 results from {clock}"
    assert re.fullmatch(rf"resumed: 4 .* {clock}; .* my_app\.py .*", line(now, "my_app.py"))
    assert " my_app.py and helper.py " in line(now, "my_app.py", "helper.py")
    assert " a, b, c, d and 2 more " in line(now, *"abcdef")
    earlier = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert line(earlier) == f"resumed: 4 results from {earlier.astimezone():%Y-%m-%d %H:%M}"


def test_metadata_comes_last_in_every_format() -> None:
    for report in reports(run_view(run_of(["0.5", "0.25"]))):
        assert report.index("given") < report.index("Worst samples") < report.rindex("0.0 s")


def test_what_is_missing_is_said_with_its_bounds_and_reasons() -> None:
    view = run_view(run_of(["0.25", "0.75", "skip", "fail"]))
    assert "1 result failed" in view.warnings[0]
    for report in reports(view):
        assert "given: 2 of 4 samples " in report
        assert "between 0.250 and 0.750" in report
        assert "nothing to say" in report
        assert "could not convert" in report
    for report in reports(run_view(run_of(["0.5", "skip"]))):
        assert "given: 1 of 2 samples " in report
        assert "between 0.250 and 0.750" in report


def test_each_reason_for_missing_results_names_its_first_samples() -> None:
    run = run_of(["0.25", "skip", *["fail"] * 5])
    long = replace(
        run, records=[replace(record, sample_id=f"{record.sample_id}-{'x' * 100}") for record in run.records]
    )
    for report in reports(run_view(run)):
        assert re.search(r"to say.*\bs2\b", report, re.S)
        assert "s3, s4 and 3 more" in report
    for report in reports(run_view(long)):
        assert f"s3-{'x' * 26}…, s4-{'x' * 26}… and 3 more" in report


def test_reasons_beyond_the_most_frequent_name_samples_too() -> None:
    run = run_of([f"no number {place}" for place in range(7)])
    (table,) = next(part for part in run_view(run).details if part.title == "Skipped and failed").tables
    assert [cell.text for cell in table.rows[-1]] == ["given", "2", "other reasons", "s6, s7"]


def test_equal_scores_have_an_interval_with_a_width_in_every_format() -> None:
    run = run_of(["0.55"] * 60)
    view = run_view(run)
    assert [cell.text for cell in view.sections[0].tables[0].rows[0][:3]] == ["given", "0.550", "0.517 to 0.577"]
    for report in reports(view):
        assert "0.517" in report
        assert "0.550 to 0.550" not in report


def test_notes_on_charts_are_on_pages_alone() -> None:
    answers = ["0.25", "0.75", "skip"] * 10
    data = [{"topic": topic} for topic in "ab"] * 15
    a, b = run_of(answers, metadata=data), run_of(answers[::-1], metadata=data)
    for view, note in (
        (run_view(a), "Bounds in the charts:"),
        (comparison_view(compare(a, b, slice_by="topic")), "intervals that exceed them are cut off"),
    ):
        screen, html, markdown = reports(view)
        assert note in html
        assert note not in screen
        assert note not in markdown


def test_clusters_are_named_and_shared_notes_are_said_once() -> None:
    run = run_of(["0.5", "0.25"] * 30, [Given(), Harm()], metadata=[{"group": str(n % 30)} for n in range(60)])
    (told,) = run_notes(run)
    assert told.startswith("all scorers: clustered")
    assert told.endswith(" (30 clusters)")


def test_columns_that_say_nothing_are_said_once() -> None:
    columns = (Column("name"), Column("n", informative=False), Column("p"), Column("empty"))
    several = table("caption", columns, [("a", "3", "0.1", "-"), ("b", "3", "0.1", "")])
    assert [column.title for column in several.columns] == ["name", "p"]
    (same,) = several.notes
    assert same.endswith(": n 3.")
    assert [column.title for column in table("caption", columns, [("a", "3", "0.1", "-")]).columns] == [
        "name",
        "n",
        "p",
    ]


def test_claims_that_scorers_share_are_shown_once() -> None:
    sample = {"id": "one", "output": "x and y", "context": ["p"]}
    judge = ScriptedJudge({"list_claims": claims("x", "y"), "verify_claims": verdicts("supported", "contradicted")})
    run = evaluate([sample], ["faithfulness", "hallucination"], judge=judge, ledger=None)
    view = run_view(run)
    (shown,) = view.examples[0].samples
    assert [block.text for block in blocks(shown.panel) if block.kind == "claim"] == ["x", "y"]
    assert [(finding.text, finding.labels[0]) for finding in shown.findings] == [("y", ("✕ contradicted", "bad"))]
    assert shown.headline == "✕ contradicted: y"
    assert on_screen(view).count("contradicted: y") == 1
    supported, unsupported = (outcome.reason for outcome in shown.outcomes)
    assert supported.startswith("1 of 2 claims ")
    assert unsupported == supported.replace("are", "are not")


def test_evidence_is_laid_out_and_never_raw_json() -> None:
    evidence = (
        {"criterion": "polite", "met": False, "reason": "rude"},
        {"steps": [{"name": "search", "depth": 2, "sum": 12345.67}]},
    )
    run = run_of(["0.5"])
    record = replace(run.records[0], outcome=Score(0.5, evidence=evidence))
    (sample,) = run_view(replace(run, records=(record,))).examples[0].samples
    found = blocks(sample.panel)
    polite = next(block for block in found if block.text == "polite")
    assert (polite.labels, polite.why) == ((("not met", "bad"),), "rude")
    search = next(block for block in found if block.text == "search")
    assert search.pairs == (("depth", "2"), ("sum", "12345.67"))
    assert not [block for block in found if "{" in block.text]


def test_a_probability_says_what_it_is_of() -> None:
    evidence = (
        {"claim": "x", "verdict": "contradicted", "probability": 0.734},
        {"statement": "y", "addresses": "no", "probability": 0.6},
        {"claim": "z", "verdict": "no", "probability": 0.2},
    )
    run = run_of(["0.5"])
    record = replace(run.records[0], outcome=Score(0.5, evidence=evidence))
    (sample,) = run_view(replace(run, records=(record,))).examples[0].samples
    found = {block.text: block.pairs[-1] for block in blocks(sample.panel) if block.text in ("x", "y", "z")}
    assert found == {
        "x": ("probability of this verdict", "0.734"),
        "y": ("probability of this verdict", "0.6"),
        "z": ("probability of yes", "0.2"),
    }


def test_data_of_a_sample_are_shown_as_they_are_with_every_name() -> None:
    arguments: dict[str, Any] = {
        "order": "12",
        "amount": 123456.78,
        "reason": "broken",
        "force": False,
        "who": {"name": "Ada"},
        "no": [],
    }
    calls = [
        ToolCall(name="refund", arguments=arguments, result=["a, b", "c"]),
        ToolCall(name="mail", arguments={"to": "Ada"}, state="error", error="no address"),
    ]
    messages = [Message(role="assistant", tool_calls=calls)]
    sample = Sample(output="0.5", messages=messages, state={"total": 0.1234567}, metadata={"passages": [1, 2]})
    (shown,) = run_view(evaluate([sample], [Given()], ledger=None)).examples[0].samples
    found = blocks(shown.panel)
    refund, mail = (next(block for block in found if block.title.startswith(name)) for name in ("refund(", "mail("))
    assert refund.title.startswith('refund(order=12, amount=123456.78, reason=broken, force=false, who={"name": "Ada"')
    assert (mail.title, mail.labels, mail.folded) == ("mail(to=Ada)", (("error", "bad"),), False)
    assert [part.title for part in refund.items + mail.items] == ["arguments", "result", "error"]
    (given,) = refund.items[0].items
    assert given.pairs == (
        ("order", "12"),
        ("amount", "123456.78"),
        ("reason", "broken"),
        ("force", "false"),
        ("no", "[]"),
    )
    assert [(part.title, part.items[0].pairs) for part in given.items] == [("who", (("name", "Ada"),))]
    assert refund.items[1].items[0].text == '["a, b", "c"]'
    state, metadata = (next(block for block in found if block.title == name) for name in ("State", "Metadata"))
    assert (state.items[0].pairs, metadata.items[0].pairs) == ((("total", "0.1234567"),), (("passages", "[1, 2]"),))


def test_what_judges_say_of_passages_stands_at_the_passages() -> None:
    run = evaluate([Sample(id="a", output="0.5", context=["one", "two"])], [Given()], ledger=None)
    evidence = ({"passage": 1, "level": "high", "used": False}, {"passage": 2, "level": "none", "used": False})
    record = replace(run.records[0], outcome=Score(0.5, evidence=evidence))
    (sample,) = run_view(replace(run, records=(record,))).examples[0].samples
    passages = [block for block in blocks(sample.panel) if block.kind == "passage"]
    assert [block.labels for block in passages] == [
        (("high relevance", "good"), ("not used", "dim")),
        (("no relevance", "bad"), ("not used", "dim")),
    ]


def test_a_score_short_of_a_bin_by_rounding_is_in_it() -> None:
    (score,) = run_view(run_of(["0.7999999999999999"])).sections[0].tables[0].rows
    (chart,) = (cell.chart for cell in score if isinstance(cell.chart, HistogramChart))
    assert chart.counts.index(1) == 16


def test_slices_are_folded_and_the_worse_ones_named_above() -> None:
    scores = ["0.9", "0.95"] * 15 + ["0.1", "0.15"] * 5
    run = run_of(scores, metadata=[{"kind": "easy" if n < 30 else "hard"} for n in range(40)])
    section = run_view(run, slices=run.slices("kind")).details[-1]
    assert section.folded
    (lead,) = section.lead
    assert lead.startswith("given, kind=hard: ")
    assert lead.endswith(" by 0.800 (n = 10, p < 0.001).")
    even = run_of(["0.5"] * 20, metadata=[{"kind": str(n % 2)} for n in range(20)])
    (calm,) = run_view(even, slices=even.slices("kind")).details
    (lead,) = calm.lead
    assert lead.startswith("No slice is")


def composite(name: str = "a") -> Run:
    def saying(who: str, *words: str) -> ScriptedJudge:
        return ScriptedJudge({"list_claims": claims("x", "y"), "verify_claims": verdicts(*words)}, name=who)

    sample = {"id": "one", "output": "x and y", "context": ["p"]}
    panel = Panel(saying(name, "supported", "supported"), saying("b", "supported", "contradicted"))
    return evaluate([sample], ["faithfulness"], judge=Cascade(panel, saying("dear", "supported")), ledger=None)


ESCALATED = "about 0.5 of 1 question escalated (50%"


def test_every_report_says_what_composite_judges_did() -> None:
    for report in reports(run_view(composite())):
        assert f"{ESCALATED}, 95% CI 1.3% to 98.8%), 0 calls" in report
        assert "2 questions, 2 verdicts " in report
        assert "mean agreement of 0.750 (95% CI " in report


def cascade_over(samples: int, sure: int) -> Run:
    """A run of a cascade whose first judge is sure of some of the samples."""

    def reply(probability: float) -> Completion:
        return Completion('{"reason": "", "verdict": "yes"}', probability=probability)

    def first_reply(question: Question[Any]) -> Completion:
        assert isinstance(question, AgreesWithContext)
        return reply(1.0 if int(question.answer) < sure else 0.5)

    first = ScriptedJudge(first_reply, name="cheap")
    second = ScriptedJudge(lambda _: reply(1.0), name="dear")
    rows = [{"input": "How much?", "output": str(number), "context": ["p"]} for number in range(samples)]
    return evaluate(rows, "relevancy_check", judge=Cascade(first, second, threshold=0.9), ledger=None)


@pytest.mark.parametrize(
    ("samples", "sure", "warned"),
    [(20, 0, "100% of 20 questions"), (41, 2, "95.1% of 41 questions"), (40, 2, ""), (19, 0, "")],
)
def test_a_cascade_that_escalates_nearly_everything_is_warned_about(samples: int, sure: int, warned: str) -> None:
    view = run_view(cascade_over(samples, sure))
    said = [text for text in view.warnings if "saves next to nothing" in text]
    assert len(said) == bool(warned)
    for text in said:
        assert f" escalated {warned}, " in text
        assert "cascade(cheap, dear, threshold=0.9)" in text
        assert all(text in report for report in reports(view))


def test_results_without_the_interval_of_an_escalated_share_are_still_shown() -> None:
    run = composite()
    stats = {
        judge: {name: value for name, value in told.items() if name != "share_interval"}
        for judge, told in run.judge_stats.items()
    }
    assert f"{ESCALATED}), 0 calls" in on_screen(run_view(replace(run, judge_stats=stats)))


def test_a_long_judge_name_hides_no_figure_and_writes_nothing_to_the_screen() -> None:
    run = composite("a" * 3000)  # which was read: an escape is in no name of a judge that is made
    shown = on_screen(run_view(replace(run, judge_note=run.judge_note.replace("aaa", "\x1b[31m", 1))))
    assert f"{ESCALATED}, 95% CI 1.3% to 98.8%)" in shown
    assert "mean agreement of 0.750" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("name", ["run", "evidence", "words", "comparison"])
def test_hostile_text_moves_no_terminal_and_opens_no_markup(name: str) -> None:
    shown = on_screen(hostile_views()[name], 120)
    assert not set(shown) & set("\x1b\x07\x00\u202e\u2066\u2028\ud800")


def test_a_run_without_its_texts_says_so() -> None:
    (sample,) = run_view(replace(run_of(["0.5"]), samples=None)).examples[0].samples
    assert sample.panel[0].text.endswith(" are not available.")
    assert (sample.question, sample.answer) == ("", "")


def test_terminal_and_html_import_no_library_of_the_other() -> None:
    code = (
        "import sys, evalstone.results.views.run, evalstone.results.views.comparison, evalstone.results.views.audit\n"
        "assert not {'jinja2', 'rich'} & sys.modules.keys(), sys.modules.keys() & {'jinja2', 'rich'}\n"
        "import evalstone.report.terminal, evalstone.report.markdown\n"
        "import evalstone.results.views.exports, evalstone.results.views.junit\n"
        "assert 'jinja2' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_sample_without_claims_is_headed_by_the_reason_of_its_worst_score() -> None:
    run = run_of(["0.9"], [Given(), Harm()])
    (sample,) = run_view(run).examples[0].samples
    assert sample.headline == "harm: says 0.9"
    (low,) = run_view(run_of(["0.1"], [Given(), Harm()])).examples[0].samples
    assert low.headline == "given: says 0.1"


# ---- Judges ----


def judged(*replies: str, scorer: Any = "fact_check") -> Run:
    """One sample for each verdict."""
    samples = [{"id": str(n), "output": f"It is {n}.", "context": ["p"]} for n in range(len(replies))]
    judge = ScriptedJudge([{"reason": "It says so.", "verdict": verdict} for verdict in replies])
    return evaluate(samples, [scorer], judge=judge, concurrency=1, ledger=None)


def calibrated(truths: str, **more: Any) -> Calibration:
    """A calibration whose scores are 1 and 0 in turn, for labels that are y or n."""
    how: dict[str, Any] = {"labels": "cal40.jsonl", "lower_is_better": False, "columns": ("label",), **more}
    return Calibration(
        judge="scripted",
        scorer="fact_check",
        signature="fact_check@1",
        scale=1.0,
        default_threshold=0.5,
        label_threshold=0.5,
        dataset_name="d.jsonl",
        dataset_version="v",
        pairs=tuple(LabeledScore(str(n), float(n % 2 == 0), (float(truth == "y"),)) for n, truth in enumerate(truths)),
        **how,
    )


def test_a_judge_that_scores_every_sample_the_same_is_named_in_every_format() -> None:
    same = (
        "fact_check: all 3 scores of the judge are 1.000: these samples are equally good or bad, or it can't tell them "
        "apart"
    )
    for report in reports(run_view(judged("yes", "yes", "yes"))):
        assert same in unescape(report)
    for run in (judged("yes", "no", "yes"), judged("yes"), run_of(["1", "1"])):
        assert run_view(run).sections[0].warnings == ()


class Long(Scorer):
    """A score that depends on more than the verdict."""

    name = "long"
    questions = (AgreesWithContext,)

    async def score(self, ask: Ask, *, output: str) -> Score:
        answer = await ask(AgreesWithContext(question="How?", answer=output, context=("p",)))
        return Score(int(output[6]) / 10 if answer.verdict == "yes" else 0.0)


def test_verdicts_that_are_all_the_same_are_named_where_the_scores_differ() -> None:
    (warning,) = run_view(judged("yes", "yes", "yes", scorer=Long())).sections[0].warnings
    assert warning.startswith("long: all 3 verdicts ")
    assert warning.endswith(" are 'yes'")
    assert run_view(judged("yes", "no", "yes", scorer=Long())).sections[0].warnings == ()


def test_a_scorer_that_no_verdict_let_score_is_named() -> None:
    (warning,) = run_view(judged("undecided", "undecided")).sections[0].warnings
    assert warning.startswith("fact_check: no ")
    assert warning.endswith("2 of 2 samples")
    assert run_view(run_of(["skip", "skip"])).sections[0].warnings == ()


@pytest.mark.parametrize(
    ("calibrations", "line", "doubtful"),
    [
        (
            [calibrated("yn" * 10)],
            "judge calibrated on cal40.jsonl: AUROC 1.00 (0.69 to 1.00); caught 10 of 10 bad answers and flagged 0 of "
            "10 good ones at the threshold 0.5",
            False,
        ),
        (
            [calibrated("ynyy" * 8)],
            "judge calibrated on cal40.jsonl: AUROC 0.83 (0.53 to 0.94); caught 8 of 8 bad answers and flagged 8 of 24 "
            "good ones at the threshold 0.5",
            False,
        ),
        (
            [calibrated("ynny" * 5, lower_is_better=True)],
            "judge calibrated on cal40.jsonl: AUROC 0.50 (0.27 to 0.73), not shown to be better than chance; caught 5 "
            "of 10 bad answers and flagged 5 of 10 good ones at the threshold 0.5",
            True,
        ),
        (
            [calibrated("nyny" * 4 + "nnny", lower_is_better=True)],
            "judge calibrated on cal40.jsonl: AUROC 0.05 (0.00 to 0.37), not shown to be better than chance; caught 0 "
            "of 9 bad answers and flagged 10 of 11 good ones at the threshold 0.5",
            True,
        ),
        (
            [replace(calibrated("yn" * 10), default_threshold=2.0)],
            "judge calibrated on cal40.jsonl: AUROC 1.00 (0.69 to 1.00); caught 10 of 10 bad answers and flagged 10 of "
            "10 good ones at the threshold 2; all its verdicts were no",
            True,
        ),
        ([calibrated("yyy")], "judge calibrated on cal40.jsonl: it needs labels of both kinds, yes and no", True),
        ([], "not calibrated (evalstone calibrate --labels FILE)", False),
    ],
)
def test_a_run_says_how_its_judge_was_calibrated(calibrations: list[Calibration], line: str, doubtful: bool) -> None:
    run = judged("yes", "no")
    view = run_view(run, calibrations={run.scorers[0].signature: calibrations})
    section = view.sections[0]
    assert (section.warnings if doubtful else section.notes)[-1] == f"fact_check: {line}"
    for report in reports(view):
        assert f"fact_check: {line}" in unescape(report)


def test_the_judge_of_another_tool_is_compared_with_labels_of_its_scores() -> None:
    run = judged("yes", "no")
    imported = replace(
        run, summary=tuple(replace(line, info=replace(line.info, tool="acme 1")) for line in run.summary)
    )
    notes = run_view(imported, calibrations={run.scorers[0].signature: ()}).sections[0].notes
    assert "evalstone annotate" in notes[-1]
    assert "calibrate" not in notes[-1]


def test_a_duration_that_a_file_doesnt_say_is_not_shown() -> None:
    run = judged("yes", "no")
    imported = replace(
        run, seconds=0.0, summary=tuple(replace(x, info=replace(x.info, tool="acme 1")) for x in run.summary)
    )
    assert [fact.name for fact in run_view(run).facts].count("Duration") == 1
    assert "Duration" not in [fact.name for fact in run_view(imported).facts]
    assert "Duration" in [fact.name for fact in run_view(replace(imported, seconds=2.0)).facts]


@pytest.mark.parametrize(
    ("reason", "passages", "why"),
    [
        ("", [1, 3], "passage 1, 3"),
        ("it says so", [1], "it says so · passage 1"),
        ('passage 1: "Ten seats."', [1], 'passage 1: "Ten seats."'),
        ("passage 1 contradicts it", [1], "passage 1 contradicts it"),
        ('passage 12: "Ten seats."', [1], 'passage 12: "Ten seats." · passage 1'),
        ("it says so", [], "it says so"),
    ],
)
def test_passages_are_named_after_a_reason_that_does_not_begin_with_them(
    reason: str, passages: list[int], why: str
) -> None:
    assert laid_out({"claim": "x", "reason": reason, "passages": passages}).why == why


def test_evidence_of_another_tool_has_all_its_names() -> None:
    (item,) = (laid_out({"value": "I", "answer": "none", "more": [{"text": "x"}]}, named=True),)
    assert (item.text, item.pairs) == ("", (("value", "I"), ("answer", "none")))
    assert item.items[0].items[0].pairs == (("text", "x"),)
    assert laid_out({"value": "I"}).text == "I"


def test_nothing_is_said_of_calibrations_where_no_sample_has_a_score() -> None:
    run = judged("undecided", "undecided")
    section = run_view(run, calibrations={run.scorers[0].signature: []}).sections[0]
    assert not [note for note in (*section.notes, *section.warnings) if "calibrated" in note]


def test_the_lexical_judges_published_accuracy_is_named_where_it_judged_alone() -> None:
    ((alone, _),) = calibration_notes((), ("lexical@1",))
    ((together, _),) = calibration_notes((), ("lexical@1", "openai/x"))
    assert "--labels FILE" in together
    assert alone.startswith(together)
    assert alone.endswith(": evalstone judges")
    assert "evalstone judges" not in together


def test_labels_of_one_name_are_told_apart_by_their_columns() -> None:
    run = judged("yes", "no")
    both = [calibrated("yn" * 10, columns=("alice",)), calibrated("yn" * 10, columns=("bob", "eve"))]
    notes = run_view(run, calibrations={run.scorers[0].signature: both}).sections[0].notes
    assert [note.partition(": AUROC")[0].partition(" on ")[2] for note in notes[-2:]] == [
        "cal40.jsonl (alice)",
        "cal40.jsonl (bob, eve)",
    ]


def test_scorers_of_one_judge_share_the_line_and_code_has_none() -> None:
    sample = {"id": "one", "output": "x and y", "context": ["p"]}
    run = evaluate([sample], ["faithfulness", "hallucination", "contains(expected=x)"], judge="lexical", ledger=None)
    known = {line.info.signature: () for line in run.summary if line.judges}
    line = "faithfulness, hallucination: not calibrated (evalstone calibrate --labels FILE); its accuracy on public"
    assert run_view(run, calibrations=known).sections[0].notes[-1].startswith(line)
    assert not any("calibrat" in note for note in run_view(run).sections[0].notes)
