"""Judges from what a command line or a file can hold: a name, or a table of settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from evalstone.errors import UsageError, unknown
from evalstone.judges.base import Judge
from evalstone.judges.embedded import EmbeddedJudge
from evalstone.judges.model import ModelJudge


def judge_from(spec: str | Mapping[str, Any] | Judge) -> Judge:
    """A judge from `embedded`, `openai/gpt-5.1`, or {"model": "openai/gpt-5.1", "temperature": 0.2}.

    Raises UsageError for an unknown judge, provider or setting, naming the nearest.
    """
    if isinstance(spec, Judge):
        return spec
    if isinstance(spec, str):
        if spec == "embedded":
            return EmbeddedJudge()
        if "/" not in spec:
            told = unknown("judge", spec, ["embedded"])
            raise UsageError(f"{told}; language models are named provider/model, such as openai/gpt-5.1")
        return ModelJudge(spec)
    settings = dict(spec)
    model = settings.pop("model", None)
    if not isinstance(model, str):
        raise UsageError(f'a judge\'s table needs a model, such as model = "openai/gpt-5.1"; it has {sorted(spec)}')
    if model == "embedded":
        if settings:
            raise UsageError(f"the embedded judge has no settings; it was given {', '.join(sorted(settings))}")
        return EmbeddedJudge()
    known = {f.name for f in dataclasses.fields(ModelJudge) if f.init}
    for name in settings:
        if name not in known:
            raise UsageError(f"{model}: {unknown('setting', name, known)}")
    if isinstance(settings.get("price"), list):
        settings["price"] = tuple(settings["price"])
    return ModelJudge(model, **settings)
