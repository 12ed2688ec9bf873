"""Drift of live scores: units, what is missing, directions, and one error rate for all looks."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from evalstone import ConfigError, Failed, Run, Sample, Score, Skipped, evaluate
from evalstone.errors import NotComparable
from evalstone.ledger import live
from evalstone.ledger.base import sample_hash
from evalstone.ledger.live import LiveCounts, LiveScore
from evalstone.ledger.scores import WatchedScore
from evalstone.ledger.store import Ledger
from evalstone.live import LiveDrift, drift
from evalstone.live.score_drift import units_of
from evalstone.results.run_notes import KEPT_REASONING, LEFT_OUT_REASONING
from evalstone.results.summary import ScorerInfo, SummaryBuilder
from evalstone.types import JudgeCall, Outcome, Record, note, scorer_name

DAY = 86_400
START = float(int(time.time()) - 2 * DAY)
SCORER = "s@1"
NO_DRIFT = "no drift so far"


def row(
    id: str,
    at: float,
    share: float | None = 1.0,
    *,
    trace: str | None = None,
    group: str | None = None,
    took: float = 1,
) -> WatchedScore:
    return WatchedScore(id, at, at + took, share, trace, group)


def units(
    rows: Iterable[WatchedScore], *, settle: float = 10, now: float = 1000
) -> list[tuple[int, tuple[float, ...]]]:
    return [(unit.samples, tuple(unit.shares)) for unit in units_of(rows, settle, now).units]


def test_a_unit_is_a_conversation_else_a_trace_else_a_score() -> None:
    rows = [
        row("a", 0, 0.1, trace="t1", group="g"),
        row("b", 1, 0.2, trace="t2", group="g"),
        row("c", 2, 0.3, trace="t3"),
        row("d", 3, 0.4, trace="t3"),
        row("e", 4, 0.5),
        row("f", 5, 0.6),
    ]
    assert units(rows) == [(2, (0.1, 0.2)), (2, (0.3, 0.4)), (1, (0.5,)), (1, (0.6,))]


def test_names_of_conversations_and_traces_are_not_mixed_up() -> None:
    assert len(units([row("x", 0, trace="x"), row("b", 0, group="x"), row("x2", 0, trace="x2"), row("x2", 0)])) == 4


def test_a_score_that_is_missing_or_late_counts_as_a_sample_without_one() -> None:
    rows = [row("a", 0, None, trace="t"), row("b", 1, 0.5, trace="t", took=9), row("c", 1, 0.7, trace="t", took=9.5)]
    assert units(rows) == [(3, (0.5,))]
    assert units([WatchedScore("p", 0, None, None, None, None)]) == [(1, ())]


def test_a_unit_is_closed_once_it_was_waited_for() -> None:
    assert [len(units([row("a", 0)], settle=10, now=now)) for now in (9, 10)] == [0, 1]


def test_what_is_submitted_after_a_unit_closed_changes_it_no_more() -> None:
    rows = [row("a", 0, 0.1, trace="t"), row("b", 10, 0.2, trace="t", took=0), row("c", 10.5, 0.3, trace="t")]
    found = units_of(rows, 10, 1000)
    assert [tuple(unit.shares) for unit in found.units] == [(0.1, 0.2)]
    assert (found.waiting, found.late) == (0, 1)


def test_what_was_not_finished_in_time_is_told_apart_from_what_has_no_score() -> None:
    pending = WatchedScore("p", 0, None, None, "t", None)
    skipped = row("s", 0, None, trace="t", took=20)
    (unit,) = units_of([row("a", 0, trace="t"), row("b", 0, trace="t", took=20), pending, skipped], 10, 1000).units
    assert (unit.samples, unit.shares, unit.unfinished) == (4, [1.0], 2)


def test_later_looks_say_the_same_of_the_units_that_were_closed() -> None:
    rows = [row(f"{n}", n, n / 60, trace=f"t{n // 3 if n % 2 else n % 7}", took=n % 5) for n in range(60)]
    whole = units(rows, settle=6, now=1000)
    for now in range(0, 70, 3):
        seen = [
            one if (one.finished or 0) <= now else row(one.id, one.submitted, None, trace=one.trace) for one in rows
        ]
        found = units_of([one for one in seen if one.submitted <= now], 6, now)
        early = [(unit.samples, tuple(unit.shares)) for unit in found.units]
        assert early == whole[: len(early)]


def steps_by(judges: str) -> tuple[JudgeCall, ...]:
    """A call of each of these judges, which are apart by spaces."""
    return tuple(JudgeCall(question="q", fingerprint="f", judge=judge, answer=1) for judge in judges.split())


class World:
    """A ledger with a stream, and runs to compare it with."""

    def __init__(self, url: str) -> None:
        self.url, self.written = url, 0

    def stream(
        self,
        outcomes: Iterable[Outcome | None],
        *,
        start: float = START,
        stream: str = "shop",
        judge: str = "",
        scorer: str = SCORER,
        group: Callable[[int], str] | None = None,
        took: Callable[[int], float] = lambda n: 1.0,
        kept: bool | None = None,
    ) -> None:
        rows: list[LiveScore] = []
        those: list[Sample] = []
        records: list[Record | None] = []
        for number, outcome in enumerate(outcomes):
            self.written += 1
            sample = Sample(id=str(number), output="x", group=group(number) if group else None)
            steps = steps_by(judge)
            found = (
                None
                if outcome is None
                else Record(sample_id="x", scorer=scorer_name(scorer), signature=scorer, outcome=outcome, calls=steps)
            )
            rows.append(
                LiveScore(
                    id=f"o/{self.written}", stream=stream, source="live", signature=scorer, owner="o",
                    submitted=start + number, trace=f"{self.written:032x}", sample=sample_hash(sample),
                )
            )  # fmt: skip
            those.append(sample)
            records.append(found)
        counts = LiveCounts(stream=stream, signature=scorer, owner="o", hour=self.written, seen=len(rows))
        with Ledger(self.url) as ledger:
            mine = live.write_frame(ledger, [counts], rows, those)
            ended = [replace(row.ended(record), kept_reasoning=kept) for row, record in zip(mine, records, strict=True)]
            live.finish(ledger, [replace(each, finished=each.submitted + took(n)) for n, each in enumerate(ended)])

    def drift(self, baseline: Any, **options: Any) -> LiveDrift:
        return drift(baseline, ledger=self.url, **options)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(str(tmp_path / "l.db"))


def baseline(
    outcomes: Iterable[Outcome],
    *,
    lower: bool = False,
    judge: str = "",
    scale: float = 1.0,
    groups: int = 0,
    weight: float = 0,
) -> Run:
    steps = steps_by(judge)
    records = [
        Record(
            sample_id=str(n), scorer=scorer_name(SCORER), signature=SCORER, outcome=outcome, calls=steps,
            group=str(n % groups) if groups else None,
            weight=1 + weight * n if weight else None,
        )
        for n, outcome in enumerate(outcomes)
    ]  # fmt: skip
    info = ScorerInfo(name="s", signature=SCORER, scale=scale, lower_is_better=lower)
    return run_of(records, info)


def run_of(records: list[Record], info: ScorerInfo) -> Run:
    builder = SummaryBuilder(info)
    for record in records:
        builder.add(record)
    return Run(
        id="base", dataset_name="d", dataset_version="v", n_samples=len(records), judge="none", judge_note="",
        scorers=(info,), records=records, summary=(builder.summary(),),
        started="2026-01-01T00:00:00+00:00", seconds=0.0,
    )  # fmt: skip


def scores(share: float, number: int, scale: float = 1.0) -> list[Outcome]:
    """So many scores, a share of them at the top, spread evenly."""
    return [Score(scale * float(int((n + 1) * share) > int(n * share)), scale=scale) for n in range(number)]


GOOD = scores(0.9, 300)


def test_a_stream_like_the_baseline_has_not_drifted_and_one_that_fell_has_since_about_then(world: World) -> None:
    world.stream(scores(0.9, 400))
    before = world.drift(baseline(GOOD))
    assert [one.verdict for one in before] == [NO_DRIFT]
    assert before.passed is not False
    world.stream(scores(0.5, 200), start=START + 400)
    found = world.drift(baseline(GOOD))["s"]
    assert found.verdict == "drifted"
    assert found.mean == pytest.approx((360 + 100) / 600)
    assert found.baseline == pytest.approx(0.9)
    (fell, scored) = found.tests
    assert (fell.of, scored.of, scored.watch.verdict) == ("score", "scored", NO_DRIFT)
    assert fell.changed is not None
    assert abs(fell.changed.timestamp() - (START + 400)) < 25
    assert fell.alarm is not None
    assert fell.alarm > fell.changed


def test_of_scores_of_which_lower_is_better_higher_ones_are_worse(world: World) -> None:
    world.stream(scores(0.6, 200))
    assert world.drift(baseline(scores(0.9, 300), lower=True)).passed is not False
    found = world.drift(baseline(scores(0.1, 300), lower=True))["s"]
    assert found.verdict == "drifted"
    assert (found.mean, found.baseline) == (pytest.approx(0.6), pytest.approx(0.1))


def test_better_scores_are_drift_only_if_both_directions_are_watched(world: World) -> None:
    world.stream(scores(0.9, 300))
    assert world.drift(baseline(scores(0.5, 300))).passed is not False
    found = world.drift(baseline(scores(0.5, 300)), two_sided=True)["s"]
    assert [(test.of, test.watch.verdict) for test in found.tests] == [
        ("score", NO_DRIFT),
        ("score, rising", "drifted"),
        ("scored", NO_DRIFT),
    ]


@pytest.mark.parametrize("missing", [Skipped("no claims"), Failed("boom"), None])
def test_scores_that_are_missing_more_often_are_drift_though_the_mean_stays(
    world: World, missing: Outcome | None
) -> None:
    world.stream([missing if n % 3 == 0 else Score(1.0) for n in range(300)])
    found = world.drift(baseline([Score(1.0)] * 300))["s"]
    assert [test.watch.verdict for test in found.tests] == [NO_DRIFT, "drifted"]
    assert found.verdict == "drifted"
    same = world.drift(baseline([Skipped("no claims") if n % 3 == 0 else Score(1.0) for n in range(300)]))
    assert same.passed is not False


def test_a_backlog_is_named_as_the_cause_of_the_scores_that_are_missing(world: World) -> None:
    world.stream(scores(0.9, 300), took=lambda n: 900)
    found = world.drift(baseline(GOOD))
    one = found["s"]
    assert (one.verdict, one.late, one.unfinished, one.alarm_by_unfinished) == ("drifted", 0, 300, True)
    assert [test.watch.verdict for test in one.tests] == ["too few", "drifted"]
    note = (
        "s: 300 scores came after their unit was closed, or are pending still; they count as missing; without them, "
        "there would be no alarm by samples without a score; if scoring is behind, raise settle."
    )
    assert note in str(found).splitlines()
    data = found.to_dict()["scorers"][0]
    assert (data["unfinished"], data["alarm_by_unfinished"]) == (300, True)
    patient = world.drift(baseline(GOOD), settle=timedelta(minutes=20))["s"]
    assert (patient.verdict, patient.unfinished, patient.mean) == (NO_DRIFT, 0, pytest.approx(0.9))


def test_an_alarm_that_a_backlog_has_no_part_in_is_not_put_down_to_it(world: World) -> None:
    failed = [Failed("boom") if n % 2 else Score(1.0) for n in range(300)]
    world.stream(failed, took=lambda n: 900 if n % 10 == 0 else 1)
    found = world.drift(baseline([Score(1.0)] * 300))
    assert (found["s"].verdict, found["s"].unfinished, found["s"].alarm_by_unfinished) == ("drifted", 30, False)
    assert "30 scores came after" in str(found)
    assert "no alarm" not in str(found)


def test_a_baseline_without_any_score_is_refused(world: World) -> None:
    world.stream([*[Failed("boom")] * 300, *scores(0.9, 300)], scorer="faithfulness@1")
    times = [datetime.fromtimestamp(START + at, UTC) for at in (-200, -100, 0, 300)]
    for period in (times[0], times[1]), (times[2], times[3]):
        label = f"{period[0].isoformat()}..{period[1].isoformat()}"
        with pytest.raises(ConfigError, match=re.escape(label) + " .* shop by faithfulness$"):
            world.drift(period)
    world.stream(scores(0.9, 300))
    with pytest.raises(ConfigError, match=r"base has .* by s$"):
        world.drift(baseline([Failed("boom")] * 300))


def test_a_baseline_whose_scores_are_not_settled_yet_is_refused_with_the_reason(world: World) -> None:
    world.stream(scores(0.9, 50), start=time.time() - 100, scorer="faithfulness@1")
    start, end = (datetime.now(UTC) - timedelta(seconds=ago) for ago in (200, 1))
    with pytest.raises(ConfigError, match=r"50 units .*\(settle\)"):
        world.drift((start, end))
    world.stream(scores(0.9, 50), scorer="faithfulness@1", stream="slow", took=lambda n: 900)
    start, end = (datetime.fromtimestamp(START + at, UTC) for at in (0, 50))
    with pytest.raises(ConfigError, match="50 scores came after"):
        world.drift((start, end), stream="slow")


def test_a_scorer_of_which_the_baseline_has_no_score_is_not_watched_by_its_mean(world: World) -> None:
    world.stream(scores(0.9, 300))
    world.stream([Failed("boom")] * 300, scorer="z@1")
    first = baseline(GOOD)
    records = [
        Record(sample_id=each.sample_id, scorer="z", signature="z@1", outcome=Failed("boom")) for each in first.records
    ]
    second = run_of(records, ScorerInfo(name="z", signature="z@1", scale=1.0, lower_is_better=False))
    both = replace(
        first,
        scorers=(*first.scorers, *second.scorers),
        records=[*first.records, *second.records],
        summary=(*first.summary, *second.summary),
    )
    found = world.drift(both)["z"]
    assert ([test.of for test in found.tests], found.verdict, found.mean) == (["scored"], "too few", None)


def test_the_baseline_may_be_the_name_or_the_id_of_a_run_in_the_ledger(world: World) -> None:
    answers = [{"output": "Paris" if n % 10 else "Rome", "input": f"{n}"} for n in range(50)]
    run = evaluate(answers, "contains(expected=Paris)", name="nightly", ledger=world.url)
    world.stream(scores(0.9, 50), scorer=run.scorers[0].signature)
    assert world.drift("nightly").baseline == world.drift(run.id).baseline == run.id
    with pytest.raises(ConfigError, match="nightlyy"):
        world.drift("nightlyy")


@pytest.mark.parametrize("wrong", [5, None, (), (1, 2), ("2026-01-01", "2026-01-02")])
def test_what_is_no_baseline_is_refused_with_what_it_may_be(world: World, wrong: object) -> None:
    world.stream(scores(0.9, 5))
    with pytest.raises(ConfigError, match=r"^baseline must .* not "):
        world.drift(wrong)


def test_the_scores_of_a_conversation_are_one_unit(world: World) -> None:
    world.stream(scores(0.5, 200), group=lambda n: f"g{n // 50}")
    found = world.drift(baseline(GOOD))["s"]
    assert (found.units, found.verdict) == (4, "too few")
    grouped = world.drift(baseline(GOOD, groups=4))["s"]
    assert grouped.tests[0].watch.bound < found.tests[0].watch.bound - 0.2  # a baseline of four says less


def test_units_that_are_open_wait(world: World) -> None:
    world.stream(scores(0.5, 200), start=time.time() - 100)
    found = world.drift(baseline(GOOD))["s"]
    assert (found.units, found.waiting, found.verdict) == (0, 200, "too few")
    assert world.drift(baseline(GOOD), settle=timedelta(seconds=20))["s"].units in range(70, 90)


@pytest.mark.parametrize("setting", ["alpha", "tolerance"])
@pytest.mark.parametrize("value", ["0.2", True])
def test_settings_that_are_no_numbers_are_refused_by_name(world: World, setting: str, value: Any) -> None:
    with pytest.raises(ConfigError) as raised:
        world.drift(baseline(GOOD), **{setting: value})
    assert (raised.value.field, raised.value.value) == (setting, value)


def test_a_scale_and_a_tolerance(world: World) -> None:
    world.stream(scores(0.7, 300, scale=5))
    run = baseline(scores(0.9, 300, scale=5), scale=5)
    found = world.drift(run)["s"]
    assert found.verdict == "drifted"
    assert (found.baseline, found.mean) == (pytest.approx(4.5), pytest.approx(3.5))
    # The share of scored samples has none.
    assert [test.watch.mean for test in found.tests] == [pytest.approx(3.5), 1.0]
    assert found.tests[0].watch.bound > 3.5
    assert world.drift(run, tolerance=0.2)["s"].verdict == NO_DRIFT
    assert world.drift(run, tolerance=0)["s"].verdict == "drifted"


def test_the_error_rate_is_shared_by_scorers_and_tests(world: World) -> None:
    world.stream(scores(0.9, 300))
    one = world.drift(baseline(GOOD))["s"].tests[0].watch.bound
    two = world.drift(baseline(GOOD), two_sided=True)["s"].tests[0].watch.bound
    wide = world.drift(baseline(GOOD), alpha=0.4)["s"].tests[0].watch.bound
    assert two < one < wide


def test_of_two_scorers_each_has_half_of_the_error_rate_and_one_can_be_chosen(world: World) -> None:
    world.stream(scores(0.9, 300))
    world.stream(scores(0.9, 300), scorer="z@1")
    first = baseline(GOOD)
    second = run_of(
        [replace(each, scorer="z", signature="z@1") for each in first.records],
        ScorerInfo(name="z", signature="z@1", scale=1.0, lower_is_better=False),
    )
    both = replace(
        first,
        scorers=(*first.scorers, *second.scorers),
        records=[*first.records, *second.records],
        summary=(*first.summary, *second.summary),
    )
    alone, together = world.drift(both, scorers=["s", SCORER], alpha=0.05), world.drift(both, alpha=0.1)
    assert [one.title for one in alone] == ["s"]
    assert [one.title for one in together] == ["s", "z"]
    bounds = {one.tests[0].watch.bound for one in (*alone, *together)}
    assert len(bounds) == 1
    assert world.drift(both)["z"].tests[0].watch.bound < bounds.pop()


def test_an_earlier_period_may_be_the_baseline_and_the_watch_begins_after_it(world: World) -> None:
    faithful = "faithfulness@1"
    world.stream([*scores(0.9, 300), *scores(0.5, 300)], scorer=faithful)
    begin, middle = (datetime.fromtimestamp(START + at, UTC) for at in (0, 300))
    found = world.drift((begin, middle))["faithfulness"]
    assert (found.units, found.verdict) == (300, "drifted")
    assert found.baseline == pytest.approx(0.9)
    with pytest.raises(ConfigError, match="must begin when"):
        world.drift((begin, middle), since=begin)
    with pytest.raises(ConfigError, match="must end after"):
        world.drift((middle, begin))


def test_a_bad_night_of_every_day_is_drift_only_without_a_cycle(world: World) -> None:
    """Days of 100 seconds, of which the last 40 are bad, in the baseline as in the stream."""
    day = [*scores(0.95, 60), *scores(0.05, 40)]
    world.stream(day * 6, scorer="faithfulness@1")
    begin, middle = (datetime.fromtimestamp(START + at, UTC) for at in (0, 300))
    found = world.drift((begin, middle))
    assert found.passed is False
    assert found.notes == (note("times_taken_as_alike", "caution"),)
    by_day = world.drift((begin, middle), cycle=timedelta(seconds=100))
    assert by_day.passed is not False
    assert (by_day["faithfulness"].units, by_day.notes) == (300, ())
    assert by_day.to_dict()["cycle_seconds"] == 100
    uneven = world.drift((begin, middle - timedelta(seconds=50)), cycle=timedelta(seconds=100), since=middle)
    assert uneven.notes == (note("cycles_not_whole", "caution", covers="0:04:10", cycle="0:01:40"),)


def test_a_fall_of_whole_cycles_is_drift_and_units_of_the_last_one_wait(world: World) -> None:
    week = timedelta(days=1.5)
    world.stream(scores(0.4, 200))
    open_cycle = world.drift(baseline(GOOD), cycle=timedelta(days=3))["s"]
    assert (open_cycle.units, open_cycle.waiting, open_cycle.verdict) == (0, 200, "too few")
    found = world.drift(baseline(GOOD), cycle=week)["s"]
    assert (found.units, found.waiting, found.verdict) == (200, 0, "drifted")
    world.stream(scores(0.4, 50), start=START + 1.6 * DAY)
    later = world.drift(baseline(GOOD), cycle=week)
    assert (later["s"].units, later["s"].waiting) == (200, 50)
    assert re.search(r"50 units .*\(settle, cycle\)", str(later))


def test_a_period_of_an_unknown_scorer_is_watched_in_both_directions_only(world: World) -> None:
    world.stream([*scores(0.5, 300), *scores(0.9, 300)])
    period = tuple(datetime.fromtimestamp(START + at, UTC) for at in (0, 300))
    with pytest.raises(ConfigError, match="both directions"):
        world.drift(period)
    assert world.drift(period, two_sided=True).passed is False


def test_since_leaves_earlier_scores_out(world: World) -> None:
    world.stream([*scores(0.4, 300), *scores(0.9, 300)])
    assert world.drift(baseline(GOOD)).passed is False
    found = world.drift(baseline(GOOD), since=datetime.fromtimestamp(START + 300, UTC))
    assert (found["s"].units, found.passed) == (300, True)


def test_another_judge_is_refused_unless_it_is_allowed_and_then_noted(world: World) -> None:
    world.stream(scores(0.9, 50), judge="b")
    expected = note("judged_by_another", "warning", name="s", before=("a",), now=("b",))
    with pytest.raises(NotComparable) as refused:
        world.drift(baseline(GOOD, judge="a"))
    assert refused.value.mismatches == (expected,)
    assert world.drift(baseline(GOOD, judge="a"), allow_mismatch=True).notes == (expected,)
    assert world.drift(baseline(GOOD, judge="b")).notes == ()
    assert world.drift(baseline(GOOD, judge="a b")).notes == ()  # one of a panel may have answered
    world.stream(scores(0.9, 50), judge="b c", start=START + 100)
    with pytest.raises(NotComparable) as refused:
        world.drift(baseline(GOOD, judge="b"))
    assert refused.value.mismatches[0]["now"] == ("b", "c")


def test_what_can_not_be_compared_is_refused(world: World) -> None:
    with pytest.raises(ConfigError, match="no ledger"):
        world.drift(baseline(GOOD))
    world.stream(scores(0.9, 5), scorer="other@1")
    with pytest.raises(ConfigError, match=r"\(s@1\)"):
        world.drift(baseline(GOOD))
    world.stream(scores(0.9, 5), stream="second")
    with pytest.raises(ConfigError, match="2 streams"):
        world.drift(baseline(GOOD))
    with pytest.raises(ConfigError, match="nope"):
        world.drift(baseline(GOOD), stream="second", scorers=["nope"])
    with pytest.raises(ConfigError, match="no weighted form"):
        world.drift(baseline(GOOD, weight=0.1), stream="second")
    with pytest.raises(ConfigError, match="settle"):
        world.drift(baseline(GOOD), stream="second", settle=timedelta(0))
    with pytest.raises(ConfigError, match="cycle"):
        world.drift(baseline(GOOD), stream="second", cycle=timedelta(0))


def test_the_result_is_plain_data(world: World) -> None:
    world.stream([*scores(0.9, 100), *scores(0.3, 100)])
    data = world.drift(baseline(GOOD)).to_dict()
    assert data["format"] == "live_drift/1"
    (one,) = data["scorers"]
    assert datetime.fromisoformat(one["tests"][0]["alarm"]).tzinfo is not None
    assert one["tests"][0]["verdict"] == one["verdict"] == "drifted"


@pytest.mark.parametrize(
    ("before", "now"), [(True, True), (False, False), (None, True), (None, False), (True, None), (False, None)]
)
def test_a_run_and_a_stream_that_treat_reasoning_alike_are_watched(
    world: World, before: bool | None, now: bool | None
) -> None:
    world.stream(scores(0.9, 50), kept=now)
    run = replace(baseline(GOOD), warnings=warned_of(before))
    assert world.drift(run).notes == ()


def warned_of(kept: bool | None) -> dict[str, int]:
    """The warnings of a run whose outputs begin with reasoning."""
    return {} if kept is None else {KEPT_REASONING if kept else LEFT_OUT_REASONING: 1}


@pytest.mark.parametrize("kept", [False, True])
def test_scores_with_and_without_reasoning_are_refused_unless_they_are_allowed_and_then_noted(
    world: World, kept: bool
) -> None:
    world.stream(scores(0.9, 50), kept=kept)
    run = replace(baseline(GOOD), warnings=warned_of(not kept))
    expected = note("reasoning_mixed", "warning", name="s")
    with pytest.raises(NotComparable, match="allow_mismatch=True") as refused:
        world.drift(run)
    assert refused.value.mismatches == (expected,)
    assert world.drift(run, allow_mismatch=True).notes == (expected,)


def test_a_stream_that_begins_to_score_reasoning_is_not_compared_with_its_earlier_scores(world: World) -> None:
    world.stream(scores(0.9, 300), kept=False)
    world.stream(scores(0.9, 300), start=START + 300, kept=True)
    period = tuple(datetime.fromtimestamp(START + at, UTC) for at in (0, 300))
    with pytest.raises(ConfigError, match=r"only some .* of s"):
        world.drift(period, two_sided=True)
    assert world.drift(period, two_sided=True, allow_mismatch=True).notes != ()
    later = tuple(datetime.fromtimestamp(START + at, UTC) for at in (300, 500))
    assert world.drift(later, two_sided=True).notes == ()
