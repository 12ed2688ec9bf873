"""What a calibration, an audit and a power analysis show: every number is that of the object."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from evalstone import evaluate, power
from evalstone.report.notes import clause_of
from evalstone.report.view import Table
from evalstone.results.audit import Audit, AuditedScorer, Effect, Perturbation
from evalstone.results.calibration import Calibration, LabeledScore, fit
from evalstone.results.measures import measure, verdicts_at
from evalstone.stats.intervals import Interval
from evalstone.types import scorer_name
from tests.runs import Given

MEASURES = ("sensitivity", "specificity", "accuracy", "balanced_accuracy", "precision", "f1", "kappa")
LABELS = [((n % 10) / 10, n % 10 > 5 if n % 7 else n % 2 > 0) for n in range(40)]


def calibration(labels: list[tuple[float, bool]], **more: Any) -> Calibration:
    return Calibration(
        judge="lexical@1",
        scorer="faithfulness",
        signature="faithfulness@1",
        scale=1.0,
        lower_is_better=False,
        default_threshold=0.3,
        label_threshold=0.5,
        dataset_name="d.jsonl",
        dataset_version="v",
        pairs=tuple(LabeledScore(str(n), value, (float(label),)) for n, (value, label) in enumerate(labels)),
        **more,
    )


def agreement(made: Calibration) -> Table:
    return next(section for section in made.view().sections if section.title == "Agreement").tables[0]


def rows_of(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def between(interval: Interval) -> str:
    return f"{interval.low:.3f} to {interval.high:.3f}"


def test_a_calibration_has_the_measures_at_both_thresholds() -> None:
    made = fit(calibration(LABELS))
    at_default, at_fitted = verdicts_at(made, 0.3).measures, measure(made).at_fitted
    assert at_fitted is not None
    shown = rows_of(agreement(made))
    assert [row[1:] for row in shown] == [
        [
            text
            for one in (at_default[name], at_fitted.measures[name])
            if one is not None
            for text in (f"{one.estimate:.3f}", between(one))
        ]
        for name in MEASURES
    ]
    assert made.auroc is not None
    assert f"AUROC {made.auroc.estimate:.3f} (95% CI {between(made.auroc)})." in str(made).splitlines()


def test_a_calibration_says_what_is_missing_and_why_it_is_not_used() -> None:
    tied = LabeledScore("tied", 0.5, (1.0, 0.0))
    both = [LabeledScore(str(n), value, (1.0, None)) for n, value in enumerate((0.2, 0.8))]
    made = dataclasses.replace(
        calibration([(0.2, True)]), pairs=(*both, tied), n_skipped=2, n_failed=1, stop_reason="out of money"
    )
    shown = {row[0]: row[1] for row in rows_of(agreement(made))}
    assert shown["specificity (TNR)"] == "-"
    text = str(made)
    for told in ("2 skipped, 1 failed", "out of money"):
        assert told in text


def effect(name: str, scorer: str, direction: int = 0, **more: Any) -> Effect:
    counts = {"n": 10, "lost": 0, "raised": 2, "lowered": 1, "changed": 3, **more}
    flips, shift = (
        Interval(estimate=0.3, low=0.067, high=0.652, n=10),
        Interval(estimate=0.125, low=-0.05, high=0.3, n=10),
    )
    values: dict[str, Any] = {"flips": flips, "shift": shift, **counts}
    perturbation = Perturbation(name, "length", "", lambda sample: sample, direction)
    return Effect(perturbation=perturbation, scorer=scorer_name(scorer), signature=scorer, **values)


def audited(*effects: Effect, **more: Any) -> Audit:
    mean = Interval(estimate=0.5, low=0.4, high=0.6, n=10)
    scorers = tuple(
        AuditedScorer(
            name=name,
            signature=f"{name}@1",
            scale=scale,
            lower_is_better=lower_is_better,
            threshold=0.5,
            threshold_source="default",
            n_score=10,
            mean=mean,
            pass_rate=mean,
            noise=None,
        )
        for name, scale, lower_is_better in (("faithfulness", 1.0, False), ("toxicity", 10.0, True))
    )
    values: dict[str, Any] = {"not_applicable": (), **more}
    return Audit(
        judge="lexical@1",
        judge_note="",
        dataset_name="d.jsonl",
        dataset_version="v",
        samples=10,
        dataset_size=40,
        scorers=scorers,
        effects=effects,
        **values,
    )


def test_an_audit_has_a_table_for_each_scorer() -> None:
    tables = audited(
        effect("repeat", "faithfulness@1", flips=None, shift=None, n=0),
        effect("longer", "faithfulness@1", shift_p=0.04, flips_p=0.5),
        effect("praise", "faithfulness@1", 1, shift_p=0.5, flips_p=0.0001),
        effect("order", "toxicity@1", shift_p=0.2, flips_p=0.3),
        effect("injection", "toxicity@1", 1, shift_p=0.01, shift=Interval(estimate=-2.5, low=-3.0, high=-2.0, n=10)),
    )
    view = tables.view()
    assert view.lead.startswith("10 of 40 samples · ")
    assert "judge lexical@1" in view.lead
    shown = {section.title: section.tables[0] for section in view.sections}

    def cells(title: str, *names: str) -> list[list[str]]:
        titles = [column.title for column in shown[title].columns]
        return [[row[titles.index(name)].text for name in names] for row in shown[title].rows]

    assert cells("faithfulness", "perturbation", "n", "shift", "p", "affected") == [
        ["repeat", "0", "-", "", ""],
        ["longer", "10", "+0.125", "0.040", "up"],
        ["praise", "10", "+0.125", "< 0.001", "inconsistent"],
    ]
    assert cells("toxicity", "perturbation", "shift", "p", "affected") == [
        ["order", "+0.12", "0.200", ""],
        ["injection", "-2.50", "0.010", "follows the injection"],
    ]


def test_an_audit_says_what_it_lacks() -> None:
    made = audited(
        effect("order", "toxicity@1"), n_failed=2, not_applicable=("swap", "options"), stop_reason="no money"
    )
    lines = str(made).splitlines()
    assert "2 results failed." in lines
    for end in (" ended early: no money.", " sample: swap, options."):
        assert any(line.endswith(end) for line in lines)


def test_a_power_analysis_has_the_plan_of_each_scorer() -> None:
    run = evaluate([{"id": str(n), "output": str(float(n % 3 > 0))} for n in range(12)], [Given()], ledger=None)
    analysis = power(run, 0.1, power=0.9)
    plan = analysis["given"].plan
    (section,) = analysis.view().sections
    spread = f"{plan.deviation:.3f}", f"{plan.detectable:.3f}"
    needed = [f"{plan.needed:,}", f"{plan.needed_low:,} to {plan.needed_high:,}", "12", *spread]
    assert rows_of(section.tables[0]) == [["given", *needed]]
    (small,) = plan.notes
    assert section.notes[-1] == f"given: {clause_of(small)}."
    assert set(section.notes) <= set(str(analysis).splitlines())


@pytest.mark.parametrize("text", ["a\x1b[31mb", "a\u202eb"])
def test_control_characters_are_visible(text: str) -> None:
    made = dataclasses.replace(calibration(LABELS), dataset_name=text)
    for printed in (str(made), str(dataclasses.replace(audited(), dataset_name=text))):
        assert text not in printed
