"""The warehouse's one writer: DuckDB, one short transaction per poll.

A second writer is refused by name (see `tasks.duck.lease`); readers go through
`tasks.warehouse_reader`, which reaches this process by the live endpoint that
:meth:`Warehouse.serve` starts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self

import duckdb

from models.batches import BatchResult
from models.errors import UnstorableError, WarehouseError
from models.harmless import one_line
from models.likeness import Likenesses
from models.records import (
    Article,
    BudgetReport,
    DriftAlarm,
    DriftState,
    FittedModel,
    HourlyForecast,
    Incident,
    KnownEntry,
    Observed,
    Page,
    PendingArticle,
    PollResult,
    RecentPoll,
    ReferenceModel,
    Repair,
    RuleHit,
    Schedule,
    Source,
    SourceStatus,
    StoredCounts,
    StoredPage,
)
from models.standing import AFTER_ALL
from models.triage.ladder import Notice
from models.triage.scope import Burst
from tasks.duck import (
    drift,
    fitted,
    hits,
    incidents,
    likenesses,
    listed,
    notices,
    observations,
    polls,
    schedules,
    status,
)
from tasks.duck.database import connect, explained
from tasks.duck.endpoint import (
    ENDPOINT_FILE,
    Endpoint,
    read_running,
    serve_endpoint,
    stop_endpoint,
)
from tasks.duck.hits import StoredVersion
from tasks.duck.lease import Lease, read_holder
from tasks.duck.migrations import migrate
from tasks.duck.notices import Message
from tasks.duck.rows import insert_rows, select_by_ids, utc_row
from tasks.settings import Settings

# What comes of a value that DuckDB, or its binding to Python, has no place for.
_NO_SUCH_VALUE = (
    duckdb.DataError,
    duckdb.IntegrityError,
    duckdb.ProgrammingError,
    ValueError,
    TypeError,
    OverflowError,
    RuntimeError,
)

# Numbers of past polls looked for per poll wanted: cycles are skipped by pauses.
GAPS = 4


class Warehouse:
    """The open warehouse, writable. Calls from several threads wait for one another.

    Made by :meth:`open`.
    """

    def __init__(
        self, settings: Settings, lease: Lease, connection: duckdb.DuckDBPyConnection
    ) -> None:
        self.settings = settings
        self._lease = lease
        self._connection = connection
        self._lock = threading.RLock()
        self._endpoint: Endpoint | None = None
        self._is_open = True
        self._claimed: set[str] = set()
        self._signed: Likenesses | None = None
        self._has_failed = False

    @classmethod
    def open(cls, settings: Settings, holder: str) -> Warehouse:
        """Take the writer's lease, open the database and bring its schema up to date.

        Parameters
        ----------
        holder
            What opens it, for messages: ``"newsbeat worker"``.

        Raises
        ------
        WarehouseError
            If another process writes, the database is newer than this program, or
            the file or its folder cannot be used.
        """
        folder, path = settings.folder, settings.database
        with explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            lease = Lease(folder, holder)
        try:
            (folder / ENDPOINT_FILE).unlink(missing_ok=True)
            connection = _open_database(settings, path)
        except BaseException:
            lease.release()
            raise
        return cls(settings, lease, connection)

    def close(self) -> None:
        """Stop serving, write everything into the one file, and hand the lease back."""
        with self._lock:
            if not self._is_open:
                return
            self._is_open = False
            if self._endpoint is not None:
                stop_endpoint(self._connection, self.settings.folder, self._endpoint)
            # A reader still connected can forbid it; the log is replayed at the next start.
            with suppress(duckdb.Error):
                self._connection.execute("CHECKPOINT")
            self._connection.close()
            self._lease.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *about: object) -> None:
        self.close()

    @property
    def has_failed(self) -> bool:
        """Whether DuckDB gave the database up after a write that failed half way.

        It does so to protect the file, which is whole. Nothing more can be read or written
        by this process: it must end, and the next one goes on where the file stands.
        """
        return self._has_failed

    def serve(self) -> Endpoint:
        """Start the live SQL endpoint on loopback and return where it listens.

        Address and token are written to ``endpoint.json`` in the warehouse's folder,
        which only its owner can read.

        Raises
        ------
        WarehouseError
            If the port is taken.
        """
        with self._using():
            if self._endpoint is None:
                port = self.settings.warehouse.quack_port
                self._endpoint = serve_endpoint(self._connection, self.settings.folder, port)
            return self._endpoint

    def longest_query(self) -> tuple[float, str]:
        """Return for how many wall seconds the longest live query has run, and its text."""
        if self._endpoint is None:
            return 0.0, ""
        with self._using() as connection:
            running = read_running(connection)
        return running[0] if running else (0.0, "")

    def sync_sources(
        self, sources: Sequence[Source], now: datetime, is_complete: bool = True
    ) -> None:
        """Bring the tables ``sources`` and ``schedule`` up to the catalogue.

        New sources get a first poll, spread so that an import does not start as a burst.
        Those no longer in the catalogue are paused, and active again once back in it.

        Parameters
        ----------
        sources
            The catalogue.
        now
            The present.
        is_complete
            False where some of the catalogue could not be read: then nobody has left it.
        """
        with self._transaction() as connection:
            schedules.sync_sources(connection, sources, now, is_complete)

    def read_schedules(self) -> list[Schedule]:
        """Return the schedule of every source, the next due first."""
        with self._using() as connection:
            return schedules.read_schedules(connection)

    def read_schedule(self, source: str) -> Schedule | None:
        """Return the schedule of one source, None where it has none."""
        with self._using() as connection:
            return schedules.read_schedule(connection, source)

    def write_schedule(self, schedule: Schedule) -> None:
        """Write the schedule of a source."""
        with self._transaction() as connection:
            schedules.write_schedule(connection, schedule)

    def claim_cycle(
        self, source: str, cycle: int | None, now: datetime, lease_until: datetime
    ) -> Schedule | None:
        """Claim a poll, so that no other run makes it too.

        As we are the only writer, who claims what is known in memory; the row says it to
        others. So a claim that could not be taken back, the disk being full, holds up
        nobody. :meth:`store_poll` ends it, and so does :meth:`end_claim`.

        Parameters
        ----------
        cycle
            Number of the poll the run was made for; None claims whichever is next (a
            poll started by hand).
        lease_until
            The claim lapses then.

        Returns
        -------
        Schedule or None
            The claimed schedule. None when the cycle is over, or a poll is under way.
        """
        with self._transaction() as connection:
            schedule = schedules.read_schedule(connection, source)
            if schedule is None or cycle not in (None, schedule.cycle):
                return None
            is_held = schedule.lease_until is not None and schedule.lease_until > now
            if is_held and source in self._claimed:
                return None
            schedules.write_lease(connection, source, lease_until)
        self._claimed.add(source)
        return replace(schedule, lease_until=lease_until)

    @property
    def claimed(self) -> frozenset[str]:
        """The sources whose polls are under way, whatever ``lease_until`` says."""
        return frozenset(self._claimed)

    def end_claim(self, source: str) -> None:
        """Give a claim back without a poll to store for it; nothing to do where there is none."""
        if source not in self._claimed:
            return
        self._claimed.discard(source)
        with self._transaction() as connection:
            schedules.write_lease(connection, source, None)

    def release_leases(self) -> int:
        """End all claims, and return how many there were.

        Right at start only: as we are the writer, nobody else can be polling.
        """
        with self._transaction() as connection:
            rows = connection.execute(
                "UPDATE schedule SET lease_until = NULL WHERE lease_until IS NOT NULL"
            ).fetchall()
            return int(rows[0][0])

    def read_known(self, source: str, entry_ids: Sequence[str]) -> dict[str, KnownEntry]:
        """Return which of the listed entries are known, and how each was last listed."""
        with self._using() as connection:
            return listed.read_known(connection, source, entry_ids)

    def read_alike(
        self, source: str, titles: Sequence[str], numbers: Sequence[str], since: datetime
    ) -> list[KnownEntry]:
        """Return entries with one of the titles, or one of the numbers in an address."""
        with self._using() as connection:
            return listed.read_alike(connection, source, titles, numbers, since)

    def read_stored(self, article_ids: Sequence[str]) -> set[str]:
        """Return which of the articles there are."""
        with self._using() as connection:
            rows = select_by_ids(
                connection, "article_id", "article_heads", "article_id", article_ids
            )
        return {key for (key,) in rows}

    def read_pending(self, source: str, now: datetime, limit: int) -> list[PendingArticle]:
        """Return entries whose article page is to be tried (again) now, the oldest debt first."""
        with self._using() as connection:
            return listed.read_pending(connection, source, now, limit)

    def store_poll(self, result: PollResult) -> StoredCounts:
        """Store a poll and everything it found, in one transaction.

        Nothing is stored twice: a poll stored before changes nothing, nor does an entry
        or article that is there already. An article whose title or text changed gets a
        new version.

        Raises
        ------
        UnstorableError
            If the database does not take one of its values; then none of it is stored.
        WarehouseError
            If it could not be stored; then none of it is.
        """
        with self._transaction() as connection:
            try:
                counts = polls.store_poll(
                    connection, result, self.settings, self._likenesses(connection)
                )
                if not counts.is_repeat:
                    schedules.store_outcome(connection, result)
            except _NO_SUCH_VALUE as error:
                reason = one_line(f"{type(error).__name__}: {error}")
                raise UnstorableError(
                    str(self.settings.database),
                    reason,
                    "This is a defect of newsbeat's: please report it",
                ) from error
        self._claimed.discard(result.poll.source)
        return counts

    def read_incidents(self) -> list[Incident]:
        """Return what stands: incidents that have begun and are not over, the oldest first."""
        return incidents.read_standing(self.query)

    def read_recent_polls(self, source: str, limit: int = 20) -> list[RecentPoll]:
        """Return the last polls of a source, the newest first."""
        with self._using() as connection:
            schedule = schedules.read_schedule(connection, source)
            last = schedule.cycle if schedule is not None else 0
            # By number, from the index: the table grows by a million rows a week.
            ids = [f"{source}#{cycle}" for cycle in range(last, last - GAPS * limit, -1)]
            rows = select_by_ids(connection, _RECENT, "polls", "poll_id", ids)
        found = [RecentPoll(*row) for row in rows]
        return sorted(found, key=lambda poll: poll.started_at, reverse=True)[:limit]

    def read_bursts(self, rules: Sequence[str], now: datetime) -> Mapping[str, Burst]:
        """Return the hits of rules in the last hour, and in that hour of the days before."""
        with self._using() as connection:
            return hits.read_bursts(connection, rules, now)

    def write_messages(self, room: Callable[[str], int], now: datetime) -> int:
        """Write the messages that notices due by now make, and return how many.

        Parameters
        ----------
        room
            Returns how many characters a channel takes in one part.
        """
        channels = self.settings.open_channels
        with self._transaction() as connection:
            return notices.write_messages(connection, channels, room, now)

    def read_released(self) -> list[tuple[str, StoredVersion]]:
        """Return articles no longer held back whose rules have not been matched, with sources."""
        with self._using() as connection:
            return hits.read_released(connection)

    def store_released(
        self,
        source: Source,
        stored: Sequence[StoredVersion],
        found: Sequence[RuleHit],
        now: datetime,
    ) -> None:
        """Store what rules found in released articles of a source, and raise its notices."""
        alerts, channels = self.settings.alerts, self.settings.open_channels.values()
        with self._transaction() as connection:
            hits.forget_released(connection, stored)
            stories = likenesses.store_likenesses(
                connection, self._likenesses(connection), source.source, stored, now
            )
            _, told = hits.store_hits(connection, source.source, found, stored, stories, now)
            notices.raise_notices(
                connection, told, source.source, source.tags, channels, alerts.pace, now
            )

    def _likenesses(self, connection: duckdb.DuckDBPyConnection) -> Likenesses:
        """Return the signatures of recent articles, read when first wanted."""
        if self._signed is None:
            span = timedelta(hours=self.settings.alerts.story_hours)
            signed = Likenesses(span)
            since = self.settings.clock.now() - span
            signed.load(likenesses.read_signed(connection, since))
            self._signed = signed
        return self._signed

    def read_messages(self, now: datetime) -> list[Message]:
        """Return the messages that are to be sent now, the most urgent first."""
        with self._using() as connection:
            return notices.read_messages(connection, now)

    def note_part(self, message: Message, n_sent: int) -> None:
        """Note that so many parts of a message have gone out."""
        with self._transaction() as connection:
            notices.note_part(connection, message, n_sent)

    def note_sent(self, message: Message, now: datetime) -> None:
        """Note that a message has gone out whole."""
        with self._transaction() as connection:
            notices.note_sent(connection, message, self.settings.alerts.pace, now)

    def note_failed(self, message: Message, error: str, now: datetime) -> None:
        """Note why a message could not be sent; it is tried again later."""
        with self._transaction() as connection:
            notices.note_failed(connection, message, error, self.settings.alerts.pace, now)

    def acknowledge(self, prefix: str, by: str, now: datetime) -> list[Notice]:
        """Stop the repeats of a notice, named by its first digits; return what changed."""
        with self._transaction() as connection:
            return notices.acknowledge(connection, prefix, by, now)

    def write_budget(self, report: BudgetReport) -> None:
        """Note how the price follows the budget."""
        with self._transaction() as connection:
            insert_rows(connection, "budget", [list(astuple(report))])

    def read_observed(self, since: datetime) -> list[Observed]:
        """Return what was covered and found of each source since its newest fit, and `since`."""
        with self._using() as connection:
            return observations.read_observed(connection, since)

    def read_spending(self, since: datetime) -> tuple[int, float, datetime | None]:
        """Return polls, megabytes of index pages, and the first poll since a moment."""
        with self._using() as connection:
            return observations.read_spending(connection, since)

    def read_status(self, now: datetime) -> list[SourceStatus]:
        """Return how every source fares at `now`."""
        return status.read_status(self.query, now)

    def write_intensity_models(self, models: Sequence[FittedModel], fitted_at: datetime) -> None:
        """Write models, in place of those their sources had, in one transaction.

        Parameters
        ----------
        fitted_at
            The refit they come from; twice the same is as once.
        """
        with self._transaction() as connection:
            fitted.write_models(connection, models, fitted_at)

    def read_intensity_models(self) -> list[FittedModel]:
        """Return the last fitted model of every source that has one."""
        return fitted.read_models(self.query)

    def write_forecasts(
        self, forecasts: Sequence[HourlyForecast], keep_from: datetime | None = None
    ) -> None:
        """Write forecasts, in place of earlier ones for the same hours and those after.

        Parameters
        ----------
        keep_from
            Forecasts of hours before it are deleted; None keeps them.
        """
        with self._transaction() as connection:
            fitted.write_forecasts(connection, forecasts, keep_from)

    def read_drift_states(self, source: str | None = None) -> list[DriftState]:
        """Return how every source stands with the drift detectors, or one of them."""
        return drift.read_states(self.query, source)

    def read_untold(self) -> list[str]:
        """Return the sources with a change for which no flow run has failed yet."""
        return drift.read_untold(self.query)

    def read_references(self, source: str | None = None) -> list[ReferenceModel]:
        """Return the reference of every source that has one, or of one source."""
        return drift.read_references(self.query, source)

    def read_profiles(
        self, source: str, since: str = "", until: str = AFTER_ALL, limit: int = 400
    ) -> list[Page]:
        """Return the last article pages of a source, oldest first, with their profiles.

        Parameters
        ----------
        since, until
            Ids of pages; from the first on, and before the second.
        """
        return drift.read_profiles(self.query, source, since, until, limit)

    def read_evidence(self, source: str, since: str) -> dict[str, float]:
        """Return the evidence after each judged page of a source, from a page on."""
        return drift.read_evidence(self.query, source, since)

    def read_stored_pages(
        self,
        source: str,
        since: str = "",
        until: str = AFTER_ALL,
        only_quarantined: bool = False,
        limit: int = 1_000_000,
    ) -> list[StoredPage]:
        """Return the last articles of a source and the pages they were made from, oldest first.

        Parameters
        ----------
        since, until
            Ids of pages; from the first on, and before the second.
        """
        return drift.read_stored_pages(self.query, source, since, until, only_quarantined, limit)

    def read_repairs(self, state: str, source: str | None = None) -> list[Repair]:
        """Return the repairs that are proposed, adopted or dropped."""
        return drift.read_repairs(self.query, state, source)

    def write_references(
        self, models: Sequence[ReferenceModel], states: Sequence[DriftState] = ()
    ) -> None:
        """Write references in place of older ones, and how their sources stand with them."""
        with self._transaction() as connection:
            drift.write_references(connection, models)
            for state in states:
                drift.write_state(connection, state)

    def write_check(
        self,
        check_id: str,
        sizes: tuple[int, int],
        result: BatchResult,
        state: DriftState,
        document: str | None = None,
        alarm: DriftAlarm | None = None,
    ) -> None:
        """Write a check of a set of pages, how the source stands after it, and an alarm of it.

        Parameters
        ----------
        sizes
            Pages of the reference, and pages compared with it.
        document
            File of the findings, relative to the warehouse's folder.
        """
        now, source = state.updated_at, state.source
        with self._transaction() as connection:
            drift.write_check(connection, check_id, source, now, sizes, result, document)
            drift.write_state(connection, state)
            if alarm is not None:
                drift.store_alarm(connection, alarm, self.settings)

    def write_repair(self, repair: Repair) -> None:
        """Write a repair; it takes the place of the source's earlier one of its state."""
        with self._transaction() as connection:
            drift.write_repair(connection, repair)

    def end_drift(self, state: DriftState, reference: ReferenceModel | None) -> int:
        """End a drift in one transaction: articles released, notice closed, state active.

        Parameters
        ----------
        state
            How the source stands from now on.
        reference
            Its reference; None leaves it without one until there are pages enough.

        Returns
        -------
        int
            How many articles were released.
        """
        now, source = state.updated_at, state.source
        with self._transaction() as connection:
            n_released = drift.release(connection, source)
            drift.forget_reference(connection, source)
            drift.write_references(connection, [reference] if reference else [])
            drift.write_state(connection, state)
            notices.close_state(connection, drift.DRIFT, source, now)
            drift.set_drifted(connection, source, is_drifted=False)
        return n_released

    def settle_repair(self, repair_id: str, state: str, now: datetime) -> None:
        """Note that a repair was adopted or dropped."""
        with self._transaction() as connection:
            drift.settle_repair(connection, repair_id, state, now)

    def replace_texts(
        self, source: str, texts: Sequence[tuple[StoredPage, Article]], now: datetime
    ) -> int:
        """Put texts extracted anew in place of the stored ones; return how many differed."""
        with self._transaction() as connection:
            return drift.replace_texts(connection, texts, f"{source}#reextract", now)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of an SQL query, times in UTC."""
        with self._using() as connection:
            return [utc_row(row) for row in connection.execute(sql).fetchall()]

    @contextmanager
    def _using(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._lock:
            if not self._is_open:
                raise WarehouseError(
                    str(self.settings.database), "the warehouse is closed", "Open it again"
                )
            with explained(self.settings.database):
                try:
                    yield self._connection
                except (duckdb.FatalException, duckdb.InternalException):
                    self._has_failed = True
                    raise

    @contextmanager
    def _transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._using() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # After a failed commit there may be nothing left to roll back.
                with suppress(duckdb.Error):
                    connection.execute("ROLLBACK")
                raise


def find_writer(settings: Settings) -> str | None:
    """Return what holds the warehouse for writing, such as ``newsbeat worker``; None where nobody.

    It may have changed by the time the answer is used: opening decides.
    """
    holder = read_holder(settings.folder)
    return holder.holder if holder is not None else None


_RECENT = (
    "poll_id, started_at, finished_at, outcome, http_status, reason, entries_listed, entries_new, "
    "articles_stored, possible_loss, index_bytes, article_bytes, mean_lag_s, next_due_at, "
    "next_reason"
)


def _open_database(settings: Settings, path: Path) -> duckdb.DuckDBPyConnection:
    def reopen() -> duckdb.DuckDBPyConnection:
        connection = connect(path, settings.warehouse)
        spill = settings.folder / "spill"
        connection.execute(f"SET temp_directory = '{str(spill).replace(chr(39), chr(39) * 2)}'")
        return connection

    connection = reopen()
    try:
        return migrate(connection, path, reopen)
    except BaseException:
        connection.close()
        raise
