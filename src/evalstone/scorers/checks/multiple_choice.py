"""A check of the answer to a multiple-choice question, and how the choice is read from text."""

from __future__ import annotations

import functools
import re
from dataclasses import KW_ONLY, dataclass, replace

from evalstone.errors import ConfigError
from evalstone.scorers.base import require_text, shortened
from evalstone.scorers.checks.base import TextCheck
from evalstone.types import Score, Skipped

_MARKUP = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\b|[\\*_`$~#>\"“”]")
_SPACES = re.compile(r"[^\S\n]+")


@functools.lru_cache(maxsize=64)
def _patterns(letters: str) -> tuple[re.Pattern[str], ...]:
    """Patterns for statements of a choice, lines with only a choice, a leading choice, and choices in brackets."""
    upper, either = f"[{letters}]", f"[{letters}{letters.lower()}]"
    bracketed = rf"[(\[{{] ?({either}) ?[)\]}}]"
    # "The answer is A dog" states no choice.
    bare = rf"({upper})(?![\w'’]|\.\d)(?!(?<=[AI]) (?!because|since|as\b|and\b|is\b)[a-z])"
    choice = rf"(?:{bracketed}|{bare})"
    statement = (
        rf"\b(?<!not )(?<!n't )(?i:answer|choice|option|boxed|choose|pick|select)"
        rf"(?i: (?:is|was|would be|should be|must be))?(?: ?[:=-] ?| ?\n| )?"
        rf"(?i:(?:the )?(?:option|choice|letter) )?{choice}(?! is (?:not|incorrect|wrong|false)\b)"
        rf"|(?<!\w){choice} is (?:the )?(?:correct|right|best|answer)\b"
        rf"|[:：] ?{choice}[.。]?$"
    )
    return (
        re.compile(statement, re.MULTILINE),
        re.compile(rf"^\W{{0,9}}(?i:option |choice )?({either})\W{{0,9}}$", re.MULTILINE),
        re.compile(rf"\A[^\w(\[{{]{{0,9}}(?:{bracketed}|({upper})[).:,\n]|({either})\))(?! ?(?:and|or|,|&|/))"),
        re.compile(bracketed),
    )


def choice_in(text: str, letters: str) -> str | None:
    """The choice that an answer makes, as written in `letters`; None if it makes none, or it is unclear which.

    The first of these that the answer contains decides:

    1. statements ("the answer is B", "option C", "I pick B", "B is correct", a line that ends with ": (b)", a box in
       LaTeX): the last one;
    2. lines with only a choice ("B", "(b).", "**B**"), if they agree;
    3. a choice at the very beginning, with a bracket, a period or a colon ("B) Paris");
    4. choices in brackets, if they agree.

    Lowercase letters count only in brackets and on lines of their own.
    """
    text = _SPACES.sub(" ", _MARKUP.sub("", text)).strip()
    stated, alone, leading, bracketed = _patterns(letters)
    upper = {letter.lower(): letter for letter in letters}

    def chosen(pattern: re.Pattern[str]) -> list[str]:
        return [upper[next(filter(None, match.groups())).lower()] for match in pattern.finditer(text)]

    if statements := chosen(stated):
        return statements[-1]
    for pattern in (alone, leading, bracketed):
        if len(distinct := set(chosen(pattern))) == 1:
            return distinct.pop()
        if distinct:
            return None
    return None


@dataclass(frozen=True)
class Chosen:
    """The choice that was read from the answer, or None, and the expected one."""

    answer: str | None
    expected: str


@dataclass(frozen=True)
class Choice(TextCheck):
    """Whether the answer to a multiple-choice question makes the expected choice.

        choice = 1 if the answer makes the expected choice, else 0

    The expected choice is `expected`, or else the one in the sample's reference. The choice in an answer is read from
    the first of these that it contains:

    - the last statement: "the answer is B", "option C", "B is correct", a line that ends with ": (b)", a LaTeX box
    - lines with only a choice
    - a choice at the very beginning: "B) Paris"
    - choices in brackets

    An answer gets 0 if it has no choice, or names several without a statement. Lowercase letters count in brackets and
    on lines of their own. Undefined if no choice can be read from the reference, for example because it contains the
    text of a choice. No judge call.

    Attributes:
        expected: The choice for all samples; by default that of each sample's reference.
        letters: The labels of the choices: capital letters, or digits.
    """

    name = "choice"

    expected: str | None = None
    _: KW_ONLY
    letters: str = "ABCDEFGHIJ"

    def __post_init__(self) -> None:
        require_text(self, "letters", blank=False)
        valid = self.letters.isascii() and (
            self.letters.isdecimal() or (self.letters.isalpha() and self.letters.isupper())
        )
        if not valid or len(set(self.letters)) < len(self.letters):
            allowed = "different capital letters from A to Z, or different digits, such as ABCD"
            raise ConfigError(f"{self.name}: letters must be {allowed}, not {shortened(self.letters, 40)!r}")
        super().__post_init__()
        if self.expected is not None and choice_in(self.expected, self.letters) is None:
            raise ConfigError(f"{self.name}: expected must be one of {self.letters}, not {shortened(self.expected)!r}")

    def check(self, output: str, expected: str) -> Score | Skipped:
        expected_choice = choice_in(expected, self.letters)
        if expected_choice is None:
            return Skipped(f"the reference makes no choice among {self.letters}: {shortened(expected, 60)!r}")
        chosen = choice_in(output, self.letters)
        result = f"The answer chooses {chosen}" if chosen else "No single choice can be read from the answer"
        score = self.passed(chosen == expected_choice, f"{result}; expected {expected_choice}.")
        return replace(score, evidence=Chosen(chosen, expected_choice))


choice = Choice
