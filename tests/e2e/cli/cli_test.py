"""Tests the command line's contract: exit codes, streams and JSON shapes for scripts."""
import json
import math
import os
import pathlib
import random
import re
import runpy
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest
from xml.etree import ElementTree

BINARY = os.environ["PLUGRAD_BINARY"]


def run(*arguments, **environment):
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=250,
                          env={**os.environ, **environment})


ROOT = pathlib.Path(__file__).resolve().parents[3]


def bench_rows():
    """Names of the rows of `plugrad bench` on CPU; none in a build without benchmarks."""
    return set(run("bench", "--list", "--device", "CPU").stdout.splitlines())


class Performance(unittest.TestCase):
    """Checks that docs/performance.md and its targets name existing rows."""

    def test_recorded_rows_are_rows_of_bench(self):
        rows = bench_rows()
        if not rows:
            self.skipTest("this build has no benchmarks")
        text = (ROOT / "docs/performance.md").read_text().split("measured: begin")[1].split("measured: end")[0]
        recorded = re.findall(r"^\| (?!what|---|MNIST demo)(.*?) \|", text, re.M)
        self.assertGreater(len(recorded), 20)
        self.assertEqual([name for name in recorded if name not in rows], [])

    def test_targets_and_headlines_are_of_rows_of_bench(self):
        rows = bench_rows()
        if not rows:
            self.skipTest("this build has no benchmarks")
        script = runpy.run_path(str(ROOT / "tools/record-performance"))
        self.assertEqual([f for f in script["TARGETS"] if not any(re.fullmatch(f, name) for name in rows)], [])
        self.assertEqual([name for name in script["HEADLINES"] if name not in rows], [])

    def test_a_column_that_is_not_measured_keeps_its_figures(self):
        script = runpy.run_path(str(ROOT / "tools/record-performance"))

        def document(isa, ratio):
            result = {"name": "attention", "value": 10 * ratio, "unit": "GFLOP/s", "peer": "PyTorch", "peer_value": 10, "ratio": ratio}
            return {"machine": f"machine of {isa}", "suite": "elementwise", "isa": isa, "results": [result]}

        old = ("\nMachine: old. Date: 2026-01-01. Command: `x`.\n\n| what | measured | peer (others) | ratio | target |\n|---|---|---|---|---|\n"
               "| MNIST demo, 120 steps: step, median | 9 ms | | |  |\n| attention | 5 GFLOP/s | PyTorch: 10 | 0.50 | ≥ 1.2x **missed** |\n")
        first = script["table"](script["by_isa"]([document("v3", 1.3)]), None, "", old)
        self.assertIn("native: Machine: old. Date: 2026-01-01. Command: `x`.\n", first)
        self.assertIn("v3: Machine: machine of v3. Date: ", first)
        self.assertIn("| attention | 5 GFLOP/s | PyTorch: 10 | 0.50 **missed** | 13 GFLOP/s | PyTorch: 10 | 1.30 | ≥ 1x |", first)
        self.assertIn("| MNIST demo, 120 steps: step, median | 9 ms |  |  |  |  |  |  |", first)
        again = script["table"](script["by_isa"]([document("native", 2)]), None, "", first)
        self.assertIn("| attention | 20 GFLOP/s | PyTorch: 10 | 2.00 | 13 GFLOP/s | PyTorch: 10 | 1.30 | ≥ 1x |", again)
        self.assertNotIn("MNIST", again)
        with self.assertRaises(SystemExit):
            script["by_isa"]([document("v2", 1)])

    def test_a_filter_and_a_number_of_threads_choose_rows(self):
        if not bench_rows():
            self.skipTest("this build has no benchmarks")
        done = run("bench", "gemm", "--filter", "sgemm/512", "--threads", "2", "--list")
        self.assertEqual((done.returncode, done.stdout), (0, "sgemm/512/threads:2\nsgemm/512/threads:2/beam\n"))

    def test_a_row_has_the_shape_of_the_contract(self):
        done = run("bench", "gemm", "--filter", "sgemm/256/threads:1", "--peers", "none", "--json")
        if "PLUGRAD_BUILD_BENCH=ON" in done.stderr:
            self.skipTest("this build has no benchmarks")
        document = json.loads(done.stdout)
        self.assertEqual(list(document), ["machine", "suite", "isa", "arch", "peer_isas", "results"])
        [row] = document["results"]
        self.assertEqual(list(row), ["name", "value", "unit", "peer", "peer_value", "ratio", "peak_bytes"])
        self.assertEqual((row["name"], row["unit"], row["ratio"]), ("sgemm/256/threads:1", "GFLOP/s", None))
        self.assertGreater(row["value"], 0)
        three_matrices = 3 * 256 * 256 * 4
        self.assertGreaterEqual(row["peak_bytes"], three_matrices)
        self.assertLess(row["peak_bytes"], 8 * three_matrices)

    def test_a_build_is_compared_with_another_in_turns(self):
        if not bench_rows():
            self.skipTest("this build has no benchmarks")
        row = {"name": "nodes built", "value": 2.0, "unit": "million/s", "peer": None}
        with tempfile.TemporaryDirectory() as folder:
            turns = pathlib.Path(folder, "turns")
            program = pathlib.Path(folder, "bin/plugrad")
            program.parent.mkdir()
            program.write_text(f"""#!/bin/sh
case "$*" in
  *--list*) echo '[{{"name": "nodes built"}}, {{"name": "a row of its own"}}]' ;;
  *) echo "$*" >> {turns}; echo '{json.dumps({"results": [row]})}' ;;
esac
""")
            program.chmod(0o755)
            done = run("bench", "framework", "--filter", "nodes built", "--against", folder, "--json")
            asked = turns.read_text().splitlines()
        document = json.loads(done.stdout)
        self.assertEqual((done.returncode, document["against"]), (0, folder))
        [row] = document["results"]
        self.assertEqual((row["name"], row["unit"], row["peer"], row["peer_value"]), ("nodes built", "million/s", folder, 2.0))
        self.assertAlmostEqual(row["ratio"], row["value"] / 2)
        self.assertEqual(asked, ["bench framework --peers none --filter nodes built --json"] * 9)

    def test_a_build_that_cannot_be_compared_with_is_told(self):
        if not bench_rows():
            self.skipTest("this build has no benchmarks")
        with tempfile.TemporaryDirectory() as folder:
            for arguments, said in ((("--against", folder), f"there is no {folder}/bin/plugrad"),
                                    (("--against", folder, "--list"), "--against and --list do not go together"),
                                    (("--against", folder, "--peers", "c"), "--against and --peers do not go together"),
                                    (("corpus", "--against", folder), "--against compares no rows of the corpus")):
                done = run("bench", *arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
                self.assertIn(said, done.stderr)
            program = pathlib.Path(folder, "bin/plugrad")
            program.parent.mkdir()
            program.write_text("#!/bin/sh\nexit 7\n")
            program.chmod(0o755)
            done = run("bench", "framework", "--filter", "nodes built", "--against", folder)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("failed with exit code 7", done.stderr)

    def test_a_roofline_that_cannot_be_written_is_told_before_anything_is_measured(self):
        done = run("bench", "gemm", "--filter", "sgemm/256/threads:1", "--roofline", "/nonexistent/roofline.svg")
        if "PLUGRAD_BUILD_BENCH=ON" in done.stderr:
            self.skipTest("this build has no benchmarks")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("/nonexistent/roofline.svg cannot be written: No such file or directory", done.stderr)

    def test_a_roofline_of_a_measurement_that_fails_leaves_nothing_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "roofline.svg")
            done = run("bench", "gemm", "--filter", "sgemm/256/threads:1", "--peers", "none", "--roofline", str(path),
                       PLUGRAD_MEMORY_LIMIT="1")
            if "PLUGRAD_BUILD_BENCH=ON" in done.stderr:
                self.skipTest("this build has no benchmarks")
            self.assertEqual(done.returncode, 1)
            self.assertIn("out of memory", done.stderr)
            self.assertEqual(os.listdir(folder), [])

    def test_a_roofline_that_is_no_regular_file_is_refused_and_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe = pathlib.Path(folder, "pipe")
            os.mkfifo(pipe)
            for path in (str(pipe), "/dev/full", folder):
                done = run("bench", "gemm", "--filter", "sgemm/256/threads:1", "--roofline", path)
                if "PLUGRAD_BUILD_BENCH=ON" in done.stderr:
                    self.skipTest("this build has no benchmarks")
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(f"--roofline {path} cannot be written: ", done.stderr)
            self.assertTrue(pipe.is_fifo())

    def test_a_roofline_has_each_row_where_its_speed_says(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "roofline.svg")
            done = run("bench", "gemm", "--filter", "sgemm/256/threads:1", "--peers", "none", "--json", "--roofline", str(path))
            if "PLUGRAD_BUILD_BENCH=ON" in done.stderr:
                self.skipTest("this build has no benchmarks")
            [row] = json.loads(done.stdout)["results"]
            svg = "{http://www.w3.org/2000/svg}"
            plot = ElementTree.parse(path).getroot()
        roofs = [re.findall(r"[\d.]+", path.get("d")) for path in plot.iter(svg + "path") if path.get("class") == "roof"]
        label = next(t.text for t in plot.iter(svg + "text") if (t.text or "").startswith("1 thread: "))
        [point] = [c for c in plot.iter(svg + "circle") if c.get("class") == "point"]
        self.assertEqual(point.find(svg + "title").text, row["name"])
        # A roof ends flat at its speed; decades are equidistant on the logarithmic axis.
        ticks = {t.text: float(t.get("y")) for t in plot.iter(svg + "text") if t.get("x") == "56.0"}
        decade = ticks["10"] - ticks["100"]
        of_one_thread = float(roofs[0][5])
        expected = of_one_thread - decade * math.log10(row["value"] / float(re.search(r"(\d+) GFLOP/s", label)[1]))
        self.assertAlmostEqual(float(point.get("cy")), expected, delta=3)


class Corpus(unittest.TestCase):
    """Tests `plugrad bench corpus`; tests/bench tests the rows."""

    def setUp(self):
        if not bench_rows():
            self.skipTest("this build has no benchmarks")

    def test_pytorch_has_each_kind(self):
        text = (ROOT / "bench/peers/torch_kinds.py").read_text()
        kinds = {row["kind"] for file in ROOT.glob("bench/corpus/*.json") for row in json.loads(file.read_text())["rows"]}
        self.assertGreater(len(kinds), 25)
        self.assertEqual({kind for kind in kinds if f'    "{kind}": ' not in text}, set())

    def test_a_family_and_a_filter_choose_rows(self):
        rows = json.loads(run("bench", "corpus", "--family", "attention", "--filter", "gpt2", "--list", "--json").stdout)
        self.assertEqual({(row["network"], row["family"]) for row in rows}, {("gpt2", "attention")})
        self.assertEqual(len(rows), 5)
        self.assertEqual({row["count"] for row in rows}, {12})

    def test_what_was_measured_is_kept_and_not_measured_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "results.jsonl")
            options = ("bench", "corpus", "--filter", "speech_activity/sigmoid", "--threads", "1", "--peers", "none", "--results", str(path))
            first = json.loads(run(*options, "--json").stdout)
            [row] = first["results"]
            self.assertEqual((row["name"], row["threads"], row["ratio"], row["wrong"]), ("speech_activity/sigmoid/32x1x64", 1, None, False))
            self.assertGreater(row["value"], 0)
            self.assertEqual(first["families"], [])  # no mean without a peer
            lines = path.read_text()
            self.assertEqual(len(lines.splitlines()), 2)
            again = json.loads(run(*options, "--resume", "--json").stdout)
            self.assertEqual(again["results"], first["results"])
            self.assertEqual(path.read_text(), lines)
            other = run(*options, "--resume", "--isa", "v2")
            self.assertEqual(other.returncode, 1)
            self.assertIn("holds results of another run", other.stderr)

    def test_networks_and_the_corpus_are_measured_where_they_are_named(self):
        usual = bench_rows()
        networks = run("bench", "networks", "--list").stdout.splitlines()
        self.assertEqual(len(networks), 18)
        self.assertIn("resnet18/batch:8/threads:2", networks)
        self.assertEqual(usual & set(networks), set())

    def test_bad_usage(self):
        for arguments, said in ((("corpus", "gemm"), "corpus is measured alone"), (("gemm", "--resume"), "--resume is of the suite corpus"),
                                (("corpus", "--peers", "c"), "there is no peer c"), (("corpus", "--filter", "nosuch"), "no row of the corpus")):
            done = run("bench", *arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(said, done.stderr)
        done = run("bench", "corpus", "--family", "sports")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("there are products, convolutions", done.stderr)


class Usage(unittest.TestCase):
    def test_no_command_and_unknown_ones_are_bad_usage(self):
        for arguments in ([], ["fly"], ["train"], ["train", "cifar"], ["train", "mnist", "--model", "vast"],
                          ["train", "mnist", "--steps", "many"], ["cache"], ["cache", "burn"], ["devices", "--wy"],
                          ["explain"], ["explain", "nothing"], ["train", "mnist", "--steps=-1"]):
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, (arguments, done.stderr))
            self.assertIn("usage", done.stderr + done.stdout if arguments != ["explain", "nothing"] else "usage")
            self.assertEqual(done.stdout, "")

    def test_a_filter_that_names_no_row_is_bad_usage(self):
        if not bench_rows():
            self.skipTest("this build has no benchmarks")
        done = run("bench", "--filter", "nosuch")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("no row", done.stderr)

    def test_ours_and_the_peers_are_held_to_one_instruction_set(self):
        if not bench_rows():
            self.skipTest("this build has no benchmarks")
        listed = run("bench", "--list-peers", "--isa", "v2", "--peers", "c", "--json")
        self.assertIn({"name": "c", "title": "C", "installed": True, "isa": "x86-64"}, json.loads(listed.stdout))
        done = run("bench", "elementwise", "--filter", "softmax/threads:1", "--peers", "c", "--isa", "v2", "--json")
        document = json.loads(done.stdout)
        self.assertEqual((document["isa"], document["arch"]), ("v2", "x86-64-v2"))
        self.assertEqual(document["peer_isas"], {"C": {"isa": "x86-64", "counts": True}})
        self.assertEqual(document["results"][0]["peer"], "C")
        wrong = run("bench", "--isa", "avx2")
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn("it is one of: native, v4, v3, v2", wrong.stderr)

    def test_an_unknown_suite_is_bad_usage_where_there_are_benchmarks(self):
        done = run("bench", "sports")
        self.assertEqual(done.stdout, "")
        if "PLUGRAD_BUILD_BENCH=ON" in done.stderr:  # sanitizer builds have none
            self.assertEqual(done.returncode, 1)
        else:
            self.assertEqual(done.returncode, 2)
            self.assertIn("usage", done.stderr)

    def test_a_peer_that_does_not_exist_is_bad_usage(self):
        done = run("bench", "--peers", "abacus")
        if "PLUGRAD_BUILD_BENCH=ON" not in done.stderr:
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("openblas", done.stderr)

    def test_help_is_success(self):
        for arguments in (["--help"], ["train", "--help"], ["devices", "-h"]):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("usage", done.stdout)


class Devices(unittest.TestCase):
    def test_json_has_the_promised_shape(self):
        done = run("devices", "--json", DEV="")
        document = json.loads(done.stdout)
        self.assertTrue(document["default"].startswith("CPU"))
        self.assertLessEqual({"CPU:0", "REFERENCE:0"}, {device["name"] for device in document["devices"]})
        for plugin in document["plugins"]:
            self.assertLessEqual({"name", "path", "version", "abi", "state", "reason", "hint"}, plugin.keys())
        for device in document["devices"]:
            self.assertLessEqual({"name", "plugin", "arch", "memory_bytes", "claims"}, device.keys())

    def test_the_cpu_is_used_as_the_target_that_is_set(self):
        for target in ("x86-64", "x86-64-v2"):  # supported by every x86-64 processor in use
            devices = json.loads(run("devices", "--json", PLUGRAD_CPU_TARGET=target).stdout)["devices"]
            self.assertEqual([d["arch"] for d in devices if d["name"] == "CPU:0"], [target])
        done = run("devices", PLUGRAD_CPU_TARGET="sse2")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn('PLUGRAD_CPU_TARGET="sse2" is not valid: it takes one of native, x86-64-v4, x86-64-v3, x86-64-v2, x86-64', done.stderr)

    def test_kernels_of_two_targets_are_compiled_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            def entries_after(target):
                environment = {"PLUGRAD_CPU_TARGET": target, "PLUGRAD_CACHE_DIR": folder}
                self.assertEqual(run("first-kernel", "CPU", **environment).returncode, 0)
                return json.loads(run("cache", "stats", "--json", **environment).stdout)["entries"]
            old = entries_after("x86-64")
            both = entries_after("x86-64-v2")
            # The program and the binary of each; the plan, which depends on limits that both share, is one.
            self.assertEqual((old, both, entries_after("x86-64")), (3, 5, 5))

    def test_text_says_where_plugins_came_from(self):
        done = run("devices", "--why")
        self.assertEqual(done.returncode, 0)
        self.assertIn("REFERENCE", done.stdout)
        self.assertIn("libplugrad_plugin_cpu_clang.so", done.stdout)

    def test_no_byte_of_a_path_or_a_name_moves_the_cursor(self):
        with tempfile.TemporaryDirectory() as folder:
            library = os.path.join(folder, "libplugrad_plugin_\x1b[2J.so")
            with open(library, "wb") as file:
                file.write(b"\x7fELF no library")
            ran = run("devices", "--why", PLUGRAD_PLUGIN_FILES=library)
        self.assertIn("libplugrad_plugin_?[2J.so", ran.stdout)
        self.assertNotIn("\x1b", ran.stdout + ran.stderr)
        ran = run("devices", DEV="\x1b]0;title\x07")
        self.assertNotIn("\x1b", ran.stdout + ran.stderr)
        ran = run("explain", "/tmp/\x1b[2J.ir")
        self.assertNotEqual(ran.returncode, 0)
        self.assertNotIn("\x1b", ran.stdout + ran.stderr)

    @unittest.skipUnless(hasattr(os, "mkfifo"), "no pipes with names")
    def test_a_pipe_without_a_writer_is_refused_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "kernel.ir")
            os.mkfifo(pipe)
            ran = run("explain", pipe)
        self.assertEqual(ran.returncode, 1, ran.stderr)

    def test_output_that_may_not_grow_is_no_signal(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "out"), "wb") as out:
                ended = subprocess.run(
                    ["sh", "-c", 'ulimit -f 0; exec "$0" explain --list', BINARY], stdout=out,
                    stderr=subprocess.DEVNULL, timeout=250)
        self.assertGreaterEqual(ended.returncode, 0)

    def test_an_unknown_device_is_a_failed_job_that_names_the_nearest(self):
        done = run("devices", DEV="refrence")
        self.assertEqual(done.returncode, 1)
        self.assertIn("refrence", done.stderr)
        self.assertIn("did you mean REFERENCE?", done.stderr)

    def test_a_plugin_that_crashes_when_the_process_ends_loses_no_output(self):
        zoo = pathlib.Path(BINARY).parent.parent / "tests/zoo/zoo.so"
        if not zoo.exists():
            self.skipTest("this build has no hostile plugins")
        with tempfile.TemporaryDirectory() as folder:
            plugin = shutil.copy(zoo, os.path.join(folder, "libplugrad_plugin_crash_at_exit.so"))
            pathlib.Path(plugin).with_suffix(".json").write_text(json.dumps(
                {"name": "crash_at_exit", "device_name": "CRASH_AT_EXIT",
                 "abi": {"major": 1, "minor_low": 0, "minor_high": 0}}))
            done = run("devices", PLUGRAD_PLUGIN_FILES=plugin, DEV="")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"CRASH_AT_EXIT +loaded")

    def test_a_machine_without_plugins_is_told_so(self):
        done = run("explain", "elementwise", "--json", PLUGRAD_PLUGIN_FILES="/nonexistent/libplugrad_plugin_x.so", DEV="")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "")
        self.assertIn("libplugrad_plugin_x.so", done.stderr)


class Explain(unittest.TestCase):
    def test_json_has_the_promised_shape(self):
        document = json.loads(run("explain", "matmul", "--json").stdout)
        self.assertEqual(document["name"], "matmul")
        self.assertEqual(len(document["kernels"]), 1)
        kernel = document["kernels"][0]
        self.assertLessEqual({"name", "optimisations", "ast", "source", "global_size", "local_size"}, kernel.keys())
        self.assertIn("reduce", kernel["ast"])
        self.assertIn(kernel["name"], kernel["source"])

    def test_text_shows_every_stage_down_to_machine_code(self):
        done = run("explain", "elementwise")
        self.assertEqual(done.returncode, 0)
        for part in ("schedule: ", "codegen: ", "param f32", "void E_", "ret"):
            self.assertIn(part, done.stdout)

    def test_why_shows_the_chosen_schedule_beside_others(self):
        document = json.loads(run("explain", "matmul", "--why", "--json", DEV="CPU").stdout)
        kernel = document["kernels"][0]
        why = kernel["why"]
        chosen, plain, *near = why["candidates"]
        self.assertEqual(chosen["optimisations"], kernel["optimisations"])
        self.assertEqual(plain["optimisations"], "")
        self.assertGreater(chosen["seconds"], 0)
        self.assertLess(chosen["seconds"], plain["seconds"])
        self.assertGreater(why["looked_at"], len(near))
        parts = {"arithmetic", "accesses", "latency", "traffic", "packing", "storing", "loops"}
        self.assertEqual(parts, chosen["cycles"].keys())
        self.assertIn("multiply-adds a cycle", why["machine"])
        text = run("explain", "matmul", "--why", DEV="CPU").stdout
        self.assertIn("\n* ", text)
        self.assertIn(kernel["optimisations"], text)
        self.assertNotIn("codegen: ", text, "stages are not printed")

    def test_one_kernel_of_many(self):
        names = [k["name"] for k in json.loads(run("explain", "softmax", "--json", DEV="CPU").stdout)["kernels"]]
        one = json.loads(run("explain", "softmax", "--kernel", names[0], "--json", DEV="CPU").stdout)["kernels"]
        self.assertEqual([k["name"] for k in one], [n for n in names if names[0] in n])
        self.assertIn("codegen: ", run("explain", "softmax", "--kernel", names[0], DEV="CPU").stdout)
        done = run("explain", "softmax", "--kernel", "nothing", DEV="CPU")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f'there is no kernel "nothing"; there are {names[0]}', done.stderr)

    def test_a_file_of_textual_ir(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "dot.ir"
            path.write_text("%0 = buffer f32 [0, 1, 64]\n%1 = buffer f32 [1, 1, 64]\n%2 = mul f32 %0, %1\n"
                            "%3 = reduce f32 %2 [add, 0]\nreturn %3\n")
            kernels = json.loads(run("explain", str(path), "--json").stdout)["kernels"]
            self.assertEqual([kernel["flops"] for kernel in kernels], [128])
            path.write_text("%0 = bogus f32\n")
            done = run("explain", str(path))
            self.assertEqual(done.returncode, 1)
            self.assertIn('line 1, column 6: there is no op "bogus"', done.stderr)
            self.assertIn("No such file", run("explain", str(path) + "2.ir").stderr)

    def test_the_tour_shows_what_is_printed(self):
        root = pathlib.Path(__file__).resolve().parents[3]
        printed = run("explain", str(root / "docs/examples/dot.ir")).stdout
        blocks = re.findall(r"^```ir\n(.*?)^```", (root / "docs/tour.md").read_text(), re.S | re.M)
        self.assertEqual(len(blocks), 2)
        for block in blocks:
            self.assertIn(block, printed)

    def test_list(self):
        self.assertIn("matmul", run("explain", "--list").stdout)


class Cache(unittest.TestCase):
    def test_stats_and_clear(self):
        with tempfile.TemporaryDirectory() as folder:
            run("explain", "elementwise", "--json", PLUGRAD_CACHE_DIR=folder)
            stats = json.loads(run("cache", "stats", "--json", PLUGRAD_CACHE_DIR=folder).stdout)
            self.assertGreater(stats["entries"], 0)
            self.assertIn("removed", run("cache", "clear", PLUGRAD_CACHE_DIR=folder).stdout)
            stats = json.loads(run("cache", "stats", "--json", PLUGRAD_CACHE_DIR=folder).stdout)
            self.assertEqual(stats["entries"], 0)


def is_linked_to_a_search():
    return (pathlib.Path(BINARY).parent.parent / "lib/plugrad/plugrad-measure").exists()


def changes_of(database):
    """Its content, as SQLite reads it during concurrent writes."""
    if not database.exists():
        return []
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        return connection.execute("SELECT seconds, list FROM schedule").fetchall()
    except sqlite3.OperationalError:  # it is being created
        return []
    finally:
        connection.close()


class InterruptedSearch(unittest.TestCase):
    @unittest.skipUnless(is_linked_to_a_search(), "this build has no helper for searches")
    def test_ctrl_c_leaves_a_database_that_the_next_program_can_use(self):
        moments = random.Random(1)
        with tempfile.TemporaryDirectory() as folder:
            database = pathlib.Path(folder) / "search.db"
            settings = {"PLUGRAD_SEARCH_DB": str(database), "PLUGRAD_CACHE_DIR": folder, "DEV": "CPU"}
            for stop in range(4):
                child = subprocess.Popen([BINARY, "explain", "matmul", "--json"], start_new_session=True,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                         env={**os.environ, **settings, "BEAM": "4", "BEAM_SECONDS": "30"})
                changes = changes_of(database)
                begin = time.monotonic()
                while time.monotonic() - begin < 200:  # until a result is found, then at any moment
                    if changes_of(database) != changes:
                        break
                    time.sleep(0.01)
                time.sleep(moments.random() * 0.3)
                # A terminal signals the whole process group, including the timing helper.
                os.killpg(child.pid, signal.SIGINT) if stop % 2 else child.send_signal(signal.SIGINT)
                self.assertEqual(child.wait(timeout=250), -signal.SIGINT)
                shown = run("tune", "show", **settings)
                self.assertEqual(shown.returncode, 0, shown.stderr)
                self.assertNotIn("damaged", shown.stderr)
                if stop == 0:  # later searches go on and may end
                    self.assertIn("unfinished", shown.stdout)
            done = run("explain", "matmul", "--json", **settings)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("is not used", done.stderr)


class Train(unittest.TestCase):
    @unittest.skipUnless(os.environ.get("PLUGRAD_DATA"), "PLUGRAD_DATA is not set")
    def test_ctrl_c_ends_it_after_a_step_and_saves_what_was_trained(self):
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "net.safetensors")
            command = [BINARY, "train", "mnist", "--model", "small", "--steps", "100000", "--json", "--save", path]
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while "train " not in child.stderr.readline():  # of the first step
                self.assertIsNone(child.poll())
            time.sleep(1)
            child.send_signal(signal.SIGINT)
            out, told = child.communicate(timeout=250)
            self.assertEqual(child.returncode, 130)
            result = json.loads(out)
            self.assertGreater(result["steps"], 0)
            self.assertLess(result["steps"], 100000)
            self.assertTrue(result["interrupted"])
            self.assertIsNone(result["test_accuracy"])
            self.assertIn(f"interrupted after {result['steps']} of 100000 steps; the network is saved in {path}", told)
            again = json.loads(run("train", "mnist", "--model", "small", "--steps", "0", "--load", path).stdout
                               .splitlines()[-1])
            self.assertGreater(again["test_accuracy"], 0.3)  # untrained: 0.1

    def test_a_folder_without_the_data_says_what_to_do(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run("train", "mnist", "--data", folder)
            self.assertEqual(done.returncode, 1)
            self.assertIn("train-images-idx3-ubyte.gz", done.stderr)
            self.assertIn("name a folder with the files of the data set", done.stderr)

    @unittest.skipUnless(os.environ.get("PLUGRAD_DATA"), "PLUGRAD_DATA is not set")
    def test_json_shape_save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "net.safetensors")
            done = run("train", "mnist", "--model", "small", "--steps", "30", "--json", "--save", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(done.stdout.splitlines()), 1)
            result = json.loads(done.stdout)
            self.assertLessEqual({"device", "model", "steps", "seconds", "compile_seconds", "step_ms",
                                  "images_per_second", "test_accuracy"}, result.keys())
            self.assertIn("train  30/30  loss", done.stderr)
            again = json.loads(run("train", "mnist", "--model", "small", "--steps", "0", "--load", path).stdout
                               .splitlines()[-1])
            self.assertEqual(again["test_accuracy"], result["test_accuracy"])
            wrong = run("train", "mnist", "--steps", "0", "--load", path)
            self.assertEqual(wrong.returncode, 1)
            self.assertRegex(wrong.stderr, r"shape +c1\.weight +\(32, 1, 5, 5\) f32 +\(8, 1, 3, 3\) f32\n(.*\n)* +missing +c3\.weight")


if __name__ == "__main__":
    unittest.main()
