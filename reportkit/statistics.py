"""Intervals from samples: the seeded block bootstrap, for both worlds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]


def block_length(series: Array) -> int:
    """Return the block length for a series of paired log ratios, from their autocorrelation."""
    raise NotImplementedError


def ratio_draws(eager: Array, compiled: Array, draws: int, seed: int) -> Array:
    """Return bootstrap draws of the median paired ratio: pairs resampled in circular blocks."""
    raise NotImplementedError
