"""A check of the answer to a multiple-choice question, and how the choice is read from text."""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, ClassVar, NamedTuple

from evalstone._core.declarations import Rule
from evalstone._core.text import normalized
from evalstone.errors import ConfigError, invalid
from evalstone.scorers.checks.base import TextCheck
from evalstone.scorers.reasons import shortened
from evalstone.types import Score, Skipped

_MARKUP = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\b|[\\*_`$~#>\"“”]")
_SPACES = re.compile(r"[^\S\n]+")
_ANSWER = (
    "answer|boxed|choose|pick|select|go with|going with|antwort|lösung|réponse|respuesta|resposta|risposta|ответ"
    "|antwoord|svaret|odpowiedź|cevap|jawaban(?:nya)?|đáp án|الإجابة|उत्तर"
)
_OPTION = "option|choice|letter|opción|opção|opzione|alternativa|letra|lettre|lettera"
_CORRECT = "correct|correcte|correcta|correta|corretta|richtig|đúng|الصحيحة"
_SO = (
    "so|thus|hence|therefore|it is|it's|must be|i think|i believe|i guess|i(?: woul|')d say|probably|definitely"
    "|that leaves|leaves us with|but|actually|rather|instead|sondern"
)
_IS = "is|was|would be|should be|must be|will be|has to be|ist|lautet|est|es|é|è|serait|sería|är|to|adalah|là|هي"
_SURELY = "therefore|thus|clearly|definitely|certainly|undoubtedly|probably|likely|most likely|indeed"
_REFUTED = (
    r"(?! (?:is|was|would be|seems|looks)(?: \w+ly)? (?:not|incorrect|wrong|false|invalid)\b"
    r"| (?:is|was|ca|could|would|does)n['’]t\b| (?:can|could|would|does) ?not\b"
    r"|不(?:对|對|正确|正確)|では(?:な|あり)|じゃな|[가이는은]? ?아니|[가이는은]? 아닙)"
)
"""Phrases that retract the choice before them: `A is wrong`, `A isn't`."""
_NEGATED = re.compile(
    r"(?:\b(?:not(?! only\b)|never|neither|nor|unlikely|cannot|(?<!no )(?<!little )(?<!without )(?<!without a )doubt"
    r"|nicht|kein|pas|non|não|не)\b|n['’]t\b)"
    r"(?:(?:,|\s(?:true|likely|possible))?\s(?:that|dass|que|che|что))?"
    r"(?:\s(?:think|believe|say|sure|certain|convinced|agree|the|this|it|it's|is|be|to|if|whether|a"
    r"|correct|right|best|final|only|that|die|der|richtige|la|le|el|il|bonne|choose|pick|select|option|choice|letter)"
    r"){0,10}\s?\Z",
    re.IGNORECASE,
)
"""A negation of the statement after it: `I don't think that the`."""
_LONGEST_NEGATION = 120
_OPTION_TEXT = re.compile(
    r"(?!.*\b(?:because|since|as|and|or|not|but|while|whereas|rather|instead|than|over|unlike|is|are|was|were)\b|.*[.;!?]\s\S)"
    r"[^\n()]{1,80}",
    re.IGNORECASE,
)
"""The text of an option. A choice before it would be followed by a reason, or by what is said of the next one."""


class _Patterns(NamedTuple):
    """How choices are written."""

    stated: re.Pattern[str]
    """Statements of a choice."""
    named: re.Pattern[str]
    """Choices that are only named: `option B`."""
    more: re.Pattern[str]
    """Another choice after one: `or C`."""
    alone: re.Pattern[str]
    """Lines with only a choice."""
    leading: re.Pattern[str]
    """A choice at the very beginning."""
    labels: re.Pattern[str]
    """Choices that label what follows, as in a list of all options."""
    inline: re.Pattern[str]
    """The same in the middle of a line: `(A) 5 (B) 6`."""
    bracketed: re.Pattern[str]


def _either_case(words: str) -> str:
    """A pattern of words in any case. Without their first letters, all of them are tried at every place of a text."""
    first = {word[:1] for word in re.split(r"\||\(\?:[^)]*\)", words)} - {""}
    return f"(?=[{''.join(sorted({*map(str.upper, first), *map(str.lower, first)}))}])(?i:{words})"


@functools.lru_cache(maxsize=64)
def _patterns(letters: str) -> _Patterns:
    upper, either = f"[{letters}]", f"[{letters}{letters.lower()}]"
    bracketed = rf"[(\[{{] ?({either}) ?[)\]}}]"
    verbs = rf"{_IS}|seems|looks"
    # "The answer is A dog" states no choice.
    bare = (
        rf"({upper})(?![A-Za-z\u00c0-\u024f0-9'’]|\.\d)"
        rf"(?!(?<=[AI]) (?!because|since|as\b|and\b|or\b|(?i:{verbs})\b)[a-z])"
    )
    choice = rf"(?:{bracketed}|{bare}){_REFUTED}"
    end = r"(?= ?[.。!]?[^\S\n]*$)"
    of_option = rf"(?i:(?:the |la |le |el |il |die |a )?(?:{_OPTION}) |(?:la|le|el|il|die) )?"
    colon = r" ?[:=–—→-] ?\n{0,2} ?"
    statement = (
        rf"\b(?:(?:{_either_case(_ANSWER)}(?i: (?:{_CORRECT}))?(?i: (?:{_IS}))?(?:{colon}| ?\n{{1,2}} ?| )?"
        rf"|{_either_case(_OPTION)}(?i: (?:{_CORRECT}))?(?:(?i: (?:{_IS}))(?:{colon}| )|{colon}))"
        rf"(?i:(?:{_SURELY}) )?(?:{of_option}{choice}|\{{ ?{bare}|({either}){end}{_REFUTED})"
        rf"|{_either_case(_SO)},? (?i:it is |it's |it must be )?(?i:(?:{_OPTION}) )?{choice}(?=[.,!\n]|$| because))"
        rf"|(?<!\w){choice} (?i:{verbs}) (?i:(?:{_SURELY}) )?(?i:the |die |la |a )?"
        rf"(?i:{_CORRECT}|right|best|answer|richtige|one)\b"
        r"|(?<![不别勿非])(?:答案|答え|正解|解答|选择|選擇|选|選|정답|답)[】\]]?(?:是|为|為|应为|應為|は|은|는|이|가)?"
        rf"\s?[:：]?\s?(?:选项|選項)?{choice}"
        rf"|{choice}(?:选项|選項|项|項)?(?:是|为|為|が)?(?:正确|正確|正解|对的)"
        rf"|(?:ではなく|\bis ){choice}(?=[.!]?\Z|です)"
        rf"|[:：] ?{choice}[.。]?$"
    )
    return _Patterns(
        re.compile(statement, re.MULTILINE),
        re.compile(rf"\b{_either_case(_OPTION)} ?{choice}"),
        re.compile(
            r" ?\(?(?:,|/|&|;|(?i:and|or|und|oder|et|ou|y|o)\b|和|或|及|、)(?: ?(?i:and|or|also)\b)* ?"
            rf"(?i:option |choice )?{choice}(?! is\b)"
        ),
        re.compile(rf"^\W{{0,9}}(?i:option |choice )?({either})\W{{0,9}}$", re.MULTILINE),
        re.compile(
            rf"\A[^\w(\[{{]{{0,9}}(?:{bracketed}|({upper})[).:,\n]|({either})\))(?! ?(?:and|or|,|&|/))(?! {bare})"
        ),
        re.compile(rf"(?:^|[.;!?\n] ?)[^\w(\[{{\n]{{0,9}}(?:{bracketed}|({upper})[).:]|({either})\)) ", re.MULTILINE),
        re.compile(rf"(?:^| )(?:{bracketed}|({upper})[).:]|({either})\)) ", re.MULTILINE),
        re.compile(bracketed),
    )


def choice_in(text: str, letters: str) -> str | None:
    """The choice that an answer makes, as written in `letters`; None if it makes none, or it is unclear which.

    The first of these that the answer contains decides:

    1. statements ("the answer is B", "I pick B", "it's B", "B is correct", "so B", "答案是B", a line that ends with
       ": (b)", a box in LaTeX): the last one, unless it names several choices;
    2. lines with only a choice ("B", "(b).", "**B**"), if they agree;
    3. a choice at the very beginning, with a bracket, a period or a colon ("B) Paris"), if no other choice begins a
       sentence like that, as in a list of all options, also on one line ("(A) 5 (B) 6");
    4. options that are named ("option C"), if they agree;
    5. choices in brackets, if they agree.

    A choice that is negated ("I don't think the answer is A", "option A isn't right") is none. Lowercase letters count
    in brackets, on lines of their own, and at the end of a line after a word such as "answer". Full-width letters count
    as letters.
    """
    text = _SPACES.sub(" ", _MARKUP.sub("", normalized("NFKC", text))).strip()
    patterns = _patterns(letters)
    upper = {letter.lower(): letter for letter in letters}

    def letter_of(match: re.Match[str]) -> str:
        return upper[next(filter(None, match.groups())).lower()]

    def made(pattern: re.Pattern[str]) -> list[re.Match[str]]:
        return [match for match in pattern.finditer(text) if not _is_negated(text, match.start())]

    def has_others(match: re.Match[str]) -> bool:
        more = patterns.more.match(text, match.end())
        return more is not None and letter_of(more) != letter_of(match)

    if statements := made(patterns.stated):
        return None if has_others(statements[-1]) else letter_of(statements[-1])
    named = made(patterns.named)
    if any(map(has_others, named)):
        return None
    lists_options = len(set(map(letter_of, patterns.labels.finditer(text)))) > 1 or any(
        letters.startswith(letter_of(one) + letter_of(other), letters.index(letter_of(one)))
        and _OPTION_TEXT.fullmatch(text, one.end(), other.start())
        for one, other in itertools.pairwise(patterns.inline.finditer(text))
    )
    leading = () if lists_options else patterns.leading.finditer(text)
    bracketed = () if lists_options else patterns.bracketed.finditer(text)
    for matches in (patterns.alone.finditer(text), leading, named, bracketed):
        if len(distinct := set(map(letter_of, matches))) == 1:
            return distinct.pop()
        if distinct:
            return None
    return None


def _is_negated(text: str, place: int) -> bool:
    """Whether the statement at a place is negated."""
    return _NEGATED.search(text[max(0, place - _LONGEST_NEGATION) : place]) is not None


def _are_letters(value: object) -> bool:
    if not (isinstance(value, str) and value.isascii() and len(set(value)) == len(value)):
        return False
    return value.isdecimal() or (value.isalpha() and value.isupper())


_LETTERS = Rule("different capital letters from A to Z, or different digits, such as ABCD", _are_letters)


@dataclass(frozen=True)
class Chosen:
    """The choice that was read from the answer, or None, and the expected one."""

    answer: str | None
    expected: str


class Choice(TextCheck, kw_only=False):
    """Whether the answer to a multiple-choice question makes the expected choice.

        choice = 1 if the answer makes the expected choice, else 0

    The expected choice is `expected`, or else the one in the sample's reference. The choice in an answer is read from
    the first of these that it contains:

    - the last statement: "the answer is B", "it's B", "B is correct", "so B", "答案是B", a line that ends with ": (b)",
      a LaTeX box
    - lines with only a choice
    - a choice at the very beginning: "B) Paris"
    - the only option that is named: "option C"
    - choices in brackets

    An answer gets 0 if it has no choice, or names several ("B or C", a list of all options) without stating one. A
    negated statement ("I don't think the answer is A") is none. Lowercase letters count in brackets, on lines of their
    own, and at the end of a line after "answer:". Undefined if no choice can be read from the reference, for example
    because it contains the text of a choice. No judge call.

    Attributes:
        expected: The choice for all samples; by default that of each sample's reference.
        letters: The labels of the choices: capital letters, or digits.
    """

    name = "choice"
    version: ClassVar[int] = 2

    expected: str | None = None
    _: KW_ONLY
    letters: Annotated[str, _LETTERS] = "ABCDEFGHIJ"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.expected is not None and choice_in(self.expected, self.letters) is None:
            raise ConfigError(
                f"{self.name}: ",
                invalid("expected", f"one of {self.letters}", self.expected, repr(shortened(self.expected))),
            )

    def check(self, output: str, expected: str) -> Score | Skipped:
        expected_choice = choice_in(expected, self.letters)
        if expected_choice is None:
            return Skipped(f"the reference makes no choice among {self.letters}: {shortened(expected, 60)!r}")
        chosen = choice_in(output, self.letters)
        result = f"The answer chooses {chosen}" if chosen else "No single choice can be read from the answer"
        score = self.passed(chosen == expected_choice, f"{result}; expected {expected_choice}.")
        return replace(score, evidence=Chosen(chosen, expected_choice))


choice = Choice
