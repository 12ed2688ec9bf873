"""What the pytest plugin and its parts share: options, names, and what tests keep in their stash."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

OPTIONS: Mapping[str, tuple[str, type[int | float | str], str]] = {
    "judge": ("JUDGE", str, "The judge of the scorers: lexical (the default), openai/…, scripted:FILE."),
    "ledger": ("LEDGER", str, "The ledger of answers and runs: a path or URL. Default: .evalstone/ledger.db"),
    "trials": ("N", int, "The number of answers per sample, unless the mark sets it."),
    "budget": ("USD", float, "The most that the judge calls of this session may cost, in US dollars."),
    "report": ("DIR", str, "Write the runs and scores of this session into a folder."),
}
MARK = "evalstone"
"""The name of the mark, and of the fixture."""
LONGEST_ID = 80
"""Characters of a sample's ID in the name of a test, at most."""
JUDGE = "evalstone_judge"
"""The name of the fixture of the judge."""
PARAMETER = "_evalstone"
"""The parameter with which a marked test gets its part of the dataset."""
SCORED = pytest.StashKey[list[dict[str, Any]]]()
"""The scores of a test that have not been reported yet, as plain data."""
SPENT = pytest.StashKey[Callable[[], float]]()
"""Returns the US dollars that this process has spent of its budget, if it has one."""
SPENT_OF_WORKER = "evalstone_spent"
WRONG_SETTING = "evalstone_wrong_setting"
RUNS = pytest.StashKey[int]()
"""How many runs of a test have been written."""
PROPERTIES = pytest.StashKey[list[tuple[str, object]]]()
"""The properties of a test for JUnit XML that its scores added."""


def system_of(item: pytest.Item) -> str:
    """What a test scores: its function, and the parameters of a marked test, except for its sample or dataset."""
    function, _, ids = item.nodeid.partition("[")
    callspec: Any = getattr(item, "callspec", None)
    case: Any = None if callspec is None else callspec.params.get(PARAMETER)
    if case is None:
        return function
    ids = ids.removesuffix("]")
    own = case.dataset.name if case.sample is None else case.sample.id[:LONGEST_ID]
    others = "" if ids == own else ids.removesuffix(f"-{own}").removeprefix(f"{own}-")
    if not others or (case.sample is not None and others == ids):  # pytest has written the sample's id differently
        return function
    return f"{function}[{others}]"
