"""Meshes, specs and sharded tensors; modules, optimisers and pipelines on them."""
import copy
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import plugrad as pg
from plugrad import distributed, nn, optim

CPU2 = ["CPU", "CPU"]


@pytest.fixture
def mesh():
    return pg.Mesh({"data": 2}, CPU2)


@pytest.fixture
def square():
    return pg.Mesh([("data", 2), ("model", 2)], CPU2 * 2)


def values(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) * 0.25 - 2


def test_a_mesh_has_axes_and_a_name(mesh, square):
    assert square.axes == {"data": 2, "model": 2} and square.size() == 4
    assert square.size("model") == square.size(axis="model") == 2
    assert mesh.device == repr(mesh) == "mesh data=2 (CPU, CPU)"
    same = pg.Mesh({"data": 2}, devices=CPU2)
    assert same == mesh and hash(same) == hash(mesh) and mesh != square and mesh != "mesh"
    with pytest.raises(ValueError, match="named data"):
        pg.Mesh([("data", 2), ("data", 2)], CPU2 * 2)
    with pytest.raises(ValueError, match="no axis \"model\""):
        mesh.size("model")
    with pytest.raises(ValueError, match="3 devices are given for 2 positions"):
        pg.Mesh({"data": 2}, ["CPU"] * 3)


def test_axes_of_other_types_are_refused_by_name():
    for axes in ("data", 2, ["data"], {"data": "2"}, {1: 2}):
        with pytest.raises(pg.UserError, match=r"\[Mesh\] the axes are a dict of names and sizes, as {\"data\": 2}") as raised:
            pg.Mesh(axes, CPU2)
        assert isinstance(raised.value, TypeError) and str(raised.value).endswith(f"not {axes!r}")
    for devices in ("CPU", 2, [1, 2]):
        with pytest.raises(TypeError, match="name of a device for each position, not") as raised:
            pg.Mesh({"data": 2}, devices)
        assert str(raised.value).endswith(repr(devices))


def test_a_mesh_is_copied_and_pickled(mesh, square):
    assert mesh.devices == CPU2 and mesh.ranks == [0]
    assert copy.copy(mesh) is mesh and copy.deepcopy([mesh])[0] is mesh
    for one in (mesh, square):
        loaded = pickle.loads(pickle.dumps(one))
        assert loaded == one and loaded.axes == one.axes and loaded.devices == one.devices
    assert list(pickle.loads(pickle.dumps(square)).axes) == ["data", "model"]
    for spec in (pg.ShardSpec("data", None), pg.ShardSpec(None, partial_sum="data")):
        assert copy.copy(spec) == copy.deepcopy(spec) == pickle.loads(pickle.dumps(spec)) == spec


def test_a_mesh_under_a_launcher_says_that_init_was_not_called(monkeypatch):
    makers = (lambda: pg.Mesh({"data": 64}), lambda: pg.Mesh({"data": 2}, ranks=[0, 1]))
    for ranks, asks in ((None, False), ("1", False), ("2", True)):
        if ranks:
            monkeypatch.setenv("PMI_RANK", "0")
            monkeypatch.setenv("PMI_SIZE", ranks)
        for make in makers:
            with pytest.raises(ValueError) as raised:
                make()
            hint = "mpiexec of MPICH (PMI_SIZE=2) started this process, which has not called distributed.init()"
            assert (hint in str(raised.value)) == asks


def test_a_spec_is_a_tuple_a_list_or_an_object(mesh):
    x = pg.Tensor(values(4, 6))
    spec = pg.ShardSpec(None, "data")
    assert spec.dims == (None, "data") and spec.partial_sum is None and repr(spec) == "[-, data]"
    for given in ((None, "data"), [None, "data"], spec):
        assert x.shard(mesh, given).shard_spec == spec
    assert x.shard(mesh).shard_spec == x.shard(mesh, None).shard_spec == pg.ShardSpec(None, None)
    partial = pg.ShardSpec(partial_sum="data")
    assert partial.partial_sum == "data" and partial != spec and hash(partial) != hash(spec)
    assert repr(x.shard(mesh, spec=partial).shard_spec) == "[-, -] partial add(data)"
    with pytest.raises(TypeError, match="\"data\", or None"):
        x.shard(mesh, (1,))
    with pytest.raises(pg.UserError, match=r"tuple with an entry for each dimension, not 'data'; did you mean \('data',\)\?"):
        x.shard(mesh, "data")
    with pytest.raises(TypeError, match="entry for each dimension, not 3$"):
        x.shard(mesh, 3)
    with pytest.raises(pg.UserError, match=r"not \('data', 'model'\); axes that cut one dimension together are \"data\+model\""):
        x.shard(mesh, (("data", "model"), None))
    with pytest.raises(TypeError, match=r"the rule \"\*\".*did you mean \('data',\)\?"):
        nn.shard(nn.Linear(2, 2), mesh, {"*": "data"})
    with pytest.raises(TypeError, match="a rule is a pattern and a spec"):
        nn.shard(nn.Linear(2, 2), mesh, ["*"])
    with pytest.raises(ValueError, match="has 3 dimensions"):
        x.shard(mesh, (None, None, "data"))


def test_a_sharded_tensor_computes_as_another(square):
    a, b = values(5, 6), values(6, 3)
    x, w = pg.Tensor(a).shard(square, ("data",)), pg.Tensor(b).shard(square, (None, "model"))
    y = x @ w
    assert y.is_sharded and y.mesh == square and y.shard_spec == pg.ShardSpec("data", "model")
    np.testing.assert_allclose(y.numpy(), a @ b, rtol=1e-6)
    assert [part.shape for part in y.shards()] == [(2, 1), (2, 2), (3, 1), (3, 2)]
    whole = y.unshard()
    assert not whole.is_sharded and whole.device == y.unshard("CPU").device == "CPU"
    np.testing.assert_allclose(whole.numpy(), a @ b, rtol=1e-6)
    with pytest.raises(ValueError, match="on no mesh"):
        _ = whole.mesh


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "float64"])
@pytest.mark.parametrize("rows", [3, 7000])  # larger values are read in other ways
@pytest.mark.parametrize("spec", [("data",), ()])
def test_sharded_tensors_are_read_as_others(mesh, dtype, rows, spec):
    wanted = (values(rows, 3) % 100).astype(dtype)
    x = pg.Tensor(wanted).shard(mesh, spec)
    for _ in range(2):  # lazy, then computed
        assert x.tolist() == wanted.tolist()
        for array in (np.asarray(x), np.asarray(memoryview(x)), x.numpy(), x.numpy(copy=True), np.from_dlpack(x.unshard())):
            np.testing.assert_array_equal(array, wanted)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)).numpy(), wanted)
        with pytest.raises((ValueError, BufferError), match="copy"):
            x.numpy(copy=False)


NUMBERS = [np.float32(2), np.float32(np.inf), np.float32(np.nan), np.float64(0.1), np.float16(-1.5), np.int64(2**62 + 1), np.int8(-3),
           np.uint64(2**64 - 1), np.uint8(200), np.bool_(True)]


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_numbers_of_numpy_lie_on_every_mesh(mesh, number):
    for plain in (pg.Tensor(values(4, 6)), pg.Tensor(np.arange(1, 4)), pg.Tensor([True, False])):
        cut = plain.shard(mesh, ("data",))
        beside = 0.1 if isinstance(number, float) else pg.Tensor(np.array(number))  # numpy.float64 is a float of Python
        for function in (lambda a, b: a * b, lambda a, b: b * a, lambda a, b: a == b, pg.maximum):
            wanted, found = function(plain, beside), function(cut, number)
            assert found.is_sharded and found.dtype == wanted.dtype == function(plain, number).dtype
            np.testing.assert_array_equal(found.numpy(), wanted.numpy())
    made = pg.Tensor([number, number])
    assert made.device == "CPU" and made.dtype == (pg.float32 if isinstance(number, float) else number.dtype)


def test_operations_and_what_moves_are_described(mesh):
    x, w = pg.Tensor(values(4, 6)).shard(mesh, (None, "data")), pg.Tensor(values(6, 3)).shard(mesh, ("data",))
    text = pg.describe_sharding((x @ w).exp2())
    moved, made = text.splitlines()[-2:]
    assert "all-reduce" in moved and moved.endswith("along data: 48 bytes") and made.endswith("Exp2 f32 (4, 3) [-, -]")
    assert pg.describe_sharding(tensor=pg.Tensor(1.0)) == ""


def test_a_tensor_changed_in_part_keeps_its_spec(mesh):
    plain = values(4, 3)
    x = pg.Tensor(plain).shard(mesh, ("data",)).realize()
    x[x > 2] = -1
    x[:, 1] = np.float32(7)
    x[...] = x + 1
    plain[plain > 2] = -1
    plain[:, 1] = 7
    assert x.shard_spec == pg.ShardSpec("data", None)
    np.testing.assert_array_equal(x.numpy(), plain + 1)


def test_lists_of_indices_are_checked(mesh):
    x = pg.Tensor(values(4, 3)).shard(mesh, ("data",))
    assert x[[3, 0]].tolist() == values(4, 3)[[3, 0]].tolist()
    for take in (lambda: x[[7]], lambda: x[np.array([0, -5])], lambda: x[:, [5]], lambda: x.__setitem__([7], 1.0)):
        with pytest.raises(IndexError, match=r"\[index\] index (7|-5|5) \(element [01]\) is out of range"):
            take()


def test_parts_become_one_tensor(mesh):
    parts = [pg.Tensor(values(2, 3)), pg.Tensor(values(3, 3))]
    x = pg.from_shards(mesh, ("data",), (5, 3), parts)
    assert np.array_equal(x.numpy(), np.concatenate([values(2, 3), values(3, 3)]))
    with pytest.raises(ValueError, match="position 0 of the mesh takes"):
        pg.from_shards(mesh, ("data",), shape=(5, 3), parts=parts[::-1])
    whole = pg.from_shards(mesh, None, (2, 3), parts[:1] * 2)
    assert whole.shard_spec == pg.ShardSpec(None, None) and np.array_equal(whole.numpy(), values(2, 3))
    with pytest.raises(ValueError, match=r"the shape is \(-1, 3\); sizes are 0 or more"):
        pg.from_shards(mesh, ("data",), (-1, 3), parts)


class Meshed:
    """Knows its mesh, and cuts what it is called with."""

    def __init__(self, mesh):
        self.mesh, self.spec, self.linear = mesh, pg.ShardSpec("data"), nn.Linear(3, 4)

    def __call__(self, x):
        return self.linear(x.shard(self.mesh, self.spec))


def test_a_module_that_holds_its_mesh_is_cloned_and_pickled(mesh):
    net = nn.data_parallel(Meshed(mesh), mesh)
    x = pg.Tensor(values(4, 3))
    for made in (nn.clone(net), copy.copy(net), nn.Ema(net, 0.9).module, nn.shard(pickle.loads(pickle.dumps(net)), mesh)):
        assert made.mesh == mesh and made.spec == net.spec
        np.testing.assert_array_equal(made(x).numpy(), net(x).numpy())


def test_a_mesh_where_a_device_is_named_is_refused_by_name(mesh):
    x = pg.Tensor(values(4, 3))
    for make in (lambda: x.to(mesh), lambda: x.to(device=mesh), lambda: nn.to(nn.Linear(3, 4), mesh),
                 lambda: nn.to(nn.Linear(3, 4), device=mesh), lambda: pg.Tensor.zeros(2, device=mesh)):
        with pytest.raises(pg.UserError, match=r"a Mesh is no name of a device; give mesh.device, .* x.shard\(mesh, spec\), .* nn.shard\(net, mesh"):
            make()


def test_advice_in_errors_is_right_in_python(mesh):
    x = pg.Tensor(values(4, 3))
    with pytest.raises(pg.UserError, match=r"; x.shard\(mesh\) puts all of x on every device"):
        x.shard(mesh, ("data",)) + x
    with pytest.raises(pg.UserError, match="at least one axis, with a name such as data and a size$"):
        pg.Mesh({})
    with pytest.raises(pg.UserError, match=r"by shard\(net, mesh\) or data_parallel\(net, mesh\)"):
        optim.SGD(nn.parameters(nn.Linear(3, 4)), lr=0.1).shard_state("data")


class Block:
    def __init__(self):
        self.attention = nn.MultiHeadAttention(8, 2)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def __call__(self, x):
        return self.down(self.up(x + self.attention(x)).relu())


def test_modules_move_by_rules(mesh):
    block = Block()
    before = nn.parameters(block)
    assert nn.shard(block, mesh, {"attention.*": None, "*.weight": ("data",)}) is block
    assert block.up.weight.shard_spec == pg.ShardSpec("data", None)
    assert block.attention.q_proj.weight.shard_spec == pg.ShardSpec(None, None)
    assert all(tensor.requires_grad for tensor in before) and len(nn.parameters(block)) == len(before)
    with pytest.raises(ValueError, match="\"middle.*\" matches no tensor"):
        nn.shard(block, mesh, [("middle.*", ("data",))])
    nn.to(block, "CPU")
    assert not block.up.weight.is_sharded


def test_rules_keep_tensors_without_dimensions_whole(mesh):
    norm = nn.shard(nn.BatchNorm(4), mesh, [("*", ("data",))])
    assert norm.weight.shard_spec == pg.ShardSpec("data")
    assert norm.num_batches_tracked.mesh == mesh and norm.num_batches_tracked.shard_spec == pg.ShardSpec()
    norm(pg.Tensor(values(2, 4, 3, 3)).shard(mesh, ("data",))).realize()
    assert norm.num_batches_tracked.item() == 1
    with pytest.raises(ValueError, match="running_mean: .* has 2 dimensions"):
        nn.shard(norm, mesh, [("*", (None, "data"))])


def test_tensor_parallel_cuts_heads_and_pairs(mesh):
    rules = dict(nn.tensor_parallel(Block(), "data"))
    assert rules["attention.q_proj.weight"] == rules["up.weight"] == pg.ShardSpec("data")
    assert rules["attention.out_proj.weight"] == rules["down.weight"] == pg.ShardSpec(None, "data")
    assert rules["up.bias"] == pg.ShardSpec("data") and "down.bias" not in rules


def losses(place, shard=lambda opt: None, cut=lambda x: x):
    pg.Tensor.manual_seed(3)
    block = place(Block())
    opt = optim.Adam(nn.parameters(block), lr=0.01)
    shard(opt)
    found = []
    for step in range(3):
        x, y = (cut(pg.Tensor(values(4, 3, 8) * scale + step)) for scale in (1, -0.5))
        opt.zero_grad()
        loss = (block(x) - y).square().mean()
        loss.backward()
        optim.clip_grad_norm(opt.parameters, 0.5)
        opt.step()
        found.append(loss.item())
    return found


def test_training_is_that_of_one_device(square):
    expected = losses(lambda net: net)
    by_rows = dict(cut=lambda x: x.shard(square, ("data",)))
    for place in (lambda net: nn.data_parallel(net, square),
                  lambda net: nn.shard(net, square, nn.tensor_parallel(net, "model"))):
        for shard in (lambda opt: None, lambda opt: opt.shard_state("data")):
            assert losses(place, shard, **by_rows) == pytest.approx(expected, rel=1e-5)


def test_the_state_of_optimisers_is_cut(mesh):
    layer = nn.data_parallel(nn.Linear(4, 6), mesh)
    opt = optim.OptimizerGroup(optim.SGD([layer.weight], lr=0.1, momentum=0.9),
                               optim.Adam([layer.bias]))
    opt.shard_state("data")
    state = nn.state_dict(opt)
    assert state["0.velocity.0"].shard_spec == pg.ShardSpec("data", None)
    assert state["1.mean.0"].shard_spec == pg.ShardSpec("data")
    with pytest.raises(ValueError, match="no axis \"model\""):
        opt[0].shard_state("model")
    with pytest.raises(ValueError, match="no parameter is on a mesh"):
        optim.Adam(nn.parameters(nn.Linear(2, 2))).shard_state("data")


def test_a_pipeline_trains_as_its_layers(mesh):
    def layers():
        pg.Tensor.manual_seed(5)
        return nn.Sequential(nn.Linear(5, 8), pg.relu, nn.Linear(8, 3))

    def trained(net, loss_of):
        opt = optim.Adam(nn.parameters(net), lr=0.02)
        found = []
        for _ in range(3):
            opt.zero_grad()
            loss = loss_of(pg.Tensor(values(7, 5)), pg.Tensor(values(7, 3)))
            loss.backward()
            opt.step()
            found.append(loss.item())
        return found

    plain = layers()
    expected = trained(plain, lambda x, y: pg.mse_loss(plain(x), y))
    for last in ("CPU", mesh.device, mesh):
        net = nn.Pipeline(layers(), [(0, "CPU"), (2, last)], 3)
        assert list(nn.state_dict(net)) == ["0.weight", "0.bias", "2.weight", "2.bias"]
        assert net(pg.Tensor(values(2, 5))).device == (mesh.device if last is mesh else last)
        assert trained(net, lambda x, y: net.loss(x, y, pg.mse_loss)) == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match=r"stages begin at the layers \[1\]"):
        nn.Pipeline(layers(), [(1, "CPU")], 2)
    with pytest.raises(pg.UserError, match="of the type Linear; give an nn.Sequential"):
        nn.Pipeline(nn.Linear(3, 3), [(0, "CPU")], 2)
    with pytest.raises(ValueError, match="give 1 or more"):
        nn.Pipeline(layers(), [(0, "CPU")], 0)
    with pytest.raises(ValueError, match="at least 3, the number of micro-batches"):
        net.loss(pg.Tensor(values(2, 5)), pg.Tensor(values(2, 3)), pg.mse_loss)


def test_a_checkpoint_is_resumed_on_another_mesh(mesh, square, tmp_path):
    def started(place):
        pg.Tensor.manual_seed(5)
        net = nn.Sequential(nn.Linear(5, 7), pg.relu, nn.Linear(7, 3))
        place(net)
        opt = optim.Adam(nn.parameters(net), lr=0.01)
        return {"net": net, "opt": opt}

    def losses(run, count):
        found = []
        for _ in range(count):
            x, y = pg.Tensor(values(9, 5)), pg.Tensor(values(9, 3))
            on = nn.parameters(run["net"])[0]
            if on.is_sharded:
                x, y = x.shard(on.mesh, ("data",)), y.shard(on.mesh, ("data",))
            run["opt"].zero_grad()
            loss = pg.mse_loss(run["net"](x), y)
            loss.backward()
            run["opt"].step()
            found.append(loss.item())
        return found

    expected = losses(started(lambda net: net), 6)
    first = started(lambda net: nn.data_parallel(net, mesh))
    first["opt"].shard_state("data")
    assert losses(first, 3) == pytest.approx(expected[:3], rel=1e-5)
    nn.save_sharded(first, tmp_path / "checkpoint")
    for place in (lambda net: nn.shard(net, square, nn.tensor_parallel(net, "model")), lambda net: net):
        resumed = started(place)
        losses(resumed, 1)
        assert nn.load_sharded(resumed, str(tmp_path / "checkpoint")) == []
        assert losses(resumed, 3) == pytest.approx(expected[3:], rel=1e-5)
    with pytest.raises(pg.UserError, match="opt.mean.0"):
        nn.load_sharded({"net": first["net"]}, tmp_path / "checkpoint")
    skipped = nn.load_sharded({"net": first["net"]}, tmp_path / "checkpoint", strict=False)
    assert {each.kind for each in skipped} == {"unexpected"}
    with pytest.raises(pg.UserError, match="no complete sharded checkpoint"):
        nn.load_sharded(first, tmp_path)


def test_a_model_of_onnx_runs_on_one_device(mesh, tmp_path):
    x = pg.Tensor(values(4, 5))
    pg.onnx.export(lambda a: a.relu(), [x], tmp_path / "a.onnx")
    model = pg.onnx.load(tmp_path / "a.onnx")
    with pytest.raises(pg.UserError, match=r"an input is on mesh data=2 \(CPU, CPU\).*pass x.unshard\(\)"):
        model(x.shard(mesh, ("data",)))
    assert np.array_equal(model(x.shard(mesh, ("data",)).unshard())[0].numpy(), np.maximum(values(4, 5), 0))
    with pytest.raises(pg.UserError, match="a model runs on one device, not on mesh"):
        pg.onnx.load(tmp_path / "a.onnx", device=mesh.device)


ALONE = """
from plugrad import UserError, distributed
try:
    distributed.rank()
except UserError:
    print("not yet")
distributed.init()
distributed.barrier()
print(distributed.is_initialized(), distributed.rank(), distributed.size())
"""


def test_without_a_launcher_there_is_one_process():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=250,
                          check=True)
    assert done.stdout == "not yet\nTrue 0 1\n"
    assert not distributed.is_initialized()


EXAMPLES = Path(__file__).parents[2] / "docs/examples/python"


def printed_losses(name, *arguments):
    done = subprocess.run([sys.executable, str(EXAMPLES / name), *arguments], capture_output=True,
                          text=True, timeout=300, check=True)
    return [float(line.split()[-1]) for line in done.stdout.splitlines() if line.startswith("step ")]


@pytest.mark.parametrize("way", ["tensor", "pipeline"])
def test_the_transformer_trains_as_on_one_device(way):
    expected = printed_losses("gpt_parallel.py", "one")
    assert len(expected) == 12
    assert printed_losses("gpt_parallel.py", way) == pytest.approx(expected, rel=1e-5)


def test_mnist_trains_as_on_one_device():
    try:
        pg.data.mnist(download=False)
    except pg.Error:
        pytest.skip("the files of MNIST are not on this machine")
    expected, actual = (printed_losses("mnist_parallel.py", count) for count in ("1", "2"))
    assert len(expected) == 40 and actual[:10] == pytest.approx(expected[:10], rel=1e-5)
