"""The plan of a run from what users name: samples, scorers, a judge, a target."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from evalstone._core.display import joined
from evalstone.datasets import Samples
from evalstone.datasets.loading import load_for_scoring
from evalstone.datasets.reading import AS_FOUND, Reading
from evalstone.errors import ConfigError, EvalstoneWarning
from evalstone.judges.base import Judge, JudgeSpec, NoJudge
from evalstone.judges.parse import parse_judge
from evalstone.run.hidden_plugins import hidden_plugins
from evalstone.run.plan import Plan
from evalstone.run.saved import recorded_run
from evalstone.scorers import Scorer, parse_scorers
from evalstone.scorers.base import ScorerSpec
from evalstone.scorers.registry import specs_of
from evalstone.targets import Target, User, parse_target, parse_user
from evalstone.targets.frameworks import FrameworkObject

TargetSpec: TypeAlias = "str | Mapping[str, Any] | Callable[..., Any] | FrameworkObject | Target"
"""A function, a graph or an agent, an address such as "my_app:agent", a table of settings, or a Target."""
UserSpec: TypeAlias = "str | Mapping[str, Any] | Sequence[str] | Callable[..., Any] | Judge | User"
"""A list of messages, a function or its address, a judge or its name, a table of settings, or a User."""


def plan_for(
    samples: Samples,
    scorers: ScorerSpec | Iterable[ScorerSpec],
    *,
    judge: JudgeSpec | None = "lexical",
    target: TargetSpec | None = None,
    trials: int = 1,
    user: UserSpec | None = None,
    reading: Reading = AS_FOUND,
    limit: int | None = None,
    keep_reasoning: bool = False,
    ledger: str | Path | None = None,
) -> Plan:
    """The plan of an evaluation, unchecked. Arguments are those of `evaluate`; reading: how the samples are read."""
    dataset = load_for_scoring(samples, **reading.to_dict()).first(limit)
    find_run = None if ledger is None else functools.partial(recorded_run, ledger=ledger)
    answering = None if target is None else parse_target(target, find_run=find_run)
    talking = None if user is None else parse_user(user)
    specs = specs_of(scorers)
    parsed = parse_scorers(specs)
    named = (scorer.name for scorer, spec in zip(parsed, specs, strict=True) if isinstance(spec, str | Mapping))
    for said in hidden_plugins(named, judge):
        warnings.warn(said, EvalstoneWarning, stacklevel=2)
    return Plan(
        dataset,
        parsed,
        judge_for(parsed, judge),
        target=answering,
        trials=trials,
        user=talking,
        keep_reasoning=keep_reasoning,
    )


def judge_for(scorers: Sequence[Scorer], judge: JudgeSpec | None) -> Judge:
    """The run's judge. Raises ConfigError if it is None and a scorer needs one."""
    if judge is not None:
        return parse_judge(judge)
    if asking := [scorer.name for scorer in scorers if scorer.asks_shared_judge]:
        verb = "needs" if len(asking) == 1 else "need"
        raise ConfigError(f"{joined(asking)} {verb} a judge, and judge is None; name one, such as lexical")
    return NoJudge()
