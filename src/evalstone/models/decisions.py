"""Decision models: one state, several typed questions, and a probability for every possible answer."""

from __future__ import annotations

import json
import math
import reprlib
from abc import abstractmethod
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from evalstone._core.guards import is_number
from evalstone._core.parsing import MAX_REPLY
from evalstone.errors import JudgeDeclined, ReplyError
from evalstone.models.catalog import split_model
from evalstone.models.endpoint import Endpoint, RequestRefused, endpoint_of, json_call
from evalstone.models.provider import Provider
from evalstone.models.replies import as_count, as_object, as_text, is_count, one_line, shown
from evalstone.types import NO_USAGE, Usage

if TYPE_CHECKING:
    from evalstone.models.model import Model

TypedQuestionKind: TypeAlias = Literal["predicate", "choice", "score"]
State: TypeAlias = Mapping[str, "str | Mapping[str, str]"]
"""What is judged: named texts, or named lists of texts by their numbers from 1."""

TOLERANCE = 1e-3
"""How much a sum of probabilities may differ from 1."""
MOST_OPTIONS = 255
"""The most answers of one decision."""
MOST_LEVELS = 10
"""The most levels of a score. Longer scales are choices."""


@dataclass(frozen=True)
class TypedQuestion:
    """One typed question to a decision model."""

    name: str
    """What the model sees as its name; unique in a request."""
    kind: TypedQuestionKind
    instructions: str
    options: Mapping[str, str]
    """The possible answers and what each means, empty if nothing is said of it. `yes` and `no` for a predicate; from
    the lowest level for a score."""


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
            answers = self.answers(data, decisions)
            found = tuple(map(distribution, decisions, answers))
        except (ReplyError, JudgeDeclined) as error:
            error.usage, error.cost = usage, cost
            error.reply = json.dumps(data.get("answers"), ensure_ascii=False)[:MAX_REPLY]
            raise
        return Decided(found, usage, cost, as_text(data.get("model")))

    async def _request(self, state: State, decisions: Sequence[TypedQuestion]) -> dict[str, Any]:
        call = json_call(self.path, self.payload(state, decisions))
        content = await self.endpoint.request(call, self.model.count_request)
        return await self.endpoint.read(call, content, self._spent_in)

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


def distribution(decision: TypedQuestion, answer: Mapping[str, Any]) -> Mapping[str, float]:
    """The probabilities of a decision's options, in their order, with a sum of 1.

    Raises ReplyError for an option without a probability, an unknown one, a number outside [0, 1], or a sum that
    differs from 1 by more than .001.
    """
    where = f"the answer to {decision.name}"
    if missing := [option for option in decision.options if option not in answer]:
        raise ReplyError(f"{where} has no probability of {missing[0]!r}")
    if unknown := [option for option in answer if option not in decision.options]:
        raise ReplyError(f"{where} has a probability of {unknown[0]!r:.60}, which is not one of its options")
    for option, value in answer.items():
        if not is_number(value) or not 0 <= value <= 1:
            found = one_line(reprlib.repr(value))  # a text in quotes: "0.5" is no number
            raise ReplyError(f"{where} has the probability {found} of {option!r}; expected a number from 0 to 1")
    total = math.fsum(answer.values())
    if abs(total - 1) > TOLERANCE:
        raise ReplyError(f"{where} has probabilities whose sum is {total:.6g}, not 1")
    return {option: answer[option] / total for option in decision.options}


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
