"""Aligned judges: a judge with what `align` chose for one scorer from labels.

The alignment is in a file that `evalstone align` writes. It replaces the instructions of one kind of question, shows
worked examples, and maps the probabilities of its labels. Every other question is asked as it is.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from evalstone._core.declarations import check_settings
from evalstone._core.display import count, joined, quoted
from evalstone._core.file_format import ALIGNMENT_FORMAT
from evalstone._core.files import file_text
from evalstone._core.guards import is_object
from evalstone._core.json import content_hash, value_of
from evalstone._core.prompts import Prompt, PromptWithExamples
from evalstone._core.validation import read_data
from evalstone.errors import ConfigError, DataError, JudgeError, ReplyError
from evalstone.judges.base import Judge, JudgeSpec, MemberCalls
from evalstone.judges.composite import Composite
from evalstone.judges.decision import ClosedJudge, DecisionJudge, DecisionOrText, SentenceJudge
from evalstone.judges.lexical import LexicalJudge
from evalstone.judges.logging import LoggingJudge
from evalstone.judges.parse import parse_member
from evalstone.models.limits import NO_LIMITS, Limits
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.questions.decisions import Decided, distributions, read_decisions
from evalstone.stats.calibration import Isotonic, Scaled
from evalstone.types import AlignedQuestion, Asking, JudgeCall, Record, WorkedExample, material_hash
from evalstone.types.context_limits import ContextLimits

A = TypeVar("A")

EXAMPLES_RULE = "People labeled the following examples. Judge as they did; the examples are not to be judged."


@dataclass(frozen=True, kw_only=True)
class AlignmentFile:
    """What an alignment file says of its judge and scorer, and what it changes."""

    judge: str
    """The identity of the judge that it was made for."""
    scorer: str
    """The name of the scorer that it was made for."""
    signature: str
    """The signature of that scorer."""
    chosen: AlignedQuestion
    """What is changed."""
    labeled: tuple[str, ...] = ()
    """Hashes of the labeled samples that it was chosen from."""

    @classmethod
    def read(cls, path: str | Path) -> AlignmentFile:
        """Read an alignment file.

        Raises:
            ConfigError: The file can't be read, or is no alignment.
        """
        try:
            data = value_of(file_text(Path(path)))
            if not is_object(data):
                raise DataError(f"it must contain an object, not {type(data).__name__}")
            ALIGNMENT_FORMAT.check(data)
            return read_data(cls, data)
        except OSError as error:
            raise ConfigError(f"align: can't read {quoted(path)}: {error.strerror or error}") from None
        except (ValueError, RecursionError, DataError) as error:
            raise ConfigError(f"align: {path} is no alignment: ", error) from None

    @property
    def hash(self) -> str:
        """A hash of what it changes, and for which scorer: 16 hexadecimal digits."""
        return content_hash([self.signature, self.chosen])[:16]


class Aligned(Composite, init=False):
    """A judge with an alignment: `Aligned("openai/gpt-5.1", "align.json")`, named `openai/gpt-5.1(align=align.json)`.

    The questions of the aligned kind and prompt are asked with the chosen wording and examples, and the probabilities
    of their labels are mapped, which may change labels. Other questions are asked as they are. An example is never
    shown for the sample that it was made from: it is left out of that sample's prompt.

    `JudgeAnswer.detail` contains, for an aligned question:

    - `kind`: "aligned"
    - `left_out`: the number of examples that were left out, because they are the sample itself
    - `changed`: whether mapped probabilities changed a label

    Raises ConfigError for a file that is no alignment, and for one that was made for another judge.
    """

    judge: Judge
    alignment: AlignmentFile

    def __init__(self, judge: JudgeSpec, alignment: str | Path | AlignmentFile, *, limits: Limits = NO_LIMITS) -> None:
        vars(self).update(judge=judge, alignment=alignment, limits=limits)
        object.__setattr__(self, "judge", parse_member("judge", judge))
        if isinstance(alignment, str | Path):
            object.__setattr__(self, "alignment", AlignmentFile.read(alignment))
        check_settings(self)
        made_for = self.alignment.judge
        if made_for != self.judge.identity:
            named = f"{alignment} " if isinstance(alignment, str | Path) else "the alignment "
            raise ConfigError(
                f"align: {named}was made for the judge {made_for}, not for {self.judge.identity}; align this judge "
                f"with: evalstone align --judge … --scorer {self.alignment.scorer}"
            )
        self.derive(self.judge)

    @property
    def identity(self) -> str:
        """The judge's identity, and a hash of the alignment."""
        return f"aligned({self.judge.identity}, align={self.alignment.hash})"

    @property
    def description(self) -> str:
        return f"aligned for {self.alignment.scorer} ({joined(self.changes)}); other questions are asked as they are"

    @property
    def changes(self) -> list[str]:
        """What is changed, in words."""
        chosen = self.alignment.chosen
        return [
            *(["another wording"] if chosen.wording is not None else []),
            *([count(len(chosen.examples), "example")] if chosen.examples else []),
            *([f"threshold {chosen.threshold:.4g}"] if chosen.maps and not chosen.corners else []),
            *([f"temperature {chosen.temperature:.4g}"] if chosen.maps and chosen.temperature != 1 else []),
            *(["isotonic mapping"] if chosen.maps and chosen.corners else []),
        ] or ["nothing is changed"]

    @property
    def context_limits(self) -> ContextLimits:
        """The judge's limits, less the tokens of the examples."""
        return self.judge.context_limits.less(self.alignment.chosen.example_tokens)

    def check_scorers(self, signatures: Sequence[str]) -> None:
        super().check_scorers(signatures)
        made_for = self.alignment
        if made_for.signature in signatures:
            return
        same = [each for each in signatures if each.partition("(")[0].partition("@")[0] == made_for.scorer]
        found = f"the scorer here is {same[0]}" if same else f"the scorers here are {joined(list(signatures))}"
        raise ConfigError(
            f"align: the alignment was made for {made_for.signature}, and {found}; align the judge again, or name it "
            "without align"
        )

    async def decide(self, question: Question[A], ask: MemberCalls) -> JudgeAnswer[A]:
        meant = is_meant(self.alignment.chosen, question)
        asked, left_out = self._asked(question) if meant else (question, 0)
        try:
            answer = await ask(self.judge, asked)
        except JudgeError as error:
            raise self.failure(ask, str(error), [error]) from None
        votes = (answer.detail or {}).get("verdicts")
        detail: dict[str, Any] = {"kind": "aligned", "left_out": left_out, "changed": False} if meant else {}
        detail |= {"verdicts": votes} if votes else {}
        value, probability, alternatives = answer.value, answer.probability, answer.alternatives
        if meant and (mapped := mapped_answer(self.alignment.chosen, question, answer)) is not None:
            value, changed = _with_reason(question, answer.value, mapped)
            probability, alternatives = mapped.probability, mapped.alternatives
            detail |= {"changed": changed, **(mapped.detail or {})}
        combined = self.combined(ask, value, probability, detail, [answer])
        return replace(combined, alternatives=alternatives, detail=combined.detail or None)

    def _asked(self, question: Question[A]) -> tuple[Question[A], int]:
        """The question as it is asked, and the number of examples that are left out of it."""
        chosen = self.alignment.chosen
        here = material_hash(question.inputs()) if chosen.examples else ""
        left_out = [example.hash for example in chosen.examples].count(here)
        key = here if left_out else ""
        if (prompt := self._prompts.get(key)) is None:
            prompt = self._prompts[key] = asked_by(chosen, question).prompt
        return replace(cast(Any, question), prompt=prompt), left_out

    @functools.cached_property
    def _prompts(self) -> dict[str, Prompt]:
        """The prompts that were asked with, by the hash of the example that is left out."""
        return {}


def is_meant(chosen: AlignedQuestion, question: Question[Any]) -> bool:
    """Whether a question is asked and read as an alignment says."""
    return question.kind == chosen.kind and question.prompt.digest == chosen.prompt


def asked_by(chosen: AlignedQuestion, question: Question[A]) -> Question[A]:
    """The question as a judge with this alignment is asked it.

    Raises ConfigError for an example without an input of the question.
    """
    if not is_meant(chosen, question):
        return question
    here = material_hash(question.inputs()) if chosen.examples else ""
    shown = [example for example in chosen.examples if example.hash != here]
    return replace(cast(Any, question), prompt=aligned_prompt(question, chosen.wording, shown))


def mapped_answer(chosen: AlignedQuestion, question: Question[A], answer: JudgeAnswer[A]) -> Decided[A] | None:
    """An answer with mapped probabilities; None if they are unknown, or not mapped."""
    if not chosen.maps or getattr(answer.value, "verdict", None) == "undecided":
        return None
    if (before := distributions(question, answer.alternatives)) is None:
        return None
    mapping = Isotonic(chosen.corners) if chosen.corners else Scaled(chosen.threshold, chosen.temperature)
    after: list[Mapping[str, float]] = []
    best: list[str] = []
    for shares in before:
        groups = [[each for each in shares if (each in chosen.positive) is side] for side in (True, False)]
        if not all(groups):
            after.append(shares)
            best.append(max(shares, key=lambda option: shares[option]))
            continue
        share = mapping(positive_share(shares, chosen.positive))
        scaled = {**_spread(groups[0], shares, share), **_spread(groups[1], shares, 1 - share)}
        after.append({option: scaled[option] for option in shares})
        best.append(max(groups[share < 0.5], key=lambda option: shares[option]))
    try:
        return read_decisions(question, after, best)
    except ReplyError:  # the question takes no answer without what only a writer gives
        return None


def positive_share(shares: Mapping[str, float], positive: Sequence[str]) -> float:
    """The probability of the positive labels."""
    return min(1.0, math.fsum(shares.get(each, 0.0) for each in positive))


def _spread(options: Sequence[str], shares: Mapping[str, float], total: float) -> dict[str, float]:
    """A probability divided between options as it was."""
    before = sum(shares[each] for each in options)
    return {each: total * (shares[each] / before if before else 1 / len(options)) for each in options}


def _with_reason(question: Question[A], value: A, mapped: Decided[A]) -> tuple[A, bool]:
    """The mapped answer with the reasons of the judge for labels that it doesn't change, and whether it changes one."""
    if not isinstance(value, tuple):
        return _one_with_reason(question, value, mapped.value)
    pairs = [
        _one_with_reason(question, before, after)
        for before, after in zip(cast("tuple[Any, ...]", value), cast("tuple[Any, ...]", mapped.value), strict=True)
    ]
    return cast(A, tuple(each for each, _ in pairs)), any(changed for _, changed in pairs)


def _one_with_reason(question: Question[Any], before: Any, after: Any) -> tuple[Any, bool]:
    if not dataclasses.is_dataclass(before) or isinstance(before, type):
        return after, before != after
    own = {"probability", "probabilities"}
    kept = {
        each.name: getattr(before, each.name)
        for each in dataclasses.fields(before)
        if each.init and (each.name in question.explaining() or isinstance(getattr(after, each.name), tuple))
    }
    same = all(
        getattr(before, each.name) == getattr(after, each.name)
        for each in dataclasses.fields(before)
        if each.name not in own and each.name not in kept
    )
    return (replace(after, **kept) if same else after), not same


def aligned_prompt(question: Question[Any], wording: str | None, examples: Sequence[WorkedExample]) -> Prompt:
    """The prompt of a question with another wording and worked examples.

    Raises ConfigError for an example without an input of the question.
    """
    prompt = question.prompt if wording is None else replace(question.prompt, instructions=wording)
    if not examples:
        return prompt
    parts = [EXAMPLES_RULE]
    for number, example in enumerate(examples, start=1):
        if missing := [name for name in prompt.placeholders if name not in example.inputs]:
            raise ConfigError(f"align: example {number} of the alignment lacks {joined(missing)}")
        inputs = example.inputs
        parts.append(
            f"Example {number}\n{prompt.materials(inputs, question.optional)}\nThe right label: {example.label}"
        )
    fields = {each.name: getattr(prompt, each.name) for each in dataclasses.fields(Prompt)}
    return PromptWithExamples(**fields, labeled="\n\n".join(parts))


def how_asked(judges: Sequence[Judge], limits_of: Callable[[Judge], ContextLimits] | None = None) -> Asking:
    """How judges are asked.

    limits_of: Their limits in a run, which may have learned more of them; None for what they say themselves.
    """
    limits = {each.identity: each.context_limits if limits_of is None else limits_of(each) for each in judges}
    return Asking(limits=limits, alignments={found.hash: found.chosen for found in alignments_in(*judges)})


def alignments_in(*judges: Judge) -> Iterator[AlignmentFile]:
    """The alignments of judges and of their members."""
    for judge in judges:
        inner = judge.judge if isinstance(judge, LoggingJudge) else judge
        if isinstance(inner, Aligned):
            yield inner.alignment
        yield from alignments_in(*inner.members)


def is_example(record: Record) -> bool:
    """Whether an aligned judge has the sample of a record as an example, which it left out to judge it."""
    return any(_left_out(call) for call in record.calls)


def _left_out(call: JudgeCall) -> bool:
    return bool((call.detail or {}).get("left_out")) or any(map(_left_out, call.members))


def reads_examples(judge: Judge) -> bool:
    """Whether a judge reads the examples of a closed question: a model that writes, or a judge of the user's."""
    if isinstance(judge, DecisionOrText | ClosedJudge | SentenceJudge | LexicalJudge):
        return False
    return any(map(reads_examples, judge.members)) if judge.members else True


def reads_instructions(judge: Judge) -> bool:
    """Whether another wording can change the answers of a judge."""
    if isinstance(judge, DecisionOrText):
        return reads_instructions(judge.decides)
    if judge.members:
        return any(map(reads_instructions, judge.members))
    return isinstance(judge, DecisionJudge) or not isinstance(judge, ClosedJudge | SentenceJudge | LexicalJudge)
