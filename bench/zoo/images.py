"""Convolutional classifiers of images."""
from net import Net, Value
from registry import network


def image(n: Net, side: int = 224) -> Value:
    return n.input("image", "batch=1", 3, side, side)


@network(opset=11)
def lenet(n: Net) -> None:
    x = n.input("image", "batch=1", 1, 28, 28)
    x = n.pool(n.conv(x, 32, 5))
    x = n.pool(n.conv(x, 64, 5))
    x = n.Flatten(x)
    x.width = 64 * 7 * 7
    n.output(n.Softmax(n.gemm(n.gemm(x, 128, "Relu"), 10), axis=1))


@network()
def plain(n: Net) -> None:
    """As VGG-11 with batch norms."""
    x = image(n, 128)
    for width, count in ((32, 1), (64, 1), (128, 2), (256, 2), (256, 2)):
        for _ in range(count):
            x = n.conv(x, width, norm=True)
        x = n.pool(x)
    n.output(n.pooled_classes(x, 1000))


@network()
def resnet18(n: Net) -> None:
    x = n.pool(n.conv(image(n), 64, 7, 2), 3, 2, 1)
    for width in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if block == 0 and width > 64 else 1
            around = n.conv(x, width, 1, stride, act="", gain=1) if stride == 2 else x
            x = n.Relu(n.Add(n.conv(n.conv(x, width, 3, stride), width, act="", gain=0.5), around))
    n.output(n.pooled_classes(x, 1000))


def bottlenecks(n: Net, counts: tuple[int, ...], width: int, groups: int) -> None:
    x = n.pool(n.conv(image(n), width // 2, 7, 2, norm=True), 3, 2, 1)
    for stage, count in enumerate(counts):
        inner, outer = width << stage, 2 * width << stage
        for block in range(count):
            stride = 2 if block == 0 and stage else 1
            around = x if block else n.conv(x, outer, 1, stride, act="", norm=True, gain=1)
            y = n.conv(n.conv(x, inner, 1, norm=True), inner, 3, stride, groups, norm=True)
            x = n.Relu(n.Add(n.conv(y, outer, 1, act="", norm=True, gain=0.5), around))
    n.output(n.pooled_classes(x, 1000))


@network()
def resnet50_slim(n: Net) -> None:
    bottlenecks(n, (3, 4, 6, 3), 64, 1)


@network(opset=13)
def resnext(n: Net) -> None:
    bottlenecks(n, (2, 2, 3, 2), 64, 16)


@network()
def densenet121(n: Net) -> None:
    x = n.pool(n.conv(image(n), 64, 7, 2, norm=True), 3, 2, 1)
    for stage, count in enumerate((6, 12, 24, 16)):
        for _ in range(count):
            y = n.conv(n.Relu(n.batch_norm(x)), 128, 1, norm=True)
            x = n.concat(x, n.conv(y, 32, act="", gain=0.5))
        x = n.Relu(n.batch_norm(x))
        if stage < 3:
            x = n.pool(n.conv(x, x.width // 2, 1, act="", gain=1), kind="AveragePool")
    n.output(n.pooled_classes(x, 1000))


def squeeze_excite(n: Net, x: Value, inner: int, act: str = "Relu", gate: str = "Sigmoid") -> Value:
    y = n.conv(n.GlobalAveragePool(x), inner, 1, act=act)
    return n.Mul(x, n.conv(y, x.width, 1, act=gate))


def inverted(n: Net, x: Value, width: int, grow: float, size: int, stride: int, act: str, excite: int = 0, gate: str = "Sigmoid") -> Value:
    inner = int(x.width * grow)
    y = n.conv(x, inner, 1, act=act) if inner != x.width else x
    y = n.conv(y, inner, size, stride, inner, act)
    if excite:
        y = squeeze_excite(n, y, excite, "Relu" if gate == "HardSigmoid" else act, gate)
    y = n.conv(y, width, 1, act="", gain=1)
    return n.Add(x, y) if stride == 1 and width == x.width else y


@network(opset=13)
def mobilenet_v2(n: Net) -> None:
    x = inverted(n, n.conv(image(n), 32, 3, 2, act="Relu6"), 16, 1, 3, 1, "Relu6")
    for width, count, stride in ((24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1)):
        for block in range(count):
            x = inverted(n, x, width, 6, 3, stride if block == 0 else 1, "Relu6")
    n.output(n.pooled_classes(n.conv(x, 1280, 1, act="Relu6"), 1000))


@network()
def mobilenet_v3(n: Net) -> None:
    x = n.conv(image(n), 16, 3, 2, act="HardSwish")
    rows = ((16, 1, 3, 2, 8), (24, 4.5, 3, 2, 0), (24, 3.67, 3, 1, 0), (40, 4, 5, 2, 24), (40, 6, 5, 1, 64), (48, 3, 5, 1, 32),
            (48, 3, 5, 1, 40), (96, 6, 5, 2, 72), (96, 6, 5, 1, 144))
    for number, (width, grow, size, stride, excite) in enumerate(rows):
        x = inverted(n, x, width, grow, size, stride, "Relu" if number < 3 else "HardSwish", excite, "HardSigmoid")
    n.output(n.pooled_classes(n.conv(x, 576, 1, act="HardSwish"), 1000))


@network()
def efficientnet_b0(n: Net) -> None:
    x = inverted(n, n.conv(image(n), 32, 3, 2, act="Swish"), 16, 1, 3, 1, "Swish", 8)
    for width, count, size, stride in ((24, 2, 3, 2), (40, 2, 5, 2), (80, 3, 3, 2), (112, 3, 5, 1), (192, 4, 5, 2), (320, 1, 3, 1)):
        for block in range(count):
            x = inverted(n, x, width, 6, size, stride if block == 0 else 1, "Swish", x.width // 4)
    n.output(n.pooled_classes(n.conv(x, 1280, 1, act="Swish"), 1000))


@network(opset=11)
def squeezenet(n: Net) -> None:
    x = n.pool(n.conv(image(n), 64, 3, 2), 3)
    for number, width in enumerate((16, 16, 32, 32, 48, 48, 64, 64)):
        y = n.conv(x, width, 1)
        x = n.concat(n.conv(y, 4 * width, 1), n.conv(y, 4 * width))
        if number in (1, 3):
            x = n.pool(x, 3)
    n.output(n.Flatten(n.GlobalAveragePool(n.conv(x, 1000, 1))))


@network()
def shufflenet(n: Net) -> None:
    x = n.pool(n.conv(image(n), 24, 3, 2), 3, 2, 1)
    for width, count in ((116, 3), (232, 5), (464, 3)):
        half, side = width // 2, None
        for block in range(count):
            if block == 0:
                left = n.conv(n.conv(x, x.width, 3, 2, x.width, ""), half, 1)
                right = n.conv(n.conv(n.conv(x, half, 1), half, 3, 2, half, ""), half, 1)
            else:
                left, side = n.Split(x, [half, half], outputs=2, axis=1)
                left.width = side.width = half
                right = n.conv(n.conv(n.conv(side, half, 1), half, 3, 1, half, ""), half, 1)
            x = n.concat(left, right)
            shape = n.Shape(x)
            rows, columns = n.Gather(shape, [2]), n.Gather(shape, [3])
            y = n.Reshape(x, n.Concat([-1, 2, half], rows, columns, axis=0))
            x = n.Reshape(n.Transpose(y, perm=[0, 2, 1, 3, 4]), n.Concat([-1, width], rows, columns, axis=0))
            x.width = width
    n.output(n.pooled_classes(n.conv(x, 512, 1), 1000))


@network()
def inception(n: Net) -> None:
    x = n.pool(n.conv(n.pool(n.conv(image(n), 64, 7, 2), 3, 2, 1), 192), 3, 2, 1)
    rows = ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), (192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64),
            (256, 160, 320, 32, 128, 128))
    for number, (one, reduce3, three, reduce5, five, pool) in enumerate(rows):
        x = n.concat(n.conv(x, one, 1), n.conv(n.conv(x, reduce3, 1), three), n.conv(n.conv(x, reduce5, 1), five, 5),
                     n.conv(n.pool(x, 3, 1, 1), pool, 1))
        if number in (1, 3):
            x = n.pool(x, 3, 2, 1)
    n.output(n.pooled_classes(x, 1000))


@network()
def xception(n: Net) -> None:
    """Separable convolutions."""
    x = n.conv(n.conv(image(n, 160), 32, 3, 2), 64)
    for width in (128, 256, 384):
        y = n.conv(n.conv(x, x.width, groups=x.width, act=""), width, 1)
        y = n.conv(n.conv(y, width, groups=width, act=""), width, 1, act="")
        x = n.Add(n.pool(y, 3, 2, 1), n.conv(x, width, 1, 2, act="", gain=1))
    for _ in range(4):
        y = x
        for _ in range(3):
            y = n.conv(n.conv(n.Relu(y), y.width, groups=y.width, act=""), y.width, 1, act="")
        x = n.Add(x, y)
    n.output(n.pooled_classes(x, 1000))


@network()
def convnext(n: Net) -> None:
    x = n.Conv(image(n), n.weight(48, 3, 4, 4), n.around(0, 48), kernel_shape=[4, 4], strides=[4, 4])
    x.width = 48
    for width, count in ((48, 2), (96, 2), (192, 4), (384, 2)):
        if width > 48:
            x = n.Transpose(n.layer_norm(n.Transpose(x, perm=[0, 2, 3, 1])), perm=[0, 3, 1, 2])
            x = n.Conv(x, n.weight(width, width // 2, 2, 2), n.around(0, width), kernel_shape=[2, 2], strides=[2, 2])
            x.width = width
        for _ in range(count):
            y = n.layer_norm(n.Transpose(n.conv(x, width, 7, groups=width, act=""), perm=[0, 2, 3, 1]))
            y = n.Mul(n.linear(n.linear(y, 4 * width, "Gelu"), width), n.around(0.3, width))
            x = n.Add(x, n.Transpose(y, perm=[0, 3, 1, 2]))
    y = n.layer_norm(n.ReduceMean(x, axes=[2, 3], keepdims=0))
    n.output(n.gemm(y, 1000))
