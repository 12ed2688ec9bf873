"""What takes a run names the argument that is something else, such as a folder, before it does anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstone import ConfigError, compare, drift, gate, load_labels, power, read_run, write_run
from evalstone.results import corrected, select_for_labeling
from tests.runs import run_of

RUN = run_of(["0.5"] * 8)
FOLDER: Any = "results"
CALLS: dict[str, tuple[str, Callable[[], object]]] = {
    "compare a": ("a", lambda: compare(FOLDER, RUN)),
    "compare b": ("b", lambda: compare(RUN, FOLDER)),
    "compare others": ("others[1]", lambda: compare(RUN, RUN, RUN, FOLDER)),
    "gate": ("run", lambda: gate(FOLDER, min={"given": 0.5})),
    "gate baseline": ("baseline", lambda: gate(RUN, max_regression={"given": 0.5}, baseline=FOLDER)),
    "drift before": ("before", lambda: drift(FOLDER, RUN)),
    "drift now": ("now", lambda: drift(RUN, FOLDER)),
    "power": ("run", lambda: power(FOLDER)),
    "power baseline": ("baseline", lambda: power(RUN, baseline=FOLDER)),
    "load_labels": ("run", lambda: load_labels(FOLDER, "given", {})),
    "corrected": ("run", lambda: corrected(FOLDER, "given", {})),
    "select_for_labeling": ("run", lambda: select_for_labeling(FOLDER, "given", ())),
}


@pytest.mark.parametrize(("field", "call"), CALLS.values(), ids=CALLS)
def test_a_folder_is_no_run(field: str, call: Callable[[], object]) -> None:
    with pytest.raises(ConfigError, match="must be a Run, as evaluate and read_run return it, not 'results'") as raised:
        call()
    assert raised.value.field == field


def test_what_is_no_run_is_refused_before_the_results_in_its_folder_are_removed(tmp_path: Path) -> None:
    write_run(RUN, tmp_path)
    with pytest.raises(ConfigError, match="run must be a Run"):
        write_run(FOLDER, tmp_path)
    assert read_run(tmp_path) == RUN
