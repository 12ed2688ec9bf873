"""evalstone evaluates what language models, RAG pipelines and agents produce."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalstone import checks
    from evalstone.analysis.comparison import Compared, compare
    from evalstone.analysis.drift import ScorerDrift, judge_drift
    from evalstone.analysis.gating import Gate, GateCriteria, gate
    from evalstone.analysis.labelling import CorrectedScore, corrected, labels_of, to_label
    from evalstone.analysis.planning import ScorerPlan, plan_size
    from evalstone.analysis.rates import CorrectedShare, corrected_share
    from evalstone.api import aevaluate, afit_cascade, ascore, evaluate, fit_cascade, score
    from evalstone.calibration import Calibration, calibration_for, known_calibrations
    from evalstone.dataset import Dataset, load
    from evalstone.engine import Batch, Run
    from evalstone.errors import (
        BatchError,
        BudgetSpentError,
        CannotAnswerError,
        DataError,
        EndpointError,
        EvalstoneError,
        JudgeDownError,
        JudgeError,
        LedgerBusyError,
        LedgerError,
        MissingExtraError,
        OutcomeError,
        PendingError,
        PromptError,
        ReplyError,
        RunEndedError,
        SilentError,
        UnclearError,
        UsageError,
    )
    from evalstone.evaluators import (
        AnswerCorrectnessEvaluator,
        AnswerFaithfulnessEvaluator,
        AnswerRelevancyEvaluator,
        EvaluationRequest,
        EvaluationResponse,
        Evaluator,
        FactCheckingEvaluator,
        RelevancyEvaluator,
    )
    from evalstone.judges import (
        Cascade,
        CascadeFit,
        Consistent,
        EmbeddedJudge,
        Judge,
        LabelledQuestion,
        Limited,
        Logged,
        ModelJudge,
        Panel,
        ReplayJudge,
        ScriptedJudge,
        judge_from,
    )
    from evalstone.prompt import Prompt
    from evalstone.question import Answer, Ask, Question
    from evalstone.report.files import read_run, write_run
    from evalstone.scorers import (
        AnswerRelevancy,
        AnswerSimilarity,
        Bias,
        Classify,
        Completeness,
        ContentSimilarity,
        ContextPosition,
        ContextPrecision,
        ContextRecall,
        ContextRelevance,
        ContextScorer,
        ContextStatementRelevancy,
        ContextUsage,
        Criteria,
        Criterion,
        FactualCorrectness,
        Faithfulness,
        Hallucination,
        InstructionAlignment,
        KeywordCoverage,
        MultiTurnJudge,
        NoiseSensitivity,
        Penalties,
        Pipeline,
        PromptAlignment,
        PromptStep,
        RougeL,
        Rubric,
        Scorer,
        Summarization,
        TextualDifference,
        ToneConsistency,
        ToolCallAccuracy,
        ToolCallAppropriateness,
        Toxicity,
        TrajectoryAccuracy,
        TrajectoryJudge,
        TrajectoryQuality,
        TrajectoryWeights,
        not_scorable,
    )
    from evalstone.trajectory import ExpectedStep, Trajectory, TrajectoryExpectation, TrajectoryStep
    from evalstone.trust import Asking, Audit, Auditing, Edit, Labelling, aaudit, acalibrate, audit, calibrate
    from evalstone.types import Failed, Message, Outcome, Record, Sample, Score, Skipped, Step, ToolCall, Usage

__all__ = [
    "Answer",
    "AnswerCorrectnessEvaluator",
    "AnswerFaithfulnessEvaluator",
    "AnswerRelevancy",
    "AnswerRelevancyEvaluator",
    "AnswerSimilarity",
    "Ask",
    "Asking",
    "Audit",
    "Auditing",
    "Batch",
    "BatchError",
    "Bias",
    "BudgetSpentError",
    "Calibration",
    "CannotAnswerError",
    "Cascade",
    "CascadeFit",
    "Classify",
    "Compared",
    "Completeness",
    "Consistent",
    "ContentSimilarity",
    "ContextPosition",
    "ContextPrecision",
    "ContextRecall",
    "ContextRelevance",
    "ContextScorer",
    "ContextStatementRelevancy",
    "ContextUsage",
    "CorrectedScore",
    "CorrectedShare",
    "Criteria",
    "Criterion",
    "DataError",
    "Dataset",
    "Edit",
    "EmbeddedJudge",
    "EndpointError",
    "EvalstoneError",
    "EvaluationRequest",
    "EvaluationResponse",
    "Evaluator",
    "ExpectedStep",
    "FactCheckingEvaluator",
    "FactualCorrectness",
    "Failed",
    "Faithfulness",
    "Gate",
    "GateCriteria",
    "Hallucination",
    "InstructionAlignment",
    "Judge",
    "JudgeDownError",
    "JudgeError",
    "KeywordCoverage",
    "LabelledQuestion",
    "Labelling",
    "LedgerBusyError",
    "LedgerError",
    "Limited",
    "Logged",
    "Message",
    "MissingExtraError",
    "ModelJudge",
    "MultiTurnJudge",
    "NoiseSensitivity",
    "Outcome",
    "OutcomeError",
    "Panel",
    "Penalties",
    "PendingError",
    "Pipeline",
    "Prompt",
    "PromptAlignment",
    "PromptError",
    "PromptStep",
    "Question",
    "Record",
    "RelevancyEvaluator",
    "ReplayJudge",
    "ReplyError",
    "RougeL",
    "Rubric",
    "Run",
    "RunEndedError",
    "Sample",
    "Score",
    "Scorer",
    "ScorerDrift",
    "ScorerPlan",
    "ScriptedJudge",
    "SilentError",
    "Skipped",
    "Step",
    "Summarization",
    "TextualDifference",
    "ToneConsistency",
    "ToolCall",
    "ToolCallAccuracy",
    "ToolCallAppropriateness",
    "Toxicity",
    "Trajectory",
    "TrajectoryAccuracy",
    "TrajectoryExpectation",
    "TrajectoryJudge",
    "TrajectoryQuality",
    "TrajectoryStep",
    "TrajectoryWeights",
    "UnclearError",
    "Usage",
    "UsageError",
    "aaudit",
    "acalibrate",
    "aevaluate",
    "afit_cascade",
    "ascore",
    "audit",
    "calibrate",
    "calibration_for",
    "checks",
    "compare",
    "corrected",
    "corrected_share",
    "evaluate",
    "fit_cascade",
    "gate",
    "judge_drift",
    "judge_from",
    "known_calibrations",
    "labels_of",
    "load",
    "not_scorable",
    "plan_size",
    "read_run",
    "score",
    "to_label",
    "write_run",
]

# Each name is imported when it is first used: nobody uses all of them, and some need numpy.
_HOMES = {
    name: home
    for home, names in {
        "evalstone": "checks",
        "evalstone.analysis.comparison": "Compared compare",
        "evalstone.analysis.drift": "ScorerDrift judge_drift",
        "evalstone.analysis.gating": "Gate GateCriteria gate",
        "evalstone.analysis.labelling": "CorrectedScore corrected labels_of to_label",
        "evalstone.analysis.planning": "ScorerPlan plan_size",
        "evalstone.analysis.rates": "CorrectedShare corrected_share",
        "evalstone.api": "aevaluate afit_cascade ascore evaluate fit_cascade score",
        "evalstone.calibration": "Calibration calibration_for known_calibrations",
        "evalstone.dataset": "Dataset load",
        "evalstone.engine": "Batch Run",
        "evalstone.errors": (
            "BatchError BudgetSpentError CannotAnswerError DataError EndpointError EvalstoneError "
            "JudgeDownError JudgeError LedgerBusyError LedgerError MissingExtraError OutcomeError "
            "PendingError PromptError ReplyError RunEndedError SilentError UnclearError UsageError"
        ),
        "evalstone.evaluators": (
            "AnswerCorrectnessEvaluator AnswerFaithfulnessEvaluator AnswerRelevancyEvaluator "
            "EvaluationRequest EvaluationResponse Evaluator FactCheckingEvaluator RelevancyEvaluator"
        ),
        "evalstone.judges": (
            "Cascade CascadeFit Consistent EmbeddedJudge Judge LabelledQuestion Limited Logged ModelJudge "
            "Panel ReplayJudge ScriptedJudge judge_from"
        ),
        "evalstone.prompt": "Prompt",
        "evalstone.question": "Answer Ask Question",
        "evalstone.report.files": "read_run write_run",
        "evalstone.scorers": (
            "AnswerRelevancy AnswerSimilarity Bias Classify Completeness ContentSimilarity ContextPosition "
            "ContextPrecision ContextRecall ContextRelevance ContextScorer ContextStatementRelevancy "
            "ContextUsage Criteria Criterion FactualCorrectness Faithfulness Hallucination "
            "InstructionAlignment KeywordCoverage MultiTurnJudge NoiseSensitivity Penalties Pipeline "
            "PromptAlignment PromptStep RougeL Rubric Scorer Summarization TextualDifference ToneConsistency "
            "ToolCallAccuracy ToolCallAppropriateness Toxicity TrajectoryAccuracy TrajectoryJudge "
            "TrajectoryQuality TrajectoryWeights not_scorable"
        ),
        "evalstone.trajectory": "ExpectedStep Trajectory TrajectoryExpectation TrajectoryStep",
        "evalstone.trust": "Asking Audit Auditing Edit Labelling aaudit acalibrate audit calibrate",
        "evalstone.types": "Failed Message Outcome Record Sample Score Skipped Step ToolCall Usage",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(_HOMES[name])
    found = importlib.import_module(f"evalstone.{name}") if home.__name__ == __name__ else getattr(home, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
