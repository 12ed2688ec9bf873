"""Configurations of promptfoo. Its version 0.121.20 ran those of the fixtures: `facts` as it is, and `systems` with the
provider `echo`."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from evalstone import Sample, Score, ScriptedJudge, score
from evalstone._core.guards import is_object
from evalstone.compat.configs.assertions import python_pattern
from evalstone.compat.configs.project import Project, project_of
from evalstone.compat.configs.promptfoo_config import MOST_TESTS
from evalstone.compat.configs.providers import model_of
from evalstone.errors import DataError
from evalstone.scorers.registry import parse_scorers
from evalstone.targets import ModelTarget, parse_target
from evalstone.targets.base import parameter_values

FOLDER = Path(__file__).parent
HEAD = "prompts: ['{{q}}']\nproviders: [openai:gpt-5.1]\n"


def made(tmp_path: Path, text: str, **files: str) -> Project:
    (tmp_path / "promptfooconfig.yaml").write_text(text, "utf-8")
    for name, content in files.items():
        (tmp_path / name.replace("__", ".")).write_text(content, "utf-8")
    return project_of(tmp_path / "promptfooconfig.yaml")


def settings(project: Project) -> dict[str, Any]:
    return tomllib.loads(project.files["evalstone.toml"])


def cases(project: Project) -> list[dict[str, Any]]:
    return [json.loads(line) for line in project.files["cases.jsonl"].splitlines()]


def test_tests_outputs_verdicts_scores_and_named_metrics_are_those_of_promptfoo():
    project = project_of(FOLDER / "facts" / "promptfooconfig.yaml")
    rows = json.loads((FOLDER / "facts" / "expected.json").read_text("utf-8"))["rows"]
    assert project.samples == len(rows) == 20
    for row, case in zip(rows, cases(project), strict=True):
        assert case["output"] == row["output"]
        sample = Sample(**case)
        scores = {
            "passed": score("sample_checks", sample).outcome,
            "score": score({"name": "sample_checks", "share": True}, sample).outcome,
        } | {
            label: score({"name": "sample_checks", "label": label, "share": True}, sample).outcome
            for label in row["namedScores"]
        }
        values = {name: each.value for name, each in scores.items() if isinstance(each, Score)}
        assert values == pytest.approx({"passed": float(row["success"]), "score": row["score"], **row["namedScores"]})
    labels = [each["label"] for each in settings(project)["scorers"] if is_object(each)]
    assert labels == ["length", "place", "letters"]
    assert project.gaps == ["latency: the answers are in the file, and no target is called"]


def test_prompts_are_rendered_as_promptfoo_does_for_each_provider():
    project = project_of(FOLDER / "systems" / "promptfooconfig.yaml")
    toml = settings(project)
    expected = json.loads((FOLDER / "systems" / "expected.json").read_text("utf-8"))
    assert (toml["trials"], toml["judge"], project.samples) == (2, "openai/gpt-5.1-mini", 3)
    samples = [Sample(**case) for case in cases(project)]
    by_model: dict[str, list[list[str]]] = {}
    for table in toml["experiment"]["targets"]:
        target = parse_target({name: value for name, value in table.items() if name not in ("name", "api_key")})
        if not isinstance(target, ModelTarget):
            assert (table["output"], table["headers"]) == ("choices.0.text", {"Authorization": "Bearer ${TOKEN}"})
            continue
        sent = [target._messages(parameter_values(each, trial=1, thread=""), each) for each in samples]  # pyright: ignore[reportPrivateUsage]
        by_model.setdefault(table["address"], []).append(
            [
                m[0].content
                if len(m) == 1
                else json.dumps([{"role": one.role, "content": one.content} for one in m], separators=(",", ":"))
                for m in sent
            ]
        )
    assert [*by_model] == ["openai/gpt-5.1", "anthropic/claude-sonnet-4-5"]
    for ours in by_model.values():
        assert ours == [[*dict.fromkeys(theirs)] for theirs in expected]
        assert all(len(mine) * toml["trials"] == len(theirs) for mine, theirs in zip(ours, expected, strict=True))
    assert cases(project)[0]["metadata"]["rubrics"] == ["speaks of rain"]
    assert cases(project)[2]["reference"] == "Hail is ice"
    page = project.files["not-converted.md"]
    for gap in ("## javascript", "- test 1, line 25", "## the provider python:provider.py", "## top_k of a provider"):
        assert gap in page
    assert "MY_KEY" in project.files["evalstone.toml"]


@pytest.mark.parametrize(
    ("assertion", "outputs"),
    [
        ("{type: contains, value: a}", {"xax": 1, "XAX": 0}),
        ("{type: not-icontains, value: a}", {"XAX": 0, "x": 1}),
        ("{type: contains-all, value: 'a, \"b,c\"'}", {"b,c a": 1, "a b c": 0}),
        ("{type: icontains-any, value: [A, B]}", {"xb": 1, "c": 0}),
        ("{type: starts-with, value: a.}", {"a.b": 1, "ab": 0, "\na.": 0}),
        ("{type: regex, value: 'a$'}", {"ba": 1, "ba\n": 0}),
        ("{type: not-regex, value: '\\d'}", {"1": 0, "٣": 1}),
        ("{type: equals, value: 3.0}", {"3": 1, "3.0": 0}),
        ("{type: equals, value: {a: [1]}}", {'{"a": [1]}': 1, '{"a": [2]}': 0, "a": 0}),
        ("{type: is-json}", {"{}": 1, "x": 0}),
        ("{type: is-json, value: 'type: object'}", {"{}": 1, "[]": 0}),
        ("{type: contains-json}", {"```json\n{}\n```": 1, "x": 0}),
        ("{type: assert-set, threshold: 0.5, assert: [{type: contains, value: a}, {type: contains, value: b}]}",
         {"a": 1, "c": 0}),
        ("{type: assert-set, assert: [{type: contains, value: a}, {type: contains, value: b}]}", {"ab": 1, "a": 0}),
        ("{type: contains, value: a, weight: 0}\n    - {type: contains, value: b}", {"b": 1, "a": 0}),
    ],
)  # fmt: skip
def test_an_assertion_becomes_a_check_with_the_same_verdict(tmp_path: Path, assertion: str, outputs: dict[str, int]):
    project = made(tmp_path, f"{HEAD}tests:\n- vars: {{q: x}}\n  assert:\n    - {assertion}\n")
    toml = settings(project)
    assert toml["require"] == ["sample_checks"]
    assert toml["target"] == {"address": "openai/gpt-5.1"}
    assert [parse.name for parse in parse_scorers(toml["scorers"])] == ["sample_checks"]
    (case,) = cases(project)
    for output, expected in outputs.items():
        outcome = score("sample_checks", Sample(**case, output=output)).outcome
        assert (isinstance(outcome, Score) and outcome.value) == expected, output


@pytest.mark.parametrize(
    ("assertion", "gap"),
    [
        ("{type: javascript, value: 'true'}", "javascript: it has no counterpart"),
        ("{type: contains, value: 'file://x.js'}", "contains: its value is code"),
        ("{type: contains, value: a, transform: output.x}", "contains: transform is code"),
        ("{type: contains, value: '{{ q | upper }}'}", "contains: its value has a template with more than a name"),
        ("{type: contains, value: '{{ env.KEY }}'}", "contains: its value has a template with more than a name"),
        ("{type: contains}", "contains: it has no value, or one of another type"),
        ("{type: regex, value: '(?<=a*)b'}", "regex: regex: "),
        ("{type: not-llm-rubric, value: rude}", "not-llm-rubric: a judged assertion can't be inverted"),
        ("{type: 'promptfoo:redteam:pii'}", "promptfoo:redteam:pii: attacks aren't generated"),
        ("{type: contians, value: a}", "contians: this type of assertion isn't known"),
        ("{type: levenshtein, threshold: 3, value: a}", "levenshtein: nearest: levenshtein"),
    ],
)
def test_what_has_no_counterpart_is_named_with_its_test(tmp_path: Path, assertion: str, gap: str):
    tests = f"tests:\n- description: first\n  vars: {{q: x}}\n  assert:\n    - {assertion}\n"
    project = made(tmp_path, HEAD + tests)
    assert project.gaps[0].startswith(gap)
    assert "- test 1 ('first'), line 4" in project.files["not-converted.md"]
    assert settings(project)["scorers"] == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tests: file://../x.csv", "line 1: 'file://../x.csv' is outside of the configuration's folder"),
        ("\ntests: file:///etc/passwd", "line 2: 'file:///etc/passwd' is outside"),
        ("\n\ntests: [link.csv]", "line 3: 'link.csv' is outside"),
        ("tests:\n- file://none*.yaml", "line 2: 'file://none*.yaml' names no file"),
        ("tests:\n- vars: {a: file://none.txt}", "line 2: none.txt can't be read"),
        ("tests:\n- 3", "line 2: a test is a table"),
        ("tests:\n- assert: {type: equals}", "line 2: assert must be a list"),
        ("tests: file://bad.csv", "bad.csv: line 3: the row has 1 cells, the header 2"),
        ("tests: file://tests.py:make", "no test can be read: the tests 'file://tests.py:make': they are made by code"),
        ("redteam: {plugins: [pii]}", "it has no tests; attacks"),
        ("providers: [3]", "line 1: a provider is a name"),
        ("tests:\n- {$ref: '#/none'}", "line 2: $ref: '#/none' is no part of the configuration"),
        ("x: {$ref: '#/x'}", "a $ref refers to itself"),
        ("\ntests: bad.yaml", "line 2: bad.yaml: test 2: a test is a table"),
        ("[]", "a configuration is a mapping"),
        ("services:\n  web: {image: x}", "no configuration of promptfoo: it has none of prompts, providers, "),
    ],
)
def test_a_configuration_that_cannot_be_read_is_refused_with_its_line(tmp_path: Path, text: str, problem: str):
    folder = tmp_path / "config"
    folder.mkdir()
    (tmp_path / "secret.csv").write_text("q\n1\n", "utf-8")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    with pytest.raises(DataError) as error:
        made(folder, text, bad__csv="a,b\n1,2\n3\n", bad__yaml="- {}\n- 3\n")
    assert problem in str(error.value)


DOUBLED = "x0: {a: 1}\n" + "".join(f"x{n}: [{{$ref: '#/x{n - 1}'}}, {{$ref: '#/x{n - 1}'}}]\n" for n in range(1, 30))
FILLED = "with files, references and variables filled in, its tests have more than 50,000,000 characters"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tests: [{vars: {q: '{{r}}{{r}}', r: '{{q}}{{q}}'}}]", FILLED),
        (f"defaultTest: {{vars: {{r: '{'x' * 100_000}'}}}}\ntests:\n" + "- vars: {q: a}\n" * 600, FILLED),
        (f"prompts: ['{'{{q}}' * 9}']\nproviders: [echo]\ntests: [{{vars: {{q: '{'x' * 9_000_000}'}}}}]", FILLED),
        ("tests:\n" + "- vars: {q: 'file://long.txt'}\n" * 60, FILLED),
        (f"prompts: [{', '.join(['file://long.txt'] * 60)}]\ntests: [{{vars: {{q: a}}}}]", FILLED),
        pytest.param(
            f"prompts: ['{''.join(f'{{{{v{n}}}}}' for n in range(5_000))}']\ntests:\n" + "- vars: {q: a}\n" * 400,
            FILLED,
            marks=pytest.mark.slow,
        ),
        (DOUBLED + "tests: [{vars: {q: {$ref: '#/x29'}}}]", "line 22: with its references written out, it has more"),
        (DOUBLED + "tags: {a: {$ref: '#/x29'}}", "line 22: with its references written out, it has more"),
        (
            f"prompts: [{', '.join(f'p{n}' for n in range(400))}]\ntests:\n" + "- vars: {q: a}\n" * 300,
            "120,000 tests, one for each prompt; at most 100,000 are read",
        ),
        (
            f"prompts: ['{{{{q}}}}']\nproviders: [{', '.join(f'openai:gpt-{n}' for n in range(1_001))}]",
            "1,001 targets, one for each provider and prompt; at most 1,000 are read",
        ),
        pytest.param(
            f"scenarios: [{{config: [{'{}, ' * 3_000}], tests: [{'{vars: {q: 1}}, ' * 3_000}]}}]",
            "more than 100,000 tests",
            marks=pytest.mark.slow,
        ),
        ("tests: file://pipe.yaml", "line 3: pipe.yaml is no file"),
        (f"tests: file://{'x' * 300}.yaml", "xxx.yaml can't be read: File name too long"),
        pytest.param(
            f"tests: file://{'*/' * 30}none.yaml",
            "can't be followed: it leads through too many folders",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_configuration_that_grows_without_end_is_refused_soon(tmp_path: Path, text: str, problem: str):
    for name in ("round", "about"):
        (tmp_path / name).symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(DataError) as error:
        made(tmp_path, text if "prompts:" in text else HEAD + text, long__txt="x" * 1_000_000)
    assert problem in str(error.value).replace(str(tmp_path), "")
    assert str(error.value).count("promptfooconfig.yaml") == 1


def test_a_pattern_names_each_file_once_without_hidden_ones_and_without_going_round(tmp_path: Path):
    folder = tmp_path / "[tone]"
    (folder / "tests" / "more").mkdir(parents=True)
    (folder / "tests" / "round").symlink_to(folder, target_is_directory=True)
    for name in ("b.yaml", "a.yaml", "more/c.yaml", ".hidden.yaml", "d.txt"):
        (folder / "tests" / name).write_text(f"- vars: {{q: {name}}}\n", "utf-8")
    (folder / "tests" / "e.yaml").symlink_to(folder / "tests" / "a.yaml")
    found = cases(made(folder, HEAD + "tests: ['file://tests/**/*.yaml']"))
    assert [case["input"] for case in found] == ["a.yaml", "b.yaml", "more/c.yaml"]
    found = cases(made(folder, HEAD + "tests: ['file://t*s/*.yaml']"))
    assert [case["input"] for case in found] == ["a.yaml", "b.yaml"]


def test_the_text_of_an_assertion_may_be_in_a_file_with_variables(tmp_path: Path):
    text = HEAD + "tests: [{vars: {q: Why?}, assert: [{type: contains, value: 'file://said.txt'}]}]"
    assert "You asked: Why?" in json.dumps(cases(made(tmp_path, text, said__txt="You asked: {{q}}\n")))


def test_braces_that_no_brace_closes_are_read_in_time(tmp_path: Path):
    text = "{{ {% {# " * 50_000
    project = made(tmp_path, f"prompts: ['{text}', '{{{{q}}}}']\nproviders: [echo]\ntests: [{{vars: {{q: '{text}'}}}}]")
    assert cases(project)[0]["input"] == text


@pytest.mark.parametrize("number", ["0x" + "f" * 5_000, "0b" + "1" * 20_000])
def test_a_number_of_many_digits_is_text(tmp_path: Path, number: str):
    assert cases(made(tmp_path, HEAD + f"tests: [{{vars: {{q: {number}}}}}]"))[0]["input"] == number
    column = f"q,__config:__expected{number}:threshold\n1,1\n"
    assert len(cases(made(tmp_path, HEAD + "tests: t.csv", t__csv=column))) == 1


def test_files_of_the_repository_around_a_configuration_are_read(tmp_path: Path):
    folder = tmp_path / "repository" / "evals" / "tone"
    folder.mkdir(parents=True)
    (tmp_path / "secret.csv").write_text("q\n1\n", "utf-8")
    (tmp_path / "repository" / "tests.csv").write_text("q\nWhy?\n", "utf-8")
    with pytest.raises(DataError, match="outside of the configuration's folder"):
        made(folder, HEAD + "tests: file://../../tests.csv")
    (tmp_path / "repository" / ".git").mkdir()
    assert [case["input"] for case in cases(made(folder, HEAD + "tests: file://../../tests.csv"))] == ["Why?"]
    with pytest.raises(DataError, match="outside of the configuration's repository"):
        made(folder, HEAD + "tests: file://../../../secret.csv")


def test_files_of_variables_are_named_from_the_file_of_their_test(tmp_path: Path):
    for name, text in {
        "tests/one.yaml": "- vars: ../vars/q.yaml\n- vars: [more.yml]\n- vars: {q: file://text.txt}\n",
        "tests/more.yml": "q: two\n",
        "vars/q.yaml": "q: one\n",
        "text.txt": "three\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    project = made(tmp_path, HEAD + "tests: file://tests/*.yaml")
    assert [case["input"] for case in cases(project)] == ["one", "two", "three"]


CODE = '{"assert": [{"type": "javascript", "value": "true"}]}'


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("prompts: exec:make\ntests: [{vars: {q: a}}]", "line 2"),
        (f"prompts: [a]\ntests: [{CODE}]", "test 1, line 3"),
        ("prompts: [a]\ntests: t.yaml", "t.yaml, test 2"),
        ("prompts: [a]\ntests:\n- t.jsonl", "t.jsonl, test 2"),
        ("prompts: [a]\ntests: t.py:make\nscenarios: [{tests: [{vars: {q: a}}]}]", "line 3"),
        ("prompts: [a]\nscenarios:\n- config: [{}]\n  tests: t.xlsx\ntests: [{vars: {q: a}}]", "line 5"),
        ("prompts: [a]\nscenarios:\n- tests: t.jsonl", "scenario 1, t.jsonl, test 2"),
    ],
)
def test_a_gap_names_its_test_or_line(tmp_path: Path, text: str, place: str):
    lines = f'{{"vars": {{"q": "a"}}}}\n\n{CODE}\n'
    project = made(tmp_path, f"providers: echo\n{text}", t__jsonl=lines, t__yaml=f"- vars: {{q: a}}\n- {CODE}")
    assert f"- {place}\n" in project.files["not-converted.md"]


@pytest.mark.parametrize("name", ["tests", "providers", "scenarios"])
def test_files_that_name_themselves_are_refused(tmp_path: Path, name: str):
    itself = json.dumps(["file://t.yaml"])
    with pytest.raises(DataError, match=r"line 2: t.yaml names itself"):
        made(tmp_path, f"prompts: [a]\n{name}: [file://t.yaml]", t__yaml=itself)


@pytest.mark.slow
def test_files_that_name_files_that_name_files_are_limited(tmp_path: Path):
    named = {f"t{n}__yaml": json.dumps([f"file://t{n + 1}.yaml"] * 9) for n in range(6)}
    with pytest.raises(DataError, match="more than 10,000 files"):
        made(tmp_path, "prompts: [a]\ntests: file://t0.yaml", **named, t6__yaml="[]")


def test_providers_that_are_the_same_here_are_one_target(tmp_path: Path):
    project = made(
        tmp_path,
        """\
prompts: ['{{q}}']
providers:
- {id: openai:gpt-5.1, label: first, config: {tools: [a], temperature: 1}}
- {id: openai:gpt-5.1, label: second, config: {tools: [b], temperature: 1}}
- {id: openai:gpt-5.1, label: third, config: {temperature: 0}}
- {id: openai:gpt-5.1, label: fourth, config: {temperature: 0, headers: {X-Variant: a, Authorization: '{{env.A}}'}}}
- {id: openai:gpt-5.1, label: fifth, config: {temperature: 0, headers: {X-Variant: b, Authorization: '{{env.A}}'}}}
- {id: openai:gpt-5.1, label: sixth, config: {temperature: 0, headers: {X-Variant: b, Authorization: '{{env.B}}'}}}
tests: [{vars: {q: Why?}}]
""",
    )
    assert [target["name"] for target in settings(project)["experiment"]["targets"]] == [
        "first", "third", "fourth", "fifth",
    ]  # fmt: skip
    for one, other in (("second", "first"), ("sixth", "fifth")):
        why = f"the provider {one}: with what is taken over of it, it is the same as {other}, which is asked once"
        assert why in project.gaps


def test_products_of_variables_are_limited_before_they_are_made(tmp_path: Path):
    letters = [chr(97 + number) for number in range(10)]
    names = {f"v{number}": letters for number in range(6)}
    with pytest.raises(DataError, match=f"line 4: the combinations of its vars are more than {MOST_TESTS:,} tests"):
        made(tmp_path, f"{HEAD}tests:\n- vars: {json.dumps(names)}\n")


def test_columns_of_a_csv_file_are_read_by_promptfoos_names(tmp_path: Path):
    table = (
        "q,__expected1,__expected2,__metric,__threshold,__metadata:lang,__metadata:tags[],__config:__expected1:threshold\n"
        '1,contains: a,"grade: is polite",tone,0.5,fr,"x, y\\,z",0.9\n'
        "2,,,,,,,0.1\n"
    )
    project = made(tmp_path, f"{HEAD}tests: tests.csv", tests__csv=table)
    first, second = cases(project)
    assert first["metadata"] == {
        "lang": "fr",
        "tags": ["x", "y,z"],
        "checks": {
            "checks": [{"name": "contains", "expected": "a", "ignore_case": False, "label": "tone"}],
            "at_least": 0.5,
        },
        "rubrics": [" is polite"],
    }
    assert second == {"input": "2"}


def test_a_blank_variable_is_a_blank_input(tmp_path: Path):
    project = made(
        tmp_path, "prompts: ['Say {{it}}']\nproviders: openai:gpt-5.1\ntests: [{vars: {it: ''}}, {vars: {it: a}}]"
    )
    assert cases(project) == [{"input": ""}, {"input": "a"}]
    assert settings(project)["target"]["prompt"] == "Say {input}"


def test_prompts_without_variables_are_what_is_asked(tmp_path: Path):
    project = made(
        tmp_path, "prompts: [Say a., Say b.]\nproviders: openai:gpt-5.1\ntests: [{assert: [{type: is-json}]}]"
    )
    assert [case["input"] for case in cases(project)] == ["Say a.", "Say b."]
    assert settings(project)["target"] == {"address": "openai/gpt-5.1"}


def test_judged_assertions_are_scorers_of_all_samples(tmp_path: Path):
    rubric = "{type: llm-rubric, value: kind, provider: 'anthropic:x'}"
    asserts = f"[{{type: g-eval, value: clear}}, {{type: answer-relevance}}, {rubric}]"
    project = made(
        tmp_path, f"{HEAD}defaultTest: {{assert: {asserts}}}\ntests: [{{vars: {{q: a}}}}, {{vars: {{q: b}}}}]"
    )
    toml = settings(project)
    assert toml["scorers"] == ["rubric", "answer_relevancy", {"name": "geval", "text": "clear"}]
    assert toml["judge"] == "anthropic/x"
    assert toml["require"] == ["rubric"]
    assert "pass_rate" not in toml
    assert project.judged


def test_what_a_judge_must_say_is_required_and_what_has_no_weight_is_not(tmp_path: Path):
    asserts = "[{type: llm-rubric, value: kind}, {type: llm-rubric, value: short, weight: 0}]"
    project = made(tmp_path, f"{HEAD}tests: [{{vars: {{q: a}}, assert: {asserts}}}]")
    (case,) = cases(project)
    assert case["metadata"]["rubrics"] == ["kind", {"description": "short", "required": False}]
    assert (settings(project)["require"], project.gaps) == (["rubric"], [])
    outcomes: list[Any] = []
    for kind in ("yes", "no"):
        said = {"1": {"reason": "r", "verdict": kind}, "2": {"reason": "r", "verdict": "no"}}
        judge = ScriptedJudge([{"verdicts": said}])
        outcomes.append(score("rubric", Sample(**case, output="Hi."), judge=judge).outcome)
    assert [isinstance(each, Score) and each.value for each in outcomes] == [1, 0]


@pytest.mark.parametrize(
    ("tests", "toml", "gaps"),
    [
        ("context-faithfulness, threshold: 0.8|context-faithfulness, threshold: 0.8", {"faithfulness": [0.8, 1.0]}, []),
        (
            "context-recall, value: r, threshold: 1|context-recall, value: s, threshold: 1",
            {"context_recall": [1, 1]},
            [],
        ),
        (
            "context-faithfulness, threshold: 0.8|context-faithfulness, threshold: 0.9",
            None,
            ["threshold of faithfulness: it differs between tests"],
        ),
        ("context-faithfulness, threshold: 0.8|context-faithfulness", None, ["threshold of faithfulness: it differs"]),
        ("context-faithfulness, threshold: 0.8, weight: 0|context-faithfulness, threshold: 0.8, weight: 0", None, []),
        (
            "answer-relevance, threshold: 0.8|answer-relevance, threshold: 0.8",
            None,
            ["answer-relevance: threshold: the judge's scores are others"],
        ),
        ("llm-rubric, value: kind, weight: 2|llm-rubric, value: kind", None, ["llm-rubric: weight: all criteria"]),
        ("llm-rubric, value: kind, weight: 0|llm-rubric, value: kind", None, ["llm-rubric: weight: no criterion of"]),
        ("llm-rubric, value: kind, metric: m|llm-rubric, value: kind", None, ["llm-rubric: metric: its name is"]),
    ],
)
def test_thresholds_and_weights_of_judged_assertions_are_converted_or_named(
    tmp_path: Path, tests: str, toml: dict[str, list[float]] | None, gaps: list[str]
):
    listed = ", ".join(f"{{vars: {{q: x}}, assert: [{{type: {each}}}]}}" for each in tests.split("|"))
    project = made(tmp_path, f"{HEAD}tests: [{listed}]")
    made_toml = settings(project)
    assert made_toml.get("pass_rate") == toml
    assert made_toml.get("alpha") == (toml and "none")
    assert [gap.startswith(start) for gap, start in zip(project.gaps, gaps, strict=True)] == [True] * len(gaps), (
        project.gaps
    )


@pytest.mark.parametrize("identity", ["https://example.org/answer", "openai:gpt-5.1"])
def test_keys_in_headers_are_not_copied(tmp_path: Path, identity: str):
    key = "sk-4f9a1c3e5b7d9f2a"
    headers = {"Authorization": f"Bearer {key}", "X-Api-Key": "{{ env.MY_KEY }}", "X-Team": "search"}
    config = {"headers": headers, "body": {"text": "{{prompt}}"}}
    provider = json.dumps({"id": identity, "config": config})
    project = made(tmp_path, f"prompts: ['{{{{q}}}}']\nproviders: [{provider}]\ntests: [{{vars: {{q: a}}}}]")
    assert settings(project)["target"]["headers"] == {"X-Api-Key": "${MY_KEY}", "X-Team": "search"}
    assert any("Authorization" in gap and "a key isn't copied" in gap for gap in project.gaps)
    assert key not in "".join(project.files.values())


@pytest.mark.parametrize(
    ("pattern", "python"),
    [
        (r"(?<n>a)\k<n>$", r"(?P<n>a)(?P=n)\Z"),
        (r"[\d\]$]\/\w", r"[0-9\]$]/[A-Za-z0-9_]"),
        (r"(?<!a)\D\u00e9[^[]", r"(?<!a)[^0-9]\u00e9[^\[]"),
    ],
)
def test_a_regular_expression_of_javascript_is_one_of_python(pattern: str, python: str):
    assert python_pattern(pattern) == python


def test_many_tests_are_read_in_time(tmp_path: Path):
    rows = "".join(f"question {number},contains: {number}\n" for number in range(2000))
    project = made(tmp_path, f"{HEAD}tests: tests.csv", tests__csv=f"q,__expected\n{rows}")
    assert project.samples == 2000
    assert {file.name for file in tmp_path.iterdir()} == {"promptfooconfig.yaml", "tests.csv"}  # nothing is written


def test_the_example_of_the_page_becomes_what_the_page_says(tmp_path: Path):
    page = (FOLDER.parents[2] / "docs" / "migrate" / "promptfoo.md").read_text("utf-8")
    project = made(tmp_path, page.partition("```yaml\n")[2].partition("```")[0])
    assert settings(project) == {
        "data": "cases.jsonl",
        "scorers": ["sample_checks", "rubric"],
        "judge": "openai/gpt-5.1",
        "out": "results",
        "require": ["sample_checks", "rubric"],
        "target": {"address": "openai/gpt-5.1", "prompt": "Answer in one sentence: {input}"},
    }
    assert cases(project) == [
        {
            "input": "When was Ada born?",
            "reference": "1815",
            "metadata": {"checks": [{"name": "contains", "expected": "1815"}], "rubrics": ["is polite"]},
        }
    ]
    assert project.gaps == []


@pytest.mark.parametrize(
    ("identity", "model"),
    [
        ("openai:gpt-5.1", "openai/gpt-5.1"),
        ("openai:responses:gpt-5.1", "openai/gpt-5.1"),
        ("anthropic:messages:claude-x", "anthropic/claude-x"),
        ("ollama:chat:llama3:8b", "ollama/llama3:8b"),
        ("togetherai:meta/llama", "together/meta/llama"),
        ("openrouter:google/gemini", "openrouter/google/gemini"),
        ("openai:chat", None),
        ("openai:embedding:x", None),
        ("anthropic:claude-agent-sdk", None),
        ("typesafe:x", None),
        ("python:x.py", None),
    ],
)
def test_a_provider_is_a_model_if_evalstone_knows_it(identity: str, model: str | None):
    assert model_of(identity) == model
