"""Describe the prediction latency of models: medians, quantiles, and whether differences exceed the noise."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCKS = 10
_LEAST_BLOCKS = 6
"""With fewer blocks, all of them favour the same one of two equally fast models with a probability above 5 %."""
_NOISY, _WIDE = 0.2, 2.0
_MICROSECONDS = 1e6


@dataclass(frozen=True)
class LatencyRatio:
    """Compare the latency of a model with that of the first model of the benchmark.

    Attributes
    ----------
    against : str
        The name of the first model.
    ratio : float
        The median latency divided by that of the first model.
    lowest, highest : float
        The same ratio within blocks of consecutive calls: its extremes over the blocks.
    within_noise : bool
        Whether the blocks disagree on which model is faster, or are fewer than six. If two models are equally fast, ten
        blocks agree with a probability of 0.2 %.
    """

    against: str
    ratio: float
    lowest: float
    highest: float
    within_noise: bool


@dataclass(frozen=True)
class Latency:
    """Describe the time per row of calls with the same number of rows, in microseconds.

    Attributes
    ----------
    rows : int
        The number of rows of a call.
    repeats : int
        The number of timed calls.
    median, q05, q95 : float
        Median, 5 % and 95 % quantile of the calls.
    noise : float
        The spread of the medians of up to ten blocks of consecutive calls, divided by the median. On a machine that
        does nothing else it is near zero.
    ratio : LatencyRatio, optional
        The comparison with the first model; None for the first model.
    """

    rows: int
    repeats: int
    median: float
    q05: float
    q95: float
    noise: float
    ratio: LatencyRatio | None = None


@dataclass(frozen=True)
class ModelLatency:
    """Hold the latency of one model.

    Attributes
    ----------
    name : str
    engine : str
        The library that predicted; "secateur" if the model's library cannot predict these rows in memory.
    one_row, batch : Latency
    """

    name: str
    engine: str
    one_row: Latency
    batch: Latency


@dataclass(frozen=True)
class Benchmark:
    """Hold the latencies of models that were measured in turns.

    Attributes
    ----------
    method : str
        The method that was called.
    models : tuple of ModelLatency
        In the order they were passed.
    """

    method: str
    models: tuple[ModelLatency, ...]

    @property
    def noise(self) -> float:
        """The largest `noise` of all models, with one row or a batch."""
        return max(latency.noise for model in self.models for latency in (model.one_row, model.batch))

    @property
    def noisy(self) -> bool:
        """Whether times and ratios may be far from those on an idle machine.

        Either `noise` exceeds 0.2, or the 95 % quantile of some calls is more than twice their 5 % quantile, as under
        steady other load, which interrupts long calls more often than short ones.
        """
        latencies = [latency for model in self.models for latency in (model.one_row, model.batch)]
        return self.noise > _NOISY or any(latency.q95 > _WIDE * latency.q05 for latency in latencies)

    def summary(self) -> dict[str, Any]:
        """Return everything as a dict of plain values; times are microseconds per row."""
        models = [asdict(model) for model in self.models]
        facts = {"method": self.method, "unit": "microseconds per row", "noise": self.noise, "noisy": self.noisy}
        return {**facts, "models": models}

    def __str__(self) -> str:
        from secateur.reporting.latency_text import latency_text

        return latency_text(self.summary())

    __repr__ = __str__


def latencies(times: NDArray[np.float64], n_rows: int, first: str) -> list[Latency]:
    """Return the latency of each model from the seconds of its calls, (n_calls, n_models)."""
    per_row = times / n_rows * _MICROSECONDS
    blocks = np.array_split(per_row, min(_BLOCKS, len(per_row)))
    medians = np.array([np.median(block, axis=0) for block in blocks])
    median, q05, q95 = np.quantile(per_row, [0.5, 0.05, 0.95], axis=0)
    noise = np.ptp(medians, axis=0) / median
    return [
        Latency(
            n_rows,
            len(per_row),
            float(median[k]),
            float(q05[k]),
            float(q95[k]),
            float(noise[k]),
            _ratio(medians[:, [0, k]], median[k] / median[0], first) if k else None,
        )
        for k in range(len(median))
    ]


def _ratio(medians: NDArray[np.float64], ratio: float, first: str) -> LatencyRatio:
    """Compare two models by the medians of their blocks, (n_blocks, 2)."""
    by_block = medians[:, 1] / medians[:, 0]
    lowest, highest = float(by_block.min()), float(by_block.max())
    within_noise = len(by_block) < _LEAST_BLOCKS or lowest <= 1.0 <= highest
    return LatencyRatio(first, float(ratio), lowest, highest, within_noise)
