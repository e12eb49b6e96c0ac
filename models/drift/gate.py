"""Whether pages are fit to be a reference: whether their text is right to begin with.

A detector of change cannot tell that a site was misread from the first day on. What can be
told without an earlier state: whether texts are about their headlines, whether they differ
from one another, whether they are made of sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from models.drift.channels import RecentParagraphs
from models.drift.features import NUMBERS, PageFeatures
from models.errors import ContaminatedReference

FEW_PARAGRAPHS = 3


def check_reference(pages: Sequence[PageFeatures]) -> None:
    """Refuse pages whose texts look wrong already.

    Raises
    ------
    ContaminatedReference
        With the finding in words, and the share of pages it holds for.
    """
    for reason, share, allowed in _findings(pages):
        if share > allowed:
            raise ContaminatedReference(reason, round(share, 2))


def _findings(pages: Sequence[PageFeatures]) -> list[tuple[str, float, float]]:
    numbers = np.array([page.numbers for page in pages])
    column = dict(zip(NUMBERS, numbers.T, strict=True))
    recent = RecentParagraphs()
    repeated = []
    for page in pages:
        repeated.append(recent.share_of(page))
        recent.add(page)
    known = ~np.isnan(column["title_overlap"])
    return [
        ("no text was found", _share(column["text_size"] < 3.0), 0.3),
        ("texts are not about their headlines", _share(column["title_overlap"][known] < 0.1), 0.5),
        ("texts repeat one another", _share(np.array(repeated) > 0.5), 0.2),
        ("texts consist of links", _share(column["link_share"] > 0.5), 0.3),
        ("texts are short and end in the same line", _teaser_share(pages), 0.3),
        ("texts are garbled", _share(column["odd_share"] > 0.03), 0.3),
    ]


def _teaser_share(pages: Sequence[PageFeatures]) -> float:
    """Return the share of short texts whose last line, as on subscribing, ends others too."""
    last = Counter(int(page.paragraphs[-1]) for page in pages if len(page.paragraphs))
    short = [page for page in pages if 0 < page.n_paragraphs <= FEW_PARAGRAPHS]
    return sum(last[int(page.paragraphs[-1])] > 1 for page in short) / len(pages)


def _share(found: npt.NDArray[np.bool_]) -> float:
    return float(found.mean()) if len(found) else 0.0
