"""What the settings of scorers may be, beyond their types: other values are refused by name."""

from __future__ import annotations

import math
from typing import Any

import pytest

from evalstone import scorers as s
from evalstone.errors import ConfigError
from evalstone.questions.relevance import LEVELS
from evalstone.questions.robustness import IMPACTS
from tests.refusals import refused

NO_SHARE = (-0.1, 1.1, math.nan)
NEGATIVE = (-0.1, math.nan, math.inf)
BLANK = ("", " ", "\u200b")
WRONG: list[tuple[type[Any], str, str, tuple[Any, ...]]] = [
    (s.AnswerRelevancy, "uncertainty_weight", "a number from 0 to 1", NO_SHARE),
    (s.AnswerSimilarity, "exact_bonus missing contradiction extra", "a number of 0 or more", NEGATIVE),
    (s.AnswerSimilarity, "semantic", "a number from 0 to 1", NO_SHARE),
    (s.Completeness, "elements", "a plain function of a text", ("words",)),
    (s.ContentSimilarity, "ignore_case", "true or false", ("no",)),
    (s.ContentSimilarity, "compare_to", "'input' or 'reference'", ("context",)),
    (s.ContextRelevance, " ".join(LEVELS), "a number from 0 to 1", NO_SHARE),
    (s.ContextRelevance, "penalties", "a Penalties or a mapping", (5,)),
    (s.Penalties, "unused missing missing_limit", "a number of 0 or more", NEGATIVE),
    (s.InstructionAlignment, "instructions", "a list of texts that are not blank", ([" "], [5], ["a", None])),
    (s.SCORERS["latency"], "limit", "a number of 0 or more", (*NEGATIVE, "2", True, None)),
    (s.Levenshtein, "ignore_whitespace", "true or false", (1,)),
    (s.MultiTurnJudge, "criterion", "text that is not blank", (*BLANK, 5)),
    (s.NoiseSensitivity, "baseline noisy_query", "text that is not blank", BLANK),
    (s.NoiseSensitivity, " ".join(IMPACTS), "a number from 0 to 1", NO_SHARE),
    (s.NoiseSensitivity, "discrepancy issue issue_limit", "a number of 0 or more", NEGATIVE),
    (s.PlanAdherence, "out_of_order", "a number from 0 to 1", (*NO_SHARE, "1", True)),
    (s.PlanQuality, "tools", "a list of tools, each a name or an object with a name", ("search",)),
    (s.PrecisionAtK, "k", "a whole number of 1 or more", (0, -1, 2.5, True, "10")),
    (s.PromptAlignment, "mode", "'both', 'user' or 'system'", ("usr",)),
    (s.PromptAlignment, "history", "a whole number of 0 or more", (-1, 1.5, True)),
    (s.Summarization, "max_questions", "a number of 1 or more", (0, 0.5, -1, math.nan, math.inf)),
    (s.Summarization, "source", "text that is not blank", (5, " \u200b")),
    (s.ToolCallAccuracy, "tool", "text that is not blank", ("", 5)),
    (s.ToolCallAccuracy, "order", "a list of texts that are not blank", ("a",)),
    (s.ToolCallAccuracy, "strict", "true or false", ("yes",)),
    (s.ToolCallF1, "arguments", "'equal', 'subset' or 'ignore'", ("any",)),
    (s.TopicAdherence, "topics", "a list of texts that are not blank", ("baking",)),
    (s.TopicAdherence, "measure", "'f1', 'precision', 'recall' or 'accuracy'", ("f2",)),
    (s.TrajectoryJudge, "necessary in_order missing", "a number from 0 to 1", NO_SHARE),
    (s.TrajectoryQuality, "weights", "a TrajectoryWeights or a mapping", (5,)),
    (s.TrajectoryWeights, "accuracy", "a finite number", (math.nan, math.inf, "1", True, None)),
]


@pytest.mark.parametrize(("kind", "settings", "allowed", "values"), WRONG)
def test_a_setting_that_means_nothing_is_refused(
    kind: type[Any], settings: str, allowed: str, values: tuple[Any, ...]
) -> None:
    for name in settings.split():
        for value in values:
            with refused(name, allowed):
                kind(**{name: value})


@pytest.mark.parametrize("kind", [s.ContextPrecision, s.ContextRecall, s.ContextRelevance])
def test_an_empty_list_of_passages_is_refused(kind: type[s.ContextScorer]) -> None:
    with pytest.raises(ConfigError, match="an empty list"):
        kind(context=[])
