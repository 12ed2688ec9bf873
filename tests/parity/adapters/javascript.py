"""A JavaScript pattern in Python's words. What Python cannot express stays as it is."""

from __future__ import annotations

import re

from evalstone.scorers.text import WHITE

LINE_ENDS = r"\n\r\u2028\u2029"
WORD = "A-Za-z0-9_"


def _outside(characters: str) -> str:
    """The ranges of a class with all characters but these."""
    gaps: list[str] = []
    start = 0
    for code in [*sorted(map(ord, characters)), 0x110000]:
        if start < code:
            gaps.append(f"\\U{start:08x}-\\U{code - 1:08x}")
        start = code + 1
    return "".join(gaps)


SETS = {
    "d": "0-9",
    "D": r"\x00-/:-\U0010ffff",
    "w": WORD,
    "W": r"\x00-/:-@\[-\^`{-\U0010ffff",
    "s": "".join(f"\\u{ord(char):04x}" for char in WHITE),
    "S": _outside(WHITE),
}
"""What stands for a set inside a class: there is no way to exclude in it."""
TOKEN = re.compile(
    r"""(?P<named>\\k<(?P<reference>\w+)>) | (?P<point>\\u\{(?P<hex>[0-9A-Fa-f]+)\})
    | (?P<control>\\c(?P<letter>[A-Za-z])) | (?P<escape>\\.)
    | (?P<group>\(\?<(?![=!])) | (?P<class>\[\^?(?:\\.|[^\]\\])*\]) | (?P<brace>\{(?!\d+(?:,\d*)?\}))
    | (?P<end>\$) | (?P<start>\^) | (?P<dot>\.)""",
    re.VERBOSE | re.DOTALL,
)
IN_CLASS = re.compile(r"(?P<point>\\u\{(?P<hex>[0-9A-Fa-f]+)\})|(?P<escape>\\.)|(?P<plain>[\[&~|])", re.DOTALL)


def python_pattern(source: str, flags: str) -> str:
    """The pattern with the flags but `i` worked into it: sets are ASCII, white space and line ends are JavaScript's."""
    named = "(?<" in source
    lines = "m" in flags
    words = {
        "dot": r"[\s\S]" if "s" in flags else f"[^{LINE_ENDS}]",
        "end": f"(?![^{LINE_ENDS}])" if lines else r"\Z",
        "start": f"(?<![^{LINE_ENDS}])" if lines else r"\A",
        "group": "(?P<",
        "brace": r"\{",
    }

    def put(found: re.Match[str]) -> str:
        kind = found.lastgroup if found.lastgroup in words else ""
        if kind:
            return words[kind]
        if found["named"]:
            return f"(?P={found['reference']})" if named else found["named"][1:]
        if found["control"]:
            return re.escape(chr(ord(found["letter"]) % 32))
        if found["class"]:
            return _class(found["class"], unicode="u" in flags)
        if found["point"]:
            return re.escape(chr(int(found["hex"], 16))) if "u" in flags else found["point"][1:]
        return _escape(found.group(), unicode="u" in flags)

    pattern = TOKEN.sub(put, source)
    return rf"\A(?:{pattern})" if "y" in flags else pattern


def _escape(escape: str, *, unicode: bool) -> str:
    """An escape outside a class."""
    letter = escape[1:2]
    if letter in SETS:
        return f"[{SETS[letter]}]"
    if letter == "b":
        return f"(?:(?<![{WORD}])(?=[{WORD}])|(?<=[{WORD}])(?![{WORD}]))"
    if letter == "B":
        return f"(?:(?<![{WORD}])(?![{WORD}])|(?<=[{WORD}])(?=[{WORD}]))"
    return _letter(escape, unicode=unicode)


def _letter(escape: str, *, unicode: bool) -> str:
    """An escaped letter that means nothing is itself."""
    nothing = len(escape) == 2 and escape[1].isascii() and escape[1].isalpha() and escape[1] not in "fnrtvux"
    return escape[1:] if nothing and not unicode else escape


def _class(source: str, *, unicode: bool) -> str:
    if source in {"[]", "[^]"}:
        return r"[\s\S]" if source == "[^]" else "(?!)"

    def put(found: re.Match[str]) -> str:
        if found["plain"]:
            return "\\" + found["plain"]
        if found["point"] and unicode:
            return re.escape(chr(int(found["hex"], 16)))
        letter = found.group()[1]
        if letter in SETS:
            return SETS[letter]
        return found.group() if letter == "b" else _letter(found.group(), unicode=unicode)

    opening = 2 if source.startswith("[^") else 1
    return source[:opening] + IN_CLASS.sub(put, source[opening:-1]) + "]"
