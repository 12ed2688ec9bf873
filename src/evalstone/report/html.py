"""A report as one HTML page: a printable file that opens offline, loads nothing, and runs only its own script.

Judged text gets into a page escaped by the templates. A content security policy with hashes forbids any script, style,
image, form and connection but the page's own.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import heapq
from collections.abc import Callable, Iterator
from importlib import resources
from operator import itemgetter
from typing import Any, cast

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evalstone._core.display import visible
from evalstone.report.view import LONGEST_TEXT, ReliabilityChart, SampleList, SampleView, View, cut

SCRIPTS = ("sentences.js", "claims.js", "list.js")
OF_ONE = ("sentences.js", "claims.js", "whole.js")
"""The scripts of a page about one sample."""
MOST_BYTES = 1 << 24
"""The most characters of the list of all samples. A browser takes seconds to open much more."""


def page(view: View) -> Iterator[str]:
    """A report as an HTML page, in pieces."""
    style = asset("page.css")
    script = "\n".join(map(asset, SCRIPTS if view.samples is not None else () if view.whole is None else OF_ONE))
    sources = f"style-src '{_hash(style)}'; script-src '{_hash(script) if script else 'none'}'"
    stream = (
        environment()
        .get_template("page.html")
        .stream(
            view=view,
            policy=f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'",
            style=Markup(style),  # noqa: S704 - our own file
            script=Markup(script),  # noqa: S704 - our own files
            listed=_listed(view.samples) if view.samples is not None else (),
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
    cast("dict[str, Any]", made.globals).update(zip=zip, cut=cut, longest_text=LONGEST_TEXT)
    return made


def _finalized(value: Any) -> Any:
    """Text that a template writes, with invisible characters made visible. Markup has been through this already."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _listed(samples: SampleList) -> list[Markup]:
    """The samples as HTML, in their order. If they have more than `MOST_BYTES`, those that are best are left out."""
    module = environment().get_template("blocks.html").module
    draw = cast("Callable[[SampleView, bool], Markup]", getattr(module, "sample"))  # noqa: B009 - a macro
    drawn: list[tuple[float, int, Markup]] = []
    size = 0
    for place, sample in enumerate(samples.samples):
        text = draw(sample, False)
        size += len(text)
        # The best is the first of the heap. What has no score is left out last.
        heapq.heappush(drawn, (2.0 if sample.goodness is None else 1 - sample.goodness, -place, text))
        while size > MOST_BYTES and len(drawn) > 1:
            size -= len(heapq.heappop(drawn)[2])
    return [text for _, _, text in sorted(drawn, key=itemgetter(1), reverse=True)]


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
