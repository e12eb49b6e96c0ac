"""Plain text out of the markup that listings carry, and addresses out of their links."""

from __future__ import annotations

import html
import re
from itertools import islice

import ada_url

_INLINE = (
    "a abbr acronym b bdi bdo big br cite code del em font i img ins kbd mark nobr q s samp small "
    "span strike strong sub sup tt u var wbr"
)
_BLOCK = (
    "address article aside blockquote center dd details div dl dt figcaption figure footer h1 h2 "
    "h3 h4 h5 h6 header hr iframe li main nav ol p picture pre section source summary table tbody "
    "td tfoot th thead tr ul video audio"
)
_SPACES = re.compile(r"\s+")
_HIDDEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE
)
_OPEN_COMMENT = re.compile(r"<!--[^>]*>?")
_INLINE_TAG = re.compile(rf"</?(?:{'|'.join(_INLINE.split())})\b[^<>]*>", re.IGNORECASE)
_BLOCK_TAG = re.compile(rf"</?(?:{'|'.join(_BLOCK.split())}|br)\b[^<>]*>", re.IGNORECASE)
_BREAK = re.compile(r"\s*<br\b[^<>]*>\s*", re.IGNORECASE)
_PARAGRAPH_TAG = re.compile(r"</?(?:p|blockquote|pre|h[1-6])\b[^<>]*>", re.IGNORECASE)
_BLANK_LINES = re.compile(r"\n{3,}")
_ANY_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|<![^<>]*>")
_WITH_ATTRIBUTE = re.compile(r"<[a-zA-Z][\w:-]*\s+[\w:-]+\s*=[^<>]*>")
_PAIR = re.compile(r"<([a-zA-Z][\w:-]*)\b[^<>]*>([^<>]*)</\1\s*>")
_NUMERIC = re.compile(r"&#(?:\d{1,7}|[xX][0-9a-fA-F]{1,6});")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_CJK_WEIGHT = 2.5
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")


def collapse_spaces(text: str) -> str:
    """Return `text` with every run of white space as one space, ends trimmed."""
    return _SPACES.sub(" ", text).strip()


def weigh(text: str) -> float:
    """Return the length of a text, where a Chinese, Japanese or Korean character is a syllable.

    >>> weigh("rain"), weigh("雨雨")
    (4, 5.0)
    """
    n_wide = len(_CJK.findall(text))
    return len(text) + (_CJK_WEIGHT - 1) * n_wide if n_wide else len(text)


def drop_controls(text: str) -> tuple[str, int]:
    """Return `text` without control characters that no document may hold, and their number."""
    return _ILLEGAL.subn("", text)


def first_tags(markup: str, most: int) -> tuple[str, bool]:
    """Return markup up to its `most`-th ``<``, and whether anything was cut off.

    Trees cost memory by the tag: twenty megabytes of nothing but tags fill gigabytes.

    Examples
    --------
    >>> first_tags("<a>1</a><b>", 2)
    ('<a>1</a>', True)
    """
    if markup.count("<") <= most:
        return markup, False
    extra = next(islice(re.finditer("<", markup), most, None))
    return markup[: extra.start()], True


def plain_title(value: str) -> str:
    """Return a headline as plain text: entities decoded once, real markup removed.

    A headline about ``<head>`` elements keeps the word: markup are the tags that people use
    inside headlines, and any other that is closed again or has an attribute.

    Examples
    --------
    >>> plain_title("R&uuml;ckblick <b>2019</b>")
    'Rückblick 2019'
    >>> plain_title("Rain<!-- of today > ends")
    'Rain ends'
    >>> plain_title("A guide to <head> elements")
    'A guide to <head> elements'
    >>> plain_title("<blink>Now</blink>: prices<embed src='x'> up")
    'Now: prices up'
    """
    if "<" in value:
        value = _BLOCK_TAG.sub(" ", _without_hidden(value, ""))
        value = _INLINE_TAG.sub("", value)
        value = _WITH_ATTRIBUTE.sub("", _PAIR.sub(r"\2", value))
    return _unescaped(value)


def plain_text(markup: str) -> str:
    """Return a fragment of HTML as one line of text: no tags, scripts or comments.

    Examples
    --------
    >>> plain_text("<p>One&nbsp;two</p><p>th<b>re</b>e<script>x()</script></p>")
    'One two three'
    """
    if "<" in markup:
        markup = _without_hidden(markup, " ")
        markup = _INLINE_TAG.sub(_space_or_nothing, markup)
        markup = _ANY_TAG.sub(" ", markup)
    return _unescaped(markup)


def plain_paragraphs(markup: str) -> str:
    r"""Return a fragment of HTML as text with its line breaks: no tags, scripts or comments.

    Examples
    --------
    >>> plain_paragraphs("<p>One&nbsp;two<br>three</p>\n<p>fo<b>ur</b></p>")
    'One two\nthree\n\nfour'
    """
    text = markup
    if "<" in text:
        text = collapse_spaces(_without_hidden(text, " "))
        text = _BREAK.sub("\n", text)
        text = _INLINE_TAG.sub(_space_or_nothing, text)
        text = _PARAGRAPH_TAG.sub("\n\n", text)
        text = _BLOCK_TAG.sub("\n", text)
        text = _ANY_TAG.sub(" ", text)
    lines = [_unescaped(line) for line in text.split("\n")]
    return _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()


def _without_hidden(markup: str, put: str) -> str:
    """Take out scripts, styles and comments; one that nobody closed ends with its first ``>``."""
    closed = markup.rfind("-->") + 3 if "-->" in markup else 0
    tail = _OPEN_COMMENT.sub(put, markup[closed:])
    return _HIDDEN.sub(put, markup[:closed] + tail)


def literal_text(value: str) -> str:
    """Return text that declares to hold no markup, such as an Atom title of type ``text``.

    Numeric references in it were escaped twice by mistake and are decoded.

    Examples
    --------
    >>> literal_text("It&#8217;s <b> & co")
    'It’s <b> & co'
    """
    if "&#" in value:
        value = _NUMERIC.sub(lambda match: html.unescape(match[0]), value)
    return collapse_spaces(value)


def _space_or_nothing(match: re.Match[str]) -> str:
    return " " if match[0].lower().startswith("<img") else ""


def _unescaped(value: str) -> str:
    if "&" in value:
        value = html.unescape(value)
    return collapse_spaces(drop_controls(value)[0])


def absolute_url(link: str, base: str) -> str | None:
    """Return `link` as an absolute http(s) address, or None where it is none.

    White space inside, as line breaks in a feed leave it, is removed the way browsers do.

    Examples
    --------
    >>> absolute_url(" /a b?x=1 ", "https://news.example/feed")
    'https://news.example/a%20b?x=1'
    >>> absolute_url("mailto:desk@news.example", "https://news.example/") is None
    True
    """
    try:
        parsed = ada_url.URL(link.strip(), base=base)
    except ValueError:
        return None
    if parsed.protocol not in {"http:", "https:"} or not parsed.hostname:
        return None
    return str(parsed.href)
