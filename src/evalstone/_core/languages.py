"""The language of a text, by its function words or its script. Nothing is downloaded.

Of Latin letters, seven languages are told apart. Of eleven others, it is only told that they aren't English.
"""

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
_FEWEST = 2
"""The least number of words that tell a language."""
_LEAD = 1.5
"""How many times as many words a language has as the next one, at least."""
_LEAST = 0.1
"""The least share of the words of a text that tell its language."""
_MORE = {
    "de": "ich wir sie ihr wie oder aus bei nach wenn dann kann können muss dass daß nur noch über einen einem durch "
    "werden wurden vom zum zur bitte diese dieser dieses unter alle",
    "fr": "je vous nous ne ou si tout comme ses leur être fait peut peuvent doit aucun aucune lors entre sans cet "
    "ces très aussi même ni à",
    "es": "si esta este estos sin sobre ser puede pueden está están muy porque cuando desde hay donde todos todas esto "
    "ya ni sólo solo debe",
    "it": "al nei sul sulla dal dalla ai alle questo questa come più può essere anche perché quando dove sia hanno "
    "ogni tutti tutte deve molto ma",
    "pt": "os você seu sua ser pode podem está muito quando onde este esta pelo pela nos nas mas porque também já sem "
    "todos deve há",
    "nl": "ik je u kan kunnen worden wordt als deze dit geen maar of meer nog naar hebben heeft moet tot tussen "
    "wanneer alle alleen",
    # Swedish, Danish, Norwegian; Polish, Czech; Turkish, Finnish; Indonesian, Vietnamese; Romanian, Hungarian
    "latin": "och är av inte ett att har jag efter eftersom som og på ikke fra blev også kan når det den du för med "
    "till jest nie się że oraz lub przez dla już która które jak jsou není už jako který nebo aby při byl musí pro "
    "na se ve bir için ile çok değil gibi daha olarak ama çünkü bu olan ole ei on joka ovat sekä myös mutta koska "
    "että hän oli tai jos vain yang itu adalah dengan untuk dari tidak pada dalam merupakan karena dan atau ini jika "
    "akan là và của có không các được cho một khi này este și cel din nu pentru sunt sau care cu az és egy hogy nem "
    "csak vagy mert ezt",
}
_KNOWN = {name: LANGUAGES.get(name, frozenset()) | frozenset(more.split()) for name, more in _MORE.items()}
_WORDS = {word: [name for name in _KNOWN if word in _KNOWN[name]] for words in _KNOWN.values() for word in words}
"""The languages of function words, without English."""
_SHARED = frozenset(
    word
    for words in (
        # in English texts, also as nouns and verbs
        "a al an as at be by die door era for from had has hat have he i if in is it me met no not of on over per plus",
        "pour par so than that to war was we with all alle den fait ma solo sin tot tout under unter sans",
        # in names, addresses and dishes
        "alla au aux da das de dei del della delle der des di do dos du e el em en et gli la las le les lo los na o",
        "van von y zu à ai dal sul",
        # in code and lists of languages
        "bu cu es er ei je kan nu ole on os pro se si te u ve dan tai",
    )
    for word in words.split()
)
"""Words that don't tell a language: they are also written in texts of another one."""
_EDGES = "\"'.,;:!?()[]“”„«»…¿¡’"


def language_of(text: str) -> str:
    """The language at the start of a text: a key of `LANGUAGE_NAMES`; "" if it is unclear.

    Languages in Latin letters are told by their function words, of which at least one isn't also written in texts of
    other languages; all others by their script alone. Lists of names, code, commands, products and addresses, and texts
    of a few words have no language. Of single sentences of the six languages named besides English, up to a fifth are
    unclear; of other languages, up to four fifths.
    """
    text = text[:_READ]
    if not text.isascii():
        others = _LATIN.sub("", text)
        if len(others) > _MOST_FOREIGN * len(text):
            return _script(others[:_LETTERS])
    counts: dict[str, int] = {}
    found: dict[str, set[str]] = {}
    own: dict[str, set[str]] = {}
    accented: set[str] = set()
    stopwords = english = 0
    words = text.split()
    for edged in words:
        word = edged.strip(_EDGES)
        lower = word.lower()
        shared = lower in _SHARED
        if lower in STOPWORDS:
            stopwords += lower in LANGUAGES["en"]
            english += not shared
            continue
        names = _WORDS.get(lower, ())
        for name in names:
            counts[name] = counts.get(name, 0) + 1
        if word != lower:  # capitalized words are those of names
            continue
        for name in names:
            found.setdefault(name, set()).add(lower)
            if not shared:
                own.setdefault(name, set()).add(lower)
        if not names and not lower.isascii() and lower.isalpha():
            accented.add(lower)
    if own:
        most = max(len(accented.union(*own.values())), *(len(known) - 1 for known in found.values()))
        if most >= max(_FEWEST, _LEAD * english, _LEAST * len(words)):
            return _first({name: counts[name] for name in own}) or "latin"
    return "en" if stopwords >= max(_FEWEST, _LEAD * max(counts.values(), default=0)) else ""


def is_foreign(language: str) -> bool:
    """Whether a language that `language_of` tells isn't English. False if it is unclear."""
    return language not in ("en", "")


def _first(counts: Mapping[str, int]) -> str:
    """The language with the most words; "" if they are too few or too many of another one."""
    first, second, *_ = (*sorted(counts.values(), reverse=True), 0, 0)
    return max(counts, key=lambda name: counts[name]) if first >= _FEWEST and first >= _LEAD * second else ""


def _script(letters: str) -> str:
    counts = Counter(match.lastgroup or "" for match in SCRIPTS.finditer(letters))
    if counts["kana"] and counts["han"]:
        return "kana"
    return max(counts, key=lambda name: counts[name], default="")
