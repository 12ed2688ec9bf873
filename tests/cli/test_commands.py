"""The command line as a user meets it: what it prints, what it writes, how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evalstone.types import Record
from tests.serving import Response, Server, completion, obliging, serving

COLUMNS = [
    "format",
    "sample",
    "scorer",
    "outcome",
    "value",
    "scale",
    "reason",
    "evidence",
    "steps",
    "seconds",
    "cost",
    "error",
]
ROWS = [
    {"id": "one", "question": "Where is Paris?", "answer": "Paris is in France.", "contexts": ["Paris is in France."]},
    {"id": "two", "question": "Where is Rome?", "answer": "Rome is on Mars.", "contexts": ["Rome is a city in Italy."]},
]


def evalstone(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder, with no keys of the machine's own."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "ANTHROPIC_"))}
    return subprocess.run(
        [sys.executable, "-m", "evalstone", *arguments],
        cwd=folder,
        env={**clean, **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def at(server: Server) -> dict[str, str]:
    return {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "data.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return file


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]


def test_a_run_shows_a_table_and_writes_records_and_summary(tmp_path: Path, data: Path) -> None:
    done = evalstone(tmp_path, "run", str(data), "--scorer", "faithfulness", "-s", "context_relevance", "--out", "res")
    assert done.returncode == 0, done.stderr
    for told in (
        "faithfulness",
        "95 % interval",
        "scored",
        "skipped",
        "failed",
        "lexical@3",
        "Rome is on Mars",
        "Next:",
    ):
        assert told in done.stdout
    rows = records(tmp_path / "res")
    assert [(row["sample"], row["outcome"]) for row in rows] == [("one", "score")] * 2 + [("two", "score")] * 2
    assert list(rows[0]) == COLUMNS
    assert Record.from_dict(rows[0]).value == 1.0
    summary = json.loads((tmp_path / "res" / "summary.json").read_text())
    assert [line["scored"] for line in summary["scorers"]] == [2, 2]
    assert summary["judge"]["identity"] == "lexical@3"


def test_a_run_can_be_shown_again_from_its_folder_and_from_the_ledger(tmp_path: Path, data: Path) -> None:
    done = evalstone(tmp_path, "run", str(data), "-s", "faithfulness", "--out", "res")
    table = [line for line in done.stdout.splitlines() if line.startswith("faithfulness")]
    for name in ("res", "last"):
        again = evalstone(tmp_path, "report", name)
        assert again.returncode == 0, again.stderr
        assert table[0] in again.stdout.splitlines()


def test_a_model_judge_gives_the_right_scores_and_survives_trouble(tmp_path: Path, data: Path) -> None:
    def troubled(request: dict[str, Any], number: int) -> Any:
        if number % 5 == 1:
            return Response(429, {"error": {"message": "slow down"}}, {"Retry-After": "0.01"})
        return completion('{"cut') if number % 5 == 3 else obliging(request, number)

    with serving(troubled) as server:
        scorers = ("-s", "faithfulness", "-s", "hallucination", "-s", "context_precision", "-s", "answer_relevancy")
        done = evalstone(
            tmp_path, "run", str(data), *scorers, "--judge", "openai/gpt-5.1", "--out", "res", env=at(server)
        )
    assert done.returncode == 0, done.stderr + done.stdout
    values = {(row["sample"], row["scorer"].partition("(")[0]): row["value"] for row in records(tmp_path / "res")}
    assert values == {
        (sample, scorer): value
        for sample in ("one", "two")
        for scorer, value in (
            ("faithfulness", 1.0), ("hallucination", 0.0), ("context_precision", 1.0), ("answer_relevancy", 1.0),
        )
    }  # fmt: skip


def test_failed_outcomes_end_with_exit_code_3_and_keep_the_raw_reply(tmp_path: Path, data: Path) -> None:
    with serving(lambda _request, _number: completion("I cannot say")) as server:
        done = evalstone(
            tmp_path, "run", str(data), "-s", "faithfulness", "-j", "openai/x", "--out", "res", env=at(server)
        )
    assert done.returncode == 3
    row = records(tmp_path / "res")[0]
    assert (row["outcome"], row["error"]["reply"]) == ("failed", "I cannot say")
    assert "2 failed" in done.stdout


def test_a_minimum_that_is_not_met_ends_with_exit_code_1(tmp_path: Path, data: Path) -> None:
    assert evalstone(tmp_path, "run", str(data), "-s", "faithfulness", "--min", "faithfulness=0.9").returncode == 1
    assert evalstone(tmp_path, "run", str(data), "-s", "faithfulness", "--min", "faithfulness=0.4").returncode == 0
    assert evalstone(tmp_path, "run", str(data), "-s", "hallucination", "--min", "hallucination=0.6").returncode == 0


def test_a_dry_run_asks_nothing_and_tells_calls_tokens_and_cost(tmp_path: Path, data: Path) -> None:
    with serving() as server:
        done = evalstone(
            tmp_path, "run", str(data), "-s", "faithfulness", "-j", "openai/gpt-5.1", "--dry-run", env=at(server)
        )
        assert server.requests == []
        assert done.returncode == 0, done.stderr
        assert "4 calls" in done.stdout
        assert "$" in done.stdout
        evalstone(tmp_path, "run", str(data), "-s", "faithfulness", "-j", "openai/gpt-5.1", env=at(server))
        again = evalstone(
            tmp_path, "run", str(data), "-s", "faithfulness", "-j", "openai/gpt-5.1", "--dry-run", env=at(server)
        )
        assert "0 calls" in again.stdout


def test_a_toml_file_holds_what_does_not_fit_a_line(tmp_path: Path, data: Path) -> None:
    (tmp_path / "eval.toml").write_text(
        """
        data = "data.jsonl"
        scorers = ["faithfulness", { name = "context_relevance", scale = 10, penalties = { unused = 0.2 } }]
        out = "res"
        ledger = "runs.db"

        [judge]
        model = "lexical"

        [min]
        faithfulness = 0.1
        """
    )
    done = evalstone(tmp_path / "..", "run", str(tmp_path / "eval.toml"))
    assert done.returncode == 0, done.stderr
    assert {row["scale"] for row in records(tmp_path / "res")} == {1, 10}
    assert (tmp_path / "runs.db").exists()


def test_columns_of_other_names_are_mapped(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text('q,said,docs\nWhere?,"Rome is in Italy.","Rome is in Italy."\n')
    done = evalstone(
        tmp_path, "run", "d.csv", "-s", "faithfulness", "--map", "output=said", "--map", "context=docs", "--out", "res"
    )
    assert done.returncode == 0, done.stderr
    assert records(tmp_path / "res")[0]["value"] == 1.0


def test_one_sample_is_scored_and_can_be_printed_as_json(tmp_path: Path) -> None:
    sample = ("--output", "Paris is in France.", "--context", "Paris is in France.", "--context", "Rome is in Italy.")
    done = evalstone(tmp_path, "score", "--scorer", "faithfulness", *sample)
    assert done.returncode == 0
    assert "faithfulness 1 of 1" in done.stdout
    as_json = evalstone(tmp_path, "score", "--scorer", "faithfulness", *sample, "--json")
    assert json.loads(as_json.stdout)["value"] == 1.0
    skipped = evalstone(tmp_path, "score", "--scorer", "faithfulness", "--output", "x")
    assert "skipped" in skipped.stdout
    assert "faithfulness needs context" in skipped.stdout


def test_scorers_are_listed_and_explained(tmp_path: Path) -> None:
    listed = evalstone(tmp_path, "scorers")
    assert "context_precision" in listed.stdout
    assert "judge calls" in listed.stdout
    explained = evalstone(tmp_path, "scorers", "faithfulness").stdout
    for told in ("supported claims / claims", "needs", "output, context", "How to read it", "About a low one"):
        assert told in explained


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "data.jsonl", "-s", "fathfulness"], "did you mean faithfulness"),
        (["run", "data.jsonl", "-s", "faithfulness", "-j", "lexcal"], "did you mean lexical?"),
        (["run", "data.jsonl", "-s", "faithfulness", "-j", "opnai/gpt"], "did you mean openai"),
        (["run", "data.jsonl", "-s", "faithfulness", "-j", "openai/gpt-5.1"], "OPENAI_API_KEY"),
        (["run", "daat.jsonl", "-s", "faithfulness"], "data.jsonl"),
        (["run", "data.jsonl", "-s", "faithfulness", "--map", "outptu=answer"], "output"),
        (["run", "data.jsonl", "-s", "faithfulness", "--map", "output"], "FIELD=COLUMN"),
        (["run", "data.jsonl", "-s", "faithfulness", "--min", "faithfulness=high"], "takes a number"),
        (["run", "data.jsonl", "-s", "faithfulness", "--min", "fluency=1"], "fluency"),
        (["run", "data.jsonl", "-s", "context_recall"], "reference is absent"),
        (["run", "empty.jsonl", "-s", "faithfulness"], "no samples"),
        (["run", "broken.jsonl", "-s", "faithfulness"], "line 2"),
        (["run", "data.jsonl", "-s", "faithfulness", "--out", "data.jsonl/x"], "cannot be written"),
        (["run", "data.jsonl", "-s", "faithfulness", "--ledger", "mysql://x/y"], "sqlite:///"),
        (["run", "wrong.toml"], "did you mean scorers"),
        (["run", "broken.toml"], "line 1"),
        (["report", "nowhere"], "nowhere"),
        (["scorers", "hallucinations"], "did you mean hallucination"),
        (["run", "data.jsonl", "--scorrer", "x"], "--scorer"),
    ],
)
def test_a_wrong_call_ends_with_exit_code_2_and_says_what_to_mend(
    tmp_path: Path, data: Path, arguments: list[str], told: str
) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "broken.jsonl").write_text(json.dumps(ROWS[0]) + '\n{"answer": \n')
    (tmp_path / "wrong.toml").write_text('data = "data.jsonl"\nscorrers = []\n')
    (tmp_path / "broken.toml").write_text("data = \n")
    done = evalstone(tmp_path, *arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_the_demo_needs_no_key_and_shows_real_answers(tmp_path: Path) -> None:
    done = evalstone(tmp_path, "demo")
    assert done.returncode == 0, done.stderr
    assert "60 samples" in done.stdout
    assert "Worst samples" in done.stdout
    assert len(records(tmp_path / "results" / "demo")) == 60 * 5


def test_version_and_help(tmp_path: Path) -> None:
    assert evalstone(tmp_path, "--version").stdout.strip() == "0.1.0"
    assert "demo" in evalstone(tmp_path, "--help").stdout
