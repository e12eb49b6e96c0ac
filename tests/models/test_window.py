import numpy as np
import pytest

from models.window import LOSS_PROBABILITY, safe_entries


@pytest.mark.parametrize("window", [10, 15, 30, 100, 500])
def test_a_longer_list_allows_more(window):
    assert safe_entries(window) < safe_entries(window + 10)


@pytest.mark.parametrize("dispersion", [1.5, 2.0, 4.0])
def test_clumps_allow_less(dispersion):
    assert safe_entries(30, dispersion) < safe_entries(30, dispersion - 0.5)


@pytest.mark.parametrize("dispersion", [1.0, 2.0, 4.0])
def test_the_list_overflows_no_more_often_than_promised(dispersion):
    rng = np.random.default_rng(1)
    mean = safe_entries(50, dispersion)
    n = 2_000_000
    if dispersion == 1.0:
        counts = rng.poisson(mean, n)
    else:
        counts = rng.negative_binomial(mean / (dispersion - 1.0), 1.0 / dispersion, n)
    assert (counts > 50).mean() == pytest.approx(LOSS_PROBABILITY, rel=0.4)


def test_a_handful_of_entries_is_no_window():
    assert safe_entries(3) == np.inf
