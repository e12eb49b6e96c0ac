"""Raw pages, as evidence and for extraction anew: WARC 1.1 files, one a day and start.

A record is written before anything is made of its page, and every start opens a new
file: a record torn by a kill is the last of its file and hides nothing.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import secrets
import shutil
import threading
import uuid
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import Any

from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed
from warcio.recordloader import ArcWarcRecord
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from models.errors import WarehouseError
from models.records import Fetched, Page
from tasks.settings import Settings

# gzip's level: on 96 news pages 5 came within 1.3 % of the size 9 gives, in 60 % of its time.
GZIP_LEVEL = 5

# Addresses whose last body is remembered, to write "as before" instead of it again.
REMEMBERED = 20_000

# Headers that described the bytes on the wire. The body is stored decoded, so they are
# kept under another name, as web archives do, and their place is taken by true ones.
_OF_THE_WIRE = frozenset({"content-encoding", "transfer-encoding", "content-length"})
_KEPT_AS = "X-Archive-Orig-"

_DAY_FOLDER = re.compile(r"\d{4}-\d{2}-\d{2}")
_SAME_PAYLOAD = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"


class PageStore:
    """Writes raw pages. Safe to call from several threads.

    Parameters
    ----------
    settings
        Names the folder, the clock and the days of retention.
    holder
        What writes, for the file's own description.
    write_revisits
        Whether a page found as it was before in the same file leaves a short record of
        the visit (True), or none. Either way its row points to the full one.

    Raises
    ------
    WarehouseError
        On writing, if the disk is full or the folder cannot be written.
    """

    def __init__(
        self, settings: Settings, holder: str = "newsbeat", *, write_revisits: bool = True
    ) -> None:
        self._settings = settings
        self._holder = holder
        self._write_revisits = write_revisits
        self._lock = threading.Lock()
        self._writer_id = secrets.token_hex(4)
        self._n_pages = 0
        self._n_files = 0
        self._file: int | None = None
        self._path = Path()
        self._day = ""
        self._offset = 0
        self._is_dirty = False
        self._seen: OrderedDict[str, tuple[Page, str]] = OrderedDict()

    def store(self, fetched: Fetched, source: str) -> Page:
        """Write a fetched page and return where it lies.

        The bytes are with the operating system when this returns, so they survive the
        end of this process; :meth:`flush` makes them survive the end of the machine.
        """
        with self._lock, self._explained():
            self._open_file_of_the_day()
            digest = hashlib.sha256(fetched.body).hexdigest()
            before = self._seen.get(fetched.final_url)
            if before is not None and before[0].sha256 == digest:
                return self._revisit(fetched, source, *before)
            page = self._page(fetched, source, digest, self._offset)
            record_id = _record_id()
            self._append(_response(fetched, digest, record_id))
            self._remember(page, record_id)
            return page

    def flush(self, fsync: bool = True) -> None:
        """Force what was written onto the disk; without `fsync`, nothing is left to do."""
        with self._explained():
            with self._lock:
                if not fsync or self._file is None or not self._is_dirty:
                    return
                # The wait for the disk must not hold up those who store meanwhile.
                copy, self._is_dirty = os.dup(self._file), False
            try:
                os.fsync(copy)
            finally:
                os.close(copy)

    def close(self) -> None:
        """Finish the file."""
        with self._lock, self._explained():
            self._close_file()

    def delete_old(self, now: datetime) -> list[str]:
        """Delete the days that are past retention, and return their names.

        Rows of ``pages`` stay; only the bytes go. Happens by itself with every new day.
        """
        limit = (now - timedelta(days=self._settings.warehouse.warc_days)).date().isoformat()
        folder = self._settings.warc_folder
        days = [item.name for item in folder.iterdir()] if folder.is_dir() else []
        old = sorted(day for day in days if _DAY_FOLDER.fullmatch(day) and day < limit)
        for day in old:
            shutil.rmtree(folder / day, ignore_errors=True)
        return old

    def _page(self, fetched: Fetched, source: str, digest: str, offset: int) -> Page:
        self._n_pages += 1
        milliseconds = int(fetched.fetched_at.timestamp() * 1000)
        return Page(
            page_id=f"{milliseconds:012x}-{self._writer_id}-{self._n_pages:06x}",
            source=source,
            url=fetched.final_url,
            fetched_at=fetched.fetched_at,
            status=fetched.status,
            bytes=len(fetched.body),
            sha256=digest,
            warc_file=f"{self._day}/{self._path.name}",
            warc_offset=offset,
        )

    def _revisit(self, fetched: Fetched, source: str, full: Page, record_id: str) -> Page:
        if self._write_revisits:
            self._append(_revisit(fetched, full, record_id))
        return self._page(fetched, source, full.sha256, full.warc_offset)

    def _remember(self, page: Page, record_id: str) -> None:
        self._seen[page.url] = (page, record_id)
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)

    def _append(self, record: bytes) -> None:
        """Write a whole record, or nothing of it."""
        assert self._file is not None
        view = memoryview(record)
        try:
            while view:
                view = view[os.write(self._file, view) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, self._offset)
                os.lseek(self._file, self._offset, os.SEEK_SET)
            raise
        self._offset += len(record)
        self._is_dirty = True

    def _open_file_of_the_day(self) -> None:
        now = self._settings.clock.now()
        day = now.date().isoformat()
        if self._file is not None and day == self._day:
            return
        self._close_file()
        self.delete_old(now)
        folder = self._settings.warc_folder / day
        folder.mkdir(parents=True, exist_ok=True)
        self._n_files += 1
        name = f"newsbeat-{now:%Y%m%dT%H%M%SZ}-{self._writer_id}-{self._n_files:04d}.warc.gz"
        self._path, self._day, self._offset = folder / name, day, 0
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        self._append(_about(name, self._holder, self._settings.agent_string, now))

    def _close_file(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            try:
                os.fsync(file)
            finally:
                os.close(file)
        self._seen.clear()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            folder = str(self._settings.warc_folder)
            raise WarehouseError(
                folder,
                f"raw pages cannot be written: {error.strerror}",
                "Free some space, or make the folder writable, and start again",
            ) from error


def read_page(folder: Path, page: Page) -> bytes:
    """Return the body of a stored page, as it was fetched.

    Parameters
    ----------
    folder
        The folder of raw pages.

    Raises
    ------
    WarehouseError
        If its file was deleted (retention), or does not hold what was stored.
    """
    path = folder / page.warc_file
    try:
        with path.open("rb") as file:
            file.seek(page.warc_offset)
            record = next(iter(ArchiveIterator(file)))
            body = bytes(record.content_stream().read())
    except FileNotFoundError as error:
        raise WarehouseError(
            str(path),
            f"the raw page {page.page_id} is no longer kept",
            "Pages are kept for NEWSBEAT_WAREHOUSE_WARC_DAYS days",
        ) from error
    except (StopIteration, ArchiveLoadFailed, EOFError, zlib.error) as error:
        raise _damaged(path, page) from error
    if hashlib.sha256(body).hexdigest() != page.sha256:
        raise _damaged(path, page)
    return body


def _damaged(path: Path, page: Page) -> WarehouseError:
    return WarehouseError(
        str(path),
        f"the raw page {page.page_id} at byte {page.warc_offset} is damaged",
        "It cannot be read again; the article made from it is not affected",
    )


def _about(name: str, holder: str, agent: str, now: datetime) -> bytes:
    """Return the record that describes the file."""
    info = {
        "software": "newsbeat",
        "format": "WARC File Format 1.1",
        "http-header-user-agent": agent,
    }
    writer = WARCWriter(BytesIO(), gzip=False, warc_version="WARC/1.1")
    record = writer.create_warcinfo_record(name, {**info, "operator": holder})
    record.rec_headers.replace_header("WARC-Date", _moment(now))
    return _bytes(record)


def _response(fetched: Fetched, digest: str, record_id: str) -> bytes:
    fields = [("WARC-Payload-Digest", _warc_digest(digest))]
    if fetched.url != fetched.final_url:
        fields.append(("X-Requested-URI", fetched.url))
    return _record(fetched, "response", record_id, fields, fetched.body)


def _revisit(fetched: Fetched, full: Page, record_id: str) -> bytes:
    fields = [
        ("WARC-Payload-Digest", _warc_digest(full.sha256)),
        ("WARC-Profile", _SAME_PAYLOAD),
        ("WARC-Refers-To", record_id),
        ("WARC-Refers-To-Target-URI", full.url),
        ("WARC-Refers-To-Date", _moment(full.fetched_at)),
    ]
    return _record(fetched, "revisit", _record_id(), fields, b"")


def _record(
    fetched: Fetched, kind: str, record_id: str, fields: list[tuple[str, str]], body: bytes
) -> bytes:
    headers = {
        "WARC-Record-ID": record_id,
        "WARC-Date": _moment(fetched.fetched_at),
        **dict(fields),
    }
    writer = WARCWriter(BytesIO(), gzip=False, warc_version="WARC/1.1")
    record = writer.create_warc_record(
        fetched.final_url,
        kind,
        payload=BytesIO(body),
        length=len(body),
        http_headers=_http_headers(fetched),
        warc_headers_dict=headers,
    )
    return _bytes(record)


def _http_headers(fetched: Fetched) -> StatusAndHeaders:
    """Return the response's headers as received, but true of the body as stored."""
    headers = [
        (f"{_KEPT_AS}{name}" if name.lower() in _OF_THE_WIRE else name, _one_line(value))
        for name, value in fetched.headers
    ]
    headers.append(("Content-Length", str(len(fetched.body))))
    with suppress(ValueError):
        phrase = HTTPStatus(fetched.status).phrase
        return StatusAndHeaders(f"{fetched.status} {phrase}", headers, fetched.http_version)
    return StatusAndHeaders(str(fetched.status), headers, fetched.http_version)


def _one_line(value: str) -> str:
    return re.sub(r"[\r\n]+", " ", value)


def _bytes(record: ArcWarcRecord) -> bytes:
    """Return a record as one gzip member, so that its offset alone finds it."""
    out = BytesIO()
    writer: Any = WARCWriter(out, gzip=False, warc_version="WARC/1.1")
    writer.write_record(record)
    packer = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return packer.compress(out.getbuffer()) + packer.flush()


def _record_id() -> str:
    return f"<urn:uuid:{uuid.uuid4()}>"


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _warc_digest(hexadecimal: str) -> str:
    return "sha256:" + base64.b32encode(bytes.fromhex(hexadecimal)).decode()
