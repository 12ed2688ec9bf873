"""Judges from one line and from tables."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import tomllib
from typing import Any

import pytest

from evalstone import (
    Cascade,
    Judge,
    LexicalJudge,
    Limits,
    LoggingJudge,
    ModelJudge,
    Panel,
    SelfConsistency,
    parse_judge,
)
from evalstone.errors import ConfigError
from evalstone.judges.parse import as_value, table_of, with_setting

A, B = ModelJudge("vllm/a"), ModelJudge("vllm/b")
DEEPEST = f"{'self_consistency(' * 21}{{}}{')' * 21}"
"""A judge in 21 others, so that it has one level of brackets in 20 levels of them."""


@pytest.mark.parametrize(
    ("spec", "judge"),
    [
        ("lexical", LexicalJudge()),
        ("vllm/a", A),
        ("vllm/a()", A),
        ("vllm/a(temperature=0.7, seed=1)", ModelJudge("vllm/a", temperature=0.7, seed=1)),
        ("vllm/a(temperature=None, logprobs=True)", ModelJudge("vllm/a", temperature=None, logprobs=True)),
        ("vllm/a(base_url=http://h:1/v1)", ModelJudge("vllm/a", base_url="http://h:1/v1")),
        ("vllm/a(prices=[1, 2.5])", ModelJudge("vllm/a", prices=(1, 2.5))),
        ('vllm/a(language="Old, (very) English")', ModelJudge("vllm/a", language="Old, (very) English")),
        ("panel(vllm/a, lexical)", Panel(A, LexicalJudge())),
        (" panel( vllm/a ,vllm/b, vote = mean,quorum=1 ) ", Panel(A, B, vote="mean", quorum=1)),
        ("cascade(lexical, vllm/a, threshold=0.7)", Cascade(LexicalJudge(), A, threshold=0.7)),
        (
            "self_consistency(vllm/a(temperature=1.0), repeats=3)",
            SelfConsistency(ModelJudge("vllm/a", temperature=1.0), 3),
        ),
        ("vllm/a(max_concurrency=2)", ModelJudge("vllm/a", limits=Limits(max_concurrency=2))),
        ("panel(vllm/a, vllm/b, log=l.jsonl)", LoggingJudge(Panel(A, B), "l.jsonl")),
        (
            "cascade(panel(lexical, vllm/a), self_consistency(vllm/b))",
            Cascade(Panel(LexicalJudge(), A), SelfConsistency(B)),
        ),
    ],
)
def test_a_judge_on_one_line(spec: str, judge: Any) -> None:
    assert parse_judge(spec) == judge


@pytest.mark.parametrize(
    "judge",
    [
        LexicalJudge(),
        ModelJudge("vllm/a", temperature=0.5, seed=3, max_tokens=10, logprobs=True),
        ModelJudge("vllm/a", base_url="http://h:1/v1", seed=3),
        ModelJudge("vllm/a", logprobs=False),
        Cascade(LexicalJudge(), A, threshold=0.123456789),
        Panel(A, B, vote="mean", quorum=1),
        Panel(LexicalJudge(), SelfConsistency(ModelJudge("vllm/a", temperature=None), repeats=2), vote="unanimous"),
        Cascade(Panel(A, B), ModelJudge("openai/gpt-5.1", reasoning_effort="low"), threshold=0.75),
    ],
    ids=lambda judge: judge.identity,
)
def test_an_identity_reads_back_as_the_judge(judge: Any) -> None:
    assert parse_judge(judge.identity) == judge


@pytest.mark.parametrize(
    ("toml", "judge"),
    [
        ('judge = {panel = ["vllm/a", "lexical"], vote = "unanimous"}', Panel(A, LexicalJudge(), vote="unanimous")),
        (
            'judge = {cascade = ["lexical", {model = "vllm/a"}], threshold = 0.8}',
            Cascade(LexicalJudge(), A, threshold=0.8),
        ),
        ('[judge]\nself_consistency = {model = "vllm/a"}\nrepeats = 2', SelfConsistency(A, 2)),
        (
            'judge = {panel = ["vllm/a", "vllm/b"], max_requests = 9, log = "x"}',
            LoggingJudge(Panel(A, B, limits=Limits(max_requests=9)), "x"),
        ),
    ],
)
def test_a_judge_in_a_table(toml: str, judge: Any) -> None:
    assert parse_judge(tomllib.loads(toml)["judge"]) == judge


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("panl(vllm/a, vllm/b)", "did you mean panel"),
        ("panel", "panel needs its members"),
        ("panel(vllm/a)", "at least two judges"),
        ("panel(vllm/a, vllm/b, votes=mean)", "did you mean vote"),
        ("panel(vllm/a, vllm/b, vote=mean, vote=mean)", "vote appears twice"),
        ("panel(vote=mean, vllm/a)", "judges come before settings"),
        ("panel(vllm/a, , vllm/b)", "nothing between two commas"),
        ("panel(vllm/a, vllm/b", "is written as name or name"),
        ("panel(vllm/a, vllm/b))", "don't match"),
        ("panel(vllm/a(, vllm/b)", "don't match"),
        ("vllm/a(vllm/b)", "takes settings"),
        ("vllm/a(temprature=1)", "did you mean temperature"),
        ("lexical(temperature=1)", "has no settings"),
        ("cascade(lexical, vllm/a, vllm/b)", "two judges"),
        ("cascade(lexical, vllm/a, threshold=high)", "from 0 to 1, not 'high'"),
        ("self_consistency(vllm/a, vllm/b)", "takes one judge, not 2"),
        ("self_consistency(vllm/a, repeats=x)", "whole number"),
        ({"panel": ["vllm/a", "vllm/b"], "cascade": []}, "it has panel, cascade"),
        ({"panel": "vllm/a"}, "takes a list of judges"),
        ({"panel": ["vllm/a", 5]}, "not 5"),
        ({}, "needs a model"),
        ("panel(" * 3000 + "lexical" + ")" * 3000, "more than 20 levels deep in 'panel(panel("),
        (DEEPEST.format("panel(lexical, lexical)"), "more than 20 levels deep in"),
        ("lexical@0", "unknown judge 'lexical@0'"),
        ("vllm/a(model=b)", "vllm/a takes no model=… in a line"),
        ("qwen3-8b", "did you mean ollama/qwen3-8b? Models are named provider/model"),
        ("o3-mini", "did you mean openai/o3-mini?"),
        ({"model": "vllm/a", "log": 5}, "log must be the path"),
        ({"model": "vllm/a", "log": ""}, "log must be the path"),
        ({"model": "vllm/a", "panel": ["lexical"]}, "it has model, panel"),
    ],
)
def test_what_is_no_judge_is_refused_with_the_reason(spec: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        parse_judge(spec)


def test_a_line_may_have_20_levels_of_brackets_and_a_key_is_text() -> None:
    table: Any = table_of(DEEPEST.format("lexical"))
    for _ in range(21):
        (table,) = table["self_consistency"]
    assert table == {"model": "lexical"}
    assert table_of("vllm/a(api_key=0123, seed=0123)") == {"model": "vllm/a", "api_key": "0123", "seed": 123}


@pytest.mark.parametrize("spec", ["lexical", "vllm/a"])
def test_a_judge_that_is_not_named_is_not_imported(spec: str) -> None:
    code = f"import sys; from evalstone.judges.parse import parse_judge; parse_judge({spec!r}); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"evalstone.judges.parse"} <= set(loaded)
    assert not {f"evalstone.judges.{name}" for name in ("cascade", "composite", "voting", "logging")} & set(loaded)
    assert ("evalstone.judges.model" in loaded) is (spec == "vllm/a")


@pytest.mark.parametrize(
    ("written", "made"),
    [
        (Panel("lexical", "openai/a", vote="mean"), Panel(LexicalJudge(), ModelJudge("openai/a"), vote="mean")),
        (Cascade("lexical", {"model": "openai/a", "seed": 1}), Cascade(LexicalJudge(), ModelJudge("openai/a", seed=1))),
        (SelfConsistency("openai/a(temperature=1.0)", 3), SelfConsistency(ModelJudge("openai/a", temperature=1.0), 3)),
    ],
)
def test_a_judge_of_judges_takes_their_names_and_tables(written: Judge, made: Judge) -> None:
    assert written == made
    assert pickle.loads(pickle.dumps(written)) == made


@pytest.mark.parametrize(
    "text", ["align.json", "al,1.json", "a(1).json", " a.json ", "1", "none", "[a]", "it's.json", 'a".json']
)
def test_a_text_is_written_so_that_it_is_read_as_it_is(text: str) -> None:
    value = as_value(text)
    assert value is not None
    assert table_of(with_setting("openai/gpt-5.1(temperature=0.7)", "base_url", value))["base_url"] == text


def test_a_text_with_both_quotes_and_a_bracket_can_not_be_written() -> None:
    assert as_value("""a(")'""") is None
