"""The commands that a check of data suggests."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from evalstone.datasets.reading import Reading

_SUGGESTED = (
    *("faithfulness", "context_relevance", "factual_correctness", "answer_relevancy", "rouge_l"),
    *("trajectory_accuracy", "tool_call_accuracy", "precision_at_k"),
)
"""The scorers that a command suggests, the most telling first. The lexical judge can answer their questions."""
_OF_CALLS = ("trajectory_accuracy", "tool_call_f1", "tool_call_accuracy", "no_tool_errors", "faithfulness")
"""Those that a command suggests for samples with tool calls. The lexical judge can answer their questions."""
_OF_CALLS_BY_A_MODEL = ("tool_call_appropriateness", "goal_reached")
"""Those that another command suggests for them."""
OF_A_TARGET = ("trajectory_accuracy", "tool_call_f1", *_SUGGESTED)
"""Those that a command suggests for samples that a target answers."""
_OF_ANY_ANSWER = "toxicity"
_MOST = 3
_MODEL = "openai/gpt-5.1"
_TARGET = "my_app:agent"


@dataclass(frozen=True, kw_only=True)
class SuitedScorers:
    """The scorers that can score samples, and what decides which of them a command suggests."""

    n: int
    """The number of samples."""
    samples: Mapping[str, int]
    """By scorer, the number of samples that it can score."""
    with_answers: Mapping[str, int]
    """The same if a target answers the samples. Empty if they have answers."""
    judged: frozenset[str]
    """The scorers that ask a judge."""
    has_calls: bool
    """Whether most samples have tool calls or another trajectory."""
    is_foreign: bool
    """Whether most samples are in a language that the lexical judge wasn't measured on."""
    has_labels: bool
    """Whether the data have labels of people."""

    def fit(self, names: Iterable[str]) -> list[str]:
        """The scorers among these that can score most samples."""
        return [name for name in names if 2 * self.samples.get(name, 0) >= self.n]

    def fit_answers(self) -> list[str]:
        """The scorers that can score most samples if a target answers them."""
        return [name for name in OF_A_TARGET if 2 * self.with_answers.get(name, 0) >= self.n]


def suggested_commands(path: str, reading: Reading, scorers: SuitedScorers) -> Iterator[str]:
    """Commands that score data, or have them answered and score the answers, and compare a judge with their labels."""
    data, known = shlex.quote(path), scorers.fit(_OF_CALLS if scorers.has_calls else _SUGGESTED)[:_MOST]
    if not known and (answered := scorers.fit_answers()[:_MOST]):
        yield _command(f"run {data} --target {_TARGET}", answered, reading, by_a_model=scorers.is_foreign)
        return
    if not scorers.samples:
        return
    chosen = known or [_OF_ANY_ANSWER if _OF_ANY_ANSWER in scorers.samples else next(iter(scorers.samples))]
    by_a_model = scorers.is_foreign or (not known and chosen[0] in scorers.judged)
    yield _command(f"run {data}", chosen, reading, by_a_model=by_a_model)
    if scorers.has_calls and (judged := scorers.fit(_OF_CALLS_BY_A_MODEL)):
        yield _command(f"run {data}", judged, reading, by_a_model=True)
    compared = [name for name in known if name in scorers.judged][:1]
    if compared and scorers.has_labels:
        yield _command(f"calibrate --labels {data}", compared, reading, by_a_model=scorers.is_foreign)


def _command(start: str, names: Iterable[str], reading: Reading, *, by_a_model: bool) -> str:
    options = [*(f"--scorer {name}" for name in names), *reading.options()]
    options += [f"--judge {_MODEL}"] if by_a_model else []
    return " ".join((f"evalstone {start}", *options))
