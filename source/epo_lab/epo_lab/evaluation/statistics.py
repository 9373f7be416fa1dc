"""Statistics over a handful of seeds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def interquartile_mean(values: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return the mean of the middle half of the values along an axis.

    The outer quarters are cut off by weight, so that it also works for numbers that four does not divide.
    """
    ordered = np.sort(np.moveaxis(np.asarray(values, dtype=float), axis, -1), axis=-1)
    count = ordered.shape[-1]
    # the k-th of n sorted values covers [k/n, (k+1)/n] of the whole; what lies within [1/4, 3/4] counts
    low, high = np.arange(count) / count, (np.arange(count) + 1) / count
    weights = np.clip(np.minimum(high, 0.75) - np.maximum(low, 0.25), 0.0, None)
    return ordered @ weights / weights.sum()


def bootstrap_interval(
    values: np.ndarray,
    *,
    statistic: Callable[..., np.ndarray] = interquartile_mean,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the percentile bootstrap interval of a statistic over the first axis (seeds, or episodes).

    Args:
        values: One row a seed. Shape is (seeds, ...).
        statistic: What is computed along an ``axis``. Defaults to the interquartile mean.
        level: Coverage.
        resamples: Number of resamples.
        seed: Seed of the resampling.
    """
    values = np.asarray(values, dtype=float)
    draws = np.random.default_rng(seed).integers(len(values), size=(resamples, len(values)))
    means = statistic(values[draws], axis=1)
    tail = 50.0 * (1.0 - level)
    return np.percentile(means, tail, axis=0), np.percentile(means, 100.0 - tail, axis=0)
