"""Parse judges from one line (command line, printed identities) or from a table (configuration file).

    lexical
    openai/gpt-5.1
    openai/gpt-5.1(temperature=0.7, seed=1)
    my_app:judge                                        a Judge of a module, or of path/file.py:judge
    my_app:MyJudge(strict=true)                         a class of judges, with settings
    acme, acme(strict=true), acme/large                 a judge of an installed package
    vllm/my-model(http://localhost:8000/v1)
    panel(openai/gpt-5.1, anthropic/claude-sonnet-4-5, lexical, vote=mean)
    cascade(lexical, openai/gpt-5.1, threshold=0.8)
    typesafe/jev-latest                                 a decision model; the same as the next line
    decision(typesafe/jev-latest, text=sentences)
    onnx:models/nli, "onnx:my models/nli"               a verifier model in a folder or file; in a decision, too
    onnx:models/nli(window=256)
    self_consistency(openai/gpt-5.1(temperature=0.7), repeats=5)
    openai/gpt-5.1(align=align.json)                    aligned with labels, as any of the judges above can be

A line is first converted to a table. Only the modules of the named judges are imported.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from evalstone._core.addresses import built, find, is_address, meant_by, of_kind
from evalstone._core.display import joined
from evalstone._core.guards import is_list
from evalstone._core.plugins import JUDGES, Plugin, Plugins
from evalstone._core.plugins import PROVIDERS as BESIDE
from evalstone._core.redaction import is_credential, masked, register_settings
from evalstone.errors import ConfigError, absent, invalid, repeated, unknown
from evalstone.judges.base import Judge, JudgeSpec, register_secrets
from evalstone.models.catalog import PROVIDERS, info_of, is_provider, unknown_provider
from evalstone.models.limits import Limits

COMPOSITES: Mapping[str, tuple[str, int | None, tuple[str, ...]]] = {
    "panel": ("composite.Panel", None, ("vote", "quorum")),
    "cascade": ("cascade.Cascade", 2, ("threshold",)),
    "self_consistency": ("composite.SelfConsistency", 1, ("repeats",)),
    "decision": ("decision.DecisionOrText", 1, ("text",)),
}
"""For each kind: its class, the number of members (None: two or more), and its settings."""

OFFLINE: Mapping[str, str] = {"lexical": "lexical.LexicalJudge", "sentences": "decision.SentenceJudge"}
"""The judges without settings that need no model, and their classes."""

ONNX = "onnx:"
"""What is in front of the path of a verifier model."""

PLUGINS = Plugins(JUDGES, (*OFFLINE, *COMPOSITES, *PROVIDERS), beside=BESIDE)
"""The judges of installed packages. `NAME/MODEL` is one with the setting `model`."""

OWN_JUDGE = "; to judge with your own code, derive a class from evalstone.Judge, and name it or an instance of it"

_LIMITS = tuple(field.name for field in dataclasses.fields(Limits))
_FAMILIES = {"gpt": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "chatgpt": "openai"} | {
    "claude": "anthropic", "gemini": "google", "gemma": "google", "mistral": "mistral", "grok": "xai",
    "deepseek": "deepseek", "command": "cohere", "llama": "ollama", "qwen": "ollama",
}  # fmt: skip
"""The provider to suggest for a model that is named without one, by the start of its name."""


def parse_judge(spec: JudgeSpec) -> Judge:
    """Parse a judge from its name, a line or a table of settings.

    A table is {"model": "openai/gpt-5.1", "temperature": 0.2}, {"panel": [judges], "vote": …}, {"cascade": [primary,
    fallback], "threshold": …} or {"self_consistency": judge, "repeats": …}. Every judge except the lexical one also
    takes the limits `max_concurrency`, `requests_per_minute`, `tokens_per_minute` and `max_requests`. Every judge takes
    `log`, the path of a log file, and `align`, the path of a file that `evalstone align` wrote for it. A `model` can be
    a verifier model, `onnx:PATH`, or a judge of your own, `module:name` or `path/file.py:name`: a Judge, or a class of
    judges, whose fields are its settings.

    Raises:
        ConfigError: The judge, provider or setting is unknown (the message suggests the closest name), the line is
            malformed, or an object can't be imported or is no judge.
    """
    if isinstance(spec, Judge):
        register_secrets(spec)
        return spec
    register_settings(spec)
    if isinstance(spec, str) and spec.strip():
        settings = table_of(spec)
    elif isinstance(spec, Mapping):
        settings = dict(spec)
    else:
        forms = (
            "`lexical`, a model named provider/model, such as openai/gpt-5.1, module:name for one of your own, a table "
            "of settings, or a Judge"
        )
        text = f"a judge is {forms}, not {reprlib.repr(masked(spec))}"
        raise ConfigError(invalid("judge", forms, masked(spec)).worded(text))
    kinds = [kind for kind in ("model", *COMPOSITES) if kind in settings]
    if len(kinds) != 1:
        given = ", ".join(kinds) if kinds else str(sorted(map(str, settings)))
        expected = f'a model, such as model = "openai/gpt-5.1", or one of {", ".join(COMPOSITES)}'
        raise ConfigError(f"a judge's table needs {expected}; it has {given}")
    kind, subject, log = kinds[0], settings.pop(kinds[0]), settings.pop("log", None)
    align = settings.pop("align", None)
    judge = _model(subject, settings) if kind == "model" else _composite(kind, subject, settings)
    if align is not None:
        if not isinstance(align, str) or not align:
            raise ConfigError(invalid("align", "the path of a file of evalstone align", align, repr(masked(align))))
        judge = _class_at("aligned.Aligned")(judge, align)
    if log is None:
        return judge
    if not isinstance(log, str) or not log:
        raise ConfigError(invalid("log", "the path of a file", log, repr(masked(log))))
    return _class_at("logging.LoggingJudge")(judge, log)


def _model(name: Any, settings: dict[str, Any]) -> Judge:
    if not isinstance(name, str):
        raise ConfigError(invalid("model", 'the name of a model, such as "openai/gpt-5.1"', name, f"{masked(name)!r}"))
    name = name.strip()
    if name.startswith(ONNX):
        kind = _class_at("onnx.OnnxJudge")
        settings = settings_of(name, settings, ("labels", "window"))
        return _class_at("decision.DecisionOrText")(kind(name.removeprefix(ONNX).strip(), **settings))
    if is_address(name):
        return _own(find(name, "the judge"), settings, f"the judge {name}")
    provider, slash, model = name.partition("/")
    if slash:
        if model and (plugin := PLUGINS.get(provider)) is not None:
            return _own(added(plugin), {**settings, "model": model}, f"the judge {provider}")
        if model and not is_provider(provider):
            raise unknown_provider(name, PLUGINS.names())
        decides = model and info_of(provider).decides
        kind = _class_at("decision.DecisionJudge" if decides else "model.ModelJudge")
        names = [field.name for field in dataclasses.fields(kind) if field.init and field.name != "model"]
        names.remove("limits")
        judge = kind(name, **settings_of(name, settings, names))
        return _class_at("decision.DecisionOrText")(judge) if decides else judge
    if name in COMPOSITES:
        raise ConfigError(f"{name} needs its members, as in {name}(lexical, openai/gpt-5.1)")
    kind, version, _ = name.partition("@")
    judge = _class_at(OFFLINE[kind])() if kind in OFFLINE else None
    if judge is None or (version and judge.identity != name):
        if (plugin := PLUGINS.get(name)) is not None:
            return _own(added(plugin), settings, f"the judge {name}")
        raise _unknown_judge(name)
    if settings:
        given = ", ".join(sorted(map(str, settings)))
        raise ConfigError(f"the judge {kind} has no settings, but got {given}")
    return judge


def _own(value: Any, settings: Mapping[str, Any], named: str) -> Judge:
    """An object of the user's code as a judge. named: how it was named."""
    if inspect.isclass(value) and issubclass(value, Judge):
        value = _made(value, settings, named)
    elif not isinstance(value, Judge):
        raise ConfigError(of_kind(named, "a judge", "Judge", value), OWN_JUDGE)
    elif settings:
        raise ConfigError(f"{named} has settings of its own, and takes none here: it is a judge, not a class of judges")
    return parse_judge(value)


def added(plugin: Plugin) -> type[Judge] | Judge:
    """What a plug-in adds: a class of judges, or a judge.

    Raises ConfigError if its name is taken, it can't be imported, or it is no judge.
    """
    PLUGINS.check(plugin)
    value: Any = plugin.load()
    if isinstance(value, Judge) or (inspect.isclass(value) and issubclass(value, Judge)):
        return value
    raise ConfigError(of_kind(str(plugin), "a judge", "Judge", value), OWN_JUDGE)


def _made(kind: type[Judge], settings: Mapping[str, Any], named: str) -> Judge:
    """A judge of a class of one's own, with settings. Raises ConfigError for an unknown, absent or invalid one."""
    declared = dataclasses.fields(cast(Any, kind)) if dataclasses.is_dataclass(kind) else ()
    known = {each.name: each for each in declared if each.init}
    arguments = settings_of(named, settings, [name for name in known if name != "limits"])
    if "limits" in arguments and "limits" not in known:
        field = "limits: Limits = NO_LIMITS"
        raise ConfigError(f"{named} has no limits; to have them, declare the field {field}, and keep to them")
    missing = [
        name
        for name, each in known.items()
        if name not in arguments and each.default is each.default_factory is dataclasses.MISSING
    ]
    if missing:
        example = f"{named.removeprefix('the judge ')}({', '.join(f'{name}=…' for name in missing)})"
        raise ConfigError(absent(missing[0], f"{named} needs {joined(missing)}: {example}"))
    return built(named, cast("Callable[..., Judge]", kind), arguments)


def _composite(kind: str, subject: Any, settings: dict[str, Any]) -> Judge:
    location, count, names = COMPOSITES[kind]
    if count == 1 and not is_list(subject):
        subject = [subject]
    if not is_list(subject):
        raise ConfigError(invalid(kind, "a list of judges", subject, reprlib.repr(masked(subject)), verb="takes"))
    judges = list(map(parse_judge, subject))
    if count is not None and len(judges) != count:
        expected = "one judge" if count == 1 else "two judges, a primary and a fallback"
        raise ConfigError(f"{kind} takes {expected}, not {len(judges)}")
    return _class_at(location)(*judges, **settings_of(kind, settings, names))


def _class_at(location: str) -> Any:
    """A class of judges that take judges, which are parsed here: so its module is imported when it is needed."""
    module, name = location.split(".")
    return getattr(importlib.import_module(f"evalstone.judges.{module}"), name)


def parse_member(name: str, spec: object) -> Judge:
    """The judge that a parameter of another judge names. Raises ConfigError, naming the parameter for another type."""
    if not isinstance(spec, str | Mapping | Judge):
        raise ConfigError(invalid(name, "a judge, its name or a table of settings", spec))
    return parse_judge(cast("JudgeSpec", spec))


def settings_of(judge: str, settings: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The settings as keyword arguments, with the limits combined into one `Limits`."""
    arguments: dict[str, Any] = {}
    limits: dict[str, int] = {}
    for name, value in settings.items():
        if name not in names and name not in _LIMITS:
            raise ConfigError(f"{judge}: ", unknown("setting", str(name), (*names, *_LIMITS)))
        (limits if name in _LIMITS else arguments)[name] = value
    return {**arguments, "limits": Limits(**limits)} if limits else arguments


def _unknown_judge(name: str) -> ConfigError:
    known = [*OFFLINE, *COMPOSITES, *PLUGINS.names()]
    match = re.match(r"[a-z]+\d?", name.lower())
    family = match[0] if match else ""
    provider = _FAMILIES.get(family) or _FAMILIES.get(family.rstrip("0123456789"))
    if provider is not None:
        near = f"{provider}/{name}"
        text = f"unknown judge {name!r}; did you mean {near}? Models are named provider/model"
        return ConfigError(unknown("judge", name, known).worded(text, near))
    own = (address for address in meant_by(name) if ".py:" in address)  # names of models have dots, too
    message = unknown("judge", name, known, meant=own)
    language = " Language" if message.near else "; language"
    return ConfigError(message, f"{language} models are named provider/model, such as openai/gpt-5.1")


_CALL = re.compile(r"\s*([^\s(),=]+)\s*(?:\((.*)\))?\s*", re.DOTALL)
_SETTING = re.compile(r"\s*([a-z_]+)\s*=\s*(.*)", re.DOTALL)
_WORDS: Mapping[str, Any] = {"true": True, "false": False, "True": True, "False": False, "None": None, "none": None}
_MAX_DEPTH = 20


def table_of(spec: str) -> dict[str, Any]:
    """The table that a line stands for. Raises ConfigError if the line is malformed."""
    bare = _unquoted(spec.strip())
    if is_address(bare) or (bare.startswith(ONNX) and bare != spec.strip()):
        return {"model": bare}
    match = _CALL.fullmatch(spec)
    if match is None:
        raise ConfigError(f"a judge is written as name or name(…), not {spec.strip()!r}")
    name, inside = match[1], match[2]
    if inside is None:
        return {"model": name}
    judges: list[Any] = []
    settings: dict[str, Any] = {}
    for part in _split(inside, spec):
        if (setting := _SETTING.fullmatch(part)) is not None:
            if setting[1] in settings:
                raise ConfigError(f"{name}: ", repeated("settings", setting[1], f"{setting[1]} appears twice"))
            key, text = setting[1], setting[2].strip()
            settings[key] = _unquoted(text) if is_credential(key) else _value(text)
        elif part.strip().startswith(("http://", "https://")):
            settings["base_url"] = part.strip()  # as identities print it
        elif settings:
            raise ConfigError(f"{name}: judges come before settings, but {part.strip()!r} comes after one")
        else:
            judges.append(table_of(part))
    if name in COMPOSITES:
        return {name: judges, **settings}
    known = "/" in name or name.startswith(ONNX) or name.partition("@")[0] in OFFLINE or is_address(name)
    if not known and PLUGINS.get(name) is None:
        raise _unknown_judge(name)
    if judges:
        raise ConfigError(f"{name} takes settings such as temperature=0.7, not a judge")
    if "model" in settings:
        hint = "" if "/" in name or is_address(name) else f"; write {name}/{settings['model']}"
        text = f"{name} takes no model=… in a line{hint}"
        raise ConfigError(invalid("model", "a part of the name", settings["model"]).worded(text))
    return {"model": name, **settings}


def with_setting(spec: str, name: str, value: str) -> str:
    """The line of a known judge with a setting, instead of one with the same name."""
    match = _CALL.fullmatch(spec)
    if match is None:  # a path with spaces
        return f"{spec.strip()}({name}={value})"
    parts = [part.strip() for part in _split(match[2] or "", spec)]
    others = [part for part in parts if (setting := _SETTING.fullmatch(part)) is None or setting[1] != name]
    return f"{match[1]}({', '.join((*others, f'{name}={value}'))})"


def as_value(text: str) -> str | None:
    """A text as the value of a setting in a judge's line, in quotes if it needs them; None if no line can have it."""
    for written in (text, f'"{text}"', f"'{text}'"):
        try:
            if _split(written, written) == [written] and written == written.strip() and _value(written) == text:
                return written
        except ConfigError:
            continue
    return None


def _split(inside: str, spec: str) -> list[str]:
    """The text between commas; commas inside brackets and quotes don't count."""
    parts, depth, quote = [""], 0, ""
    for character in inside:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        if depth > _MAX_DEPTH:
            message = f"judges are nested more than {_MAX_DEPTH} levels deep"
            raise ConfigError(f"{message} in {reprlib.repr(masked(spec.strip()))}")
        if depth < 0:
            break
        if character == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += character
    if depth or quote:
        raise ConfigError(f"brackets or quotes don't match in {spec.strip()!r}")
    if not any(part.strip() for part in parts):
        return []
    if not all(part.strip() for part in parts):
        raise ConfigError(f"there is nothing between two commas, or after the last one, in {spec.strip()!r}")
    return parts


def _value(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if text.startswith("[") and text.endswith("]"):
        return [_value(part.strip()) for part in _split(text[1:-1], text)]
    return _unquoted(text)


def _unquoted(text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quoted else text
