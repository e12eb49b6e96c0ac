"""Dates as publishers write them, read as aware UTC with their precision.

One reader for feeds, sitemaps, list pages and articles: RFC 822 and ISO 8601 with
the mistakes people make in them, month names of a dozen languages, Chinese and
Japanese dates, day-first and year-first numbers. What states no zone is read in
the publisher's. Nothing is filled in: a text without a day gives no moment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from models.records import Precision

EARLIEST_YEAR = 1990
LATEST_AHEAD = timedelta(days=366)
"""Events are announced months ahead; a date past a year ahead is a slip."""

_MAX_CHARS = 100

_YEARS_OF_MONTHS = """
january february march april may june july august september october november december
jan feb mar apr may jun jul aug sep oct nov dec
jan feb mar apr may jun jul aug sept oct nov dec
января февраля марта апреля мая июня июля августа сентября октября ноября декабря
январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь
янв фев мар апр мая июн июл авг сен окт ноя дек
янв февр март апр май июнь июль авг сент окт нояб дек
січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня
januar februar märz april mai juni juli august september oktober november dezember
jan feb mär apr mai jun jul aug sep okt nov dez
jänner feber mrz apr mai jun jul aug sept okt nov dez
janvier février mars avril mai juin juillet août septembre octobre novembre décembre
janv févr mars avr mai juin juil aoû sept oct nov déc
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
ene feb mar abr may jun jul ago sep oct nov dic
gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
gen feb mar apr mag giu lug ago set ott nov dic
janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro
jan fev mar abr mai jun jul ago set out nov dez
januari februari maart april mei juni juli augustus september oktober november december
stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia
sty lut mar kwi maj cze lip sie wrz paź lis gru
ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık
oca şub mar nis may haz tem ağu eyl eki kas ara
"""
_MONTHS = {
    word: number
    for line in _YEARS_OF_MONTHS.strip().splitlines()
    for number, word in enumerate(line.split(), 1)
}

_ZONE_HOURS = {
    "z": 0, "ut": 0, "utc": 0, "gmt": 0, "wet": 0, "west": 1, "bst": 1, "cet": 1, "mez": 1,
    "cest": 2, "mesz": 2, "eet": 2, "sast": 2, "eest": 3, "msk": 3, "мск": 3, "msd": 4,
    "ist": 5.5, "hkt": 8, "sgt": 8, "awst": 8, "jst": 9, "kst": 9, "acst": 9.5, "aest": 10,
    "acdt": 10.5, "aedt": 11, "nzst": 12, "nzdt": 13, "brt": -3, "art": -3, "edt": -4, "ast": -4,
    "est": -5, "cdt": -5, "mdt": -6, "cst": -6, "pdt": -7, "mst": -7, "akdt": -8, "pst": -8,
    "akst": -9, "hst": -10,
}  # fmt: skip

_TIME = (
    r"(?P<hour>\d{1,2})(?::|h(?=\d\d\b)|(?<=\d\d)\.(?=\d\d(?:\s*uhr)?$))(?P<minute>\d{2})"
    r"(?::(?P<second>\d{2})(?:[.,:]\d+)?)?\s*(?P<half>[ap]\.?m\b\.?)?"
)
_ZONE = r"(?P<zone>(?:gmt|utc|msk)?\s*[+-]\d{1,2}:?(?:\d{2})?(?::\d\d)?|z\b|[a-zмск]{2,4}\b)?"
_CLOCK = re.compile(rf"(?<![\d:]){_TIME}\s*\(?{_ZONE}", re.IGNORECASE)
_CJK_CLOCK = re.compile(
    r"(?P<half>上午|下午|晚上|午前|午後)?\s*(?P<hour>\d{1,2})[点點时時](?P<minute>\d{1,2})分"
    r"(?:(?P<second>\d{1,2})秒)?"
)

_YEAR = r"(?P<year>(?:19|20)\d{2})"
_NAME = r"(?P<name>[^\W\d_]{3,12})"
_ORDINAL = r"(?:st|nd|rd|th|er|º|\.|-)?"
_OF = r"(?:\s*\b(?:de|of)\b)?"
_SHORT_YEAR = r"\d{4}|\d{2}(?![\d:])"
_NOT_IN_NUMBER, _NOT_IN_WORD = r"(?<![\d.])", r"(?<![^\W\d_])"
_DATE_PATTERNS = (
    # 2020-05-03, 2020/5/3
    rf"(?<!\d){_YEAR}(?P<sep>[-/.])(?P<month>\d{{1,2}})(?P=sep)(?P<day>\d{{1,2}})(?!\d)",
    # 2020年5月3日
    rf"(?<!\d){_YEAR}\s*年\s*(?P<month>\d{{1,2}})\s*月\s*(?P<day>\d{{1,2}})\s*[日号號]",
    # 3 May 2020, 3. Mai 20, 3 de mayo de 2020, 03-May-2020
    rf"{_NOT_IN_NUMBER}(?P<day>\d{{1,2}}){_ORDINAL}{_OF}[\s-]*{_NAME}\.?{_OF}[\s,./-]+(?P<year>{_SHORT_YEAR})(?!\d)",
    # May 3rd, 2020
    rf"{_NOT_IN_WORD}{_NAME}\.?\s+(?P<day>\d{{1,2}}){_ORDINAL},?\s+(?P<year>\d{{4}})(?!\d)",
    # 03.05.2020
    rf"{_NOT_IN_NUMBER}(?P<day>\d{{1,2}})(?P<sep>[./-])(?P<month>\d{{1,2}})(?P=sep){_YEAR}(?!\d)",
    # 03.05.20
    rf"{_NOT_IN_NUMBER}(?P<day>\d{{1,2}})\.(?P<month>\d{{1,2}})\.(?P<year>\d{{2}})(?![\d.])",
    # 20200503T101455
    rf"(?<!\d){_YEAR}(?P<month>0[1-9]|1[0-2])(?P<day>[0-3]\d)(?=T|$)",
    # Sun May  3 16:29:06 PST 2020
    rf"{_NOT_IN_WORD}{_NAME}\s+(?P<day>\d{{1,2}})\s+\d{{1,2}}:\d\d(?::\d\d)?\s+(?:[a-z]+\s+)?{_YEAR}$",
)
_DATES = tuple(re.compile(pattern, re.IGNORECASE) for pattern in _DATE_PATTERNS)
_COMPACT_CLOCK = re.compile(
    r"(?<=\d{8}T)(?P<hour>\d{2})(?P<minute>\d{2})(?P<second>\d{2})?\s*(?P<zone>z|[+-]\d{2}:?\d{2})?",
    re.IGNORECASE,
)
_UNIX = re.compile(r"\d{10}(?:\d{3})?")


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment as it was written.

    Attributes
    ----------
    at
        Aware UTC. A day is its first moment in the publisher's zone.
    precision
        ``instant`` to the second, ``minute``, or ``day``.
    """

    at: datetime
    precision: Precision


def read_moment(text: str, zone: str = "UTC") -> Moment | None:
    """Return the moment that `text` writes, or None where it writes none.

    Parameters
    ----------
    text
        A date and perhaps a time; more than 100 characters are not looked at.
    zone
        IANA zone for what states none.

    Notes
    -----
    ``03/04/2020`` is 3 April: month-first numbers are read so only where the day-first
    reading is impossible. Hour 24 and second 60 are the next day's and minute's first.

    Examples
    --------
    >>> read_moment("Thu, 03 Sep 15 00:01:01 +0200").at.isoformat()
    '2015-09-02T22:01:01+00:00'
    >>> read_moment("Mon, May 25 2020 04:45:26 +0000").at.isoformat()
    '2020-05-25T04:45:26+00:00'
    >>> moment = read_moment("30 Июля 2015, 18:20", "Europe/Moscow")
    >>> moment.at.isoformat(), moment.precision
    ('2015-07-30T15:20:00+00:00', 'minute')
    """
    return _read(text.strip()[:_MAX_CHARS], zone)


@lru_cache(maxsize=4096)
def _read(text: str, zone: str) -> Moment | None:
    if _UNIX.fullmatch(text):
        return Moment(datetime.fromtimestamp(int(text[:10]), UTC), "instant")
    found = _find_day(text)
    if found is None:
        return None
    day, end = found
    clock = _find_clock(text, end)
    try:
        moment = _at_clock(day, clock, zone) if clock else Moment(_in_zone(day, zone), "day")
        return Moment(moment.at.astimezone(UTC), moment.precision)
    except (ValueError, OverflowError):
        return None


def _in_zone(day: date, zone: str) -> datetime:
    return datetime.combine(day, time(), ZoneInfo(zone))


def _find_day(text: str) -> tuple[date, int] | None:
    for pattern in _DATES:
        for match in pattern.finditer(text):
            day = _day_of(match)
            if day:
                return day, match.end()
    return None


def _day_of(match: re.Match[str]) -> date | None:
    parts = match.groupdict()
    year, day = int(parts["year"]), int(parts["day"])
    if len(parts["year"]) == 2:
        year += 2000 if year < 70 else 1900
    if parts.get("name"):
        month = _MONTHS.get(parts["name"].lower(), 0)
    else:
        month = int(parts["month"])
        if month > 12 >= day:
            month, day = day, month
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _find_clock(text: str, end: int) -> re.Match[str] | None:
    """Return the time of day: the first after the date, otherwise the last there is."""
    compact = _COMPACT_CLOCK.match(text, end + 1) if text[end : end + 1] in "Tt" else None
    if compact:
        return compact
    for pattern in (_CLOCK, _CJK_CLOCK):
        after = pattern.search(text, end)
        if after:
            return after
        elsewhere = list(pattern.finditer(text))
        if elsewhere:
            return elsewhere[-1]
    return None


def _at_clock(day: date, clock: re.Match[str], zone: str) -> Moment:
    parts = clock.groupdict()
    hour, minute, second = (int(parts.get(name) or 0) for name in ("hour", "minute", "second"))
    half = (parts.get("half") or "").lower()
    if half.startswith(("p", "下午", "晚上", "午後")) and hour < 12:
        hour += 12
    elif half.startswith("a") and hour == 12:
        hour = 0
    if hour > 24 or minute > 59 or second > 60:
        raise ValueError(f"no time of day: {clock[0]}")
    stated = _stated_zone(parts.get("zone")) or ZoneInfo(zone)
    midnight = datetime.combine(day, time(), stated)
    return Moment(
        midnight + timedelta(hours=hour, minutes=minute, seconds=second),
        "instant" if parts.get("second") else "minute",
    )


def _stated_zone(text: str | None) -> tzinfo | None:
    if not text:
        return None
    offset = re.search(r"([+-])(\d{1,2}):?(\d{2})?", text)
    if not offset:
        hours = _ZONE_HOURS.get(text.strip().lower())
        return None if hours is None else timezone(timedelta(hours=hours))
    span = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
    if span >= timedelta(hours=15):
        return None
    return timezone(-span if offset[1] == "-" else span)


def is_plausible(moment: Moment, now: datetime) -> bool:
    """Return whether news can bear this date: from 1990 to a year after `now`."""
    return moment.at.year >= EARLIEST_YEAR and moment.at <= now + LATEST_AHEAD


def place_in_order(at: datetime, precision: Precision | None) -> datetime:
    """Return where a moment stands among others: a day at its end.

    Of a day it is not known how late in it something came out; by its first moment it would
    be buried under all that the day brought.

    Examples
    --------
    >>> place_in_order(datetime(2024, 5, 6, tzinfo=UTC), "day").isoformat()
    '2024-05-07T00:00:00+00:00'
    """
    return at + timedelta(days=1) if precision == "day" else at


_AGO = re.compile(
    r"(?P<count>\d{1,3}|an?|одну)\s*(?P<unit>min|m\b|hour|hr|h\b|std|stunde|мин|час|ч\b|分钟|分鐘|小时|小時)"
    r"[^\d]{0,12}?(?:ago|назад|前)|vor\s+(?P<count_de>\d{1,3}|einer)\s*(?P<unit_de>min|stunde|std)",
    re.IGNORECASE,
)
_DAY_WORDS = {
    "today": 0, "сегодня": 0, "сьогодні": 0, "heute": 0, "hoy": 0, "oggi": 0, "今天": 0, "今日": 0,
    "yesterday": 1, "вчера": 1, "вчора": 1, "gestern": 1, "ayer": 1, "ieri": 1, "昨天": 1,
    "昨日": 1,
}  # fmt: skip
_DAY_WORD = re.compile(rf"\b(?:{'|'.join(_DAY_WORDS)})\b|今天|今日|昨天|昨日", re.IGNORECASE)
_BARE_CLOCK = re.compile(r"(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?:\s*uhr)?", re.IGNORECASE)


def read_recent(text: str, zone: str, now: datetime) -> Moment | None:
    """Return the moment that a list page writes relative to `now`, or None.

    Understands ``2 hours ago``, ``сегодня, 12:30``, ``yesterday``, and a clock time alone:
    today's, or yesterday's where today's is still to come.

    Examples
    --------
    >>> now = datetime(2024, 5, 6, 9, 0, tzinfo=UTC)
    >>> read_recent("Вчера, 12:30", "Europe/Moscow", now).at.isoformat()
    '2024-05-05T09:30:00+00:00'
    >>> read_recent("3 hours ago", "UTC", now).at.isoformat()
    '2024-05-06T06:00:00+00:00'
    >>> read_recent("23:15", "UTC", now).at.isoformat()
    '2024-05-05T23:15:00+00:00'
    """
    text = text.strip()[:_MAX_CHARS]
    ago = _AGO.search(text)
    if ago:
        return _moment_ago(ago, now)
    today = now.astimezone(ZoneInfo(zone)).replace(hour=0, minute=0, second=0, microsecond=0)
    word = _DAY_WORD.search(text)
    clock = _CLOCK.search(text) if word else _BARE_CLOCK.fullmatch(text)
    if word is None and clock is None:
        return None
    day = today - timedelta(days=_DAY_WORDS[word[0].lower()] if word else 0)
    if clock is None:
        return Moment(day.astimezone(UTC), "day")
    at = day.replace(hour=int(clock["hour"]) % 24, minute=int(clock["minute"]))
    if word is None and at > now:
        at -= timedelta(days=1)
    return Moment(at.astimezone(UTC), "minute")


def _moment_ago(match: re.Match[str], now: datetime) -> Moment:
    count = match["count"] or match["count_de"]
    unit = (match["unit"] or match["unit_de"]).lower()
    n = int(count) if count.isdigit() else 1
    minutes = unit.startswith(("m", "м", "分"))
    at = now - (timedelta(minutes=n) if minutes else timedelta(hours=n))
    return Moment(at.replace(microsecond=0), "minute")
