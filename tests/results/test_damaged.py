"""Results that another program wrote, or damaged: they are read as they are, or refused with file, line and field."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalstone import Cascade, Panel, Run, Sample, ScriptedJudge, evaluate, read_run
from evalstone.errors import ConfigError, LedgerError
from evalstone.ledger.store import Ledger
from evalstone.report.html import page
from evalstone.report.markdown import lines
from evalstone.results.files import write_run
from evalstone.results.views.run import run_view
from tests.fakes import claims, verdicts

ODD: tuple[Any, ...] = (None, -1, 1e308, float("nan"), 10**400, True, "x", [[]], {"a": 1})


def made(ledger: Path | None = None) -> Run:
    judge = ScriptedJudge({"list_claims": claims("Oslo is big."), "verify_claims": verdicts("supported")}, name="j")
    samples = [Sample(id=str(n), output="Oslo is big.", context=["Oslo is big."]) for n in range(2)]
    samples.append(Sample(id="none", output=""))
    return evaluate(samples, ["faithfulness"], judge=judge, ledger=ledger)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values within a value of JSON."""
    if path:
        yield path
    items: Any = value
    inner = items.items() if isinstance(value, dict) else enumerate(items) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    value = copy.deepcopy(value)
    at = value
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = odd
    return value


def shown(folder: Path) -> None:
    """Read and show a run, or refuse it with a text that names the file."""
    refusal = ""
    try:
        run = read_run(folder)
        view = run_view(run)
        assert str(run)
        assert list(lines(view))
        assert "".join(page(view))
    except ConfigError as error:
        refusal = str(error)
    assert not refusal or (folder.name in refusal and len(refusal) < 500)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["summary.json", "records.jsonl"])
def test_a_value_of_any_other_kind_is_refused_or_shown(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "results"
    write_run(made(), folder)
    text = (folder / name).read_text()
    first, _, rest = text.partition("\n")
    data = json.loads(first)
    for path in places(data):
        for odd in ODD:
            (folder / name).write_text(json.dumps(replaced(data, path, odd)) + "\n" + rest)
            shown(folder)


def composite() -> Run:
    def saying(name: str, *words: str) -> ScriptedJudge:
        return ScriptedJudge({"list_claims": claims("x"), "verify_claims": verdicts(*words)}, name=name)

    panel = Panel(saying("a", "supported"), saying("b", "contradicted"))
    sample = {"output": "x", "context": ["p"]}
    return evaluate([sample], ["faithfulness"], judge=Cascade(panel, saying("dear", "supported")), ledger=None)


def test_statistics_of_judges_of_any_other_kind_are_refused_or_shown(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    write_run(composite(), folder)
    data = json.loads((folder / "summary.json").read_text())
    for path in places(data["judge_stats"]):
        for odd in ODD:
            damaged = {**data, "judge_stats": replaced(data["judge_stats"], path, odd)}
            (folder / "summary.json").write_text(json.dumps(damaged))
            shown(folder)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("questions", "two", r"judge_stats\.j\.questions must be a whole number, not 'two'"),
        ("no_answer", {"a": 0.5}, r"judge_stats\.j\.no_answer\.a must be a whole number, not 0\.5"),
        ("agreement", None, r"judge_stats\.j\.agreement and agreement_interval are required with verdicts"),
    ],
)
def test_a_damaged_statistic_of_a_judge_is_named(tmp_path: Path, name: str, value: object, problem: str) -> None:
    folder = tmp_path / "results"
    write_run(made(), folder)
    data = json.loads((folder / "summary.json").read_text())
    stats = {"kind": "panel", "questions": 1, "verdicts": 1, "agreement": 1.0, "agreement_interval": [0.5, 1.0]}
    data["judge_stats"] = {"j": {**stats, "no_answer": {}, name: value}}
    (folder / "summary.json").write_text(json.dumps(data))
    with pytest.raises(ConfigError, match=problem):
        read_run(folder)


@pytest.mark.parametrize("name", ["summary.json", "records.jsonl", "samples.jsonl"])
@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "9" * 5000, "null", "\x00", "\ufeff", "NaN", ""])
def test_a_text_that_is_no_row_is_refused(tmp_path: Path, name: str, text: str) -> None:
    folder = tmp_path / "results"
    write_run(made(), folder)
    (folder / name).write_text(text + "\n")
    shown(folder)


@pytest.mark.parametrize(
    "body", ["{", "[" * 100_000, "7", '"x"', "true", '{"format": 1}', '{"format": 7}', b"\xff\xfe"]
)
@pytest.mark.parametrize(("table", "column"), [("runs", "metadata"), ("records", "body"), ("blocks", "body")])
def test_a_damaged_row_of_a_ledger_is_named(tmp_path: Path, table: str, column: str, body: str | bytes) -> None:
    made(tmp_path / "ledger.db")
    with Ledger(tmp_path / "ledger.db") as ledger, ledger.transaction(writing=True) as connection:
        connection.execute(f"UPDATE {table} SET {column} = :body", {"body": body})
    with pytest.raises((LedgerError, ConfigError), match=r"ledger|written by|cannot be read|sample"):
        list(read_run("last", ledger=tmp_path / "ledger.db").samples or ())
