"""A comparison of runs as one HTML page, with a forest plot and the samples that changed most side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from evalstone.report.comparison import SIGNS, cells, notes, p_told, pairs, run_lines, signed, spread
from evalstone.report.page import escaped, page
from evalstone.report.svg import difference_plot
from evalstone.results.compare import Change, Comparison, ScorerComparison
from evalstone.results.run import Run
from evalstone.types import Record, Sample

KINDS = {"better": "good", "worse": "bad", "inconclusive": "plain"}


def comparison_page(compared: Comparison, *, most: int = 5) -> Iterator[str]:
    """A comparison as an HTML page, in pieces. most: how many of the most changed samples it holds for each scorer."""
    names = [run.dataset_name for run in compared.runs.values()]
    return page(f"Comparison of {' and '.join(dict.fromkeys(names))} · evalstone", _body(compared, most))


def _body(compared: Comparison, most: int) -> Iterator[str]:
    yield "<header><h1>Comparison</h1><dl class='facts wide'>"
    yield from (f"<div><dt>{name}</dt><dd>{escaped(told)}</dd></div>" for name, told in run_lines(compared))
    yield "</dl></header>\n<main>\n"
    for name, lines in pairs(compared):
        yield f"<section><h2>{name} against A</h2>"
        yield from _table(lines, name)
        yield "</section>\n"
        if sliced := [line for line in compared.slices if line.b == name]:
            yield f"<section><h2>{name} against A, by slice</h2>"
            yield from _table(sliced, name)
            yield "</section>\n"
    yield "<section class='note'>" + "".join(f"<p>{escaped(told)}</p>" for told in notes(compared)) + "</section>\n"
    yield from _changes(compared, most)
    yield "</main>\n<footer><p>Made by evalstone.</p></footer>\n"


def _table(lines: Sequence[ScorerComparison], name: str) -> Iterator[str]:
    sliced = any(line.field for line in lines)
    heads = [
        "scorer",
        *(["slice", "n"] if sliced else []),
        "A",
        name,
        "difference",
        "95 % interval",
        "p",
        "win/tie/loss",
    ]
    numeric = {"n", "A", name, "p", "win/tie/loss"}
    row = "".join(
        f"<th scope='col' class='{'number' if head in numeric else 'word'}'>{escaped(head)}</th>"
        for head in (*heads, f"{name} is")
    )
    yield f"<div class='scroll'><table class='scores'><thead><tr>{row}</tr></thead><tbody>\n"
    reaches = _reaches(lines)
    yield from (_row(line, reaches[line.title]) for line in lines)
    yield "</tbody></table></div>"


def _reaches(lines: Iterable[ScorerComparison]) -> Mapping[str, float]:
    """How far the axis of each scorer reaches: the same for scorers of one scale, so that they can be compared."""
    by_scale: dict[float, float] = {}
    titles: dict[str, float] = {}
    for line in lines:
        difference = line.result.difference
        far = max(abs(value) for value in (difference.mean, difference.low, difference.high) if value is not None)
        by_scale[line.info.scale] = max(by_scale.get(line.info.scale, 0.0), far)
        titles[line.title] = line.info.scale
    return {title: _round_up(by_scale[scale]) if by_scale[scale] else scale for title, scale in titles.items()}


def _round_up(far: float) -> float:
    """The next of 1, 2, 5 times a power of ten, with some room for the mark."""
    power = 10.0 ** math.floor(math.log10(far * 1.02))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= far * 1.02)


def _row(line: ScorerComparison, reach: float) -> str:
    difference = line.result.difference
    told = f"{line.title}: difference {signed(difference.mean)}, interval {spread(line)}, {line.verdict}"
    plot = difference_plot(difference.mean, difference.low, difference.high, reach=reach, title=told, sign=line.verdict)
    first, second, change, interval, p_value, wins, effect = cells(line)
    place = (
        f"<td>{escaped(f'{line.field}={line.key}')}</td><td class='number' data-label='n'>{line.result.n}</td>"
        if line.field
        else ""
    )
    better = "lower is better" if line.info.lower_is_better else "higher is better"
    return (
        f"<tr><th scope='row'>{escaped(line.title)}<span class='under'>{better}</span></th>{place}"
        f"<td class='number' data-label='A'>{first}</td><td class='number' data-label='{line.b}'>{second}</td>"
        f"<td>{plot}</td><td><span class='value'>{change}</span><span class='under'>{interval}</span></td>"
        f"<td class='number' data-label='p'>{p_value}"
        f"<span class='under'>{p_told(line.result.p_value)} alone</span></td>"
        f"<td class='number' data-label='win/tie/loss'>{wins}<span class='under'>effect {effect}</span></td>"
        f"<td><span class='verdict {KINDS[line.verdict]}'>{SIGNS[line.verdict]}</span></td></tr>\n"
    )


def _changes(compared: Comparison, most: int) -> Iterator[str]:
    """The samples that changed most, with the answers and reasons of both runs."""
    wanted = {change.sample for line in compared.scorers for change in line.changes[:most]}
    if not wanted:
        return
    texts = {name: _texts(run, wanted) for name, run in compared.runs.items()}
    reasons = {name: _records(run, wanted) for name, run in compared.runs.items()}
    yield "<section><h2>Most changed</h2>\n"
    for line in compared.scorers:
        if not line.changes:
            continue
        yield f"<h3>{escaped(line.title)}, {line.a} to {line.b}</h3>\n"
        for change in line.changes[:most]:
            yield from _change(line, change, texts, reasons)
    yield "</section>\n"


def _texts(run: Run, wanted: set[str]) -> Mapping[str, Sample]:
    return {sample.id: sample for sample in run.dataset or () if sample.id in wanted}


def _records(run: Run, wanted: set[str]) -> Mapping[tuple[str, str], Record]:
    return {(r.sample, run.titles[r.scorer]): r for r in run.records if r.sample in wanted}


def _change(
    line: ScorerComparison,
    change: Change,
    texts: Mapping[str, Mapping[str, Sample]],
    records: Mapping[str, Mapping[tuple[str, str], Record]],
) -> Iterator[str]:
    sample = texts[line.a].get(change.sample)
    question = "" if sample is None or not sample.input else f"<p class='text' dir='auto'>{escaped(sample.input)}</p>"
    yield (
        f"<details class='change'><summary><code>{escaped(change.sample)}</code> "
        f"{change.a:.3g} → {change.b:.3g}</summary>{question}<div class='columns'>"
    )
    for name, value in ((line.a, change.a), (line.b, change.b)):
        held = texts[name].get(change.sample)
        answer = escaped(held.output) if held is not None and held.output is not None else "The text is not at hand."
        record = records[name].get((change.sample, line.title))
        reason = getattr(record.outcome, "reason", "") if record is not None else ""
        yield (
            f"<div class='passage'><div class='head'>{name} · {value:.3g}</div>"
            f"<div class='text' dir='auto'>{answer}</div><p class='note text' dir='auto'>{escaped(reason)}</p></div>"
        )
    yield "</div></details>\n"
