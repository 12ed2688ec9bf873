"""Runs in blocks: the same results as of one process, whoever scores the blocks, and in whatever order."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

import evalstone
from evalstone import ConfigError, DataError, Failed, ModelJudge, Record, Run, Sample, Score, Scorer, evaluate
from evalstone._core import sync
from evalstone._core.guards import is_list, is_object
from evalstone._core.phases import Phase, watch
from evalstone._core.storage import Location
from evalstone.datasets.parts import Part
from evalstone.datasets.reading import Reading
from evalstone.errors import RunStopped
from evalstone.judges import Cascade, LexicalJudge, LoggingJudge, Panel
from evalstone.models.model import LanguageModel
from evalstone.results.block_plan import BlockPlan
from evalstone.results.record_tables import KEEPS, Keep, record_tables
from evalstone.scale import ScoreBatches, engines, merge, runs, score_shard
from evalstone.scale.runs import missing_blocks, planned, run_on, run_shard, scoring_blocks, shard_of, surveying
from evalstone.scale.scoring import OpenScoring, Scored, Scoring
from evalstone.scale.survey import PartSurvey
from evalstone.scorers import AnswerCorrectness, ContextRecall, FactualCorrectness
from evalstone.targets import Answer, ModelTarget
from evalstone.types import Note, note
from tests.aligned import aligned_checker
from tests.schemas import problems
from tests.serving import completion, obliging, serving
from tests.workbooks import write_xlsx

pa = pytest.importorskip("pyarrow")
ROOT = Path(__file__).parents[2]

SCORERS = ("exact_match", "answer_correctness", "context_recall")


def written(folder: Path, rows: int = 60, name: str = "d.jsonl", **more: Any) -> Path:
    """A file of samples: some are equal and have no ID, some lack a field, some are in another language."""
    answers = ("Paris is the capital of France.", "Berlin", "La réponse est la ville de Paris, en France.", "")
    lines = [
        {"output": answers[n % 4], "reference": answers[n % 3], "input": "Which city?", **more}
        | ({"id": f"q{n}"} if n % 5 else {})
        | ({} if n % 7 else {"context": ["Paris is a city."], "weight": None})
        for n in range(rows)
    ]
    path = folder / name
    path.write_text("".join(f"{json.dumps({k: v for k, v in line.items() if v is not None})}\n" for line in lines))
    return path


def told(run: Run) -> dict[str, Any]:
    """All that a run says, without times, its ID, and which of several equal questions was the one that was asked."""
    data = {name: value for name, value in run.to_dict().items() if name not in ("id", "started", "seconds")}
    for line in data["scorers"]:
        line["asked"] += line.pop("shared")
    data["records"] = [plain(record.to_dict()) for record in run.records]
    return data


def plain(data: Any) -> Any:
    if is_object(data):
        return {name: plain(value) for name, value in data.items() if name not in ("seconds", "source")}
    return [plain(item) for item in data] if is_list(data) else data


def in_shards(data: Path, out: Path, shards: int, scorers: Any = SCORERS, **more: Any) -> Run:
    scoring = Scoring(scorers=scorers, **{name: more.pop(name) for name in ("judge",) if name in more})
    for number in reversed(range(1, shards + 1)):
        run_shard(str(data), scoring, Location.of(out), number, shards, **more)
    return merge(out)


@pytest.mark.parametrize("shards", [1, 4])
def test_shards_give_what_one_process_gives(tmp_path: Path, shards: int) -> None:
    data = written(tmp_path)
    one = evaluate(data, SCORERS, ledger=None)
    run = in_shards(data, tmp_path / "out", shards, block_rows=7)
    assert told(run) == told(one)
    assert any(note.kind == "not_in_english" for note in run.cautions)
    read = evalstone.read_run(tmp_path / "out")
    assert read == run
    assert [*(read.samples or ())] == [*evalstone.load(data).samples]
    comparison = evalstone.compare(one, read)
    assert [scorer.difference.estimate for scorer in comparison.scorers if scorer.difference] == [0, 0, 0]


def test_what_judges_are_aligned_with_is_in_a_run_in_blocks(tmp_path: Path) -> None:
    data = written(tmp_path, context=["It opens at 9."])
    with serving(obliging) as server:
        judge = aligned_checker(ModelJudge("vllm/m", base_url=server.url), evalstone.load(data).samples[0])
        run = in_shards(data, tmp_path / "out", 2, "relevancy_check", judge=judge, block_rows=30)
    alignment = judge.alignment
    assert run.asking == evalstone.read_run(tmp_path / "out").asking
    assert run.asking.alignments == {alignment.hash: alignment.chosen}


class Noting(LexicalJudge):
    """A judge that says two things of its own, and one of samples."""

    name: str

    @property
    def identity(self) -> str:
        return f"noting-{self.name}"

    def cautions(self, samples: Iterable[Sample]) -> tuple[Note, ...]:
        texts = ("The same of all.", f"Said by {self.name}.", "Said by b.")
        return (*super().cautions(samples), *(note("of_judge", "warning", text=text) for text in texts))


def test_notes_of_judges_are_those_of_one_process(tmp_path: Path) -> None:
    french = "La réponse est la ville de Paris, qui est en France."
    lines = [{"output": french, "input": "Où?"} | ({"reference": french} if n < 9 else {}) for n in range(60)]
    data = tmp_path / "d.jsonl"
    data.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    scorers: list[Scorer] = [AnswerCorrectness(judge=Noting(name="b")), FactualCorrectness(judge=Noting(name="a"))]
    scorers.append(ContextRecall(judge=Noting(name="d")))  # no sample has what it needs
    one = evaluate(data, scorers, ledger=None)
    run = in_shards(data, tmp_path / "out", 2, scorers, block_rows=7)
    assert run.cautions == one.cautions
    assert one.cautions[0] == note("not_in_english", "warning", samples=60, of=60)
    texts = ["The same of all.", "Said by b.", "Said by a."]
    assert [each["text"] for each in one.cautions[1:]] == texts
    assert in_shards(data, tmp_path / "code", 2, "exact_match", judge=Noting(name="c")).cautions == ()


class Counting(LexicalJudge):
    """A judge that doesn't suit samples with a short output."""

    shortest: int

    @property
    def identity(self) -> str:
        return f"counting-{self.shortest}"

    def cautions(self, samples: Iterable[Sample]) -> tuple[Note, ...]:
        short = [len(sample.output or "") < self.shortest for sample in samples]
        return (note("not_in_english", "warning", samples=sum(short), of=len(short)),) if any(short) else ()


@pytest.mark.parametrize("way", ["one process", "shards", "engine"])
@pytest.mark.parametrize("kind", ["panel", "cascade", "logged panel of a cascade"])
def test_notes_of_members_reach_the_run(tmp_path: Path, way: str, kind: str) -> None:
    data = tmp_path / "d.jsonl"
    lines = [
        {"output": "Paris. " * (1 + n // 15), "reference": "Paris is a city.", "input": "Where?"} for n in range(60)
    ]
    data.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    one, other = Counting(shortest=10), Counting(shortest=20)
    judge = {
        "panel": Panel(one, other),
        "cascade": Cascade(one, other, threshold=0.1),
        "logged panel of a cascade": LoggingJudge(Panel(Cascade(one, other, threshold=0.1), one), tmp_path / "log"),
    }[kind]
    if way == "one process":
        run = evaluate(data, "answer_correctness", judge=judge, ledger=None)
    elif way == "shards":
        run = in_shards(data, tmp_path / "out", 2, "answer_correctness", judge=judge, block_rows=7)
    else:
        engine, scoring = Elsewhere(tmp_path), Scoring(scorers="answer_correctness", judge=judge)
        run = run_on(engine, str(data), scoring, Location.of(tmp_path / "out"), block_rows=7)
    assert run.cautions == tuple(note("not_in_english", "warning", samples=n, of=60) for n in (15, 30))
    assert not {*run.cautions} - {*run.notes}


async def answering(*, input: str, trial: int) -> Answer:
    return Answer(output=f"{input[-1]} in trial {trial}", context=["Trial 1 is right."], cost=0.5)


@pytest.mark.parametrize("way", ["shards", "engine"])
def test_answers_of_a_target_are_scored_in_blocks_once_they_are_samples(tmp_path: Path, way: str) -> None:
    rows = [{"id": f"q{n}", "input": f"Say {n % 10}", "reference": f"{n % 10} in trial 1"} for n in range(20)]
    answered = evaluate(rows, "exact_match", target=answering, trials=2, ledger=None)
    evalstone.write_run(answered, tmp_path / "answers")
    data = tmp_path / "answers" / "samples.jsonl"
    if way == "shards":
        run = in_shards(data, tmp_path / "out", 2, SCORERS, block_rows=7)
    else:
        engine, scoring = Elsewhere(tmp_path), Scoring(scorers=SCORERS)
        run = run_on(engine, str(data), scoring, Location.of(tmp_path / "out"), block_rows=7)
    assert told(run) == told(evaluate(data, SCORERS, ledger=None))
    assert (run["exact_match"].mean, run["exact_match"].interval) == (0.5, answered["exact_match"].interval)
    assert [record.group for record in run.records[:6]] == ["q0"] * 6
    assert {sample.metadata["target"]["cost"] for sample in run.samples or ()} == {0.5}


def test_judges_of_the_answers_family_are_noted_as_in_one_process(tmp_path: Path) -> None:
    models = ("gpt-4o", "claude-3", "other")
    lines = [{"output": f"It is {n}.", "context": ["It is 1."], "model": models[n % 3]} for n in range(20)]
    data = tmp_path / "d.jsonl"
    data.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with serving(lambda asked, n: obliging(asked, n) if "response_format" in asked else completion("Yes.")) as server:
        judge = f"panel(vllm/claude-4({server.url}), lexical, vllm/gpt-5({server.url}))"
        one = evaluate(data, "fact_check", judge=judge, ledger=None)
        run = in_shards(data, tmp_path / "out", 2, "fact_check", judge=judge, block_rows=7)
        logged = LoggingJudge(ModelJudge("vllm/gpt-5", base_url=server.url), tmp_path / "log.jsonl")
        (alone,) = evaluate(data, "fact_check", judge=logged, ledger=None).cautions
        target = evaluate(
            [{"input": "?", "context": ["x"], "id": n} for n in "ab"],
            "fact_check",
            judge=f"vllm/gpt-5({server.url})",
            target=ModelTarget(model=LanguageModel("vllm/gpt-oss-20b", base_url=server.url)),
            ledger=None,
        )
    assert [(each["family"], each["samples"], each["of"]) for each in one.cautions if each.kind == "same_family"] == [
        ("GPT", 7, 20),
        ("Claude", 7, 20),
    ]
    assert run.cautions == one.cautions
    assert (alone["judge"], alone["samples"]) == ("vllm/gpt-5", 7)
    assert [(each.kind, each["samples"], each["of"]) for each in target.cautions] == [("same_family", 2, 2)]


@pytest.mark.parametrize("keep", KEEPS)
def test_what_is_kept_changes_no_score(tmp_path: Path, keep: Keep) -> None:
    run = in_shards(written(tmp_path), tmp_path / "out", 2, keep=keep)
    one = evaluate(written(tmp_path), SCORERS, ledger=None)
    assert [(line.interval, line.histogram, line.asked + line.shared) for line in run.summary] == [
        (line.interval, line.histogram, line.asked + line.shared) for line in one.summary
    ]
    scored = next(record for record in run.records if isinstance(record.outcome, Score) and "answer" in record.scorer)
    assert (bool(scored.calls), bool(scored.evidence), bool(scored.reason)) == {
        "all": (True, True, True),
        "evidence": (False, True, True),
        "scores": (False, False, False),
    }[keep]
    skipped = next(record for record in run.records if record.value is None)
    assert skipped.reason


def test_several_files_and_groups_give_what_one_process_gives(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("b", "a"):
        written(tmp_path / "data", 30, f"{name}.jsonl", group=name)
        file = tmp_path / "data" / f"{name}.jsonl"
        file.write_text(file.read_text().replace('"id": "q', f'"id": "{name}'))
    pattern = tmp_path / "data" / "*.jsonl"
    one = evaluate(str(pattern), "exact_match", ledger=None)
    run = in_shards(pattern, tmp_path / "out", 3, "exact_match")
    assert told(run) == told(one)
    assert run.summary[0].interval is not None
    assert run.summary[0].interval.groups == 2


def test_a_finished_block_is_not_scored_again(tmp_path: Path) -> None:
    data, out = written(tmp_path), tmp_path / "out"
    first = score_shard(data, "exact_match", 1, 2, out=out)
    assert first.scored == first.blocks > 0
    again = score_shard(data, "exact_match", 1, 2, out=out)
    assert (again.scored, again.blocks) == (0, first.blocks)
    plan = BlockPlan.read(Location.of(out))
    assert plan is not None
    assert len(missing_blocks(Location.of(out), plan)) == len(plan.blocks) - first.blocks
    with pytest.raises(ConfigError, match=r"out lacks \d+ blocks? of \d+ \(.*run the commands that score them again"):
        merge(out)


class Counted(Scorer):
    """Counts the samples that it scored."""

    name = "counted"
    seen: ClassVar[list[str]] = []

    def score(self, *, output: str) -> Score:
        self.seen.append(output)
        return Score(1.0)


def test_a_block_that_another_process_wrote_meanwhile_is_not_scored_again(tmp_path: Path) -> None:
    out = Location.of(tmp_path / "out")
    plan = planned(str(written(tmp_path)), scoring := Scoring(scorers=Counted()), out)
    for expected in (True, False):  # as a worker that is lost before its result arrives, and the one after it
        with scoring_blocks(scoring, out, plan) as score:
            assert score(plan.blocks[0]) == (60, expected)
    assert len(Counted.seen) == 45  # the others have no output


def test_records_and_calls_are_of_one_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, outs, whole = written(tmp_path), [tmp_path / "a", tmp_path / "b"], OpenScoring.score
    score_shard(data, SCORERS[1], 1, 1, out=outs[0])

    def meanwhile(*given: Any) -> Scored:
        """The first process writes while this one scores."""
        for kind in ("blocks", "calls"):
            shutil.copytree(outs[0] / kind, outs[1] / kind, dirs_exist_ok=True)
        return whole(*given)

    with monkeypatch.context() as patched:
        patched.setattr(OpenScoring, "score", meanwhile)
        assert score_shard(data, SCORERS[1], 1, 1, out=outs[1]).scored == 0
    for kind in ("blocks", "calls"):
        for file in (outs[0] / kind).iterdir():
            assert (outs[1] / kind / file.name).read_bytes() == file.read_bytes()
    merge(outs[1])
    # Two processes write at the same moment.
    score_shard(data, SCORERS[1], 1, 1, out=tmp_path / "c")
    first = sorted((tmp_path / "c" / "calls").iterdir())[0]
    shutil.copy(first, outs[1] / "calls")
    message = (
        r"b/calls/\w+-000000\.parquet isn't of the same attempt at the block as .*; delete both, and score it again"
    )
    with pytest.raises(DataError, match=message):
        next(iter(evalstone.read_run(outs[1]).records))
    with pytest.raises(DataError, match=message):
        merge(outs[1])


GPT = ModelJudge("openai/gpt-5.1", api_key="k")


@pytest.mark.parametrize(
    ("scorers", "settings", "message"),
    [
        ("rouge_l", {}, "by the scorers exact_match@1, answer_correctness(…)@1, not rouge_l@2"),
        (
            SCORERS[1::-1],
            {},
            "by the scorers exact_match@1, answer_correctness(…)@1, not answer_correctness(…)@1, exact",
        ),
        (["exact_match", AnswerCorrectness(judge=GPT)], {}, "with other prompts, or other judges of its scorers"),
        (SCORERS[:2], {"judge": GPT}, "with the judge lexical@7, not openai/gpt-5.1"),
        (SCORERS[:2], {"keep_reasoning": True}, "with keep_reasoning=False"),
        (SCORERS[:2], {"keep": "scores"}, 'with keep="all", not keep="scores"'),
        (SCORERS[:2], {"map": {"output": "reference"}}, "without map"),
        (SCORERS[:2], {"split": {"context": ";"}}, "without split"),
        (SCORERS[:2], {"encoding": "cp1252"}, "without encoding"),
    ],
)
def test_another_run_does_not_enter_the_folder(
    tmp_path: Path, scorers: Any, settings: dict[str, Any], message: str
) -> None:
    data, out = written(tmp_path), tmp_path / "out"
    score_shard(data, SCORERS[:2], 1, 2, out=out)
    before = (out / "plan.json").read_bytes()
    assert problems(json.loads(before)) == []
    data.write_text("{")  # it is refused before the data are read
    with pytest.raises(ConfigError) as raised:
        score_shard(data, scorers, 2, 2, out=out, **settings)
    said = re.sub(r"\([0-9a-f]{8}\)", "(…)", str(raised.value))
    assert f"out has the blocks of another run: {message}" in said
    assert said.endswith("; run it as before, name another folder, or remove this one")
    assert (out / "plan.json").read_bytes() == before


def test_other_data_do_not_enter_the_folder(tmp_path: Path) -> None:
    data, out = written(tmp_path), tmp_path / "out"
    score_shard(data, "exact_match", 1, 2, out=out)
    os.utime(data, (1, 1))  # the same samples
    score_shard(data, "exact_match", 2, 2, out=out)
    written(tmp_path, 61)
    with pytest.raises(
        ConfigError, match=r"another run: of the dataset d\.jsonl, version [0-9a-f]+, not [0-9a-f]+; run"
    ):
        score_shard(data, "exact_match", 2, 2, out=out)
    written(tmp_path)
    data.write_text(f"{data.read_text()}\n\n")  # the same samples, in other ranges of the file
    with pytest.raises(ConfigError, match="another run: in other blocks of the same samples; run"):
        score_shard(data, "exact_match", 2, 2, out=out)


def test_another_version_does_not_enter_the_folder(tmp_path: Path) -> None:
    data, out = written(tmp_path), tmp_path / "out"
    score_shard(data, "exact_match", 1, 2, out=out)
    plan = BlockPlan.read(Location.of(out))
    assert plan is not None
    replace(plan, evalstone="0.0.1").write(Location.of(out))
    with pytest.raises(ConfigError, match=r"another run: by evalstone 0\.0\.1, and this is .*, which may score diff"):
        score_shard(data, "exact_match", 2, 2, out=out)


def leaves(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of values in data that have no other ones in them."""
    inner = data.items() if is_object(data) else enumerate(data) if is_list(data) else ()
    found = [path for key, value in inner for path in leaves(value, (*at, key))]
    yield from found or [at]


def test_a_plan_that_was_edited_is_refused_by_all_that_read_it(tmp_path: Path) -> None:
    text = "".join('{"output": "a", "reference": "a", "context": ["b;c"], "more": "d"}\n' for _ in range(3))
    data, out = tmp_path / "d.jsonl", tmp_path / "out"
    data.write_text(text)
    reading = Reading(map={"context": ["context", "more"]}, split={"context": ";"}, encoding="utf-8")
    run = told(in_shards(data, out, 2, "exact_match", reading=reading, block_rows=3))
    written, paths = (out / "plan.json").read_text(), [*leaves(json.loads((out / "plan.json").read_text()))]
    named = {str(key) for path in paths for key in path}
    assert named >= {"ids", "map", "split", "encoding", "sheet", "changed", "stop", "asked", "checksum", "notes"}

    def score() -> object:
        how: dict[str, Any] = {"map": reading.map, "split": reading.split, "encoding": reading.encoding}
        return score_shard(data, "exact_match", 1, 2, out=out, **how)

    readers: list[Callable[[], object]] = [lambda: merge(out), lambda: evalstone.read_run(out), score]
    for *path, last in paths:
        edited = json.loads(written)
        at = edited
        for key in path:
            at = at[key]
        before = at[last]
        at[last] = (
            [["more"], {"more": 1}][is_object(before)]
            if is_list(before) or is_object(before)
            else not before
            if isinstance(before, bool)
            else before + 1
            if isinstance(before, int)
            else f"{before}1"
        )
        (out / "plan.json").write_text(json.dumps(edited))
        way = "has the format" if last == "format" else "its .* checksum; restore it, or delete it and r"
        for read in readers:
            with pytest.raises(DataError, match=rf"plan\.json .*({way})"):
                read()
    (out / "plan.json").write_text(written[:-9])
    for read in readers:
        with pytest.raises(DataError, match=r"plan\.json isn't a plan: .*; restore it, or delete it and run"):
            read()
    (out / "plan.json").unlink()
    assert cast("Any", score()).scored == 0
    assert told(merge(out)) == run


def sheets(folder: Path) -> Path:
    rows = [["output", "reference", "context"], *([f"Paris {n}", f"Paris {n % 3}", "a;b"] for n in range(9))]
    return write_xlsx(folder / "d.xlsx", {"Notes": [["x"], ["y"]], "Answers": rows})


def cells(folder: Path) -> Path:
    lines = [f"Zürich {n},Zürich {n % 3},It’s €{n}; in Zürich" for n in range(9)]
    (folder / "d.csv").write_bytes("\n".join(["output,reference,context", *lines]).encode("cp1252"))
    return folder / "d.csv"


def misread(folder: Path) -> Path:
    (folder / "d.csv").write_text(cells(folder).read_text(encoding="cp1252"), encoding="utf-8")
    return folder / "d.csv"


def coded(folder: Path) -> Path:
    lines = [json.dumps({"output": f"Zürich {n}", "reference": "Zürich 1"}, ensure_ascii=False) for n in range(900)]
    (folder / "d.jsonl").write_bytes("\n".join(lines).encode("cp1252"))
    return folder / "d.jsonl"


@pytest.mark.parametrize(
    ("write", "how", "refused"),
    [
        (cells, {"encoding": "cp1252", "split": {"context": ";"}}, {"encoding": "cp1252"}),
        (misread, {"encoding": "cp1252", "split": {"context": ";"}}, {"encoding": "cp1252"}),
        (coded, {"encoding": "windows-1252"}, {"encoding": "latin-1"}),
        (sheets, {"sheet": "Answers", "split": {"context": ";"}}, {"sheet": "Answers"}),
        (written, {"map": {"reference": "output", "context": ["reference", "input"]}}, {"map": {"context": "input"}}),
    ],
)
def test_how_files_are_read_is_a_part_of_the_plan(
    tmp_path: Path, write: Callable[[Path], Path], how: dict[str, Any], refused: dict[str, Any]
) -> None:
    scorers = ("exact_match", "context_recall")
    data, out = write(tmp_path), tmp_path / "out"
    dataset = evalstone.load(data, **how)
    for shard in (2, 1):
        score_shard(data, scorers, shard, 2, out=out, **how)
    run = merge(out)
    assert told(run) == told(evaluate(dataset, scorers, ledger=None))
    notes = json.loads((out / "plan.json").read_text())["notes"]
    assert notes == [*dataset.notes]
    assert any("is UTF-8" in line for line in notes) == (write is misread)
    read = evalstone.read_run(out)
    assert [*(read.samples or ())] == [*(run.samples or ())] == [*dataset.samples]
    other = next(iter(how.keys() - refused.keys()), next(iter(how)))
    with pytest.raises(
        ConfigError, match=rf"out has the blocks of another run: with {other}=.*; run it as before, nam"
    ):
        score_shard(data, scorers, 1, 2, out=out, **refused)


def test_a_damaged_block_says_how_to_score_it_again(tmp_path: Path) -> None:
    data, out = written(tmp_path), tmp_path / "out"
    before = told(in_shards(data, out, 2, "exact_match"))
    for kind in ("blocks", "calls"):
        name = sorted((out / "blocks").iterdir())[1].name
        damaged = out / kind / name
        damaged.write_bytes(damaged.read_bytes()[:-9])
        with pytest.raises(
            DataError, match=f"{name} cannot be read .*If it is damaged, delete {name} in blocks and ca"
        ):
            merge(out)
        for folder in ("blocks", "calls"):
            (out / folder / name).unlink()
        assert sum(score_shard(data, "exact_match", shard, 2, out=out).scored for shard in (1, 2)) == 1
        assert told(merge(out)) == before


def test_a_run_that_was_planned_meanwhile_is_kept(tmp_path: Path) -> None:
    data, out = written(tmp_path), Location.of(tmp_path / "out")

    def surveys(parts: Sequence[Part]) -> Iterator[PartSurvey]:
        planned(str(data), Scoring(scorers="exact_match"), out, keep="evidence")
        with surveying(scoring) as survey_part:
            yield from map(survey_part, parts)

    scoring = Scoring(scorers="exact_match")
    with pytest.raises(ConfigError, match='another run: with keep="evidence", not keep="all"'):
        planned(str(data), scoring, out, survey_parts=surveys)


@pytest.mark.parametrize(
    ("scorers", "keep", "version", "message"),
    [
        (
            "exact_match",
            "scores",
            "",
            r"3 blocks of \d+ \(such as .*-000001\.parquet\) have what is kept with keep=.scores., not keep=.all.; del",
        ),
        (
            "rouge_l",
            "all",
            "",
            r"blocks of another run, with other data, scorers, prompts, or judges than its plan: delete \w+-\* in",
        ),
        (
            "exact_match",
            "all",
            "0.0.1",
            r"3 blocks of \d+ \(such as .*-000001\.parquet\) were scored by evalstone 0\.0\.1, not .*; delete",
        ),
    ],
)
def test_processes_that_planned_at_the_same_moment_are_not_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scorers: str, keep: Keep, version: str, message: str
) -> None:
    data, out = written(tmp_path), Location.of(tmp_path / "out")

    def plan_of(scoring: Scoring, keep: Keep) -> BlockPlan:
        (tmp_path / "out" / "plan.json").unlink(missing_ok=True)  # the other one hasn't seen it
        return planned(str(data), scoring, out, keep=keep, workers=2)

    def scored(scoring: Scoring, plan: BlockPlan, start: int, stop: int | None) -> None:
        plan.write(out)
        with scoring_blocks(scoring, out, plan) as score:
            for block in plan.blocks[start:stop]:
                with monkeypatch.context() as patched:
                    if start == 1 and version:
                        patched.setattr(runs, "installed_version", lambda: version)
                    score(block)

    theirs, ours = Scoring(scorers=scorers), Scoring(scorers="exact_match")
    their_plan, plan = plan_of(theirs, keep), plan_of(ours, "all")
    scored(theirs, their_plan, 1, 4)
    scored(ours, plan, 0, 1)
    scored(ours, plan, 4, None)
    with pytest.raises(ConfigError, match=message):
        merge(tmp_path / "out")
    assert not (tmp_path / "out" / "summary.json").exists()


@pytest.mark.parametrize("has_plan", [True, False])
def test_no_sample_is_scored_beside_blocks_of_another_run(tmp_path: Path, has_plan: bool) -> None:
    data, out = written(tmp_path), tmp_path / "out"
    score_shard(data, "exact_match", 1, 2, out=out)
    own = next((out / "blocks").iterdir())
    (out / "blocks" / "0123-000001.parquet").write_bytes(own.read_bytes())
    if not has_plan:
        (out / "plan.json").unlink()
    before = sorted((out / "blocks").iterdir())
    with pytest.raises(ConfigError, match=r"blocks of another run, .* delete 0123-\* in blocks and calls, and run"):
        score_shard(data, "exact_match", 2, 2, out=out)
    assert sorted((out / "blocks").iterdir()) == before
    assert (out / "plan.json").exists() == has_plan


@pytest.mark.parametrize("below", [".", "a/b"])
def test_a_file_as_the_results_folder_is_refused_before_anything_is_read(tmp_path: Path, below: str) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(ConfigError, match=r"out(/a/b)? can't be the results folder of a run: .*out is a file; name"):
        score_shard(tmp_path / "absent.jsonl", "exact_match", 1, 1, out=tmp_path / "out" / below)


def test_a_block_that_lacks_records_is_neither_written_nor_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out, whole = written(tmp_path), tmp_path / "out", OpenScoring.score

    def short(*given: Any) -> Scored:
        scored = whole(*given)
        return replace(scored, records=scored.records[:-1])

    def without_last(found: Sequence[Record], *rest: Any, **more: Any) -> Any:
        return record_tables(found[:-1], *rest, **more)

    with monkeypatch.context() as patched:
        patched.setattr(OpenScoring, "score", short)
        with pytest.raises(DataError, match=r"^block 0 has \d+ records, not \d+, and isn't written$"):
            score_shard(data, SCORERS[:2], 1, 1, out=out)
    assert not (out / "blocks").exists()
    with monkeypatch.context() as patched:
        patched.setattr(runs, "record_tables", without_last)
        score_shard(data, SCORERS[:2], 1, 1, out=out)
    message = (
        r"-000000\.parquet has \d+ records of answer_correctness.*, and \d+ samples; delete it, and score it again"
    )
    with pytest.raises(DataError, match=message):
        merge(out)
    assert not (out / "summary.json").exists()


@pytest.mark.parametrize("change", [{"scorers": "rouge_l"}, {"judge": GPT}])
def test_a_worker_with_other_code_scores_nothing(tmp_path: Path, change: dict[str, Any]) -> None:
    data, out = written(tmp_path), Location.of(tmp_path / "out")
    plan = planned(str(data), scoring := Scoring(scorers="exact_match"), out)
    with pytest.raises(
        ConfigError, match=r"was planned .*: install the same evalstone and the same code of your own everywhere"
    ):
        scoring_blocks(replace(scoring, **change), out, plan).__enter__()


class Elsewhere:
    """An engine whose workers run in another folder."""

    name, workers = "elsewhere", 1

    def __init__(self, folder: Path, _spec: str = "") -> None:
        self._folder = folder

    def __enter__(self) -> Elsewhere:
        return self

    def __exit__(self, *error: object) -> None: ...

    def check_sendable(self, value: object, what: str) -> None: ...

    def map(self, open_worker: Any, items: Sequence[Any], *, ordered: bool) -> Iterator[Any]:
        sent = pickle.dumps((open_worker, items))
        with contextlib.chdir(self._folder):
            open_worker, items = pickle.loads(sent)
            with open_worker() as work:
                results = [*map(work, items)]
        yield from results


@pytest.mark.parametrize("name", ["d.jsonl", "*.jsonl"])
def test_workers_may_run_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    written(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    run = run_on(Elsewhere(tmp_path / "elsewhere"), name, Scoring(scorers="exact_match"), Location.of("out"))
    assert told(run) == told(evaluate(name, "exact_match", ledger=None))
    assert not [*(tmp_path / "elsewhere").iterdir()]


def test_evaluate_reads_data_alike_on_an_engine_and_in_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = tmp_path / "d.csv", tmp_path / "out"
    data.write_text("Antwort,Belege\nÜber Köln,Köln|Es ist über 2000 Jahre alt.\n", encoding="cp1252")
    how: dict[str, Any] = {
        "map": {"output": "Antwort", "context": ["Belege"]},
        "split": {"context": "|"},
        "encoding": "cp1252",
    }
    monkeypatch.setattr(engines, "parse_engine", partial(Elsewhere, tmp_path))
    one = evaluate(data, "faithfulness", ledger=None, **how)
    run = evaluate(data, "faithfulness", ledger=None, engine="elsewhere", out=out, **how)
    assert told(run) == told(one)
    assert evalstone.dry_run(data, "faithfulness", ledger=None, **how).samples == 1
    read = [(sample.output, sample.context) for sample in run.samples or ()]
    assert read == [("Über Köln", ("Köln", "Es ist über 2000 Jahre alt."))]
    plan = BlockPlan.read(Location.of(out))
    assert plan is not None
    assert plan.reading == Reading(**how)
    write_xlsx(tmp_path / "d.xlsx", {"one": [["output"], ["a"]], "two": [["output"], ["b"]]})
    for more in ({}, {"engine": "elsewhere", "out": tmp_path / "of-a-sheet"}):
        found = evaluate(tmp_path / "d.xlsx", Own(), ledger=None, sheet="two", **cast("Any", more))
        assert [sample.output for sample in found.samples or ()] == ["b"]
    with pytest.raises(ConfigError, match="encoding is for files"):
        evaluate([{"output": "a"}], Own(), ledger=None, encoding="cp1252")
    with pytest.raises(ConfigError, match="unknown sample field 'answer'"):
        evaluate(data, "faithfulness", ledger=None, map={"answer": "Antwort"}, engine="elsewhere", out=out)


def test_a_worker_that_does_not_see_the_plan_scores_nothing(tmp_path: Path) -> None:
    data, out = written(tmp_path), Location.of(tmp_path / "out")
    plan = planned(str(data), scoring := Scoring(scorers="exact_match"), out)
    other = Location.of(tmp_path / "other")
    message = r"other isn't the results folder of the run in the process that scores its blocks: plan\.json is {}; name"
    with pytest.raises(ConfigError, match=message.format("missing")):
        scoring_blocks(scoring, other, plan).__enter__()
    planned(str(data), scoring, other, workers=2)
    with pytest.raises(ConfigError, match=message.format("of another run")):
        scoring_blocks(scoring, other, plan).__enter__()


def test_samples_are_found_from_another_folder_unless_they_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    monkeypatch.chdir(tmp_path)
    score_shard("d.jsonl", "exact_match", 1, 1, out="out")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    merge("../out")
    run = evalstone.read_run("../out")
    assert [sample.id for sample in run.samples or ()][1] == "q1"
    # Another shard may name the file by another path.
    scored = sorted((tmp_path / "out" / "blocks").iterdir())
    score_shard("../d.jsonl", "exact_match", 1, 1, out="../out")
    assert sorted((tmp_path / "out" / "blocks").iterdir()) == scored
    (tmp_path / "d.jsonl").unlink()
    run = evalstone.read_run("../out")
    with pytest.raises(ConfigError, match=r"d\.jsonl, which has .*, isn't there$"):
        list(run.samples or ())


def test_samples_of_a_changed_file_are_refused(tmp_path: Path) -> None:
    data, out = written(tmp_path), tmp_path / "out"
    score_shard(data, "exact_match", 1, 2, out=out)
    plan = BlockPlan.read(Location.of(out))
    assert plan is not None
    data.write_text(data.read_text().replace("Berlin", "Munich"))
    with pytest.raises(ConfigError, match=r"d\.jsonl has changed since the run was planned"):
        list(plan.blocks[-1].read())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"output": "x"}\n{"output": 1, "context": 5}\n', "line 2: context must be a list"),
        ('{"id": "q", "output": "x"}\n' * 2, "line 2 of d.jsonl: the id 'q' is already used by line 1"),
        (
            '{"output": "x"}\n',
            "no sample of d.jsonl can be scored: exact_match needs output and reference (or expected=…); reference is "
            "absent",
        ),
        ("", "has no samples"),
    ],
)
def test_nothing_is_planned_for_bad_data(tmp_path: Path, text: str, message: str) -> None:
    data = tmp_path / "d.jsonl"
    data.write_text(text)
    with pytest.raises((ConfigError, DataError)) as raised:
        score_shard(data, "exact_match", 1, 2, out=tmp_path / "out")
    assert message in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_data_that_no_scorer_suits_are_refused_as_by_one_process(tmp_path: Path) -> None:
    data, messages = tmp_path / "d.jsonl", list[str]()
    data.write_text('{"output": "x", "refrence": "y"}\n')
    ways: list[Callable[[], object]] = [
        lambda: evaluate(data, "exact_match", ledger=None),
        lambda: score_shard(data, "exact_match", 1, 1, out=tmp_path / "out"),
    ]
    for way in ways:
        with pytest.raises(ConfigError) as raised:
            way()
        messages.append(str(raised.value))
    assert "Columns that were not understood: refrence" in messages[0]
    assert messages[0].startswith(messages[1].partition(". Columns")[0])
    assert messages[1].partition("Columns")[2] == messages[0].partition("Columns")[2]


@pytest.mark.parametrize("renamed", ["reference", "output"])
def test_a_file_with_a_renamed_column_is_refused(tmp_path: Path, renamed: str) -> None:
    first = written(tmp_path, 8, "a.jsonl", label="x").read_text().replace('"q', '"a')
    (tmp_path / "a.jsonl").write_text(first)
    other = first.replace('"a', '"b').replace(f'"{renamed}"', '"col_7"')
    (tmp_path / "b.jsonl").write_text(other)
    pattern, message = str(tmp_path / "*.jsonl"), f"b.jsonl has no column for {renamed}, which other files have, but"
    with pytest.raises(DataError, match=f"{message} 'col_7', which they don't have: name its columns as theirs, or"):
        score_shard(pattern, ["json_valid", "exact_match"], 1, 2, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "b.jsonl").write_text(
        other.replace('"label": "x"', '"group": "y"').replace('"col_7"', '"label"')
    )  # a column that is only absent
    score_shard(pattern, ["json_valid", "exact_match"], 1, 2, out=tmp_path / "out")


def test_a_ledger_in_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a file, which several machines can't share; name one on PostgreSQL"):
        score_shard(written(tmp_path), "exact_match", 1, 1, out=tmp_path / "out", ledger=tmp_path / "ledger.db")


def test_what_is_kept_is_checked_before_anything_is_scored(tmp_path: Path) -> None:
    data, keep, message = (
        written(tmp_path),
        cast("Keep", "score"),
        "keep must be 'all', 'evidence' or 'scores', not 'scor",
    )
    with pytest.raises(ConfigError, match=message):
        score_shard(data, "exact_match", 1, 1, out=tmp_path / "out", keep=keep)
    run = evaluate(data, "exact_match", ledger=None)
    with pytest.raises(ConfigError, match=message):
        evalstone.write_run(run, tmp_path / "out", keep=keep)
    with pytest.raises(ConfigError, match=message):
        evaluate(data, "exact_match", ledger=None, keep=keep)
    assert not (tmp_path / "out").exists()


def test_a_shard_is_one_of_all(tmp_path: Path) -> None:
    for shard, shards in ((0, 2), (3, 2)):
        with pytest.raises(ConfigError, match="shard must be a number from 1 to 2 shards"):
            score_shard(written(tmp_path), "exact_match", shard, shards, out=tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_a_shard_that_is_killed_is_finished_by_another(tmp_path: Path, times: int) -> None:
    data, out = written(tmp_path, 4000), tmp_path / "out"
    command = [sys.executable, "-m", "evalstone", "run", str(data), "--scorer", "rouge_l", "--out", str(out)]
    for _ in range(times):
        process = subprocess.Popen([*command, "--shard", "1/20"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while not list(out.glob("blocks/*.parquet")) and process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    run = in_shards(data, out, 20, "rouge_l")
    assert told(run) == told(evaluate(data, "rouge_l", ledger=None))


class Own(Scorer):
    """Fails on some samples."""

    name = "own"

    def score(self, *, output: str) -> Score:
        if output == "Berlin":
            raise KeyError("missing")
        return Score(len(output) / 100)


def test_failures_and_own_scorers_are_kept(tmp_path: Path) -> None:
    data = written(tmp_path)
    run, one = in_shards(data, tmp_path / "out", 3, Own()), evaluate(data, Own(), ledger=None)
    assert told(run) == told(one)
    failed = next(record.outcome for record in run.records if isinstance(record.outcome, Failed))
    assert failed.exception == "KeyError"


class Slow(Scorer):
    """Asks for a stop at the tenth sample, and notes how far the phase is that is shown."""

    name = "slow"
    seen: ClassVar[list[int]] = []
    stop: ClassVar[evalstone.StopSignal] = evalstone.StopSignal()
    phases: ClassVar[list[Phase]] = []

    def score(self, *, output: str) -> Score:
        self.seen.append(self.phases[-1].done)
        if len(self.seen) == 10:
            self.stop.request("interrupted")
        return Score(1.0)


class Watching:
    def begin(self, phase: Phase) -> None:
        Slow.phases.append(phase)

    def end(self, phase: Phase) -> None: ...

    def clear(self) -> None: ...


def test_a_stop_ends_a_shard_and_its_progress_is_by_sample(tmp_path: Path) -> None:
    data, out = written(tmp_path), Location.of(tmp_path / "out")
    scoring = Scoring(scorers=["exact_match", Slow()], concurrency=1)
    before = watch(Watching())
    try:
        with pytest.raises(RunStopped, match="interrupted"):
            run_shard(str(data), scoring, out, 1, 1, stop=Slow.stop)
    finally:
        watch(before)
    assert Slow.seen[:10] == sorted(Slow.seen[:10])
    assert Slow.seen[9] >= 8
    assert len(Slow.seen) <= 12
    with pytest.raises(ConfigError, match="out lacks"):
        merge(tmp_path / "out")
    with pytest.raises(RunStopped):
        run_shard(str(data), scoring, Location.of(tmp_path / "other"), 1, 1, stop=Slow.stop)
    assert not (tmp_path / "other").exists()
    run_shard(str(data), scoring, out, 1, 1)
    assert len(merge(tmp_path / "out").records) == 120


def test_shards_are_of_about_the_same_size(tmp_path: Path) -> None:
    data = written(tmp_path, 600)
    for shards in (2, 3, 4):
        out = Location.of(tmp_path / f"out{shards}")
        plan = planned(str(data), Scoring(scorers="exact_match"), out, workers=shards)
        sizes = [sum(block.samples for block in shard_of(plan.blocks, n, shards)) for n in range(1, shards + 1)]
        assert max(sizes) < 1.35 * 600 / shards


def test_batches_are_scored_like_a_run(tmp_path: Path) -> None:
    samples = [replace(sample, id=f"s{n}") for n, sample in enumerate(evalstone.load(written(tmp_path)).samples)]
    table = pa.Table.from_pylist([{"id": s.id, "output": s.output, "reference": s.reference} for s in samples])
    score = pickle.loads(pickle.dumps(ScoreBatches(scorers=["exact_match", "rouge_l"])))
    records = [row for start in (0, 25, 50) for row in score(table.slice(start, 25)).to_pylist()]
    run = evaluate(
        [Sample(id=s.id, output=s.output, reference=s.reference) for s in samples],
        ["exact_match", "rouge_l"],
        ledger=None,
    )
    assert [(row["sample_id"], row["scorer"], row["value"]) for row in records] == [
        (record.sample_id, record.scorer, record.value) for record in run.records
    ]
    assert score(table.slice(0, 0)).schema == score(table.slice(0, 1)).schema == score.schema
    assert {str(field.type) for field in score.schema} == {"string", "int64", "double"}
    assert score.schema.metadata is None
    assert pickle.loads(pickle.dumps(score)) == score


class Watched(LexicalJudge):
    """A judge that notes when it is opened and closed."""

    log: Path

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[object]:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.note("opened ")
        yield self
        self.note("closed ")

    def note(self, text: str) -> None:
        with self.log.open("a") as log:
            log.write(text)


BATCH = {"id": ["q1"], "output": ["Paris"], "reference": ["Paris"], "input": ["Which city?"]}


def test_what_a_shard_opens_is_closed(tmp_path: Path) -> None:
    judge = Watched(log=tmp_path / "log")
    score_shard(written(tmp_path), SCORERS, 1, 1, out=tmp_path / "out", judge=judge)
    assert judge.log.read_text() == "opened closed "


def test_what_batches_open_is_closed_with_their_value_and_opened_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    score = ScoreBatches(scorers="answer_correctness", judge=Watched(log=log))
    with score:
        assert score(pa.table(BATCH)).num_rows == score(pa.table(BATCH)).num_rows == 1
    score.close()
    assert log.read_text() == "opened closed "
    score(pa.table(BATCH))
    del score
    gc.collect()
    assert log.read_text() == "opened closed " * 2


@pytest.mark.slow
def test_what_batches_open_is_closed_at_the_end_of_the_process(tmp_path: Path) -> None:
    code = f"""
import pyarrow
from pathlib import Path
from evalstone.scale import ScoreBatches
from tests.scale.test_runs import BATCH, Watched
score = ScoreBatches(scorers="answer_correctness", judge=Watched(log=Path({str(tmp_path / "log")!r})))
score(pyarrow.table(BATCH))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (tmp_path / "log").read_text() == "opened closed "
    assert not done.stderr


def test_batches_that_are_collected_on_the_own_loop_are_closed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    held = [ScoreBatches(scorers="answer_correctness", judge=Watched(log=log))]
    held[0](pa.table(BATCH))

    async def drop() -> None:
        held.clear()
        gc.collect()

    sync.run(drop())
    until = time.monotonic() + 10
    while "closed" not in log.read_text() and time.monotonic() < until:
        time.sleep(0.01)
    assert "closed" in log.read_text()


def test_copies_of_batches_have_one_scope() -> None:
    score = ScoreBatches(scorers="exact_match")
    assert pickle.loads(pickle.dumps(score)).scope == score.scope != ScoreBatches(scorers="exact_match").scope
