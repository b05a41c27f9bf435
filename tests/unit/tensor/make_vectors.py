#!/usr/bin/env python3
"""Writes vectors.h: values and gradients of elementwise functions, computed by PyTorch in float64 from float32
inputs. Run by hand when a function is added: make_vectors.py > vectors.h"""
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


def text(values):
    words = {math.inf: "INFINITY", -math.inf: "-INFINITY"}
    return "{" + ", ".join("NAN" if v != v else words.get(v) or f"{v:.9g}" for v in values) + "}"


def main():
    print("// Made by make_vectors.py with PyTorch in float64; do not edit.")
    print("#pragma once\n\n#include <cmath>\n#include <vector>\n\n#include \"plugrad/plugrad.h\"\n")
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
    print("};\n// clang-format on\n\n}  // namespace plugrad::vectors")


main()
