"""A series in the form that the reference reads."""

from __future__ import annotations

import numpy as np
import torch
from toto.data.util.dataset import MaskedTimeseries


def request_of(series: np.ndarray) -> MaskedTimeseries:
    """[batch][context]: one variate each, hourly, nothing missing."""
    values = torch.from_numpy(series)[:, None]
    return MaskedTimeseries(
        series=values,
        padding_mask=torch.ones(values.shape, dtype=torch.bool),
        id_mask=torch.zeros(values.shape, dtype=torch.int64),
        timestamp_seconds=torch.zeros(values.shape, dtype=torch.int64),
        time_interval_seconds=torch.full(values.shape[:2], 3600, dtype=torch.int64),
    )
