"""The lexical judge's answers, by kind of question. Loaded at the first question, and its parts with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalstone.errors import JudgeDeclined
from evalstone.judges.lexical import answers, relevance
from evalstone.judges.lexical.claim_splitter import list_claims
from evalstone.judges.lexical.classifier import check_response, verify
from evalstone.judges.lexical.model import shipped
from evalstone.judges.lexical.passages import Passages, kept
from evalstone.questions.base import Question
from evalstone.questions.claims import ListClaims, VerifyClaims
from evalstone.questions.relevance import FindUsefulPassages, RatePassages
from evalstone.questions.statements import JudgeStatements, ListStatements
from evalstone.questions.verdict import AgreesWithContext, Choice, ClaimSupported, CorrectAgainstReference


def answer_to(question: Question[Any]) -> tuple[Any, float | None, Mapping[str, float] | None]:
    """The answer's value, its confidence, and the probabilities of yes and no where it is one of these.

    Raises JudgeDeclined for a question that words cannot answer.
    """
    match question:
        case ListClaims(text=text):
            return list_claims(text), None, None
        case VerifyClaims(claims=claims, context=context):
            findings = verify(claims, _passages(context), shipped())
            verdicts = tuple(one.verdict for one in findings)
            return verdicts, min((one.confidence for one in findings), default=None), None
        case ListStatements(answer=given):
            return answers.list_statements(given), None, None
        case JudgeStatements(question=asked, statements=statements):
            return answers.judge_statements(asked, statements, shipped()), None, None
        case RatePassages(question=asked, answer=given, context=context):
            return relevance.rate(asked, given, _passages(context), len(context), shipped()), None, None
        case FindUsefulPassages(question=asked, answer=given, context=context):
            return relevance.find_useful(asked, given, _passages(context), len(context), shipped()), None, None
        case ClaimSupported() | AgreesWithContext() | CorrectAgainstReference():
            return _verdict(question)
        case _:
            raise JudgeDeclined(
                f"the lexical judge cannot answer {question.kind} questions; "
                "name a model with --judge, such as openai/gpt-5.1"
            )


def _passages(context: tuple[str, ...]) -> Passages:
    return kept(tuple(context), shipped().lexicon)


def _verdict(
    question: ClaimSupported | AgreesWithContext | CorrectAgainstReference,
) -> tuple[Choice, float, Mapping[str, float]]:
    """Yes or no, with the probabilities of both."""
    model = shipped()
    match question:
        case ClaimSupported(claim=claim, context=context):
            found = check_response(claim, _passages(context), model)
            support, reason = found.support, found.reason
        case AgreesWithContext(question=asked, answer=given, context=context):
            found = check_response(given, _passages(context), model)
            addressed = answers.relevance(asked, given, model)
            support = min(found.support, addressed)
            reason = f"{found.reason}; {addressed:.0%} of its statements address the question"
        case CorrectAgainstReference(question=asked, answer=given, reference=reference):
            compared = answers.compare(asked, given, reference, model)
            support, reason = compared.support, compared.reason
    choice = Choice("yes" if support >= 0.5 else "no", reason)
    return choice, max(support, 1 - support), {"yes": support, "no": 1 - support}
