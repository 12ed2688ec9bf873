"""The tutorials do what they show: each is followed in an empty folder, and every output compared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import tutorials

PAGES = sorted((Path(__file__).parents[1] / "docs/tutorials").glob("*.md"))
PAGE = """# A page

Save this as `greeting.txt`:

```text
hello
you
```

In `greeting.txt`, change `hello` to `good day`, as one says.

```console
$ cat greeting.txt \\
    && echo 0.3 s
good day
you
0.1 s
$ ls
greeting.txt
$ false
$ printf 'a%.0s ' $(seq 50)
a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a
a a a a a a a a
$ false
$ echo $? && seq 9
1
1
…
9
```
"""


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_prints_what_it_shows(page: Path, tmp_path: Path) -> None:
    text = page.read_text("utf-8")
    assert len(tutorials.read(text)[1]) >= 5
    assert tutorials.differences(text, tmp_path) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_numbers_that_a_tutorial_explains_are_in_its_files_and_outputs(page: Path) -> None:
    text = page.read_text("utf-8")
    blocks = "".join(re.findall(r"^```.*?^```$", text, flags=re.MULTILINE | re.DOTALL))
    prose = re.sub(r"^```.*?^```$|`[^`\n]+`", "", text, flags=re.MULTILINE | re.DOTALL)
    numbers = re.findall(r"\d+\.\d+", prose)
    assert numbers
    assert [number for number in numbers if not re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", blocks)] == []


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("good day\nyou", "good day"),
        ("good day\nyou", "good day\nyou\nall"),
        ("0.1 s", "0.1 m"),
        ("greeting.txt\n$ false", "$ false"),
        ("a\na a a a a a a a\n", "a a a a a a a a a\n"),
        ("$ false\n$ echo", "$ true\n$ echo"),
        ("$ false", "$ false\n…"),
        ("9\n", "8\n"),
        ("1\n…\n9", "1\n9"),
        ("good day\nyou", "hello\nyou"),
        ("hello\nyou", "hello"),
    ],
)
def test_a_false_line_of_a_page_is_found(line: str, instead: str, tmp_path: Path) -> None:
    assert line in PAGE
    assert len(tutorials.differences(PAGE.replace(line, instead, 1), tmp_path)) == 1


def test_a_true_page_has_no_difference(tmp_path: Path) -> None:
    assert tutorials.differences(PAGE, tmp_path) == []


def test_an_edit_that_changes_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="'hullo' is there 0 times"):
        tutorials.differences(PAGE.replace("change `hello`", "change `hullo`"), tmp_path)
