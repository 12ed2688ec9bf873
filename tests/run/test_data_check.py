"""A check of data: how they are read, all problems at once, and which scorers can score them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pandas
import pytest

from evalstone import ConfigError, DataError, Sample, check, load
from evalstone.datasets.other_tools import IN_NO_FILE
from evalstone.results import DataCheck
from evalstone.results.labels import LabelReader, read_labels
from evalstone.run.data_check import MOST_COLUMNS, MOST_PROBLEMS
from evalstone.scorers.text.translation import _sacrebleu  # pyright: ignore[reportPrivateUsage]
from tests.workbooks import write_xlsx

CSV = """\
id;question;answer;contexts;ground_truth;topic;response
a;Where is Bern?;draft;['Bern is a city.' 'It is old.'];Switzerland;geo;It is in Switzerland.
b;Where is Bern?;draft;['Bern', 'cut;;geo;It is in Switzerland.
c;Who wrote Emma?;draft;['Emma is by Jane.'];Jane Austen;books
a;Where is Bern?;draft;Bern is a city.;;;
"""


def test_all_problems_of_a_file_are_listed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text(CSV)
    checked = check(path)
    assert [(one.place, one.field) for one in checked.problems] == [
        *(("line 3", "context"), ("line 4", ""), ("line 5", "id")),
    ]
    broken, short, twice = (one.message for one in checked.problems)
    assert "must be a complete list" in broken
    assert short.startswith("6 cells for 7 columns")
    assert twice.startswith("its ID is already used by line 2; ")
    assert (checked.rows, checked.samples, checked.n_problems, checked.passed) == (4, 2, 3, False)
    assert (checked.encoding, checked.delimiter, checked.complete, checked.commands) == ("UTF-8", ";", True, ())


def test_all_fields_of_a_row_are_looked_at() -> None:
    checked = check([{"input": 5, "output": [1], "context": 7, "weight": "x"}, {"output": "a"}])
    assert [(one.place, one.field) for one in checked.problems] == [
        *(("item 1", name) for name in ("output", "context", "weight")),
    ]
    assert check([{"output": 5, "messages": "hello"}]).n_problems == 1


def test_lines_that_are_not_json_are_listed_and_the_others_read(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"output": "a"}\n{"output": \n{"output": "b", "output": "c"}\n{"output": "d"}\n')
    checked = check(path)
    assert [(one.place, one.message.split(":")[0]) for one in checked.problems] == [
        *(("line 2", "column 12"), ("line 3", "duplicate key 'output' in one object")),
    ]
    assert (checked.rows, checked.samples) == (4, 2)


def test_data_that_end_in_a_problem_are_incomplete(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text('input,output\na,b\nc,"d\n')
    checked = check(path)
    assert (checked.complete, checked.samples) == (False, 1)
    assert "line 3: broken CSV" in checked.problems[0].message
    assert "The rest of the data was not read." in str(checked)


def test_a_file_in_another_encoding_has_that_problem_alone(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes("id;Réponse\n1;Déjà.\n".encode("cp1252"))
    checked = check(path, map={"output": "Réponse"})
    (problem,) = checked.problems
    assert problem.message.startswith("not UTF-8: byte 5 (0xe9, line 1)")
    assert not checked.complete
    assert check(path, map={"output": "Réponse"}, encoding="cp1252").passed


def test_problems_are_listed_in_the_order_of_the_data(tmp_path: Path) -> None:
    for name in ("a", "b"):
        lines = ['{"id": "x", "output": "a"}', '{"id": "x", "output": "b"}', '{"output": [1]}', '{"other": 1}']
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines).replace("x", f"{name}x"))
    (tmp_path / "0.jsonl").write_text("[\n")
    checked = check(tmp_path / "*.jsonl", map={"input": "absent"})
    assert [one.place for one in checked.problems] == [
        *("", "line 1 of 0.jsonl", "line 2 of a.jsonl", "line 3 of a.jsonl", "line 2 of b.jsonl", "line 3 of b.jsonl"),
    ]


def test_problems_are_counted_beyond_those_that_are_listed() -> None:
    checked = check([{"output": [1]}] * (MOST_PROBLEMS + 7))
    assert (len(checked.problems), checked.n_problems) == (MOST_PROBLEMS, MOST_PROBLEMS + 7)
    assert "7 more problems not listed." in str(checked)
    checked = check([{"id": "a", "output": "b"}] * (MOST_PROBLEMS + 8))
    assert (len(checked.problems), checked.n_problems) == (MOST_PROBLEMS, MOST_PROBLEMS + 7)
    assert checked.problems[-1].place == f"item {MOST_PROBLEMS + 1}"
    checked = check([{"id": "a", "output": "b"}] * 2 + [{"output": [1]}] * MOST_PROBLEMS)
    assert (len(checked.problems), checked.n_problems) == (MOST_PROBLEMS, MOST_PROBLEMS + 1)
    assert [(one.place, one.field) for one in checked.problems[:2]] == [("item 2", "id"), ("item 3", "output")]


def test_columns_are_counted_beyond_those_that_are_listed() -> None:
    checked = check([{"input": "a", "output": "b"} | {f"k{n}": "c" for n in range(MOST_COLUMNS + 1)}])
    assert len(checked.unread) == MOST_COLUMNS
    assert "201 columns are no field; the first 200 are listed" in checked.remarks
    assert not check([{"input": "a", "output": "b"} | {f"k{n}": "c" for n in range(MOST_COLUMNS)}]).remarks


def test_a_check_says_how_data_are_read(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(("\n".join(CSV.splitlines()[:2]) + "\n;;;;;;\n").encode("utf-16"))
    checked = check(path)
    assert checked.encoding == "UTF-16 with a byte order mark"
    assert [(one.field, *one.columns, one.values, one.blank) for one in checked.fields] == [
        ("id", "id", 1, 0),
        ("input", "question", 1, 0),
        ("output", "response", 1, 0),
        ("context", "contexts", 1, 0),
        ("reference", "ground_truth", 1, 0),
    ]
    assert {one.column: one.reason for one in checked.unread} == {
        "answer": "output is read from response; kept in the metadata",
        "topic": "no field has this name; kept in the metadata",
    }
    assert checked.first[0]["context"] == "2 passages: Bern is a city. | It is old."


@pytest.mark.parametrize("others", [[], [{"rows": 1}]])
def test_a_column_whose_values_are_no_state_says_what_one_is(others: list[Any]) -> None:
    checked = check([{"output": "a", "state": state} for state in ("CA", *others)])
    assert [one.values for one in checked.fields if one.field == "state"] == [1 for _ in others]
    reason = "state must be an object or a list; other values are kept in the metadata"
    assert [(one.column, one.reason) for one in checked.unread] == [("state", reason)]


@pytest.mark.parametrize(
    ("column", "field"),
    [
        *((name, "output") for name in ("anwser", "my_answer", "llmResponse", "Final Answer Text", "Model Resp", "A")),
        *((name, "context") for name in ("context_1", "Kontext", "retrieved_docs", "sourceDocs", "Ctx", "Doc 1")),
        *(
            (name, "reference")
            for name in ("Gold Ans", "golden response", "Expected Ans", "SME answer", "GT", "gt_answer")
        ),
        *((name, "") for name in ("score", "title", "date", "ts", "index", "status", "rating", "version", "level")),
        *((name, "") for name in ("question_id", "answer_length", "2024", "", "answer_text_length")),
        ("user_question", ""),  # the input is read from another column
    ],
)
def test_a_column_with_a_similar_name_may_be_the_field(column: str, field: str) -> None:
    (unread,) = check([{"question": "q", column: "a"}]).unread
    hint = f"; if it is the {field}, map it to that" if field else ""
    assert unread.reason == f"no field has this name; kept in the metadata{hint}"


def test_a_column_that_is_read_in_the_metadata_says_by_what() -> None:
    (unread,) = check([{"output": "a", "retrieved": ["1"]}]).unread
    assert "retrieval metrics" in unread.reason


def test_duplicates_blanks_and_languages_are_counted() -> None:
    german = "Bern liegt in der Schweiz und ist die Hauptstadt des Landes."
    rows = [{"input": "q", "output": german}, {"input": "q", "output": " "}, {"input": "r", "output": "x"}]
    checked = check([*rows, rows[0]])
    assert (checked.duplicates.samples, checked.duplicates.inputs) == (1, 2)
    assert checked.duplicates.first == ("item 2 = item 1", "item 4 = item 1")
    assert next((one.values, one.blank) for one in checked.fields if one.field == "output") == (3, 1)
    assert checked.languages == {"de": 2, "": 2}


def scorers(checked: DataCheck) -> dict[str, tuple[int, str]]:
    return {one.name: (one.samples, one.lacks) for one in checked.scorers}


def test_scorers_say_what_they_lack_without_asking_a_judge() -> None:
    rows = [{"input": "q", "output": "a", "context": ["p"]}, {"input": "q", "output": "b", "reference": "b"}]
    found = scorers(check(rows))
    assert found["faithfulness"] == (1, "needs context (or tool results in messages)")
    assert found["rouge_l"] == (1, "needs reference")
    assert found["toxicity"] == (2, "")
    assert found["noise_sensitivity"] == (
        0,
        "needs reference (or baseline=…) and noisy_query in metadata (or noisy_query=…)",
    )
    assert found["json_schema"] == (0, "needs its parameter schema")
    assert found["ndcg_at_k"] == (0, "needs retrieved in metadata and relevant in metadata")
    ranked = [{"input": "q", "retrieved": ["1", "2"], "relevant": ["2"]}]
    assert scorers(check(ranked))["ndcg_at_k"] == (1, "")


def test_a_scorer_without_its_library_lacks_it_and_the_others_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    _sacrebleu.cache_clear()
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    by_name = {one.name: one for one in check([{"output": "Paris", "reference": "Paris"}]).scorers}
    for name in ("bleu", "chrf", "ter"):
        assert by_name[name].samples == 0
        assert by_name[name].lacks.startswith("sacrebleu is not installed; install it with: ")
    assert (by_name["exact_match"].samples, by_name["exact_match"].lacks) == (1, "")


def test_a_command_names_a_model_if_most_samples_are_not_in_english(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(json.dumps({"output": "Bern liegt in der Schweiz und ist die Hauptstadt.", "context": ["Bern"]}))
    (command,) = check(path).commands
    assert command.endswith("--scorer faithfulness --judge openai/gpt-5.1")


@pytest.mark.parametrize(
    ("labels", "calibrates"),
    [
        ([{"label": "grounded"}, {"label": "ungrounded"}, {}], True),
        ([{"Human Label": 1}, {"Human Label": 0.5}, {"Human Label": "n/a"}], True),
        ([{"annotator_1": "yes", "annotator_2": "no"}, {"annotator_1": "yes"}, {}], True),
        ([{"label": ["yes", "no", None]}, {"label": [True]}, {"label": "[0, 1]"}], True),
        ([{"metadata": {"label": "yes"}}, {}, {}], True),
        ([{"label": "yes", "annotator_1": "so so"}, {}, {}], True),  # `calibrate` reads the label
        ([{"label": "spam"}, {"label": "yes"}, {}], False),
        ([{"rating": 4}, {"rating": 5}, {"rating": 1}], False),
        ([{"annotator_1": "yes", "annotator_2": "so so"}, {}, {}], False),
        ([{"label": {"by": "Ada"}}, {}, {}], False),
        ([{"label": "[yes"}, {}, {}], False),
        ([{"label": ""}, {"label": "-"}, {"label": None}], False),
        ([{"verdict": "yes"}, {}, {}], False),
    ],
)
def test_data_with_labels_of_people_get_a_command_that_compares_a_judge_with_them(
    tmp_path: Path, labels: list[dict[str, Any]], calibrates: bool
) -> None:
    rows = [{"id": n, "output": "In the country.", "context": ["It is there."]} for n in range(3)]
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps({**row, **of}) + "\n" for row, of in zip(rows, labels, strict=True)))
    found = [command for command in check(path).commands if "calibrate" in command]
    assert found == [f"evalstone calibrate --labels {path} --scorer faithfulness"] * calibrates
    if calibrates:
        read_labels(path, LabelReader(scale=1.0, lower_is_better=False))
    for checked in (check(path, encoding="utf-8"), check(path, split={"context": ";"})):
        assert not any("calibrate" in command for command in checked.commands)
    pattern = tmp_path / "*.jsonl"
    assert not any("calibrate" in command for command in check(pattern).commands)


def _chat(arguments: str) -> dict[str, Any]:
    call = {"id": "1", "type": "function", "function": {"name": "find", "arguments": arguments}}
    return {
        "messages": [
            {"role": "user", "content": "Where is Bern?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "Bern is in Switzerland."},
            {"role": "assistant", "content": "In Switzerland."},
        ]
    }


def test_commands_for_conversations_with_tools_name_scorers_of_tool_calls(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(json.dumps(_chat('{"city": "Bern"}')))
    run = f"evalstone run {path}"
    assert check(path).commands == (
        f"{run} --scorer no_tool_errors --scorer faithfulness",
        f"{run} --scorer tool_call_appropriateness --scorer goal_reached --judge openai/gpt-5.1",
    )
    assert check(path).first[0]["messages"] == "3 messages, 1 tool call"
    expected = [{"name": "find", "args": {"city": "Bern"}}]  # as ragas has them
    path.write_text(json.dumps({**_chat('{"city": "Bern"}'), "reference_tool_calls": expected}))
    assert check(path).commands[0].startswith(f"{run} --scorer trajectory_accuracy --scorer tool_call_f1 ")
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}))
    assert not any("tool" in command.partition(".jsonl")[2] for command in check(path).commands)
    plain = {"input": "q", "output": "a"}
    path.write_text("\n".join(map(json.dumps, (plain, plain | {"input": "r"}, _chat("{}")))))
    assert check(path).commands == (f"{run} --scorer answer_relevancy",)
    path.write_text(json.dumps({**plain, "trajectory": ["find"], "expected_trajectory": ["find"]}))
    assert "--scorer tool_call_f1" in check(path).commands[0]


def test_data_without_outputs_get_a_command_that_has_them_answered(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    run = f"evalstone run {path} --target my_app:agent"
    asked = [{"role": "user", "content": "Where is Bern?"}]
    for row, scorers in (
        ({"question": "Where is Bern?"}, ["answer_relevancy"]),
        ({"prompt": "Where is Bern?", "chosen": "Here.", "rejected": "There."}, ["answer_relevancy"]),
        ({"input": asked, "ideal": "Here."}, ["factual_correctness", "answer_relevancy", "rouge_l"]),
        ({"turns": ["Where is Bern?", "And Ada?"]}, ["answer_relevancy"]),
        (
            {"question": "Where?", "context": ["Bern."], "answers": {"text": ["Here."], "answer_start": [0]}},
            ["faithfulness", "context_relevance", "factual_correctness"],
        ),
        ({"question": "Where?", "expected_tools": [{"name": "find"}]}, ["trajectory_accuracy", "tool_call_f1"]),
    ):
        path.write_text(json.dumps(row))
        (command,) = check(path).commands
        assert command.startswith(" --scorer ".join((run, *scorers))), row
        assert "If a column has the answers, name it" in str(check(path)), row
    path.write_text(json.dumps({"input": "q", "retrieved": ["a"], "relevant": ["a"]}))
    assert check(path).commands == (f"evalstone run {path} --scorer precision_at_k",)
    assert "No sample has an output" not in str(check(path))
    checked = check([{"metadata": {"a": 1}}])
    assert "Other scorers" not in str(checked)
    assert 'Name the columns that have them: map={"input": "COLUMN", "output": "COLUMN"}' in str(checked)


def test_columns_without_a_value_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("q,answer,context,reference,topic\nWho?,Ada.,,,\nWhere?,There.,,,\n")
    checked = check(path, map={"input": "q"})
    assert [(one.field, one.columns, one.values) for one in checked.fields] == [
        ("input", ("q",), 2),
        ("output", ("answer",), 2),
        ("context", ("context",), 0),
        ("reference", ("reference",), 0),
    ]
    assert [(one.column, one.reason) for one in checked.unread] == [("topic", "empty in every row")]
    fields = check([{"output": "a", "note": None}], map={"input": "note"}).fields
    assert [(one.field, one.columns, one.values) for one in fields] == [
        ("input", ("note",), 0),
        ("output", ("output",), 1),
    ]


def test_texts_inside_objects_are_named_with_their_paths() -> None:
    labeled: dict[str, Any] = {"id": 1, "data": {"question": "Where?", "answer": "There."}, "annotations": []}
    (problem,) = check([labeled]).problems
    assert problem.message.endswith('for example map={"input": "data.question", "output": "data.answer"}')
    found = check([labeled], map={"input": "data.question", "output": "data.answer"}).samples
    assert found == 1
    checked = check([{"request": "Where?", "result": {"answer": "There.", "seconds": 1}}])
    assert checked.unread[0].reason.endswith("; if result.answer is the output, map it to that")
    assert check([{"input": "q", "output": "a", "result": {"answer": "b"}}]).unread[0].reason.endswith("the metadata")


def test_columns_that_are_named_like_fields_can_be_mapped_at_once() -> None:
    rows = [{"qid": "a", "Question": "q", "Response": "a", "Docs": ["p"], "More docs": ["p"], "note": "n"}]
    checked = check(rows)
    assert [one.like for one in checked.unread] == [{"id": "qid"}, {"context": "Docs"}, {"context": "More docs"}, {}]
    assert 'map those that are: map={"context": "Docs", "id": "qid"}' in str(checked)
    mapped = check(rows, map={"context": "Docs", "id": "qid"})
    assert "named like" not in str(mapped)
    checked = check([{"question": "q", "data": {"reply": "a"}}])
    assert 'if it is one, map it: map={"output": "data.reply"}' in str(checked)
    assert "COLUMN" not in str(checked)


def test_messages_inside_columns_are_named() -> None:
    said = {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]}
    reply = {"custom_id": "r1", "result": {"type": "succeeded", "message": said}}
    (problem,) = check([reply]).problems
    assert problem.message.endswith('for example map={"output": "result.message"}')
    assert check([reply], map={"output": "result.message"}).first[0]["output"] == "Hello."
    chat = {"title": "A chat", "contents": [{"role": "user", "parts": [{"text": "q"}]}]}
    (problem,) = check([chat]).problems
    assert problem.message.endswith('for example map={"messages": "contents"}')
    checked = check([{"input": "q", "log": {"turns": [said]}}])
    assert checked.unread[0].reason.endswith("; if log.turns has the messages, map it to that")


def test_a_column_of_ids_is_not_taken_for_texts() -> None:
    assert check([{"question_id": "a b", "output": "x"}]).unread[0].reason.endswith("kept in the metadata")
    assert check([{"sampel_id": "a", "output": "x"}]).unread[0].reason.endswith("; if it is the id, map it to that")
    (problem,) = check([{"user_id": "a b", "said": "Not a word."}]).problems
    assert problem.message.endswith('for example map={"output": "said"}')


def test_answers_that_may_be_the_expected_ones_are_said() -> None:
    expected = 'If the column answer, read as output, has the expected answers, map it: map={"reference": "answer"}'
    assert expected in str(check([{"question": "q", "answer": "a"}]))
    for more in ({"context": ["p"]}, {"reference": "r"}):
        assert "the expected answers" not in str(check([{"question": "q", "answer": "a", **more}]))
    assert "the expected answers" not in str(check([{"question": "q", "response": "a"}]))


@pytest.mark.parametrize("name", ["d.csv", "d.xlsx"])
def test_a_title_above_the_header_is_one_problem(tmp_path: Path, name: str) -> None:
    rows = [["Report", ""], ["question", "answer"], ["q", "a"], ["r", "b"]]
    path = tmp_path / name
    if name.endswith("xlsx"):
        write_xlsx(path, {"Sheet": rows})
    else:
        path.write_text("".join(",".join(row) + "\n" for row in rows))
    (problem,) = check(path).problems
    assert problem.message.endswith("the first extra one is 'answer'; if this is the header, delete what is above it")


def test_a_row_of_words_that_are_fields_is_no_header_below_one(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("question,answer\nq,a\ninput,output,c\nr,b,d\n")
    assert [problem.message for problem in check(path).problems] == [
        f"3 cells for 2 columns; the first extra one is '{cell}'" for cell in "cd"
    ]


def test_a_repeated_id_says_how_to_leave_out_a_column_that_has_no_ids() -> None:
    rows = [{"id": "a", "output": "b"}] * 2
    (problem,) = check(rows).problems
    assert problem.message.endswith('already used by item 1; if the column has no IDs, leave it out: map={"id": ""}')
    assert check(rows, map={"id": ""}).passed
    (problem,) = check([Sample(id="a", output="b")] * 2).problems
    assert problem.message.endswith("already used by item 1")


def test_rows_of_results_of_promptfoo_say_how_to_keep_their_scores(tmp_path: Path) -> None:
    results: dict[str, Any] = {"evalId": "e", "results": {"version": 3, "results": []}}
    for source in (results, [results]):
        assert check(source).remarks == (IN_NO_FILE,)
        with pytest.raises(DataError, match=r"these are results of promptfoo.*evalstone import FILE"):
            load(source)
    path = tmp_path / "d.json"
    path.write_text(json.dumps(results))
    with pytest.raises(DataError, match=f"evalstone import {path}") as caught:
        load(path)
    assert "FILE" not in str(caught.value)


def test_a_column_of_labels_says_what_reads_it() -> None:
    rows = [{"output": "a", "Human label": "good"}, {"output": "b", "Human label": "bad"}]
    assert check(rows).unread[0].reason == "kept in the metadata; labels of people, which calibrate reads"
    odd = [{"output": "a", "Human label": "good"}, {"output": "b", "Human label": "green"}]
    assert check(odd).unread[0].reason.startswith("no field has this name")


def test_where_the_fields_of_a_chat_come_from_is_said() -> None:
    checked = check([_chat("{}"), {"input": "q", "output": "a"}])
    assert "1 sample without context: scorers take the results of tool calls in messages as passages" in checked.remarks
    (fields,) = (section for section in check([_chat("{}")]).view().sections if section.title == "Fields")
    assert [row[1].text for row in fields.tables[0].rows] == ["messages", "messages", "messages"]
    said = [{"role": "assistant", "content": "a"}]
    (fields,) = (
        section for section in check([{"input": "q", "output": said}]).view().sections if section.title == "Fields"
    )
    assert fields.tables[0].rows[-1][1].text == "input and output"
    assert check([{"input": "q", "output": "a", "context": ["p"]}]).remarks == ()


def test_arguments_of_tool_calls_that_are_no_json_object_are_named() -> None:
    chats = [_chat(arguments) for arguments in ('{"city": "Bern"}', '{"city": "Ber', "Bern", '{"city": 1', "", "[1]")]
    remark, _ = check([{"id": str(n), **chat} for n, chat in enumerate(chats)]).remarks
    assert remark == (
        "4 × arguments of a tool call that are no JSON object, kept as text; first in sample '1', 'find' was called "
        """with '{"city": "Ber'"""
    )
    assert load(chats).notes[0].startswith("4 × arguments of a tool call")
    custom = {"id": "1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    chats[0]["messages"][1]["tool_calls"] = [custom]
    assert not any("arguments" in remark for remark in check(chats[:1]).remarks)


@pytest.mark.parametrize("rows", [[{"output": "a"}, {"output": "b", "context": ["p"]}], [{"messages": []}]])
def test_a_check_agrees_with_what_is_loaded(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    path = tmp_path / "d.json"
    path.write_text(json.dumps(rows))
    samples = [Sample(**row) for row in rows]
    for source in (path, rows, samples, pandas.DataFrame(rows), load(rows), {"samples": rows}):
        checked = check(source)
        assert checked.passed, source
        assert checked.samples == len(load(source)) == len(rows)


def test_a_file_without_a_known_column_says_how_to_map_one() -> None:
    checked = check([{"id": "1", "who": "a"}])
    assert "no column is recognized" in checked.problems[0].message
    assert checked.problems[0].message.endswith('for example map={"output": "who"}')
    assert not checked.passed
    assert (checked.scorers, "Languages" in str(checked)) == ((), False)
    (problem,) = check([{"SME answer": "b", "q": "a", "a": "b"}]).problems
    assert problem.message.endswith('for example map={"input": "q", "output": "a", "reference": "SME answer"}')
    (problem,) = check([{"q": "Who?", "ques": "Who?", "note": "It is short.", "more": "text"}]).problems
    assert problem.message.endswith('for example map={"input": "q"}')
    rows = [{"nr": 1, "kind": "geo", "frage": "Who was Ada?", "antwort": "Mathematician", "quelle": "A page on Ada."}]
    (problem,) = check([{"nr": 2}, *rows]).problems
    assert problem.message.endswith('for example map={"input": "frage", "output": "antwort"}')
    (problem,) = check([{"Vraag": "Wie?", "Réponse": "Ada", "Kontext": "Ada."}]).problems
    mapped = 'for example map={"input": "Vraag", "output": "Réponse", "context": "Kontext"}'
    assert problem.message.endswith(mapped)
    (problem,) = check([{"nr": 1, "when": "2026-01-02"}]).problems
    assert problem.message.endswith("map a column to a field with map")
    (problem,) = check([{"nr": 1, "said": "Not a word."}]).problems
    assert problem.message.endswith('for example map={"output": "said"}')
    with pytest.raises(DataError, match="does not exist"):
        check("nowhere.csv")
    with pytest.raises(ConfigError, match="unknown sample field"):
        check([{"who": "a"}], map={"outputs": "who"})
