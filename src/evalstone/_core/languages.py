"""The language of a text, by its function words or its script. Nothing is downloaded, and seven languages are known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from evalstone._core.text import STOPWORDS

LANGUAGES = {
    name: frozenset(words.split())
    for name, words in {
        "en": "the of and to is was were are that for with by on at from this which it has have be been not or as an "
        "in",
        "de": "der die das und ist war den dem des ein eine einer nicht mit von zu für auf im sich auch wird wurde "
        "sind hat haben kein keine",
        "fr": "le la les des et est une un du dans que qui pour par sur avec pas au aux ce cette sont été plus il elle",
        "es": "el la los las de y es que en un una por con para del se no su al como fue son más lo era",
        "it": "il lo la gli le di e è che un una per con del della nel non si da sono stato era dei delle alla",
        "pt": "o a os as de e é que em um uma por com para do da no na não se foi são dos das mais ao",
        "nl": "de het een en van is was dat in op te met voor niet zijn aan door ook werd er bij uit naar om",
    }.items()
}
LANGUAGES_OF = {
    word: [name for name, known in LANGUAGES.items() if word in known] for words in LANGUAGES.values() for word in words
}
SCRIPTS = re.compile(
    r"(?P<latin>[A-Za-z\u00c0-\u024f])|(?P<greek>[\u0370-\u03ff])|(?P<cyrillic>[\u0400-\u052f])"
    r"|(?P<hebrew>[\u0590-\u05ff])|(?P<arabic>[\u0600-\u06ff])|(?P<indic>[\u0900-\u0dff])|(?P<thai>[\u0e00-\u0e7f])"
    r"|(?P<kana>[\u3040-\u30ff])|(?P<han>[\u3400-\u9fff])|(?P<hangul>[\uac00-\ud7af])"
)
LANGUAGE_NAMES: Mapping[str, str] = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "it": "Italian",
    "pt": "Portuguese",
    "nl": "Dutch",
    "latin": "another language in Latin letters",
    "greek": "Greek",
    "cyrillic": "a language in Cyrillic letters",
    "hebrew": "Hebrew",
    "arabic": "a language in Arabic letters",
    "indic": "a language in a script of India",
    "thai": "Thai",
    "kana": "Japanese",
    "han": "Chinese",
    "hangul": "Korean",
    "": "unclear, such as short answers",
}
"""What `language_of` tells apart."""
_READ = 240
"""The characters that are read: it is enough for a sentence, and takes some ten microseconds."""
_LETTERS = 20
_LATIN = re.compile("[\x00-\u024f\u1e00-\u1eff\u2000-\u206f\u20a0-\u20bf]+")
_MOST_FOREIGN = 0.3
_FEWEST_WORDS = 8
_FEWEST_SHARED = 3
_FEWEST_COMMON = 0.12
"""The least share of common English words among those of an English text."""


def language_of(text: str) -> str:
    """The language at the start of a text: a key of `LANGUAGE_NAMES`; "" if it is unclear.

    Languages in Latin letters are told apart by function words, all others by their script alone. A list of names has
    no language. Texts of a few words are unclear in Latin letters.
    """
    text = text[:_READ]
    if not text.isascii():
        others = _LATIN.sub("", text)
        if len(others) > _MOST_FOREIGN * len(text):
            return _script(others[:_LETTERS])
    words = text.lower().split()
    counts: dict[str, int] = {}
    for word in words:
        for name in LANGUAGES_OF.get(word, ()):
            counts[name] = counts.get(name, 0) + 1
    if counts:
        first, second, *_ = (*sorted(counts.values(), reverse=True), 0)
        if first >= 2 and first >= 1.5 * second:
            return max(counts, key=lambda name: counts[name])
        if first >= _FEWEST_SHARED and "en" not in counts:  # related languages share words
            return "latin"
    if len(words) < _FEWEST_WORDS or text.count(",") * 4 >= len(words):
        return ""
    common = sum(word in STOPWORDS for word in words)
    return "latin" if common < _FEWEST_COMMON * len(words) and len(counts) < 2 else ""


def is_foreign(language: str) -> bool:
    """Whether a language that `language_of` tells isn't English. False if it is unclear."""
    return language not in ("en", "")


def _script(letters: str) -> str:
    counts = Counter(match.lastgroup or "" for match in SCRIPTS.finditer(letters))
    if counts["kana"] and counts["han"]:
        return "kana"
    return max(counts, key=lambda name: counts[name], default="")
