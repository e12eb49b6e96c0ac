"""Content codings undone in small steps, so that no body can fill the memory.

A compressed body is a promise of unknown size: 64 KiB of gzip may hold 64 MiB,
64 KiB of zstd two GiB. So every step here gives a bounded piece, and whoever
asks for the pieces counts them and stops when it has had enough.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import brotli
import zstandard

PIECE_BYTES = 256 * 1024
"""About the largest piece one step gives (zstd: 4 MiB)."""

# A zstd block of 4 bytes may stand for 128 KiB, and its library cannot be told to stop.
_ZSTD_STEP_BYTES = 128
# RFC 9659: what a sender may expect of a web client.
_ZSTD_WINDOW_BYTES = 8 * 2**20
_MAX_CODINGS = 4
_GZIP_MAGIC = b"\x1f\x8b"


class _Stage(Protocol):
    """One coding: compressed bytes in, plain pieces out."""

    def feed(self, data: bytes) -> Iterator[bytes]: ...

    @property
    def is_complete(self) -> bool: ...


class _Zlib:
    """gzip and both kinds of deflate, told apart by `wbits` as in ``zlib``."""

    def __init__(self, wbits: int) -> None:
        self._wbits = wbits
        self._inflater = zlib.decompressobj(wbits)

    def feed(self, data: bytes) -> Iterator[bytes]:
        piece = b""
        while data or len(piece) == PIECE_BYTES:
            if self._inflater.eof and not self._start_member(data):
                return
            piece = self._inflater.decompress(data, PIECE_BYTES)
            data = self._inflater.unconsumed_tail or self._inflater.unused_data
            if piece:
                yield piece

    def _start_member(self, data: bytes) -> bool:
        """Begin the next gzip member; whatever else follows the data is left unread."""
        if self._wbits <= zlib.MAX_WBITS or not data.startswith(_GZIP_MAGIC):
            return False
        self._inflater = zlib.decompressobj(self._wbits)
        return True

    @property
    def is_complete(self) -> bool:
        return self._inflater.eof


class _Plain:
    """No coding at all."""

    is_complete = True

    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data


class _ByMagic:
    """A coding that only its first two bytes tell; `is_needed` where it must be there at all."""

    def __init__(self, choose: Callable[[bytes], _Stage], is_needed: bool) -> None:
        self._choose = choose
        self._is_needed = is_needed
        self._head = b""
        self._stage: _Stage | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._stage is None:
            self._head += data
            if len(self._head) < 2:
                return
            self._stage, data = self._choose(self._head), self._head
        yield from self._stage.feed(data)

    @property
    def is_complete(self) -> bool:
        return self._stage.is_complete if self._stage else not self._is_needed


def _choose_deflate(head: bytes) -> _Stage:
    """Return raw or wrapped deflate: the standard means the latter, servers send both."""
    is_wrapped = head[0] & 0x0F == 8 and int.from_bytes(head[:2], "big") % 31 == 0
    return _Zlib(zlib.MAX_WBITS if is_wrapped else -zlib.MAX_WBITS)


def _choose_gzip_file(head: bytes) -> _Stage:
    return _Zlib(zlib.MAX_WBITS | 16) if head.startswith(_GZIP_MAGIC) else _Plain()


class _Brotli:
    def __init__(self) -> None:
        self._inflater = brotli.Decompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        while not self._inflater.is_finished():
            piece = self._inflater.process(data, output_buffer_limit=PIECE_BYTES)
            if piece:
                yield piece
            # A full piece may be followed by more of what the same input stands for.
            if len(piece) < PIECE_BYTES and self._inflater.can_accept_more_data():
                return
            data = b""

    @property
    def is_complete(self) -> bool:
        return bool(self._inflater.is_finished())


class _Zstd:
    def __init__(self) -> None:
        self._start_frame()

    def _start_frame(self) -> None:
        decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
        self._inflater = decompressor.decompressobj()

    def feed(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), _ZSTD_STEP_BYTES):
            step = data[start : start + _ZSTD_STEP_BYTES]
            while step:
                if self._inflater.eof:
                    self._start_frame()
                piece = self._inflater.decompress(step)
                step = self._inflater.unused_data if self._inflater.eof else b""
                if piece:
                    yield piece

    @property
    def is_complete(self) -> bool:
        return self._inflater.eof


_STAGES: dict[str, Callable[[], _Stage]] = {
    "gzip": lambda: _Zlib(zlib.MAX_WBITS | 16),
    "deflate": lambda: _ByMagic(_choose_deflate, is_needed=True),
    "br": _Brotli,
    "zstd": _Zstd,
}
_ALIASES = {"x-gzip": "gzip", "x-deflate": "deflate"}
# Said by servers that mean nothing by it; browsers read on, and so do we.
_MEANINGLESS = frozenset({"", "identity", "none", "utf-8", "aws-chunked"})

ACCEPT_ENCODING = ", ".join(_STAGES)
"""The codings to ask for."""


class BodyDecoder:
    """The codings of one body, undone piece by piece.

    Parameters
    ----------
    content_encoding
        Values of the ``Content-Encoding`` headers, in order.
    unwrap_gzip_file
        Undo a gzip wrapper that no header speaks of, as around ``sitemap.xml.gz``.

    Raises
    ------
    ValueError
        If a coding is unknown, or there are more than four; later, if the data is damaged.
        The text says which, and follows the name of the page in a message.

    Examples
    --------
    >>> decoder = BodyDecoder(["gzip"])
    >>> b"".join(decoder.feed(zlib.compress(b"news", wbits=31)))
    b'news'
    >>> decoder.finish()
    """

    def __init__(self, content_encoding: Iterable[str], unwrap_gzip_file: bool = False) -> None:
        self._names = _read_codings(content_encoding)
        self._stages: list[_Stage] = [_STAGES[name]() for name in reversed(self._names)]
        if unwrap_gzip_file:
            self._stages.append(_ByMagic(_choose_gzip_file, is_needed=False))
        self._n_fed = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what `data` stands for, in pieces of bounded size."""
        self._n_fed += len(data)
        pieces: Iterator[bytes] = iter((data,))
        for stage in self._stages:
            pieces = _through(stage, pieces)
        try:
            yield from pieces
        except (zlib.error, brotli.error, zstandard.ZstdError) as error:
            raise ValueError(f"its {self._spelled()} data is damaged ({error})") from error

    def finish(self) -> None:
        """Check that the body is whole; an empty one counts as such.

        Raises
        ------
        ValueError
            If compressed data breaks off.
        """
        if self._n_fed and not all(stage.is_complete for stage in self._stages):
            raise ValueError(f"its {self._spelled()} data breaks off")

    def _spelled(self) -> str:
        return ", ".join(self._names) or "gzip"


def _through(stage: _Stage, pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield from stage.feed(piece)


def _read_codings(values: Iterable[str]) -> list[str]:
    words = (word.strip().lower() for value in values for word in value.split(","))
    names = [_ALIASES.get(word, word) for word in words if word not in _MEANINGLESS]
    for name in names:
        if name not in _STAGES:
            raise ValueError(f"its content coding {name!r} is none we know ({ACCEPT_ENCODING})")
    if len(names) > _MAX_CODINGS:
        raise ValueError(f"it is wrapped in {len(names)} content codings")
    return names
