"""The negations of Chinese, Japanese and Thai, which are written without spaces, as words of their own.

    狗不允许入内    狗允许入内 不        犬は入れません    犬は入れます 不

Texts without spaces are compared by pairs of characters, and a negation in the middle changes the pairs around it.
Without it, two sentences that differ in nothing else have the same pairs. Forms are undone, not parsed: a form that
isn't listed stays as it is, and two texts with the same word are changed alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from evalstone._core.text import SPACELESS

NEGATION = "不"
"""The word that stands for each negation."""
_RUN = re.compile(f"[{SPACELESS}]{{2,}}")
_HINT = re.compile("[不没沒未无無]|[并並]非|ない|なかった|ません|ไม่")
_FORMS: Mapping[str, str] = {
    "ではありませんでした": "でした",
    "じゃありませんでした": "でした",
    "ではありません": "です",
    "じゃありません": "です",
    "ませんでした": "ました",
    "ません": "ます",
    "ではない": "だ",
    "じゃない": "だ",
    "がない": "がある",
    "はない": "はある",
    "もない": "もある",
    "くない": "い",
    "かない": "く",
    "さない": "す",
    "たない": "つ",
    "なない": "ぬ",
    "ばない": "ぶ",
    "まない": "む",
    "らない": "る",
    "わない": "う",
    **{f"{kana}ない": f"{kana}る" for kana in "いえきけせてにねびべみめりれぎげじぜ"},
    "しない": "する",
    **{f"{kana}なかった": f"{kana}た" for kana in "いえきけしせてにねびべみめりれぎげじぜ"},
}
"""The affirmative forms of Japanese negations."""
_NEGATED = re.compile(
    "|".join(sorted(_FORMS, key=len, reverse=True))
    # Not "different", "not only", "but", "soon", "quite a few", "whether", "not bad", "almost", "future", "countless".
    + "|(?<!差)不(?![同断斷仅僅但过過久少管论論错錯])|[没沒]|未(?![来來必免])|[无無](?![论論数數线線疑])|[并並]非|ไม่"
)


def with_negations_apart(text: str) -> str:
    """The text with each run of characters without its negations, which follow the run as words."""
    return text if text.isascii() or not _HINT.search(text) else _RUN.sub(_apart, text)


def _apart(run: re.Match[str]) -> str:
    found = 0

    def affirmed(form: re.Match[str]) -> str:
        nonlocal found
        found += 1
        return _FORMS.get(form[0], "")

    affirmative = _NEGATED.sub(affirmed, run[0])
    return affirmative + f" {NEGATION} " * found
