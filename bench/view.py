"""How fast the pages are: a ledger with two large runs, their indexes and comparison, each kind of page, and ledgers
with many live scores and with many runs.

    python bench/view.py [--samples 250000] [--live 250000] [--runs 10000] [--requests 40] [--folder DIR]

Makes a ledger of two runs over samples scored by four code scorers (10^6 records each by default), or uses the one that
is in the folder, and prints how long it takes to show the first page in a new process, to make the index of a run and
the comparison of both and how large they are, and the time of each kind of page, from the request to the last byte,
without the network. Times are wall time and, in brackets, CPU time, in milliseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

from evalstone import Sample, Score, Scorer, Skipped, evaluate
from evalstone.judge_quality.labeling import Labeling, Sheet
from evalstone.ledger import live
from evalstone.ledger.base import INDEXES
from evalstone.ledger.labels import write_label
from evalstone.ledger.store import Ledger
from evalstone.types import Failed, Record, scorer_name
from evalstone.view.addresses import compare_address, run_address, sample_address
from evalstone.view.app import application
from evalstone.view.indexing.comparisons import Comparisons
from evalstone.view.indexing.indexes import Indexes
from evalstone.view.security import App
from evalstone.view.shelf import Shelf

TOPICS = ("billing", "returns", "shipping", "warranty", "account")
ENTITIES = 40
"""The number of entities that live scores are of."""
DAYS = 30
"""The days over which live scores are spread."""
FRAME = 5000
"""The live scores that are written at once."""
STARTS = 10
"""How often the command is started."""
LABELS = 40
"""The number of labels behind the page for labeling."""
WORDS = 20_000
"""The size of the vocabulary, which is used as in a language: the n-th word 1/n as often as the first."""


class Given(Scorer):
    """A number from the answer."""

    name = "given"
    place = 0

    def score(self, *, output: str, metadata: dict[str, Any]) -> Score | Skipped:
        """The number."""
        value = metadata["numbers"][self.place]
        if value > 0.99:
            return Skipped("the answer makes no claim")
        if value < 0.005:
            raise ValueError("no number")
        return Score(round(value, 2), reason=f"{output.count(' ')} words were compared, {value:.2f} of them are found")


class Second(Given):
    """Another one."""

    name, place = "second", 1


class Third(Given):
    """Another one, where lower is better."""

    name, place, lower_is_better = "third", 2, True


class Fourth(Given):
    """Another one."""

    name, place = "fourth", 3


def vocabulary() -> list[str]:
    """Words, the most frequent first."""
    draw = random.Random(5)
    made = ("".join(draw.choices("aeiounrtsldhcmgpb", k=draw.randrange(3, 10))) for _ in range(2 * WORDS))
    return list(dict.fromkeys(made))[:WORDS]


def samples(number: int, *, other: bool = False) -> Iterator[Sample]:
    """Samples of some 100 words. other: with other words and scores in two of five."""
    draw, change = random.Random(7), random.Random(11)
    words = vocabulary()
    weights = [1 / (n + 1) for n in range(WORDS)]
    texts = draw.choices(words, weights, k=1_000_000)

    def text(size: int) -> str:
        start = draw.randrange(len(texts) - size)
        return " ".join(texts[start : start + size])

    for place in range(number):
        sample = Sample(
            id=f"q{place:06}",
            input=text(15),
            output=text(60),
            reference=text(20),
            metadata={"topic": draw.choice(TOPICS), "numbers": [draw.betavariate(3, 1.5) for _ in range(4)]},
        )
        if other and change.random() < 0.4:
            answer = (sample.output or "").split()
            for at in change.sample(range(len(answer)), change.randrange(1, 20)):
                answer[at] = words[change.randrange(WORDS)]
            numbers = [change.betavariate(3, 1.4) for _ in range(4)]
            sample = replace(sample, output=" ".join(answer), metadata={**sample.metadata, "numbers": numbers})
        yield sample


def make(url: str, number: int) -> tuple[str, str]:
    """A ledger with two runs, and their IDs."""
    if Path(url).exists():
        with Ledger(url) as ledger:
            runs = {row.metadata["name"]: row.id for row in ledger.runs()}
        if runs.keys() >= {"large", "other"}:
            return runs["large"], runs["other"]
    ids: list[str] = []
    for name in ("large", "other"):
        began = time.perf_counter()
        given = [*samples(number, other=name == "other")]
        run = evaluate(given, [Given(), Second(), Third(), Fourth()], ledger=url, name=name)
        ids.append(run.id)
        print(f"{len(run):,} records in {time.perf_counter() - began:.0f} s, {Path(url).stat().st_size / 1e6:,.0f} MB")
        del run, given
    return ids[0], ids[1]


def make_live(url: str, number: int) -> None:
    """A ledger with a stream of live scores, if it isn't there."""
    if Path(url).exists():
        return
    draw, signatures, began = random.Random(3), [Given().signature, Second().signature], time.time() - DAYS * 86_400
    with Ledger(url) as ledger:
        for start in range(0, number, FRAME):
            rows = [
                live.LiveScore(
                    id=f"o/{place}", stream="shop", source="live", signature=signatures[place % 2], owner="o",
                    submitted=began + place * DAYS * 86_000 / number, entity=f"agent {draw.randrange(ENTITIES)}",
                )
                for place in range(start, min(start + FRAME, number))
            ]  # fmt: skip
            ended: list[live.LiveScore] = []
            for row in live.write_frame(ledger, [], rows, []):
                outcome = (
                    Failed("the judge is down") if draw.random() < 0.01 else Score(round(draw.random(), 2), "found")
                )
                name = scorer_name(row.signature)
                ended.append(row.ended(Record(sample_id="q", scorer=name, signature=row.signature, outcome=outcome)))
            live.finish(ledger, ended)


def make_runs(url: str, number: int) -> None:
    """A ledger with many runs of twenty samples over five datasets, if it isn't there."""
    if Path(url).exists():
        return
    first = evaluate(samples(20), [Given(), Second()], ledger=url, name="first")
    with Ledger(url) as ledger:
        row = ledger.run(first.id)
        if row is None:
            raise SystemExit("a run is gone")
        for place in range(number - 1):
            own = {"id": f"{first.id}-{place:05}", "name": f"run {place}", "tags": [f"tag {place % 7}"]}
            dataset = {**row.metadata["dataset"], "name": f"data {place % 5}"}
            copied = replace(row, id=own["id"], finished=None, metadata={**row.metadata, **own, "dataset": dataset})
            ledger.start_run(copied)
            ledger.finish_run(copied.id, row.finished, copied.metadata)


def label(shelf: Shelf, run: str) -> None:
    """Label samples of a run, chosen as the page chooses them."""
    card = shelf.card(run)
    if card is None:
        raise SystemExit("a run is gone")
    sheet = Sheet.of(shelf.read(card), "given")
    with shelf.writing() as ledger:
        while (labeling := Labeling.open(ledger, sheet, "bench")).n_labeled < LABELS:
            choice = labeling.next()
            if choice is None:
                break
            judged = sheet.values[sheet.places[choice.key]]
            write_label(ledger, labeling.label(choice.key, round(judged), "", choice))


def get(app: App, address: str) -> bytes:
    """The body of a page."""

    async def ask() -> bytes:
        path, _, query = address.partition("?")
        scope = {
            "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": query.encode(),
            "headers": [(b"host", b"localhost")], "http_version": "1.1", "scheme": "http", "root_path": "",
        }  # fmt: skip
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await app(scope, receive, send)
        if sent[0]["status"] != 200:
            raise SystemExit(f"{address}: {sent[0]['status']}")
        return b"".join(message.get("body", b"") for message in sent)

    return asyncio.run(ask())


def measure_start(url: str) -> None:
    """Print how long the command takes to show the first page, with bytecode in its cache."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "evalstone", "view", "--ledger", url, "--port", "0"]
    wall, cpu = list[float](), list[float]()
    for _ in range(STARTS + 1):
        began, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
            address = re.search(r"http://\S+?:\d+", server.stderr.readline() if server.stderr is not None else "")
            if address is None:
                raise SystemExit("evalstone view does not start")
            with urlopen(f"{address[0]}/") as reply:
                reply.read()
            wall.append(1000 * (time.perf_counter() - began))
            server.terminate()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(1000 * (after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime))
    of = f"median of {STARTS}, and the slowest"
    cells = (f"{quantile(wall[1:], s):,.0f} ({quantile(cpu[1:], s):,.0f})" for s in (0.5, 1))
    print(f"start to the first page, {of}: {', '.join(cells)} ms")


def quantile(values: Sequence[float], share: float) -> float:
    """A quantile, as one of the values."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def kinds(runs: tuple[str, str], number: int, draw: random.Random) -> dict[str, Callable[[], str]]:
    """Each kind of page, with what makes an address of it."""
    run = runs[0]
    here, both = run_address(run), compare_address(runs)

    def cursor() -> str:
        return quote(f"[{draw.random():.3f}, {draw.randrange(number)}]")

    words = vocabulary()

    def word(low: int, high: int) -> str:
        return words[draw.randrange(low, high)]

    return {
        "runs": lambda: "/",
        "label": lambda: f"/label?run={run}&scorer=given&annotator=bench",
        "failure modes": lambda: f"/modes?run={run}",
        "run": lambda: here,
        "page in the middle": lambda: f"{here}?after={cursor()}",
        "page before another": lambda: f"{here}?before={cursor()}",
        "by a score": lambda: f"{here}?sort=-score:second&after={cursor()}",
        "by time": lambda: f"{here}?sort=seconds",
        "failed": lambda: f"{here}?show=failed",
        "score in a range": lambda: (
            f"{here}?scorer=third&min={draw.random() / 2:.2f}&max={draw.random() / 2 + 0.5:.2f}"
        ),
        "topic": lambda: f"{here}?field=topic%3D{draw.choice(TOPICS)}",
        "topic, failed, by a score": lambda: f"{here}?field=topic%3D{draw.choice(TOPICS)}&show=failed&sort=score:given",
        "reason": lambda: f"{here}?reason=the+answer+makes+no+claim&scorer=given",
        "a rare word": lambda: f"{here}?q={word(10_000, WORDS)}",
        "a usual word": lambda: f"{here}?q={word(50, 500)}",
        "a word in most samples": lambda: f"{here}?q={word(0, 5)}",
        "the beginning of words": lambda: f"{here}?q={word(10, 99)[:3]}",
        "two words in a range": lambda: f"{here}?q={word(0, 20)}+{word(20, 200)}&max=0.5",
        "JSON": lambda: f"{here}.json?after={cursor()}",
        "sample": lambda: sample_address(run, f"q{draw.randrange(number):06}"),
        "sample in a filter": lambda: f"{sample_address(run, f'q{draw.randrange(number):06}')}?scorer=given&max=0.5",
        "sample in a search": lambda: f"{sample_address(run, f'q{draw.randrange(number):06}')}?q={word(50, 500)}",
        "comparison": lambda: both,
        "c. page in the middle": lambda: f"{both}&after={cursor()}",
        "c. page before another": lambda: f"{both}&before={cursor()}",
        "c. regressed": lambda: f"{both}&show=regressed",
        "c. fixed, one scorer": lambda: f"{both}&show=fixed&scorer=third&sort=better",
        "c. most regressed, one scorer": lambda: f"{both}&scorer=second&sort=worse",
        "c. failed": lambda: f"{both}&show=failed&sort=order",
        "c. missing, one scorer": lambda: f"{both}&show=missing&scorer=given",
        "c. other answers, topic": lambda: f"{both}&show=different&field=topic%3D{draw.choice(TOPICS)}",
        "c. a rare word": lambda: f"{both}&q={word(10_000, WORDS)}",
        "c. a usual word, changed": lambda: f"{both}&show=changed&q={word(50, 500)}",
        "c. a word in most samples": lambda: f"{both}&q={word(0, 5)}",
        "c. by slice": lambda: f"{both}&by=topic",
        "c. JSON": lambda: f"{compare_address(runs, suffix='.json')}&after={cursor()}",
    }


def of_live() -> dict[str, Callable[[], str]]:
    """The pages of live scores."""
    draw = random.Random(2)
    return {
        "live": lambda: "/live",
        "live, a stream": lambda: "/live/shop",
        "live, an entity": lambda: f"/live/shop?entity=agent+{draw.randrange(ENTITIES)}",
        "live, a day": lambda: "/live/shop?since=24h",
    }


def of_runs() -> dict[str, Callable[[], str]]:
    """The list of many runs."""
    draw = random.Random(2)
    return {
        "many runs": lambda: "/",
        "many runs, a dataset": lambda: f"/?dataset=data+{draw.randrange(5)}",
        "many runs, a tag, by a score": lambda: f"/?tag=tag+{draw.randrange(7)}&sort=score:given",
        "many runs, a word": lambda: f"/?q={draw.randrange(1000)}",
    }


def measure(shelf: Shelf, pages: Mapping[str, Callable[[], str]], requests: int) -> None:
    """Print the time of each kind of page."""
    app = application(shelf)
    for name, address in pages.items():
        get(app, address())
        wall, cpu, length = list[float](), list[float](), 0
        for _ in range(requests):
            asked = address()
            before = time.perf_counter(), time.process_time()
            length = len(get(app, asked))
            wall.append(1000 * (time.perf_counter() - before[0]))
            cpu.append(1000 * (time.process_time() - before[1]))
        cells = (f"{quantile(wall, s):,.0f} ({quantile(cpu, s):,.0f})" for s in (0.5, 0.95))
        print(f"{name:28}{''.join(f'{cell:>16}' for cell in cells)}{length:>10,}")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=250_000)
    parser.add_argument("--live", type=int, default=250_000)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        url = str(folder / "ledger.db")
        runs = make(url, options.samples)
        measure_start(url)
        gc.freeze()  # as the command does before it serves pages
        shelf = Shelf(url)
        indexes, cards = Indexes(shelf), [shelf.card(run) for run in runs]
        card, other = cards
        if card is None or other is None:
            raise SystemExit("a run is gone")
        made = time.perf_counter(), time.process_time()
        while type(opened := indexes.open(card)).__name__ == "Building":
            time.sleep(0.1)
        seconds = time.perf_counter() - made[0], time.process_time() - made[1]
        size = sum(file.stat().st_size for file in indexes.folder.joinpath(INDEXES).iterdir())
        print(f"index: {seconds[0]:.1f} s ({seconds[1]:.1f} s of CPU time), {size / 1e6:,.0f} MB")
        while type(indexes.open(other)).__name__ == "Building":
            time.sleep(0.1)
        before = {*indexes.folder.joinpath(INDEXES).iterdir()}
        for by in ("", "topic"):
            made = time.perf_counter(), time.process_time()
            while type(opened := Comparisons(indexes).open([card, other], anyway=False, by=by)).__name__ == "Building":
                time.sleep(0.1)
            seconds = time.perf_counter() - made[0], time.process_time() - made[1]
            new = {*indexes.folder.joinpath(INDEXES).iterdir()} - before
            size = sum(file.stat().st_size for file in new)
            what = f"comparison by {by}" if by else "comparison"
            print(f"{what}: {seconds[0]:.1f} s ({seconds[1]:.1f} s of CPU time), {size / 1e6:,.0f} MB")
        del opened
        label(shelf, runs[0])
        print(f"{'page':28}{'p50':>16}{'p95':>16}{'bytes':>10}")
        measure(shelf, kinds(runs, options.samples, random.Random(1)), options.requests)
        make_live(many := str(folder / "live.db"), options.live)
        measure(Shelf(many), of_live(), options.requests)
        make_runs(many := str(folder / "runs.db"), options.runs)
        measure(Shelf(many), of_runs(), options.requests)


if __name__ == "__main__":
    main()
