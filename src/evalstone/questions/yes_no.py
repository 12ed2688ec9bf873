"""Reading a plain yes or no out of a reply that was to be nothing else, and often is more.

    decided by     its first words, or its last line when that is labelled (`Verdict: no`)
    undecided      neither decides, both decide and differ, or the reply takes itself back

Never a pass by accident: a yes inside another word, inside a sentence, or beside a no is no yes. So `yes and more` is
undecided as `no and yes` is: what follows an "and" may be a second verdict. A verdict word counts when a clause ends
after it, or when one of a few words follows that begin a reason (`no the passage …`), which keeps the "no" of "no
contradiction" and "no one" from deciding. `Yes, but …` is undecided too.
"""

from __future__ import annotations

import re
import unicodedata

_YES = frozenset({"yes", "ja", "oui", "sí", "si", "sim", "да", "是", "是的", "はい"})
_NO = frozenset({"no", "nein", "non", "não", "nao", "нет", "否", "不", "不是", "いいえ"})
_REASONS = frozenset(
    """
    because since as the it its this that these those there they he she i we
    """.split()  # noqa: SIM905 - one word a line would be twenty lines
)
_HEDGES = frozenset(
    """
    but however although though except partly partially mostly only somewhat aber mais pero mas но 但 但是 不过
    """.split()  # noqa: SIM905
)
_FILLERS = frozenset(
    """
    and or also then well wait actually rather maybe perhaps sorry hmm so und oder et ou y o e и или doch
    """.split()  # noqa: SIM905
)

_LONGEST = 8_000
_THOUGHT = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_UNFINISHED_THOUGHT = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_CODE_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,})\w*\s*$", re.MULTILINE)
_TAG = re.compile(r"</?[A-Za-z_]\w*>")
_MARKUP = re.compile(r"[*`_#>~\"'“”„‘’«»‹›「」『』]")
_LABEL = re.compile(
    r"\W*(?:(?:the|my)\s+)?(?:(?:final|short|overall)\s+)?"
    r"(?:answer|verdict|result|response|reply|conclusion|decision|judge?ment|antwort|urteil|réponse|respuesta|resposta"
    r"|ответ|答案|回答|结论|判断|判定)\s*(?:is\b\s*:?|[:：=]|$)",
)
_CLAUSE_END = re.compile(r"[,.;:!?…。，；：！？、—–/|()\[\]{}\n]|\s-+\s")
_WORD = re.compile(r"\w+(?:-\w+)*")


def read_yes_no(text: str) -> bool | None:
    """True for a yes, False for a no, None when the reply is neither or both.

    Case, white space, quotes, brackets, markup, code fences, a reasoning block and a label in front do not matter. Yes
    and no are also known in German, French, Spanish, Italian, Portuguese, Russian, Chinese and Japanese.
    """
    lines = _lines(text)
    if not lines:
        return None
    last = _LABEL.match(lines[-1])
    final = _decide(lines[-1][last.end() :]) if last else None
    before = lines[:-1] if last else lines
    if last and (final is None or not before):
        return final
    label = _LABEL.match(before[0])
    opening = _decide("\n".join(before)[label.end() if label else 0 :])
    if last is None:
        return opening
    contradicted = opening is not None and opening != final
    return None if contradicted else final


def _lines(text: str) -> list[str]:
    """The lines that hold a word, without markup, in lower case; a label alone on its line is joined to the next."""
    body = _THOUGHT.sub("", text)
    if _UNFINISHED_THOUGHT.match(body):
        return []
    if len(body) > _LONGEST:
        body = body[: _LONGEST // 2] + "\n" + body[-_LONGEST // 2 :]
    body = _TAG.sub("\n", _CODE_FENCE.sub("", body))
    body = unicodedata.normalize("NFKC", _MARKUP.sub("", body)).casefold()
    found: list[str] = []
    for line in body.splitlines():
        if not _WORD.search(line):
            continue
        label = _LABEL.match(found[-1]) if found else None
        if label and not _WORD.search(found[-1], label.end()):
            found[-1] = f"{found[-1].rstrip(' :：=')}: {line.strip()}"
        else:
            found.append(line.strip())
    return found


def _decide(text: str) -> bool | None:
    """What the first words of a text say, unless a later clause is nothing but the opposite."""
    clauses = [words for words in (_WORD.findall(clause) for clause in _CLAUSE_END.split(text)) if words]
    if not clauses:
        return None
    head, *rest = clauses
    if head[0] not in _YES | _NO:
        return None
    if len(head) > 1 and (head[1] not in _REASONS or head[0] == "si"):
        return None
    if len(head) == 1 and rest and rest[0][0] in _HEDGES:
        return None
    said = head[0] in _YES
    opposite = _NO if said else _YES
    for clause in rest:
        bare = [word for word in clause if word not in _FILLERS]
        if bare and all(word in opposite for word in bare):
            return None
    return said
