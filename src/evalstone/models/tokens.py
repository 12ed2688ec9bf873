"""The tokens of a reply with their probabilities (logprobs), as OpenAI-compatible endpoints return them."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from evalstone._core.reasoning import answer_start
from evalstone.models.replies import as_list, as_object, as_text

Token: TypeAlias = Mapping[str, Any]
LOWEST, ROUNDING = -1e300, 1e-3
"""The range of a valid logprob, except for -inf, which stands for probability 0."""


def readable_tokens(content: Any) -> Sequence[Token]:
    """The tokens of a response's answer, without those of the reasoning in front of it; none if one of them has an
    invalid logprob, such as NaN or 1.5.

    Invalid logprobs are no error: the reply itself is usable, and paid for.
    """
    tokens = as_list(content)
    return _after_reasoning(tokens) if tokens and all(map(_is_readable, tokens)) else ()


def _after_reasoning(tokens: Sequence[Token]) -> Sequence[Token]:
    texts = list(map(token_bytes, tokens))
    reply = b"".join(texts).decode(errors="surrogateescape")
    if not (start := answer_start(reply)):
        return tokens
    return tokens_in(tokens, texts, len(reply[:start].encode(errors="surrogateescape")), sum(map(len, texts)))


def _is_readable(token: Any) -> bool:
    options: Any = as_object(token).get("top_logprobs") or []
    return _has_logprob(token) and isinstance(options, list) and all(map(_has_logprob, as_list(options)))


def _has_logprob(token: Any) -> bool:
    logprob: Any = as_object(token).get("logprob")
    return isinstance(logprob, float | int) and (logprob == -math.inf or LOWEST <= logprob <= ROUNDING)


def tokens_in(tokens: Sequence[Token], texts: Sequence[bytes], start: int, end: int) -> list[Token]:
    """The tokens that overlap a span of the reply."""
    ends = itertools.accumulate(map(len, texts))
    rows = zip(tokens, texts, ends, strict=True)
    return [token for token, text, token_end in rows if token_end > start and token_end - len(text) < end]


def token_bytes(token: Token) -> bytes:
    values = token.get("bytes")
    if values and isinstance(values, list):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            return bytes(cast("list[int]", values))
    return as_text(token.get("token")).encode(errors="replace")
