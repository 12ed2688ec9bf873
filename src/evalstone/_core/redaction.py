"""The one redaction of what is printed or stored: a secret is written as `***`.

**By value.** `register` adds a secret of this process, and `redacted` replaces it wherever a text holds it: as it is,
and as JSON, Python, URLs and HTML escape it, one within the other. Only what is no ordinary text is looked for: 6
characters or more with a letter among them, no number, and no single word of fewer than 12 letters. So a password such
as `postgres` or a key such as `EMPTY` takes no word from a text, and no number is ever touched.

**In JSON.** In a JSON object or array only texts are replaced, and names unless they consist of `a` to `z` and `_`. So
no secret, whatever characters it has, breaks the JSON or renames a field.

**By place.** `masked` also replaces what stands where a secret belongs, however short it is: the password of a URL,
`api_key=…`. It is for what quotes settings, such as URLs, command lines and the messages of errors. Judged text is
never masked.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, AnyStr, Generic, NamedTuple, cast

MARK = "***"
REPEATED_SECRETS = "redacted secrets"
"""The warning of a run that an endpoint sent a secret back."""
_SHORTEST = 6
_LONGEST_WORD = 11

_CREDENTIAL = re.compile(
    r"authori[sz]ation|authenticat|credential|cookie|passw|passphrase|passcode|secret|signature|jwt|bearer"
    r"|(?<!virtual[-_])key$|(?:auth|token|pwd|sig)$",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]+")
"""Characters that no form escapes."""
_JSON_TEXT = re.compile(r'("(?:[^"\\]++|\\.)*")(\s*+:)?')
_FIELD = re.compile(r'"[a-z_]+"')


def _percent(octet: int) -> str:
    return rf"%(?:25){{0,8}}(?i:{octet:02x})"


_BACKSLASH = rf"(?:\\|{_percent(0x5C)})"
_ESCAPED = f"{_BACKSLASH}{{0,99}}"
_NOT_ESCAPED = r"(?<!\\)(?<!5[cC])"
_LETTERS = {"\n": "n", "\r": "r", "\t": "t"}
_ENTITIES = {'"': "quot", "'": "apos", "&": "amp", "<": "lt", ">": "gt"}
_SCHEME = re.compile(r"(?:bearer|basic|token|negotiate)\s+", re.IGNORECASE)
# A run of letters and digits: the names of models, such as meta-llama-3.1-8b-instruct, have shorter ones.
_RANDOM = re.compile(r"(?=[\w.~+=-]{20,}$)(?:.*[^A-Za-z0-9])?(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{16,}.*")

_NAMES = (
    r"(?:api|access|account|auth|private|secret|subscription|functions?)[-_]?key|passw(?:or)?d|passphrase"
    r"|client[-_]?secret|(?:access|auth|refresh|security|session)[-_]?token|authorization|cookie"
)
_VALUE = r"""(?:(?:bearer|basic|token)\s+)?("[^"]*"?|'[^']*'?|[^\s,;&)\]}'"]+)"""
_WRITTEN = re.compile(rf"""(?:{_NAMES})["']?[\s=:]{{1,8}}{_VALUE}""", re.IGNORECASE)
# In prose a word follows a colon, too: "authorization: the token has expired".
_COLON = r"""(?:["']\s{0,8}:|:(?=\s{0,8}(?:["']|\S{0,200}\d|bearer|basic|\S{20})))"""
_SETTING = re.compile(rf"""((?:{_NAMES})(?:["']?\s{{0,8}}=|{_COLON})\s{{0,8}}){_VALUE}""", re.IGNORECASE)
# Without a limit on what lies between, a hostile text could make the search take the square of its length.
_PLACES: tuple[tuple[re.Pattern[str], str], ...] = (
    # A path takes two slashes for one.
    (re.compile(r"""(:/{1,3}[^\s/:?@'"]{0,256}):[^\s"<>()]{1,512}@"""), rf"\1:{MARK}@"),
    (re.compile(r"""(?<=http://|ttps://)[^\s/:?#@'"]{1,512}@"""), f"{MARK}@"),
    (re.compile(r"""([?&](?:code|key|sig|signature|token)=)[^\s&#'"]+""", re.IGNORECASE), rf"\1{MARK}"),
    (_SETTING, rf"\1{MARK}"),
    (re.compile(r"""(\bbearer\s{1,8})(?=[^\s"']{0,512}\d)[^\s"',;)]{6,}""", re.IGNORECASE), rf"\1{MARK}"),
)
_URL_PASSWORD = re.compile(r"(?<=://)([^:/?@]*):(.*)@", re.DOTALL)
_URL_OPTION = re.compile(r"[?&]([^=&#]+)=([^&#]*)")


class _Secret(NamedTuple, Generic[AnyStr]):
    """A secret in texts or in bytes."""

    length: int
    part: AnyStr
    """A part that stays the same in every form: to look for it is many times faster than to search for the pattern."""
    pattern: re.Pattern[AnyStr]


class Redactor:
    """Secrets, and how they are taken out of texts."""

    def __init__(self) -> None:
        self._known: frozenset[str] = frozenset()
        self._texts: tuple[_Secret[str], ...] = ()
        self._bytes: tuple[_Secret[bytes], ...] = ()
        self._lock = threading.Lock()

    def register(self, *secrets: str) -> None:
        """Add secrets. What is an ordinary text is left out."""
        if self._known.issuperset(secrets):
            return
        with self._lock:
            texts, octets = [*self._texts], [*self._bytes]
            for secret in filter(_is_distinct, {*secrets} - self._known):
                part, pattern = max(_PLAIN.findall(secret), key=len, default=""), _pattern(secret)
                texts.append(_Secret(len(secret), part, re.compile(pattern)))
                octets.append(_Secret(len(secret), part.encode(), re.compile(_octets(pattern))))
            # The longest first: one secret may be a part of another.
            self._texts = tuple(sorted(texts, key=lambda each: -each.length))
            self._bytes = tuple(sorted(octets, key=lambda each: -each.length))
            self._known = self._known.union(secrets)

    def redacted(self, text: AnyStr) -> AnyStr:
        """A text with every secret replaced."""
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
        """A JSON object or array with every secret in its texts replaced, those in JSON that they hold included; None
        if the text is neither."""
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
    """A text, or the texts in a list or a mapping, with every secret replaced, also those that only their place tells.

    In a mapping the place is a name such as `api_key`.
    """
    if isinstance(value, str):
        text = redacted(value)
        for pattern, replacement in _PLACES:
            text = pattern.sub(replacement, text)
        return text
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {name: MARK if text and is_credential(str(name)) else masked(text) for name, text in items}
    if isinstance(value, list | tuple):
        return [masked(each) for each in cast("Iterable[Any]", value)]
    return value


def masked_url(url: str) -> str:
    """A URL with its password hidden, whatever characters that has."""
    return masked(_URL_PASSWORD.sub(rf"\1:{MARK}@", url))


def is_credential(name: str) -> bool:
    """Whether a header, a setting or a parameter of this name carries a secret."""
    return _CREDENTIAL.search(name) is not None


def header_secrets(headers: Mapping[str, str]) -> Iterator[str]:
    """The secrets in HTTP headers: values of names that carry one, and others that look random."""
    for name, text in headers.items():
        if is_credential(name) or _RANDOM.fullmatch(text):
            yield text
            if scheme := _SCHEME.match(text):
                yield text[scheme.end() :]


def register_url(url: str) -> None:
    """Register the secrets of a URL: its password, its user for HTTP, and those among its parameters."""
    import base64  # noqa: PLC0415 - only few processes have such a URL
    from urllib.parse import unquote  # noqa: PLC0415

    found: list[str] = [text for name, text in _URL_OPTION.findall(url) if is_credential(name)]
    if match := _URL_PASSWORD.search(url):
        found += [match[2], match[2].partition("@")[0]]
        pair = f"{unquote(match[1])}:{unquote(match[2])}"
        found.append(base64.b64encode(pair.encode("utf-8", "replace")).decode())
    elif match := re.match(r"https?://([^/?#@]+)@", url):
        found.append(match[1])
    register(*found, *map(unquote, found))


def register_environment(*names: str) -> None:
    """Register the values of environment variables."""
    register(*filter(None, map(os.environ.get, names)))


def register_settings(value: Any) -> None:
    """Register what stands at the place of a secret in a line or a table of settings, even if it can't be read."""
    if isinstance(value, str):
        register(*(text.strip("\"'") for text in _WRITTEN.findall(value)))
        for url in re.findall(r"[a-z]+://[^\s,]+", value) if "@" in value or "=" in value else ():
            register_url(url)
    elif isinstance(value, Mapping):
        for name, inner in cast("Mapping[Any, Any]", value).items():
            if isinstance(inner, str) and is_credential(str(name)):
                register(inner)
            else:
                register_settings(inner)
    elif isinstance(value, list | tuple):
        for each in cast("Iterable[Any]", value):
            register_settings(each)


def _pattern(secret: str) -> str:
    """A pattern of the forms in which a text may hold a secret."""
    first, *parts = re.findall(r"[A-Za-z0-9_.~-]+|\\+|.", secret, re.DOTALL)
    return _form(first, first=True) + "".join(map(_form, parts))


def _octets(pattern: str) -> bytes:
    try:
        return pattern.encode("utf-8", "surrogateescape")  # an environment variable that is no UTF-8
    except UnicodeEncodeError:
        return pattern.encode("utf-8", "surrogatepass")


def _form(part: str, *, first: bool = False) -> str:
    return re.escape(part) if _PLAIN.match(part) else f"(?:{'|'.join(_escapes(part, first=first))})"


def _escapes(part: str, *, first: bool) -> Iterator[str]:
    """Patterns of a character, or of backslashes, as JSON, Python, URLs and HTML escape it, one within the other.

    Repetitions are bounded, and those that a secret begins with are tried only where they begin, so that no text makes
    the search slow.
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


def _is_distinct(text: str) -> bool:
    """Whether a text is so unlike ordinary text that it is looked for."""
    if len(text) < _SHORTEST or not any(map(str.isalpha, text)):
        return False
    if text.isalpha():
        return len(text) > _LONGEST_WORD or text not in (text.lower(), text.upper(), text.capitalize())
    try:
        float(text)
    except ValueError:
        return True
    return False
