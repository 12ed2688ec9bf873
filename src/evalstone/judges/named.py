"""Judges from what a command line or a file can hold: a name, or a table of settings."""

from __future__ import annotations

import dataclasses
import reprlib
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
    if not isinstance(spec, str | Mapping) or spec == "":  # pyright: ignore[reportUnnecessaryIsInstance]
        told = "a judge is `embedded`, a language model named provider/model, such as openai/gpt-5.1"
        raise UsageError(f"{told}, a table of such a model and its settings, or a Judge, not {reprlib.repr(spec)}")
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
        raise UsageError(
            f'a judge\'s table needs a model, such as model = "openai/gpt-5.1"; it has {sorted(map(str, spec))}'
        )
    if model == "embedded":
        if settings:
            raise UsageError(
                f"the embedded judge has no settings; it was given {', '.join(sorted(map(str, settings)))}"
            )
        return EmbeddedJudge()
    known = {f.name for f in dataclasses.fields(ModelJudge) if f.init}
    for name in settings:
        if name not in known:
            raise UsageError(f"{model}: {unknown('setting', str(name), known)}")
    return ModelJudge(model, **settings)
