"""Attention: encoders, decoders with caches, images as tokens."""
import numpy as np

from net import Net, Value
from registry import network


@network()
def text_encoder(n: Net) -> None:
    """As BERT: a mask, learnt places, norms behind."""
    tokens, width = 32, 192
    ids = n.input("ids", "batch=1", tokens, high=6000)
    mask = n.input("mask", "batch=1", tokens, value=(np.arange(tokens)[None] < 27).astype(np.int64))
    x = n.layer_norm(n.Add(n.embedding(ids, 6000, width), 0.3 * n.uniform(1, tokens, width)))
    hidden = n.Mul(n.Sub(1.0, n.Cast(n.Unsqueeze(mask, [1, 2]), to=1)), -10000.0)
    for _ in range(4):
        x = n.layer_norm(n.Add(x, n.attention(x, 6, tokens, hidden)))
        x = n.layer_norm(n.Add(x, n.linear(n.linear(x, 4 * width, "Gelu"), width)))
    kept = n.Unsqueeze(n.Cast(mask, to=1), [2])
    mean = n.Div(n.ReduceSum(n.Mul(x, kept), [1], keepdims=0), n.ReduceSum(kept, [1], keepdims=0))
    n.output(n.Div(mean, n.ReduceL2(mean, axes=[1])))


@network(opset=12)
def text_encoder_opset12(n: Net) -> None:
    """The same layers with norms as several nodes."""
    x = n.embedding(n.input("ids", "batch=1", 24, high=4000), 4000, 128)
    for _ in range(3):
        x = n.encoder(x, 4, 24)
    first = n.Gather(n.layer_norm(x), 0, axis=1)
    first.width = 128
    n.output(n.gemm(n.gemm(first, 128, "Tanh"), 3))


def rotated(n: Net, x: Value, cosine: Value, sine: Value, size: int) -> Value:
    left, right = n.Split(x, [size // 2, size // 2], outputs=2, axis=-1)
    return n.Add(n.Mul(x, cosine), n.Mul(n.Concat(n.Neg(right), left, axis=-1), sine))


def root_norm(n: Net, x: Value) -> Value:
    y = n.Mul(x, n.Reciprocal(n.Sqrt(n.Add(n.ReduceMean(n.Pow(x, 2.0), axes=[-1]), 1e-5))))
    return n.Mul(y, n.around(1, x.width))


@network()
def decoder_cache(n: Net) -> None:
    """As Llama: one new token, caches that grow, rotated places, two heads of keys for four of queries."""
    width, size, heads, shared = 128, 32, 4, 2
    x = n.embedding(n.input("ids", 1, 1, high=1000), 1000, width)
    place = n.Cast(n.input("place", 1, 1, value=np.array([[24]], np.int64)), to=1)
    angles = n.Mul(n.Unsqueeze(place, [2]), np.round(np.exp(-0.5 * np.arange(16)), 6))
    angles = n.Unsqueeze(n.Concat(angles, angles, axis=-1), [1])
    cosine, sine = n.Cos(angles), n.Sin(angles)
    for layer in range(4):
        y = root_norm(n, x)
        q, k, v = (n.linear(y, count * size, bias=False) for count in (heads, shared, shared))
        q = rotated(n, n.heads(q, heads, 1), cosine, sine, size)
        k = n.Concat(n.input(f"keys_{layer}", 1, shared, "past=24", size), rotated(n, n.heads(k, shared, 1), cosine, sine, size), axis=2)
        v = n.Concat(n.input(f"values_{layer}", 1, shared, "past=24", size), n.heads(v, shared, 1), axis=2)
        n.output(k, v)
        wide = [n.Reshape(n.Expand(n.Unsqueeze(each, [2]), [1, 1, heads // shared, 1, 1]), [1, heads, -1, size]) for each in (k, v)]
        y = n.Reshape(n.attend(q, n.Transpose(wide[0], perm=[0, 1, 3, 2]), wide[1], size), [1, 1, width])
        y.width = width
        x = n.Add(x, n.linear(y, width, bias=False))
        y = root_norm(n, x)
        x = n.Add(x, n.linear(n.Mul(n.linear(y, 352, "Swish", bias=False), n.linear(y, 352, bias=False)), width, bias=False))
    n.output(n.linear(root_norm(n, x), 1000, bias=False))


@network()
def causal(n: Net) -> None:
    """As GPT-2 on a whole text, with a mask made of Shape, Range and Less."""
    ids = n.input("ids", 1, "tokens=48", high=2000)
    length = n.Gather(n.Shape(ids), 1)
    places = n.Range(0, length, 1)
    x = n.Add(n.embedding(ids, 2000, 128), n.embedding(places, 64, 128))
    mask = n.Where(n.Less(n.Unsqueeze(places, [1]), n.Unsqueeze(places, [0])), np.float32(-1e9), np.float32(0))
    for _ in range(3):
        q, k, v = n.Split(n.Reshape(n.linear(n.layer_norm(x), 384), [0, -1, 12, 32]), [4, 4, 4], outputs=3, axis=2)
        q, k, v = n.Transpose(q, perm=[0, 2, 1, 3]), n.Transpose(k, perm=[0, 2, 3, 1]), n.Transpose(v, perm=[0, 2, 1, 3])
        y = n.Reshape(n.Transpose(n.attend(q, k, v, 32, mask), perm=[0, 2, 1, 3]), [0, -1, 128])
        y.width = 128
        x = n.Add(x, n.linear(y, 128))
        hidden = n.linear(n.layer_norm(x), 512)
        cube = n.Mul(n.Add(hidden, n.Mul(n.Mul(n.Mul(hidden, hidden), hidden), 0.044715)), 0.7978846)
        x = n.Add(x, n.linear(n.Mul(n.Mul(hidden, 0.5), n.Add(n.Tanh(cube), 1.0)), 128))
    n.output(n.linear(n.layer_norm(x), 2000, bias=False))


@network()
def translation(n: Net) -> None:
    """Encoder and decoder with attention between them."""
    memory = n.embedding(n.input("source", 1, 20, high=1500), 1500, 96)
    for _ in range(2):
        memory = n.encoder(memory, 4, 20, act="Relu")
    x = n.embedding(n.input("target", 1, 12, high=1500), 1500, 96)
    mask = n.const(np.triu(np.full((12, 12), -1e9, np.float32), 1))
    for _ in range(2):
        x = n.Add(x, n.attention(n.layer_norm(x), 4, 12, mask))
        x = n.Add(x, n.attention(n.layer_norm(x), 4, 12, memory=memory, memory_tokens=20))
        x = n.Add(x, n.linear(n.linear(n.layer_norm(x), 384, "Relu"), 96))
    n.output(n.linear(x, 1500))


def patches(n: Net, side: int, size: int, width: int) -> Value:
    image, kernel = n.input("image", "batch=1", 3, side, side), [size, size]
    x = n.Conv(image, n.weight(width, 3, *kernel), n.around(0, width), kernel_shape=kernel, strides=kernel)
    tokens = n.Transpose(n.Reshape(x, [0, width, -1]), perm=[0, 2, 1])
    tokens.width = width
    return tokens


@network()
def vit(n: Net) -> None:
    x = patches(n, 128, 16, 192)
    mark = n.Expand(0.3 * n.uniform(1, 1, 192), n.Concat(n.Slice(n.Shape(x), [0], [1]), [1, 192], axis=0))
    x = n.Add(n.concat(mark, x), 0.3 * n.uniform(1, 65, 192))
    x.width = 192
    for _ in range(6):
        x = n.encoder(x, 3, 65)
    first = n.Gather(n.layer_norm(x), 0, axis=1)
    first.width = 192
    n.output(n.gemm(first, 1000))


@network()
def windows(n: Net) -> None:
    """As Swin: attention in windows of 4 x 4, which every second block shifts."""
    x = patches(n, 64, 4, 64)
    for block in range(4):
        y = n.Reshape(n.layer_norm(x), [1, 16, 16, 64])
        for axis in (1, 2) if block % 2 else ():
            y = n.Concat(n.Slice(y, [2], [16], [axis]), n.Slice(y, [0], [2], [axis]), axis=axis)
        y = n.Reshape(n.Transpose(n.Reshape(y, [1, 4, 4, 4, 4, 64]), perm=[0, 1, 3, 2, 4, 5]), [16, 16, 64])
        y.width = 64
        y = n.attention(y, 4, 16, n.const(0.5 * n.uniform(1, 4, 16, 16)))
        y = n.Reshape(n.Transpose(n.Reshape(y, [1, 4, 4, 4, 4, 64]), perm=[0, 1, 3, 2, 4, 5]), [1, 16, 16, 64])
        for axis in (1, 2) if block % 2 else ():
            y = n.Concat(n.Slice(y, [14], [16], [axis]), n.Slice(y, [0], [14], [axis]), axis=axis)
        x = n.Add(x, n.Reshape(y, [1, 256, 64]))
        x = n.Add(x, n.linear(n.linear(n.layer_norm(x), 256, "Gelu"), 64))
    y = n.ReduceMean(n.layer_norm(x), axes=[1], keepdims=0)
    n.output(n.gemm(y, 100))


@network()
def mixer(n: Net) -> None:
    x = patches(n, 96, 12, 128)
    for _ in range(5):
        y = n.Transpose(n.layer_norm(x), perm=[0, 2, 1])
        y.width = 64
        x = n.Add(x, n.Transpose(n.linear(n.linear(y, 128, "Gelu"), 64), perm=[0, 2, 1]))
        x = n.Add(x, n.linear(n.linear(n.layer_norm(x), 256, "Gelu"), 128))
    n.output(n.gemm(n.ReduceMean(n.layer_norm(x), axes=[1], keepdims=0), 100))


@network()
def speech_encoder(n: Net) -> None:
    """As Whisper's: two 1-D convolutions, places, blocks."""
    x = n.conv(n.conv(n.input("mel", 1, 80, 128), 128, rank=1, act="Gelu"), 128, 3, 2, rank=1, act="Gelu")
    x = n.Add(n.Transpose(x, perm=[0, 2, 1]), 0.3 * n.uniform(64, 128))
    x.width = 128
    for _ in range(4):
        x = n.encoder(x, 4, 64)
    n.output(n.layer_norm(x))


@network()
def experts(n: Net) -> None:
    """A mixture of four: each gets the tokens that chose it, by NonZero, Gather and ScatterND."""
    x = n.input("x", 24, 64)
    scores, best = n.TopK(n.Softmax(n.linear(x, 4, gain=3), axis=-1), [2], outputs=2, axis=-1)
    total = n.Mul(x, 0.0)
    for expert in range(4):
        is_chosen = n.Equal(best, expert)
        rows = n.Squeeze(n.NonZero(n.ReduceMax(n.Cast(is_chosen, to=6), axes=[1], keepdims=0)), [0])
        share = n.Gather(n.ReduceSum(n.Mul(scores, n.Cast(is_chosen, to=1)), [1]), rows)
        tokens = n.Gather(x, rows)
        tokens.width = 64
        made = n.Mul(n.linear(n.linear(tokens, 128, "Gelu"), 64), share)
        index = n.Unsqueeze(rows, [1])
        total = n.ScatterND(total, index, n.Add(n.GatherND(total, index), made))
    n.output(n.Add(x, total))
