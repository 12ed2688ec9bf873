"""The circuit breaker ends a run whose judge or target is unavailable."""

from __future__ import annotations

from collections.abc import Container

from evalstone.errors import (
    JudgeDeclined,
    JudgeUnavailable,
    PromptTooLong,
    ProviderTimeout,
    RunAborted,
    TargetUnreachable,
    error_text,
)

FAILURE_LIMIT = 10


class CircuitBreaker:
    """Opens if all of the first ten calls fail, or if ten consecutive calls can't reach the endpoint.

    Args:
        name: The identity of a judge or target.
        known_working: The identities whose earlier answers the run uses. The remaining calls may be exactly those that
            fail, so for these only an unreachable endpoint counts.
        calls: The noun for calls in messages.
        error: The error that an open breaker raises.
    """

    def __init__(
        self,
        name: str,
        known_working: Container[str],
        *,
        calls: str = "questions",
        error: type[RunAborted] = JudgeUnavailable,
    ) -> None:
        self._name = name
        self._known_working = known_working
        self._calls = calls
        self._error = error
        self._answered = False
        self._failed = 0
        self._unreachable = 0
        self._open = ""

    @property
    def has_answered(self) -> bool:
        """Whether the judge or target is known to work."""
        return self._answered or self._name in self._known_working

    @property
    def is_open(self) -> bool:
        """Whether calls are blocked."""
        return bool(self._open)

    def check(self) -> None:
        """Raise the error if the breaker is open."""
        if self._open:
            raise self._error(self._open)

    def answered(self) -> None:
        """Count a success."""
        self._answered = True
        self._unreachable = 0

    def failed(self, error: Exception) -> None:
        """Count a failure. An open breaker affects only later calls; this one keeps its own error and cost."""
        if isinstance(error, JudgeDeclined | PromptTooLong):  # about the question, not the judge
            return
        self._failed += 1
        self._unreachable = self._unreachable + 1 if isinstance(error, ProviderTimeout | TargetUnreachable) else 0
        if self._open:
            return
        said = error_text(error)
        if self._failed >= FAILURE_LIMIT and not self.has_answered:
            self._open = (
                f"{self._name} failed on each of the first {self._failed} {self._calls}; the last error: {said}"
            )
        elif self._unreachable >= FAILURE_LIMIT:
            self._open = (
                f"{self._name} did not answer the last {self._unreachable} {self._calls}; the last error: {said}"
            )
