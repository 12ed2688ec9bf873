"""Labeled answers on numbers of birds, and scripted judges of them that labels can improve."""

from __future__ import annotations

import json
import re
from typing import Any

from evalstone.models.provider import Completion
from evalstone.questions.base import Question

ROUNDED = "roughly"


def labeled(n: int = 120) -> list[dict[str, Any]]:
    """Answers of which half have a wrong number. A third say "roughly", which people accept."""
    return [
        {
            "id": str(number),
            "input": f"How many birds are in park {number}?",
            "output": f"There are {f'{ROUNDED} ' if number % 3 == 0 else ''}{number + number % 2} birds.",
            "context": [f"Park {number} has {number} birds."],
            "label": "no" if number % 2 else "yes",
        }
        for number in range(n)
    ]


def is_right(question: Question[Any]) -> bool:
    """Whether the number in the answer is that in the passages."""
    inputs = {name: str(value) for name, value in question.inputs().items()}
    said, known = (re.findall(r"\d+ birds", inputs[name]) for name in ("answer", "context"))
    return said[0] == known[0]


def strict(question: Question[Any]) -> dict[str, str]:
    """Says no to "roughly", unless the instructions or an example have it."""
    system, _ = question.render()
    allowed = ROUNDED in system or ROUNDED not in str(question.inputs()["answer"])
    return {"reason": "It compares the numbers.", "verdict": "yes" if is_right(question) and allowed else "no"}


def unsure(question: Question[Any]) -> Completion:
    """Has probabilities in the right order that are too low: a right answer has 0.3 or more."""
    (number, *_) = re.findall(r"\d+", str(question.inputs()["answer"]))
    share = (0.3 if is_right(question) else 0.05) + int(number) % 20 / 100
    verdict = {"reason": "It compares the numbers.", "verdict": "yes" if share >= 0.5 else "no"}
    return Completion(json.dumps(verdict), alternatives={"yes": share, "no": 1 - share})
