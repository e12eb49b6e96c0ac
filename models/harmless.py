"""Text of strangers made harmless where we show it: terminals, Markdown, JSON, spreadsheets."""

from __future__ import annotations

import json
import re
from typing import Any

_FORMULA_STARTS = "=+-@\t\r\n＝＋－＠"
_JSON_STRUCTURE = re.compile(r"[^ -~\n]")


def printable(text: str) -> str:
    r"""Return text without control characters, newlines apart: a title must not steer a terminal.

    Examples
    --------
    >>> printable("red \x1b[31malert\x07")
    'red  [31malert '
    """
    return "".join(mark if mark.isprintable() or mark == "\n" else " " for mark in text)


def one_line(value: object) -> str:
    r"""Return a value as one printable line.

    Examples
    --------
    >>> one_line(" a\n b\x00c ")
    'a b c'
    """
    return " ".join(printable(str(value)).split())


def web_address(url: str | None) -> str:
    """Return an address that may be a link, ``""`` for any other: it may be a script.

    Examples
    --------
    >>> web_address("https://news.example/a"), web_address("javascript:alert(1)")
    ('https://news.example/a', '')
    """
    text = one_line(url or "")
    return text if text.lower().startswith(("http://", "https://")) else ""


def spell_json(value: Any, indent: int | None = 2) -> str:
    r"""Return a value as JSON that a terminal shows and a pipe takes: nothing in it acts.

    Letters of all scripts stand as they are. What is not printable is written as an escape,
    which says the same to whoever reads it: controls, marks that turn the writing around,
    halves of surrogate pairs.

    Examples
    --------
    >>> print(spell_json({"мир": "\x9b2J \u202e \ud800"}, None))
    {"мир": "\u009b2J \u202e \ud800"}
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    return _JSON_STRUCTURE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1]


def without_mentions(text: str) -> str:
    r"""Return text in which no chat finds a person or a room to ring for.

    Examples
    --------
    >>> without_mentions("@everyone, <!channel>: me@desk.example").count("\u200b")
    3
    """
    return re.sub(r"@(?=\w)|<(?=[!@#])", lambda found: f"{found[0]}\u200b", text)


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows as it is: publishers' words are never markup.

    Examples
    --------
    >>> escape_markdown("a_b | <b>")
    'a&#95;b &#124; &lt;b&gt;'
    """
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark in "`*_{}[]|~!\\":
        text = text.replace(mark, f"&#{ord(mark)};")
    return one_line(text)


def spreadsheet_cell(value: object) -> object:
    """Return a cell of a CSV file that no spreadsheet takes for a formula.

    Examples
    --------
    >>> spreadsheet_cell("=1+1"), spreadsheet_cell("a=b"), spreadsheet_cell(-3)
    ("'=1+1", 'a=b', -3)
    """
    if isinstance(value, str) and value.startswith(tuple(_FORMULA_STARTS)):
        return f"'{value}"
    return value
