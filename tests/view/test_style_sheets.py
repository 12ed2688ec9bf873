"""The style sheets and the templates name the same classes."""

from __future__ import annotations

import re
from pathlib import Path

import evalstone

ROOT = Path(evalstone.__file__).parent
STYLES = [ROOT / "report" / "assets" / "page.css", ROOT / "view" / "assets" / "view.css"]
TEMPLATES = [*(ROOT / "report" / "templates").iterdir(), *(ROOT / "view" / "templates").iterdir()]
CODE = [
    *(ROOT / "report").rglob("*.[jp][sy]"),
    *(ROOT / "view").rglob("*.[jp][sy]"),
    *(ROOT / "results" / "views").glob("*.py"),
]
"""What names classes by kind: of blocks, of tones, and of what is marked in texts."""


def text_of(files: list[Path]) -> str:
    return "\n".join(file.read_text("utf-8") for file in files)


def styled() -> set[str]:
    rules = re.sub(r"/\*.*?\*/|\{[^{}]*\}", " ", text_of(STYLES), flags=re.DOTALL)
    return set(re.findall(r"\.([a-z][\w-]*)", rules))


def test_every_class_that_has_a_style_is_used() -> None:
    words = set(re.findall(r"[\w-]+", text_of([*TEMPLATES, *CODE])))
    assert styled() > {"chips", "panel", "meter"}
    assert styled() - words == set()


def test_every_class_in_a_template_has_a_style() -> None:
    written = re.findall(r'class="([^"{]+)"', text_of(TEMPLATES))
    classes = {name for text in written for name in text.split()}
    assert classes > {"chips", "panel", "meter"}
    assert classes - styled() == set()
