"""ModelJudge against a real llama.cpp server: it has no json_schema, gives token probabilities, and talks noise."""

from __future__ import annotations

import asyncio
import functools
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evalstone import Failed, ModelJudge, Score, evaluate
from evalstone._core.parsing import choice_schema, member, numbered, numbered_schema, object_schema
from evalstone._core.prompts import Prompt
from evalstone.errors import ProviderError, ReplyError
from evalstone.questions import VerifyClaims
from evalstone.questions.base import Answer, LabelProbabilities, Question
from tests.fakes import fits
from tests.llama.conftest import Llama

WORDS = ("supported", "contradicted", "not_mentioned")
ASKED = Prompt("Say for each statement which word fits.", "{{statements}}\n\nWhich words?")

GRADED = Prompt("Give the text a mark from 1 to 5.", "{{text}}")


@dataclass(frozen=True)
class PickWords(Question[tuple[str, ...]]):
    """One of three words for each statement: nothing in the reply is free."""

    kind = "pick_words"
    statements: tuple[str, ...]
    prompt: Prompt = ASKED

    @functools.cached_property
    def json_schema(self) -> Mapping[str, Any]:
        return object_schema({"words": numbered_schema(choice_schema(WORDS), len(self.statements))})

    def from_json(self, data: Any) -> tuple[str, ...]:
        return tuple(numbered(member(data, "words"), len(self.statements), of="statement"))

    def example(self) -> Any:
        return {"words": {str(n): WORDS[0] for n in range(1, len(self.statements) + 1)}}


@dataclass(frozen=True)
class PickMark(Question[str]):
    """A mark from 1 to 5, and how probable each of them was."""

    kind = "pick_mark"
    text: str
    prompt: Prompt = GRADED

    @property
    def label_probabilities(self) -> LabelProbabilities:
        return LabelProbabilities("mark", ("1", "2", "3", "4", "5"))

    @functools.cached_property
    def json_schema(self) -> Mapping[str, Any]:
        return object_schema({"mark": choice_schema(self.label_probabilities.labels)})

    def from_json(self, data: Any) -> str:
        return str(member(data, "mark"))

    def example(self) -> Any:
        return {"mark": "3"}


def judge(llama: Llama, **settings: Any) -> ModelJudge:
    settings = {"max_tokens": 400, "total_timeout": 60.0, **settings}
    return ModelJudge("llamacpp/noise", base_url=llama.url, **settings)


def answered(judge: ModelJudge, *questions: Question[Any]) -> list[Answer[Any]]:
    async def ask() -> list[Answer[Any]]:
        async with judge.opened():
            return [await judge.answer(question) for question in questions]

    return asyncio.run(ask())


def test_a_closed_schema_is_always_answered_at_once_and_the_refused_form_is_tried_once(llama: Llama) -> None:
    refused = llama.answered(500)
    questions = [PickWords(tuple(f"Statement {n} of {i}." for n in range(1 + i % 4))) for i in range(20)]
    answers = answered(judge(llama), *questions)
    for question, answer in zip(questions, answers, strict=True):
        assert len(answer.value) == len(question.statements)
        assert set(answer.value) <= set(WORDS)
        assert fits(json.loads(answer.reply or ""), question.json_schema)
        assert answer.usage.requests == 1
        assert answer.usage.input > 0
        assert answer.usage.output > 0
    assert len({answer.reply for answer in answers}) > 1
    assert llama.answered(500) == refused + 1


def test_the_probabilities_of_real_tokens_are_those_of_the_word_that_came(llama: Llama) -> None:
    for answer in answered(judge(llama, logprobs=True), *(PickMark(f"text {n}") for n in range(10))):
        assert answer.confidence is not None
        assert 0 < answer.confidence <= 1
        assert answer.alternatives is not None
        assert set(answer.alternatives) <= set("12345")
        assert 0 < sum(answer.alternatives.values()) <= 1 + 1e-6
        # At temperature 0 the most probable of the words is what comes.
        assert max(answer.alternatives, key=lambda word: (answer.alternatives or {})[word]) == answer.value


def test_noise_that_does_not_end_is_an_error_with_the_raw_reply_after_the_corrections(llama: Llama) -> None:
    # The shortest reply that the schema allows has more tokens than this, of one character each.
    with pytest.raises(ReplyError, match="cut off") as raised:
        answered(judge(llama, max_tokens=60, retries=2), VerifyClaims(claims=("Ada lived.",), context=("p",)))
    assert str(raised.value.reply).lstrip().startswith("{")
    assert raised.value.usage.requests == 3
    assert raised.value.usage.output >= 120


def test_a_number_comes_from_whole_replies_only_and_noise_fails_or_is_skipped(llama: Llama) -> None:
    samples = [{"id": str(n), "output": f"Fact {n} is known.", "context": [f"Passage {n}."]} for n in range(8)]
    run = evaluate(samples, "faithfulness", judge=judge(llama, retries=1, max_tokens=200), ledger=None)
    line = run["faithfulness"]
    assert line.scored + line.skipped + line.failed == 8
    assert line.failed
    for record in run.records:
        if isinstance(record.outcome, Failed):
            assert record.outcome.error
            assert record.outcome.reply
        if isinstance(record.outcome, Score):
            for step in record.steps:
                json.loads(step.reply or "", strict=False)


def test_a_prompt_that_is_too_long_is_refused_once_and_says_so(llama: Llama) -> None:
    refused = llama.answered(400)
    with pytest.raises(ProviderError, match="context_length_exceeded"):
        answered(judge(llama), VerifyClaims(claims=("a",), context=("long " * 3000,)))
    assert llama.answered(400) == refused + 1


def test_a_run_on_the_command_line_ends_well_and_the_next_asks_again_only_what_failed(
    llama: Llama, tmp_path: Path
) -> None:
    rows = [{"id": str(n), "output": f"It is number {n}.", "context": ["It is."]} for n in range(4)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "eval.toml").write_text(
        'data = "data.jsonl"\nscorers = ["faithfulness"]\nledger = "l.db"\nout = "res"\n'
        f'[judge]\nmodel = "llamacpp/noise"\nbase_url = "{llama.url}"\nmax_tokens = 60\nretries = 0\n'
    )
    asked: list[int] = []
    failed: list[int] = []
    for _ in range(2):
        before = llama.answered(200)
        done = subprocess.run(
            [sys.executable, "-m", "evalstone", "run", "eval.toml"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        (line,) = json.loads((tmp_path / "res" / "summary.json").read_text())["scorers"]
        asked.append(llama.answered(200) - before)
        failed.append(line["failed"])
        assert done.returncode == (3 if line["failed"] else 0), done.stderr
        assert "Traceback" not in done.stderr
        # What noise says may hold any control character.
        assert not [letter for letter in done.stdout if letter < " " and letter not in "\n\t"]
    assert failed[0]
    assert asked[0] >= 4
    assert failed[0] <= asked[1] <= 2 * failed[0]
