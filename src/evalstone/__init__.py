"""evalstone evaluates what language models, RAG pipelines and agents produce."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalstone._core.prompts import Prompt
    from evalstone.api import aevaluate, afit_cascade, ascore, evaluate, fit_cascade, score
    from evalstone.compat.spring import (
        AnswerCorrectnessEvaluator,
        AnswerFaithfulnessEvaluator,
        AnswerRelevancyEvaluator,
        EvaluationRequest,
        EvaluationResponse,
        Evaluator,
        FactCheckingEvaluator,
        RelevancyEvaluator,
    )
    from evalstone.datasets import Dataset, load
    from evalstone.errors import (
        AnswerPending,
        BatchError,
        BudgetExceeded,
        ConfigError,
        DataError,
        DeliveryUnknown,
        EvalstoneError,
        JudgeDeclined,
        JudgeError,
        JudgeUnavailable,
        LedgerBusyError,
        LedgerError,
        MissingDependency,
        OutcomeError,
        PromptError,
        ProviderError,
        ProviderTimeout,
        ReplyError,
        RunAborted,
    )
    from evalstone.judge_quality.audit import Audit, AuditConfig, aaudit, audit
    from evalstone.judge_quality.calibrate import JudgeOptions, LabelConfig, acalibrate, calibrate
    from evalstone.judge_quality.perturbations import Perturbation
    from evalstone.judges import (
        Cascade,
        CascadeFit,
        Judge,
        LabelledQuestion,
        LexicalJudge,
        Limits,
        LoggingJudge,
        ModelJudge,
        Panel,
        ReplayJudge,
        ScriptedJudge,
        SelfConsistency,
        parse_judge,
    )
    from evalstone.questions.base import Answer, Ask, Question
    from evalstone.results.calibration import Calibration, calibration_for, list_calibrations
    from evalstone.results.compare import Comparison, compare
    from evalstone.results.drift import DriftResult, judge_drift
    from evalstone.results.files import write_run
    from evalstone.results.gate import Gate, GateCriteria, gate
    from evalstone.results.human_labels import (
        PPIResult,
        RoganGladenResult,
        corrected,
        corrected_share,
        load_labels,
        select_for_labeling,
    )
    from evalstone.results.power_analysis import PowerAnalysis, sample_size
    from evalstone.results.run import Run
    from evalstone.run.batch.options import BatchOptions
    from evalstone.run.saved import read_run
    from evalstone.scorers import (
        AnswerRelevancy,
        AnswerSimilarity,
        Bias,
        Completeness,
        ContentSimilarity,
        ContextPosition,
        ContextPrecision,
        ContextRecall,
        ContextRelevance,
        ContextScorer,
        ContextStatementRelevancy,
        ContextUsage,
        Criterion,
        FactualCorrectness,
        Faithfulness,
        GEval,
        Hallucination,
        InstructionAlignment,
        KeywordCoverage,
        LLMClassifier,
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
        checks,
        not_scorable,
    )
    from evalstone.types import (
        ExpectedStep,
        Failed,
        JudgeCall,
        Message,
        Outcome,
        Record,
        Sample,
        Score,
        Skipped,
        ToolCall,
        Trajectory,
        TrajectoryExpectation,
        TrajectoryStep,
        Usage,
    )

__all__ = [
    "Answer",
    "AnswerCorrectnessEvaluator",
    "AnswerFaithfulnessEvaluator",
    "AnswerPending",
    "AnswerRelevancy",
    "AnswerRelevancyEvaluator",
    "AnswerSimilarity",
    "Ask",
    "Audit",
    "AuditConfig",
    "BatchError",
    "BatchOptions",
    "Bias",
    "BudgetExceeded",
    "Calibration",
    "Cascade",
    "CascadeFit",
    "Comparison",
    "Completeness",
    "ConfigError",
    "ContentSimilarity",
    "ContextPosition",
    "ContextPrecision",
    "ContextRecall",
    "ContextRelevance",
    "ContextScorer",
    "ContextStatementRelevancy",
    "ContextUsage",
    "Criterion",
    "DataError",
    "Dataset",
    "DeliveryUnknown",
    "DriftResult",
    "EvalstoneError",
    "EvaluationRequest",
    "EvaluationResponse",
    "Evaluator",
    "ExpectedStep",
    "FactCheckingEvaluator",
    "FactualCorrectness",
    "Failed",
    "Faithfulness",
    "GEval",
    "Gate",
    "GateCriteria",
    "Hallucination",
    "InstructionAlignment",
    "Judge",
    "JudgeCall",
    "JudgeDeclined",
    "JudgeError",
    "JudgeOptions",
    "JudgeUnavailable",
    "KeywordCoverage",
    "LLMClassifier",
    "LabelConfig",
    "LabelledQuestion",
    "LedgerBusyError",
    "LedgerError",
    "LexicalJudge",
    "Limits",
    "LoggingJudge",
    "Message",
    "MissingDependency",
    "ModelJudge",
    "MultiTurnJudge",
    "NoiseSensitivity",
    "Outcome",
    "OutcomeError",
    "PPIResult",
    "Panel",
    "Penalties",
    "Perturbation",
    "Pipeline",
    "PowerAnalysis",
    "Prompt",
    "PromptAlignment",
    "PromptError",
    "PromptStep",
    "ProviderError",
    "ProviderTimeout",
    "Question",
    "Record",
    "RelevancyEvaluator",
    "ReplayJudge",
    "ReplyError",
    "RoganGladenResult",
    "RougeL",
    "Rubric",
    "Run",
    "RunAborted",
    "Sample",
    "Score",
    "Scorer",
    "ScriptedJudge",
    "SelfConsistency",
    "Skipped",
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
    "Usage",
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
    "list_calibrations",
    "load",
    "load_labels",
    "not_scorable",
    "parse_judge",
    "read_run",
    "sample_size",
    "score",
    "select_for_labeling",
    "write_run",
]

# Each name is imported when it is first used: nobody uses all of them, and some need numpy.
_HOMES = {
    name: home
    for home, names in {
        "evalstone.scorers.checks": "checks",
        "evalstone.results.compare": "Comparison compare",
        "evalstone.results.drift": "DriftResult judge_drift",
        "evalstone.results.gate": "Gate GateCriteria gate",
        "evalstone.results.human_labels": (
            "PPIResult RoganGladenResult corrected corrected_share load_labels select_for_labeling"
        ),
        "evalstone.results.power_analysis": "PowerAnalysis sample_size",
        "evalstone.api": "aevaluate afit_cascade ascore evaluate fit_cascade score",
        "evalstone.results.calibration": "Calibration calibration_for list_calibrations",
        "evalstone.datasets": "Dataset load",
        "evalstone.results.run": "Run",
        "evalstone.run.batch.options": "BatchOptions",
        "evalstone.errors": (
            "BatchError BudgetExceeded JudgeDeclined DataError ProviderError EvalstoneError "
            "JudgeUnavailable JudgeError LedgerBusyError LedgerError MissingDependency OutcomeError "
            "AnswerPending PromptError ReplyError RunAborted ProviderTimeout DeliveryUnknown ConfigError"
        ),
        "evalstone.compat.spring": (
            "AnswerCorrectnessEvaluator AnswerFaithfulnessEvaluator AnswerRelevancyEvaluator "
            "EvaluationRequest EvaluationResponse Evaluator FactCheckingEvaluator RelevancyEvaluator"
        ),
        "evalstone.judges": (
            "Cascade CascadeFit SelfConsistency LexicalJudge Judge LabelledQuestion Limits LoggingJudge ModelJudge "
            "Panel ReplayJudge ScriptedJudge parse_judge"
        ),
        "evalstone._core.prompts": "Prompt",
        "evalstone.questions.base": "Answer Ask Question",
        "evalstone.results.files": "write_run",
        "evalstone.run.saved": "read_run",
        "evalstone.scorers": (
            "AnswerRelevancy AnswerSimilarity Bias LLMClassifier Completeness ContentSimilarity ContextPosition "
            "ContextPrecision ContextRecall ContextRelevance ContextScorer ContextStatementRelevancy "
            "ContextUsage GEval Criterion FactualCorrectness Faithfulness Hallucination "
            "InstructionAlignment KeywordCoverage MultiTurnJudge NoiseSensitivity Penalties Pipeline "
            "PromptAlignment PromptStep RougeL Rubric Scorer Summarization TextualDifference ToneConsistency "
            "ToolCallAccuracy ToolCallAppropriateness Toxicity TrajectoryAccuracy TrajectoryJudge "
            "TrajectoryQuality TrajectoryWeights not_scorable"
        ),
        "evalstone.judge_quality.audit": "Audit AuditConfig aaudit audit",
        "evalstone.judge_quality.calibrate": "JudgeOptions LabelConfig acalibrate calibrate",
        "evalstone.judge_quality.perturbations": "Perturbation",
        "evalstone.types": (
            "ExpectedStep Failed JudgeCall Message Outcome Record Sample Score Skipped ToolCall Trajectory "
            "TrajectoryExpectation TrajectoryStep Usage"
        ),
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(_HOMES[name])
    found = home if name == "checks" else getattr(home, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
