"""Networks of 8-bit integers: QDQ, QOperator and dynamic."""
import numpy as np

from net import Net, Value
from registry import network

STEP = 0.05  # of all activations
HALF = 128


def points(value: int = HALF, dtype: type = np.uint8) -> np.ndarray:
    return np.array(value, dtype)


def weight8(n: Net, *shape: int) -> tuple[Value, Value, np.ndarray]:
    """Of i8 with a scale for each of the first axis, and zero points."""
    fan = int(np.prod(shape[1:]))
    scales = (np.float32(1.4) * (1 + 0.3 * n.uniform(shape[0])) * (3 / fan) ** 0.5 / 127).astype(np.float32)
    return n.const((n.integers(255, *shape) - 127).astype(np.int8)), n.const(scales), np.zeros(shape[0], np.int8)


def around(n: Net, x: Value, zero: int = HALF) -> Value:
    """Quantised and back."""
    return n.DequantizeLinear(n.QuantizeLinear(x, STEP, points(zero)), STEP, points(zero))


def qdq_conv(n: Net, x: Value, width: int, size: int = 3, stride: int = 1, groups: int = 1, act: str = "Relu") -> Value:
    w, scales, zeros = weight8(n, width, x.width // groups, size, size)
    bias = n.DequantizeLinear((n.integers(200, width) - 100).astype(np.int32), n.Mul(scales, STEP), axis=0)
    y = n.Conv(x, n.DequantizeLinear(w, scales, zeros, axis=0), bias, kernel_shape=[size, size], strides=[stride] * 2,
               pads=[size // 2] * 4, group=groups)
    y.width = width
    return around(n, n.act(y, act), 0 if act else HALF)


@network(opset=13, tolerance=0.03)
def qdq_mobile(n: Net) -> None:
    x = qdq_conv(n, around(n, n.input("image", "batch=1", 3, 96, 96)), 16, 3, 2)
    for width, stride in ((16, 1), (24, 2), (24, 1), (48, 2), (48, 1), (96, 2)):
        y = qdq_conv(n, qdq_conv(n, qdq_conv(n, x, 4 * x.width, 1), 4 * x.width, 3, stride, 4 * x.width), width, 1, act="")
        x = around(n, n.Add(x, y)) if stride == 1 and width == x.width else y
        x.width = width
    y = n.Flatten(around(n, n.GlobalAveragePool(x)))
    w, scales, zeros = weight8(n, 100, x.width)
    n.output(n.Gemm(y, n.DequantizeLinear(w, scales, zeros, axis=0), n.around(0, 100), transB=1))


@network(opset=13, tolerance=0.03)
def qoperator_residual(n: Net) -> None:
    def conv(x: Value, width: int, size: int = 3, stride: int = 1) -> Value:
        w, scales, zeros = weight8(n, width, x.width, size, size)
        y = n.QLinearConv(x, STEP, points(), w, scales, zeros, STEP, points(), (n.integers(200, width) - 100).astype(np.int32),
                          kernel_shape=[size, size], strides=[stride] * 2, pads=[size // 2] * 4)
        y.width = width
        return y

    x = conv(n.QuantizeLinear(n.input("image", 1, 3, 64, 64), STEP, points()), 16, 3, 2)
    for width, stride in ((16, 1), (32, 2), (32, 1), (64, 2)):
        side = conv(x, width, 1, stride) if stride == 2 else x
        y = n.Max(conv(x, width, 3, stride), points())
        x = n.QLinearAdd(conv(y, width), STEP, points(), side, STEP, points(), STEP, points(), domain="com.microsoft")
        x.width = width
    pooled = n.QLinearGlobalAveragePool(x, STEP, points(), STEP, points(), domain="com.microsoft", channels_last=0)
    w = n.const((n.integers(255, 64, 10) - 127).astype(np.int8))
    y = n.QLinearMatMul(n.Flatten(pooled), STEP, points(), w, np.float32(0.005), points(0, np.int8), STEP, points())
    n.output(n.DequantizeLinear(y, STEP, points()), rank=2)


def dynamic(n: Net, x: Value, width: int, act: str = "") -> Value:
    """As ONNX Runtime's dynamic quantisation writes a product."""
    y, scale, zero = n.DynamicQuantizeLinear(x, outputs=3)
    w = n.const((n.integers(255, x.width, width) - 127).astype(np.int8))
    y = n.Cast(n.MatMulInteger(y, w, zero, points(0, np.int8)), to=1)
    y = n.Add(n.Mul(y, n.Mul(scale, np.float32(3**0.5 / 127 / x.width**0.5))), n.around(0, width))
    y.width = width
    return n.act(y, act)


@network(opset=12, tolerance=0.03)
def dynamic_encoder(n: Net) -> None:
    x = n.embedding(n.input("ids", "batch=1", 32, high=3000), 3000, 128)
    for _ in range(3):
        q, k, v = (dynamic(n, x, 128) for _ in range(3))
        y = n.attend(n.heads(q, 4, 32), n.heads(k, 4, 32, key=True), n.heads(v, 4, 32), 32)
        y = n.Reshape(n.Transpose(y, perm=[0, 2, 1, 3]), [0, 32, 128])
        y.width = 128
        x = n.layer_norm(n.Add(x, dynamic(n, y, 128)))
        x = n.layer_norm(n.Add(x, dynamic(n, dynamic(n, x, 512, "Gelu"), 128)))
    n.output(n.ReduceMean(x, axes=[1], keepdims=0))


@network(opset=14, tolerance=0.03)
def quantised_lstm(n: Net) -> None:
    x = n.input("x", 24, 1, 40)
    for size in (40, 64):
        w, r = (n.const((n.integers(255, 1, rows, 256) - 127).astype(np.int8)) for rows in (size, 64))
        scales = [np.array([0.0015], np.float32), np.zeros(1, np.int8)]
        y = n.DynamicQuantizeLSTM(x, w, r, n.const(0.1 * n.uniform(1, 512)), "", "", "", "", scales[0], scales[1], scales[0], scales[1],
                                  domain="com.microsoft", hidden_size=64, direction="forward")
        x = n.Squeeze(y, [1])
        x.width = 64
    n.output(n.linear(x, 10), rank=2)
