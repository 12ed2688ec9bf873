"""Claims: what a text asserts, and whether passages support it.

Shared by faithfulness, hallucination and context recall: the claims of one text are listed once in a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, cast

from evalstone._core.prompts import Prompt
from evalstone._core.text import STOPWORDS, stem, words
from evalstone._core.truth import NoTruthValue
from evalstone.questions.evidence import SETTLED, VerdictByEvidence, cite_first
from evalstone.questions.items import ListOf
from evalstone.questions.markers import Cites, NotInReply, Restates, Subject, WorstFirst

LIST_CLAIMS = Prompt(
    instructions="""\
You list the claims that a text makes, so that each can be checked on its own.

A claim is one statement about the world that can be true or false. Rules:
- Write each claim as a complete sentence that makes sense without the text: put names in place of pronouns. If a user's
  question is given, the text answers it; use its words to complete short answers.
- One fact per claim.
- Keep the text's certainty: "may cost 5 euros" stays "may cost 5 euros". Guesses are claims too.
- Use the text's words, names and numbers, in the language of the text. Add nothing, correct nothing, and leave out no
  claim, whether it is right or wrong.
- Not claims: questions, commands, greetings, offers of help, remarks about the text itself, and statements that
  something is unknown or could not be found.
A text without claims gets an empty list.""",
    template="{{question}}\n\n{{text}}\n\nList the claims of the text.",
    example="""\
Example. Text: "Sorry, I could not find the price. The museum, founded in 1921, may reopen in May. It has no café. Can I
help with anything else?"
Reply: {"claims": ["The museum was founded in 1921.", "The museum may reopen in May.", "The museum has no café."]}""",
)


LONGEST_QUESTION = 1000
"""In characters. A longer input is probably a document, which doesn't help to understand the answer."""


DESCRIBING = "answer candidate contain describe document include list mention reply response"
"""Words in which a claim may say that a text has something, as in "The list includes salt"."""


class ListClaims(ListOf[str]):
    """The claims of a text, each as a self-contained sentence; empty if it makes none.

    question: the question that the text answers; may be empty. Numbers, names and at least half of the other words of a
    claim must come from the text or the question; if the claim is in another language, only the numbers. Any other
    claim is a ReplyError.
    """

    kind = "list_claims"
    key = "claims"
    source = Restates("text", "question", besides=DESCRIBING.split())
    optional = ("question",)
    cut = "text"
    text: str
    question: str = ""
    prompt: Prompt = LIST_CLAIMS

    @classmethod
    def of(cls, text: str, input: str | None) -> ListClaims:
        """The question for the claims of a text, with the sample's input if there is one and it isn't too long."""
        return cls(text=text, question=input if input and len(input) <= LONGEST_QUESTION else "")


Support: TypeAlias = Literal["supported", "contradicted", "not_mentioned"]


@dataclass(frozen=True)
class ClaimVerdict(NoTruthValue):
    """What the passages say about one claim. `passages` are the numbers of the decisive ones, from 1.

    probability: that the verdict is right, in [0, 1], if the judge returns one for each claim.
    """

    claim: Annotated[str, Subject()]
    verdict: Annotated[Support, WorstFirst("contradicted", "not_mentioned", "supported")]
    passages: Annotated[tuple[int, ...], Cites("context", needed_for=("supported", "contradicted"))] = ()
    reason: str = ""
    probability: Annotated[float | None, NotInReply()] = None


VERIFY_CLAIMS = Prompt(
    instructions="""\
You check claims against numbered passages. The passages are the only evidence: what you know from elsewhere does not
count, even if it is right.

For each claim give, in this order:
- reason: what the passages say about it, in one short sentence with the words or numbers that decide.
- passages: the numbers of the passages that decide it; empty for "not_mentioned".
- verdict:
  - "supported": a passage says it, or it follows from one or several passages without other knowledge, such as a sum of
    two numbers. Other words, a rounded number ("about 50" for 49.8) and a less exact date are still supported.
  - "contradicted": the passages say something that cannot be true if the claim is true.
  - "not_mentioned": neither. A claim of which only a part is in the passages is not_mentioned: if they give the founder
    and the claim gives the founder and the year, the year is missing.
If one passage supports a claim and another contradicts it, the verdict is "supported"; name both in the reason.
A claim that something may be so is supported if the passages say that it may be so, or that it is. A claim that it is
so is not supported by passages that only say that it may be.""",
    template="{{context}}\n\n{{claims}}\n\nCheck each claim against the passages.",
    example="""\
Example. Passages: 1. "The museum has 40 rooms." 2. "A new wing adds 12 rooms. Tickets cost 8 euros." Claims: 1. "The
museum with its new wing has 52 rooms." 2. "Entry is free." 3. "The museum has a café."
Reply: {"verdicts": {
"1": {"reason": "40 rooms in passage 1 and 12 in passage 2 make 52.", "passages": [1, 2], "verdict": "supported"},
"2": {"reason": "Passage 2 says that tickets cost 8 euros.", "passages": [2], "verdict": "contradicted"},
"3": {"reason": "Neither passage says anything about a café.", "passages": [], "verdict": "not_mentioned"}}}""",
)


class VerifyClaims(VerdictByEvidence[ClaimVerdict]):
    """For each claim, in order: do the passages support it, contradict it, or not mention it?

    If the question is split, a claim is supported if any chunk of passages supports it, and otherwise contradicted if
    any chunk contradicts it.
    """

    kind = "verify_claims"
    items = "claims"
    evidence = "context"
    claims: tuple[str, ...]
    context: tuple[str, ...]
    prompt: Prompt = VERIFY_CLAIMS

    def example(self) -> Any:
        reply = super().example()
        cite_first(reply["verdicts"], self.context, "not_mentioned")
        return reply

    def weight(self, verdict: ClaimVerdict) -> int:
        return _WEIGHT[verdict.verdict]

    def citation_note(self, value: Any) -> str:
        """Which claims have none of their words in the passages cited for them, but in another passage."""
        verdicts = cast("Sequence[Any]", value) if isinstance(value, tuple) else ()
        found: list[tuple[int, tuple[int, ...], int]] = []
        for number, verdict in enumerate(verdicts, start=1):
            if isinstance(verdict, ClaimVerdict) and (better := _better_passage(verdict, self.context)):
                found.append((number, verdict.passages, better))
        parts = [
            f"claim {number} has no word in common with passage {', '.join(map(str, cited))}, which is cited for it, "
            f"but with passage {better}"
            for number, cited, better in found[:MOST_NOTED]
        ]
        parts += [f"{len(found) - MOST_NOTED} more such claims"] * (len(found) > MOST_NOTED)
        parts += ["the judge may count passages from 0"] * bool(found and all(b == max(c) + 1 for _, c, b in found))
        return "; ".join(parts)


MOST_NOTED = 3
"""The claims that a note lists."""


def _better_passage(verdict: ClaimVerdict, context: Sequence[str]) -> int:
    """The number of the passage with the most words of a claim, at least half of them, if the cited passages have none;
    0 if there is no such passage."""
    cited = [number for number in verdict.passages if 0 < number <= len(context)]
    if not cited or verdict.verdict == "not_mentioned":
        return 0
    text = "\n".join(context[number - 1] for number in cited)
    lower, own = text.lower(), set[str]()
    for word in words(verdict.claim):
        if word not in STOPWORDS:
            own.add(root := stem(word))
            if len(root) > 3 and root in lower:  # parts of words count, so that compounds and inflected forms do
                return 0
    if not own or not own.isdisjoint(map(stem, words(text))):
        return 0
    shared = {number: len(own.intersection(map(stem, words(text)))) for number, text in enumerate(context, start=1)}
    best = max(shared, key=lambda number: shared[number])
    return best if 2 * shared[best] >= len(own) else 0


_WEIGHT: Mapping[Support, int] = {"not_mentioned": 0, "contradicted": 1, "supported": SETTLED}
