"""Tests `plugrad plan-scale`: the step of a known trace on machines of round figures, and what it refuses."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import trace_file

BINARY = os.environ["PLUGRAD_BINARY"]
ROWS, IN, OUT = 8, 4, 6
# As linear_step() of tests/scale/steps.h: SGD with momentum for the sum of the squares of x w.
STEP = f"""%0 = buffer f32 [0, 1, {ROWS}, {IN}]
%1 = buffer f32 [1, 1, {IN}, {OUT}]
%2 = buffer f32 [2, 1, {IN}, {OUT}]
%3 = reshape f32 %0 [{ROWS}, {IN}, 1]
%4 = expand f32 %3 [{ROWS}, {IN}, {OUT}]
%5 = reshape f32 %1 [1, {IN}, {OUT}]
%6 = expand f32 %5 [{ROWS}, {IN}, {OUT}]
%7 = mul f32 %4, %6
%8 = reduce f32 %7 [add, 1]
%9 = mul f32 %8, %8
%10 = reduce f32 %9 [add, 0, 1, 2]
%11 = const f32 2
%12 = mul f32 %8, %11
%13 = expand f32 %12 [{ROWS}, {IN}, {OUT}]
%14 = mul f32 %4, %13
%15 = reduce f32 %14 [add, 0]
%16 = reshape f32 %15 [{IN}, {OUT}]
%17 = detach f32 %16
%18 = const f32 0.5
%19 = mul f32 %2, %18
%20 = add f32 %17, %19
%21 = detach f32 %1
%22 = const f32 -0.125
%23 = mul f32 %20, %22
%24 = add f32 %21, %23
return %10, %24, %20
"""
MACHINE = {"name": "round", "device": {"name": "A GPU", "memory_gigabytes": 1, "memory_gigabytes_per_second": 1, "vector_teraflops": 0.001,
                                       "launch_us": 1},
           "nodes": 1, "devices_per_node": 4, "link": {"gigabytes_per_second": 1, "latency_us": 1, "algorithm": "direct"}}


def with_step(lines, **keys):
    """The lines with the step recorded in plan 1."""
    return [{**line, "recorded": STEP, "replaces": [-1, 1, 2], **keys} if line["t"] == "plan" else line for line in lines]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.trace = trace_file.write(self.folder / "trace", with_step(trace_file.example()))
        self.machine = self.machine_of(MACHINE)

    def machine_of(self, figures):
        path = self.folder / "machine.json"
        path.write_text(json.dumps(figures))
        return path

    def run_command(self, *arguments):
        return subprocess.run([BINARY, "plan-scale", *map(str, arguments)], capture_output=True, text=True, timeout=250, cwd=self.folder,
                              env={k: v for k, v in os.environ.items() if k != "PLUGRAD_BINARY"})

    def plan(self, *arguments):
        done = self.run_command(self.trace, "--machine", self.machine, "--json", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count("\n"), 1)
        return json.loads(done.stdout)

    def fails(self, code, text, *arguments):
        done = self.run_command(*arguments)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertIn(text, done.stderr)


class Plans(Case):
    def test_given_specs_alone(self):
        document = self.plan("--mesh", "data=2", "--batch-axes", "data", "--given")
        self.assertEqual((document["mesh"], document["batch"], document["plan"]), ({"data": 2}, ROWS, 1))
        self.assertEqual([i["role"] for i in document["inputs"]], ["batch", "parameter", "state"])
        [spec] = document["specs"]
        self.assertEqual((spec["batch"], spec["state"], spec["groups"]), ("data", "-", ["[-, -]"]))
        [traffic] = spec["collectives"]  # the loss and the gradient, 4 and 96 bytes
        self.assertEqual((traffic["kind"], traffic["count"], traffic["bytes"], traffic["members"]), ("all-reduce", 1, 100, 2))
        self.assertAlmostEqual(spec["exposed_ms"], 2 * (1e-3 + 0.5 * 100e-6))
        self.assertEqual((spec["parameter_bytes"], spec["state_bytes"], spec["batch_bytes"]), (96, 96, 64))

    def test_specs_are_ordered_by_the_time_of_a_step(self):
        document = self.plan("--mesh", "data=2,model=2")
        times = [spec["step_ms"] for spec in document["specs"] if spec["fits"]]
        self.assertGreater(len(times), 6)
        self.assertEqual(times, sorted(times))
        for spec in document["specs"]:
            self.assertLessEqual(spec["overlapped_exposed_ms"], spec["exposed_ms"] + 1e-9)

    def test_text_names_parts_and_groups(self):
        done = self.run_command(self.trace, "--machine", self.machine, "--mesh", "data=2", "--top", "3")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("data=2 on round (2 devices); plan 1 of the trace, 3 inputs, batch of 8", done.stdout)
        self.assertRegex(done.stdout, r"memory of a device: parameters 0\.0 MB")
        self.assertRegex(done.stdout, r"\(4, 6\) f32 \[")

    def test_rows_name_the_specs_that_the_best_one_has_not(self):
        arguments = "--mesh", "data=2,model=2", "--batch-axes", "data", "--state-axes", "-", "--top", "50"
        done = self.run_command(self.trace, "--machine", self.machine, *arguments)
        self.assertEqual(done.returncode, 0)
        rows = [line.split("batch ")[1] for line in done.stdout.splitlines() if " groups cut" in line]
        self.assertEqual(len(rows), len(set(rows)), rows)
        self.assertNotIn(";", rows[0])
        best = json.loads(self.run_command(self.trace, "--machine", self.machine, "--json", *arguments).stdout)["specs"]
        for row, spec in zip(rows, best):
            cut = spec["groups"][0].strip("[]").replace(" ", "")
            self.assertEqual(row.partition("; ")[2], "" if spec["groups"] == best[0]["groups"] else f"0={cut}")

    def test_shipped_machines(self):
        done = self.run_command("--machines", "--json")
        names = [machine["name"] for machine in json.loads(done.stdout)]
        self.assertEqual(names, ["ethernet-16x8xa100", "h200x8", "infiniband-64x8xh100"])
        self.machine = "infiniband-64x8xh100"
        self.assertEqual(self.plan("--mesh", "data=4,model=4", "--given")["machine"], "64 nodes of 8 x H100 on InfiniBand")


class Refusals(Case):
    def test_bad_usage(self):
        mesh, machine = ("--mesh", "data=2"), ("--machine", self.machine)
        self.fails(2, "name one trace", *mesh, *machine)
        self.fails(2, "--mesh is missing", self.trace, *machine)
        self.fails(2, "--machine is missing", self.trace, *mesh)
        self.fails(2, "did you mean data?", self.trace, *mesh, *machine, "--batch-axes", "dota")
        self.fails(2, "the axis data is named twice", self.trace, *mesh, *machine, "--batch-axes", "data+data")
        self.fails(2, "the step has 1 groups", self.trace, *mesh, *machine, "--cut", "1=-,-")
        self.fails(2, "3 dimensions, but the parameters have 2", self.trace, *mesh, *machine, "--cut", "0=-,-,-")
        self.fails(2, "an axis is named twice", self.trace, *mesh, *machine, "--cut", "0=data,data")
        self.fails(2, "not a whole number", self.trace, *mesh, *machine, "--plan", "one")
        self.fails(2, "is not parameter, batch or other", self.trace, *mesh, *machine, "--role", "0=weight")

    def test_meshes_and_machines(self):
        self.fails(1, "the mesh has more positions than round has devices, 4", self.trace, "--mesh", "data=8", "--machine", self.machine)
        self.fails(1, "names the axis data twice", self.trace, "--mesh", "data=2,data=2", "--machine", self.machine)
        self.fails(1, "is no axis", self.trace, "--mesh", "data", "--machine", self.machine)
        self.fails(1, "did you mean h200x8?", self.trace, "--mesh", "data=2", "--machine", "h200x4")
        path = self.machine_of({**MACHINE, "devices": 3})
        self.fails(1, "devices is unknown", self.trace, "--mesh", "data=2", "--machine", path)

    def test_traces_without_a_step(self):
        arguments = "--mesh", "data=2", "--machine", self.machine
        old = trace_file.write(self.folder / "old", trace_file.example())
        self.fails(1, f"record one step of training, on one device: PLUGRAD_TRACE={old} ./program", old, *arguments)
        self.fails(1, "no plan was made while it was recorded", old, *arguments)
        reads = trace_file.write(self.folder / "reads", with_step(trace_file.example(), replaces=[-1, -1, -1]))
        self.fails(1, "no plan of the trace assigns to tensors", reads, *arguments)
        broken = trace_file.write(self.folder / "broken", with_step(trace_file.example(), recorded="%0 = bufer f32"))
        self.fails(1, "[parse] line 1", broken, *arguments)
        self.fails(1, "No such file", self.folder / "none", *arguments)
        self.fails(1, "has no plan 3; it has 1", self.trace, *arguments, "--plan", "3")

    def test_traces_that_are_cut_off(self):
        arguments = "--mesh", "data=2", "--machine", self.machine
        lines = with_step(trace_file.example())
        plan = next(i for i, line in enumerate(lines) if line["t"] == "plan")
        whole = trace_file.pack(lines, 1)
        cut = self.folder / "cut"
        cut.write_bytes(trace_file.pack(lines[:plan], 1) + trace_file.pack(lines[plan:], 1)[:40])
        self.fails(1, f"has no recorded graph: it is cut off after line {plan}; record", cut, *arguments)
        cut.write_bytes(trace_file.pack(lines[:plan], 1))
        self.fails(1, "has no recorded graph: it has no end, since its program still runs or was stopped", cut, *arguments)
        cut.write_bytes(whole[:8])
        self.fails(1, "is not a trace, or was cut off before its first line", cut, *arguments)
        cut.write_bytes(whole[:-20])
        done = self.run_command(cut, *arguments)
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"ends within a block after line {len(lines) - 1}; what is before it is used", done.stderr)


if __name__ == "__main__":
    unittest.main()
