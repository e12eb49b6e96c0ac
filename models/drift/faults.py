"""Ways in which sites change and extraction fails, put on pages of known truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from models.drift.template import Habits, Story, Template, fill

KINDS = (
    "rename", "redesign", "br", "tail", "half", "same", "comments", "related", "index",
    "teaser", "lazy", "consent", "captcha", "mojibake",
)  # fmt: skip

LAYOUT_ONLY = frozenset({"rename", "redesign", "br"})
"""Kinds whose text stays right."""

CAUSES: dict[str, frozenset[str]] = {
    "rename": frozenset({"structure"}),
    "redesign": frozenset({"structure"}),
    "br": frozenset({"structure", "place", "text"}),
    "tail": frozenset({"text"}),
    "half": frozenset({"text", "place"}),
    "same": frozenset({"text"}),
    "comments": frozenset({"place", "text"}),
    "related": frozenset({"text", "place"}),
    "index": frozenset({"structure", "place", "text"}),
    "teaser": frozenset({"place", "text"}),
    "lazy": frozenset({"place", "text"}),
    "consent": frozenset({"structure"}),
    "captcha": frozenset({"structure"}),
    "mojibake": frozenset({"text"}),
}
"""Groups of channels that name the cause of each kind rightly."""

_PAYWALLS = (
    "Subscribe to read the rest of this story.",
    "This article is for members. Sign in or choose a plan to go on reading.",
    "You have read your free articles for this month.",
    "Read on for one month at no cost, then cancel whenever you like.",
)
_CONSENT = (
    "Before you go on, please tell us how we may use your data.",
    "We and our partners keep small files on your device to measure how our pages are used.",
    "With your agreement they also choose advertising that may be of interest to you.",
    "You may withdraw your agreement at any time in the settings at the foot of every page.",
    "Some partners do not ask for your agreement but rely on their legitimate interest.",
    "Choose what you allow, or read the pages against a small monthly fee without advertising.",
)
_READERS = ("Anna", "Bert", "Chiara", "Dmitri", "Emre", "Fatima", "Goran", "Hana")


def draw_habits(template: Template, rng: np.random.Generator) -> Habits:
    """Return how the articles of a template's site vary."""
    return Habits(
        mean_paragraphs=float(rng.uniform(7, 20)),
        spread=float(rng.uniform(0.25, 0.5)),
        short_share=float(rng.uniform(0.0, 0.08)),
        link_share=float(rng.uniform(0.0, 0.25)),
        figure_share=float(rng.uniform(0.0, 0.2)),
        heading_share=float(rng.uniform(0.0, 0.15)),
        read_also_share=float(rng.choice([0.0, 0.0, 0.1, 0.3])),
        has_comments=bool(rng.random() < 0.5),
        links_extras=bool(rng.random() < 0.5),
        optional=tuple(rng.choice([0.3, 0.6, 0.9, 0.97], template.n_optional).tolist()),
        paywall=_PAYWALLS[int(rng.integers(len(_PAYWALLS)))],
    )


@dataclass(frozen=True, slots=True)
class Newsroom:
    """A made-up site: a real layout, its habits, and the articles it prints.

    Attributes
    ----------
    template, other
        Its layout, and the one it changes to when it is redesigned.
    habits
        How its articles vary.
    stories
        Articles to print, more than a page's neighbours use up.
    """

    template: Template
    other: Template
    habits: Habits
    stories: tuple[Story, ...]


@dataclass(frozen=True, slots=True)
class MadePage:
    """A page and the text that is right for it."""

    markup: str
    truth: str


def make_page(newsroom: Newsroom, number: int, kind: str, rng: np.random.Generator) -> MadePage:
    """Return a page of the site, correct or broken.

    Parameters
    ----------
    newsroom
        The site.
    number
        Which of its articles to print; they are printed in turn.
    kind
        ``"ok"`` or one of :data:`KINDS`.
    rng
        Source of chance: the same one gives the same page.
    """
    if kind == "consent":
        return MadePage(_consent_page(), "")
    if kind == "captcha":
        return MadePage(_captcha_page(rng), "")
    told = newsroom.stories[(0 if kind == "same" else number) % len(newsroom.stories)]
    story = _cut_to_length(told, newsroom.habits, rng)
    page = _Page(newsroom, story, rng)
    body = _BODIES.get(kind, _Page.body)(page)
    after = page.comments() if newsroom.habits.has_comments else ""
    if kind == "comments":
        after = page.comments(least=12)
    template = newsroom.other if kind == "redesign" else newsroom.template
    present = rng.random(template.n_optional) < 0.8
    if template is newsroom.template:
        present = rng.random(template.n_optional) < np.array(newsroom.habits.optional)
    told_title = Story("Latest news", "All the news of the day.", ()) if kind == "index" else story
    markup = fill(
        template,
        told_title,
        body,
        after,
        page.headlines(40),
        present.tolist(),
        "renamed" if kind == "rename" else "own",
    )
    return MadePage(markup, "\n".join(story.paragraphs))


def _cut_to_length(story: Story, habits: Habits, rng: np.random.Generator) -> Story:
    wanted = habits.mean_paragraphs * float(np.exp(rng.normal(0.0, habits.spread)))
    if rng.random() < habits.short_share:
        wanted = float(rng.integers(1, 3))
    n_paragraphs = int(np.clip(round(wanted), 1, len(story.paragraphs)))
    return Story(story.title, story.description, story.paragraphs[:n_paragraphs])


class _Page:
    """One page in the making."""

    def __init__(self, newsroom: Newsroom, story: Story, rng: np.random.Generator) -> None:
        self.newsroom = newsroom
        self.story = story
        self.rng = rng

    def headlines(self, count: int) -> list[str]:
        stories = self.newsroom.stories
        return [stories[at].title for at in self.rng.integers(len(stories), size=count)]

    def body(self) -> str:
        return self._marked_up(self.story.paragraphs)

    def _marked_up(self, paragraphs: Sequence[str]) -> str:
        habits, rng, written = self.newsroom.habits, self.rng, []
        for at, paragraph in enumerate(paragraphs):
            if at and rng.random() < habits.heading_share:
                written.append(f"<h2>{escape(self.headlines(1)[0][:50])}</h2>")
            if rng.random() < habits.figure_share:
                caption = escape(paragraph[:60])
                written.append(
                    f'<figure><img src="/{at}.jpg"><figcaption>{caption}</figcaption></figure>'
                )
            written.append(self._paragraph(self._linked(escape(paragraph))))
        if rng.random() < habits.read_also_share:
            written.append(self._read_also())
        return "\n".join(written)

    def _paragraph(self, markup: str) -> str:
        return f"{self.newsroom.template.paragraph}{markup}</p>"

    def _linked(self, markup: str) -> str:
        words = markup.split(" ")
        if self.rng.random() >= self.newsroom.habits.link_share or len(words) < 8:
            return markup
        at = int(self.rng.integers(len(words) - 4))
        words[at] = f'<a href="/topic/{at}">{words[at]}'
        words[at + 2] += "</a>"
        return " ".join(words)

    def _read_also(self) -> str:
        headline = escape(self.headlines(1)[0])
        if self.newsroom.habits.links_extras:
            headline = f'<a href="/story">{headline}</a>'
        return self._paragraph(f"Read also: {headline}")

    def in_breaks(self) -> str:
        return "<br><br>\n".join(escape(paragraph) for paragraph in self.story.paragraphs)

    def with_tail(self) -> str:
        return self.body() + "\n".join(self._read_also() for _ in range(8))

    def first_half(self) -> str:
        return self._marked_up(self.story.paragraphs[: (len(self.story.paragraphs) + 1) // 2])

    def teased(self) -> str:
        first = self._marked_up(self.story.paragraphs[:1])
        return first + self._paragraph(escape(self.newsroom.habits.paywall))

    def nothing(self) -> str:
        return '<div class="placeholder" data-src="/part/2"></div>'

    def teasers(self) -> str:
        return "\n".join(self._teaser() for _ in range(int(self.rng.integers(6, 11))))

    def _teaser(self) -> str:
        stories = self.newsroom.stories
        story = stories[int(self.rng.integers(len(stories)))]
        headline = escape(story.title)
        if self.newsroom.habits.links_extras:
            headline = f'<a href="/story">{headline}</a>'
        lead = escape(story.paragraphs[0][:140])
        return f"<div class='item'><h3>{headline}</h3>{self._paragraph(lead)}</div>"

    def listing(self) -> str:
        return "\n".join(self._teaser() for _ in range(20))

    def comments(self, least: int = 0) -> str:
        count = int(self.rng.integers(least, least + 10))
        if not count:
            return ""
        return f'<div class="reactions">{"".join(self._comment() for _ in range(count))}</div>'

    def _comment(self) -> str:
        stories = self.newsroom.stories
        paragraphs = stories[int(self.rng.integers(len(stories)))].paragraphs
        said = paragraphs[int(self.rng.integers(len(paragraphs)))]
        said = " ".join(said.split(" ")[: int(self.rng.integers(6, 45))])
        reader = _READERS[int(self.rng.integers(len(_READERS)))]
        return f'<div class="entry"><b>{reader}</b><p>{escape(said)}</p></div>'

    def garbled(self) -> str:
        return self._marked_up([_garble(paragraph) for paragraph in self.story.paragraphs])


_BODIES: dict[str, Callable[[_Page], str]] = {
    "br": _Page.in_breaks,
    "tail": _Page.with_tail,
    "half": _Page.first_half,
    "comments": _Page.nothing,
    "related": _Page.teasers,
    "index": _Page.listing,
    "teaser": _Page.teased,
    "lazy": _Page.nothing,
    "mojibake": _Page.garbled,
}


def _garble(text: str) -> str:
    """Return text read in the wrong encoding: two-byte letters apart, or all letters wrong."""
    foreign = sum(char > "\u0400" for char in text) / max(len(text), 1)
    if foreign > 0.3:
        return text.encode().decode("cp1252", "replace")
    return text.encode("cp037", "replace").decode("latin-1")


def _consent_page() -> str:
    paragraphs = "".join(f"<p>{line}</p>" for line in _CONSENT)
    return (
        '<html lang="en"><head><title>Your privacy</title></head><body><div id="wall">'
        f"<h2>Your choice</h2>{paragraphs}<button>Agree</button><button>Refuse</button>"
        "</div></body></html>"
    )


def _captcha_page(rng: np.random.Generator) -> str:
    return (
        "<html><head><title>One moment</title></head><body><form><h1>One moment</h1>"
        "<p>Please show that you are a person before you go on.</p>"
        f"<p>Reference {rng.integers(10**9):x}</p></form></body></html>"
    )
