"""What `print` shows of a calibration, an audit and a power analysis: every number is that of the object."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from evalstone import evaluate, sample_size
from evalstone.results.audit import Audit, AuditedScorer, Effect, Perturbation
from evalstone.results.calibration import Calibration, LabeledScore, fit
from evalstone.results.measures import verdicts_at
from evalstone.results.views.power import power_view
from evalstone.stats.intervals import Interval
from tests.runs import Given

MEASURES = ("sensitivity", "specificity", "accuracy", "balanced_accuracy", "precision", "f1", "kappa")
LABELS = [((n % 10) / 10, n % 10 > 5 if n % 7 else n % 2 > 0) for n in range(40)]


def calibration(labels: list[tuple[float, bool]], **more: Any) -> Calibration:
    return Calibration(
        judge="lexical@1",
        scorer="faithfulness@1",
        name="faithfulness",
        scale=1.0,
        lower_is_better=False,
        default_threshold=0.3,
        label_threshold=0.5,
        dataset="d.jsonl",
        version="v",
        pairs=tuple(LabeledScore(str(n), value, (float(label),)) for n, (value, label) in enumerate(labels)),
        **more,
    )


def cells(line: str) -> list[str]:
    return re.split(r" {2,}", line.strip())


def between(interval: Interval) -> str:
    return f"{interval.low:.3f} to {interval.high:.3f}"


def test_a_calibration_has_the_measures_at_its_default_threshold() -> None:
    made = fit(calibration(LABELS))
    lines = str(made).splitlines()
    assert lines[0] == "faithfulness · judge lexical@1 · 40 labeled samples of d.jsonl"
    assert made.auroc is not None
    at_default = verdicts_at(made, 0.3).measures
    measures = [*(at_default[name] for name in MEASURES), made.auroc]
    assert [cells(line)[1:] for line in lines[2:11]] == [
        ["estimate", "95% CI"],
        *([f"{one.mean:.3f}", between(one)] for one in measures if one is not None),
    ]
    assert made.threshold is not None
    assert lines[12:] == [
        "Verdicts are yes from 0.3.",
        f"The threshold with the best balanced accuracy on these samples is {made.threshold.value:.4g}.",
    ]


def test_a_calibration_says_what_is_missing_and_why_it_is_not_used() -> None:
    tied = LabeledScore("tied", 0.5, (1.0, 0.0))
    both = [LabeledScore(str(n), value, (1.0, None)) for n, value in enumerate((0.2, 0.8))]
    made = dataclasses.replace(
        calibration([(0.2, True)]), pairs=(*both, tied), skipped=2, failed=1, stop_reason="out of money"
    )
    lines = str(made).splitlines()
    assert cells(lines[4]) == ["specificity (TNR)", "-", "-"]
    assert cells(lines[10]) == ["AUROC", "-", "-"]
    assert lines[12:] == [
        "Verdicts are yes from 0.3; it needs labels of both kinds, yes and no.",
        "2 labeled samples skipped.",
        "1 labeled sample failed.",
        "1 labeled sample with tied labels.",
        "It ended early: out of money.",
    ]


def effect(name: str, scorer: str, direction: int = 0, **more: Any) -> Effect:
    counts = {"n": 10, "lost": 0, "raised": 2, "lowered": 1, "changed": 3, **more}
    flips, shift = Interval(0.3, 0.067, 0.652, 10), Interval(0.125, -0.05, 0.3, 10)
    values: dict[str, Any] = {"flips": flips, "shift": shift, **counts}
    perturbation = Perturbation(name, "length", "", lambda sample: sample, direction)
    return Effect(perturbation=perturbation, scorer=scorer, **values)


def audited(*effects: Effect, **more: Any) -> Audit:
    mean = Interval(0.5, 0.4, 0.6, 10)
    scorers = tuple(
        AuditedScorer(
            name=name,
            signature=f"{name}@1",
            scale=scale,
            lower_is_better=lower_is_better,
            threshold=0.5,
            threshold_source="default",
            scored=10,
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
        version="v",
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
        effect("injection", "toxicity@1", 1, shift_p=0.01, shift=Interval(-2.5, -3.0, -2.0, 10)),
    )
    columns = ["n", "flips", "95% CI", "shift", "p", "affected"]
    lines = str(tables).splitlines()
    assert lines[0] == "judge lexical@1 · 10 samples of d.jsonl"
    assert [cells(line) for line in lines[2:]] == [
        ["faithfulness", *columns],
        ["repeat", "0", "-", "-", "-", "-"],
        ["longer", "10", "30%", "6.7% to 65.2%", "+0.125", "0.040", "up"],
        ["praise", "10", "30%", "6.7% to 65.2%", "+0.125", "< 0.001", "inconsistent"],
        [""],
        ["toxicity", *columns],
        ["order", "10", "30%", "6.7% to 65.2%", "+0.12", "0.200"],
        ["injection", "10", "30%", "6.7% to 65.2%", "-2.50", "0.010", "follows the injection"],
    ]


def test_an_audit_says_what_it_lacks() -> None:
    made = audited(effect("order", "toxicity@1"), failed=2, not_applicable=("swap", "options"), stop_reason="no money")
    assert str(made).splitlines()[-4:] == [
        "",
        "2 results failed.",
        "Not applicable to any sample: swap, options.",
        "The audit ended early: no money.",
    ]


def test_a_power_analysis_has_the_plan_of_each_scorer() -> None:
    run = evaluate([{"id": str(n), "output": str(float(n % 3 > 0))} for n in range(12)], [Given()], ledger=None)
    analysis = sample_size(run, 0.1, power=0.9)
    plan = analysis["given"].plan
    lead, _, header, row, *notes = str(analysis).splitlines()
    assert lead == "To detect a true difference of 0.1 with a power of 90%"
    columns = ["scorer", "samples needed", "80% range", "pilot samples", "std. deviation"]
    assert cells(header) == [*columns, "minimum detectable difference"]
    spread = f"{plan.deviation:.3f}", f"{plan.detectable:.3f}"
    needed = [f"{plan.needed:,}", f"{plan.needed_low:,} to {plan.needed_high:,}", "12", *spread]
    assert cells(row) == ["given", *needed]
    assert plan.caution
    assert notes[1].startswith("Both runs score the same samples. Their scores are assumed to be uncorrelated")
    assert notes[-1] == f"given: {plan.caution}."
    assert notes[1:] == list(power_view(analysis).sections[0].notes)


@pytest.mark.parametrize("text", ["a\x1b[31mb", "a\u202eb"])
def test_control_characters_are_visible(text: str) -> None:
    made = dataclasses.replace(calibration(LABELS), dataset=text)
    for printed in (str(made), str(dataclasses.replace(audited(), dataset_name=text))):
        assert text not in printed
