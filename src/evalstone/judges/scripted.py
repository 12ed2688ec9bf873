"""Judges for tests: one with prepared replies, and one that replays recorded answers."""

from __future__ import annotations

import contextlib
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

from evalstone._core.display import count, joined
from evalstone._core.files import file_values
from evalstone.errors import ConfigError, DataError, JudgeDeclined, JudgeError
from evalstone.judges.base import Judge
from evalstone.judges.lexical import LexicalJudge
from evalstone.judges.model import ModelJudge, converse
from evalstone.judges.providers.base import Completion
from evalstone.questions.base import JudgeAnswer, Question
from evalstone.questions.limits import DEFAULT_LIMITS, ContextLimits, narrowest
from evalstone.types import Usage

A = TypeVar("A")

Script: TypeAlias = "Sequence[Any] | Mapping[str, Any] | Callable[[Question[Any]], Any]"


@dataclass(frozen=True, eq=False, repr=False)
class ScriptedJudge(Judge):
    """A judge for tests that returns prepared replies. They are parsed and retried like those of a model.

    A reply is raw text, data that is sent as JSON, or a `Completion`, which can contain probabilities. `asked` collects
    the questions. If a list of replies is exhausted, the question fails.

    Args:
        script: The replies: a list (in the order of the calls, including retries), a mapping from question kind to a
            reply or a list of replies, or a function of the question, `def` or `async def`.
        retries: The maximum number of corrections of a malformed reply.
        name: The judge's name. Different names allow several scripted judges on one panel.
    """

    cacheable = False

    script: Script
    _: KW_ONLY
    retries: int = 3
    name: str = "scripted"
    asked: list[Question[Any]] = field(default_factory=lambda: list[Question[Any]](), init=False)
    _said: dict[str, int] = field(default_factory=lambda: dict[str, int](), init=False)

    def __post_init__(self) -> None:
        if isinstance(self.script, str):
            raise ConfigError("a script is a list, a mapping or a function; one reply is a list of one")

    @property
    def identity(self) -> str:
        return self.name

    def __repr__(self) -> str:
        name = "" if self.name == "scripted" else f", name={self.name!r}"
        return f"ScriptedJudge(retries={self.retries}{name})"

    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        self.asked.append(question)
        replied = False

        async def complete(*_: object) -> Completion | None:
            nonlocal replied
            reply = self._next(question)
            if inspect.isawaitable(reply):
                reply = await reply
            if reply is None and not replied:  # after a reply, what was wrong with it says more
                raise JudgeError(f"{self.identity} has no answer to {question.kind}{self._why_none(question.kind)}")
            replied = True
            if reply is None or isinstance(reply, Completion):
                return reply
            return Completion(reply if isinstance(reply, str) else json.dumps(reply), Usage(requests=1))

        return await converse(question, complete, judge=self.identity, retries=self.retries)

    def _next(self, question: Question[Any]) -> Any:
        if callable(self.script):
            return self.script(question)
        if isinstance(self.script, Mapping):
            said = self.script.get(question.kind)
            if not isinstance(said, list):
                return said
            return self._at(cast("list[Any]", said), question.kind)
        return self._at(self.script, "")

    def _why_none(self, kind: str) -> str:
        """Why there is no reply to a question, after a colon; "" if the script says that there is none."""
        script, key = self.script, ""
        if callable(script):
            return ""
        if isinstance(script, Mapping):
            if kind not in script:
                kinds = joined([repr(each) for each in script])
                return f": it has replies to {kinds}" if kinds else ": it has no replies"
            if not isinstance(script[kind], list):
                return ""
            script, key = cast("list[Any]", script[kind]), kind
        number = len(script)
        if self._said[key] <= number:
            return ""
        verb = "is" if number == 1 else "are"
        return f": its {count(number, 'reply', 'replies')} {verb} used up" if number else ": it has no replies"

    def _at(self, replies: Sequence[Any], key: str) -> Any:
        index = self._said.get(key, 0)
        self._said[key] = index + 1
        return replies[index] if index < len(replies) else None


@dataclass(frozen=True, eq=False, repr=False)
class ReplayJudge(Judge):
    """A judge that replays recorded answers and makes no calls. Use it to score again with changed arithmetic.

    A question that was not recorded has no answer. Its outcome is Skipped, and the reason says so.

    Args:
        calls: The recorded calls by question fingerprint, as in `records.jsonl`: the raw `reply`, or the `answer` as
            data if there was no reply; its probabilities (`alternatives`) and `confidence`; and in `detail` the votes
            for each verdict, so that a cascade splits its questions as before.
        source: Where the calls come from, such as the file.
    """

    cacheable = False
    deterministic = True
    note = "recorded answers; nothing is asked"

    calls: Mapping[str, Mapping[str, Any]]
    source: str = ""
    limits_of_source: ContextLimits = DEFAULT_LIMITS
    """The limits of the recorded judge, so that questions are split into the same parts."""

    @classmethod
    def from_records(cls, path: str | Path, *, judge: str | None = None) -> ReplayJudge:
        """Replay the answers in a `records.jsonl`, or in a log written by `LoggingJudge`.

        Args:
            path: The file.
            judge: The identity of a composite judge's member, to replay its answers. A panel of such recordings can
                vote again without calls. None replays the answers that the scorers received.

        Raises:
            DataError: The file has another format, or no answers of this judge.
        """
        file = Path(path)
        identities: set[str] = set()
        try:
            steps = [step for step in _steps(file, judge, identities) if step["answer"] is not None]
        except OSError as error:
            raise DataError(f"{file} cannot be read: {error.strerror or error}") from None
        if judge is not None and not steps:
            raise DataError(f"{file} holds no answer of {judge!r}")
        source = str(file) if judge is None else f"{file}, {judge}"
        limits = [limits_named(identity) for identity in sorted(identities)]
        return cls({step["fingerprint"]: step for step in steps}, source, narrowest(*limits or [DEFAULT_LIMITS]))

    @property
    def identity(self) -> str:
        return f"replay({self.source})" if self.source else "replay"

    def __repr__(self) -> str:
        return f"ReplayJudge({len(self.calls)} answers, source={self.source!r})"

    @property
    def context_limits(self) -> ContextLimits:
        return self.limits_of_source

    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        call = self.calls.get(question.fingerprint)
        if call is None:
            raise JudgeDeclined(f"no answer to this {question.kind} question was recorded")
        reply, alternatives = call.get("reply"), call.get("alternatives") or None
        detail: Mapping[str, Any] = call.get("detail") or {}
        return JudgeAnswer(
            value=question.from_jsonable(call["answer"])
            if reply is None
            else question.parse_with_probabilities(reply, alternatives),
            judge=self.identity,
            reply=reply,
            alternatives=alternatives,
            refused_settings=tuple(call.get("refused_settings", ())),
            confidence=call.get("confidence"),
            detail={"verdicts": votes} if (votes := detail.get("verdicts")) else None,
        )


_MODEL = re.compile(r"([\w.-]+/[^(),\s]+)(?:\(([^()]*)\))?")


def limits_named(identity: str) -> ContextLimits:
    """The limits of the judge with an identity: of its models, and their windows, as far as it names them."""
    if identity == (lexical := LexicalJudge()).identity:
        return lexical.context_limits
    limits = [DEFAULT_LIMITS]
    for model, settings in _MODEL.findall(identity):
        sizes: dict[str, Any] = {
            name: int(size) for name, size in re.findall(r"\b(context_window|max_tokens)=(\d+)", settings)
        }
        with contextlib.suppress(ConfigError):  # the identity of somebody's own judge
            limits.append(ModelJudge(model, **sizes).context_limits)
    return narrowest(*limits)


def _steps(file: Path, judge: str | None, identities: set[str]) -> Iterator[Mapping[str, Any]]:
    """The steps of one judge. identities: gets those of the judges that the scorers asked."""
    for place, line in file_values(file):
        try:
            identities.update(str(step.get("judge")) for step in line["steps"])
            found = [step for each in line["steps"] for step in _said_by(each, judge)]
            for step in found:
                if not isinstance(step["fingerprint"], str) or not isinstance(step["reply"], str | None):
                    raise TypeError("fingerprint and reply must be text")
                _ = step["answer"]
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{place}: not a line of records.jsonl ({error!r})") from None
        yield from found


def _said_by(step: Mapping[str, Any], judge: str | None) -> Iterator[Mapping[str, Any]]:
    """The step, or those in it of one judge: its first answer, where it was asked several times."""
    if judge is None or (step["judge"] == judge and step.get("repeat_index", 0) == 0):
        yield step
    else:
        for member in step.get("members", ()):
            yield from _said_by(member, judge)
