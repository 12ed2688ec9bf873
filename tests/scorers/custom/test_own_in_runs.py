"""Scorers of one's own in runs: by table, by module, in a dry run, beside others, resumed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evalstone._core.sync import run as wait
from evalstone.api import evaluate
from evalstone.errors import ConfigError
from evalstone.judges import LexicalJudge, ModelJudge, ScriptedJudge
from evalstone.run.dry_run import estimate
from evalstone.run.planning import plan_for
from evalstone.scorers import Faithfulness, GEval, LLMClassifier, Pipeline, PromptStep, parse_scorer
from tests.serving import serving

SAMPLES = [{"id": str(n), "input": "q", "output": f"answer {n}", "context": ["p"]} for n in range(4)]
OWN = [
    LLMClassifier("Is {{output}} polite?", name="polite"),
    GEval("The answer is plain.", name="plain"),
    Pipeline(analyze=PromptStep("{{output}}?", list[str]), score=PromptStep("{{analyze}}: rate."), name="steps"),
]


def test_a_table_with_a_kind_is_a_scorer() -> None:
    table = {
        "kind": "llm_classifier",
        "name": "polite",
        "question": "Is {{output}} polite?",
        "choices": {"yes": 1, "no": 0},
        "abstain": "unclear",
    }
    assert parse_scorer(table) == LLMClassifier("Is {{output}} polite?", name="polite", abstain="unclear")
    plain = {"kind": "geval", "name": "plain", "text": "Plain.", "fields": ["output"], "steps": ["one"]}
    assert parse_scorer(plain) == GEval("Plain.", name="plain", fields=("output",), steps=("one",))


def test_one_can_be_written_on_the_command_line() -> None:
    question = "Is {{output}} kind?"
    assert parse_scorer(f"llm_classifier(question={question!r}, scale=10)") == LLMClassifier(question, scale=10)


@pytest.mark.parametrize("form", ["{}(limit=3)", "table"])
def test_parameters_of_a_function_are_refused(tmp_path: Path, form: str) -> None:
    (tmp_path / "polite.py").write_text("def polite(*, output):\n    return True\n")
    address = f"{tmp_path}/polite.py:polite"
    spec: Any = {"name": address, "limit": 3} if form == "table" else form.format(address)
    with pytest.raises(ConfigError) as raised:
        parse_scorer(spec)
    assert str(raised.value) == f"the scorer {address} takes no parameters: it is a scorer, and not a class of scorers"


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (
            {"kind": "llm_clasifier", "question": "x"},
            "unknown kind of scorer 'llm_clasifier'; did you mean llm_classifier",
        ),
        ({"kind": "llm_classifier", "queston": "x"}, "unknown parameter 'queston'; did you mean question"),
        ({"kind": "llm_classifier"}, "question"),
        ({"kind": 3}, "unknown kind of scorer"),
        ("no_such_module:x", "no module no_such_module"),
        ("json:no_such_name", "json has no no_such_name"),
        ("json:dumps", "json:dumps is not a scorer"),
        (":x", "not ':x'"),
    ],
)
def test_a_wrong_table_or_path_is_refused(table: object, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse_scorer(table)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def x(:", r"SyntaxError: invalid syntax \(own_\d\.py, line 1\)"),
        ("\nx = nowhere", r"NameError: name 'nowhere' is not defined \(own_\d\.py, line 2\)"),
        ("import json\nx = json.loads('[')", r"JSONDecodeError: .* \(own_\d\.py, line 2\)"),
        (
            "from dataclasses import dataclass\nfrom evalstone import Scorer\n@dataclass\nclass x(Scorer):\n"
            "  name = 'x'\n  def score(self, *, output): ...",
            r"ConfigError: x is .*: remove @dataclass \(own_\d\.py, line 3\)",
        ),
        (
            "from evalstone import Scorer\nclass x(Scorer):\n  name = 'x'\n"
            "  def __post_init__(self): raise OSError('no file')\n  def score(self, *, output): ...",
            r"OSError: no file \(own_\d\.py, line 4\)",
        ),
    ],
)
def test_a_module_that_raises_is_refused_with_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, code: str, told: str
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    name = f"own_{request.node.callspec.indices['code']}"
    (tmp_path / f"{name}.py").write_text(code)
    with pytest.raises(ConfigError, match=f"the scorer {name}:x can't be \\w+: {told}"):
        parse_scorer(f"{name}:x")


def test_they_run_beside_others_against_a_model() -> None:
    with serving() as server:
        judge = ModelJudge("openai/gpt-4o-mini", base_url=server.url, api_key="k")
        run = evaluate(SAMPLES, [*OWN, "faithfulness"], judge=judge, ledger=None)
    counts = {line.info.name: (line.n_score, line.n_failed) for line in run.summary}
    assert counts == dict.fromkeys(("polite", "plain", "steps", "faithfulness"), (4, 0))


def test_a_dry_run_prices_them_without_asking() -> None:
    plan = plan_for(SAMPLES, OWN, judge=ModelJudge("openai/gpt-4o-mini", api_key="k"))
    found = wait(estimate(plan))
    assert found.kinds == {"choose": 4, "write_steps": 1, "score_by_criterion": 4, "answer_as": 4, "give_number": 4}
    assert [(line.name, line.n_failed, line.n_skipped) for line in found.scorers] == [
        ("polite", 0, 0),
        ("plain", 0, 0),
        ("steps", 0, 0),
    ]


def test_the_lexical_judge_cannot_answer_them_and_says_so() -> None:
    run = evaluate(SAMPLES, OWN[0], judge=LexicalJudge(), ledger=None)
    assert run["polite"].n_skipped == 4
    assert "questions (choose)" in run["polite"].reasons[0][0]


def test_an_unfinished_run_is_taken_up(tmp_path: Path) -> None:
    judge = ScriptedJudge([{"reason": "r", "verdict": "yes"}] * 3)
    ledger = tmp_path / "ledger.db"
    first = evaluate(SAMPLES, OWN[0], judge=judge, ledger=ledger)
    assert (first["polite"].n_score, first["polite"].n_failed) == (3, 1)
    json.dumps(first.to_dicts())


def test_the_command_line_takes_them_from_a_file_and_from_a_module(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in SAMPLES))
    (tmp_path / "my_scorers.py").write_text(
        "from evalstone import Pipeline\n"
        "def length(so_far): return min(1.0, len(so_far.sample.output) / 100)\n"
        "short = Pipeline(score=length, required_fields='output', name='short')\n"
    )
    (tmp_path / "run.toml").write_text(
        'data = "data.jsonl"\njudge = "openai/gpt-4o-mini"\nledger = "ledger.db"\nout = "out"\n'
        'scorers = ["my_scorers:short", '
        '{ kind = "llm_classifier", name = "polite", question = "Is {{output}} polite?" }]\n'
        'alpha = "none"\n[min]\npolite = 0.5\n'
    )
    with serving() as server:
        done = subprocess.run(
            [sys.executable, "-m", "evalstone", "run", "run.toml", "--quiet"],
            cwd=tmp_path,
            env={**os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr + done.stdout
    assert "short" in done.stdout
    assert "polite" in done.stdout
    assert "evalstone scorers short" not in done.stdout


def test_the_command_line_shows_definitions_and_other_systems_names() -> None:
    def shown(*arguments: str) -> str:
        command = [sys.executable, "-m", "evalstone", "scorers", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout

    assert re.search(rf"deepeval +{re.escape(Faithfulness.definitions['deepeval'].formula)} *\n", shown("faithfulness"))
    assert "createFaithfulnessScorer" in shown("--from", "mastra")
    with pytest.raises(subprocess.CalledProcessError) as raised:
        shown("--from", "mstra")
    assert re.search(r"tool 'mstra'; .* mastra", raised.value.stderr)
