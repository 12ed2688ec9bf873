"""Redaction of everything that is printed or stored: secrets are replaced by `***`.

**By value.** `register` adds a secret of this process. `redacted` replaces it everywhere in a text: verbatim, and
escaped for JSON, Python, URLs or HTML, also nested. Secrets that look like ordinary text are ignored: a secret must
have 6 or more characters, at least one letter, and be neither a number nor a single word of fewer than 12 letters. So a
password such as `postgres` or a key such as `EMPTY` removes no words from a text, and numbers are never touched.

**In JSON.** In a JSON object or array, only strings are replaced, and keys only if they have characters other than `a`
to `z` and `_`. So no secret, whatever its characters, breaks the JSON or renames a field.

**By position.** `masked` also replaces values in the position of a secret, however short they are, such as the password
of a URL or `api_key=…`, and a key that is a word where an error quotes it: `API key provided: changeme`. It is for text
that quotes settings: URLs, command lines and error messages. Judged text is never masked. `is_credential` says which
names have secret values.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, AnyStr, Generic, NamedTuple

from evalstone._core.guards import is_list, is_mapping

MARK = "***"
REPEATED_SECRETS = "redacted secrets"
"""The warning of a run if an endpoint returned a secret."""
_SHORTEST = 6
_LONGEST_WORD = 11
_SHORTEST_WORD = 4
_BEFORE_WORD = (
    r"""((?i:\b(?:bearer|basic)\s{1,8}|\b(?:key|token|password)\b(?:\s\w{1,20}){0,2}\s{0,8}[:=]\s{0,8}["'`]?))"""
)
"""What stands before a key that an error quotes: `Bearer KEY`, `API key provided: KEY`."""

_CREDENTIAL = re.compile(
    r"authori[sz]ation|authenticat|credential|cookie|passw|passphrase|passcode|secret|signature|jwt|bearer"
    r"|hmac|csrf|(?:key|auth|token|pwd|sig|creds?|sess(?:ion)?[-_]?id)$|api[-_]?keys?(?:[-_]?\d+)?$"
    r"|(?:^|[-_.]|db|user)(?:pass|pw)$|(?:^|[-_.])(?:pat|otp)$",
    re.IGNORECASE,
)
_NO_CREDENTIAL = re.compile(
    r"(?:cache|don|foreign|group|hash|hot|idempotency|index|mon|order|partition|primary|public|routing|row|shard|sort"
    r"|tur|virtual)[-_]?key$|(?:bos|eos|mask|max|min|next|pad|page|sep|start|stop|unk)[-_]?token$",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]+")
"""Characters that no encoding escapes."""
_PLAIN_CODE = r"u00(2[de]|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f|7e)"
_NEEDLESS = re.compile(rf"\\{_PLAIN_CODE}", re.IGNORECASE)
"""The escape of a plain character in JSON. Few libraries write any, so a search for one ends most of the work."""
_NEEDLESS_BYTES = re.compile(_NEEDLESS.pattern.encode(), re.IGNORECASE)
_ANY_ESCAPE = re.compile(rf"\\(?:{_PLAIN_CODE}|.)", re.IGNORECASE | re.DOTALL)
_ANY_ESCAPE_BYTES = re.compile(_ANY_ESCAPE.pattern.encode(), re.IGNORECASE | re.DOTALL)
_JSON_TEXT = re.compile(r'("(?:[^"\\]++|\\.)*")(\s*+:)?')
_FIELD = re.compile(r'"[a-z_]+"')


def _percent(octet: int) -> str:
    return rf"%(?:25){{0,8}}(?i:{octet:02x})"


_BACKSLASH = rf"(?:\\|{_percent(0x5C)})"
_ESCAPED = f"{_BACKSLASH}{{0,99}}"
_NOT_ESCAPED = r"(?<!\\)(?<!5[cC])"
_LETTERS = {"\n": "n", "\r": "r", "\t": "t"}
_ENTITIES = {'"': "quot", "'": "apos", "&": "amp", "<": "lt", ">": "gt"}
_REFERENCE = re.compile(r"\$(?:\{\w+\}|[A-Za-z_]\w*)")
_SCHEME = re.compile(r"(?:bearer|basic|token|negotiate)\s+", re.IGNORECASE)
# It needs a long run of letters and digits; those in model names, such as meta-llama-3.1-8b-instruct, are shorter.
_RANDOM = re.compile(r"(?=[\w.~+=-]{20,}$)(?:.*[^A-Za-z0-9])?(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{16,}.*")

_VALUE = re.compile(r"""\s{0,8}((?:bearer|basic|token)\s+)?("[^"]*"?|'[^']*'?|[^\s,;&)\]}'"]+)""", re.IGNORECASE)
_URL_VALUE = re.compile(r"""()([^\s&#)}\]'"]+)""")
# In prose, a colon is followed by ordinary words: "authorization: the token has expired".
_NAMED = re.compile(
    r"""(?<![\w.-])(-{0,2}(?=[^\d\W])[\w.-]{1,100}?)"""
    r"""(["']?\s{0,8}=|["']\s{0,8}:|:(?=\s{0,8}(?:["']|\S{0,200}\d|bearer|basic|\S{20})))""",
    re.IGNORECASE,
)
"""A name with the separator of its value. Repetitions are bounded here and below. Otherwise, a hostile text could make
the search quadratic in its length."""
_BEFORE_COLON = re.compile(
    r"[-_]|^(?:authorization|cookie|passw(?:or)?d|passphrase|(?:api|access|auth|private|secret|subscription)key)$",
    re.IGNORECASE,
)
_PLACES: tuple[tuple[re.Pattern[str], str], ...] = (
    # Path normalization turns two slashes into one.
    (re.compile(r"""(:/{1,3}[^\s/:?@'"]{0,256}):[^\s"<>()]{1,512}@"""), rf"\1:{MARK}@"),
    (re.compile(r"""(?<=http://|ttps://)[^\s/:?#@'"]{1,512}@"""), f"{MARK}@"),
    (re.compile(r"""(\bbearer\s{1,8})(?=[^\s"']{0,512}\d)[^\s"',;)]{6,}""", re.IGNORECASE), rf"\1{MARK}"),
)
_LOGIN_OPTIONS = ("-u", "--user", "--proxy-user", "-U")
_LOGIN = re.compile(r"(?:-[uU]=?|--user=|--proxy-user=)[^:]*:(?![a-z]*:?//)(.+)", re.DOTALL)
_ORDINARY = ("key", "signature")
"""Names of credentials that are also names of parameters in code: `sorted(…, key=len)`."""
_DEEPEST_COMMAND = 4
_URL_PASSWORD = re.compile(r"(?<=://)([^:/?@]*):(.*)@", re.DOTALL)
_PATH_PART = re.compile(r"(?<=[^/]/)[^/?#\s]{20,512}(?=[/?#]|$)")
_URL_OPTION = re.compile(r"[?&]([^=&#]+)=([^&#]*)")


class _Secret(NamedTuple, Generic[AnyStr]):
    """A secret, for search in text or in bytes."""

    length: int
    part: AnyStr
    """A part that no encoding changes. Searching for it first is many times faster than searching for the pattern."""
    pattern: re.Pattern[AnyStr]


class Redactor:
    """A set of secrets, and their redaction."""

    def __init__(self) -> None:
        self._known: frozenset[str] = frozenset()
        self._ordinary: re.Pattern[str] | None = None
        """Finds the secrets that look like ordinary text, in the position of a secret."""
        self._texts: tuple[_Secret[str], ...] = ()
        self._bytes: tuple[_Secret[bytes], ...] = ()
        self._lock = threading.Lock()

    def register(self, *secrets: str) -> None:
        """Add secrets. Those that look like ordinary text are ignored, and so are names of variables."""
        secrets = tuple(secret for secret in secrets if not is_reference(secret))
        if self._known.issuperset(secrets):
            return
        with self._lock:
            texts, octets = [*self._texts], [*self._bytes]
            for secret in filter(is_distinct, {*secrets} - self._known):
                part, pattern = max(_PLAIN.findall(secret), key=len, default=""), _pattern(secret)
                texts.append(_Secret(len(secret), part, re.compile(pattern)))
                octets.append(_Secret(len(secret), part.encode(), re.compile(_octets(pattern))))
            # The longest first, because one secret may be part of another.
            self._texts = tuple(sorted(texts, key=lambda secret: -secret.length))
            self._bytes = tuple(sorted(octets, key=lambda secret: -secret.length))
            self._known = self._known.union(secrets)
            if ordinary := [word for word in self._known if len(word) >= _SHORTEST_WORD and not is_distinct(word)]:
                words = "|".join(map(re.escape, sorted(ordinary, key=len, reverse=True)))
                self._ordinary = re.compile(rf"{_BEFORE_WORD}(?<!\w)(?:{words})(?!\w)")

    def masked(self, text: str) -> str:
        """A text with every secret replaced; those that look like ordinary text only where an error quotes a key."""
        text = self.redacted(text)
        return text if self._ordinary is None else self._ordinary.sub(rf"\1{MARK}", text)

    def redacted(self, text: AnyStr) -> AnyStr:
        """A text with every secret replaced."""
        plain = _without_needless_escapes(text)
        if plain != text and (clean := self._redacted(plain)) != plain:
            return clean
        return self._redacted(text)

    def _redacted(self, text: AnyStr) -> AnyStr:
        if isinstance(text, bytes):
            clean = self._replaced(text, self._bytes, MARK.encode())
            if clean == text:
                return text
            in_json = self._in_json(text.decode("utf-8", "surrogateescape"))
            return clean if in_json is None else in_json.encode("utf-8", "surrogateescape")
        clean = self._replaced(text, self._texts, MARK)
        if clean == text:
            return text
        in_json = self._in_json(text)
        return clean if in_json is None else in_json

    @staticmethod
    def _replaced(text: AnyStr, secrets: Iterable[_Secret[AnyStr]], mark: AnyStr) -> AnyStr:
        for _, part, pattern in secrets:
            if part in text:
                text = pattern.sub(mark, text)
        return text

    def _in_json(self, text: str) -> str | None:
        """A JSON object or array with every secret in its strings replaced, including strings that are themselves JSON;
        None if the text is neither an object nor an array."""
        if not text.lstrip().startswith(("{", "[")):
            return None
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return None

        def clean(match: re.Match[str]) -> str:
            token, colon = match[1], match[2] or ""
            if (colon and _FIELD.fullmatch(token)) or self._replaced(token, self._texts, MARK) == token:
                return match[0]
            inner = json.loads(token)
            outer = self.redacted(inner)
            return match[0] if outer == inner else json.dumps(outer) + colon

        return _JSON_TEXT.sub(clean, text)


_PROCESS = Redactor()
register = _PROCESS.register
redacted = _PROCESS.redacted


def masked(value: Any) -> Any:
    """A text, or the texts in a list or mapping, with secrets replaced by value and by position.

    In a mapping, the position is a key such as `api_key`.
    """
    if isinstance(value, str):
        text = _PROCESS.masked(value)
        for pattern, replacement in _PLACES:
            text = pattern.sub(replacement, text)
        parts: list[str] = []
        end = 0
        for start, stop in _settings(text):
            parts += text[end:start], MARK
            end = stop
        return "".join((*parts, text[end:])) if parts else text
    if is_mapping(value):
        items = value.items()
        return {name: MARK if text and is_credential(str(name)) else masked(text) for name, text in items}
    if is_list(value):
        return [masked(item) for item in value]
    return value


def _settings(text: str) -> Iterator[tuple[int, int]]:
    """Where the values of settings with the name of a credential begin and end: `api_key=…`, `X-Token: …`, `?sig=…`."""
    end = 0
    for match in _NAMED.finditer(text) if "=" in text or ":" in text else ():
        name, separator = match[1], match[2]
        if match.start() < end:
            continue
        in_url = text[match.start() - 1 : match.start()] in tuple("?&#")
        if in_url:
            secret = _is_url_credential(name)
        elif separator.endswith("="):
            secret = is_credential(name) and (name.lower() not in _ORDINARY or _is_random(text, match.end()))
        else:
            secret = is_credential(name) and (separator != ":" or _BEFORE_COLON.search(name) is not None)
        if secret and (value := (_URL_VALUE if in_url else _VALUE).match(text, match.end())):
            end = value.end()
            yield (value.start(1) if value[1] else value.start(2)), end


def _is_random(text: str, start: int) -> bool:
    value = _VALUE.match(text, start)
    return value is not None and _RANDOM.fullmatch(value[2].strip("\"'")) is not None


def is_reference(text: str) -> bool:
    """Whether a text is an environment variable alone, `$NAME` or `${NAME}`, which says nothing of its value."""
    return _REFERENCE.fullmatch(text) is not None


def command_secrets(words: Sequence[str], *, depth: int = 0) -> Iterator[str]:
    """The secrets in a command: values of options, variables, headers and URL parameters with the name of a credential,
    and the password of `-u USER:PASSWORD`; also within quoted commands."""
    import shlex  # noqa: PLC0415 - rarely needed

    for before, word in itertools.pairwise(("", *words)):
        is_named = "=" not in before and is_credential(before.rstrip(":"))
        is_random = _RANDOM.fullmatch(word) is not None
        is_value = is_named and before.startswith("-") and not word.startswith("-")
        if is_value or (is_random and (is_named or before == "-p")):
            yield word
        elif word.startswith("-p") and _RANDOM.fullmatch(word[2:]):
            yield from (word, word[2:])
        login = _LOGIN.fullmatch(word if before not in _LOGIN_OPTIONS else f"{before}={word}")
        if login and not login[1].isdecimal():
            yield login[1]
        header, colon, text = word.partition(":")
        if colon and (text := text.strip()) and is_credential(header) and re.fullmatch(r"[\w-]+", header):
            yield text
            yield _SCHEME.sub("", text, count=1)
        for start, end in _settings(word):
            yield _SCHEME.sub("", word[start:end].strip("\"'"), count=1)
        if depth < _DEEPEST_COMMAND and any(map(str.isspace, word)):
            with contextlib.suppress(ValueError):  # not a command
                yield from command_secrets(shlex.split(word), depth=depth + 1)


def without(text: str, secrets: Iterable[str]) -> str:
    """A text with whole words and phrases replaced by `***`, however short they are."""
    for secret in sorted({*secrets} - {"", MARK}, key=len, reverse=True):
        text = re.sub(rf"(?<![\w*]){re.escape(secret)}(?!\w)", MARK, text)
    return text


def masked_url(url: str) -> str:
    """A URL with its password masked, whatever characters it has; of an HTTP URL, also parts of the path that look
    random, as those of webhooks do."""
    url = _URL_PASSWORD.sub(rf"\1:{MARK}@", url)
    if url.startswith("http"):
        url = _PATH_PART.sub(lambda part: MARK if _RANDOM.fullmatch(part[0]) else part[0], url)
    return masked(url)


def is_credential(name: str) -> bool:
    """Whether a header, setting or parameter with this name has a secret value."""
    return _CREDENTIAL.search(name) is not None and _NO_CREDENTIAL.search(name) is None


def _is_url_credential(name: str) -> bool:
    return name == "code" or is_credential(name)


def query_secrets(url: str) -> list[str]:
    """The values of the parameters of a URL with the name of a credential, as they are written."""
    return [text for name, text in _URL_OPTION.findall(url) if _is_url_credential(name)]


def header_secrets(headers: Mapping[str, str]) -> Iterator[str]:
    """The secrets in HTTP headers: values of credential headers, and values that look random."""
    for name, text in headers.items():
        if is_credential(name) or _RANDOM.fullmatch(text):
            yield text
            if scheme := _SCHEME.match(text):
                yield text[scheme.end() :]


def register_url(url: str) -> None:
    """Register the secrets in a URL: the password, or an HTTP user name without one, secret parameters, and parts of an
    HTTP path that look random."""
    import base64  # noqa: PLC0415 - rarely needed
    from urllib.parse import unquote  # noqa: PLC0415

    found = query_secrets(url)
    if match := _URL_PASSWORD.search(url):
        found += [match[2], match[2].partition("@")[0]]
        pair = f"{unquote(match[1])}:{unquote(match[2])}"
        found.append(base64.b64encode(pair.encode("utf-8", "replace")).decode())
    elif match := re.match(r"https?://([^/?#@]+)@", url):
        found.append(match[1])
    if url.startswith("http"):
        found += filter(_RANDOM.fullmatch, _PATH_PART.findall(url.partition("?")[0]))
    register(*found, *map(unquote, found))


def register_environment(*names: str) -> None:
    """Register the values of environment variables."""
    register(*filter(None, map(os.environ.get, names)))


def register_credentials() -> None:
    """Register the values of all environment variables with the name of a credential, and the secrets in URLs. The path
    of a file, such as `PWD`, is no secret."""
    for name, value in os.environ.items():
        if is_credential(name) and not os.path.exists(value):  # noqa: PTH110 - of a long text, Path raises an error
            register(value)
        if "://" in value:
            register_url(value)


def register_settings(value: Any) -> None:
    """Register the values in the position of a secret, in settings as text (even malformed) or as a table."""
    if isinstance(value, str):
        values = (value[start:end].strip("\"'") for start, end in _settings(value))
        register(*(_SCHEME.sub("", text, count=1).strip("\"'") for text in values))
        for url in re.findall(r"[a-z]+://[^\s,]+", value) if "://" in value else ():
            register_url(url)
    elif is_mapping(value):
        for name, inner in value.items():
            if isinstance(inner, str) and is_credential(str(name)):
                register(inner)
            else:
                register_settings(inner)
    elif is_list(value):
        for item in value:
            register_settings(item)


def _without_needless_escapes(text: AnyStr) -> AnyStr:
    """A text with plain characters in place of their escapes: of JSON, the same JSON."""
    if isinstance(text, bytes):
        if _NEEDLESS_BYTES.search(text) is not None:
            return _ANY_ESCAPE_BYTES.sub(_unescaped_octets, text)
    elif _NEEDLESS.search(text) is not None:
        return _ANY_ESCAPE.sub(_unescaped, text)
    return text


def _unescaped(match: re.Match[str]) -> str:
    return match[0] if match[1] is None else chr(int(match[1], 16))


def _unescaped_octets(match: re.Match[bytes]) -> bytes:
    return match[0] if match[1] is None else bytes([int(match[1], 16)])


def _pattern(secret: str) -> str:
    """A pattern that matches a secret in all its encodings."""
    first, *parts = re.findall(r"[A-Za-z0-9_.~-]+|\\+|.", secret, re.DOTALL)
    return _form(first, first=True) + "".join(map(_form, parts))


def _octets(pattern: str) -> bytes:
    try:
        return pattern.encode("utf-8", "surrogateescape")  # from an environment variable that isn't UTF-8
    except UnicodeEncodeError:
        return pattern.encode("utf-8", "surrogatepass")


def _form(part: str, *, first: bool = False) -> str:
    return re.escape(part) if _PLAIN.match(part) else f"(?:{'|'.join(_escapes(part, first=first))})"


def _escapes(part: str, *, first: bool) -> Iterator[str]:
    """Patterns for a character, or a run of backslashes, escaped for JSON, Python, URLs or HTML, also nested.

    Repetitions are bounded, and a repetition at the start of a secret is tried only where it begins, so that no text
    can make the search slow.
    """
    if part[0] == "\\":
        yield rf"{_NOT_ESCAPED if first else ''}{_BACKSLASH}{{1,99}}"
        if first:
            yield _BACKSLASH
        return
    octets = part.encode("utf-8", "replace")
    wide = part.encode("utf-16-be", "replace").hex()
    escaped = [re.escape(part), "".join(map(_percent, octets)), *_LETTERS.get(part, "")]
    escaped.append("(?i:" + _ESCAPED.join(f"u{wide[at : at + 4]}" for at in range(0, len(wide), 4)) + ")")
    escaped.append("(?i:" + _ESCAPED.join(f"x{octet:02x}" for octet in octets) + ")")
    entity = f"{_ENTITIES.get(part, '#')}|(?:#|%23)0{{0,4}}{ord(part)}|(?:#|%23)x0{{0,4}}{ord(part):x}"
    escaped.append(rf"(?i:(?:&|{_percent(0x26)})(?:amp;){{0,8}}(?:{entity})(?:;|{_percent(0x3B)}))")
    before = f"(?:{_NOT_ESCAPED}{_ESCAPED})?" if first else _ESCAPED
    yield f"{before}(?:{'|'.join(escaped)})"
    if part == " ":
        yield r"\+"


def is_distinct(text: str) -> bool:
    """Whether a secret is distinct enough from ordinary text to search for it."""
    if len(text) < _SHORTEST or not any(map(str.isalpha, text)):
        return False
    if text.isalpha():
        return len(text) > _LONGEST_WORD or text not in (text.lower(), text.upper(), text.capitalize())
    try:
        float(text)
    except ValueError:
        return True
    return False
