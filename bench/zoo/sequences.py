"""Recurrent networks, audio, and texts by convolutions."""
import numpy as np

from net import Net, Value
from registry import network


def recurrent(n: Net, kind: str, x: Value, hidden: int, both: bool = False) -> Value:
    """(time, batch, width) to (time, batch, hidden); twice as wide in both directions."""
    gates, ways = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], 2 if both else 1
    w, r = (n.weight(ways, gates * hidden, width, fan=hidden) for width in (x.width, hidden))
    b, direction = n.const(0.1 * n.uniform(ways, 2 * gates * hidden)), "bidirectional" if both else "forward"
    y = n.node(kind, x, w, r, b, hidden_size=hidden, direction=direction)
    y = n.Reshape(n.Transpose(y, perm=[0, 2, 1, 3]), [0, 0, -1])
    y.width = ways * hidden
    return y


def last_step(n: Net, x: Value) -> Value:
    y = n.Gather(x, -1, axis=0)
    y.width = x.width
    return y


@network(opset=14)
def lstm_classifier(n: Net) -> None:
    x = n.embedding(n.input("ids", 40, "batch=1", high=5000), 5000, 64)
    x = recurrent(n, "LSTM", recurrent(n, "LSTM", x, 128, both=True), 128, both=True)
    y = n.ReduceMax(x, axes=[0], keepdims=0)
    y.width = x.width
    n.output(n.Softmax(n.gemm(y, 5), axis=-1))


@network(opset=14)
def gru_forecast(n: Net) -> None:
    x = n.Transpose(n.input("series", "batch=4", 96, 7), perm=[1, 0, 2])
    x.width = 7
    n.output(n.gemm(last_step(n, recurrent(n, "GRU", recurrent(n, "GRU", x, 64), 64)), 24))


@network()
def text_line(n: Net) -> None:
    """As a reader of text: convolutions, then LSTM in both directions."""
    x = n.input("line", 1, 1, 32, 128)
    for width, stride in ((32, 2), (64, 2), (128, 1), (128, 2)):
        x = n.pool(n.conv(x, width), 2, stride) if stride == 2 else n.conv(x, width, norm=True)
    x = n.Transpose(n.Reshape(n.conv(x, 128), [0, 512, -1]), perm=[2, 0, 1])
    x.width = 512
    n.output(n.LogSoftmax(n.linear(recurrent(n, "LSTM", x, 96, both=True), 60), axis=-1))


@network()
def unrolled(n: Net) -> None:
    """A recurrence written step by step, as from a loop in Python."""
    x, w = n.input("x", "batch=2", 20, 32), n.weight(32, 48)
    state, states, around = n.const(np.zeros((2, 48), np.float32), 48), [], n.weight(48, 48)
    for step in range(20):
        now = n.Squeeze(n.Slice(x, [step], [step + 1], [1]), [1])
        state = n.Tanh(n.Add(n.MatMul(now, w), n.MatMul(state, around)))
        states.append(n.Unsqueeze(state, [1]))
    n.output(n.Concat(*states, axis=1))


@network()
def time_distributed(n: Net) -> None:
    """Dense layers on each of 21 steps, as a converter writes TimeDistributed(Dense(…))."""
    x = n.input("x", "batch=4", 21, 64)
    x.width = 64
    for width in (128, 64):
        w, b, parts = n.weight(x.width, width, fan=x.width), n.around(0, width), []
        for step in range(21):
            now = n.Squeeze(n.Slice(x, [step], [step + 1], [1]), [1])
            parts.append(n.Unsqueeze(n.Relu(n.Add(n.MatMul(now, w), b)), [1]))
        x = n.Concat(*parts, axis=1)
        x.width = width
    n.output(x)


@network()
def wave(n: Net) -> None:
    """Gated 1-D convolutions with growing dilation."""
    x = n.conv(n.input("audio", 1, 1, "samples=4000"), 32, 3, rank=1, act="")
    total = None
    for step in range(10):
        y = n.Mul(n.conv(x, 32, dilation=1 << step % 5, rank=1, act="Tanh"), n.conv(x, 32, dilation=1 << step % 5, rank=1, act="Sigmoid"))
        skip = n.conv(y, 32, 1, rank=1, act="")
        total = n.Add(total, skip) if total else skip
        x = n.Add(x, n.conv(y, 32, 1, rank=1, act="", gain=1))
    n.output(n.conv(n.Relu(total), 64, 1, rank=1, act=""))


@network()
def voice(n: Net) -> None:
    """Spectrogram by a convolution with sines, mel bands, convolutions and an LSTM with its state outside."""
    frames, steps = np.arange(256), 129
    angles = 2 * np.pi / 256 * np.outer(np.arange(steps), frames)
    basis = (np.concatenate([np.cos(angles), np.sin(angles)]) * np.hanning(256)).astype(np.float32)[:, None]
    x = n.Conv(n.Unsqueeze(n.input("audio", "batch=1", 4096), [1]), np.round(basis, 5), kernel_shape=[256], strides=[128])
    real, imaginary = n.Split(x, [steps, steps], outputs=2, axis=1)
    power = n.Transpose(n.Add(n.Mul(real, real), n.Mul(imaginary, imaginary)), perm=[0, 2, 1])
    mel = n.Log(n.Add(n.MatMul(power, np.abs(n.uniform(steps, 40))), 1e-3))
    mel.width = 40
    x = n.Transpose(mel, perm=[0, 2, 1])
    for width, stride in ((64, 1), (64, 2), (64, 1)):
        x = n.conv(x, width, 3, stride, rank=1)
    x = n.Transpose(x, perm=[2, 0, 1])
    w, r, b = n.weight(1, 256, 64, fan=64), n.weight(1, 256, 64, fan=64), n.const(0.1 * n.uniform(1, 512))
    y, h, c = n.LSTM(x, w, r, b, "", n.input("h", 1, 1, 64), n.input("c", 1, 1, 64), outputs=3, hidden_size=64)
    last = n.Squeeze(h, [0])
    last.width = 64
    n.output(n.gemm(last, 1, "Sigmoid"), h, c)


@network()
def spectrum(n: Net) -> None:
    """STFT and a small convolutional net."""
    window = np.round(np.hanning(129)[:128], 6).astype(np.float32)
    x = n.STFT(n.input("audio", 1, 4096, 1), 64, window, 128, onesided=1)
    power = n.Unsqueeze(n.ReduceSum(n.Mul(x, x), [3], keepdims=0), [1])
    power.width = 1
    x = n.Log(n.Add(power, 1e-2))
    for width in (16, 32, 64):
        x = n.conv(x, width, stride=2)
    n.output(n.pooled_classes(x, 12))


@network(opset=11)
def text_convolutions(n: Net) -> None:
    x = n.Transpose(n.embedding(n.input("ids", "batch=1", 64, high=8000), 8000, 100), perm=[0, 2, 1])
    parts = []
    for size in (3, 4, 5):
        y = n.Relu(n.Conv(x, n.weight(64, 100, size), n.around(0, 64), kernel_shape=[size]))
        parts.append(n.ReduceMax(y, axes=[2], keepdims=0))
        parts[-1].width = 64
    n.output(n.Softmax(n.gemm(n.concat(*parts), 4), axis=1))


@network(opset=13)
def bag_of_words(n: Net) -> None:
    """The mean of the embeddings that are no padding."""
    ids = n.input("ids", "batch=8", 32, high=2000)
    kept = n.Unsqueeze(n.Cast(n.Greater(ids, 400), to=1), [2])
    total = n.ReduceSum(n.Mul(n.embedding(ids, 2000, 50), kept), [1], keepdims=0)
    y = n.Div(total, n.Max(n.ReduceSum(kept, [1], keepdims=0), 1.0))
    y.width = 50
    n.output(n.gemm(y, 20))
