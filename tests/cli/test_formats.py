"""Every command that prints a result writes it in every format, and JSON is what Python gives."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evalstone as es
from evalstone._core.json import to_jsonable
from evalstone.cli.app import COMMANDS, GROUPS, app
from evalstone.cli.command import Command
from evalstone.cli.options import Outputs
from evalstone.judges import align
from evalstone.ledger import live
from evalstone.ledger.live import LiveCounts, LiveScore
from evalstone.ledger.maintenance import info
from evalstone.ledger.scores import list_scores
from evalstone.ledger.store import Ledger
from evalstone.live import coverage
from evalstone.live import drift as live_drift
from evalstone.results.several_runs import Experiment
from evalstone.results.views.one_sample import one_sample
from evalstone.scale import merge, score_shard
from evalstone.types import scorer_name
from evalstone.types.metadata import StoredCell
from tests.cli.conftest import Evalstone
from tests.runs import Given, Harm, run_of
from tests.schemas import problems

WITHOUT_RESULT = {
    "scorers": "describes the scorers",
    "judges": "describes the judges",
    "annotate": "asks for labels",
    "init": "writes files",
    "view": "serves pages",
    "collect": "receives traces",
    "traces": "selects samples",
    "rubrics": "writes samples",
    "ledger export": "writes rows",
    "ledger import": "reads rows",
    "ledger prune": "deletes rows",
    "ledger verify": "says whether the ledger is intact",
    "ledger recover": "writes rows",
    "mcp": "answers requests",
    "skill install": "writes files",
    "skill show": "prints a file",
}
CONTAINS = "contains(expected=Paris)"
CALLS = {
    "run": "run outputs.jsonl -s contains(expected=Paris) -q --ledger new.db",
    "run an experiment": "run e.toml -q --ledger new.db",
    "dry run": "run outputs.jsonl -s faithfulness -s toxicity -j openai/gpt-5.1 --dry-run",
    "dry run of an experiment": "run e.toml --dry-run",
    "dry run of an audit": "audit labeled.jsonl --draw 4 --perturbation repeat -j openai/gpt-5.1 --dry-run",
    "demo": "demo --out demo --ledger new.db",
    "check": "check outputs.jsonl",
    "ci": "ci ci.toml --baseline base --ledger l.db -q",
    "score": "score -s faithfulness --output Rome. --context Rome. --ledger new.db",
    "score by several scorers": "score -s faithfulness -s contains --output Rome. --context Rome. --ledger new.db",
    "import": "import results.json --ledger new.db",
    "merge": "merge m",
    "report": "report a --slice-by kind",
    "report of one sample": "report a --sample s1",
    "compare": "compare a b --slice-by kind",
    "drift": "drift a a2",
    "gate": "gate a --min given=0.6",
    "power": "power a --baseline b",
    "runs": "runs a b --ledger l.db",
    "calibrate": "calibrate --labels labeled.jsonl -q --ledger new.db",
    "dry run of a calibration": "calibrate --labels labeled.jsonl -j openai/gpt-5.1 -j openai/gpt-5-mini --dry-run",
    "align": "align --labels many.jsonl -s fact_check -q --ledger new.db",
    "dry run of an alignment": "align --labels many.jsonl -s fact_check -j openai/gpt-5.1 --dry-run",
    "audit": "audit labeled.jsonl --draw 4 --perturbation repeat -q --ledger new.db",
    "live coverage": "live coverage shop --ledger l.db",
    "live drift": "live drift base --ledger l.db --since 2020-01-01",
    "ledger info": "ledger info --ledger l.db",
    "ledger scores": "ledger scores --ledger l.db --limit 2",
}
OTHER_CALLS = {"run an experiment", "report of one sample", "score by several scorers"}
"""Those of a command that is called in another way, too."""
IMPORTED = Path(__file__).parents[1] / "compat" / "imports" / "promptfoo" / "results.json"
FORMATS = ("html", "markdown", "csv", "json")


def commands() -> dict[str, Command]:
    context = app.make_context("evalstone", ["runs"])
    found: dict[str, Command] = {}
    for name in COMMANDS:
        if name in GROUPS:
            group: Any = app.get_command(context, name)
            found |= {f"{name} {inner}": group.get_command(context, inner) for inner in GROUPS[name]}
        else:
            found[name] = app.get_command(context, name)  # pyright: ignore[reportArgumentType]
    return found


def options_of(command: Command) -> set[str]:
    return {one.flag.removeprefix("--") for one in command.declared.values()}


def test_a_command_takes_all_formats_or_prints_no_result() -> None:
    taking = {name for name, command in commands().items() if options_of(command) >= {*FORMATS}}
    assert taking == commands().keys() - WITHOUT_RESULT.keys()
    assert taking == {name for name in CALLS if "dry run" not in name} - OTHER_CALLS
    assert len(dataclasses.fields(Outputs)) == len(FORMATS)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, a ledger with a run and live scores, labeled samples, and an experiment."""
    folder = tmp_path_factory.mktemp("results")
    kinds = [{"kind": "x" if number % 4 < 2 else "y"} for number in range(40)]
    answers = ["1.0", "0.8", "0.4", "skip"] * 10
    for name, given in (("a", answers), ("a2", answers), ("b", [*answers[1:], "1.0"])):
        es.write_run(run_of(given, [Given(), Harm()], metadata=kinds), folder / name)
    outputs = [{"id": f"q{n}", "output": "Paris" if n % 10 else "Rome"} for n in range(60)]
    shutil.copy(IMPORTED, folder)
    (folder / "outputs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in outputs))
    labeled = [
        {
            "output": "Rome is on Mars." if n % 3 else "Rome is in Italy.",
            "context": ["Rome is in Italy."],
            "label": n % 2,
        }
        for n in range(9)
    ]
    (folder / "labeled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labeled))
    (folder / "many.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labeled * 3))
    (folder / "e.toml").write_text(f'scorers = ["{CONTAINS}"]\n[experiment]\ndata = ["outputs.jsonl", "more.jsonl"]\n')
    (folder / "ci.toml").write_text(f'data = "outputs.jsonl"\nscorers = ["{CONTAINS}"]\nrequire = ["contains"]\n')
    (folder / "more.jsonl").write_text(json.dumps({"id": "q", "output": "Oslo"}) + "\n")
    score_shard(folder / "outputs.jsonl", CONTAINS, 1, 1, out=folder / "m")
    run = es.evaluate(outputs, [CONTAINS], ledger=folder / "l.db", name="base")
    signature = run.scorers[0].signature
    rows = [
        LiveScore(id=f"o/{n}", stream="shop", source="live", signature=signature, owner="o", submitted=time.time() - n)
        for n in range(3)
    ]
    with Ledger(folder / "l.db") as opened:
        seen = LiveCounts(stream="shop", signature=signature, owner="o", hour=int(time.time() // 3600), seen=3,
                          eligible=3, accepted=3)  # fmt: skip
        mine = live.write_frame(opened, [seen], rows, [])
        outcomes = (es.Score(1.0, reason="It does."), es.Score(0.0), es.Failed("the judge is away"))
        records = (
            es.Record(sample_id="s", scorer=scorer_name(signature), signature=signature, outcome=each)
            for each in outcomes
        )
        live.finish(opened, [row.ended(record) for row, record in zip(mine, records, strict=True)])
    return folder


@pytest.fixture
def folder(filled: Path, tmp_path: Path, evalstone: Evalstone) -> Path:
    return shutil.copytree(filled, tmp_path, dirs_exist_ok=True)


def rows_of(text: str) -> list[list[list[str]]]:
    """The tables of a CSV file, without their captions."""
    tables = [list(csv.reader(io.StringIO(part, newline=""))) for part in text.split("\r\n\r\n")]
    return [table[1:] if len(table[0]) == 1 < len(table[-1]) else table for table in tables]


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_a_result_is_written_in_every_format(folder: Path, evalstone: Evalstone, name: str) -> None:
    call = CALLS[name].split()
    terminal = evalstone(*call)
    shown = {kind: evalstone(*call, f"--{kind}", *["-"] * (kind != "json")) for kind in FORMATS}
    assert {done.returncode for done in shown.values()} == {terminal.returncode}, terminal
    assert shown["html"].stdout.startswith("<!doctype html>")
    title = re.search(r"<h1>(.*?)[ <]", shown["html"].stdout)
    assert title is not None
    assert title[1] in terminal.stdout
    assert shown["markdown"].stdout.startswith("### ")
    assert all(isinstance(json.loads(line), dict) for line in shown["json"].stdout.splitlines())
    for table in rows_of(shown["csv"].stdout):
        assert len(table) > 1
        assert {len(row) for row in table} == {len(table[0])}
        assert len({*table[0]}) == len(table[0])
    files = [f"{kind}.out" for kind in FORMATS if kind != "json"]
    done = evalstone(*call, *(word for file in files for word in (f"--{Path(file).stem}", file)))
    assert done.returncode == terminal.returncode
    assert all(Path(file).read_text(encoding="utf-8") and file in done.stdout for file in files)


def of_ledger(folder: Path) -> Any:
    with Ledger(folder / "l.db") as opened:
        return info(opened)


def experiment(folder: Path) -> dict[str, Any]:
    cells = ("outputs", "more")
    runs = {name: es.evaluate(f"{folder}/{name}.jsonl", [CONTAINS], ledger=None, name=name) for name in cells}
    placed = {
        name: dataclasses.replace(run, cell=StoredCell(experiment="e", name=name, factors={"data": name}))
        for name, run in runs.items()
    }
    return Experiment(runs=placed).to_dict()


def with_slices(run: es.Run, field: str) -> dict[str, Any]:
    return run.to_dict() | {"slices": to_jsonable(list(run.slices(field)))}


PYTHON: dict[str, Callable[[Path], Any]] = {
    "import": lambda at: es.import_results(at / "results.json", ledger=None).to_dict(),
    "merge": lambda at: merge(at / "m").to_dict(),
    "report": lambda at: with_slices(es.read_run(at / "a"), "kind"),
    "report of one sample": lambda at: one_sample(es.read_run(at / "a"), "s1").to_dict(),
    "compare": lambda at: dataclasses.replace(
        es.compare(es.read_run(at / "a"), es.read_run(at / "b"), slice_by="kind"), names={"A": "a", "B": "b"}
    ).to_dict(),
    "drift": lambda at: es.drift(es.read_run(at / "a"), es.read_run(at / "a2")).to_dict(),
    "gate": lambda at: es.gate(es.read_run(at / "a"), min={"given": 0.6}).to_dict(),
    "power": lambda at: es.power(es.read_run(at / "a"), 0.03, baseline=es.read_run(at / "b")).to_dict(),
    "calibrate": lambda at: es.calibrate(str(at / "labeled.jsonl"), ledger=None).to_dict(),
    "align": lambda at: align(str(at / "many.jsonl"), "fact_check", ledger=None).to_dict(),
    "audit": lambda at: es.audit(str(at / "labeled.jsonl"), ledger=None, draw=4, perturbations=("repeat",)).to_dict(),
    "run": lambda at: es.evaluate(str(at / "outputs.jsonl"), [CONTAINS], ledger=None).to_dict(),
    "run an experiment": experiment,
    "check": lambda at: es.check(str(at / "outputs.jsonl")).to_dict() | {"commands": [CHECKED]},
    "score": lambda at: es.score("faithfulness", {"output": "Rome.", "context": ["Rome."]}).to_dict(),
    "live coverage": lambda at: coverage("shop", ledger=at / "l.db").to_dict(),
    "live drift": lambda at: live_drift(
        es.read_run("base", ledger=at / "l.db"), ledger=at / "l.db", since=es_time("2020-01-01")
    ).to_dict(),
    "ledger info": lambda at: of_ledger(at).to_dict(),
    "ledger scores": lambda at: list_scores(at / "l.db", limit=2).to_dict(),
}
CHECKED = "evalstone run outputs.jsonl --scorer toxicity --judge openai/gpt-5.1"
OF_THE_OCCASION = {"id", "seconds", "started", "run", "created", "location"}
"""What depends on when and where a command is run."""


def es_time(text: str) -> Any:
    from evalstone._core.times import moment  # noqa: PLC0415 - only one result takes a time

    return moment(text, "--since")


def lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: lasting(item) for key, item in value.items() if key not in OF_THE_OCCASION}  # pyright: ignore
    return [lasting(item) for item in value] if isinstance(value, list) else value  # pyright: ignore


@pytest.mark.parametrize("name", PYTHON)
def test_json_is_what_python_gives(folder: Path, evalstone: Evalstone, name: str) -> None:
    printed = json.loads(evalstone(*CALLS[name].split(), "--json").stdout)
    assert lasting(printed) == lasting(json.loads(json.dumps(PYTHON[name](folder))))


@pytest.mark.parametrize("name", [*CALLS, "scorers", "scorers --from ragas"])
def test_each_line_of_json_is_as_the_schema_of_its_format(folder: Path, evalstone: Evalstone, name: str) -> None:
    lines = evalstone(*CALLS.get(name, name).split(), "--json").stdout.splitlines()
    assert lines
    assert [problem for line in lines for problem in problems(json.loads(line))] == []


def test_the_json_of_judges_is_that_of_their_calibrations(folder: Path, evalstone: Evalstone) -> None:
    for scorer in ("faithfulness", "fact_check"):
        made = evalstone("calibrate", "--labels", "labeled.jsonl", "-s", scorer, "-q", "--json", "--ledger", "j.db")
        listed = evalstone("judges", "lexical", "--json", "--ledger", "j.db").stdout.splitlines()
        assert [each for each in listed if json.loads(each)["scorer"] == scorer] == made.stdout.splitlines()
    assert [json.loads(each)["scorer"] for each in listed] == ["fact_check", "faithfulness"]
    assert evalstone("judges", "--json", "--ledger", "j.db").stdout.splitlines() == listed
    of_others = evalstone("judges", "openai/gpt-5.1", "--json", "--ledger", "j.db")
    assert (of_others.returncode, of_others.stdout) == (0, "")


def test_the_page_on_reports_names_what_the_csv_of_each_command_has() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reports.md").read_text(encoding="utf-8")
    rows = [
        line.split("|")[1]
        for line in page.partition("## Formats")[2].partition("## Contents")[0].splitlines()
        if "|" in line
    ]
    named = [name for row in rows for name in re.findall("`(.*?)`", row)]
    assert sorted(named) == sorted([*commands().keys() - WITHOUT_RESULT.keys(), "run", "report --sample"])


def test_the_json_of_a_dry_run_has_what_it_would_cost(folder: Path, evalstone: Evalstone) -> None:
    (row,) = [json.loads(line) for line in evalstone(*CALLS["dry run"].split(), "--json").stdout.splitlines()]
    assert {scorer["name"]: scorer["asked"] for scorer in row["scorers"]} == {"faithfulness": 0, "toxicity": 2}
    assert (row["samples"], row["trials"], row["target"], row["calls"]) == (60, 1, None, 2)
    assert row["cost"] == sum(judge["cost"] for judge in row["judges"]) > 0
    cells = json.loads(evalstone(*CALLS["dry run of an experiment"].split(), "--json").stdout)["runs"]
    assert {name: cell["samples"] for name, cell in cells.items()} == {"outputs": 60, "more": 1}
    compared = json.loads(evalstone(*CALLS["dry run of a calibration"].split(), "--json").stdout)
    assert [judge["judge"] for judge in compared["judges"]] == ["openai/gpt-5.1", "openai/gpt-5-mini"]
    assert compared["cost"] == pytest.approx(sum(judge["cost"] for judge in compared["judges"]))
    assert compared["calls"] == sum(scorer["asked"] for scorer in compared["scorers"]) > 0
    audited = json.loads(evalstone(*CALLS["dry run of an audit"].split(), "--json").stdout)
    assert (audited["samples"], audited["versions"], audited["calls"] > 0, audited["cost"] > 0) == (4, 4, True, True)
