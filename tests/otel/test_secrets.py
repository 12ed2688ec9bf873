"""No secret leaves in a span or an event."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import evalstone
from evalstone import Judge, JudgeAnswer, Sample, Score
from evalstone._core.redaction import register
from evalstone.errors import ProviderTimeout
from evalstone.otel.attributes import CONTENT, EXPLANATION, messages, target_name
from evalstone.scorers import Scorer
from evalstone.types import Usage
from tests.otel.emitted import Emitted, attributes

SAID = "the server said api_key=hunter2-abc \x1b[2J" + "\u202ex" * 5000


class Leaks(Scorer):
    """Raises what has a secret in it."""

    name = "leaks"

    def score(self, *, output: str) -> Score:
        raise ValueError(SAID)


class Refuses(Judge):
    """Raises what has a secret in it."""

    @property
    def identity(self) -> str:
        return "refuses/all"

    def price(self, usage: Usage) -> float | None:
        return None

    async def answer(self, question: Any, repeat: int = 0) -> JudgeAnswer[Any]:
        raise ProviderTimeout(SAID)


def test_what_goes_wrong_is_said_without_secrets(emitted: Emitted) -> None:
    with emitted.enabled():
        evalstone.score(Leaks(), Sample(output="x"), ledger=None)
        evalstone.score("faithfulness", Sample(output="x", context=["x"]), judge=Refuses(), ledger=None)
    said = [span.status.description for span in emitted.spans if span.status.description]
    said += [str(event.attributes["gen_ai.evaluation.explanation"]) for event in emitted.events]
    said += [event.body for event in emitted.events]
    assert len(said) == 7
    for text in said:
        assert "the server said" in text
        assert "hunter2" not in text
        assert "\x1b" not in text
        assert len(text) <= EXPLANATION  # what is escaped is longer


def test_a_secret_at_the_place_where_a_message_is_cut_leaves_no_part() -> None:
    register("tok-cut5678abcdef")
    for before in range(CONTENT - 20, CONTENT + 1):
        assert "tok" not in messages([("user", "." * before + "tok-cut5678abcdef")])


def test_a_message_is_no_longer_than_is_said_though_all_of_it_is_escaped() -> None:
    (message,) = json.loads(messages([("user", "\u202e" * CONTENT)]))
    assert len(message["parts"][0]["content"]) == CONTENT


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("/home/ann/secret/app.py:agent", "app.py:agent"),
        ("../app.py:agent@2 with tools a/b", "app.py:agent@2 with tools a/b"),
        ("app.py:agent", "app.py:agent"),
        ("my.module:agent", "my.module:agent"),
        ("http://127.0.0.1/v1", "http://127.0.0.1/v1"),
        ("cmd:python /srv/run.py: x", "cmd:python /srv/run.py: x"),
    ],
)
def test_the_name_of_a_target_has_no_folders_of_its_user(name: str, shown: str) -> None:
    assert target_name(name) == shown


def test_the_path_of_a_target_s_file_is_exported_nowhere(emitted: Emitted, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("def agent(*, input):\n    return 'Ada'\n")
    with emitted.enabled():
        evalstone.evaluate(
            [{"input": "Who?"}], "contains(expected=Ada)", target=f"{tmp_path}/app.py:agent", ledger=None
        )
    (call,) = emitted.named("invoke_agent app.py:agent")
    (metric,) = emitted.metric("evalstone.target.duration")
    said = [str(dict(each)) for each in (attributes(call), metric, emitted.events[0].attributes)]
    assert not [text for text in said if str(tmp_path) in text]


class Weighed(Scorer):
    """Has a number."""

    name = "weighed"
    weight: float = 1.0

    def score(self, *, output: str) -> Score:
        return Score(1.0)


@pytest.mark.parametrize("weight", [math.nan, math.inf, -math.inf])
def test_the_parameters_of_a_scorer_are_json_though_a_number_is_none(emitted: Emitted, weight: float) -> None:
    def no_number(text: str) -> None:
        raise ValueError(text)

    with emitted.enabled():
        evalstone.score(Weighed(weight=weight), Sample(output="x"), ledger=None)
    source = emitted.events[0].attributes["gen_ai.evaluation.evaluator.source"]
    assert json.loads(source, parse_constant=no_number)["arguments"] == {"weight": str(weight)}
