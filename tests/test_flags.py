"""Arguments that turn something on or off take True and False alone: a text such as "no" would count as True."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from evalstone import BatchOptions, ConfigError, audit, calibrate, compare, dry_run, evaluate, gate, power, read_run
from tests.runs import run_of

RUN = run_of(["0.5"] * 8)
SAMPLES = [{"output": "{}", "label": 1}, {"output": "x", "label": 0}]
NO: Any = "no"
FIVE: Any = 5
CALLS: dict[str, tuple[str, Callable[[], object]]] = {
    "evaluate cache": ("cache", lambda: evaluate(SAMPLES, "json_valid", cache=NO, ledger=None)),
    "evaluate progress": ("progress", lambda: evaluate(SAMPLES, "json_valid", progress=NO, ledger=None)),
    "evaluate keep_reasoning": ("keep_reasoning", lambda: evaluate(SAMPLES, "json_valid", keep_reasoning=NO)),
    "dry_run cache": ("cache", lambda: dry_run(SAMPLES, "json_valid", cache=NO)),
    "calibrate cache": ("cache", lambda: calibrate(SAMPLES, "json_valid", cache=NO)),
    "calibrate per_judge": ("per_judge", lambda: calibrate(SAMPLES, "json_valid", per_judge=NO)),
    "audit cache": ("cache", lambda: audit(SAMPLES, "json_valid", cache=NO)),
    "gate allow_mismatch": ("allow_mismatch", lambda: gate(RUN, min={"given": 0.1}, allow_mismatch=NO)),
    "compare allow_mismatch": ("allow_mismatch", lambda: compare(RUN, RUN, allow_mismatch=NO)),
    "compare unpaired": ("unpaired", lambda: compare(RUN, RUN, unpaired=NO)),
    "power allow_mismatch": ("allow_mismatch", lambda: power(RUN, allow_mismatch=NO)),
    "BatchOptions wait": ("wait", lambda: BatchOptions(wait=NO)),
}


@pytest.mark.parametrize(("field", "call"), CALLS.values(), ids=CALLS)
def test_a_text_is_neither_true_nor_false(field: str, call: Callable[[], object]) -> None:
    with pytest.raises(ConfigError, match=f"{field} must be true or false, not 'no'") as raised:
        call()
    assert raised.value.field == field


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: evaluate(SAMPLES, "json_valid", tags=FIVE, ledger=None), "tags must be one text or several, not 5"),
        (lambda: evaluate(SAMPLES, "json_valid", stop=FIVE, ledger=None), "stop must be a StopSignal, not 5"),
        (lambda: read_run(FIVE), "a run must be a results folder, an ID or a name, not 5"),
        (lambda: read_run(__file__), 'test_flags.py" is a file; name its folder'),
    ],
)
def test_an_argument_of_another_type_is_an_error_of_its_own(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        call()


def test_a_scorer_without_a_judge_is_calibrated_and_audited_without_one() -> None:
    assert calibrate(SAMPLES, "json_valid", judge=None, ledger=None).judge == "none"
    assert audit(SAMPLES, "json_valid", judge=None, ledger=None).judge == "none"
    with pytest.raises(ConfigError, match="faithfulness needs a judge, and judge is None"):
        calibrate([{"output": "x", "context": ["x"], "label": 1}], "faithfulness", judge=None, ledger=None)
