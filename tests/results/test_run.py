"""A run as a value: what it answers to, and how it shows itself."""

from __future__ import annotations

import errno
import html
import os
import re
import resource
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalstone import (
    ConfigError,
    EvalstoneError,
    Limits,
    ModelJudge,
    Panel,
    Run,
    Score,
    Scorer,
    ScriptedJudge,
    compare,
    evaluate,
    read_run,
    write_run,
)
from evalstone.errors import UnknownName, WriteError
from evalstone.report.notes import sentences_of
from evalstone.results import Experiment
from evalstone.results.spilling import SpillingRecords
from evalstone.results.views.run import run_view
from evalstone.types import Note, Record, Skipped
from tests.fakes import claims
from tests.runs import Given, Harm, run_of
from tests.serving import serving


class Offset(Scorer):
    """The number in the answer, plus a constant."""

    name = "offset"
    by: float = 0.0

    def score(self, *, output: str) -> Score:
        return Score(float(output) + self.by)


def test_a_run_is_a_sequence_of_records() -> None:
    run = run_of(["0.5", "1.0", "skip"])
    assert len(run) == 3
    assert [record.sample_id for record in run] == ["s1", "s2", "s3"]
    assert (run[0].sample_id, run[-1].sample_id) == ("s1", "s3")
    assert [record.sample_id for record in run[1:]] == ["s2", "s3"]
    with pytest.raises(IndexError):
        run[3]


def test_a_run_contains_the_scorers_that_it_can_look_up_and_its_records() -> None:
    run = run_of(["0.5"], [Given(), Given(scale=2.0)])
    assert all(title in run for title in run.titles.values())
    assert "harm" not in run
    assert run[0] in run
    with pytest.raises(TypeError, match="scorers by name and records by position, but Record is neither"):
        run[run[0]]  # pyright: ignore[reportCallIssue, reportArgumentType] - what iterating over it gives
    assert run_of(["0.75"])[0] not in run
    assert 3 not in run


def test_a_scorer_is_found_by_title_signature_parameters_or_name() -> None:
    run = run_of(["0.5", "1.0"], [Given(), Offset(by=0.25), Harm()])
    assert run["offset(by=0.25)"] is run["offset"]
    assert run["given"].mean == 0.75
    assert run[Given().signature] is run["given"]
    assert run["harm"].interval is not None
    assert run["harm"].interval.low is not None
    assert run["harm"].interval.low < 0.75 < (run["harm"].interval.high or 0)
    with pytest.raises(ConfigError) as raised:
        run["givne"]
    assert (raised.value.field, raised.value.value, raised.value.near) == ("scorer", "givne", ("given",))


def test_a_name_that_several_scorers_share_is_refused_with_the_candidates() -> None:
    run = run_of(["0.25", "0.5"], [Offset(), Offset(by=0.5)])
    assert list(run.titles.values()) == ["offset", "offset(by=0.5)"]
    assert (run["offset(by=0.5)"].mean, run["offset"].mean) == (0.875, 0.375)


def test_scorers_with_equal_parameters_are_told_apart_by_their_signatures() -> None:
    class Prompted(Offset):
        def score(self, *, output: str) -> Score:
            return Score(float(output) / 2)

    plain, other = Offset(), Prompted()
    run = run_of(["0.25", "0.5"], [plain, other])
    assert list(run.titles.values()) == [plain.signature, other.signature]
    assert (run[plain.signature].mean, run[other.signature].mean) == (0.375, 0.1875)
    with pytest.raises(ConfigError, match="offset is ambiguous"):
        run["offset"]
    assert set(run.to_dicts(wide=True)[0]) >= {plain.signature, other.signature}
    reasons = run_view(run_of(["skip"], [Given(), Given(scale=10)])).details[0].tables[0]
    assert [row[0].text for row in reasons.rows] == ["given", "given(scale=10)"]


def test_printing_shows_the_judge_and_the_summary() -> None:
    run = run_of(["1.0", "0.5"])
    title, header, row, *_, last = str(run).split("\n")
    assert title == f"{run.dataset_name} · {run_view(run).lead}"
    assert header.split("  ")[0] == "scorer"
    assert row.split()[:2] == ["given", "0.750"]
    assert row.endswith("higher is better")
    assert last == f"{run.seconds:.1f} s"  # nobody was asked for money
    judged = replace(run, judge="lexical@7", n_samples=1)
    assert str(judged).endswith(f"\ncost $0.00 · {run.seconds:.1f} s")
    assert str(judged).startswith(f"{run.dataset_name} · 1 sample · judge lexical@7\n")


def test_printing_shows_why_results_are_missing_and_what_the_run_cost() -> None:
    run = run_of(["fail", "skip", "skip", "0.5"], [Given(), Harm()])
    stopped = replace(run, stop_reason="the budget of $1 is spent", seconds=2.0, judge="lexical@7")
    lines = str(stopped).split("\n")
    assert set(sentences_of(stopped.notes[:2])) <= set(lines)
    known = {"missing": 3, "of": 4, "noun": "sample", "bounds": (0.125, 0.875), "scale": 1.0}
    found = [each for each in stopped.notes if each.kind == "scores_missing"]
    assert [(each.scorer, dict(each.values)) for each in found] == [("given", known), ("harm", known)]
    missing = [line.split() for line in lines if line.split()[:1] in (["given"], ["harm"])][2:]
    assert [(cells[0], cells[1], cells[-1]) for cells in missing] == [
        (name, times, sample) for name in ("given", "harm") for times, sample in (("2", "s3"), ("1", "s1"))
    ]
    assert lines[-1] == "cost $0.00 · 2.0 s"


def test_printing_counts_the_judge_calls() -> None:
    sample = {"input": "Where?", "output": "Bern is in Switzerland.", "context": ["Bern is in Switzerland."]}
    run = evaluate([sample], ["faithfulness", "hallucination"], ledger=None)
    calls, *_ = str(run).split("\n")[-1].split(" · ")
    assert re.findall(r"\d+ \w+", calls) == ["2 asked", "2 shared", "0 cached"]


def test_a_reason_cannot_move_the_cursor_of_a_terminal() -> None:
    class Escaping(Given):
        name = "escaping"

        def score(self, *, output: str) -> Score:
            raise ValueError("\x1b[2J\u202e")

    text = str(run_of(["0.5"], [Escaping()]))
    assert "\x1b" not in text
    assert "\\u001b[2J\\u202e" in text


def test_a_notebook_shows_an_escaped_table() -> None:
    run = replace(run_of(["1.0", "0.5"]), dataset_name="<img src=x onerror=alert(1)>", judge="<b>&")
    page = run._repr_html_()  # pyright: ignore[reportPrivateUsage] - the name that notebooks call
    assert "<img" not in page
    assert "<b>" not in page
    assert f"{html.escape(run.dataset_name)}</strong> · 2 samples · judge {html.escape(run.judge)}" in page
    assert "<td>given</td>\n<td>0.750</td>" in page
    assert f"<p>cost $0.00 · {run.seconds:.1f} s</p>" in page
    assert page.count("<tr>") == page.count("</tr>") == 2


def test_the_wide_table_has_one_row_per_sample_with_its_texts() -> None:
    run = run_of(["0.5", "skip"], [Given(), Harm()], question="How?")
    texts = {"input": "How?", "reference": None, "context": None}
    assert run.to_dicts(wide=True) == [
        {"sample_id": "s1", **texts, "output": "0.5", "given": 0.5, "harm": 0.5},
        {"sample_id": "s2", **texts, "output": "skip", "given": None, "harm": None},
    ]
    assert replace(run, samples=None).to_dicts(wide=True)[0] == {"sample_id": "s1", "given": 0.5, "harm": 0.5}


def test_a_scorer_that_is_named_like_a_text_does_not_replace_it() -> None:
    class Output(Given):
        name = "output"

    row = run_of(["0.5"], [Output()]).to_dicts(wide=True)[0]
    assert (row["output"], row[Output().signature]) == ("0.5", 0.5)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_are_long_or_wide(library: str) -> None:
    pytest.importorskip(library)
    run = run_of(["0.5", "1.0"], [Given(), Harm()])
    frame: Any = getattr(run, f"to_{library}")()
    assert frame.shape[0] == 4
    wide: Any = getattr(run, f"to_{library}")(wide=True)
    assert list(wide.columns) == ["sample_id", "input", "output", "reference", "context", "given", "harm"]
    assert list(wide["given"]) == [0.5, 1.0]


def test_a_run_with_missing_records_is_unfinished() -> None:
    run = run_of(["0.5", "1.0"])
    assert Run.from_dict(run.to_dict(), list(run)).complete
    assert Run.from_dict(run.to_dict(), list(run)[:1]).stop_reason == "unfinished"
    stopped = {**run.to_dict(), "stop_reason": "budget"}
    assert Run.from_dict(stopped, list(run)[:1]).stop_reason == "budget"
    with pytest.raises(ConfigError, match="format 9"):
        Run.from_dict({**run.to_dict(), "format": 9}, [])


def test_the_recorded_cost_of_a_run_that_ended_before_its_calls_were_recorded_is_unknown() -> None:
    samples = [{"id": str(number), "output": "a", "context": ["p"]} for number in range(3)]
    members = [ScriptedJudge(lambda _: claims("a"), name=name) for name in "ab"]
    run = evaluate(samples, "faithfulness", judge=Panel(*members, limits=Limits(max_requests=1)), ledger=None)
    assert (run.stop_reason[:14], len(run), run.recorded_cost, run.cost) == ("max_requests=1", 0, None, 0.0)
    assert "cost $0.00" in [fact.line for fact in run_view(run).facts]
    killed = replace(run, paid=None)
    assert killed.cost is None
    assert "cost unknown" in [fact.line for fact in run_view(killed).facts]
    assert replace(run_of(["0.5"]), stop_reason="budget").cost == 0


def test_a_complete_run_whose_answers_were_all_in_the_ledger_cost_nothing(tmp_path: Path) -> None:
    with serving() as server:
        judge = ModelJudge("vllm/x", base_url=server.url, prices=(1.0, 1.0))
        samples = [{"output": "a", "context": ["p"]}]
        paid, again = (evaluate(samples, "faithfulness", judge=judge, ledger=tmp_path / "l.db") for _ in range(2))
    assert again["faithfulness"].cached > again["faithfulness"].asked == 0
    assert again.complete
    assert ((paid.cost or 0) > 0, again.cost) == (True, 0.0)


def test_the_kind_of_a_run_comes_back() -> None:
    run = replace(run_of(["0.5"]), kind="audit")
    assert Run.from_dict(run.to_dict(), list(run)).kind == "audit"


def test_a_full_disk_loses_no_record_that_was_kept_in_a_file(tmp_path: Path) -> None:
    records = SpillingRecords(["x"], 100, in_memory=2)
    put: list[str] = []

    def fill() -> None:
        for number in range(100):
            put.append(f"s{number}")
            records.put(
                number, Record(sample_id=put[-1], scorer="x", signature="x", outcome=Skipped("a reason of some words"))
            )

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, limits[1]))
    try:
        with pytest.raises(WriteError, match=rf"{os.strerror(errno.EFBIG)}.*TMPDIR"):
            fill()
        assert 3 < len(put) < 100
        assert [record.sample_id for record in records] == put
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: run_of(["0.25", "0.5"], [Offset(by=0.25), Offset(by=0.5)])["offset"],
        ConfigError,
        "offset is ambiguous; name one of offset(by=0.25), offset(by=0.5)",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said


def test_the_json_of_a_run_has_its_notes() -> None:
    run = evaluate([{"output": "yes", "reference": "yes"}, {"output": "yes"}], "exact_match", ledger=None)
    assert run.to_dict()["notes"] == [*map(Note.to_dict, run.notes)]
    assert [note["kind"] for note in run.to_dict()["notes"]] == ["scores_missing", "single_unit"]


def test_a_run_is_equal_to_what_is_read_of_it(tmp_path: Path) -> None:
    run = run_of(["0.5", "skip", "fail"], [Given(), Harm()])
    again = read_run(write_run(run, tmp_path / "run"))
    assert again == run
    assert run == again
    assert again != run_of(["0.5", "skip", "1.0"], [Given(), Harm()])
    assert again != replace(run, records=run.records[1:])


def test_an_unknown_scorer_of_a_run_is_a_key_error_that_suggests_the_nearest() -> None:
    run = run_of(["0.5"], [Given(), Harm()])
    assert str(UnknownName("no such name")) == "no such name"
    for lookup in (run.__getitem__, run.mean, run.scores):
        with pytest.raises(KeyError) as error:
            lookup("givn")
        assert isinstance(error.value, UnknownName)
        assert isinstance(error.value, ConfigError)
        assert (error.value.kind, error.value.near) == ("unknown", ("given",))
    with pytest.raises(KeyError):
        compare(run, run)["givn"]


def test_the_mean_and_the_scores_of_a_scorer() -> None:
    run = run_of(["0.5", "skip", "1.0", "fail"])
    assert run.mean("given") == run["given"].mean == 0.75
    assert run.scores("given") == {"s1": 0.5, "s3": 1.0}
    none = run_of(["skip"])
    assert none.scores("given") == {}
    with pytest.raises(ConfigError) as error:
        none.mean("given")
    assert (error.value.kind, error.value.field) == ("missing", "mean")


def test_the_score_of_a_sample_with_trials_is_the_mean_of_those_that_have_one() -> None:
    said = {1: "0.5", 2: "skip", 3: "1.0"}

    def answer(*, trial: int) -> str:
        return said[trial]

    samples = [{"id": "a", "input": "q"}]
    run = evaluate(samples, [Given()], target=answer, trials=3, ledger=None)
    assert run.scores("given") == {"a": 0.75}


def test_a_cell_of_an_experiment_is_looked_up_by_its_name() -> None:
    experiment = Experiment(runs={"small": run_of(["0.5"]), "large": run_of(["1.0"])})
    assert experiment["large"] is experiment.runs["large"]
    with pytest.raises(UnknownName) as error:
        experiment["smal"]
    assert error.value.near == ("small",)
