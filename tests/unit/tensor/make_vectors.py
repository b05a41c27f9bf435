#!/usr/bin/env python3
"""Writes vectors.h: values and gradients of functions, computed by PyTorch in float64. Run by hand
when a function is added: make_vectors.py > vectors.h
Elementwise functions have listed float32 inputs. Others have x = sin(0.1 + 0.7 i) of a shape; their
gradient is that of sum(y * cos(0.3 + 0.5 i))."""
import math
import torch
import torch.nn.functional as F

NORMAL = [-5.0, -2.5, -1.0, -0.3, -1e-4, 0.25, 0.5, 1.0, 2.75, 6.5]
EXTREME = [-400.0, -100.0, -30.0, 30.0, 100.0, 400.0]
POSITIVE = [1e-6, 0.1, 0.5, 1.0, 1.7, 12.0, 1e4]
KINKS = [-3.0, -1.0, 0.0, 1.0, 3.0]

FUNCTIONS = [  # C++, torch, inputs
    ("x.exp()", torch.exp, NORMAL), ("x.exp2()", torch.exp2, NORMAL),
    ("x.log()", torch.log, POSITIVE), ("x.log2()", torch.log2, POSITIVE), ("x.log10()", torch.log10, POSITIVE),
    ("x.log1p()", torch.log1p, POSITIVE + [1e-12, -0.5]),
    ("x.sqrt()", torch.sqrt, POSITIVE), ("x.rsqrt()", torch.rsqrt, POSITIVE),
    ("x.reciprocal()", torch.reciprocal, NORMAL), ("x.square()", torch.square, NORMAL),
    ("x.sin()", torch.sin, NORMAL), ("x.cos()", torch.cos, NORMAL), ("x.tan()", torch.tan, NORMAL),
    ("x.sinh()", torch.sinh, NORMAL), ("x.cosh()", torch.cosh, NORMAL),
    ("x.tanh()", torch.tanh, NORMAL + EXTREME + [0.0]), ("x.erf()", torch.erf, NORMAL + EXTREME + [0.0]),
    ("x.abs()", torch.abs, KINKS), ("x.relu()", torch.relu, KINKS),
    ("x.sigmoid()", torch.sigmoid, NORMAL + EXTREME + [0.0]),
    ("x.logsigmoid()", F.logsigmoid, NORMAL + EXTREME + [0.0]),
    ("x.silu()", F.silu, NORMAL + EXTREME), ("x.mish()", F.mish, NORMAL + EXTREME),
    ("x.gelu()", lambda x: F.gelu(x, approximate="tanh"), NORMAL), ("x.gelu(false)", F.gelu, NORMAL),
    ("x.quick_gelu()", lambda x: x * torch.sigmoid(1.702 * x), NORMAL),
    ("x.softplus()", lambda x: F.softplus(x, threshold=1e9), NORMAL + EXTREME[:4] + [0.0]),
    ("x.softplus(2.0)", lambda x: F.softplus(x, beta=2.0, threshold=1e9), NORMAL + [0.0]),
    ("x.softsign()", F.softsign, NORMAL + [0.0]),
    ("x.elu()", F.elu, NORMAL + EXTREME), ("x.celu(1.5)", lambda x: F.celu(x, 1.5), NORMAL + EXTREME),
    ("x.selu()", F.selu, NORMAL), ("x.leaky_relu()", F.leaky_relu, NORMAL), ("x.relu6()", F.relu6, NORMAL),
    ("x.hardsigmoid()", F.hardsigmoid, NORMAL), ("x.hardswish()", F.hardswish, NORMAL),
    ("x.hardtanh()", F.hardtanh, NORMAL), ("x.clamp(-1.0, 3.0)", lambda x: x.clamp(-1, 3), KINKS),
    ("x.clamp(0.5, {})", lambda x: x.clamp(0.5), NORMAL), ("x.pow(3)", lambda x: x ** 3, NORMAL + [0.0]),
    ("x.pow(-2)", lambda x: x ** -2, NORMAL), ("x.pow(0.5)", lambda x: x ** 0.5, POSITIVE),
    ("x.pow(1.3)", lambda x: x ** 1.3, POSITIVE), ("pow(Tensor(2.0), x)", lambda x: 2.0 ** x, NORMAL),
    ("x.pow(x)", lambda x: x ** x, POSITIVE[:-1]), ("x - x.trunc()", torch.frac, NORMAL),
    ("x.maximum(0.5)", lambda x: torch.maximum(x, torch.tensor(0.5, dtype=torch.float64)), NORMAL),
    ("x.minimum(1 - x)", lambda x: torch.minimum(x, 1 - x), NORMAL),
    ("3 - 2 / x", lambda x: 3 - 2 / x, NORMAL), ("x / (x * x + 1.0)", lambda x: x / (x * x + 1), NORMAL),
    ("x.lerp(2.0, 0.25)", lambda x: x + (2 - x) * 0.25, NORMAL),
    ("where(x > 0, x * 2, x * x)", lambda x: torch.where(x > 0, x * 2, x * x), NORMAL),
]


def wave(function, shape, first, step):
    count = math.prod(shape)
    return function(torch.arange(count, dtype=torch.float64) * step + first).reshape(shape)


def cosine(*shape):
    return wave(torch.cos, shape, 0.3, 0.5)


def sine(*shape):
    return wave(torch.sin, shape, 0.2, 0.3)


LABELS = torch.tensor([2, 0, 3])
ATTENTION = F.scaled_dot_product_attention
SHAPED = [  # C++, torch, shape
    ("x.sum()", torch.sum, (2, 3)), ("x.sum({0, -1}, true)", lambda x: x.sum((0, 2), True), (2, 3, 4)),
    ("x.mean({0, 2})", lambda x: x.mean((0, 2)), (2, 3, 4)), ("x.prod(2)", lambda x: x.prod(2), (2, 3, 4)),
    ("x.var(1)", lambda x: x.var(1), (2, 3, 4)), ("x.std(2)", lambda x: x.std(2), (2, 3, 4)),
    ("x.var({}, false, 0)", lambda x: x.var(correction=0), (2, 3, 4)),
    ("x.max(1)", lambda x: x.amax(1), (2, 3, 4)), ("x.min({0, 1})", lambda x: x.amin((0, 1)), (2, 3, 4)),
    ("x.logsumexp({0, 2})", lambda x: x.logsumexp((0, 2)), (2, 3, 4)), ("x.cumsum(1)", lambda x: x.cumsum(1), (2, 3, 4)),
    ("x.softmax(1)", lambda x: x.softmax(1), (2, 3, 4)), ("x.log_softmax()", lambda x: x.log_softmax(-1), (2, 3, 4)),
    ("x.layernorm()", lambda x: F.layer_norm(x, (4,)), (2, 3, 4)),
    ("x.layernorm({1, 2})", lambda x: F.layer_norm(x, (3, 4)), (2, 3, 4)),
    ("x.matmul(cosine({4, 5}))", lambda x: x @ cosine(4, 5), (2, 3, 4)),
    ("cosine({2, 1, 5, 3}).matmul(x)", lambda x: cosine(2, 1, 5, 3) @ x, (2, 3, 4)),
    ("x.matmul(cosine({4}))", lambda x: x @ cosine(4), (2, 3, 4)), ("cosine({3}).matmul(x)", lambda x: cosine(3) @ x, (2, 3, 4)),
    ("x.matmul(x)", lambda x: x @ x, (5,)),
    ("x.linear(cosine({4, 2}), cosine({2}))", lambda x: x @ cosine(4, 2) + cosine(2), (3, 4)),
    ("sparse_categorical_crossentropy(x * 3, labels())", lambda x: F.cross_entropy(x * 3, LABELS), (3, 4)),
    ("sparse_categorical_crossentropy(x * 3, labels(), {.label_smoothing = 0.1})",
     lambda x: F.cross_entropy(x * 3, LABELS, label_smoothing=0.1), (3, 4)),
    ("sparse_categorical_crossentropy(x * 3, labels(), {.ignore_index = 0})",
     lambda x: F.cross_entropy(x * 3, LABELS, ignore_index=0), (3, 4)),
    ("sparse_categorical_crossentropy(x * 3, labels(), {.reduction = Reduction::Sum})",
     lambda x: F.cross_entropy(x * 3, LABELS, reduction="sum"), (3, 4)),
    ("sparse_categorical_crossentropy(x * 3, labels(), {.reduction = Reduction::None})",
     lambda x: F.cross_entropy(x * 3, LABELS, reduction="none"), (3, 4)),
    ("cross_entropy(x, sine({3, 4}).softmax())", lambda x: F.cross_entropy(x, sine(3, 4).softmax(-1)), (3, 4)),
    ("binary_crossentropy(x.sigmoid(), sine({3, 4}).square())",
     lambda x: F.binary_cross_entropy(x.sigmoid(), sine(3, 4) ** 2), (3, 4)),
    ("binary_crossentropy_logits(x, sine({3, 4}).square())",
     lambda x: F.binary_cross_entropy_with_logits(x, sine(3, 4) ** 2), (3, 4)),
    ("mse_loss(x, sine({3, 4}))", lambda x: F.mse_loss(x, sine(3, 4)), (3, 4)),
    ("l1_loss(x, sine({3, 4}))", lambda x: F.l1_loss(x, sine(3, 4)), (3, 4)),
    ("scaled_dot_product_attention(x, cosine({1, 2, 5, 4}), sine({1, 2, 5, 4}))",
     lambda x: ATTENTION(x, cosine(1, 2, 5, 4), sine(1, 2, 5, 4)), (1, 2, 3, 4)),
    ("scaled_dot_product_attention(x, x, sine({1, 2, 3, 4}), {}, true)",
     lambda x: ATTENTION(x, x, sine(1, 2, 3, 4), is_causal=True), (1, 2, 3, 4)),
    ("scaled_dot_product_attention(x, x, x, sine({3, 3}))",
     lambda x: ATTENTION(x, x, x, attn_mask=sine(3, 3)), (1, 2, 3, 4)),
    ("scaled_dot_product_attention(x, x, x, sine({3, 3}) > 0)",
     lambda x: ATTENTION(x, x, x, attn_mask=sine(3, 3) > 0), (1, 2, 3, 4)),
    ("batchnorm(x, cosine({3}), sine({3}), x.mean({0, 2}), (x.var({0, 2}, false, 0) + 1e-5).rsqrt())",
     lambda x: F.batch_norm(x, None, None, cosine(3), sine(3), training=True), (2, 3, 4)),
    ("x.max_pool2d(2, {.stride = 1})", lambda x: F.max_pool2d(x, 2, 1), (1, 2, 4, 5)),
    ("x.max_pool2d(3, {.stride = 2, .padding = 1})", lambda x: F.max_pool2d(x, 3, 2, 1), (1, 2, 5, 6)),
    ("x.max_pool2d(3, {.stride = 2, .ceil_mode = true})", lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), (1, 2, 6, 6)),
    ("x.avg_pool2d(2)", lambda x: F.avg_pool2d(x, 2), (1, 2, 5, 4)),
    ("x.avg_pool2d(3, {.stride = 2, .padding = 1})", lambda x: F.avg_pool2d(x, 3, 2, 1), (1, 2, 5, 6)),
    ("x.avg_pool2d(3, {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false})",
     lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), (1, 2, 6, 5)),
    ("x.avg_pool2d(3, {.stride = 2, .padding = 1, .ceil_mode = true})",
     lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), (1, 2, 6, 5)),
    ("x.permute({2, 0, 1})", lambda x: x.permute(2, 0, 1), (2, 3, 4)),
    ("x.flip({0, 2}) * cosine({4})", lambda x: x.flip((0, 2)) * cosine(4), (2, 3, 4)),
    ("x.pad({{1, 0}, {-1, 2}}, 3.0)", lambda x: F.pad(x, (-1, 2, 1, 0), value=3.0), (3, 4)),
    ("x.repeat({2, 1, 3})", lambda x: x.repeat(2, 1, 3), (2, 3)),
    ("x[{Slice(0, 9, 2), kEllipsis, -1}]", lambda x: x[0:9:2, ..., -1], (5, 3, 4)),
    ("x[{Slice({}, {}, -2), Slice(3, 0, -1)}]", lambda x: x.flip(0)[::2, :].flip(1)[:, 0:3], (5, 4)),
    ("x.index_select(1, Tensor::from({2, 0, 2, -1}))", lambda x: x[:, [2, 0, 2, -1]], (2, 3, 4)),
    ("x.gather(1, Tensor::from({0, 2, 1, 1}, {2, 2}))", lambda x: x.gather(1, torch.tensor([[0, 2], [1, 1]])), (2, 3)),
    ("embedding(x, Tensor::from({1, 0, 1}))", lambda x: x[[1, 0, 1]], (3, 2)),
    ("cat({x, x * 2, cosine({2, 1})}, 1)", lambda x: torch.cat((x, x * 2, cosine(2, 1)), 1), (2, 3)),
    ("stack({x, x.square()}, 1)", lambda x: torch.stack((x, x ** 2), 1), (2, 3)),
    ("x.tril() + x.triu(1) * 2", lambda x: x.tril() + x.triu(1) * 2, (3, 4)),
    ("x.split({1, 2}, 1)[1]", lambda x: x.split((1, 2), 1)[1], (2, 3)),
    ("x + x.sum()", lambda x: x + x.sum(), (2, 3)), ("(x + cosine({2, 1, 3})) * x", lambda x: (x + cosine(2, 1, 3)) * x, (4, 3)),
]


def text(values):
    words = {math.inf: "INFINITY", -math.inf: "-INFINITY"}
    return "{" + ", ".join("NAN" if v != v else words.get(v) or f"{v:.9g}" for v in values) + "}"


def main():
    print("// Made by make_vectors.py with PyTorch in float64; do not edit.")
    print("#pragma once\n\n#include <cmath>\n#include <vector>\n\n#include \"expect.h\"\n")
    print("namespace plugrad::vectors {\n\nstruct Unary {\n  const char* text;\n  Tensor (*function)(const Tensor&);")
    print("  std::vector<float> x;\n  std::vector<double> y, gradient;\n};\n\n// clang-format off")
    print("inline const std::vector<Unary> kUnary = {")
    for cpp, function, inputs in FUNCTIONS:
        x32 = torch.tensor(inputs, dtype=torch.float32)
        x = x32.double().requires_grad_()
        y = function(x)
        y.sum().backward()
        print(f'    {{"{cpp}", [](const Tensor& x) {{ return {cpp}; }}, {text(x32.tolist())},')
        print(f"     {text(y.tolist())},\n     {text(x.grad.tolist())}}},")
    print("};\n\nstruct Shaped {\n  const char* text;\n  Tensor (*function)(const Tensor&);\n  Shape x, y_shape;")
    print("  std::vector<double> y, gradient;\n};\n\ninline const std::vector<Shaped> kShaped = {")
    for cpp, function, shape in SHAPED:
        x = wave(torch.sin, shape, 0.1, 0.7).requires_grad_()
        y = function(x)
        (y * cosine(*y.shape)).sum().backward()
        print(f'    {{"{cpp}", [](const Tensor& x) {{ return {cpp}; }},')
        print(f"     {text(shape)}, {text(y.shape)}, {text(y.flatten().tolist())},\n     {text(x.grad.flatten().tolist())}}},")
    print("};\n// clang-format on\n\n}  // namespace plugrad::vectors")


main()
