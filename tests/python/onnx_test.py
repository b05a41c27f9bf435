"""onnx_test.py WHEELS: the node test cases of the package onnx, all on CPU and 150 each on OPENCL and REFERENCE, and the examples
that run networks of packages."""
import json
import sys

import fresh

FOLDER = fresh.SOURCE / "tests/python/onnx"
PACKAGES = ["onnx==1.23.2", "numpy", "ml-dtypes"]
EXAMPLES = fresh.SOURCE / "docs/examples/python/models"
NETWORKS = ["magika==1.0.3", "silero-vad==6.2.3"]
TYPES = {"README.md": "markdown", "tools/demo": "shell", "docs/examples/autograd.cpp": "cpp", "CMakePresets.json": "json",
         "tests/python/onnx_test.py": "python"}


def last_line(text: str) -> object:
    return json.loads([line for line in text.splitlines() if line.startswith(("[", "{"))][-1])


def run_examples(environment: fresh.Environment) -> None:
    environment.pip("install", "--no-deps", *NETWORKS)
    found = last_line(environment.run("python", str(EXAMPLES / "file_types.py"), *(str(fresh.SOURCE / name) for name in TYPES)))
    assert found == {str(fresh.SOURCE / name): what for name, what in TYPES.items()}, found
    sound, picture = environment.folder / "syllables.wav", environment.folder / "speech.svg"
    environment.run("python", str(FOLDER / "syllables.py"), str(sound))
    found = last_line(environment.run("python", str(EXAMPLES / "speech.py"), str(sound), "--plot", str(picture)))
    assert found and abs(found[0][0] - 1) < 0.2 and abs(found[-1][1] - 3) < 0.2, f"the voice is from 1 to 3 s: {found}"
    assert "polyline" in picture.read_text()


def main(folder: str) -> None:
    environment = fresh.Environment()
    environment.pip("install", *fresh.wheels_in(folder), *PACKAGES)
    cases = [str(FOLDER / "node_cases.py"), "--known", str(FOLDER / "failing_cases.tsv")]
    print(environment.run("python", "-W", "ignore", *cases, "--device", "CPU")[-4000:])
    for device in ("OPENCL", "REFERENCE"):
        print(environment.run("python", "-W", "ignore", *cases, "--device", device, "--limit", "150")[-4000:])
    run_examples(environment)


main(*sys.argv[1:])
