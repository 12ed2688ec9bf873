"""A large file of promptfoo, for tests and measurements."""

from __future__ import annotations

import json
from collections.abc import Iterable

ANSWER = "The answer goes on for a while, as answers do. " * 10


def large(rows: int) -> Iterable[str]:
    """A file of promptfoo with so many tests."""
    yield '{"evalId": "e", "results": {"version": 3, "timestamp": "2026-01-01T00:00:00Z", "results": ['
    rubric = {"type": "llm-rubric", "value": "It is right.", "provider": "openai:gpt-4.1"}
    contains = {"type": "contains", "value": "{{expected}}"}
    for number in range(rows):
        asked, score = {"question": f"What is {number}?", "expected": str(number)}, number % 3 / 2
        components = [
            {"pass": True, "score": score, "reason": "It is.", "assertion": rubric, "tokensUsed": {"prompt": 50}},
            {"pass": True, "score": 1, "reason": "Yes.", "assertion": contains},
        ]
        one = {
            "promptIdx": 0,
            "testIdx": number,
            "success": score > 0,
            "score": score,
            "failureReason": 0,
            "provider": {"id": "openai:gpt-4.1-mini"},
            "prompt": {"raw": f"Q: {number}", "label": "p"},
            "vars": asked,
            "testCase": {"vars": asked, "assert": [rubric, contains]},
            "response": {"output": f"{ANSWER}{number}", "tokenUsage": {"prompt": 10, "completion": 90}},
            "latencyMs": 900,
            "cost": 0.001,
            "gradingResult": {"pass": True, "score": score, "reason": "All passed", "componentResults": components},
        }
        yield ("," if number else "") + json.dumps(one)
    failures = (rows + 2) // 3
    yield f'], "stats": {{"successes": {rows - failures}, "failures": {failures}, "errors": 0}}}}}}'
