"""Detectors: heads on several scales, boxes that data choose."""
import numpy as np

from net import Net, Value
from pixels import grown
from registry import network


def backbone(n: Net, side: int) -> list[Value]:
    """Features at strides of 8, 16 and 32."""
    x, scales = n.conv(n.input("image", 1, 3, side, side), 16, 3, 2, act="Swish"), []
    for number, width in enumerate((32, 64, 96, 128)):
        x = n.conv(x, width, 3, 2, act="Swish")
        left, right = n.conv(x, width // 2, 1, act="Swish"), n.conv(x, width // 2, 1, act="Swish")
        x = n.conv(n.concat(left, n.Add(right, n.conv(right, width // 2, act="Swish"))), width, 1, act="Swish")
        if number:
            scales.append(x)
    return scales


def pyramid(n: Net, scales: list[Value], width: int) -> list[Value]:
    small, middle, large = (n.conv(x, width, 1, act="Swish") for x in scales)
    middle = n.conv(n.concat(middle, grown(n, large)), width, act="Swish")
    return [n.conv(n.concat(small, grown(n, middle)), width, act="Swish"), middle, large]


def centres(side: int, stride: int) -> np.ndarray:
    steps = (np.arange(side, dtype=np.float32) + np.float32(0.5)) * stride
    return np.stack([np.tile(steps, side), np.repeat(steps, side)], 0)[None]


def boxes_and_scores(n: Net, side: int, classes: int) -> tuple[Value, Value]:
    """(1, boxes, 4) corners and (1, classes, boxes)."""
    boxes, scores = [], []
    for stride, x in zip((8, 16, 32), pyramid(n, backbone(n, side), 64)):
        y = n.conv(n.conv(x, 64, act="Swish"), 4 + classes, 1, act="", gain=1)
        y = n.Reshape(y, [1, 4 + classes, -1])
        place, score = n.Split(y, [4, classes], outputs=2, axis=1)
        near, far = n.Split(n.Mul(n.Softplus(place), float(stride)), [2, 2], outputs=2, axis=1)
        middle = n.const(centres(side // stride, stride))
        boxes.append(n.Concat(n.Sub(middle, near), n.Add(middle, far), axis=1))
        scores.append(n.Sigmoid(score))
    return n.Transpose(n.Concat(*boxes, axis=2), perm=[0, 2, 1]), n.Concat(*scores, axis=2)


@network()
def yolo(n: Net) -> None:
    n.output(*boxes_and_scores(n, 160, 20))


@network()
def yolo_nms(n: Net) -> None:
    """The same with its choice of boxes in the graph."""
    boxes, scores = boxes_and_scores(n, 128, 5)
    chosen = n.NonMaxSuppression(boxes, scores, [20], np.array([0.5], np.float32), np.array([0.5], np.float32))
    places = n.Gather(chosen, [2], axis=1)
    n.output(n.Gather(n.Squeeze(boxes, [0]), n.Squeeze(places, [1]), axis=0), n.GatherND(scores, n.Gather(chosen, [0, 1, 2], axis=1)))
    n.output(chosen, dtype=7)


@network()
def centre_points(n: Net) -> None:
    """Peaks of heat maps by MaxPool and TopK."""
    x = pyramid(n, backbone(n, 128), 64)[0]
    heat = n.Sigmoid(n.conv(n.conv(x, 64), 4, 1, act="", gain=1))
    sizes = n.conv(n.conv(x, 64), 2, 1, act="", gain=1)
    peaks = n.Mul(heat, n.Cast(n.Equal(n.pool(heat, 3, 1, 1), heat), to=1))
    scores, places = n.TopK(n.Reshape(peaks, [1, -1]), [20], outputs=2, axis=1)
    places = n.Mod(places, 256)
    rows = n.Expand(n.Unsqueeze(places, [1]), [1, 2, 20])
    n.output(scores, n.GatherElements(n.Reshape(sizes, [1, 2, 256]), rows, axis=2))


@network()
def regions(n: Net) -> None:
    """Two stages: proposals by NonMaxSuppression, features by RoiAlign."""
    x = pyramid(n, backbone(n, 128), 64)[0]
    y = n.conv(x, 64)
    score = n.Reshape(n.Sigmoid(n.conv(y, 1, 1, act="", gain=1)), [1, 1, -1])
    near, far = n.Split(n.Softplus(n.Reshape(n.conv(y, 4, 1, act=""), [1, 4, -1])), [2, 2], outputs=2, axis=1)
    middle = n.const(centres(16, 8))
    corners = n.Concat(n.Sub(middle, n.Mul(near, 16.0)), n.Add(middle, n.Mul(far, 16.0)), axis=1)
    boxes = n.Transpose(n.Clip(corners, 0.0, 127.0), perm=[0, 2, 1])
    chosen = n.NonMaxSuppression(boxes, score, [16], np.array([0.6], np.float32))
    kept = n.Gather(n.Squeeze(boxes, [0]), n.Squeeze(n.Slice(chosen, [2], [3], [1]), [1]), axis=0)
    batch = n.Squeeze(n.Slice(chosen, [0], [1], [1]), [1])
    parts = n.Flatten(n.RoiAlign(x, kept, batch, output_height=5, output_width=5, sampling_ratio=2, spatial_scale=0.125))
    parts.width = 64 * 25
    hidden = n.gemm(parts, 128, "Relu")
    n.output(n.Softmax(n.gemm(hidden, 6), axis=1), n.Add(kept, n.gemm(hidden, 4)))


@network()
def masked_pixels(n: Net) -> None:
    """Statistics of the pixels that a mask keeps, by NonZero."""
    x = n.input("image", 3, 48, 48)
    kept = n.Greater(n.ReduceMean(x, axes=[0], keepdims=0), 0.1)
    pixels = n.GatherND(n.Transpose(x, perm=[1, 2, 0]), n.Transpose(n.NonZero(kept), perm=[1, 0]))
    pixels.width = 3
    hidden = n.linear(n.linear(pixels, 64, "Relu"), 16)
    n.output(n.ReduceMax(hidden, axes=[0]), n.ReduceMean(hidden, axes=[0]))
