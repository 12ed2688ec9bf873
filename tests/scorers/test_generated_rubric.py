"""Rubrics that a judge writes, and those that stand in the data."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas
import polars
import pytest

from evalstone import (
    DataError,
    Failed,
    Run,
    Sample,
    Score,
    ScriptedJudge,
    Skipped,
    check,
    compare,
    dry_run,
    evaluate,
    gate,
    load,
)
from evalstone.datasets import write_jsonl
from evalstone.errors import ConfigError, NotComparable
from evalstone.judges import DecisionOrText, write_rubrics
from evalstone.questions import CheckCriteria, WriteCriteria
from evalstone.questions.base import Question
from evalstone.results.compare import Comparison
from evalstone.results.files import read_run, write_run
from evalstone.run.baseline import check_comparable
from evalstone.run.budget import StopSignal
from evalstone.run.planning import plan_for
from evalstone.run.sequential import RunGate
from evalstone.scorers import Criterion, Repeated, Rubric, Scorer
from evalstone.types import Message, Note, note, rubric_of
from tests.cli.conftest import Evalstone, evalstone
from tests.fakes import outcome_of
from tests.serving import Response, completion, serving

__all__ = ["evalstone"]

GENERATED = Rubric(generate=True)
CRITERIA = [{"description": "It says 1921.", "required": True}, {"description": "It is polite.", "required": False}]
WRITTEN = {
    "criteria": [
        {"description": "It says 1921.", "required": "yes"},
        {"description": "It is polite.", "required": "no"},
    ]
}


def reply(question: Question[Any]) -> Any:
    if isinstance(question, WriteCriteria):
        return WRITTEN
    assert isinstance(question, CheckCriteria)
    met = "yes" if "1921" in question.answer else "no"
    return {"verdicts": {str(n): {"reason": "r", "verdict": met} for n, _ in enumerate(question.criteria, start=1)}}


def judge() -> ScriptedJudge:
    return ScriptedJudge(reply, name="writer")


def sample(output: str = "In 1921.", **more: Any) -> dict[str, Any]:
    return {"id": "a", "input": "When?", "output": output, "reference": "1921", **more}


def test_the_criteria_come_from_the_input_and_the_reference_and_are_evidence() -> None:
    by = judge()
    run = evaluate([sample()], GENERATED, judge=by, ledger=None)
    assert by.asked[0] == WriteCriteria(task="When?", reference="1921")
    (record,) = run.records
    assert record.value == 1.0
    assert record.evidence["criteria"] == CRITERIA
    assert [verdict["criterion"] for verdict in record.evidence["verdicts"]] == ["It says 1921.", "It is polite."]
    missed = evaluate([sample("Politely, no.")], GENERATED, judge=judge(), ledger=None).records[0]
    assert (missed.value, missed.reason) == (
        0.0,
        "0 of 2 criteria are met; required and not met: “It says 1921.”; optional and not met: “It is polite.”.",
    )


def test_answers_to_one_question_share_their_criteria_whoever_asks_and_how_often(tmp_path: Path) -> None:
    by = judge()
    rows = [sample(id=name, output=f"In 1921, said {name}.") for name in "ab"]
    scorers = [GENERATED, Repeated(GENERATED, repeats=3), Rubric(generate=True, scale=10)]
    evaluate(rows, scorers, judge=by, ledger=None)
    assert [question.kind for question in by.asked].count("write_criteria") == 1
    trials = judge()
    evaluate(
        [{"id": "a", "input": "When?"}],
        GENERATED,
        judge=trials,
        target=answers(["1921", "1922"]),
        trials=2,
        ledger=None,
    )
    assert [question.kind for question in trials.asked].count("write_criteria") == 1


def answers(texts: Sequence[str]) -> Callable[[str], str]:
    given = iter(texts)
    return lambda input: next(given)


def test_two_versions_are_held_against_the_same_criteria(tmp_path: Path) -> None:
    """A model that writes other criteria each time is asked once: the ledger has what it wrote."""
    written = 0

    def behave(request: dict[str, Any], number: int) -> Response:
        nonlocal written
        text = request["messages"][-1]["content"]
        if "Write the criteria" in text:
            written += 1
            content: Any = {"criteria": [{"description": f"It says {1920 + written}.", "required": "yes"}]}
        else:
            content = {"verdicts": {"1": {"reason": "r", "verdict": "yes" if "Yes" in text else "no"}}}
        return Response(body=completion(json.dumps(content)))

    with serving(behave) as server:

        def run_of(output: str) -> Run:
            spec = f"vllm/x({server.url}, prices=[0, 0])"
            return evaluate(
                [sample(output), sample(output, id="b", input="Who?")], GENERATED, judge=spec, ledger=tmp_path / "l"
            )

        first, second = run_of("Yes."), run_of("Nope.")
    assert written == 2
    criteria = [[record.evidence["criteria"] for record in run.records] for run in (first, second)]
    assert criteria[0] == criteria[1]
    assert criteria[0][0] != criteria[0][1]
    assert compare(first, second)["rubric"].difference.estimate == -1.0


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([], "criteria: at least one was expected"),
        ([*WRITTEN["criteria"], {"description": "it says 1921", "required": "no"}], "'it says 1921' is listed twice"),
        ([{"description": "It says 1921."}], "required"),
        ([{"description": 5, "required": "yes"}], "description"),
    ],
)
def test_criteria_that_cannot_be_used_are_written_again(given: list[Any], problem: str) -> None:
    outcome = outcome_of(GENERATED, Sample(**sample()), [{"criteria": given}])
    assert isinstance(outcome, Failed)
    assert problem in outcome.error


def test_a_sample_without_an_input_has_no_criteria_and_its_own_come_first() -> None:
    outcome = outcome_of(GENERATED, Sample(output="In 1921."), [])
    assert outcome == Skipped(f"rubric needs {GENERATED.needs[1].text}")
    by = judge()
    run = evaluate([sample(rubrics=["It says 1921."])], GENERATED, judge=by, ledger=None)
    assert [question.kind for question in by.asked] == ["check_criteria"]
    assert run.records[0].evidence == [{"criterion": "It says 1921.", "met": True, "reason": "r"}]
    with pytest.raises(ConfigError, match="generate writes criteria, and criteria has some"):
        Rubric(criteria="one", generate=True)


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ("lexical", "rubric asks write_criteria, and lexical@7 writes no text; name a model, such as openai/gpt-5.1"),
        ("typesafe/jev-latest", "rubric asks write_criteria, and decision(typesafe/jev-latest, text=sentences@1)"),
        (DecisionOrText("typesafe/jev-latest", text="lexical"), "rubric asks write_criteria, and lexical@7 writes no"),
        ("panel(lexical, typesafe/jev-latest)", "rubric asks write_criteria, and lexical@7 writes no text"),
    ],
)  # fmt: skip
def test_a_judge_that_cannot_write_is_refused_before_the_run(named: Any, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        evaluate([sample()], GENERATED, judge=named, ledger=None)
    assert problem in str(caught.value)
    # One that can is enough.
    assert dry_run([sample()], GENERATED, judge="cascade(lexical, vllm/x)", ledger=None).kinds == {
        "write_criteria": 1,
        "check_criteria": 1,
    }


TEXTS = ["It says 1921.", "It is polite."]


@pytest.mark.parametrize("form", [TEXTS, CRITERIA, [TEXTS[0], CRITERIA[1]]], ids=["texts", "objects", "both"])
@pytest.mark.parametrize("source", ["jsonl", "csv", "parquet", "pandas", "polars", "metadata"])
def test_a_column_of_rubrics_is_read_alike_from_every_source(source: str, form: list[Any], tmp_path: Path) -> None:
    row = {"id": "a", "input": "When?", "output": "In 1921."}
    if form not in (TEXTS, CRITERIA) and source in ("parquet", "polars"):
        pytest.skip("a column has one type")
    data: Any = tmp_path / f"d.{source}"
    if source == "jsonl":
        data.write_text(json.dumps({**row, "rubrics": form}))
    elif source == "metadata":
        data = [{**row, "metadata": {"rubrics": form}}]
    elif source == "csv":
        with data.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerows([[*row, "rubrics"], [*row.values(), json.dumps(form)], ["b", "q", "o", ""]])
    elif source == "parquet":
        # An object without an entry, which Parquet fills up.
        filled = form if form == TEXTS else [CRITERIA[0], {**CRITERIA[1]}, {"description": "It is kind."}]
        polars.DataFrame([{**row, "rubrics": filled}]).write_parquet(data)
        form = filled
    else:
        data = (pandas if source == "pandas" else polars).DataFrame([{**row, "rubrics": form}])
    first = load(data).samples[0]
    expected = tuple(map(Criterion.parse, form))
    assert rubric_of(first.metadata) == expected
    assert expected[0] == Criterion("It says 1921.")
    by = judge()
    run = evaluate(load(data), "rubric", judge=by, ledger=None)
    assert isinstance(run.records[0].outcome, Score)
    assert by.asked[0] == CheckCriteria(
        criteria=tuple(each.description for each in expected), task="When?", answer="In 1921."
    )


@pytest.mark.parametrize(
    ("rubrics", "problem"),
    [
        ([], "rubrics must have a criterion, or be absent; it is empty"),
        ({}, "rubrics must have a criterion, or be absent; it is empty"),
        (5, "criteria must be a checklist or a list of criteria, not int"),
        ([5], "a criterion is a text, a Criterion or a table, not int"),
        ([" "], "description must be text that is not blank"),
        (["It says 1921.", "it says 1921"], "criteria: 'it says 1921' is listed twice"),
        ([{"text": "It says 1921."}], "unknown field 'text'"),
        ([{"description": "a", "required": 2}], "required must be true or false"),
        ("['It says 1921.', 'It", "cut off or broken"),
    ],
)
def test_rubrics_that_are_none_are_refused_before_the_run_and_fail_a_single_sample_in_words(
    rubrics: Any, problem: str
) -> None:
    outcome = outcome_of(GENERATED, Sample(output="o", input="q", metadata={"rubrics": rubrics}), [])
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith("rubric: the rubric in metadata: ")
    assert problem in outcome.error
    for by in (GENERATED, Repeated(Rubric(), repeats=2)):
        asked = judge()
        with pytest.raises(DataError) as refused:
            evaluate([sample(id="b"), sample(rubrics=rubrics)], by, judge=asked, ledger=None)
        assert str(refused.value).startswith("in memory: item 2: the rubric in metadata: ")
        assert problem in str(refused.value)
        assert not asked.asked
    # A scorer with criteria of its own doesn't read them, and neither do others.
    assert evaluate(
        [sample(rubrics=rubrics)], [Rubric(criteria=TEXTS), "exact_match"], judge=judge(), ledger=None
    ).complete


@pytest.mark.parametrize("source", ["jsonl", "csv", "shards", "stdin"])
def test_the_command_says_in_which_line_a_rubric_is_wrong(source: str, tmp_path: Path, evalstone: Evalstone) -> None:
    rows = [sample(id=name, rubrics=rubrics) for name, rubrics in (("a", '["x"]'), ("b", '["x", "X."]'))]
    data = tmp_path / ("d.csv" if source == "csv" else "d.jsonl")
    if source == "csv":
        polars.DataFrame(rows).write_csv(data)
    else:
        data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = ["--scorer", "rubric", "--judge", "vllm/x(http://localhost:9)"]
    blocks = ["--shard", "1/2", "--out", "out"] if source == "shards" else []
    text = data.read_text() if source == "stdin" else ""
    done = evalstone("run", "-" if source == "stdin" else data.name, *asked, *blocks, typed=text)
    assert done.returncode == 2
    line = {"csv": "d.csv: line 3", "stdin": "stdin: sample 'b'"}.get(source, "d.jsonl: line 2")
    assert f"{line}: the rubric in metadata: criteria: 'X.' is listed twice" in done.stderr


def test_the_command_writes_them_into_the_dataset_and_a_run_uses_them(tmp_path: Path, evalstone: Evalstone) -> None:
    def behave(request: dict[str, Any], number: int) -> Response:
        text = request["messages"][-1]["content"]
        content: Any = WRITTEN if "Write the criteria" in text else {"verdicts": {"1": {}, "2": {}}}
        if "Fail" in text:
            content = {"criteria": []}
        return Response(body=completion(json.dumps(content)))

    rows = [
        {"id": "a", "question": "When?", "reference": "1921", "topic": "museum"},
        {"id": "b", "question": "[1, 2] is a list?", "rubrics": ["Own."]},
        {"id": "c", "reference": "no input"},
        {"id": "d", "question": "Fail"},
    ]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with serving(behave) as server:
        asked = ["--judge", f"vllm/x({server.url}, retries=0)", "--ledger", "l.db"]
        done = evalstone("rubrics", "d.jsonl", "--out", "with.jsonl", *asked)
        n_asked = len(server.requests)
        again = evalstone("rubrics", "d.jsonl", "--out", "again.jsonl", *asked)
        assert len(server.requests) == n_asked + 1  # what failed
    assert done.returncode == again.returncode == 5, done.stderr
    assert done.stdout.splitlines()[0] == "1 rubric written, 1 had one, 1 without an input, 1 failed"
    assert "d: " in done.stdout
    assert "criteria: at least one was expected" in done.stdout
    assert done.stdout.splitlines()[-1] == "Saved: with.jsonl"
    assert (tmp_path / "with.jsonl").read_text() == (tmp_path / "again.jsonl").read_text()
    written = list(load(tmp_path / "with.jsonl"))
    assert [each.id for each in written] == ["a", "b", "c", "d"]
    assert written[0].metadata == {"topic": "museum", "rubrics": CRITERIA}
    assert [each.metadata.get("rubrics") for each in written[1:]] == [["Own."], None, None]
    assert [each.input for each in written[:2]] == ["When?", "[1, 2] is a list?"]
    by = judge()
    answered = [Sample(id="a", input="When?", output="In 1921.", metadata=written[0].metadata)]
    run = evaluate(answered, GENERATED, judge=by, ledger=None)
    assert run["rubric"].mean == 1.0
    assert [question.kind for question in by.asked] == ["check_criteria"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--out", "o.jsonl"], "rubrics needs a judge that writes text; name one: --judge openai/gpt-5.1"),
        (["--out", "o.jsonl", "--judge", "lexical"], "write_rubrics asks write_criteria, and lexical@7 writes no text"),
        (["--out", "o.csv", "--judge", "vllm/x"], "--out takes a file of JSON Lines, such as with-rubrics.jsonl"),
        (["--out", "o.jsonl", "--judge", "vllm/x", "--map", "input=rubrics"], "every sample has a rubric already"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(
    options: list[str], problem: str, tmp_path: Path, evalstone: Evalstone
) -> None:
    rubrics = [{"id": "a", "input": "When?", "output": "o", **({"rubrics": "One."} if "--map" in options else {})}]
    (tmp_path / "d.jsonl").write_text(json.dumps(rubrics[0]))
    done = evalstone("rubrics", "d.jsonl", *(each for each in options if each not in ("--map", "input=rubrics")))
    assert done.returncode == 2
    assert problem in done.stderr
    assert not list(tmp_path.glob("o.*"))


def test_a_conversation_is_judged_by_what_its_user_asked() -> None:
    by = judge()
    talk = [Message(role="user", content="When?"), Message(role="assistant", content="In 1921.")]
    run = evaluate([Sample(input="When?", output="In 1921.", messages=talk)], GENERATED, judge=by, ledger=None)
    assert run["rubric"].mean == 1.0
    assert by.asked[0] == WriteCriteria(task="When?")


OTHERS = [{"description": "It says 1922.", "required": True}]
"""Other criteria than those that the judge writes."""


def rubric_run(by: Scorer, rubrics: Any = None, *, writes: Any = WRITTEN, ids: str = "abc") -> Run:
    """A run whose samples have a rubric in the data, or none. writes: the judge's; None if it fails to write one."""

    def replied(question: Question[Any]) -> Any:
        return writes if isinstance(question, WriteCriteria) else reply(question)

    frozen = {} if rubrics is None else {"rubrics": rubrics}
    rows = [sample(f"In 192{n}.", id=name, **frozen) for n, name in enumerate(ids)]
    return evaluate(rows, by, judge=ScriptedJudge(replied, name="writer"), ledger=None)


def of_rubrics(compared: Comparison) -> tuple[Note, ...]:
    """The notes without those on how few samples there are."""
    return tuple(each for each in compared.notes if each.kind != "nothing_detectable")


@pytest.mark.parametrize("frozen", [Rubric(), GENERATED, Repeated(Rubric())], ids=["plain", "generate", "repeated"])
@pytest.mark.parametrize("form", [CRITERIA, json.dumps(CRITERIA)], ids=["objects", "csv"])
def test_rubrics_that_were_frozen_are_comparable_with_those_that_the_judge_wrote(frozen: Scorer, form: Any) -> None:
    written = rubric_run(Repeated(GENERATED) if isinstance(frozen, Repeated) else GENERATED)
    kept = rubric_run(frozen, form)
    expected = note("written_in_one_run", runs=("A", "B"), samples=3, written=(3, 0), fields=("rubrics",))
    compared = compare(written, kept)
    assert of_rubrics(compared) == (expected,)
    assert compared.scorers[0].difference.estimate == 0
    assert compare(kept, written).notes[0]["written"] == (0, 3)


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (TEXTS, [{"description": TEXTS[0]}, {"description": TEXTS[1], "required": True}]),
        (TEXTS, f"- {TEXTS[0]}\n- {TEXTS[1]}"),
        (json.dumps(TEXTS), TEXTS),
        ([{"description": TEXTS[0], "required": None}], TEXTS[0]),
    ],
)
def test_the_same_criteria_are_comparable_however_they_are_written(
    one: Any, other: Any, saved: bool, tmp_path: Path
) -> None:
    runs = [rubric_run(Rubric(), form) for form in (one, other, [*TEXTS, "It is kind."])]
    if saved:
        for n, run in enumerate(runs):
            write_run(run, tmp_path / str(n))
        runs = [read_run(tmp_path / str(n)) for n in range(3)]
    assert of_rubrics(compare(*runs[:2])) == ()
    with pytest.raises(NotComparable):
        compare(runs[0], runs[2])


def gated(run: Run, baseline: Run) -> str:
    return gate(run, baseline=baseline, max_regression={"rubric": 0.5}).verdict


def test_gates_and_unpaired_comparisons_take_frozen_and_written_rubrics_alike() -> None:
    ids = "abcdefghijklmnopqrstuvwxyz"
    written, frozen = rubric_run(GENERATED, ids=ids), rubric_run(Rubric(), CRITERIA, ids=ids)
    other = rubric_run(Rubric(), OTHERS, ids=ids)
    assert [gated(*pair) for pair in ((written, frozen), (frozen, written))] == ["pass", "pass"]
    with pytest.raises(NotComparable):
        gated(written, other)
    for pair in ((written, frozen), (frozen, written)):
        assert "written_unpaired" in [each.kind for each in compare(*pair, unpaired=True).notes]
    assert "written_unpaired" not in [each.kind for each in compare(frozen, other, unpaired=True).notes]


@pytest.mark.parametrize(
    ("before", "now", "rubrics", "problem"),
    [
        (rubric_run(GENERATED), Rubric(), CRITERIA, ""),
        (rubric_run(GENERATED), Rubric(), OTHERS, "expectations_differ"),
        (rubric_run(GENERATED), Rubric(), None, "expectations_differ"),
        (rubric_run(Rubric(), CRITERIA), GENERATED, CRITERIA, ""),
        (rubric_run(Rubric(), CRITERIA), GENERATED, None, "written_during_run"),
        (rubric_run(GENERATED), GENERATED, None, ""),
    ],
)
def test_a_baseline_is_checked_before_the_run_as_far_as_the_rubrics_are_known(
    before: Run, now: Scorer, rubrics: Any, problem: str
) -> None:
    frozen = {} if rubrics is None else {"rubrics": rubrics}
    rows = [sample(f"In 192{n}.", id=name, **frozen) for n, name in enumerate("abc")]
    plan = plan_for(rows, now, judge=ScriptedJudge(reply, name="writer"))

    def kinds(check: Callable[[], object]) -> list[str]:
        try:
            check()
        except NotComparable as refused:
            return [each.kind for each in refused.mismatches]
        return []

    at_end = kinds(lambda: check_comparable(before, plan, ["rubric"], allow_mismatch=False))
    # What the judge writes is compared at the end; a gate that stops the run decides before.
    assert at_end == ([problem] if problem and problem != "written_during_run" else [])
    watched = kinds(lambda: RunGate(plan, {}, StopSignal(), baseline=before, max_regression={"rubric": 0.1}))
    assert watched == ([problem] if problem else [])


OWN_JUDGE = """
from evalstone import ScriptedJudge
from evalstone.questions import WriteCriteria

def judge(says):
    def reply(question):
        if isinstance(question, WriteCriteria):
            return {"criteria": [{"description": says, "required": "yes"}]}
        return {"verdicts": {"1": {"reason": "r", "verdict": "yes"}}}
    return ScriptedJudge(reply, name="writer")

same, other = judge("It says 1921."), judge("It says 1922.")
"""


@pytest.mark.parametrize(("writes", "code"), [("same", 0), ("other", 3)])
def test_a_watched_gate_refuses_its_verdict_if_the_judge_wrote_other_rubrics_than_for_the_baseline(
    writes: str, code: int, evalstone: Evalstone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(OWN_JUDGE)
    rows = [sample(id=str(n), input=f"When {n}?") for n in range(60)]
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command = ("run", "d.jsonl", "-s", "rubric(generate=true)", "-q")
    evalstone(*command, "--judge", "own.py:same", "--ledger", "a", "--out", "A")
    watched = ("--ledger", "b", "--sequential", "--baseline", "A", "--max-regression", "rubric=0.5", "--out", "B")
    done = evalstone(*command, "--judge", f"own.py:{writes}", *watched)
    assert done.returncode == code, done
    refused = "not comparable: " in done.stderr and "of 60 samples" in done.stderr
    assert refused == (writes == "other"), done.stderr
    if refused:
        allowed = evalstone(*command, "--judge", "own.py:other", *watched[:-1], "C", "--allow-mismatch")
        assert allowed.returncode == 0
        assert "Baseline: " in allowed.stderr


@pytest.mark.parametrize("saved", [False, True])
def test_rubrics_with_other_texts_are_not_comparable(saved: bool, tmp_path: Path) -> None:
    written, other = rubric_run(GENERATED), {"criteria": [{"description": "It says 1922.", "required": "yes"}]}
    runs = [rubric_run(Rubric(), OTHERS), rubric_run(GENERATED, OTHERS), rubric_run(GENERATED, writes=other)]
    if saved:
        for n, run in enumerate([written, *runs]):
            write_run(run, tmp_path / str(n))
        written, *runs = [read_run(tmp_path / str(n)) for n in range(4)]
    for run in runs:
        with pytest.raises(NotComparable) as refused:
            compare(written, run)
        assert [each.kind for each in refused.value.mismatches] == ["expectations_differ"]
        assert refused.value.mismatches[0]["different"] == 3
    assert of_rubrics(compare(rubric_run(GENERATED), written)) == ()


def test_a_rubric_that_the_judge_failed_to_write_differs_from_none() -> None:
    written = rubric_run(GENERATED, ids="ab")
    failed = replace(written, records=tuple(
        replace(each, outcome=Failed("no reply"), calls=()) if each.sample_id == "b" else each
        for each in written.records
    ))  # fmt: skip
    compared = compare(failed, rubric_run(Rubric(), CRITERIA, ids="ab"))
    assert [each.kind for each in compared.notes if each.severity == "warning"] == []
    # Without the calls, what was written isn't known.
    unknown = replace(written, records=tuple(replace(each, calls=()) for each in written.records))
    with pytest.raises(NotComparable):
        compare(unknown, rubric_run(Rubric(), CRITERIA, ids="ab"))
    assert compare(unknown, unknown).scorers


def test_the_function_returns_the_samples_that_the_command_writes(tmp_path: Path) -> None:
    by = judge()
    rows = [{"id": "a", "input": "When?", "reference": "1921"}, {"id": "b", "reference": "no input"}]
    done = write_rubrics([*rows, sample(id="c", rubrics=["Own."])], judge=by, ledger=None)
    assert by.asked == [WriteCriteria(task="When?", reference="1921")]
    assert [each.metadata.get("rubrics") for each in done.samples] == [CRITERIA, None, ["Own."]]
    assert (done.written, done.kept, done.without, done.errors, done.stop_reason) == (1, 1, 1, {}, "")
    write_jsonl(tmp_path / "d.jsonl", done.samples, redact=False)
    assert load(tmp_path / "d.jsonl").samples == done.samples


@pytest.mark.parametrize("source", ["jsonl", "csv", "memory"])
def test_invalid_rubrics_are_refused_with_their_line_before_anything_is_asked(source: str, tmp_path: Path) -> None:
    rows = [sample(id=name, rubrics=rubrics) for name, rubrics in (("a", '["x"]'), ("b", '["x", "X."]'))]
    data: Any = tmp_path / f"d.{source}"
    if source == "memory":
        data = rows
    elif source == "csv":
        polars.DataFrame(rows).write_csv(data)
    else:
        data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    by = judge()
    place = {"jsonl": "line 2", "csv": "line 3", "memory": "item 2"}[source]
    message = "the rubric in metadata: criteria: 'X.' is listed twice"
    with pytest.raises(DataError) as refused:
        write_rubrics(data, judge=by, ledger=None)
    assert f"{place}: {message}" in str(refused.value)
    if source != "memory":
        assert data.name in str(refused.value)
    with pytest.raises(DataError, match="sample 'b': the rubric in metadata: "):
        write_rubrics(load(data), judge=by, ledger=None)
    assert not by.asked
    checked = check(data)
    assert [(each.place, each.field, each.message) for each in checked.problems] == [(place, "rubrics", message)]
