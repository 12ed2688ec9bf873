"""The pages of runs in blocks are those of the same runs in lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from evalstone import Run, Sample, evaluate, read_run, write_run
from evalstone.results.record_blocks import RecordBlocks
from evalstone.results.record_tables import KEEPS, Keep
from evalstone.view.addresses import compare_address, compared_address, run_address, sample_address
from tests.runs import Claimed, Given, Harm
from tests.view.conftest import Client, client_of

BEFORE = ["0.5", "skip", "0.25", "1", "fail", "0.5", "0", "0.75", "skip", "0.5"]
AFTER = ["1", "0.5", "0.25", "1", "0.5", "fail", "0", "0.5", "skip", "0.75"]
SCORERS = [Given(), Harm(), Claimed()]
QUERIES = (
    "",
    "?sort=-order",
    "?sort=id",
    "?sort=-cost",
    "?sort=tokens",
    "?sort=-score:harm",
    "?sort=latency",
    "?after=[0.5,3]",
    "?before=[0.5,6]&sort=score:given",
    "?show=failed",
    "?show=imperfect&scorer=harm",
    "?show=skipped&scorer=given",
    "?scorer=given&min=0.25&max=0.5",
    "?reason=nothing+to+say",
    "?reason=nothing+to+say&scorer=given",
    "?field=topic%3Da",
    "?q=s-1",
    "?q=S+1",
    "?q=%22s-%22",
    "?q=1-s",
    "?q=s-1+nothing",
    "?q=Ś",
    "?q=é",
    "?q=%22à.5%22+passage",
    "?q=nothing+say&show=skipped",
    "?q=contradicted+because",
    "?scorer=none",
    "?field=none%3Da",
    "?column=reference&column=cost",
)
COMPARED = (
    "",
    "&sort=id",
    "&sort=worse&scorer=given",
    "&sort=better",
    "&show=regressed",
    "&show=fixed&scorer=harm",
    "&show=failed&sort=order",
    "&show=missing&scorer=given",
    "&show=different&sort=order",
    "&show=changed&q=s-",
    "&q=nothing&sort=order",
    "&field=topic%3Da",
    "&by=topic",
    "&by=none",
)


def samples(answers: list[str], odd: str = "é4") -> list[Sample]:
    return [
        Sample(
            id=odd if place == 4 else f"s-{place}",
            input=f"How much? {len(answers) - place}",
            output=answer,
            context=[f"passage {place}"],
            metadata={"topic": "ab"[place % 2], "number": place},
        )
        for place, answer in enumerate(answers)
    ]


def first_target(input: str) -> str:
    return BEFORE[int(input.rpartition(" ")[2]) - 1]


def second_target(input: str) -> str:
    return AFTER[int(input.rpartition(" ")[2]) - 1]


@dataclass(frozen=True)
class Both:
    """The pages of runs in blocks, and those of the same runs in lines."""

    blocks: Client
    lines: Client
    runs: Sequence[str]

    @classmethod
    def of(cls, folder: Path, runs: Sequence[Run], keep: Keep, *, texts: bool = True) -> Both:
        """The pages of runs. texts: Whether the samples are there."""
        blocks: list[Path] = []
        lines: list[Path] = []
        for number, run in enumerate(runs):
            blocks.append(
                write_run(run if texts else replace(run, samples=None), folder / f"blocks {number}", keep=keep)
            )
            read = read_run(blocks[-1])
            assert isinstance(read.records, RecordBlocks)
            assert read.records.keep == keep
            lines.append(write_run(replace(read, records=tuple(read.records)), folder / f"lines {number}"))
        return cls(client_of(None, *blocks), client_of(None, *lines), [run.id for run in runs])

    def differing(self, addresses: Iterable[str]) -> list[str]:
        """The addresses whose pages differ."""
        found: list[str] = []
        for address in addresses:
            first, second = self.blocks.get(address), self.lines.get(address)
            assert first.status in (200, 400) or "none" in address
            if (first.status, first.text.replace("blocks ", "lines ")) != (second.status, second.text):
                found.append(address)
        return found


@pytest.fixture(params=[(keep, texts) for keep in KEEPS for texts in (True, False)])
def both(tmp_path: Path, request: pytest.FixtureRequest) -> Both:
    keep, texts = request.param
    # Without texts, IDs of ASCII are looked for in their column.
    runs = [evaluate(samples(of, "é4" if texts else "s-4"), SCORERS, ledger=None) for of in (BEFORE, AFTER)]
    return Both.of(tmp_path, runs, keep, texts=texts)


def test_lists_of_samples_are_the_same(both: Both) -> None:
    here = run_address(both.runs[0])
    assert both.differing(f"{here}{suffix}{query}" for query in QUERIES for suffix in ("", ".json", ".csv")) == []


def test_samples_are_the_same(both: Both) -> None:
    samples = [sample_address(both.runs[0], key) for key in ("s-0", "s-1", "s-5", "s-9", "none")]
    assert both.differing(f"{each}{query}" for each in samples for query in ("", "?show=skipped", "?q=s")) == []
    assert both.differing(f"{each}.json" for each in samples) == []


def test_other_pages_of_a_run_are_the_same(both: Both) -> None:
    run = both.runs[0]
    assert both.differing([f"/label?run={run}&scorer=given", f"/modes?run={run}", "/", f"/compare?runs={run}"]) == []


def test_comparisons_are_the_same(both: Both) -> None:
    suffixes = ("", ".json", ".csv")
    assert (
        both.differing(compare_address(both.runs, suffix=each) + query for query in COMPARED for each in suffixes) == []
    )
    assert both.differing(compared_address(key, both.runs) for key in ("s-0", "s-5", "s-9", "none")) == []


@pytest.mark.slow
@pytest.mark.parametrize("keep", KEEPS)
def test_trials_are_the_same(tmp_path: Path, keep: Keep) -> None:
    targets = first_target, second_target
    runs = [evaluate(samples(BEFORE), SCORERS, target=target, trials=2, ledger=None) for target in targets]
    both = Both.of(tmp_path, runs, keep)
    here, compared = run_address(both.runs[0]), [compare_address(both.runs, suffix=each) for each in ("", ".json")]
    addresses = [f"{here}{suffix}{query}" for query in QUERIES for suffix in ("", ".json")]
    addresses += [sample_address(both.runs[0], key) for key in ("s-0 #1", "s-1 #2", "é4 #1")]
    addresses += [f"{each}{query}" for each in compared for query in COMPARED]
    addresses += [compared_address(key, both.runs) for key in ("s-0", "é4", "s-9")]
    assert both.differing(addresses) == []


def test_a_run_whose_samples_are_in_another_order_has_the_same_pages(tmp_path: Path) -> None:
    runs = [evaluate(samples(of), SCORERS, ledger=None) for of in (BEFORE, AFTER)]
    both = Both.of(tmp_path, [replace(run, samples=samples(BEFORE)[::-1]) for run in runs], "all")
    assert both.differing(run_address(both.runs[0]) + query for query in QUERIES) == []


def test_a_page_says_which_block_is_missing(tmp_path: Path) -> None:
    run = evaluate(samples(BEFORE), SCORERS, ledger=None)
    both = Both.of(tmp_path, [run], "all")
    assert both.blocks.get(sample_address(run.id, "s-1")).status == 200
    for file in (tmp_path / "blocks 0" / "blocks").iterdir():
        file.unlink()
    reply = both.blocks.get(sample_address(run.id, "s-1"))
    assert reply.status == 503
    assert "-000000.parquet cannot be read" in reply.words
    assert both.blocks.get(run_address(run.id)).status == 200
