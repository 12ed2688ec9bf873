"""What reports say of comparisons, drift and gates."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any, cast, get_args, get_type_hints

from evalstone import Score, Scorer, compare, drift, evaluate, gate
from evalstone.report.html import page
from evalstone.report.markdown import lines
from evalstone.report.text import text
from evalstone.report.view import DifferenceChart, Section
from evalstone.results.drift import DriftResult
from evalstone.results.views.comparison import comparison_view
from evalstone.results.views.drift import drift_view
from evalstone.results.views.gate import gate_view
from evalstone.stats.drift import Drift
from tests.report.hostile import hostile_comparison
from tests.report.test_html import Seen
from tests.runs import Given, Harm, run_of, samples_of

LOW, HIGH = [str(n / 100) for n in range(10)], [str(n / 100 + 0.75) for n in range(10)]


def charts(sections: tuple[Section, ...]) -> list[DifferenceChart]:
    cells = [cell for section in sections for table in section.tables for row in table.rows for cell in row]
    return [cell.chart for cell in cells if isinstance(cell.chart, DifferenceChart)]


def test_the_answers_of_changed_samples_are_what_was_scored() -> None:
    answers = ("<think>Berlin?</think>Bern", "<think>Bern?</think>Berlin")
    runs = [evaluate([{"id": "a", "output": o}], "contains(expected=Bern)", ledger=None) for o in answers]
    (changes,) = comparison_view(compare(*runs)).examples
    (*_, both) = changes.samples[0].panel
    assert [side.text for side in both.items] == ["Bern", "Berlin"]


def test_each_verdict_has_a_mark_of_its_own_shape() -> None:
    better = "".join(page(comparison_view(compare(run_of(LOW), run_of(HIGH)))))
    assert 'class="mean good" d="M' in better
    assert "▲ better" in better
    worse = "".join(page(comparison_view(compare(run_of(HIGH), run_of(LOW)))))
    assert 'class="mean bad" d="M' in worse
    assert "▼ worse" in worse
    same = "".join(page(comparison_view(compare(run_of(LOW), run_of(LOW)))))
    assert 'class="mean dim"' in same
    assert "no significant difference" in same


def test_where_lower_is_better_a_fall_is_good() -> None:
    view = comparison_view(compare(run_of(HIGH, [Harm()]), run_of(LOW, [Harm()])))
    assert view.sections[0].tables[0].rows[0][-2].text == "▲ better"
    assert view.examples[0].samples[0].outcomes[0].tone == "good"


def test_all_tables_of_a_comparison_have_the_same_axis_and_headers_above_their_columns() -> None:
    kinds = [{"kind": str(n % 2)} for n in range(10)]
    comparison = compare(run_of(LOW, metadata=kinds), run_of(HIGH, metadata=kinds), slice_by="kind")
    view = comparison_view(comparison)
    assert len({chart.reach for chart in charts((*view.sections, *view.details))}) == 1
    assert len(charts(view.details)) == 2
    assert charts(view.sections)[0].reach == 1.0  # the next of 1, 2, 5 above 0.83
    for section in (*view.sections, *view.details):
        for table in section.tables:
            assert {len(row) for row in table.rows} == {len(table.columns)}


def test_no_axis_goes_beyond_the_largest_difference_there_is() -> None:
    low, high = run_of(["0.0", "0.01"]), run_of(["1.0", "0.99"])
    (chart,) = charts(comparison_view(compare(low, high)).sections)
    assert (chart.difference, chart.reach) == (0.99, 1.0)  # with a margin, the next of 1, 2, 5 would be 2
    moved = [replace(record, outcome=Score(1.0)) for record in low]
    (chart,) = charts(drift_view(drift(low, replace(low, records=tuple(moved)))).sections)
    assert (chart.difference, chart.reach) == (0.995, 1.0)


def test_slices_are_folded_and_their_clear_differences_named_above() -> None:
    kinds = [{"kind": str(n % 2)} for n in range(10)]
    (section,) = comparison_view(
        compare(run_of(LOW, metadata=kinds), run_of(LOW, metadata=kinds), slice_by="kind")
    ).details
    assert section.folded
    (lead,) = section.lead
    assert lead.startswith("No significant difference")
    assert "for 2 comparisons (Holm)." in section.notes[0]


def test_only_what_makes_a_comparison_doubtful_is_a_warning() -> None:
    """Other outputs are what a comparison is about."""
    other = comparison_view(compare(run_of(["0.5"] * 6), run_of(["0.75"] * 6)))
    assert other.warnings == ()
    assert any(note.startswith("A and B: 6 of 6 samples ") for note in other.sections[0].notes)
    run = run_of(["0.5"] * 6)
    (warning,) = comparison_view(compare(run, run)).warnings
    assert warning.endswith(" the same run.")


def test_the_answers_of_both_runs_stand_side_by_side() -> None:
    view = comparison_view(compare(run_of(["0.5"] * 6), run_of(["0.75"] * 6)), most=5)
    shown = "".join(page(view))
    assert shown.count('<details class="sample"') == 5
    assert "says 0.5" in shown
    assert "says 0.75" in shown
    assert view.examples[0].samples[0].outcomes[0].text == "0.5 → 0.75"


def test_what_an_answer_changes_is_marked_in_every_report() -> None:
    class Length(Scorer):
        """The share of ten words."""

        name = "length"

        def score(self, *, output: str) -> Score:
            return Score(output.count(" ") / 10)

    texts = "It opens at nine on Monday.", "It opens at ten sharp on Monday."
    before, after = (evaluate(samples_of([text, "the same"]), [Length()], ledger=None) for text in texts)
    comparison = compare(before, after)
    marked = "It opens at [-nine-]{+ten sharp+} on Monday."
    assert f"  answer    {marked}" in str(text(comparison_view(comparison)))
    assert f"  - answer `{marked}`" in [*lines(comparison_view(comparison))]
    html = "".join(page(comparison_view(comparison)))
    assert '<del><span class="aloud">[removed: </span>nine<span class="aloud">]</span></del>' in html
    assert '<ins><span class="aloud">[added: </span>ten sharp<span class="aloud">]</span></ins>' in html


def test_a_long_answer_is_shown_around_its_changes_and_once_in_the_terminal() -> None:
    words = "word " * 2000
    before, after = (run_of([f"0.{n}"] * 2, [Given(), Harm()]) for n in (1, 2))
    before, after = (
        replace(run, samples=[replace(sample, output=f"{words}{n} {words}") for sample in run.samples or ()])
        for run, n in ((before, "one"), (after, "two"))
    )
    shown = text(comparison_view(compare(before, after, allow_mismatch=True)))
    answers = [line for line in shown.splitlines() if line.startswith("  answer")]
    assert len(answers) == 2
    assert len(answers[0]) < 300
    assert "word [-one-]{+two+} word" in answers[0]
    html = "".join(page(comparison_view(compare(before, after, allow_mismatch=True))))
    assert html.count("word ") > 6000


def test_equal_answers_with_other_scores_are_called_the_same() -> None:
    before, after = run_of(["0.5"] * 3), run_of(["1"] * 3)
    after = replace(after, samples=before.samples, dataset_version=before.dataset_version)
    view = comparison_view(compare(before, after))
    assert "the answers are the same" in text(view)
    assert "the answers are the same" in "".join(page(view))


def test_hostile_samples_bring_nothing_into_the_page_of_a_comparison() -> None:
    seen = Seen("".join(page(hostile_comparison())))
    tags = [tag for tag, _ in seen.elements]
    assert (tags.count("script"), tags.count("style"), tags.count("img"), tags.count("base")) == (0, 1, 0, 0)
    names = {name for _, attributes in seen.elements for name in attributes}
    assert not [name for name in names if name.startswith("on") or name in ("style", "href", "src")]


def test_rows_of_the_markdown_have_as_many_cells_as_their_header_whatever_the_samples_hold() -> None:
    text = [line.replace("\\|", "") for line in lines(hostile_comparison())]
    tables = [list(rows) for is_row, rows in itertools.groupby(text, key=lambda line: line.startswith("|")) if is_row]
    assert len(tables) == 2
    for rows in tables:
        assert {row.count("|") for row in rows} == {rows[0].count("|")}


def test_missing_scores_are_noted() -> None:
    passes = ["1", "0", "0", "0", "1", "skip"]
    view = comparison_view(compare(run_of(passes), run_of(["1", "1", "1", "1", "0", "1"])))
    notes = " ".join(view.sections[0].notes)
    assert "p: McNemar's test, mid-p; " in notes
    assert notes.count("McNemar") == 1
    assert "scores of 1 sample" in notes


def test_a_gate_tells_how_missing_scores_and_more_samples_would_decide_it() -> None:
    found = gate(run_of([*["1", "1", "1", "0.9"] * 20, "skip"]), min={"given": 0.94})
    more = found.decisions[0].more_samples
    view = gate_view(found)
    verdict = view.sections[0].tables[0].rows[0][-1]
    assert "1 missing score" in str(verdict)
    assert f"about {more:,} more samples" in str(verdict)
    assert "(look=2)" in str(verdict)
    assert view.sections[0].notes[0].startswith("given: 1 sample without")
    assert not any("prediction-powered" in note for note in view.sections[0].notes)


def test_a_gate_with_labels_tells_whose_mean_it_tests() -> None:
    run = run_of(["1", "0.9"] * 20)
    labels = {"given": {record.sample_id: 1.0 for record in run.records[:20]}}
    notes = gate_view(gate(run, min={"given": 0.5}, labels=labels)).sections[0].notes
    assert "(prediction-powered inference)" in " ".join(notes)


class Passed(Given):
    """Whether the number is 1."""

    name = "passed"

    def score(self, *, output: str) -> Score:
        return Score(self.scale * (output == "1"))


def test_tests_are_named_with_their_scorers_where_they_differ() -> None:
    scorers = [Given(), Passed()]
    before, after = run_of(["1", "0", "0.5", "0"], scorers), run_of(["1", "1", "1", "0"], scorers)
    note = comparison_view(compare(before, after)).sections[0].notes[0]
    assert "difference (given); McNemar's" in note
    assert "(passed); corrected for 2" in note


def test_drift_is_shown_with_its_verdict() -> None:
    run = run_of([str(n / 100) for n in range(80)])
    shifted = [replace(r, outcome=Score((r.value or 0.0) + 0.1)) for r in run]
    drifted = drift_view(drift(run, replace(run, records=tuple(shifted))))
    (row,) = drifted.sections[0].tables[0].rows
    assert (row[0].text, row[1].text, row[4].text, row[-1].text) == ("given", "80", "+0.100", "drifted")
    assert row[7].text == "100%"
    assert "drifted" in "".join(page(drifted))


def test_every_verdict_of_a_drift_has_its_words() -> None:
    run = run_of(["0.5", "0.6", "0.7"])
    (one,) = drift(run, run)
    for verdict, shown in (("drifted", "drifted"), ("stable", "stable"), ("inconclusive", "inconclusive")):
        assert verdict in get_args(get_type_hints(Drift)["verdict"])
        told = replace(one.drift, verdict=cast("Any", verdict))
        result = DriftResult(before=run, now=run, scorers=(replace(one, drift=told),))
        assert drift_view(result).sections[0].tables[0].rows[0][-1].text == shown


def test_a_gate_shows_each_criterion_and_its_verdict() -> None:
    run = run_of([str(0.7 + n % 3 / 10) for n in range(40)], [Given(), Harm()])
    view = gate_view(gate(run, min={"given": 0.5}, max={"harm": 0.1}))
    assert view.verdict is not None
    assert (view.verdict.text, view.verdict.tone) == ("✕ fail", "bad")
    verdicts = [(row[0].text, row[-1].text) for row in view.sections[0].tables[0].rows]
    assert verdicts == [("given", "✓ pass"), ("harm", "✕ fail")]
    assert "is at most 5%" in view.sections[0].notes[-1]
    assert "✕ fail" in "".join(page(view))


def test_the_checks_of_a_gate_say_what_they_look_at_in_the_direction_of_a_comparison() -> None:
    scorers = [Given(), Harm()]
    before = run_of([str(0.5 + n % 3 / 10) for n in range(40)], scorers)
    now = run_of([str(0.55 + n % 3 / 10) for n in range(40)], scorers)
    wanted: dict[str, Any] = {
        "min": {"given": 0.2},
        "max_regression": {"given": 0.1, "harm": 0.1},
        "pass_rate": {"given": (0.6, 0.5)},
    }
    view = gate_view(gate(now, **wanted, baseline=before))
    (checks,) = view.sections[0].tables
    rows = {row[0].text: (row[1].text, row[3].text) for row in checks.rows}
    assert rows == {
        "given": ("0.648", "at least 0.2"),
        "given >= 0.6": ("65%", "at least 50% of samples"),
        "given, difference from baseline": ("+0.050", "at least -0.100"),
        "harm, difference from baseline": ("+0.050", "at most +0.100"),
    }
    assert any("look 1, tested at 4%." in note for note in view.sections[0].notes)


def test_comparisons_and_drift_say_that_samples_are_clustered() -> None:
    groups = [{"group": f"g{place // 2}"} for place in range(12)]
    before, now = (run_of(answers, metadata=groups) for answers in (["0.0", "1.0"] * 6, ["1.0"] * 12))
    note = "given: clustered samples: cluster-robust interval (6 clusters)."
    assert note in comparison_view(compare(before, now)).sections[-1].notes
    drifted = drift_view(drift(before, replace(before, records=tuple(before.records)))).sections[0].notes
    assert note in drifted


def test_of_several_trials_those_that_show_the_change_are_compared() -> None:
    def agent(*, trial: int) -> str:
        return "no idea" if trial == 3 else "1815"

    def better_agent(*, input: str) -> str:
        return "1815"

    cases = [{"id": "ada", "input": "When?", "reference": "1815"}]
    before = evaluate(cases, "contains", target=agent, trials=4, ledger=None)
    after = evaluate(cases, "contains", target=better_agent, trials=4, ledger=None)
    worse, better = "in trial 3 · 0; mean of the trials 0.75", "in trial 1 · 1; mean of the trials 1"
    for runs, titles, answers in (
        ((before, after), [f"A {worse}", f"B {better}"], ["no idea", "1815"]),
        ((after, before), [f"A {better}", f"B {worse}"], ["1815", "no idea"]),
    ):
        (changed,) = comparison_view(compare(*runs)).examples
        shown = changed.samples[0].panel[-1].items
        assert [block.title for block in shown] == titles
        assert [block.text for block in shown] == answers
