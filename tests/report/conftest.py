"""Results of every kind, with notes, and the views of what only reports and the command line show."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

import evalstone
from evalstone import (
    Failed,
    Record,
    Score,
    ScriptedJudge,
    audit,
    calibrate,
    check,
    compare,
    drift,
    dry_run,
    evaluate,
    gate,
    power,
    write_run,
)
from evalstone._core import sync
from evalstone.judge_quality.align import AlignmentTask
from evalstone.judges import align
from evalstone.ledger import live
from evalstone.ledger.live import LiveCounts, LiveScore
from evalstone.ledger.maintenance import info
from evalstone.ledger.scores import list_scores
from evalstone.ledger.store import Ledger
from evalstone.live import coverage
from evalstone.report.shown import Shown
from evalstone.report.view import View
from evalstone.results import compare_judges
from evalstone.results.files import read_summary
from evalstone.results.human_labels import corrected
from evalstone.results.several_runs import Experiment, SavedRuns
from evalstone.results.views.record import record_view
from evalstone.results.views.run import run_view
from evalstone.types import scorer_name
from tests.birds import labeled, strict
from tests.runs import Given, Harm, run_of

ANSWERS = ["1.0", "0.8", "0.4", "skip"] * 10
KINDS = [{"kind": "a longer kind" if number % 4 < 2 else "other"} for number in range(40)]
ROWS = [
    {"id": str(n), "output": "Rome is on Mars." if n % 3 else "Rome is in Italy.", "context": ["Rome is in Italy."]}
    for n in range(9)
]


IMPORTED = Path(__file__).parents[1] / "compat" / "imports" / "promptfoo" / "results.json"


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Shown]:
    """A result of each kind."""
    folder = tmp_path_factory.mktemp("results")
    one, other = (run_of(answers, [Given(), Harm()], metadata=KINDS) for answers in (ANSWERS, [*ANSWERS[1:], "1.0"]))
    write_run(one, folder / "one")
    made = calibrate([row | {"label": "no" if n % 3 else "yes"} for n, row in enumerate(ROWS)], ledger=None)
    judged = evaluate(ROWS, ["faithfulness", "hallucination"], ledger=None)
    tried = evaluate(
        [{"id": f"q{n}", "input": str(n)} for n in range(8)],
        [Given()],
        target=_tried,
        trials=3,
        ledger=None,
    )
    ledger = _ledger(folder / "l.db")
    with Ledger(ledger) as opened:
        contents = info(opened)
    return {
        "run": one,
        "run by a judge": judged,
        "run of trials": tried,
        "slices": one.slices("kind")[0],
        "comparison": compare(one, other, slice_by="kind"),
        "comparison of three": compare(one, other, one, missing="ignore"),
        "gate": gate(one, min={"given": 0.7}, pass_rate={"given": (0.5, 0.5)}, require=("harm",)),
        "estimate": dry_run(ROWS, ["faithfulness", "hallucination"], judge="openai/gpt-4o-mini", ledger=None),
        "sample size": power(one, 0.03),
        "drift": drift(one, one),
        "audit": audit(ROWS, ledger=None, perturbations=("repeat", "duplicated", "injection_checked")),
        "calibration": made,
        "alignment": align(labeled(60), "relevancy_check", judge=ScriptedJudge(strict), examples=2, ledger=None),
        "alignment estimate": sync.run(
            AlignmentTask.of(labeled(60), "relevancy_check", judge="lexical").estimated(None)
        ),
        "judges": compare_judges(
            replace(made, judge=name, cost=0.001, seconds=0.25) for name in ("first", "second", "third")
        ),
        "saved runs": SavedRuns(({**read_summary(folder / "one"), "folder": "one"},), ("one",)),
        "imported": evalstone.import_results(IMPORTED, ledger=None),
        "experiment": Experiment(runs={"first": one, "second": run_of(["fail", "0.5"])}),
        "live coverage": coverage(ledger=ledger),
        "live drift": evalstone.live.drift("base", ledger=ledger),
        "ledger": contents,
        "scores": list_scores(ledger, limit=4),
        "data check": check([*ROWS, ROWS[0], {"output": 5, "context": 7}]),
    }


@pytest.fixture(scope="session")
def views(results: dict[str, Shown]) -> dict[str, View]:
    """The views of all results, and of what else is reported."""
    run = run_of(ANSWERS, [Given(), Harm()], metadata=KINDS)
    labels = {f"s{number}": 0.5 for number in range(1, 30, 2)}
    report = run_view(run, slices=run.slices("kind"), corrected=[corrected(run, "given", labels, slice_by=["kind"])])
    record = evaluate(ROWS[:1], ["faithfulness"], ledger=None)[0]
    own = {"run report": report, "record": record_view(record)}
    return {name: result.view() for name, result in results.items()} | own


def _tried(input: str, trial: int) -> str:
    return str((int(input) + trial) % 3 / 2)


def _ledger(path: Path) -> Path:
    """A ledger with a run and live scores that are worse."""
    outputs = [{"id": f"q{n}", "output": "Paris" if n % 10 else "Rome"} for n in range(60)]
    run = evaluate(outputs, ["contains(expected=Paris)"], ledger=path, name="base")
    signature = run.scorers[0].signature
    rows = [
        LiveScore(
            id=f"o/{n}", stream="shop", source="live", signature=signature, owner="o", submitted=time.time() - 9 * n
        )
        for n in range(30)
    ]
    with Ledger(path) as opened:
        counts = LiveCounts(
            stream="shop",
            signature=signature,
            owner="o",
            hour=int(time.time() // 3600),
            seen=40,
            eligible=30,
            accepted=30,
        )
        mine = live.write_frame(opened, [counts], rows, [])
        outcomes = (Failed("the judge is away") if n == 3 else Score(float(n % 2)) for n in range(30))
        records = (
            Record(sample_id="s", scorer=scorer_name(signature), signature=signature, outcome=outcome)
            for outcome in outcomes
        )
        ended = [row.ended(record) for row, record in zip(mine, records, strict=True)]
        live.finish(opened, [replace(row, finished=row.submitted) for row in ended])
    return path
