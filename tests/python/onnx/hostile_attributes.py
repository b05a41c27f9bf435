"""Changes one attribute of a node at a time to values that no file should have, and runs the model.

    hostile_attributes.py [--device D] [--filter REGEX] [--seconds N]

Of each operator the case with the most attributes, of the package onnx or of microsoft_cases.py and runtime_cases.py: each attribute of
it, and each other one of the operator's newest schema, becomes each of VALUES of its type. Every model must give an error or a result
within --seconds: the models run in a child process, which is started again behind one that ends it. Exits with 1 if one does. Needs the
packages onnx and onnxruntime.
"""
from __future__ import annotations

import argparse
import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import microsoft_cases
import numpy as np
import onnx
import runtime_cases
from node_cases import as_input
from onnx import AttributeProto, helper
from onnx.backend.test.case.node import collect_testcases

import plugrad as pg

NUMBERS = (0, -1, 2**31, 2**62, -(2**63))
VALUES = {AttributeProto.INT: NUMBERS, AttributeProto.STRING: ("BOGUS", ""), AttributeProto.FLOAT: (0.0, float("nan"), 3e38),
          AttributeProto.INTS: [[]] + [[number] * count for number in NUMBERS for count in (1, 2)],
          AttributeProto.STRINGS: ([], ["BOGUS"]), AttributeProto.FLOATS: ([], [0.0])}
MOST_MEMORY = 2**30  # of the device


def models() -> Iterator[tuple[onnx.ModelProto, list[object]]]:
    """A model of one node for each operator, and its inputs."""
    own = [getattr(module, name)() for module in (microsoft_cases, runtime_cases) for name in dir(module) if name.endswith("_cases")]
    cases = [(case.model, case.data_sets[0][0]) for case in collect_testcases(None)]
    cases += [(onnx.load_from_string(microsoft_cases.model_of(case)), list(microsoft_cases.named_inputs(case).values()))
              for case in itertools.chain(*own)]
    best: dict[tuple[str, str], tuple[onnx.ModelProto, list[object]]] = {}
    for model, inputs in cases:
        if len(model.graph.node) != 1 or model.functions:
            continue
        node = model.graph.node[0]
        key = node.domain, node.op_type
        if key not in best or len(node.attribute) > len(best[key][0].graph.node[0].attribute):
            best[key] = model, inputs
    for _, (model, inputs) in sorted(best.items()):
        yield model, [as_input(value) for value in inputs]


def attributes_of(node: onnx.NodeProto) -> dict[str, int]:
    """The type of each attribute that the node has or could have."""
    types = {}
    if onnx.defs.has(node.op_type, node.domain):
        schema = onnx.defs.get_schema(node.op_type, domain=node.domain)
        types = {name: attribute.type.value for name, attribute in schema.attributes.items()}
    return types | {attribute.name: attribute.type for attribute in node.attribute}


def hostile_models() -> Iterator[tuple[str, bytes, list[object]]]:
    for model, inputs in models():
        node = model.graph.node[0]
        for name, kind in attributes_of(node).items():
            for value in VALUES.get(kind, ()):
                changed = onnx.ModelProto()
                changed.CopyFrom(model)
                (new,) = changed.graph.node
                kept = [attribute for attribute in new.attribute if attribute.name != name]
                del new.attribute[:]
                new.attribute.extend([*kept, helper.make_attribute(name, value, attr_type=kind)])
                for output in changed.graph.output:
                    output.type.Clear()
                yield f"{node.domain or 'ai.onnx'}.{node.op_type} {name}={value}", changed.SerializeToString(), inputs


def child(device: str, pattern: str, first: int, seconds: int) -> None:
    """Prints a line before each model: its number and name; and after it "+" for a result and "-" for an error."""
    pg.set_default_device(device)
    for number, (name, model, inputs) in enumerate(hostile_models()):
        if number < first or not re.search(pattern, name):
            continue
        print(number, name, flush=True)
        signal.alarm(seconds)  # whose default action ends the process
        try:
            for output in pg.onnx.load(model)(*inputs):
                if not isinstance(output, (list, type(None))):
                    np.asarray(output.numpy() if hasattr(output, "numpy") else output)
            print("+", flush=True)
        except (ValueError, RuntimeError, MemoryError, TypeError, IndexError, OverflowError, NotImplementedError):
            print("-", flush=True)
        signal.alarm(0)
    print("end", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--filter", default="")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--child", type=int)
    given = parser.parse_args()
    if given.child is not None:
        child(given.device, given.filter, given.child, given.seconds)
        return 0
    first, failed, ran, lines = 0, 0, {"+": 0, "-": 0}, ["start"]
    while lines[-1] != "end":
        command = [sys.executable, "-W", "ignore", __file__, "--device", given.device, "--filter", given.filter, "--seconds", str(given.seconds)]
        done = subprocess.run([*command, "--child", str(first)], capture_output=True, text=True,
                              env={"PLUGRAD_MEMORY_LIMIT": str(MOST_MEMORY), **os.environ})
        lines = done.stdout.split("\n")[:-1] or ["nothing"]
        for line in lines:
            ran[line] = ran.get(line, 0) + (line in "+-")
        if lines[-1] == "end":
            break
        print(f"{lines[-1]}: ended the process with {done.returncode}: {done.stderr[-500:]}")
        failed += 1
        if not lines[-1][:1].isdigit():
            break
        first = int(lines[-1].split()[0]) + 1
    print(f"{ran['+']} results, {ran['-']} errors, {failed} ends of the process on {given.device}")
    return 1 if failed or ran["-"] == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
