"""Compares operators of ONNX with ONNX Runtime on more attributes and sizes than the package onnx has cases of.

    runtime_cases.py [--device D] [--filter TEXT]

Prints how many agree and a line for each case that does not. Needs the packages onnx and onnxruntime.
"""
from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from microsoft_cases import Case, compare, integers, normal
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper


def case(name: str, op: str, inputs: Sequence[np.ndarray | None], attributes: Mapping[str, object] | None = None,
         outputs: tuple[int, ...] = (0,), *, opset: int = 17, domain: str = "", tolerance: float = 1e-4,
         parts: tuple[Callable[[np.ndarray], np.ndarray], ...] = ()) -> Case:
    return Case(name, op, inputs, attributes or {}, outputs, domain, tolerance, parts, opset)


def nothing(y: np.ndarray) -> np.ndarray:
    return y[:0]


def sampling_cases() -> list[Case]:
    image, volume = normal(2, 3, 5, 7), normal(2, 2, 3, 4, 5)
    grid = (normal(2, 4, 6, 2) * 0.9).astype("float32")
    grid3 = (normal(2, 3, 2, 4, 3) * 0.9).astype("float32")
    cases = []
    for padding, aligned in itertools.product(("zeros", "border", "reflection"), (0, 1)):
        shared = {"padding_mode": padding, "align_corners": aligned}
        cases += [case(f"grid {mode} {padding} {aligned}", "GridSample", [image, grid], shared | {"mode": mode},
                       opset=20) for mode in ("nearest", "linear", "cubic")]
        cases += [case(f"grid 3-D {mode} {padding} {aligned}", "GridSample", [volume, grid3], shared | {"mode": mode},
                       opset=20) for mode in ("nearest", "linear")]
    cases.append(case("grid bilinear", "GridSample", [image, grid], {"mode": "bilinear"}, opset=16))
    theta2, theta3 = normal(2, 2, 3), normal(2, 3, 4)
    for aligned in (0, 1):
        cases += [case(f"affine {aligned}", "AffineGrid", [theta2, np.array([2, 3, 4, 5])],
                       {"align_corners": aligned}, opset=20),
                  case(f"affine 3-D {aligned}", "AffineGrid", [theta3, np.array([2, 3, 4, 5, 2])],
                       {"align_corners": aligned}, opset=20)]
    return cases


def boxes(count: int, size: float) -> np.ndarray:
    corners = np.sort(np.random.default_rng(3).uniform(-1, size, (count, 2, 2)).astype("float32"), axis=1)
    return corners.reshape(count, 4)


def region_cases() -> list[Case]:
    image, rois, where = normal(2, 3, 12, 16), boxes(6, 20), integers(0, 2, 6, dtype="int64")
    cases = []
    for mode, ratio, half in itertools.product(("avg", "max"), (0, 2, 3), ("half_pixel", "output_half_pixel")):
        if (mode, ratio) != ("max", 0):
            cases.append(case(f"roi align {mode} {ratio} {half}", "RoiAlign", [image, rois, where],
                              {"mode": mode, "sampling_ratio": ratio, "output_height": 3, "output_width": 4,
                               "spatial_scale": 0.7, "coordinate_transformation_mode": half}, opset=16))
    cases.append(case("roi align 10", "RoiAlign", [image, rois, where],
                      {"output_height": 2, "output_width": 2, "sampling_ratio": 2}, opset=10))
    numbered = np.concatenate([where[:, None].astype("float32"), np.abs(rois)], 1)
    cases.append(case("roi pool", "MaxRoiPool", [image, numbered], {"pooled_shape": [3, 4], "spatial_scale": 0.6}))
    many, scores = np.stack([boxes(40, 10), boxes(40, 10) + 0.5]), normal(2, 3, 40)
    centred = np.concatenate([many[..., :2], np.abs(many[..., 2:])], -1)
    for name, given, centre in (("corners", many, 0), ("centres", centred, 1)):
        for overlap, lowest in ((0.3, 0.0), (0.5, -1.0), (0.0, 0.4)):
            cases.append(case(f"suppression {name} {overlap}", "NonMaxSuppression",
                              [given, scores, np.array([7]), np.array([overlap], "float32"),
                               np.array([lowest], "float32")], {"center_point_box": centre}))
    cases.append(case("suppression without limits", "NonMaxSuppression", [many, scores, np.array([3])]))
    weight, offset = normal(4, 2, 3, 3), normal(2, 2 * 18, 6, 8)
    shared = {"pads": [1, 1, 1, 1], "strides": [2, 2], "group": 2, "offset_group": 2, "kernel_shape": [3, 3]}
    cases.append(case("deformable", "DeformConv", [normal(2, 4, 12, 16), weight, offset, normal(4),
                                                   normal(2, 18, 6, 8)], shared, opset=19))
    cases.append(case("deformable dilated", "DeformConv",
                      [normal(1, 2, 9, 8), normal(3, 2, 2, 3), normal(1, 12, 7, 4)],
                      {"dilations": [2, 2], "kernel_shape": [2, 3], "pads": [0, 0, 0, 0]}, opset=19))
    return cases


def signal_cases() -> list[Case]:
    cases = []
    for n in (1, 2, 7, 16, 255, 263, 300, 600, 1024):
        real, both = normal(2, n, 1), normal(2, n, 2)
        tolerance = 1e-3 if n < 256 else 1e-2  # the sums of ONNX Runtime are in f32, one after the other
        cases += [case(f"dft {n}", "DFT", [both], {"axis": 1}, tolerance=tolerance),
                  case(f"dft real {n}", "DFT", [real], {"axis": 1}, tolerance=tolerance),
                  case(f"dft one side {n}", "DFT", [real], {"axis": 1, "onesided": 1}, tolerance=tolerance),
                  case(f"dft inverse {n}", "DFT", [both], {"axis": 1, "inverse": 1}, tolerance=tolerance)]
    x = normal(3, 10, 4, 2)
    cases += [case("dft longer", "DFT", [x, np.array(13)], {"axis": 1}),
              case("dft shorter", "DFT", [x, np.array(6)], {"axis": 1}),
              case("dft axis", "DFT", [x, None, np.array(0)], opset=20),
              case("dft last axis", "DFT", [x, None, np.array(-2)], {"inverse": 1}, opset=20),
              case("stft", "STFT", [normal(2, 64, 1), np.array(8), normal(16)]),
              case("stft both sides", "STFT", [normal(2, 64, 1), np.array(8), normal(16), np.array(16)],
                   {"onesided": 0}),
              case("stft complex", "STFT", [normal(2, 64, 2), np.array(5), None, np.array(16)], {"onesided": 0}),
              case("mel", "MelWeightMatrix", [np.array(8), np.array(64), np.array(8192),
                                              np.array(20.0, "float32"), np.array(4000.0, "float32")])]
    for op, periodic in itertools.product(("HannWindow", "HammingWindow", "BlackmanWindow"), (0, 1)):
        cases.append(case(f"{op} {periodic}", op, [np.array(11)], {"periodic": periodic}))
    return cases


def learning_cases() -> list[Case]:
    x, numbers = normal(5, 4), integers(0, 4, 3, 5, dtype="int64")
    everything = (0, 1, 2, 3)
    cases = [case(f"unique {axis} {ordered}", "Unique", [numbers if axis is None else numbers % 2],
                  {"sorted": ordered} | ({} if axis is None else {"axis": axis}), everything)
             for axis, ordered in itertools.product((None, 0, 1, -1), (0, 1))]
    cases.append(case("unique floats", "Unique", [np.array([2, -0.0, 0.0, -3, 2], "float32")], {}, everything))
    labels, weight = integers(0, 4, 5, dtype="int64"), np.abs(normal(4))
    for how in ("mean", "sum", "none"):
        cases += [case(f"cross entropy {how}", "SoftmaxCrossEntropyLoss", [x, labels, weight], {"reduction": how},
                       (0, 1)),
                  case(f"cross entropy ignoring {how}", "SoftmaxCrossEntropyLoss", [x, labels],
                       {"reduction": how, "ignore_index": int(labels[0])}, (0, 1)),
                  case(f"likelihood {how}", "NegativeLogLikelihoodLoss", [x, labels, weight],
                       {"reduction": how, "ignore_index": int(labels[1])}, opset=13)]
    ml, coefficients = "ai.onnx.ml", [float(v) for v in normal(12)]
    for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        cases.append(case(f"classes {transform}", "LinearClassifier", [x],
                          {"coefficients": coefficients, "intercepts": [0.1, 0.2, 0.3],
                           "classlabels_ints": [5, 7, 9], "post_transform": transform}, (0, 1), domain=ml))
    cases += [
        case("two classes", "LinearClassifier", [x], {"coefficients": coefficients[:4], "intercepts": [0.1],
                                                      "classlabels_ints": [0, 1], "post_transform": "LOGISTIC"},
             (0, 1), domain=ml),
        case("regression", "LinearRegressor", [x], {"coefficients": coefficients, "intercepts": [0.1, 0.2, 0.3],
                                                    "targets": 3}, domain=ml),
        case("scaler", "Scaler", [x], {"offset": [1.0, 2.0, 3.0, 4.0], "scale": [0.5, 1.0, 2.0, 3.0]}, domain=ml),
        case("scaler of one", "Scaler", [x], {"offset": [1.0], "scale": [0.5]}, domain=ml),
        case("binary", "Binarizer", [x], {"threshold": 0.2}, domain=ml),
        case("features", "ArrayFeatureExtractor", [x, np.array([[2, 0, 3]])], domain=ml),
        case("features of a row", "ArrayFeatureExtractor", [x[0], np.array([1, 1])], domain=ml),
        case("labels", "LabelEncoder", [numbers], {"keys_int64s": [0, 1, 3], "values_floats": [0.5, 1.5, 3.5],
                                                   "default_float": -2.0}, domain=ml),
        case("labels of floats", "LabelEncoder", [np.array([1, np.nan, 4, 2], "float32")],
             {"keys_floats": [1.0, 2.0, float("nan")], "values_int64s": [10, 20, 30]}, domain=ml)]
    cases += [case(f"norm {norm}", "Normalizer", [np.abs(x)], {"norm": norm}, domain=ml)
              for norm in ("MAX", "L1", "L2")]
    return cases


def trees(votes: str, mode: str, targets: int, *, one_target: bool = False, low: float = -1) -> dict[str, object]:
    """Attributes of three full trees of three levels over four features."""
    rng = np.random.default_rng(11)
    nodes: dict[str, list] = {name: [] for name in ("treeids", "nodeids", "featureids", "values", "modes",
                                                    "truenodeids", "falsenodeids", "missing_value_tracks_true")}
    cast: dict[str, list] = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
    for tree, node in itertools.product(range(3), range(15)):
        is_leaf = node >= 7
        row = (tree, node, int(rng.integers(4)), float(np.float32(rng.integers(-2, 3) / 2)),
               "LEAF" if is_leaf else mode, 0 if is_leaf else 2 * node + 1, 0 if is_leaf else 2 * node + 2,
               int(rng.integers(2)))
        for values, value in zip(nodes.values(), row):
            values.append(value)
        for target in range(1 if one_target else targets) if is_leaf else ():
            for values, value in zip(cast.values(), (tree, node, target, float(np.float32(rng.uniform(low, 1) / 3)))):
                values.append(value)
    return {f"nodes_{name}": values for name, values in nodes.items()} | {
        f"{votes}_{name}": values for name, values in cast.items()}


def tree_cases() -> list[Case]:
    x = (np.random.default_rng(5).integers(-3, 4, (20, 4)) / 2).astype("float32")
    x[3, :2], x[4, 2:] = np.nan, np.nan
    ml, both = "ai.onnx.ml", (0, 1)
    modes = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")
    cases = [case(f"tree {mode}", "TreeEnsembleRegressor", [x],
                  trees("target", f"BRANCH_{mode}", 2) | {"n_targets": 2}, domain=ml) for mode in modes]
    cases += [case(f"trees {how}", "TreeEnsembleRegressor", [x],
                   trees("target", "BRANCH_LT", 2) | {"n_targets": 2, "aggregate_function": how,
                                                      "base_values": [0.5, -0.25]}, domain=ml)
              for how in ("SUM", "AVERAGE", "MIN", "MAX")]
    for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
        shared = {"post_transform": transform}
        three, two = {"classlabels_int64s": [4, 2, 7]}, {"classlabels_int64s": [0, 1]}
        op = "TreeEnsembleClassifier"
        # Of two classes with votes for both, ONNX Runtime takes the second where its score is above 0.
        cases += [
            case(f"classes of trees {transform}", op, [x], trees("class", "BRANCH_LEQ", 3) | three | shared, both,
                 domain=ml),
            case(f"two classes of trees {transform}", op, [x],
                 trees("class", "BRANCH_LEQ", 2) | two | shared, both, domain=ml,
                 parts=(nothing,))]
        if transform != "SOFTMAX":
            cases += [
                case(f"one score of trees {transform}", op, [x],
                     trees("class", "BRANCH_LEQ", 2, one_target=True) | two | shared, both, domain=ml),
                case(f"one probability of trees {transform}", op, [x],
                     trees("class", "BRANCH_LEQ", 2, one_target=True, low=0) | two | shared, both, domain=ml)]
    cases.append(case("base of classes", "TreeEnsembleClassifier", [x],
                      trees("class", "BRANCH_LEQ", 3) | {"classlabels_int64s": [0, 1, 2],
                                                         "base_values": [0.1, 0.9, -0.4]}, both, domain=ml))
    numbers = integers(0, 4, 3, 5, dtype="int64")
    cases += [
        case("one hot", "OneHotEncoder", [numbers], {"cats_int64s": [1, 0, 3]}, domain=ml),
        case("imputed", "Imputer", [x], {"imputed_value_floats": [1.0, 2.0, 3.0, 4.0],
                                         "replaced_value_float": float("nan")}, domain=ml),
        case("imputed numbers", "Imputer", [numbers], {"imputed_value_int64s": [9], "replaced_value_int64": 2},
             domain=ml),
        case("joined features", "FeatureVectorizer", [x, normal(20, 2)], {"inputdimensions": [4, 2]}, domain=ml)]
    return cases


def vector_cases() -> list[Case]:
    """Support vector machines of random numbers."""
    ml, both, x = "ai.onnx.ml", (0, 1), normal(9, 3)
    kernels = {"LINEAR": [], "RBF": [0.4, 0, 0], "POLY": [0.3, 0.5, 3], "SIGMOID": [0.2, -0.1, 0]}
    cases = []
    for (kernel, parameters), classes, transform in itertools.product(kernels.items(), (2, 3, 5), ("NONE", "LOGISTIC", "SOFTMAX")):
        counts = [2, 1, 3, 1, 2][:classes]
        pairs = classes * (classes - 1) // 2
        rest = {"kernel_type": kernel, "kernel_params": [float(v) for v in parameters or (0, 0, 0)], "vectors_per_class": counts,
                "support_vectors": normal(sum(counts) * 3).tolist(), "coefficients": normal((classes - 1) * sum(counts)).tolist(),
                "rho": normal(pairs).tolist(), "classlabels_ints": [4, 2, 7, 0, -3][:classes], "post_transform": transform}
        cases.append(case(f"vectors {kernel} {classes} {transform}", "SVMClassifier", [x], rest, both, domain=ml))
        if transform != "LOGISTIC":
            rest |= {"prob_a": (-np.abs(normal(pairs))).tolist(), "prob_b": (normal(pairs) / 5).tolist()}
            cases.append(case(f"probabilities {kernel} {classes} {transform}", "SVMClassifier", [x], rest, both, domain=ml))
    for kernel, parameters in kernels.items():
        rest = {"kernel_type": kernel, "kernel_params": [float(v) for v in parameters or (0, 0, 0)], "n_supports": 4, "rho": [0.3],
                "support_vectors": normal(12).tolist(), "coefficients": normal(4).tolist()}
        cases += [case(f"vector regression {kernel}", "SVMRegressor", [x], rest, domain=ml),
                  case(f"one class {kernel}", "SVMRegressor", [x], rest | {"one_class": 1}, domain=ml)]
    linear = {"coefficients": normal(9).tolist(), "rho": [0.2], "kernel_params": [0.0, 0.0, 0.0]}
    return cases + [
        case("no vectors", "SVMClassifier", [x], linear | {"classlabels_ints": [3, 1, 2], "post_transform": "SOFTMAX"}, both, domain=ml),
        case("no vectors regression", "SVMRegressor", [x], linear | {"coefficients": normal(3).tolist(), "n_supports": 0}, domain=ml)]


def attention_cases() -> list[Case]:
    q, k, v = normal(2, 4, 5, 8), normal(2, 2, 6, 8), normal(2, 2, 6, 10)
    past_k, past_v = normal(2, 2, 3, 8), normal(2, 2, 3, 10)
    mask = integers(0, 2, 5, 6).astype(bool) | np.eye(5, 6, dtype=bool)
    cos, sin = normal(9, 4), normal(9, 4)
    ids = integers(0, 9, 2, 5, dtype="int64")
    return [
        case("attention", "Attention", [q, k, v], opset=23),
        case("attention scale", "Attention", [q, k, v], {"scale": 0.3, "softcap": 1.5}, opset=23),
        case("attention mask", "Attention", [q, k, v, mask], opset=23),
        case("attention scores", "Attention", [q, k, v, normal(2, 1, 5, 6)], {}, (0, 3), opset=23),
        case("attention past", "Attention", [q, k, v, None, past_k, past_v], {}, (0, 1, 2), opset=23),
        case("attention flat", "Attention", [normal(2, 5, 32), normal(2, 6, 16), normal(2, 6, 20)],
             {"q_num_heads": 4, "kv_num_heads": 2}, opset=23),
        case("rotary", "RotaryEmbedding", [q, cos, sin, ids], opset=23),
        case("rotary interleaved", "RotaryEmbedding", [q, cos, sin, ids], {"interleaved": 1}, opset=23),
        case("rotary part", "RotaryEmbedding", [q, cos[:, :2], sin[:, :2], ids],
             {"rotary_embedding_dim": 4, "num_heads": 4}, opset=23),
    ]


def recurrent_cases() -> list[Case]:
    """Of more steps than are unrolled."""
    steps, batch, size, hidden = 23, 3, 5, 6
    x = normal(steps, batch, size)
    lengths = np.array([steps, 1, 9], "int32")
    cases = []
    for op, gates, outputs in (("RNN", 1, (0, 1)), ("GRU", 3, (0, 1)), ("LSTM", 4, (0, 1, 2))):
        for direction, count in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
            weights = [normal(count, gates * hidden, width) / 2 for width in (size, hidden)]
            bias, state = normal(count, 2 * gates * hidden) / 2, normal(count, batch, hidden)
            all_states = [state] if op != "LSTM" else [state, normal(count, batch, hidden)]
            attributes = {"hidden_size": hidden, "direction": direction}
            cases += [
                case(f"{op} {direction}", op, [x, *weights], attributes, outputs),
                case(f"{op} {direction} lengths", op, [x, *weights, bias, lengths, *all_states], attributes | {"clip": 0.5}, outputs)]
    peepholes = normal(1, 3 * hidden)
    cases += [
        case("LSTM peepholes", "LSTM", [x, normal(1, 4 * hidden, size), normal(1, 4 * hidden, hidden), None, None, None, None, peepholes],
             {"hidden_size": hidden}, (0, 1, 2)),
        case("GRU linear", "GRU", [x, normal(1, 3 * hidden, size), normal(1, 3 * hidden, hidden), normal(1, 6 * hidden)],
             {"hidden_size": hidden, "linear_before_reset": 1}, (0, 1))]
    return cases


def body(nodes: list[NodeProto], inputs: Mapping[str, int], outputs: Mapping[str, int], constants: Mapping[str, np.ndarray]) -> GraphProto:
    """Of a loop, with values by name and element type; the number of the step and the condition are scalars."""
    scalars = ("step", "goes_on")
    return helper.make_graph(nodes, "body", [helper.make_tensor_value_info(name, kind, [] if name in scalars else None) for name, kind in inputs.items()],
                             [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
                             [numpy_helper.from_array(value, name) for name, value in constants.items()])


def loop_cases() -> list[Case]:
    """Of more steps than are unrolled."""
    f32, i64, is_bool = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
    node = helper.make_node
    sums = body([node("Add", ["sum", "x"], ["next"]), node("Mul", ["next", "y"], ["scaled"]), node("Neg", ["x"], ["less"])],
                {"sum": f32, "x": f32, "y": f32}, {"next": f32, "scaled": f32, "less": f32}, {})
    header = {"step": i64, "goes_on": is_bool}
    powers = body([node("Cast", ["step"], ["number"], to=f32), node("Mul", ["state", "number"], ["scaled"]), node("Tanh", ["scaled"], ["bent"]),
                   node("Add", ["count", "step"], ["counted"]), node("Identity", ["goes_on"], ["still"])],
                  header | {"state": f32, "count": i64}, {"still": is_bool, "bent": f32, "counted": i64, "scaled": f32}, {})
    ending = body([node("Add", ["state", "state"], ["next"]), node("Less", ["step", "last"], ["still"]), node("Identity", ["next"], ["each"])],
                  header | {"state": f32}, {"still": is_bool, "next": f32, "each": f32}, {"last": np.array(6)})
    pieces = body([node("Unsqueeze", ["step", "zero"], ["at"]), node("Add", ["at", "one"], ["end"]), node("Slice", ["state", "at", "end"], ["part"]),
                   node("Add", ["state", "part"], ["next"]), node("Identity", ["goes_on"], ["still"])],
                  header | {"state": f32}, {"still": is_bool, "next": f32, "part": f32}, {"zero": np.array([0]), "one": np.array([1])})
    growing = body([node("Concat", ["state", "state"], ["next"], axis=0), node("ReduceSum", ["next"], ["total"], keepdims=0),
                    node("Identity", ["goes_on"], ["still"])], header | {"state": f32}, {"still": is_bool, "next": f32, "total": f32}, {})
    x, y, start, most = normal(2, 9, 3), normal(9, 2, 3), normal(2, 3), np.array(9)
    yes = np.array(True)
    return [
        case("scan", "Scan", [start, x, y], {"body": sums, "num_scan_inputs": 2, "scan_input_axes": [1, 0]}, (0, 1, 2)),
        case("scan backwards", "Scan", [start, x, y], {"body": sums, "num_scan_inputs": 2, "scan_input_axes": [-2, 0], "scan_input_directions": [1, 0],
                                                       "scan_output_axes": [2, -2], "scan_output_directions": [1, 0]}, (0, 1, 2)),
        case("loop", "Loop", [most, yes, start, np.array(4)], {"body": powers}, (0, 1, 2)),
        case("loop without condition", "Loop", [most, None, start, np.array(4)], {"body": powers}, (0, 1, 2)),
        case("loop that ends early", "Loop", [np.array(50), yes, start], {"body": ending}, (0, 1)),
        case("loop of a growing state", "Loop", [np.array(6), yes, normal(1, 2)], {"body": growing}, (0, 1)),
        case("loop over places", "Loop", [most, yes, normal(9)], {"body": pieces}, (0, 1))]


if __name__ == "__main__":
    sys.exit(compare(sampling_cases() + region_cases() + signal_cases() + learning_cases() + tree_cases() + vector_cases()
                     + attention_cases() + recurrent_cases() + loop_cases(), __doc__))
