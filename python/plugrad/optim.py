"""Optimisers, learning rates and the progress of a training.

    opt = optim.Adam(nn.parameters(net), lr=1e-3)
    for x, y in train.batches(512, shuffle=True):
        opt.zero_grad()
        loss = plugrad.sparse_categorical_crossentropy(net(x), y)
        loss.backward()
        opt.step()

nn.save, nn.load and nn.state_dict accept an optimiser like a module.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from . import nn
from ._plugrad import Tensor
from ._plugrad._optim import *  # noqa: F403
from ._plugrad._optim import Optimizer


def _refuse_copy(optimizer: Any) -> Any:
    raise TypeError(f"{type(optimizer).__name__} is not copied or pickled, as its copy would step copies of the "
                    "parameters: make an optimiser of the new model's parameters, and give it the state by "
                    "new.load_state_dict(old.state_dict())")


Optimizer.__reduce__ = _refuse_copy  # type: ignore[method-assign, assignment]


class OptimizerGroup:
    """Several optimisers that step together, in one plan.

        opt = optim.OptimizerGroup(optim.Muon(matrices), optim.AdamW(others, lr=3e-4))

    The state of member i is named "i.…".
    """

    def __init__(self, *members: Any):
        for member in members:
            if not isinstance(member, Optimizer):
                raise TypeError(f"a member of OptimizerGroup is an optimiser, not {member!r}")
        self.members = list(members)

    def zero_grad(self) -> None:
        """Forgets the gradients of all members' parameters."""
        for member in self.members:
            member.zero_grad()

    def step(self) -> None:
        """Skips members without gradients."""
        for member in self.members:
            if member.has_gradients():
                member.record_step()
        Optimizer.realize_recorded()

    def shard_state(self, axes: str) -> None:
        """Cuts the states of all members' parameters: Optimizer.shard_state."""
        for member in self.members:
            member.shard_state(axes)

    def state_dict(self) -> dict[str, Tensor]:
        """The tensors of all members' states by name: nn.state_dict(self)."""
        return nn.state_dict(self)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Assigns the tensors of a state: nn.load_state_dict(self, state)."""
        nn.load_state_dict(self, state)

    def __getitem__(self, index: int) -> Any:
        return self.members[index]

    def __len__(self) -> int:
        return len(self.members)

    def __fields__(self) -> Iterable[tuple[int, object]]:
        return enumerate(self.members)
