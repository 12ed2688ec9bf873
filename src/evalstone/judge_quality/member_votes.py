"""The scores that the members of a panel would have given, from their votes on the panel's questions.

No member is asked anything: the scorer is run again for each member, with the member's votes as answers. The answers to
questions that a panel doesn't vote on, such as lists of claims, are the panel's. A sample for which the member's votes
lead to a question that the panel wasn't asked has no score.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

from evalstone._core.json import to_jsonable
from evalstone.judges.base import Judge
from evalstone.judges.composite import Panel
from evalstone.judges.scripted import ReplayJudge
from evalstone.results.run import Run
from evalstone.scorers import Scorer
from evalstone.types import JudgeCall, Record


async def scores_by_votes(
    panel: Panel, scorer: Scorer, records: Iterable[Record], run: Callable[[Judge], Awaitable[Run]]
) -> Mapping[str, Mapping[str, float]]:
    """By member, the scores by sample ID. Empty if the scorer has a judge of its own.

    records: What the panel's calls are in. run: Runs the scorer on the same samples with another judge.
    """
    if scorer.judges or not scorer.asks_shared_judge:
        return {}
    calls = [call for record in records for call in record.calls if call.judge == panel.identity]
    found: dict[str, Mapping[str, float]] = {}
    for member in panel.members:
        votes = {call.fingerprint: answer for call in calls for answer in _answer(call, member.identity)}
        scored = await run(ReplayJudge(votes, member.identity, panel.context_limits))
        found[member.identity] = {each.sample_id: each.value for each in scored.records if each.value is not None}
    return found


def _answer(call: JudgeCall, member: str) -> Iterator[Mapping[str, Any]]:
    """A member's answer in a panel's call, as data; the panel's if it wasn't voted on; nothing if there is none."""
    voted = (call.detail or {}).get("vote") != "none"
    answers = [each for each in call.members if each.judge == member] if voted else [call]
    yield from (to_jsonable(each) for each in answers[:1] if each.answer is not None)
