"""The questions that judges answer and scorers share, one file a family."""

from evalstone.questions.claims import ClaimVerdict, ListClaims, VerifyClaims
from evalstone.questions.explanation import Explain
from evalstone.questions.grade import Grade, GradeAgainstReference, GradeAnswer, GradeGrounding, GradeRelevance
from evalstone.questions.relevance import (
    FindUsefulPassages,
    PassageRating,
    PassageRatings,
    PassageVerdict,
    RatePassages,
)
from evalstone.questions.statements import JudgeStatements, ListStatements, StatementVerdict
from evalstone.questions.verdict import (
    AgreesWithContext,
    Choice,
    ClaimSupported,
    CorrectAgainstReference,
    GiveVerdict,
    MiniCheck,
)
from evalstone.questions.yes_no import read_yes_no

__all__ = [
    "AgreesWithContext",
    "Choice",
    "ClaimSupported",
    "ClaimVerdict",
    "CorrectAgainstReference",
    "Explain",
    "FindUsefulPassages",
    "GiveVerdict",
    "Grade",
    "GradeAgainstReference",
    "GradeAnswer",
    "GradeGrounding",
    "GradeRelevance",
    "JudgeStatements",
    "ListClaims",
    "ListStatements",
    "MiniCheck",
    "PassageRating",
    "PassageRatings",
    "PassageVerdict",
    "RatePassages",
    "StatementVerdict",
    "VerifyClaims",
    "read_yes_no",
]
