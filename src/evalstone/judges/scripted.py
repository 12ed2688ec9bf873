"""Judges that make no calls: one returns prepared replies, the other replays recorded answers."""

from __future__ import annotations

import contextlib
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeAlias, TypeVar

from evalstone._core.declarations import NAME, check_argument
from evalstone._core.display import count, joined
from evalstone._core.file_format import JUDGE_CALL_FORMAT, RECORD_FORMAT
from evalstone._core.files import file_values
from evalstone._core.guards import is_array
from evalstone.errors import ConfigError, DataError, JudgeDeclined, JudgeError
from evalstone.judges.base import Judge
from evalstone.judges.decision import DecisionJudge
from evalstone.judges.lexical import LexicalJudge
from evalstone.judges.model import ModelJudge, converse
from evalstone.models.catalog import is_provider, provider_info
from evalstone.models.provider import Completion
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.questions.decisions import stored_decisions
from evalstone.questions.limits import DEFAULT_LIMITS, UNLIMITED, ContextLimits, narrowest
from evalstone.types import AlignedQuestion, Usage

A = TypeVar("A")

NO_ALIGNMENTS: Mapping[str, AlignedQuestion] = MappingProxyType({})
"""No alignments."""

Script: TypeAlias = "Sequence[Any] | Mapping[str, Any] | Callable[[Question[Any]], Any]"


class ScriptedJudge(Judge, eq=False, kw_only=False):
    """A judge for tests that returns prepared replies. They are parsed and corrected like a model's replies.

    A reply is raw text, data that is converted to JSON, or a `Completion`, which can contain probabilities. `asked`
    collects the questions. If a list of replies is exhausted, the question fails.

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
    _positions: dict[str, int] = field(default_factory=lambda: dict[str, int](), init=False)

    def __post_init__(self) -> None:
        check_argument("name", self.name, Annotated[str, NAME], "ScriptedJudge")
        if isinstance(self.script, str):
            raise ConfigError("a script is a list, a mapping or a function; for a single reply, pass a list of one")

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
            if reply is None and not replied:  # after a reply, its own error says more
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
            replies = self.script.get(question.kind)
            if not is_array(replies):
                return replies
            return self._next_of(replies, question.kind)
        return self._next_of(self.script, "")

    def _why_none(self, kind: str) -> str:
        """Why the script has no reply, after a colon; empty if the script returned None on purpose."""
        script, key = self.script, ""
        if callable(script):
            return ""
        if isinstance(script, Mapping):
            if kind not in script:
                kinds = joined(list(map(repr, script)))
                return f": it has replies to {kinds}" if kinds else ": it has no replies"
            if not is_array(script[kind]):
                return ""
            script, key = script[kind], kind
        total = len(script)
        if self._positions[key] <= total:
            return ""
        verb = "is" if total == 1 else "are"
        return f": its {count(total, 'reply', 'replies')} {verb} used up" if total else ": it has no replies"

    def _next_of(self, replies: Sequence[Any], key: str) -> Any:
        index = self._positions.get(key, 0)
        self._positions[key] = index + 1
        return replies[index] if index < len(replies) else None


class ReplayJudge(Judge, eq=False, kw_only=False):
    """A judge that replays recorded answers and makes no calls. Use it to score again with a changed formula.

    Samples with a question that was not recorded are skipped, and the reason says so.

    Args:
        calls: The recorded calls by question fingerprint, as in `records.jsonl`: the raw `reply`, or the `answer` as
            data if there is no reply; `alternatives` and `probability`; and the votes in `detail`, so
            that a cascade splits its questions as before.
        source: Where the calls come from, such as a file name.
    """

    cacheable = False
    deterministic = True
    note = "recorded answers; no calls are made"

    calls: Mapping[str, Mapping[str, Any]]
    source: str = ""
    limits_of_source: ContextLimits = DEFAULT_LIMITS
    """The limits of the recorded judge, so that questions are split into the same parts."""

    @classmethod
    def from_records(cls, path: str | Path, *, judge: str | None = None) -> ReplayJudge:
        """Replay the answers in a `records.jsonl`, or in a log written by `LoggingJudge`.

        Args:
            path: The file.
            judge: The identity of a composite judge's member, to replay its answers. A panel of such replays can vote
                again without calls. None replays the answers that the scorers received.

        Raises:
            DataError: The file can't be read, has a different format, or has no answers of this judge.
        """
        file = Path(path)
        identities: set[str] = set()
        try:
            calls = [call for call in _calls(file, judge, identities) if call["answer"] is not None]
        except OSError as error:
            raise DataError(f"can't read {file}: {error.strerror or error}") from None
        if judge is not None and not calls:
            raise DataError(f"{file} has no answers of {judge!r}")
        source = str(file) if judge is None else f"{file}, {judge}"
        limits = [limits_named(identity) for identity in sorted(identities)]
        return cls({call["fingerprint"]: call for call in calls}, source, narrowest(*limits or [DEFAULT_LIMITS]))

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
        if reply is None:
            value, dropped = question.from_jsonable(call["answer"]), None
        elif (decided := stored_decisions(question, reply)) is not None:
            value, dropped = decided.value, decided.detail
        else:
            value, dropped = question.parse_grounded(reply, alternatives)
        return JudgeAnswer(
            value=value,
            judge=self.identity,
            reply=reply,
            alternatives=alternatives,
            refused_settings=tuple(call.get("refused_settings", ())),
            probability=call.get("probability"),
            detail={"verdicts": votes} if (votes := detail.get("verdicts")) else dropped,
        )


_MODEL = re.compile(r"(embeddings\()?([\w.-]+/[^(),\s]+)(?:\(([^()]*)\))?")


def limits_named(identity: str, alignments: Mapping[str, AlignedQuestion] = NO_ALIGNMENTS) -> ContextLimits:
    """The context limits of the judge with this identity, derived from the models and settings in it.

    alignments: What the alignments of judges change, by the hash in their identities.
    """
    if identity == (lexical := LexicalJudge()).identity:
        return lexical.context_limits
    if _VERIFIER.fullmatch(identity):
        return UNLIMITED
    examples = [
        (start, stop, alignments[hash].example_tokens)
        for start, stop, hash in _aligned_in(identity)
        if hash in alignments
    ]
    limits = [DEFAULT_LIMITS, *(DEFAULT_LIMITS.less(tokens) for _, _, tokens in examples)]
    for match in _MODEL.finditer(identity):
        embeds, model, settings = match.groups(default="")
        if embeds:  # an embedding model has no limits of its own
            continue
        found = {name: int(size) for name, size in re.findall(r"\b(context_window|max_tokens)=(\d+)", settings)}
        window, most = found.get("context_window"), found.get("max_tokens")
        shown = sum(tokens for start, stop, tokens in examples if start < match.start() < stop)
        with contextlib.suppress(ConfigError):  # a custom judge's identity
            if provider_info(model).decides:
                judge: Judge = DecisionJudge(model, context_window=window)
            else:
                judge = ModelJudge(model, context_window=window, max_tokens=most)
            limits.append(judge.context_limits.less(shown))
    return narrowest(*limits)


def alignments_named(identity: str) -> Iterator[str]:
    """The hashes of the alignments of the judge with this identity, and of its members."""
    return (hash for _, _, hash in _aligned_in(identity))


def _aligned_in(identity: str) -> Iterator[tuple[int, int, str]]:
    """Where an identity has aligned judges, inner ones first: start, end, and the hash of the alignment."""
    opened: list[int] = []
    for at, character in enumerate(identity):
        if character == "(":
            opened.append(at)
        elif character == ")" and opened:
            start = opened.pop()
            if identity.endswith("aligned", 0, start) and (found := _ALIGNMENT.search(identity, start, at)):
                yield start, at, found[1]


def is_decision_model(identity: str) -> bool:
    """Whether the judge with this identity is a decision model."""
    match = _MODEL.match(identity)
    return match is not None and is_provider(match[2].partition("/")[0]) and provider_info(match[2]).decides


def instructions_named(identity: str) -> str | None:
    """What the language model with this identity is told besides a question's prompt; None for any other judge."""
    match = _MODEL.match(identity)
    if match is None or match[1] or not is_provider(match[2].partition("/")[0]) or is_decision_model(identity):
        return None
    language = _LANGUAGE.search(match[3] or "")
    return ModelJudge(match[2], language=language[1] if language else None).instructions


_VERIFIER = re.compile(r"(decision\()?onnx@\d+\([^()]*\)(?(1), text=sentences@\d+\))")
_ALIGNMENT = re.compile(r", align=([0-9a-f]{16})$")
_LANGUAGE = re.compile(r"\blanguage=([^,]+)")


def _calls(file: Path, judge: str | None, identities: set[str]) -> Iterator[Mapping[str, Any]]:
    """The calls of one judge. The identities of the judges that the scorers asked are added to `identities`."""
    for place, line in file_values(file):
        for known in (RECORD_FORMAT, JUDGE_CALL_FORMAT):
            if known.is_of(line):
                known.check(line, place)
        try:
            identities.update(str(call.get("judge")) for call in line["calls"])
            calls = [answer for call in line["calls"] for answer in _calls_of(call, judge)]
            for call in calls:
                if not isinstance(call["fingerprint"], str) or not isinstance(call["reply"], str | None):
                    raise TypeError("fingerprint and reply must be text")
                _ = call["answer"]
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{place}: not a line of records.jsonl ({error!r})") from None
        yield from calls


def _calls_of(call: Mapping[str, Any], judge: str | None) -> Iterator[Mapping[str, Any]]:
    """The call itself, or one judge's calls inside it. Of several repetitions, only the first one counts."""
    if judge is None or (call["judge"] == judge and call.get("repeat_index", 0) == 0):
        yield call
    else:
        for member in call.get("members", ()):
            yield from _calls_of(member, judge)
