"""The networks of the zoo, by name."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from net import Net

TOLERANCE = 1e-4


@dataclass
class Network:
    define: Callable[[Net], None]
    opset: int
    tolerance: float  # largest difference between two runtimes, relative to the largest element of an output


NETWORKS: dict[str, Network] = {}


def network(opset: int = 17, tolerance: float = TOLERANCE) -> Callable[[Callable[[Net], None]], Callable[[Net], None]]:
    """Adds the function, which writes the network of its name."""

    def add(define: Callable[[Net], None]) -> Callable[[Net], None]:
        NETWORKS[define.__name__] = Network(define, opset, tolerance)
        return define

    return add


def built(name: str) -> Net:
    net = Net(name, NETWORKS[name].opset)
    NETWORKS[name].define(net)
    return net
