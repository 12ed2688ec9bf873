"""Verdicts: yes, no or undecided, on a whole answer or on one claim, with a reason before the verdict.

A plain-text reply that should be only yes or no often has more text. It is parsed by these rules:

    decided by     its first words, or its last line if that is labeled (`Verdict: no`)
    undecided      neither decides, both decide differently, or the reply contradicts itself

A reply must never pass by accident. A yes inside another word or sentence, or next to a no, doesn't count. `yes and
more` is undecided, like `no and yes`: a second verdict may follow the "and". A verdict word only counts if a clause
ends after it, or if it is followed by a word that starts a reason (`no the passage …`). The "no" of "no contradiction"
and "no one" therefore doesn't count. `Yes, but …` is undecided too, and so is `Yes, wrong`. The words are those of
`LANGUAGES`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from evalstone._core.parsing import member
from evalstone._core.prompts import Prompt
from evalstone._core.reasoning import beside_reasoning, without_reasoning
from evalstone._core.text import STOPS, normalized
from evalstone._core.truth import NoTruthValue
from evalstone._core.yes_no import FILLERS, HEDGE, NO, TAKES_BACK, YES
from evalstone.errors import ReplyError
from evalstone.questions.base import Ask, Question
from evalstone.questions.markers import NotInReply, WorstFirst
from evalstone.questions.parts import ask_parts, chunks_of, space_for, too_long
from evalstone.questions.probabilities import LabelProbabilities, unlisted
from evalstone.questions.reply import reason_of
from evalstone.types.context_limits import ContextLimits

YesNoUndecided: TypeAlias = Literal["yes", "no", "undecided"]


@dataclass(frozen=True)
class YesNoVerdict(NoTruthValue):
    """A verdict and the judge's reason for it. Undecided is an answer too: it is neither a yes nor a no.

    probability: that of a yes, among yes and no, in [0, 1], where the judge gives one.
    """

    verdict: Annotated[YesNoUndecided, WorstFirst("no", "undecided", "yes")]
    reason: str = ""
    probability: Annotated[float | None, NotInReply()] = None


WORDS = ("yes", "no")
"""The verdicts whose probabilities are requested."""


class GiveVerdict(Question[YesNoVerdict]):
    """Yes, no or undecided. A plain-text yes or no instead of the JSON object is accepted.

    A plain-text reply that isn't clearly yes or no is undecided. A blank reply is a ReplyError.
    """

    notes = """\
- reason: why, in one or two sentences, with the words of the material that decide.
- verdict: "yes", "no", or "undecided" if the material does not let you tell."""
    cut: ClassVar[str] = ""
    """The input that is split if it is long; empty if the question can't be split."""

    def fits(self, limits: ContextLimits) -> bool:
        return self.within(limits.tokens) if self.cut else super().fits(limits)

    async def in_parts(self, ask: Ask, limits: ContextLimits) -> YesNoVerdict:
        """The verdict on the part with the most support for the claim."""
        if not self.cut:
            raise too_long(self, limits)
        chunks = chunks_of(self, self.cut, space_for(self, self.cut, limits), limits)
        return best_choice(await ask_parts(self, self.cut, chunks, ask))

    def parse(self, reply: str) -> YesNoVerdict:
        """Parse the choice after any reasoning. It is undecided if a text in front of it that isn't marked as reasoning
        is itself the opposite verdict: the reply may be an answer that quotes a closing tag from the judged text."""
        choice = super().parse(reply)
        before = {read_yes_no(text) for text in beside_reasoning(reply)} - {None}
        if before <= {{"yes": True, "no": False}.get(choice.verdict)}:
            return choice
        return YesNoVerdict("undecided", f"the reply is both yes and no: {reply.strip()[:200]!r}")

    def from_text(self, text: str) -> YesNoVerdict:
        return super().from_text(text) if "{" in text else read_plain(text)

    def from_json(self, data: Any) -> YesNoVerdict:
        verdict = member(data, "verdict")
        if not isinstance(verdict, str):
            raise ReplyError(f"verdict: yes, no or undecided was expected, not {repr(verdict)[:60]}")
        reason = reason_of(data)
        if verdict == "undecided":
            return YesNoVerdict("undecided", reason)
        decided = read_yes_no(verdict)
        if decided is None:
            raise ReplyError(f"verdict: yes, no or undecided was expected, not {verdict[:60]!r}")
        return YesNoVerdict("yes" if decided else "no", reason)

    @property
    def label_probabilities(self) -> LabelProbabilities:
        return LabelProbabilities("verdict", WORDS, required=False)

    def doubt(self, reply: str) -> str:
        """Doubt a reply in prose: the model may give a clear verdict if it is asked again."""
        text = without_reasoning(reply)
        is_prose = self.json_schema is not None and "{" not in text and read_yes_no(text) is None
        return "it holds no JSON object, and is neither yes nor no" if is_prose else ""

    def with_probabilities(self, answer: YesNoVerdict, probabilities: Mapping[str, float]) -> YesNoVerdict:
        """The choice with the probability of a yes, if the judge returns one for yes or no.

        If only one of the two is returned, the other gets the remaining probability, but at most the same.
        """
        yes, no = (probabilities.get(word, 0.0) for word in WORDS)
        if yes + no <= 0:
            return answer
        rest = unlisted(probabilities, WORDS, yes + no)
        return replace(answer, probability=(yes if "yes" in probabilities else rest) / (yes + no + rest))


def read_plain(reply: str) -> YesNoVerdict:
    """Parse a plain-text reply. If it has more than one word, it is also the reason."""
    if not reply.strip("\ufeff \t\r\n"):
        raise ReplyError("the reply is empty; yes or no was expected", reply=reply)
    decided = read_yes_no(reply)
    text = reply.strip()
    reason = text if len(text.split()) > 1 else ""
    if decided is None:
        return YesNoVerdict("undecided", f"the reply is neither yes nor no: {text[:200]!r}")
    return YesNoVerdict("yes" if decided else "no", reason)


AGREES_WITH_CONTEXT = Prompt(
    instructions="""\
You decide whether an answer to a user's question agrees with the passages that it was to be written from. The passages
are the only evidence: what you know from elsewhere does not count, even if it is right.

- "yes": the answer responds to the question, and everything that it says about the question is in the passages or
  follows from them.
- "no": the answer does not respond to the question, or the passages contradict something in it that matters for the
  question, or do not say it.
If the answer is "I do not know" or "the passages do not say", the verdict is "yes" when the passages really do not say
what was asked for, and "no" when they do.""",
    template="{{context}}\n\n{{question}}\n\n{{answer}}\n\nDoes the answer agree with the passages?",
)


class AgreesWithContext(GiveVerdict):
    """Does the answer take up the question, in agreement with the passages?"""

    kind = "agrees_with_context"
    instead = "faithfulness and answer_relevancy, which read long texts in parts"
    question: str
    answer: str
    context: tuple[str, ...]
    prompt: Prompt = AGREES_WITH_CONTEXT


CLAIM_SUPPORTED = Prompt(
    instructions="""\
You decide whether some passages support a claim. The passages are the only evidence: what you know from elsewhere does
not count, even if it is right.

- "yes": the passages say every part of the claim, or it follows from one or several of them without other knowledge.
  Other words and a rounded number are still supported. A sentence that asserts nothing, such as a greeting, an offer of
  help or "I could not find it", is yes.
- "no": the passages contradict a part of the claim, or a part of it is in none of them. A claim that something is so is
  not supported by passages that only say that it may be.
If passages disagree about the claim and one supports all of it, the verdict is "yes".
The claim is a sentence of a longer text. The sentences around it, if given, are only there to tell what its pronouns
stand for; do not judge them.""",
    template="{{context}}\n\n{{sentences_around}}\n\n{{claim}}\n\nDo the passages support the claim?",
    example="""\
Examples. Passages: 1. "The museum has 40 rooms." 2. "A new wing adds 12 rooms. Tickets cost 8 euros."
Claim: "With its new wing the museum has 52 rooms."
Reply: {"reason": "40 rooms in passage 1 and 12 in passage 2 make 52.", "verdict": "yes"}
Claim: "It has 40 rooms and a café."
Reply: {"reason": "Passage 1 gives the 40 rooms, but no passage says anything about a café.", "verdict": "no"}""",
)


class ClaimSupported(GiveVerdict):
    """Do the passages support one claim in every part? sentences_around: those beside it in its text; may be empty."""

    kind = "claim_supported"
    cut = "context"
    optional = ("sentences_around",)
    claim: str
    context: tuple[str, ...]
    sentences_around: str = ""
    prompt: Prompt = CLAIM_SUPPORTED


MINICHECK = Prompt(instructions="", template="Document: {{document}}\nClaim: {{claim}}", fenced=False)


class MiniCheck(GiveVerdict):
    """Does the document support the claim? For models that were trained on this layout, such as Bespoke-MiniCheck.

    No instructions and no fences: the model follows none, and any other layout lowers its accuracy. The reply is
    plain text.
    """

    kind = "minicheck"
    cut = "document"
    notes = ""
    document: str
    claim: str
    prompt: Prompt = MINICHECK

    @functools.cached_property
    def json_schema(self) -> None:
        return None

    @property
    def label_probabilities(self) -> LabelProbabilities:
        return LabelProbabilities("", WORDS, required=False)

    def from_json(self, data: Any) -> YesNoVerdict:
        return read_plain(str(data))


_RANK: Mapping[YesNoUndecided, int] = {"no": 0, "undecided": 1, "yes": 2}


def best_choice(choices: Sequence[YesNoVerdict]) -> YesNoVerdict:
    """The choice with the most support, of at least one: yes, undecided, no, then the probability."""
    return max(choices, key=lambda choice: (_RANK[choice.verdict], choice.probability or 0.0))


CORRECT_AGAINST_REFERENCE = Prompt(
    instructions="""\
You decide whether an answer to a user's question is correct, measured by a reference answer that is taken to be right.
If the reference and what you know differ, the reference decides.

- "yes": the answer says what the reference says about everything that the question asks for. Other words, another order
  and more detail are fine as long as nothing conflicts with the reference.
- "no": it conflicts with the reference, or lacks something that the question asks for and the reference gives.
An answer that gives two results, one of them right, is "no". An answer that says that it does not know is "no", unless
the reference says the same.""",
    template="{{question}}\n\n{{reference}}\n\n{{answer}}\n\nIs the answer correct by the reference?",
)


class CorrectAgainstReference(GiveVerdict):
    """Does the answer say what the reference says on everything that the question asks for?"""

    kind = "correct_against_reference"
    instead = "factual_correctness, which reads texts in parts"
    question: str
    answer: str
    reference: str
    prompt: Prompt = CORRECT_AGAINST_REFERENCE


_REASONS = frozenset(
    """
    because since as the it its this that these those there they he she i we
    """.split()  # noqa: SIM905 - one word a line would be twenty lines
)
_LONGEST = 8_000
_CODE_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,})\w*\s*$", re.MULTILINE)
_TAG = re.compile(r"</?[A-Za-z_]\w*>")
_MARKUP = re.compile(r"[*`_#>~\"'“”„‘’«»‹›「」『』]")
_LABEL = re.compile(
    r"\W*(?:(?:the|my)\s+)?(?:(?:final|short|overall)\s+)?"
    r"(?:answer|verdict|result|response|reply|conclusion|decision|judge?ment|antwort|urteil|réponse|respuesta|resposta"
    r"|ответ|答案|回答|结论|判断|判定)\s*(?:is\b\s*:?|[:：=]|$)",
)
_CLAUSE_END = re.compile(rf"[{STOPS},;:，；：、،؛—–/|()\[\]{{}}\n]|\s-+\s")
_WORD = re.compile(r"\w+(?:-\w+)*")
_DENYING = re.compile(r"\W*?(?:(?P<not>[!¬])|[❌✗✘✖])\ufe0f?\s*(?=\w)")
"""A sign in front of a word that denies it, as in `!yes`; a cross only denies a yes."""


def read_yes_no(text: str) -> bool | None:
    """True for a yes, False for a no, None if the text is neither or both.

    Case, white space, quotes, brackets, markup, code fences and a leading label are ignored. Yes and no are recognized
    in the languages of `LANGUAGES`.
    """
    lines = _lines(text)
    if not lines:
        return None
    last = _LABEL.match(lines[-1])
    final = _decide(lines[-1][last.end() :]) if last else None
    before = lines[:-1] if last else lines
    if last and (final is None or not before):
        return final
    label = _LABEL.match(before[0])
    opening = _decide("\n".join(before)[label.end() if label else 0 :])
    if last is None:
        return opening
    contradicted = opening is not None and opening != final
    return None if contradicted else final


def _lines(text: str) -> list[str]:
    """The lines with words, without markup, in lower case. A label on its own line is joined with the next line."""
    body = text if len(text) <= _LONGEST else text[: _LONGEST // 2] + "\n" + text[-_LONGEST // 2 :]
    body = _TAG.sub("\n", _CODE_FENCE.sub("", body))
    body = normalized("NFKC", _MARKUP.sub("", body)).casefold()
    lines: list[str] = []
    for line in body.splitlines():
        if not _WORD.search(line):
            continue
        label = _LABEL.match(lines[-1]) if lines else None
        if label and not _WORD.search(lines[-1], label.end()):
            lines[-1] = f"{lines[-1].rstrip(' :：=')}: {line.strip()}"
        else:
            lines.append(line.strip())
    return lines


def _decide(text: str) -> bool | None:
    """The verdict in the first words of a text; None if there is none, or if a later clause is just the opposite."""
    clauses = [words for words in (_WORD.findall(clause) for clause in _CLAUSE_END.split(text)) if words]
    if not clauses:
        return None
    head, *rest = clauses
    if head[0] not in YES | NO:
        return None
    if (sign := _DENYING.match(text)) and (sign["not"] or head[0] in YES):
        return None
    if len(head) > 1 and (head[1] not in _REASONS or head[0] == "si"):
        return None
    if len(head) == 1 and rest and HEDGE.match(" ".join(rest[0])):
        return None
    is_yes = head[0] in YES
    return None if any(_takes_back(clause, is_yes=is_yes) for clause in rest) else is_yes


def _takes_back(clause: Sequence[str], *, is_yes: bool) -> bool:
    """Whether a later clause says just the opposite, such as `no`, `but wrong` or `not correct`."""
    opposite = TAKES_BACK[is_yes]
    for words in (clause, [word for word in clause if word not in FILLERS]):
        text = " ".join(words)
        for bare in (text, HEDGE.sub("", text, count=1).strip() if HEDGE.match(text) else text):
            if bare and (bare in opposite or all(word in opposite for word in bare.split())):
                return True
    return False
