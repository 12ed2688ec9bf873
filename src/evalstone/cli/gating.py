"""What `evalstone gate` does."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evalstone.cli.outputs import Outputs, deliver, lines
from evalstone.cli.reporting import found_run
from evalstone.cli.screen import console
from evalstone.datasets.writing import json_line
from evalstone.errors import ConfigError
from evalstone.report.comparison_view import gate_view
from evalstone.report.html import page
from evalstone.report.junit import gate_junit
from evalstone.report.markdown import lines as markdown
from evalstone.report.terminal import show
from evalstone.results.gate import Gate, GateCriteria
from evalstone.results.gate import gate as gate_run

OK, FAIL, FAILED, INCONCLUSIVE = 0, 1, 3, 4
CODES = {"own": INCONCLUSIVE, "pass": OK, "fail": FAIL}


def criteria_from(
    minimum: Sequence[str], maximum: Sequence[str], no_worse: Sequence[str], pass_rate: Sequence[str]
) -> GateCriteria:
    """Criteria from the texts of options. Raises ConfigError for one that cannot be read."""
    rates: dict[str, tuple[float, float]] = {}
    for text, share in _pairs(pass_rate, "--pass-rate", "SCORER@SCORE=SHARE").items():
        name, at, bar = text.rpartition("@")
        if not (name and at):
            raise ConfigError(f"--pass-rate takes SCORER@SCORE=SHARE, such as faithfulness@0.8=0.9, not {text!r}")
        if _scorer(name) in rates:
            raise ConfigError(f"--pass-rate {name} is asked for twice; one gate takes one score and share of a scorer")
        rates[_scorer(name)] = (_number(bar, "--pass-rate", name), _number(share, "--pass-rate", name))
    return GateCriteria(
        minimum=_numbers(minimum, "--min", "SCORER=MEAN"),
        maximum=_numbers(maximum, "--max", "SCORER=MEAN"),
        max_regression=_numbers(no_worse, "--no-worse", "SCORER=MARGIN"),
        pass_rate=rates,
    )


def _numbers(texts: Sequence[str], option: str, form: str) -> dict[str, float]:
    return {name: _number(value, option, name) for name, value in _pairs(texts, option, form).items()}


def _pairs(texts: Sequence[str], option: str, form: str) -> dict[str, str]:
    """What stands before and behind the last equals sign, for a scorer may be named with its parameters.

    Raises ConfigError for what is named twice, for one of the two would be lost.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        if not (name and value):
            raise ConfigError(f"{option} takes {form}, not {text!r}")
        if (scorer := _scorer(name.strip())) in found:
            raise ConfigError(f"{option} {scorer} is asked for twice: {found[scorer]} and {value.strip()}")
        found[scorer] = value.strip()
    return found


def _scorer(name: str) -> str:
    return name if "(" in name else name.replace("-", "_")


def _number(text: str, option: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ConfigError(f"{option} {name} takes a number, not {text!r}") from None
    if not math.isfinite(value):
        raise ConfigError(f"{option} {name} takes a finite number, not {text!r}")
    return value


def held(
    name: str, baseline: str | None, criteria: GateCriteria, *, ledger: str | None, error: float, anyway: bool
) -> Gate:
    """The run of that name, held against criteria."""
    before = None if baseline is None else found_run(baseline, ledger)
    return gate_run(found_run(name, ledger), criteria, baseline=before, alpha=error, allow_mismatch=anyway)


def gate(made: Gate, outputs: Outputs, inconclusive: str) -> int:
    """Show or write a gate; the exit code."""
    if inconclusive not in CODES:
        raise ConfigError(f"--inconclusive takes {', '.join(CODES)}, not {inconclusive!r}")
    to_screen = deliver(
        outputs,
        {
            "html": lambda: page(gate_view(made)),
            "markdown": lambda: lines(markdown(gate_view(made))),
            "json": lambda: lines([json_line(made.to_dict())]),
            "junit": lambda: gate_junit(made, inconclusive_fails=inconclusive == "fail"),
        },
    )
    if not to_screen:
        show(gate_view(made), console())
    code = {"pass": OK, "fail": FAIL, "inconclusive": CODES[inconclusive]}[made.verdict]
    return FAILED if code == OK and (made.run.failed or not made.run.complete) else code
