"""The scorers by name, and the parser of scorer specs from the command line, files and Python calls."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from evalstone._core.addresses import built, find, is_address, meant_by, of_kind
from evalstone._core.display import joined
from evalstone._core.front_ends import Setting
from evalstone._core.guards import is_mapping
from evalstone._core.plugins import SCORERS as GROUP
from evalstone._core.plugins import Plugin, Plugins
from evalstone._core.syntax import parse_spec
from evalstone.errors import ConfigError, absent, invalid, unknown
from evalstone.scorers.base import Scorer, ScorerSpec, require_known


class Registry(Mapping[str, type[Scorer]]):
    """Scorer classes by name. A class is imported when it is first read; `paths` are below `evalstone.scorers`."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self.paths = paths

    def __getitem__(self, name: str) -> type[Scorer]:
        module, _, attribute = self.paths[name].rpartition(".")
        return getattr(importlib.import_module(f"evalstone.scorers.{module}"), attribute)

    def __contains__(self, name: object) -> bool:
        return name in self.paths

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)


SCORERS = Registry(
    {
        "answer_correctness": "rag.graded.AnswerCorrectness",
        "answer_faithfulness": "rag.graded.AnswerFaithfulness",
        "answer_relevance_grade": "rag.graded.AnswerRelevanceGrade",
        "answer_relevancy": "rag.statements.AnswerRelevancy",
        "answer_similarity": "rag.statements.AnswerSimilarity",
        "average_precision": "retrieval.AveragePrecision",
        "bias": "safety.Bias",
        "bleu": "text.translation.Bleu",
        "choice": "checks.multiple_choice.Choice",
        "chrf": "text.translation.Chrf",
        "completeness": "text.word_coverage.Completeness",
        "contains": "checks.texts.Contains",
        "content_similarity": "text.similarity.ContentSimilarity",
        "context_position": "rag.context_ranking.ContextPosition",
        "context_precision": "rag.context_ranking.ContextPrecision",
        "context_recall": "rag.claims.ContextRecall",
        "context_relevance": "rag.context_relevance.ContextRelevance",
        "context_statement_relevancy": "rag.context_relevance.ContextStatementRelevancy",
        "context_usage": "rag.context_relevance.ContextUsage",
        "cost": "checks.calls.Cost",
        "embedding_similarity": "text.embedding_similarity.EmbeddingSimilarity",
        "exact_match": "checks.texts.ExactMatch",
        "f1_tokens": "text.similarity.F1Tokens",
        "fact_check": "rag.graded.FactCheck",
        "factual_correctness": "rag.claims.FactualCorrectness",
        "faithfulness": "rag.claims.Faithfulness",
        "goal_reached": "agents.goal_reached.GoalReached",
        "hallucination": "rag.claims.Hallucination",
        "hit_rate_at_k": "retrieval.HitRateAtK",
        "instruction_alignment": "text.alignment.InstructionAlignment",
        "json_schema": "checks.json.JsonSchema",
        "json_valid": "checks.json.JsonValid",
        "keyword_coverage": "text.word_coverage.KeywordCoverage",
        "latency": "checks.calls.Latency",
        "levenshtein": "text.similarity.Levenshtein",
        "max_tool_calls": "checks.tools.MaxToolCalls",
        "multi_turn_judge": "agents.multi_turn_judge.MultiTurnJudge",
        "ndcg_at_k": "retrieval.NdcgAtK",
        "no_tool_calls": "checks.tools.NoToolCalls",
        "no_tool_errors": "checks.tools.NoToolErrors",
        "noise_sensitivity": "rag.noise_sensitivity.NoiseSensitivity",
        "not_contains": "checks.texts.NotContains",
        "numeric_match": "checks.numeric.NumericMatch",
        "pairwise": "pairwise.Pairwise",
        "per_step": "wrappers.PerStep",
        "per_turn": "wrappers.PerTurn",
        "plan_adherence": "agents.plans.PlanAdherence",
        "plan_quality": "agents.plans.PlanQuality",
        "precision_at_k": "retrieval.PrecisionAtK",
        "prompt_alignment": "text.alignment.PromptAlignment",
        "r_precision": "retrieval.RPrecision",
        "recall_at_k": "retrieval.RecallAtK",
        "reciprocal_rank": "retrieval.ReciprocalRank",
        "regex": "checks.texts.Regex",
        "relevancy_check": "rag.graded.RelevancyCheck",
        "repeated": "wrappers.Repeated",
        "rouge_l": "text.similarity.RougeL",
        "rubric": "custom.rubric.Rubric",
        "sample_checks": "checks.own.SampleChecks",
        "similarity": "checks.texts.Similarity",
        "summarization": "text.summarization.Summarization",
        "ter": "text.translation.Ter",
        "textual_difference": "text.similarity.TextualDifference",
        "tokens": "checks.calls.Tokens",
        "tone_consistency": "text.tone_consistency.ToneConsistency",
        "tool_call_accuracy": "agents.tool_calls.ToolCallAccuracy",
        "tool_call_appropriateness": "agents.tool_calls.ToolCallAppropriateness",
        "tool_call_f1": "agents.tool_call_f1.ToolCallF1",
        "tool_called": "checks.tools.ToolCalled",
        "tool_not_called": "checks.tools.ToolNotCalled",
        "tool_order": "checks.tools.ToolOrder",
        "topic_adherence": "agents.topic_adherence.TopicAdherence",
        "toxicity": "safety.Toxicity",
        "trajectory_accuracy": "agents.trajectories.TrajectoryAccuracy",
        "trajectory_judge": "agents.trajectories.TrajectoryJudge",
        "trajectory_quality": "agents.trajectories.TrajectoryQuality",
    }
)
"""The built-in scorers that can be named. To add one, add its file, its line here and its test."""

TEMPLATES = Registry({"llm_classifier": "custom.llm_classifier.LLMClassifier", "geval": "custom.geval.GEval"})
"""Kinds of scorer that a table defines: {"kind": "llm_classifier", "name": "polite", "question": "…"}."""

PLUGINS = Plugins(GROUP, (*SCORERS, *TEMPLATES))
"""The scorers of installed packages."""

OWN_CODE = "to score with your own code, write a function of sample fields, or derive a class from evalstone.Scorer"


def parse_scorers(specs: ScorerSpec | Iterable[ScorerSpec]) -> tuple[Scorer, ...]:
    """Return scorers from one spec or an iterable of specs; see `parse_scorer`."""
    return tuple(map(parse_scorer, specs_of(specs)))


def specs_of(specs: ScorerSpec | Iterable[ScorerSpec]) -> tuple[ScorerSpec, ...]:
    """One spec or an iterable of specs, as a tuple."""
    if isinstance(specs, str | Mapping | Scorer | type) or not isinstance(specs, Iterable):
        return (cast("ScorerSpec", specs),)
    return tuple(cast("Iterable[ScorerSpec]", specs))


def parse_scorer(spec: ScorerSpec) -> Scorer:
    """Return a scorer from its name (optionally with parameters), a table, a Scorer, its class, a function or an
    evaluator.

    `faithfulness`, `context_relevance(scale=10)`, `contains(expected=Oslo)` (bare words are strings),
    {"name": "faithfulness", "scale": 10}, {"kind": "llm_classifier", "name": "polite", "question": "…"}, or
    `my_module:my_scorer` and `path/file.py:MyScorer(limit=3)` for your own. Hyphens in names count as underscores.

    Raises:
        ConfigError: A scorer or parameter is unknown (the message suggests the nearest), or a parameter is invalid.
    """
    if isinstance(spec, Scorer):
        return spec
    if isinstance(spec, type) and issubclass(spec, Scorer):
        return _made(spec, {}, spec.__name__)
    if callable(as_scorer := getattr(cast(object, spec), "as_scorer", None)):
        return parse_scorer(cast("ScorerSpec", as_scorer()))
    if isinstance(spec, str):
        return _build(*(_parsed(spec) if not is_address(spec) else (spec, {})))
    if callable(cast(object, spec)) and not isinstance(spec, type):
        return _function_scorer(spec)
    if not isinstance(spec, Mapping):
        kind = type(cast(object, spec)).__name__
        raise ConfigError(f"a scorer is a name, a table, a Scorer or an evaluator, not {kind}; {OWN_CODE}")
    table = dict(cast("Mapping[str, Any]", spec))
    if "kind" in table:
        return _build(str(table.pop("kind")), table, templates_only=True)
    name = table.pop("name", None)
    if not isinstance(name, str):
        raise ConfigError(f'a scorer table needs a name, such as name = "faithfulness"; it has {sorted(table)}')
    return _build(name, table)


def built_in(name: str, parameters: Mapping[str, Any]) -> Scorer:
    """The built-in scorer with a name. Nothing in the parameters can name another one, a plug-in, or code.

    Raises ConfigError if a scorer or parameter is unknown, or a parameter is invalid.
    """
    known = name.strip().replace("-", "_")
    kind = TEMPLATES.get(known) or SCORERS.get(known)
    if kind is None:
        raise ConfigError(unknown("scorer", name[:100], (*SCORERS, *TEMPLATES)))
    return _made(kind, parameters, known)


def names_wrapper(spec: object) -> bool:
    """Whether a name, with or without parameters, or a table names a scorer that applies another one."""
    name = spec.partition("(")[0] if isinstance(spec, str) else None
    if is_mapping(spec):
        name = spec.get("name")
    return isinstance(name, str) and SCORERS.paths.get(name.strip().replace("-", "_"), "").startswith("wrappers.")


def imported(address: str, parameters: Mapping[str, Any] | None = None) -> Scorer:
    """The scorer at an address, `module:name` or `path/file.py:name`. parameters: those of a class of scorers.

    Raises ConfigError if it can't be imported, or isn't a scorer.
    """
    return _own(find(address, "the scorer"), parameters or {}, f"the scorer {address}")


def _own(value: Any, parameters: Mapping[str, Any], named: str) -> Scorer:
    """An object of the user's code or of a plug-in as a scorer. named: how it was named.

    Raises ConfigError if it isn't one, and for what its own code raises.
    """
    return built(named, functools.partial(_scorer_of, value, parameters, named), {})


def _scorer_of(value: Any, parameters: Mapping[str, Any], named: str) -> Scorer:
    if inspect.isclass(value) and issubclass(value, Scorer):
        return _made(value, parameters, named)
    if callable(as_scorer := getattr(value, "as_scorer", None)):
        value = as_scorer()
    if callable(value) and not isinstance(value, Scorer | type):
        try:
            value = _function_scorer(value)
        except ConfigError as error:
            raise ConfigError(f"{named} is not a scorer: ", error) from None
    if not isinstance(value, Scorer):
        raise ConfigError(of_kind(named, "a scorer", "Scorer", value), f"; {OWN_CODE}")
    if parameters:
        raise ConfigError(f"{named} takes no parameters: it is a scorer, and not a class of scorers")
    return value


def added(plugin: Plugin) -> type[Scorer] | Scorer:
    """What a plug-in adds: a class of scorers, or a scorer.

    Raises ConfigError if its name is taken or isn't that of the scorer, it can't be imported, or it is no scorer.
    """
    PLUGINS.check(plugin)
    value: Any = plugin.load()
    if not (inspect.isclass(value) and issubclass(value, Scorer)):
        value = _own(value, {}, str(plugin))
    name = built(str(plugin), functools.partial(getattr, value, "name", None), {})
    if name != plugin.name:
        own = f"the name {name}" if isinstance(name, str) else "no fixed name"
        raise ConfigError(
            invalid("name", plugin.name, name).worded(f"{plugin}: its scorer has {own}; both must be the same")
        )
    return value


def plugged_in(name: str) -> Plugin | None:
    """The plug-in with a name, which may be written with hyphens; None if there is none. Raises ConfigError for one
    that is refused."""
    return PLUGINS.get(name.replace("-", "_")) or PLUGINS.get(name)


def _function_scorer(function: Any) -> Scorer:
    """A function as a scorer. Raises ConfigError if it can't be one."""
    from evalstone.scorers.custom.function import FunctionScorer  # noqa: PLC0415 - most scorers are not functions

    return FunctionScorer(function)


def _build(name: str, parameters: Mapping[str, Any], *, templates_only: bool = False) -> Scorer:
    if ":" in name and not templates_only:
        return imported(name, parameters)
    written = name.strip()
    name = written.replace("-", "_")
    kind = TEMPLATES.get(name) or (None if templates_only else SCORERS.get(name))
    if kind is None and not templates_only and (plugin := plugged_in(written)) is not None:
        return _own(added(plugin), parameters, name)
    if kind is None:
        known = TEMPLATES if templates_only else [*TEMPLATES, *SCORERS, *PLUGINS.names()]
        names = name.replace(",", " ").split()
        if len(names) > 1 and set(names) <= set(known):
            raise ConfigError(
                f"{name!r} names {len(names)} scorers; name each separately: ", Setting("scorers", tuple(names))
            )
        if templates_only:
            raise ConfigError(unknown("kind of scorer", name, known))
        raise ConfigError(unknown("scorer", name, known, meant=meant_by(written)))
    return _made(kind, parameters, name)


def _made(kind: type[Scorer], parameters: Mapping[str, Any], name: str) -> Scorer:
    """A scorer of a class with these parameters. Raises ConfigError for an unknown, absent or invalid one."""
    require_known(name, "parameter", parameters, kind)
    missing = [
        field.name
        for field in dataclasses.fields(kind)
        if field.name not in parameters and field.init and field.default is field.default_factory is dataclasses.MISSING
    ]
    if missing:
        example = f"{name}({', '.join(f'{p}=…' for p in missing)})"
        raise ConfigError(absent(missing[0], f"{name} needs {joined(missing)}: {example}"))
    return built(name, kind, parameters)


def _parsed(spec: str) -> tuple[str, dict[str, Any]]:
    try:
        return parse_spec(spec, nested="scorer")  # which may have parameters: per_turn(scorer=regex(pattern=x))
    except ValueError as error:
        message = f"{spec!r} can't be parsed as a scorer; expected a form such as context_relevance(scale=10)"
        raise ConfigError(f"{message}; ", error) from None
