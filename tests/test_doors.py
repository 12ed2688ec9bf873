"""A setting has one name at all doors (`tools/doors.py`), and where it is missing, a reason."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from evalstone.results.gate_criteria import CRITERIA


@pytest.fixture
def doors(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[1] / "tools"), *sys.path])
    import doors  # pyright: ignore[reportMissingImports] # noqa: PLC0415

    return sys.modules[doors.__name__]


def test_what_a_door_lacks_has_a_reason(doors: ModuleType) -> None:
    """Also a setting under another name: it is missing under the name of the others."""
    assert doors.unexplained() == []


def test_no_reason_is_for_what_no_door_lacks(doors: ModuleType) -> None:
    assert doors.stale() == []


def test_a_setting_under_another_name_is_found(doors: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    group = doors.Group("Audits", {"Python": {"draw": "`draw`"}, "command": {"sample": "`--sample`"}})
    monkeypatch.setattr(doors, "groups", lambda: iter([group]))
    assert doors.unexplained() == [("Audits", "draw", "command"), ("Audits", "sample", "Python")]


def test_every_door_that_decides_takes_every_criterion(doors: ModuleType) -> None:
    [group] = (group for group in doors.groups() if group.title == "Thresholds")
    everywhere = {*CRITERIA, "baseline", "alpha", "missing", "max_change", "allow_mismatch"}
    assert {setting for setting in group.settings if not group.lacking(setting)} == everywhere
    assert group.lacking("inconclusive") == {"Python"}
