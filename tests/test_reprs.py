"""What a debugger or a traceback with local variables shows of an object whose arguments were refused."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import pytest

import evalstone
from evalstone.judges import Cascade, LoggingJudge, Panel, SelfConsistency
from evalstone.scorers.custom.pipeline import Pipeline

PUBLIC = {name: getattr(evalstone, name) for name in evalstone.__all__}
OTHERS = {each.__name__: each for each in (Cascade, LoggingJudge, Panel, SelfConsistency, Pipeline)}
CLASSES: Mapping[str, type[Any]] = {
    name: each
    for name, each in {**PUBLIC, **OTHERS}.items()
    if inspect.isclass(each) and not inspect.isabstract(each) and not issubclass(each, BaseException | str | tuple)
}


@pytest.mark.parametrize("name", sorted(CLASSES))
@pytest.mark.parametrize("wrong", [None, object(), ""], ids=["None", "an object", "no text"])
def test_an_object_whose_arguments_are_refused_can_be_shown(name: str, wrong: Any) -> None:
    kind = CLASSES[name]
    made: Any = object.__new__(kind)
    parameters = inspect.signature(kind.__init__).parameters.values()
    needed = [each for each in parameters if each.default is each.empty and each.name != "self"]
    by_place = [wrong for each in needed if each.kind is each.POSITIONAL_OR_KEYWORD]
    by_name = {each.name: wrong for each in needed if each.kind is each.KEYWORD_ONLY}
    try:
        made.__init__(*by_place, **by_name)
    except Exception:  # noqa: BLE001 - whatever is wrong
        assert kind.__name__ in repr(made)
