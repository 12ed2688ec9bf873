"""`evalstone scorers` and `judges`: the available scorers and judges."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import evalstone
from evalstone._core.display import safe
from evalstone._core.installed import page
from evalstone.cli import completion, options
from evalstone.cli.options import Value, Values, option
from evalstone.cli.output import console, deliver, json_lines, table
from evalstone.cli.values import judge_spec, scorer_specs
from evalstone.errors import ConfigError, near, unknown
from evalstone.results.endings import ExitCode

if TYPE_CHECKING:
    from evalstone._core.plugins import Plugin
    from evalstone.models.catalog import ProviderInfo
    from evalstone.report.terminal import Grid
    from evalstone.results.calibration import Calibration
    from evalstone.scorers.described import Described
    from evalstone.scorers.other_systems import Counterpart

SCORER_COLUMNS = ("needs", "direction", "judge calls", "what it measures")
COMPOSITE_JUDGES = {
    "panel(openai/gpt-5.1, google/gemini-2.5-pro, lexical)": "several judges vote: majority, mean or unanimous",
    "cascade(lexical, openai/gpt-5.1, threshold=0.8)": "asks the second judge where the first is unsure",
    "self_consistency(openai/gpt-5.1(temperature=0.7), repeats=5)": "asks one judge several times and takes the vote",
    "decision(typesafe/jev-latest, text=openai/gpt-5.1)": "a decision model, and a judge for questions that need text",
    "decision(onnx:models/nli, text=openai/gpt-5.1)": "a verifier model, and a judge for everything but its claims",
}


def scorers(
    names: Annotated[
        Values,
        options.argument(
            "SCORER",
            "A scorer to describe, or with --from, a name or words that the tool uses.",
            complete=completion.scorers,
            takes_options=True,
        ),
    ] = None,
    system: Annotated[
        Value,
        option(
            "--from TOOL",
            "Options",
            "Show the names of another tool, or what to use here for SCORER.",
            complete=completion.tools,
        ),
    ] = None,
    as_json: options.Json = False,
) -> int:
    """List the scorers, or describe one.

    Describes a scorer's formula, what it needs, its parameters and interpretation. With --from, lists what mastra,
    spring, ragas, deepeval, promptfoo, inspect, mlflow, phoenix, openai-evals, lm-eval, opik, langsmith or trulens
    call things. SCORER is then anything that the tool's users write, such as a scorer, function, command, setting
    or page, in any spelling, or several words: evalstone scorers --from deepeval GEval, or evalstone scorers --from
    deepeval GEval criteria.
    """
    from evalstone._core.addresses import meant_by
    from evalstone.scorers import SCORERS, parse_scorers
    from evalstone.scorers import described as of
    from evalstone.scorers.registry import PLUGINS, TEMPLATES, plugged_in

    if system is not None:
        _list_foreign(system, " ".join(names or []), as_json=as_json)
        return ExitCode.OK
    if dashed := next((name for name in names or [] if name.startswith("-")), ""):
        guesses = near(dashed, ("--from", "--json", "--help"))
        hint = f"did you mean {' or '.join(guesses)}?" if guesses else "see evalstone scorers --help"
        raise ConfigError(f"unknown option {dashed}; {hint}")
    if len(names or []) > 1:
        raise ConfigError("name one scorer; several words are only looked up with --from TOOL")
    name = names[0] if names else None
    if name is None:
        if as_json:
            own = [each.to_dict() for each in of.built_in()]
            deliver(json_lines(as_json, *own, *map(_plugin_data, PLUGINS)))
        else:
            _list_scorers()
        return ExitCode.OK
    if (described := of.built_in_named(name)) is None:
        if (plugin := plugged_in(name)) is not None:
            described = of.plugged_in(plugin)
        elif ":" in name or "(" in name:
            (scorer,) = parse_scorers(scorer_specs([name]))
            described = of.Described(scorer.name, type(scorer))
        else:
            scorer_specs([name])
            raise ConfigError(unknown("scorer", name, [*SCORERS, *TEMPLATES, *PLUGINS.names()], meant=meant_by(name)))
    if not deliver(json_lines(as_json, described.to_dict())):
        _describe_scorer(described)
    return ExitCode.OK


def _plugin_data(plugin: Plugin) -> dict[str, Any]:
    """A plug-in's scorer as JSON data; one that can't be used by its error."""
    from evalstone._core.file_format import SCORER_FORMAT
    from evalstone.scorers.described import plugged_in

    try:
        return plugged_in(plugin).to_dict()
    except ConfigError as error:
        return {"format": SCORER_FORMAT, "name": plugin.name, "package": plugin.package, "error": str(error)}


def _list_scorers() -> None:
    from evalstone.scorers.described import built_in

    rows = table("scorer", *SCORER_COLUMNS, numbers=["judge calls"])
    for described in built_in():
        rows.add_row(described.name, *_scorer_row(described))
    screen = console()
    screen.print(rows)
    _list_added_scorers()
    screen.print("\nScores range from 0 to the scorer's scale (1 by default).", style="dim")
    screen.print("evalstone scorers NAME describes one.", style="dim")


def _list_added_scorers() -> None:
    """Print the scorers of plug-ins, and why others can't be used."""
    from evalstone.scorers.described import plugged_in
    from evalstone.scorers.registry import PLUGINS

    rows = table("scorers of packages", "package", *SCORER_COLUMNS, numbers=["judge calls"])
    refused: list[ConfigError] = []
    for plugin in PLUGINS:
        try:
            row = _scorer_row(plugged_in(plugin))
        except ConfigError as error:
            refused.append(error)
        else:
            rows.add_row(plugin.name, safe(plugin.package, 100), *(safe(cell, 500) for cell in row))
    screen = console()
    if rows.rows:
        screen.print()
        screen.print(rows)
    _say_refused(refused)


def _say_refused(errors: Iterable[ConfigError]) -> None:
    """Print why plug-ins can't be used, each once."""
    from rich.text import Text

    screen = console()
    for place, text in enumerate(dict.fromkeys(map(str, errors))):
        if not place:
            screen.print()
        screen.print(Text(f"Not available: {safe(text, 500)}"))


def _scorer_row(described: Described) -> tuple[str, ...]:
    calls = "-" if described.applies_another else str(len(described.questions))
    from evalstone.scorers.needs import described_needs

    return (described_needs(described.needs), described.direction or "of the scorer", calls, described.summary)


def _describe_scorer(described: Described) -> None:
    from dataclasses import MISSING

    from rich.text import Text

    from evalstone.scorers.needs import described_needs

    screen, kind, plugin = console(), described.kind, described.plugin
    screen.print(described.text)
    screen.print(f"\nNeeds            {described_needs(described.needs)}")
    if described.applies_another:
        screen.print("Range            that of the scorer")
    else:
        screen.print(f"Range            0 to scale (default 1), {described.direction[2:]}")
        screen.print(f"Judge calls      {', '.join(question.kind for question in described.questions) or 'none'}")
    screen.print(f"Signature        {described.signature}")
    if plugin is not None:
        screen.print(f"Package          {safe(plugin.package, 200)} ({safe(plugin.address, 200)})")
    if parameters := described.parameters:
        screen.print("\nParameters", style="bold")
        rows = table("", "")
        for name_of, default, allowed, description in parameters:
            shown = "required" if default is MISSING else f"default {default!r}"
            notes = f"({'; '.join(filter(None, [allowed, shown]))})"
            rows.add_row(f"  {name_of}", Text.assemble(description, " " * bool(description), (notes, "dim")))
        screen.print(rows)
    if definitions := described.definitions:
        shared = ", from the same judge calls" if kind.questions else ""
        screen.print(f"\nDefinitions{shared}: definition=NAME", style="bold")
        rows = table("", "")
        for definition_name, formula in definitions.items():
            rows.add_row(Text(f"  {definition_name}", style="bold"), formula)
        screen.print(rows)
    if kind.interpretation:
        screen.print("\nInterpretation (scale 1)", style="bold")
        for floor, meaning in kind.interpretation:
            screen.print(f"  from {floor:g}: {meaning}")
    if kind.advice:
        screen.print(f"\nIf the score is {'high' if kind.lower_is_better else 'low'}", style="bold")
        screen.print(f"  {kind.advice}")


def _list_foreign(tool: str, text: str, *, as_json: bool) -> None:
    """Print what a tool's names are here: all of them, or those that are meant by a text. Raises ConfigError for an
    unknown tool or name."""
    from evalstone._core.file_format import COUNTERPARTS_FORMAT
    from evalstone._core.json import to_jsonable
    from evalstone.scorers.other_systems import SYSTEMS, guesses, lookup, system_named
    from evalstone.scorers.other_systems import table as names_of

    if (system := system_named(tool)) is None:
        raise ConfigError(unknown("tool", tool, SYSTEMS))
    rows = lookup(system, text) if text.strip() else names_of(system)
    if not rows:
        meant = " or ".join(guesses(system, text))
        hint = f"did you mean {meant}?" if meant else f"see evalstone scorers --from {system}"
        raise ConfigError(f"no name of {system} is like {text!r}; {hint}")
    if deliver(json_lines(as_json, {"format": COUNTERPARTS_FORMAT, "system": system, "names": to_jsonable(rows)})):
        return
    if text.strip():
        _print_foreign(system, rows)
    else:
        _print_all_foreign(system, rows)


def _print_foreign(system: str, rows: Sequence[Counterpart]) -> None:
    """Print names with what to use here, those that aren't options first."""
    from rich.text import Text

    screen = console()
    options_of = [row for row in rows if row.kind == "option"]
    for shown in ([row for row in rows if row.kind != "option"], options_of):
        if not shown:
            continue
        if shown is options_of and len(shown) < len(rows):
            screen.print()
        kinds = {row.kind for row in shown}
        more = ["of"] if shown is options_of else ["kind"] * (len(kinds) > 1)
        titles = ["option" if shown is options_of else system, *more, "evalstone", "difference"]
        if screen.width < _least_width(shown):
            screen.print(" · ".join(titles))
            for row in shown:
                cells = (row.theirs, *[row.owners or row.kind] * len(more), row.ours or "absent", row.difference)
                screen.print(Text(" · ".join(filter(None, cells))))
            continue
        grid = table(*titles)
        for row in shown:
            ours, note = Text(row.ours or "absent", style="bold"), Text(row.difference, style="dim")
            grid.add_row(row.theirs, *[row.owners or row.kind] * len(more), ours, note)
        screen.print(grid)


def _least_width(rows: Sequence[Counterpart]) -> int:
    """The width of a table of names whose longest words aren't broken."""
    columns = zip(*((row.theirs, row.owners or row.kind, row.ours, row.difference) for row in rows), strict=True)
    return sum(max((len(word) for cell in cells for word in cell.split()), default=0) + 2 for cells in columns)


def _print_all_foreign(system: str, rows: Sequence[Counterpart]) -> None:
    """Print the scorers of a system with what to use here, and all its other names."""
    from evalstone.scorers.other_systems import bare

    _print_foreign(system, [row for row in rows if row.kind == "scorer"])
    known = {bare(row.theirs) for row in rows}
    others: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.kind == "option":
            others.setdefault("options of", {}).update(
                dict.fromkeys(name for name in row.of if bare(name) not in known)
            )
        elif row.kind != "scorer":
            others.setdefault(f"{row.kind}s", {})[row.theirs] = None
    screen = console()
    for kind, names in others.items():
        if names:
            screen.print(f"\n{kind.capitalize()}: {', '.join(names)}.")
    screen.print(
        f"\nevalstone scorers --from {system} NAME shows what to use for one of these, and the options of a scorer."
    )
    screen.print("evalstone scorers NAME describes an evalstone scorer.", style="dim")


def judges(
    name: Annotated[
        Value,
        options.argument(
            "JUDGE",
            "A judge to describe, as --judge takes it: 'cascade(lexical, openai/gpt-5.1, threshold=0.8)'.",
            complete=completion.judges,
        ),
    ] = None,
    ledger: options.Ledger = None,
    as_json: Annotated[
        bool,
        option("--json", "Output", "Print only the calibrations, as JSON, each on one line.", in_file=False),
    ] = False,
) -> int:
    """List the judges, or describe one.

    Shows which API keys are set, prices, and measured accuracy. Makes no judge calls.
    """
    from evalstone.ledger.base import DEFAULT_LEDGER
    from evalstone.results.saved_calibrations import list_calibrations

    known = list_calibrations(DEFAULT_LEDGER if ledger is None else ledger)
    judge = None if name is None else evalstone.parse_judge(judge_spec(name, None))
    if judge is not None:
        # The members' calibrations too: a composite judge should beat each of them.
        identities = {one.identity for _, one in _tree(judge)}
        known = [one for one in known if one.judge in identities]
    if deliver(json_lines(as_json, *(one.to_dict() for one in known))):
        return ExitCode.OK
    if judge is None:
        _list_judges(known)
    else:
        _describe_judge(judge, known)
    return ExitCode.OK


def _list_judges(known: Sequence[Calibration]) -> None:
    from rich.text import Text

    from evalstone.models.catalog import PLUGINS, PROVIDERS, added

    screen = console()
    lexical = evalstone.LexicalJudge()
    screen.print(Text.assemble(("lexical", "bold"), f"  {lexical.identity}; no API key, no network, no cost"))
    screen.print(f"  {lexical.note}", style="dim")
    numbers = ("responses", "unsupported", "AUROC [95% CI]", "left out, less word overlap [95% CI]")
    measured = table("  measured on", *numbers, numbers=numbers)
    for name, dataset in lexical.card["data_sets"].items():
        low, high = dataset["auroc_interval"]
        auroc = f"{dataset['auroc']:.3f} [{low:.3f}, {high:.3f}]"
        low, high = dataset["difference_interval"]
        gain = f"{dataset['left_out']['auroc'] - dataset['word_overlap_auroc']:+.3f} [{low:+.3f}, {high:+.3f}]"
        measured.add_row(f"  {name}", f"{dataset['rows']:,}", f"{dataset['positive']:,}", auroc, gain)
    screen.print(measured)
    screen.print(
        "  0.5 is chance, 1 is perfect. Left out: with the data left out of training, compared with a baseline that "
        f"counts shared words; see {page('lexical-judge')}.\n",
        style="dim",
    )
    writing = table("language models", "API key", "endpoint")
    deciding = table("decision models", "API key", "endpoint")
    providers, refused = dict(PROVIDERS), list[ConfigError]()
    for plugin in PLUGINS:
        try:
            providers[plugin.name] = added(plugin)
        except ConfigError as error:
            refused.append(error)
    for name, provider in providers.items():
        models = deciding if provider.decides else writing
        models.add_row(f"{safe(name, 100)}/MODEL", _key(provider), Text(_endpoint(provider), style="dim"))
    screen.print(writing)
    screen.print()
    screen.print(deciding)
    screen.print()
    verifying = table("verifier models", "")
    verifying.add_row("onnx:PATH", Text(f"your own model in an ONNX file, offline; {_extra_state()}", style="dim"))
    screen.print(verifying)
    refused += _list_added_judges()
    _say_refused(refused)
    screen.print("\nTo measure a model on your data: evalstone calibrate --judge NAME --labels FILE\n", style="dim")
    composites = table("composite judges", "")
    for example, purpose in COMPOSITE_JUDGES.items():
        composites.add_row(example, Text(purpose, style="dim"))
    screen.print(composites)
    if known:
        screen.print()
        screen.print(_calibrated(known))
    screen.print("\nevalstone judges NAME describes one and checks its settings and key; nothing is sent.", style="dim")


def _list_added_judges() -> list[ConfigError]:
    """Print the judges of plug-ins. Returns why others can't be used."""
    from dataclasses import fields

    from evalstone.judges.parse import PLUGINS, added

    rows, refused = table("judges of packages", "package", "settings"), list[ConfigError]()
    for plugin in PLUGINS:
        try:
            judge = added(plugin)
        except ConfigError as error:
            refused.append(error)
            continue
        declared = fields(cast(Any, judge)) if isinstance(judge, type) else ()
        names = [field.name for field in declared if field.init and field.name != "limits"]
        form = f"{plugin.name}/MODEL" if "model" in names else plugin.name
        rows.add_row(form, safe(plugin.package, 100), ", ".join(name for name in names if name != "model"))
    if rows.rows:
        screen = console()
        screen.print()
        screen.print(rows)
    return refused


def _extra_state() -> str:
    """Whether the libraries for verifier models are installed."""
    from importlib.util import find_spec

    absent = any(find_spec(name) is None for name in ("onnxruntime", "tokenizers"))
    return f"the extra onnx is {'not ' * absent}installed"


def _key(provider: ProviderInfo) -> str:
    """The environment variable of the API key, and whether it is set; never the key itself."""
    if not provider.key:
        return "none" if provider.base_url else "its own"
    return f"{provider.key}  {'set' if os.environ.get(provider.key) else 'not set'}"


def _endpoint(provider: ProviderInfo) -> str:
    from evalstone.models.catalog import LIBRARY

    own = next((name for name in provider.base_url_from if os.environ.get(name)), None)
    if own is not None:
        return f"the URL in {own}"
    return provider.base_url or ("pydantic-ai (extra: providers)" if provider.protocol == LIBRARY else "its own")


def _describe_judge(judge: evalstone.Judge, own: Sequence[Calibration]) -> None:
    """own: the calibrations of the judge and its members."""
    from rich.text import Text

    screen = console()
    screen.print(safe(judge.identity, 500), style="bold")
    if judge.note:
        screen.print(safe(judge.note, 1000), style="dim")
    screen.print()
    members = list(_tree(judge))
    for depth, one in members:
        name = f"{'  ' * depth}{safe(one.identity, 200) if depth else ''}"
        if not one.members:
            screen.print(Text.assemble(name, ": " if depth else "", (f"{_price(one)}; {_readiness(one)}", "dim")))
            if temperature := _temperature(one):
                screen.print(Text(f"{'  ' * (depth + 1)}{temperature}", style="dim"))
        elif depth:
            screen.print(name)
    if settings := settings_of(judge):
        screen.print("\nSettings", style="bold")
        rows = table("", "", "")
        for setting, value, allowed in settings:
            rows.add_row(f"  {setting}", safe(value, 60), Text(allowed, style="dim"))
        screen.print(rows)
    if own:
        screen.print()
        screen.print(_calibrated(own))
    if all(one.judge != judge.identity for one in own):
        screen.print("\nNot calibrated yet; see evalstone calibrate.", style="dim")


def settings_of(judge: evalstone.Judge) -> list[tuple[str, str, str]]:
    """The settings of a judge, each with its value and what it may be. Secrets, members and limits are left out."""
    from dataclasses import fields, is_dataclass

    from evalstone._core.declarations import allowed_values

    if not is_dataclass(judge):
        return []
    allowed = allowed_values(type(judge))
    values = [(field.name, getattr(judge, field.name)) for field in fields(judge) if field.init and field.repr]
    return [
        (name, "none" if value is None else str(value), allowed[name])
        for name, value in values
        if isinstance(value, str | int | float | None)
    ]


def _tree(judge: evalstone.Judge, depth: int = 0) -> Iterator[tuple[int, evalstone.Judge]]:
    yield depth, judge
    for member in judge.members:
        yield from _tree(member, depth + 1)


def _price(judge: evalstone.Judge) -> str:
    if not judge.cacheable:
        return "free"
    # Priced at 1,000 tokens, because some prices increase with the length of a prompt.
    prices = [judge.price(usage) for usage in (evalstone.Usage(1000, 0), evalstone.Usage(0, 1000))]
    if prices == [0, 0]:
        return "free"
    shown = [f"${1000 * price:g}" for price in prices if price is not None]
    return f"{' and '.join(shown)} per million input and output tokens" if len(shown) == 2 else "price unknown"


def _temperature(judge: evalstone.Judge) -> str:
    """The temperature of a model, with its vendor's recommendation; empty for other judges and at the usual 0."""
    from evalstone.judges.embeddings import EmbeddingModel
    from evalstone.models.families import family_of

    if not isinstance(judge, evalstone.ModelJudge) or isinstance(judge, EmbeddingModel):
        return ""
    family = family_of(judge.model)
    if family is None:
        return "" if judge.temperature == 0 else f"temperature {_shown_temperature(judge)}"
    return f"temperature {_shown_temperature(judge)} ({family.name}: {family.why}, {family.source})"


def _shown_temperature(judge: evalstone.ModelJudge) -> str:
    return "not sent" if judge.temperature is None else f"{judge.temperature:g}"


def _readiness(judge: evalstone.Judge) -> str:
    """Whether a judge can be used, and of a model what of that was checked: nothing is sent to it."""
    from evalstone.models.catalog import provider_info
    from evalstone.models.model import Model

    try:
        judge.check()
    except ConfigError as error:
        return f"not ready: {error}"
    if not isinstance(judge, Model):
        return "ready"
    info = provider_info(judge.model)
    if judge.key:
        key = "its key is set" if judge.api_key else f"{info.key} is set"
    else:
        key = "without a key" if judge.url else "with the credentials of its library"
    return f"{key}; not contacted"


def _calibrated(known: Sequence[Calibration]) -> Grid:
    from evalstone.report.terminal import grid
    from evalstone.results.views.calibration import calibrations_table

    return grid(calibrations_table("calibrated here", known))
