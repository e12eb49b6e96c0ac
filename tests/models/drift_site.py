"""A made-up site for tests of drift detection: pages of one layout, right or broken."""

import numpy as np

from models.drift.features import describe_page

WORDS = """
    harbour council bridge winter market river school engine bakery evening station garden
    letter window lantern ferry orchard tunnel theatre summit village drummer
    voyage meadow pepper cloud
""".split()  # noqa: SIM905
SHELL = (
    '<html lang="en"><head><title>{title}</title><meta property="og:type" content="article">'
    '<link rel="canonical" href="https://tide.example/"></head><body><header class="top"><nav>'
    '<ul class="menu"><li><a href="/a">Home</a></li><li><a href="/b">City</a></li></ul></nav>'
    '</header><main class="page"><article class="story"><h1>{title}</h1><div class="body">{body}'
    '</div></article><aside class="more">{aside}</aside></main><footer class="foot"><p>Imprint</p>'
    "</footer></body></html>"
)
REDESIGN = (
    '<html lang="en"><head><title>{title}</title></head><body><div class="grid"><section'
    ' class="lead"><h2 class="head">{title}</h2><section class="copy">{body}</section></section>'
    '<section class="rail">{aside}</section></div></body></html>'
)


def sentence(rng, n_words=12):
    words = [WORDS[at] for at in rng.integers(len(WORDS), size=n_words)]
    return " ".join(words).capitalize() + f" {rng.integers(10_000)}."


def make_story(rng):
    title = " ".join(WORDS[at] for at in rng.integers(len(WORDS), size=5)).capitalize()
    count = int(np.clip(round(9 * np.exp(rng.normal(0, 0.3))), 2, 25))
    paragraphs = [" ".join(sentence(rng) for _ in range(3)) for _ in range(count)]
    paragraphs[0] = f"{title}: {paragraphs[0]}"
    return title, paragraphs


def make_page(rng, kind="ok"):
    """Return the features of a page: ok, redesign, half, same, teasers or empty."""
    title, paragraphs = make_story(rng if kind != "same" else np.random.default_rng(0))
    aside = "".join(f"<a href='/{n}'>{sentence(rng, 5)}</a>" for n in range(rng.integers(2, 6)))
    if kind == "half":
        paragraphs = paragraphs[: (len(paragraphs) + 1) // 2]
    if kind == "teasers":
        paragraphs = [sentence(rng, 6) for _ in range(8)]
    shell = REDESIGN if kind == "redesign" else SHELL
    body = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    markup = shell.format(title=title, body=body, aside=aside)
    text = "" if kind == "empty" else "\n".join(paragraphs)
    return describe_page(markup, text, title=title)


def make_pages(count, kind="ok", seed=1):
    rng = np.random.default_rng(seed)
    return [make_page(rng, kind) for _ in range(count)]
