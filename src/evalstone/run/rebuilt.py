"""The prompts behind a record, rebuilt: a run stores what judges replied, and not what they were asked.

The scorer scores the stored sample once more, and each of its questions is answered from the calls of the record. A
question has the fingerprint of a call if kind, prompt, form, inputs and settings are the same to the character, so a
prompt that is shown is the one that was sent, or none is shown. Nothing is asked, and no code runs but evalstone's own
and that of scorers which are passed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

from evalstone._core import sync
from evalstone._core.guards import is_list
from evalstone._core.json import to_jsonable
from evalstone.errors import EvalstoneError
from evalstone.judges.aligned import asked_by
from evalstone.judges.model import opening_messages
from evalstone.judges.scripted import alignments_named, instructions_named, is_decision_model
from evalstone.models.typed_questions import TypedQuestion
from evalstone.questions.base import Question
from evalstone.questions.decisions import as_decisions
from evalstone.results.summary import ScorerInfo
from evalstone.results.views.calls import Asked, Prompts
from evalstone.run.replay_session import ReplaySession
from evalstone.run.scoring import score_sample
from evalstone.run.session import Session
from evalstone.scorers.base import Scorer
from evalstone.scorers.tables import defined
from evalstone.types import AlignedQuestion, Asking, JudgeCall, Record, Sample, without_fingerprints

NONE: Mapping[str, Scorer] = MappingProxyType({})
"""No scorers."""


def prompts_behind(
    records: Iterable[Record],
    sample: Sample | None,
    scorers: Iterable[ScorerInfo],
    *,
    keeps_reasoning: bool,
    asking: Asking,
    own: Mapping[str, Scorer] = NONE,
) -> dict[str, Prompts]:
    """What the judges of a sample were asked, by the signature of the scorer; the arguments are those of
    `rebuilt_prompts`."""
    infos = {info.signature: info for info in scorers}
    return {
        record.signature: rebuilt_prompts(
            record,
            sample,
            infos[record.signature],
            keeps_reasoning=keeps_reasoning,
            asking=asking,
            own=own,
        )
        for record in records
        if record.calls
    }


def rebuilt_prompts(
    record: Record,
    sample: Sample | None,
    info: ScorerInfo,
    *,
    keeps_reasoning: bool,
    asking: Asking,
    own: Mapping[str, Scorer] = NONE,
) -> Prompts:
    """What the judges of a record were asked, as far as it can be rebuilt.

    Args:
        record: The record.
        sample: Its sample; None if the run has no texts.
        info: Its scorer.
        keeps_reasoning: Whether the reasoning in front of the output was scored.
        asking: How the judges were asked.
        own: Scorers with code of the user's, by their signatures, which have a hash of their code. It is run.
    """
    if sample is None:
        return Prompts({}, "no_texts")
    if info.tool:
        return Prompts({}, "imported")
    if (scorer := own.get(info.signature)) is None:
        try:
            scorer = defined(info.definition or {"name": info.name})
        except EvalstoneError:
            return Prompts({}, "own_code")
    if scorer.signature != info.signature:
        has_settings = without_fingerprints(scorer.signature) != info.parameters
        return Prompts({}, "settings" if has_settings and not info.definition else "other_version")
    if not scorer.may_ask:
        return Prompts({}, "own_code")
    session = ReplaySession(record.calls, keeps_reasoning=keeps_reasoning, asking=asking)
    try:
        sync.run(_scored(scorer, sample, session))
        asked = {
            (call.fingerprint, call.judge): _asked(question, call.judge)
            for call, question in _of_calls(record.calls, session.questions, asking.alignments)
        }
    except EvalstoneError:
        return Prompts({}, "other_version")
    named = {hash for call in record.calls for hash in alignments_named(call.judge)}
    return Prompts(asked, "not_rebuilt" if named <= asking.alignments.keys() else "no_alignment")


async def _scored(scorer: Scorer, sample: Sample, session: Session) -> None:
    try:
        await score_sample(dataclasses.replace(scorer, judge=None) if scorer.judge else scorer, sample, session)
    finally:
        await session.close()


def _of_calls(
    calls: Sequence[JudgeCall], questions: Mapping[str, Question[Any]], alignments: Mapping[str, AlignedQuestion]
) -> Iterator[tuple[JudgeCall, Question[Any]]]:
    """The calls to single judges whose questions are known, with the questions."""
    for call in calls:
        question = questions.get(call.fingerprint)
        if question is None:
            continue
        if not call.members:
            yield call, question
            continue
        known = {question.fingerprint: question}
        if (part := _unsure_part(question, call.detail or {})) is not None:
            known[part.fingerprint] = part
        for hash in alignments_named(call.judge):
            if (chosen := alignments.get(hash)) is not None:
                aligned = asked_by(chosen, question)
                known[aligned.fingerprint] = aligned
        yield from _of_calls(call.members, known, alignments)


def _unsure_part(question: Question[Any], detail: Mapping[str, Any]) -> Question[Any] | None:
    """The question about those items that a cascade sent on; None if it sent none, or all."""
    name, numbers = question.divisible_by, detail.get("items")
    if name is None or not is_list(numbers):
        return None
    items = cast("Sequence[Any]", getattr(question, name))
    chosen = tuple(items[at - 1] for at in numbers if isinstance(at, int) and 0 < at <= len(items))
    return dataclasses.replace(question, **{name: chosen}) if len(chosen) == len(numbers) else None


def _asked(question: Question[Any], judge: str) -> Asked:
    if is_decision_model(judge) and (closed := as_decisions(question)) is not None:
        state = json.dumps(closed.state, ensure_ascii=False, indent=1)
        decisions = ((f"decision {each.name}", _decision_text(each)) for each in closed.decisions)
        return Asked(texts=(("state", state), *decisions))
    instructions = instructions_named(judge)
    if instructions is None:
        inputs = ((name, value) for name, value in question.inputs().items() if value)
        return Asked(
            texts=tuple((name, value if isinstance(value, str) else "\n\n".join(value)) for name, value in inputs)
        )
    messages = opening_messages(question, instructions)
    schema = question.json_schema
    return Asked(
        texts=tuple((message.role, message.content) for message in messages),
        is_prompt=True,
        schema=None if schema is None else to_jsonable(schema),
    )


def _decision_text(decision: TypedQuestion) -> str:
    """The instructions of a decision, and its options with what they mean."""
    options = (f"- {option}: {meaning}" if meaning else f"- {option}" for option, meaning in decision.options.items())
    return "\n".join([decision.instructions, "", *options])
