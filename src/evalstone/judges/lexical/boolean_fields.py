"""Fields that are true or false in a structured source, and the claims that tell them the other way round."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evalstone._core.text import tokens
from evalstone.judges.lexical.normalization import evened, flag
from evalstone.judges.lexical.tokens import content, stems_of

LAST_WORDS = 3
MOST_FLAGS = 400
# Words that hold fields together and say nothing of any one.
_CONTAINERS = frozenset(
    stems_of(("attributes", "properties", "features", "details", "options", "metadata", "info", "data", "settings"))
)

_PART = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|[,;:.!?()]")
_DENIALS = frozenset(
    {"not", "no", "without", "nor", "neither", "lacks", "lack", "lacking", "cannot", "unavailable", "never"}
)
_TURNS = frozenset({"but", "however", "although", "while", "though", "whereas", ";", ".", "(", "despite", "except"})
_VERBS = frozenset(
    "is are was were has have had offers offer provides provide does do accepts accept takes take allows allow".split()  # noqa: SIM905
)
_COPULAS = frozenset({"is", "are", "was", "were"})


@dataclass(frozen=True, slots=True)
class Flag:
    """A field that is true or false: its line, the stems that name it, its last two words written as one, and which."""

    line: str
    stems: frozenset[str]
    joined: str
    is_true: bool


def flags_of(lines: Iterable[str]) -> tuple[Flag, ...]:
    """The fields of some lines that are true or false, named by what sets them apart from the other fields."""
    found: list[tuple[str, list[str], bool]] = []
    for line in lines:
        said = flag(line)
        if said is not None and len(found) < MOST_FLAGS:
            low = [word.lower() for word in tokens(evened(said[0]))]
            found.append((line, low[-LAST_WORDS:], said[1]))
    stems = [content(stems_of(low)) - _CONTAINERS for _, low, _ in found]
    counts = Counter(item for some in stems for item in some)
    made: list[Flag] = []
    for (line, low, is_true), some in zip(found, stems, strict=True):
        own = frozenset(item for item in some if counts[item] == 1) | frozenset(stems_of(low[-1:]))
        made.append(Flag(line, own, "".join(low[-2:]) if len(low) > 1 else "", is_true))
    return tuple(one for one in made if one.stems)


def told_otherwise(text: str, words: frozenset[str], flags: Sequence[Flag]) -> tuple[Flag, ...]:
    """The fields that a claim tells the other way round. words: the claim's stems."""
    named = [one for one in flags if one.stems <= words or one.joined in words]
    if not named:
        return ()
    off = denied_words(text)
    return tuple(one for one in named if bool((one.stems | {one.joined}) & off) == one.is_true)


def denied_words(text: str) -> frozenset[str]:
    """The stems that a sentence says are not: what follows a "no" or "not" up to a turn such as "but", and what stands
    before "is not" or "are not" in the same clause or list."""
    parts = [part.lower() for part in _PART.findall(evened(text))]
    off: set[int] = set()
    until_turn = False
    for place, part in enumerate(parts):
        if part in _TURNS:
            until_turn = False
        elif part in _DENIALS or part.endswith(("n't", "n’t")):
            until_turn = True
            before = place - 1 - (place > 1 and parts[place - 1] in ("also", "currently"))
            if before >= 0 and (parts[before] in _COPULAS or part in ("isn't", "aren't")):
                off.update(_subject(parts, before))
        elif part == "," and _clause_follows(parts, place):
            until_turn = False
        elif until_turn:
            off.add(place)
    return frozenset(stems_of(parts[place] for place in sorted(off)))


def _subject(parts: Sequence[str], end: int) -> Iterable[int]:
    """The places of the subject that ends before a verb, with the list that it is the end of."""
    for place in range(end - 1, -1, -1):
        part = parts[place]
        if part in _TURNS or part in _VERBS or part in _DENIALS:
            return
        yield place


def _clause_follows(parts: Sequence[str], place: int) -> bool:
    """Whether a comma begins a clause with a verb of its own before the next comma."""
    for part in parts[place + 1 : place + 8]:
        if part in (",", "or", "nor") or part in _TURNS:
            return False
        if part in _VERBS:
            return True
    return False
