"""`evalstone import` on the command line."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Evalstone

FIXTURE = Path(__file__).parents[1] / "compat" / "imports" / "promptfoo" / "results.json"


@pytest.fixture
def file(tmp_path: Path, evalstone: Evalstone) -> str:
    return Path(shutil.copy(FIXTURE, tmp_path)).name


def test_an_import_says_what_the_numbers_mean_and_what_to_do_next(evalstone: Evalstone, file: str) -> None:
    done = evalstone("import", file, "--out", "o", "--name", "nightly", "--tag", "ci")
    assert done.returncode == 0, done.stderr
    for line in (
        "Imported from promptfoo 0.123.1 · Capitals",
        "9 numbers that promptfoo 0.123.1 printed are the same here.",
        "test_score: the sum of scores of promptfoo includes 2 results that failed.",
        "Saved: o/echo-Answer-briefly-question, o/small-Answer-briefly-question",
        "evalstone compare o/echo-Answer-briefly-question o/small-Answer-briefly-question # which is better",
        "evalstone gate o/echo-Answer-briefly-question --min llm-rubric=0.9 # a check for CI",
    ):
        assert line in done.stdout
    row = next(line for line in done.stdout.splitlines() if line.startswith("small") and "llm-rubric" in line)
    assert row.split()[-8:] == ["0.650", "0.132", "to", "0.939", "4", "0", "4", "4"]
    for command in done.stdout.partition("Next:")[2].strip().splitlines():
        words = command.partition("#")[0].split()[1:]
        if words[0] in ("report", "compare", "gate"):
            assert evalstone(*words).returncode in (0, 1, 4, 5), command
    assert "nightly" in evalstone("runs", "--tag", "ci").stdout
    again = evalstone("import", file)
    assert "imported before, with the name and tags of that time" in again.stdout


def test_the_next_commands_have_names_as_they_are(evalstone: Evalstone, file: str) -> None:
    done = evalstone("import", file, "--out", "my  runs")
    report, compare, *_ = done.stdout.partition("Next:")[2].strip().splitlines()
    for command in (report, compare):
        assert evalstone(*shlex.split(command.partition("#")[0])[1:]).returncode != 2, command


def test_the_next_gate_of_an_import_is_strict_where_low_is_good(evalstone: Evalstone) -> None:
    Path("table.jsonl").write_text(
        '{"user_input": "Where is Rome?", "response": "In Italy.", "retrieved_contexts": ["Rome is in Italy."], '
        '"noise_sensitivity": 0.2}\n',
        "utf-8",
    )
    done = evalstone("import", "table.jsonl")
    assert "--max noise_sensitivity=0.1 # a check for CI" in done.stdout, done.stdout + done.stderr
    assert "Saved:" not in done.stdout


def test_the_next_gate_of_an_import_can_be_passed_if_the_scale_is_a_guess(evalstone: Evalstone) -> None:
    grader = {"name": "helpful", "type": "score_model", "score": 7.0, "passed": True}
    item = {"object": "eval.run.output_item", "id": "i", "run_id": "r", "eval_id": "e", "status": "pass"}
    item |= {"datasource_item_id": 0, "datasource_item": {"question": "Where is Rome?"}, "results": [grader]}
    item |= {"sample": {"model": "m", "output": [{"role": "assistant", "content": "In Italy."}]}}
    Path("items.jsonl").write_text(json.dumps(item) + "\n", "utf-8")
    done = evalstone("import", "items.jsonl")
    assert "--min helpful=6.3 # a check for CI" in done.stdout, done.stdout + done.stderr


def test_the_answers_of_an_import_can_be_scored_again(evalstone: Evalstone, file: str) -> None:
    done = evalstone("import", file, "--out", "o")
    command = next(line for line in done.stdout.splitlines() if "samples.jsonl" in line)
    assert command.endswith(" # score the same answers without the tool")
    words = shlex.split(command.partition("#")[0].replace("SCORER", "contains"))[1:]
    assert evalstone(*words).returncode in (0, 5)


def test_the_runs_to_compare_are_of_the_same_samples(evalstone: Evalstone) -> None:
    folder = FIXTURE.parent.parent / "lm_eval"
    of_one = evalstone("import", str(folder / "small"), "--out", "one")
    assert (of_one.returncode, "evalstone compare" in of_one.stdout) == (0, False)
    of_two = evalstone("import", str(folder), "--out", "two")
    (line,) = (line for line in of_two.stdout.splitlines() if line.startswith("evalstone compare"))
    assert line.count("capitals_choice") == 2
    compared = evalstone(*shlex.split(line.partition(" #")[0])[1:])
    assert compared.returncode == 0, compared.stderr


def test_a_mean_that_labels_correct_is_not_said_to_lack_them(evalstone: Evalstone, file: str) -> None:
    assert evalstone("import", file, "--out", "o").returncode == 0
    lacking = "the judge isn't compared with labels"
    folder = "o/small-Answer-briefly-question"
    assert f"llm-rubric: {lacking}" in evalstone("report", folder).stdout
    rows = map(json.loads, Path(folder, "records.jsonl").read_text("utf-8").splitlines())
    keys = [f"{row['sample_id']} #{row['trial']}" for row in rows if row["scorer"] == "llm-rubric" and row["value"]]
    Path("labels.csv").write_text("id,label\n" + "".join(f"{key},1\n" for key in keys), "utf-8")
    done = evalstone("report", folder, "--labels", "llm-rubric=labels.csv")
    assert "Corrected by human labels: llm-rubric" in done.stdout, done.stdout + done.stderr
    assert lacking not in done.stdout


def test_the_name_of_several_systems_is_refused_with_their_ids(evalstone: Evalstone, file: str) -> None:
    assert evalstone("import", file, "--name", "both").returncode == 0
    done = evalstone("report", "both")
    assert done.returncode == 2
    assert "2 runs of different systems were imported as 'both'. Name one by its ID: " in done.stderr
    first, second = (part.split()[0] for part in done.stderr.partition("its ID: ")[2].split("; "))
    assert evalstone("compare", first, second).returncode == 0
    assert evalstone("report", "last").returncode != 2


def test_the_name_of_systems_that_ran_one_after_the_other_is_refused(evalstone: Evalstone, tmp_path: Path) -> None:
    log = json.loads((FIXTURE.parent.parent / "inspect" / "two.json").read_text("utf-8"))
    for number in range(2):
        log["eval"]["model"] = f"model {number}"
        log["stats"] |= {"started_at": f"2026-11-2{number}T10:00:00+00:00"}
        (tmp_path / f"2026-11-28T05-27-0{number}-00-00_capitals_x.json").write_text(json.dumps(log), "utf-8")
    assert evalstone("import", ".", "--name", "both").returncode == 0
    done = evalstone("report", "both")
    assert (done.returncode, "2 runs of different systems were imported as 'both'" in done.stderr) == (2, True)


def test_an_import_has_options_of_its_own(evalstone: Evalstone, file: str) -> None:
    done = evalstone("import", file, "--from", "promptfoo", "--scale", "length=2", "--json")
    scales = {scorer["name"]: scorer["scale"] for scorer in json.loads(done.stdout)["runs"][0]["scorers"]}
    assert scales["length"] == 2
    assert "scale=10" not in done.stdout
    wrong = evalstone("import", file, "--from", "promtfoo")
    assert (wrong.returncode, "did you mean promptfoo" in wrong.stderr) == (2, True)
    unknown = evalstone("import", file, "--scale", "lenght=2")
    assert (unknown.returncode, "--scale: unknown metric 'lenght'; did you mean length?" in unknown.stderr) == (2, True)
    Path("other.json").write_text('{"rows": []}', "utf-8")
    other = evalstone("import", "other.json")
    assert (other.returncode, "Known: promptfoo .json (evalId, results), " in other.stderr) == (2, True)


CONFIG = """prompts: ["{{answer}}"]
providers: [echo]
tests:
- vars: {question: Capital of Norway?, answer: Oslo}
  assert:
  - {type: contains, value: Oslo}
  - {type: javascript, value: output.length}
"""


def test_a_configuration_becomes_a_project_that_runs(evalstone: Evalstone, tmp_path: Path):
    (tmp_path / "promptfooconfig.yaml").write_text(CONFIG, "utf-8")
    done = evalstone("import", "promptfooconfig.yaml", "--out", "evals")
    assert done.returncode == 0, done.stderr
    assert "1 sample · answers in the file · sample_checks" in done.stdout
    assert "javascript: it has no counterpart; a function in Python" in done.stdout
    assert {file.name for file in (tmp_path / "evals").iterdir()} == {
        *("evalstone.toml", "cases.jsonl", "not-converted.md", ".gitignore"),
    }
    command = done.stdout.partition("Next:")[2].partition("#")[0].split()
    run = evalstone(*command[1:])
    assert (run.returncode, "1 of 1" in run.stdout) == (0, True), run.stderr
    again = evalstone("import", "promptfooconfig.yaml", "--out", "evals")
    assert (again.returncode, "nothing is written, because these exist" in again.stderr) == (2, True)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "name its folder, --out FOLDER"),
        (["--out", "o", "--json"], "--json is for results"),
        (["--out", "o", "--tag", "x"], "--tag is for results"),
        (["--out", "o", "--from", "ragas"], "only those of promptfoo are read"),
    ],
)
def test_a_configuration_has_no_results(evalstone: Evalstone, tmp_path: Path, options: list[str], problem: str):
    (tmp_path / "config.yml").write_text(CONFIG, "utf-8")
    done = evalstone("import", "config.yml", *options)
    assert (done.returncode, problem in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "o").exists()


def test_a_tilde_without_a_slash_is_part_of_a_name(evalstone: Evalstone, tmp_path: Path):
    """A shell would have written the folder of another user in full."""
    (tmp_path / "~nobody.yaml").write_text(CONFIG, "utf-8")
    done = evalstone("import", "~nobody.yaml", "--out", "~nobody")
    assert (done.returncode, (tmp_path / "~nobody" / "cases.jsonl").is_file()) == (0, True), done.stderr
    (tmp_path / "~nobody.jsonl").write_text('{"question": ')
    done = evalstone("check", "~nobody.jsonl")
    assert (done.returncode, "not JSON" in done.stdout) == (1, True), done.stderr
    assert evalstone("init", "~nobody/new", "--kind", "rag").returncode == 0
    assert evalstone("skill", "install", "~nobody").returncode == 0
    (tmp_path / "~nobody.py").write_text("def samples():\n    return [{'output': '1'}]\n")
    assert evalstone("check", "~nobody.py:samples").returncode == 0


def test_results_as_yaml_are_no_configuration(evalstone: Evalstone, tmp_path: Path):
    (tmp_path / "results.yaml").write_text("evalId: e\nresults:\n  version: 3\n  prompts: []\nconfig: {}\n", "utf-8")
    for options in ([], ["--out", "project"], ["--ledger", "l.db"]):
        done = evalstone("import", "results.yaml", *options)
        assert done.returncode == 2
        assert "has the results of promptfoo as YAML; save them as JSON: promptfoo export eval ID" in done.stderr
    assert not (tmp_path / "project").exists()


def test_a_configuration_in_code_is_not_run(evalstone: Evalstone, tmp_path: Path):
    (tmp_path / "promptfooconfig.js").write_text("process.exit(1)", "utf-8")
    done = evalstone("import", "promptfooconfig.js", "--out", "o")
    assert (done.returncode, "is code, which isn't run" in done.stderr) == (2, True)
