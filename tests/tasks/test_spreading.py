"""Work spread over Dask; without the extra, only the word that says so."""

import importlib.util

import pytest

from models.errors import ConfigError
from tasks.spreading import map_on_dask

HAS_DASK = importlib.util.find_spec("prefect_dask") is not None


@pytest.mark.skipif(HAS_DASK, reason="prefect-dask is installed")
def test_without_the_extra_it_says_what_to_install():
    with pytest.raises(ConfigError, match=r"prefect_dask|distributed"):
        map_on_dask(abs, [-1, 2], "local")


@pytest.mark.slow
@pytest.mark.skipif(not HAS_DASK, reason="needs the extra: pip install 'newsbeat[dask]'")
@pytest.mark.filterwarnings("default")
def test_results_come_back_in_order():
    assert map_on_dask(abs, [-1, 2, -3], "local") == [1, 2, 3]
