"""The ledger's tables, and what is read from and written to them. SQLite in WAL mode, through SQLAlchemy Core.

    ledger   one row: the version of this layout
    answers  a judge's raw replies, keyed by question fingerprint and judge identity: what was paid for
    runs     what each run evaluates, and whether it has ended
    records  outcome and steps of each sample and scorer of a run

Nothing secret is written: a judge's identity holds no key and no header.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import sqlalchemy.exc
from sqlalchemy.dialects.sqlite import insert

from evalstone.errors import LedgerError, UsageError
from evalstone.ledger.rows import RunRow, StoredAnswer
from evalstone.types import Record, Usage

VERSION = 1
CHUNK = 400

metadata = sa.MetaData()
ledger_table = sa.Table("ledger", metadata, sa.Column("version", sa.Integer, nullable=False))
answers_table = sa.Table(
    "answers",
    metadata,
    sa.Column("question", sa.String(32), primary_key=True),
    sa.Column("judge", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("reply", sa.Text, nullable=False),
    sa.Column("input_tokens", sa.Integer, nullable=False),
    sa.Column("output_tokens", sa.Integer, nullable=False),
    sa.Column("cached_tokens", sa.Integer, nullable=False),
    sa.Column("requests", sa.Integer, nullable=False),
    sa.Column("cost", sa.Float),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("confidence", sa.Float),
)
runs_table = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("plan", sa.String(32), nullable=False, index=True),
    sa.Column("started", sa.Text, nullable=False),
    sa.Column("finished", sa.Text),
    sa.Column("about", sa.Text, nullable=False),
)
records_table = sa.Table(
    "records",
    metadata,
    sa.Column("run", sa.Text, primary_key=True),
    sa.Column("sample", sa.Text, primary_key=True),
    sa.Column("scorer", sa.Text, primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
)


class Ledger:
    """A ledger, opened. Synchronous; the engine goes through AsyncLedger.

    url: `sqlite:///path/to/file.db`, or a path. Creates the file and its folder. Raises UsageError for a URL of another
    kind, and LedgerError for a file that cannot be opened, is no ledger, or is of another version.
    """

    def __init__(self, url: str | Path) -> None:
        self.url = _url(url)
        path = Path(self.url.database or "")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LedgerError(f"the ledger's folder {path.parent} cannot be made: {error.strerror}") from None
        self.engine = sa.create_engine(self.url, connect_args={"timeout": 30}, poolclass=sa.pool.NullPool)
        with self._explained():
            self._connection = self.engine.connect()
            self._prepare()

    def _prepare(self) -> None:
        connection = self._connection
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        connection.exec_driver_sql("PRAGMA synchronous=NORMAL")
        tables = set(sa.inspect(connection).get_table_names())
        connection.rollback()
        if tables and "ledger" not in tables:
            raise LedgerError(f"{self.path} is a database but no ledger; name another file with --ledger")
        with connection.begin():
            metadata.create_all(connection)
            version = connection.scalar(sa.select(ledger_table.c.version))
            if version is None:
                connection.execute(sa.insert(ledger_table).values(version=VERSION))
        if version not in (None, VERSION):
            raise LedgerError(f"{self.path} is a ledger of version {version}; this evalstone reads version {VERSION}")

    @property
    def path(self) -> str:
        """The file that the ledger lies in."""
        return self.url.database or ""

    def close(self) -> None:
        """Close the file. The ledger cannot be used afterwards."""
        self._connection.close()
        self.engine.dispose()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except sqlalchemy.exc.DBAPIError as error:
            raise LedgerError(f"the ledger {self.path} cannot be used: {error.orig}") from None

    def answers(self, judge: str, questions: Sequence[str]) -> dict[str, StoredAnswer]:
        """A judge's stored answers to some questions, by question fingerprint."""
        found: dict[str, StoredAnswer] = {}
        with self._explained(), self._connection.begin():
            for start in range(0, len(questions), CHUNK):
                chunk = questions[start : start + CHUNK]
                for row in self._connection.execute(_ANSWERS, {"judge": judge, "questions": chunk}):
                    usage = Usage(row.input_tokens, row.output_tokens, row.cached_tokens, row.requests)
                    stored = (row.question, row.judge, row.kind, row.reply, usage)
                    found[row.question] = StoredAnswer(*stored, row.cost, row.seconds, row.confidence)
        return found

    def write(
        self,
        answers: Iterable[StoredAnswer] = (),
        records: Iterable[tuple[str, Record]] = (),
    ) -> None:
        """Write answers, and records with the id of their run, in one transaction; what is there is replaced."""
        answer_rows = [
            {
                "question": a.question,
                "judge": a.judge,
                "kind": a.kind,
                "reply": a.reply,
                "input_tokens": a.usage.input,
                "output_tokens": a.usage.output,
                "cached_tokens": a.usage.cached,
                "requests": a.usage.requests,
                "cost": a.cost,
                "seconds": a.seconds,
                "confidence": a.confidence,
            }
            for a in answers
        ]
        record_rows = [
            {"run": run, "sample": _storable(r.sample), "scorer": _storable(r.scorer), "body": json.dumps(r.to_dict())}
            for run, r in records
        ]
        with self._explained(), self._connection.begin():
            if answer_rows:
                self._connection.execute(_upsert(answers_table), answer_rows)
            if record_rows:
                self._connection.execute(_upsert(records_table), record_rows)

    def start_run(self, row: RunRow) -> None:
        """Enter a run before its first record."""
        values = {"id": row.id, "plan": row.plan, "started": row.started, "about": json.dumps(row.about)}
        with self._explained(), self._connection.begin():
            self._connection.execute(sa.insert(runs_table).values(finished=row.finished, **values))

    def finish_run(self, run: str, finished: str, about: Mapping[str, Any]) -> None:
        """Mark a run as ended."""
        query = sa.update(runs_table).where(runs_table.c.id == run)
        with self._explained(), self._connection.begin():
            self._connection.execute(query.values(finished=finished, about=json.dumps(about)))

    def unfinished(self, plan: str) -> RunRow | None:
        """The last run of this plan that has not ended."""
        return self._run(runs_table.c.plan == plan, runs_table.c.finished.is_(None))

    def run(self, run: str) -> RunRow | None:
        """The run of this id; "last" is the one started last."""
        return self._run() if run == "last" else self._run(runs_table.c.id == run)

    def _run(self, *conditions: Any) -> RunRow | None:
        query = sa.select(runs_table).where(*conditions).order_by(runs_table.c.started.desc()).limit(1)
        with self._explained(), self._connection.begin():
            row = self._connection.execute(query).first()
        return None if row is None else RunRow(row.id, row.plan, row.started, row.finished, json.loads(row.about))

    def records(self, run: str) -> list[Record]:
        """The records of a run, in the order in which they were written."""
        query = sa.select(records_table.c.body).where(records_table.c.run == run).order_by(sa.text("rowid"))
        with self._explained(), self._connection.begin():
            bodies = self._connection.scalars(query).all()
        return [Record.from_dict(json.loads(body)) for body in bodies]


_ANSWERS = sa.select(answers_table).where(
    answers_table.c.judge == sa.bindparam("judge"),
    answers_table.c.question.in_(sa.bindparam("questions", expanding=True)),
)


def _storable(text: str) -> str:
    """Text that SQLite takes: a lone surrogate, which UTF-8 cannot hold, is written out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


@functools.cache
def _upsert(table: sa.Table) -> Any:
    statement = insert(table)
    keys = [column.name for column in table.primary_key]
    changed = {c.name: statement.excluded[c.name] for c in table.columns if c.name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=changed)


def _url(url: str | Path) -> sa.URL:
    text = str(url)
    if "://" not in text:
        return sa.URL.create("sqlite", database=text)
    try:
        made = sa.make_url(text)
    except sqlalchemy.exc.ArgumentError:
        raise UsageError("the ledger's URL cannot be read; expected sqlite:///path/to/file.db") from None
    if made.get_backend_name() != "sqlite" or not made.database:
        raise UsageError(f"a ledger is kept in SQLite: sqlite:///path/to/file.db, not {made.render_as_string()}")
    return made
