"""Views of tensors: what is written to one shows in all, as in NumPy and PyTorch."""
from __future__ import annotations

import numpy as np
import pytest

import plugrad as pg


def made(*shape: int) -> pg.Tensor:
    return pg.Tensor(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


@pytest.mark.parametrize("write", [
    lambda x: x[0].__setitem__(1, 5),
    lambda x: x.T.__setitem__(0, 1),
    lambda x: x[1:3].__setitem__((0, slice(None, None, 2)), 7),
    lambda x: x[::-1, ::2][0].__setitem__(1, -1),
    lambda x: x.transpose(1, 0)[1:][0].__iadd__(3),
])
def test_writes_are_numpys(write):
    ours, theirs = made(4, 3), made(4, 3).numpy(copy=True)
    write(ours)
    write(theirs)
    np.testing.assert_array_equal(ours.numpy(), theirs)


def test_writes_go_through_every_view():
    x = made(4, 4)
    x.reshape(16)[3] = 1
    x.detach()[0, 0] = 2
    x[0:2].assign(pg.Tensor.full((2, 4), 9.0))
    x.squeeze().unsqueeze(0)[0, 3] = 0
    x.diagonal().assign(5)
    for row in x:
        row += 1
    assert x.tolist() == [[6, 10, 10, 10], [10, 6, 10, 10], [9, 10, 6, 12], [1, 1, 1, 6]]
    y = pg.Tensor([1.0])
    y.bitcast("int32")[0] = 0
    assert y.tolist() == [0.0]


def test_views_show_what_their_base_is():
    x = made(2, 3)
    row, value = x[1], x[1] + 0
    x += 1
    assert row.tolist() == [4, 5, 6] and value.tolist() == [3, 4, 5]
    del x
    row -= 4
    assert row.tolist() == [0, 1, 2]


def test_refused_writes_say_what_to_write():
    x = made(3)
    with pytest.raises(ValueError, match=r"\[setitem\] one element stands at several places .* or to a copy, clone\(\)"):
        x.expand(2, 3)[0] = 1
    w = pg.Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(ValueError, match="change it while no gradients are recorded"):
        w[0] = 1
    with pg.no_grad():
        w[0:1].assign(5)
    assert w.tolist() == [5.0, 2.0] and w.requires_grad


def test_tensor_of_a_tensor_is_its_own():
    for arguments in ({}, {"dtype": pg.float32}, {"device": "CPU"}, {"requires_grad": True}):
        x = made(2)
        y = pg.Tensor(x, **arguments)
        assert not x.requires_grad and y.requires_grad == ("requires_grad" in arguments)
        x += 1
        assert y.tolist() == [0.0, 1.0], arguments
    pg.asarray(x).assign(3)
    assert x.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("jitted", [False, True])
def test_sharing_is_the_same_under_jit(jitted):
    def change(x):
        same, own = x.to(x.device), pg.Tensor(x)
        same += 1
        own += 10
        x[0:1] *= 2
        return x.flip(0), own

    function = pg.jit(change) if jitted else change
    for _ in range(4):
        base = pg.Tensor.zeros(3)
        turned, own = function(base[1:])
        assert base.tolist() == [0, 2, 1] and turned.tolist() == [1, 2] and own.tolist() == [10, 10]
        if jitted:  # what a jitted function returns is a value
            turned += 5
            assert base.tolist() == [0, 2, 1]
