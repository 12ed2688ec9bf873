"""A verifier model of the user's as a judge: `OnnxJudge("models/nli")`, named `onnx:models/nli`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from evalstone._core import sync
from evalstone._core.addresses import named_beside
from evalstone._core.declarations import TEXT, TEXTS, Range, check_settings
from evalstone._core.text import is_blank, sentences
from evalstone.errors import JudgeDeclined, ReplyError
from evalstone.judges.decision import ClosedJudge
from evalstone.models.limits import NO_LIMITS, Limits
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question, QuestionSpec
from evalstone.questions.claims import VerifyClaims
from evalstone.questions.decisions import as_decisions, read_decisions, stored_decisions, stored_text
from evalstone.questions.verdict import ClaimSupported
from evalstone.types import NO_USAGE, Usage
from evalstone.types.context_limits import UNLIMITED, ContextLimits

if TYPE_CHECKING:
    from evalstone.judges.verifier import ModelFiles, Outcome, Verifier, Window

A = TypeVar("A")
T = TypeVar("T")

MOST_WINDOWS = 1000
"""The most windows of one question. More would take minutes."""
_CORES = os.cpu_count() or 1


class OnnxJudge(ClosedJudge, kw_only=False):
    """A verifier model in an ONNX file: offline, deterministic and free, named `onnx:PATH`.

    PATH is a folder with `model.onnx`, `config.json` and `tokenizer.json`, or the ONNX file beside these. The model is
    an NLI cross-encoder, which reads passages and one claim, or a token classifier, which marks what is not supported
    in an answer. It answers whether passages support claims (ClaimSupported, VerifyClaims); every other question raises
    JudgeDeclined. `decision(onnx:PATH, text=…)` names a judge for these.

        supported    = max over windows of p(entailment)
        contradicted = max over windows of p(contradiction), at most 1 - supported
        token classifier: p(entailment) is the least p(supported) of the claim's tokens

    Passages that fit into the model's window are read together. The probabilities are the model's own: how often they
    are right is what `calibrate` measures.

    Raises ConfigError for a setting of the wrong type or out of range. `check` and `identity` raise it for files that
    are absent or no such model, with the name of the file; `check` raises MissingDependency without the extra `onnx`.
    """

    deterministic = True
    gap = "only says whether passages support claims; name a judge for the rest"

    KINDS: ClassVar[tuple[type[Question[Any]], ...]] = (ClaimSupported, VerifyClaims)

    path: Annotated[str, TEXT]
    """A folder, or an ONNX file."""
    _: KW_ONLY
    labels: Annotated[Sequence[str] | None, TEXTS] = None
    """The labels of the model's outputs in their order, such as entailment, neutral, contradiction. None reads those of
    `config.json`."""
    window: Annotated[int | None, Range(32)] = None
    """The tokens that the model reads at once. None takes it from the configuration, up to 4,096, or else 512."""
    limits: Limits = field(default=NO_LIMITS, compare=False)
    """The maximum number of questions in progress, and of questions per minute."""

    def __post_init__(self) -> None:
        check_settings(self, "onnx")
        path = named_beside(self.path, "the judge")
        object.__setattr__(self, "path", str(path))
        said = f"the verifier model {path.name} compares claims with passages, and has no reasons"
        object.__setattr__(self, "note", said)

    @property
    def spec(self) -> str:
        return f"onnx:{self.path}"

    @property
    def identity(self) -> str:
        """A hash of the model's files, its labels and its window; not its path."""
        return _identity_of(self._files)

    @property
    def context_limits(self) -> ContextLimits:
        """No text is too long. A token classifier reads whole answers."""
        return replace(UNLIMITED, whole=_loaded(self._files).by_token)

    @property
    def _files(self) -> ModelFiles:
        from evalstone.judges.verifier import model_files  # noqa: PLC0415 - loaded on demand

        return model_files(Path(self.path), self.labels, self.window)

    def check(self) -> None:
        _loaded(self._files)

    def price(self, usage: Usage) -> float | None:
        return 0.0

    def estimated_usage(self, question: Question[Any], size: int | None = None) -> Usage:
        return NO_USAGE

    def decides(self, asked: QuestionSpec) -> bool:
        return (asked if isinstance(asked, type) else type(asked)) in self.KINDS

    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        closed = as_decisions(question) if self.decides(question) else None
        if closed is None:
            raise JudgeDeclined(f"{self.spec} {self.gap}; {question.kind} is no such question")
        if question.prompt != getattr(type(question), "prompt", None):
            raise JudgeDeclined(f"{self.spec} follows no instructions, so it can't use a prompt of your own")
        started, files = time.perf_counter(), self._files
        identity = _identity_of(files)
        async with self.limits.admitted(identity):
            found = await _support(_loaded(files), *_claims_of(question))
        shares = [_as_options(question, each) for each in found]
        answer = read_decisions(question, shares)
        return JudgeAnswer(
            value=answer.value,
            judge=identity,
            reply=stored_text(question, closed, shares),
            seconds=time.perf_counter() - started,
            probability=answer.probability,
            alternatives=answer.alternatives,
            detail=answer.detail,
        )

    def read(
        self, question: Question[A], reply: str, alternatives: Mapping[str, float] | None
    ) -> tuple[A, Mapping[str, Any] | None]:
        if (answer := stored_decisions(question, reply)) is None:
            raise ReplyError(f"the stored answer is not to this {question.kind}", reply=reply)
        return answer.value, answer.detail


def _identity_of(files: ModelFiles) -> str:
    return f"onnx@1({files.digest})"


def _loaded(files: ModelFiles) -> Verifier:
    from evalstone.judges.verifier import loaded  # noqa: PLC0415 - loaded on demand

    return loaded(files)


def _claims_of(question: Question[Any]) -> tuple[Sequence[str], Sequence[str]]:
    """The claims of a question, and the passages."""
    match question:
        case ClaimSupported(claim=claim, context=context):
            return (claim,), context
        case VerifyClaims(claims=claims, context=context):
            return claims, context
        case _:
            raise TypeError(question.kind)


def _as_options(question: Question[Any], found: Mapping[Outcome, float]) -> Mapping[str, float]:
    """The probabilities of the options of a verdict, the least favorable first: of equal ones, that is the verdict."""
    if isinstance(question, ClaimSupported):
        return {"no": 1 - found["supported"], "yes": found["supported"]}
    return {outcome: found[outcome] for outcome in ("contradicted", "not_mentioned", "supported")}


async def _support(
    verifier: Verifier, claims: Sequence[str], passages: Sequence[str]
) -> Sequence[Mapping[Outcome, float]]:
    """The probability of each outcome for each claim. Of the parts of an answer, the least supported one counts.
    Without passages, no claim is supported.

    Raises JudgeDeclined for a claim that is too long, and for too many windows.
    """
    if not (passages := [passage for passage in passages if not is_blank(passage)]):
        nothing: Mapping[Outcome, float] = {"supported": 0.0, "contradicted": 0.0, "not_mentioned": 1.0}
        return [nothing] * len(claims)
    work = await _in_thread(_work, verifier, [*map(_whole, claims)], [*map(_whole, passages)])
    found = await asyncio.gather(*(_in_thread(verifier.support, window) for _, window in work))
    by_part: dict[tuple[int, int], list[Mapping[Outcome, float]]] = {}
    for (parts, _), shares in zip(work, found, strict=True):
        for place, each in shares.items():
            by_part.setdefault(parts[place], []).append(each)
    by_claim: dict[int, list[Mapping[Outcome, float]]] = {}
    for (claim, _), each in by_part.items():
        by_claim.setdefault(claim, []).append(_best(each))
    return [min(by_claim[claim], key=lambda shares: shares["supported"]) for claim in range(len(claims))]


def _whole(text: str) -> str:
    """A text without halves of characters, which tokenizers refuse."""
    return text.encode("utf-8", "replace").decode()


def _work(
    verifier: Verifier, claims: Sequence[str], passages: Sequence[str]
) -> Sequence[tuple[Sequence[tuple[int, int]], Window]]:
    """The windows to read, each with the parts of claims in it: the place of a claim, and that of a part of it.

    A token classifier reads a whole answer by its sentences, which may be more than it can read at once.
    """
    whole = verifier.by_token and len(claims) == 1
    of_claim = [(sentences(claim) if whole else ()) or (claim,) for claim in claims]
    parts = [(claim, part) for claim, texts in enumerate(of_claim) for part in range(len(texts))]
    texts = [of_claim[claim][part] for claim, part in parts]
    work: list[tuple[Sequence[tuple[int, int]], Window]] = []
    for group in verifier.groups(texts):
        for window in verifier.windows(passages, [texts[n] for n in group]):
            work.append(([parts[n] for n in group], window))
            if len(work) > MOST_WINDOWS:
                message = f"passages and claims are more than {MOST_WINDOWS:,} windows of the verifier model"
                raise JudgeDeclined(message)
    return work


def _best(windows: Sequence[Mapping[Outcome, float]]) -> Mapping[Outcome, float]:
    """The probabilities over all windows: what one of them supports is supported, and otherwise what one of them
    contradicts is contradicted."""
    supported = max(each["supported"] for each in windows)
    contradicted = min(max(each["contradicted"] for each in windows), 1 - supported)
    return {
        "supported": supported,
        "contradicted": contradicted,
        "not_mentioned": max(0.0, 1 - supported - contradicted),
    }


async def _in_thread(function: Callable[..., T], *args: Any) -> T:
    """What a function returns, in one of as many threads as there are cores. The model needs no lock for Python."""
    return await asyncio.wrap_future(sync.worker(_CORES).submit(function, *args))
