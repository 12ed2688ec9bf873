"""Variations of recorded cases whose score is known: other words, or the same words in several messages.

No formula looks at the words that a judge was shown or wrote, and a text that the package would join from messages can
be cut where it joins them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from tests.parity.adapters.checks import CHECKS
from tests.parity.adapters.code import CODE
from tests.parity.adapters.common import Case

Variation: TypeAlias = Callable[[Case, random.Random], Case]

JOINED_BY: Mapping[str, str | None] = {
    "check-includes": " ",
    "check-excludes": " ",
    "check-equals": None,
    "check-matches": None,
    "check-similarity": None,
    **{name: ", " for name in CODE if not name.startswith("legacy-")},
}
"""What the package puts between the texts of several messages, by scorer; None for nothing."""

_SHOWN = ("input", "output", "ground_truth")
_PASSAGES = ("context", "context_extractor_returns", "get_context_returns")
_DECISIVE = {
    *("verdict", "result", "matchType", "relevanceLevel", "impactLevel", "dimension", "answers"),
    *("toolCalled", "stepName", "criterion"),
}
"""The texts of a judge's answer that decide its score, or name what was judged."""

SHORT = (
    *(
        "Yes",
        "No.",
        "Ada",
        "42",
        "1. It is.",
        "2. Two. 3. Three",
        "1,000",
        "3.5 km",
        "12:30 p.m.",
        "U.S.",
        "x_y",
        "e-mail",
    ),
    *("a", "I", "The", "it's", "don't", "the of and", "a a a a", "No no no", '"Quote"', "...", "!?", "—", "😀", "A\nB"),
    *(
        "Ja, 3,5 km.",
        "是的。但是不对。",
        "안녕하세요 세계",
        "ยินดีต้อนรับ",
        "Да, это так.",
        "مرحبا بالعالم",
        "Crème brûlée, s'il vous plaît!",
    ),
)
REASONS = ("", " ", "\n", "because", "x", "1.", "none", "yes", "Ada wrote 3 notes.", "日本", "Ünï—code")


def is_judged(case: Case) -> bool:
    return bool(case["judge_answers"]) and case["scorer"] not in {*CODE, *CHECKS}


def other_words(texts: Sequence[str]) -> Variation:
    """The case with other texts, and the judge's answers with other words. Blank texts stay blank."""

    def vary(case: Case, generator: random.Random) -> Case:
        def other(value: Any) -> Any:
            if isinstance(value, list):
                return [other(one) for one in cast("list[Any]", value)]
            return generator.choice(texts) if isinstance(value, str) and value.strip() else value

        def other_reasons(value: Any, key: str = "") -> Any:
            if isinstance(value, dict):
                return {name: other_reasons(one, name) for name, one in cast("dict[str, Any]", value).items()}
            if isinstance(value, list):
                return [other_reasons(one, key) for one in cast("list[Any]", value)]
            return generator.choice(REASONS) if isinstance(value, str) and key and key not in _DECISIVE else value

        shown = {
            name: other(case[name]) for name in (*_SHOWN, *_PASSAGES) if name in case and not _is_in_messages(case)
        }
        options = {name: other(v) if name in _PASSAGES else v for name, v in case["options"].items()}
        answers = [other_reasons(answer) for answer in case["judge_answers"]]
        return {**case, **shown, "options": options, "judge_answers": answers}

    return vary


def _is_in_messages(case: Case) -> bool:
    return "input_messages" in case or "output_messages" in case


def in_messages(case: Case, generator: random.Random) -> Case:
    """The case with its texts in several messages, cut at some of the places where the package joins them."""
    separator = JOINED_BY[case["scorer"]]

    def cut(text: str) -> list[str]:
        if separator is None:
            places = sorted(generator.sample(range(len(text) + 1), min(3, len(text) + 1)))
            return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
        pieces = [""]
        for number, piece in enumerate(text.split(separator)):
            if number == 0 or generator.random() < 0.5:
                pieces.append(piece)
            else:
                pieces[-1] += separator + piece
        return pieces[1:]

    sides = ("output",) if case["scorer"].startswith("check-") else ("input", "output")
    return {**case, **{f"{side}_messages": cut(case[side]) for side in sides if isinstance(case.get(side), str)}}


def with_other_messages(case: Case, generator: random.Random) -> Case:
    """The case with more messages: later ones of the user, earlier ones of the assistant. A judge is shown neither."""
    more = [f"{generator.choice(SHORT)} {number}" for number in range(generator.randint(1, 3))]
    return {**case, "input_messages": [case["input"], *more], "output_messages": [*more, case["output"]]}


def variations(cases: Iterable[Case], seed: int) -> Iterator[Case]:
    """Variations of all cases that allow one, each with the score of its case."""
    generator = random.Random(seed)
    cases = list(cases)
    judged = [case for case in cases if is_judged(case)]
    texts = [case[name] for case in cases for name in _SHOWN if isinstance(case.get(name), str) and case[name].strip()]
    words = sorted({word for text in texts for word in re.findall(r"\w+", text)})
    shuffled = [" ".join(generator.sample(words, generator.randint(1, 12))) for _ in range(200)]
    for number, pool in enumerate((texts, SHORT, shuffled), start=1):
        yield from _named(judged, other_words(pool), generator, f"words {number}")
    cut = [case for case in cases if case["scorer"] in JOINED_BY and not _is_in_messages(case)]
    yield from _named(cut, in_messages, generator, "cut")
    said = [case for case in judged if not case["scorer"].startswith("legacy-") and not _is_in_messages(case)]
    both = [case for case in said if all(str(case.get(side) or "").strip() for side in ("input", "output"))]
    yield from _named(both, with_other_messages, generator, "more messages")


def _named(cases: Iterable[Case], vary: Variation, generator: random.Random, name: str) -> Iterator[Case]:
    for case in cases:
        yield {**vary(case, generator), "id": f"{case['id']} ({name})"}
