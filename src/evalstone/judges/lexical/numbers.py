"""Normalize numbers: number words, ordinals, fractions, separators and dates become the same tokens as digits.

    forty-two, 42, 42nd -> 42      1.5 million -> 1500000      two thirds, 2/3 -> 0.667      三百, 第十二 -> 300, 12
    March 3, 2021 = 3rd of March 2021 = 2021-03-03 = 2021年3月3日 -> 3 3mo 2021
    $5m, 5 million dollars -> 5000000 dollar      50k, 50 000 -> 50000      1.234,56 -> 1234.56
    the 19th century -> the 19cy      twice, once a day -> 2 times, 1 time a day      330 m, 330 metres -> 330 meter

Ordinals become their number. Months and centuries get tokens of their own. Signs stay as they are. Number words are
English and Chinese. All functions take time linear in the length of the text, for any text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import Decimal

from evalstone._core.text import STOPWORDS
from evalstone.judges.lexical.tokens import GLUE
from evalstone.judges.lexical.units import UNIT_SPELLINGS


def _words(spaced: str) -> tuple[str, ...]:
    return tuple(spaced.split())


_CARDINALS = _words(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty
    """
)
_ORDINALS = _words(
    """
    zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth
    fifteenth sixteenth seventeenth eighteenth nineteenth twentieth
    """
)
_TENS = _words("thirty forty fifty sixty seventy eighty ninety")
_RANKS = {
    **{name: value for value, name in enumerate(_ORDINALS)},
    **{f"{name[:-1]}ieth": 30 + 10 * place for place, name in enumerate(_TENS)},
}
_NAMED = {
    **{name: value for value, name in enumerate(_CARDINALS)},
    **{name: 30 + 10 * place for place, name in enumerate(_TENS)},
    **_RANKS,
}
_UNITS = {"hundred": 100, "dozen": 12}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "bn": 10**9, "trillion": 10**12}
_PART = {"quarter": 4, **{name: value for name, value in _RANKS.items() if 3 <= value <= 10}}
_PARTS = {**_PART, **{f"{name}s": value for name, value in _PART.items()}}

MONTHS = _words("January February March April May June July August September October November December")
_MONTHS = {
    **{name.lower(): number for number, name in enumerate(MONTHS, start=1)},
    **{name[:3].lower(): number for number, name in enumerate(MONTHS, start=1)},
    "sept": 9,
}
# These words have other meanings: they are months only next to a day or a year, or in phrases such as "in May".
_OTHER_WORDS = frozenset({"march", "august", *(name for name in _MONTHS if len(name) <= 4)} - {"june", "july"})
_BEFORE_MONTH = frozenset(
    _words("in since until till by during from to through of early late mid last next this every before after")
)
# "No one", "the one" are pronouns; "a second", "per second" are a unit of time.
_BEFORE_PRONOUN = frozenset(_words("no any every each some the this that which another other"))
_BEFORE_LABEL = frozenset(_words("number chapter part phase type level stage season volume page round day week grade"))
_NO_NOUNS = STOPWORDS | {*GLUE.split(), "another"}
_BEFORE_UNIT = frozenset(_words("per split each every one half"))

_TIMES = {"once": ("1", "time"), "twice": ("2", "times"), "thrice": ("3", "times")}
# Anywhere else, "once" is mostly a conjunction, or means formerly.
_AFTER_ONCE = frozenset(_words("a an per each every daily weekly monthly yearly annually"))
_CENTURIES = frozenset({"century", "centuries"})
_JOINING = frozenset({"and", "or", "to"})

_NUMBER_WORDS = frozenset({**_NAMED, **_UNITS, **_SCALES, **_PARTS, **_MONTHS, **_TIMES, **UNIT_SPELLINGS})
_FIGURE = re.compile(r"\d++(?:[.,]\d++)*")
_SCALED = re.compile(r"(\d{1,4}(?:[.,]\d{1,3})?)(bn|[kKMB])")
_SUFFIXES = {"k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9, "bn": 10**9}
_ORDINAL = re.compile(r"(\d++(?:,\d{3})*)(?:st|nd|rd|th)", re.IGNORECASE)
_OWN_TOKEN = re.compile(r"\d{1,2}(?:h\d\d|mo|cy)")
_LONGEST_FIGURE = 15
_LAST_DAY, _LAST_MONTH = 31, 12


def numbered(written: Sequence[str]) -> Sequence[str]:
    """The tokens with normalized numbers; other tokens are unchanged."""
    low = [token.lower() for token in written]
    if is_even(low):
        return written
    found: list[str] = []
    at = 0
    while at < len(low):
        word = low[at]
        if word in _NUMBER_WORDS or word[0].isdigit():
            values, end = _at(written, low, at)
            if values and _is_century(low, end):
                values, end = [f"{values[0]}cy"], end + (low[end] in _CENTURIES)
            found.extend(values or [written[at]])
            at = end
            if values and at < len(low) and low[at] in UNIT_SPELLINGS:
                found.append(UNIT_SPELLINGS[low[at]])
                at += 1
        else:
            found.append(written[at])
            at += 1
    return _day_first(found)


def is_even(low: Sequence[str]) -> bool:
    """Whether all numbers among lowercase tokens are already normalized."""
    if not _NUMBER_WORDS.isdisjoint(low):
        return False
    return all([word.isdigit() and word[0] in "123456789" for word in low if word[0].isdigit()])  # noqa: C419 - faster


def figures(low: Sequence[str]) -> tuple[str, ...]:
    """The distinct numbers among tokens from `numbered`. Months, clock times and centuries count as one number."""
    found: dict[str, None] = {}
    for word in low:
        if word[0].isdigit():
            if word.isdigit() or _OWN_TOKEN.fullmatch(word):
                found[word] = None
            else:
                found.update(dict.fromkeys(_figures(word)))
    return tuple(found)


def shown(figure: str) -> str:
    """A number as shown in a reason: a month by its name, a clock time as 17:30, and a century as century 19."""
    if figure.endswith("mo") and figure[:-2].isdigit():
        return MONTHS[int(figure[:-2]) - 1]
    if figure.endswith("cy") and figure[:-2].isdigit():
        return f"century {figure[:-2]}"
    hour, mark, minute = figure.partition("h")
    return f"{hour}:{minute}" if mark and hour.isdigit() and minute.isdigit() else figure


def centuries(years: Iterable[str]) -> frozenset[str]:
    """The tokens of the centuries of some years, from 1000 to 2999. The year 1900 belongs to two centuries."""
    found: set[str] = set()
    for year in years:
        if _is_year(year) and year[0] in "12":
            found.update((f"{(int(year) + 99) // 100}cy", f"{int(year) // 100 + 1}cy"))
    return frozenset(found)


def _is_century(low: Sequence[str], end: int) -> bool:
    """Whether the number before a position counts centuries, as both do in `18th and 19th centuries`."""
    if not _is_ordinal(low[end - 1]):
        return False
    if low[end : end + 1] and low[end] in _CENTURIES:
        return True
    return len(low) > end + 2 and _is_ordinal(low[end + 1]) and low[end] in _JOINING and low[end + 2] == "centuries"


def _is_ordinal(word: str) -> bool:
    return word in _RANKS or _ORDINAL.fullmatch(word) is not None


def _at(written: Sequence[str], low: Sequence[str], at: int) -> tuple[Sequence[str], int]:
    """The tokens of the number at a position, empty if there is none, and the position after it."""
    word = low[at]
    if word[0].isdigit():
        return _digits(written, low, at)
    if word in _TIMES:
        return (_TIMES[word] if word != "once" or _AFTER_ONCE & {*low[at + 1 : at + 2]} else ()), at + 1
    if word in _MONTHS:
        return ([f"{_MONTHS[word]}mo"] if _is_month(written, low, at) else ()), at + 1
    if word in _PARTS and low[at - 1 : at] == ["a"] and not _is_noun(low[at + 1 : at + 2]):
        return [_decimal(Decimal(1) / _PARTS[word])], at + 1
    value, end = _spelled(low, at)
    if value is None or (end == at + 1 and _is_other(low, at)):
        return (), at + 1
    return _with_part(low, value, end)


def _digits(written: Sequence[str], low: Sequence[str], at: int) -> tuple[Sequence[str], int]:
    word = low[at]
    if _OWN_TOKEN.fullmatch(word):
        return [word], at + 1
    if ordinal := _ORDINAL.fullmatch(word):
        word = ordinal[1]
    elif (scaled := _SCALED.fullmatch(written[at])) and len(parts := _figures(scaled[1])) == 1:
        return [_decimal(Decimal(parts[0]) * _SUFFIXES[scaled[2]])], at + 1
    elif not _FIGURE.fullmatch(word):
        return [word], at + 1
    parts = _figures(word)
    if len(parts) != 1 or len(parts[0]) > _LONGEST_FIGURE:
        return parts, at + 1
    value, end = Decimal(parts[0]), at + 1
    if end < len(low) and (scale := _SCALES.get(low[end]) or _UNITS.get(low[end])):
        return [_decimal(value * scale)], end + 1
    return _with_part(low, value, end)


def _with_part(low: Sequence[str], value: Decimal, end: int) -> tuple[Sequence[str], int]:
    """A number, or the fraction that it forms with the next word: `two thirds`, `one fifth`."""
    part = low[end] if end < len(low) else ""
    if part in _PARTS and 0 < value < _PARTS[part] and (value == 1) != part.endswith("s"):
        return [_decimal(value / _PARTS[part])], end + 1
    return [_decimal(value)], end


def _spelled(low: Sequence[str], start: int) -> tuple[Decimal | None, int]:
    """The value of the number words at a position, and the position after them."""
    total, current, at = Decimal(0), Decimal(-1), start
    while at < len(low):
        word = low[at]
        value = _NAMED.get(word)
        if value is not None and (current < 0 or _continues(low, current, value, at)):
            current = max(current, Decimal(0)) + value
            if word in _RANKS:
                return total + current, at + 1
        elif word == "hundred" and current < 100:
            current = Decimal(100) * (current if current > 0 else 1)
        elif word == "dozen" and current < 100:
            return total + 12 * (current if current > 0 else 1), at + 1
        elif word in _SCALES and (current >= 0 or at == start):
            total, current = total + (current if current > 0 else 1) * _SCALES[word], Decimal(-1)
        elif word != "and" or not _goes_on(low, at):
            break
        at += 1
    return (total + max(current, Decimal(0)) if at > start else None), at


def _continues(low: Sequence[str], current: Decimal, value: int, at: int) -> bool:
    """Whether a number word continues the previous ones: `twenty five`, `hundred five`."""
    if current and current % 100 == 0 and value < 100:
        return low[at + 1 : at + 2] != ["hundred"]
    return current % 10 == 0 and current % 100 >= 20 and 0 < value < 10


def _goes_on(low: Sequence[str], at: int) -> bool:
    """Whether an "and" is part of a number, as in `two hundred and fifty`."""
    before, after = low[at - 1], low[at + 1] if at + 1 < len(low) else ""
    return (before == "hundred" or before in _SCALES) and after in _NAMED and low[at + 2 : at + 3] != ["hundred"]


def _is_other(low: Sequence[str], at: int) -> bool:
    """Whether a number word is not a number here, but a pronoun, a unit of time, or a part of "at first"."""
    word, before, after = low[at], low[at - 1] if at else "", low[at + 1] if at + 1 < len(low) else ""
    noun = _is_noun([after])
    if word == "one":
        return before not in _BEFORE_LABEL and (not noun or before in _BEFORE_PRONOUN)
    if word == "first":
        return before == "at" or (after == "of" and low[at + 2 : at + 3] == ["all"])
    if word == "second":
        return before in _BEFORE_UNIT or before[:1].isdigit() or (before == "a" and not noun)
    return word not in _NAMED and word not in _UNITS and word not in _SCALES


def _is_noun(following: Sequence[str]) -> bool:
    """Whether a number may count what follows it."""
    return any(word.isalpha() and word not in _NO_NOUNS for word in following)


def _is_month(written: Sequence[str], low: Sequence[str], at: int) -> bool:
    word, before, after = low[at], low[at - 1] if at else "", low[at + 1] if at + 1 < len(low) else ""
    if word not in _OTHER_WORDS:
        return True
    if before == "of" and at > 1:
        before = low[at - 2] if _is_day(low[at - 2]) else before
    if not written[at][0].isupper():
        years = (after, *low[at + 2 : at + 3])
        return (_is_day(before) or _is_day(after)) and any(map(_is_year, years))
    if _is_day(before) or _is_day(after) or _is_year(after):
        return True
    return before in _BEFORE_MONTH and (len(word) > 4 or word == "may")


def _is_day(word: str) -> bool:
    digits = word[:-2] if word[-2:] in ("st", "nd", "rd", "th") else word
    return digits.isdecimal() and len(digits) <= 2 and 1 <= int(digits) <= _LAST_DAY


def _is_year(word: str) -> bool:
    return len(word) == 4 and word.isdecimal()


def _day_first(found: list[str]) -> list[str]:
    """Put dates in the order of `3 March 2021`: swap `March 3`."""
    for at in range(len(found) - 1):
        month = found[at].endswith("mo") and found[at][0].isdigit()
        if month and _is_day(found[at + 1]) and not (at and _is_day(found[at - 1])):
            found[at], found[at + 1] = found[at + 1], found[at]
    return found


def _decimal(value: Decimal) -> str:
    return f"{round(value, 3).normalize():f}" if value % 1 else f"{value:.0f}"


def _figures(word: str) -> tuple[str, ...]:
    """The number at the start of a word, without separators. Several if the word has parts, such as `12.05.2020`."""
    match = _FIGURE.match(word)
    if match is None:
        return ()
    figure = match.group()
    parts = re.split("[.,]", figure)
    groups = all(len(part) == 3 for part in parts[1:]) and len(parts[0]) <= 3
    if "." not in figure and groups:
        parts = ["".join(parts)]
    elif len(parts) == 2:
        parts = [".".join(parts)]
    elif any(figure.count(mark) == 1 and figure[-len(parts[-1]) - 1] == mark for mark in ".,"):
        parts = ["".join(parts[:-1]) + "." + parts[-1]]
    return tuple(_trimmed(part) for part in parts)


def _trimmed(figure: str) -> str:
    figure = figure.lstrip("0") if figure.isascii() else "".join(str(unicodedata.decimal(c, c)) for c in figure)
    whole, dot, rest = figure.partition(".")
    rest = rest.rstrip("0")
    return (whole or "0") + (dot + rest if rest else "")


_HAN_DIGITS = {
    **{name: value for value, name in enumerate("零一二三四五六七八九")},
    "〇": 0, "两": 2, "兩": 2,
}  # fmt: skip
_HAN_UNITS = {"十": 10, "百": 100, "千": 1000}
_HAN_SCALES = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_HAN = "".join((*_HAN_DIGITS, *_HAN_UNITS, *_HAN_SCALES))
# Counted nouns: before any other character, a numeral may be part of a word or a name.
_COUNTED = (
    "个個颗顆只隻条條张張位名人天日月年岁歲次种種件米里斤吨元块塊周週层層座辆輛台臺本家项項场場届屆期章节節号號楼樓点點"
    "度倍对對双雙艘架枚份组組门門间間所支句篇首幅顿頓秒分刻時时小公毫厘平立世季半代级級等"
)
# Before other characters, 一 is an article or a part of a word.
_COUNTED_ONE = "颗顆年月周週岁歲米里公斤吨元层層楼樓倍艘架届屆"
_HAN_NUMBER = re.compile(f"(百分之|第)?(?!十分(?![钟鐘])|万一|千[万萬]不)([{_HAN}]++)(?=([^\\W\\d_])?)")
_HAN_DATE = re.compile(r"(?:(\d{4}) ?年 ?)?(\d{1,2}) ?月(?: ?(\d{1,2}) ?[日号號])?")
_ISO_DATE = re.compile(r"(?<![\d.-])(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?![\d-])")
_DAY_DATE = re.compile(r"(?<![\d./-])(\d{1,2})([./])(\d{1,2})\2(\d{4})(?![\d/-])")
_NO_ZERO = re.compile(r"\.(?=\d)(?<![\w.]\.)")
# Not "5-10", "5 - 10" or "F-35".
_MINUS = re.compile(r"[-−](?=\.?\d)(?<![\w.,)\]%+−-].)(?<!\d .)")
_SPACED_GROUP = re.compile("(?<=\\d)[\u00a0\u2009\u202f](?=\\d{3}(?!\\d))")
_SIGNS = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "USD": "dollar", "EUR": "euro", "GBP": "pound"}
_LETTERS = {"": "", "k": "thousand", "m": "million", "b": "billion", "bn": "billion"}
_PRICE = re.compile(
    r"(?:\b(?:US|CA|AU|NZ|HK|A|C))?([$€£¥]|\b(?:USD|EUR|GBP)) ?(\d++(?:[.,]\d++)*)"
    r"(?: ?([kKmM]|[bB]n?)\b|[ -]?([tT]housand|[mbtMBT]r?illion)\b)?"
)
_PRICE_AFTER = re.compile(r"(?<=\d) ?([$€£¥])(?!\w)")
_FRACTION = re.compile(r"(?<![\d/.,])([1-9])/([2-9]|10)(?![\d/])")


def evened_dates(text: str) -> str:
    """The text with normalized numeric dates and fractions."""
    text = _FRACTION.sub(lambda found: _decimal(Decimal(found[1]) / Decimal(found[2])), text)
    return _DAY_DATE.sub(_day_date, _ISO_DATE.sub(lambda found: _date(found, found[4], found[3], found[1]), text))


def evened_numbers(text: str) -> str:
    """The text with normalized percentages, prices and Chinese numerals, and `.5` as `0.5`."""
    if "%" in text or "％" in text:
        text = text.replace("%", " percent ").replace("％", " percent ")
    if "-" in text or "−" in text:
        text = _MINUS.sub("minus ", text)
    if "." in text:
        text = _NO_ZERO.sub("0.", text)
    if "$" in text or "USD" in text or "EUR" in text or "GBP" in text or not text.isascii():
        text = _PRICE_AFTER.sub(lambda found: f" {_SIGNS[found[1]]} ", _PRICE.sub(_price, text))
    if "per cent" in text:
        text = text.replace("per cent", "percent")
    if not text.isascii():
        text = _SPACED_GROUP.sub("", text)
        text = _HAN_DATE.sub(
            lambda found: _date(found, found[3] or "", found[2], found[1] or ""), _HAN_NUMBER.sub(_han, text)
        )
    return text


def _price(found: re.Match[str]) -> str:
    """A price with its currency after the number: `$5 million` and `$5m` become `5 million dollar`."""
    sign, number, letter, scale = found.groups()
    return f" {number} {scale or _LETTERS[(letter or '').lower()]} {_SIGNS[sign]} "


def _date(found: re.Match[str], day: str, month: str, year: str) -> str:
    if not 1 <= int(month) <= _LAST_MONTH or (day and not 1 <= int(day) <= _LAST_DAY):
        return found[0]
    return f" {day} {int(month)}mo {year} "


def _day_date(found: re.Match[str]) -> str:
    """Normalize `31.12.2020` or `12/31/2020`. A date with slashes stays as it is if day and month are ambiguous."""
    first, second = int(found[1]), int(found[3])
    if found[2] == "." or (first > _LAST_MONTH) or first == second:
        return _date(found, found[1], found[3], found[4])
    return _date(found, found[3], found[1], found[4]) if second > _LAST_MONTH else found[0]


def _han(found: re.Match[str]) -> str:
    head, numeral, following = found[1] or "", found[2], found[3] or ""
    if len(numeral) == 1 and not head and (following or "。") not in (_COUNTED_ONE if numeral == "一" else _COUNTED):
        return found[0]
    if (value := _han_value(numeral)) is None:
        return found[0]
    return f"{' ' if head == '百分之' else head} {value} {'percent ' if head == '百分之' else ''}"


def _han_value(numeral: str) -> int | None:
    """The value of a Chinese numeral; None if it isn't one, such as 七八."""
    if len(numeral) > _LONGEST_FIGURE:
        return None
    digits = [_HAN_DIGITS.get(char) for char in numeral]
    if len(numeral) > 1 and None not in digits:
        return int("".join(map(str, digits))) if len(numeral) == 4 or set("〇零") & set(numeral) else None
    total = section = 0
    digit: int | None = None
    for char, value in zip(numeral, digits, strict=True):
        if value is not None:
            if digit:
                return None
            digit = value
        elif char in _HAN_UNITS:
            section += (1 if digit is None else digit) * _HAN_UNITS[char]
            digit = None
        else:
            section += digit or 0
            total, section, digit = (total + (section or 1)) * _HAN_SCALES[char], 0, None
    return total + section + (digit or 0)
