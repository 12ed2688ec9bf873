"""The questions that judges answer and scorers share, one file a family."""

from evalstone.questions.claims import ClaimVerdict, ListClaims, VerifyClaims
from evalstone.questions.explanation import Explain
from evalstone.questions.relevance import (
    FindUsefulPassages,
    PassageRating,
    PassageRatings,
    PassageVerdict,
    RatePassages,
)
from evalstone.questions.statements import JudgeStatements, ListStatements, StatementVerdict

__all__ = [
    "ClaimVerdict",
    "Explain",
    "FindUsefulPassages",
    "JudgeStatements",
    "ListClaims",
    "ListStatements",
    "PassageRating",
    "PassageRatings",
    "PassageVerdict",
    "RatePassages",
    "StatementVerdict",
    "VerifyClaims",
]
