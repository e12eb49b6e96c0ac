"""The figures on correct pages of many sites that ship with newsbeat."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from models.drift.calibration import Calibration

_FILE = "drift/calibration.json"


@cache
def read_calibration() -> Calibration:
    """Return the shipped figures: how far the scores of correct pages stray.

    Raises
    ------
    ModelError
        If they were made for other channels than this version has.
    """
    return Calibration.from_json(json.loads(files("data").joinpath(_FILE).read_text("utf-8")))
