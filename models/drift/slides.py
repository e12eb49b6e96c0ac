"""The operational detector of the slides: clusters of correct pages, a surface round each.

Selectable, and measured beside ours. The slides' formulas are lost; where they leave a
choice, the one taken here is named at its place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.covariance import LedoitWolf

from models.drift.deferred import WindowReference
from models.drift.features import FloatArray, PageFeatures
from models.errors import InsufficientDataError

Surface = Literal["box", "ellipsoid", "sphere"]
SURFACES: tuple[Surface, ...] = ("box", "ellipsoid", "sphere")

N_CLUSTERS = 10
MIN_PAGES = 2 * N_CLUSTERS
SELF_CHECK_SHARE = 0.10
SELF_CHECK_PAGES = 50
"""The self-check looks at so many of the last pages."""

_MIN_SPREAD = 1e-6
SLACK = 1.2
"""A surface reaches a fifth beyond the furthest page of its cluster: the furthest of so many
is not the furthest there will be. Boxes are left as they are."""


def reduced_vector(page: PageFeatures) -> FloatArray:
    """Return the page as eight numbers: logarithms of P, S, N and √V, four tag shares.

    The fifth share follows from the others: a vector should have no useless coordinate.
    """
    vector: FloatArray = reduced_vectors(WindowReference.of([page]))[0]
    return vector


def reduced_vectors(pages: WindowReference) -> FloatArray:
    """Return :func:`reduced_vector` of each page of a reference; shape ``(n_pages, 8)``."""
    totals = np.maximum(pages.tags.sum(axis=1, keepdims=True), 1.0)
    return np.hstack([pages.values, pages.tags[:, :4] / totals])


def cluster_by_samples(
    points: FloatArray, n_clusters: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return the cluster of each point, 0 to `n_clusters` - 1.

    Draws n points and joins them by average linkage into k clusters, puts the k centroids
    back among the points and draws again, until k are left; then every point goes to the
    nearest. A draw removes n - k points for a cost of n², so n = 2k costs least.

    Parameters
    ----------
    points
        Shape ``(n_points, n_dimensions)``.
    n_clusters
        k, at most the number of points.
    rng
        Draws the samples.
    """
    left = points.copy()
    weights = np.ones(len(left))
    while len(left) > n_clusters:
        drawn = rng.permutation(len(left))[: 2 * n_clusters]
        groups = fcluster(linkage(left[drawn], "average"), n_clusters, "maxclust")
        names = np.unique(groups)
        centres = [
            np.average(left[drawn][groups == name], axis=0, weights=weights[drawn][groups == name])
            for name in names
        ]
        masses = [weights[drawn][groups == name].sum() for name in names]
        if len(names) == len(drawn):
            break
        left = np.vstack([np.delete(left, drawn, axis=0), *centres])
        weights = np.concatenate([np.delete(weights, drawn), masses])
    apart = ((points[:, None, :] - left[None]) ** 2).sum(axis=2)
    nearest: npt.NDArray[np.int64] = apart.argmin(axis=1)
    return nearest


@dataclass(frozen=True, slots=True, eq=False)
class _Cluster:
    """A cluster of correct pages, in standardised coordinates."""

    low: FloatArray
    high: FloatArray
    centre: FloatArray
    radius: float
    precision: FloatArray
    reach: float

    @classmethod
    def of(cls, points: FloatArray, pooled: FloatArray) -> _Cluster:
        """Return the cluster of points; too few for a covariance take the one of all."""
        centre = points.mean(axis=0)
        enough = len(points) > 2 * points.shape[1]
        precision = LedoitWolf().fit(points).precision_ if enough else pooled
        apart = points - centre
        return cls(
            low=points.min(axis=0),
            high=points.max(axis=0),
            centre=centre,
            radius=float(np.sqrt((apart**2).sum(axis=1)).max()),
            precision=precision,
            reach=float(np.einsum("ij,jk,ik->i", apart, precision, apart).max()),
        )

    def holds(self, point: FloatArray, surface: Surface) -> bool:
        if surface == "box":
            return bool(((point >= self.low) & (point <= self.high)).all())
        apart = point - self.centre
        if surface == "sphere":
            return float(np.sqrt((apart**2).sum())) <= self.radius * SLACK
        return float(apart @ self.precision @ apart) <= self.reach * SLACK**2


@dataclass(frozen=True, slots=True, eq=False)
class SurfaceModel:
    """Surfaces round the clusters of a site's correct pages.

    A box spans the smallest and largest of each coordinate; an ellipsoid reaches to the
    largest Mahalanobis distance in the cluster, a sphere to the largest distance. A page
    outside all is suspicious.
    """

    surface: Surface
    middle: FloatArray
    scale: FloatArray
    clusters: tuple[_Cluster, ...]

    @classmethod
    def fit(
        cls,
        pages: Sequence[PageFeatures] | WindowReference,
        surface: Surface = "ellipsoid",
        n_clusters: int = N_CLUSTERS,
    ) -> SurfaceModel:
        """Return the model of a set of correct pages, or of those of a reference.

        Raises
        ------
        InsufficientDataError
            If there are fewer than :data:`MIN_PAGES`; about 1,200 are needed before
            correct pages pass.
        """
        known = pages if isinstance(pages, WindowReference) else WindowReference.of(pages)
        if known.n_pages < MIN_PAGES:
            raise InsufficientDataError(MIN_PAGES, known.n_pages)
        vectors = reduced_vectors(known)
        middle, scale = vectors.mean(axis=0), np.maximum(vectors.std(axis=0), _MIN_SPREAD)
        points = (vectors - middle) / scale
        groups = cluster_by_samples(points, n_clusters, np.random.default_rng(len(points)))
        centred = np.concatenate(
            [points[groups == name] - points[groups == name].mean(axis=0) for name in set(groups)]
        )
        pooled = LedoitWolf(assume_centered=True).fit(centred).precision_
        clusters = tuple(
            _Cluster.of(points[groups == name], pooled) for name in sorted(set(groups))
        )
        return cls(surface, middle, scale, clusters)

    def is_suspicious(self, page: PageFeatures) -> bool:
        """Say whether a page lies outside all surfaces."""
        point = (reduced_vector(page) - self.middle) / self.scale
        return not any(cluster.holds(point, self.surface) for cluster in self.clusters)


class SelfCheck:
    """Judges a source by the share of suspicious pages among its last ones.

    Parameters
    ----------
    n_pages
        How many of the last pages are looked at.
    allowed
        Share of suspicious pages that is still no alarm.

    Examples
    --------
    >>> check = SelfCheck(n_pages=10)
    >>> [check.add(suspicious) for suspicious in (False,) * 9 + (True, True)][-2:]
    [False, True]
    """

    def __init__(self, n_pages: int = SELF_CHECK_PAGES, allowed: float = SELF_CHECK_SHARE) -> None:
        self.n_pages = n_pages
        self.allowed = allowed
        self._last: deque[bool] = deque(maxlen=n_pages)

    @property
    def flags(self) -> tuple[bool, ...]:
        """Which of the last pages were suspicious, oldest first."""
        return tuple(self._last)

    def add(self, suspicious: bool) -> bool:
        """Take the next page in; say whether there is an alarm.

        Pages not seen yet count as correct: the first suspicious page of all is none.
        """
        self._last.append(suspicious)
        return sum(self._last) > self.allowed * self.n_pages + 1e-9
