"""plugrad run and inspect on small models: which sizes and elements their inputs may have, and what is told if they cannot have them."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

BINARY = os.environ["PLUGRAD_BINARY"]
FLOAT, INT8, INT64 = 1, 3, 7


def varint(number):
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def field(number, value):
    """A field of a protobuf message: an integer, a text, or a message's bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def value(name, element, shape):
    """Sizes: a number, a name, or "" for one without."""
    sizes = b"".join(field(1, b"" if size == "" else field(1 if isinstance(size, int) else 2, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, element) + field(2, sizes)))


def model_of(nodes, inputs, output):
    """Nodes: operator, names of inputs, names of outputs."""
    graph = b"".join(field(1, b"".join(field(1, name) for name in given) + b"".join(field(2, name) for name in made) + field(4, op))
                     for op, given, made in nodes)
    graph += field(2, "g") + b"".join(field(11, each) for each in inputs) + field(12, output)
    return field(1, 8) + field(7, graph) + field(8, field(2, 17))


SHIFTED = model_of([("Relu", ["x"], ["y"])], [value("x", FLOAT, ["n", 2])], value("y", FLOAT, ["n", 2]))
PRODUCT = model_of([("MatMul", ["a", "b"], ["y"])], [value("a", FLOAT, ["n", "k"]), value("b", FLOAT, ["k", "m"])],
                   value("y", FLOAT, ["n", "m"]))
UNNAMED = model_of([("MatMul", ["a", "b"], ["y"])], [value("a", FLOAT, ["", ""]), value("b", FLOAT, ["", ""])],
                   value("y", FLOAT, ["", ""]))
INTEGERS = model_of([("Identity", ["x"], ["y"])], [value("x", INT8, [2])], value("y", INT8, [2]))
# A product of n elements.
OF_LENGTH = model_of([("ConstantOfShape", ["n"], ["z"]), ("MatMul", ["z", "z"], ["y"])], [value("n", INT64, [1])], value("y", FLOAT, []))


class Models(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_on(self, model, *arguments, command="run"):
        (self.folder / "m.onnx").write_bytes(model)
        return subprocess.run([BINARY, command, "m.onnx", *arguments], capture_output=True, text=True, timeout=250, cwd=self.folder,
                              env={**os.environ, "DEV": "REFERENCE"})

    def expect(self, text, code, model, *arguments, command="run"):
        done = self.run_on(model, *arguments, command=command)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(text, done.stdout + done.stderr)
        return done

    def test_an_input_of_integers_takes_its_integers_only(self):
        for text in ("1.9", "nan", "1e30", "128", "-129", "inf"):
            self.expect(f"--input x={text}: its type int8 has no such number", 2, INTEGERS, "--input", f"x={text}")
        for text in ("127", "-128", "1e2"):
            self.expect(f"{float(text):g} to {float(text):g}", 0, INTEGERS, "--input", f"x={text}")
        self.expect("--input x= has no value; give x=FILE.npy or x=NUMBER", 2, INTEGERS, "--input", "x=")

    def test_sizes_that_no_tensor_has(self):
        self.expect("--size n=-3 is no size", 2, SHIFTED, "--size", "n=-3")
        for size in (10**15, 2**63 - 1):
            self.expect(f'input "x" of shape ({size}, 2) takes', 1, SHIFTED, "--size", f"n={size}")
        self.expect("--size n is given twice", 2, SHIFTED, "--size", "n=3", "--size", "n=4")
        self.expect("--output y is given twice", 2, SHIFTED, "--output", "y=a.npy", "--output", "y=b.npy")

    def test_bounds(self):
        self.expect("y: f32 (3, 2)", 0, SHIFTED, "--bounds", "x.0=1..4", "--size", "n=3")
        self.expect('size "n" is 5; the model was loaded for 1 to 4', 1, SHIFTED, "--bounds", "x.0=1..4", "--size", "n=5")
        self.expect("--bounds N: the model has n, x.0; did you mean n?", 2, SHIFTED, "--bounds", "N=1..4")
        for bounds in ("4..1", "1..1", f"1..{2**31}"):
            self.expect(f"--bounds n={bounds}: the least", 2, SHIFTED, "--bounds", f"n={bounds}")

    def test_files_and_sizes_agree(self):
        self.expect("y: f32 (3, 2)", 0, SHIFTED, "--size", "n=3", "--output", "y=y.npy")
        self.expect("y: f32 (3, 2)", 0, SHIFTED, "--input", "x=y.npy")
        for size in ("n=4", "x.0=4"):
            self.expect(f"--size {size}, but --input x has 3 in axis 0", 2, SHIFTED, "--input", "x=y.npy", "--size", size)

    def test_a_shared_name_has_one_size(self):
        self.expect("y: f32 (1, 64)", 0, PRODUCT)
        self.expect("y: f32 (5, 7)", 0, PRODUCT, "--size", "n=5", "--size", "k=3", "--size", "m=7", "--output", "y=a.npy")
        self.expect("a call with a (5, 7) b (7, 64)", 0, PRODUCT, "--input", "a=a.npy", command="inspect")

    def test_a_failure_tells_which_sizes_were_assumed(self):
        for command, code in (("run", 1), ("inspect", 0)):
            self.expect("assumed, since the model leaves them open: a.0=1, a.1=64, b.0=1, b.1=64. Give", code, UNNAMED, command=command)
        sizes = [f"--size={name}=3" for name in ("a.0", "a.1", "b.1")]
        done = self.expect("inner sizes differ", 1, UNNAMED, *sizes, "--size", "b.0=4")
        self.assertNotIn("assumed", done.stderr)

    def test_inspect_takes_elements_that_decide(self):
        self.run_on(INTEGERS, "--output", "y=y.npy")
        for length in (5, 7):
            call = json.loads(self.run_on(OF_LENGTH, "--input", f"n={length}", "--json", command="inspect").stdout)["call"]
            self.assertEqual(call.get("multiply_adds"), length, call)
        self.expect('input "n" is i8, the model expects n: int64 (1,)', 0, OF_LENGTH, "--input", "n=y.npy", command="inspect")
        self.expect("--input N: the model has n; did you mean n?", 2, OF_LENGTH, "--input", "N=5", command="inspect")

    def test_profile_and_json_are_one_document(self):
        document = json.loads(self.run_on(SHIFTED, "--json", "--profile").stdout)
        self.assertEqual(document["outputs"], [{"name": "y", "dtype": "f32", "shape": [1, 2]}])
        self.assertEqual(document["profile"]["devices"][0]["launches"], 1)

    def test_errors_of_reading_name_the_file(self):
        self.expect("[onnx] m.onnx: the file is a Git LFS pointer", 1, b"version https://git-lfs.github.com/spec/v1\n")
        for command in ("run", "inspect"):
            self.expect("[onnx] m.onnx: the file is truncated: 5 bytes are missing after byte", 1, SHIFTED[:-9], command=command)  # 4 bytes are the operator set

    def test_a_path_is_never_asked_for_at_pip(self):
        for command in (["conformance", "--device", "REFERENCE"], ["bench", "networks"]):
            for path in ("./nodir", "a/b", "m.onnx"):
                done = subprocess.run([BINARY, *command, "--models", path], capture_output=True, text=True, timeout=250, cwd=self.folder,
                                      env={**os.environ, "DEV": "REFERENCE", "PATH": ""})
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(f"--models {path}: there is no folder or file {path}\n", done.stderr)
            done = subprocess.run([BINARY, *command, "--models", "nodir"], capture_output=True, text=True, timeout=250, cwd=self.folder,
                                  env={**os.environ, "DEV": "REFERENCE", "PATH": ""})
            self.assertIn("there is no folder or file nodir, and python3", done.stderr)

    def test_first_calls_of_files_are_measured_with_their_inputs(self):
        def bench(*arguments):
            return subprocess.run([BINARY, "bench", "cold", "--models", "files", "--threads", "1", "--peers", "none", *arguments],
                                  capture_output=True, text=True, timeout=250, cwd=self.folder, env={**os.environ, "DEV": "CPU"})

        self.assertIn("--models files: there is no folder or file files", bench().stderr)
        inputs = self.folder / "files/shifted"
        inputs.mkdir(parents=True)
        self.run_on(SHIFTED, "--size", "n=5", "--output", "y=files/shifted/x.npy")
        (self.folder / "files/shifted.onnx").write_bytes(SHIFTED)
        first, kernels = json.loads(bench("--json").stdout)["results"]
        self.assertEqual([first["name"], kernels["name"]],
                         ["cold zoo/shifted/threads:1", "cold zoo/shifted/threads:1, kernels compiled"])
        self.assertTrue(0 < first["value"] < 60 and first["unit"] == "s" and kernels["value"] == 1, (first, kernels))
        self.assertEqual(bench("--size", "n=3").returncode, 2)
        (inputs / "x.npy").unlink()
        done = bench()
        self.assertTrue(done.returncode == 1 and "cold zoo/shifted/threads:1: " in done.stderr, done.stderr)
        inputs.rmdir()
        done = bench()
        self.assertTrue(done.returncode == 1 and "shifted.onnx needs its inputs as files/shifted/INPUT.npy" in done.stderr, done.stderr)


if __name__ == "__main__":
    unittest.main()
