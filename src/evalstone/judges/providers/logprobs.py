"""Token probabilities of a reply, as OpenAI-compatible endpoints give them: what a question wants labels, and how sure
a model was of its verdicts.

    P(verdict)   = product of the probabilities of the tokens that spell it
    confidence   = least P(verdict) over the reply's verdicts            range [0, 1], higher is surer

So the confidence in a verified answer is that in its least certain claim, and in a plain yes or no that in the word (as
with MiniCheck, Tang et al. 2024). A reply without verdicts, such as a list of claims, has the geometric mean over all
of its tokens.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from evalstone.judges.providers.replies import as_list, as_object, as_text
from evalstone.questions.base import LabelProbabilities, Question, unlisted
from evalstone.questions.schemas import nodes

Token: TypeAlias = Mapping[str, Any]
LOWEST, ROUNDING = -1e300, 1e-3
"""Between which numbers the logarithm of a probability lies, unless it is that of 0."""
MOST = 1.01
"""What probabilities add up to, rounded: those of some models have three digits."""


def readable_tokens(content: Any) -> Sequence[Token]:
    """The tokens of a response; none if one of them has no probability that can be read, such as NaN or 1.5.

    A reply is good, and paid for, whatever an endpoint sends beside it.
    """
    tokens = as_list(content)
    return tokens if all(map(_is_readable, tokens)) else ()


def _is_readable(token: Any) -> bool:
    options: Any = as_object(token).get("top_logprobs") or []
    return _has_logprob(token) and isinstance(options, list) and all(map(_has_logprob, as_list(options)))


def _has_logprob(token: Any) -> bool:
    logprob: Any = as_object(token).get("logprob")
    return isinstance(logprob, float | int) and (logprob == -math.inf or LOWEST <= logprob <= ROUNDING)


def geometric_mean(tokens: Sequence[Token]) -> float | None:
    """The geometric mean of the tokens' probabilities; None without tokens."""
    if not tokens:
        return None
    return math.exp(min(0.0, sum(float(token["logprob"]) for token in tokens) / len(tokens)))


def confidence_of(question: Question[Any], tokens: Sequence[Token]) -> float | None:
    """How sure the model was of its reply to a question, as defined above; None without tokens."""
    if not tokens:
        return None
    spelt = [_bytes(token) for token in tokens]
    places = verdict_places(b"".join(spelt), question.json_schema)
    logs = [sum(float(token["logprob"]) for token in _tokens_at(tokens, spelt, *place)) for place in places]
    return math.exp(min(0.0, *logs)) if logs else geometric_mean(tokens)


def verdict_places(reply: bytes, schema: Mapping[str, Any] | None) -> list[tuple[int, int]]:
    """Where the verdicts stand in a reply: the words out of a list, truth values and whole numbers of its schema's
    members. Without a schema, the first word of the text."""
    if schema is None:
        first = re.match(rb"\W*(\w+)", reply)
        return [first.span(1)] if first else []
    members = dict(_deciding(schema))
    if not members:
        return []
    names = b"|".join(re.escape(json.dumps(name).encode()) for name in members)
    words = {json.dumps(word, ensure_ascii=False)[1:-1] for known in members.values() for word in known}
    quoted = b"|".join(re.escape(word.encode()) for word in sorted(words)) or rb"(?!)"
    bare = rb"-?\d+(?:\.\d+)?|true|false"
    # The quotes around a word are no part of it: their tokens are shared with what stands beside them.
    # They are matched as replies are read: in any case, with white space around them or a period after them.
    value = rb'(?:"\s*(?P<word>(?i:' + quoted + rb'))[\s.]*"|(?P<bare>' + bare + rb"))"
    found = re.finditer(rb"(?<!\\)(?:" + names + rb")\s*:\s*" + value, reply)
    return [one.span("word" if one["word"] is not None else "bare") for one in found]


def _deciding(schema: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The members of a schema that are decided, each with its words; lists are looked into as well."""
    for node in nodes(schema, lists=True):
        for name, one in node.get("properties", {}).items():
            if "enum" in one:
                yield name, [word for word in one["enum"] if isinstance(word, str)]
            elif one.get("type") in ("boolean", "integer", "number"):
                yield name, []


def _tokens_at(tokens: Sequence[Token], spelt: Sequence[bytes], start: int, end: int) -> list[Token]:
    """The tokens that have a part in a place of the reply."""
    ends = itertools.accumulate(map(len, spelt))
    spans = zip(tokens, spelt, ends, strict=True)
    return [token for token, text, after in spans if after > start and after - len(text) < end]


def alternatives_of(tokens: Sequence[Token], labels: LabelProbabilities) -> Mapping[str, float] | None:
    """The probability of each wanted word at the place where the reply's member has its value.

    A token counts for a word only when it is the whole word, so that the first half of "10" is never taken for a 1;
    case, and quotes or brackets beside the word, don't matter. None when that cannot be told: the value is spelt
    over several tokens, no probabilities came, they add up to more than 1, or the tokenizer may split the words
    (some word begins another, and no token seen is longer than one character).
    """
    found = _label(tokens, labels)
    return _probabilities(found[1], labels.labels) if found else None


def label_confidence(
    tokens: Sequence[Token], labels: LabelProbabilities, alternatives: Mapping[str, float]
) -> float | None:
    """The probability of the reply's word among the wanted words; None where the reply has none.

        P(word | words) = P(word) / (sum of P over the listed words + P of those that are not listed)

    Words that are not listed have what the listed ones leave, and no more than the reply's word.
    """
    found = _label(tokens, labels)
    if not found or not (own := alternatives.get(found[0], 0.0)):
        return None
    total = math.fsum(alternatives.values())
    return min(1.0, own / (total + unlisted(alternatives, labels.labels, own)))


def _label(tokens: Sequence[Token], labels: LabelProbabilities) -> tuple[str, Token] | None:
    """The word that the reply's member has as its value, and the token that spells it."""
    spelt = [_bytes(token) for token in tokens]
    place = _place(b"".join(spelt), labels)
    spelling = _tokens_at(tokens, spelt, *place) if place else []
    if len(spelling) != 1 or (word := _word(_bytes(spelling[0]), labels.labels)) is None:
        return None
    return word, spelling[0]


def _place(reply: bytes, labels: LabelProbabilities) -> tuple[int, int] | None:
    """Where the value of the member stands: its last mention, for the object that is read comes after any thought.
    In a reply without an object, the first word."""
    if not labels.key or b"{" not in reply:
        first = re.match(rb"\W*(\w+)", reply)
        return first.span(1) if first else None
    key = re.escape(json.dumps(labels.key).encode())
    words = b"|".join(re.escape(word.encode()) for word in sorted(labels.labels, key=len, reverse=True))
    found = list(re.finditer(rb"(?<!\\)" + key + rb'\s*:\s*"?\s*((?i:' + words + rb"))(?![\w.])", reply))
    return found[-1].span(1) if found else None


def _probabilities(token: Token, words: Sequence[str]) -> Mapping[str, float] | None:
    options: Sequence[Token] = token.get("top_logprobs") or ()
    found: dict[str, float] = {}
    longest = 1
    for option in options:
        if (word := _word(_bytes(option), words)) is not None:
            found[word] = found.get(word, 0.0) + math.exp(min(0.0, float(option["logprob"])))
            longest = max(longest, len(word))
    own = _word(_bytes(token), words)
    if options and own is not None and own not in found:  # one that was drawn though others are likelier
        found[own] = math.exp(min(0.0, float(token["logprob"])))
        longest = max(longest, len(own))
    begins_another = any(one != other and other.startswith(one) for one in words for other in words)
    # More than a certain word has: whatever the endpoint sent, probabilities it is not.
    if not found or (begins_another and longest == 1) or math.fsum(found.values()) > MOST:
        return None
    return found


def _word(text: bytes, words: Sequence[str]) -> str | None:
    """The wanted word that a token spells; None for another token."""
    bare = text.decode(errors="replace").strip(_BESIDE).casefold()
    return next((word for word in words if word.casefold() == bare), None)


_BESIDE = " \t\r\n\"'`*{}[](),:\u2581\u0120\u010a"
"""What tokenizers join to a word; among it the marks that some servers leave in place of a space or a line end."""


def _bytes(token: Token) -> bytes:
    given = token.get("bytes")
    if given and isinstance(given, list):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            return bytes(cast("list[int]", given))
    return as_text(token.get("token")).encode(errors="replace")
