"""Compares networks that onnxruntime.quantization quantises with ONNX Runtime and onnx.reference, node by node and as a whole.

    quantised_networks.py FOLDER [--device D] [--filter TEXT]

FOLDER has .onnx files at any depth; those with branches are left out. Each is quantised in three ways: "dynamic"
(DynamicQuantizeLinear, MatMulInteger, ConvInteger), "QOperator" (QLinearConv, QLinearMatMul and operators of com.microsoft) and
"QDQ" (QuantizeLinear and DequantizeLinear around operators of floats). Each quantised node is computed from the inputs that it
has in ONNX Runtime: its results must be within one step of those of ONNX Runtime, whose kernels for 8 bits saturate sums on some
processors, or equal to onnx.reference. The outputs of the whole network must have a cosine of at least 0.999, or of at least as
much as those of ONNX Runtime with its optimisations or with inputs that are changed by one rounding. Exits with 1 otherwise.
"""
from __future__ import annotations

import argparse
import contextlib
import io
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from corrected_operators import CORRECTED
from onnx import ModelProto, NodeProto, helper
from onnx.reference import ReferenceEvaluator
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process
from PIL import Image
from real_models import inputs_of

import plugrad as pg

Values = dict[str, np.ndarray]
EXACT = ("ConvInteger", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "QLinearConv", "QLinearMatMul", "QuantizeLinear")
LINE = (37, 33, 371, 85)  # of the poster
PICTURES = {"_det_": ((0, 0, 640, 300), (320, 160)), "_rec_": (LINE, (320, 48)), "_cls_": (LINE, (192, 48))}  # box, size
WAYS = ("dynamic", "QOperator", "QDQ")
LEAST_COSINE = 0.999


def given_inputs(session: onnxruntime.InferenceSession, name: str, random: np.random.Generator) -> Values:
    """Those of real_models.py, but networks for text get a picture of text: on noise, their outputs are noise."""
    kind = next((kind for kind in PICTURES if kind in name), None)
    if kind is None:
        return inputs_of(session, name, 0, random)
    box, size = PICTURES[kind]
    with tempfile.TemporaryDirectory() as folder:
        poster = Path(folder) / "poster.png"
        subprocess.run([sys.executable, str(Path(__file__).with_name("poster.py")), str(poster)], check=True)
        pixels = np.asarray(Image.open(poster).convert("RGB").crop(box).resize(size), np.float32)
    return {session.get_inputs()[0].name: np.ascontiguousarray(pixels[None, :, :, ::-1].transpose(0, 3, 1, 2) / 127.5 - 1)}


class Inputs(quantization.CalibrationDataReader):
    """Three inputs."""

    def __init__(self, path: Path, name: str) -> None:
        session, random = session_of(onnx.load(path)), np.random.default_rng(3)
        self.rest = iter([given_inputs(session, name, random) for _ in range(3)])

    def get_next(self) -> Values | None:
        return next(self.rest, None)


def session_of(model: ModelProto, optimises: bool = False) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if not optimises:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def quantised(path: Path, way: str, folder: Path) -> ModelProto:
    prepared, to = folder / "prepared.onnx", folder / "quantised.onnx"
    with contextlib.redirect_stdout(io.StringIO()):  # which has remarks of the quantiser
        quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
        has_gemm = any(node.op_type == "Gemm" for node in onnx.load(prepared).graph.node)
        if way == "dynamic":
            quantization.quantize_dynamic(prepared, to)
        else:
            per_channel = way == "QOperator" and not has_gemm  # where onnxruntime 1.32 quantises weights of channels
            quantization.quantize_static(prepared, to, Inputs(prepared, path.name), quantization.QuantFormat[way],
                                         per_channel=per_channel)
    return onnx.load(to)


def has_branches(path: Path) -> bool:
    """The quantiser writes their nodes in an order that ONNX does not allow."""
    return any(node.op_type in ("If", "Loop", "Scan") for node in onnx.load(path).graph.node)


def is_quantised(node: NodeProto) -> bool:
    return node.op_type in EXACT or node.op_type.startswith("QLinear")


def nodes_alone(model: ModelProto, values: Values) -> tuple[ModelProto, list[tuple[NodeProto, str, str]]]:
    """The quantised nodes, side by side, with inputs that are the model's; node, and the name of each result here and there."""
    constants = {constant.name: constant for constant in model.graph.initializer}
    nodes, results = [], []
    for node in filter(is_quantised, model.graph.node):
        alone = NodeProto()
        alone.CopyFrom(node)
        del alone.output[:]
        for name in node.output:
            alone.output.append(f"{name} alone")
            results.append((node, f"{name} alone", name))
        nodes.append(alone)
    used = dict.fromkeys(name for node in nodes for name in node.input if name)
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(values[name].dtype), values[name].shape)
              for name in used if name not in constants]
    outputs = [helper.make_tensor_value_info(alone, helper.np_dtype_to_tensor_dtype(values[name].dtype), values[name].shape)
               for _, alone, name in results]
    graph = helper.make_graph(nodes, "nodes", inputs, outputs, [constants[name] for name in used if name in constants])
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version), results


def values_in(model: ModelProto, given: Values) -> Values:
    """Each value of the graph, as ONNX Runtime computes it."""
    open_model = ModelProto()
    open_model.CopyFrom(model)
    named = {output.name for output in model.graph.output}
    for node in model.graph.node:
        open_model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in node.output if name and name not in named)
    session = session_of(open_model)
    return given | dict(zip([output.name for output in session.get_outputs()], session.run(None, given)))


def steps_apart(got: np.ndarray, wanted: np.ndarray) -> float:
    """In steps of the result; floats have steps of 1e-6 of the largest."""
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), f"{got.dtype} {got.shape}, wanted {wanted.dtype} {wanted.shape}"
    size = 1.0 if wanted.dtype.kind in "iu" else 1e-6 * max(float(np.abs(wanted).max(initial=0)), 1e-30)
    return float(np.abs(got.astype("float64") - wanted.astype("float64")).max(initial=0)) / size


def compare(name: str, way: str, model: ModelProto, device: str) -> bool:
    """Errors: what plugrad raises."""
    session = session_of(model)
    given = given_inputs(session, name, np.random.default_rng(7))
    values = values_in(model, given)
    alone, results = nodes_alone(model, values)
    inputs = {value.name: values[value.name] for value in alone.graph.input}
    with pg.device(device):
        found = [np.asarray(value) for value in pg.onnx.load(alone.SerializeToString(), device)(**inputs)]
        whole = [np.asarray(value) for value in pg.onnx.load(model.SerializeToString(), device)(**given)]
    outcomes: Counter[str] = Counter()
    for (node, result, there), got in zip(results, found):
        apart = steps_apart(got, values[there])
        outcome = "equal" if apart == 0 else "within a step" if apart <= 1 else "apart"
        if outcome == "apart" and node.op_type in EXACT and equals_reference(alone, inputs, result, got):
            outcome = "equal to onnx.reference alone"
        if outcome == "apart":
            print(f"  {node.op_type} {there}: {apart:.1f} steps")
        outcomes[outcome] += 1
    wanted = [values[output.name] for output in model.graph.output]
    least = min(map(cosine, whole, wanted))
    moved = {name: np.nextafter(x, x.dtype.type(np.inf)) if x.dtype.kind == "f" else x for name, x in given.items()}
    others = (session.run(None, moved), session_of(model, optimises=True).run(None, given))
    of_itself = min(min(map(cosine, other, wanted)) for other in others)
    print(f"{name} {way}: {len(results)} results of quantised nodes, {dict(outcomes)}; cosine {least:.6f}"
          f" (ONNX Runtime's own: {of_itself:.6f})", flush=True)
    return outcomes["apart"] == 0 and least >= min(LEAST_COSINE, of_itself)


def equals_reference(alone: ModelProto, inputs: Values, name: str, got: np.ndarray) -> bool:
    (wanted,) = ReferenceEvaluator(alone, new_ops=list(CORRECTED)).run([name], inputs)
    return steps_apart(got, np.asarray(wanted)) == 0


def cosine(got: np.ndarray, wanted: np.ndarray) -> float:
    a, b = got.astype("float64").ravel(), wanted.astype("float64").ravel()
    return float(a @ b / max(np.sqrt((a @ a) * (b @ b)), 1e-300))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default=pg.default_device())
    parser.add_argument("--filter", default="")
    given = parser.parse_args()
    failed = 0
    for path in sorted(path for path in given.folder.rglob("*.onnx") if given.filter in str(path) and not has_branches(path)):
        with tempfile.TemporaryDirectory() as folder:
            for way in WAYS:
                try:
                    failed += not compare(path.name, way, quantised(path, way, Path(folder)), given.device)
                except Exception as error:  # noqa: BLE001: each model is reported
                    failed += 1
                    print(f"{path.name} {way}: {type(error).__name__}: {' '.join(str(error).split())[:300]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
