"""Networks whose result is an image, a volume or a map."""
import numpy as np

from net import Net, Value
from registry import network


def grown(n: Net, x: Value, mode: str = "nearest", by: float = 2.0) -> Value:
    places = "asymmetric" if mode == "nearest" else "half_pixel"
    sizes = np.array([1, 1, by, by], np.float32)
    return n.Resize(x, "", sizes, mode=mode, coordinate_transformation_mode=places, nearest_mode="floor")


def up_conv(n: Net, x: Value, width: int, size: int = 4, stride: int = 2, pad: int = 1, act: str = "Relu", norm: bool = False) -> Value:
    w, bias = n.weight(x.width, width, size, size, fan=x.width * size * size // stride**2), [] if norm else [n.around(0, width)]
    y = n.ConvTranspose(x, w, *bias, kernel_shape=[size, size], strides=[stride, stride], pads=[pad] * 4)
    y.width = width
    return n.act(n.batch_norm(y) if norm else y, act)


@network()
def unet(n: Net) -> None:
    x, kept = n.input("image", "batch=1", 3, 128, 128), []
    for width in (16, 32, 64, 128):
        x = n.conv(n.conv(x, width, norm=True), width, norm=True)
        kept.append(x)
        x = n.pool(x)
    x = n.conv(n.conv(x, 256), 256)
    for skip in reversed(kept):
        x = n.concat(up_conv(n, x, skip.width, 2, 2, 0, ""), skip)
        x = n.conv(n.conv(x, skip.width, norm=True), skip.width, norm=True)
    n.output(n.conv(x, 2, 1, act="", gain=1))


@network(opset=13)
def segmentation(n: Net) -> None:
    """As DeepLab: dilated convolutions side by side."""
    x = n.conv(n.conv(n.input("image", 1, 3, 128, 128), 32, 3, 2), 64, 3, 2)
    for _ in range(3):
        x = n.Relu(n.Add(x, n.conv(n.conv(x, 64, dilation=2), 64, dilation=2, act="", gain=0.5)))
    whole = n.Expand(n.conv(n.GlobalAveragePool(x), 64, 1), n.Concat([1, 1], n.Slice(n.Shape(x), [2], [4]), axis=0))
    x = n.concat(n.conv(x, 64, 1), *(n.conv(x, 64, dilation=rate) for rate in (3, 6, 9)), whole)
    x = n.conv(n.conv(x, 64, 1), 21, 1, act="", gain=1)
    y = grown(n, x, "linear", 4.0)
    n.output(y)
    n.output(n.ArgMax(y, axis=1, keepdims=0), dtype=7)


@network()
def super_resolution(n: Net) -> None:
    x = n.conv(n.input("luma", "batch=1", 1, "height=96", "width=96"), 64, 5)
    x = n.conv(n.conv(x, 64), 32)
    n.output(n.DepthToSpace(n.conv(x, 9, act="", gain=1), blocksize=3, mode="CRD"))


@network()
def style_transfer(n: Net) -> None:
    def layer(x: Value, width: int, size: int, stride: int = 1, act: str = "Relu") -> Value:
        pad = size // 2
        x = n.Pad(x, [0, 0, pad, pad, 0, 0, pad, pad], mode="reflect")
        y = n.Conv(x, n.weight(width, x.width, size, size), n.around(0, width), kernel_shape=[size, size], strides=[stride, stride])
        y.width = width
        return n.act(n.InstanceNormalization(y, n.around(1, width), n.around(0, width)), act)

    x = layer(layer(layer(n.input("image", 1, 3, 112, 112), 32, 9), 64, 3, 2), 128, 3, 2)
    for _ in range(4):
        x = n.Add(x, layer(layer(x, 128, 3), 128, 3, act=""))
    x = layer(grown(n, layer(grown(n, x), 64, 3)), 32, 3)
    n.output(n.Clip(n.Mul(layer(x, 3, 9, act="Tanh"), 255.0), -255.0, 255.0))


@network()
def autoencoder(n: Net) -> None:
    x = n.input("image", "batch=2", 3, 64, 64)
    for width in (32, 64, 128):
        x = n.conv(x, width, 3, 2, act="LeakyRelu")
    code = n.conv(x, 16, 1, act="", gain=1)
    x = n.conv(code, 128, 1)
    for width in (64, 32, 3):
        x = up_conv(n, x, width, act="Sigmoid" if width == 3 else "Relu")
    n.output(x, code)


@network()
def vae(n: Net) -> None:
    x = n.gemm(n.input("pixels", "batch=8", 784), 400, "Relu")
    mean, spread = n.gemm(x, 20), n.gemm(x, 20)
    z = n.Add(mean, n.Mul(n.Exp(n.Mul(spread, 0.5)), n.input("noise", "batch=8", 20)))
    terms = n.Sub(n.Sub(n.Add(spread, 1.0), n.Mul(mean, mean)), n.Exp(spread))
    n.output(n.gemm(n.gemm(z, 400, "Relu"), 784, "Sigmoid"), n.Mul(n.ReduceSum(terms, [1], keepdims=0), -0.5))


@network()
def generator(n: Net) -> None:
    """As DCGAN's."""
    x = up_conv(n, n.input("noise", "batch=1", 100, 1, 1), 256, 4, 1, 0, norm=True)
    for width in (128, 64, 32):
        x = up_conv(n, x, width, norm=True)
    n.output(up_conv(n, x, 3, act="Tanh"))


@network()
def volumes(n: Net) -> None:
    """3-D convolutions of clips."""
    x = n.conv(n.input("clip", 1, 3, 8, 56, 56), 32, stride=2, rank=3)
    for width in (32, 64, 128):
        stride = 2 if width > 32 else 1
        around = n.conv(x, width, 1, stride, act="", rank=3, gain=1) if stride == 2 else x
        x = n.Relu(n.Add(n.conv(n.conv(x, width, 3, stride, rank=3), width, act="", rank=3, gain=0.5), around))
    n.output(n.pooled_classes(x, 400))


@network()
def diffusion_step(n: Net) -> None:
    """One step of a denoiser: time, group norms and attention."""
    x, time = n.input("x", 1, 4, 32, 32), n.input("time", 1, value=np.array([421], np.int64))
    angles = n.Mul(n.Unsqueeze(n.Cast(time, to=1), [1]), np.round(np.exp(-0.28 * np.arange(32)), 6)[None])
    t = n.Concat(n.Sin(angles), n.Cos(angles), axis=1)
    t.width = 64
    t = n.gemm(n.gemm(t, 128, "Swish"), 128, "Swish")

    def norm(x: Value) -> Value:
        flat = n.InstanceNormalization(n.Reshape(x, [0, 8, -1]), np.ones(8, np.float32), np.zeros(8, np.float32))
        y = n.Reshape(flat, n.Shape(x))
        shape = (x.width, 1, 1)
        y = n.Add(n.Mul(y, 1 + 0.2 * n.uniform(*shape)), 0.2 * n.uniform(*shape))
        y.width = x.width
        return n.act(y, "Swish")

    def block(x: Value, width: int) -> Value:
        h = n.Add(n.conv(norm(x), width, act=""), n.Unsqueeze(n.gemm(t, width), [2, 3]))
        return n.Add(n.conv(norm(h), width, act=""), n.conv(x, width, 1, act="", gain=1) if x.width != width else x)

    a = block(n.conv(x, 32, act=""), 32)
    b = block(n.conv(a, 32, 3, 2, act=""), 64)
    h = block(n.conv(b, 64, 3, 2, act=""), 128)
    tokens = n.Transpose(n.Reshape(norm(h), [0, 128, 64]), perm=[0, 2, 1])
    h = n.Add(h, n.Reshape(n.Transpose(n.attention(tokens, 4, 64), perm=[0, 2, 1]), [0, 128, 8, 8]))
    h = block(n.concat(n.conv(grown(n, block(h, 128)), 128, act=""), b), 64)
    h = block(n.concat(n.conv(grown(n, h), 64, act=""), a), 32)
    n.output(n.conv(norm(h), 4, act="", gain=1))
