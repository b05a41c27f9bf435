"""Tests `plugrad profile`: figures of a known trace, programs that it runs, and comparisons."""
import json
import os
import pathlib
import signal
import stat
import subprocess
import tempfile
import time
import unittest

import trace_file

BINARY = os.environ["PLUGRAD_BINARY"]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.trace = trace_file.write(self.folder / "trace", trace_file.example())

    def run_command(self, *arguments, **environment):
        return subprocess.run([BINARY, "profile", *arguments], capture_output=True, text=True, timeout=250, cwd=self.folder,
                              env={**os.environ, "TMPDIR": str(self.folder), **environment})

    def profile(self, *arguments):
        done = self.run_command("--json", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count("\n"), 1)
        return json.loads(done.stdout)


class Figures(Case):
    def near(self, value, ns):
        self.assertAlmostEqual(value, ns * 1e-9, places=13)

    def test_the_time_is_shared_out_among_the_parts(self):
        document = self.profile(self.trace)
        parts = document["parts"]
        self.near(document["seconds"], 6000)
        for part, ns in (("device", 3050), ("compile", 1000), ("codegen", 0), ("plan", 200), ("search", 0), ("wait", 150),
                         ("engine", 800), ("program", 800)):
            self.near(parts[part + "_seconds"], ns)
        self.near(sum(parts.values()), 6000)
        self.assertEqual(document["counts"], {"plans": 1, "plan_cache_hits": 0, "generated": 0, "compiled": 1, "compiled_from_cache": 1, "kernels_from_memory": 0, "waits": 1})
        self.assertEqual((document["program"], document["complete"], document["dropped"]), ("step", True, 0))

    def test_cached_plans_are_counted_apart(self):
        lines = trace_file.example()
        lines[-1:-1] = [trace_file.events("span", track=[3, 3], category=[0, 0], name=[2, 2], start=[1150, 5300], duration=[50, 10],
                                          value=[1, 1])]
        path = trace_file.write(self.folder / "cached", lines)
        counts = self.profile(path)["counts"]
        self.assertEqual((counts["plans"], counts["plan_cache_hits"]), (1, 2))
        self.assertRegex(self.run_command(path).stdout, r"plan +0\.000 +3\.5  1 plans made, 2 found in their cache")

    def test_kernels_in_memory_and_spans_that_write_the_trace_are_no_work(self):
        lines = trace_file.example()
        lines[1:1] = [{"t": "name", "id": 3, "text": "define plan for the trace"}]
        lines[-1:-1] = [trace_file.events("span", track=[3, 3, 3], category=[2, 2, 0], name=[1, 1, 3], start=[5300, 5310, 5320],
                                          duration=[1, 1, 5], value=[2, 2, 0])]
        counts = self.profile(trace_file.write(self.folder / "in_memory", lines))["counts"]
        self.assertEqual((counts["compiled"], counts["compiled_from_cache"], counts["kernels_from_memory"], counts["plans"]), (1, 1, 2, 1))

    def test_devices_kernels_and_copies(self):
        document = self.profile(self.trace)
        [device] = document["devices"]
        self.assertEqual((device["name"], device["model"], device["clock"], device["launches"], device["copies"]),
                         ("CUDA:0", "A GPU", "device", 4, 2))
        for key, ns in (("busy", 3050), ("idle", 2950), ("launch", 2550), ("copy", 600), ("overlap", 100), ("queued", 600)):
            self.near(device[key + "_seconds"], ns)
        self.assertEqual((device["memory_peak_bytes"], device["cached_peak_bytes"]), (3 << 20, 2 << 20))
        self.near(device["memory_peak_at_seconds"], 1400)
        product, total, tiny = document["kernels"]
        self.assertEqual([(k["name"], k["launches"], k["bound"]) for k in (product, total, tiny)],
                         [("product", 2, "compute"), ("sum", 1, "memory"), ("tiny", 1, "launch")])
        self.assertAlmostEqual(product["gflops"], 80)
        self.assertEqual((product["work"], total["work"]), (90000, None))
        self.assertAlmostEqual(product["of_peak"], 0.8)
        self.assertAlmostEqual(total["gbps"], 8)
        self.assertAlmostEqual(total["of_peak"], 0.8)
        self.assertAlmostEqual(product["share"], 2000 / 2550)
        self.assertEqual(product["operations"], [{"name": "matmul", "file": trace_file.SOURCE, "line": 12},
                                                 {"name": "add", "file": trace_file.SOURCE, "line": 13}])
        self.assertEqual([(c["direction"], c["count"], c["bytes"]) for c in document["copies"]],
                         [("host to device", 1, 4096), ("device to host", 1, 1024)])

    def test_text_has_the_same_figures(self):
        done = self.run_command(self.trace)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for row in (r"devices work +0\.003 +50\.8", r"compile +0\.001 +16\.7  1 compilations, 1 from the disk cache",
                    r"CUDA:0 +50\.8 +49\.2 +4 +2 +0\.000 +0\.[12] +3\.0  the device's, to 50 ns",
                    r"product +0\.002 +78\.4 +2 +1\.00 +0\.090 +80\.0 +1\.0 +80\.0  compute +matmul, add \(net\.cpp:12\)",
                    r"tiny +0\.000 +2\.0 +1 +0\.05 +- .*launch", r"host to device +CUDA:0 +1 +0\.004"):
            self.assertRegex(done.stdout, row)
        short = self.run_command("--top", "1", self.trace).stdout
        self.assertIn("and 2 more kernels", short)
        self.assertNotIn("tiny", short)

    def test_work_is_that_of_all_plans(self):
        lines = trace_file.example()
        lines[-1:-1] = [{"t": "work", "plan": plan, "executed": 45000, "graph": 37500} for plan in (1, 2)]
        path = trace_file.write(self.folder / "work", lines)
        self.assertEqual(self.profile(path)["work"], {"executed": 90000, "graph": 75000})
        self.assertIn("work of all plans: 1.20 of that of their graphs\n", self.run_command(path).stdout)
        self.assertNotIn("work of all plans", self.run_command(self.trace).stdout)

    def test_plans_are_counted_by_cause(self):
        lines = trace_file.example()
        miss = {"t": "miss", "cause": "number", "kernels": 2, "compile_ns": 1500000, "operation": 2, "text": "a number is 2, was 1"}
        lines[-1:-1] = [{**miss, "cause": "first of its kind", "operation": 1, "kernels": 1, "text": ""}, miss,
                        {**miss, "operation": 1, "text": "a number is 3, was 2"}, {**miss, "cause": "shape", "operation": 0, "kernels": 0}]
        path = trace_file.write(self.folder / "causes", lines)
        number, first, shape = self.profile(path)["causes"]
        self.assertEqual(number, {"cause": "number", "plans": 2, "kernels": 4, "seconds": 0.003, "first": "a number is 2, was 1",
                                  "file": trace_file.SOURCE, "line": 13})
        self.assertEqual((first["cause"], first["kernels"], first["first"], first["line"]), ("first of its kind", 1, "", 12))
        self.assertEqual((shape["plans"], shape["kernels"], shape["file"]), (1, 0, None))
        text = self.run_command(path).stdout
        self.assertIn("\nCOMPILED FOR            plans  kernels          ms  first\n"
                      "number                      2        4       3.000  net.cpp:13: a number is 2, was 1\n"
                      "first of its kind           1        1       1.500  net.cpp:12\n"
                      "shape                       1        0       1.500  a number is 2, was 1\n", text)
        self.assertNotIn("COMPILED FOR", self.run_command(self.trace).stdout)
        lines[-2] = {**miss, "kernels": -1}
        self.assertIn("kernels are out of range", self.run_command(trace_file.write(path, lines)).stderr)

    def test_events_that_were_dropped_are_told(self):
        lines = trace_file.example()
        lines[-1] = {**lines[-1], "dropped": 7}
        path = trace_file.write(self.folder / "long", lines)
        self.assertEqual(self.profile(path)["dropped"], 7)
        self.assertIn("the oldest 7 events did not fit", self.run_command(path).stdout)

    def test_a_trace_without_events_is_a_profile(self):
        path = trace_file.write(self.folder / "short", [trace_file.header(), trace_file.example()[-1]])
        self.assertEqual(self.profile(path)["kernels"], [])
        done = self.run_command(path)
        self.assertEqual(done.returncode, 0)
        for table in ("DEVICE", "KERNEL", "COPIES", "REPORTS"):
            self.assertNotIn(table, done.stdout)

    def test_reports_of_layers(self):
        finding = {"t": "finding", "id": 1, "time_ns": 2500, "layer": "compare", "device": "CUDA:0", "kernel": "product"}
        lines = trace_file.example()
        lines[-1:-1] = [{**finding, "text": "kernel product differs\n  more", "difference": {"reference": "CPU:0"}},
                        {**finding, "text": "kernel product: operation: ADD", "kernel": ""}]
        path = trace_file.write(self.folder / "broken", lines)
        self.assertEqual([(r["layer"], r["kernel"], r["differs"], r["text"].split("\n")[0]) for r in self.profile(path)["reports"]],
                         [("compare", "product", True, "kernel product differs"),
                          ("compare", None, False, "kernel product: operation: ADD")])
        text = self.run_command("--top", "1", path).stdout
        self.assertIn("REPORTS\ncompare: CUDA:0: kernel product differs\nand 1 more reports", text)
        self.assertNotIn("operation: ADD", text)

    def test_a_path_may_have_any_bytes(self):
        path = os.fsencode(self.folder) + b"/\xff.trace"
        with open(path, "wb") as file:
            file.write(pathlib.Path(self.trace).read_bytes())
        done = subprocess.run([BINARY, "profile", "--json", "--compare", path, self.trace], capture_output=True, timeout=250)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertTrue(json.loads(done.stdout)["compare"]["before"]["trace"].endswith("/\ufffd.trace"))


class Compare(Case):
    def test_kernels_are_matched_by_name_or_operations(self):
        lines = trace_file.example()
        for line in lines:
            if line.get("t") == "kernel":
                line["name"] = {"product": "product", "sum": "sum_vectorised", "tiny": "other"}[line["name"]]
            if line.get("t") == "operation":
                line["line"] += 5  # a user's edit above
            if line.get("kind") == "launch":
                line["columns"]["duration"] = [3000, 1000, 250, 50]
        after = trace_file.write(self.folder / "after", lines)
        compared = self.profile("--compare", self.trace, after)["compare"]
        rows = {k["name"]: k for k in compared["kernels"]}
        self.assertEqual(list(rows)[0], "product")  # the largest change is first
        self.assertEqual(set(rows), {"product", "sum -> sum_vectorised", "tiny", "other"})
        self.assertAlmostEqual(rows["product"]["ratio"], 2)
        self.assertAlmostEqual(rows["product"]["added_seconds"], 2e-6)
        self.assertAlmostEqual(rows["sum -> sum_vectorised"]["ratio"], 0.5)
        self.assertEqual((rows["tiny"]["launches_after"], rows["tiny"]["ratio"]), (0, None))
        text = self.run_command("--compare", self.trace, after).stdout
        self.assertRegex(text, r"product +1\.00 +2\.00 +2\.00x +0\.002")
        self.assertRegex(text, r"tiny +0\.05 +- +gone")
        self.assertRegex(text, r"other +- +0\.05 +new")


class Programs(Case):
    def program(self, text, name="program"):
        path = self.folder / name
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def left(self):
        return [name for name in os.listdir(self.folder) if name.startswith("plugrad-profile")]

    def test_a_program_is_run_with_its_arguments_and_its_trace_is_removed(self):
        program = self.program(f'echo "ran $*"; cp {self.trace} "$PLUGRAD_TRACE"')
        for before in (["--json", "--"], ["--json"]):
            done = self.run_command(*before, program, "--json", "a b", "--", "-x")
            self.assertEqual((done.returncode, done.stderr), (0, "ran --json a b -- -x\n"))
            self.assertEqual(json.loads(done.stdout)["program"], "step")
        done = self.run_command("program", "x")
        self.assertTrue(done.stdout.startswith("ran x\nstep: 0.000 s, 4 launches"), done.stdout)
        self.assertEqual(self.left(), [])

    def test_the_trace_can_be_kept(self):
        program = self.program(f'cp {self.trace} "$PLUGRAD_TRACE"')
        self.assertEqual(self.run_command("-o", "kept", program).returncode, 0)
        self.assertEqual((self.folder / "kept").read_bytes(), pathlib.Path(self.trace).read_bytes())
        done = self.run_command("-o", "missing/kept", program)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("missing/kept cannot be written", done.stderr)

    def test_a_program_that_fails_is_profiled_and_told(self):
        program = self.program(f'cp {self.trace} "$PLUGRAD_TRACE"; exit 3')
        done = self.run_command("--json", program)
        self.assertEqual(done.returncode, 1)
        self.assertIn("ended with exit code 3", done.stderr)
        self.assertEqual(json.loads(done.stdout)["program"], "step")

    def test_a_program_without_a_trace_is_told(self):
        done = self.run_command("--", "true")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("true recorded nothing", done.stderr)
        done = self.run_command("--", "no-such-program-xyz")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no-such-program-xyz cannot be started", done.stderr)
        self.assertEqual(self.left(), [])

    def test_an_interruption_ends_the_program_and_what_it_recorded_is_shown(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                self.interrupt(number)

    def interrupt(self, number):
        (self.folder / "started").unlink(missing_ok=True)
        program = self.program(f'cp {self.trace} "$PLUGRAD_TRACE"; touch started; exec sleep 60')
        process = subprocess.Popen([BINARY, "profile", "--json", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   cwd=self.folder, env={**os.environ, "TMPDIR": str(self.folder)})
        for _ in range(500):
            if (self.folder / "started").exists():
                break
            time.sleep(0.02)
        process.send_signal(number)
        output, errors = process.communicate(timeout=250)
        self.assertEqual(process.returncode, 128 + number)
        self.assertEqual(json.loads(output)["program"], "step")
        self.assertIn(f"signal {int(number)} ", errors)
        self.assertEqual(self.left(), [])

    def test_usage(self):
        for arguments, said in (([], "name one trace, or a program"), (["--"], "followed by no program"),
                                (["trian", "mnist"], "did you mean train?"), (["--top", "0", self.trace], "--top"),
                                (["-o", "x", self.trace], "-o is for a program"), ([self.trace, self.trace], "name one trace"),
                                (["--tpo", "1", self.trace], "did you mean --top?")):
            done = self.run_command(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(said, done.stderr)
            self.assertIn("usage: plugrad profile", done.stderr)


if __name__ == "__main__":
    unittest.main()
