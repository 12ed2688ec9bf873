"""Judges that make no calls: one returns prepared replies, the other replays recorded answers."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, field
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

from evalstone._core.declarations import NAME, check_argument
from evalstone._core.display import count, joined
from evalstone._core.file_format import JUDGE_CALL_FORMAT, RECORD_FORMAT, RUN_FORMAT
from evalstone._core.files import file_text, file_values, json_value
from evalstone._core.guards import is_array
from evalstone._core.validation import read_data
from evalstone.errors import ConfigError, DataError, JudgeDeclined, JudgeError
from evalstone.judges.base import Judge
from evalstone.judges.model import ModelJudge, converse
from evalstone.models.catalog import is_provider, provider_info
from evalstone.models.provider import Completion
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.questions.decisions import stored_decisions
from evalstone.types import NOTHING_STORED, Asking, RunMetadata, Usage
from evalstone.types.context_limits import DEFAULT_LIMITS, ContextLimits

A = TypeVar("A")

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

        How long a question could be is in the log, or for records in the `summary.json` beside them. Without it, long
        questions may be split otherwise than they were, and have no answer.

        Args:
            path: The file.
            judge: The identity of a composite judge's member, to replay its answers. A panel of such replays can vote
                again without calls. None replays the answers that the scorers received.

        Raises:
            DataError: A file can't be read or has a different format, or there are no answers of this judge.
        """
        file = Path(path)
        judges: set[str] = set()
        logged: dict[str, ContextLimits] = {}
        try:
            calls = [call for call in _calls(file, judge, judges, logged) if call["answer"] is not None]
        except OSError as error:
            raise DataError(f"can't read {file}: {error.strerror or error}") from None
        if judge is not None and not calls:
            raise DataError(f"{file} has no answers of {judge!r}")
        source = str(file) if judge is None else f"{file}, {judge}"
        asking = Asking.of_all((_asking_beside(file), Asking(limits=logged)))
        return cls({call["fingerprint"]: call for call in calls}, source, asking.limits_of(sorted(judges)))

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
        recorded: Mapping[str, Any] = call.get("detail") or {}
        votes = recorded.get("verdicts")
        left_out = {"left_out": number} if (number := _left_out(call)) else {}
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
            detail={**({"verdicts": votes} if votes else dropped or {}), **left_out} or None,
        )


_MODEL = re.compile(r"(embeddings\()?([\w.-]+/[^(),\s]+)(?:\(([^()]*)\))?")


def alignments_named(identity: str) -> list[str]:
    """The hashes of the alignments of the judge with this identity, and of its members."""
    return _ALIGNMENT.findall(identity)


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


_ALIGNMENT = re.compile(r", align=([0-9a-f]{16})\)")
_LANGUAGE = re.compile(r"\blanguage=([^,]+)")


def _asking_beside(records: Path) -> Asking:
    """How the judges of a run were asked, from the `summary.json` beside its records; nothing without that of a run.

    Raises DataError if its values are of wrong types, or it has another number of its format.
    """
    file = records.with_name("summary.json")
    if not file.is_file():
        return NOTHING_STORED
    data = json_value(file_text(file), str(file))
    return RunMetadata.of(data, str(file)).asking if RUN_FORMAT.is_of(data) else NOTHING_STORED


def _calls(
    file: Path, judge: str | None, judges: set[str], logged: dict[str, ContextLimits]
) -> Iterator[Mapping[str, Any]]:
    """The calls of one judge.

    judges: To which the identities of the judges are added that the scorers asked. logged: To which the limits are
    added that a log has.
    """
    for place, line in file_values(file):
        for known in (RECORD_FORMAT, JUDGE_CALL_FORMAT):
            if known.is_of(line):
                known.check(line, place)
        try:
            judges.update(str(call.get("judge")) for call in line["calls"])
            calls = [answer for call in line["calls"] for answer in _calls_of(call, judge)]
            for call in calls:
                if not isinstance(call["fingerprint"], str) or not isinstance(call["reply"], str | None):
                    raise TypeError("fingerprint and reply must be text")
                if not is_array(call.get("refused_settings", [])):
                    raise TypeError("refused_settings must be a list")
                _ = call["answer"]
                _check_members(call)
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{place}: not a line of records.jsonl ({error!r})") from None
        if JUDGE_CALL_FORMAT.is_of(line) and (limits := line.get("limits")) is not None:
            try:
                logged[str(line["judge"])] = read_data(ContextLimits, limits)
            except (DataError, KeyError) as error:
                raise DataError(f"{place}: limits: {error}") from None
        yield from calls


def _check_members(call: Mapping[str, Any]) -> None:
    """Raise TypeError or AttributeError if a call, or one of its members, has a detail or members of another type."""
    members: Any = call.get("members", [])
    if not isinstance(call.get("detail"), Mapping | None) or not is_array(members):
        raise TypeError("detail must be an object, and members a list")
    for member in members:
        _check_members(member)


def _left_out(call: Mapping[str, Any]) -> int:
    """The most examples that an aligned judge left out of a recorded call, because they are the sample itself."""
    detail: Mapping[str, Any] = call.get("detail") or {}
    own = detail.get("left_out", 0)
    return max([own if isinstance(own, int) else 0, *map(_left_out, call.get("members", ()))])


def _calls_of(call: Mapping[str, Any], judge: str | None) -> Iterator[Mapping[str, Any]]:
    """The call itself, or one judge's calls inside it. Of several repetitions, only the first one counts."""
    if judge is None or (call["judge"] == judge and call.get("repeat_index", 0) == 0):
        yield call
    else:
        for member in call.get("members", ()):
            yield from _calls_of(member, judge)
