"""Token probabilities of a reply, as OpenAI-compatible endpoints give them, read for what a question wants weighed."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from evalstone.question import Weighed

Token: TypeAlias = Mapping[str, Any]


def geometric_mean(tokens: Sequence[Token]) -> float | None:
    """The geometric mean of the tokens' probabilities; None without tokens."""
    if not tokens:
        return None
    return math.exp(min(0.0, sum(float(token["logprob"]) for token in tokens) / len(tokens)))


def alternatives(tokens: Sequence[Token], weighed: Weighed) -> Mapping[str, float] | None:
    """The probability of each wanted word at the place where the reply's member has its value.

    A token counts for a word only when it is the whole word, so that the first half of "10" is never taken for a 1.
    None when that cannot be told: the value is spelt over several tokens, no probabilities came, or the tokenizer may
    split the words (some word begins another, and no token seen is longer than one character).
    """
    spelt = [_bytes(token) for token in tokens]
    place = _place(b"".join(spelt), weighed)
    if place is None:
        return None
    start, end = place
    before = 0
    for token, text in zip(tokens, spelt, strict=True):
        after = before + len(text)
        if before <= start < after:
            whole = after >= end and _word(text) in weighed.words
            return _probabilities(token, weighed.words) if whole else None
        before = after
    return None


def _place(reply: bytes, weighed: Weighed) -> tuple[int, int] | None:
    """Where the value of the member stands: its last mention, for the object that is read comes after any thought."""
    key = re.escape(json.dumps(weighed.member).encode())
    words = b"|".join(re.escape(word.encode()) for word in sorted(weighed.words, key=len, reverse=True))
    found = list(re.finditer(rb"(?<!\\)" + key + rb'\s*:\s*"?(' + words + rb")(?![\w.])", reply))
    return found[-1].span(1) if found else None


def _probabilities(token: Token, words: Sequence[str]) -> Mapping[str, float] | None:
    options: Sequence[Token] = token.get("top_logprobs") or ()
    found: dict[str, float] = {}
    longest = 1
    for option in options:
        word = _word(_bytes(option))
        if word in words:
            found[word] = found.get(word, 0.0) + math.exp(min(0.0, float(option["logprob"])))
            longest = max(longest, len(word))
    begins_another = any(one != other and other.startswith(one) for one in words for other in words)
    if not found or (begins_another and longest == 1):
        return None
    return found


def _word(text: bytes) -> str:
    return text.decode(errors="replace").strip().strip('"')


def _bytes(token: Token) -> bytes:
    given = token.get("bytes")
    return bytes(given) if given else str(token.get("token", "")).encode(errors="replace")
