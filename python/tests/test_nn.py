"""Layers: values against NumPy's formulas and PyTorch, attributes, modes and containers."""
import copy
import pickle

import numpy as np
import pytest

import plugrad as pg
from plugrad import nn

RANDOM = np.random.default_rng(20)


def values(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def near(actual, expected, atol: float = 2e-5, rtol: float = 1e-4) -> None:
    if isinstance(actual, pg.Tensor):
        actual = actual.numpy()
    expected = expected.detach().numpy() if hasattr(expected, "detach") else expected
    np.testing.assert_allclose(actual, expected, rtol, atol)


def equal_weights(ours: object, theirs) -> None:
    """Gives our layer PyTorch's weights, by their names."""
    state = {name: tensor.numpy() for name, tensor in theirs.state_dict().items()}
    assert nn.load_state_dict(ours, state) == []


# ---- Layers by formula ----


def test_linear_is_x_times_the_transposed_weight_plus_bias():
    layer = nn.Linear(4, 3)
    x = values(2, 5, 4)
    near(layer(x), x @ layer.weight.numpy().T + layer.bias.numpy())
    assert layer.weight.shape == (3, 4) and layer.weight.requires_grad
    bound = 1 / np.sqrt(4)
    assert np.abs(layer.weight.numpy()).max() <= bound
    without = nn.Linear(4, 3, bias=False)
    assert without.bias is None
    near(without(x), x @ without.weight.numpy().T)


def test_embedding_reads_rows():
    layer = nn.Embedding(7, 3)
    indices = np.array([[1, 6], [0, 1]], np.int32)
    near(layer(indices), layer.weight.numpy()[indices])


def test_dropout_zeroes_and_scales_in_training_only():
    layer = nn.Dropout(0.25)
    x = np.ones((1000,), np.float32)
    dropped = layer(x).numpy()
    assert set(np.round(np.unique(dropped), 5)) == {0.0, np.float32(round(1 / 0.75, 5))}
    assert 0.15 < np.mean(dropped == 0) < 0.35
    with nn.training(False):
        near(layer(x), x)
    assert layer.p == 0.25
    layer.p = 0.0
    near(layer(x), x)
    inputs = pg.Tensor([1.0, 2.0], requires_grad=True)
    nn.Dropout(1.0)(inputs).sum().backward()
    assert inputs.grad.tolist() == [0.0, 0.0]


def test_normalisations_follow_their_formulas():
    x = values(3, 6, 4)
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    near(nn.LayerNorm(4)(x), (x - mean) / np.sqrt(var + 1e-5))
    near(nn.RMSNorm(4)(x), x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6))
    grouped = x.reshape(3, 2, -1)
    expected = (grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(
        grouped.var(-1, keepdims=True) + 1e-5)
    near(nn.GroupNorm(2, 6)(x), expected.reshape(x.shape))
    near(nn.InstanceNorm(6)(x), (x - mean) / np.sqrt(var + 1e-5))


def test_batchnorm_averages_its_statistics_in_training():
    layer = nn.BatchNorm(3, momentum=0.25)
    x = values(8, 3, 5)
    mean, var = x.mean((0, 2)), x.var((0, 2))
    expected = (x - mean[:, None]) / np.sqrt(var[:, None] + 1e-5)
    near(layer(x), expected)
    near(layer.running_mean, 0.25 * mean)
    near(layer.running_var, 0.75 + 0.25 * x.var((0, 2), ddof=1))
    assert layer.num_batches_tracked.item() == 1
    with nn.training(False):
        near(layer(x), (x - layer.running_mean.numpy()[:, None]) / np.sqrt(
            layer.running_var.numpy()[:, None] + 1e-5))
    assert layer.num_batches_tracked.item() == 1


# ---- Layers against PyTorch ----


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("kind", "size", "options"), [
    ("Conv", 7, {}), ("Conv", 7, {"stride": 2, "padding": 1}),
    ("Conv", 7, {"dilation": 2, "groups": 2, "bias": False}), ("ConvTranspose", 4, {}),
    ("ConvTranspose", 4, {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2})])
def test_convolutions_equal_pytorchs(kind, rank, size, options):
    torch = pytest.importorskip("torch")
    theirs, ours = (getattr(module, f"{kind}{rank}d")(4, 6, 3, **options)
                    for module in (torch.nn, nn))
    equal_weights(ours, theirs)
    x = values(2, 4, *[size] * rank)
    near(ours(x), theirs(torch.from_numpy(x)))


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN", "RNN relu"])
def test_recurrent_layers_equal_pytorchs(name, bidirectional, batch_first):
    torch = pytest.importorskip("torch")
    name, *relu = name.split()
    options = {"bidirectional": bidirectional, "batch_first": batch_first}
    options |= {"nonlinearity": "relu"} if relu else {}
    theirs = getattr(torch.nn, name)(3, 4, num_layers=2, **options)
    ours = getattr(nn, name)(3, 4, num_layers=2, **options)
    equal_weights(ours, theirs)
    x, h, c = values(2, 5, 3), values(4 if bidirectional else 2, 2, 4), values(
        4 if bidirectional else 2, 2, 4)
    x = x if batch_first else np.ascontiguousarray(x.transpose(1, 0, 2))
    state = (h, c) if name == "LSTM" else h
    given = tuple(map(torch.from_numpy, state)) if name == "LSTM" else torch.from_numpy(h)
    output, last = ours(x, state)
    expected, expected_last = theirs(torch.from_numpy(x), given)
    near(output, expected)
    if name == "LSTM":
        near(last[0], expected_last[0])
        near(last[1], expected_last[1])
    else:
        near(last, expected_last)
    assert ours(x)[0].shape == output.shape  # from zeros


@pytest.mark.parametrize("name", ["LSTMCell", "GRUCell", "RNNCell", "RNNCell relu"])
def test_recurrent_cells_equal_pytorchs(name):
    torch = pytest.importorskip("torch")
    name, *relu = name.split()
    options = {"nonlinearity": "relu"} if relu else {}
    theirs, ours = (getattr(module, name)(3, 4, **options) for module in (torch.nn, nn))
    equal_weights(ours, theirs)
    x, h, c = values(2, 3), values(2, 4), values(2, 4)
    if name == "LSTMCell":
        h1, c1 = ours(x, (h, c))
        expected = theirs(*map(torch.from_numpy, (x,)), (torch.from_numpy(h), torch.from_numpy(c)))
        near(h1, expected[0])
        near(c1, expected[1])
    else:
        near(ours(x, h), theirs(torch.from_numpy(x), torch.from_numpy(h)))


def test_rnn_refuses_other_nonlinearities():
    for layer in (nn.RNN, nn.RNNCell):
        with pytest.raises(ValueError, match='nonlinearity "gelu" is unknown'):
            layer(3, 4, nonlinearity="gelu")


def test_lengths_of_sequences_are_pytorchs_packed_sequences():
    torch = pytest.importorskip("torch")
    theirs, ours = torch.nn.GRU(3, 4), nn.GRU(3, 4)
    equal_weights(ours, theirs)
    x, lengths = values(5, 2, 3), [5, 2]
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.from_numpy(x), lengths)
    expected, last = theirs(packed)
    output, state = ours(x, lengths=np.array(lengths, np.int32))
    near(output, torch.nn.utils.rnn.pad_packed_sequence(expected)[0])
    near(state, last)


def test_attention_equals_pytorchs():
    torch = pytest.importorskip("torch")
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    ours = nn.MultiHeadAttention(8, 2)
    weights = theirs.in_proj_weight.detach().numpy().reshape(3, 8, 8)
    biases = theirs.in_proj_bias.detach().numpy().reshape(3, 8)
    for layer, weight, bias in zip((ours.q_proj, ours.k_proj, ours.v_proj), weights, biases):
        layer.weight, layer.bias = weight, bias
    ours.out_proj.weight = theirs.out_proj.weight.detach().numpy()
    ours.out_proj.bias = theirs.out_proj.bias.detach().numpy()
    query, key = values(2, 3, 8), values(2, 5, 8)
    near(ours(query, key, key),
         theirs(*map(torch.from_numpy, (query, key, key)), need_weights=False)[0])
    mask = torch.nn.Transformer.generate_square_subsequent_mask(3)
    q = torch.from_numpy(query)
    near(ours(query, causal=True), theirs(q, q, q, attn_mask=mask, need_weights=False)[0])


def test_normalisations_equal_pytorchs():
    torch = pytest.importorskip("torch")
    x = values(4, 6, 5, 5)
    pairs = [(nn.GroupNorm(3, 6), torch.nn.GroupNorm(3, 6)),
             (nn.LayerNorm((6, 5, 5)), torch.nn.LayerNorm((6, 5, 5))),
             (nn.InstanceNorm(6, affine=True), torch.nn.InstanceNorm2d(6, affine=True)),
             (nn.BatchNorm(6), torch.nn.BatchNorm2d(6))]
    for ours, theirs in pairs:
        with torch.no_grad():
            for parameter in theirs.parameters():
                parameter.copy_(torch.from_numpy(values(*parameter.shape)))
        equal_weights(ours, theirs)
        near(ours(x), theirs(torch.from_numpy(x)), atol=1e-4)


def test_gradients_equal_pytorchs():
    torch = pytest.importorskip("torch")
    theirs = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4),
                                 torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64, 3))
    ours = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm(4), pg.relu, lambda x: x.flatten(1),
                         nn.Linear(64, 3))
    equal_weights(ours, theirs)
    x = values(2, 1, 6, 6)
    (ours(x) ** 2).mean().backward()
    (theirs(torch.from_numpy(x)) ** 2).mean().backward()
    gradients = {name: tensor.grad for name, tensor in nn.state_dict(ours).items()
                 if tensor.requires_grad}
    for name, parameter in theirs.named_parameters():
        near(gradients[name], parameter.grad, atol=1e-4)


# ---- Attributes and constructors ----


def test_weights_are_assignable_and_shared_by_handle():
    layer = nn.Linear(2, 2)
    before = layer.weight
    layer.weight = pg.Tensor([[1.0, 2.0], [3.0, 4.0]])
    layer.bias = None
    near(layer(np.array([1, 1], np.float32)), [3, 7])
    assert before.shape == (2, 2) and not np.array_equal(before.numpy(), layer.weight.numpy())
    layer.weight.assign(0)  # the attribute denotes the layer's own tensor
    near(layer(np.array([1, 1], np.float32)), [0, 0])
    layer.weight += 1
    near(layer(np.array([1, 1], np.float32)), [2, 2])
    with pytest.raises(TypeError):
        layer.weight = "no tensor"
    with pytest.raises(AttributeError):
        layer.unknown = 1


def test_options_are_attributes():
    conv = nn.Conv2d(1, 2, 3, stride=(1, 2), padding="same", groups=1)
    assert conv.stride == (1, 2) and conv.padding == "same" and conv.groups == 1
    assert conv.dtype is None and conv.dilation == (1,)
    conv.stride, conv.padding, conv.dtype = 2, ((0, 1), (1, 0)), "float64"
    assert conv.stride == (2,) and conv.padding == ((0, 1), (1, 0)) and conv.dtype == pg.float64
    norm = nn.BatchNorm(3)
    assert (norm.eps, norm.momentum, norm.affine) == (1e-5, 0.1, True)
    norm.momentum = 0.5
    assert norm.momentum == 0.5
    assert nn.LayerNorm((2, 3)).shape == (2, 3)
    lstm = nn.LSTM(2, 3, layers=2, dropout=0.5)
    assert lstm.layers == 2 and lstm.dropout == 0.5 and not lstm.bidirectional
    with pytest.raises(AttributeError):
        lstm.layers = 3


def test_recurrent_weights_have_pytorchs_names():
    lstm = nn.LSTM(2, 3, layers=2, bidirectional=True)
    assert lstm.weight_ih_l1_reverse.shape == (12, 6)
    lstm.bias_hh_l0 = np.zeros(12, np.float32)
    assert lstm.bias_hh_l0.tolist() == [0.0] * 12
    with pytest.raises(AttributeError, match="weight_ih_l2"):
        lstm.weight_ih_l2
    with pytest.raises(TypeError, match="weight"):
        lstm.weight_ih_l0 = None


def test_layers_before_their_constructor_are_errors():
    class Late(nn.LSTM):
        def __init__(self):
            self.early = 1
            with pytest.raises(TypeError):
                copy.copy(self)
            with pytest.raises(TypeError):
                repr(self)
            super().__init__(2, 3)

    assert Late().early == 1
    for call in (lambda: nn.LSTM.__copy__(3), lambda: nn.LSTM.__repr__(3),
                 lambda: nn.LSTM.__setattr__(3, "a", 1), lambda: nn.Linear.__call__(3, 4),
                 lambda: pg.Tensor.__deepcopy__(3, {})):
        with pytest.raises((TypeError, AttributeError)):
            call()


def test_layers_of_layers_share_what_is_assigned():
    attention, linear = nn.MultiHeadAttention(4, 2), nn.Linear(4, 4)
    attention.q_proj = linear
    linear.weight.assign(0)
    assert attention.q_proj.weight.abs().sum().item() == 0
    attention.out_proj.bias = None
    assert "out_proj.bias" not in nn.state_dict(attention)


def test_constructors_take_pytorchs_names():
    assert nn.Linear(in_features=2, out_features=3).weight.shape == (3, 2)
    assert nn.Conv1d(in_channels=2, out_channels=3, kernel_size=4).weight.shape == (3, 2, 4)
    assert nn.Embedding(num_embeddings=5, embedding_dim=2).weight.shape == (5, 2)
    assert nn.LSTM(input_size=2, hidden_size=3, num_layers=2).layers == 2
    assert nn.MultiHeadAttention(embed_dim=4, num_heads=2).heads == 2


@pytest.mark.parametrize(("make", "error"), [
    (lambda: nn.Linear(-1, 2), ValueError),
    (lambda: nn.Linear("2", 2), TypeError),
    (lambda: nn.Linear(2), TypeError),
    (lambda: nn.Linear(2, 2, biass=True), TypeError),
    (lambda: nn.Linear(2.0, 2), TypeError),
    (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError),
    (lambda: nn.Conv2d(3, 4, (3, 3, 3)), ValueError),
    (lambda: nn.Conv2d(3, 4, 3, padding="sme"), TypeError),
    (lambda: nn.Dropout(1.5), ValueError),
    (lambda: nn.GroupNorm(4, 6), ValueError),
    (lambda: nn.LSTM(0, 3), ValueError),
    (lambda: nn.MultiHeadAttention(5, 2), ValueError),
    (lambda: nn.Linear(3, 2)(np.zeros((4, 2), np.float32)), ValueError),
    (lambda: nn.Linear(3, 2)("x"), TypeError),
    (lambda: nn.Embedding(3, 2)(np.zeros(3, np.float32)), (ValueError, TypeError)),
    (lambda: nn.LSTM(3, 2)(np.zeros((4, 1, 3), np.float32), (1.0,)), TypeError),
])
def test_misuses_have_pythons_classes(make, error):
    with pytest.raises(error):
        make()


def test_every_layer_has_a_docstring_and_a_repr():
    for name in ("Linear", "Embedding", "Dropout", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
                 "ConvTranspose2d", "ConvTranspose3d", "BatchNorm", "LayerNorm", "GroupNorm",
                 "InstanceNorm", "RMSNorm", "MultiHeadAttention", "LSTMCell", "GRUCell", "RNNCell",
                 "LSTM", "RNN",
                 "GRU"):
        assert getattr(nn, name).__doc__, name
    assert repr(nn.Linear(3, 2)) == "Linear(weight (2, 3) f32, bias (2,) f32)"
    assert repr(nn.Dropout()) == "Dropout()"


# ---- Containers, modes, copies ----


def test_sequential_applies_callables_in_order():
    net = nn.Sequential(nn.Linear(3, 4), pg.relu, nn.Linear(4, 2))
    x = values(5, 3)
    hidden = np.maximum(x @ net[0].weight.numpy().T + net[0].bias.numpy(), 0)
    near(net(x), hidden @ net[2].weight.numpy().T + net[2].bias.numpy())
    assert list(nn.state_dict(net)) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert len(net) == 3 and list(net)[1] is pg.relu
    net.append(pg.Tensor.sigmoid)
    assert net(x).shape == (5, 2)
    with pytest.raises(TypeError, match="callable"):
        nn.Sequential(3)


def test_training_mode_is_a_scope():
    assert nn.is_training()
    evaluation = nn.training(False)
    with evaluation:
        assert not nn.is_training()
        with nn.training():
            assert nn.is_training()
        with evaluation:
            assert not nn.is_training()
        assert not nn.is_training()
    assert nn.is_training()
    with pytest.raises(RuntimeError), nn.training(False):
        raise RuntimeError
    assert nn.is_training()
    with pytest.raises(ValueError, match="entered"):
        evaluation.__exit__(None, None, None)


def test_training_mode_belongs_to_a_thread():
    from concurrent.futures import ThreadPoolExecutor
    with nn.training(False), ThreadPoolExecutor(1) as pool:
        assert pool.submit(nn.is_training).result()


class Tied:
    def __init__(self):
        self.a, self.b, self.c = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)
        self.b.weight = self.a.weight
        self.again = self.a
        self.parts = [self.c, {"scale": pg.Tensor([2.0], requires_grad=True)}]
        self.own = self

    def __call__(self, x):
        return self.c(self.b(self.a(x))) * self.parts[1]["scale"]


@pytest.mark.parametrize("copied", [nn.clone, copy.deepcopy])
def test_copies_have_tensors_of_their_own_and_keep_ties(copied):
    net = Tied()
    made = copied(net)
    x = values(2, 3)
    near(made(x), net(x))
    assert made.again is made.a and made.parts[0] is made.c and made.own is made
    assert len(nn.parameters(made)) == len(nn.parameters(net)) == 6
    made.a.weight.assign(0)
    assert np.abs(made.b.weight.numpy()).max() == 0  # still tied
    assert np.abs(net.a.weight.numpy()).max() > 0
    assert all(tensor.requires_grad for tensor in nn.parameters(made))


def test_pickles_keep_ties():
    net = Tied()
    net.alias = net.a.weight  # another handle of the tensor
    made = pickle.loads(pickle.dumps(net))
    x = values(2, 3)
    near(made(x), net(x))
    assert made.again is made.a and made.parts[0] is made.c and made.own is made
    assert len(nn.parameters(made)) == len(nn.parameters(net)) == 6
    made.a.weight.assign(0)
    for tied in (made.b.weight, made.alias):
        assert np.abs(tied.numpy()).max() == 0
    assert np.abs(net.a.weight.numpy()).max() > 0


def test_a_shallow_copy_shares_tensors():
    layer = nn.LSTM(2, 3)
    made = copy.copy(layer)
    layer.weight_ih_l0.assign(0)
    assert np.abs(made.weight_ih_l0.numpy()).max() == 0


def test_subclasses_of_layers_keep_attributes_in_copies():
    class Scaled(nn.Linear):
        def __init__(self):
            super().__init__(2, 2)
            self.scale = pg.Tensor([3.0], requires_grad=True)

        def __call__(self, x):
            return super().__call__(x) * self.scale

    layer = Scaled()
    assert list(nn.state_dict(layer)) == ["weight", "bias", "scale"]
    made = copy.deepcopy(layer)
    assert type(made) is Scaled
    made.scale.assign(0)
    assert layer.scale.item() == 3
    near(made(values(1, 2)), np.zeros((1, 2)))


class Scaled(nn.Conv2d):
    def __init__(self, scale):
        super().__init__(2, 4, 3, groups=2, padding="same", dtype="float64", bias=False)
        self.scale = scale


@pytest.mark.parametrize("make", [
    lambda: nn.Linear(3, 2, bias=False), lambda: nn.Embedding(4, 2), lambda: nn.Dropout(0.25),
    lambda: nn.ConvTranspose1d(2, 3, 2, stride=2), lambda: nn.BatchNorm(3, affine=False),
    lambda: nn.LayerNorm((2, 3), eps=1e-3), lambda: nn.GroupNorm(2, 4), lambda: nn.InstanceNorm(3),
    lambda: nn.RMSNorm(3), lambda: nn.MultiHeadAttention(8, 4, kv_heads=2, bias=False),
    lambda: nn.LSTM(2, 3, layers=2, bidirectional=True), lambda: nn.GRU(2, 3, bias=False),
    lambda: nn.LSTMCell(2, 3), lambda: nn.GRUCell(2, 3, bias=False), lambda: Scaled(2.5),
    lambda: nn.Sequential(nn.Linear(2, 3), pg.relu, pg.Tensor.exp)])
def test_layers_are_pickled(make):
    layer = make()
    before = pg.Tensor.random_state()
    made = pickle.loads(pickle.dumps(layer))
    assert pg.Tensor.random_state() == before and type(made) is type(layer)
    ours, theirs = nn.state_dict(made), nn.state_dict(layer)
    assert list(ours) == list(theirs) and repr(made) == repr(layer)
    for name, value in theirs.items():
        assert np.array_equal(ours[name].numpy(), value.numpy())
        assert ours[name].requires_grad == value.requires_grad
    for name in layer._parts()[1] if hasattr(layer, "_parts") else ():
        assert getattr(made, name) == getattr(layer, name)
    assert getattr(made, "scale", None) == getattr(layer, "scale", None)


def test_ema_averages_parameters_and_copies_the_rest():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm(2))
    ema = nn.Ema(net, 0.75)
    before = net[0].weight.numpy()
    net[0].weight.assign(before + 4)
    net[1].running_mean.assign(np.array([5, 6], np.float32))
    ema.update(net)
    near(ema.module[0].weight, before + 1)
    near(ema.module[1].running_mean, [5, 6])
    assert not nn.parameters(ema.module)
    with pytest.raises(ValueError):
        ema.update(nn.Linear(2, 2))


def test_accuracy_counts_equal_labels_in_evaluation_mode():
    labels = RANDOM.integers(0, 3, 11).astype(np.uint8)
    images = np.zeros((11, 3), np.uint8)
    images[np.arange(11), labels] = 255
    images[0, labels[0]], images[0, (labels[0] + 1) % 3] = 0, 255  # one wrong answer
    dataset = pg.data.Dataset(images, labels, (1, 1, 3))
    modes = []

    def net(x):
        modes.append(nn.is_training())
        return x.flatten(1)

    assert nn.accuracy(net, dataset, 4) == pytest.approx(10 / 11)
    assert modes == [False] * 3
