"""Bytes to text, once, with the right encoding.

Order of trust: byte-order mark; bytes that are valid UTF-8 (by chance they hardly
ever are); what the HTTP header says; what the document says of itself (XML prolog,
then HTML ``meta``); statistics. A declaration that does not fit the bytes is passed
over with a warning. Labels mean what browsers mean by them: ``iso-8859-1`` is
windows-1252, ``gb2312`` and ``gbk`` are GB18030, ``shift_jis`` is cp932.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from charset_normalizer import CharsetMatches, from_bytes

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MEANT = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "cp950": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
_ALIASES = {
    "unicode": "utf-16",
    "x-sjis": "cp932",
    "x-gbk": "gb18030",
    "x-big5": "big5hkscs",
    "x-cp1251": "cp1251",
    "win-1251": "cp1251",
    "win1251": "cp1251",
    "koi8": "koi8-r",
    "windows-31j": "cp932",
    "x-euc-jp": "euc_jp",
    "utf8mb4": "utf-8",
    "ks_c_5601-1987": "cp949",
}
_CANDIDATES = [
    "cp1251",
    "koi8_r",
    "gb18030",
    "big5hkscs",
    "cp932",
    "euc_jp",
    "cp949",
    "cp1250",
    "cp1252",
    "cp866",
    "cp1253",
    "cp1254",
    "cp1255",
    "cp1256",
    "cp874",
    "mac_cyrillic",
]
_WESTERN = frozenset(
    {"Danish", "Dutch", "English", "Finnish", "French", "German", "Italian", "Norwegian"}
    | {"Portuguese", "Spanish", "Swedish"}
)
_HEADER_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:+-]+)", re.IGNORECASE)
_PROLOG = re.compile(rb"<\?xml\b[^>]{0,200}?\bencoding\s*=\s*[\"']\s*([\w.:+-]+)", re.IGNORECASE)
_META = re.compile(rb"<meta\b[^>]{0,400}?\bcharset\s*=\s*[\"']?\s*([\w.:+-]+)", re.IGNORECASE)
_NON_TEXT = re.compile(
    rb"<script\b.*?(?:</script|\Z)|<style\b.*?(?:</style|\Z)|<[^<>]*>", re.DOTALL | re.IGNORECASE
)
_HEAD_BYTES = 4096
_SEARCHED_BYTES, _SAMPLE_BYTES = 400_000, 6000


@dataclass(frozen=True, slots=True)
class Decoded:
    """A document as text.

    Attributes
    ----------
    encoding
        Encoding the bytes were read with, in Python's spelling.
    basis
        What decided: ``bom``, ``bytes`` (valid UTF-8), ``header``, ``prolog``, ``meta``,
        ``statistics`` or ``default``.
    """

    text: str
    encoding: str
    basis: str
    warnings: tuple[str, ...] = ()


def decode_bytes(body: bytes, content_type: str | None = None) -> Decoded:
    """Return `body` as text.

    Never fails: what no encoding explains comes back with replacement characters and a
    warning.

    Parameters
    ----------
    body
        The document.
    content_type
        The HTTP header, such as ``"text/html; charset=koi8-r"``.

    Examples
    --------
    >>> decode_bytes("<?xml version='1.0' encoding='windows-1251'?><a>Да</a>".encode("cp1251")).text
    "<?xml version='1.0' encoding='windows-1251'?><a>Да</a>"
    >>> decode_bytes("Да".encode(), "text/plain; charset=windows-1251").basis
    'bytes'
    """
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return _with_mark(body[len(mark) :], encoding)
    wide = _wide_without_mark(body)
    if wide:
        return Decoded(body.decode(wide, "replace"), wide, "bytes")
    if b"\x1b$" not in body:
        as_utf8 = _as_utf8(body)
        if as_utf8:
            return as_utf8
    return _by_declaration(body, content_type) or _by_statistics(body)


def _with_mark(body: bytes, encoding: str) -> Decoded:
    try:
        return Decoded(body.decode(encoding), encoding, "bom")
    except UnicodeDecodeError:
        pass
    if encoding == "utf-8":
        inner = _by_declaration(body, None)
        if inner and inner.encoding != "utf-8":
            return inner
    return Decoded(body.decode(encoding, "replace"), encoding, "bom", (_broken(encoding),))


def _wide_without_mark(body: bytes) -> str | None:
    """Return UTF-16 or -32 where the first characters can be nothing else."""
    head = body[:4]
    if head == b"<\x00\x00\x00":
        return "utf-32-le"
    if head == b"\x00\x00\x00<":
        return "utf-32-be"
    if head[:2] == b"<\x00" and head[3:4] == b"\x00":
        return "utf-16-le"
    if head[:1] == b"\x00" and head[1:3] == b"<\x00":
        return "utf-16-be"
    return None


def _as_utf8(body: bytes) -> Decoded | None:
    """Return `body` read as UTF-8 if it is that, give or take a few damaged characters."""
    try:
        return Decoded(body.decode(), "utf-8", "bytes")
    except UnicodeDecodeError:
        pass
    text = body.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    whole = sum(1 for _ in re.finditer(r"[^\x00-\x7f\ufffd]", text))
    # In a legacy encoding nearly every foreign letter is an error; a cut or a pasted
    # byte in real UTF-8 is one among many.
    if whole < 10 * broken:
        return None
    return Decoded(text, "utf-8", "bytes", (f"{broken} characters are not valid utf-8",))


def _by_declaration(body: bytes, content_type: str | None) -> Decoded | None:
    declared = declared_encodings(body, content_type)
    warnings: list[str] = []
    for basis, label in _by_trust(declared):
        encoding = python_encoding(label)
        if encoding is None:
            warnings.append(f"unknown encoding {label!r} declared by the {basis}")
            continue
        text = body.decode(encoding, "replace")
        broken = text.count("\ufffd")
        if broken > len(text) / 200:
            warnings.append(f"the bytes are not {encoding}, which the {basis} declares")
            continue
        if broken:
            warnings.append(_broken(encoding, broken))
        return Decoded(text, encoding, basis, tuple(warnings))
    return None


def _by_trust(declared: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Put a header's Latin-1 last: it is what servers say when nobody told them better."""
    basis, label = declared[0] if declared else ("", "")
    is_default = basis == "header" and python_encoding(label) == "cp1252"
    return [*declared[1:], *declared[:1]] if is_default else declared


def declared_encodings(body: bytes, content_type: str | None) -> list[tuple[str, str]]:
    """Return ``(basis, label)`` of every declaration, in the order of trust."""
    found = []
    header = _HEADER_CHARSET.search(content_type or "")
    if header:
        found.append(("header", header[1]))
    head = body[:_HEAD_BYTES]
    for basis, pattern in (("prolog", _PROLOG), ("meta", _META)):
        match = pattern.search(head)
        if match:
            found.append((basis, match[1].decode("ascii", "replace")))
    return found


def python_encoding(label: str) -> str | None:
    """Return Python's name of the encoding that browsers mean by `label`, if there is one.

    Examples
    --------
    >>> python_encoding("ISO-8859-1"), python_encoding("GBK"), python_encoding("klingon")
    ('cp1252', 'gb18030', None)
    """
    name = label.strip().lower()
    name = _ALIASES.get(name, name)
    try:
        info = codecs.lookup(name)
    except (LookupError, ValueError):
        return None
    if not getattr(info, "_is_text_encoding", True) or info.name in {"idna", "punycode", "mbcs"}:
        return None
    return _MEANT.get(info.name, info.name)


def _by_statistics(body: bytes) -> Decoded:
    matches = from_bytes(_sample(body), cp_isolation=_CANDIDATES, preemptive_behaviour=False)
    encoding = python_encoding(_likeliest(matches) or "")
    if encoding is None:
        text = body.decode("utf-8", "replace")
        return Decoded(text, "utf-8", "default", ("the encoding is not known",))
    text = body.decode(encoding, "replace")
    return Decoded(text, encoding, "statistics", (f"no encoding declared; read as {encoding}",))


def _likeliest(matches: CharsetMatches) -> str | None:
    """Return the name of the best match, the Western one where two explain a Western language.

    Polish and Portuguese use the same bytes: the tables differ in a few letters only.
    """
    best = matches.best()
    if best is None or best.encoding != "cp1250" or best.language not in _WESTERN:
        return best.encoding if best else None
    same = [match for match in matches if match.encoding == "cp1252" and match.chaos <= best.chaos]
    return "cp1252" if same else best.encoding


def _sample(body: bytes) -> bytes:
    """Return pieces of text with foreign letters, each whole: half a letter misleads."""
    pieces, n_bytes = [], 0
    for piece in _NON_TEXT.split(body[:_SEARCHED_BYTES]):
        if piece and not piece.isascii():
            pieces.append(piece.strip())
            n_bytes += len(piece)
        if n_bytes > _SAMPLE_BYTES:
            break
    return b" ".join(pieces)


def _broken(encoding: str, count: int | None = None) -> str:
    return f"{count or 'some'} characters are not valid {encoding}"
