"""Calls whose prompts begin alike: the first one runs alone, so that the provider's prompt cache can serve the others.

Providers cache the beginning of a prompt, from about 1024 tokens, once they have read it. Calls that are sent together
all miss the cache: each sentence of an answer would pay for the passages again.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from evalstone._core.text import BYTES_PER_TOKEN
from evalstone.models.provider import caching
from evalstone.questions.base import Question

CACHED_FROM = 1024
"""The fewest tokens that providers cache."""
REMEMBERED = 256
"""The maximum number of beginnings in memory."""


class _Beginning:
    """The first call of those whose prompts begin alike.

    shared: the lines that the user messages begin with in common, as far as they are known when the first one is sent;
    empty if it is the only one by then. user: the first message, until it is sent.
    """

    __slots__ = ("answered", "shared", "user")

    def __init__(self, user: str) -> None:
        self.answered = asyncio.Event()
        self.user = user
        self.shared = ""

    def add(self, user: str) -> None:
        """Add a call that waits for the first one. Once that is sent, nothing changes: if it had no mark for the cache,
        each of the others would pay for writing it."""
        if not self.user:
            return
        lines = zip((self.shared or self.user).splitlines(keepends=True), user.splitlines(keepends=True), strict=False)
        self.shared = "".join(one for one, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], lines))


class Beginnings:
    """The beginnings of a session's prompts."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, ...], _Beginning] = OrderedDict()

    def in_turn(
        self, judge: str, question: Question[Any], slot: AbstractAsyncContextManager[Any]
    ) -> AbstractAsyncContextManager[Any]:
        """A slot that is entered after the first call to a judge with the same beginning, if that is in flight. Its
        failure is ignored: the others are then sent together, because to try them in turn could take as long as all
        their timeouts."""
        beginning = _beginning_of(question)
        return slot if beginning is None else self._in_turn((judge, *beginning), question.render()[1], slot)

    @asynccontextmanager
    async def _in_turn(
        self, key: tuple[str, ...], user: str, slot: AbstractAsyncContextManager[Any]
    ) -> AsyncGenerator[None]:
        if (first := self._known.get(key)) is not None:
            self._known.move_to_end(key)
            if not first.answered.is_set():
                first.add(user)
                await first.answered.wait()
            with caching(first.shared):
                async with slot:
                    yield
            return
        first = self._known[key] = _Beginning(user)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        try:
            await asyncio.sleep(0)  # calls that were started together are here after one turn of the loop
            first.user = ""
            with caching(first.shared):
                async with slot:
                    yield
        except BaseException:
            first.shared = ""  # each of the others would pay for writing the cache
            if self._known.get(key) is first:
                del self._known[key]
            raise
        finally:
            first.user = ""
            first.answered.set()


def _beginning_of(question: Question[Any]) -> tuple[str, str, str] | None:
    """A prompt's beginning: the hash of the reply format that providers put in front of it, and the first characters of
    the system message and the user message; None if the prompt is too short for a cache."""
    size = CACHED_FROM * BYTES_PER_TOKEN
    if question.most_characters < size:
        return None
    system, user = question.render()
    if len(system) + len(user) < size:
        return None
    form = question.reply_form
    return form.digest if form else "", system[:size], user[: max(0, size - len(system))]
