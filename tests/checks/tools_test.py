"""Tests tools/affected.py and the shell helpers of tools/setup, tools/demo and tools/test."""
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
import affected  # noqa: E402


class Affected(unittest.TestCase):
    TESTS = {name: (folder, words, runs) for name, folder, words, runs in [
        ("unit_nn", "tests/unit/nn", set(), {"unit_nn"}), ("ops_a", "tests/ops", set(), {"ops"}),
        ("ops_b", "tests/ops", set(), {"ops"}), ("cli", "tests/e2e/cli", {"-m"}, set()),
        ("e2e", "tests/e2e", set(), {"e2e"}), ("table", "tests/conformance", {"docs/conformance.md"}, set()),
        ("example_first", "docs", set(), {"first"}), ("pgr_test_jit", "tests/jit", set(), {"jit"})]}
    COMPILED = {"tests/ops/case.h": {"ops"}, "tests/helper.h": {"unit_nn", "e2e"}, "docs/examples/first.cpp": {"first"},
                "core/src/nn/layer.h": {"unit_nn", "e2e"}, "core/src/ir/node.h": {f"p{i}" for i in range(20)} | {"e2e"},
                "tools/scale/plans.h": {"ops"}}

    def chosen(self, *changed):
        return set(affected.choose(changed, self.TESTS, self.COMPILED))

    def test_a_room_of_core(self):
        smoke = {"example_first", "pgr_test_jit"}
        self.assertEqual(self.chosen("core/src/nn/linear.cpp"), {"unit_nn"} | smoke)
        self.assertEqual(self.chosen("core/src/nn/layer.h"), {"unit_nn", "e2e"} | smoke)  # e2e includes it
        self.assertEqual(self.chosen("core/src/ir/node.h"), smoke)  # all include it
        self.assertEqual(self.chosen("CMakeLists.txt"), smoke)

    def test_files_of_tests(self):
        self.assertEqual(self.chosen("tests/ops/case.h"), {"ops_a", "ops_b"})
        self.assertEqual(self.chosen("tests/helper.h"), {"unit_nn", "e2e"})
        self.assertEqual(self.chosen("tests/e2e/cli/view_test.py"), {"cli"})
        self.assertEqual(self.chosen("tests/e2e/new_test.cpp"), {"e2e"})  # not built before

    def test_other_files(self):
        self.assertEqual(self.chosen("docs/examples/first.cpp"), {"example_first"})
        self.assertEqual(self.chosen("docs/conformance.md"), {"table"})
        self.assertEqual(self.chosen("docs/tour.md", "README.md"), set())
        self.assertEqual(self.chosen("tools/plugrad/train.cpp"), {"cli"})
        self.assertEqual(self.chosen("tools/scale/plans.h"), {"ops_a", "ops_b"})  # linked

    def test_smoke_tests_exist(self):
        lists = "".join(file.read_text() for folder in ("tests", "docs") for file in (ROOT / folder).rglob("CMakeLists.txt"))
        for name in affected.SMOKE:
            self.assertIn(name.removeprefix("example_").removeprefix("pgr_test_ops_"), lists)


class Shell(unittest.TestCase):
    def run_bash(self, script, status=0):
        done = subprocess.run(["bash", "-c", f"set -euo pipefail; . tools/common.sh; {script}"], cwd=ROOT, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout.strip(), done.stderr

    def jobs(self, megabytes, limit="max"):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "info").write_text(f"MemTotal: 99999999 kB\nMemAvailable: {megabytes * 1024} kB\n")
            pathlib.Path(folder, "limit").write_text(limit)
            return self.run_bash(f"nproc() {{ echo 8; }}; memory_info={folder}/info memory_limit={folder}/limit; count_jobs")

    def test_jobs_fit_into_memory(self):
        self.assertEqual(self.jobs(64000), ("8", ""))
        for megabytes, limit, jobs in (3700, "max", "2"), (700, "max", "1"), (64000, str(4 << 30), "2"):
            number, message = self.jobs(megabytes, limit)
            self.assertEqual(number, jobs)
            self.assertIn("memory", message)

    def test_a_full_disk_is_named(self):
        self.run_bash("require_space /tmp 1 'a test'")
        _, message = self.run_bash("require_space /tmp 999999999 'a test'", status=1)
        self.assertRegex(message, "a test needs 999999999 MB in /tmp; its file system, mounted on /.* has [0-9]+ MB free")

    def test_unknown_arguments(self):
        for command in ("tools/setup --al", "tools/demo --nothing", "tools/demo --steps 3 word", "tools/demo --python --lr 1",
                        "tools/test --ful", "tools/test --full x", "tools/check/all x"):
            done = subprocess.run(command.split(), cwd=ROOT, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, command)
            self.assertIn("unknown", done.stderr)

    def test_the_demo_knows_the_options_of_the_training(self):
        done = subprocess.run(["tools/demo", "--nothing"], cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertTrue(done.stderr.endswith(
            "--device --model --steps --batch --lr --seed --data --save --load --plot --json\n"), done.stderr)

    def test_a_kill_ends_the_children_too(self):
        with subprocess.Popen(["bash", "-c", ". tools/common.sh; bash -c 'echo on; sleep 99; sleep 98' | cat; echo off"],
                              cwd=ROOT, stdout=subprocess.PIPE, text=True) as script:
            self.assertEqual(script.stdout.readline(), "on\n")
            script.terminate()
            self.assertEqual(script.communicate(timeout=20)[0], "")  # all who hold the pipe have ended
            self.assertEqual(script.returncode, -signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
