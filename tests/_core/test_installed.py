"""Printed commands install an extra or a newer version from where evalstone is from, into this environment."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from evalstone._core import installed
from evalstone._core.installed import extra_command, library_command, page, requirement_elsewhere, update_advice
from evalstone.cli.init import WORKFLOW, texts
from evalstone.errors import MissingDependency

URLS = "Project-URL: Repository, https://example.org/code\nProject-URL: Documentation, https://docs.example.org/\n"
LIBRARIES = 'Requires-Dist: pyarrow>=18; extra == "parquet"\nRequires-Dist: ray>=2.50; extra == "ray"\n'
GIT = {"url": "https://example.org/code", "vcs_info": {"vcs": "git", "commit_id": "ab12"}}
Install = Callable[[object], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts the metadata of an installed evalstone before the real one, in an active environment with pip."""
    site = tmp_path / "site"
    data = site / "evalstone-7.8.9.dist-info"
    data.mkdir(parents=True)
    (data / "METADATA").write_text(f"Metadata-Version: 2.1\nName: evalstone\nVersion: 7.8.9\n{URLS}{LIBRARIES}")
    scripts = tmp_path / "bin"
    for name in ("python", "pip", "uv"):
        (scripts / name).parent.mkdir(exist_ok=True)
        (scripts / name).touch(0o755)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(scripts / "python"))
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(scripts))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr(installed, "find_spec", lambda name: True)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setenv("PATH", str(scripts))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)

    def record(source: object) -> None:
        if source is not None:
            (data / "direct_url.json").write_text(source if isinstance(source, str) else json.dumps(source))
        monkeypatch.syspath_prepend(str(site))  # pyright: ignore[reportUnknownMemberType]

    return record


@pytest.mark.parametrize(
    ("source", "extra", "newer", "elsewhere"),
    [
        (None, '"evalstone[parquet]"', "--upgrade evalstone", "evalstone==7.8.9"),
        (
            GIT,
            '"evalstone[parquet] @ git+https://example.org/code@ab12"',
            '--upgrade "evalstone @ git+https://example.org/code"',
            "evalstone @ git+https://example.org/code@ab12",
        ),
        (
            {**GIT, "subdirectory": "python"},
            '"evalstone[parquet] @ git+https://example.org/code@ab12#subdirectory=python"',
            '--upgrade "evalstone @ git+https://example.org/code#subdirectory=python"',
            "evalstone @ git+https://example.org/code@ab12#subdirectory=python",
        ),
        (
            {"url": "https://example.org/e.whl", "archive_info": {}},
            '"evalstone[parquet] @ https://example.org/e.whl"',
            '--upgrade "evalstone @ https://example.org/e.whl"',
            "evalstone @ https://example.org/e.whl",
        ),
    ],
    ids=["an index", "a commit", "a commit and a folder", "an archive"],
)
def test_the_source_is_named_again(install: Install, source: object, extra: str, newer: str, elsewhere: str) -> None:
    install(source)
    assert extra_command("parquet", "pyarrow") == f"pip install {extra}"
    assert update_advice() == f"upgrade with pip install {newer}"
    assert requirement_elsewhere() == elsewhere
    assert f'- run: pip install "{elsewhere}"   # and' in texts("rag")[WORKFLOW]
    assert str(MissingDependency("pyarrow", "parquet")).endswith(f"install it with: pip install {extra}")


@pytest.mark.parametrize(("how", "option"), [({"editable": True}, "-e "), ({}, "")])
def test_a_folder_is_named_again_as_long_as_it_is_there(
    install: Install, tmp_path: Path, how: dict[str, bool], option: str
) -> None:
    folder = tmp_path / "a clone"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    install({"url": folder.as_uri(), "dir_info": how})
    assert extra_command("parquet", "pyarrow") == f'pip install {option}"{folder}[parquet]"'
    assert update_advice() == f"update {folder}"
    assert requirement_elsewhere() is None
    assert "pip install git+https://" in texts("rag")[WORKFLOW]
    (folder / "pyproject.toml").unlink()
    assert extra_command("parquet", "pyarrow") == 'pip install "pyarrow>=18"'


def test_a_page_is_named_by_its_file_beside_the_code_and_else_by_its_address(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert page("targets") == "docs/targets.md"
    assert (Path(installed.__file__).parents[3] / page("targets")).is_file()
    monkeypatch.setattr(installed, "_CHECKOUT", tmp_path / "lib")
    install(None)
    assert page("targets") == "https://docs.example.org/targets/"


def test_a_page_without_an_address_is_named_by_its_file(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "_CHECKOUT", tmp_path / "lib")
    install(None)
    (tmp_path / "site" / "evalstone-7.8.9.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: evalstone\n"
    )
    assert page("targets") == "docs/targets.md"


def test_a_wheel_is_named_again_as_long_as_it_is_there(install: Install, tmp_path: Path) -> None:
    wheel = tmp_path / "e.whl"
    wheel.touch()
    install({"url": wheel.as_uri(), "archive_info": {}})
    assert extra_command("ray", "ray") == f'pip install "evalstone[ray] @ {wheel.as_uri()}"'
    assert requirement_elsewhere() is None
    wheel.unlink()
    assert extra_command("ray", "ray") == 'pip install "ray>=2.50"'
    assert update_advice() == "update the copy of evalstone that is used"


@pytest.mark.parametrize("source", ["{", "[]", '{"url": 1}', '{"url": "https://example.org"}'])
def test_a_record_that_says_no_source_leaves_the_libraries(install: Install, source: str) -> None:
    install(source)
    assert extra_command("parquet", "pyarrow") == 'pip install "pyarrow>=18"'
    assert extra_command("unheard-of", "pyarrow") == "pip install pyarrow"
    assert requirement_elsewhere() is None


@pytest.mark.parametrize(
    ("receipt", "extra", "newer"),
    [
        ("uv-receipt.toml", 'uv tool install "evalstone[ray]"', "uv tool install --upgrade evalstone"),
        ("pipx_metadata.json", 'pipx install --force "evalstone[ray]"', "pipx install --force evalstone"),
    ],
)
def test_the_environment_of_a_tool_is_made_again(
    install: Install, tmp_path: Path, receipt: str, extra: str, newer: str
) -> None:
    (tmp_path / receipt).touch()
    install(None)
    assert extra_command("ray", "ray") == extra
    assert update_advice() == f"upgrade with {newer}"
    assert library_command("click", newest=True) == "pip install --upgrade click"


def test_the_command_is_for_this_environment_whichever_pip_comes_first(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(None)
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(tmp_path / "bin/pip", other)
    monkeypatch.setenv("PATH", str(other))
    python = tmp_path / "bin/python"
    assert extra_command("ray", "ray") == f'{python} -m pip install "evalstone[ray]"'
    monkeypatch.setattr(installed, "find_spec", lambda name: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert extra_command("ray", "ray") == f'pip --python {python} install "evalstone[ray]"'
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert extra_command("ray", "ray") == f'uv pip install --python {python} "evalstone[ray]"'
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    assert extra_command("ray", "ray") == 'uv pip install "evalstone[ray]"'


@pytest.mark.parametrize("name", ["a b", "$HOME", 'say "hi"', "back`tick`"])
def test_a_shell_reads_the_command_as_it_is_meant(install: Install, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    install({"url": folder.as_uri(), "dir_info": {}})
    assert shlex.split(extra_command("ray", "ray")) == ["pip", "install", f"{folder}[ray]"]


def test_every_extra_has_libraries_for_when_the_source_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import metadata  # noqa: PLC0415

    assert find_spec("evalstone") is not None
    extras = metadata("evalstone").get_all("Provides-Extra") or []
    assert {"metrics", "otel", "parquet", "providers", "postgres"} <= {*extras}
    assert all(installed._libraries(extra) for extra in extras)  # pyright: ignore[reportPrivateUsage]
    assert any("[anthropic,google]" in one for one in installed._libraries("providers"))  # pyright: ignore[reportPrivateUsage]
