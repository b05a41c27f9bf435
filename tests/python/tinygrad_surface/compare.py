#!/usr/bin/env python3
"""Calls every method of tinygrad's Tensor (cases.py) with tinygrad and with the adapter.

    python compare.py record REFERENCE.json            in an environment with tinygrad (CC=clang)
    python compare.py compare REFERENCE.json [PAGE.md]  in one with plugrad; DEV names the device

The second prints what differs without a listed reason, writes the tables of
docs/python-compatibility.md (between its two marks), and fails for such a difference and for a
method that has neither a case nor a reason to be missing.
"""
from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
MARK = "<!-- written by tests/python/tinygrad_surface/compare.py -->"

# Methods of tinygrad's Tensor that the adapter has not, and why.
LACKS = {
    "alu": "records an operation of tinygrad's graph: the operators do",
    "as_param": "a slot of tinygrad's functions on its graph",
    "call": "a call on tinygrad's graph: plugrad.function, plugrad.jit",
    "callify": "a call on tinygrad's graph: plugrad.jit",
    "custom_kernel": "takes a kernel in tinygrad's UOps: plugrad.UserKernel",
    "decode_hevc_frame": "a video decoder of one vendor",
    "from_blob": "reads an address: plugrad.from_dlpack of the array that owns it",
    "from_url": "fetches over the network: plugrad.data fetches its data sets",
    "hash": "a hash of the bytes on the device",
    "image_conv2d": "OpenCL images",
    "image_dot": "OpenCL images",
    "invalids": "elements without value: Tensor.empty",
    "keccak": "a hash of the bytes on the device",
    "linear_with_vars": "tinygrad's schedule: Tensor.schedule()",
    "random_bits": "bits of tinygrad's generator: random numbers are not the same as ours",
    "schedule_linear": "tinygrad's schedule: Tensor.schedule()",
    "shard": "takes a tuple of devices: Tensor.shard(mesh, spec) of a plugrad.Mesh",
    "shard_": "takes a tuple of devices: x = x.shard(mesh, spec) of a plugrad.Mesh",
    "shard_like": "takes a tuple of devices: x.shard(y.mesh, y.shard_spec)",
    "threefry": "bits of tinygrad's generator",
    "uop": "the node of tinygrad's graph: plugrad.UOp",
}

# Calls whose results differ on purpose, and why.
LAST_OF_TIES = "of equal values the index of the last, as in PyTorch; tinygrad's is the first"
OF_SORTED = "plugrad has the gradient through sort and topk; tinygrad's is 0"
ASSIGNED = "an element that is assigned a number has no gradient; tinygrad's has one"
DIFFERS = {
    "sqrt-1": "the gradient of NaN is NaN; tinygrad simplifies the square of a root first",
    "pow-6": "tinygrad's integers are the bits of a float",
    "dtypes-6": "tinygrad's integers are the bits of a float",
    "cummax-3": LAST_OF_TIES, "cummin-3": LAST_OF_TIES,
    "getitem-17": "an integer beside a list is a list of one, as in NumPy; tinygrad takes it first",
    "sort-0": OF_SORTED, "sort-2": OF_SORTED, "topk-0": OF_SORTED,
    **{f"setitem-{number}": ASSIGNED for number in range(5)},
    "assign-0": "the gradient is of the assigned value alone; tinygrad's is of the old one too",
    "assign-1": "the gradient is that of the assigned value; tinygrad's is of the old one",
    "backward-0": "`.grad` has no history, as in PyTorch; `gradient` has",
}


def plain(value: Any) -> Any:
    """A result as JSON has it."""
    if hasattr(value, "numpy") and hasattr(value, "shape"):
        value = value.cast("float").numpy() if "bfloat16" in str(value.dtype) else value.numpy()
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        numbers = [float(f"{each:.6g}") if isinstance(each, float) else each
                   for each in array.ravel().tolist()]
        return {"dtype": str(array.dtype), "shape": list(array.shape), "values": numbers}
    if isinstance(value, memoryview):
        return list(value.shape)
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    is_simple = isinstance(value, (int, float, str, bool, type(None)))
    return value if is_simple else type(value).__name__


def gradients(expression: str, names: dict[str, Any], result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        result = result[0] if result else None
    if not hasattr(result, "is_floating_point") or not result.is_floating_point():
        return None
    used = [names[name] for name in ("x", "y") if re.search(rf"\b{name}\b", expression)]
    if not used:
        return None
    try:
        made = (result * result).sum().gradient(*used)
        return [plain(each) for each in made]
    except Exception:
        return None


def evaluate(Tensor: Any, dtypes: Any) -> dict[str, Any]:
    from cases import CASES, ERROR_CASES, inputs
    results: dict[str, Any] = {}
    for name, expressions in CASES.items():
        for number, expression in enumerate(expressions):
            names = inputs(Tensor, dtypes)
            try:
                result = eval(expression, names)
                entry = {"value": plain(result), "gradient": gradients(expression, names, result)}
            except Exception as error:
                text = (str(error).splitlines() or [""])[0]
                entry = {"error": f"{type(error).__name__}: {text[:200]}"}
            results[f"{name}-{number}"] = {"call": expression, **entry}
    for number, expression in enumerate(ERROR_CASES):
        try:
            plain(eval(expression, inputs(Tensor, dtypes)))
            entry = {"refused": False}
        except Exception as error:
            entry = {"refused": True, "error": type(error).__name__}
        results[f"error-{number}"] = {"call": expression, **entry}
    return results


def close(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, dict) and isinstance(b, dict) and "values" in a:
        if a["shape"] != b["shape"] or a["dtype"] != b["dtype"]:
            return False
        rtol = max(tolerance, 2e-3 if a["dtype"] == "float16" else 0)
        x, y = (np.array(each["values"], float) for each in (a, b))
        return np.allclose(x, y, rtol, rtol / 10, equal_nan=True)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(close(x, y, tolerance) for x, y in zip(a, b))
    if isinstance(a, float) and isinstance(b, (int, float)):
        return bool(np.isclose(a, b, tolerance, equal_nan=True))
    return bool(a == b)


def verdict(theirs: dict[str, Any], ours: dict[str, Any]) -> str | None:
    """None if they agree, "skipped" if tinygrad refuses the case, else what differs."""
    if "refused" in theirs:
        if not theirs["refused"]:
            return "skipped"
        return None if ours["refused"] else "tinygrad refuses this call"
    if "error" in theirs:
        return "skipped"
    if "error" in ours:
        return ours["error"]
    if not close(theirs["value"], ours["value"], 2e-4):
        return f"value {short(ours['value'])} instead of {short(theirs['value'])}"
    if theirs["gradient"] is not None and ours["gradient"] is not None and \
            not close(theirs["gradient"], ours["gradient"], 1e-3):
        return f"gradient {short(ours['gradient'])} instead of {short(theirs['gradient'])}"
    if theirs["gradient"] is not None and ours["gradient"] is None:
        return "no gradient"
    return None


def short(value: Any) -> str:
    if isinstance(value, dict):
        first = ", ".join(f"{each:.5g}" if isinstance(each, float) else str(each)
                          for each in value["values"][:4])
        return f"{value['dtype']} {tuple(value['shape'])} [{first}…]"
    if isinstance(value, list):
        return "[" + ", ".join(short(each) for each in value[:2]) + "]"
    return str(value)[:80]


def record(path: Path) -> None:
    import tinygrad
    from tinygrad import Tensor, dtypes
    methods = [name for name in dir(Tensor) if not name.startswith("_")]
    results = evaluate(Tensor, dtypes)
    version = Path(tinygrad.__file__).parent.parent.glob("tinygrad-*.dist-info")
    head = {"version": next(version).name.split("-")[1].removesuffix(".dist"), "methods": methods}
    rows = [f"{json.dumps(key)}: {json.dumps(each, separators=(',', ':'))}"
            for key, each in results.items()]
    path.write_text(json.dumps(head)[:-1] + ', "results": {\n' + ",\n".join(rows) + "\n}}\n")
    failed = [each["call"] for each in results.values()
              if "error" in each and "refused" not in each]
    print(f"{len(methods)} methods, {len(results)} cases; tinygrad fails in: {failed}")


def tables(reference: dict[str, Any], differences: dict[str, str], counts: dict[str, int]) -> str:
    lines = [f"Compared with tinygrad {reference['version']} on its CPU device: {counts['same']} "
             f"of {counts['all']} calls agree in value, dtype, shape, gradient or refusal.", "",
             "| call | what differs |", "|---|---|"]
    lines += [f"| `{reference['results'][key]['call'].replace('|', chr(92) + '|')}` | "
              f"{DIFFERS.get(key, what).replace('|', '/')} |" for key, what in differences.items()]
    lines += ["", "Methods of tinygrad's Tensor that the adapter has not:", "",
              "| method | reason |", "|---|---|", *(f"| `{name}` | {why} |" for name, why in sorted(LACKS.items()))]
    return "\n".join(lines)


def compare(path: Path, page: Path | None) -> int:
    sys.path.insert(0, str(HERE))
    from cases import CASES
    from tinygrad import Tensor, dtypes
    reference = json.loads(path.read_text())
    ours = evaluate(Tensor, dtypes)
    verdicts = {key: verdict(theirs, ours[key]) for key, theirs in reference["results"].items()
                if key in ours}
    differences = {key: what for key, what in verdicts.items() if what not in (None, "skipped")}
    counts = {"all": sum(what != "skipped" for what in verdicts.values()),
              "same": sum(what is None for what in verdicts.values())}
    unexplained = {key: what for key, what in differences.items() if key not in DIFFERS}
    for key, what in unexplained.items():
        print(f"{key}: {reference['results'][key]['call']}: {what}")
    lacking = [name for name in reference["methods"] if not hasattr(Tensor, name)]
    unknown = [name for name in lacking if name not in LACKS]
    no_case = [name for name in reference["methods"] if name not in CASES and name not in LACKS]
    listed = len(differences) - len(unexplained)
    print(f"{counts['same']} of {counts['all']} calls agree, {listed} differ for a reason that is "
          f"listed; tinygrad refuses "
          f"{len(verdicts) - counts['all']} itself; {len(lacking)} of {len(reference['methods'])} "
          f"methods are missing; without a case or reason: {unknown + no_case}")
    if page:
        before, _, after = page.read_text().split(MARK)
        page.write_text(f"{before}{MARK}\n{tables(reference, differences, counts)}\n{MARK}{after}")
    return 1 if unknown or no_case or unexplained else 0


if __name__ == "__main__":
    action, file = sys.argv[1], Path(sys.argv[2])
    sys.exit(record(file) if action == "record" else
             compare(file, Path(sys.argv[3]) if sys.argv[3:] else None))
