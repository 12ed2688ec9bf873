"""What runs and datasets are called on pages."""

from __future__ import annotations

from datetime import datetime

from evalstone.view.shelf import Card


def when(started: str) -> str:
    """A time as people read it, where this runs."""
    if not started:
        return ""
    return f"{datetime.fromisoformat(started).astimezone():%Y-%m-%d %H:%M}"


def name_of(card: Card) -> str:
    """The name of a run: its own, or else when it was started."""
    return (card.metadata.name.strip() if card.metadata else "") or when(card.started) or card.id


def dataset_of(card: Card) -> str:
    """The name of a run's dataset."""
    return card.metadata.dataset.name if card.metadata else ""
