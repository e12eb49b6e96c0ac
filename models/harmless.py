"""Text of strangers made harmless where we show it: on a terminal, inside Markdown."""

from __future__ import annotations

import re


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
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value
