"""What endpoints say when they refuse a request, or fail: in words of their own, and in several shapes.

`refusal_in` reads an error response. From its words follow whether the provider blocked the text or wants to be paid
first, whether the prompt exceeds the context window, and which settings are refused (`forms`). A router passes on the
error of the provider behind it, and then that one counts as well.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evalstone._core.guards import is_number
from evalstone._core.parsing import MAX_REPLY, bare
from evalstone._core.text import fewest_tokens, most_words
from evalstone.errors import PromptTooLong
from evalstone.models.replies import (
    MAX_TOKENS,
    as_list,
    as_object,
    as_text,
    one_line,
    parsed_json,
    shown,
)

if TYPE_CHECKING:
    from evalstone.models.provider import ChatMessage, Completion

MOST_LEVELS = 3
"""Errors inside errors that are read: of a router, of the provider behind it, and of the model's server."""
MOST_WORDS = 10_000
"""The characters of an error that are read."""


@dataclass(frozen=True)
class Refusal:
    """What an error response says."""

    message: str
    """For people, on one line."""
    words: str
    """All that it says about the request, in lower case."""
    codes: frozenset[str] = frozenset()
    """Its codes and types, in lower case."""
    status: int | None = None
    """The HTTP status that it names."""
    generation: str | None = None
    """The reply that the endpoint refused to send, because it doesn't match the format."""


def refusal_in(content: bytes) -> Refusal:
    """What an error response says; its text if it isn't JSON with an error."""
    text = content.decode("utf-8", "replace")
    try:
        said = refusal_of(parsed_json(content))
    except ValueError:
        said = None
    if said is None:
        return Refusal(one_line(text), text[:MOST_WORDS].lower())
    return said if said.message else replace(said, message=one_line(text))


def refusal_of(data: Any) -> Refusal | None:
    """What a parsed response says; None if it has no error.

    The shapes: `{"error": {"message", "code"}}` (OpenAI), the same in a list (Gemini), `{"error": "…"}` (xAI, TGI),
    `{"object": "error", "message"}` (vLLM, Mistral), `{"detail"}` (FastAPI), `{"errors": […]}` (Cloudflare),
    `{"base_resp": {"status_code", "status_msg"}}` (MiniMax).
    """
    errors = list(itertools.islice(_errors(data), MOST_LEVELS))
    messages = [message for error in errors if (message := _message(error))]
    codes = [code for error in errors for code in _codes(error)]
    if not messages and not codes:
        return None
    message = one_line(": ".join(messages))
    code = next(filter(None, (error.get("code") for error in errors)), None)
    generations = (as_text(error["failed_generation"]) for error in errors if "failed_generation" in error)
    params = (as_text(error.get("param")) for error in errors)
    return Refusal(
        f"{message} ({shown(code)})" if message and code else message,
        "; ".join((*messages, *codes, *params))[:MOST_WORDS].lower(),
        frozenset(map(str.lower, codes)),
        next(filter(None, map(_status, errors)), None),
        next(generations, None),
    )


def _errors(data: Any) -> Iterator[Mapping[str, Any]]:
    """The errors in a response, each followed by that of the provider behind it."""
    if isinstance(data, list):
        data = next(iter(as_list(data)), None)
    response = as_object(data)
    error: Any = response.get("error")
    if as_text(error):
        yield {**response, "message": error}
    elif inner := as_object(error):
        yield inner
        yield from _errors(_json_in(as_object(inner.get("metadata")).get("raw")))
        if "error" in inner:
            yield from _errors(inner)
    elif listed := as_list(response.get("errors")):
        yield from map(as_object, listed)
    elif base := as_object(response.get("base_resp")):
        yield {"message": base.get("status_msg"), "code": base.get("status_code")}
    elif "error" not in response:
        yield response


def _json_in(raw: Any) -> Any:
    """The JSON in a text; an error with the text if it has none."""
    try:
        return parsed_json(raw.encode()) if isinstance(raw, str) else raw
    except ValueError:
        return {"error": raw}


def _message(error: Mapping[str, Any]) -> str:
    message = _first(error, "message", "msg", "detail")
    if isinstance(message, dict):
        message = _first(as_object(message), "message", "detail") or shown(as_object(message))
    if not isinstance(message, list):
        return "" if message is None else as_text(message) or shown(message)
    # FastAPI's. They may repeat the whole request as "input", which is left out.
    details = map(as_object, as_list(message))
    return "; ".join(
        f"{'.'.join(map(shown, as_list(detail.get('loc'))))}: {as_text(detail.get('msg'))}" for detail in details
    )


def _first(error: Mapping[str, Any], *names: str) -> Any:
    return next(filter(None, map(error.get, names)), None)


def _codes(error: Mapping[str, Any]) -> list[str]:
    inner = as_object(error.get("innererror"))
    codes = (error.get("code"), error.get("type"), error.get("status"), inner.get("code"))
    return [code for code in map(as_text, codes) if code]


def _status(error: Mapping[str, Any]) -> int | None:
    for code in map(error.get, ("code", "status", "statusCode", "status_code")):
        digits = str(code) if is_number(code) else as_text(code)
        if re.fullmatch("[45][0-9][0-9]", digits):
            return int(digits)
    return None


_PASSING = frozenset({408, 409, 425, 429})


def may_pass(status: int) -> bool:
    """Whether a request with this HTTP status may succeed later. 501 is about what the server never does."""
    return status in _PASSING or (status >= 500 and status != 501)


_UNPAID = re.compile(
    r"insufficient[_ ](?:quota|user_quota|balance|credits?|funds)|not enough (?:balance|credits?|funds)"
    r"|credit balance|(?:balance|credits?) (?:is|are) (?:too low|insufficient|depleted|exhausted)"
    r"|all (?:of )?(?:your |the )?available credits|requires more credits|billing_[a-z]|exceeded_current_quota"
    r"|spend(?:ing)? (?:limit|cap)|specified api usage limits|api calls / month"
    r"|budget[_ ](?:has been )?exceeded|exceeded ?budget"
    r"|arrearage|overdue[ _]?(?:balance|payment|error)|account is in good standing"
    r"|free tier of the model has been exhausted"
    r"|余额不足|额度不足|欠费"
)


def is_unpaid(status: int, refusal: Refusal, request: str = "") -> bool:
    """Whether the endpoint wants to be paid first: the account or the key has no credit left, which no other attempt
    changes. Words that the error repeats from the request don't count."""
    return status == 402 or says_itself(_UNPAID, refusal.words, request)


BLOCKED = "the provider blocked the text"
MAY_BLOCK = frozenset({400, 403, 422, 424, 446, 451})
"""Statuses with which providers block a text; 424 and 446 are those of gateways."""
_BLOCKING_CODES = frozenset(
    """
    content_filter content_policy_violation content_policy data_inspection_failed moderation
    responsibleaipolicyviolation
    """.split()  # noqa: SIM905 - one word a line would be ten lines
)
_BLOCKING = re.compile(
    r"content management policy|content filter|content polic|flagged|moderation|safety system|inappropriate content"
    r"|content exists risk|unsafe or sensitive|usage guidelines|guardrail|(?:prompt|content) (?:was )?blocked"
    r"|content ?safety|safety polic|contentpolicyviolation|for safety reasons|sensitive ?(?:content|words|information)"
    r"|new_sensitive|nsfw|敏感内容"
)
_BLOCKING_FINISHES = (
    "content_filter", "safety", "recitation", "prohibited_content", "blocklist", "spii", "guardrail", "sensitive",
)  # fmt: skip


def blocked_reason(refusal: Refusal, request: str = "") -> str:
    """Why an error says that the provider blocked the text; "" for any other error, also if it repeats such words from
    the request."""
    blocked = refusal.codes & _BLOCKING_CODES or says_itself(_BLOCKING, refusal.words, request)
    return (refusal.message or shown(", ".join(refusal.codes))) if blocked else ""


def blocked_reply(finish: Any) -> str:
    """The message for a reply that a filter stopped, for this reason."""
    return f"{BLOCKED}: a content filter stopped the reply ({shown(finish)})"


def is_blocked(finish: Any) -> bool:
    """Whether the reason why a reply ended says that a filter stopped it: "content_filter: RECITATION", "SAFETY"."""
    return as_text(finish).lower().replace("-", "_").startswith(_BLOCKING_FINISHES)


def is_cut_off(finish: Any) -> bool:
    """Whether the reason why a reply ended says that it reached a limit of tokens."""
    return as_text(finish).lower() in ("length", "model_length", "max_tokens", "model_context_window_exceeded")


_STATUS_WORDS = (
    (429, _UNPAID),
    (429, re.compile(r"rate[ _-]?limit|too many requests|quota|throttl|resource_exhausted")),
    (400, re.compile(rf"polic(?:y|ies)|{_BLOCKING.pattern}")),
    (401, re.compile(r"api[ _-]?key|authenticat|unauthori[sz]ed")),
    (404, re.compile(r"not[ _]found|does not exist")),
    (400, re.compile(r"invalid|(?:not|un)[ _]?support")),
)
"""The statuses that an error without one stands for, by its words. Any other error may pass."""
_INTERRUPTED = frozenset({"error", "abort", "insufficient_system_resource", "engine_overloaded"})
"""Reasons why a reply ended, if the server failed."""


def error_inside(data: Mapping[str, Any]) -> tuple[int, Refusal] | None:
    """The error inside a response with HTTP 200, also of its choice, with the status that its code or its words stand
    for; None if there is none.

    Routers send such errors if the provider behind them fails, also after a part of the reply. A response with neither
    a reply nor an `error` is one only if it says which: it may be of something else than a model, at a wrong address.
    """
    choice = as_object(next(iter(as_list(data.get("choices"))), None))
    found = (refusal_of(each) for each in (data, choice) if each.get("error") or each.get("object") == "error")
    if (refusal := next(filter(None, found), None)) is not None:
        return refusal.status or _status_of(refusal) or 502, refusal
    if as_text(choice.get("finish_reason")) in _INTERRUPTED:
        return 502, Refusal(f"the reply was interrupted ({choice['finish_reason']})", "")
    is_reply = choice or as_list(data.get("data")) or as_object(data.get("message"))
    if is_reply or (refusal := refusal_of(data)) is None:
        return None
    # A wrong address may be answered with the code 500 and "not found".
    status = _status_of(refusal) or refusal.status
    return None if status is None else (status, refusal)


def _status_of(refusal: Refusal) -> int | None:
    """The status that the words of an error stand for."""
    return next((status for status, pattern in _STATUS_WORDS if pattern.search(refusal.words)), None)


_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size|limit)|maximum (?:model|prompt) length|(?:prompt|state) (?:is )?too long"
    r"|input (?:is )?too long|input token count|input tokens exceed|too large for model|maximum input length"
    r"|tokens in the prompt cannot exceed|request (?:body )?too large for|exceeded model token limit"
    r"|range of input length|max_new_tokens`? must be <=|must have less than \d+ tokens"
    r"|(?:prompt|input) exceeds max(?:imum)? length|model max length exceeded"
)
_REPLY_TOO_LONG = re.compile(r"max_(?:completion_|new_)?tokens'?\"? (?:or '?max_completion_tokens'? )?is too large")
_WINDOWS = tuple(
    map(
        re.compile,
        (
            r"tokens? > ([\d,]+)",
            r"\+ [\d,]+ > ([\d,]+)",
            r"([\d,]+) maximum context",
            r"context (?:length|window|size|limit)(?! by)[^\d;]{0,30}?([\d,]+)",
            r"(?:maximum (?:model|prompt) length|tokens allowed|configured limit)\D{0,12}([\d,]+)",
            r"(?:cannot exceed|must be <=|less than|maximum input length is) ([\d,]+)",
            r"(?:token limit|max length|max size|\(tpm\): limit):? ?([\d,]+)",
            r"length should be \[\d+, (\d+)\]",
        ),
    )
)
_LLAMA_WINDOW = re.compile(r"\"n_ctx\":\s*(\d+)")
"""llama.cpp's, beside the message."""
_SMALLEST_WINDOW = 100
_ECHOED = 12
"""A match is an echo if the request has it with this many letters of context on one side."""
_LINE_ENDS = re.compile(r"\\+[nrt]")


def window_error(message: str, words: str | None = None, content: str = "", request: str = "") -> PromptTooLong | None:
    """The error for a refusal of a prompt that exceeds the context window; None for any other refusal.

    words: all that it says; None is what the message says. content: the whole response, which may state the window
    outside the words. request: the request. Parts of it that the refusal echoes are ignored, because judged texts may
    be about context windows.
    """
    words = (message if words is None else words).lower()
    letters = _letters(request) if request and _TOO_LONG.search(words) else ""
    if all(_is_echo(match, letters) for match in _TOO_LONG.finditer(words)) or _REPLY_TOO_LONG.search(words):
        return None
    matches = itertools.chain(*(pattern.finditer(words) for pattern in _WINDOWS), _LLAMA_WINDOW.finditer(content))
    digits = (match[1] for match in matches if not letters or _letters(match[0]) not in letters)
    sizes = (int(size.replace(",", "") or 0) for size in digits if len(size) < 12)
    window = next((size for size in sizes if _SMALLEST_WINDOW <= size <= MAX_TOKENS), None)
    setting = "context_window" if window is None else f"context_window={window}"
    return PromptTooLong(message, window=window).advised(f"set {setting} for this model")


CUT_BELOW = 0.75
"""The server cut a prompt if the model read less than this share of the fewest tokens that the prompt can have. The
rest is for tokenizers with tokens of several words."""
_OLLAMA_LEAVES = frozenset(2**power + more for power in range(10, 21) for more in (0, 2))
"""The tokens that Ollama leaves of a prompt: the context length, or half of it and 2. So many are no coincidence, and
any share of the fewest tokens will do."""
SMALLEST_CUT = 1000
"""Fewer tokens are no context window: the server counts something else, such as those that it had not cached."""


def cut_error(name: str, prompt: Iterable[str], read: int, **spent: Any) -> PromptTooLong | None:
    """The error for a prompt of which the model read only a part: some servers cut what exceeds their context window,
    and reply as if nothing were missing.

    name: the model's. read: the tokens that the model read, 0 if unknown. spent: usage, cost and reply, which count.
    """
    if read < SMALLEST_CUT:
        return None
    texts, share = tuple(prompt), 1 if read in _OLLAMA_LEAVES else CUT_BELOW
    if read >= share * sum(map(most_words, texts)) or read >= share * (fewest := sum(map(fewest_tokens, texts))):
        return None
    message = f"the server of {name} cut the prompt: the model read {read:,} tokens of {fewest:,} or more"
    hint = f"raise the server's context length, or set context_window={read} for this model"
    return PromptTooLong(message, window=read, **spent).advised(hint)


def says_itself(pattern: re.Pattern[str], message: str, request: str) -> bool:
    """Whether a refusal has this pattern in words of its own, rather than in those that it repeats from the request."""
    matches = list(pattern.finditer(message.lower()))
    letters = _letters(request) if matches else ""
    return not all(_is_echo(match, letters) for match in matches)


def _is_echo(match: re.Match[str], request: str) -> bool:
    """Whether the request contains a match together with its context."""
    start, end = match.span()
    own, text = len(_letters(match[0])), match.string
    contexts = map(_letters, (text[max(0, start - 2 * _ECHOED) : end], text[start : end + 2 * _ECHOED]))
    return any(len(context) >= own + _ECHOED and context in request for context in contexts)


def _letters(text: str) -> str:
    """The letters and digits of a text, without escaped line breaks as in JSON."""
    return bare(_LINE_ENDS.sub(" ", text))


def check_whole(model: str, messages: Sequence[ChatMessage], completion: Completion) -> None:
    """Raise PromptTooLong if the server cut the prompt."""
    if completion.read_tokens < SMALLEST_CUT:
        return
    spent = {"reply": completion.text[:MAX_REPLY], "usage": completion.usage, "cost": completion.cost}
    prompt = (message.content for message in messages)
    if (error := cut_error(model, prompt, completion.read_tokens, **spent)) is not None:
        raise error
