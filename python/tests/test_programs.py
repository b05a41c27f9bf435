"""Functions with a backward, kernels, nodes, and the scopes of a thread."""
import threading

import numpy as np
import pytest

import plugrad as pg


def test_kernels_are_shown_before_they_run() -> None:
    x = pg.Tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
    kernels = (x * 2).sum(axis=0).schedule()
    assert len(kernels) == 1 and kernels[0].device == "CPU:0" or kernels[0].device
    assert any(loop.reduces for loop in kernels[0].ranges)
    assert kernels[0].source in pg.explain((x * 2).sum(axis=0)) or kernels[0].name


def test_nodes_are_built_and_rewritten() -> None:
    four = pg.UOp.constant(2, "int32") + pg.UOp.constant(2, "int32")
    assert four.op == "add" and four.simplify().integer() == 4
    assert four == pg.UOp.constant(2, "int32") + pg.UOp.constant(2, "int32")
    assert hash(four) == hash(pg.UOp.constant(2, "int32") + pg.UOp.constant(2, "int32"))


def test_an_exception_of_a_backward_keeps_its_class() -> None:
    class Mine(Exception):
        pass

    def backward(context, *gradients):
        raise Mine("in backward")

    doubled = pg.function(lambda context, x: x * 2, backward, name="doubled")
    x = pg.Tensor([1.0], requires_grad=True)
    with pytest.raises(Mine, match="in backward"):
        doubled(x).sum().backward()


def test_scopes_belong_to_their_thread() -> None:
    x = pg.Tensor([1.0, 2.0], requires_grad=True)
    elsewhere: list[bool] = []
    with pg.no_grad():
        assert not pg.is_grad_enabled()
        frozen = x * 3
        thread = threading.Thread(target=lambda: elsewhere.append(pg.is_grad_enabled()))
        thread.start()
        thread.join()
    assert pg.is_grad_enabled() and elsewhere == [True]
    (x * x + frozen).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_the_default_device_of_a_scope() -> None:
    before = pg.default_device()
    with pg.device("REFERENCE"):
        assert pg.Tensor.ones(2).device == "REFERENCE"
    assert pg.Tensor.ones(2).device == before
    with pytest.raises(pg.UserError, match="NOWHERE"):
        with pg.device("NOWHERE"):
            pass


def test_a_scan_runs_its_step_for_each_element() -> None:
    def step(state, inputs):
        total = state[0] + inputs[0]
        return [total], [total]

    state, outputs = pg.scan(step, [pg.Tensor(0.0)], [pg.Tensor([1.0, 2.0, 3.0])])
    assert state[0].item() == 6.0 and outputs[0].tolist() == [1.0, 3.0, 6.0]
