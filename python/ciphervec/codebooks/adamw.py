"""The AdamW optimiser on float32 arrays. Nothing here is secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float32]

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


class AdamW:
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019), in place on named float32
    arrays."""

    def __init__(
        self, parameters: Mapping[str, Floats], learning_rate: float, weight_decay: float = 0.0
    ) -> None:
        """`weight_decay` shrinks a parameter by learning rate × decay a step."""
        self.learning_rate = learning_rate
        self._decay = weight_decay
        self._parameters = dict(parameters)
        self._mean = {name: np.zeros_like(value) for name, value in parameters.items()}
        self._square = {name: np.zeros_like(value) for name, value in parameters.items()}
        self._steps = 0

    def step(
        self, gradients: Mapping[str, Floats], rows: Mapping[str, npt.NDArray[np.integer]] | None = None
    ) -> None:
        """One step. A parameter named in `rows` has a gradient for those distinct rows only; the
        others rest, moments too."""
        self._steps += 1
        rate = self.learning_rate * (1 - _BETA2**self._steps) ** 0.5 / (1 - _BETA1**self._steps)
        for name, gradient in gradients.items():
            where = (rows or {}).get(name)
            at = slice(None) if where is None else where
            mean = self._mean[name][at] * np.float32(_BETA1) + gradient * np.float32(1 - _BETA1)
            square = self._square[name][at] * np.float32(_BETA2) + gradient * gradient * np.float32(
                1 - _BETA2
            )
            self._mean[name][at], self._square[name][at] = mean, square
            parameter = self._parameters[name]
            if self._decay:
                parameter[at] *= np.float32(1 - self.learning_rate * self._decay)
            parameter[at] -= np.float32(rate) * mean / (np.sqrt(square) + np.float32(_EPSILON))
