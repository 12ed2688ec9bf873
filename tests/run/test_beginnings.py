"""Calls whose prompts begin alike: the first runs alone, and the others read its beginning from the cache."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from evalstone import Judge, JudgeAnswer, ModelJudge, SelfConsistency, evaluate
from evalstone.errors import JudgeError
from evalstone.models.provider import cached_beginning
from evalstone.questions import ClaimSupported
from evalstone.questions.base import Question
from evalstone.run.beginnings import REMEMBERED, Beginnings
from evalstone.run.session import AskScope, Session
from evalstone.types import NO_USAGE, Usage
from tests.fakes import Load
from tests.serving import Response, completion, filled, serving

A = TypeVar("A")

CONTEXT = tuple(
    " ".join(f"Room {room} of floor {floor} shows {room + floor} paintings." for room in range(30))
    for floor in range(5)
)
CLAIMS = [f"The museum has {count} rooms." for count in range(6)]
ANSWER = " ".join(CLAIMS)
SUPPORTED = '{"reason": "Passage 1 lists the rooms.", "verdict": "yes"}'


def common(one: str, other: str) -> int:
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


@dataclass
class Caching:
    """A model server that counts cached tokens as providers do: what a prompt that was answered has in common with
    this one, from 1024 tokens, at four characters each."""

    delay: float = 0.05
    prompts: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])

    def __call__(self, request: dict[str, Any], _: int) -> Response:
        prompt, now = "\n".join(message["content"] for message in request["messages"]), time.monotonic()
        read = [text for answered, text in self.prompts if answered <= now]
        cached = max((common(text, prompt) // 4 for text in read), default=0)
        self.prompts.append((now + self.delay, prompt))
        body = completion(json.dumps(filled(request["response_format"]["json_schema"]["schema"], prompt)))
        details = {"cached_tokens": cached if cached >= 1024 else 0}
        body["usage"] = {"prompt_tokens": len(prompt) // 4, "completion_tokens": 20, "prompt_tokens_details": details}
        return Response(body=body, delay=self.delay)


def usage_of(scorer: str, ledger: Path | None = None, repeats: int = 1) -> list[Usage]:
    """The usage of each call to a server with a cache."""
    with serving(Caching()) as server:
        judge: Judge = ModelJudge("vllm/m", base_url=server.url)
        judge = SelfConsistency(judge, repeats) if repeats > 1 else judge
        sample = {"input": "How many rooms?", "output": ANSWER, "context": CONTEXT}
        record = evaluate([sample], [scorer], judge=judge, ledger=ledger).records[0]
    return [leaf.usage for call in record.calls for leaf in call.leaves()]


@pytest.mark.parametrize("ledger", [False, True])
def test_the_sentences_of_an_answer_read_the_passages_from_the_cache(tmp_path: Path, ledger: bool) -> None:
    usage = usage_of("fact_check", tmp_path / "l.db" if ledger else None)
    assert len(usage) == len(CLAIMS)
    assert sum(it.cached == 0 for it in usage) == 1
    assert sum(it.input - it.cached for it in usage) < 1.5 * usage[0].input


def test_repetitions_of_a_question_read_all_of_it_from_the_cache() -> None:
    usage = usage_of("answer_faithfulness", repeats=4)
    assert len(usage) == 4
    assert sorted(it.cached for it in usage)[0] == 0
    assert all(it.cached == it.input for it in sorted(usage, key=lambda it: it.cached)[1:])


class Watched(Judge, eq=False):
    """Answers every question after two turns of the loop, or fails, and notes how many others were asked meanwhile."""

    fails: bool = False
    cacheable: bool = True
    load: Load = field(default_factory=Load)
    at_once: list[int] = field(default_factory=list[int])
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    beginnings: list[str] = field(default_factory=list[str])

    @property
    def identity(self) -> str:
        return "watched"

    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        with self.load:
            self.asked.set()
            self.beginnings.append(cached_beginning())
            for _ in range(3):
                await asyncio.sleep(0)
            self.at_once.append(self.load.now)
        if self.fails:
            raise JudgeError("broken")
        return JudgeAnswer(value=question.parse(SUPPORTED), judge="watched", reply=SUPPORTED, usage=NO_USAGE)


def asked(judge: Watched, *contexts: tuple[str, ...], claims: int = 4) -> Watched:
    async def ask() -> None:
        scope = AskScope(Session(judge))
        questions = [ClaimSupported(claim=claim, context=context) for context in contexts for claim in CLAIMS[:claims]]
        await asyncio.gather(*map(scope, questions), return_exceptions=True)

    asyncio.run(ask())
    return judge


def test_the_first_call_of_each_beginning_runs_alone_and_the_others_together() -> None:
    assert asked(Watched(), CONTEXT).at_once == [1, 3, 2, 1]
    assert asked(Watched(), CONTEXT, CONTEXT[1:]).at_once[:2] == [2, 1]


@pytest.mark.parametrize("judge", [Watched(cacheable=False), Watched()], ids=["no model", "short"])
def test_nothing_waits_without_a_model_or_for_less_than_a_provider_caches(judge: Watched) -> None:
    assert asked(judge, CONTEXT if not judge.cacheable else ("The museum: 40 rooms.",)).at_once == [4, 3, 2, 1]


def test_the_others_are_sent_together_if_the_first_fails() -> None:
    assert asked(Watched(fails=True), CONTEXT).at_once == [1, 3, 2, 1]


def test_a_provider_is_told_what_several_prompts_have_in_common() -> None:
    beginnings = asked(Watched(), CONTEXT).beginnings
    user = ClaimSupported(claim=CLAIMS[0], context=CONTEXT).render()[1]
    assert beginnings == [user[: user.index("The museum has 0")]] * 4
    assert asked(Watched(), CONTEXT, claims=1).beginnings == [""]


def test_what_fails_first_is_not_written_to_the_cache_by_each_of_the_others() -> None:
    assert asked(Watched(fails=True), CONTEXT).beginnings[1:] == [""] * 3


@pytest.mark.parametrize("together", [1, 2])
def test_a_call_that_comes_after_the_first_was_sent_changes_no_mark(together: int) -> None:
    judge = Watched()
    other = (*CONTEXT[:-1], "The museum has a café.")

    async def ask() -> None:
        scope = AskScope(Session(judge))
        begun = asyncio.gather(*(scope(ClaimSupported(claim=claim, context=CONTEXT)) for claim in CLAIMS[:together]))
        await judge.asked.wait()
        await asyncio.gather(begun, *(scope(ClaimSupported(claim=claim, context=other)) for claim in CLAIMS))

    asyncio.run(ask())
    assert judge.at_once[0] == 1
    assert len(judge.beginnings) == together + len(CLAIMS)
    assert set(judge.beginnings) == {asked(Watched(), CONTEXT, claims=together).beginnings[0]}


def test_the_beginnings_in_use_are_remembered_and_only_so_many() -> None:
    async def together(beginnings: Beginnings, number: int) -> int:
        """How many of two calls with a beginning are made at once: both, if it is remembered."""
        now = most = 0

        async def ask() -> None:
            nonlocal now, most
            question = ClaimSupported(claim="It is old.", context=(f"Museum {number}.", *CONTEXT))
            async with beginnings.in_turn("judge", question, nullcontext()):
                now += 1
                most = max(most, now)
                await asyncio.sleep(0)
                now -= 1

        await asyncio.gather(ask(), ask())
        return most

    async def work() -> tuple[list[int], int, int, int]:
        beginnings = Beginnings()
        first = [await together(beginnings, number) for number in range(REMEMBERED)]
        used = await together(beginnings, 0)
        await together(beginnings, REMEMBERED)
        return first, used, await together(beginnings, 0), await together(beginnings, 1)

    assert asyncio.run(work()) == ([1] * REMEMBERED, 2, 2, 1)


def test_a_beginning_whose_first_call_failed_is_tried_alone_again() -> None:
    question = ClaimSupported(claim="It is old.", context=CONTEXT)

    async def work() -> list[str]:
        beginnings, events = Beginnings(), list[str]()

        async def ask(name: str, *, fails: bool = False) -> None:
            async with beginnings.in_turn("judge", question, nullcontext()):
                events.append(f"{name} begins")
                await asyncio.sleep(0)
                if fails:
                    raise JudgeError("broken")
                events.append(f"{name} ends")

        await asyncio.gather(ask("a", fails=True), return_exceptions=True)
        await asyncio.gather(ask("b"), ask("c"))
        return events

    assert asyncio.run(work()) == ["a begins", "b begins", "b ends", "c begins", "c ends"]
