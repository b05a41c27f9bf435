"""Optimisers and learning rates: trajectories against NumPy's formulas and PyTorch."""
import copy
import math
import pickle

import numpy as np
import pytest

import plugrad as pg
from plugrad import nn, optim

START = np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]], np.float32)
TARGET = np.array([[0.3, 0.1, -0.2], [1.0, -0.5, 0.0]], np.float32)
SCALE = np.array([[1, 2, 3], [0.5, 1, 2]], np.float32)
STEPS = 5


def gradient(p: np.ndarray) -> np.ndarray:
    return 2 * (p - TARGET) * SCALE


def trained(make) -> np.ndarray:
    p = pg.Tensor(START, requires_grad=True)
    opt = make([p])
    for _ in range(STEPS):
        opt.zero_grad()
        ((p - TARGET) ** 2 * SCALE).sum().backward()
        opt.step()
    return p.numpy()


def trained_by_pytorch(make) -> np.ndarray:
    torch = pytest.importorskip("torch")
    p = torch.from_numpy(START.copy()).requires_grad_()
    opt = make(torch.optim, [p])
    for _ in range(STEPS):
        opt.zero_grad()
        ((p - torch.from_numpy(TARGET)) ** 2 * torch.from_numpy(SCALE)).sum().backward()
        opt.step()
    return p.detach().numpy()


# ---- Against NumPy ----


@pytest.mark.parametrize(("momentum", "nesterov", "decay"), [
    (0.0, False, 0.0), (0.9, False, 0.0), (0.9, True, 0.1)])
def test_sgd_by_its_formula(momentum, nesterov, decay):
    p, velocity = START.astype(np.float64), 0.0
    for _ in range(STEPS):
        g = gradient(p) + decay * p
        velocity = momentum * velocity + g
        p = p - 0.05 * (g + momentum * velocity if nesterov else velocity)
    actual = trained(lambda tensors: optim.SGD(tensors, 0.05, momentum, nesterov, decay))
    np.testing.assert_allclose(actual, p, 1e-5, 1e-6)


def adam_direction(state: dict, g: np.ndarray, beta1: float, beta2: float, eps: float):
    state["t"] = state.get("t", 0) + 1
    state["m"] = beta1 * state.get("m", 0.0) + (1 - beta1) * g
    state["v"] = beta2 * state.get("v", 0.0) + (1 - beta2) * g * g
    mean = state["m"] / (1 - beta1 ** state["t"])
    return mean / (np.sqrt(state["v"] / (1 - beta2 ** state["t"])) + eps)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "LAMB"])
def test_adam_and_its_kin_by_their_formulas(name):
    p, state, lr, decay = START.astype(np.float64), {}, 0.1, 0.05
    for _ in range(STEPS):
        g = gradient(p) + (decay * p if name == "Adam" else 0)
        update = adam_direction(state, g, 0.8, 0.95, 1e-6)
        if name == "AdamW":
            update = update + decay * p
        elif name == "LAMB":
            update = update + decay * p
            update = update * np.linalg.norm(p) / np.linalg.norm(update)
        p = p - lr * update
    make = getattr(optim, name)
    actual = trained(lambda tensors: make(tensors, lr=lr, beta1=0.8, beta2=0.95, eps=1e-6,
                                          weight_decay=decay))
    np.testing.assert_allclose(actual, p, 1e-4, 1e-5)
    with_betas = trained(lambda tensors: make(tensors, lr, (0.8, 0.95), 1e-6, decay))
    np.testing.assert_array_equal(actual, with_betas)


def test_muon_by_its_formula():
    a, b, c = 3.4445, -4.775, 2.0315
    p, velocity = START.astype(np.float64), 0.0
    for _ in range(STEPS):
        g = gradient(p)
        velocity = 0.95 * velocity + (1 - 0.95) * g
        g = (1 - 0.95) * g + 0.95 * velocity
        x = g / (np.linalg.norm(g) + 1e-7)
        for _ in range(5):
            gram = x @ x.T
            x = a * x + (b * gram + c * gram @ gram) @ x
        p = p - 0.02 * 0.1 * p - 0.02 * max(1, 2 / 3) ** 0.5 * x
    np.testing.assert_allclose(trained(lambda tensors: optim.Muon(tensors, lr=0.02)), p, 2e-3, 2e-3)


# ---- Against PyTorch ----


@pytest.mark.parametrize(("name", "options"), [
    ("SGD", {"lr": 0.05}), ("SGD", {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    ("Adam", {"lr": 0.1}), ("Adam", {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.1}), ("AdamW", {"lr": 0.1, "eps": 1e-3, "weight_decay": 0.2})])
def test_optimisers_equal_pytorchs(name, options):
    expected = trained_by_pytorch(lambda module, p: getattr(module, name)(p, **options))
    np.testing.assert_allclose(trained(lambda p: getattr(optim, name)(p, **options)), expected,
                               1e-5, 1e-6)


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, math.inf])
def test_clipping_equals_pytorchs(order):
    torch = pytest.importorskip("torch")
    gradients = [np.array([3.0, -4.0], np.float32), np.array([[12.0]], np.float32)]
    ours = [pg.Tensor(np.zeros_like(g), requires_grad=True) for g in gradients]
    theirs = [torch.zeros(g.shape, requires_grad=True) for g in gradients]
    for p, q, g in zip(ours, theirs, gradients):
        p.grad, q.grad = g, torch.from_numpy(g.copy())
    expected = torch.nn.utils.clip_grad_norm_(theirs, 2.5, order)
    assert optim.clip_grad_norm(ours, 2.5, order).item() == pytest.approx(expected.item())
    for p, q in zip(ours, theirs):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), 1e-5)
    torch.nn.utils.clip_grad_value_(theirs, 0.5)
    optim.clip_grad_value(ours, 0.5)
    for p, q in zip(ours, theirs):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), 1e-5)


def test_clipping_by_its_formula():
    p = pg.Tensor([0.0, 0.0], requires_grad=True)
    p.grad = pg.Tensor([3.0, -4.0])
    assert optim.clip_grad_norm([p], max_norm=1.0).item() == pytest.approx(5.0)
    np.testing.assert_allclose(p.grad.numpy(), [0.6, -0.8], 1e-5)
    with pytest.raises(ValueError):
        optim.clip_grad_norm([p], -1.0)
    with pytest.raises(ValueError):
        optim.clip_grad_value([p], -1.0)


# ---- Learning rates ----


def test_schedules_by_their_formulas():
    steps = range(0, 20, 3)
    rates = {
        optim.constant_rate(0.5): lambda t: 0.5,
        optim.step_rate(1.0, every=4, factor=0.5): lambda t: 0.5 ** (t // 4),
        optim.multi_step_rate(1.0, [3, 9]): lambda t: 0.1 ** ((t >= 3) + (t >= 9)),
        optim.exponential_rate(2.0, 0.9): lambda t: 2 * 0.9**t,
        optim.linear_rate(1.0, 0.0, 10): lambda t: max(0, 1 - t / 10),
        optim.cosine_rate(1.0, 10, floor=0.1):
            lambda t: 0.1 + 0.9 * (1 + math.cos(math.pi * min(t, 10) / 10)) / 2,
        optim.Schedule(lambda t: 1 / (t + 1)): lambda t: 1 / (t + 1),
    }
    for schedule, expected in rates.items():
        for t in steps:
            assert schedule(t) == pytest.approx(expected(t)), t
    warm = optim.warm_up(optim.Schedule(lambda t: 2.0), steps=10, start=0.5)
    assert warm(0) == pytest.approx(1.0) and warm(5) == pytest.approx(1.5) and warm(30) == 2.0


def test_schedules_equal_pytorchs():
    torch = pytest.importorskip("torch")
    make = torch.optim.lr_scheduler
    cases = [
        (optim.step_rate(0.1, 3, 0.5), lambda o: make.StepLR(o, 3, 0.5)),
        (optim.multi_step_rate(0.1, [2, 7], 0.3), lambda o: make.MultiStepLR(o, [2, 7], 0.3)),
        (optim.exponential_rate(0.1, 0.9), lambda o: make.ExponentialLR(o, 0.9)),
        (optim.cosine_rate(0.1, 10, 0.01), lambda o: make.CosineAnnealingLR(o, 10, 0.01)),
        (optim.one_cycle_rate(0.5, 11), lambda o: make.OneCycleLR(o, 0.5, total_steps=11)),
    ]
    for schedule, theirs in cases:
        optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
        scheduler = theirs(optimiser)
        for t in range(10):
            assert schedule(t) == pytest.approx(scheduler.get_last_lr()[0], rel=1e-6), t
            optimiser.step()
            scheduler.step()


def test_plateaus_reduce_the_rate_and_keep_their_state():
    plateau = optim.ReduceOnPlateau(1.0, factor=0.5, patience=1)
    assert [plateau.check(value) for value in (3.0, 2.0, 2.0, 2.0, float("nan"))] == [
        False, False, False, True, False]
    assert plateau.rate() == 0.5
    other = optim.ReduceOnPlateau(1.0, factor=0.5, patience=1)
    nn.load_state_dict(other, nn.state_dict(plateau))
    assert other.rate() == 0.5 and other.check(2.0)


@pytest.mark.parametrize("call", [
    lambda: optim.constant_rate(-1.0), lambda: optim.step_rate(0.1, 0),
    lambda: optim.cosine_rate(0.1, -3), lambda: optim.exponential_rate(float("nan"), 0.1),
    lambda: optim.constant_rate(0.1)(-1)])
def test_schedules_of_nonsense_are_errors(call):
    with pytest.raises(ValueError):
        call()


def test_exceptions_of_a_schedule_reach_the_caller():
    def rate(step):
        raise KeyError(step)

    with pytest.raises(KeyError):
        optim.warm_up(optim.Schedule(rate), 3)(1)


# ---- Optimisers as objects ----


def small() -> tuple[pg.Tensor, optim.SGD]:
    p = pg.Tensor([1.0, 2.0], requires_grad=True)
    return p, optim.SGD([p], lr=0.5)


def test_the_learning_rate_is_an_attribute():
    p, opt = small()
    assert opt.lr == 0.5
    opt.lr = 0.25
    p.sum().backward()
    opt.step()
    assert opt.lr == 0.25 and p.tolist() == [0.75, 1.75]
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError):
            opt.lr = wrong
    with pytest.raises(TypeError):
        opt.lr = "fast"


def test_parameters_are_the_tensors_given():
    p, opt = small()
    assert len(opt.parameters) == 1 and not opt.has_gradients()
    p.sum().backward()
    assert opt.has_gradients()
    opt.zero_grad()
    assert p.grad is None and not opt.has_gradients()
    with pytest.raises(ValueError, match="backward"):
        opt.step()


def test_recorded_steps_run_together():
    p, opt = small()
    p.sum().backward()
    opt.record_step()
    optim.Optimizer.realize_recorded()
    assert p.is_realized and p.tolist() == [0.5, 1.5]


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "LAMB", "Muon"])
def test_a_saved_optimiser_continues_as_if_it_had_not_been(tmp_path, name):
    def run(p, opt, steps):
        for _ in range(steps):
            opt.zero_grad()
            ((p - TARGET) ** 2).sum().backward()
            opt.step()

    options = {"momentum": 0.9} if name == "SGD" else {}
    p = pg.Tensor(START, requires_grad=True)
    opt = getattr(optim, name)([p], lr=0.1, **options)
    run(p, opt, 3)
    nn.save({"p": p, "opt": opt}, tmp_path / "checkpoint")
    run(p, opt, 3)
    q = pg.Tensor(START * 0, requires_grad=True)
    other = getattr(optim, name)([q], lr=0.1, **options)
    nn.load({"p": q, "opt": other}, tmp_path / "checkpoint")
    run(q, other, 3)
    np.testing.assert_array_equal(p.numpy(), q.numpy())


def test_optimisers_give_and_take_their_state():
    p, q = (pg.Tensor(START, requires_grad=True) for _ in range(2))
    opt, other = optim.LAMB([p]), optim.LAMB([q])
    p.sum().backward()
    opt.step()
    other.load_state_dict(opt.state_dict())
    for name, value in opt.state_dict().items():
        assert np.array_equal(other.state_dict()[name].numpy(), value.numpy()), name
    with pytest.raises(ValueError, match="missing"):
        other.load_state_dict({})
    with pytest.raises(TypeError):
        other.load_state_dict(3)


def test_groups_step_together_and_skip_members_without_gradients():
    p, q = (pg.Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True) for _ in range(2))
    group = optim.OptimizerGroup(optim.SGD([p], lr=0.5), optim.Adam([q], lr=0.1))
    p.sum().backward()
    group.step()
    assert p.tolist() == [[0.5, 1.5], [2.5, 3.5]] and q.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    group.zero_grad()
    (p.sum() + q.sum()).backward()
    group.step()
    np.testing.assert_allclose(q.numpy(), np.array([[0.9, 1.9], [2.9, 3.9]]), 1e-5)
    assert len(group) == 2 and isinstance(group[1], optim.Adam)
    assert list(group.state_dict()) == ["1.mean.0", "1.variance.0", "1.correction"]
    state = {name: value.numpy() * 2 for name, value in group.state_dict().items()}
    group.load_state_dict(state)
    assert np.array_equal(group.state_dict()["1.mean.0"].numpy(), state["1.mean.0"])
    with pytest.raises(TypeError):
        optim.OptimizerGroup(optim.SGD([p]), 3)


@pytest.mark.parametrize(("make", "error"), [
    (lambda p: optim.SGD([]), ValueError),
    (lambda p: optim.SGD([pg.Tensor([1.0])]), ValueError),
    (lambda p: optim.SGD([p, p]), ValueError),
    (lambda p: optim.SGD(p), (TypeError, ValueError)),
    (lambda p: optim.SGD([3]), (TypeError, ValueError)),
    (lambda p: optim.SGD(["p"]), TypeError),
    (lambda p: optim.SGD([p], lr=-1), ValueError),
    (lambda p: optim.SGD([p], nesterov=True), ValueError),
    (lambda p: optim.Adam([p], betas=(0.9,)), TypeError),
    (lambda p: optim.Adam([p], beta1=2.0), ValueError),
    (lambda p: optim.Adam([p], lr="1e-3"), TypeError),
    (lambda p: optim.Adam([p], momentum=0.9), TypeError),
    (lambda p: optim.Muon([p]), ValueError),
    (lambda p: optim.Optimizer(), TypeError)])
def test_misuses_have_pythons_classes(make, error):
    with pytest.raises(error):
        make(pg.Tensor([1.0, 2.0], requires_grad=True))


def test_a_training_reduces_the_loss():
    pg.Tensor.manual_seed(3)
    net = nn.Sequential(nn.Linear(2, 16), pg.tanh, nn.Linear(16, 1))
    x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
    y = np.array([[0], [1], [1], [0]], np.float32)
    opt = optim.Adam(nn.parameters(net), lr=0.05)
    losses = []
    for _ in range(120):
        opt.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    assert losses[-1] < 1e-2 < losses[0]


def test_an_optimiser_is_not_copied():
    opt = optim.SGD([pg.Tensor([1.0], requires_grad=True)], lr=0.1)
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="SGD is not copied or pickled.*load_state_dict"):
            copied(opt)
