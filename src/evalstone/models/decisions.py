"""Decision models: one state, several typed questions, and a probability for every possible answer."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from evalstone._core.display import count
from evalstone._core.guards import is_number
from evalstone._core.parsing import MAX_REPLY
from evalstone.errors import JudgeDeclined, PromptTooLong, ReplyError
from evalstone.models.catalog import split_model
from evalstone.models.endpoint import Endpoint, RequestRefused, endpoint_of, json_call
from evalstone.models.provider import Provider
from evalstone.models.refusals import cut_error
from evalstone.models.replies import as_count, as_object, as_text, is_count, read_aside, repeated_name, shown
from evalstone.models.typed_questions import State, TypedQuestion, distribution
from evalstone.types import NO_USAGE, Usage

if TYPE_CHECKING:
    from evalstone.models.model import Model


@dataclass(frozen=True)
class Decided:
    """A response: the probabilities of the answers to each decision, in order."""

    probabilities: tuple[Mapping[str, float], ...]
    """For each decision, the probability of each of its options; their sum is 1."""
    usage: Usage = NO_USAGE
    cost: float | None = 0.0
    """US dollars; None if unknown."""
    model: str = ""
    """The model that decided, as named by the provider."""


class DecisionProvider(Provider):
    """A decision model behind an HTTP endpoint.

    A protocol has a `path`, writes requests (`payload`), and reads the answers in responses (`answers`).
    """

    path: ClassVar[str]
    """The path after the model's URL, which ends before `/v1`."""
    too_long: ClassVar[str] = ""
    """The code of the error for a state that exceeds the context window, if the error has no words for it."""

    def __init__(self, model: Model[Any]) -> None:
        self.model, self.endpoint = model, self.connect(model)
        super().__init__(self.endpoint, split_model(model.model)[1], model.timeout)

    def connect(self, model: Model[Any]) -> Endpoint:
        """The endpoint of the model on the running loop."""
        return endpoint_of(model)

    @abstractmethod
    def payload(self, state: State, decisions: Sequence[TypedQuestion]) -> dict[str, Any]:
        """The body of a request."""

    @abstractmethod
    def answers(self, data: Mapping[str, Any], decisions: Sequence[TypedQuestion]) -> Sequence[Mapping[str, Any]]:
        """The probabilities in a response, by option, for each decision.

        Raises:
            ReplyError: An answer is absent, or of another kind. The message names the decision.
            JudgeDeclined: The model refused a decision.
        """

    def decide(self, state: State, decisions: Sequence[TypedQuestion]) -> Coroutine[Any, Any, Decided]:
        """Send one request.

        Raises:
            ReplyError: An answer is absent or has no valid probabilities. The message names the decision.
            JudgeDeclined: The model refused a decision.
            EvalstoneError: What `sent` raises.
        """
        return self.sent(self._decide(state, decisions))

    async def probe(self) -> tuple[Usage, float | None]:
        ok = TypedQuestion("ok", "predicate", "Is this the word ok?", {"yes": "", "no": ""})
        try:
            data = await self._request({"text": "ok"}, [ok])
        except RequestRefused:  # key and model were accepted
            return NO_USAGE, 0.0
        return self._spent(data)

    async def _decide(self, state: State, decisions: Sequence[TypedQuestion]) -> Decided:
        data = await self._request(state, decisions)
        usage, cost = self._spent(data)
        try:
            if (cut := cut_error(self.name, _texts(state), _read_tokens(data))) is not None:
                raise cut
            answers = self.answers(data, decisions)
            check_count(decisions, answers)
            found = tuple(map(distribution, decisions, answers))
        except (ReplyError, JudgeDeclined, PromptTooLong) as error:
            error.usage, error.cost = usage, cost
            error.reply = json.dumps(data.get("answers"), ensure_ascii=False)[:MAX_REPLY]
            raise
        return Decided(found, usage, cost, as_text(data.get("model")))

    async def _request(self, state: State, decisions: Sequence[TypedQuestion]) -> dict[str, Any]:
        call = json_call(self.path, self.payload(state, decisions))._replace(too_long=self.too_long)
        content = await self.endpoint.request(call, self.model.count_request)
        data = await self.endpoint.read(call, content, self._spent_in)
        if (name := await read_aside(len(content), repeated_name, content)) is not None:
            error = ReplyError(f"the response names {name!r:.60} twice in one object; expected each name once")
            error.usage, error.cost = self._spent(data)
            error.reply = content.decode(errors="replace")[:MAX_REPLY]
            raise error
        return data

    def _spent_in(self, data: Mapping[str, Any]) -> tuple[Usage, float | None] | None:
        return self._spent(data) if as_object(data.get("usage")) else None

    def _spent(self, data: Mapping[str, Any]) -> tuple[Usage, float | None]:
        """The usage in a response, and its cost, None if there is no usage."""
        counts = as_object(data.get("usage"))
        details = as_object(counts.get("input_tokens_details"))
        read, written = (as_count(counts.get(name)) for name in ("input_tokens", "output_tokens"))
        cached, stored = (as_count(details.get(name)) for name in ("cached_tokens", "cache_write_tokens"))
        usage = Usage(read, written, min(cached, read), 1)
        known = is_count(counts.get("input_tokens"))
        return usage, self.model.price(usage, min(stored, read)) if known else None


def _texts(state: State) -> Iterator[str]:
    for material in state.values():
        yield from (material,) if isinstance(material, str) else material.values()


def _read_tokens(data: Mapping[str, Any]) -> int:
    """The tokens that the model read at most: some servers leave cached ones out of the input tokens."""
    counts = as_object(data.get("usage"))
    details = as_object(counts.get("input_tokens_details"))
    return as_count(counts.get("input_tokens")) + as_count(details.get("cached_tokens"))


def check_count(decisions: Sequence[TypedQuestion], answers: Sequence[Any]) -> None:
    """Raise ReplyError if there isn't one answer to each decision."""
    if len(answers) != len(decisions):
        asked, found = count(len(decisions), "decision"), count(len(answers), "answer")
        raise ReplyError(f"{asked} and {found}; expected one for each, in their order")


def check_present(decision: TypedQuestion, answer: Any, kind: str) -> Mapping[str, Any]:
    """An answer in a response. Raises ReplyError if there is none, or if it is of another kind."""
    found = as_object(answer)
    if not found:
        raise ReplyError(f"there is no answer to {decision.name}")
    if found.get("type") != kind:
        raise ReplyError(f"the answer to {decision.name} is a {shown(found.get('type'))}; expected a {kind}")
    return found


def predicate(probability: Any) -> Mapping[str, Any]:
    """The probabilities of yes and no, from that of a yes."""
    return {"yes": probability, "no": 1 - probability if is_number(probability) else probability}
