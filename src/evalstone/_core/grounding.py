"""Checks in code, without a model, whether a judge's words come from the text that it was shown.

A quotation must occur in the text, ignoring case, accents, white space, punctuation, the URLs of links and how HTML
writes characters. With an ellipsis, each part must occur, in order. A restatement must have its numbers, its names and
at least half of its other words from the text, ignoring accents; function words count only as names, or if there are no
others. The items of a list may be completed with the same words. In a restatement in another language, only the numbers
are checked, because words can't be compared across languages.
"""

from __future__ import annotations

import functools
import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set

from evalstone._core.languages import LANGUAGES, LANGUAGES_OF, SCRIPTS
from evalstone._core.text import STOPWORDS, normalized, stem, tokens
from evalstone._core.yes_no import OPENING

LEAST_SHARED = 0.5
_PREFIX = 4
_SHORT_QUOTE = 12
_SHORT_ANSWER = 5
_ELLIPSIS = re.compile(r"…|\.{3,}")
_NOT_WORDS = re.compile(r"[\W_]+")
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
"""Invisible characters inside words, such as soft hyphens and joiners."""
_UNSPACED = re.compile(r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff])")

_ACCENTED = re.compile("(?<=[A-Za-z\u0370-\u03ff])[\u0300-\u036f]+")
_WITHOUT_ACCENT = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "ё": "е"})
"""Letters that Unicode doesn't take apart, and the Cyrillic one that is often written without its dots."""
_LINK = re.compile(r"""!?\[([^\[\]]*+)\]\([^()\s]*+(?:\([^()\s]*+\)[^()\s]*+)?(?:\s++"[^"]*+")?\)""")
"""A link or image of Markdown. Its URL may have one pair of parentheses."""
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")

_NUMBER = re.compile(r"\d+(?:[.,\u2009\u202f'’](?=\d)\d+)*")
_JOINED = re.compile(r"(?<=\d)[.,\u2009\u202f'’]\d|(?<=[^\W\d_])['’][^\W\d_]|(?<=\w)_\w")
"""A separator inside a number or a word."""
_SEPARATORS = ".,\u2009\u202f'’_"
_GROUPED = re.compile(r"\d{1,3}([.,\u2009\u202f'’])\d{3}(?:\1\d{3})*")
_BARE_DECIMAL = re.compile(r"(?<![\d.,])[.,](\d+)")
_YEARS = re.compile(r"\b(\d\d)\d\d\s*[-–—/]\s*(\d\d)\b")
_SHORT_YEAR = re.compile(r"['’](\d\d)s?\b|\b\d{1,2}([/.-])\d{1,2}\2(\d\d)\b")
_DATE = re.compile(r"\b(?:\d{1,4}([./-])\d{1,2}\1\d{1,4}|\d{4}[/-]\d\d|\d{1,2}[./-]\d{4})\b")
_AFTERNOON = re.compile(r"(?<!\d)(\d{1,2})(?::\d\d)?\s{0,3}p\.?m\b", re.IGNORECASE)
_SCALED = re.compile(
    r"(?<!\d)(\d{1,15}(?:[.,]\d{1,15}){0,4})[\s-]{0,3}(thousand|million|billion|trillion|k|m|bn?)\b", re.IGNORECASE
)
_SCALES = {"t": 10**3, "k": 10**3, "m": 10**6, "b": 10**9}
_NAME = re.compile(r"(?<=\s)[^\W\d_][\w'’-]*")
_ASCII_NAME = re.compile(r"(?<=\s)[A-Z][\w'-]*")
_INITIALS = re.compile(r"\b(?:[A-Z]\.){2,}")
_ROMAN = re.compile(r"[IVX]+")
_AFTER_END = '.!?:;…"“”„»«()[]\n•*-–—'
_ABBREVIATIONS = {
    "ave": "avenue", "blvd": "boulevard", "capt": "captain", "ceo": "chief executive officer", "co": "company",
    "col": "colonel", "corp": "corporation", "dept": "department", "dr": "doctor", "gen": "general", "gov": "governor",
    "hq": "headquarters", "inc": "incorporated", "jr": "junior", "lt": "lieutenant", "ltd": "limited", "mr": "mister",
    "mt": "mount", "phd": "doctorate", "pres": "president", "prof": "professor", "rd": "road", "rep": "representative",
    "rev": "reverend", "sen": "senator", "sgt": "sergeant", "sr": "senior", "st": "saint", "tb": "tuberculosis",
    "tv": "television", "univ": "university", "vs": "versus", "jan": "january", "feb": "february", "mar": "march",
    "apr": "april", "jun": "june", "jul": "july", "aug": "august", "sep": "september", "oct": "october",
    "nov": "november", "dec": "december",
}  # fmt: skip
"""Abbreviations that are not made of initials. They are listed, because the letters of a foreign name may also occur in
order in a word: those of US in university."""
_EXPANSIONS = {full: short for short, full in _ABBREVIATIONS.items()}
_CURRENCIES = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥", "CNY": "¥", "INR": "₹"}

_ONES, _TENS, _ORDINALS, _MONTHS, _FRAME, _FRAME_VERBS = (
    words.split()
    for words in (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen",
        "twenty thirty forty fifty sixty seventy eighty ninety",
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
        "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth",
        "january february march april may june july august september october november december",
        "answer answers author authors passage passages question questions speaker statement statements text texts "
        "user writer",
        "given state stated states",
    )
)
_MONTH_NUMBERS = {word: str(number) for number, word in enumerate(_MONTHS, start=1)}
_NUMBER_WORDS = (
    {word: number for number, word in enumerate(_ONES)}
    | {word: 10 * number for number, word in enumerate(_TENS, start=2)}
    | {word: number for number, word in enumerate(_ORDINALS, start=1)}
    | {
        "dozen": 12,
        "hundred": 100,
        "thousand": 1000,
        "million": 10**6,
        "billion": 10**9,
        "once": 1,
        "twice": 2,
        "half": 2,
        "single": 1,
        "both": 2,
        "pair": 2,
    }
)
_TRUTH = ("true", "false")
_SMALL = 100
"""In languages whose number words aren't known, whole numbers up to this may be written as words."""
_HAN_DIGITS = ("", *"一二三四五六七八九")

_FUNCTION_WORDS = {"": STOPWORDS.union(_FRAME, _FRAME_VERBS)} | {
    name: STOPWORDS.union(_FRAME, _FRAME_VERBS, known) for name, known in LANGUAGES.items()
}
_ALL_FUNCTION_WORDS = frozenset[str]().union(*_FUNCTION_WORDS.values())
_LEAST_COMPLETED = 3
_LONGEST_ITEM = 8
"""In words."""
_BETWEEN_ITEMS = re.compile(
    r"""[\n,;:•|()\[\]{}"“”]|\s[-–—]\s|\s(?:and|or)\s|^[^\S\n]*(?:[-*–—]|\d{1,3}[.)])\s|\.(?:\s|$)""", re.MULTILINE
)
_MARKED = re.compile(r"^[^\S\n]*(?:[-*•–—]|\(?\d{1,3}[.)])[^\S\n]+(.+)", re.MULTILINE)
_WITH_PARTICLES = {"hangul": 2, "hebrew": 3, "arabic": 3, "indic": 3}
"""Scripts in which particles are attached to words, and the length of the letter groups that are compared instead."""
_SAMPLED = 4000


def is_quoted(quote: str, text: str) -> bool:
    """Whether a quotation occurs in a text, at word boundaries. Links may be quoted without their URLs, and HTML
    entities as the characters that they stand for."""
    if _occurs(quote, text):
        return True
    has_markup = any(mark in each for each in (quote, text) for mark in ("](", "&"))
    return has_markup and _occurs(_without_markup(quote), _text_without_markup(text))


def _without_markup(text: str) -> str:
    """A text without the URLs of links, and with characters for HTML entities."""
    return _ENTITY.sub(lambda entity: html.unescape(entity[0]), _LINK.sub(r"\1", text))


_text_without_markup = functools.lru_cache(maxsize=64)(_without_markup)


def _occurs(quote: str, text: str) -> bool:
    if quote.strip() == text.strip():
        return True
    place, parts = 0, [part for part in _ELLIPSIS.split(quote) if _NOT_WORDS.sub("", part)]
    for part in parts:
        if (after := _end_of(part, text, place)) is None:
            return False
        place = after
    # A quotation without words, such as an emoji, must occur verbatim.
    return bool(parts) or (bool(_ELLIPSIS.sub("", quote).strip()) and quote.strip() in text)


def _end_of(part: str, text: str, start: int) -> int | None:
    """The index in the spaced text at which a part of a quotation ends; None if it doesn't occur."""
    spaced, source = _spaced(part), _spaced_text(text)
    if (place := source.find(spaced, start)) >= 0:
        return place + len(spaced) - 1
    # Long parts match regardless of spaces (`e-mail`, `email`). Short ones would match inside other words.
    if len(bare := spaced.replace(" ", "")) >= _SHORT_QUOTE and bare in source[start:].replace(" ", ""):
        return start
    return None


def _spaced(text: str) -> str:
    """The casefolded words of a text without accents, each between single spaces. Characters of unspaced scripts are
    words."""
    words = _NOT_WORDS.sub(" ", _without_accents(normalized("NFKC", _UNSEEN.sub("", text)).casefold()))
    if not words.isascii():
        words = _UNSPACED.sub(r" \1 ", words)
    return f" {' '.join(words.split())} "


def _without_accents(text: str) -> str:
    """A text in lower case without the accents of Latin and Greek letters."""
    if text.isascii():
        return text
    return normalized("NFC", _ACCENTED.sub("", normalized("NFD", text.translate(_WITHOUT_ACCENT))))


_spaced_text = functools.lru_cache(maxsize=64)(_spaced)


def not_grounded(statement: str, text: str, others: Sequence[str] = (), besides: Set[str] = frozenset()) -> list[str]:
    """The words of a restatement that are not from a text; empty if the restatement is grounded.

    These are numbers and names that the text lacks, or all foreign words if they are more than half of the words,
    shared numbers included.

    others: more texts that words may come from, such as the question of an answer. A statement without words is never
    grounded, and neither is one about a text without words.
    besides: stems of words that the restatement may add.
    """
    if _NOT_WORDS.fullmatch(text) or not text or _NOT_WORDS.fullmatch(statement) or not statement:
        return list(tokens(statement)) or [statement]
    if _stands_in(statement.strip(), text):
        return []
    words = _Words(statement)
    others = tuple(filter(None, others))
    source = _source("\n".join((text, *others)))
    numbers = source.foreign_numbers(statement)
    if numbers or source.is_translated(words):
        return numbers
    if names := source.foreign_names(words):
        return names
    content = [word for word in words.content if not besides or stem(word) not in besides]
    content = content or _least_content(words.lower)
    # A number from the text counts like a word, except for single digits, and so does a name that is a function word.
    numbers = {_plain(number) for number in _NUMBER.findall(statement) if len(number) > 1}
    if others and not (own := _source(text)).has_part_of(content) and own.numbers.isdisjoint(numbers):
        return content
    foreign = [word for word in content if not source.has_word(word)]
    if not foreign:
        return foreign
    other_names = {name for name in words.names if name.lower() not in words.content}
    shared = len(numbers & source.numbers) + len(other_names.intersection(source.names))
    return foreign if len(foreign) > (1 - LEAST_SHARED) * (len(content) + shared) else []


def all_not_grounded(
    statements: Sequence[str], text: str, others: Sequence[str] = (), besides: Set[str] = frozenset()
) -> list[list[str]]:
    """For each of several restatements of a text, the words that are not from it, as `not_grounded` gives them.

    The items of a list, such as "salt", say nothing alone. If there is no other text to complete them with, words that
    the text lacks may do so, if the same words complete at least three items, and at least half of those that are
    restated. Numbers and names must still be from the text.
    """
    found = [not_grounded(statement, text, others, besides) for statement in statements]
    if not any(found) or any(others) or not (items := _source(text).items):
        return found
    named = [_items_in(statement, items) for statement in statements]
    words = list(map(_Words, statements))
    completed: dict[str, set[str]] = {}
    for each, own in zip(words, named, strict=True):
        for word in each.content:
            completed.setdefault(stem(word), set()).update(own)
    least = max(_LEAST_COMPLETED, len(set[str]().union(*named)) / 2)

    def completes(foreign: list[str], each: _Words) -> bool:
        return all(word in each.content and len(completed[stem(word)]) >= least for word in foreign)

    return [
        [] if own and completes(foreign, each) else foreign
        for foreign, each, own in zip(found, words, named, strict=True)
    ]


def _items_in(statement: str, items: Set[str]) -> Set[str]:
    """The items of a list that a statement names."""
    words = _spaced(statement).split()
    runs = (" ".join(words[at : at + size]) for at in range(len(words)) for size in range(1, _LONGEST_ITEM + 1))
    return items & set(runs)


def _stands_in(statement: str, text: str) -> bool:
    """Whether a statement occurs in a text verbatim, at word boundaries."""
    start = text.find(statement)
    end = start + len(statement)
    if start < 0 or (start > 0 and _is_of_word(text[start - 1])) or (end < len(text) and _is_of_word(text[end])):
        return False
    # A separator may be the last character before the statement, or its own first or last one.
    edges = (at for at in (start - 1, start, end - 1, end) if 0 < at < len(text) and text[at] in _SEPARATORS)
    return not any(_JOINED.match(text, at) for at in edges)


def _is_of_word(character: str) -> bool:
    """Whether a character is a letter, a digit or a mark, such as an accent or a vowel sign."""
    return character.isalnum() or (not character.isascii() and unicodedata.category(character)[0] == "M")


class _Words:
    """The words of a text, and its language, script, content words and names, computed on first use."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.written = list(tokens(text))
        self.lower = [word.lower() for word in self.written]

    @functools.cached_property
    def language(self) -> str:
        """The language, detected by function words, except for those inside names; empty if it is unclear."""
        sample = ["", *self.written[:400], ""]
        counts = Counter(
            name
            for before, word, after in zip(sample, self.lower[:400], sample[2:], strict=False)
            if word in LANGUAGES_OF and not (before.istitle() and after.istitle())
            for name in LANGUAGES_OF[word]
        ).most_common(2)
        if not counts or counts[0][1] < 2 or (len(counts) > 1 and counts[0][1] < 1.5 * counts[1][1]):
            return ""
        return counts[0][0]

    @functools.cached_property
    def script(self) -> str:
        """The script of most letters; empty if there are none."""
        if (sample := self.text[:_SAMPLED]).isascii():
            return "latin" if any(map(str.isalpha, sample)) else ""
        counts = Counter(match.lastgroup or "" for match in SCRIPTS.finditer(sample))
        most = max(counts, key=lambda name: counts[name], default="")
        return "han" if most == "kana" else most

    @functools.cached_property
    def content(self) -> dict[str, None]:
        """The content words, in order: no function words, no numbers, and no words of one or two ASCII characters."""
        function = _FUNCTION_WORDS[self.language]
        return {
            word: None
            for word in self.lower
            if word not in function and not word[0].isdigit() and (len(word) > 2 or not word.isascii())
        }

    @functools.cached_property
    def names(self) -> list[str]:
        """The capitalized words that don't begin a sentence, except for I."""
        names: list[str] = []
        for match in (_ASCII_NAME if self.text.isascii() else _NAME).finditer(self.text):
            word = match[0].replace("’", "'")
            if not word[0].isupper() or word == "I" or word.startswith("I'"):
                continue
            before = self.text[max(0, match.start() - 4) : match.start()].rstrip()
            if before and before[-1] not in _AFTER_END:
                names.append(word)
        return names

    @functools.cached_property
    def in_capitals(self) -> list[str]:
        """The capitalized words, as written and in order."""
        return [word for word in self.written if word[0].isupper()]

    @functools.cached_property
    def initials(self) -> str:
        """The initials of the capitalized words, in order."""
        return "".join(word[0] for word in self.in_capitals)


class _Source(_Words):
    """A text that statements are compared with: its words, stems and numbers."""

    @functools.cached_property
    def words(self) -> Set[str]:
        return {*self.lower, *(map(_without_accents, self.lower) if not self.text.isascii() else ())}

    @functools.cached_property
    def stems(self) -> Set[str]:
        return set(map(stem, self.words))

    @functools.cached_property
    def beginnings(self) -> Set[str]:
        return {word[:_PREFIX] for word in self.words if len(word) >= _PREFIX}

    @functools.cached_property
    def written_numbers(self) -> Set[str]:
        return set(_NUMBER.findall(self.text))

    @functools.cached_property
    def numbers(self) -> Set[str]:
        in_words = {str(_NUMBER_WORDS[word]) for word in self.words & _NUMBER_WORDS.keys()}
        # In lower case, most of the words may and march are no months.
        months = {_MONTH_NUMBERS[word] for word in self.capitals & _MONTH_NUMBERS.keys()}
        return {*_numbers(self.text), *months, *in_words, *(_compound_numbers(self.lower) if in_words else ())}

    @functools.cached_property
    def numbers_of_dates(self) -> Set[str]:
        dates = (date[0] for date in _DATE.finditer(self.text))
        return {part.lstrip("0") for date in dates for part in re.split("[./-]", date)}

    @functools.cached_property
    def letters(self) -> frozenset[str]:
        return frozenset(self.text if not self.text.isascii() else "")

    @functools.cached_property
    def items(self) -> Set[str]:
        """The short items of lists in a text in Latin script, as `_spaced` words: what is between commas and the like
        if the text has hardly any function words and thus no sentences, and otherwise the beginnings of marked
        lines."""
        if self.script != "latin":
            return frozenset()
        if 5 * sum(word in _ALL_FUNCTION_WORDS for word in self.written) <= len(self.written):
            parts = _BETWEEN_ITEMS.split(self.text)
        else:
            parts = [_BETWEEN_ITEMS.split(line, maxsplit=1)[0] for line in _MARKED.findall(self.text)]
        spaced = (_spaced(part).strip() for part in parts)
        return frozenset(item for item in spaced if item and item.count(" ") < _LONGEST_ITEM)

    @functools.cached_property
    def capitalized(self) -> bool:
        """Whether capitals don't mark names, as in German, which capitalizes all nouns, in headlines and in lists of
        titles."""
        if self.language == "de" or 5 * len(self.names) > 3 * len(self.written):
            return True
        begin = sum(word[0].isupper() for word in self.written)
        return 5 * begin > 3 * len(self.written) and len(self.items) >= _LEAST_COMPLETED

    @functools.cached_property
    def abbreviations(self) -> Set[str]:
        dotted = {short.replace(".", "") for short in _INITIALS.findall(self.text)}
        return dotted | {word for word in self.written if word.isupper() and len(word) > 1}

    @functools.cached_property
    def capitals(self) -> Set[str]:
        """The capitalized words, in lower case."""
        return {word.lower() for word in self.in_capitals}

    @functools.cached_property
    def says_yes_or_no(self) -> bool:
        return bool(OPENING.match(self.text))

    def has_number(self, number: str) -> bool:
        plain = _plain(number)
        if plain in self.numbers or _NOT_WORDS.sub("", number) in self.numbers:
            return True
        if self.language == "en" or not plain.isdigit() or int(plain[:9]) > _SMALL:
            return False
        return self.script != "han" or int(plain) <= 10 or _in_han(int(plain)) in self.text

    def foreign_numbers(self, statement: str) -> list[str]:
        """The numbers of a statement that the text lacks in any form, such as 2.5 million for 2,500,000."""
        others = (number for number in _NUMBER.findall(statement) if number not in self.written_numbers)
        foreign = [number for number in others if not self.has_number(number)]
        if not foreign:
            return foreign
        known = {number for number, whole in _scaled(statement) if str(whole) in self.numbers}
        known |= {hour for hour in _AFTERNOON.findall(statement) if str(int(hour) + 12) in self.numbers}
        return [number for number in foreign if number not in known]

    def has_word(self, word: str) -> bool:
        word = _without_accents(word)
        return (
            word in self.words
            or stem(word) in self.stems
            or (len(word) > _PREFIX and word[:_PREFIX] in self.beginnings)
            # In scripts without spaces, words are pairs of characters, most of which change in a restatement.
            or (len(word) <= 2 and not word.isascii() and self.letters.issuperset(word))
            or (self.script in _WITH_PARTICLES and self._has_most_of(word))
        )

    def has_part_of(self, content: Iterable[str]) -> bool:
        """Whether a statement with these content words can be from this text: the text has one of them, is very short,
        or begins with yes or no, which refers to the question."""
        return self.says_yes_or_no or any(map(self.has_word, content)) or len(self.content) <= _SHORT_ANSWER

    def _has_most_of(self, word: str) -> bool:
        """Whether at least half of the letter groups of a word occur in the text, where its particles may differ."""
        size = _WITH_PARTICLES[self.script]
        groups = [word[at : at + size] for at in range(max(1, len(word) - size + 1))]
        return 2 * sum(group in self.text for group in groups) >= len(groups)

    def foreign_names(self, words: _Words) -> list[str]:
        """The names of a statement that the text lacks, also in abbreviated or spelled-out form."""
        foreign = [name for name in words.names if not self._has_name(name)]
        if not foreign or self.capitalized:
            return []
        spelled = self._spelled_out(words)
        return [name for name in foreign if not spelled >= {*_Words(name).in_capitals}]

    def _spelled_out(self, words: _Words) -> Set[str]:
        """The capitalized words of a statement that spell out an abbreviation of the text."""
        spelled: set[str] = set()
        for short in self.abbreviations:
            at = words.initials.find(short)
            while at >= 0:
                spelled.update(words.in_capitals[at : at + len(short)])
                at = words.initials.find(short, at + len(short))
        return spelled

    def _has_name(self, name: str) -> bool:
        low = name.lower().removesuffix("'s")
        parts = filter(None, _NOT_WORDS.split(low))
        if (
            _without_accents(name.lower()) in self.words
            or all(map(self.has_word, parts))
            or all(map(self.has_word, tokens(low)))
        ):
            return True
        if str(_NUMBER_WORDS.get(low, "")) in self.numbers or low in _FRAME or low in _TRUTH:
            return True
        if _MONTH_NUMBERS.get(low) in self.numbers_of_dates:
            return True
        if (full := _ABBREVIATIONS.get(low, "")) and self.words >= set(full.split()):
            return True
        if _EXPANSIONS.get(low, "") in self.capitals:
            return True
        if not name.isupper():
            return False
        return name in self.initials or bool(_ROMAN.fullmatch(name)) or _CURRENCIES.get(name, "\0") in self.text

    def is_translated(self, words: _Words) -> bool:
        if words.script and self.script and words.script != self.script:
            return True
        return bool(words.language and self.language and words.language != self.language)


_source = functools.lru_cache(maxsize=64)(_Source)


def _numbers(text: str) -> Iterator[str]:
    """The numbers of a text as plain digits, including those meant by `1843-45`, `7 pm`, `.5` and `1.5 million`."""
    for number in _NUMBER.findall(text):
        yield _plain(number)
        for digits in re.findall(r"\d+", number):
            yield digits.lstrip("0") or "0"
    for century, year in _YEARS.findall(text):
        yield century + year
    for alone, _, of_date in _SHORT_YEAR.findall(text):
        yield from (f"19{alone or of_date}", f"20{alone or of_date}")
    yield from re.findall(r"\b\d\d(\d0)s\b", text)
    for hour in _AFTERNOON.findall(text):
        yield str(int(hour) + 12)
    for decimals in _BARE_DECIMAL.findall(text):
        yield _plain(f"0.{decimals}")
    for _, number in _scaled(text):
        yield str(number)


def _scaled(text: str) -> Iterator[tuple[str, int]]:
    """The numbers before a word such as million, with their scaled values."""
    for number, scale in _SCALED.findall(text):
        by = 10**12 if scale[:2].lower() == "tr" else _SCALES[scale[0].lower()]
        try:
            value = float(_plain(number)) * by
        except OverflowError:
            continue
        if value < 1e18 and value.is_integer():
            yield number, int(value)


def _compound_numbers(words: list[str]) -> Iterator[str]:
    """Numbers of several words, such as twenty one, five hundred thousand, one hundred and twenty."""
    whole = part = count = 0
    for word in (*words, ""):
        number = _NUMBER_WORDS.get(word)
        if word == "and" and count:
            continue
        if number is None:
            if count > 1:
                yield str(whole + part)
            whole = part = count = 0
            continue
        count += 1
        if number >= 1000:
            whole, part = whole + (part or 1) * number, 0
        else:
            part = (part or 1) * number if word in ("hundred", "dozen") else part + number


def _in_han(number: int) -> str:
    """A number from 11 to 100 in Chinese and Japanese words: 二十七 for 27."""
    if number == 100:
        return "百"
    tens, ones = (_HAN_DIGITS[digit] for digit in divmod(number, 10))
    return f"{tens.replace('一', '')}十{ones}"


def _plain(number: str) -> str:
    """A number without thousands separators and superfluous zeros, with a decimal point."""
    if _GROUPED.fullmatch(number):
        number = _NOT_WORDS.sub("", number)
    whole, point, decimals = number.replace(",", ".").rpartition(".")
    whole = re.sub(r"\D", "", whole if point else decimals).lstrip("0") or "0"
    decimals = decimals.rstrip("0") if point else ""
    return f"{whole}.{decimals}" if decimals else whole


def _least_content(words: list[str]) -> list[str]:
    """The words of a statement without content words: those that are no function words, or else all of them."""
    words = [word for word in words if len(word) > 1]
    return [word for word in words if word not in STOPWORDS and not word[0].isdigit()] or words
