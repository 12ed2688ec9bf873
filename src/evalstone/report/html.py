"""A report as one HTML page: a printable file that opens offline, loads nothing, and runs only its own script.

Judged text gets into a page in two ways: escaped by the templates, and as JSON in blocks that browsers don't execute. A
content security policy with hashes forbids any other script, style, image, form and connection.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import itertools
import json
import re
from collections.abc import Iterator
from importlib import resources
from typing import Any, cast

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evalstone._core.display import visible
from evalstone.report.view import Block, ReliabilityChart, SampleList, SampleView, View

SCRIPTS = ("sentences.js", "claims.js", "elements.js", "samples.js")
SAMPLES_PER_BLOCK = 100
EXCERPT = 200
_CLOSING = re.compile("[<>&\u2028\u2029]")


def page(view: View) -> Iterator[str]:
    """A report as an HTML page, in pieces."""
    style = asset("page.css")
    script = "\n".join(map(asset, SCRIPTS)) if view.samples is not None else ""
    sources = f"style-src '{_hash(style)}'; script-src '{_hash(script) if script else 'none'}'"
    stream = (
        environment()
        .get_template("page.html")
        .stream(
            view=view,
            policy=f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'",
            style=Markup(style),  # noqa: S704 - our own file
            script=Markup(script),  # noqa: S704 - our own files
            data=_sample_data(view.samples) if view.samples is not None else (),
        )
    )
    stream.enable_buffering(64)
    return stream


def fragment(view: View) -> str:
    """Tables and notes as HTML without styles, scripts and charts, for notebooks."""
    return environment().get_template("fragment.html").render(view=view)


def reliability_svg(chart: ReliabilityChart) -> str:
    """A reliability diagram as a standalone SVG document."""
    return environment().get_template("reliability.svg").render(chart=chart)


def asset(name: str) -> str:
    """A style sheet or a script of the pages."""
    return resources.files("evalstone.report").joinpath("assets", name).read_text(encoding="utf-8")


@functools.cache
def environment(*packages: str) -> Environment:
    """The templates of reports, and those of other packages."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (*packages, "evalstone.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    cast("dict[str, Any]", made.globals)["zip"] = zip
    return made


def _finalized(value: Any) -> Any:
    """Text that a template writes, with invisible characters made visible. Markup has been through this already."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def json_block(name: str, value: Any) -> Markup:
    """A value as a block of JSON for scripts to read. Browsers don't execute it, whatever text it contains."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    safe = _CLOSING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return Markup(f'<script type="application/json" id="{name}">{safe}</script>\n')  # noqa: S704 - nothing closes it


def _sample_data(samples: SampleList) -> Iterator[Markup]:
    """The samples as blocks of JSON: panels in chunks, which are parsed when a sample is opened, and an index."""
    index: list[Any] = []
    source = iter(samples.samples)
    for number, chunk in enumerate(iter(lambda: list(itertools.islice(source, SAMPLES_PER_BLOCK)), [])):
        index.extend(map(_index_entry, chunk))
        yield json_block(f"panels{number}", [[_block(block) for block in sample.panel] for sample in chunk])
    columns = [{**dataclasses.asdict(column), "title": visible(column.title)} for column in samples.columns]
    yield json_block(
        "about", {"columns": columns, "per_block": SAMPLES_PER_BLOCK, "total": samples.total, "noun": samples.noun}
    )
    yield json_block("index", index)


def _index_entry(sample: SampleView) -> list[Any]:
    """A sample's entry in the list: its id, the beginning of the question, its scores, and how good it is."""
    scores = [[outcome.value, outcome.text, outcome.tone] for outcome in sample.outcomes]
    excerpt = (sample.question or sample.answer)[:EXCERPT]
    return [visible(sample.id), visible(excerpt), scores, sample.goodness]


def _block(block: Block) -> dict[str, Any]:
    """A block without its empty fields."""
    values: dict[str, Any] = {
        "kind": block.kind,
        "title": visible(block.title),
        "text": visible(block.text),
        "labels": [[visible(text), tone] for text, tone in block.labels],
        "why": visible(block.why),
        "pairs": [[visible(name), visible(value)] for name, value in block.pairs],
        "items": [_block(item) for item in block.items],
        "cites": list(block.cites),
        "folded": block.folded,
    }
    return {name: value for name, value in values.items() if value}


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
