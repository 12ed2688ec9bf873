"""Rule-based tokenization, sentence splitting and stemming, without a model or word lists to load.

Everything runs in time linear in the text, because judged text may be hostile. The sentence rules cover English, and
the sentence-final punctuation of all scripts. The stemmer covers English suffixes.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator
from typing import Literal

from evalstone._core.display import IGNORABLE

BYTES_PER_TOKEN = 4
"""An average, for costs and rates. For context windows, `estimated_tokens` gives an upper bound."""


def _set(spaced: str) -> frozenset[str]:
    return frozenset(spaced.split())


# Whitespace, and characters that Unicode ignores in display, including controls, variation selectors and tags.
_INVISIBLE = re.compile(rf"[\s\x00-\x1f\x7f-\xa0{IGNORABLE}\ufe00-\ufe0f\ufff0-\ufffb\U000e0000-\U000e0fff]*+")


def is_blank(text: str) -> bool:
    """Whether a text is empty or consists of whitespace and invisible characters."""
    return not "!" <= text[:1] <= "~" and _INVISIBLE.fullmatch(text) is not None


def unspaced(text: str) -> str:
    """A text without white space: libraries join the texts of one message by nothing, by a newline or by a blank line,
    and some add a newline at the end."""
    return "".join(text.split())


STOPWORDS = _set(
    """
    a about above after again all also am an and any are as at be because been before being below between both but by
    can could did do does doing down during each for from further had has have having he her here hers him his how i if
    in into is it its itself just may me might more most must my no nor not now of off on once only or other our ours
    out over own same shall she should so some such than that the their theirs them then there these they this those
    through to too under until up us very was we were what when where which while who whom whose why will with would
    you your yours
    """
)

# Vowel signs and accents that `\w` doesn't match, because Unicode classifies them as marks.
_MARKS = "\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
_SPACELESS = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0eff\u1000-\u1049\u1050-\u109f\u1780-\u17d3"
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
)
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
SPACELESS = f"{_SPACELESS}{_HAN}"
"""The characters of scripts without spaces between words, for a class of a regular expression."""
_RUN = re.compile(f"[{SPACELESS}]++")
_LETTERS = rf"(?:[^\W_]++|[{_MARKS}{_SPACELESS}]++)+"
# Possessive quantifiers for characters prevent backtracking. Not for groups, which Python before 3.11.5 (as in Debian
# 12) then matches wrongly (python/cpython#106052).
_WORD = re.compile(rf"{_LETTERS}(?:(?:['’](?=[^\W\d_])|(?<=\d)[.,](?=\d)){_LETTERS})*")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]++(?:(?:'(?=[A-Za-z])|(?<=[0-9])[.,](?=[0-9]))[A-Za-z0-9]++)*")
_LONG_RUN = re.compile(r"([^\w\x00-\x7f]{32,})")


def normalized(form: Literal["NFC", "NFD", "NFKC"], text: str) -> str:
    """A text in one of Unicode's normal forms, in linear time.

    Python sorts a run of accents in quadratic time. Runs of 32 or more, which no language has, are not sorted.
    """
    if text.isascii():
        return text
    if not _LONG_RUN.search(text):
        return unicodedata.normalize(form, text)
    parts = _LONG_RUN.split(text)
    parts[::2] = (unicodedata.normalize(form, part) for part in parts[::2])
    parts[1::2] = ("".join(unicodedata.normalize(form, mark) for mark in part) for part in parts[1::2])
    return "".join(parts)


def words(text: str) -> tuple[str, ...]:
    """The words of a text in order, in lower case. A number with separators is one word, and so is `don't`.

    In scripts without spaces (Chinese, Japanese, Thai, Lao, Burmese, Khmer), a run of characters is split into
    overlapping character bigrams; a single character is a word.
    """
    return tuple(word.lower() for word in tokens(text))


def tokens(text: str) -> tuple[str, ...]:
    """The words of a text as written. They are those of `words`, except for their case."""
    if text.isascii():
        return tuple(_ASCII_WORD.findall(text))
    found: list[str] = []
    for token in _WORD.findall(text):
        if token.isascii():
            found.append(token)
        else:
            found.extend(_pairs(normalized("NFKC", token.replace("’", "'"))))
    return tuple(found)


def _pairs(token: str) -> Iterator[str]:
    end = 0
    for run in _RUN.finditer(token):
        if run.start() > end:
            yield token[end : run.start()]
        found = run.group()
        if len(found) == 1:
            yield found
        for at in range(len(found) - 1):
            yield found[at : at + 2]
        end = run.end()
    if end < len(token):
        yield token[end:]


_BLANK_LINE = re.compile(r"\n[^\S\n]*+\n\s*+")
_MARKER = re.compile(r"\s*+(?:(?:[-*+•‣◦▪·–—>]|\#{1,6}|\(?\d{1,3}[.)]|\(?[A-Za-z]\))\s++)+")
_ASCII_STOPS = ".!?…．"
"""Stops that also have other uses, as in `3.14` and `Mr.`."""
_OWN_STOPS = (
    "\u0589\u061d-\u061f\u06d4\u0700-\u0702\u07f9\u0837\u0839\u083d\u083e\u0964\u0965\u104a\u104b\u1362\u1367\u1368"
    "\u166e\u1735\u1736\u17d4\u17d5\u1803\u1809\u1944\u1945\u1aa8-\u1aab\u1b4e\u1b4f\u1b5a\u1b5b\u1b5e\u1b5f"
    "\u1b7d-\u1b7f\u1c3b\u1c3c\u1c7e\u1c7f\u203c\u203d\u2047-\u2049\u2cf9-\u2cfb\u2e2e\u2e3c\u2e53\u2e54\u3002\ua4ff"
    "\ua60e\ua60f\ua6f3\ua6f7\ua876\ua877\ua8ce\ua8cf\ua92f\ua9c8\ua9c9\uaa5d-\uaa5f\uaaf0\uaaf1\uabeb\ufe12\ufe15"
    "\ufe16\ufe52\ufe56\ufe57\uff01\uff1f\uff61"
)
STOPS = f"{_ASCII_STOPS}{_OWN_STOPS}"
"""The punctuation that ends sentences, for a class of a regular expression: Unicode's Sentence_Terminal in the Basic
Multilingual Plane, such as the danda of Hindi and the full stops of Arabic, Armenian and Chinese."""
QUESTION_MARKS = "?\uff1f\u061f\u1367\u2047\u2048\u203d\u2e2e\ufe16\ufe56"
_STOP = re.compile(rf"(?<![{STOPS}])[{STOPS}]++[\"'”’»)\]」』）\*_]*+")
_ENDED = re.compile(rf"[{STOPS}:;|]\Z")
_SPACELESS_PAIR = re.compile(rf"[{SPACELESS}][{_ASCII_STOPS}]++[\"'”’»)\]」』）\*_]*+[{SPACELESS}]")
_WRAPPED_LINE = 60

_TITLES = _set("mr mrs ms mx dr prof rev hon st gen col sgt capt lt gov sen rep pres vs cf viz ca approx al")
_BEFORE_NUMBER = _set(
    "no nos fig figs eq eqs sec ch vol p pp art ver ed jan feb mar apr jun jul aug sep sept oct nov dec"
)
_SHORT_FORMS = _set("etc inc ltd corp co jr sr dept est esp incl max min mt ft ave blvd rd")
_DOTTED = re.compile(r"(?:[A-Za-z]\.)*[A-Za-z]")
_STARTERS = _set(
    """
    a an the this that these those it its he she they we you i his her their our my in on at as by for from after before
    during since when while although though if however there here but and so both all some many most another other each
    """
)


def unmarked(line: str) -> str:
    """A line without the list markers and heading signs at its start."""
    marker = _MARKER.match(line)
    return line[marker.end() :] if marker else line


def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text in order, without list markers. Pieces without a letter or digit are dropped.

    A blank line and the start of a list item always end a sentence. Any other line end does unless the line is wrapped:
    the next line starts in lower case, or the line is long and doesn't end in punctuation. Periods after abbreviations
    and initials, and in numbers, don't end a sentence.
    """
    found: list[str] = []
    for block in _BLANK_LINE.split(text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2029", "\n\n")):
        for piece in _unwrapped(block):
            found.extend(_split(piece))
    return tuple(found)


def sentence_slices(text: str) -> Iterator[str]:
    """A text cut at its sentence ends, by the rules of `sentences`. Joined, the slices are the text."""
    block: list[str] = []
    last = ""
    for line in text.splitlines(keepends=True):
        body = line.strip()
        if body and block and (_MARKER.match(line) or not _is_wrapped(body, last)):
            yield from _slices("".join(block))
            block = []
        block.append(line)
        last = body
    yield from _slices("".join(block))


def _slices(block: str) -> Iterator[str]:
    start = 0
    for stop in _STOP.finditer(block):
        if _ends(block, stop, start):
            yield block[start : stop.end()]
            start = stop.end()
    if start < len(block):
        yield block[start:]


def _is_wrapped(body: str, last: str) -> bool:
    """Whether a line continues the sentence of the previous line, `last` ("" after a blank line)."""
    return bool(last) and (body[0].islower() or (len(last) >= _WRAPPED_LINE and not _ENDED.search(last)))


def _unwrapped(block: str) -> Iterator[str]:
    """The list items and lines of a paragraph, with wrapped lines joined."""
    parts: list[str] = []
    last = ""
    for line in block.split("\n"):
        marker = _MARKER.match(line)
        body = line[marker.end() :].strip() if marker else line.strip()
        if not body:
            continue
        if parts and (marker or not _is_wrapped(body, last)):
            yield " ".join(parts)
            parts = []
        parts.append(body)
        last = body
    if parts:
        yield " ".join(parts)


def _split(piece: str) -> Iterator[str]:
    start = 0
    for stop in _STOP.finditer(piece):
        if _ends(piece, stop, start):
            yield from _worded(piece[start : stop.end()])
            start = stop.end()
    yield from _worded(piece[start:])


def _worded(piece: str) -> Iterator[str]:
    marker = _MARKER.match(piece)
    piece = piece[marker.end() :].strip() if marker else piece.strip()
    if _WORD.search(piece):
        yield piece


def _ends(piece: str, stop: re.Match[str], start: int) -> bool:
    """Whether a run of sentence-final punctuation, with the quotes and brackets after it, ends a sentence."""
    mark, at, end = stop.group(), stop.start(), stop.end()
    following = piece[end : end + 24].lstrip()
    if mark[0] not in _ASCII_STOPS or not following:
        return True
    before = piece[max(start, at - 24) : at]
    if following == piece[end : end + 24]:
        if mark[0] != "…" and _SPACELESS_PAIR.match(piece, at - 1, end + 1):
            return True
        return mark == "." and before[-3:].isalpha() and before[-3:].islower() and following[:2].istitle()
    if mark != ".":
        return not following[0].islower()
    chunks = before.split()
    word = chunks[-1].lstrip("\"'“‘([*_") if chunks else ""
    opens = _ASCII_WORD.match(following)
    fresh = opens is not None and opens.group()[0].isupper() and opens.group().lower() in _STARTERS
    return _ends_after(word, following, fresh, whole=len(chunks) < 2 and at - start < 24)


def _ends_after(word: str, following: str, fresh: bool, *, whole: bool) -> bool:
    """Whether `word.` ends a sentence.

    fresh: The next word looks like the start of a sentence. whole: The word is the only one of its piece so far.
    """
    low = word.lower()
    if low in _TITLES:
        return False
    if low in _BEFORE_NUMBER:
        return not following[0].isdigit()
    if low in _SHORT_FORMS or (word and _DOTTED.fullmatch(word)):
        return fresh
    return not (whole and word.isdigit())


_SUFFIXES = (
    ("fulness", "ful", 3), ("iveness", "ive", 3), ("ations", "at", 3), ("ation", "at", 3), ("ions", "", 4),
    ("ments", "", 4), ("ment", "", 4), ("ness", "", 3), ("sses", "ss", 1), ("ies", "y", 2), ("ied", "y", 2),
    ("ches", "ch", 1), ("shes", "sh", 1), ("eed", "ee", 1), ("xes", "x", 1), ("ingly", "", 3), ("edly", "", 3),
    ("ings", "", 3), ("ing", "", 3), ("ily", "y", 2), ("ly", "", 3), ("ion", "", 4), ("ed", "", 3), ("s", "", 3),
)  # fmt: skip
_KEEPS_S = ("ss", "us", "is")
_LONGEST_STEM = 40


def stem(word: str) -> str:
    """The stem of a lower-case English word: `mak` for `makes` and `making`, `polici` for `policies`.

    It strips one suffix, then normalizes doubled consonants and a final e or y. It is rough: it doesn't know irregular
    forms, and unrelated words may have the same stem. Short words, numbers and words in other scripts are unchanged.
    """
    if len(word) <= 3 or len(word) > _LONGEST_STEM or not word.isascii():
        return word
    return _stem(word)


@functools.lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    if not word.isalpha() or len(word) <= 3:
        return word
    for suffix, replacement, least in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= least:
            if suffix == "s" and word.endswith(_KEEPS_S):
                break
            word = word[: len(word) - len(suffix)] + replacement
            if not replacement and word[-1] == word[-2] and word[-1] not in "aeiouls":
                word = word[:-1]
            break
    if len(word) > 3 and word[-1] == "e":
        word = word[:-1]
    return word[:-1] + "i" if len(word) > 2 and word[-1] == "y" else word


# Tokens per character by the first byte of its UTF-8 encoding: the maximum over five tokenizers, measured for
# docs/decisions/028-splitting-questions.md. Characters that a prompt escapes cost as much as their escapes.
_TOKENS = (
    (0x00, 0x1F, 3.0),
    (0x20, 0x7E, 1.0),
    (ord("\t"), ord("\n"), 1.0),
    (ord("\r"), ord("\r"), 1.0),
    (ord("<"), ord("<"), 3.0),
    (ord(" "), ord(" "), 1 / 2.8),
    (ord("a"), ord("z"), 1 / 2.8),
    (ord("A"), ord("Z"), 0.5),
    (0x7F, 0x7F, 3.0),
    (0xC2, 0xC2, 3.0),  # signs, and C1 controls
    (0xC3, 0xCD, 2.0),  # Latin letters and accents, which cut a word into more tokens
    (0xCE, 0xDF, 1.25),  # Greek, Hebrew, Arabic
    (0xD0, 0xD1, 1.0),  # Cyrillic
    (0xE0, 0xEF, 3.0),
    (0xE0, 0xE0, 2.1),  # scripts of India, Thai, Lao
    (0xE3, 0xE9, 2.0),  # Chinese, Japanese
    (0xEA, 0xED, 3.0),  # Korean
    (0xF0, 0xF4, 4.0),
)
_UNIT = 28
_COSTS = bytearray(256)
for _first, _last, _tokens in _TOKENS:
    _COSTS[_first : _last + 1] = bytes([round(_tokens * _UNIT)]) * (_last + 1 - _first)


def estimated_tokens(text: str) -> int:
    """An upper bound on the number of tokens in a text, for most languages and tokenizers.

    English text takes about 0.6 times the estimate. Random letters, such as Base64, can take up to 1.7 times. The
    estimate is 0 to 4 per character, and additive up to rounding: the sum for two texts is at most 1 more than that of
    their concatenation.
    """
    return -(-sum(text.encode("utf-8", "surrogatepass").translate(_COSTS)) // _UNIT)


def fewest_tokens(text: str) -> int:
    """A lower bound on the number of tokens in a text: its words between white space, and a quarter of its characters
    in scripts without spaces.

    Tokenizers split texts at white space first, so no token has two words. English text takes about 1.3 times as many
    tokens, tables and code about twice as many.
    """
    if text.isascii():
        return most_words(text)
    return len(text.split()) + sum(map(len, _RUN.findall(text))) // 4


def most_words(text: str) -> int:
    """An upper bound for `fewest_tokens`, in a tenth of the time: the words between ASCII white space, and as many more
    as other characters may be white space, or a quarter of a word."""
    encoded = text.encode("utf-8", "surrogatepass")
    return (b" " + encoded.translate(_SHAPES)).count(b" x") + len(encoded) - len(text)


_SHAPES = bytes(ord(" " if code < 128 and chr(code).isspace() else "x") for code in range(256))
"""ASCII white space as a space, any other byte as x."""


def lines_of(text: str) -> tuple[str, ...]:
    """The lines of a checklist without their markers (`-`, `*`, `•`, `1.`, `1)`); blank lines are left out."""
    lines = (_BULLET.sub("", line, count=1).strip() for line in text.splitlines())
    return tuple(line for line in lines if line)


_BULLET = re.compile(r"\A\s*(?:•|(?:[-*]|\d+[.)])(?:\s|$))\s*")
