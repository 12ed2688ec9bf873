"""What a newcomer meets: narrow terminals, commands to paste, and messages that say what to do."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from evalstone import write_run
from evalstone.results.files import read_run
from evalstone.scorers import SCORERS
from tests.cli.conftest import Evalstone
from tests.runs import Given, Harm, run_of
from tests.serving import serving

ROWS = [{"id": str(n), "input": "Where?", "output": f"Rome is in Italy, {n}.", "context": ["Rome."]} for n in range(4)]
BATCHED = {"OPENAI_API_KEY": "sk-test"}


@pytest.fixture
def folder(tmp_path: Path, evalstone: Evalstone) -> Path:
    """Two saved runs, and data."""
    answers = ["1.0", "0.8", "0.4", "skip"] * 10
    kinds = [{"kind": "x" if number % 4 < 2 else "y"} for number in range(40)]
    write_run(run_of(answers, [Given(), Harm()], metadata=kinds), tmp_path / "runs" / "a")
    write_run(run_of([*answers[1:], "1.0"], [Given(), Harm()], metadata=kinds), tmp_path / "runs" / "b")
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "report runs/a --slice-by kind",
        "compare runs/a runs/b --slice-by kind",
        "gate runs/a --min given=0.7 --max harm=0.2",
        "power runs/a",
        "runs runs",
        "judges",
        "scorers",
        *(f"scorers --from {tool}" for tool in ("mastra", "spring", "ragas", "deepeval", "phoenix")),
    ],
)
def test_what_is_printed_loses_no_word_however_narrow(folder: Path, evalstone: Evalstone, command: str) -> None:
    whole = evalstone(*command.split()).stdout
    assert "…" not in whole or "scorers" in command
    wanted = Counter(whole.replace(":", " ").split())
    for width in ("60", "80", "120", "200"):
        shown = evalstone(*command.split(), env={"COLUMNS": width}).stdout
        assert not wanted - Counter(shown.replace(":", " ").split()), width
        assert max(map(len, shown.splitlines())) <= int(width)


def test_commands_to_paste_name_the_ledger_and_a_file(folder: Path, evalstone: Evalstone) -> None:
    run = ("run", "d.jsonl", "-s", "contains(expected=Rome)", "-q")
    for ledger, written in (("other ledger.db", "'other ledger.db'"), ("sqlite:///third.db", "third.db")):
        done = evalstone(*run, "--ledger", ledger)
        (line,) = re.findall("(evalstone report .*?) #", done.stdout)
        assert line.endswith(f" --ledger {written} --html report.html")
    assert "--ledger" not in evalstone(*run).stdout
    (folder / "t.toml").write_text('data = "d.jsonl"\nledger = "toml.db"\nscorers = ["contains(expected=Rome)"]\n')
    assert "--ledger toml.db " in evalstone("run", "t.toml", "-q").stdout
    assert "report out --html" in evalstone("run", "t.toml", "-q", "--out", "out").stdout


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("report", "no saved runs in the ledger .evalstone/ledger.db; run `evalstone run` first, or name a results"),
        ("gate --min given=1 --ledger x.db", "there are no saved runs in the ledger x.db"),
        ("power runs", "runs has several runs; name one: runs/a, runs/b"),
        ("compare runs runs/a", "runs has several runs; name one: runs/a, runs/b"),
        ("gate runs --min given=1", "runs has several runs; name one: runs/a, runs/b"),
        (
            "run d.jsonl -s createFaithfulnessScorer",
            "is faithfulness(definition='mastra') here; see evalstone scorers --from mastra createFaithfulnessScorer\n",
        ),
        (
            "score -s GEval --output x",
            "GEval is geval(text='…') here; see evalstone scorers --from deepeval GEval, or --from promptfoo or opik\n",
        ),
        ("audit d.jsonl -s RougeScore", "RougeScore is rouge_l here; see evalstone scorers --from ragas RougeScore\n"),
        (
            "scorers FaithfulnessMetric",
            "FaithfulnessMetric is faithfulness(definition='mastra') or faithfulness(definition='deepeval') or "
            "faithfulness(definition='deepeval_strict') here; see evalstone scorers --from mastra FaithfulnessMetric, "
            "or --from deepeval\n",
        ),
        ("calibrate --labels l.csv", "if it has only ids and labels, name the samples with --data FILE\n"),
        (
            "run c.csv -s faithfulness",
            "no sample of c.csv can be scored: faithfulness needs output and context (or tool results in messages); "
            "context is absent; evalstone check lists the scorers that can score the data",
        ),
        ("run a.csv -s contains", "read as output, has the expected answers, map it: --map reference=answer\n"),
        ("run c.csv -s faithfulness -s fact_check", "context is absent. fact_check needs"),
        (
            "run i.csv -s answer_faithfulness",
            "output and context are absent. To have the samples answered, name a target",
        ),
        ("run i.csv -s answer_correctness", "answer_correctness needs input, output and reference; output and"),
    ],
)
def test_a_wrong_start_is_told_what_to_do(folder: Path, evalstone: Evalstone, command: str, told: str) -> None:
    (folder / "l.csv").write_text("id,label\n0,yes\n")
    (folder / "a.csv").write_text("question,answer\nWhere?,Rome\n")
    (folder / "c.csv").write_text("input,answer,response\nWhere?,Rome,Milan\n")
    (folder / "i.csv").write_text("input\nWhere?\n")
    done = evalstone(*command.split())
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr
    assert "not understood" not in done.stderr


@pytest.mark.parametrize(("name", "field"), [("llm_classifier", "question"), ("geval", "text")])
def test_scorers_that_a_table_fills_in_are_described(evalstone: Evalstone, name: str, field: str) -> None:
    done = evalstone("scorers", name)
    assert done.returncode == 0, done.stderr
    assert f"  {field} " in done.stdout


def test_a_run_that_only_skips_ends_with_exit_code_3(folder: Path, evalstone: Evalstone) -> None:
    done = evalstone("run", "d.jsonl", "-s", "bias", "-q")
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert line.startswith("bias: no sample ")
    assert "4 of 4 samples " in line
    assert evalstone("report", "last").returncode == 3
    assert evalstone("gate", "last", "--min", "bias=0.5", "--inconclusive", "pass").returncode == 2  # lower is better
    assert evalstone("gate", "last", "--max", "bias=0.5", "--inconclusive", "pass").returncode == 3
    mixed = evalstone("run", "d.jsonl", "-s", "bias", "-s", "faithfulness", "-q")
    assert mixed.returncode == 0
    assert "bias: no sample " in mixed.stderr


def test_a_gate_and_the_table_above_it_count_the_same_scores(tmp_path: Path, evalstone: Evalstone) -> None:
    rows = [{"id": str(n), "output": "one" if n % 5 else "two", "reference": "one"} for n in range(400)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    scorers = ("-s", "rouge_l", "-s", "exact_match")
    done = evalstone("run", "d.jsonl", *scorers, "--min", "rouge_l=0.5", "--sequential", "-q", "--out", "r")
    assert done.returncode == 0, done.stderr
    line = read_run(tmp_path / "r")["rouge_l"]
    assert line.n_score < 400
    (checked,) = (row for row in done.stdout.splitlines() if "at least 0.5" in row)
    assert re.search(rf"rouge_l +{line.mean:.3f} .* {line.n_score}  ✓ pass", checked)
    assert "Not tested" not in done.stdout
    assert "gate is decided" in evalstone("report").stdout


def test_a_dry_run_says_which_questions_are_too_long(folder: Path, evalstone: Evalstone) -> None:
    row = {"output": "It is.", "context": ["It is so, as everyone knows. " * 600]}
    (folder / "long.jsonl").write_text(json.dumps(row) + "\n")
    judge = "vllm/mine(context_window=4096)"
    done = evalstone("run", "long.jsonl", "-s", "faithfulness", "-s", "answer_faithfulness", "-j", judge, "--dry-run")
    told = " ".join(done.stdout.split())
    assert "answer_faithfulness: 1 sample " in told
    assert "fail: grade_grounding" in told
    assert "use faithfulness, which" in told
    assert "fail: verify_claims" not in told


def test_a_dry_run_takes_as_long_as_its_rounds(folder: Path, evalstone: Evalstone) -> None:
    done = evalstone("run", "d.jsonl", "-s", "faithfulness", "--judge", "openai/gpt-5.1", "--dry-run")
    assert "About 4 s at 2 s per" in done.stdout
    assert "concurrency of 32." in done.stdout


def test_a_server_without_a_batch_api_is_said_to_have_none(folder: Path, evalstone: Evalstone) -> None:
    with serving() as server:
        options = ("--judge", "openai/x", "--base-url", server.url, "--batch", "-q")
        done = evalstone("run", "d.jsonl", "-s", "faithfulness", *options, env=BATCHED)
    assert done.returncode == 3
    assert "batch API (HTTP 404" in done.stderr


def test_scorers_are_listed_and_described_as_json(evalstone: Evalstone) -> None:
    listed = {one["name"]: one for one in map(json.loads, evalstone("scorers", "--json").stdout.splitlines())}
    assert listed.keys() == SCORERS.keys()
    one = json.loads(evalstone("scorers", "hallucination", "--json").stdout)
    assert one == listed["hallucination"]
    assert (one["lower_is_better"], one["range"], [need["field"] for need in one["needs"]]) == (
        True,
        [0, 1.0],
        ["output", "context"],
    )
    assert one["judge_calls"] == ["list_claims", "verify_claims"]
    scale = one["parameters"]["scale"]
    assert (scale["required"], scale["default"]) == (False, 1.0)
    assert "in [0, scale]" in scale["description"]
    assert "up to 1e+100" in scale["allowed"]
    assert (listed["contains"]["judge_calls"], listed["repeated"]["judge_calls"]) == ([], None)
    template = json.loads(evalstone("scorers", "llm_classifier", "--json").stdout)
    assert template["parameters"]["question"]["required"]


def test_the_names_of_another_tool_are_listed_as_json(evalstone: Evalstone) -> None:
    names = json.loads(evalstone("scorers", "--from", "deepeval", "--json").stdout)
    assert "FaithfulnessMetric" in [row["theirs"] for row in names["names"]]
    one = json.loads(evalstone("scorers", "--from", "deepeval", "FaithfulnessMetric", "--json").stdout)
    assert (one["names"][0]["kind"], one["names"][0]["ours"]) == ("scorer", "faithfulness(definition='deepeval')")
    assert ("option", "truths_extraction_limit") in [(row["kind"], row["theirs"]) for row in one["names"]]


@pytest.mark.parametrize("options", ["-s faithfulness", "-s contains --map input=answer --map output=question"])
def test_expected_answers_are_supposed_only_where_they_are_missing(
    folder: Path, evalstone: Evalstone, options: str
) -> None:
    (folder / "a.csv").write_text("question,answer\nWhere?,Rome\n")
    done = evalstone("run", "a.csv", *options.split())
    assert "can be scored" in done.stderr
    assert "expected answers" not in done.stderr
