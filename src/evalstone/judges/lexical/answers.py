"""The lexical judge's answers, by kind of question. Imported at the first question.

Answers are compared with questions and references by shared words, and by the kind of answer a question asks for.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from evalstone._core.guards import is_list
from evalstone._core.text import sentences, tokens, words
from evalstone.errors import JudgeDeclined
from evalstone.judges.lexical.claim_splitter import is_refusal, list_claims
from evalstone.judges.lexical.classifier import Finding, check_response, verify
from evalstone.judges.lexical.features import read
from evalstone.judges.lexical.model import Model, shipped
from evalstone.judges.lexical.passages import Passages, prepared
from evalstone.judges.lexical.relevance import find_useful, rate
from evalstone.judges.lexical.tokens import Lexicon, content, denied, is_negated, stems_of
from evalstone.questions.base import Question
from evalstone.questions.claims import ListClaims, VerifyClaims
from evalstone.questions.relevance import FindUsefulPassages, RatePassages
from evalstone.questions.statements import Addressed, JudgeStatements, ListStatements, StatementVerdict
from evalstone.questions.verdict import AgreesWithContext, ClaimSupported, CorrectAgainstReference, YesNoVerdict

ADDRESSES, PARTLY = 0.6, 0.35
BRIEF = 8
_MATCHING, _CONTRARY = 0.5, 0.2
"""The least share of a reference in an answer that says the same but for a negation, and the most support of it."""
MOST_STATEMENTS = 400
MAX_CHARACTERS = 1_000_000
"""The maximum length of a question's texts. More would take many seconds and hundreds of megabytes."""
MOST_CONTEXTS = 16

_KINDS = (
    (
        re.compile(r"\b(?:when|what (?:year|date|time)|how (?:many|much|old|long|tall|far|big|high|often))\b", re.I),
        "figure",
    ),
    (re.compile(r"\b(?:who|whom|whose|where|which|what)\b", re.I), "name"),
    (
        re.compile(r"^\W*(?:is|are|was|were|do|does|did|can|could|has|have|had|will|should|may|must)\b", re.I),
        "decision",
    ),
)
_DECISION = re.compile(r"\W*(?:yes|no|both|neither|not)\b", re.IGNORECASE)


def answer_to(question: Question[Any]) -> tuple[Any, float | None, Mapping[str, float] | None]:
    """The answer's value, its probability, and for a yes or no the probabilities of both.

    Raises JudgeDeclined for kinds of questions that it can't answer, and for texts that are too long.
    """
    if (length := _length(question)) > MAX_CHARACTERS:
        raise JudgeDeclined(
            f"the lexical judge reads at most {MAX_CHARACTERS:,} characters per question; these texts have {length:,}"
        )
    match question:
        case ListClaims(text=text):
            return list_claims(text), None, None
        case VerifyClaims(claims=claims, context=context):
            verdicts = verify(claims, _passages(tuple(context)), shipped())
            probabilities = (verdict.probability for verdict in verdicts if verdict.probability is not None)
            return verdicts, min(probabilities, default=None), None
        case ListStatements(answer=answer):
            return list_statements(answer), None, None
        case JudgeStatements(question=query, statements=statements):
            return judge_statements(query, statements, shipped()), None, None
        case RatePassages(question=query, answer=answer, context=context):
            return rate(query, answer, _passages(tuple(context)), len(context), shipped()), None, None
        case FindUsefulPassages(question=query, answer=answer, context=context):
            return find_useful(query, answer, _passages(tuple(context)), len(context), shipped()), None, None
        case ClaimSupported() | AgreesWithContext() | CorrectAgainstReference():
            return _verdict(question)
        case _:
            raise JudgeDeclined(
                f"the lexical judge can't answer this scorer's questions ({question.kind}); "
                "use a model, such as openai/gpt-5.1"
            )


def _length(question: Question[Any]) -> int:
    """The number of characters in a question's texts."""
    length = 0
    for name in _fields(type(question)):
        value = getattr(question, name)
        if isinstance(value, str):
            length += len(value)
        elif is_list(value):
            length += sum(len(item) for item in value if isinstance(item, str))
    return length


@functools.cache
def _fields(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


_recent: dict[tuple[str, ...], tuple[int, Passages]] = {}
_lock = threading.Lock()


def _passages(context: tuple[str, ...]) -> Passages:
    """The prepared passages. The most recent contexts are cached, because all questions on a sample share them."""
    with _lock:
        entry = _recent.pop(context, None)
    if entry is None:
        entry = sum(map(len, context)), prepared(context, shipped().lexicon)
    with _lock:
        _recent[context] = entry
        while len(_recent) > MOST_CONTEXTS or sum(size for size, _ in _recent.values()) > MAX_CHARACTERS:
            del _recent[next(iter(_recent))]
    return entry[1]


def _verdict(
    question: ClaimSupported | AgreesWithContext | CorrectAgainstReference,
) -> tuple[YesNoVerdict, float, Mapping[str, float]]:
    """A yes or no, its probability, and the probabilities of both."""
    model = shipped()
    match question:
        case ClaimSupported(claim=claim, context=context):
            support, reason = check_response(claim, _passages(tuple(context)), model)
        case AgreesWithContext(question=query, answer=answer, context=context):
            support, reason = check_response(answer, _passages(tuple(context)), model)
            addressed = relevance(query, answer, model)
            support = min(support, addressed)
            reason = f"{reason}; {addressed:.0%} of its statements address the question"
        case CorrectAgainstReference(question=query, answer=answer, reference=reference):
            support, reason = compare(query, answer, reference, model)
    choice = YesNoVerdict("yes" if support >= 0.5 else "no", reason)
    return choice, max(support, 1 - support), {"yes": support, "no": 1 - support}


def list_statements(answer: str) -> tuple[str, ...]:
    """The sentences of an answer, without duplicates and list markers."""
    return tuple(dict.fromkeys(sentences(answer)))[:MOST_STATEMENTS]


def judge_statements(question: str, statements: Sequence[str], model: Model) -> tuple[StatementVerdict, ...]:
    """For each statement in order, whether it addresses the question."""
    terms = content(stems_of(words(question)))
    own = [content(stems_of(words(statement))) for statement in statements]
    together = frozenset[str]().union(*own)
    counts = Counter(item for stems in own for item in stems)
    verdicts: list[StatementVerdict] = []
    for statement, stems in zip(statements, own, strict=True):
        support = model.statement.at(*measures(terms, stems, together, model.lexicon))
        why = f"{_share(terms, stems, model.lexicon):.0%} of the question's words"
        if is_refusal(statement):
            support, why = 0.0, "it says that it cannot answer, or greets"
        elif len(own) > 1 and support >= ADDRESSES and not any(item in terms or counts[item] > 1 for item in stems):
            support, why = PARTLY, "it shares no word with the question or the rest of the answer"
        elif (kind := _expected_kind(question, statement)) and support < ADDRESSES:
            support, why = ADDRESSES, f"a brief {kind}, the kind of thing that is asked for"
        label: Addressed = "yes" if support >= ADDRESSES else "partly" if support >= PARTLY else "no"
        probability = support if label == "yes" else 1 - support if label == "no" else 0.5
        verdicts.append(StatementVerdict(statement, label, why, probability))
    return tuple(verdicts)


def measures(
    terms: frozenset[str], own: frozenset[str], together: frozenset[str], lexicon: Lexicon
) -> tuple[float, float]:
    """The curve's inputs: the shares of the question's content words in the statement and in the whole answer."""
    return _share(terms, own, lexicon), _share(terms, together, lexicon)


def relevance(question: str, answer: str, model: Model) -> float:
    """The share of the answer's statements that address the question, "partly" counted half, in [0, 1]."""
    verdicts = judge_statements(question, list_statements(answer), model)
    weights = {"yes": 1.0, "partly": 0.5, "no": 0.0}
    return sum(weights[verdict.addresses] for verdict in verdicts) / len(verdicts) if verdicts else 0.0


def compare(question: str, answer: str, reference: str, model: Model) -> Finding:
    """Whether an answer gives the reference's answer to the question. Not fitted: there was no labeled data.

    The support is the weighted share of the reference's content words in the answer. Words of the question are ignored
    if others remain. A number of the reference that the answer lacks, or a different negation, makes it a no.
    """
    expected, actual = read(reference), prepared((answer,), model.lexicon)
    query = read(question)
    stems = expected.content - query.content or expected.content or frozenset(expected.stems)
    present = frozenset(item for piece in actual.pieces for item in piece.stems)
    share = _share(stems, present, model.lexicon)
    lost = [figure for figure in expected.figures if not actual.has_number(figure) and figure not in query.figures]
    missing = sorted(item for item in stems if item not in present)
    if lost:
        return Finding(min(share, 0.1), f"the reference has {', '.join(lost[:6])}, the answer does not")
    # The words as they are written: an opening "No, " is a negation here.
    low, other = (tuple(word.lower() for word in tokens(text)) for text in (answer, reference))
    differs = is_negated(low) != is_negated(other) and _is_negation_relevant(low, other, stems)
    if differs and share >= _MATCHING:
        return Finding(_CONTRARY, "answer and reference differ in a negation")
    if not share and is_refusal(answer):
        return Finding(0.0, "the answer says that it cannot answer")
    reason = f"the answer has {share:.0%} of what the reference says beyond the question"
    support = min(share, _CONTRARY) if differs else share
    return Finding(support, reason + (f"; it lacks {', '.join(missing[:6])}" if missing else ""))


def _is_negation_relevant(low: Sequence[str], other: Sequence[str], stems: frozenset[str]) -> bool:
    """Whether a negation in one of two texts affects some of the stems."""
    negated = denied(low, stems_of(low)) | denied(other, stems_of(other))
    return bool(negated & stems) or _DECISION.match(" ".join(low[:1])) is not None


def _share(terms: frozenset[str], own: frozenset[str], lexicon: Lexicon) -> float:
    whole = lexicon.weight(terms)
    return lexicon.weight(terms & own) / whole if whole else 0.0


def _expected_kind(question: str, statement: str) -> str:
    """The kind of answer that a question asks for, if a brief statement is of that kind; otherwise empty."""
    written = tokens(statement)
    if not 0 < len(written) <= BRIEF:
        return ""
    kind = next((kind for pattern, kind in _KINDS if pattern.search(question)), "")
    has = {
        "figure": bool(read(statement).figures),
        "name": any(word[0].isupper() for word in written),
        "decision": _DECISION.match(statement) is not None,
    }
    return kind if has.get(kind, False) else ""
