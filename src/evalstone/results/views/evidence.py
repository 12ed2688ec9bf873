"""The explanation of a score as blocks: claims and verdicts as labels, lists as items, the rest as names and values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from evalstone._core.display import listed
from evalstone.report.view import Block, Tone

VERDICTS: Mapping[str, tuple[str, Tone]] = {
    "supported": ("✓ supported", "good"),
    "contradicted": ("✕ contradicted", "bad"),
    "not_mentioned": ("? not mentioned", "unsure"),
    "high": ("high relevance", "good"),
    "medium": ("medium relevance", "unsure"),
    "low": ("low relevance", "unsure"),
    "none": ("no relevance", "bad"),
}
"""The labels of judges' verdicts and levels."""
HARMS = ("biased", "toxic", "redundant", "refused")
"""Yes-or-no verdicts where yes is the bad answer."""
NEUTRAL = ("used", "useful", "required")
"""Yes-or-no verdicts where no is not a fault."""
_LABELS = ("verdict", "level", "choice", "impact")
_FAULTS: Mapping[tuple[str, str], str] = {
    ("addresses", "no"): "off topic",
    ("match", "missing"): "missing",
    ("verdict", "no"): "no",
}
"""Entries of evidence with a value that is a fault, and what it is called."""
_FAULT_NAMES = ("addresses", "match")
_HANDLED = ("reason", "passages", "passage", *_LABELS)


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list that contains nothing else; empty for any other value."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return cast("list[dict[str, Any]]", items) if all(isinstance(item, dict) for item in items) else []


def is_claims(value: Any) -> bool:
    items = objects(value)
    return bool(items) and all(isinstance(i.get("claim"), str) and isinstance(i.get("verdict"), str) for i in items)


def about_passages(value: Any) -> list[dict[str, Any]]:
    """The objects of the evidence that are about passages by number."""
    inside = cast("dict[str, Any]", value).get("passages") if isinstance(value, dict) else value
    items = objects(inside)
    return items if all(isinstance(item.get("passage"), int) for item in items) else []


def claims_of(evidence: Mapping[str, Any], titles: Mapping[str, str]) -> list[Block]:
    """The claims with their verdicts, once for scorers that share them."""
    shared: dict[str, tuple[list[dict[str, Any]], list[str]]] = {}
    for scorer, value in evidence.items():
        if is_claims(value):
            shared.setdefault(json.dumps(value, sort_keys=True), (objects(value), []))[1].append(titles[scorer])
    several = len(shared) > 1
    return [
        Block("claims", f"Claims: {listed(names)}" if several else "Claims", items=tuple(map(_item, items)))
        for items, names in shared.values()
    ]


def findings_in(evidence: Any) -> Iterator[tuple[str, str]]:
    """What is wrong by the evidence, as data: the label and the text of each item whose label isn't good, such as a
    claim that no passage supports. Items that are named by a number, such as passages, have no text of their own."""
    if isinstance(evidence, list):
        for item in cast("list[Any]", evidence):
            yield from findings_in(item)
    elif isinstance(evidence, dict):
        item = cast("dict[str, Any]", evidence)
        label = next((text for text, tone in labels_of(item) if tone in ("bad", "unsure")), "")
        label = label or next((said for (name, value), said in _FAULTS.items() if item.get(name) == value), "")
        text = next(
            (v for name, v in item.items() if isinstance(v, str) and name not in (*_HANDLED, *_FAULT_NAMES)), ""
        )
        if label and text:
            yield label, text
        for value in item.values():
            if isinstance(value, dict | list):
                yield from findings_in(value)


def laid_out(value: Any, *, named: bool = False) -> Block:
    """Any evidence as a block: verdicts as labels, lists as items, everything else as names and values.

    named: Whether the first text of an object is shown with its name, too. In evidence of other tools, such as
    `{"value": "C"}`, it is no sentence.
    """
    if isinstance(value, dict):
        return _item(cast("dict[str, Any]", value), named=named)
    if isinstance(value, list):
        return Block("group", items=tuple(laid_out(item, named=named) for item in cast("list[Any]", value)))
    return Block("part", text=_plain(value))


def _item(item: Mapping[str, Any], *, named: bool = False) -> Block:
    """One object of the evidence: its main text, its verdict, the reason, the passages it cites, and the rest."""
    rest = {name: value for name, value in item.items() if name not in _HANDLED and value not in (None, "", [], {})}
    headline = None if named else next((name for name, value in rest.items() if isinstance(value, str)), None)
    text = str(rest.pop(headline)) if headline is not None else ""
    if isinstance(item.get("passage"), int):
        text = text or f"Passage {item['passage']}"
    nested: dict[str, Any] = {
        k: v for k, v in rest.items() if isinstance(v, dict) or (isinstance(v, list) and not is_flat(v))
    }
    pairs = [
        (_probability_of(item) if name == "probability" else _words(name), _plain(value))
        for name, value in rest.items()
        if name not in nested and not isinstance(value, bool)
    ]
    if isinstance(item.get("passages"), list):
        cited = cast("list[Any]", item["passages"])
        if not all(isinstance(number, int) for number in cited):
            nested["passages"] = cited
    cites = tuple(cast("list[int]", item["passages"])) if _cites(item) else ()
    blocks = ((name, laid_out(value, named=named)) for name, value in nested.items())
    inside = tuple(Block("group", _words(name), items=block.items or (block,)) for name, block in blocks)
    cited = f"passage {listed(map(str, cites))}" if cites else ""
    reason = str(item.get("reason") or "")
    if reason.startswith((f"{cited}:", f"{cited} ")):  # as a judge that quotes the passages says
        cited = ""
    why = " · ".join(filter(None, (reason, cited)))
    kind = "claim" if isinstance(item.get("claim"), str) else "item"
    return Block(kind, "", text, tuple(labels_of(item)), why, tuple(pairs), inside, cites)


def _probability_of(item: Mapping[str, Any]) -> str:
    """What a judge's probability is of: of a yes where it answers yes or no, otherwise that its verdict is right."""
    return "probability of yes" if item.get("verdict") in ("yes", "no", "undecided") else "probability of this verdict"


def _cites(item: Mapping[str, Any]) -> bool:
    cited = item.get("passages")
    return isinstance(cited, list) and all(isinstance(number, int) for number in cast("list[Any]", cited))


def labels_of(item: Mapping[str, Any]) -> Iterator[tuple[str, Tone]]:
    for name, value in item.items():
        if name in _LABELS and isinstance(value, str):
            yield VERDICTS.get(value, (_words(value), ""))
        elif isinstance(value, bool):
            tone = "good" if value != (name in HARMS) else "dim" if name in NEUTRAL else "bad"
            yield (_words(name) if value else f"not {_words(name)}", tone)


def is_flat(value: Any) -> bool:
    """Whether a value is a list without nested lists or objects."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return isinstance(value, list) and not any(isinstance(item, dict | list) for item in items)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.15g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return listed(map(_plain, cast("list[Any]", value)))
    return "none" if value is None else str(value)
