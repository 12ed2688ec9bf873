"""Where evalstone and its documentation are, and the commands that add an extra or bring a newer version.

An index may not have this version, so a command names the source again that PEP 610's `direct_url.json` records. It
installs into the environment that runs, which needn't be the one that a bare `pip` would take.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from evalstone._core.guards import is_mapping

PACKAGE = "evalstone"
PIPX = "pipx install --force"
_CHECKOUT = Path(__file__).parents[3]
"""The folder of the sources; above an installed package, a folder without pages."""


def extra_command(extra: str, library: str) -> str:
    """The command that installs what an extra needs. If nothing is left to install the extra from, it names the
    libraries.

    library: one of the libraries, for when evalstone is no installed package.
    """
    if (source := _Source.read()) is None:
        return library_command(*(_libraries(extra) or [library]))
    return f"{_tool() or _pip()} {_shown(source.arguments(f'[{extra}]'))}"


def library_command(*requirements: str, newest: bool = False) -> str:
    """The command that installs libraries into this environment, or their newest versions."""
    return f"{_pip()} {'--upgrade ' if newest else ''}{_shown(requirements)}"


def update_advice() -> str:
    """How to get a newer version, as a clause: with a command, or what to update."""
    if (source := _Source.read()) is None:
        return "update the copy of evalstone that is used"
    if source.folder:
        return f"update {source.folder}"
    tool = _tool()
    command = f"{tool or _pip()} {'' if tool == PIPX else '--upgrade '}{_shown(source.arguments(newest=True))}"
    return f"upgrade with {command}"


def page(name: str) -> str:
    """Where a page of the documentation is: its file, if it lies beside the code, or else its address."""
    if (_CHECKOUT / "docs" / f"{name}.md").is_file():
        return f"docs/{name}.md"
    from importlib.metadata import PackageNotFoundError, metadata  # noqa: PLC0415 - rarely needed

    try:
        urls = metadata(PACKAGE).get_all("Project-URL") or []
    except PackageNotFoundError:
        urls = []
    site = dict(url.split(", ", 1) for url in urls).get("Documentation")
    return f"{site}{name}/" if site else f"docs/{name}.md"


def requirement_elsewhere() -> str | None:
    """The requirement that installs this version on another machine; None if it is from a folder or a file."""
    source = _Source.read()
    if source is None or source.folder or source.at.startswith("file:"):
        return None
    if source.at:
        return source.arguments()[0]
    from importlib.metadata import version  # noqa: PLC0415 - rarely needed

    return f"{PACKAGE}=={version(PACKAGE)}"


@dataclass(frozen=True)
class _Source:
    """Where the package is from: an index, unless something is set."""

    folder: str = ""
    editable: bool = False
    at: str = ""
    """The URL of an archive, or of a repository without its commit."""
    commit: str = ""
    part: str = ""
    """The fragment of the URL."""

    @classmethod
    def read(cls) -> _Source | None:
        """The source of the installed package; None if it isn't installed, or its source is gone or unknown."""
        from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415 - rarely needed

        try:
            text = distribution(PACKAGE).read_text("direct_url.json")
            return cls() if text is None else cls._of(json.loads(text))
        except (PackageNotFoundError, ValueError):
            return None

    @classmethod
    def _of(cls, record: object) -> _Source | None:
        if not is_mapping(record) or not isinstance(url := record.get("url"), str):
            return None
        if is_mapping(repository := record.get("vcs_info")):
            part = f"#subdirectory={record['subdirectory']}" if "subdirectory" in record else ""
            return cls(at=f"{repository.get('vcs')}+{url}", commit=str(repository.get("commit_id")), part=part)
        if is_mapping(folder := record.get("dir_info")):
            return cls._in_folder(url, editable=folder.get("editable") is True)
        file = _path(url)
        return cls(at=url) if "archive_info" in record and (file is None or file.is_file()) else None

    @classmethod
    def _in_folder(cls, url: str, *, editable: bool) -> _Source | None:
        folder = _path(url)
        if folder is None or not (folder / "pyproject.toml").is_file():
            return None
        return cls(folder=str(folder), editable=editable)

    def arguments(self, extras: str = "", *, newest: bool = False) -> list[str]:
        """The arguments that install it. newest: the newest commit instead of this one."""
        if self.folder:
            return [*(["-e"] if self.editable else []), f"{self.folder}{extras}"]
        if not self.at:
            return [f"{PACKAGE}{extras}"]
        commit = f"@{self.commit}" if self.commit and not newest else ""
        return [f"{PACKAGE}{extras} @ {self.at}{commit}{self.part}"]


def _path(url: str) -> Path | None:
    """The path of a file: URL; None for another one."""
    from urllib.request import url2pathname  # noqa: PLC0415 - it brings HTTP and TLS, and this is rarely needed

    parts = urlsplit(url)
    return Path(url2pathname(parts.path)) if parts.scheme == "file" else None


def _libraries(extra: str) -> list[str]:
    """The requirements of an extra; none if evalstone is imported from a folder of sources."""
    from importlib.metadata import PackageNotFoundError, requires  # noqa: PLC0415 - rarely needed

    try:
        split = [line.partition(";") for line in requires(PACKAGE) or ()]
    except PackageNotFoundError:
        return []
    return [library.strip() for library, _, marker in split if f"'{extra}'" in marker.replace('"', "'")]


def _tool() -> str | None:
    """The command that makes the environment of a tool again, if this is one."""
    prefix = Path(sys.prefix)
    if (prefix / "uv-receipt.toml").is_file():
        return "uv tool install"
    return PIPX if (prefix / "pipx_metadata.json").is_file() else None


def _pip() -> str:
    """The command that installs into this environment."""
    import shutil  # noqa: PLC0415 - rarely needed
    import sysconfig  # noqa: PLC0415

    here = _shown([sys.executable])
    if find_spec("pip") is None:
        active = os.environ.get("VIRTUAL_ENV") == sys.prefix
        return (
            f"uv pip install{'' if active else f' --python {here}'}"
            if shutil.which("uv")
            else f"pip --python {here} install"
        )
    found = shutil.which("pip")
    same = found is not None and Path(found).parent == Path(sysconfig.get_path("scripts"))
    return "pip install" if same else f"{here} -m pip install"


def _shown(words: Iterable[str]) -> str:
    """Words of a command, in double quotes if they need some, since every shell takes those."""
    return " ".join(
        word if re.fullmatch(r"[\w./:\\-]+", word) else shlex.quote(word) if set('"$`') & set(word) else f'"{word}"'
        for word in words
    )
