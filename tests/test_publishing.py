"""What is published: the wheel and the source distribution, what an index shows of them, and how they get there."""

from __future__ import annotations

import email.parser
import itertools
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from evalstone.cli.app import COMMANDS
from tools import addresses, release

ROOT = Path(__file__).parents[1]
WORKFLOWS = ROOT / ".github/workflows"
ABOUT = addresses.project()
NAMED = re.compile(
    r"[\w-]+\.github\.io/evalstone|github(?:usercontent)?\.com/[\w-]+/evalstone(?![\w-])"
    r"|[\w-]+/evalstone(?:/action)?@v\d[\w.]*|`[\w-]+/evalstone`|--repo [\w-]+/evalstone"
)
"""The address and the version, in all forms in which they are shown."""
LINK = re.compile(r"\]\(([^)\s]*)\)|(?:src|href|srcset)=\"([^\"\s]*)")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source distribution, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder, "sdist")
    (source,) = folder.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    build(folder / source.name.removesuffix(".tar.gz"), folder, "wheel")
    (wheel,) = folder.glob("*.whl")
    return source, wheel


def build(project: Path, into: Path, target: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(into)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def tracked() -> list[str]:
    """The files of the repository, or of a copy of it without its history."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        pytest.skip("needs a git checkout")
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.slow
def test_an_index_shows_the_readme_with_links_that_lead_to_this_version(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.parser.BytesParser().parsebytes(wheel.read(name))
    shown = cast(bytes, metadata.get_payload(decode=True)).decode()
    assert metadata["Description-Content-Type"] == "text/markdown"
    readme = (ROOT / "README.md").read_text("utf-8")
    links = [link for pair in LINK.findall(shown) if (link := pair[0] or pair[1])]
    before = [link for pair in LINK.findall(readme) if (link := pair[0] or pair[1])]
    assert len(links) == len(before) > 20
    here = f"{ABOUT['urls']['Repository']}/blob/v{ABOUT['version']}/"
    raw = here.replace("github.com", "raw.githubusercontent.com").replace("/blob/", "/")
    for link, was in zip(links, before, strict=True):
        if re.match("[a-z]+:|#", was):
            assert link == was
        else:
            assert link in (here + was, raw + was)
            assert link.startswith(raw) is (Path(was).suffix in (".png", ".svg", ".gif"))
            assert (ROOT / was.partition("#")[0]).exists()


def test_the_source_distribution_has_the_package_and_builds_the_wheel_of_the_repository(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    source, wheel = built
    with tarfile.open(source) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    beside = {"README.md", "CHANGELOG.md", "LICENSE", "CITATION.cff", "pyproject.toml", "PKG-INFO", ".gitignore"}
    assert {name for name in names if not name.startswith("src/evalstone/")} == beside
    in_package = {name for name in tracked() if name.startswith("src/evalstone/")}
    assert {name for name in names if name.startswith("src/evalstone/")} == in_package
    build(ROOT, tmp_path, "wheel")
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(tmp_path / wheel.name) as other:
        assert {name: one.read(name) for name in one.namelist()} == {
            name: other.read(name) for name in other.namelist()
        }
        assert {f"src/{name}" for name in one.namelist() if name.startswith("evalstone/")} == in_package
    assert wheel.stat().st_size < 4_000_000


@pytest.mark.slow
def test_the_address_and_the_version_are_set_in_one_place() -> None:
    shown_in = {str(path.relative_to(ROOT)) for path in addresses.files()}
    elsewhere = {
        "version": "98.7.6",
        "urls": {"Repository": "https://github.com/somebody-else/evalstone", "Documentation": "https://else.example/"},
    }
    named: list[str] = []
    for name in tracked():
        text = (ROOT / name).read_bytes().decode("utf-8", "replace")
        if name.startswith(("tests/", "tools/", "docs/decisions/", "schemas/")) or not NAMED.search(text):
            continue
        named.append(name)
        assert name in shown_in
        assert addresses.with_addresses(text, ABOUT) == text, f"{name}: run make docs"
        moved = NAMED.findall(addresses.with_addresses(text, elsewhere))
        assert [place for place in moved if "somebody-else/" not in place and "@v98.7.6" not in place] == []
    assert {"pyproject.toml", "CITATION.cff", "docs/ci.md", "src/evalstone/cli/starters/workflow.yml"} <= {*named}
    assert "rev: v98.7.6\n" in addresses.with_addresses((ROOT / "docs/ci.md").read_text("utf-8"), elsewhere)
    assert f"\nversion: {ABOUT['version']}\n" in (ROOT / "CITATION.cff").read_text("utf-8")


def test_an_address_that_links_cannot_have_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must be https://github.com/OWNER/evalstone, not https://example\.org"):
        addresses.owner({"urls": {"Repository": "https://example.org/evalstone"}})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository that is ready for the release of 1.2.0."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nversion = "1.2.0"\n[project.urls]\nRepository = "https://github.com/me/evalstone"\n'
    )
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## 1.2.0 (2027-01-31)\n\n### Features\n\n- One.\n\n## 1.1.0 (2026-12-24)\n\n- Old.\n"
    )
    (tmp_path / "CITATION.cff").write_text("version: 1.2.0\ndate-released: 2027-01-31\n")
    for page in ("README.md", "docs/getting-started.md", "docs/ci.md"):
        (tmp_path / page).write_text("Run `pip install evalstone`.\n")
    return tmp_path


def test_what_is_ready_is_released_with_its_section_of_the_changelog(project: Path) -> None:
    assert [*release.problems("v1.2.0", "me/evalstone", project)] == []
    assert release.notes(project) == "### Features\n\n- One.\n"


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("pyproject.toml", "1.2.0", "1.3.0", "pyproject.toml has the version 1.3.0, and the tag is v1.2.0"),
        ("pyproject.toml", "me/", "you/", "the repository https://github.com/you/evalstone, and this is me/evalstone"),
        ("CHANGELOG.md", "2027-01-31", "unreleased", "CHANGELOG.md begins with 1.2.0 (unreleased), and not with"),
        ("CHANGELOG.md", "## 1.2.0", "## 1.1.9", "CHANGELOG.md begins with 1.1.9 (2027-01-31), and not with"),
        ("CITATION.cff", "2027-01-31", "2027-01-30", "another date than CHANGELOG.md"),
        ("CITATION.cff", "date-released", "date", "CITATION.cff has no date-released"),
        (
            "README.md",
            "Run",
            "It is not on a package\nindex yet. Run",
            "README.md says that it is not on a package index yet",
        ),
        ("docs/ci.md", "Run", "This isn't published yet.", "docs/ci.md says that it isn't published yet"),
    ],
)
def test_what_is_missing_for_a_release_is_named(project: Path, file: str, old: str, new: str, said: str) -> None:
    text = (project / file).read_text()
    assert old in text
    (project / file).write_text(text.replace(old, new))
    assert any(said in problem for problem in release.problems("v1.2.0", "me/evalstone", project))


def test_a_tag_that_is_not_ready_ends_with_an_error_and_writes_no_notes(tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    command = [sys.executable, str(ROOT / "tools/release.py"), "v0.0.0", "--notes", str(notes)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "the tag is v0.0.0" in done.stderr
    assert not notes.exists()


def workflow(name: str) -> dict[str, Any]:
    return yaml.load((WORKFLOWS / f"{name}.yml").read_text("utf-8"), yaml.BaseLoader)


def steps() -> Iterator[dict[str, Any]]:
    for path in WORKFLOWS.glob("*.yml"):
        for job in workflow(path.stem)["jobs"].values():
            yield from job.get("steps", ())


def test_every_version_that_the_package_names_is_tested_before_a_release() -> None:
    named = [found[1] for line in ABOUT["classifiers"] if (found := re.fullmatch(r".* :: (3\.\d+)", line))]
    matrix = workflow("ci")["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == named
    assert {system.partition("-")[0] for system in matrix["os"]} == {"ubuntu", "macos", "windows"}
    assert matrix["exclude"] == [{"os": "ubuntu-latest", "python": "3.11"}]  # whose job runs all of .ci/run
    assert ".ci/run" in [step.get("run") for step in workflow("ci")["jobs"]["check"]["steps"]]
    jobs = workflow("release")["jobs"]
    assert (jobs["ci"]["uses"], jobs["ci"]["needs"]) == ("./.github/workflows/ci.yml", "prepared")
    assert jobs["publish"]["needs"] == "ci"


def test_workflows_may_only_do_what_their_jobs_say_and_are_given_no_secret() -> None:
    for path in WORKFLOWS.glob("*.yml"):
        text = path.read_text("utf-8")
        assert workflow(path.stem)["permissions"] == {"contents": "read"}
        assert "secrets." not in text
        assert "pull_request_target" not in text
    runs = [step["run"] for step in steps() if "run" in step]
    assert [run for run in runs if "${{" in run and not re.search(r"\$\{\{ matrix\.python \}\}", run)] == []
    checkouts = [step for step in steps() if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert all(step["with"]["persist-credentials"] == "false" for step in checkouts)


def test_the_site_of_a_version_is_published_once_it_is_on_the_index() -> None:
    job = workflow("release")["jobs"]["site"]
    assert (job["uses"], job["needs"]) == ("./.github/workflows/site.yml", "publish")
    assert {*workflow("site")["on"]} == {"workflow_call", "workflow_dispatch"}
    needed = [each.get("permissions", {}).items() for each in workflow("site")["jobs"].values()]
    assert {*itertools.chain(*needed)} == {*job["permissions"].items()}
    (upload,) = (step for step in steps() if step.get("uses", "").startswith("actions/upload-pages-artifact@"))
    assert upload["with"]["path"] == "versions"
    assert "make site INTO=versions" in [step.get("run") for step in workflow("site")["jobs"]["build"]["steps"]]


@pytest.mark.skipif(os.name == "nt", reason="the workflow runs on Linux")
def test_the_branch_of_the_site_keeps_all_versions_in_one_commit(tmp_path: Path) -> None:
    runs = [step["run"] for step in workflow("site")["jobs"]["build"]["steps"] if "REPOSITORY" in step.get("env", {})]
    repository = tmp_path / "repository.git"
    git(tmp_path, "init", "--quiet", "--bare", str(repository))
    for version in ("0.1.0", "0.2.0", "0.1.1"):
        checkout = tmp_path / version
        git(tmp_path, "init", "--quiet", str(checkout))
        environment = {**os.environ, "REPOSITORY": str(repository), "RUNNER_TEMP": str(tmp_path)}
        environment["GITHUB_REF_NAME"] = f"v{version}"
        for place, run in enumerate(runs):
            subprocess.run(["bash", "-e", "-c", run], cwd=checkout, env=environment, check=True, capture_output=True)
            if not place:  # between them, the site is built
                (folder := checkout / "versions" / version.rpartition(".")[0]).mkdir(exist_ok=True)
                (folder / "index.html").write_text(version)
    assert git(repository, "rev-list", "--count", "site") == "1"
    assert git(repository, "ls-tree", "-r", "--name-only", "site").split() == ["0.1/index.html", "0.2/index.html"]
    assert git(repository, "show", "site:0.1/index.html") == "0.1.1"
    assert not (tmp_path / "0.2.0/versions/.git").exists()  # it would be uploaded
    gone = {**environment, "REPOSITORY": str(tmp_path / "gone.git")}
    (broken := tmp_path / "broken").mkdir()
    git(broken, "init", "--quiet")
    done = subprocess.run(["bash", "-e", "-c", runs[0]], cwd=broken, env=gone, check=False, capture_output=True)
    assert done.returncode == 128  # else, the next step would replace the sites that weren't read


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def test_the_workflows_run_what_is_here() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for step in steps():
        for word in re.findall(r"^make ([\w-]+)", step.get("run", ""), re.MULTILINE):
            assert word in targets
        for file in re.findall(r"(?:^|\s)(tools/[\w.]+|\.ci/\w+)", step.get("run", "")):
            assert (ROOT / file).is_file()


def test_the_hooks_of_pre_commit_run_commands() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert [hook["id"] for hook in hooks] == ["evalstone-gate", "evalstone-ci"]
    for hook in hooks:
        program, command = hook["entry"].split()
        assert program == "evalstone"
        assert command in COMMANDS


def test_forms_of_issues_have_what_github_asks_for() -> None:
    for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text("utf-8"))
        if path.stem == "config":
            assert all({"name", "url", "about"} == set(link) for link in form["contact_links"])
            continue
        assert {"name", "description", "body"} <= set(form)
        ids = [part["id"] for part in form["body"]]
        assert len(ids) == len(set(ids)) > 0
        assert all(part["type"] == "textarea" and part["attributes"]["label"] for part in form["body"])
