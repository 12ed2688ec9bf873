"""The questions that judges answer and scorers share, one file a family."""

from evalstone.questions.alignment import (
    Alignment,
    AlignmentPart,
    CheckConversation,
    CheckCriteria,
    CriterionVerdict,
    InstructionVerdict,
    JudgeAlignment,
    JudgeInstructions,
)
from evalstone.questions.claims import ClaimVerdict, ListClaims, VerifyClaims
from evalstone.questions.coverage import FindAnswers, ListQuestions, QuestionVerdict
from evalstone.questions.explanation import Explain
from evalstone.questions.grade import Grade, GradeAgainstReference, GradeAnswer, GradeGrounding, GradeRelevance
from evalstone.questions.harm import FindToxicity, JudgeOpinions, ListOpinions, OpinionVerdict, ToxicityVerdict
from evalstone.questions.relevance import (
    FindUsefulPassages,
    JudgePassageStatements,
    PassageRating,
    PassageRatings,
    PassageStatement,
    PassageVerdict,
    RatePassages,
)
from evalstone.questions.robustness import JudgeRobustness, NoiseImpact, Robustness
from evalstone.questions.statements import (
    CompareStatements,
    Comparison,
    Contradiction,
    JudgeStatements,
    ListStatements,
    StatementMatch,
    StatementVerdict,
)
from evalstone.questions.tool_use import (
    JudgeSteps,
    JudgeToolCalls,
    StepVerdict,
    StepVerdicts,
    ToolCallVerdict,
    ToolCallVerdicts,
)
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
    "Alignment",
    "AlignmentPart",
    "CheckConversation",
    "CheckCriteria",
    "Choice",
    "ClaimSupported",
    "ClaimVerdict",
    "CompareStatements",
    "Comparison",
    "Contradiction",
    "CorrectAgainstReference",
    "CriterionVerdict",
    "Explain",
    "FindAnswers",
    "FindToxicity",
    "FindUsefulPassages",
    "GiveVerdict",
    "Grade",
    "GradeAgainstReference",
    "GradeAnswer",
    "GradeGrounding",
    "GradeRelevance",
    "InstructionVerdict",
    "JudgeAlignment",
    "JudgeInstructions",
    "JudgeOpinions",
    "JudgePassageStatements",
    "JudgeRobustness",
    "JudgeStatements",
    "JudgeSteps",
    "JudgeToolCalls",
    "ListClaims",
    "ListOpinions",
    "ListQuestions",
    "ListStatements",
    "MiniCheck",
    "NoiseImpact",
    "OpinionVerdict",
    "PassageRating",
    "PassageRatings",
    "PassageStatement",
    "PassageVerdict",
    "QuestionVerdict",
    "RatePassages",
    "Robustness",
    "StatementMatch",
    "StatementVerdict",
    "StepVerdict",
    "StepVerdicts",
    "ToolCallVerdict",
    "ToolCallVerdicts",
    "ToxicityVerdict",
    "VerifyClaims",
    "read_yes_no",
]
