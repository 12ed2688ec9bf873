"""What the values of options mean: numbers, times, mappings, scorers, targets and judges."""

from __future__ import annotations

import functools
import math
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from evalstone._core.addresses import beside, is_address
from evalstone._core.display import joined, quoted
from evalstone._core.front_ends import Setting
from evalstone._core.times import duration
from evalstone.cli.output import prints_to_stderr, to_stderr
from evalstone.errors import ConfigError, invalid, repeated

if TYPE_CHECKING:
    from evalstone._core.front_ends import Wording
    from evalstone.results.summary import ScorerInfo
    from evalstone.scorers.base import Scorer
    from evalstone.targets import Target, User


V = TypeVar("V")


def exporting(otel: bool) -> AbstractContextManager[None]:
    """Export to OpenTelemetry within the block, and print at its end what could not be exported."""
    if not otel:
        return nullcontext()
    from evalstone.otel.otlp import export_otlp

    return export_otlp(on_loss=to_stderr)


def field_columns(texts: Iterable[str], option: str) -> dict[str, str | list[str]]:
    """`["output=answer"]` as a mapping. `input=` ignores a field, and several columns of `context` are joined.

    Raises ConfigError for malformed text, and for a field other than context with several columns.
    """
    columns: dict[str, list[str]] = {}
    for text in texts:
        field, equals, column = (part.strip() for part in text.partition("="))
        if not (field and equals):
            raise ConfigError(f"{option} takes FIELD=COLUMN, such as output=answer, not {text!r}")
        if column not in (names := columns.setdefault(field, [])):
            names.append(column)
        if len(names) > 1 and field != "context":
            raise ConfigError(
                repeated(
                    option,
                    field,
                    f"{option} names {field} twice: {' and '.join(names)}; only context takes several columns",
                )
            )
    return {field: names if len(names) > 1 else names[0] for field, names in columns.items()}


def separators(texts: Iterable[str], option: str) -> dict[str, str]:
    """`["context=|"]` as a mapping from field to separator, with line breaks and tabs for `\\n` and `\\t`. Raises
    ConfigError for malformed text, and for a field with several separators."""
    found: dict[str, str] = {}
    for text in texts:
        field, equals, separator = text.partition("=")
        if not (field.strip() and equals and separator):
            raise ConfigError(f"{option} takes FIELD=SEPARATOR, such as 'context=|', not {text!r}")
        if field.strip() in found:
            raise ConfigError(repeated(option, field.strip(), f"{option} names {field.strip()} twice"))
        found[field.strip()] = separator.replace("\\n", "\n").replace("\\t", "\t")
    return found


_NUMBER, _RATE = "SCORER=NUMBER, such as faithfulness=0.9", "SCORER@SCORE=SHARE, such as faithfulness@0.8=0.9"


def scorer_numbers(texts: Iterable[str], option: str, form: str = _NUMBER) -> dict[str, float]:
    """`["faithfulness=0.9", "contains(expected=z)=1"]` as a mapping from scorer to number.

    The number follows the last equals sign, since a scorer's parameters may contain others. Raises ConfigError for
    malformed text, a value that isn't a finite number, and a scorer named twice. form: how it is written, for errors.
    """
    values: dict[str, float] = {}
    for text in texts:
        scorer, equals, number = (part.strip() for part in text.rpartition("="))
        if not (scorer and equals and number) or number.endswith(")"):
            raise ConfigError(f"{option} takes {form}, not {text!r}")
        value = finite(number, f"{option} {scorer}")
        if scorer in values:
            raise ConfigError(
                repeated(option, scorer, f"{option} names {scorer} twice: {values[scorer]:g} and {value:g}")
            )
        values[scorer] = value
    return values


def numbers_or_one(texts: Sequence[str], option: str) -> dict[str, float] | float | None:
    """`["0.02"]` as a number for all scorers, or `["faithfulness=0.02"]` by scorer; None without a text.

    Raises ConfigError like scorer_numbers.
    """
    if not texts:
        return None
    if any("=" in text for text in texts):
        return scorer_numbers(texts, option)
    if len(texts) > 1:
        raise ConfigError(f"{option} takes one number for all scorers or SCORER=NUMBER, not {len(texts)} numbers")
    return finite(texts[0], option)


def pass_rates(texts: Iterable[str], option: str) -> dict[str, tuple[float, float]]:
    """`["faithfulness@0.8=0.9"]` as a mapping from scorer to score and share. Raises like scorer_numbers."""
    rates: dict[str, tuple[float, float]] = {}
    for text, share in scorer_numbers(texts, option, _RATE).items():
        scorer, _, score = text.rpartition("@")
        if not scorer:
            raise ConfigError(f"{option} takes {_RATE}, not '{text}={share:g}'")
        if not 0 <= share <= 1:
            raise ConfigError(f"{option} {scorer} takes a share from 0 to 1, not {share:g}")
        if scorer in rates:
            raise ConfigError(
                repeated(option, scorer, f"{option} names {scorer} twice; a gate takes one pass rate per scorer")
            )
        rates[scorer] = (finite(score, f"{option} {scorer}"), share)
    return rates


def finite(text: str, label: str) -> float:
    """A finite number. Raises ConfigError with the label."""
    try:
        value = float(text)
    except ValueError:
        raise ConfigError(f"{label} takes a number, not {text!r}") from None
    if not math.isfinite(value):
        raise ConfigError(f"{label} takes a finite number, not {text!r}")
    return value


def label_range(text: str, option: str) -> tuple[float, float]:
    """`1:5` as the lowest and the highest label. Raises ConfigError for anything else."""
    low, colon, high = text.partition(":")
    if not colon:
        raise ConfigError(f"{option} takes LOW:HIGH, such as 1:5, not {text!r}")
    return finite(low, option), finite(high, option)


def number(text: str, option: str, least: float | None, most: float | None, *, whole: bool) -> float:
    """A finite number within limits. Raises ConfigError with the option and what it takes."""
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        value = math.nan
    # Compared, since math.isfinite can't take an int of any length.
    if -math.inf < value < math.inf and (least is None or value >= least) and (most is None or value <= most):
        return value
    limits = "" if least is None else f", {least:g} or more" if most is None else f" from {least:g} to {most:g}"
    raise ConfigError(f"{option} takes a {'whole' if whole else 'finite'} number{limits}, not {text!r:.80}")


def error_rate(text: str, option: str) -> float | str:
    """An error rate above 0 and below 0.5, or "none". Raises ConfigError with the option."""
    if text == "none":
        return text
    value = number(text, option, None, None, whole=False) if text[:1].isdigit() or text[:1] in ".+-" else math.nan
    if 0 < value < 0.5:
        return value
    raise ConfigError(invalid(option, "above 0 and below 0.5, such as 0.05, or none", text))


def positive(text: str, option: str) -> float:
    """A finite number above 0. Raises ConfigError with the option."""
    value = number(text, option, None, None, whole=False)
    if value <= 0:
        raise ConfigError(f"{option} takes a number above 0, not {value:g}")
    return value


def needed_duration(text: str, option: str, example: str) -> timedelta:
    """The length of an age that an option takes. Raises ConfigError, with an example, for anything else."""
    if (length := duration(text)) is None:
        raise ConfigError(f"{option} takes a time such as {example}, not {text!r:.80}")
    return length


def scorer_named(name: str, scorers: Sequence[ScorerInfo], option: Wording) -> ScorerInfo:
    """The scorer of a run that a name, a signature or a spec such as `contains(expected=z)` refers to.

    Raises ConfigError for an unknown scorer, and for a name that several scorers share.
    """
    from evalstone.run.plan import named_scorer

    try:
        return named_scorer(name, scorers)
    except ConfigError as error:
        raise ConfigError(option, ": ", error) from None


def scorer_specs(scorers: Iterable[Any], folder: str | Path = ".") -> list[Any]:
    """Scorer specs, with own code imported, that of their judges and embedders too. The files of its modules are
    printed, since their code was run.

    folder: where to look for modules that aren't installed. Raises ConfigError for a module that can't be imported, and
    for another tool's name of a scorer, with the name here.
    """
    from evalstone.scorers import parse_scorer

    for scorer in (scorers := list(scorers)):
        if isinstance(scorer, str) and not is_address(scorer):
            _refuse_foreign(scorer)
    return own_code(scorers, parse_scorer, folder)


def own_scorers(addresses: Iterable[str] | None) -> list[Scorer]:
    """Scorers with code of the user's, imported: it is run, so its files are printed.

    Raises ConfigError for a module that can't be imported, and for a name without an address, whose prompts are shown
    anyway.
    """
    if not addresses:
        return []
    from evalstone.scorers import parse_scorer

    for address in (addresses := list(addresses)):
        if not is_address(address):
            raise ConfigError(
                invalid(
                    Setting("scorer"),
                    "the address of your own code, such as my_scorers.py:Polite",
                    address,
                    quoted(address),
                )
            )
    return [parse_scorer(each) for each in scorer_specs(addresses)]


def own_code(specs: Iterable[Any], parse: Callable[[Any], Any], folder: str | Path) -> list[Any]:
    """Specs, parsed if they name own code, whose files are printed. Others are unchanged. folder: as for
    `scorer_specs`."""
    with beside(folder) as found, prints_to_stderr():
        parsed: list[Any] = []
        for spec in specs:
            before = len(found)
            value = parse(spec) if ":" in str(spec) else spec
            parsed.append(value if len(found) > before else spec)
    say_found(found)
    return parsed


def say_found(found: Iterable[tuple[str, str]]) -> None:
    """Print the files of own code that was found, since it was run."""
    for what, file in dict.fromkeys(each for each in found if each[1]):
        to_stderr(f"{what.removeprefix('the ').capitalize()} code: {file}")


def _refuse_foreign(scorer: str) -> None:
    from evalstone.scorers.registry import SCORERS, TEMPLATES, plugged_in

    name = scorer.partition("(")[0].strip()
    key = name.replace("-", "_")
    if {key, key.removesuffix("s")} & {*SCORERS, *TEMPLATES}:  # what is near a name of ours is a slip
        return
    from evalstone.scorers.other_systems import counterparts

    if (rows := counterparts(name)) and plugged_in(name) is None:
        ours = list(dict.fromkeys(row.ours or f"not measured ({row.difference})" for _, row in rows))
        first, *others = dict.fromkeys(tool for tool, _ in rows)
        also = f", or --from {' or '.join(others)}" if others else ""
        raise ConfigError(f"{name} is {' or '.join(ours)} here; see evalstone scorers --from {first} {name}{also}")


def target_spec(target: str | dict[str, Any] | None) -> Any:
    """A target's table. Raises ConfigError for settings without an address."""
    table = {"address": target} if isinstance(target, str) else target
    if table is None:
        return None
    address = table.get("address")
    if not isinstance(address, str) or not address.strip():
        named = (
            "the target's address is empty" if address == "" else f"no target is named, only its {joined(list(table))}"
        )
        raise ConfigError(f"{named}; use --target ADDRESS, or address = … in [target]")
    return table


def own_target(target: str | dict[str, Any] | None, folder: str | Path) -> Any:
    """A target's table, or the target if it is own code, of the folder if its module isn't installed."""
    table = target_spec(target)
    if table is None:
        return None
    from evalstone.targets.parse import names_code, parse_target

    if not names_code(table["address"]):
        return table
    with beside(folder), prints_to_stderr():
        return parse_target(table)


def own_user(user: Any, folder: str | Path) -> Any:
    """A user's spec, or the user if it is own code. Its module is looked for like a target's."""
    address = cast("dict[str, Any]", user).get("function") if isinstance(user, dict) else cast(object, user)
    if not is_address(address):
        return cast(Any, user)
    from evalstone.targets import parse_user

    with beside(folder), prints_to_stderr():
        return parse_user(cast(object, user))


def tool_files(target: Target | None) -> list[str]:
    """The file in which a target's tools are recorded, if any."""
    tools = getattr(target, "tools", None)
    return [] if tools is None or tools.source.file is None else [str(tools.source.file)]


def function_files(*owners: Target | User | None) -> list[str]:
    """The files of the functions of targets and users, each once."""
    from evalstone.targets.frameworks import Asked

    files: dict[str, None] = {}
    for owner in owners:
        function: Any = getattr(owner, "function", None)
        while isinstance(function, functools.partial):
            function = cast("functools.partial[Any]", function).func
        module = sys.modules.get(getattr(function, "__module__", ""))
        if file := function.file if isinstance(function, Asked) else getattr(module, "__file__", None):
            files[file] = None
    return list(files)


def say_code(*owners: Target | User | None) -> None:
    """Print the files of the functions of targets and users, since their code was run."""
    for file in function_files(*owners):
        to_stderr(f"Target code: {file}")


def ledger_option(ledger: str | None) -> str:
    """`--ledger …` for a command to copy; empty for the default ledger. A password is hidden."""
    from evalstone.ledger.base import DEFAULT_LEDGER, shown

    return "" if ledger is None or shown(ledger) == shown(DEFAULT_LEDGER) else f" --ledger {shlex.quote(shown(ledger))}"


def view_command(run: str, ledger: str | None) -> tuple[str, str]:
    """The command that shows a run in a browser, and what it is for."""
    extra = "" if find_spec("uvicorn") else "; needs the extra view"
    return f"evalstone view {run}{ledger_option(ledger)}", f"all samples, in a browser{extra}"


def judge_spec(judge: Any, base_url: str | None, folder: str | Path = ".") -> Any:
    """A judge with a base URL added, and with own code imported, as `scorer_specs` does.

    Raises ConfigError for a base URL of anything but a single model.
    """
    from evalstone.judges.parse import parse_judge

    return own_code([_at_url(judge, base_url)], parse_judge, folder)[0]


def _at_url(judge: Any, base_url: str | None) -> Any:
    if base_url is None:
        return judge
    if isinstance(judge, dict):
        return {**cast("dict[str, Any]", judge), "base_url": base_url}
    if "/" not in str(judge) or is_address(judge):
        raise ConfigError(f"--base-url needs a model as --judge, such as vllm/my-model, not {judge}")
    from evalstone.judges.parse import table_of

    table = table_of(str(judge))
    if "model" not in table:
        raise ConfigError(
            "--base-url applies to a single model; in a composite judge, set it per model: vllm/x(base_url=http://...)"
        )
    return {**table, "base_url": base_url}
