"""Commands on runs that were kept only in the ledger: the same texts and numbers as from a results folder."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import pytest

from evalstone import Judge, JudgeAnswer, JudgeSpec, Question, Run, evaluate, read_run, score, write_run
from evalstone.datasets.stored import sample_row
from evalstone.ledger.schema import records
from evalstone.ledger.store import Ledger
from tests.cli.conftest import Evalstone
from tests.runs import Given, Harm, samples_of
from tests.serving import serving

A = TypeVar("A")
ANSWERS = ["1.0", "0.8", "0.4", "skip", "fail"] * 8
LEDGER = ("--ledger", "l.db")


@pytest.fixture
def runs(tmp_path: Path, evalstone: Evalstone) -> dict[str, Run]:
    """Two runs in the ledger l.db, by name: `first` and `second`. Folders in `res` have the same runs."""
    made: dict[str, Run] = {}
    draw = random.Random(1)
    for name, answers in (("first", ANSWERS), ("second", [*ANSWERS[1:], "1.0"])):
        metadata = [{"kind": "x" if number % 4 < 2 else "y"} for number in range(len(answers))]
        samples = samples_of(answers, question="What is \u202e<b>this</b>?", metadata=metadata)
        made[name] = evaluate(samples, [Given(), Harm()], ledger=tmp_path / "l.db", name=name)
        write_run(made[name], tmp_path / "res" / name)
        with Ledger(tmp_path / "l.db") as ledger, ledger.transaction(writing=True) as database:
            # Concurrent workers write records in any order.
            query = f"SELECT {records.names} FROM records WHERE run = :run"
            rows = [records.row(row) for row in database.execute(query, {"run": made[name].id})]
            database.execute("DELETE FROM records WHERE run = :run", {"run": made[name].id})
            database.insert_missing(records, draw.sample(rows, len(rows)))
    return made


@pytest.mark.parametrize(
    "command",
    [
        ("report", "{first}"),
        ("report", "{first}", "--html", "-"),
        ("report", "{first}", "--markdown", "-"),
        ("report", "{first}", "--csv", "-"),
        ("report", "{first}", "--junit", "-"),
        ("report", "{first}", "--json", "--slice-by", "kind"),
        ("report", "{first}", "--labels", "given=labels.csv"),
        ("gate", "{first}", "--min", "given=0.2", "--html", "-"),
        ("annotate", "{first}", "--count", "1"),
    ],
)
def test_a_command_says_of_a_run_in_the_ledger_what_it_says_of_its_folder(
    runs: dict[str, Run], tmp_path: Path, evalstone: Evalstone, command: tuple[str, ...]
) -> None:
    (tmp_path / "labels.csv").write_text("id,label\n" + "".join(f"s{n},{n % 2}\n" for n in (1, 2, 3, 6, 7, 8)))
    said: list[str] = []
    for place in (runs["first"].id, "res/first"):
        done = evalstone(*(word.format(first=place) for word in command), *LEDGER, typed="q\n")
        assert (done.returncode, done.stderr) == (0 if command[0] == "annotate" else 5, ""), done
        (tmp_path / "new.csv").unlink(missing_ok=True)
        said.append(done.stdout.replace("res/first", runs["first"].id))
    assert said[0] == said[1]
    assert "this" in said[0] or "--junit" in command or "--json" in command or command[0] == "gate"


def test_runs_of_the_ledger_are_compared_with_their_texts(runs: dict[str, Run], evalstone: Evalstone) -> None:
    options = ("--allow-mismatch", "--slice-by", "kind", "--html", "-", *LEDGER)
    kept, folders = (
        evalstone("compare", *names, *options) for names in (("first", "second"), ("res/first", "res/second"))
    )
    assert kept.returncode == 0, kept.stderr
    assert kept.stdout == folders.stdout.replace("res/", "")
    assert "this" in kept.stdout


def test_a_run_read_from_the_ledger_equals_the_one_from_its_folder(runs: dict[str, Run], tmp_path: Path) -> None:
    for name, run in runs.items():
        kept, folder = read_run(run.id, ledger=tmp_path / "l.db"), read_run(tmp_path / "res" / name)
        assert list(kept.records) == list(folder.records)
        assert list(map(sample_row, kept.samples or ())) == list(map(sample_row, folder.samples or ()))
        assert kept.to_dict() == folder.to_dict()
        assert kept.to_dicts(wide=True) == folder.to_dicts(wide=True)


def test_a_run_whose_samples_are_not_stored_has_no_texts(runs: dict[str, Run], tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db") as ledger, ledger.transaction(writing=True) as connection:
        connection.execute("DELETE FROM items WHERE dataset = :dataset", {"dataset": runs["first"].dataset_version})
    assert read_run("first", ledger=tmp_path / "l.db").samples is None
    assert read_run("second", ledger=tmp_path / "l.db").samples is not None


def test_a_score_on_the_command_line_is_paid_for_once_and_serves_a_run(tmp_path: Path, evalstone: Evalstone) -> None:
    sample: dict[str, Any] = {"output": "Paris is in France.", "context": ["Paris is in France."]}
    (tmp_path / "data.jsonl").write_text(json.dumps(sample) + "\n")
    texts = ("--output", sample["output"], "--context", *sample["context"])
    with serving() as server:
        judge = ("-s", "faithfulness", "-j", "openai/gpt-5.1", "--base-url", server.url)
        for _ in range(2):
            done = evalstone("score", *texts, *judge, env={"OPENAI_API_KEY": "sk-test"})
            assert done.returncode == 0, done.stderr
        asked = len(server.requests)
        assert evalstone("run", "data.jsonl", *judge, env={"OPENAI_API_KEY": "sk-test"}).returncode == 0
        assert len(server.requests) == asked == 2
    assert (tmp_path / ".evalstone" / "ledger.db").exists()


class Counting(Judge):
    """Answers with no claims, and counts."""

    asked: ClassVar[list[str]] = []

    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        self.asked.append(question.kind)
        return JudgeAnswer(value=cast(A, ()), judge=self.identity, reply='{"claims": []}')


def test_an_answer_that_was_paid_for_in_python_is_in_the_ledger_that_evaluate_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        score("faithfulness", output="a", context=["a"], judge=Counting())
    evaluate([{"output": "a", "context": ["a"]}], "faithfulness", judge=Counting())
    assert Counting.asked == ["list_claims"]


@pytest.mark.parametrize(("scorer", "judge"), [("contains", Counting()), ("faithfulness", "lexical")])
def test_score_opens_no_ledger_that_would_have_nothing_to_store(
    scorer: str, judge: JudgeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    score(scorer, output="a", reference="a", context=["a"], judge=judge)
    assert [*tmp_path.iterdir()] == []
