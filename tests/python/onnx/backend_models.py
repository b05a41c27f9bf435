"""Runs the model test cases of the package onnx on plugrad, with the package's own comparisons: networks converted from PyTorch,
single operators of PyTorch, simple models, and well-known networks of pictures with weights that a constant fills.

    backend_models.py [--device D] [--filter REGEX] [--large]

Exits with 1 if a case fails. Without --large, four of the networks of pictures are left out, which take the most seconds.
"""
from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import unittest

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test import BackendTest

import plugrad as pg

KINDS = ("PyTorchConverted", "PyTorchOperator", "Simple", "Real")
LARGE = "densenet121|inception_v1|resnet50|vgg19"


def as_array(value: object) -> object:
    return [as_array(element) for element in value] if isinstance(value, list) else np.asarray(value)


class Prepared(BackendRep):
    def __init__(self, model: pg.onnx.Model) -> None:
        self.model = model

    def run(self, inputs: list[object], **_: object) -> list[object]:
        return [as_array(value) for value in self.model(*inputs)]


class Plugrad(Backend):
    device = ""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: object) -> Prepared:
        return Prepared(pg.onnx.load(model.SerializeToString(), cls.device))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"  # the cases of other devices are the same


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default=pg.default_device())
    parser.add_argument("--filter", default="")
    parser.add_argument("--large", action="store_true")
    given = parser.parse_args()
    Plugrad.device = given.device
    start, failed = time.time(), 0
    with tempfile.TemporaryDirectory() as folder, pg.device(given.device):
        os.environ["ONNX_MODELS"] = folder  # where the package writes inputs of the networks of pictures
        tests = BackendTest(Plugrad, __name__).include(f"(?:{given.filter}).*_cpu$")
        if not given.large:
            tests.exclude(LARGE)
        for kind in KINDS:
            cases = unittest.defaultTestLoader.loadTestsFromTestCase(tests.test_cases[f"OnnxBackend{kind}ModelTest"])
            result = unittest.TestResult()
            cases.run(result)
            for case, text in result.failures + result.errors:
                print(f"{case.id().rpartition('.')[2]}: {text.strip().splitlines()[-1][:300]}")
            wrong = len(result.failures) + len(result.errors)
            failed += wrong
            ran = result.testsRun - len(result.skipped)
            print(f"{kind}: {ran - wrong} of {ran} pass on {given.device}, {time.time() - start:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
