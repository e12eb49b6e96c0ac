"""Pages for people from Jinja2 templates, which lie in ``data/pages``.

Everything put into a page is escaped: what publishers wrote is text, whatever it says.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from models.drawing import draw_chart
from models.harmless import one_line, web_address
from models.polling.fixed import spell_duration

FOLDER = "pages"

STYLE = "page.css"

SERVED, ALONE = "base.html", "alone.html"
"""Templates that pages stand in: what the status page is served in, and a file by itself."""


def render_page(name: str, values: Mapping[str, Any]) -> str:
    """Return the page that template `name` makes of `values`.

    Raises
    ------
    jinja2.UndefinedError
        If the template uses a value that is not there.
    """
    return _environment().get_template(name).render(**values)


def render_alone(name: str, values: Mapping[str, Any]) -> str:
    """Return a page that needs no other file, and loads none wherever it is opened."""
    css = read_asset(STYLE)
    return render_page(
        name,
        {"frame": ALONE, "css": Markup(css), "policy": alone_policy(), **values},  # noqa: S704
    )


def alone_policy() -> str:
    """Return what a page that stands alone may load: its own style, known by its digest."""
    digest = base64.b64encode(hashlib.sha256(read_asset(STYLE).encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def read_asset(name: str) -> str:
    """Return a style sheet or script as it lies in the folder of templates."""
    return (files("data") / FOLDER / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(read_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(
        span=lambda seconds: "" if seconds is None else spell_duration(seconds),
        moment=spell_moment,
        number=lambda value, digits=0: "" if value is None else f"{value:,.{digits}f}",
        percent=lambda share: "" if share is None else f"{100 * share:.0f} %",
        line=lambda text: one_line("" if text is None else text),
        chart=lambda chart: Markup(draw_chart(chart)),  # noqa: S704 - it escapes all text
        web=web_address,
        count=spell_many,
    )
    return environment


def spell_moment(moment: datetime | None) -> Markup:
    """Return a moment as a ``<time>`` element, in UTC.

    Examples
    --------
    >>> spell_moment(datetime(2026, 3, 1, 8, 5, tzinfo=UTC))
    Markup('<time datetime="2026-03-01T08:05:00Z">2026-03-01 08:05</time>')
    """
    if moment is None:
        return Markup()
    at = moment.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        f"{at:%Y-%m-%dT%H:%M:%SZ}", f"{at:%Y-%m-%d %H:%M}"
    )


def spell_many(number: int, thing: str) -> Markup:
    """Return a number of things: ``1 poll``, ``2,300 polls``."""
    return escape(f"{number:,} {thing}{'' if number == 1 else 's'}")
