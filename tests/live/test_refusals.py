"""What live scoring, guards and watches for drift refuse, in the words that users read."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from evalstone import ConfigError, guard
from evalstone.live import coverage
from tests.live.conftest import Start
from tests.live.test_score_drift import GOOD, World, baseline, scores
from tests.refusals import refused

NAIVE, AWARE = datetime(2026, 1, 1), datetime(2026, 1, 2, tzinfo=UTC)
NO_ZONE = "must be a datetime with a time zone, such as datetime.now(UTC), not"


def answer(question: str) -> str:
    return question


async def later(*_: object) -> None: ...


def ignored(*_: object) -> None: ...


CHECKED: Any = guard(min={"faithfulness": 0.9})
REFUSED: dict[str, Callable[[Any, World], object]] = {
    "read must be a function of a request and a response": lambda live, world: live.asgi(later, "x"),
    "paths must be a list of paths, not '/ask'": lambda live, world: live.asgi(later, ignored, paths="/ask"),
    "no parameter of answer is one of input, messages, context, instructions, metadata; name one: "
    '@live.watch(input="question")': lambda live, world: live.watch(answer),
    "answer has no parameter 'query', only question": lambda live, world: live.watch(input="query")(answer),
    "unknown field of a watched function 'outptu'; known: context, input, instructions, messages, metadata": (
        lambda live, world: live.watch(outptu="question")(answer)
    ),
    "live.watch takes a function, not int": lambda live, world: live.watch(3),
    "protect takes a function, not int": lambda live, world: CHECKED.protect("no")(3),
    'a guard with mode="block" needs what is returned in place of a blocked answer: protect(fallback=…)': (
        lambda live, world: CHECKED.protect()
    ),
    "answer is a plain function, so its fallback must not be a coroutine function": (
        lambda live, world: CHECKED.protect(later)(answer)
    ),
    "on_verdict must be a plain function of a verdict": (
        lambda live, world: guard(min={"faithfulness": 0.9}, on_verdict=later)  # pyright: ignore[reportArgumentType]
    ),
    f"since {NO_ZONE} {NAIVE!r}": lambda live, world: coverage("shop", ledger=world.url, since=NAIVE),
    f"since {NO_ZONE} '24h'": lambda live, world: world.drift("nightly", since="24h"),
    f"the start of the baseline {NO_ZONE} {NAIVE!r}": lambda live, world: world.drift((NAIVE, AWARE)),
    f"the end of the baseline {NO_ZONE} {NAIVE!r}": lambda live, world: world.drift((AWARE, NAIVE)),
    f"the baseline must end after it begins, not from {AWARE} to {AWARE}": lambda live, world: world.drift(
        (AWARE, AWARE)
    ),
    "baseline must be a run, its ID or name in the ledger, its results folder, or a period: a start and an end as "
    "datetimes; not 5": lambda live, world: world.drift(5),
    "shop has no scores by a scorer of the baseline (s@1); scores are compared if their signatures are equal": (
        lambda live, world: world.drift(baseline(GOOD))
    ),
    "cycle must be above 0, not 0:00:00": lambda live, world: world.drift(baseline(GOOD), cycle=timedelta(0)),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_a_refusal_says_what_was_expected(start: Start, tmp_path: Path, sentence: str) -> None:
    world = World(str(tmp_path / "l.db"))
    world.stream(scores(0.9, 5), scorer="other@1")
    with pytest.raises(ConfigError, match=f"^{re.escape(sentence)}$"):
        REFUSED[sentence](start(), world)


@pytest.mark.parametrize("limit", [0, True])
def test_a_limit_of_bodies_is_a_whole_number(start: Start, limit: Any) -> None:
    with refused("body_limit", "a whole number of 1 or more"):
        start().asgi(later, ignored, body_limit=limit)
