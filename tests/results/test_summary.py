"""Summaries: samples that hang together, and outcomes without a score."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalstone import ConfigError, DataError, Failed, Record, Run, Sample, Score, ScriptedJudge, Skipped, evaluate
from evalstone.ledger.store import Ledger
from evalstone.report.notes import clause_of
from evalstone.results.summary import MAX_REASONS, ScorerCounts, ScorerInfo, SummaryBuilder
from evalstone.stats import mean_interval
from evalstone.types import JudgeCall, Note, Outcome, RunMetadata, Usage, note
from tests.runs import Given, Harm, run_of, samples_of


def test_the_group_of_a_sample_is_in_its_records() -> None:
    run = run_of(["0.5", "skip", "fail"], metadata=[{"group": 7}, {"group": ""}, {}])
    assert [record.group for record in run] == ["7", None, None]
    assert [Record.from_dict(record.to_dict()).group for record in run] == ["7", None, None]
    assert Sample(group="a").group == "a"


def test_samples_with_a_blank_group_have_none_as_from_a_csv_file() -> None:
    for blank in ("", " ", "\u200b"):
        assert Sample(input="q", group=blank).group is None
    assert Sample(input="q", group=0).group == "0"  # type: ignore[arg-type]


def test_samples_of_one_group_widen_the_interval_as_the_statistics_say() -> None:
    answers = [str(number // 4 % 2) for number in range(40)]
    names = [f"g{number // 4}" for number in range(40)]
    line = run_of(answers, metadata=[{"group": name} for name in names])["given"]
    values = [float(answer) for answer in answers]
    assert line.interval == mean_interval(values, low=0.0, high=1.0, groups=names)
    alone = run_of(answers)["given"].interval
    assert line.interval is not None
    assert alone is not None
    assert alone.groups is None
    assert line.interval.groups == 10
    assert (line.interval.low or 0) < (alone.low or 0)


def test_a_sample_without_a_group_is_one_of_its_own_wherever_it_stands() -> None:
    data = [{}, {"group": "a"}, {}, {"group": "a"}, {}]
    line = run_of(["0.0", "0.25", "0.5", "0.75", "1.0"], metadata=data)["given"]
    assert line.interval == mean_interval([0.0, 0.25, 0.5, 0.75, 1.0], low=0.0, high=1.0, groups=[1, 2, 3, 2, 4])


def test_the_histogram_counts_the_scores_in_equal_parts_of_the_scale_and_is_stored_with_the_run(tmp_path: Path) -> None:
    url, samples = str(tmp_path / "ledger.db"), samples_of(["0", "0.049", "0.05", "0.15", "1", "skip", "fail"])
    run = evaluate(samples, [Given(), Harm()], ledger=url)
    for name in ("given", "harm"):
        assert run[name].histogram == (2, 1, 0, 1, *[0] * 15, 1)
    with Ledger(url) as ledger:
        row = ledger.run(run.id)
    assert row is not None
    (given, _) = RunMetadata.of(row.metadata, "the run").scorers
    assert (given.mean, given.n_score, given.n_skipped, given.n_failed) == (run["given"].mean, 5, 1, 1)
    interval = run["given"].interval
    assert interval is not None
    assert given.interval == (interval.low, interval.high)
    assert given.histogram == run["given"].histogram


def test_the_bounds_say_what_the_mean_could_be_with_the_missing() -> None:
    run = run_of(["0.5", "1.0", "skip", "fail"], [Given(), Harm(scale=10)])
    assert run["given"].bounds == (0.375, 0.875)
    assert run["harm"].bounds == (3.75, 8.75)
    assert run_of(["0.5"])["given"].bounds is None
    assert run["given"].to_dict()["bounds"] == [0.375, 0.875]


def test_slices_have_means_and_say_which_are_worse_than_the_rest() -> None:
    data = [{"kind": "hard" if number % 3 == 0 else "easy", "deep": {"er": number % 2}} for number in range(60)]
    answers = [str(0.2 + number % 5 / 50 if number % 3 == 0 else 0.8 + number % 7 / 70) for number in range(60)]
    run = run_of(answers, metadata=data)
    (found,) = run.slices("kind")
    assert {part.key: part.interval.n for part in found.means} == {"hard": 20, "easy": 40}
    assert found.findings[0].key == "hard"
    assert found.findings[0].adjusted_p_value < 0.001
    (deep,) = run.slices(["deep.er", length])
    assert {(part.field, part.key) for part in deep.means} == {("deep.er", "0"), ("deep.er", "1"), ("length", "short")}


def length(_: Sample) -> str:
    return "short"


@pytest.mark.parametrize(
    ("verdicts", "doubt"),
    [
        (
            [["supported", "supported"], ["supported"]],
            note("equal_verdicts", "warning", verdicts=3, verdict="supported"),
        ),
        ([["supported", "not_mentioned"], ["supported"]], None),
        ([["supported", "supported"]], None),
    ],
)
def test_equal_verdicts_behind_different_scores_are_named(verdicts: list[list[str]], doubt: Note | None) -> None:
    builder = SummaryBuilder(run_of(["0.5"]).scorers[0])
    for number, each in enumerate(verdicts):
        call = JudgeCall(
            question="q", fingerprint="f", judge="j", answer=[{"verdict": word} for word in each], usage=Usage(1, 1)
        )
        builder.add(replace(run_of([str(number / 4)]).records[0], calls=(call,)))
    assert builder.summary().doubt == doubt


def test_slices_need_the_samples_and_a_field_that_they_have() -> None:
    run = run_of(["0.5"], metadata=[{"kind": "x"}])
    with pytest.raises(ConfigError) as raised:
        run.slices("kin")
    assert (raised.value.field, raised.value.value, raised.value.near) == ("metadata field", "kin", ("kind",))
    with pytest.raises(ConfigError, match="has metadata"):
        run_of(["0.5"]).slices("kind")


@pytest.mark.parametrize(
    ("replies", "counts", "doubt"),
    [
        (["yes", "no"], (2, 0), None),
        (["yes"], (1, 0), None),
        (["no", "broken"], (1, 0), None),
        (
            ["no", "no", "undecided"],
            (2, 1),
            note("equal_scores", "warning", scores=2, value=0.0, scale=1.0),
        ),
        (
            ["undecided", "undecided"],
            (0, 2),
            note("no_usable_answer", "warning", unanswered=2, samples=2),
        ),
        (["undecided", "broken"], (0, 1), note("no_usable_answer", "warning", unanswered=1, samples=2)),
        (["broken", "broken"], (0, 0), None),
    ],
)
def test_a_summary_says_why_its_scores_may_be_no_measurement(
    replies: list[str], counts: tuple[int, int], doubt: Note | None
) -> None:
    samples = [{"id": str(number), "output": f"It is {number}.", "context": ["p"]} for number in range(len(replies))]
    judge = ScriptedJudge([{"reason": "It says so.", "verdict": verdict} for verdict in replies], retries=0)
    run = evaluate(samples, "fact_check", judge=judge, concurrency=1, ledger=None)
    line = run["fact_check"]
    assert (line.n_score, line.unanswered) == counts
    assert line.no_answer == (doubt is not None and doubt.kind == "no_usable_answer")
    assert line.doubt == doubt
    assert line.to_dict()["notes"] == [note.to_dict() for note in line.notes]
    assert (line.notes[:1] == (doubt,)) == (doubt is not None)
    if doubt is not None:
        assert f"fact_check: {clause_of(doubt)}\n" in str(run)
    again = Run.from_dict(run.to_dict(), run.records)
    assert again.summary == run.summary


def test_a_sample_without_claims_is_not_one_that_the_judge_did_not_answer() -> None:
    run = evaluate([{"output": "Hello!", "context": ["x"]}], "faithfulness", judge="lexical", ledger=None)
    assert (run["faithfulness"].n_skipped, run["faithfulness"].unanswered) == (1, 0)
    refused = evaluate([{"output": "Hello!"}], "bias", judge="lexical", ledger=None)
    assert (refused["bias"].n_skipped, refused["bias"].unanswered) == (1, 1)


INFO = ScorerInfo(name="f", signature="f@1", scale=1.0, lower_is_better=False)


def record(outcome: Outcome, *calls: JudgeCall, sample: str = "s", **more: Any) -> Record:
    return Record(sample_id=sample, scorer="f", signature="f@1", outcome=outcome, calls=calls, **more)


def call(answer: Any = "a", **more: Any) -> JudgeCall:
    fields: dict[str, Any] = {"question": "q", "fingerprint": "p", "judge": "j", "answer": answer, **more}
    return JudgeCall(**fields)


def counts_of(records: Iterable[Record]) -> ScorerCounts:
    counts = ScorerCounts()
    for each in records:
        counts.add(each, 1.0)
    return counts


COUNTED = [
    record(Score(1.0), call([{"verdict": "yes"}], usage=Usage(1, 1, 0, 3), cost=0.5)),
    record(Score(0.15), call(usage=Usage(1, 1, 0, 3), detail={"doubt": "none of the words"}, cost=0.25)),
    record(Skipped("b"), call(None, usage=Usage(1, 1, 0, 1))),
    record(Skipped("a"), call(None, usage=Usage(0, 0, 0, 0)), left_out_cost=None),
    record(Skipped("c"), call({"verdict": "undecided"}, source="shared", repeat_index=1, detail={"dropped": ["x"]})),
    record(Failed("b"), call(None, cost=None)),
    record(Failed("a"), call(refused_settings=("top_p", "seed"), detail={"dropped": ["x", "y"]}, source="cached")),
    record(Score(0.0), call([{"verdict": "no"}, {"verdict": "maybe"}], detail={"citations": [1]})),
]


@pytest.mark.parametrize("split", range(len(COUNTED)))
def test_counts_add_up_from_their_parts_and_their_data(split: int) -> None:
    parts = [ScorerCounts.from_dict(counts_of(part).to_dict()) for part in (COUNTED[:split], COUNTED[split:])]
    parts[0].merge(parts[1])
    assert parts[0].to_dict() == counts_of(COUNTED).to_dict()


def test_counts_say_what_the_calls_behind_scores_were() -> None:
    counts = counts_of(COUNTED)
    assert (counts.n_score, counts.n_skipped, counts.n_failed, counts.unanswered) == (3, 3, 2, 3)
    assert (counts.corrections, counts.corrected, counts.lost, counts.doubtful_citations) == (4, 1, 2, 1)
    assert counts.dropped == {("j", "p", 1): 1, ("j", "p", 0): 2}
    assert counts.calls == {"asked": 4, "shared": 1, "cached": 1}
    assert (counts.cost, counts.judges, counts.refused_settings) == (
        None,
        {"j", "j without seed and top_p"},
        {"top_p": 1, "seed": 1},
    )
    assert counts.histogram == [1, 0, 0, 1, *[0] * 15, 1]
    line = counts.summary(INFO, [1.0, 0.15, 0.0])
    assert line.reasons == (("a", 2), ("b", 2), ("c", 1))
    assert line.only_verdict is None


def test_a_score_counts_in_the_part_of_the_scale_that_it_reaches_but_for_rounding() -> None:
    counts = counts_of(record(Score(value)) for value in (sum([0.1] * 8), 0.79))
    assert (sum([0.1] * 8) < 0.8, counts.histogram[15:17]) == (True, [1, 1])


def test_reasons_are_counted_up_to_a_limit_and_stored_if_they_are_few() -> None:
    def with_reasons(number: int) -> ScorerCounts:
        return counts_of(record(Skipped(str(each))) for each in range(number))

    assert len(ScorerCounts.from_dict(with_reasons(50).to_dict()).reasons) == 50
    stored = with_reasons(51).to_dict()
    assert stored["reasons"] is None
    assert ScorerCounts.from_dict(stored).more_reasons
    full, more = with_reasons(MAX_REASONS), with_reasons(MAX_REASONS + 1)
    assert (len(full.reasons), full.more_reasons) == (MAX_REASONS, False)
    assert (len(more.reasons), more.more_reasons) == (MAX_REASONS, True)
    merged = with_reasons(1)
    merged.merge(more)
    assert (merged.reasons["0"], merged.to_dict()["reasons"], merged.more_reasons) == (2, None, True)


@pytest.mark.parametrize("bins", [19, 21])
def test_a_histogram_of_another_length_is_refused(bins: int) -> None:
    data = {**ScorerCounts().to_dict(), "histogram": [0] * bins}
    with pytest.raises(DataError, match=f"histogram must be of 20 numbers, not {bins}"):
        ScorerCounts.from_dict(data)


def test_samples_before_the_first_weight_have_the_weight_1() -> None:
    builder = SummaryBuilder(INFO)
    for outcome in (Score(0.5), Skipped("x"), Failed("y"), Score(0.25)):
        builder.add(record(outcome))
    builder.add(record(Score(1.0), weight=2.0))
    builder.add(record(Skipped("x"), weight=4.0))
    line = builder.summary()
    assert line.mean == (0.5 + 0.25 + 2.0) / 4
    assert line.bounds == ((0.5 + 0.25 + 2.0) / 10, (0.5 + 0.25 + 2.0 + 6.0) / 10)


@pytest.mark.parametrize(("scores", "judges", "equal"), [([0.5], ("j",), False), ([0.5, 0.5], (), False)])
def test_one_score_and_scores_without_a_judge_are_no_doubt(
    scores: list[float], judges: tuple[str, ...], equal: bool
) -> None:
    line = counts_of(record(Score(score), *map(call, judges)) for score in scores).summary(INFO, scores)
    assert (line.all_equal, line.doubt) == (len(scores) > 1, None)


def test_a_scorer_is_stored_without_what_is_empty() -> None:
    assert INFO.to_stored() == {"name": "f", "signature": "f@1", "scale": 1.0, "lower_is_better": False}
    assert [replace(INFO, scale=4.0, lower_is_better=lower).goodness(1.0) for lower in (False, True)] == [0.25, 0.75]
