"""The computations of bench/rows/kinds.cpp in PyTorch: each kind is a function of the request and
its inputs."""
import torch
from torch.nn import functional as F


def product(r, a, b):
    transpose = r.get("transpose", "")
    return (a.mT if "a" in transpose else a) @ (b.mT if "b" in transpose else b)


def conv2d(r, x, w):
    return F.conv2d(x, w, stride=r.get("stride", 1), padding=r.get("padding", 0), dilation=r.get("dilation", 1), groups=r.get("groups", 1))


def rope(r, x, cosine, sine):
    low, high = x.chunk(2, -1)
    return x * cosine + torch.cat((-high, low), -1) * sine


def lstm_cell(r, gates, cell):
    i, f, g, o = gates.chunk(4, 1)
    return o.sigmoid() * (f.sigmoid() * cell + i.sigmoid() * g.tanh()).tanh()


def channels(w):
    return w.view(-1, 1, 1)


FORWARD = {
    "matmul": product,
    "matvec": product,
    "conv2d": conv2d,
    "conv_transpose2d": lambda r, x, w: F.conv_transpose2d(x, w, stride=r.get("stride", 1)),
    "attention": lambda r, q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=r.get("causal", False), enable_gqa=r.get("gqa", False)),
    "layernorm": lambda r, x, *weights: F.layer_norm(x, x.shape[-1:], *weights),
    "rmsnorm": lambda r, x, w: F.rms_norm(x, x.shape[-1:], w, 1e-6),
    "groupnorm": lambda r, x, w, b: F.group_norm(x, r["groups"], w, b),
    "batchnorm_train": lambda r, x, w, b: F.batch_norm(x, None, None, w, b, training=True),
    "softmax": lambda r, x: x.softmax(-1),
    "log_softmax": lambda r, x: x.log_softmax(-1),
    "max_pool2d": lambda r, x: F.max_pool2d(x, r["kernel"], r.get("stride", r["kernel"]), r.get("padding", 0)),
    "avg_pool2d": lambda r, x: F.avg_pool2d(x, r["kernel"], r.get("stride", r["kernel"]), r.get("padding", 0)),
    "global_avg_pool": lambda r, x: x.mean((2, 3)),
    "upsample_nearest": lambda r, x: F.interpolate(x, scale_factor=r["scale"]),
    "embedding": lambda r, table, indices: F.embedding(indices, table),
    "map_reduce": lambda r, a, b, c: (a * b + c).relu().sum().view(1),
    "relu": lambda r, x: x.relu(),
    "relu6": lambda r, x: F.relu6(x),
    "sigmoid": lambda r, x: x.sigmoid(),
    "silu": lambda r, x: F.silu(x),
    "hardswish": lambda r, x: F.hardswish(x),
    "gelu": lambda r, x: F.gelu(x, approximate="tanh" if r.get("tanh", False) else "none"),
    "bias_gelu": lambda r, x, b: F.gelu(x + b),
    "add": lambda r, a, b: a + b,
    "add_relu": lambda r, a, b: (a + b).relu_(),
    "swiglu": lambda r, a, b: F.silu(a) * b,
    "gate": lambda r, x, s: x * s.sigmoid(),
    "scale_shift_relu": lambda r, x, w, b: torch.addcmul(channels(b), x, channels(w)).relu_(),
    "rope": rope,
    "lstm_cell": lstm_cell,
    "concat": lambda r, *parts: torch.cat(parts, 1),
}
# Kinds that PyTorch computes differently in channels-last layout: both layouts are timed.
IMAGES = {"conv2d", "conv_transpose2d", "groupnorm", "batchnorm_train", "max_pool2d", "avg_pool2d", "global_avg_pool", "upsample_nearest",
          "gate", "scale_shift_relu"}
FORMATS = (("channels-first", torch.contiguous_format), ("channels-last", torch.channels_last))
INDICES = {"embedding": 1}  # index of the integer input


def formats(kind, inputs):
    if kind in IMAGES and inputs[0].dim() == 4:
        return [(f" {name}", [t.clone().contiguous(memory_format=order) if t.dim() == 4 else t.clone() for t in inputs]) for name, order in FORMATS]
    return [("", inputs)]


def variant(label, request, inputs):
    """(name, a function that returns a tuple of results)."""
    kind = request["kind"]
    forward, indices = FORWARD[kind], INDICES.get(kind)
    if indices is not None:
        inputs[indices] = inputs[indices].long()
    if not request.get("gradients", False):
        def run():
            with torch.no_grad():
                return (forward(request, *inputs),)
        return label, run
    *inputs, seed = inputs
    wanted = [x.requires_grad_() for i, x in enumerate(inputs) if i != indices]

    def both():
        y = forward(request, *inputs)
        return (y, *torch.autograd.grad(y, wanted, seed))
    return label, both


def variants(label, request, inputs):
    return [variant(label + name, request, list(own)) for name, own in formats(request["kind"], inputs)]
