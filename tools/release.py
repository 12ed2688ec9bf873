"""What a version lacks before it can be released: `python tools/release.py v0.1.0`, as docs/releasing.md says.

The workflow `release` runs it for a tag, with the standard library alone. `--notes FILE` writes the version's section
of the changelog.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOT_YET = re.compile(r"(?:is )?not on a package index yet|isn't published yet")
"""What pages say about installing until the first release."""


def problems(tag: str, repository: str = "", root: Path = ROOT) -> Iterator[str]:
    """What is missing, in sentences; nothing if the version can be released.

    repository: owner/name of where it is to be released from, if that is known.
    """
    about = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    version, address = about["version"], about["urls"]["Repository"]
    if tag != f"v{version}":
        yield f"pyproject.toml has the version {version}, and the tag is {tag}"
    if repository and address != f"https://github.com/{repository}":
        yield f"pyproject.toml has the repository {address}, and this is {repository}: set it and run make docs"
    heading = next(iter(re.findall(r"^## (.+)$", (root / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)), "nothing")
    if not re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", heading):
        yield f"CHANGELOG.md begins with {heading}, and not with {version} and its date, as in: {version} (2027-01-31)"
    released = re.search(r"^date-released: (\S+)$", (root / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    if released is None or f"({released[1]})" not in heading:
        yield "CITATION.cff has no date-released, or another date than CHANGELOG.md"
    for page in ("README.md", "docs/getting-started.md", "docs/ci.md"):
        if found := NOT_YET.search(" ".join((root / page).read_text("utf-8").split())):
            yield f"{page} says that it {found[0]}: say pip install evalstone=={version}"


def notes(root: Path = ROOT) -> str:
    """The newest section of the changelog, without its heading."""
    return (root / "CHANGELOG.md").read_text("utf-8").split("\n## ", 2)[1].partition("\n")[2].strip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tag")
    parser.add_argument("--repository", default="")
    parser.add_argument("--notes", type=Path)
    options = parser.parse_args()
    missing = [*problems(options.tag, options.repository)]
    for problem in missing:
        print(problem, file=sys.stderr)
    if options.notes and not missing:
        options.notes.write_text(notes(), "utf-8")
    return 1 if missing else 0


if __name__ == "__main__":
    raise SystemExit(main())
