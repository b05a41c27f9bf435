#!/usr/bin/env python3
"""Compares the op cases with PyTorch: compare_with_torch.py PROGRAM [FAMILY | GTEST_FILTER]

Runs the program (pgr_test_ops), which writes inputs, outputs and gradients of its rows, evaluates
each row's expression with PyTorch in the inputs' dtypes, and compares shapes, dtypes, values and
gradients within the row's bounds. If the difference is due to PyTorch's rounding, its float64
result is used. Exit status 77: torch is missing."""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("skipped: this Python does not import torch")
    sys.exit(77)

DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
          "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8,
          "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64, "bool": torch.bool,
          "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2}


def read(data, info):
    dtype, count = DTYPES[info["dtype"]], math.prod(info["shape"])
    if count == 0:
        return torch.empty(info["shape"], dtype=dtype)
    return torch.frombuffer(data, dtype=dtype, count=count, offset=info["offset"]).reshape(info["shape"]).clone()


def evaluate(row, inputs, wide):
    """Outputs and gradients of the row's expression."""
    inputs = [x.double() if wide and x.is_floating_point() else x for x in inputs]
    for place in row["gradients_of"]:
        inputs[place].requires_grad_()
    names = dict(zip("xyzw", inputs), torch=torch, F=F, math=math, inf=math.inf, nan=math.nan)
    found = eval(row["torch"], names)
    outputs = list(found) if isinstance(found, (tuple, list)) else [found]
    outputs = [o if isinstance(o, torch.Tensor) else torch.tensor(o) for o in outputs]
    gradients = []
    if row["gradients_of"]:
        loss = 0
        for output in (o for o in outputs if o.is_floating_point()):
            at = torch.arange(output.numel(), dtype=torch.float64)
            kind = torch.float64 if output.dtype == torch.float64 else torch.float32
            loss = loss + (output.to(kind) * torch.cos(0.3 + 0.5 * at).reshape(output.shape).to(kind)).sum()
        targets = [inputs[place] for place in row["gradients_of"]]
        if isinstance(loss, torch.Tensor) and loss.requires_grad:
            gradients = torch.autograd.grad(loss, targets, allow_unused=True)
        gradients = [torch.zeros_like(t) if g is None else g
                     for t, g in zip(targets, gradients or [None] * len(targets))]
    return [o.detach() for o in outputs], [g.detach() for g in gradients]


def kind(dtype):
    return str(dtype) if dtype.is_floating_point else "bool" if dtype == torch.bool else "integer"


def difference(ours, theirs, bound):
    """Describes the worst element, or returns an empty text."""
    if ours.shape != theirs.shape:
        return f"shape {tuple(ours.shape)}, PyTorch {tuple(theirs.shape)}"
    if ours.numel() == 0:
        return None
    if not ours.is_floating_point() and not theirs.is_floating_point():
        wrong = ours.to(torch.int64) != theirs.to(torch.int64)
        a, b = ours.to(torch.int64), theirs.to(torch.int64)
    else:
        a, b = ours.double(), theirs.double()
        finite = torch.isfinite(b)
        far = (a - b).abs() > bound[0] + bound[1] * b.abs()
        wrong = torch.where(finite, far | ~torch.isfinite(a), ~((a == b) | (a.isnan() & b.isnan())))
    if not wrong.any():
        return None
    score = torch.where(wrong, (a - b).abs().double().nan_to_num(1e308, 1e308), torch.tensor(-1.0).double())
    at = score.flatten().argmax()
    return (f"{int(wrong.sum())} of {wrong.numel()} elements differ, the worst at {int(at)}: "
            f"{a.flatten()[at].item()!r}, PyTorch {b.flatten()[at].item()!r}, bound {bound}")


def compare(row, outputs, gradients, theirs):
    expected, slopes = theirs
    if len(outputs) != len(expected):
        return [f"{len(outputs)} outputs, PyTorch {len(expected)}"]
    faults = [(f"output {i}", difference(a, b, row["forward"])) for i, (a, b) in enumerate(zip(outputs, expected))]
    faults += [(f"gradient {i}", difference(a, b, row["backward"])) for i, (a, b) in enumerate(zip(gradients, slopes))]
    return [f"{what}: {fault}" for what, fault in faults if fault]


def check(row, folder):
    """The errors of a row, as sentences."""
    data = bytearray((folder / row["file"]).read_bytes() or b"\0")
    inputs = [read(data, i) for i in row["inputs"]]
    outputs = [read(data, i) for i in row["outputs"]]
    gradients = [read(data, i) for i in row["gradients"]]
    theirs = evaluate(row, [x.clone() for x in inputs], False)
    faults = compare(row, outputs, gradients, theirs)
    if faults and any(x.dtype == torch.float32 for x in inputs):
        try:
            if not compare(row, outputs, gradients, evaluate(row, [x.clone() for x in inputs], True)):
                faults = []
        except RuntimeError:  # an expression with float32 constants
            pass
    if row["torch_dtype"]:
        faults += [f"output {i}: dtype {a.dtype}, PyTorch {b.dtype}"
                   for i, (a, b) in enumerate(zip(outputs, theirs[0])) if kind(a.dtype) != kind(b.dtype)]
    return faults


def main():
    program, chosen = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "*"
    chosen = chosen if "." in chosen or "*" in chosen else chosen + ".*"
    torch.set_num_threads(1)
    failed = compared = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run = subprocess.run([program, f"--gtest_filter={chosen}", "--gtest_brief=1"],
                             env=dict(os.environ, PLUGRAD_TEST_OPS_DUMP=name), check=False)
        index = folder / "index.jsonl"
        rows = [json.loads(line) for line in index.read_text().splitlines()] if index.exists() else []
        for row in rows:
            if not row["torch"]:
                continue
            compared += 1
            try:
                faults = check(row, folder)
            except Exception as error:  # of the expression
                faults = [f"{row['torch']}: {type(error).__name__}: {error}"]
            failed += bool(faults)
            for fault in faults:
                print(f"{row['family']}.{row['name']}: {fault}")
    print(f"{compared} rows compared with PyTorch {torch.__version__}, {failed} differ")
    sys.exit(1 if failed or run.returncode else 0)


if __name__ == "__main__":
    main()
