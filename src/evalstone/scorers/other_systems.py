"""The names that other systems use, and what to use here instead.

`data/SYSTEM.txt` begins with the title of the system and its other names: `Title | name, name`. Sections follow, which
begin with the kind of their names in brackets: scorer, function, command, setting, page, or `option of SCORER, …`, with
"every scorer" for the options of all scorers. A line is `theirs | ours | difference`:

- theirs: one or several names. A name that ends in "…" stands for all that begin like it.
- ours: as a user writes it: a scorer, a parameter of a scorer, an option of `evalstone run`, a command, a call or
  a name in Python, or a page of the documentation; " or " separates alternatives. "-" means none; the difference
  then says why.
  Semicolons separate the counterparts of several names. SCORER is any scorer's name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files

from evalstone.errors import near

SYSTEMS = (
    *("mastra", "spring", "ragas", "deepeval", "promptfoo", "inspect", "mlflow", "phoenix", "openai-evals", "lm-eval"),
    *("opik", "langsmith", "trulens"),
)
"""The systems whose names are known."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_IMPORT = re.compile(r"(?:from\s+\S+\s+)?import\s+(?:type\s+)?\{?([^}]+?)\}?(?:\s+from\s+.*)?", re.DOTALL)
_EXTENSION = re.compile(r"(?<=[\w*])\.(?:ya?ml|jsonl?|csv|py|[jt]s|toml|txt)$")
_LAUNCHER = re.compile(r"(?:\$ |(?:npx|pnpm|uvx|uv run|python -m) |new )+")
_AFFIXES = {"create", "make", "new", "get", "metric", "scorer", "evaluator", "grader", "llm", "code", "score", "async"}
"""Words at the ends of a name that don't tell names apart: `createBiasScorer`, `BiasMetric`."""
_NO_WORDS = frozenset(
    (
        *("a", "an", "and", "do", "for", "from", "how", "i", "import", "in", "is"),
        *("my", "of", "or", "the", "to", "use", "what"),
    )
)
_SHORTEST = 6
"""The fewest letters that are looked for within names."""
_ONE_NAME = 3
"""The likeness of two spellings of one name."""
_NO_PLURALS = {"alias", "always", "bias", "canvas", "pandas", "ragas", "series"}


@dataclass(frozen=True)
class Counterpart:
    """A name of another system, and what to use here."""

    kind: str
    """scorer, option, function, command, setting or page."""
    theirs: str
    ours: str = ""
    """As a user writes it; "" if there is none, and then `difference` says why."""
    difference: str = ""
    of: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of an option: their scorers or calls that take it, and our scorer for each, "" without one."""

    @property
    def owners(self) -> str:
        """The scorers or calls that take an option, as text: `createToneScorer = tone_consistency`."""
        return ", ".join(f"{theirs} = {ours}" if ours else theirs for theirs, ours in self.of.items())

    @property
    def is_common(self) -> bool:
        """Whether every scorer of the system takes the option."""
        return any(owner.startswith("every ") for owner in self.of)

    @cached_property
    def name(self) -> Name:
        """The name of theirs, to be compared with others."""
        return Name(self.theirs)


class Name:
    """A name in any of its spellings: `createFaithfulnessScorer`, `create-faithfulness-scorer`, `checks.tool_order`."""

    def __init__(self, text: str) -> None:
        bare_text = _EXTENSION.sub("", bare(text))  # `tests.yaml` is about tests
        self.is_prefix = bare_text.endswith("…")
        self.text = " ".join(text.lower().split())
        self.words = words(bare_text)
        self.key = "".join(self.words)
        self.last = "".join(words(re.split(r"[./:](?=\w)", bare_text)[-1]))
        self.core = "".join(_core(self.words))

    def likeness(self, other: Name) -> int:
        """How alike two names are: 3 for one name, 2 for one without the module, 1 for one without affixes, 0 for
        others."""
        if not self.key or not other.key:
            return 0
        if self.key == other.key:
            return _ONE_NAME
        if self.last in (other.key, other.last) or other.last == self.key:
            return 2
        return 1 if self.core == other.core else 0


def bare(name: str) -> str:
    """A name without version, publisher and arguments: `BiasMetric (0.13)` is BiasMetric."""
    return name.partition("(")[0].strip(" \t\n\"'`;:,")


def words(text: str) -> tuple[str, ...]:
    """The words of a name in lower case, as singulars: `extractToolCalls` has extract, tool and call."""
    return tuple(map(_singular, _written_words(re.sub(r"(?<=LLM)s\b", "", text))))


def _written_words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")) or word in _NO_PLURALS:
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("sses", "xes", "shes", "tches", "rches")) else word[:-1]


def _core(name: Sequence[str]) -> Sequence[str]:
    start, end = 0, len(name)
    while end - start > 1 and name[end - 1] in _AFFIXES:
        end -= 1
    while end - start > 1 and name[start] in _AFFIXES:
        start += 1
    return name[start:end]


# ---- Tables ----


@cache
def table(system: str) -> tuple[Counterpart, ...]:
    """The names of a system."""
    _, lines = _read(system)
    rows: list[Counterpart] = []
    ours: dict[str, str] = {}
    kind, owners = "", list[str]()
    for line in filter(None, lines):
        if line.startswith("["):
            kind, _, of = line.strip("[]").partition(" of ")
            owners = of.split(", ") if of else []
            continue
        theirs, forms, *difference = line.split(" | ")
        names, separate = theirs.split(", "), ("" if forms == "-" else forms).split("; ")
        for name, form in zip(names, separate if len(separate) > 1 else separate * len(names), strict=True):
            if kind == "scorer":
                ours[name] = form.partition("(")[0]
            rows.append(Counterpart(kind, name, form, *difference, of={of: ours.get(of, "") for of in owners}))
    return tuple(rows)


def title(system: str) -> str:
    """The name of a system as it writes it."""
    return _read(system)[0].partition(" | ")[0]


def system_named(text: str) -> str | None:
    """The system with this name, or the name of one of its packages; None if none has it."""
    wanted = "".join(_written_words(text))
    for system in SYSTEMS:
        names, _, others = _read(system)[0].partition(" | ")
        if wanted and wanted in ("".join(_written_words(name)) for name in (system, names, *others.split(", "))):
            return system
    return None


def _read(system: str) -> tuple[str, list[str]]:
    first, *lines = files("evalstone.scorers").joinpath(f"data/{system}.txt").read_text("utf-8").splitlines()
    return first, lines


# ---- Looking up ----


def lookup(system: str, text: str) -> list[Counterpart]:
    """What a system's user means by a text, the nearest first.

    The text is one or several names in any spelling, also with their module or as an import, or words that occur in
    names. A scorer or call comes with its options. Empty if nothing fits.
    """
    found: list[Counterpart] = []
    for name in _names(text):
        found += [row for row in _named(system, name) if row not in found]
    return found


def guesses(system: str, text: str) -> list[str]:
    """The names of a system that are most like a text."""
    return near(text, {bare(name) for row in table(system) for name in (row.theirs, *row.of)})


def _names(text: str) -> list[str]:
    """The names in an import; else the text itself."""
    if imported := _IMPORT.fullmatch(text.strip()):
        return [part.split(" as ")[0].strip(" ();") for part in imported[1].split(",") if part.strip(" ();")]
    return [_LAUNCHER.sub("", text.strip())]


def _named(system: str, text: str) -> list[Counterpart]:
    rows, name = table(system), Name(text)
    for find in FINDERS:
        if found := find(rows, name, text):
            return found
    return []


def _exactly(rows: Sequence[Counterpart], name: Name, text: str) -> list[Counterpart]:
    """The rows of this very name, and the options of what has it."""
    found = [row for row in rows if row.name.text == name.text] or _most_alike(rows, name, 2)
    if found and all(row.kind == "option" for row in found):
        found += _most_alike([row for row in rows if row.kind != "option"], name, 1)
    return _with_options(rows, found) if found else _options_of(rows, name, 2)


def _alike(rows: Sequence[Counterpart], name: Name, text: str) -> list[Counterpart]:
    """The rows of this name but for its affixes, and the options of what has it."""
    return _with_options(rows, _most_alike(rows, name, 1))


def _most_alike(rows: Sequence[Counterpart], name: Name, at_least: int) -> list[Counterpart]:
    likeness = [row.name.likeness(name) for row in rows]
    most = max(likeness, default=0)
    return [row for row, one in zip(rows, likeness, strict=True) if one == most >= at_least]


def _options_of(rows: Sequence[Counterpart], name: Name, at_least: int) -> list[Counterpart]:
    return [row for row in rows if any(Name(owner).likeness(name) >= at_least for owner in row.of)]


def _with_options(rows: Sequence[Counterpart], found: list[Counterpart]) -> list[Counterpart]:
    names = {row.theirs for row in found if row.kind != "option"}
    own = [row for row in rows if not names.isdisjoint(row.of)]
    common = [row for row in rows if row.is_common and any(each.kind == "scorer" for each in found)]
    return [*found, *(row for row in (*own, *common) if row not in found)]


def _of_owner(rows: Sequence[Counterpart], name: Name, text: str) -> list[Counterpart]:
    """The options that are meant by a scorer or call and an option: `GEval criteria`, `deepeval test run --repeat`."""
    parts = text.replace(".", " ").split()
    for place in range(1, len(parts)):
        owner, option = Name(" ".join(parts[:place])), Name(" ".join(parts[place:]))
        is_scorer = any(row.kind == "scorer" and row.name.likeness(owner) for row in rows)
        found = [
            row
            for row in rows
            if row.name.likeness(option)
            and ((row.is_common and is_scorer) or any(Name(each).likeness(owner) for each in row.of))
        ]
        if found:
            return found
    return []


def _beginning_like(rows: Sequence[Counterpart], name: Name, text: str) -> list[Counterpart]:
    """The row of all names that begin like this one, with what the rest means: `not-contains`."""
    for row in rows:
        if row.name.is_prefix and name.words[: len(row.name.words)] == row.name.words:
            rest = bare(text)[len(bare(row.theirs)) - 1 :]
            return [row, *_most_alike(rows, Name(rest), 2)]
    return []


def _command_line(rows: Sequence[Counterpart], name: Name, text: str) -> list[Counterpart]:
    """The command before flags or files, after its options that follow: `inspect eval a.py --limit 9`."""
    parts = text.split()
    for end in range(len(parts) - 1, 0, -1):
        command = Name(" ".join(parts[:end])).text
        flags = [Name(part.partition("=")[0]) for part in parts[end:] if part.startswith("-")]
        found = [row for row in rows if row.name.text == command]
        if found and (flags or re.search(r"[./]", parts[end])):
            own = [row for row in rows if any(Name(owner).text == command for owner in row.of)]
            return [*(row for row in own if any(row.name.likeness(flag) == 3 for flag in flags)), *found]
    return []


def _with_words(rows: Sequence[Counterpart], name: Name, text: str) -> list[Counterpart]:
    """The rows whose names have all the words."""
    wanted = _telling(name)
    return [row for row in rows if wanted and all(_has(row.name.words, word) for word in wanted)]


def _spelled_within(rows: Sequence[Counterpart], name: Name, text: str) -> list[Counterpart]:
    """The rows whose names have the letters in a row, wherever words end: `few shot`."""
    return [row for row in rows if len(name.key) >= _SHORTEST and name.key in row.name.key]


def _word_by_word(rows: Sequence[Counterpart], name: Name, text: str) -> list[Counterpart]:
    """The rows of several names, if each word is one."""
    parts = [part for part in text.split() if words(part) and not _NO_WORDS.issuperset(words(part))]
    found = [_most_alike(rows, Name(part), 1) for part in parts]
    if len(parts) < 2 or not all(found):
        return []
    return list({(row.theirs, row.owners): row for each in found for row in each}.values())


def _in_text(rows: Sequence[Counterpart], name: Name, text: str) -> list[Counterpart]:
    """The rows that have all the words anywhere."""
    wanted = _telling(name)

    def mentioned(row: Counterpart) -> Iterable[str]:
        return words(" ".join((row.theirs, row.ours, row.difference, *row.of)))

    return [row for row in rows if wanted and all(_has(mentioned(row), word) for word in wanted)]


def _telling(name: Name) -> list[str]:
    """The words of a name that tell it from others."""
    return [word for word in name.words if word not in _NO_WORDS | _AFFIXES]


def _most_words(rows: Sequence[Counterpart], name: Name, text: str) -> list[Counterpart]:
    """The rows whose names have most of the words, and at least half of them."""
    wanted = _telling(name) if " " in text else []
    counts = [sum(_has(row.name.words, word) for word in wanted) for row in rows]
    most = max(counts, default=0)
    return [row for row, count in zip(rows, counts, strict=True) if 2 * most >= len(wanted) > 1 and count == most]


def _has(known: Iterable[str], word: str) -> bool:
    """Whether one of the words is this one, or begins like it: `trace` and `tracing`, `json` and `jsonl`."""
    stem = _stem(word)
    return any(each == word or (len(stem) > 3 and _stem(each).startswith(stem)) for each in known)


def _stem(word: str) -> str:
    return re.sub(r"(?<=\w{4})(?:ing|ions?|ors?|ers?|ed|es?|y)$", "", word)


FINDERS = (
    _beginning_like,
    _command_line,
    _exactly,
    _of_owner,
    _alike,
    _with_words,
    _spelled_within,
    _word_by_word,
    _in_text,
    _most_words,
)
"""What is tried in turn until something is found: the surest first."""


# ---- In messages ----


def counterparts(name: str) -> list[tuple[str, Counterpart]]:
    """The scorers of other systems that have this name, each with its system."""
    wanted = Name(name)
    return [
        (system, row)
        for system in SYSTEMS
        for row in table(system)
        if row.kind == "scorer" and row.name.likeness(wanted) == _ONE_NAME
    ]


def hint(parameter: str, kind: str, name: str, fields: Collection[str]) -> str:
    """A message with the counterpart here of another system's parameter; empty if no system has it.

    kind: the class of our scorer. name: its name. fields: its parameters.
    """
    wanted, scorer = Name(parameter), Name(kind)
    known = {each.lower() for each in fields} | {"_".join(words(each)) for each in fields}
    # A difference in case or number is a typo.
    if not known.isdisjoint((parameter.lower(), "_".join(words(parameter.lower())))):
        return ""
    hints = dict[int, str]()
    for system, option in ((each, row) for each in SYSTEMS for row in table(each) if row.kind == "option"):
        own = any(Name(ours).likeness(scorer) == _ONE_NAME for ours in option.of.values())
        rank = 0 if own else 1 if option.is_common else 2
        ours = option.ours.partition("=")[0]
        # A parameter of another scorer is no help.
        if option.name.last == wanted.last and (ours in fields or (rank < 2 and not ours.isidentifier())):
            verdict = f"is {option.ours} here" if option.ours else "has no counterpart here"
            detail = f" ({option.difference})" if option.difference else ""
            hints.setdefault(rank, f"{system}'s {option.theirs} {verdict}{detail}".replace("SCORER", name or "SCORER"))
    return hints[min(hints)] if hints else ""
