"""Judges from what a command line or a file can hold: a name, one line, or a table of settings."""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from evalstone.errors import ConfigError, unknown
from evalstone.judges.base import Judge
from evalstone.judges.cascade import Cascade
from evalstone.judges.lexical import LexicalJudge
from evalstone.judges.logging import Limited, Logged
from evalstone.judges.model import ModelJudge
from evalstone.judges.panel import Panel
from evalstone.judges.self_consistency import SelfConsistency
from evalstone.judges.spec import table_of

_LIMITS = ("at_once", "a_minute", "at_most")


def parse_judge(spec: str | Mapping[str, Any] | Judge) -> Judge:
    """A judge from `lexical`, `openai/gpt-5.1`, or {"model": "openai/gpt-5.1", "temperature": 0.2}; judges made of
    judges from {"panel": [judges], "vote": …}, {"cascade": [first, then], "below": …}, {"self_consistency": judge,
    "samples": …}, or on one line: `cascade(lexical, openai/gpt-5.1, below=0.9)`.

    A model's table may have `samples` (it is asked so many times); any table `at_once`, `a_minute`, `at_most` (limits)
    and `log` (a file). Raises ConfigError for an unknown judge, provider or setting, naming the nearest.
    """
    if isinstance(spec, Judge):
        return spec
    if not isinstance(spec, str | Mapping) or spec == "":  # pyright: ignore[reportUnnecessaryIsInstance]
        told = "a judge is `lexical`, a language model named provider/model, such as openai/gpt-5.1"
        raise ConfigError(f"{told}, a table of such a model and its settings, or a Judge, not {reprlib.repr(spec)}")
    if isinstance(spec, str):
        read = table_of(spec) if "(" in spec else spec
        return _named(read) if isinstance(read, str) else parse_judge(read)
    settings = dict(spec)
    wrapping = {name: settings.pop(name) for name in (*_LIMITS, "log") if name in settings}
    return _wrapped(_made(settings), wrapping)


def _named(name: str) -> Judge:
    if name in ("lexical", LexicalJudge().identity):
        return LexicalJudge()
    if name in _KINDS:
        raise ConfigError(f"{name} needs the judges that it is made of: {name}(lexical, openai/gpt-5.1)")
    if "/" not in name:
        told = unknown("judge", name, ["lexical", *_KINDS])
        raise ConfigError(f"{told}; language models are named provider/model, such as openai/gpt-5.1")
    return ModelJudge(name)


def _wrapped(judge: Judge, wrapping: Mapping[str, Any]) -> Judge:
    limits = {name: value for name, value in wrapping.items() if name in _LIMITS}
    if limits:
        judge = Limited(judge, **limits)
    if "log" not in wrapping:
        return judge
    if not isinstance(wrapping["log"], str) or not wrapping["log"]:
        raise ConfigError(f"log must be the path of a file, not {wrapping['log']!r}")
    return Logged(judge, wrapping["log"])


def _made(settings: dict[str, Any]) -> Judge:
    kinds = [kind for kind in (*_KINDS, "model") if kind in settings]
    if len(kinds) != 1:
        told = "is all of " + ", ".join(kinds) if kinds else f"has {sorted(map(str, settings))}"
        wanted = 'a model, such as model = "openai/gpt-5.1"'
        raise ConfigError(f"a judge's table needs {wanted}, or one of {', '.join(_KINDS)}; it {told}")
    given = settings.pop(kinds[0])
    if kinds[0] in _KINDS:
        return _KINDS[kinds[0]](given, settings)
    if not isinstance(given, str):
        raise ConfigError(f'a judge\'s table needs a model, such as model = "openai/gpt-5.1", not {given!r}')
    if "samples" in settings:
        samples = settings.pop("samples")
        return SelfConsistency(_model(given, settings), samples)
    return _model(given, settings)


def _model(name: str, settings: dict[str, Any]) -> Judge:
    if name == "lexical":
        if settings:
            told = ", ".join(sorted(map(str, settings)))
            raise ConfigError(f"the lexical judge has no settings; it was given {told}")
        return LexicalJudge()
    _check(name, settings, {f.name for f in dataclasses.fields(ModelJudge) if f.init})
    return ModelJudge(name, **settings)


def _panel(given: Any, settings: dict[str, Any]) -> Judge:
    _check("panel", settings, ("vote", "quorum"))
    return Panel(*_judges("panel", given), **settings)


def _cascade(given: Any, settings: dict[str, Any]) -> Judge:
    _check("cascade", settings, ("below",))
    judges = _judges("cascade", given)
    if len(judges) != 2:
        raise ConfigError(f"a cascade has two judges, the first and the one asked then, not {len(judges)}")
    return Cascade(judges[0], judges[1], **settings)


def _consistent(given: Any, settings: dict[str, Any]) -> Judge:
    _check("self_consistency", settings, ("samples",))
    if isinstance(given, list):
        raise ConfigError(f"consistent asks one judge several times, not {len(cast('list[Any]', given))} judges")
    return SelfConsistency(parse_judge(given), **settings)


_KINDS: Mapping[str, Callable[[Any, dict[str, Any]], Judge]] = {
    "panel": _panel,
    "cascade": _cascade,
    "self_consistency": _consistent,
}


def _judges(kind: str, given: Any) -> list[Judge]:
    if not isinstance(given, list | tuple):
        raise ConfigError(f"{kind} takes a list of judges, not {reprlib.repr(given)}")
    return [parse_judge(one) for one in cast("Sequence[Any]", given)]


def _check(what: str, settings: Mapping[str, Any], known: Sequence[str] | set[str]) -> None:
    for name in settings:
        if name not in known:
            raise ConfigError(f"{what}: {unknown('setting', str(name), known)}")
