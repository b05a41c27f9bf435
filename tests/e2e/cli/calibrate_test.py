"""plugrad calibrate: stored machine parameters, and rejected files."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

BINARY = os.environ["PLUGRAD_BINARY"]


def run(*arguments, **environment):
    return subprocess.run([BINARY, "calibrate", *arguments], capture_output=True, text=True, timeout=250,
                          env={**{k: v for k, v in os.environ.items() if k != "PLUGRAD_BINARY"}, **environment})


class Calibrate(unittest.TestCase):
    def test_without_a_calibration_the_table_is_shown(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run("--show", "--json", PLUGRAD_CACHE_DIR=folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            told = json.loads(done.stdout)
            self.assertIn(told["source"], ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"])
            self.assertEqual(told["figures"]["latency"], 4)
            self.assertTrue(told["path"].startswith(folder + "/machine-"))
            self.assertIn("from         the table, x86-64", run("--show", PLUGRAD_CACHE_DIR=folder).stdout)
            self.assertFalse([name for name in os.listdir(folder) if name.startswith("machine-")])

    def test_what_is_no_calibration_is_ignored_with_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            told = json.loads(run("--show", "--json", PLUGRAD_CACHE_DIR=folder).stdout)
            path = pathlib.Path(told["path"])
            for text in (b"", b"\0" * 4096, b"plugrad calibration 1\n", b"latency 1e30\n" * 100_000):
                path.write_bytes(text)
                done = run("--show", "--json", PLUGRAD_CACHE_DIR=folder)
                self.assertEqual(json.loads(done.stdout), told)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertIn(f"{path} is not used: it is damaged", done.stderr)
            self.assertEqual(run("--forget", PLUGRAD_CACHE_DIR=folder).stderr, "")
            self.assertFalse(path.exists())

    def test_show_and_forget_are_two_requests(self):
        self.assertEqual(run("--show", "--forget").returncode, 2)

    def test_it_is_measured_or_the_table_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run("--json", PLUGRAD_CACHE_DIR=folder)
            told = json.loads(done.stdout)
            if done.returncode == 0:
                self.assertEqual(told["source"], "calibration")
                self.assertEqual(json.loads(run("--show", "--json", PLUGRAD_CACHE_DIR=folder).stdout), told)
                fixed = run("--show", "--json", PLUGRAD_CACHE_DIR=folder, PLUGRAD_DETERMINISTIC="1").stdout
                self.assertNotEqual(json.loads(fixed)["source"], "calibration")
                return
            self.assertEqual(done.returncode, 1)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn("the table is used: ", done.stderr)
            self.assertNotEqual(told["source"], "calibration")


if __name__ == "__main__":
    unittest.main()
