"""onnx_test.py WHEELS: the node test cases of the package onnx, all on CPU and 150 each on OPENCL and REFERENCE."""
import sys

import fresh

FOLDER = fresh.SOURCE / "tests/python/onnx"
PACKAGES = ["onnx==1.23.2", "numpy", "ml-dtypes"]


def main(folder: str) -> None:
    environment = fresh.Environment()
    environment.pip("install", *fresh.wheels_in(folder), *PACKAGES)
    cases = [str(FOLDER / "node_cases.py"), "--known", str(FOLDER / "failing_cases.tsv")]
    print(environment.run("python", "-W", "ignore", *cases, "--device", "CPU")[-4000:])
    for device in ("OPENCL", "REFERENCE"):
        print(environment.run("python", "-W", "ignore", *cases, "--device", device, "--limit", "150")[-4000:])


main(*sys.argv[1:])
