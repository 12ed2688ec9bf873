"""Whether words that a judge wrote come from the text that it was shown: rules in code, no model.

A quotation stands in the text, up to case, white space and punctuation; where it has an ellipsis, each part does, in
order. A restatement has its numbers, its names and at least half of its other words from the text. One that is in
another language than the text is held to its numbers only, for words can't be compared across languages.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Set

from evalstone._core.text import STOPWORDS, stem, tokens

LEAST_SHARED = 0.5
_PREFIX = 4
_ELLIPSIS = re.compile(r"…|\.{3,}")
_NOT_WORDS = re.compile(r"[\W_]+")
_LATIN_ONLY = re.compile(r"[^\x00-\u024f]")
_NUMBER = re.compile(r"\d+(?:[.,\u2009\u202f'’](?=\d)\d+)*")
_GROUPED = re.compile(r"\d{1,3}([.,\u2009\u202f'’])\d{3}(?:\1\d{3})*")
_YEARS = re.compile(r"\b(\d\d)\d\d\s*[-–—/]\s*(\d\d)\b")
_SCALED = re.compile(
    r"(?<!\d)(\d{1,15}(?:[.,]\d{1,15})?)[\s-]{0,3}(thousand|million|billion|trillion|k|m|bn?)\b", re.IGNORECASE
)
_SCALES = {"t": 10**3, "k": 10**3, "m": 10**6, "b": 10**9}

_ONES, _TENS, _ORDINALS = (
    words.split()
    for words in (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen",
        "twenty thirty forty fifty sixty seventy eighty ninety",
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
        "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth",
    )
)
_NUMBER_WORDS = (
    {word: number for number, word in enumerate(_ONES)}
    | {word: 10 * number for number, word in enumerate(_TENS, start=2)}
    | {word: number for number, word in enumerate(_ORDINALS, start=1)}
    | {
        "dozen": 12,
        "hundred": 100,
        "thousand": 1000,
        "once": 1,
        "twice": 2,
        "half": 2,
        "single": 1,
        "both": 2,
        "pair": 2,
    }
)
_SMALL = 100
"""Whole numbers up to here may be words in a text whose number words aren't known."""

_FUNCTION_WORDS = {
    "en": "the of and to is was were are that for with by on at from this which it has have be been not or as an in",
    "de": "der die das und ist war den dem des ein eine einer nicht mit von zu für auf im sich auch wird wurde sind",
    "fr": "le la les des et est une un du dans que qui pour par sur avec pas au aux ce cette sont été plus il elle",
    "es": "el la los las de y es que en un una por con para del se no su al como fue son más lo era",
    "it": "il lo la gli le di e è che un una per con del della nel non si da sono stato era dei delle alla",
    "pt": "o a os as de e é que em um uma por com para do da no na não se foi são dos das mais ao",
    "nl": "de het een en van is was dat in op te met voor niet zijn aan door ook werd er bij uit naar om",
}
_LANGUAGES = {name: frozenset(words.split()) for name, words in _FUNCTION_WORDS.items()}
_SCRIPTS = re.compile(
    r"(?P<latin>[A-Za-z\u00c0-\u024f])|(?P<greek>[\u0370-\u03ff])|(?P<cyrillic>[\u0400-\u052f])|(?P<hebrew>[\u0590-\u05ff])"
    r"|(?P<arabic>[\u0600-\u06ff])|(?P<indic>[\u0900-\u0dff])|(?P<thai>[\u0e00-\u0e7f])|(?P<kana>[\u3040-\u30ff])"
    r"|(?P<han>[\u3400-\u9fff])|(?P<hangul>[\uac00-\ud7af])"
)
_SAMPLED = 4000


def is_quoted(quote: str, texts: Iterable[str]) -> bool:
    """Whether a quotation stands in one of the texts, or over the end of one and the beginning of the next."""
    whole = "\n".join(texts)
    if quote.strip() in whole:
        return True
    parts = [part for part in map(_bare, _ELLIPSIS.split(quote)) if part]
    text, place = _bare_text(whole), 0
    for part in parts:
        place = text.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return bool(parts)


def _bare(text: str) -> str:
    return _NOT_WORDS.sub("", unicodedata.normalize("NFKC", text).casefold())


_bare_text = functools.lru_cache(maxsize=64)(_bare)


def not_grounded(statement: str, texts: Iterable[str]) -> list[str]:
    """The words of a restatement that keep it from being one of the texts: numbers and names that they don't have, or
    the words that are not theirs where these are more than half. Empty for a grounded one."""
    source = _source("\n".join(texts))
    numbers = [number for number in _NUMBER.findall(statement) if not source.has_number(number)]
    if numbers or source.is_translated(statement):
        return numbers
    if names := source.foreign_names(statement):
        return names
    content = dict.fromkeys(_content(statement))
    foreign = [word for word in content if not source.has_word(word)]
    return foreign if len(foreign) > (1 - LEAST_SHARED) * len(content) else []


class _Source:
    """What a text has: numbers, words, and their beginnings."""

    def __init__(self, text: str) -> None:
        written = tokens(text)
        lower = [word.lower() for word in written]
        self.words: Set[str] = set(lower)
        self.stems = {stem(word) for word in lower}
        self.beginnings = {word[:_PREFIX] for word in lower if len(word) >= _PREFIX}
        self.numbers = set(_numbers(text)) | {str(_NUMBER_WORDS[word]) for word in self.words & _NUMBER_WORDS.keys()}
        self.numbers |= set(_compound_numbers(lower))
        self.letters = frozenset(text if not text.isascii() else "")
        self.script = _script(text)
        self.language = _language(lower)
        # German writes every noun with a capital, and headlines every word: it marks no name there.
        self.capitalized = self.language == "de" or 3 * sum(1 for _ in _names(text)) > len(written)
        self.initials = _initials(written)
        self.abbreviations = {word for word in written if word.isupper() and len(word) > 1}

    def has_number(self, number: str) -> bool:
        plain = _plain(number)
        if plain in self.numbers or _NOT_WORDS.sub("", number) in self.numbers:
            return True
        return self.language != "en" and plain.isdigit() and int(plain[:9]) <= _SMALL

    def has_word(self, word: str) -> bool:
        return (
            word in self.words
            or stem(word) in self.stems
            or (len(word) > _PREFIX and word[:_PREFIX] in self.beginnings)
            # Of a script without spaces, words are pairs of letters, most of which change in a restatement.
            or (len(word) <= 2 and not word.isascii() and self.letters.issuperset(word))
        )

    def foreign_names(self, statement: str) -> list[str]:
        """The names in a statement that the text lacks, also as abbreviations of names that the other one spells."""
        if self.capitalized:
            return []
        initials = _initials(tokens(statement))
        spelled = {letter for short in self.abbreviations if short in initials for letter in short}
        return [name for name in _names(statement) if not (self._has_name(name) or name[0] in spelled)]

    def _has_name(self, name: str) -> bool:
        low = name.lower().removesuffix("'s")
        return self.has_word(low) or low in _NUMBER_WORDS or (name.isupper() and name in self.initials)

    def is_translated(self, statement: str) -> bool:
        script = _script(statement)
        if script and self.script and script != self.script:
            return True
        language = _language([word.lower() for word in tokens(statement)])
        return bool(language and self.language and language != self.language)


_source = functools.lru_cache(maxsize=64)(_Source)


def _numbers(text: str) -> Iterator[str]:
    """The numbers of a text as plain digits, also those behind `1843-45` and `1.5 million`."""
    for number in _NUMBER.findall(text):
        yield _plain(number)
        yield from re.findall(r"\d+", number)
    for century, year in _YEARS.findall(text):
        yield century + year
    for number, scale in _SCALED.findall(text):
        try:
            value = float(number.replace(",", ".")) * (
                10**12 if scale[:2].lower() == "tr" else _SCALES[scale[0].lower()]
            )
        except (ValueError, OverflowError):
            continue
        if value.is_integer():
            yield str(int(value))


def _compound_numbers(words: list[str]) -> Iterator[str]:
    """Numbers of two words, such as twenty one, five hundred."""
    for first, second in itertools.pairwise(words):
        one, two = _NUMBER_WORDS.get(first), _NUMBER_WORDS.get(second)
        if one is None or two is None:
            continue
        yield str(one * two if two in (100, 1000, 12) else one + two)


def _plain(number: str) -> str:
    """A number without separators of thousands, its decimals behind a point, without needless zeros."""
    if _GROUPED.fullmatch(number):
        number = _NOT_WORDS.sub("", number)
    whole, _, decimals = (
        number.replace(",", ".").rpartition(".") if "." in number or "," in number else (number, "", "")
    )
    whole = re.sub(r"\D", "", whole).lstrip("0") or "0"
    decimals = decimals.rstrip("0")
    return f"{whole}.{decimals}" if decimals else whole


def _names(text: str) -> Iterator[str]:
    """Words with a capital that do not begin a sentence, but for I."""
    for match in re.finditer(r"(?<![.!?:;…\"“”„»«(\[\n•*-])(?<=\s)[^\W\d_][\w'’-]*", text):
        word = match[0].replace("’", "'")
        if (
            word[0].isupper()
            and word not in ("I", "I'm", "I'd", "I'll", "I've")
            and not _after_end(text, match.start())
        ):
            yield word


def _after_end(text: str, start: int) -> bool:
    before = text[max(0, start - 4) : start].rstrip()
    return not before or before[-1] in '.!?:;…"“”„»«()[]\n•*-–—'


def _initials(words: Iterable[str]) -> str:
    """The first letters of the words with a capital, in order."""
    return "".join(word[0] for word in words if word[0].isupper())


def _content(text: str) -> Iterator[str]:
    """The words that say what a statement is about: no function words, no numbers, no single letters."""
    function = _LANGUAGES.get(_language([word.lower() for word in tokens(text)]), frozenset[str]())
    for word in tokens(text):
        low = word.lower()
        if (
            low not in STOPWORDS
            and low not in function
            and not low[0].isdigit()
            and (len(low) > 2 or not low.isascii())
        ):
            yield low


def _script(text: str) -> str:
    """The script that most of a text's letters are in; empty for one without letters."""
    counts: dict[str, int] = {}
    for match in _SCRIPTS.finditer(text[:_SAMPLED]):
        name = match.lastgroup or ""
        counts[name] = counts.get(name, 0) + 1
    if not counts:
        return ""
    most = max(counts, key=lambda name: counts[name])
    return "han" if most == "kana" or (most == "han" and counts.get("kana")) else most


def _language(words: list[str]) -> str:
    """The language of a text by its function words; empty where they do not tell."""
    sample = words[:400]
    counts = sorted(((sum(word in known for word in sample), name) for name, known in _LANGUAGES.items()), reverse=True)
    (most, name), (second, _) = counts[:2]
    return name if most >= 2 and most >= 1.5 * second else ""
