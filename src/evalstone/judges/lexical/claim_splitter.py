"""Split a text into claims: each sentence that asserts something is one claim.

Sentences are not reworded, and pronouns are not resolved. Instructions count as claims ("press the button" in an answer
to "how do I …" asserts that this works), because these rules can't tell them from assertions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evalstone._core.text import QUESTION_MARKS, sentences, words
from evalstone.judges.lexical.normalization import straight
from evalstone.judges.lexical.tokens import content, stems_of

_SOURCE = r"(?:passages?|contexts?|documents?|texts?|sources?|excerpts?|articles?|(?:search )?results?|snippets?)"
_WHICH = r"(?:(?:the|these|this|those|your|given|provided|above|following|available|retrieved|supplied) ){0,4}"
_NUMBERED = r"(?: (?:\d{1,3}|one|two|three|four|five)(?:(?:,| and|, and) (?:\d{1,3}|one|two|three|four|five)){0,8})?"
_LEAD_IN = re.compile(
    rf"(?:based (?:solely |only )?(?:up)?on|according to|from|as (?:stated|mentioned|noted|described) in|per|in)"
    rf" {_WHICH}(?:{_SOURCE}|information){_NUMBERED}(?: (?:provided|given|above))?, ?",
    re.IGNORECASE,
)
_SAYS = re.compile(
    rf"{_WHICH}{_SOURCE}{_NUMBERED} (?:also )?(?:says?|states?|mentions?|notes?|explains?|suggests?|indicates?) that ",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(
    rf"(?:\b(?:{_SOURCE}|information|question){_NUMBERED} (?:provided |given )?(?:do(?:es)?|did|is|are|was|were|can) ?"
    r"(?:not|n?'t) |\b(?:no|not enough|insufficient|lack of|without (?:more|further|additional)) (?:\w+ )?information\b"
    r"|\bnot (?:explicitly |specifically |directly |clearly )?(?:mentioned|stated|specified|provided|given|included|"
    rf"available|found|discussed|covered|addressed) (?:in|by|within) {_WHICH}(?:{_SOURCE}|information)"
    r"|\b(?:unable|impossible|not possible|not able) to (?:provide|answer|determine|give|say|tell|confirm)\b"
    r"|\bcan(?:not|'t| not) (?:be |provide |give )?(?:an? )?(?:\w+ )?(?:answer|determine|tell\b|say\b|confirm)"
    r"|\bi (?:do not|don't|cannot|can't) (?:know|have|find)\b"
    r"|\bi(?:'m| am) (?:not (?:\w+ly |too |so |quite )?(?:sure|certain|aware)|unsure|uncertain)\b(?! but\b))",
    re.IGNORECASE,
)
_TALK = re.compile(
    r"(?:hi|hello|hey|dear \w+|sure|certainly|of course|absolutely|okay|ok|thanks?|thank you|great|good question|sorry|"
    r"i'm sorry|i apologi[sz]e|you're welcome|goodbye|bye|cheers|best regards)\b[^.!?:]{0,30}[.!?,]*",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"(?:i hope (?:this|that|it|you)|let me know|feel free|please (?:let|feel|note that i|ask)|if you (?:have|need)"
    r" (?:any |more |further )|would you like|is there anything|happy to help|i(?:'m| am) here to|i(?:'d| would) be)\b",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"^(?:[^\S\n]*+\#{1,6} .*|[^\S\n]*+\*\*[^*\n]*+\*\*:?[^\S\n]*+|[^\S\n]*+[`~=_*-]{3,}+.*)$", re.MULTILINE
)
_DASHES = re.compile(r"[\s|:]*+-[-\s|:]*+")
# "Did you know that X?" asserts X.
_TELLS = re.compile(
    r"(?:.{0,20}?\b)?(?:(?:did|do) you know (?:that )?(?!(?:what|who|whom|whose|which|when|where|why|how|if|whether|any"
    r"|much|of|about|it|this)\b)|have you heard that |did you hear that )",
    re.IGNORECASE,
)
_TURN = re.compile(r"[,;] ?but (?:rather )?|; ?however,? ", re.IGNORECASE)
_EDGES = " \t\r\n*_`\u200b\ufeff"
_QUESTION_MARKS = tuple(QUESTION_MARKS)
_LONGEST_HEAD = 300


def list_claims(text: str) -> tuple[str, ...]:
    """The sentences of a text that assert something, without duplicates and lead-ins such as "based on the passages".

    Dropped: questions, greetings, offers of help, headings, header rows of tables, lines that end in a colon,
    statements that the answer is unknown or not in the passages, and sentences without content words, such as "Yes, it
    is."
    """
    return tuple(dict.fromkeys(_claims(text)))


def _claims(text: str) -> Iterator[str]:
    for sentence in sentences(_HEADING.sub("\n", _without_table_heads(text))):
        claim = sentence.strip(_EDGES)
        if claim.endswith(_QUESTION_MARKS) and (match := _TELLS.match(claim)):
            claim = claim[match.end() :].rstrip(f"{QUESTION_MARKS} ")
        parts = [claim]
        if is_refusal(claim):
            # "They do not say when, but it was sunny": the second part may be a claim.
            parts = [part for part in _TURN.split(claim) if not is_refusal(part)]
        for part in parts:
            if _asserts(part):
                yield _without_lead_in(part)


def _without_table_heads(text: str) -> str:
    """A Markdown text without the header rows of its tables, which a row of dashes follows."""
    if "|" not in text or "--" not in text:
        return text
    lines = text.splitlines(keepends=True)
    heads = {place - 1 for place, line in enumerate(lines) if "|" in line and _DASHES.fullmatch(line)}
    return "".join("\n" if place in heads and "|" in line else line for place, line in enumerate(lines))


def _asserts(claim: str) -> bool:
    if claim.endswith((":", "：")) or claim.rstrip("\"'”’)]*").endswith(_QUESTION_MARKS):
        return False
    return bool(content(stems_of(words(claim))))


def is_refusal(sentence: str) -> bool:
    """Whether a sentence only says that the answer is unknown, greets, or offers help."""
    # The start of a sentence is enough, and keeps the patterns fast on long ones.
    head = straight(sentence[:_LONGEST_HEAD])
    return bool(
        _OFFER.match(head) or _UNKNOWN.search(head) or (len(sentence) < _LONGEST_HEAD and _TALK.fullmatch(head))
    )


def _without_lead_in(claim: str) -> str:
    """The claim without a lead-in that only names the source."""
    head = _LEAD_IN.match(claim) or _SAYS.match(claim)
    rest = claim[head.end() :] if head else ""
    return rest[0].upper() + rest[1:] if words(rest[:_LONGEST_HEAD]) else claim
