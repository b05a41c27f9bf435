"""tinygrad's optimisers by plugrad's."""
from __future__ import annotations

from typing import Any

import plugrad as pg

from ..wrapping import unwrap


class Optimizer:
    def __init__(self, params: list[Any], made: Any):
        self.params, self.made = params, made

    def zero_grad(self) -> None:
        self.made.zero_grad()

    def step(self) -> None:
        self.made.step()


def SGD(params: list[Any], lr: float = 1e-3, momentum: float = 0.0, weight_decay: float = 0.0,
        nesterov: bool = False, classic: bool = False, **_: Any) -> Optimizer:
    return Optimizer(params, pg.optim.SGD(unwrap(params), lr, momentum, nesterov, weight_decay))


def Adam(params: list[Any], lr: float = 1e-3, b1: float = 0.9, b2: float = 0.999,
         eps: float = 1e-8, **_: Any) -> Optimizer:
    return Optimizer(params, pg.optim.Adam(unwrap(params), lr, b1, b2, eps))


def AdamW(params: list[Any], lr: float = 1e-3, b1: float = 0.9, b2: float = 0.999,
          eps: float = 1e-8, weight_decay: float = 0.01, **_: Any) -> Optimizer:
    return Optimizer(params, pg.optim.AdamW(unwrap(params), lr, b1, b2, eps, weight_decay))


def LAMB(params: list[Any], lr: float = 1e-3, b1: float = 0.9, b2: float = 0.999,
         eps: float = 1e-6, weight_decay: float = 0.0, **_: Any) -> Optimizer:
    return Optimizer(params, pg.optim.LAMB(unwrap(params), lr, b1, b2, eps, weight_decay))


def Muon(params: list[Any], lr: float = 1e-3, momentum: float = 0.95, weight_decay: float = 0.1,
         ns_steps: int = 5, ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
         nesterov: bool = True, **_: Any) -> Optimizer:
    return Optimizer(params, pg.optim.Muon(unwrap(params), lr, momentum, nesterov, weight_decay,
                                           ns_steps, ns_coefficients))
