"""Pinned baselines: the run that the others of a dataset are compared with."""

from __future__ import annotations

from evalstone.ledger.labels import pin
from evalstone.view.forms import Form
from evalstone.view.library import Library
from evalstone.view.shelf import dataset_of


def pin_run(library: Library, form: Form) -> str:
    """Make a run the baseline of its dataset, or, with an empty field `pinned`, no longer."""
    card = library.card(form.needed("run"))
    with library.shelf.writing() as ledger:
        pin(ledger, dataset_of(card), card.id if form.text("pinned") else None)
    return form.back()
