"""The results of ragas 0.4.3, which wrote the fixtures with a model that is a Python class: four cases, of which the
model fails one. `harmfulness_free` is a critic that the user defined."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstone import DataError, Failed, Run, import_results
from evalstone.compat.imports.ragas import COMPUTED, JUDGED
from evalstone.compat.imports.reading import Source, reader_for
from evalstone.types import note

FOLDER = Path(__file__).parent / "ragas"
CSV = (FOLDER / "results.csv").read_text("utf-8")
ROWS: list[dict[str, Any]] = json.loads((FOLDER / "results.json").read_text("utf-8"))
MEANS: dict[str, float] = json.loads((FOLDER / "means.json").read_text("utf-8"))


def imported(path: Path, content: str) -> Run:
    path.write_text(content, "utf-8")
    (run,) = import_results(path, ledger=None)
    return run


@pytest.fixture(scope="module")
def run() -> Run:
    return import_results(FOLDER / "results.csv", ledger=None)[0]


def test_a_row_is_a_sample_with_its_answer(run: Run) -> None:
    assert run.samples is not None
    sample = run.samples[1]
    assert (run.n_samples, run.target, sample.input, sample.output, sample.reference) == (
        4, None, "What is the capital of Italy?", "It is Milan, isn't it?", "Rome",
    )  # fmt: skip
    assert sample.context == ('The capital of Italy is "Rome".', "Capitals are cities, aren't they?")
    assert sample.metadata == {}


def test_our_means_are_those_that_ragas_printed(run: Run) -> None:
    assert [info.name for info in run.scorers] == list(MEANS)
    for name, mean in MEANS.items():
        assert abs(run.mean(name) - mean) <= 1e-12
    assert (run["faithfulness"].n_score, run["faithfulness"].n_failed) == (3, 1)


def test_an_empty_cell_is_a_failure_and_never_0(run: Run) -> None:
    records = [record for record in run.records if record.scorer == "faithfulness"]
    assert records[2].outcome == Failed("ragas has no score: the metric failed, or it is undefined here")
    assert isinstance(records[2].outcome, Failed)
    assert records[2].outcome.exception == "NoScore"
    assert [record.calls[0].answer for record in records][1:3] == [{"score": 2 / 3}, None]
    assert not any(record.calls for record in run.records if record.scorer == "exact_match")
    assert run.judge == "not recorded by ragas"
    assert "1 judge call gave no answer" in str(run)  # what was paid isn't known


@pytest.mark.parametrize("name", ["r.json", "r.jsonl", "columns.json", "indexed.csv", "older.csv", "older.json"])
def test_all_forms_give_the_same(tmp_path: Path, run: Run, name: str) -> None:
    older = {"user_input": "question", "retrieved_contexts": "contexts", "response": "answer"}
    rows = [{older.get(key, key) if "older" in name else key: value for key, value in row.items()} for row in ROWS]
    if name == "columns.json":
        content = json.dumps({key: {str(n): row[key] for n, row in enumerate(rows)} for key in rows[0]})
    elif name == "indexed.csv":
        header, *lines = (FOLDER / "results.csv").read_text("utf-8").splitlines()
        content = "\n".join([f",{header}", *(f"{n},{line}" for n, line in enumerate(lines))])
    elif name == "older.csv":
        content = CSV.replace(
            "user_input,retrieved_contexts,response,reference", "question,contexts,answer,ground_truth"
        )
    else:
        content = "\n".join(map(json.dumps, rows)) if name.endswith("l") else json.dumps(rows)
    other = imported(tmp_path / name, content)
    for one, record in zip(other.records, run.records, strict=True):
        assert (one.scorer, type(one.outcome)) == (record.scorer, type(record.outcome))
        assert one.value == pytest.approx(record.value, abs=1e-10)  # pandas writes 10 decimals as JSON
    assert other.samples is not None
    assert run.samples is not None
    assert [(each.input, each.output, each.context, each.reference) for each in other.samples] == [
        (each.input, each.output, each.context, each.reference) for each in run.samples
    ]


@pytest.mark.parametrize(
    "table",
    [
        "sep=;\nuser_input;response;faithfulness\nq;a;0.5\n",
        "|user_input|response|faithfulness\n7|q|a|0.5\n",
        "\n\nuser_input,response,faithfulness\nq,a,0.5\n",
        '"user_input","a; b; c; d","response","faithfulness"\nq,x,a,0.5\n',
    ],
)
def test_a_table_is_recognized_by_its_header_wherever_and_however_it_is_written(tmp_path: Path, table: str) -> None:
    run = imported(tmp_path / "r.csv", table)
    assert (run.mean("faithfulness"), [info.name for info in run.scorers]) == (0.5, ["faithfulness"])


def test_nan_and_booleans_are_read_as_they_are_meant(tmp_path: Path) -> None:
    content = "user_input,response,faithfulness,polite\nq,a,nan,True\nr,b,0.5,False\n"
    run = imported(tmp_path / "r.csv", content)
    assert [type(record.outcome).__name__ for record in run.records] == ["Failed", "Score", "Score", "Score"]
    assert run.mean("polite") == 0.5
    run = imported(tmp_path / "r.json", '[{"user_input": "q", "response": "a", "faithfulness": NaN}]')
    assert isinstance(next(iter(run.records)).outcome, Failed)


def test_decimal_commas_are_read_where_they_group_no_thousands(tmp_path: Path) -> None:
    cells = ["0,25", "0,125", "-0,5", "12,5", "1,0000", "0", "1,000", "1,2,3", ",5", "1234,567"]
    rows = "".join(f"Why?;Because {place};{cell}\n" for place, cell in enumerate(cells))
    (tmp_path / "t.csv").write_text(f"user_input;response;faithfulness\n{rows}", "utf-8")
    run = import_results(tmp_path / "t.csv", ledger=None, scales={"faithfulness": 20})[0]
    values = [record.value for record in run.records]
    assert values == [0.25, 0.125, None, 12.5, 1, 0, None, None, None, None]
    errors = [record.outcome.error for record in run.records if isinstance(record.outcome, Failed)]
    assert "-0.5" in errors[0]
    assert "1,000" in errors[1]
    assert "1234.57" in errors[-1]


def test_another_column_is_a_metric_if_it_is_all_numbers_after_the_sample(tmp_path: Path, run: Run) -> None:
    assert [each for each in run.notes if each.kind == "metric_unknown"] == [
        note("metric_unknown", "caution", tool="ragas", metric="harmfulness_free", place="line 2")
    ]
    rows = [
        {"length": 4, "user_input": "q", "response": "a", "weight": 2, "tone": "warm", "faithfulness": 1, "mine": 3},
        {"length": 5, "user_input": "r", "response": "b", "weight": 1, "tone": 0.5, "faithfulness": 0, "mine": None},
    ]
    other = imported(tmp_path / "r.json", json.dumps(rows))
    assert [(info.name, info.scale) for info in other.scorers] == [("faithfulness", 1), ("mine", 10)]
    assert other.samples is not None
    assert other.samples[0].metadata == {"length": 4, "tone": "warm"}
    assert other.samples[0].weight == 2


def test_ranges_and_directions_are_those_of_the_metrics(tmp_path: Path) -> None:
    header = "user_input,response,noise_sensitivity(mode=relevant),domain_specific_rubrics,factual_correctness(mode=f1)"
    run = imported(tmp_path / "r.csv", f"{header}\nq,a,0.25,4,0.5\n")
    assert [(info.name, info.scale, info.lower_is_better) for info in run.scorers] == [
        ("noise_sensitivity[mode=relevant]", 1, True),
        ("domain_specific_rubrics", 5, False),
        ("factual_correctness[mode=f1]", 1, False),
    ]
    assert "metric_unknown" not in {each.kind for each in run.notes}
    assert not JUDGED & COMPUTED


@pytest.mark.parametrize(
    "content",
    [
        "question,answer,ground_truth\nq,a,b\n",
        "question,answer,correctness,coherence\nq,a,1,2\n",
        "user_input,response,reference\nq,a,b\n",
        "answer,length\na,1\n",
    ],
)
def test_a_dataset_is_not_a_result(tmp_path: Path, content: str) -> None:
    (path := tmp_path / "data.csv").write_text(content, "utf-8")
    with pytest.raises(DataError, match="isn't known as the results of a tool"):
        reader_for(Source(path))


def test_means_and_scores_without_samples_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"only scores of ragas, such as means: exact_match.*to_pandas\(\)"):
        import_results(FOLDER / "means.json", ledger=None)
    with pytest.raises(DataError, match="only scores of ragas"):
        imported(tmp_path / "scores.csv", "faithfulness,answer_relevancy\n1,0.5\n")
    (path := tmp_path / "data.csv").write_text("user_input,response\nq,a\n", "utf-8")
    with pytest.raises(DataError, match="no column is a metric of ragas, only user_input, response"):
        import_results(path, ledger=None, tool="ragas")


def test_conversations_have_their_messages(tmp_path: Path) -> None:
    turns = [{"content": "Hello", "type": "human"}, {"content": "Hi!", "type": "ai"}]
    for name, cell in (("r.json", json.dumps([{"user_input": turns, "topic_adherence(mode=f1)": 1.0}])),
                       ("r.csv", f'user_input,topic_adherence(mode=f1)\n"{turns}",1.0\n')):  # fmt: skip
        run = imported(tmp_path / name, cell)
        assert run.samples is not None
        assert [message.role for message in run.samples[0].messages] == ["user", "assistant"]
