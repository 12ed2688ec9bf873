"""Verdicts on single claims and on whole responses, from the evidence in the passages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from evalstone._core.prompts import clean, one_line
from evalstone._core.text import STOPWORDS, sentences, tokens
from evalstone.judges.lexical.claim_splitter import is_refusal, list_claims
from evalstone.judges.lexical.features import SAME_SENTENCE, Evidence, evidence, word_overlap
from evalstone.judges.lexical.model import KEPT_OUTSIDE, SHORT, Model, logistic
from evalstone.judges.lexical.normalization import comparable_low
from evalstone.judges.lexical.numbers import centuries, shown
from evalstone.judges.lexical.passages import Passages
from evalstone.judges.lexical.units import CURRENCIES
from evalstone.questions.claims import ClaimVerdict

LONGEST_QUOTE = 160
MOST_NAMED = 6
_PARTIAL_WORD_AT_END, _PARTIAL_WORD_AT_START = re.compile(r"(?<=\s)\S{1,30}\Z"), re.compile(r"\A\S{1,30}(?=\s)")
# In the training data, at least four of five responses with a different number or negation were not supported, whatever
# their z.
CONFLICTED = 0.2
_CONFLICTING = 0.1
_SAME_SUBJECT, _SAME_WORDS = 0.5, 0.95


class Finding(NamedTuple):
    """The probability that a text is supported or correct, in [0, 1], and the reason."""

    support: float
    reason: str


def verify(claims: Sequence[str], passages: Passages, model: Model) -> tuple[ClaimVerdict, ...]:
    """Check each claim against prepared passages. Confidences assume that half of all claims are supported."""
    outside = outside_training(" ".join(claims))
    return tuple(_verdict(claim, evidence(claim, passages), passages, model, outside) for claim in claims)


def _verdict(claim: str, found: Evidence, passages: Passages, model: Model, outside: str) -> ClaimVerdict:
    support = model.claim_support(model.z([found.values]), fields=passages.structured)
    verdict, cited = "not_mentioned", ()
    if found.contradicting or found.best is None or conflict(found):
        support = min(support, _CONFLICTING)
        if found.contradicting:
            verdict = "contradicted"
        elif found.best is not None:
            verdict, cited = "contradicted", (found.best.passage,)
    elif differs(found):
        support = min(support, CONFLICTED)
    elif support >= 0.5:
        verdict, cited = "supported", found.passages
    reason = _why(found, passages, complete=verdict == "supported")
    if outside:
        support = 0.5 + (support - 0.5) * KEPT_OUTSIDE
        reason += f"; less sure than usual: {outside}"
    return ClaimVerdict(claim, verdict, cited, reason, max(support, 1 - support))


def check_response(text: str, passages: Passages, model: Model) -> Finding:
    """The probability that the passages support every claim of a response, and the claim with the least support."""
    claims = list_claims(text)
    found = [evidence(claim, passages) for claim in claims]
    logit = response_logit(text, found, passages, model)
    outside = outside_training(text)
    support = logistic(logit * KEPT_OUTSIDE if outside else logit)
    if any(map(differs, found)):
        support = min(support, CONFLICTED)
    reasons = [f"probability {support:.2f} that the passages support the whole answer"]
    if not claims:
        reasons.append("it makes no claim to look for")
    elif not passages.pieces:
        reasons.append("there is no text to check it against")
    else:
        claim, least = min(zip(claims, found, strict=True), key=lambda pair: model.z([pair[1].values]))
        why = _why(least, passages, complete=not (least.lost_words or least.lost_figures))
        reasons.append(f'supported least: "{quote(claim)}": {why}')
    if outside:
        reasons.append(f"less sure than usual: {outside}")
    return Finding(support, "; ".join(reasons))


def response_logit(text: str, found: Sequence[Evidence], passages: Passages, model: Model) -> float:
    """The log odds that the passages support a response, from the evidence for its claims."""
    if not found and all(map(is_refusal, sentences(text))):
        return 0.0
    z = model.z([evidence.values for evidence in found], [evidence.size for evidence in found]) if found else None
    low = comparable_low(text)
    return model.response_logit(z, word_overlap(low, passages), fields=passages.structured, short=len(low) <= SHORT)


def _why(found: Evidence, passages: Passages, *, complete: bool) -> str:
    """The reason for a verdict. complete: whether the passages have the whole claim."""
    if found.contradicting:
        return f'the source has "{quote(found.contradicting[0])}"'
    if found.best is None:
        return "no passage has any of its words" if passages.pieces else "there is no text to check it against"
    where, quoted = found.best.passage, f'"{quote(found.best.text)}"'
    if against := conflict(found) or _swapped(found):
        return f"passage {where} {against}: {quoted}"
    return f"passage {where}: {quoted}" if complete else f"{_lacking(found)}; nearest is passage {where}: {quoted}"


def quote(text: str) -> str:
    """A sentence as quoted in a reason: on one line, shortened in the middle between words."""
    line = one_line(clean(text))
    if len(line) <= LONGEST_QUOTE:
        return line
    half = LONGEST_QUOTE // 2 - 2
    head, tail = _PARTIAL_WORD_AT_END.sub("", line[:half]), _PARTIAL_WORD_AT_START.sub("", line[-half:])
    return f"{head.rstrip()} … {tail.lstrip()}"


def conflict(found: Evidence) -> str:
    """How the best passage contradicts the claim; empty if it doesn't, or isn't about the same subject."""
    if found.best is None or found.aside < SAME_SENTENCE or found.cover < _SAME_SUBJECT:
        return ""
    if others := other_numbers(found):
        return f"has {_listed(others)} where the claim has {_listed(found.lost_figures)}"
    same = found.aside >= _SAME_WORDS and found.cover >= _SAME_WORDS
    return "and the claim differ in a negation" if found.denial and same else ""


def other_numbers(found: Evidence) -> tuple[str, ...]:
    """The differing numbers of a sentence that has all of the claim except for its numbers; empty if there is none."""
    if found.best is None or found.aside < SAME_SENTENCE or not found.lost_figures:
        return ()
    only_figures = all(word[0].isdigit() or word in CURRENCIES for word in found.lost_words)
    return tuple(sorted(found.best.numbers - {*found.figures, *centuries(found.figures)})) if only_figures else ()


def differs(found: Evidence) -> bool:
    """Whether a sentence has about all of the claim, but another number, negation, name, unit or opposite."""
    return bool(conflict(found) or other_numbers(found) or found.swap)


def _swapped(found: Evidence) -> str:
    """The names, the unit or the opposite of the best passage in place of the claim's; empty if there are none."""
    if found.swap is None:
        return ""
    own, others = ([name for name, _ in names] for names in (found.swap.own, found.swap.others))
    return f"has {_listed(others)} where the claim has {_listed(own)}"


def _lacking(found: Evidence) -> str:
    if found.lost_words or found.lost_figures:
        lost = (*found.lost_figures, *found.lost_names, *found.lost_words)
        shown: dict[str, str] = {}
        for item in lost:
            shown.setdefault(item.lower(), item)
        return f"no passage has {_listed(shown.values())}"
    return "its words stand in the passages, but not together"


def _listed(items: Iterable[str]) -> str:
    listed = list(items)
    named = ", ".join(clean(shown(item))[:40] for item in listed[:MOST_NAMED])
    return f"{named} and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else named


FEWEST_WORDS = 8
FEWEST_COMMON = 0.08
MOST_FOREIGN = 0.3
LONGEST_READ = 4000


def outside_training(text: str) -> str:
    """How a text differs from the English that the judge was trained on; empty if it doesn't."""
    words = tokens(text[:LONGEST_READ])
    if not words:
        return ""
    if sum(not word.isascii() and not _is_latin(word) for word in words) / len(words) > MOST_FOREIGN:
        return "it was trained on English, and this is in another script"
    common = sum(word.lower() in STOPWORDS for word in words)
    is_list = text.count(",") * 4 >= len(text.split())
    if len(words) >= FEWEST_WORDS and common < FEWEST_COMMON * len(words) and not is_list:
        return "it was trained on English sentences, and this does not look like one"
    return ""


def _is_latin(word: str) -> bool:
    return all(char < "ɐ" or "Ḁ" <= char <= "ỿ" for char in word)
