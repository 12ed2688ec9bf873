"""The command line as a user meets it: what it prints, what it writes, how it ends."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalstone.cli.config_file import RunConfig
from evalstone.cli.options import declared
from evalstone.datasets.demo import DEMO_DATA
from evalstone.results.endings import BUDGET
from evalstone.results.files import read_run, write_run
from evalstone.types import Record
from tests.cli.conftest import Evalstone
from tests.serving import Response, Server, completion, obliging, serving

COLUMNS = [
    "format",
    "sample_id",
    "scorer",
    "signature",
    "outcome",
    "value",
    "scale",
    "reason",
    "evidence",
    "calls",
    "seconds",
    "cost",
    "error",
]
ROWS = [
    {"id": "one", "question": "Where is Paris?", "answer": "Paris is in France.", "contexts": ["Paris is in France."]},
    {"id": "two", "question": "Where is Rome?", "answer": "Rome is on Mars.", "contexts": ["Rome is a city in Italy."]},
]


def at(server: Server) -> dict[str, str]:
    return {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "data.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return file


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]


def test_a_run_shows_a_table_and_writes_records_and_summary(tmp_path: Path, data: Path, evalstone: Evalstone) -> None:
    done = evalstone("run", str(data), "--scorer", "faithfulness", "-s", "context_relevance", "--out", "res")
    assert done.returncode == 0, done.stderr
    for told in (
        "faithfulness",
        "scores",
        "skipped",
        "failed",
        "lexical@7",
        "Rome is on Mars",
        "Next:",
        "# all samples, in a browser",
    ):
        assert told in done.stdout
    rows = records(tmp_path / "res")
    assert [(row["sample_id"], row["outcome"]) for row in rows] == [("one", "score")] * 2 + [("two", "score")] * 2
    assert list(rows[0]) == COLUMNS
    assert Record.from_dict(rows[0]).value == 1.0
    summary = json.loads((tmp_path / "res" / "summary.json").read_text())
    assert [line["n_score"] for line in summary["scorers"]] == [2, 2]
    assert summary["judge"]["identity"] == "lexical@7"


def test_a_run_can_be_shown_again_from_its_folder_and_from_the_ledger(
    tmp_path: Path, data: Path, evalstone: Evalstone
) -> None:
    done = evalstone("run", str(data), "-s", "faithfulness", "--out", "res")
    table = [line for line in done.stdout.splitlines() if line.startswith("faithfulness")]
    for name in ("res", "last"):
        again = evalstone("report", name)
        assert again.returncode == 0, again.stderr
        assert table[0] in again.stdout.splitlines()


def test_a_model_judge_gives_the_right_scores_and_survives_trouble(
    tmp_path: Path, data: Path, evalstone: Evalstone
) -> None:
    def troubled(request: dict[str, Any], number: int) -> Any:
        if number % 5 == 1:
            return Response(429, {"error": {"message": "slow down"}}, {"Retry-After": "0.01"})
        return completion('{"cut') if number % 5 == 3 else obliging(request, number)

    with serving(troubled) as server:
        scorers = ("-s", "faithfulness", "-s", "hallucination", "-s", "context_precision", "-s", "answer_relevancy")
        done = evalstone("run", str(data), *scorers, "--judge", "openai/gpt-5.1", "--out", "res", env=at(server))
    assert done.returncode == 0, done.stderr + done.stdout
    values = {(row["sample_id"], row["scorer"].partition("(")[0]): row["value"] for row in records(tmp_path / "res")}
    assert values == {
        (sample, scorer): value
        for sample in ("one", "two")
        for scorer, value in (
            ("faithfulness", 1.0), ("hallucination", 0.0), ("context_precision", 1.0), ("answer_relevancy", 1.0),
        )
    }  # fmt: skip


def test_failed_outcomes_end_with_exit_code_3_and_keep_the_raw_reply(
    tmp_path: Path, data: Path, evalstone: Evalstone
) -> None:
    with serving(lambda _request, _number: completion("I cannot say")) as server:
        done = evalstone("run", str(data), "-s", "faithfulness", "-j", "openai/x", "--out", "res", env=at(server))
    assert done.returncode == 3
    row = records(tmp_path / "res")[0]
    assert (row["outcome"], row["error"]["reply"]) == ("failed", "I cannot say")
    assert "2 results failed" in done.stdout


def test_a_minimum_that_is_not_met_ends_with_exit_code_1(tmp_path: Path, data: Path, evalstone: Evalstone) -> None:
    compared = ("run", str(data), "--alpha", "none", "-s")
    assert evalstone(*compared, "faithfulness", "--min", "faithfulness=0.9").returncode == 1
    assert evalstone(*compared, "faithfulness", "--min", "faithfulness=0.4").returncode == 0
    assert evalstone(*compared, "hallucination", "--max", "hallucination=0.6").returncode == 0


@pytest.mark.parametrize(("counted", "code"), [("report", 4), ("pass", 0), ("fail", 1)])
def test_samples_that_decide_nothing_end_with_exit_code_4_and_what_to_do(
    data: Path, evalstone: Evalstone, counted: str, code: int
) -> None:
    done = evalstone("run", str(data), "-s", "faithfulness", "--min", "faithfulness=0.4", "--inconclusive", counted)
    assert done.returncode == code
    for told in ("? inconclusive", "more samples", "(--look 2)", "--alpha none"):
        assert told in done.stdout
    assert (f"which counts as a {counted}" in done.stdout) == (counted != "report")
    assert "--labels corrects" not in done.stdout


def test_a_gate_on_the_folder_of_a_run_repeats_its_checks(tmp_path: Path, data: Path, evalstone: Evalstone) -> None:
    checks = ("--min", "faithfulness=0.4", "--alpha", "0.1")
    run = evalstone("run", str(data), "-s", "faithfulness", *checks, "--out", "r").stdout
    gate = evalstone("gate", "r", *checks).stdout
    (row,) = (line for line in gate.splitlines() if "at least 0.4" in line)
    assert row in run.splitlines()
    assert len((tmp_path / "r" / "gates.jsonl").read_text().splitlines()) == 1


def test_a_scorer_whose_best_score_is_required_ends_the_command_with_the_samples_that_lack_it(
    tmp_path: Path, data: Path, evalstone: Evalstone
) -> None:
    paris, both_say = "contains(expected=Paris)", "contains(expected=ar)"
    both = ("run", str(data), "-s", paris, "-s", both_say, "-q")
    assert evalstone(*both, "--require", both_say).returncode == 0
    done = evalstone(*both, "--require", both_say, "--require", paris)
    assert done.returncode == 1
    assert re.search(rf"{re.escape(paris)} +1 of 2 .* fail", done.stdout)
    assert re.search(rf"{re.escape(paris)} +two +0 ", done.stdout)
    (tmp_path / "eval.toml").write_text(f'data = "{data.name}"\nscorers = ["{paris}"]\nrequire = "contains"\n')
    assert evalstone("run", "eval.toml", "-q").returncode == 1
    gated = (*both, "--min", f"{both_say}=0.5", "--sequential", "--require")
    assert (evalstone(*gated, both_say).returncode, evalstone(*gated, paris).returncode) == (4, 1)
    assert evalstone(*both, "--require", "contans").returncode == 2
    (tmp_path / "blank.jsonl").write_text(json.dumps({"output": " ", "input": "x"}) + "\n")
    done = evalstone("run", "blank.jsonl", "-s", "textual_difference", "--require", "textual_difference", "-q")
    assert done.returncode == 3
    assert "no sample has a score" in done.stdout


def test_a_dry_run_asks_nothing_and_tells_calls_tokens_and_cost(
    tmp_path: Path, data: Path, evalstone: Evalstone
) -> None:
    with serving() as server:
        done = evalstone("run", str(data), "-s", "faithfulness", "-j", "openai/gpt-5.1", "--dry-run", env=at(server))
        assert server.requests == []
        assert done.returncode == 0, done.stderr
        assert "4 calls" in done.stdout
        assert "$" in done.stdout
        evalstone("run", str(data), "-s", "faithfulness", "-j", "openai/gpt-5.1", env=at(server))
        again = evalstone("run", str(data), "-s", "faithfulness", "-j", "openai/gpt-5.1", "--dry-run", env=at(server))
        assert "0 calls" in again.stdout


def test_a_dry_run_lists_what_each_judge_would_be_asked(data: Path, evalstone: Evalstone) -> None:
    scorers = ("-s", "faithfulness", "-s", "hallucination(judge='openai/gpt-5-nano')", "-s", "rouge_l")
    done = evalstone("run", str(data), *scorers, "-j", "openai/gpt-5.1", "--dry-run")
    assert done.returncode == 0, done.stderr
    (heading,) = (line for line in done.stdout.splitlines() if "dry run" in line)
    assert "openai/gpt-5.1, " in heading
    assert "openai/gpt-5-nano" in heading
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.startswith("openai/")}
    assert {judge: row[0] for judge, row in rows.items()} == {"openai/gpt-5.1": "4", "openai/gpt-5-nano": "4"}
    assert all(re.fullmatch(r"\$0\.\d+", row[3]) for row in rows.values())
    assert "8 calls" in done.stdout


def test_a_toml_file_holds_what_does_not_fit_a_line(tmp_path: Path, data: Path, evalstone: Evalstone) -> None:
    (tmp_path / "eval.toml").write_text(
        """
        data = "data.jsonl"
        scorers = ["faithfulness", { name = "context_relevance", scale = 10, penalties = { unused = 0.2 } }]
        out = "res"
        ledger = "runs.db"
        alpha = "none"

        [judge]
        model = "lexical"

        [min]
        faithfulness = 0.1
        """
    )
    done = evalstone("run", str(tmp_path / "eval.toml"))
    assert done.returncode == 0, done.stderr
    assert {row["scale"] for row in records(tmp_path / "res")} == {1, 10}
    assert (tmp_path / "runs.db").exists()


def test_columns_of_other_names_are_mapped(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / "d.csv").write_text('q,said,docs\nWhere?,"Rome is in Italy.","Rome is in Italy."\n')
    done = evalstone(
        "run", "d.csv", "-s", "faithfulness", "--map", "output=said", "--map", "context=docs", "--out", "res"
    )
    assert done.returncode == 0, done.stderr
    assert records(tmp_path / "res")[0]["value"] == 1.0


def test_one_sample_is_scored_and_can_be_printed_as_json(tmp_path: Path, evalstone: Evalstone) -> None:
    sample = ("--output", "Paris is in France.", "--context", "Paris is in France.", "--context", "Rome is in Italy.")
    done = evalstone("score", "--scorer", "faithfulness", *sample)
    assert done.returncode == 0
    assert done.stdout.startswith("faithfulness · 1 of 1\n")
    as_json = evalstone("score", "--scorer", "faithfulness", *sample, "--json")
    assert json.loads(as_json.stdout)["value"] == 1.0
    skipped = evalstone("score", "--scorer", "faithfulness", "--output", "x")
    assert "skipped" in skipped.stdout
    assert "faithfulness needs context" in skipped.stdout


def test_one_sample_is_scored_by_every_scorer_that_is_named(evalstone: Evalstone) -> None:
    words = (
        "score",
        "-s",
        "exact_match",
        "-s",
        "faithfulness",
        "-s",
        "contains",
        "--output",
        "Rome.",
        "--reference",
        "Rome.",
    )
    done = evalstone(*words)
    assert done.returncode == 0
    blocks = [block.splitlines() for block in done.stdout.split("\n\n")]
    assert [block[0] for block in blocks] == ["Scores", "exact_match", "faithfulness", "contains"]
    assert blocks[1][1] == blocks[3][1] == "1 of 1"
    assert blocks[2][1:] == ["skipped: faithfulness needs context (or tool results in messages)"]
    lines = [json.loads(line) for line in evalstone(*words, "--json").stdout.splitlines()]
    assert [(line["scorer"], line["value"]) for line in lines] == [
        ("exact_match", 1.0),
        ("faithfulness", None),
        ("contains", 1.0),
    ]
    assert len(evalstone(*words, "--csv", "-").stdout.splitlines()) == 4
    failing = ("-s", "sample_checks", "-s", "regex(pattern='x')")
    assert evalstone("score", *failing, "--output", "x").returncode == 0
    thinking = evalstone(
        "score", "-s", "contains(expected=x)", "-s", "json_valid", "--output", "<think>x</think>y"
    ).stdout
    assert thinking.count("model's reasoning") == 1


def test_scorers_are_listed_and_explained(tmp_path: Path, evalstone: Evalstone) -> None:
    listed = evalstone("scorers")
    assert "context_precision" in listed.stdout
    assert "judge calls" in listed.stdout
    explained = evalstone("scorers", "faithfulness").stdout
    for told in (
        "supported claims / claims",
        "Needs  ",
        "output, context",
        "Interpretation",
        "If the score is low",
    ):
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
        (["run", "data.jsonl", "-s", "faithfulness", "--out", "x" * 300], "cannot be written"),
        (["run", "data.jsonl", "-s", "faithfulness", "--ledger", "mysql://x/y"], "sqlite:///"),
        (["run", "wrong.toml"], "did you mean scorers"),
        (["run", "broken.toml"], "line 1"),
        (["report", "nowhere"], "nowhere"),
        (["scorers", "hallucinations"], "did you mean hallucination"),
        (["run", "data.jsonl", "--scorrer", "x"], "unknown option --scorrer; did you mean --scorer?"),
        (["run", "data.jsonl", "--judg", "x"], "unknown option --judg; did you mean --judge?"),
        (["run", "data.jsonl", "--max_change", "x"], "unknown option --max_change; did you mean --max-change"),
        (["run", "--data", "data.jsonl"], "unknown option --data; give DATA without an option"),
        (["run", "data.jsonl", "--threshold", "1"], "unknown option --threshold; did you mean --min or --max?"),
        (["run", "data.jsonl", "--metric", "x"], "unknown option --metric; did you mean --scorer?"),
        (
            ["run", "data.jsonl", "--slice-by", "x"],
            "unknown option --slice-by; it is an option of evalstone report, evalstone compare, evalstone calibrate",
        ),
        (["run", "data.jsonl", "--zzz", "x"], "unknown option --zzz; see evalstone run --help"),
        (["evaluate", "data.jsonl"], "unknown command 'evaluate'; did you mean run?"),
        (["ledger", "evaluate"], "unknown command 'evaluate'; known: export"),
        (["calibrat"], "unknown command 'calibrat'; did you mean calibrate?"),
        (["ledger", "inf"], "unknown command 'inf'; did you mean info?"),
        (["zzz"], "unknown command 'zzz'; known: align, annotate, audit"),
        (
            ["run", "data.jsonl", "-s", "faithfulness", "--sequential"],
            "requires --min, --max or --max-regression",
        ),
        (
            ["run", "data.jsonl", "--min", "rouge_l=0.5", "--min", "rouge_l=0.9"],
            "rouge_l twice: 0.5 and 0.9",
        ),
        (
            ["run", "data.jsonl", "--min", "faithfulness=0.9", "--min", "faithfulness(scale=1)=0.1"],
            "--min names faithfulness twice: as faithfulness and as faithfulness(scale=1)",
        ),
        (
            [
                "run",
                "data.jsonl",
                "--min",
                "context_relevance=1",
                "--min",
                "context-relevance=0.1",
                "--sequential",
            ],
            "--min names context_relevance twice",
        ),
        (["run", "data.jsonl", "-s", "faithfulness", "--sequential", "--min", "faithfulness=1"], "evalstone gate"),
        (["run", "data.jsonl", "--ledger", ""], "the ledger's name is empty"),
        (["run", "missing.toml"], "can't read missing.toml"),
        (["run", "data.jsonl", "--concurrency", "0"], "--concurrency"),
        (["run", "data.jsonl", "--wait"], "--wait requires --batch"),
        (["scorers", "--from", "regas"], "did you mean ragas"),
        (["runs", "nowhere"], "there is no folder 'nowhere'"),
    ],
)
def test_a_wrong_call_ends_with_exit_code_2_and_says_what_to_mend(
    tmp_path: Path, data: Path, arguments: list[str], told: str, evalstone: Evalstone
) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "broken.jsonl").write_text(json.dumps(ROWS[0]) + '\n{"answer": \n')
    (tmp_path / "wrong.toml").write_text('data = "data.jsonl"\nscorrers = []\n')
    (tmp_path / "broken.toml").write_text("data = \n")
    done = evalstone(*arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--json", "--html", "-"], "only one of --html and --json"),
        (["--html", "-", "--markdown", "-"], "only one of --html and --markdown"),
        (["--html", "nodir/a.html"], "cannot write 'nodir/a.html'"),
        (["--markdown", "."], "cannot write '.'"),
    ],
)
def test_output_that_cannot_be_written_is_refused_before_a_judge_is_asked(
    tmp_path: Path, data: Path, options: list[str], told: str, evalstone: Evalstone
) -> None:
    labels = tmp_path / "labels.jsonl"
    labels.write_text("".join(json.dumps({**row, "label": number % 2}) + "\n" for number, row in enumerate(ROWS)))
    with serving() as server:
        for command in (["run", "data.jsonl"], ["audit", "data.jsonl"], ["calibrate", "--labels", "labels.jsonl"]):
            done = evalstone(*command, "-s", "faithfulness", "-j", "openai/test", *options, env=at(server))
            assert (done.returncode, told in done.stderr) == (2, True), (command, done)
        for option in ("--out", "--svg"):
            done = evalstone(*command, "-j", "openai/test", option, "nodir/x", env=at(server))
            assert (done.returncode, "cannot write 'nodir/x'" in done.stderr) == (2, True), done
        assert not server.requests
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".") and file.suffix == ".tmp"]


def test_a_dry_run_shows_a_small_budget_as_it_is(data: Path, evalstone: Evalstone) -> None:
    done = evalstone("run", "data.jsonl", "-j", "openai/gpt-5.1", "--dry-run", "--budget", "0.0000001")
    assert "budget of $1e-07" in done.stdout


def test_an_empty_ledger_in_a_file_is_said_to_be_empty(tmp_path: Path, data: Path, evalstone: Evalstone) -> None:
    (tmp_path / "eval.toml").write_text('data = "data.jsonl"\nledger = ""\n')
    done = evalstone("run", "eval.toml")
    assert (done.returncode, "name is empty" in done.stderr) == (2, True), done


def test_a_run_with_a_long_name_is_found_by_it(data: Path, evalstone: Evalstone) -> None:
    assert evalstone("run", "data.jsonl", "-s", "faithfulness", "--name", "n" * 300).returncode == 0
    assert evalstone("report", "n" * 300).returncode == 0


@pytest.mark.slow
def test_the_demo_needs_no_key_and_shows_real_answers(tmp_path: Path, evalstone: Evalstone) -> None:
    done = evalstone("demo")
    assert done.returncode == 0, done.stderr
    assert "60 samples" in done.stdout
    assert "Worst samples" in done.stdout
    assert "results/demo --html " in done.stdout
    assert len(records(tmp_path / "results" / "demo")) == 60 * 5


@pytest.mark.slow
def test_the_demo_shows_the_labels_of_its_data_next_to_the_verdicts(tmp_path: Path, evalstone: Evalstone) -> None:
    done = evalstone("demo")
    assert "36 grounded, 24 not; " in done.stdout
    assert "faithfulness, hallucination: AUROC 0." in done.stdout
    labels = {row["id"]: row["metadata"]["label"] for row in map(json.loads, DEMO_DATA.read_text("utf-8").splitlines())}
    worst = done.stdout.partition("Worst samples\n")[2].partition("\n\njudge calls: 240 asked")[0].split("\n\n")
    assert len(worst) == 3
    for sample in worst:
        shown = re.search(r"^  label +(\w+)$", sample, re.MULTILINE)
        assert shown is not None
        assert shown[1] == labels[sample.splitlines()[0]]


def test_version_and_help(evalstone: Evalstone) -> None:
    assert evalstone("--version").stdout.strip() == "0.1.0"
    assert "demo" in evalstone("--help").stdout
    options = evalstone("run", "--help").stdout
    assert options.index("Thresholds:") < options.index("--min") < options.index("Output:")
    bare = evalstone()
    assert (bare.returncode, bare.stdout) == (2, "")
    assert "Commands:" in bare.stderr


def test_a_threshold_in_the_wrong_direction_is_refused(data: Path, evalstone: Evalstone) -> None:
    under = evalstone("run", str(data), "-s", "hallucination", "--min", "hallucination=0.5")
    assert (under.returncode, under.stdout) == (2, "")
    assert "--max hallucination=0.5" in under.stderr
    over = evalstone("run", str(data), "-s", "faithfulness", "--max", "faithfulness=0.5")
    assert "; use --min" in over.stderr


def test_a_missed_threshold_is_named_with_its_mean(data: Path, evalstone: Evalstone) -> None:
    done = evalstone("run", str(data), "-s", "faithfulness", "-s", "hallucination", "--min", "faithfulness=0.9",
                     "--max", "hallucination=0.4", "--alpha", "none")  # fmt: skip
    assert done.returncode == 1
    rows = [re.split(r" {2,}", line.strip()) for line in done.stdout.splitlines() if "✕ fail" in line]
    assert rows[:2] == [
        ["faithfulness", "0.500", "at least 0.9", "2", "✕ fail"],
        ["hallucination", "0.500", "at most 0.4", "2", "✕ fail"],
    ]


@pytest.mark.parametrize(("bound", "code"), [("0.5", 0), ("0.5000000001", 0), ("0.5000001", 1)])
def test_a_mean_at_the_threshold_meets_it(data: Path, evalstone: Evalstone, bound: str, code: int) -> None:
    assert (
        evalstone(
            "run", str(data), "-s", "faithfulness", "--alpha", "none", "--min", f"faithfulness={bound}"
        ).returncode
        == code
    )


def test_each_of_two_scorers_of_one_name_has_its_own_threshold_and_title(data: Path, evalstone: Evalstone) -> None:
    scorers = ["-s", "contains(expected=e)", "-s", "contains(expected=zzz)"]
    for name, code in (("contains(expected=e)", 0), ("contains(expected=zzz)", 1), ("contains", 2)):
        assert evalstone("run", str(data), *scorers, "--alpha", "none", "--min", f"{name}=0.5").returncode == code
    listed = evalstone("runs", "--json").stdout
    assert {one["signature"] for one in json.loads(listed.splitlines()[0])["scorers"]} == {
        f"{name}@1" for name in scorers[1::2]
    }
    assert f"{scorers[1]} 1.000, {scorers[3]} 0.000" in " ".join(evalstone("runs").stdout.split())


@pytest.mark.parametrize(("bound", "code"), [("0.5", 0), ("0.4999999999", 0), ("0.4999999", 1), ("1", 0), ("0", 1)])
def test_a_mean_at_the_upper_threshold_meets_it(data: Path, evalstone: Evalstone, bound: str, code: int) -> None:
    done = evalstone("run", str(data), "-s", "hallucination", "--alpha", "none", "--max", f"hallucination={bound}")
    assert done.returncode == code


def test_two_scorers_of_one_name_are_told_apart_by_their_parameters(data: Path, evalstone: Evalstone) -> None:
    both = (
        "run",
        str(data),
        "-s",
        "rouge_l",
        "-s",
        "rouge_l(scale=10)",
        "--map",
        "reference=question",
        "--alpha",
        "none",
    )
    plain = evalstone(*both, "--min", "rouge_l=0.99")
    assert (plain.returncode, re.search(r"^rouge_l +0\..* fail", plain.stdout, re.M) is not None) == (1, True)
    unknown = evalstone(*both, "--min", "rouge-l(scale=2)=0.1")
    assert (unknown.returncode, "rouge_l(scale=10)?" in unknown.stderr) == (2, True)
    assert evalstone(*both, "--min", "rouge_l(scale=10)=0.1").returncode == 0
    missed = evalstone(*both, "--min", "rouge_l(scale=10)=9.9")
    assert missed.returncode == 1
    assert re.search(r"^rouge_l\(scale=10\) .* fail", missed.stdout, re.M)


def test_a_threshold_names_a_scorer_however_its_parameters_are_written(data: Path, evalstone: Evalstone) -> None:
    both = ("run", str(data), "-s", 'contains(expected="a=b)")', "-s", "contains(expected=':-(')", "--alpha", "none",
            "--min")  # fmt: skip
    missed = evalstone(*both, "contains(expected='a=b)')=0.9")
    assert missed.returncode == 1
    assert re.search(r"^contains\(expected=a=b\)\) .* fail", missed.stdout, re.M)
    assert evalstone(*both, 'contains( expected=":-(" )=0').returncode == 0
    told = {"contains=1": "contains is ambiguous; name one of contains(expected=a=b)), contains(expected=:-()",
            "contains(expected='x')=1": "unknown scorer \"contains(expected='x')\"",
            "contains(expected=1": "unknown scorer 'contains(expected'",
            "contains(expected=1)": "takes SCORER=NUMBER"}  # fmt: skip
    for text, message in told.items():
        refused = evalstone(*both, text)
        assert (refused.returncode, refused.stderr.startswith("evalstone: --min")) == (2, True)
        assert message in refused.stderr


def test_limit_scores_the_first_samples(tmp_path: Path, data: Path, evalstone: Evalstone) -> None:
    assert evalstone("run", str(data), "-s", "faithfulness", "--limit", "1", "--out", "res").returncode == 0
    assert [row["sample_id"] for row in records(tmp_path / "res")] == ["one"]
    assert evalstone("run", str(data), "-s", "faithfulness", "--limit", "0").returncode == 2


def test_json_and_html_are_written_without_anything_else_on_stdout(
    tmp_path: Path, data: Path, evalstone: Evalstone
) -> None:
    done = evalstone("run", str(data), "-s", "faithfulness", "--json", "--html", "r.html")
    assert json.loads(done.stdout)["scorers"][0]["mean"] == 0.5
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")


def test_verbose_prints_each_score_on_stderr(data: Path, evalstone: Evalstone) -> None:
    lines = evalstone("run", str(data), "-s", "faithfulness", "-s", "context_recall", "-v").stderr.splitlines()
    assert len(lines) == 4
    assert any(re.match(r"one: faithfulness 1 \(\d", line) for line in lines)
    assert any(line.startswith("two: ") and "context_recall skipped: " in line for line in lines)


def test_a_run_has_a_name_and_tags_and_is_found_by_them(tmp_path: Path, data: Path, evalstone: Evalstone) -> None:
    evalstone("run", str(data), "-s", "faithfulness", "--name", "baseline", "--tag", "ci", "--tag", "v2", "--out", "a")
    evalstone("run", str(data), "-s", "hallucination")
    summary = json.loads((tmp_path / "a" / "summary.json").read_text())
    assert (summary["name"], summary["tags"]) == ("baseline", ["ci", "v2"])
    assert read_run(tmp_path / "a").tags == ("ci", "v2")
    listed = evalstone("runs")
    assert listed.stdout.splitlines()[1].startswith("run ")
    (line,) = [line for line in listed.stdout.splitlines() if "baseline" in line]
    for told in (summary["id"], "ci, v2", "data.jsonl (2)", "lexical@7", "faithfulness 0.500"):
        assert told in line
    tagged = [*map(json.loads, evalstone("runs", "--tag", "ci", "--json").stdout.splitlines())]
    assert [row["name"] for row in tagged] == ["baseline"]
    in_folder = [*map(json.loads, evalstone("runs", ".", "--ledger", "none.db", "--json").stdout.splitlines())]
    assert [row["folder"] for row in in_folder] == ["a"]
    assert evalstone("report", "baseline", "--json").stdout == evalstone("report", "a", "--json").stdout
    assert len(evalstone("runs", "--limit", "1", "--json").stdout.splitlines()) == 1
    assert "No runs found" in evalstone("runs", "--ledger", "none.db").stdout


@pytest.mark.parametrize(
    ("bar", "code", "verdict"), [("0.3", 0, "pass"), ("0.99", 1, "fail"), ("0.5", 4, "inconclusive")]
)
def test_a_gated_run_stops_early_and_its_exit_code_is_the_verdict(
    tmp_path: Path, evalstone: Evalstone, bar: str, code: int, verdict: str
) -> None:
    rows = [{"id": str(n), "output": "one two" if n % 2 else "one", "reference": "one two"} for n in range(400)]
    if bar == "0.5":
        rows = [{"id": str(n), "output": "one" if n % 2 else "other", "reference": "one"} for n in range(40)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = evalstone("run", "d.jsonl", "-s", "rouge_l", "--min", f"rouge_l={bar}", "--sequential", "-q", "--out", "r")
    assert done.returncode == code, done.stdout
    assert verdict in done.stdout
    assert (len(records(tmp_path / "r")) < len(rows)) == (code != 4)
    again = evalstone("gate", "r", "--min", f"rouge_l={bar}")
    # a test of all scores beside the one of the scores as they came is another look
    assert (verdict in again.stdout, "tested at 4%" in again.stdout) == (True, code != 4)
    assert ("bet on the" in again.stdout) == (code != 4)
    assert len((tmp_path / "r" / "gates.jsonl").read_text().splitlines()) == (1 if code != 4 else 2)
    done = evalstone("run", "d.jsonl", "-s", "rouge_l", "--out", "r", "-q")
    assert done.returncode == 0, done.stderr
    later = evalstone("gate", "r", "--min", f"rouge_l={bar}")
    assert ("this is look 2" in later.stderr, "tested at 0.5%" in later.stdout) == (True, True)
    assert "tested at 4%" in evalstone("gate", "r", "--min", f"rouge_l={bar}", "--look", "1").stdout


ANSWERS = """
import random

def before(input):
    return "yes" if random.Random(input).random() < 0.6 else "no"

def better(input):
    return "yes" if random.Random(input).random() < 0.8 else "no"

def worse(input):
    return "yes" if random.Random(input).random() < 0.4 else "no"

def often_fails(input):
    if random.Random(input).random() < 0.1:
        raise RuntimeError("no answer")
    return "yes"
"""


@pytest.fixture
def compared(tmp_path: Path, evalstone: Evalstone) -> tuple[str, ...]:
    """The command that compares the answers of a target with those of a finished run in the folder A."""
    rows = [{"id": f"q{n}", "input": f"{n}", "reference": "yes"} for n in range(300)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "answers.py").write_text(ANSWERS)
    command = ("run", "d.jsonl", "-s", "exact_match", "-q", "--target")
    assert evalstone(*command, "answers.py:before", "--out", "A").returncode == 0
    return command


@pytest.mark.parametrize(
    ("target", "margin", "code", "verdict"),
    [("better", "0", 0, "✓ pass"), ("worse", "0", 1, "✕ fail"), ("before", "0.1", 0, "✓ pass")],
)
def test_a_run_stops_once_its_comparison_with_a_baseline_is_decided(
    tmp_path: Path, evalstone: Evalstone, compared: tuple[str, ...], target: str, margin: str, code: int, verdict: str
) -> None:
    against = ("--baseline", "A", "--max-regression", f"exact_match={margin}")
    done = evalstone(*compared, f"answers.py:{target}", "--sequential", *against, "--out", "B", "--concurrency", "2")
    assert (done.returncode, verdict in done.stdout) == (code, True), done.stderr
    assert ", difference from baseline" in done.stdout
    assert len(records(tmp_path / "B")) < 150
    later = evalstone("gate", "B", *against)
    assert (later.returncode, "look 1, tested at 4%" in later.stdout) == (code, True)
    result = evalstone("compare", "A", "B").stdout
    assert "p: betting, " in result
    assert "is biased away" in result


@pytest.mark.slow
def test_a_comparison_may_be_set_in_a_file_and_needs_another_folder(
    tmp_path: Path, evalstone: Evalstone, compared: tuple[str, ...]
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "eval.toml").write_text(
        'data = "../d.jsonl"\nscorers = ["exact_match"]\ntarget = "../answers.py:better"\nsequential = true\n'
        'baseline = "../A"\nmax_change = 1\n[max_regression]\nexact_match = 0\n'
    )
    done = evalstone("run", "sub/eval.toml", "-q")
    assert (done.returncode, "✓ pass" in done.stdout) == (0, True), done.stderr
    refused = evalstone("run", "sub/eval.toml", "-q", "--out", "A")
    assert (refused.returncode, "the same folder" in refused.stderr) == (2, True)
    rows = [{"id": f"q{n}", "input": f"{n}", "reference": "no"} for n in range(300)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    refused = evalstone("run", "sub/eval.toml", "-q")
    assert (refused.returncode, "use --allow-mismatch" in refused.stderr) == (2, True)
    allowed = evalstone("run", "sub/eval.toml", "-q", "--allow-mismatch")
    assert "Baseline: 300 of 300 samples " in allowed.stderr
    assert ", difference from baseline" in allowed.stdout
    rows = [{**row, "reference": "yes"} for row in rows]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    few = ("--max-change", "exact_match=0.5")
    failed = evalstone("run", "sub/eval.toml", "-q", *few)
    assert (failed.returncode, "✕ fail; a sample changes by more than" in failed.stdout) == (1, True)
    assert "but --max-change 0.5: the check fails" in " ".join(failed.stdout.split())
    refused = evalstone(
        "run", "sub/eval.toml", "-q", "-s", "exact_match", "-s", "rouge_l", "--max-change", "rouge_l=0.5"
    )
    assert "--max-change of rouge_l is for" in refused.stderr
    refused = evalstone("run", "sub/eval.toml", "--max-change", "2", "--out", "unfit")
    assert (refused.returncode, refused.stdout, (tmp_path / "unfit").exists()) == (2, "", False)
    assert "--max-change of exact_match must be above 0" in refused.stderr


@pytest.mark.slow
def test_missing_scores_and_samples_without_a_baseline_are_named_in_a_comparison(
    tmp_path: Path, evalstone: Evalstone, compared: tuple[str, ...]
) -> None:
    run = read_run(tmp_path / "A")
    write_run(replace(run, records=run.records[60:], ending=BUDGET, stop_reason="the budget is spent"), tmp_path / "A")
    against = ("--sequential", "--baseline", "A", "--max-regression", "exact_match=0")
    done = evalstone(*compared, "answers.py:often_fails", *against)
    assert (done.returncode, "✓ pass" in done.stdout) == (5, True)  # because of the failed scores
    assert " of exact_match " in done.stdout
    assert "Left out of" in done.stdout


def test_missing_scores_count_in_a_gate_that_watches_a_run_as_asked(tmp_path: Path, evalstone: Evalstone) -> None:
    rows = [{"id": f"s{number}", "output": "1.0" if number % 3 else "skip"} for number in range(150)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ("run", "d.jsonl", "-s", "tests.runs:Given", "--sequential", "--min", "given=0.8", "-q", "--ledger", "l")
    done = evalstone(*command)
    assert (done.returncode, "(given 50) count as" in done.stdout) == (4, True)
    done = evalstone(*command, "--missing", "failed")
    assert (done.returncode, "✓ pass" in done.stdout) == (0, True)
    refused = evalstone(*command, "--missing", "none")
    assert (refused.returncode, "--missing takes worst" in refused.stderr) == (2, True)
    for without_gate in ("failed", "worst"):
        refused = evalstone("run", "d.jsonl", "-s", "tests.runs:Given", "--missing", without_gate)
        assert (refused.returncode, "--missing requires --min" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('missing = "worst"', "missing requires min"),
        ("wait = true", "wait requires batch"),
        (
            "batch = true\ncache = false",
            "batch and cache = false exclude each other: batch answers are read from the ledger",
        ),
        ("sequential = true", "sequential requires min, max or max_regression"),
        ('baseline = "r"', "baseline requires max_regression or max_difference"),
        ("max_change = 0.2", "max_change requires max_regression"),
        ("allow_mismatch = true", "allow_mismatch requires max_regression"),
        ("max_change = true", "max_change must be a number or a table, not True"),
        ("sequential = true\nmax_regression = { hallucination = 0 }", "max_regression requires baseline"),
        (
            "min = { hallucination = 0.5 }",
            "min of hallucination: lower is better for hallucination; use [max] hallucination = 0.5",
        ),
        ("in_file = []", "eval.toml: unknown key 'in_file'; known: "),
    ],
)
def test_a_setting_of_a_file_is_named_by_its_key(data: Path, evalstone: Evalstone, line: str, problem: str) -> None:
    file = data.parent / "eval.toml"
    file.write_text(f'data = "{data.name}"\nscorers = ["hallucination"]\n{line}\n')
    done = evalstone("run", str(file), "-q")
    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr


def test_an_option_that_replaces_a_setting_of_a_file_is_named_as_an_option(data: Path, evalstone: Evalstone) -> None:
    file = data.parent / "eval.toml"
    file.write_text(f'data = "{data.name}"\nscorers = ["faithfulness"]\nmissing = "worst"\n')
    assert evalstone("run", str(file), "--missing", "ignore").stderr.startswith("evalstone: --missing requires --min, ")


def test_a_threshold_of_a_file_is_tested(data: Path, evalstone: Evalstone) -> None:
    file = data.parent / "eval.toml"
    file.write_text(
        f'data = "{data.name}"\nscorers = ["contains(expected=zzz)"]\nalpha = "none"\n[min]\ncontains = 0.5\n'
    )
    done = evalstone("run", str(file), "-q")
    assert (done.returncode, re.search(r"^contains .* fail", done.stdout, re.M) is not None) == (1, True)


def test_a_gate_that_passes_over_failed_scores_ends_with_5(tmp_path: Path, evalstone: Evalstone) -> None:
    rows = [{"id": f"s{number}", "output": "1.0" if number else "none"} for number in range(9)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for bar, code in (("0.2", 5), ("0.9", 4)):
        done = evalstone("run", "d.jsonl", "-s", "tests.runs:Given", "--sequential", "--min", f"given={bar}", "-q")
        assert done.returncode == code, done.stdout + done.stderr


def test_a_gate_tells_scorers_of_one_name_apart_by_their_parameters(tmp_path: Path, evalstone: Evalstone) -> None:
    rows = [{"id": str(n), "output": "Oslo in Norway", "input": "Where?"} for n in range(400)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    both = ("run", "d.jsonl", "-s", "contains(expected=Oslo)", "-s", "contains(expected=Rome)", "--sequential", "-q")
    done = evalstone(*both, "--min", "contains(expected=Oslo)=0.9", "--out", "r")
    assert done.returncode == 0, done.stderr
    assert "contains(expected=Oslo)     1.000" in done.stdout
    assert len(records(tmp_path / "r")) < 2 * len(rows)
    page = evalstone(*both, "--min", "contains(expected=Oslo)=0.9", "--no-cache", "--markdown", "-")
    assert (page.stdout.startswith("### d.jsonl"), "after every sample" in page.stdout) == (True, True)
    assert "after every sample" in page.stderr
    assert evalstone(*both, "--min", "contains(expected=Rome)=0.9").returncode == 1
    ambiguous = evalstone(*both, "--min", "contains=0.9")
    assert (ambiguous.returncode, "contains is ambiguous" in ambiguous.stderr) == (2, True)


def test_a_base_url_is_added_to_the_judge_of_the_file(tmp_path: Path, data: Path, evalstone: Evalstone) -> None:
    (tmp_path / "eval.toml").write_text('data = "data.jsonl"\n[judge]\nmodel = "vllm/x"\ntemperature = 0.5\n')
    with serving() as server:
        done = evalstone("run", "eval.toml", "-s", "faithfulness", "--base-url", server.url)
        assert done.returncode == 0, done.stderr
        assert server.requests[0]["temperature"] == 0.5
    refused = evalstone("run", "data.jsonl", "--judge", "lexical", "--base-url", "http://h/v1")
    assert "--base-url needs" in refused.stderr


def test_options_override_the_file(data: Path) -> None:
    (data.parent / "eval.toml").write_text(
        'data = "data.jsonl"\nbudget = 1.5\ncache = false\ntop = 0\ntags = ["x"]\nhtml = "r.html"\n[min]\na = 1\n'
    )
    file = str(data.parent / "eval.toml")
    config = RunConfig.load(file)
    assert (config.budget, config.cache, config.top, config.tags) == (1.5, False, 0, ["x"])
    assert config.html == str(data.parent / "r.html")
    changed = RunConfig.load(file, cache=True, budget=2.0, tags=["y"], min={"b": 0.5})
    assert (changed.budget, changed.cache, changed.tags) == (2.0, True, ["y"])
    assert changed.min == {"a": 1.0, "b": 0.5}


FLAGS = {
    "allow_mismatch": "--refuse-mismatch",
    "batch": "--no-batch",
    "keep_reasoning": "--leave-out-reasoning",
    "cache": "--no-cache",
    "sequential": "--no-sequential",
    "wait": "--no-wait",
}


def test_what_a_file_turns_on_the_command_line_turns_off(data: Path, evalstone: Evalstone) -> None:
    assert {one.key for one in declared(RunConfig) if one.in_file and one.type is bool} == FLAGS.keys()
    plain = 'data = "data.jsonl"\nscorers = ["faithfulness"]\n'
    for name, off in FLAGS.items():
        (data.parent / "eval.toml").write_text(f"{plain}{name} = true\n")
        if name not in ("cache", "keep_reasoning"):  # the others need what the file lacks
            assert evalstone("run", "eval.toml").returncode == 2
        assert evalstone("run", "eval.toml", off).returncode == 0


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('concurrency = "eight"', "concurrency must be a whole number, not 'eight'"),
        ("concurrency = 0", "concurrency must be a whole number from 1 to 10000, not 0"),
        ("budget = nan", "budget must be a finite number, 0 or more, not nan"),
        ("budget = true", "budget must be a number, not True"),
        ("sequential = 1", "sequential must be true or false, not 1"),
        (
            "pass_rate = { contains = 0.9 }",
            "pass_rate.contains must be a score and a share, such as [0.8, 0.9], not 0.9",
        ),
        (
            'pass_rate = { contains = ["a", 1] }',
            "pass_rate.contains must be a score and a share, such as [0.8, 0.9], not ['a', 1]",
        ),
        ("judge = 5", "judge must be text or a table, not 5"),
        ('judge = ["lexical"]', "judge must be text or a table, not ['lexical']"),
        ("user = [5]", "user must be text or a table, not [5]"),
        ("scorers = []", "scorers must be a list of one or more scorers, not []"),
        ("scorers = 5", "scorers must be a list, not 5"),
        ("require = ['a', 5]", "item 2 of require must be text, not 5"),
        ('min = {faithfulness = "high"}', "min.faithfulness must be a number, not 'high'"),
        ("min = 0.8", "min must be a table, not 0.8"),
        ("cach = true", "unknown key 'cach'; did you mean cache?"),
        ("gate = true", "unknown key 'gate'; did you mean min or max?"),
        ("mapping = {}", "unknown key 'mapping'; did you mean map?"),
        ("fail_under = {contains = 1}", "unknown key 'fail_under'; did you mean min?"),
        ("scorer = 'contains'", "unknown key 'scorer'; did you mean scorers?"),
        ("no_cache = true", "unknown key 'no_cache'; did you mean cache?"),
        ("target_timeout = 5", "unknown key 'target_timeout'; did you mean target.timeout?"),
        ("verbose = true", "unknown key 'verbose'; did you mean the option --verbose?"),
        ('name = " "', "name must be one line of visible text, not ' ' (str)"),
        ('tags = ["a\\nb"]', r"tags must be one line of visible text, not 'a\nb' (str)"),
        ("[min]", "min is empty, so it checks nothing: name a scorer, or remove min"),
        ("require = []", "require is empty, so it checks nothing: name a scorer, or remove require"),
    ],
)
def test_a_wrong_value_in_a_file_names_its_key(tmp_path: Path, evalstone: Evalstone, line: str, told: str) -> None:
    (tmp_path / "eval.toml").write_text(f'data = "d.jsonl"\n{line}\n')
    done = evalstone("run", "eval.toml")
    assert (done.returncode, done.stderr) == (2, f"evalstone: eval.toml: {told}\n")


@pytest.mark.parametrize(
    ("line", "option", "told"),
    [
        ('scorers = ["containss"]', ("-s", "containss"), "unknown scorer 'containss'"),
        ('scorers = ["json_value(k=1)"]', ("-s", "json_value(k=1)"), "unknown scorer 'json_value'"),
        ('judge = "gpt5"', ("-j", "gpt5"), "unknown judge 'gpt5'"),
        ('target = "nowhere"', ("--target", "nowhere"), "a target is a function or an address"),
        ("[target]\ntimeout = 3", ("--target-timeout", "3"), "no target is named"),
        ('user = "nobody"', ("--user", "nobody"), "a user is a list of messages"),
        ("[map]\noutputt = 'answer'", ("--map", "outputt=answer"), "unknown sample field 'outputt'"),
        ("[min]\nfaithfulnes = 1", ("--min", "faithfulnes=1"), "unknown scorer 'faithfulnes'"),
    ],
)
def test_what_is_wrong_in_a_file_names_the_file_and_an_option_does_not(
    tmp_path: Path, data: Path, evalstone: Evalstone, line: str, option: tuple[str, str], told: str
) -> None:
    (tmp_path / "eval.toml").write_text(f'data = "{data.name}"\n{line}\n')
    done = evalstone("run", "eval.toml")
    assert done.returncode == 2
    assert done.stderr.startswith("evalstone: eval.toml: ")
    assert told in done.stderr
    (tmp_path / "eval.toml").write_text(f'data = "{data.name}"\n')
    done = evalstone("run", "eval.toml", *option)
    assert done.returncode == 2
    assert "eval.toml" not in done.stderr
    assert told in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", "d.jsonl", "--limit", "-1"), "--limit takes a whole number, 1 or more, not '-1'"),
        (("run", "d.jsonl", "--limit", "2.5"), "--limit takes a whole number, 1 or more, not '2.5'"),
        (("run", "d.jsonl", "--limit", "many"), "--limit takes a whole number, 1 or more, not 'many'"),
        (("run", "d.jsonl", "--limit", "-" + "9" * 400), f"--limit takes a whole number, 1 or more, not '-{'9' * 78}"),
        (("run", "d.jsonl", "--top", "-1"), "--top takes a whole number, 0 or more, not '-1'"),
        (("run", "d.jsonl", "--budget", "five"), "--budget takes a finite number, 0 or more, not 'five'"),
        (("run", "d.jsonl", "--budget", "nan"), "--budget takes a finite number, 0 or more, not 'nan'"),
        (("collect", "--port", "65536"), "--port takes a whole number from 0 to 65535, not '65536'"),
        (("collect", "--sampling", "2"), "--sampling takes a finite number from 0 to 1, not '2'"),
        (("gate", "results", "--alpha", "x"), "--alpha must be above 0 and below 0.5, such as 0.05, or none, not 'x'"),
    ],
)
def test_a_number_that_is_none_or_out_of_range_is_refused(
    evalstone: Evalstone, arguments: tuple[str, ...], told: str
) -> None:
    done = evalstone(*arguments)
    assert (done.returncode, done.stderr) == (2, f"evalstone: {told}\n")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('scorers = ["token_f1"]', "unknown scorer 'token_f1'; did you mean f1_tokens"),
        (
            'scorers = [{name = "faithfulness", scal = 2}]',
            "faithfulness: unknown parameter 'scal'; did you mean scale?",
        ),
        ('scorers = ["nowhere:x"]', "there is no module nowhere, which the scorer"),
        ('judge = "opnai/x"', "unknown provider 'opnai'; did you mean openai?"),
        ("[target]\nadress = 'm:f'", "no target is named, only its adress"),
        ("user = {functio = 'm:f'}", "the user has an unknown setting 'functio'; did you mean function?"),
        ("wait = true", "wait requires batch"),
        ("[experiment]\ntarget = ['m:f']", "[experiment]: unknown key 'target'; did you mean targets?"),
        ("[experiment]\nparameters = {x = [1]}", "[experiment] parameters require a target"),
    ],
)
def test_every_error_about_a_setting_in_a_file_names_the_file(
    data: Path, evalstone: Evalstone, line: str, told: str
) -> None:
    (data.parent / "eval.toml").write_text(f'data = "data.jsonl"\n{line}\n')
    done = evalstone("run", "eval.toml")
    assert (done.returncode, done.stderr[: len(told) + 22]) == (2, f"evalstone: eval.toml: {told}")


@pytest.mark.parametrize(
    "one", ['scorers = "contains(expected=Paris)"', 'scorers = {name = "contains", expected = "Paris"}']
)
def test_one_scorer_in_a_file_needs_no_list(tmp_path: Path, data: Path, evalstone: Evalstone, one: str) -> None:
    (tmp_path / "eval.toml").write_text(f'data = "data.jsonl"\nout = "res"\ntags = "night"\n{one}\n')
    done = evalstone("run", "eval.toml")
    assert done.returncode == 0, done.stderr
    assert {row["scorer"].partition("(")[0] for row in records(tmp_path / "res")} == {"contains"}
    assert json.loads((tmp_path / "res" / "summary.json").read_text())["tags"] == ["night"]


def test_a_file_without_data_says_so(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / "eval.toml").write_text("top = 1\n")
    assert "key data is" in evalstone("run", "eval.toml").stderr


def test_an_empty_column_leaves_a_field_out(data: Path, evalstone: Evalstone) -> None:
    done = evalstone("run", str(data), "-s", "answer_relevancy", "--map", "input=")
    assert done.returncode == 2
    assert "relevancy needs input" in done.stderr


@pytest.mark.parametrize("floor", ["nan", "1.5", "-0.1", "inf"])
def test_a_threshold_that_cannot_be_met_is_refused(data: Path, evalstone: Evalstone, floor: str) -> None:
    done = evalstone("run", str(data), "-s", "faithfulness", "--min", f"faithfulness={floor}")
    assert done.returncode == 2
    assert "must be in [0, 1]" in done.stderr or "finite number" in done.stderr


def test_a_dry_run_needs_no_key_sees_the_cache_and_checks_what_the_run_would(data: Path, evalstone: Evalstone) -> None:
    dry = ("run", str(data), "-s", "faithfulness", "-j", "openai/gpt-5.1", "--dry-run", "--limit", "1")
    done = evalstone(*dry, "--budget", "0.000001")
    assert done.returncode == 0, done.stderr
    assert "2 calls" in done.stdout
    assert "above the budget" in done.stdout
    assert evalstone(*dry, "--min", "nope=1").returncode == 2
    with serving() as server:
        evalstone("run", str(data), "-s", "faithfulness", "-j", "openai/gpt-5.1", "--limit", "1", env=at(server))
        again = evalstone(*dry, env=at(server))
        fresh = evalstone(*dry, "--no-cache", env=at(server))
    assert "0 calls" in again.stdout
    assert "2 calls" in fresh.stdout


def test_an_empty_judge_is_not_a_judge(data: Path, evalstone: Evalstone) -> None:
    done = evalstone("run", str(data), "-s", "faithfulness", "--judge", "")
    assert done.returncode == 2
    assert "judge" in done.stderr


def test_a_declined_call_is_not_shown_as_answered(evalstone: Evalstone) -> None:
    shown = evalstone("score", "-s", "toxicity", "--output", "x").stdout
    assert shown.splitlines()[-1].split()[:3] == ["find_toxicity", "lexical@7", "none"]


def test_results_with_missing_records_are_unfinished(tmp_path: Path, data: Path, evalstone: Evalstone) -> None:
    evalstone("run", str(data), "-s", "faithfulness", "--out", "res")
    (tmp_path / "res" / "records.jsonl").write_text("")
    assert read_run(tmp_path / "res").stop_reason == "unfinished"
    shown = evalstone("report", "res")
    assert shown.returncode == 3
    assert "0 of 2 samples" in shown.stdout


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("summary.json", "[]", "must contain an object"),
        ("records.jsonl", "{}\n", "line 1"),
        ("records.jsonl", '{"format": 1, "outcome": "score", "value": NaN, "scale": 1}\n', "line 1"),
    ],
)
def test_damaged_results_name_file_and_line(
    tmp_path: Path, data: Path, evalstone: Evalstone, file: str, text: str, told: str
) -> None:
    evalstone("run", str(data), "-s", "faithfulness", "--out", "res")
    (tmp_path / "res" / file).write_text(text)
    done = evalstone("report", "res")
    assert done.returncode == 2
    assert file in done.stderr
    assert told in done.stderr


@pytest.mark.parametrize(
    ("options", "value", "told"),
    [
        ([], 0, "is not scored (--keep-reasoning scores it)"),
        (["--keep-reasoning"], 1, "is scored as a part of the answer"),
    ],
)
def test_the_reasoning_of_one_sample_is_scored_if_asked(
    evalstone: Evalstone, options: list[str], value: int, told: str
) -> None:
    command = ("score", "--scorer", "contains(expected=Berlin)", *options)
    shown = evalstone(*command, "--output", "<think>Berlin?</think>Paris").stdout
    assert f"{value} of 1" in shown
    assert "model's reasoning" in shown
    assert f"; it {told}." in shown
    assert "reasoning" not in evalstone(*command, "--output", "Paris").stdout


@pytest.mark.parametrize(
    ("options", "mean"),
    [
        (["rows.jsonl"], 0.5),
        (["rows.jsonl", "--keep-reasoning"], 1.0),
        (["run.toml"], 1.0),
        (["run.toml", "--leave-out-reasoning"], 0.5),
    ],
)
def test_reasoning_in_front_of_outputs_is_scored_if_asked(
    evalstone: Evalstone, tmp_path: Path, options: list[str], mean: float
) -> None:
    outputs = ["<think>Berlin?</think>Paris", "Berlin"]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"output": output}) + "\n" for output in outputs))
    (tmp_path / "run.toml").write_text('data = "rows.jsonl"\nkeep_reasoning = true\n')
    scorer = ["--scorer", "contains(expected=Berlin)"]
    done = evalstone("run", *options, *scorer, "--json")
    assert json.loads(done.stdout)["scorers"][0]["mean"] == mean
    shown = " ".join(evalstone("run", *options, *scorer).stdout.split())
    assert "a model's reasoning" in shown
    assert ("(--keep-reasoning " in shown) == (mean < 1)


def test_a_sample_that_changes_by_more_than_declared_fails_the_checks_of_a_finished_run(
    tmp_path: Path, evalstone: Evalstone
) -> None:
    for name, output in (("before", "x"), ("now", "y")):
        rows = [json.dumps({"id": str(n), "output": output if n else "x"}) for n in range(8)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    checks = ["--baseline", "b", "--max-regression", "contains=0.9", "--max-change", "0.5", "--allow-mismatch"]
    assert evalstone("run", "before.jsonl", "-s", "contains(expected=x)", "--out", "b").returncode == 0
    done = evalstone("run", "now.jsonl", "-s", "contains(expected=x)", "--out", "n", *checks)
    assert done.returncode == 1
    assert "ample '1' changes by 1, from 1 to 0, but --max-change 0.5: the check fails" in " ".join(done.stdout.split())
    assert evalstone("gate", "n", *checks).returncode == 1
    assert (tmp_path / "n" / "records.jsonl").exists()
    assert "Next:" in done.stdout


@pytest.mark.parametrize(("how", "code", "verdict"), [([], 1, "✕ fail"), (["--sequential"], 4, "? inconclusive")])
def test_reports_of_a_run_have_its_checks(
    data: Path, evalstone: Evalstone, tmp_path: Path, how: list[str], code: int, verdict: str
) -> None:
    files = ["--html", "r.html", "--markdown", "r.md"]
    done = evalstone("run", str(data), "-s", "faithfulness", "--min", "faithfulness=0.99", *how, *files)
    assert done.returncode == code
    assert re.search(rf"faithfulness .*at least 0.99.*{re.escape(verdict)}", done.stdout)
    markdown, html = ((tmp_path / name).read_text() for name in ("r.md", "r.html"))
    assert markdown.splitlines()[0].endswith(f": {verdict}")
    assert "at least 0.99" in markdown
    assert "at least 0.99" in html
