"""Gives files that plugrad wrote to ONNX Runtime, and compares with the values that plugrad computed.

    exported_files.py FOLDER [--show N]

FOLDER has NAME.onnx with NAME.safetensors (tests/exported/round_trip.h): inputs, outputs, and permitted errors of each element.
Each file also passes onnx.checker. Prints how many agree; those for which ONNX Runtime has no kernel are counted by operator,
and those that compute what ONNX leaves open (the largest of elements with a NaN, integers of floats that they do not hold), or
multiply the zeros around an image by weights that are not finite.
Exits with 1 if one differs for another reason, or is refused.
"""
from __future__ import annotations

import argparse
import collections
import json
import re
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime

DTYPES = {"BOOL": np.bool_, "I8": np.int8, "U8": np.uint8, "I16": np.int16, "U16": np.uint16, "I32": np.int32, "U32": np.uint32,
          "I64": np.int64, "U64": np.uint64, "F16": np.float16, "F32": np.float32, "F64": np.float64,
          "BF16": ml_dtypes.bfloat16, "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2}
SMALL = (onnx.TensorProto.BFLOAT16, onnx.TensorProto.FLOAT8E4M3FN, onnx.TensorProto.FLOAT8E5M2)
FLOAT = onnx.TensorProto.FLOAT
UNSPECIFIED = "unspecified"


def read(path: Path) -> dict[str, np.ndarray]:
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    entries = json.loads(data[8:8 + size])
    entries.pop("__metadata__", None)
    return {name: np.frombuffer(data[8 + size + e["data_offsets"][0]:8 + size + e["data_offsets"][1]], DTYPES[e["dtype"]]).reshape(e["shape"])
            for name, e in entries.items()}


def with_floats(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with floats for inputs and outputs of types that ONNX Runtime does not exchange with NumPy."""
    graph = model.graph
    for number, value in enumerate([*graph.input, *graph.output]):
        kind = value.type.tensor_type
        if kind.elem_type not in SMALL:
            continue
        small, inner, is_input = kind.elem_type, f"{value.name}/small", number < len(graph.input)
        for node in graph.node:
            for names in (node.input, node.output):
                for i, name in enumerate(names):
                    if name == value.name:
                        names[i] = inner
        kind.elem_type = FLOAT
        cast = onnx.helper.make_node("Cast", [value.name if is_input else inner], [inner if is_input else value.name],
                                     to=small if is_input else FLOAT)
        graph.node.insert(0 if is_input else len(graph.node), cast)
    return model


def as_known(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if array.dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2) else array


def difference(got: np.ndarray, wanted: np.ndarray, errors: np.ndarray) -> str:
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"{got.dtype} {got.shape} instead of {wanted.dtype} {wanted.shape}"
    if got.dtype.kind in "biu" and not errors.any():
        bad = got != wanted
    else:
        a, b = got.astype(np.float64), wanted.astype(np.float64)
        with np.errstate(invalid="ignore"):
            bad = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= errors) | np.isinf(errors))
    if not bad.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{int(bad.sum())} of {bad.size} differ, at {at} {got[at]} instead of {wanted[at]} (permitted error {errors[at]})"


def is_unspecified(node: onnx.NodeProto, given: np.ndarray) -> bool:
    """Whether ONNX does not say what the node computes of this input, or says another than plugrad."""
    if given.dtype.kind != "f":
        return False
    if node.op_type == "Conv":
        return not bool(np.isfinite(given).all())
    if node.op_type in ("ReduceMax", "MaxPool", "Max"):
        return bool(np.isnan(given).any() or (node.op_type == "MaxPool" and np.isneginf(given).any()))
    to = next((a.i for a in node.attribute if a.name == "to"), 0)
    kind = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(to)) if node.op_type == "Cast" else given.dtype
    if kind.kind not in "iu":
        return False
    return not bool(((given > float(np.iinfo(kind).min) - 1) & (given < float(np.iinfo(kind).max) + 1)).all())


def computes_unspecified(model: onnx.ModelProto, options: onnxruntime.SessionOptions, given: dict[str, np.ndarray]) -> bool:
    nodes = [(node, node.input[node.op_type == "Conv"]) for node in model.graph.node
             if node.op_type in ("Cast", "Conv", "ReduceMax", "MaxPool", "Max")]
    values = {value.name: value for value in onnx.shape_inference.infer_shapes(model).graph.value_info}
    names = [name for name in dict.fromkeys(name for _, name in nodes) if name in values]
    model.graph.output.extend(values[name] for name in names)
    session = onnxruntime.InferenceSession(with_floats(model).SerializeToString(), options, providers=["CPUExecutionProvider"])
    known = dict(zip(names, session.run(names, given))) | given
    known |= {one.name: as_known(onnx.numpy_helper.to_array(one)) for one in model.graph.initializer}
    return any(name in known and is_unspecified(node, known[name]) for node, name in nodes)


def check(path: Path) -> str:
    """What is wrong; empty if nothing is."""
    values = read(path.with_suffix(".safetensors"))
    onnx.checker.check_model(str(path), full_check=True)
    model = onnx.load(str(path))
    needs_floats = any(v.type.tensor_type.elem_type in SMALL for v in [*model.graph.input, *model.graph.output])
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    source = with_floats(model).SerializeToString() if needs_floats else str(path)
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    given = {one.name: as_known(values[one.name]) for one in session.get_inputs()}
    for i, got in enumerate(session.run(None, given)):
        found = difference(np.asarray(got), as_known(values[f"output.{i}"]), values[f"error.{i}"])
        if found:
            unspecified = computes_unspecified(onnx.load(str(path)), options, given)
            return UNSPECIFIED if unspecified else f"output {i}: {found}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description="Gives files that plugrad wrote to ONNX Runtime.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", type=int, default=20, help="how many files that differ are shown")
    given = parser.parse_args()
    agree, unspecified, missing, failures = 0, 0, collections.Counter[str](), []
    for path in sorted(given.folder.glob("*.onnx")):
        if not path.with_suffix(".safetensors").exists():
            continue
        try:
            found = check(path)
        except Exception as error:  # noqa: BLE001: ONNX Runtime has a class for each status
            lacks = re.search(r"NOT_IMPLEMENTED.*for an? (\w+\(\d+\))|NOT_IMPLEMENTED.*Could not find an implementation for (\w+\(\d+\))", str(error))
            if lacks:
                missing[lacks[1] or lacks[2]] += 1
                continue
            found = f"{type(error).__name__}: {str(error)[:300]}"
        agree += not found
        unspecified += found == UNSPECIFIED
        if found and found != UNSPECIFIED:
            failures.append(f"{path.stem}: {found}")
    print("\n".join(failures[:given.show]))
    lacking = ", ".join(f"{count} {name}" for name, count in missing.most_common())
    print(f"{agree} agree, {len(failures)} differ, {unspecified} compute what ONNX does not specify; ONNX Runtime has no kernel for {sum(missing.values())}{lacking and ': '}{lacking}")
    return 1 if failures or agree == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
