"""State of modules: names, loading, files, and conversions."""
import collections
import threading
from typing import NamedTuple

import numpy as np
import pytest

import plugrad as pg
from plugrad import nn, optim


def tensor(*numbers: float) -> pg.Tensor:
    return pg.Tensor(list(numbers))


class Block:
    def __init__(self):
        self.norm = nn.LayerNorm(3)


class Net:
    def __init__(self):
        self.conv = nn.Conv2d(1, 2, 3)
        self.blocks = [Block(), Block()]
        self.heads = {"left": nn.Linear(3, 1, bias=False), "right": (tensor(1.0), tensor(2.0))}
        self.name, self.count, self.rate = "net", 3, 0.5
        self.function, self.kind, self.numbers = pg.relu, Block, {1, 2}
        self.nothing = None


NAMES = ["conv.weight", "conv.bias", "blocks.0.norm.weight", "blocks.0.norm.bias",
         "blocks.1.norm.weight", "blocks.1.norm.bias", "heads.left.weight", "heads.right.0",
         "heads.right.1"]


# ---- Names ----


def test_names_follow_the_order_of_attributes():
    net = Net()
    assert list(nn.state_dict(net)) == NAMES == list(nn.state_dict(net))
    assert len(nn.parameters(net)) == 7
    assert list(nn.state_dict([net.conv])) == ["0.weight", "0.bias"]
    assert list(nn.state_dict({"a": tensor(1.0), 2: tensor(1.0)})) == ["a", "2"]


def test_the_names_of_a_module_are_pytorchs():
    torch = pytest.importorskip("torch")

    class Theirs(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(1, 2, 3)
            self.blocks = torch.nn.ModuleList([torch.nn.BatchNorm1d(3), torch.nn.LSTM(2, 3)])

    class Ours:
        def __init__(self):
            self.conv = nn.Conv2d(1, 2, 3)
            self.blocks = [nn.BatchNorm(3), nn.LSTM(2, 3)]

    theirs, ours = Theirs().state_dict(), nn.state_dict(Ours())
    assert list(theirs) == list(ours)
    assert [tuple(each.shape) for each in theirs.values()] == [each.shape for each in ours.values()]


def test_slots_and_named_tuples_are_searched():
    class Base:
        __slots__ = ("a", "__hidden")

        def __init__(self):
            self.a, self.__hidden = tensor(1.0), tensor(2.0)

    class Derived(Base):
        __slots__ = ("unset", "b")

        def __init__(self):
            super().__init__()
            self.b = tensor(3.0)

    class Pair(NamedTuple):
        left: pg.Tensor
        right: pg.Tensor

    assert list(nn.state_dict(Derived())) == ["a", "_Base__hidden", "b"]
    assert list(nn.state_dict({"pair": Pair(tensor(1.0), tensor(2.0))})) == ["pair.left",
                                                                            "pair.right"]


def test_objects_may_compute_their_fields():
    class Named:
        def __fields__(self):
            return [("first", tensor(1.0)), ("second", nn.Linear(1, 1))]

    assert list(nn.state_dict(Named())) == ["first", "second.weight", "second.bias"]


def test_shared_layers_have_both_names_and_cycles_are_searched_once():
    net, child = Net(), Block()
    net.child, net.again, child.parent = child, child, net
    cycle = [tensor(1.0)]
    cycle.append(cycle)
    assert [name for name in nn.state_dict(net) if "norm.weight" in name][-2:] == [
        "child.norm.weight", "again.norm.weight"]
    assert list(nn.state_dict(child))[-1] == "parent.heads.right.1"
    assert list(nn.state_dict(cycle)) == ["0"]


def test_shared_tensors_are_one_parameter():
    a, b = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
    b.weight = a.weight
    assert list(nn.state_dict([a, b])) == ["0.weight", "1.weight"]
    assert len(nn.parameters([a, b, a])) == 1
    optim.SGD(nn.parameters([a, b]))


def test_deep_modules_need_no_recursion():
    chain = {"end": tensor(1.0)}
    for _ in range(5000):
        chain = {"n": chain}
    assert next(iter(nn.state_dict(chain))).endswith("n.end")


def test_names_that_are_ambiguous_or_missing_are_errors():
    with pytest.raises(ValueError, match="'a.b'"):
        nn.state_dict({"a": {"b": tensor(1.0)}, "a.b": tensor(2.0)})
    with pytest.raises(TypeError, match="key"):
        nn.state_dict({"a": {(1, 2): [tensor(1.0)]}})
    assert nn.state_dict({"a": {}, "b": [None]}) == {}
    with pytest.raises(TypeError, match="single tensor"):
        nn.state_dict(tensor(1.0))


@pytest.mark.parametrize("make", [set, frozenset, collections.deque, lambda layers: dict(enumerate(layers)).values(),
                                  lambda layers: (layer for layer in layers), lambda layers: map(id, layers)])
def test_layers_in_what_gives_them_no_name_are_errors(make):
    class Wrong:
        def __init__(self):
            self.tags, self.layers = {"a", "b"}, make([nn.Linear(1, 1), nn.Linear(1, 1)])

    for take in (nn.state_dict, nn.parameters, lambda net: nn.load_state_dict(net, {}, strict=False)):
        with pytest.raises(TypeError, match="use a list"):
            take(Wrong())
    with pytest.raises(TypeError, match="use a list"):
        nn.parameters(make([nn.Linear(1, 1)]))


def test_collections_without_tensors_and_streams_of_data_may_lie_in_a_module():
    def batches():
        yield tensor(1.0)

    class Right:
        def __init__(self):
            self.tags, self.data, self.weight = {"a", 3}, batches(), tensor(1.0)

    assert list(nn.state_dict(Right())) == ["weight"]


@pytest.mark.parametrize("given", [None, 3, 0.5, True, "text", b"bytes", [1, 2], [1.5], (3,), [[1], [2]], [np.zeros(2)],
                                   [{(1, 2): "text"}]], ids=repr)
def test_what_is_no_module_is_an_error(given):
    for take in (nn.state_dict, lambda it: nn.load_state_dict(it, {}, strict=False)):
        with pytest.raises((TypeError, pg.UserError), match="pass a module|would not be saved"):
            take(given)


class Counted:
    def __init__(self):
        self.weight, self.step, self.options = tensor(1.0), 3, {"lr": 0.1}


@pytest.mark.parametrize("value", [3, 0.5, "text", True, np.zeros(2), np.float32(1), {"lr": 3}, [1, 2], object()], ids=repr)
def test_values_that_a_state_would_leave_out_are_errors(value, tmp_path):
    given = {"net": Counted(), "step": value}
    kind = {dict: "int", list: "int"}.get(type(value), type(value).__name__)
    for take in (nn.state_dict, lambda it: nn.save(it, tmp_path / "a.safetensors"),
                 lambda it: nn.save_sharded(it, tmp_path / "folder"), lambda it: nn.load_state_dict(it, {}, strict=False)):
        with pytest.raises(pg.UserError, match=rf"'step[.\w]*' is of the type {kind}, .*: give a Tensor of it"):
            take(given)
    assert not list(tmp_path.iterdir()) and len(nn.parameters(given)) == 0


def test_values_without_tensors_that_a_state_may_have():
    sgd = optim.SGD(nn.parameters(nn.Linear(1, 1)), lr=0.1)
    given = {"net": Counted(), "act": pg.relu, "none": None, "opt": sgd, "list": [], "more": {"layer": nn.Sequential(pg.relu)}}
    given["self"] = given
    assert list(nn.state_dict(given)) == ["net.weight"]


# ---- Loading ----


def test_loading_assigns_and_casts_floats():
    net, layer = Net(), nn.Linear(2, 1)
    before = layer.weight
    assert nn.load_state_dict(layer, {"weight": np.array([[1, 2]], np.float64),
                                      "bias": tensor(3.0)}) == []
    assert layer.weight.tolist() == before.tolist() == [[1.0, 2.0]]
    assert layer.weight.dtype == pg.float32 and layer.weight.requires_grad
    state = {name: value.numpy() * 0 for name, value in nn.state_dict(net).items()}
    nn.load_state_dict(net, state)
    assert all(np.all(value.numpy() == 0) for value in nn.state_dict(net).values())


def test_states_of_pytorch_load_as_they_are():
    torch = pytest.importorskip("torch")
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    ours = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4))
    assert nn.load_state_dict(ours, theirs.state_dict()) == []
    state = pg.from_torch_state(theirs.state_dict())
    assert state["1.num_batches_tracked"].dtype == pg.int64
    for name, value in theirs.state_dict().items():
        assert np.array_equal(nn.state_dict(ours)[name].numpy(), value.numpy())
        assert np.array_equal(state[name].numpy(), value.numpy())
    theirs[0].weight.data = theirs[0].weight.data.to(torch.bfloat16).t().contiguous().t()
    nn.load_state_dict(ours, theirs.state_dict())
    assert np.array_equal(ours[0].weight.numpy(), theirs[0].weight.detach().float().numpy())


def test_strict_loading_reports_differences_and_assigns_nothing():
    layer = nn.Linear(2, 2)
    before = layer.bias.tolist()
    state = {"weight": np.zeros((3, 2), np.float32), "bias": np.zeros(2, np.float32),
             "other": np.zeros(1, np.float32)}
    with pytest.raises(pg.UserError) as raised:
        nn.load_state_dict(layer, state)
    for text in ("shape", "weight", "(2, 2)", "(3, 2)", "unexpected", "other"):
        assert text in str(raised.value)
    assert layer.bias.tolist() == before
    found = nn.load_state_dict(layer, state, strict=False)
    assert [(each.kind, each.name) for each in found] == [("shape", "weight"),
                                                          ("unexpected", "other")]
    assert "(2, 2)" in found[0].in_module and "(3, 2)" in found[0].in_state
    assert layer.bias.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("state", "error"), [
    ({"weight": "text"}, TypeError), ({1: np.zeros(2)}, TypeError), ({"weight": None}, TypeError),
    ([1, 2], (TypeError, ValueError)), ({"weight": np.zeros((1, 1), np.int64)}, ValueError),
    ({"weight": np.array(["a"])}, TypeError), ({"weight": np.array([object()])}, TypeError)])
def test_states_that_are_none_are_errors(state, error):
    with pytest.raises(error):
        nn.load_state_dict(nn.Linear(1, 1, bias=False), state)


# ---- Files ----


def test_safetensors_round_trip(tmp_path):
    net, path = Net(), tmp_path / "net.safetensors"
    nn.save(net, path)
    other = Net()
    assert nn.load(other, str(path)) == []
    for name, value in nn.state_dict(net).items():
        assert np.array_equal(value.numpy(), nn.state_dict(other)[name].numpy()), name
    state = nn.safe_load(path)
    assert sorted(state) == sorted(NAMES)
    nn.safe_save({"x": tensor(1.0, 2.0), "y": np.arange(3)}, path)
    assert nn.safe_load(path)["y"].tolist() == [0, 1, 2]
    assert nn.load({"x": tensor(0.0, 0.0)}, path, strict=False)[0].name == "y"


def test_safetensors_files_are_those_of_the_package(tmp_path):
    files = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "a.safetensors"
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([1, -2], np.int64)}
    nn.safe_save(arrays, path)
    read = files.load_file(path)
    assert all(np.array_equal(read[name], value) for name, value in arrays.items())
    files.save_file(arrays, path)
    assert nn.safe_load(path)["a"].tolist() == arrays["a"].tolist()


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int16, np.int32, np.int64,
                                   np.uint64, np.float16, np.float32, np.float64])
def test_npy_and_npz_files_are_numpys(tmp_path, dtype):
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
    pg.save_npy(pg.Tensor(array), tmp_path / "ours.npy")
    read = np.load(tmp_path / "ours.npy")
    assert read.dtype == array.dtype and np.array_equal(read, array)
    np.save(tmp_path / "theirs.npy", array)
    loaded = pg.load_npy(tmp_path / "theirs.npy")
    assert loaded.numpy().dtype == array.dtype and np.array_equal(loaded.numpy(), array)
    for compressed in (False, True):
        pg.save_npz({"a": array, "b": pg.Tensor(array).sum()}, tmp_path / "ours.npz", compressed)
        assert np.array_equal(np.load(tmp_path / "ours.npz")["a"], array)
    np.savez(tmp_path / "theirs.npz", a=array, b=array[:1])
    state = pg.load_npz(tmp_path / "theirs.npz")
    assert list(state) == ["a", "b"] and np.array_equal(state["b"].numpy(), array[:1])


def test_unreadable_files_are_errors(tmp_path):
    damaged = tmp_path / "damaged"
    damaged.write_bytes(b"no file of tensors")
    for read in (nn.safe_load, pg.load_npy, pg.load_npz):
        with pytest.raises(ValueError, match="damaged"):
            read(damaged)
        with pytest.raises(ValueError, match="missing"):
            read(tmp_path / "missing")
        with pytest.raises(TypeError):
            read(3)
    with pytest.raises(ValueError):
        nn.safe_save({"a": tensor(1.0)}, tmp_path / "no" / "folder")


# ---- Conversions ----


def test_modules_change_dtype_and_device_in_place():
    layer = nn.BatchNorm(2)
    weight = layer.weight
    assert nn.to(layer, "float64") is layer
    assert weight.dtype == layer.running_var.dtype == pg.float64
    assert layer.num_batches_tracked.dtype == pg.int64
    nn.to(layer, pg.float16)
    assert weight.dtype == pg.float16
    nn.to(layer, dtype="float32", device=pg.default_device())
    assert weight.dtype == pg.float32 and weight.device.startswith(pg.default_device())
    with pytest.raises(ValueError):
        nn.to(layer, "int32")
    with pytest.raises(ValueError, match="NOWHERE"):
        nn.to(layer, "NOWHERE")
    with pytest.raises(TypeError):
        nn.to(layer, 3)


def test_the_same_state_from_many_threads():
    net = Net()
    found = []

    def read():
        for _ in range(50):
            found.append(sum(float(value.sum().item()) for value in nn.state_dict(net).values()))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 200 and len(set(found)) == 1
