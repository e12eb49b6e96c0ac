"""Compile the loops that run once per poll of every source.

One decision costs about a microsecond compiled and a hundred times that in plain
Python; a back-test makes millions of them. Compiled code is kept between runs only
where somebody has named a place for it (`tasks.compilation`): numba judges kept code by
the file of the outermost function alone, so it must not outlive a change of any file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
T = TypeVar("T")


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """Return `function` compiled to machine code, with exact IEEE arithmetic.

    No fast-math: a stored decision must replay bit for bit. The interpreter's lock is let
    go meanwhile, so that threads share the cores.
    """
    is_kept = bool(numba.config.CACHE_DIR)  # type: ignore[attr-defined]
    made: Callable[P, T] = numba.njit(cache=is_kept, nogil=True, error_model="numpy")(function)
    return made
