"""What becomes of trials in results: rows, files, and reading them back."""

from __future__ import annotations

import csv
import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from evalstone import Run, compare, evaluate, load, read_run, write_run
from evalstone.errors import DataError
from evalstone.results.views.comparison import comparison_view
from evalstone.targets import Answer, FunctionTarget

CASES = [{"id": f"q{n}", "input": f"question {n}"} for n in range(3)]


def agent(*, input: str, trial: int) -> Answer:
    if (input, trial) == ("question 1", 2):
        raise ValueError("no")
    return Answer(output=f"{input}, answer {trial}", state={"n": trial})


@pytest.fixture(scope="module")
def run() -> Run:
    return evaluate(
        CASES, ["contains(expected='answer 1')", "exact_match(expected=x)"], target=agent, trials=2, ledger=None
    )


def test_a_row_for_each_sample_and_trial(run: Run) -> None:
    wide = run.to_dicts(wide=True)
    assert [(row["sample_id"], row["trial"], row["output"], row["contains"]) for row in wide][:4] == [
        ("q0", 1, "question 0, answer 1", 1.0),
        ("q0", 2, "question 0, answer 2", 0.0),
        ("q1", 1, "question 1, answer 1", 1.0),
        ("q1", 2, None, None),
    ]
    assert list(run.to_pandas(wide=True)["trial"]) == list(run.to_polars(wide=True)["trial"]) == [1, 2] * 3
    assert list(run.to_pandas()["trial"]) == [1, 1, 2, 2] * 3


def test_without_trials_only_csv_has_a_column_for_them() -> None:
    plain = evaluate(CASES, "contains(expected='answer 1')", target=agent, ledger=None)
    assert all("trial" not in row for row in (*plain.to_dicts(), *plain.to_dicts(wide=True)))
    rows = list(csv.DictReader(plain.csv_lines()))
    assert {row["trial"] for row in rows} == {""}


def test_csv_has_the_answer_of_each_trial(run: Run) -> None:
    lines = [line.rstrip() for line in run.csv_lines()]
    assert len(lines) == 1 + len(run)
    assert [line.split(",")[-1] for line in lines] == ['"trial"', *(["1", "1", "2", "2"] * 3)]
    assert '"question 0, answer 2"' in lines[3]


def test_a_folder_reads_back_as_the_run(run: Run, tmp_path: Path) -> None:
    read = read_run(write_run(run, tmp_path))
    assert read.trials == 2
    assert [(r.sample_id, r.trial, r.value) for r in read] == [(r.sample_id, r.trial, r.value) for r in run]
    assert [(s.id, s.trial, s.output, s.state) for s in read.samples or ()] == [
        (s.id, s.trial, s.output, s.state) for s in run.samples or ()
    ]
    loaded = load(tmp_path / "samples.jsonl")
    assert [(s.id, s.state, s.group) for s in loaded][:2] == [("q0", {"n": 1}, "q0"), ("q0-2", {"n": 2}, "q0")]


def test_a_record_of_the_same_trial_twice_is_refused(run: Run, tmp_path: Path) -> None:
    file = write_run(run, tmp_path) / "records.jsonl"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines, lines[2]]) + "\n")
    with pytest.raises(DataError, match=r"'q0', trial 2 .*'contains.*' .*line 3"):
        read_run(tmp_path)
    assert json.loads(lines[2])["trial"] == 2


def test_two_runs_at_once_of_a_target_with_a_version_share_its_answers(tmp_path: Path) -> None:
    calls, lock = list[str](), threading.Lock()

    def slow(*, input: str) -> str:
        with lock:
            calls.append(input)
        threading.Event().wait(0.02)
        return "answer 1"

    # What is imported by several threads at once, pytest can't always parse.
    evaluate(CASES, "contains(expected=a)", target=FunctionTarget(function=slow, label="slow"), ledger=None)
    calls.clear()
    runs = list[Run]()

    def work(scorer: str) -> None:
        target = FunctionTarget(function=slow, label="slow", version="1")
        runs.append(evaluate(CASES, scorer, target=target, ledger=tmp_path / "l.db", progress=False))

    threads = [threading.Thread(target=work, args=(f"contains(expected='answer {n}')",)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(calls) == [case["input"] for case in CASES]
    assert sorted(one["contains"].mean or 0 for one in runs) == [0, 0, 1]


def test_a_comparison_shows_the_answers_of_the_trials_that_changed(run: Run) -> None:
    def worse(*, input: str, trial: int) -> str:
        return "none"

    other = evaluate(CASES, "contains(expected='answer 1')", target=worse, trials=2, ledger=None)
    (examples,) = comparison_view(compare(run, other)).examples
    assert "question 0, answer 1" in repr(examples)
    assert "not available" not in repr(examples)


@pytest.mark.parametrize("field", [{"output": "It's in Norway."}, {"cost": 0.5}])
def test_fields_beside_messages_are_never_lost_to_a_field_too_many(field: dict[str, object]) -> None:
    messages = [{"role": "assistant", "content": "Let me think."}]
    assert Answer.of({"messages": messages, "plan": ["look up"]}).output == "Let me think."
    with pytest.raises(DataError, match=": plan: no field"):
        Answer.of({"messages": messages, "plan": ["look up"], **field})


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (
            {"output": "x", "retrieved": ["d1"]},
            "no answer: retrieved: no field of an Answer, which has context, cost, ",
        ),
        (7, "no answer: return text, an Answer, or a mapping of its fields (context, cost, instructions, "),
        ({"text": "x", "n": 1}, "no answer: return text, an Answer, or a mapping of its fields (context, cost, "),
        (
            {"answer": "x", "contexts": ["y"]},
            "no answer: answer, contexts: no field of an Answer, which has context, cost, instructions, messages, "
            "metadata, output, state, trace, trajectory, turns, usage "
            "(did you mean output for answer and context for contexts?); ",
        ),
    ],
)
def test_what_is_no_answer_is_told_first_what_to_return(returned: Any, says: str) -> None:
    with pytest.raises(DataError, match=f"^the target returned .*{re.escape(says)}"):
        Answer.of(returned)
