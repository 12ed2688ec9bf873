"""Plug-ins: the scorers, judges and providers that installed packages add, by entry points.

Entry points are read when a name isn't built in, when names are listed, and for the identity of code outside evalstone.
Reading them imports nothing: the module of a plug-in is imported when the plug-in is used or listed.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalstone._core.addresses import installed
from evalstone._core.code_source import PACKAGE
from evalstone._core.display import joined
from evalstone.errors import ConfigError, Problem, described, invalid, repeated

if TYPE_CHECKING:
    from importlib.metadata import Distribution

SCORERS, JUDGES, PROVIDERS = "evalstone.scorers", "evalstone.judges", "evalstone.providers"
"""The groups of entry points."""

_ROLES = {SCORERS: "scorer", JUDGES: "judge", PROVIDERS: "provider"}
_NAMES = {
    SCORERS: (re.compile(r"[^\W\d]\w*"), "letters, digits and _"),
    **dict.fromkeys((JUDGES, PROVIDERS), (re.compile(r"\w[\w.-]*"), "letters, digits, _, . and -")),
}
"""The names that plug-ins of a group may have, and in words what is in them."""
_UNUSUAL = re.compile(r"[^\w.+!-]")


@dataclass(frozen=True)
class Plugin:
    """An entry point of an installed package."""

    group: str
    name: str
    address: str
    """Where its object is: module:name."""
    distribution: str
    """The name of the package on the package index."""
    version: str
    problem: str = ""
    """Why the entry points of the package can't be read; they are then one plug-in with the package's name."""

    def __str__(self) -> str:
        return f"the {_ROLES[self.group]} {self.name} of {self.package}"

    @property
    def package(self) -> str:
        """The package with its version."""
        return f"{self.distribution} {self.version}".strip()

    @property
    def pinned(self) -> str:
        """The package with its version, as a part of identities."""
        return f"{_UNUSUAL.sub('_', self.distribution)}=={_UNUSUAL.sub('_', self.version)}"

    def load(self) -> Any:
        """The object. What its module prints goes to standard error, since standard output is for results.

        Raises ConfigError if it can't be imported.
        """
        with contextlib.redirect_stdout(sys.stderr):
            return installed(self.address, str(self))


class Plugins:
    """The plug-ins of a group.

    group: the group of their entry points. built_in: the names that evalstone has itself; it needs no entry points for
    these. beside: a group whose names mean something in the same place, so that both can't have the same one.
    """

    def __init__(self, group: str, built_in: Collection[str], beside: str = "") -> None:
        self.group, self.built_in = group, built_in
        self._groups = {group, beside}

    def __iter__(self) -> Iterator[Plugin]:
        """All plug-ins, also refused ones, by name."""
        return iter([each for each in _plugins() if each.group == self.group])

    def names(self) -> list[str]:
        """The names that plug-ins add."""
        return sorted({each.name for each in self if not each.problem} - {*self.built_in})

    def hidden(self, names: Iterable[str]) -> list[Plugin]:
        """The plug-ins with one of these names that aren't used, because evalstone has the name itself."""
        used = {*self.built_in}.intersection(names)
        return [each for each in self if each.name in used] if used else []

    def get(self, name: str) -> Plugin | None:
        """The plug-in with a name; None for a built-in name, and one that no plug-in has. Raises ConfigError as
        `check` does."""
        if name in self.built_in:
            return None
        found = next((each for each in self if each.name == name), None)
        if found is not None:
            self.check(found)
        return found

    def check(self, plugin: Plugin) -> None:
        """Raise ConfigError if evalstone or another plug-in has the same name, or the name can't be used."""
        form, allowed = _NAMES[self.group]
        if plugin.problem:
            raise ConfigError(f"the plug-ins of {plugin.package} can't be read: {plugin.problem}")
        if not form.fullmatch(plugin.name):
            named = f"the name of a plug-in, {plugin.name!r} of {plugin.package},"
            raise ConfigError(invalid("name", allowed, plugin.name).worded(f"{named} must be {allowed}"))
        if plugin.name in self.built_in:
            own = f"{plugin.name} is built into {PACKAGE}"
            raise ConfigError(self._taken(plugin, f"{own}; {_placed(plugin)} needs another name"))
        rivals = [each for each in _plugins() if each.name == plugin.name and each.group in self._groups]
        if len(rivals) > 1:
            which = joined([_placed(each) for each in rivals])
            raise ConfigError(self._taken(plugin, f"{len(rivals)} plug-ins are named {plugin.name}: {which}"))

    def _taken(self, plugin: Plugin, text: str) -> Problem:
        return repeated(_ROLES[self.group], plugin.name, text)


def distributions_of(values: Iterable[Any]) -> list[str]:
    """The packages with plug-ins that define these classes and functions, each as `acme-eval==1.2.0`."""
    modules = {str(getattr(value, "__module__", "")).partition(".")[0] for value in values}
    modules -= {"", "__main__", PACKAGE, *sys.stdlib_module_names}
    if not modules:
        return []
    return sorted({each.pinned for each in _plugins() if each.address.partition(":")[0].partition(".")[0] in modules})


def _placed(plugin: Plugin) -> str:
    return f"{plugin} ({plugin.address})"


def _plugins() -> Sequence[Plugin]:
    return _read(tuple(sys.path))


@functools.lru_cache(maxsize=8)
def _read(path: tuple[str, ...]) -> Sequence[Plugin]:
    """The plug-ins of the packages that are found on the path."""
    from importlib.metadata import distributions  # noqa: PLC0415 - slow to import, and rarely needed

    found = dict.fromkeys(plugin for each in distributions() for plugin in _of(each))
    return sorted(found, key=lambda each: (each.name, each.distribution, each.address))


def _of(distribution: Distribution) -> Iterator[Plugin]:
    """The plug-ins of a package. One that can't be read hides no other."""
    try:
        text = distribution.read_text("entry_points.txt") or ""
    except ValueError:  # no UTF-8, so nothing that evalstone could know
        return
    groups = [group for group in _ROLES if group in text]
    if not groups:
        return
    name, version = _named(distribution)
    try:
        entries = [each for each in distribution.entry_points if each.group in groups]
    except Exception as error:  # noqa: BLE001 - importlib raises anything for lines without the form of an entry
        yield from (Plugin(group, name, "", name, version, described(error)) for group in groups)
        return
    if not _is_shadowed(name, text):
        for each in entries:
            yield Plugin(each.group, each.name, each.value.partition("[")[0].strip(), name, version)


def _named(distribution: Distribution) -> tuple[str, str]:
    try:
        metadata: Any = distribution.metadata
        name, version = metadata["Name"], metadata["Version"]
    except Exception:  # noqa: BLE001 - importlib raises anything for a package without metadata
        name = version = None
    return name or "a package without a name", version or ""


def _is_shadowed(name: str, text: str) -> bool:
    """Whether another version of the package comes earlier on the path. text: its entry points."""
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415 - as above

    try:
        return distribution(name).read_text("entry_points.txt") != text
    except (PackageNotFoundError, ValueError):
        return False
