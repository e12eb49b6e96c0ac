"""Dates in words of any language, read by dateparser with the language's own names.

Slower by far than :mod:`models.moments`, and only asked where that reads nothing.
"""

from __future__ import annotations

import re
import warnings
from datetime import UTC
from functools import lru_cache

from models.moments import Moment

_MAX_CHARS = 100
_CLOCK = re.compile(r"(?<![\d.])\d{1,2}[:.h]\d{2}(?P<second>[:.]\d{2})?(?![\d.])")
_BUDDHIST_YEARS = range(2400, 2700)
_BUDDHIST_AHEAD = 543


def read_foreign_moment(text: str, zone: str, language: str) -> Moment | None:
    """Return the moment that `text` writes in words of a language, or None.

    A day, a month and a year must be there; nothing is filled in, and nothing is counted
    from today.

    Parameters
    ----------
    text
        A date and perhaps a time; of more than 100 characters the first are looked at.
    zone
        IANA zone for what states none.
    language
        Code such as ``it`` or ``pt-BR``; one that dateparser does not know reads nothing.

    Notes
    -----
    About 50 ms for the first date in a language, 1 to 5 ms for further ones.

    Examples
    --------
    >>> moment = read_foreign_moment("6. toukokuuta 2024 klo 12.30", "Europe/Helsinki", "fi")
    >>> moment.at.isoformat(), moment.precision
    ('2024-05-06T09:30:00+00:00', 'minute')
    """
    text = text.strip()[:_MAX_CHARS]
    if not any(char.isdigit() for char in text) or not any(char.isalpha() for char in text):
        return None
    return _read(text, zone, re.split("[-_]", language.strip())[0].lower())


@lru_cache(maxsize=4096)
def _read(text: str, zone: str, language: str) -> Moment | None:
    import dateparser

    if not language:
        return None
    settings = {
        "PARSERS": ["absolute-time"],
        "REQUIRE_PARTS": ["day", "month", "year"],
        "RETURN_AS_TIMEZONE_AWARE": True,
        "TIMEZONE": zone,
        "DATE_ORDER": "DMY",
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            at = dateparser.parse(text, languages=[language], settings=settings)
        if at is not None and at.year in _BUDDHIST_YEARS:
            at = at.replace(year=at.year - _BUDDHIST_AHEAD)
        at = at.astimezone(UTC) if at is not None else None
    except Exception:  # noqa: BLE001 - on texts of strangers it raises what its parts raise
        return None
    clock = _CLOCK.search(text)
    precision = "day" if clock is None else "instant" if clock["second"] else "minute"
    return Moment(at, precision) if at is not None else None  # type: ignore[arg-type]
