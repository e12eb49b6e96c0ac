"""What is kept of one article page for the detectors: counts, paths, places, numbers.

P, S, N, V and the tag classes of the slides; beside them what told most in measurements:
which tag paths the page has, from which place of the page its text came, which paragraphs
it holds, and some numbers about its text.
"""

from __future__ import annotations

import math
import re
import struct
import zlib
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import numpy.typing as npt

from models.decoding import decode_bytes
from models.drift.pagescan import FACTS, Found, PageScan, scan_page
from models.errors import ParseError

NUMBERS = (
    "text_size", "paragraphs", "paragraph_size", "paragraph_spread", "short_share",
    "sentence_share", "digit_share", "punctuation_share", "upper_share", "odd_share",
    "accent_share", "other_script_share", "word_length", "unique_share", "title_overlap",
    "description_overlap", "link_share", "own_share", "text_start", "text_density",
    "unplaced_share", "page_size", "tags", "link_tags", "block_tags", "format_tags", "image_tags",
)  # fmt: skip
"""Names of the numbers of a page, in their order. A number may be ``nan``: not known."""

N_LETTER_PAIRS = 96
"""Buckets that pairs of neighbouring letters are counted in."""

MAX_PATHS = 2_000
MAX_PARAGRAPHS = 250
MAX_PLACES = 6
_SHORT_CHARS = 60
_LAYOUT = 1
_HEAD = struct.Struct("<BIIIIdIIIIIHHB")
_NOT_WORD = re.compile(r"[\W_]+")
_WORD = re.compile(r"\w{4,}")
_ENDINGS = tuple(".!?…。！？।؟»”\"'’)]】」')")
_PUNCTUATION = re.compile(r"[.,;:!?\-–—()\"'«»„“”、，。！？；：]")
_ODD = re.compile("[\ufffd\x80-\x9f¬¨©®±¶§¤¦¢¥¯°¹²³¸¼½¾¿×÷ÃÂÐÑ†‡‰‹œŸ€™]")

HashArray = npt.NDArray[np.uint32]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class PageFeatures:
    """One page as the detectors see it.

    Attributes
    ----------
    page_bytes
        P: size of the page.
    text_bytes
        S: size of its paragraphs together, in characters.
    n_paragraphs
        N.
    paragraph_variance
        V: variance of the paragraph sizes within the page.
    tag_counts
        Elements by class: links, blocks, formatting, images, others.
    facts
        Bits in the order of :data:`~models.drift.pagescan.FACTS`.
    numbers
        In the order of :data:`NUMBERS`; shape ``(27,)``.
    paths
        Hashes of the distinct tag paths (an element with its two ancestors), sorted.
    places
        Hashes of the places the text came from, those that gave most first.
    place_shares
        Share of the text each of them gave; sums to at most 1.
    place
        The first of them, for people: ``"main > article.story > div.body"``.
    paragraphs
        Hashes of the paragraphs, in their order.
    paragraph_sizes
        Their sizes in characters.
    letter_pairs
        Share of each bucket of neighbouring letters; shape ``(96,)``, sums to 1 or 0.
    """

    page_bytes: int
    text_bytes: int
    n_paragraphs: int
    paragraph_variance: float
    tag_counts: tuple[int, int, int, int, int]
    facts: int
    numbers: FloatArray
    paths: HashArray
    places: HashArray
    place_shares: FloatArray
    place: str
    paragraphs: HashArray
    paragraph_sizes: HashArray
    letter_pairs: FloatArray

    def has(self, fact: str) -> bool:
        """Say whether the page has one of :data:`~models.drift.pagescan.FACTS`."""
        return bool(self.facts >> FACTS.index(fact) & 1)

    def to_bytes(self) -> bytes:
        """Return the features packed, some 2 KB; :meth:`from_bytes` reads them."""
        place = self.place.encode()[:255]
        head = _HEAD.pack(
            _LAYOUT, self.page_bytes, self.text_bytes, self.n_paragraphs, self.facts,
            self.paragraph_variance, *self.tag_counts,
            len(self.paths), len(self.paragraphs), len(self.places),
        )  # fmt: skip
        parts = (
            self.numbers.astype("<f4"), self.paths.astype("<u4"), self.places.astype("<u4"),
            self.place_shares.astype("<f4"), self.paragraphs.astype("<u4"),
            self.paragraph_sizes.astype("<u4"), self.letter_pairs.astype("<f4"),
        )  # fmt: skip
        body = b"".join(part.tobytes() for part in parts)
        return head + zlib.compress(body + place, 6)

    @classmethod
    def from_bytes(cls, packed: bytes) -> PageFeatures:
        """Return features as :meth:`to_bytes` packed them.

        Raises
        ------
        ParseError
            If another version packed them, or they are cut short.
        """
        try:
            layout, *fixed, n_paths, n_paragraphs, n_places = _HEAD.unpack_from(packed)
            if layout != _LAYOUT:
                raise ParseError("page features", f"layout {layout}, and this version reads 1")
            data = zlib.decompress(packed[_HEAD.size :])
        except (struct.error, zlib.error) as error:
            raise ParseError("page features", "cut short or not ours") from error
        cursor = 0

        def take(kind: str, count: int) -> npt.NDArray[np.generic]:
            nonlocal cursor
            taken = np.frombuffer(data, kind, count, cursor)
            cursor += taken.nbytes
            return taken

        numbers = take("<f4", len(NUMBERS)).astype(np.float64)
        paths = take("<u4", n_paths).astype(np.uint32)
        places = take("<u4", n_places).astype(np.uint32)
        shares = take("<f4", n_places).astype(np.float64)
        paragraphs = take("<u4", n_paragraphs).astype(np.uint32)
        sizes = take("<u4", n_paragraphs).astype(np.uint32)
        pairs = take("<f4", N_LETTER_PAIRS).astype(np.float64)
        return cls(
            page_bytes=fixed[0],
            text_bytes=fixed[1],
            n_paragraphs=fixed[2],
            facts=fixed[3],
            paragraph_variance=fixed[4],
            tag_counts=(fixed[5], fixed[6], fixed[7], fixed[8], fixed[9]),
            numbers=numbers,
            paths=paths,
            places=places,
            place_shares=shares,
            place=data[cursor:].decode("utf-8", "replace"),
            paragraphs=paragraphs,
            paragraph_sizes=sizes,
            letter_pairs=pairs,
        )


def describe_page(
    page: bytes | str,
    text: str | None,
    *,
    title: str | None = None,
    content_type: str | None = None,
) -> PageFeatures:
    """Return the features of a page and of the text extracted from it.

    Parameters
    ----------
    page
        The page as it came, or decoded.
    text
        What was extracted, one paragraph a line; nothing where there was none.
    title
        The headline as extracted; the page's own is used without it.
    content_type
        HTTP header, for the charset of a page given in bytes.

    Notes
    -----
    About 8 ms of processor time for a page of 100 KB. Never raises for what a page holds.

    Examples
    --------
    >>> page = "<main><h1>Snow</h1><div class='body'><p>It snowed all night.</p></div></main>"
    >>> features = describe_page(page, "It snowed all night.")
    >>> features.place, features.n_paragraphs, features.has("one_h1")
    ('body > main > div.body', 1, True)
    """
    markup = decode_bytes(page, content_type).text if isinstance(page, bytes) else page
    page_bytes = len(page) if isinstance(page, bytes) else len(page.encode("utf-8", "replace"))
    scan = scan_page(markup)
    lines = [line for line in (line.strip() for line in (text or "").splitlines()) if line]
    sizes = np.array([len(line) for line in lines], np.float64)
    placed = _place_lines(scan, lines)
    numbers = _text_numbers(lines, sizes, title or scan.headline, scan.description)
    numbers |= _place_numbers(scan, placed, sizes)
    numbers |= _page_numbers(page_bytes, scan.tag_counts)
    places, shares, main = _places(scan, placed, sizes)
    hashes = [crc32(_NOT_WORD.sub("", line.lower()).encode()) for line in lines[:MAX_PARAGRAPHS]]
    links, blocks, formatting, images, others = scan.tag_counts
    return PageFeatures(
        page_bytes=min(page_bytes, 2**32 - 1),
        text_bytes=int(sizes.sum()),
        n_paragraphs=len(lines),
        paragraph_variance=float(sizes.var()) if lines else 0.0,
        tag_counts=(links, blocks, formatting, images, others),
        facts=scan.facts,
        numbers=np.array([numbers[name] for name in NUMBERS], np.float32).astype(np.float64),
        paths=np.array(sorted(scan.paths)[:MAX_PATHS], np.uint32),
        places=np.array(places, np.uint32),
        place_shares=np.array(shares, np.float32).astype(np.float64),
        place=main,
        paragraphs=np.array(hashes, np.uint32),
        paragraph_sizes=sizes[:MAX_PARAGRAPHS].astype(np.uint32),
        letter_pairs=_letter_pairs(lines),
    )


def _place_lines(scan: PageScan, lines: list[str]) -> list[Found | None]:
    cursor, placed = 0, []
    for line in lines:
        found = scan.find(line, cursor)
        cursor = found.start + found.length if found else cursor
        placed.append(found)
    return placed


def _places(
    scan: PageScan, placed: list[Found | None], sizes: FloatArray
) -> tuple[list[int], list[float], str]:
    weights: dict[int, float] = {}
    total = float(sizes.sum()) or 1.0
    for found, size in zip(placed, sizes, strict=True):
        if found:
            weights[found.container] = weights.get(found.container, 0.0) + float(size) / total
    by_key: dict[int, float] = {}
    names: dict[int, str] = {}
    for container, weight in weights.items():
        name = scan.place(container)
        key = crc32(name.encode())
        names[key] = name
        by_key[key] = by_key.get(key, 0.0) + weight
    best = sorted(by_key.items(), key=lambda item: (-item[1], item[0]))[:MAX_PLACES]
    main = names[best[0][0]] if best else ""
    return [key for key, _ in best], [share for _, share in best], main


def _place_numbers(
    scan: PageScan, placed: list[Found | None], sizes: FloatArray
) -> dict[str, float]:
    total = float(sizes.sum())
    found = [(place, float(size)) for place, size in zip(placed, sizes, strict=True) if place]
    if not found:
        missing = 1.0 if total else math.nan
        return {
            "link_share": math.nan, "own_share": 0.0, "text_start": math.nan,
            "text_density": math.nan, "unplaced_share": missing,
        }  # fmt: skip
    weight = sum(size for _, size in found)
    letters = max(len(scan.letters), 1)
    first = min(place.start for place, _ in found)
    last = max(place.start + place.length for place, _ in found)
    matched = sum(place.length for place, _ in found)
    return {
        "link_share": sum(min(place.link_share, 1.0) * size for place, size in found) / weight,
        "own_share": min(matched / letters, 1.0),
        "text_start": first / letters,
        "text_density": min(matched / max(last - first, 1), 1.0),
        "unplaced_share": 1.0 - weight / total,
    }


def _page_numbers(page_bytes: int, tag_counts: list[int]) -> dict[str, float]:
    links, blocks, formatting, images, _others = (math.log(count + 1.0) for count in tag_counts)
    total = math.log(sum(tag_counts) + 1.0)
    return {
        "page_size": math.log(page_bytes + 1.0),
        "tags": total,
        "link_tags": links - total,
        "block_tags": blocks - total,
        "format_tags": formatting - total,
        "image_tags": images - total,
    }


def _text_numbers(
    lines: list[str], sizes: FloatArray, title: str, description: str
) -> dict[str, float]:
    text = "\n".join(lines)
    lowered = text.lower()
    if not lines:
        numbers = dict.fromkeys(NUMBERS[:20], math.nan)
        return numbers | {"text_size": 0.0, "paragraphs": 0.0}
    letters = sum(map(str.isalpha, text)) or 1
    n_chars = len(text)
    words = re.findall(r"\w+", lowered)[:300]
    ascii_letters = len(re.findall(r"[A-Za-z]", text))
    accented = len(re.findall(r"[À-ɏ]", text))
    return {
        "text_size": math.log(n_chars + 1.0),
        "paragraphs": math.log(len(lines) + 1.0),
        "paragraph_size": math.log(float(sizes.mean())),
        "paragraph_spread": math.log(float(sizes.std()) + 1.0),
        "short_share": float((sizes < _SHORT_CHARS).mean()),
        "sentence_share": sum(line.endswith(_ENDINGS) for line in lines) / len(lines),
        "digit_share": len(re.findall(r"\d", text)) / n_chars,
        "punctuation_share": len(_PUNCTUATION.findall(text)) / n_chars,
        "upper_share": len(re.findall(r"[A-ZА-ЯЁ]", text)) / letters,
        "odd_share": len(_ODD.findall(text)) / n_chars,
        "accent_share": accented / letters,
        "other_script_share": max(letters - ascii_letters - accented, 0) / letters,
        "word_length": sum(map(len, words)) / max(len(words), 1),
        "unique_share": len(set(words)) / max(len(words), 1),
        "title_overlap": _overlap(title, lowered),
        "description_overlap": _overlap(description, lowered),
    }


def _overlap(said: str, text: str) -> float:
    """Return the share of words said that the text holds; ``nan`` where nothing is said."""
    lowered = said.lower()[:400]
    words = set(_WORD.findall(lowered))
    if any(char > "\u2e80" for char in lowered):  # no spaces between words
        plain = _NOT_WORD.sub("", lowered)
        words = {plain[at : at + 2] for at in range(len(plain) - 1)}
    if not words:
        return math.nan
    return sum(word in text for word in words) / len(words)


def _letter_pairs(lines: list[str]) -> FloatArray:
    text = "\n".join(lines).lower()[:20_000]
    codes = np.frombuffer(text.encode("utf-32-le", "replace"), np.uint32).astype(np.int64)
    if len(codes) < 2:
        return np.zeros(N_LETTER_PAIRS)
    buckets = (codes[:-1] * 31 + codes[1:] * 7) % N_LETTER_PAIRS
    counts = np.bincount(buckets, minlength=N_LETTER_PAIRS).astype(np.float64)
    shares: FloatArray = (counts / counts.sum()).astype(np.float32).astype(np.float64)
    return shares
