"""Tests that train and data support fashion_mnist and cifar10, with generated files in their
formats."""
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import tempfile
import time
import unittest

BINARY = os.environ["PLUGRAD_BINARY"]


def run(*arguments, **environment):
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=250,
                          env={**os.environ, **environment})


def idx(path, shape, values):
    """Magic number, extents and first values; the rest is a sparse hole of zeros."""
    size = 1
    for extent in shape:
        size *= extent
    header = struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape)
    with path.open("wb") as file:
        file.write(header + values)
        file.truncate(len(header) + size)


def write_idx_set(folder):
    folder.mkdir()
    for part, count in (("train", 60000), ("t10k", 10000)):
        idx(folder / f"{part}-images-idx3-ubyte", (count, 28, 28), b"")
        idx(folder / f"{part}-labels-idx1-ubyte", (count,), bytes([0]) * count)


def write_cifar(folder):
    folder.mkdir(parents=True)
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        with (folder / f"{name}.bin").open("wb") as file:
            file.truncate(10000 * (1 + 3 * 32 * 32))


class DataSets(unittest.TestCase):
    def test_a_network_trains_on_files_of_either_form(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_idx_set(folder / "fashion-mnist")
            write_cifar(folder / "cifar-10/cifar-10-batches-bin")
            for data, train, shape in (("fashion_mnist", 60000, [1, 28, 28]), ("cifar10", 50000, [3, 32, 32])):
                told = json.loads(run("data", data, "--json", PLUGRAD_DATA=name).stdout)
                self.assertEqual(told, {"name": data, "train": train, "test": 10000, "sample_shape": shape})
                done = run("train", data, "--model", "small", "--steps", "8", "--batch", "16", "--json", PLUGRAD_DATA=name)
                self.assertEqual(done.returncode, 0, done.stderr)
                result = json.loads(done.stdout)
                self.assertEqual((result["data"], result["model"], result["steps"]), (data, "small", 8))
                self.assertEqual(result["test_accuracy"], 1)  # every label is 0
                self.assertLess(result["loss"], 2)  # ln 10 = 2.3 before the first step

    def test_a_signal_ends_a_training_with_the_exit_code_of_shells(self):
        with tempfile.TemporaryDirectory() as name:
            write_idx_set(pathlib.Path(name, "fashion-mnist"))
            command = [BINARY, "train", "fashion_mnist", "--model", "small", "--batch", "16", "--steps", "100000", "--json"]
            for sent, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
                child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                         env={**os.environ, "PLUGRAD_DATA": name})
                while not re.match("train +[1-9]", child.stderr.readline()):  # of the first step
                    self.assertIsNone(child.poll())
                time.sleep(0.5)
                child.send_signal(sent)
                out, told = child.communicate(timeout=250)
                self.assertEqual(child.returncode, code)
                self.assertTrue(json.loads(out)["interrupted"])
                self.assertIn("of 100000 steps; nothing is saved without --save", told)

    def test_data_that_is_nowhere_is_told_with_every_place(self):
        with tempfile.TemporaryDirectory() as name:
            nothing = {"PLUGRAD_DATA": name, "PLUGRAD_CACHE_DIR": name + "/cache",
                       "https_proxy": "http://127.0.0.1:1", "http_proxy": "http://127.0.0.1:1"}
            for data, folder, file in (("fashion_mnist", "fashion-mnist", "train-images-idx3-ubyte.gz"),
                                       ("cifar10", "cifar-10", "cifar-10-binary.tar.gz")):
                done = run("train", data, **nothing)
                self.assertEqual(done.returncode, 1)
                for told in (f"PLUGRAD_DATA is {name}", f"{name}/cache/{folder}", file, "--data or PLUGRAD_DATA"):
                    self.assertIn(told, done.stderr)
                done = run("data", data, "--data", name)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(f"neither {name} nor its {folder}/ holds {file}", done.stderr)
                self.assertEqual(run("data", data, "--where", **nothing).stdout, f"{name}/cache/{folder}\n")


if __name__ == "__main__":
    unittest.main()
