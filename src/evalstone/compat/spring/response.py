"""What an evaluator gives back: passed, failed, undecided or broken, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from evalstone.errors import ConfigError, OutcomeError

Status: TypeAlias = Literal["passed", "failed", "undecided", "error"]


@dataclass(frozen=True)
class EvaluationResponse:
    """The outcome of one evaluation.

    passed: True, False, or None when it was not decided; test it with `is True` or read `status`, for None is no
    failure. score: in [0, 1], None when there is none. feedback: why, for people. metadata: how it came about; its keys
    are listed in docs/evaluators.md. Raises OutcomeError for a score that is not a finite number in [0, 1], ConfigError
    for a `passed` that is neither a bool nor None.
    """

    passed: bool | None
    score: float | None = None
    feedback: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)

    def __post_init__(self) -> None:
        if self.passed is not None and not isinstance(cast(object, self.passed), bool):
            raise ConfigError(f"passed must be True, False or None, not {self.passed!r}")
        score = cast(object, self.score)
        if score is None:
            return
        if isinstance(score, bool) or not isinstance(score, int | float):
            raise OutcomeError(f"a score must be a number, not {type(score).__name__}")
        if not math.isfinite(score) or not 0 <= score <= 1:
            raise OutcomeError(f"an evaluator's score must be in [0, 1], not {score}")

    @property
    def is_pass(self) -> bool:
        """Whether it passed. False also when it was not decided: `status` tells the two apart."""
        return self.passed is True

    @property
    def status(self) -> Status:
        """passed, failed, undecided, or error when the judge gave no usable answer and on_error is "keep"."""
        if self.passed is None:
            return "error" if "error" in self.metadata else "undecided"
        return "passed" if self.passed else "failed"
