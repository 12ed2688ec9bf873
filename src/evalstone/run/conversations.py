"""Conversations: a user and a target take turns, and the messages become one answer."""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from evalstone._core import sync
from evalstone._core.display import excerpt
from evalstone._core.guards import is_mapping
from evalstone._core.json import content_hash
from evalstone._core.text import is_blank
from evalstone.agents.messages import last_text
from evalstone.agents.reasoning import answered_messages
from evalstone.agents.turns import trajectory_of
from evalstone.errors import EvalstoneError, JudgeDeclined, JudgeError, TargetError
from evalstone.judges.base import Judge
from evalstone.ledger import Key
from evalstone.questions.base import Question
from evalstone.run.answer_rows import TargetOutcome
from evalstone.run.session import AskScope, Session
from evalstone.run.user_code import failed
from evalstone.scorers.base import is_absent
from evalstone.targets import Answer, Target, absent
from evalstone.targets.answers import own_metadata
from evalstone.targets.base import conversation
from evalstone.targets.users import User, is_open
from evalstone.types import NO_USAGE, Failed, Message, Sample, Skipped, Trajectory, Usage, total_cost

USER_FAILED = "the user failed: "
"""The prefix of errors in records whose user failed, rather than the target."""


class UserProblem(Exception):
    """The user failed, which says nothing about the target."""

    def __init__(self, outcome: Failed | Skipped) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome


class UserEndsRun(Exception):
    """An error of a simulated user's judge that ends the run."""

    def __init__(self, error: EvalstoneError) -> None:
        super().__init__(str(error))
        self.error = error


def unanswerable(target: Target, user: User | None, sample: Sample) -> str:
    """Why a target can't be called with a sample; empty if it can."""
    if target.holds_conversations or not is_conversation(sample, user):
        return absent(target, sample)
    if not sample.turns and user is not None and (lacking := user.lacking(sample)):
        return lacking
    if not sample.turns and is_open(sample) and is_blank(conversation(sample)[-1].content):
        return "the message of the user with which the sample begins has no text"
    turns = sample.turns or (Sample(id="1", input=sample.input or "?"),)
    return next(filter(None, (absent(target, _asked(sample, turn, ())) for turn in turns)), "")


def said_first(sample: Sample, user: User | None) -> str | None:
    """The first message of the user if the dataset has it; None if the sample isn't a conversation."""
    if sample.turns:
        return sample.turns[0].input
    return conversation(sample)[-1].content if user is not None and is_open(sample) else None


@dataclass
class CasesForTarget:
    """What the samples of a dataset have for a target."""

    reserved: Sample | None = None
    """The first one that has something else in its metadata where a run keeps what the call of its target took."""
    has_turns: bool = False
    """Whether one has several turns."""
    contradicting: Sample | None = None
    """The first one whose input isn't what the user says first."""
    unanswerable: str = ""
    """Why the target can't be called with the first sample that it can't be called with."""
    answerable: bool = False
    """Whether it can be called with one."""
    replaced: int = 0
    """The number of samples with an output, which the target's answer replaces."""

    def add(self, sample: Sample, target: Target, user: User | None) -> None:
        """Add a sample."""
        # A mapping is what an earlier run kept there.
        if self.reserved is None and not is_mapping(sample.metadata.get("target", {})):
            self.reserved = sample
        self.has_turns = self.has_turns or len(sample.turns) > 1
        if self.contradicting is None and (first := said_first(sample, user)) is not None:
            self.contradicting = None if sample.input in (None, first) else sample
        if not self.answerable:
            problem = unanswerable(target, user, sample)
            self.answerable, self.unanswerable = not problem, self.unanswerable or problem
        self.replaced += not is_absent(sample.output)


def is_conversation(sample: Sample, user: User | None) -> bool:
    """Whether the target answers a sample in turns."""
    return bool(sample.turns) or user is not None


@dataclass
class Conversation:
    """The state of one conversation.

    Args:
        sample: The sample, with its trial.
        user: The simulated user, for a sample without turns.
        session: Asks the simulated user's judge.
    """

    sample: Sample
    user: User | None
    session: Session
    messages: list[Message] = field(default_factory=list[Message])
    """The messages so far."""
    turns: list[Sample] = field(default_factory=list[Sample])
    """The turns so far, with their answers."""
    ended: str = "script"
    """Why the conversation ended: script, user or max_turns."""
    paid: float | None = None
    """US dollars that this run paid for the turns so far, if the target reports its cost."""
    usage: Usage = NO_USAGE
    """The target's tokens."""
    seconds: float = 0.0
    """The duration of the target's calls."""
    restored: bool = False
    """Whether the answer to the last turn was read from the ledger."""

    def __post_init__(self) -> None:
        self._scope = AskScope(self.session)
        self._opening: Message | None = None
        if self.sample.turns:
            self.messages.extend(_before(self.sample))
        else:
            recorded = conversation(self.sample)
            self._opening = recorded[-1] if is_open(self.sample) else None
            self.messages.extend(recorded if self._opening is None else recorded[:-1])
            # A user's code may modify it.
            self._user_sample = replace(self.sample, metadata=copy.deepcopy(self.sample.metadata))
        self._user_messages = list(answered_messages(self.messages))
        self._hash = content_hash(self.messages)  # updated turn by turn: hashing all messages in each turn is quadratic

    def restarted(self) -> Conversation:
        """The same conversation from the beginning, with the cost so far."""
        restarted = Conversation(self.sample, self.user, self.session, paid=self.paid, usage=self.usage)
        restarted._scope.calls.extend(self._scope.calls)
        return restarted

    async def next_turn(self) -> Sample | None:
        """The user's next message as a sample; None at the end.

        Raises:
            UserProblem: The user failed.
            RunAborted: As in `Session.ask`.
            ConfigError: As in `Session.ask`.
            StorageError: As in `Session.ask`.
        """
        number = len(self.turns) + 1
        if self.sample.turns:
            return self.sample.turns[number - 1] if number <= len(self.sample.turns) else None
        user = cast(User, self.user)
        if number == 1 and self._opening is not None:
            return Sample(id="1", input=self._opening.content, messages=(self._opening,))
        if number > user.max_turns:
            self.ended = "max_turns"
            return None
        text = await self._from_user(user.say(self._user_sample, self._user_messages, number, self._ask))
        if text is None and number == 1:
            raise UserProblem(Failed(f"{USER_FAILED}it returned no first message"))
        if text is not None and (not isinstance(text, str) or is_blank(text)):
            expected = f"the user {user.identity} must return text, or None at the end"
            raise UserProblem(Failed(f"{USER_FAILED}{expected}, not {excerpt(text)}"))
        self.ended = "user"
        return None if text is None else Sample(id=str(number), input=text)

    async def problem(self) -> Skipped | None:
        """Why the conversation can't be scored although the target has answered; None if it can."""
        if self.sample.turns or self.user is None:
            return None
        reason = await self._from_user(self.user.left_part(self._user_sample, self._user_messages, self._ask))
        return Skipped(reason) if reason else None

    async def _from_user(self, value: Awaitable[Any]) -> Any:
        try:
            return await value
        except Exception as error:  # noqa: BLE001 - it may be user code
            if self._scope.aborted is not None:
                raise UserEndsRun(self._scope.aborted) from None
            raise UserProblem(_outcome(error)) from None
        except asyncio.CancelledError as error:
            if sync.is_being_cancelled():
                raise
            raise UserProblem(failed(error, USER_FAILED)) from None  # raised by what its code awaited

    async def _ask(self, judge: Judge, question: Question[Any]) -> Any:
        return await self._scope(question, judge, repeat=(self.sample.trial or 1) - 1)

    def asked(self, sample: Sample, turn: Sample) -> Sample:
        """The sample that is passed to the target in a turn. sample: the target's copy of the sample."""
        return _asked(sample, turn, self.messages)

    def key(self, asked: Sample, inputs: Sequence[str], scope: str) -> Key:
        """The key of the answer to a turn: the fields that the target reads, and the messages before."""
        fields = {name: getattr(asked, name) for name in inputs if name != "messages"}
        return Key(content_hash([asked.id, fields, self._hash, asked.messages[-1]]), scope, asked.trial or 1)

    def count(self, outcome: TargetOutcome) -> None:
        """Count the cost and duration of the answer to a turn."""
        self.seconds += outcome.seconds or 0.0
        self.usage += outcome.usage if outcome.paid else NO_USAGE
        if outcome.cost is not None:
            self.paid = (self.paid or 0.0) + (outcome.cost if outcome.paid else 0.0)

    def add(self, turn: Sample, answered: Sample) -> None:
        """Add a turn with its answer.

        Raises:
            TargetError: The answer has neither a new message nor a state.
        """
        user = _user_message(turn)
        reply = _reply(answered, [*self.messages, user])
        if answered.state is None and not reply:
            raise TargetError("the target's answer has no new message")
        self.messages += [user, *reply]
        self._hash = content_hash([self._hash, user, reply])
        self._user_messages += [user, *answered_messages(message for message in reply if message.role != "user")]
        call = answered.metadata["target"]
        asked = self.sample.instructions if turn.instructions is None else turn.instructions
        self.turns.append(
            replace(
                turn,
                output=answered.output,
                messages=(user, *reply),
                context=answered.context,
                instructions=turn.instructions if answered.instructions == asked else answered.instructions,
                trajectory=answered.trajectory,
                state=answered.state,
                metadata={**turn.metadata, **own_metadata(answered), "target": call},
            )
        )

    def answer(self, state: Any) -> Answer:
        """The conversation as the answer to the sample. state: the target's state at the end."""
        calls: list[Any] = [turn.metadata["target"] for turn in self.turns]
        context = tuple(dict.fromkeys(passage for turn in self.turns for passage in turn.context or ()))
        usage = sum((Usage(**call["usage"]) for call in calls if "usage" in call), NO_USAGE)
        last = self.turns[-1]
        return Answer(
            output=last.output,
            messages=tuple(self.messages),
            context=context if any(turn.context is not None for turn in self.turns) else None,
            trajectory=_trajectory(self.turns),
            metadata={name: value for turn in self.turns for name, value in own_metadata(turn).items()},
            state=last.state if state is None else state,
            usage=usage,
            cost=total_cost(call.get("cost") for call in calls),
            trace={"ended": self.ended},
            turns=tuple(self.turns),
        )

    async def close(self) -> None:
        """End the simulated user's calls."""
        await self._scope.close()

    def count_user(self) -> float | None:
        """The simulated user's cost in US dollars, including earlier invocations of the run; None if the price of a
        call is unknown. Each stored answer is counted once."""
        calls, before = self._scope.calls, self.session.paid_before
        keys = [Key(leaf.fingerprint, leaf.judge, leaf.repeat_index) for call in calls for leaf in call.leaves()]
        stored = [before.pop(key) for key in dict.fromkeys(keys) if key in before]
        return total_cost(call.cost for call in (*calls, *stored))


def _outcome(error: Exception) -> Failed | Skipped:
    """The outcome of a sample and trial whose user raised an error."""
    if isinstance(error, JudgeDeclined):
        return Skipped(f"the simulated user declined: {error}")
    if isinstance(error, JudgeError):
        return Failed(f"{USER_FAILED}{error}", error.reply)
    return Failed(f"{USER_FAILED}{error}") if isinstance(error, EvalstoneError) else failed(error, USER_FAILED)


def _trajectory(turns: Sequence[Sample]) -> Trajectory | None:
    """The steps of all turns: their trajectories, or else the tool calls in their messages. None if no turn has a
    trajectory of its own."""
    if all(turn.trajectory is None for turn in turns):
        return None
    return Trajectory(steps=[step for turn in turns if (own := trajectory_of(turn)) for step in own.steps])


def _before(sample: Sample) -> tuple[Message, ...]:
    """The messages before the turns. The messages of a recorded conversation include the turns."""
    recorded = tuple(message for turn in sample.turns for message in turn.messages)
    messages = tuple(sample.messages)
    return messages[: -len(recorded)] if recorded and messages[-len(recorded) :] == recorded else messages


def _asked(sample: Sample, turn: Sample, before: Sequence[Message]) -> Sample:
    own = {name: value for name, value in turn.metadata.items() if name != "target"}
    return replace(
        sample,
        input=turn.input,
        messages=(*before, _user_message(turn)),
        context=sample.context if turn.context is None else turn.context,
        instructions=sample.instructions if turn.instructions is None else turn.instructions,
        metadata={**sample.metadata, **own} if own else sample.metadata,  # a copy, because the target may modify it
        turns=(),
    )


def _user_message(turn: Sample) -> Message:
    """The user's message in a turn, with its attachments if it was recorded."""
    recorded = (message for message in turn.messages if message.role == "user" and message.content == turn.input)
    return next(recorded, Message(role="user", content=turn.input or ""))


def _reply(answered: Sample, request: Sequence[Message]) -> list[Message]:
    """The target's own messages. A target may return all, some, or none of the request's messages before them.

    request: the messages so far, the user's last.
    """
    messages = list(answered.messages)
    reply = messages[_repeated(messages, request) :]
    output = answered.output
    silent = all(message.role != "assistant" for message in reply)
    if output is not None and (silent or (last_text(reply, "assistant") is None and not is_blank(output))):
        reply.append(Message(role="assistant", content=output))
    return reply


def _repeated(messages: Sequence[Message], request: Sequence[Message]) -> int:
    """How many messages at the beginning of an answer repeat the request.

    The target's own messages may include some with the role `user`, such as tool results, so the last message of a user
    is not always the end of the request.
    """
    # A target gets earlier answers without reasoning.
    messages, request = answered_messages(messages), answered_messages(request)
    if [_content(message) for message in messages[: len(request)]] == [_content(message) for message in request]:
        return len(request)
    users = [place for place, message in enumerate(messages) if message.role == "user"]
    if equal := [place for place in users if messages[place].content == request[-1].content]:
        times = sum(_content(message) == _content(request[-1]) for message in request)
        return equal[min(times, len(equal)) - 1] + 1
    if not users or _opening(messages) not in ([], _opening(request)):
        return 0
    # The target has rephrased the user's messages.
    return users[min(sum(message.role == "user" for message in request), len(users)) - 1] + 1


def _content(message: Message) -> tuple[str, str]:
    return message.role, message.content


def _opening(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """The messages before the user's first, without system messages."""
    before = itertools.takewhile(lambda message: message.role != "user", messages)
    return [_content(message) for message in before if message.role != "system"]
