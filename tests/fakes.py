"""What the tests of several modules share: example questions, prepared replies, and one scorer put to one sample."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import evalstone.questions
from evalstone._core.prompts import Material
from evalstone.judges.scripted import Script, ScriptedJudge
from evalstone.questions.base import Question
from evalstone.run.scoring import score_sample
from evalstone.run.session import AskScope, Session
from evalstone.scorers import Scorer
from evalstone.types import Outcome, Record, Sample, Score
from tests.serving import resolved

ROOT = Path(__file__).parent.parent


def _question_kinds() -> tuple[type[Question[Any]], ...]:
    exported: list[Any] = [getattr(evalstone.questions, name) for name in evalstone.questions.__all__]
    return tuple(e for e in exported if Question in getattr(e, "__mro__", ()) and "kind" in vars(e))


QUESTION_KINDS = _question_kinds()


def material_fields(kind: type[Question[Any]]) -> dict[str, bool]:
    """The names of a question's materials, and whether each is a list of texts."""
    return {
        field.name: "tuple" in str(field.type)
        for field in dataclasses.fields(kind)
        if field.name != "prompt" and field.name not in kind.settings
    }


def question_of(kind: type[Question[Any]], text: str, *, items: int = 2) -> Question[Any]:
    """A question whose every material is this text; lists hold it `items` times."""
    materials: dict[str, Material] = {
        name: (text,) * items if is_list else text for name, is_list in material_fields(kind).items()
    }
    return kind(**materials)


def fits(data: Any, schema: Mapping[str, Any]) -> bool:
    """Whether data is what a JSON schema of our making asks for."""
    schema = resolved(schema)
    match schema["type"]:
        case "object":
            members: Mapping[str, Any] = schema["properties"]
            return (
                isinstance(data, dict)
                and set(schema["required"]) <= set(cast("dict[str, Any]", data)) <= set(members)
                and all(fits(value, members[key]) for key, value in cast("dict[str, Any]", data).items())
            )
        case "array":
            return (
                isinstance(data, list)
                and len(cast("list[Any]", data)) <= schema.get("maxItems", sys.maxsize)
                and all(fits(item, schema["items"]) for item in cast("list[Any]", data))
            )
        case "string":
            return isinstance(data, str) and data in schema.get("enum", [data])
        case "integer":
            return isinstance(data, int) and not isinstance(data, bool)
        case "number":
            return isinstance(data, int | float) and schema.get("minimum", data) <= data <= schema.get("maximum", data)
        case "boolean":
            return isinstance(data, bool)
        case other:
            raise AssertionError(f"no schema of ours has the type {other!r}")


def record_of(scorer: Scorer, sample: Sample, script: Script, *, retries: int = 0) -> tuple[Record, ScriptedJudge]:
    """What the engine's `apply` makes of one scorer and sample, and the judge that was asked."""
    judge = ScriptedJudge(script, retries=retries)

    async def work() -> Record:
        return await score_sample(scorer, sample, Session(judge))

    return asyncio.run(work()), judge  # in this thread, where hypothesis may be asked for data


def outcome_of(scorer: Scorer, sample: Sample, script: Script) -> Outcome:
    return record_of(scorer, sample, script)[0].outcome


def score_of(scorer: Scorer, sample: Sample, script: Script) -> Score:
    """The scorer's own score, with its evidence as the values that a record has as JSON data."""

    async def work() -> Outcome:
        return await scorer.run(AskScope(Session(ScriptedJudge(script, retries=0))), sample)

    outcome = asyncio.run(work())
    assert isinstance(outcome, Score), outcome
    return outcome


def claims(*texts: str) -> dict[str, Any]:
    return {"claims": list(texts)}


def statements(*texts: str) -> dict[str, Any]:
    return {"statements": list(texts)}


def verdicts(*words: str | tuple[str, Sequence[int]]) -> dict[str, Any]:
    """A reply with one numbered verdict for each word; a pair is a word and the passages that it cites.

    A verdict that has to cite a passage cites the first one unless told otherwise.
    """
    members: dict[str, Any] = {}
    for number, given in enumerate(words, start=1):
        word, cited = (given, (1,) * (given in ("supported", "contradicted"))) if isinstance(given, str) else given
        members[str(number)] = {"reason": f"because {number}", "passages": list(cited), "verdict": word}
    return {"verdicts": members}


def ratings(*passages: tuple[str, bool], missing: Iterable[str] = ()) -> dict[str, Any]:
    """A reply that rates passages: the level of each, and whether the answer used it."""
    members = {
        str(number): {"reason": f"because {number}", "level": level, "used": used}
        for number, (level, used) in enumerate(passages, start=1)
    }
    return {"passages": members, "missing": list(missing)}


def python(code: str, *options: str, timeout: float = 60, **environment: str) -> str:
    """What a fresh interpreter prints when it runs `code`; a test that could hang or end the process runs here."""
    done = subprocess.run(
        [sys.executable, *options, "-c", code],
        cwd=ROOT,
        env={"PATH": "", **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


async def longest_wait(work: Awaitable[object]) -> float:
    """The longest that a pause of 10 ms took on the event loop while something was done on it, in seconds."""
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.01)
            longest = max(longest, time.perf_counter() - before)

    watching = asyncio.create_task(watch())
    await work
    watching.cancel()
    return longest


def awaited(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine, run in a loop of its own."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(test(**fixtures))

    return run


class Load:
    """How many calls are in flight, how many there were at most, and how many in all."""

    def __init__(self) -> None:
        self.now = self.most = self.count = 0

    def __enter__(self) -> None:
        self.count += 1
        self.now += 1
        self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        self.now -= 1
