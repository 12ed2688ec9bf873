"""Judges for tests: one that says what it was told to say, and one that repeats what was recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

from evalstone.errors import CannotAnswerError, DataError, UsageError
from evalstone.judges.base import Judge, Reply, Turn, converse
from evalstone.question import Answer, Question
from evalstone.types import Usage

A = TypeVar("A")

Script: TypeAlias = "Sequence[Any] | Mapping[str, Any] | Callable[[Question[Any]], Any]"


class ScriptedJudge(Judge):
    """Gives prepared replies, through the same reading and retrying as a model's.

    script: a list (replies in the order of asking, retries included), a mapping from question kind to a reply or a list
    of replies, or a function of the question. A reply is the raw text, data that is sent as JSON, or a `Reply`, which
    may carry probabilities. `asked` collects the questions. When a list is used up the judge has nothing more to say,
    and the question fails.
    """

    costly = False

    def __init__(self, script: Script, *, retries: int = 3) -> None:
        if isinstance(script, str):
            raise UsageError("a script is a list, a mapping or a function; one reply is a list of one")
        self.script = script
        self.retries = retries
        self.asked: list[Question[Any]] = []
        self._said: dict[str, int] = {}

    @property
    def identity(self) -> str:
        return "scripted"

    def __repr__(self) -> str:
        return f"ScriptedJudge(retries={self.retries})"

    async def answer(self, question: Question[A]) -> Answer[A]:
        self.asked.append(question)

        async def send(turns: list[Turn]) -> Reply | None:
            said = self._next(question)
            if said is None or isinstance(said, Reply):
                return said
            return Reply(said if isinstance(said, str) else json.dumps(said), Usage(requests=1))

        return await converse(question, send, judge=self.identity, retries=self.retries)

    def _next(self, question: Question[Any]) -> Any:
        if callable(self.script):
            return self.script(question)
        if isinstance(self.script, Mapping):
            said = self.script.get(question.kind)
            if not isinstance(said, list):
                return said
            return self._at(cast("list[Any]", said), question.kind)
        return self._at(self.script, "")

    def _at(self, replies: Sequence[Any], key: str) -> Any:
        index = self._said.get(key, 0)
        self._said[key] = index + 1
        return replies[index] if index < len(replies) else None


class ReplayJudge(Judge):
    """Repeats recorded answers and asks nobody: scoring again with changed arithmetic costs no call.

    replies: raw replies by question fingerprint. alternatives: by fingerprint, the probabilities that came with a
    reply. A question that was not recorded cannot be answered; the outcome is Skipped with that reason.
    """

    costly = False
    note = "recorded answers; nothing is asked"

    def __init__(
        self,
        replies: Mapping[str, str],
        *,
        alternatives: Mapping[str, Mapping[str, float]] | None = None,
        source: str = "",
    ) -> None:
        self.replies = replies
        self.alternatives = alternatives or {}
        self.source = source

    @classmethod
    def from_records(cls, path: str | Path) -> ReplayJudge:
        """The answers behind a `records.jsonl`. Raises DataError when the file is not one."""
        file = Path(path)
        try:
            with file.open(encoding="utf-8") as lines:
                read = list(_replies(lines, file))
                replies = {fingerprint: reply for fingerprint, reply, _ in read}
                weighed = {fingerprint: weights for fingerprint, _, weights in read if weights}
                return cls(replies, alternatives=weighed, source=str(file))
        except OSError as error:
            raise DataError(f"{file} cannot be read: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise DataError(f"{file} is no text in UTF-8, so not a records.jsonl") from None

    @property
    def identity(self) -> str:
        return f"replay({self.source})" if self.source else "replay"

    def __repr__(self) -> str:
        return f"ReplayJudge({len(self.replies)} answers, source={self.source!r})"

    async def answer(self, question: Question[A]) -> Answer[A]:
        reply = self.replies.get(question.fingerprint)
        if reply is None:
            raise CannotAnswerError(f"no answer to this {question.kind} question was recorded")
        weights = self.alternatives.get(question.fingerprint)
        value = question.read_weighed(reply, weights)
        return Answer(value=value, judge=self.identity, reply=reply, alternatives=weights)


def _replies(lines: Iterable[str], file: Path) -> Iterable[tuple[str, str, Mapping[str, float] | None]]:
    for number, line in enumerate(lines, start=1):
        try:
            steps = json.loads(line)["steps"]
            said = [s for s in steps if s["reply"] is not None and s["answer"] is not None]
            kept = [(s["fingerprint"], s["reply"], s.get("alternatives")) for s in said]
            if not all(isinstance(part, str) for step in kept for part in step[:2]):
                raise TypeError("fingerprint and reply must be text")
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{file}, line {number}: not a line of records.jsonl ({error!r})") from None
        yield from kept
