"""Conversations: a user and a target talk in turns, and what they said becomes one answer."""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from evalstone._core.display import excerpt
from evalstone._core.json import content_hash
from evalstone._core.text import is_blank
from evalstone.agents.messages import last_text
from evalstone.errors import EvalstoneError, JudgeDeclined, JudgeError, TargetError
from evalstone.judges.base import Judge
from evalstone.ledger import Key, StoredAnswer
from evalstone.questions.base import Question
from evalstone.run.session import Recording, Session
from evalstone.run.user_code import failed
from evalstone.targets import Answer, Target, absent
from evalstone.targets.base import conversation, says_something
from evalstone.targets.users import User, is_open
from evalstone.types import NO_USAGE, Failed, Message, Sample, Skipped, Usage, total_cost

USER_FAILED = "the user failed: "
"""How the errors of records begin whose user, and not the target, could not go on."""


class UserProblem(Exception):
    """The user could not go on, which says nothing about the target."""

    def __init__(self, outcome: Failed | Skipped) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome


class UserEndsRun(Exception):
    """An error of a simulated user's judge that concerns the run."""

    def __init__(self, error: EvalstoneError) -> None:
        super().__init__(str(error))
        self.error = error


def unanswerable(target: Target, user: User | None, sample: Sample) -> str:
    """What a sample lacks for a target or its user, in words; "" if it can be asked."""
    if target.holds_conversations or not is_conversation(sample, user):
        return absent(target, sample)
    if not sample.turns and user is not None and (lacking := user.lacking(sample)):
        return lacking
    if not sample.turns and is_open(sample) and is_blank(conversation(sample)[-1].content):
        return "the message of the user with which the sample begins has no text"
    turns = sample.turns or (Sample(id="1", input=sample.input or "?"),)
    return next(filter(None, (absent(target, _asked(sample, turn, ())) for turn in turns)), "")


def said_first(sample: Sample, user: User | None) -> str | None:
    """What a conversation begins with, as far as the dataset has it; None for a sample that isn't answered in turns."""
    if sample.turns:
        return sample.turns[0].input
    return conversation(sample)[-1].content if user is not None and is_open(sample) else None


def is_conversation(sample: Sample, user: User | None) -> bool:
    """Whether a sample is answered in turns."""
    return bool(sample.turns) or user is not None


@dataclass
class Conversation:
    """One conversation, as far as it has come.

    Args:
        sample: The case, with its trial.
        user: Who speaks where the case has no turns of its own.
        session: Where a simulated user asks its judge.
    """

    sample: Sample
    user: User | None
    session: Session
    messages: list[Message] = field(default_factory=list[Message])
    """What was said so far."""
    turns: list[Sample] = field(default_factory=list[Sample])
    """The turns so far, with their answers."""
    ended: str = "script"
    """Why it ended: script, user or max_turns."""
    paid: float | None = None
    """US dollars that this run paid for the turns so far, as far as the target reports them."""
    counted: float = 0.0
    """US dollars of it, and of the user's cost, that are in the sum of a call of the run that ended by itself."""
    usage: Usage = NO_USAGE
    """Their tokens."""
    seconds: float = 0.0
    """What the calls took."""
    restored: bool = False
    """Whether the answer to the last turn came from the ledger."""

    def __post_init__(self) -> None:
        self._recording = Recording(self.session)
        self._opening: Message | None = None
        if self.sample.turns:
            self.messages.extend(_before(self.sample))
        else:
            given = conversation(self.sample)
            self._opening = given[-1] if is_open(self.sample) else None
            self.messages.extend(given if self._opening is None else given[:-1])
            # The user's own code may change it.
            self._told = replace(self.sample, metadata=copy.deepcopy(self.sample.metadata))
        self._heard = list(self.messages)
        self._hash = content_hash(self.messages)  # of what was said, a turn at a time: to hash all in each is quadratic

    def anew(self) -> Conversation:
        """The same conversation, from the beginning. What was paid for it stays paid."""
        spent: dict[str, Any] = {"paid": self.paid, "counted": self.counted, "usage": self.usage}
        again = Conversation(self.sample, self.user, self.session, **spent)
        again._recording.calls.extend(self._recording.calls)
        return again

    async def next_turn(self) -> Sample | None:
        """What the user says next, as a sample; None at the end.

        Raises:
            UserProblem: The user could not say it.
            RunAborted, ConfigError, StorageError: As `Session.ask` raises them.
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
        said = await self._of_user(user.say(self._told, self._heard, number, self._ask))
        if said is None and number == 1:
            raise UserProblem(Failed(f"{USER_FAILED}it has nothing to say to begin with"))
        if said is not None and (not isinstance(said, str) or is_blank(said)):
            expected = f"the user {user.identity} must return text, or None at the end"
            raise UserProblem(Failed(f"{USER_FAILED}{expected}, not {excerpt(said)}"))
        self.ended = "user"
        return None if said is None else Sample(id=str(number), input=said)

    async def problem(self) -> Skipped | None:
        """Why the conversation can't be scored, though the target has answered; None if it can."""
        if self.sample.turns or self.user is None:
            return None
        reason = await self._of_user(self.user.left_part(self._told, self._heard, self._ask))
        return Skipped(reason) if reason else None

    async def _of_user(self, saying: Any) -> Any:
        try:
            return await saying
        except Exception as error:  # noqa: BLE001 - a user's own code may raise anything
            if (ending := self._recording.aborted) is not None:
                raise UserEndsRun(ending) from None
            raise UserProblem(_outcome(error)) from None
        except asyncio.CancelledError as error:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            raise UserProblem(failed(error, USER_FAILED)) from None  # of something that its own code waited for

    async def _ask(self, judge: Judge, question: Question[Any]) -> Any:
        return await self._recording(question, judge, repeat=(self.sample.trial or 1) - 1)

    def asked(self, sample: Sample, turn: Sample) -> Sample:
        """What the target is given for a turn. sample: the case, as the target is to see it."""
        return _asked(sample, turn, self.messages)

    def key(self, asked: Sample, inputs: Sequence[str], scope: str) -> Key:
        """The key of the answer to a turn: that of a sample, and what was said before."""
        given = {name: getattr(asked, name) for name in inputs if name != "messages"}
        return Key(content_hash([asked.id, given, self._hash, asked.messages[-1]]), scope, asked.trial or 1)

    def count(self, stored: StoredAnswer | None, *, paid: bool) -> None:
        """Count what the answer to a turn took. paid: this run paid for it."""
        if stored is None:
            return
        self.seconds += stored.seconds
        self.usage += stored.usage if paid else NO_USAGE
        if stored.cost is not None:
            self.paid = (self.paid or 0.0) + (stored.cost if paid else 0.0)
        if paid and self.session.spending.has_counted(stored.written):
            self.counted += stored.cost or 0.0
        elif paid:
            self.counted += counted_before(stored)

    def add(self, turn: Sample, answered: Sample) -> None:
        """Take over the answer to a turn.

        Raises:
            TargetError: It holds nothing that was not said before.
        """
        user = _said(turn)
        own = _reply(answered, [*self.messages, user])
        if answered.state is None and not any(map(says_something, own)):
            raise TargetError("the target's answer is blank")
        self.messages += [user, *own]
        self._hash = content_hash([self._hash, user, own])
        self._heard += [user, *(message for message in own if message.role != "user")]  # nobody but the user says those
        call = answered.metadata["target"]
        self.turns.append(
            replace(
                turn,
                output=answered.output,
                messages=(user, *own),
                context=answered.context,
                state=answered.state,
                metadata={**turn.metadata, "target": call},
            )
        )

    def answer(self, state: Any) -> Answer:
        """What was said, as the answer to the sample. state: what the conversation left behind."""
        calls: list[Any] = [turn.metadata["target"] for turn in self.turns]
        context = tuple(dict.fromkeys(one for turn in self.turns for one in turn.context or ()))
        usage = sum((Usage(**call["usage"]) for call in calls if "usage" in call), NO_USAGE)
        last = self.turns[-1]
        return Answer(
            output=last.output,
            messages=tuple(self.messages),
            context=context if any(turn.context is not None for turn in self.turns) else None,
            state=last.state if state is None else state,
            usage=usage,
            cost=total_cost(call.get("cost") for call in calls),
            trace={"ended": self.ended},
            turns=tuple(self.turns),
        )

    async def close(self) -> None:
        """End the calls of the simulated user."""
        await self._recording.close()

    def count_user(self) -> float | None:
        """US dollars that the simulated user has cost in this run, also before it was interrupted; None if the price of
        a call is unknown. What is counted here is not counted again."""
        calls, before = self._recording.calls, self.session.paid_before
        keys = [Key(leaf.fingerprint, leaf.judge, leaf.repeat_index) for call in calls for leaf in call.leaves()]
        stored = [before.pop(key) for key in dict.fromkeys(keys) if key in before]
        spending = self.session.spending
        self.counted += sum(one.cost or 0.0 for one in stored if spending.has_counted(one.written))
        return total_cost(one.cost for one in (*calls, *stored))


def counted_before(stored: StoredAnswer) -> float:
    """US dollars of what a target's answer cost that a call of the run which ended before it had counted."""
    return json.loads(stored.reply).get("counted", 0.0)


def _outcome(error: Exception) -> Failed | Skipped:
    """What an error of the user means for the sample and trial."""
    if isinstance(error, JudgeDeclined):
        return Skipped(f"the simulated user declined: {error}")
    if isinstance(error, JudgeError):
        return Failed(f"{USER_FAILED}{error}", error.reply)
    return Failed(f"{USER_FAILED}{error}") if isinstance(error, EvalstoneError) else failed(error, USER_FAILED)


def _before(sample: Sample) -> tuple[Message, ...]:
    """The messages before the turns of a sample. Those of a recorded conversation hold the turns as well."""
    recorded = tuple(message for turn in sample.turns for message in turn.messages)
    messages = tuple(sample.messages)
    return messages[: -len(recorded)] if recorded and messages[-len(recorded) :] == recorded else messages


def _asked(sample: Sample, turn: Sample, before: Sequence[Message]) -> Sample:
    own = {name: value for name, value in turn.metadata.items() if name != "target"}
    return replace(
        sample,
        input=turn.input,
        messages=(*before, _said(turn)),
        context=sample.context if turn.context is None else turn.context,
        instructions=sample.instructions if turn.instructions is None else turn.instructions,
        metadata={**sample.metadata, **own} if own else sample.metadata,  # which the target may change
        turns=(),
    )


def _said(turn: Sample) -> Message:
    """The message of the user in a turn, with its attachments if it was recorded."""
    recorded = (one for one in turn.messages if one.role == "user" and one.content == turn.input)
    return next(recorded, Message(role="user", content=turn.input or ""))


def _reply(answered: Sample, given: Sequence[Message]) -> list[Message]:
    """The messages of the answer: what follows what was given, of which a target may return all, a part, or nothing.

    given: what was said so far; what the user asked is the last of it.
    """
    messages = list(answered.messages)
    reply = messages[_already_said(messages, given) :]
    if is_blank(last_text(reply, "assistant") or "") and not is_blank(answered.output or ""):
        reply.append(Message(role="assistant", content=answered.output or ""))
    return reply


def _already_said(messages: Sequence[Message], given: Sequence[Message]) -> int:
    """How many messages at the beginning were given to the target. What it adds may hold messages of a user too, such
    as the results of tools, so that not all before the last of them was given."""
    if [_content(one) for one in messages[: len(given)]] == [_content(one) for one in given]:
        return len(given)
    places = [at for at, message in enumerate(messages) if message.role == "user"]
    asked = [at for at in places if messages[at].content == given[-1].content]
    if asked:
        times = sum(_content(one) == _content(given[-1]) for one in given)
        return asked[min(times, len(asked)) - 1] + 1
    if not places or _opening(messages) not in ([], _opening(given)):
        return 0
    return places[min(sum(one.role == "user" for one in given), len(places)) - 1] + 1  # it was put in other words


def _content(message: Message) -> tuple[str, str]:
    return message.role, message.content


def _opening(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """What was said before the first message of the user."""
    before = itertools.takewhile(lambda message: message.role != "user", messages)
    return [_content(message) for message in before if message.role != "system"]
