"""What `print` shows of a result: all that the command line says about which samples it rests on, and no repr."""

from __future__ import annotations

import os

import pytest

from evalstone import (
    Failed,
    Record,
    Score,
    Skipped,
    audit,
    calibrate,
    compare,
    drift,
    evaluate,
    gate,
    power,
)
from evalstone.results.views.gate import gate_view
from evalstone.results.views.run import run_view

ROWS = [
    {
        "id": str(n),
        "output": f"The {n}th item costs {n if n % 3 else n + 1000} dollars.",
        "context": [f"The {n}th item costs {n} dollars."],
        "label": n % 3 > 0 if n % 7 else n % 2 > 0,
    }
    for n in range(40)
]


def judged(*, output: str) -> float:
    if output == "boom":
        raise RuntimeError("quota")
    return float(output == "yes")


def rows(rest: str) -> list[dict[str, str]]:
    return [{"id": str(n), "output": "yes" if n < 10 else rest} for n in range(20)]


def test_a_printed_comparison_says_which_samples_are_left_out() -> None:
    a, b = (evaluate(rows(rest), [judged], ledger=None) for rest in ("no", "boom"))
    left_out = "10 samples with a score in only one run are left out."
    assert f"judged: {left_out}" in str(compare(a, b, missing="ignore")).splitlines()
    c = evaluate(rows("no"), [judged], ledger=None)
    lines = str(compare(a, b, c, missing="ignore")).splitlines()
    assert f"judged, A and B: {left_out}" in lines
    assert not any(line.startswith("judged, A and C: 10 samples") for line in lines)


def at_times(*, output: str, metadata: dict[str, str]) -> float:
    if metadata["at"] in os.environ.get("OUTAGE", "").split():
        raise RuntimeError("quota")
    return float(output == "yes")


def test_a_printed_drift_says_which_anchors_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = [{**row, "at": row["id"]} for row in rows("no")]
    before = evaluate(samples, [at_times], ledger=None)
    monkeypatch.setenv("OUTAGE", "0 1 2 3 4 5 6")
    lines = str(drift(before, evaluate(samples, [at_times], ledger=None))).splitlines()
    assert any(line.startswith("at_times: 7 anchors ") for line in lines)


def test_a_printed_run_says_what_its_means_leave_open_as_the_report_does() -> None:
    samples = [{**row, "group": f"g{place // 2}"} for place, row in enumerate(rows("boom"))]
    run = evaluate(samples, [judged], ledger=None)
    lines, notes = str(run).splitlines(), run_view(run).sections[0].notes
    assert any(note.startswith("judged: 10 of 20 ") and note.endswith("0.500 and 1.000") for note in notes)
    assert any(note.endswith(" (5 clusters)") for note in notes)
    assert set(notes) <= set(lines)
    assert all(note in run._repr_html_() for note in notes)  # pyright: ignore[reportPrivateUsage] - for notebooks


def test_a_printed_run_shows_how_often_all_trials_pass() -> None:
    def agent(*, input: str, trial: int) -> str:
        return "yes" if trial == 1 or int(input) % 2 else ["no", "boom"][int(input) % 4 == 0]

    run = evaluate([{"id": f"q{n}", "input": str(n)} for n in range(8)], [judged], target=agent, trials=2, ledger=None)
    (section,) = [one for one in run_view(run).details if one.title == "Trials"]
    lines = str(run).splitlines()
    assert any(line.startswith("judged: 2 trials without") for line in lines)
    assert {*section.lead, *section.notes} <= set(lines)
    of_two = next(line for line in lines if line.split()[:2] == ["2", "1.000"])
    passes = run.reliability()[0].passes[1]
    assert of_two.split()[1:6] == ["1.000", f"{passes.at_least_one.low:.3f}", "to", "1.000", "0.500"]
    assert "<td>0.500</td>" in run._repr_html_()  # pyright: ignore[reportPrivateUsage]


def test_printed_slices_are_the_table_of_the_report() -> None:
    samples = [{**row, "topic": "ab"[place < 10]} for place, row in enumerate(rows("no"))]
    run = evaluate(samples, [judged], ledger=None)
    (found,) = run.slices("topic")
    assert repr(run.slices("topic")).endswith(" of judged: 2 slices>,)")
    (section,) = [one for one in run_view(run, slices=[found]).details if one.title.startswith("Slices")]
    lines = str(found).splitlines()
    assert {*section.lead, *section.notes} <= set(lines)
    shown = [line.split() for line in lines if line.startswith("topic=")]
    table = section.tables[0]
    assert [cells[0] for cells in shown] == [row[0].text for row in table.rows]
    assert all(row[1].text in cells for cells, row in zip(shown, table.rows, strict=True))
    assert sum("▼ worse" in line for line in lines) == 1


def test_a_printed_gate_says_at_which_error_rates_it_holds() -> None:
    run = evaluate(rows("no"), [judged], ledger=None)
    for found in (
        gate(run, min={"judged": 0.2}, require=["judged"]),
        gate(run, min={"judged": 0.2}, alpha=None),
    ):
        assert set(gate_view(found).sections[0].notes) <= set(str(found).splitlines())
    assert "look 1, tested at 4%." in str(gate(run, min={"judged": 0.2}))


@pytest.mark.parametrize(
    ("output", "reason"), [("yes", ""), ("boom", "RuntimeError: quota"), (None, "judged needs output")]
)
def test_every_outcome_has_a_reason(output: str | None, reason: str) -> None:
    record, _ = evaluate(
        [{"id": "1", "input": "?", "output": output}, {"input": "?", "output": "no"}], [judged], ledger=None
    )
    assert isinstance(record, Record)
    assert isinstance(record.outcome, Score | Skipped | Failed)
    assert record.outcome.reason.startswith(reason)


def test_a_printed_calibration_is_a_table_of_agreement() -> None:
    lines = str(calibrate(ROWS, ledger=None)).splitlines()
    assert lines[0].startswith("Calibration on ")
    assert " · 40 labeled samples · faithfulness" in lines[0]
    assert "judge lexical@7" in lines[0]
    first = [line.split("  ")[0] for line in lines]
    assert {"measure", "sensitivity (TPR)", "balanced accuracy", "F1", "Cohen's kappa"} <= set(first)


def test_a_printed_audit_is_a_table_of_perturbations() -> None:
    result = audit(ROWS, ledger=None, draw=10, perturbations=("repeat", "duplicated"))
    lines = str(result).splitlines()
    assert lines[0].startswith("Audit on ")
    assert lines[0].endswith(" samples · judge lexical@7")
    assert " 10 of 40 " in lines[0]
    header = next(place for place, line in enumerate(lines) if line.startswith("perturbation"))
    assert [line.split()[0] for line in lines[header + 1 : header + 3]] == ["repeat", "duplicated"]


def test_a_printed_sample_size_is_a_table_of_scorers() -> None:
    run = evaluate(rows("no"), [judged], ledger=None)
    text = str(power(run, 0.1))
    title = text.partition("\n")[0]
    assert title.startswith("Sample size · ")
    assert " of 0.1 " in title
    assert title.endswith(" of 80%")
    assert f"{power(run, 0.1)['judged'].plan.needed:,}" in text
