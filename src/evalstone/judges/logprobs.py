"""Token probabilities (logprobs) of OpenAI-compatible endpoints: label probabilities, and that of a reply.

    P(verdict)   = product of the probabilities of the verdict's tokens
    probability  = lowest P(verdict) over the reply's verdicts            range [0, 1]

The probability of several verdicts is that of the least certain one; of a plain yes or no, that of the word (as in
MiniCheck, Tang et al. 2024). For a reply without verdicts, such as a list of claims, it is the geometric mean over all
tokens.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from evalstone.models.tokens import Token, token_bytes, tokens_in
from evalstone.questions.base import Question
from evalstone.questions.probabilities import LabelProbabilities, unlisted
from evalstone.questions.schemas import nodes

MAX_TOTAL = 1.01
"""The maximum sum of probabilities. Some models round them to three digits."""


def geometric_mean(tokens: Sequence[Token]) -> float | None:
    """The geometric mean of the tokens' probabilities; None without tokens."""
    if not tokens:
        return None
    return math.exp(min(0.0, sum(float(token["logprob"]) for token in tokens) / len(tokens)))


def probability_of(question: Question[Any], tokens: Sequence[Token]) -> float | None:
    """The probability of a reply, as defined above; None without tokens."""
    if not tokens:
        return None
    texts = list(map(token_bytes, tokens))
    spans = _verdict_spans(b"".join(texts), question.json_schema)
    logs = [sum(float(token["logprob"]) for token in tokens_in(tokens, texts, *span)) for span in spans]
    return math.exp(min(0.0, *logs)) if logs else geometric_mean(tokens)


def _verdict_spans(reply: bytes, schema: Mapping[str, Any] | None) -> list[tuple[int, int]]:
    """The spans of the verdicts in a reply: enum words, booleans and numbers in the schema's properties. Without a
    schema, the span of the first word."""
    if schema is None:
        first = re.match(rb"\W*(\w+)", reply)
        return [first.span(1)] if first else []
    members = dict(_deciding(schema))
    if not members:
        return []
    words = {json.dumps(word, ensure_ascii=False)[1:-1] for known in members.values() for word in known}
    quoted = b"|".join(re.escape(word.encode()) for word in sorted(words)) or rb"(?!)"
    bare = rb"-?\d+(?:\.\d+)?|[Tt]rue|[Ff]alse"
    # A span excludes the quotes, because tokenizers merge them with neighboring characters.
    # Words match as in the parser: in any case, and with white space around them or a period after them.

    def value(quote: bytes) -> bytes:
        return rb"(?:%s\s*(?P<word>(?i:" % quote + quoted + rb"))[\s.]*%s|(?P<bare>" % quote + bare + rb"))"

    matches = _members(reply, members, value)
    return [match.span("word" if match["word"] is not None else "bare") for match in matches]


def _members(reply: bytes, keys: Iterable[str], value: Callable[[bytes], bytes]) -> list[re.Match[bytes]]:
    """The members of a reply with these keys, in the quotes of JSON. If there are none, those in the quotes of Python:
    texts in JSON may quote them."""
    names = b"|".join(re.escape(json.dumps(key)[1:-1].encode()) for key in keys)
    for quote in (b'"', b"'"):
        pattern = rb"(?<!\\)%s(?:" % quote + names + rb")%s\s*:\s*" % quote + value(quote)
        if matches := list(re.finditer(pattern, reply)):
            return matches
    return []


def _deciding(schema: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The properties of a schema that are verdicts, each with its enum words. Includes those in lists."""
    for node in nodes(schema, lists=True):
        for name, value in node.get("properties", {}).items():
            if "enum" in value:
                yield name, [word for word in value["enum"] if isinstance(word, str)]
            elif value.get("type") in ("boolean", "integer", "number"):
                yield name, []


def alternatives_of(tokens: Sequence[Token], labels: LabelProbabilities) -> Mapping[str, float] | None:
    """The probability of each label, from the alternatives to the token that spells the reply's label.

    A token counts for a label only if it is the whole label, so the "1" of "10" doesn't count as 1. Case, quotes and
    brackets are ignored. None if the probabilities can't be determined: the label has several tokens, the endpoint
    returned no probabilities, they add up to more than 1, or the tokenizer may split labels (one label starts with
    another, and all matching tokens are single characters).
    """
    match = _label(tokens, labels)
    return _probabilities(match[1], labels.labels) if match else None


def label_probability(
    tokens: Sequence[Token], labels: LabelProbabilities, alternatives: Mapping[str, float]
) -> float | None:
    """The probability of the reply's label, relative to all labels; None if the reply has no label.

        P(label | labels) = P(label) / (sum of P over the returned labels + P of the missing labels)

    Missing labels share the rest of the probability, but get no more than the reply's label.
    """
    match = _label(tokens, labels)
    if not match or not (own := alternatives.get(match[0], 0.0)):
        return None
    total = math.fsum(alternatives.values())
    return min(1.0, own / (total + unlisted(alternatives, labels.labels, own)))


def _label(tokens: Sequence[Token], labels: LabelProbabilities) -> tuple[str, Token] | None:
    """The reply's label, and its token; None if it has several tokens."""
    texts = list(map(token_bytes, tokens))
    span = _label_span(b"".join(texts), labels)
    matching = tokens_in(tokens, texts, *span) if span else []
    if len(matching) != 1 or (label := _label_of(token_bytes(matching[0]), labels.labels)) is None:
        return None
    return label, matching[0]


def _label_span(reply: bytes, labels: LabelProbabilities) -> tuple[int, int] | None:
    """The span of the label in the reply: the last value of the key. In a reply without a JSON object, the first
    word."""
    if not labels.key or b"{" not in reply:
        first = re.match(rb"\W*(\w+)", reply)
        return first.span(1) if first else None
    words = b"|".join(re.escape(word.encode()) for word in sorted(labels.labels, key=len, reverse=True))
    value = rb"?\s*((?i:" + words + rb"))(?![\w.])"
    matches = _members(reply, [labels.key], lambda quote: quote + value)
    return matches[-1].span(1) if matches else None


def _probabilities(token: Token, labels: Sequence[str]) -> Mapping[str, float] | None:
    options: Sequence[Token] = token.get("top_logprobs") or ()
    probabilities: dict[str, float] = {}
    longest = 1
    for option in options:
        if (label := _label_of(token_bytes(option), labels)) is not None:
            probabilities[label] = probabilities.get(label, 0.0) + math.exp(min(0.0, float(option["logprob"])))
            longest = max(longest, len(label))
    own = _label_of(token_bytes(token), labels)
    if options and own is not None and own not in probabilities:  # sampled, but not among the most likely tokens
        probabilities[own] = math.exp(min(0.0, float(token["logprob"])))
        longest = max(longest, len(own))
    is_prefix = any(label != other and other.startswith(label) for label in labels for other in labels)
    # A sum above 1 means that the endpoint didn't send probabilities.
    if not probabilities or (is_prefix and longest == 1) or math.fsum(probabilities.values()) > MAX_TOTAL:
        return None
    return probabilities


def _label_of(text: bytes, labels: Sequence[str]) -> str | None:
    """The label that a token spells; None for any other token."""
    bare = text.decode(errors="replace").strip(_MERGED).casefold()
    return next((label for label in labels if label.casefold() == bare), None)


_MERGED = " \t\r\n\"'`*{}[](),:\u2581\u0120\u010a"
"""Characters that tokenizers merge with a word, including the marks that some servers use for spaces and newlines."""
