"""The words for yes and no, and what takes them back, in the languages in which replies are read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Words(NamedTuple):
    """The words of one language, in lower case."""

    yes: tuple[str, ...]
    no: tuple[str, ...]
    wrong: tuple[str, ...]
    """What takes back a yes if a clause says nothing else."""
    right: tuple[str, ...]
    """What takes back a no, likewise."""
    hedges: tuple[str, ...]
    """What restricts a verdict at the beginning of the next clause."""
    fillers: tuple[str, ...] = ()
    spaced: bool = True
    """Whether spaces separate words."""


LANGUAGES: Mapping[str, Words] = {
    "English": Words(
        ("yes",),
        ("no",),
        ("wrong", "incorrect", "false", "not correct", "not right", "not true", "not really", "not quite"),
        ("correct", "right", "true"),
        (
            *("but", "however", "although", "though", "except", "partly", "partially", "mostly", "only", "somewhat"),
            *("yet", "in part", "not entirely", "not fully"),
        ),
        ("and", "or", "also", "then", "well", "wait", "actually", "rather", "maybe", "perhaps", "sorry", "hmm", "so"),
    ),
    "German": Words(
        ("ja",),
        ("nein",),
        ("falsch", "nicht richtig", "nicht korrekt", "stimmt nicht", "doch nicht"),
        ("richtig", "korrekt", "stimmt", "doch"),
        (
            *("aber", "jedoch", "allerdings", "obwohl", "außer", "ausser", "teilweise", "teils", "nur", "zum teil"),
            *("eher", "wobei"),
        ),
        ("und", "oder", "doch", "also", "naja"),
    ),
    "French": Words(
        ("oui",),
        ("non",),
        ("faux", "incorrect", "pas correct", "pas vrai", "pas vraiment"),
        ("vrai", "correct", "exact", "si"),
        (
            *("mais", "cependant", "toutefois", "pourtant", "néanmoins", "sauf", "partiellement", "en partie"),
            *("seulement", "bien que", "quoique"),
        ),
        ("et", "ou"),
    ),
    "Spanish": Words(
        ("sí", "si"),
        ("no",),
        ("falso", "incorrecto", "no es correcto", "no es cierto"),
        ("cierto", "correcto", "verdadero"),
        (
            *("pero", "aunque", "sin embargo", "no obstante", "salvo", "excepto", "parcialmente", "en parte"),
            *("solo", "sólo", "mas"),
        ),
        ("y", "o"),
    ),
    "Italian": Words(
        ("sì", "si"),
        ("no",),
        ("falso", "sbagliato", "errato", "non è corretto", "non è vero"),
        ("vero", "giusto", "corretto"),
        (
            *("ma", "però", "tuttavia", "anche se", "sebbene", "eccetto", "tranne", "parzialmente", "in parte"),
            *("solo", "soltanto"),
        ),
        ("e", "o", "oppure"),
    ),
    "Portuguese": Words(
        ("sim",),
        ("não", "nao"),
        ("errado", "falso", "incorreto", "não é verdade", "não está certo"),
        ("certo", "correto", "verdade"),
        (
            *("mas", "porém", "contudo", "todavia", "no entanto", "embora", "exceto", "parcialmente", "em parte"),
            *("só", "apenas"),
        ),
        ("e", "ou"),
    ),
    "Dutch": Words(
        ("ja",),
        ("nee",),
        ("fout", "onjuist", "niet juist", "klopt niet"),
        ("juist", "klopt", "goed"),
        ("maar", "echter", "hoewel", "behalve", "gedeeltelijk", "deels", "alleen", "al"),
        ("en", "of"),
    ),
    "Russian": Words(
        ("да",),
        ("нет",),
        ("неверно", "неправильно", "не верно", "не совсем"),
        ("верно", "правильно"),
        ("но", "однако", "хотя", "кроме", "частично", "отчасти", "только"),
        ("и", "или"),
    ),
    "Chinese": Words(
        ("是", "是的", "对", "对的"),
        ("否", "不", "不是", "不是的"),
        ("不对", "错", "错误", "不正确", "不完全", "并不对", "并非如此"),
        ("正确", "没错"),
        ("但", "但是", "不过", "然而", "可是", "只是", "虽然", "尽管", "部分", "除了"),
        spaced=False,
    ),
    "Japanese": Words(
        ("はい",),
        ("いいえ",),
        ("違います", "違う", "ちがいます", "間違いです", "正しくありません", "正しくない"),
        ("正しいです", "正しい", "そうです"),
        ("しかし", "ただし", "でも", "ですが", "だが", "けれど", "けど", "とはいえ", "一部", "部分的"),
        spaced=False,
    ),
    "Korean": Words(
        ("네", "예"),
        ("아니요", "아니오", "아니"),
        ("틀렸습니다", "틀립니다", "아닙니다"),
        ("맞습니다", "맞아요"),
        ("하지만", "그러나", "그렇지만", "그런데", "다만", "부분적으로"),
    ),
}
"""The languages, by their English name."""


def _all(words: Iterable[Iterable[str]]) -> frozenset[str]:
    return frozenset(word for each in words for word in each)


YES = _all(words.yes for words in LANGUAGES.values())
NO = _all(words.no for words in LANGUAGES.values())
FILLERS = _all(words.fillers for words in LANGUAGES.values())
TAKES_BACK: Mapping[bool, frozenset[str]] = {
    True: NO | _all(words.wrong for words in LANGUAGES.values()),
    False: YES | _all(words.right for words in LANGUAGES.values()),
}
"""What takes back a yes (True) and a no (False) if a clause says nothing else."""


def _pattern(words: Mapping[str, Iterable[str]]) -> str:
    """A pattern for the words of some languages, the longest first."""
    spaced = {word for name, each in words.items() if LANGUAGES[name].spaced for word in each}
    joined = {word for name, each in words.items() if not LANGUAGES[name].spaced for word in each}
    first, second = ("|".join(sorted(map(re.escape, each), key=len, reverse=True)) for each in (spaced, joined))
    return rf"(?:(?:{first})(?!\w)|(?:{second}))"


HEDGE = re.compile(_pattern({name: words.hedges for name, words in LANGUAGES.items()}))
"""A hedge at the beginning of a clause in lower case."""
OPENING = re.compile(r"\W*" + _pattern({name: (*words.yes, *words.no) for name, words in LANGUAGES.items()}), re.I)
"""A yes or no at the beginning of a text."""
