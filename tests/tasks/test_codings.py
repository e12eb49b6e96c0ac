from __future__ import annotations

import gzip
import tracemalloc
import zlib

import brotli
import pytest
import zstandard

from tasks.codings import BodyDecoder

TEXT = "Новости 新聞 news ".encode() * 5000


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}


def unpack(decoder: BodyDecoder, data: bytes, step: int = 1000) -> bytes:
    pieces = (decoder.feed(data[at : at + step]) for at in range(0, len(data), step))
    body = b"".join(piece for several in pieces for piece in several)
    decoder.finish()
    return body


@pytest.mark.parametrize("step", [1, 7, 100_000])
@pytest.mark.parametrize("name", PACKERS)
def test_every_coding_asked_for_is_undone_however_it_arrives(name: str, step: int) -> None:
    packed = PACKERS[name](TEXT[:20_000])
    assert unpack(BodyDecoder([name]), packed, step) == TEXT[:20_000]


@pytest.mark.parametrize("step", [1, 100_000])
def test_raw_deflate_is_told_from_wrapped(step: int) -> None:
    assert unpack(BodyDecoder(["deflate"]), raw_deflate(TEXT), step) == TEXT


def test_codings_are_undone_in_reverse_order() -> None:
    packed = brotli.compress(gzip.compress(TEXT))
    assert unpack(BodyDecoder(["gzip, br"]), packed) == TEXT
    assert unpack(BodyDecoder(["gzip", "br"]), packed) == TEXT


def test_words_that_mean_no_coding_change_nothing() -> None:
    assert unpack(BodyDecoder(["identity", "UTF-8"]), TEXT) == TEXT


def test_an_unknown_coding_is_named() -> None:
    with pytest.raises(ValueError, match="'compress' is none we know"):
        BodyDecoder(["compress"])


def test_a_tower_of_codings_is_refused() -> None:
    with pytest.raises(ValueError, match="5 content codings"):
        BodyDecoder(["gzip"] * 5)


def test_members_of_a_gzip_body_are_joined_and_what_follows_is_dropped() -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"two") + b"\0\0 padding"
    assert unpack(BodyDecoder(["gzip"]), packed, 10_000) == b"one two"


def test_frames_of_a_zstd_body_are_joined() -> None:
    packed = zstandard.compress(b"one ") + zstandard.compress(b"two")
    assert unpack(BodyDecoder(["zstd"]), packed, 10_000) == b"one two"


@pytest.mark.parametrize("name", PACKERS)
def test_data_that_breaks_off_is_an_error(name: str) -> None:
    packed = PACKERS[name](TEXT)
    with pytest.raises(ValueError, match="breaks off"):
        unpack(BodyDecoder([name]), packed[:-9])


@pytest.mark.parametrize("name", ["gzip", "br", "zstd"])
def test_plain_text_under_a_coding_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match=r"damaged|breaks off"):
        unpack(BodyDecoder([name]), b"<html><body>plain</body></html>")


@pytest.mark.parametrize("name", PACKERS)
def test_an_empty_body_is_whole(name: str) -> None:
    assert unpack(BodyDecoder([name]), b"") == b""


@pytest.mark.parametrize("step", [1, 100_000])
def test_a_gzip_file_is_unwrapped_on_request(step: int) -> None:
    packed = gzip.compress(b"<urlset/>")
    assert unpack(BodyDecoder([], unwrap_gzip_file=True), packed, step) == b"<urlset/>"
    assert unpack(BodyDecoder([], unwrap_gzip_file=True), b"<urlset/>", step) == b"<urlset/>"
    assert unpack(BodyDecoder([]), packed, step) == packed


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
def test_a_bomb_comes_out_in_small_pieces(name: str) -> None:
    packed = PACKERS[name](bytes(64 * 2**20))
    tracemalloc.start()
    try:
        sizes = [len(piece) for piece in BodyDecoder([name]).feed(packed)]
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(sizes) == 64 * 2**20
    assert max(sizes) <= 4 * 2**20
    assert peak_bytes < 12 * 2**20
