"""The addresses of pages. Runs and samples are named by parts of a path, and their IDs may be any text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import parse_qsl, quote, unquote, urlencode

JSON, CSV = ".json", ".csv"
"""What is put behind an address for its data."""
COMPARISON = "comparison"
"""The parameter of a sample that has those of the comparison in which it was opened."""
_MARK = "~"
"""In front of an ID that a browser would take for a step in the path, and of one that begins with the mark."""


def part(name: str) -> str:
    """A name as one part of a path."""
    text = quote(name, safe="", errors="surrogatepass")
    if not name.strip(".") or name.startswith(_MARK):
        return _MARK + text
    for suffix in (JSON, CSV):
        if text.endswith(suffix):
            return f"{text.removesuffix(suffix)}%2E{suffix[1:]}"
    return text


def name_in(part: str) -> str:
    """The name in a part of a path. Raises UnicodeDecodeError for bytes that are no text."""
    return unquote(part.removeprefix(_MARK), errors="surrogatepass")


def run_address(run: str) -> str:
    """The address of a run."""
    return f"/runs/{part(run)}"


def sample_address(run: str, key: str) -> str:
    """The address of a sample, or of one of its trials."""
    return f"{run_address(run)}/samples/{part(key)}"


def dataset_address(name: str, suffix: str = "") -> str:
    """The address of a dataset. suffix: that of its data."""
    return f"/datasets/{part(name)}{suffix}"


def edit_address(name: str, place: str = "") -> str:
    """The address where a dataset is edited. place: "new" for a new sample, "saving" while it is saved."""
    return f"{dataset_address(name)}/edit{place and f'/{place}'}"


def edit_sample_address(name: str, id: str) -> str:
    """The address where a sample of a dataset is edited."""
    return f"{edit_address(name)}/samples/{part(id)}"


def judge_address(calibration: str) -> str:
    """The address of a judge's calibration."""
    return f"/judges/{part(calibration)}"


def experiment_address(name: str, suffix: str = "", pairs: Iterable[tuple[str, str]] = ()) -> str:
    """The address of an experiment. suffix: that of its data."""
    return with_query(f"/experiments/{part(name)}{suffix}", pairs)


def scorer_address(name: str, suffix: str = "") -> str:
    """The address of a scorer. suffix: that of its data."""
    return f"/scorers/{part(name)}{suffix}"


def live_address(stream: str) -> str:
    """The address of a stream of live scores."""
    return f"/live/{part(stream)}"


def live_score_address(stream: str, id: str) -> str:
    """The address of a live score."""
    return f"{live_address(stream)}/scores/{part(id)}"


def compare_address(runs: Sequence[str], pairs: Iterable[tuple[str, str]] = (), suffix: str = "") -> str:
    """The address of the comparison of runs with the first one. suffix: that of its data."""
    return with_query(f"/compare{suffix}", [*_runs(runs), *pairs])


def compared_address(sample: str, runs: Sequence[str], pairs: Iterable[tuple[str, str]] = (), suffix: str = "") -> str:
    """The address of a sample in a comparison of runs. sample: its name there; suffix: that of its data."""
    return with_query(f"/compare/samples/{part(sample)}{suffix}", [*_runs(runs), *pairs])


def _runs(runs: Sequence[str]) -> list[tuple[str, str]]:
    names = [*runs] if any("," in run for run in runs) else [",".join(runs)]
    return [("runs", name) for name in names]


def in_comparison(comparison: str) -> list[tuple[str, str]]:
    """The parameter of samples that are opened in a comparison. comparison: the address of that."""
    return [(COMPARISON, comparison.partition("?")[2])]


def with_query(path: str, pairs: Iterable[tuple[str, str]]) -> str:
    """A path with parameters."""
    query = urlencode([*pairs], errors="surrogatepass")
    return f"{path}?{query}" if query else path


def query_of(text: str) -> dict[str, str]:
    """The parameters in the query of an address. Raises UnicodeDecodeError for bytes that are no text."""
    return dict(parse_qsl(text, keep_blank_values=True, errors="surrogatepass"))
