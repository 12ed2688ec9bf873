"""What people read when a target can't be used or gives no answer. Each sentence stands here once."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from typing import Any, cast

import pytest

from evalstone import Run, evaluate
from evalstone.errors import ConfigError
from evalstone.targets import ReplayTarget, Tools, parse_target
from evalstone.targets.users import parse_user
from tests.targets.tool_shop import ANSWERED, CASES, Shop


@cache
def recorded() -> Run:
    return evaluate([{**case, "output": "old"} for case in CASES[:2]], ANSWERED, ledger=None)


async def never(*, input: str) -> str:
    await asyncio.sleep(60)
    return input


def shop(mocks: Any) -> Any:
    return lambda *, input: Shop(Tools.mock(mocks)).search(input)


def asked(target: Any, case: Any = CASES[2]) -> Any:
    return evaluate([case], ANSWERED, target=target, ledger=None)[0].outcome


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ({"function": never, "timeout": 0.05}, "the target failed: no answer within 0.05 s"),
        (lambda *, context: "", "the target needs context, which the sample lacks"),
        (
            {"address": "vllm/m", "prompt": "{context} {metadata.tone}"},
            "the target needs context and metadata.tone, which the sample lacks",
        ),
        (shop({"price": 1}), "the target failed: the tool search has no mock; mocks: price"),
        (shop(lambda sample: 3), "the target failed: the mocks of sample 'q2' must be a mapping, not 3"),
    ],
)
def test_why_there_is_no_answer(target: Any, sentence: str) -> None:
    cases = [CASES[2], {"id": "full", "input": "x", "context": ["c"], "metadata": {"tone": "dry"}}]
    outcome = evaluate(cases, ANSWERED, target=target, ledger=None)[0].outcome
    assert getattr(outcome, "error", getattr(outcome, "reason", "")) == sentence


@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        (lambda: asked("openai/m"), "openai/m needs a key: set the environment variable OPENAI_API_KEY"),
        (
            lambda: asked(never, {"reference": "y"}),
            "no sample can be answered: the target needs input, which the sample lacks",
        ),
        (
            lambda: asked(never, {"id": "q", "input": "?", "metadata": {"target": "mine"}}),
            "in memory: sample 'q' has a target in its metadata, where a run keeps what the call of its target took; "
            "give it another name",
        ),
        (
            lambda: parse_target("replay:nowhere"),
            "there is no results folder 'nowhere' to replay, and no ledger to look for such a run in",
        ),
        (lambda: parse_target("replay:"), "there is no results folder '' to replay"),
        (lambda: ReplayTarget(folder="x", run=recorded()), "a replay needs a folder or a run, not both"),
        (lambda: ReplayTarget(run=cast(Any, 7)), "run must be a RecordedRun, not this int"),
        (
            lambda: ReplayTarget(run=recorded(), version="2"),
            "the version of a replayed run is a hash of its answers; omit version",
        ),
        (
            lambda: parse_user("nobody:talk"),
            "there is no module nobody, which the user nobody:talk names; it is neither installed nor in the current "
            "folder",
        ),
    ],
)
def test_why_a_target_cannot_be_used(use: Callable[[], Any], sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError) as caught:
        use()
    assert str(caught.value) == sentence
