from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from evalstone._core.declarations import TEXTS
from evalstone._core.display import count
from evalstone.questions.base import Ask
from evalstone.questions.conversation import JudgeRequests, ListRequests, RequestVerdict
from evalstone.scorers.agents import ConversationSource, conversation_of, require_both_sides, texts_in
from evalstone.scorers.reasons import reason_with
from evalstone.types import Message, Score, Skipped

Measure: TypeAlias = Literal["f1", "precision", "recall", "accuracy"]

UNDEFINED: Mapping[Measure, str] = {
    "f1": "no request is on topic, and none was answered",
    "precision": "no request was answered",
    "recall": "no request is on topic",
}


def adherence(verdicts: Sequence[RequestVerdict], measure: Measure) -> float | None:
    """The measure of at least one request, as TopicAdherence defines it; None if its denominator is 0."""
    tp = sum(v.on_topic and v.answered for v in verdicts)
    fp = sum(v.answered and not v.on_topic for v in verdicts)
    fn = sum(v.on_topic and not v.answered for v in verdicts)
    match measure:
        case "precision":
            part, whole = tp, tp + fp
        case "recall":
            part, whole = tp, tp + fn
        case "f1":
            part, whole = 2 * tp, 2 * tp + fp + fn
        case "accuracy":
            part, whole = len(verdicts) - fp - fn, len(verdicts)
    return part / whole if whole else None


class TopicAdherence(ConversationSource):
    """Whether the agent answers requests about its topics, and only these.

        precision = answered requests on topic / answered requests
        recall    = answered requests on topic / requests on topic
        accuracy  = (answered requests on topic + refused requests off topic) / requests
        f1        = 2 · TP / (2 · TP + FP + FN), the harmonic mean of precision and recall
        topic adherence = f1, or the other `measure`          range [0, scale], higher is better

    The judge lists the user's requests in the messages. A request is answered if the agent responds to it, right or
    wrong; otherwise it is refused. TP are requests on topic that were answered, FP requests off topic that were
    answered, and FN requests on topic that were refused.

    Undefined without topics, when the user asks for nothing, and when the denominator is 0: precision when nothing was
    answered, recall when nothing is on topic, F1 when nothing is on topic and nothing was answered. If every request
    should be refused, use measure="accuracy". A conversation without a user message or an assistant message is an
    error. Two judge calls. Source: ragas' TopicAdherence, which uses topics instead of requests; the accuracy is
    deepeval's.

    Attributes:
        topics: The topics that the agent covers; by default `topics` in the sample's metadata.
        measure: "f1", "precision", "recall" or "accuracy".
    """

    name = "topic_adherence"
    questions = (ListRequests, JudgeRequests)
    required_fields = ("input", "messages", "metadata.topics")
    supplied_by: ClassVar[Mapping[str, tuple[str, ...]]] = {"metadata.topics": ("topics",)}
    case_metadata = ("topics",)
    interpretation = (
        (0.95, "the agent stays on its topics"),
        (0.7, "it sometimes goes off topic, or refuses what it should answer"),
        (0.0, "it answers anything, or refuses too much"),
    )
    advice = (
        "Read the off-topic requests that were answered, and the on-topic requests that were refused. Name the topics "
        "in the system prompt, with an example of a request to decline and of one that only looks off topic."
    )

    topics: Annotated[Sequence[str], TEXTS] = ()
    measure: Measure = "f1"

    async def score(
        self, ask: Ask, *, messages: Sequence[Message], metadata: Mapping[str, Any] | None = None
    ) -> Score | Skipped:
        topics = tuple(self.topics) or texts_in(self, metadata, "topics")
        if not topics:
            return Skipped(self.needs_text(["metadata.topics"]))
        require_both_sides(self, messages, None)
        requests = await ask(ListRequests(conversation=conversation_of(messages, calls=False)))
        if not requests:
            return Skipped("the user asks for nothing")
        verdicts = await ask(JudgeRequests(requests=requests, topics=topics, conversation=conversation_of(messages)))
        value = adherence(verdicts, self.measure)
        if value is None:
            return Skipped(f"{UNDEFINED[self.measure]}, so {self.measure} is undefined")
        on_topic = sum(v.on_topic for v in verdicts)
        reason = reason_with(
            f"{on_topic} of {count(len(verdicts), 'request')} on topic, {sum(v.answered for v in verdicts)} answered",
            ("answered off topic", [v.request for v in verdicts if v.answered and not v.on_topic]),
            ("refused on topic", [v.request for v in verdicts if v.on_topic and not v.answered]),
        )
        return Score(value * self.scale, reason, evidence=verdicts)
