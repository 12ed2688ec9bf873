"""The typed questions that decision models answer, and the probabilities of their answers."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from evalstone._core.guards import is_number
from evalstone.errors import ReplyError
from evalstone.models.replies import one_line

TypedQuestionKind: TypeAlias = Literal["predicate", "choice", "score"]
State: TypeAlias = Mapping[str, "str | Mapping[str, str]"]
"""What is judged: named texts, or named lists of texts by their numbers from 1."""

TOLERANCE = 1e-3
"""How much a sum of probabilities may differ from 1."""
MOST_OPTIONS = 255
"""The most answers of one decision."""
MOST_LEVELS = 10
"""The most levels of a score. Longer scales are choices."""


@dataclass(frozen=True)
class TypedQuestion:
    """One typed question to a decision model."""

    name: str
    """What the model sees as its name; unique in a request."""
    kind: TypedQuestionKind
    instructions: str
    options: Mapping[str, str]
    """The possible answers and what each means, empty if nothing is said of it. `yes` and `no` for a predicate; from
    the lowest level for a score."""


def distribution(decision: TypedQuestion, answer: Mapping[str, Any]) -> Mapping[str, float]:
    """The probabilities of a decision's options, in their order, with a sum of 1.

    Raises ReplyError for an option without a probability, an unknown one, a number outside [0, 1], or a sum that
    differs from 1 by more than .001.
    """
    where = f"the answer to {decision.name}"
    if missing := [option for option in decision.options if option not in answer]:
        raise ReplyError(f"{where} has no probability of {missing[0]!r}")
    if unknown := [option for option in answer if option not in decision.options]:
        raise ReplyError(f"{where} has a probability of {unknown[0]!r:.60}, which is not one of its options")
    for option, value in answer.items():
        if not is_number(value) or not 0 <= value <= 1:
            found = one_line(reprlib.repr(value))  # a text in quotes: "0.5" is no number
            raise ReplyError(f"{where} has the probability {found} of {option!r}; expected a number from 0 to 1")
    total = math.fsum(answer.values())
    if abs(total - 1) > TOLERANCE:
        raise ReplyError(f"{where} has probabilities whose sum is {total:.6g}, not 1")
    return {option: abs(answer[option]) / total for option in decision.options}  # no -0.0
