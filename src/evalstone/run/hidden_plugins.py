"""The plug-ins that a run doesn't use, because evalstone has their names itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evalstone.judges import parse
from evalstone.judges.base import JudgeSpec
from evalstone.models import catalog
from evalstone.scorers import registry


def hidden_plugins(scorers: Iterable[str], judge: JudgeSpec | None) -> Iterator[str]:
    """What is said of the plug-ins with the names of built-in scorers, and of a judge that is named."""
    names = [judge, judge.partition("/")[0]] if isinstance(judge, str) else []
    of_judge = (*parse.PLUGINS.hidden(names), *catalog.PLUGINS.hidden(names))
    for plugin in (*registry.PLUGINS.hidden(scorers), *of_judge):
        yield f"{plugin} is not used: {plugin.name} is built in"
