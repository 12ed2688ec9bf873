"""A dataset that is edited: its samples, the changes that aren't saved, and a form for each sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evalstone._core.json import storable, value_of
from evalstone.datasets.stored import sample_of
from evalstone.ledger.datasets import placed_blocks
from evalstone.report.view import Tone
from evalstone.types.samples import SAMPLE_FIELDS
from evalstone.view.addresses import (
    dataset_address,
    edit_address,
    edit_sample_address,
    with_query,
)
from evalstone.view.drafts import Meanwhile
from evalstone.view.editing import Change, Editing, Row, added, changing, folder_of, opened, read_in, row_hash, saved
from evalstone.view.forms import Form
from evalstone.view.indexing.jobs import Building
from evalstone.view.library import Library, progress_page
from evalstone.view.pages.dataset_changes import TONES, ChangedField, changed_fields
from evalstone.view.responses import BadAddress, NotThere, named, number_in, page, redirect
from evalstone.view.sample_form import Field, edited, fields_of
from evalstone.view.versions import dataset_named

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

PER_PAGE = 25
EXCERPT = 300
"""The characters of an input, an answer or a reference in the list."""
LONGEST_ID = 2000
SAVING = "saving"
"""The last part of the address of the page that says how far saving is."""
KEYS = (("s", "save the sample, or all changes"), ("a", "add a sample"))


@dataclass(frozen=True)
class ChangeRow:
    """A change that isn't saved."""

    id: str
    href: str
    change: Change
    tone: Tone
    fields: tuple[ChangedField, ...]
    place: str
    """What a form about it has."""


@dataclass(frozen=True)
class SampleRow:
    """A sample in the list."""

    id: str
    href: str
    change: str
    tone: Tone
    texts: tuple[tuple[str, str], ...]


def edit_page(library: Library, request: Request) -> Response:
    """A dataset to edit: its changes, and its samples."""
    name = named(request.path_params["name"])
    folder_of(library)  # nothing is read where nothing can be edited
    words = request.query_params.get("q", "").casefold().split()
    after, changes_after = (number_in(request, each) for each in ("after", "changes"))
    with library.shelf.reading() as ledger:
        editing = opened(library, name, ledger)
        if not isinstance(editing, Editing):
            return editing
        draft, address = editing.draft, edit_address(name)
        if draft.dataset != name:
            raise NotThere(f"There is no dataset {name} to edit.")
        keys = [*draft.changes]
        changes = [_change_row(editing, key) for key in keys[changes_after : changes_after + PER_PAGE]]
        rows, following = _sample_rows(editing, words, after)
    query = [("q", " ".join(words))] if words else []
    new_name = draft.file != name
    return page(
        "edit.html",
        title=f"Edit {name}",
        keys=KEYS,
        name=name,
        known=editing.dataset is not None,
        dataset_href=dataset_address(name),
        address=address,
        token=library.edit_token,
        place=with_query("", [("name", name)])[1:],
        state=draft.state,
        path=editing.path,
        new_name=draft.file if new_name else "",
        base=draft.base,
        unread=editing.unread,
        size=editing.size,
        total=len(keys),
        counts=_counts(editing),
        changes=changes,
        more_changes=with_query(address, [("changes", str(changes_after + PER_PAGE))])
        if len(keys) > changes_after + PER_PAGE
        else "",
        first_changes=address if changes_after else "",
        rows=rows,
        q=request.query_params.get("q", ""),
        first=with_query(address, query) + "#samples" if after else "",
        following=with_query(address, [*query, ("after", str(following))]) + "#samples" if following else "",
        new_href=edit_address(name, "new"),
    )


def _counts(editing: Editing) -> str:
    changes = [editing.change_of(key) for key in editing.draft.changes]
    return ", ".join(f"{number:,} {kind}" for kind in TONES if (number := changes.count(kind)))


def _change_row(editing: Editing, key: str) -> ChangeRow:
    change, row = editing.change_of(key), editing.draft.changes[key]
    base = editing.base_row(key) or {}
    id = (row or base)["id"]
    return ChangeRow(
        id if id.strip() else repr(id),
        edit_sample_address(editing.name, id),
        change,
        TONES[change],
        changed_fields(change, _differing(base, row or {}), base, row or {}),
        _place(editing.name, id),
    )


def _differing(old: Row, new: Row) -> list[str]:
    return [name for name in SAMPLE_FIELDS if row_hash(old.get(name)) != row_hash(new.get(name))]


def _place(name: str, id: str = "") -> str:
    """What the form of a sample is about, as one field: fields lose line breaks and invisible characters."""
    return with_query("", [("name", name), *([("id", id)] if id else [])])[1:]


def _sample_rows(editing: Editing, words: list[str], after: int) -> tuple[list[SampleRow], int]:
    """The samples of the version that is changed, with what becomes of them, and the place of those that follow."""
    rows = list[SampleRow]()
    for place, line in _lines(editing, after):
        text = line.casefold()
        if words and not all(word in text for word in words) and "\\" not in text:
            continue
        row = value_of(line)
        key = storable(row["id"])
        is_changed = key in editing.draft.changes
        now = editing.draft.changes[key] if is_changed else row
        if words and not _has_words(now or row, words):
            continue
        if len(rows) == PER_PAGE:
            return rows, place
        rows.append(_sample_row(editing, now or row, editing.change_of(key) if is_changed else None))
    return rows, 0


def _lines(editing: Editing, first: int) -> Iterator[tuple[int, str]]:
    for block in placed_blocks(editing.lines.ledger, editing.draft.base):
        if block.place + block.samples > first:
            for place, line in enumerate(editing.lines.of_block(block.place), start=block.place):
                if place >= first:
                    yield place, line


def _has_words(row: Row, words: list[str]) -> bool:
    texts = "\n".join(_texts_in(row)).casefold()
    return all(word in texts for word in words)


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from _texts_in(each)
    elif isinstance(value, list):
        for each in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _texts_in(each)


def _sample_row(editing: Editing, row: Row, change: Change | None) -> SampleRow:
    id = row["id"]
    return SampleRow(
        id if id.strip() else repr(id),
        edit_sample_address(editing.name, id),
        change or "",
        TONES[change] if change else "",
        tuple(
            (label, text[:EXCERPT])
            for label, text in (
                ("input", row.get("input") or ""),
                ("answer", row.get("output") or ""),
                ("expected answer", row.get("reference") or ""),
            )
        ),
    )


# ---- One sample ----


def edit_sample_page(library: Library, request: Request) -> Response:
    """The form of a sample that is there."""
    name, id = named(request.path_params["name"]), named(request.path_params["id"])
    folder_of(library)
    with library.shelf.reading() as ledger:
        editing = opened(library, name, ledger)
        if not isinstance(editing, Editing):
            return editing
        base, row = editing.base_row(id), editing.row(id)
        key = storable(id)
        if base is None and row is None:
            raise NotThere(f"{name} has no sample {id}.")
        place = editing.places.ids.get(key)
        beside = [
            edit_sample_address(name, editing.row_at(at)["id"])
            if place is not None and 0 <= at < len(editing.places.ids)
            else ""
            for at in ((place or 0) - 1, (place or 0) + 1)
        ]
        shown = row or base or {}
        return _form_page(
            library,
            editing,
            title=id,
            id=shown["id"],
            fields=fields_of(shown),
            seen=row_hash(row),
            change=editing.change_of(key) if key in editing.draft.changes else "",
            previous=beside[0],
            following=beside[1],
        )


def new_sample_page(library: Library, request: Request) -> Response:
    """The form of a new sample."""
    name = named(request.path_params["name"])
    folder_of(library)
    with library.shelf.reading() as ledger:
        editing = opened(library, name, ledger)
        if not isinstance(editing, Editing):
            return editing
        return _form_page(library, editing, title="New sample", id="", fields=fields_of({}))


def _form_page(
    library: Library,
    editing: Editing,
    *,
    title: str,
    id: str,
    fields: list[Field],
    seen: str = "",
    change: str = "",
    previous: str = "",
    following: str = "",
) -> Response:
    return page(
        "edit_sample.html",
        title=title,
        keys=KEYS[:1],
        name=editing.name,
        id=id,
        list_href=edit_address(editing.name),
        token=library.edit_token,
        place=_place(editing.name, id),
        seen=seen,
        change=change,
        tone=TONES.get(change, ""),  # pyright: ignore[reportCallIssue, reportArgumentType]
        usual=[each for each in fields if each.is_usual],
        folded=[each for each in fields if not each.is_usual],
        n_folded=sum(bool(each.shown) for each in fields if not each.is_usual),
        has_escapes=any(each.is_escaped for each in fields),
        previous=previous,
        following=following,
    )


# ---- Writing ----


def _about(form: Form) -> Mapping[str, str]:
    values = form.query("place", 1 << 20)
    if not values.get("name"):
        raise BadAddress("The form lacks the name of a dataset.")
    return values


def write_sample(library: Library, form: Form) -> str:
    """Change a sample, or add one."""
    about = _about(form)
    name, id = about["name"], about.get("id", "")
    with changing(library, name) as editing:
        if not id:
            _write_new(editing, form)
            return _changes(name)
        row = editing.row(id)
        _check_seen(form, row, id)
        shown = row or editing.base_row(id)
        if shown is None:
            raise NotThere(f"{name} has no sample {id}.")
        draft = editing.put(shown["id"], edited(shown, form.fields))
        editing.folder.write(draft)
        place = editing.places.ids.get(storable(id))
        if form.text("then") == "next" and place is not None and place + 1 < len(editing.places.ids):
            return edit_sample_address(name, editing.row_at(place + 1)["id"])
    return _changes(name)


def _write_new(editing: Editing, form: Form) -> None:
    id = form.text("id", LONGEST_ID)
    row = edited({"id": id}, form.fields)
    if row.keys() <= {"id"}:
        raise BadAddress("A sample needs a field: an input, an answer, or messages.")
    draft, [addition] = added(editing, [sample_of(row)])
    if addition.status == "same":
        raise BadAddress(f"This sample {addition.text}.")
    if addition.status != "new":
        raise BadAddress(f"The ID {row['id']} is already used. IDs are unique in a dataset.")
    editing.folder.write(draft)


def _check_seen(form: Form, row: Row | None, id: str) -> None:
    if form.fields.get("seen", "") != row_hash(row):
        raise Meanwhile(
            f"Sample {id} was changed elsewhere after this page was made, and isn't overwritten. Go back to keep what "
            "you wrote, reload the page in another tab, and change that."
        )


def remove_sample(library: Library, form: Form) -> str:
    """Remove a sample."""
    about = _about(form)
    name, id = about["name"], about.get("id", "")
    with changing(library, name) as editing:
        row = editing.row(id)
        _check_seen(form, row, id)
        if row is None:
            raise NotThere(f"{name} has no sample {id}.")
        editing.folder.write(editing.put(row["id"], None))
    return _changes(name)


def undo_change(library: Library, form: Form) -> str:
    """Take back the change of a sample."""
    about = _about(form)
    with changing(library, about["name"]) as editing:
        editing.folder.write(editing.draft.without(about.get("id", "")))
    return _changes(about["name"])


def save_dataset(library: Library, form: Form) -> str:
    """Save the changes as a version, and as a file. What takes long goes on while a page says how far it is."""
    name = _about(form)["name"]

    def save(building: Building) -> None:
        with changing(library, name) as editing:
            _check_state(form, editing)
            version = saved(library, editing, building)
            base = editing.draft.base
        known = next(each.name for each in library.shelf.dataset_versions() if each.version == version)
        dataset = dataset_named(library, known)
        is_difference = dataset is not None and base in dataset.versions and base != version
        pairs = [("from", base), ("to", version)] if is_difference else []
        library.saved[name] = with_query(dataset_address(known), pairs) + ("#changes" if pairs else "")

    return _after(library, name, library.indexes.jobs.done(_saving(name), save))


def _saving(name: str) -> str:
    return f"saving {name}"


def _after(library: Library, name: str, building: Building | None) -> str:
    """The address of what was saved, or, while it is being saved, of the page that says how far that is."""
    return edit_address(name, SAVING) if building is not None else library.saved.pop(name, edit_address(name))


def saving_page(library: Library, request: Request) -> Response:
    """How far a dataset is that is being saved, and then what was saved."""
    name = named(request.path_params["name"])
    building = library.indexes.jobs.under_way(_saving(name))
    if building is None:
        return redirect(_after(library, name, None))
    return progress_page(building, name, f"{name} is being saved. You can leave this page.")


def discard_changes(library: Library, form: Form) -> str:
    """Discard all changes."""
    name = _about(form)["name"]
    with changing(library, name) as editing:
        _check_state(form, editing)
        editing.folder.write(replace(editing.draft, changes={}))
        return edit_address(name) if editing.dataset is not None else "/datasets"


def read_file(library: Library, form: Form) -> str:
    """Take up the file of a dataset as a version in the ledger."""
    name = _about(form)["name"]
    return _after(library, name, library.indexes.jobs.done(_saving(name), lambda _: read_in(library, name)))


def _check_state(form: Form, editing: Editing) -> None:
    if form.fields.get("state", "") != editing.draft.state or not editing.draft.changes:
        raise Meanwhile("These edits were changed elsewhere after this page was made. Look at them again.")


def _changes(name: str) -> str:
    return edit_address(name) + "#changes"
