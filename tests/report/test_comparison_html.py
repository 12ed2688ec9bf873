"""The page of a comparison: a forest plot, and judged text that stays text."""

from __future__ import annotations

from dataclasses import replace

from evalstone import Run, Sample, compare, evaluate
from evalstone.report.comparison import comparison_markdown, signed
from evalstone.report.comparison_html import comparison_page
from tests.report.test_html import HOSTILE, Seen
from tests.runs import Given, run_of


def hostile_run(score: str) -> Run:
    samples = [
        Sample(id=f"{number} {text}", input=text, output=score, instructions=text, metadata={"kind": text})
        for number, text in enumerate(HOSTILE)
    ]
    return replace(evaluate(samples, [Given()], ledger=None), dataset_name=HOSTILE[0])


def test_hostile_samples_bring_nothing_into_the_page_of_a_comparison() -> None:
    compared = compare(hostile_run("0.5"), hostile_run("0.75"), slice_by="kind")
    seen = Seen("".join(comparison_page(replace(compared, names={"A": HOSTILE[1], "B": HOSTILE[9]}))))
    tags = [tag for tag, _ in seen.elements]
    assert (tags.count("script"), tags.count("style"), tags.count("img"), tags.count("base")) == (0, 1, 0, 0)
    names = {name for _, attributes in seen.elements for name in attributes}
    assert not [name for name in names if name.startswith("on") or name in ("style", "href", "src")]


def test_each_scorer_has_a_mark_whose_shape_tells_the_direction() -> None:
    low, high = [str(n / 20) for n in range(10)], [str(n / 20 + 0.25) for n in range(10)]
    better = "".join(comparison_page(compare(run_of(low), run_of(high))))
    assert '<path class="mean better" d="M' in better
    assert "▲ better" in better
    worse = "".join(comparison_page(compare(run_of(high), run_of(low))))
    assert '<path class="mean worse" d="M' in worse
    assert '<circle class="mean unclear"' in "".join(comparison_page(compare(run_of(low), run_of(low))))


def test_the_answers_of_both_runs_stand_side_by_side() -> None:
    page = "".join(comparison_page(compare(run_of(["0.5"] * 6), run_of(["0.75"] * 6))))
    assert page.count("<details class='change'>") == 5
    assert "says 0.5" in page
    assert "says 0.75" in page


def test_rows_of_the_markdown_have_the_same_number_of_cells_whatever_the_samples_hold() -> None:
    compared = compare(hostile_run("0.5"), hostile_run("0.75"), slice_by="kind")
    rows = [line for line in comparison_markdown(compared) if line.startswith("|")]
    assert {row.replace("\\|", "").count("|") for row in rows} == {10, 12}


def test_a_difference_that_rounds_to_zero_has_no_sign() -> None:
    assert [signed(0.0001), signed(-0.0001), signed(0.001), signed(-1.5, 1)] == ["0.000", "0.000", "+0.001", "-1.5"]
