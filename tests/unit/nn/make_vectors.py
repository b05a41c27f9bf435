#!/usr/bin/env python3
"""Writes vectors.h: results of layers, optimiser states after five steps, and schedules' rates,
computed by PyTorch in float64. LAMB and Muon (whose iteration PyTorch runs in bfloat16) are
implemented here. Run by hand when a row is added: make_vectors.py > vectors.h
Inputs and weights are waves: sin(first + 0.7 i) of a shape, for weights with first = 0.2, 0.4, … in
the order of the state dictionary. Gradients are those of sum(y * cos(0.3 + 0.5 i)) with respect to
x."""
import math
import torch
import torch.nn.functional as F
from torch.optim import lr_scheduler

torch.set_default_dtype(torch.float64)


def wave(shape, first, step=0.7, function=torch.sin):
    return function(torch.arange(math.prod(shape), dtype=torch.float64) * step + first).reshape(shape)


def weights_of(*shapes):
    return [wave(shape, 0.2 * (k + 1)) for k, shape in enumerate(shapes)]


def module(layer):
    """A function of x and the weights that calls the module."""
    names = [name for name, _ in layer.named_parameters()]
    return lambda x, *w: torch.func.functional_call(layer, dict(zip(names, w)), (x,))


def recurrent(cell, pick=lambda state: state):
    """Two time steps over x and its negative."""
    def run(x, *w):
        call = lambda *arguments: torch.func.functional_call(cell, dict(zip(
            ["weight_ih", "weight_hh", "bias_ih", "bias_hh"], w)), arguments)
        return pick(call(-x, call(x)))
    return run


def attention(x, qw, qb, kw, kb, vw, vb, ow, ob, heads=2, kv_heads=2, causal=False, mask=None, memory=None):
    memory = x if memory is None else memory
    split = lambda t, n: t.unflatten(-1, (n, -1)).transpose(-3, -2)
    q = split(F.linear(x, qw, qb), heads)
    k, v = split(F.linear(memory, kw, kb), kv_heads), split(F.linear(memory, vw, vb), kv_heads)
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=True)
    return F.linear(y.transpose(-3, -2).flatten(-2), ow, ob)


def own_attention(x, qw, qb, kw, kb, vw, vb, ow, ob):
    """PyTorch's layer, as a check of names and order."""
    layer = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    w = {"in_proj_weight": torch.cat([qw, kw, vw]), "in_proj_bias": torch.cat([qb, kb, vb]),
         "out_proj.weight": ow, "out_proj.bias": ob}
    return torch.func.functional_call(layer, w, (x, x, x), {"need_weights": False})[0]


SQUARE = [(4, 4), (4,)] * 4
GROUPED = [(4, 4), (4,), (2, 4), (2,), (2, 4), (2,), (4, 4), (4,)]
MASK = torch.tensor([[True, False, True], [True, True, False], [False, True, True]])
LAYERS = [  # C++ layer, C++ call, torch, shape of x, shapes of weights
    ("nn::Conv1d(2, 4, 3, {.stride = 2, .padding = 1, .groups = 2})", "layer(x)",
     lambda x, w, b: F.conv1d(x, w, b, 2, 1, 1, 2), (2, 2, 7), [(4, 1, 3), (4,)]),
    ("nn::Conv2d(2, 3, {2, 3}, {.padding = 1, .dilation = {1, 2}}, false)", "layer(x)",
     lambda x, w: F.conv2d(x, w, None, 1, 1, (1, 2)), (1, 2, 4, 5), [(3, 2, 2, 3)]),
    ("nn::Conv3d(2, 2, 2)", "layer(x)", lambda x, w, b: F.conv3d(x, w, b), (1, 2, 3, 3, 2), [(2, 2, 2, 2, 2), (2,)]),
    ("nn::ConvTranspose1d(2, 4, 3, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2})", "layer(x)",
     lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1, 2), (2, 2, 4), [(2, 2, 3), (4,)]),
    ("nn::ConvTranspose2d(2, 3, {2, 3}, {.stride = {1, 2}}, false)", "layer(x)",
     lambda x, w: F.conv_transpose2d(x, w, None, (1, 2)), (1, 2, 3, 2), [(2, 3, 2, 3)]),
    ("nn::ConvTranspose3d(2, 2, 2)", "layer(x)", lambda x, w, b: F.conv_transpose3d(x, w, b), (1, 2, 2, 2, 2),
     [(2, 2, 2, 2, 2), (2,)]),
    ("nn::GroupNorm(2, 4)", "layer(x)", lambda x, w, b: F.group_norm(x, 2, w, b), (2, 4, 3), [(4,), (4,)]),
    ("nn::GroupNorm(4, 4, 1e-3, false)", "layer(x)", lambda x: F.group_norm(x, 4, eps=1e-3), (2, 4, 3, 2), []),
    ("nn::InstanceNorm(3)", "layer(x)", lambda x: F.instance_norm(x), (2, 3, 5), []),
    ("nn::InstanceNorm(3, 1e-5, true)", "layer(x)", lambda x, w, b: F.instance_norm(x, weight=w, bias=b), (2, 3, 2, 2),
     [(3,), (3,)]),
    ("nn::LayerNorm({4})", "layer(x)", lambda x, w, b: F.layer_norm(x, (4,), w, b), (2, 3, 4), [(4,), (4,)]),
    ("nn::LayerNorm({3, 4}, 1e-5, false)", "layer(x)", lambda x: F.layer_norm(x, (3, 4)), (2, 3, 4), []),
    ("nn::RMSNorm({4})", "layer(x)", lambda x, w: F.rms_norm(x, (4,), w, 1e-6), (2, 3, 4), [(4,)]),
    ("nn::RMSNorm({3, 4}, 1e-3, false)", "layer(x)", lambda x: F.rms_norm(x, (3, 4), eps=1e-3), (2, 3, 4), []),
    ("nn::LSTMCell(3, 2)", "layer(-x, layer(x)).h", recurrent(torch.nn.LSTMCell(3, 2), lambda s: s[0]), (4, 3),
     [(8, 3), (8, 2), (8,), (8,)]),
    ("nn::LSTMCell(3, 2)", "layer(-x, layer(x)).c", recurrent(torch.nn.LSTMCell(3, 2), lambda s: s[1]), (4, 3),
     [(8, 3), (8, 2), (8,), (8,)]),
    ("nn::LSTMCell(3, 2, false)", "layer(-x, layer(x)).h", recurrent(torch.nn.LSTMCell(3, 2, False), lambda s: s[0]),
     (3,), [(8, 3), (8, 2)]),
    ("nn::GRUCell(3, 2)", "layer(-x, layer(x))", recurrent(torch.nn.GRUCell(3, 2)), (4, 3),
     [(6, 3), (6, 2), (6,), (6,)]),
    ("nn::GRUCell(3, 2, false)", "layer(-x, layer(x))", recurrent(torch.nn.GRUCell(3, 2, False)), (4, 3),
     [(6, 3), (6, 2)]),
    ("nn::MultiHeadAttention(4, 2)", "layer(x)", own_attention, (2, 3, 4), SQUARE),
    ("nn::MultiHeadAttention(4, 2)", "layer(x, {.causal = true})", lambda *a: attention(*a, causal=True), (2, 3, 4),
     SQUARE),
    ("nn::MultiHeadAttention(4, 2)", "layer(x, {.mask = mask()})", lambda *a: attention(*a, mask=MASK), (3, 4), SQUARE),
    ("nn::MultiHeadAttention(4, 2)", "layer(x, wave({2, 5, 4}, 0.9), wave({2, 5, 4}, 0.9))",
     lambda *a: attention(*a, memory=wave((2, 5, 4), 0.9)), (2, 3, 4), SQUARE),
    ("nn::MultiHeadAttention(4, 2, {.kv_heads = 1})", "layer(x, {.causal = true})",
     lambda *a: attention(*a, kv_heads=1, causal=True), (2, 3, 4), GROUPED),
]


class Lamb(torch.optim.Optimizer):
    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                s = self.state[p]
                s["t"] = s.get("t", 0) + 1
                s["m"] = b1 * s.get("m", 0) + (1 - b1) * p.grad
                s["v"] = b2 * s.get("v", 0) + (1 - b2) * p.grad ** 2
                r = s["m"] / (1 - b1 ** s["t"]) / ((s["v"] / (1 - b2 ** s["t"])).sqrt() + group["eps"])
                r = r + group["weight_decay"] * p
                trust = p.norm() / r.norm() if p.norm() > 0 and r.norm() > 0 else 1.0
                p.sub_(group["lr"] * trust * r)


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr, momentum=0.95, nesterov=True, weight_decay=0.1, ns_steps=5):
        super().__init__(params, dict(lr=lr, momentum=momentum, nesterov=nesterov, weight_decay=weight_decay,
                                      ns_steps=ns_steps))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                s = self.state[p]
                s["b"] = s.get("b", torch.zeros_like(p)).lerp(p.grad, 1 - group["momentum"])
                x = p.grad.lerp(s["b"], group["momentum"]) if group["nesterov"] else s["b"]
                x = x / (x.norm() + 1e-7)
                for _ in range(group["ns_steps"]):
                    a = x @ x.T
                    x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_(group["lr"] * max(1, p.shape[0] / p.shape[1]) ** 0.5 * x)


OPTIMISERS = [  # C++, torch
    ("optim::SGD(p, {.lr = 0.1})", lambda p: torch.optim.SGD(p, lr=0.1)),
    ("optim::SGD(p, {.lr = 0.1, .momentum = 0.9})", lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
    ("optim::SGD(p, {.lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1})",
     lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)),
    ("optim::Adam(p, {.lr = 0.1})", lambda p: torch.optim.Adam(p, lr=0.1)),
    ("optim::Adam(p, {.lr = 0.1, .beta1 = 0.5, .beta2 = 0.9, .eps = 1e-4, .weight_decay = 0.1})",
     lambda p: torch.optim.Adam(p, lr=0.1, betas=(0.5, 0.9), eps=1e-4, weight_decay=0.1)),
    ("optim::AdamW(p, {.lr = 0.1, .weight_decay = 0.1})", lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.1)),
    ("optim::LAMB(p, {.lr = 0.1})", lambda p: Lamb(p, 0.1)),
    ("optim::LAMB(p, {.lr = 0.1, .weight_decay = 0.1})", lambda p: Lamb(p, 0.1, weight_decay=0.1)),
    ("optim::Muon({p[0]}, {.lr = 0.1})", lambda p: Muon(p[:1], 0.1)),
    ("optim::Muon({p[0]}, {.lr = 0.1, .momentum = 0.9, .nesterov = false, .weight_decay = 0, .iterations = 3})",
     lambda p: Muon(p[:1], 0.1, 0.9, False, 0.0, 3)),
]


def trajectory(make):
    p = [wave((3, 2), 0.2).requires_grad_(), wave((2,), 0.4).requires_grad_()]
    optimiser = make(p)
    for _ in range(5):
        optimiser.zero_grad()
        loss = ((wave((4, 3), 0.5) @ p[0] + p[1] - wave((4, 2), 0.9)) ** 2).mean()
        loss.backward()
        optimiser.step()
    return torch.cat([q.detach().flatten() for q in p]).tolist()


def rates(make, lr=0.5, count=12):
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    scheduler, seen = make(optimiser), []
    for step in range(count):
        seen.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        if step + 1 < count:
            scheduler.step()
    return seen


def warmed(optimiser):
    return lr_scheduler.SequentialLR(optimiser, [
        lr_scheduler.LinearLR(optimiser, 0.1, 1.0, 4), lr_scheduler.CosineAnnealingLR(optimiser, 7, 0.05)], [4])


def linear_then_flat(optimiser):
    return lr_scheduler.LinearLR(optimiser, 1.0, 0.2, 8)


SCHEDULES = [  # C++, torch
    ("optim::constant_rate(0.5)", lambda o: lr_scheduler.ConstantLR(o, 1.0)),
    ("optim::step_rate(0.5, 3, 0.5)", lambda o: lr_scheduler.StepLR(o, 3, 0.5)),
    ("optim::multi_step_rate(0.5, {7, 2, 4})", lambda o: lr_scheduler.MultiStepLR(o, [2, 4, 7])),
    ("optim::exponential_rate(0.5, 0.9)", lambda o: lr_scheduler.ExponentialLR(o, 0.9)),
    ("optim::linear_rate(0.5, 0.1, 8)", linear_then_flat),
    ("optim::warm_up(optim::cosine_rate(0.5, 7, 0.05), 4)", warmed),
    ("optim::one_cycle_rate(0.5, 12)", lambda o: lr_scheduler.OneCycleLR(o, 0.5, total_steps=12)),
    ("optim::one_cycle_rate(0.5, 12, {.rising = 0.5, .start_divisor = 10, .end_divisor = 100})",
     lambda o: lr_scheduler.OneCycleLR(o, 0.5, total_steps=12, pct_start=0.5, div_factor=10, final_div_factor=100)),
]
PLATEAU = [3.0, 2.0, 2.5, 2.1, 2.2, 1.9999, 1.5, 1.6, 1.6, 1.6, 1.6, 1.6, 1.6, 1.6]


def plateau():
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    scheduler, seen = lr_scheduler.ReduceLROnPlateau(optimiser, factor=0.5, patience=2, cooldown=1, min_lr=0.1), []
    for value in PLATEAU:
        scheduler.step(value)
        seen.append(optimiser.param_groups[0]["lr"])
    return seen


def numbers(values):
    return "{" + ", ".join(f"{v:.17g}" for v in values) + "}"


def shape_text(shape):
    return "{" + ", ".join(map(str, shape)) + "}"


def layer_row(layer, call, function, shape, shapes):
    x = wave(shape, 0.1).requires_grad_()
    weights = weights_of(*shapes)
    y = function(x, *weights)
    (gradient,) = torch.autograd.grad((y * wave(y.shape, 0.3, 0.5, torch.cos)).sum(), x)
    return (f'    {{"{layer}: {call}", {shape_text(shape)},\n     [](const Tensor& x) {{\n'
            f"       const auto layer = with_waves({layer});\n       return {call};\n     }},\n"
            f"     {numbers(y.flatten().tolist())},\n     {numbers(gradient.flatten().tolist())}}},")


print("// Made by make_vectors.py: values of PyTorch " + torch.__version__.split("+")[0] + " in float64.")
print("// clang-format off\nconst LayerRow kLayers[] = {")
for row in LAYERS:
    print(layer_row(*row))
print("};\n\nconst OptimiserRow kOptimisers[] = {")
for text, make in OPTIMISERS:
    print(f'    {{"{text}", [](const std::vector<Tensor>& p) {{ return five_steps({text}, p); }},\n'
          f"     {numbers(trajectory(make))}}},")
print("};\n\nconst ScheduleRow kSchedules[] = {")
for text, make in SCHEDULES:
    print(f'    {{"{text}", {text}, {numbers(rates(make))}}},')
print("};\n")
print(f"const std::vector<double> kPlateauValues = {numbers(PLATEAU)};")
print(f"const std::vector<double> kPlateauRates = {numbers(plateau())};")
