"""Verdicts: one yes, no or undecided on a whole answer or on one claim, with the reason given before it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeAlias

from evalstone._core.parsing import member, parse_json
from evalstone._core.prompts import Prompt
from evalstone.errors import ReplyError
from evalstone.questions.base import Question
from evalstone.questions.reply import NotInReply, WorstFirst, reason_of
from evalstone.questions.yes_no import read_yes_no

Verdict: TypeAlias = Literal["yes", "no", "undecided"]


@dataclass(frozen=True)
class Choice:
    """A verdict and the judge's reason for it. Undecided is an answer too: it is neither a yes nor a no.

    probability: that of a yes, among yes and no, in [0, 1], where the judge gives one.
    """

    verdict: Annotated[Verdict, WorstFirst("no", "undecided", "yes")]
    reason: str = ""
    probability: Annotated[float | None, NotInReply()] = None


VERDICT_FORM = """\
Reply with a JSON object, the reason first: {"reason": "…", "verdict": "yes"}
- reason: what decided, in one or two sentences, naming the words that did.
- verdict: "yes", "no", or "undecided" when the material does not let you tell."""


class GiveVerdict(Question[Choice]):
    """Yes, no or undecided. A bare yes or no in place of the JSON object is read as well.

    A reply without a JSON object that is not clearly yes or no is undecided; a blank one is a ReplyError.
    """

    def parse(self, reply: str) -> Choice:
        return self.from_json(parse_json(reply)) if "{" in reply else read_plain(reply)

    def from_json(self, data: Any) -> Choice:
        verdict = member(data, "verdict")
        if not isinstance(verdict, str):
            raise ReplyError(f"verdict: yes, no or undecided was expected, not {repr(verdict)[:60]}")
        reason = reason_of(data)
        if verdict.strip().lower() == "undecided":
            return Choice("undecided", reason)
        decided = read_yes_no(verdict)
        if decided is None:
            raise ReplyError(f"verdict: yes, no or undecided was expected, not {verdict[:60]!r}")
        return Choice("yes" if decided else "no", reason)

    def with_probabilities(self, answer: Choice, probabilities: Mapping[str, float]) -> Choice:
        """The choice with the probability of a yes, where the judge gives one for yes or no."""
        yes, no = probabilities.get("yes", 0.0), probabilities.get("no", 0.0)
        return replace(answer, probability=yes / (yes + no)) if yes + no > 0 else answer


def read_plain(reply: str) -> Choice:
    """The choice in a reply that is text. Its words are the reason when there are more than a verdict's."""
    if not reply.strip("\ufeff \t\r\n"):
        raise ReplyError("the reply is empty; yes or no was expected", reply=reply)
    decided = read_yes_no(reply)
    said = reply.strip()
    reason = said if len(said.split()) > 1 else ""
    if decided is None:
        return Choice("undecided", f"the reply is neither yes nor no: {said[:200]!r}")
    return Choice("yes" if decided else "no", reason)


AGREES_WITH_CONTEXT = Prompt(
    instructions="""\
You decide whether an answer to a user's question agrees with the passages that it was to be written from.

- "yes": the answer takes up the question, and all that it says about it is stated in the passages or follows from them.
- "no": it leaves the question aside, or something in it that bears on the question is contradicted by the passages or
  stands in none of them.
An answer that says the passages do not hold what was asked for agrees with them exactly when they do not hold it. What
you know from elsewhere does not count, even where it is right.

"""
    + VERDICT_FORM,
    template="{{context}}\n\n{{question}}\n\n{{answer}}\n\nDoes the answer agree with the passages?",
)


@dataclass(frozen=True)
class AgreesWithContext(GiveVerdict):
    """Does the answer take up the question, in agreement with the passages?"""

    kind = "agrees_with_context"
    question: str
    answer: str
    context: tuple[str, ...]
    prompt: Prompt = AGREES_WITH_CONTEXT


CLAIM_SUPPORTED = Prompt(
    instructions="""\
You decide whether some passages support a claim. The passages are the only evidence: what you know from elsewhere does
not count, even where it is right.

- "yes": every part of the claim is stated in the passages or follows from them without further knowledge. Other words
  and a rounded number are still supported. Words that assert nothing, such as a greeting or an offer of help, have
  nothing to support: yes.
- "no": the passages contradict a part of the claim, or a part of it stands in none of them.
The claim is one sentence out of a longer text: read its pronouns in the way that fits the passages best.

"""
    + VERDICT_FORM,
    template="{{context}}\n\n{{claim}}\n\nDo the passages support the claim?",
)


@dataclass(frozen=True)
class ClaimSupported(GiveVerdict):
    """Do the passages support one claim in every part?"""

    kind = "claim_supported"
    claim: str
    context: tuple[str, ...]
    prompt: Prompt = CLAIM_SUPPORTED


MINICHECK = Prompt(instructions="", template="Document: {{document}}\nClaim: {{claim}}", fenced=False)


@dataclass(frozen=True)
class MiniCheck(GiveVerdict):
    """Does the document support the claim? For models that were trained on this layout, such as Bespoke-MiniCheck.

    No instructions and no fences: the model follows none, and any other layout lowers its accuracy. The reply is
    plain text.
    """

    kind = "minicheck"
    document: str
    claim: str
    prompt: Prompt = MINICHECK

    @functools.cached_property
    def json_schema(self) -> None:
        return None

    def parse(self, reply: str) -> Choice:
        return read_plain(reply)

    def from_json(self, data: Any) -> Choice:
        return read_plain(str(data))


CORRECT_AGAINST_REFERENCE = Prompt(
    instructions="""\
You decide whether an answer to a user's question is correct, measured by a reference answer that is taken to be right.

- "yes": the answer says what the reference says on everything that the question asks for. Other words, another order
  and more detail than the reference has are fine as long as nothing conflicts with it.
- "no": it conflicts with the reference, or lacks something that the question asks for and the reference gives.
Where the reference and what you know differ, the reference decides. An answer that gives two results, one of them
right, is "no".

"""
    + VERDICT_FORM,
    template="{{question}}\n\n{{reference}}\n\n{{answer}}\n\nIs the answer correct by the reference?",
)


@dataclass(frozen=True)
class CorrectAgainstReference(GiveVerdict):
    """Does the answer say what the reference says on everything that the question asks for?"""

    kind = "correct_against_reference"
    question: str
    answer: str
    reference: str
    prompt: Prompt = CORRECT_AGAINST_REFERENCE
