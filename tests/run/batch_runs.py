"""What the tests of runs through batches share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evalstone import Run, Sample

KEY = "sk-secret-0123"
OPENAI, ANTHROPIC = "openai/gpt-4o", "anthropic/claude-sonnet-4-5"
A_QUESTION = 0.5 * (60 * 2.5 + 40 * 1.25 + 20 * 10.0) / 1e6
"""What one question costs in a batch: 100 tokens in, 40 of them cached, and 20 out, at gpt-4o's price, halved."""

SAMPLES = [Sample(id=str(n), output=f"Answer number {n}.", context=[f"Passage {n}."]) for n in range(4)]
BOTH = pytest.mark.parametrize("model", [OPENAI, ANTHROPIC])
Call = Callable[..., Run]
