"""Text of strangers inside Markdown of ours."""

from __future__ import annotations


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows as it is: publishers' words are never markup.

    Examples
    --------
    >>> escape_markdown("a_b | <b>")
    'a&#95;b &#124; &lt;b&gt;'
    """
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark in "`*_{}[]|~!" + chr(92):
        text = text.replace(mark, f"&#{ord(mark)};")
    return " ".join(text.split())
