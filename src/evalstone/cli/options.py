"""The options of the commands. Each is declared once, as the annotation of a parameter of its command's function or,
for `run`, of a field of `RunConfig`.

From a declaration come the option and its values, its place in the help, its row in docs/cli.md, what the shell
completes, and for `run` the key in the configuration file. An option of several commands is declared here.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from evalstone._core.front_ends import COMMAND_LINE, FrontEnd
from evalstone._core.sizes import MOST_CONCURRENCY
from evalstone._core.times import moment
from evalstone.cli import completion
from evalstone.cli.completion import FILE, FOLDER, Complete
from evalstone.cli.output import STDOUT
from evalstone.cli.values import field_columns, label_range, number, numbers_or_one, separators
from evalstone.errors import ConfigError

Panel: TypeAlias = Literal[
    "Arguments", "Options", "Data", "Target", "Judge", "Running", "Thresholds", "Statistics", "Output"
]
"""A section of a command's help. They are shown in this order."""
Parse: TypeAlias = Callable[[Any, str], Any]
"""Reads an option's text, or the list of its texts if it is repeatable, given its name for errors."""


_INPUT = re.compile(r"FILE$|^(?:DATA|FOLDER|RUN|BEFORE|NOW|BASELINE|LEDGER|JUDGE)$")
"""What the value of an option is called that names an input."""


@dataclass(frozen=True)
class Option:
    """An option or a positional argument of a command."""

    flags: tuple[str, ...]
    """`("--scorer", "-s")`, or `("--batch/--no-batch",)`; empty for a positional argument."""
    metavar: str
    """What the value is called; empty for a flag, and for one of a few words, which are those of its type."""
    panel: Panel
    help: str
    default: str = ""
    """The default that the help shows, if it isn't that of the parameter."""
    min: float | None = None
    max: float | None = None
    parse: Parse | None = None
    complete: Complete = None
    is_path: bool = False
    """Whether the value in a configuration file is a path relative to the file."""
    in_file: bool = True
    """Whether a configuration file can set it."""
    entry: str = ""
    """If the setting is a table, the entry that the option sets."""
    type: Any = None
    """The type of the value, if it isn't that of the parameter."""
    takes_options: bool = False
    """Whether an argument may begin with a dash, as options of other tools do."""


MEANT: Mapping[str, tuple[str, ...]] = {
    "assertion": ("scorers",),
    "columns": ("map",),
    "criteria": ("min", "max"),
    "epochs": ("trials",),
    "evaluator": ("scorers",),
    "evaluators": ("scorers",),
    "fail_over": ("max",),
    "fail_under": ("min",),
    "fresh": ("cache",),
    "gate": ("min", "max"),
    "grader": ("judge",),
    "mapping": ("map",),
    "max_concurrency": ("concurrency",),
    "max_connections": ("concurrency",),
    "max_samples": ("limit",),
    "maximum": ("max",),
    "metric": ("scorers",),
    "metrics": ("scorers",),
    "minimum": ("min",),
    "model": ("judge", "target"),
    "output": ("out",),
    "output_dir": ("out",),
    "output_path": ("out",),
    "provider": ("target",),
    "repeat": ("trials",),
    "repeats": ("trials",),
    "threads": ("concurrency",),
    "threshold": ("min", "max"),
    "thresholds": ("min", "max"),
    "workers": ("concurrency",),
}
"""The settings that people mean by names of other tools, which are spelled otherwise."""


def option(usage: str, panel: Panel, help: str, **settings: Any) -> Any:
    """An option from its usage line: `--judge -j JUDGE`. Without a name of the value, it is a flag, or takes one of the
    words of its type. settings: other fields of `Option`."""
    flags = tuple(word for word in usage.split() if word.startswith("-"))
    return Option(flags, " ".join(usage.split()[len(flags) :]), panel, help, **settings)


def argument(metavar: str, help: str, **settings: Any) -> Any:
    """A positional argument."""
    return Option((), metavar, "Arguments", help, **settings)


@dataclass(frozen=True)
class Declared:
    """An option at the place where it is declared."""

    name: str
    """The parameter or field."""
    option: Option
    type: Any
    """The type of the value, without None."""
    default: Any
    """The default of the parameter; `inspect.Parameter.empty` if the option is required."""
    group: str = ""
    """The parameter that takes it with others, as fields of one dataclass; "" if it is a parameter itself."""

    @property
    def flag(self) -> str:
        """Its name in messages: `--scorer`, or `DATA`."""
        flags = self.option.flags
        return self.flags[0] if flags else self.option.metavar

    @property
    def flags(self) -> list[str]:
        """Its long name, and for a setting that can be on or off, the name that turns it off."""
        return max(self.option.flags, key=len).split("/")

    @property
    def parameter(self) -> str:
        """Its name for click, which no other option of the command has."""
        return self.key.replace(".", "_")

    @property
    def key(self) -> str:
        """Its key in a configuration file."""
        return f"{self.name}.{self.option.entry}" if self.option.entry else self.name

    @property
    def in_file(self) -> bool:
        """Whether a configuration file can set it."""
        return self.option.in_file

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it takes; empty for any value."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()

    @property
    def metavar(self) -> str:
        """What its value is called; empty for a flag."""
        return self.option.metavar or "|".join(self.choices)

    @property
    def is_output(self) -> bool:
        """Whether it names a file that is written."""
        return self.option.panel == "Output" and self.metavar == "FILE"

    @property
    def is_input(self) -> bool:
        """Whether its value may name what the command reads: a file, a folder, a run or a ledger, or what is read from
        one."""
        return self.option.panel != "Output" and bool(_INPUT.search(self.metavar))

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty

    @property
    def repeatable(self) -> bool:
        """Whether each value is a member of a list or a mapping."""
        kinds = alternatives(self.type)
        return str not in kinds and not kinds.isdisjoint((list, dict))

    @property
    def of_list(self) -> frozenset[Any]:
        """The types of its members, if it is a list."""
        return alternatives(get_args(self.type)[0]) if get_origin(self.type) is list else frozenset()

    @property
    def whole(self) -> bool | None:
        """Whether its value is a whole number; None if it is no number."""
        return {int: True, float: False}.get(self.type)

    def help(self) -> str:
        """Its help, with what follows from its declaration: whether it is repeatable, the default and the limits."""
        shown = self.option.default
        if not shown and self.default not in (None, "", [], {}, inspect.Parameter.empty) and self.type is not bool:
            shown = ", ".join(map(str, self.default)) if self.repeatable else str(self.default)
        low, high = self.option.min, self.option.max
        limits = f"{low:g} to {high:g}" if high is not None else f"at least {low:g}" if low else ""
        more = "; ".join(filter(None, (f"default: {shown}" if shown else "", limits)))
        repeatable = " Repeatable." if self.repeatable and self.option.flags else ""
        return self.option.help + repeatable + (f"  [{more}]" if more else "")

    def read(self, given: Any) -> Any:
        """The value of what was given on the command line. Raises ConfigError with the name of the option."""
        if self.option.parse is not None:
            return self.option.parse(list(given) if self.repeatable else given, self.flag)
        if self.whole is not None:
            return number(given, self.flag, self.option.min, self.option.max, whole=self.whole)
        if self.choices and given not in self.choices:
            *others, last = self.choices
            raise ConfigError(f"{self.flag} takes {', '.join(others)} or {last}, not {given!r:.80}")
        return list(given) if self.repeatable else given


@functools.cache
def declared(source: Callable[..., Any]) -> tuple[Declared, ...]:
    """The options that a function's parameters, or the fields of a dataclass, declare. A parameter whose type is a
    dataclass has the options of its fields."""
    hints = get_type_hints(source, include_extras=True)
    fields: Any = getattr(source, "__dataclass_fields__", {})
    found: list[Declared] = []
    for name, parameter in inspect.signature(source).parameters.items():
        if dataclasses.is_dataclass(hints[name]):
            found += (dataclasses.replace(one, group=name) for one in declared(hints[name]))
        if get_origin(hints[name]) is not Annotated:
            continue
        kind, *marks = get_args(hints[name])
        factory = fields[name].default_factory if name in fields else dataclasses.MISSING
        for mark in marks:
            if isinstance(mark, Option):
                default: Any = parameter.default
                if factory is not dataclasses.MISSING and not mark.default:  # a factory may have slow imports
                    default = factory()
                found.append(Declared(name, mark, mark.type or _without_none(kind), default))
    return tuple(found)


@functools.cache
def front_end(source: Callable[..., Any], keys: frozenset[str] = frozenset()) -> FrontEnd:
    """How users of a command write settings: as the options that a function's parameters or the fields of a dataclass
    declare, or else as keys of the file that the command reads."""
    flags = (flag for one in declared(source) if one.option.flags for flag in one.flags)
    return dataclasses.replace(COMMAND_LINE, flags=frozenset(flags), keys=keys)


def alternatives(kind: Any) -> frozenset[Any]:
    """The classes of a type: `str` and `dict` of `str | dict[str, float]`."""
    return frozenset(get_origin(one) or one for one in _members(kind))


def _members(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _without_none(kind: Any) -> Any:
    others = [member for member in _members(kind) if member is not type(None)]
    return others[0] if len(others) == 1 else kind


# One value, and several values
Value: TypeAlias = str | None
Values: TypeAlias = list[str] | None

A_SCORER = "A scorer, with parameters if needed: 'context_relevance(scale=10)'."

# Data
SAMPLES = "Samples (JSON, JSONL, CSV, Parquet, Excel, or my_app:samples)"
"""What `load` reads: the beginning of what help says of DATA."""
MAP = option(
    "--map FIELD=COLUMN",
    "Data",
    "Read a field from this column, e.g. output=answer.",
    parse=field_columns,
    complete=completion.fields,
)
Map: TypeAlias = Annotated[dict[str, str | list[str]] | None, MAP]
SPLIT = option(
    "--split FIELD=SEPARATOR",
    "Data",
    "Split the texts of a field into passages: 'context=|'. Write \\n for a line break.",
    parse=separators,
)
Split: TypeAlias = Annotated[dict[str, str] | None, SPLIT]
ENCODING = option("--encoding NAME", "Data", "Encoding of a text file that isn't UTF-8, such as cp1252.")
Encoding: TypeAlias = Annotated[Value, ENCODING]
SHEET = option("--sheet NAME", "Data", "The sheet of an Excel file with several.")
Sheet: TypeAlias = Annotated[Value, SHEET]
KeepReasoning: TypeAlias = Annotated[
    bool,
    option(
        "--keep-reasoning/--leave-out-reasoning",
        "Data",
        "Score the reasoning before an answer, such as <think>…</think>, as part of the answer.",
    ),
]
Data: TypeAlias = Annotated[
    Value, option("--data FILE", "Data", "The run's samples, if they were not saved with it.", complete=FILE)
]
Labels: TypeAlias = Annotated[
    str, option("--labels FILE", "Data", "Samples with label columns; with --data, IDs and labels.", complete=FILE)
]
LabeledData: TypeAlias = Annotated[
    Value, option("--data FILE", "Data", "The samples, if the labels are in a separate file.", complete=FILE)
]
LabelColumns: TypeAlias = Annotated[Values, option("--label COLUMN", "Data", "A column of labels; one per annotator.")]
Positive: TypeAlias = Annotated[
    Values, option("--positive WORD", "Data", "A label that means yes; all others mean no.")
]
LabelRange: TypeAlias = Annotated[
    tuple[float, float] | None,
    option("--label-range LOW:HIGH", "Data", "The range of numeric labels, such as 1:5.", parse=label_range),
]
LabelThreshold: TypeAlias = Annotated[
    float | None,
    option(
        "--label-threshold LABEL",
        "Data",
        "The lowest label that means yes, on the scorer's scale.",
        default="half the scale",
    ),
]
SliceBy: TypeAlias = Annotated[
    Values, option("--slice-by FIELD", "Data", "Also report each value of this metadata field.")
]

# Judge
JUDGE = option(
    "--judge -j JUDGE",
    "Judge",
    "lexical (offline, no API key), a model such as openai/gpt-5.1, or a composite judge; see evalstone judges.",
    default="lexical",
    complete=completion.judges,
)
Judge: TypeAlias = Annotated[Value, JUDGE]
Judges: TypeAlias = Annotated[Values, dataclasses.replace(JUDGE, help=f"{JUDGE.help} Several are compared.")]
BaseUrl: TypeAlias = Annotated[
    Value, option("--base-url URL", "Judge", "Base URL of an OpenAI-compatible server.", in_file=False)
]
Budget: TypeAlias = Annotated[
    float | None, option("--budget USD", "Judge", "Stop before the cost exceeds this amount.", min=0)
]
Cache: TypeAlias = Annotated[
    bool, option("--cache/--no-cache", "Judge", "Reuse cached judge answers (default), or ignore them.")
]
Concurrency: TypeAlias = Annotated[
    int,
    option("--concurrency N", "Running", "Maximum number of concurrent judge calls.", min=1, max=MOST_CONCURRENCY),
]
DryRun: TypeAlias = Annotated[
    bool,
    option("--dry-run", "Running", "Estimate calls, tokens and cost without calling the judge.", in_file=False),
]

# Saved runs
LEDGER = option(
    "--ledger LEDGER",
    "Options",
    "Ledger of answers and runs: a path, sqlite:///path or postgresql://...",
    default=".evalstone/ledger.db",
    complete=FILE,
    is_path=True,
)
Ledger: TypeAlias = Annotated[Value, LEDGER]
Run: TypeAlias = Annotated[
    str, argument("RUN", "A results folder, the ID or name of a run in the ledger, or last.", complete=completion.runs)
]
Baseline: TypeAlias = Annotated[
    Value, option("--baseline RUN", "Options", "A run over the same samples.", complete=completion.runs)
]
MAX_CHANGE = option(
    "--max-change [SCORER=]X",
    "Statistics",
    "Assume that no sample's score changes by more than X, which detects much smaller differences. Choose X before you "
    "look at the scores.",
    parse=numbers_or_one,
    complete=completion.bounded_scorers,
)
MaxChange: TypeAlias = Annotated[float | dict[str, float] | None, MAX_CHANGE]
Missing: TypeAlias = Literal["worst", "failed", "ignore"]
MISSING = option(
    "--missing",
    "Statistics",
    "Treat samples without a score as the worst case (worst), only those that failed or got no answer from the judge "
    "(failed), or leave them out (ignore).",
    default="worst",
)
Top: TypeAlias = Annotated[int, option("--top N", "Output", "Show this many of the worst samples.", min=0)]
AllowMismatch: TypeAlias = Annotated[
    bool,
    option("--allow-mismatch", "Options", "Compare even if judges, scorers or samples differ; differences are noted."),
]
Confidence: TypeAlias = Annotated[
    float, option("--confidence LEVEL", "Statistics", "Confidence level of the intervals.")
]

# Time
SINCE = "Start of the period: ISO 8601 (UTC by default) or an age (24h, 7d)."
Since: TypeAlias = Annotated[datetime | None, option("--since TIME", "Data", SINCE, parse=moment)]
Until: TypeAlias = Annotated[datetime | None, option("--until TIME", "Data", "End of the period.", parse=moment)]

# Output
Out: TypeAlias = Annotated[
    Value,
    option(
        "--out -o FOLDER",
        "Output",
        "Write records.jsonl, summary.json and samples.jsonl here.",
        complete=FOLDER,
        is_path=True,
    ),
]
Junit: TypeAlias = Annotated[Value, option("--junit FILE", "Output", "Write JUnit XML; - for stdout.", complete=FILE)]
Json: TypeAlias = Annotated[bool, option("--json", "Output", "Print JSON, each object on one line.", in_file=False)]
Quiet: TypeAlias = Annotated[bool, option("--quiet -q", "Output", "Hide progress.", in_file=False)]


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Where a command writes its result, by format. It is shown in the terminal unless a format goes to stdout."""

    html: Annotated[
        Value,
        option("--html FILE", "Output", "Write a self-contained HTML page; - for stdout.", complete=FILE, is_path=True),
    ] = None
    markdown: Annotated[
        Value,
        option(
            "--markdown FILE", "Output", "Write Markdown for a pull request; - for stdout.", complete=FILE, is_path=True
        ),
    ] = None
    csv: Annotated[
        Value,
        option(
            "--csv FILE",
            "Output",
            "Write CSV that is safe to open in a spreadsheet; - for stdout.",
            complete=FILE,
            is_path=True,
        ),
    ] = None
    as_json: Json = False

    @property
    def files(self) -> dict[str, str]:
        """The files of the requested formats; "-" is standard output."""
        files = {
            "html": self.html,
            "markdown": self.markdown,
            "csv": self.csv,
            "json": STDOUT if self.as_json else None,
        }
        return {name: file for name, file in files.items() if file is not None}


Otel: TypeAlias = Annotated[
    bool,
    option(
        "--otel",
        "Output",
        "Export scores, traces and metrics over OTLP/HTTP, as set by the OTEL_... environment variables.",
        in_file=False,
    ),
]
