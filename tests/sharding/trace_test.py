"""Traces of sharded programs: specs, movements, collectives and waits, of one process and of two ranks.

    trace_test.py PLUGRAD PROGRAM [LAUNCHER...]
"""
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PLUGRAD, PROGRAM, *LAUNCHER = sys.argv[1:]
RESULT = "208 35720 94\n"  # the sum of column 5, of all squares, and twice the last element


def run(*words, **environment):
    done = subprocess.run(words, capture_output=True, text=True, timeout=250, env={**os.environ, **environment})
    if done.returncode != 0:
        raise AssertionError(f"{words} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.trace = self.folder / "step.trace"

    def record(self, *launcher):
        done = run(*launcher, PROGRAM, PLUGRAD_TRACE=str(self.trace))
        self.assertIn(RESULT, done.stdout)
        self.assertNotIn("PLUGRAD_TRACE", done.stderr)
        return done

    def lines(self, path):
        with gzip.open(path, "rt") as file:
            return [json.loads(line) for line in file]

    def plan_with(self, lines, condition):
        found = [line for line in lines if line["t"] == "plan" and condition(line)]
        self.assertEqual(len(found), 1)
        return found[0]

    def plans(self, path):
        return json.loads(run(PLUGRAD, "explain", str(path), "--json").stdout)["plans"]


class OneProcess(Case):
    def test_a_plan_has_the_sharded_values_and_what_moves(self):
        self.record()
        lines = self.lines(self.trace)
        self.assertEqual((lines[0]["rank"], lines[0]["ranks"]), (0, 1))
        plan = self.plan_with(lines, lambda plan: any(value["after"] for value in plan.get("sharded", [])))
        self.assertEqual(plan["meshes"], [{"axes": "data=2", "ranks": [0, 0], "devices": ["CPU", "CPU"]}])
        values = {value["id"]: value for value in plan["sharded"]}
        moves = [(values[move["value"]], move) for value in plan["sharded"] for move in value["after"]]
        self.assertEqual(sorted((value["op"], value["spec"], move["kind"], move["along"], move["bytes"]) for value, move in moves),
                         [("Reduce", "[-, -] partial add(data)", "all-reduce", "data", 4),
                          ("Reduce", "[-, -] partial add(data)", "all-reduce", "data", 24)])
        parts = {(node["position"], node["spec"], tuple(node["shape"])) for node in plan["nodes"]
                 if "part_of" in node and values[node["part_of"]]["op"] == "Buffer"}
        self.assertEqual(parts, {(0, "[data, -]", (4, 6)), (1, "[data, -]", (4, 6))})
        self.assertFalse([step for step in plan["steps"] if step["kind"] in ("collective", "wait")])

    def test_the_parts_of_a_value_are_of_the_line_that_made_it(self):
        self.record()
        lines = self.lines(self.trace)
        operations = {line["id"]: line for line in lines if line["t"] == "operation"}
        plan = self.plan_with(lines, lambda plan: any(value["after"] for value in plan.get("sharded", [])))
        reduced = {operations[node["operation"]]["name"] for node in plan["nodes"]
                   if node["op"] == "reduce" and "part_of" in node}
        self.assertEqual(reduced, {"sum"})
        made = {operations[id]["name"] for line in lines if line["t"] == "kernel" for id in line["operations"]}
        self.assertLessEqual({"shard", "mul", "sum"}, made)

    def test_explain_prints_what_describe_sharding_prints(self):
        done = self.record()
        described = re.findall(r"all-reduce %\d+ along data: 4 bytes\n  %\d+ Sqrt f32 \(\) \[\]", done.stdout)
        self.assertEqual(len(described), 1, done.stdout)
        text = run(PLUGRAD, "explain", str(self.trace)).stdout
        self.assertIn("mesh data=2: CPU of rank 0, CPU of rank 0\n", text)
        self.assertRegex(text, r"  %\d+ Buffer f32 \(8, 6\) \[data, -\]\n")
        self.assertRegex(text, r"  %\d+ Reduce f32 \(1, 6\) \[-, -\] partial add\(data\)\n")
        self.assertRegex(text, r"    all-reduce %\d+ along data: 24 bytes\n")
        self.assertRegex(text, r"    all-gather %\d+ along data: 192 bytes\n  %\d+ Copy f32 \(8, 6\) \[-, -\]\n")

    def test_the_profile_of_one_process_has_no_collectives(self):
        self.record()
        document = json.loads(run(PLUGRAD, "profile", str(self.trace), "--json").stdout)
        self.assertEqual((document["collectives"], document["parts"]["collective_wait_seconds"]), ([], 0))


class BadInput(Case):
    def fails(self, code, message, *words):
        done = subprocess.run([PLUGRAD, "explain", *words], capture_output=True, text=True, timeout=250)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(message, done.stderr)

    def test_each_error_names_the_file_and_the_reason(self):
        self.fails(2, "there is no example and no file", "data_paralel")
        self.fails(2, "did you mean data_parallel", "data_paralel")
        self.trace.write_text("no trace")
        self.fails(1, "is not a gzip file", str(self.trace))
        self.fails(2, "--why is of an example", str(self.trace), "--why")
        header = {"t": "trace", "version": 1}
        for plan in ({"t": "plan"}, {"t": "plan", "id": "x", "steps": 7}, {"t": "plan", "id": 1, "steps": [{"kind": 1, "kernel": []}]}):
            self.trace.write_bytes(gzip.compress("\n".join(json.dumps(line) for line in (header, plan)).encode() + b"\n"))
            self.fails(1, "line 2 is damaged", str(self.trace))

    def test_a_plan_with_values_of_other_types_is_an_error(self):
        header = {"t": "trace", "version": 1}
        plan = {"t": "plan", "id": 1, "steps": [], "meshes": [{"axes": 1, "ranks": [0], "devices": []}], "sharded": [{}]}
        self.trace.write_bytes(gzip.compress("\n".join(json.dumps(line) for line in (header, plan)).encode() + b"\n"))
        self.fails(1, "a plan is damaged", str(self.trace))


class Examples(unittest.TestCase):
    def test_a_sharded_example_begins_with_its_specs(self):
        text = run(PLUGRAD, "explain", "data_parallel").stdout
        self.assertTrue(text.startswith("mesh data=2\n"), text[:200])
        self.assertRegex(text, r"partial add\(data\)\n    all-reduce %\d+ along data: 2048 bytes\n")
        document = json.loads(run(PLUGRAD, "explain", "tensor_parallel", "--json").stdout)
        self.assertRegex(document["sharding"], r"all-reduce %\d+ along model: 2048 bytes\n")


@unittest.skipUnless(LAUNCHER, "no launcher of an MPI")
class TwoRanks(Case):
    def setUp(self):
        super().setUp()
        self.record(*LAUNCHER)
        self.second = self.folder / "step.trace.rank1"

    def test_each_rank_has_a_trace_of_its_own(self):
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["step.trace", "step.trace.rank1"])
        for rank, path in enumerate((self.trace, self.second)):
            header = self.lines(path)[0]
            self.assertEqual((header["rank"], header["ranks"]), (rank, 2))

    def test_a_bucket_is_one_step_with_its_values_and_a_wait(self):
        for path in (self.trace, self.second):
            plan = self.plan_with(self.lines(path), lambda plan: any(
                step.get("collective", {}).get("kind") == "all-reduce" for step in plan["steps"]))
            start = next(i for i, step in enumerate(plan["steps"]) if step["kind"] == "collective")
            collective = plan["steps"][start]["collective"]
            self.assertEqual((collective["reduction"], collective["dtype"], collective["ranks"], collective["bytes"]),
                             ("add", "f32", [0, 1], 28))
            self.assertEqual(sorted((value["shape"], value["bytes"]) for value in collective["values"]), [([1, 1], 4), ([1, 6], 24)])
            nodes = [node for node in plan["nodes"] if node["op"] == "collective"]
            self.assertEqual([(node["arg"], node["step"]) for node in nodes], [("all-reduce", start)] * 2)
            self.assertEqual({(node["spec"], tuple(node["shape"])) for node in nodes}, {("[-, -]", (1, 6)), ("[-, -]", (1, 1))})
            self.assertEqual([step["start"] for step in plan["steps"] if step["kind"] == "wait"], [start])

    def test_events_have_the_bytes_and_the_waits(self):
        lines = self.lines(self.trace)
        track = next(line for line in lines if line["t"] == "track" and line["kind"] == "collectives")
        blocks = [line for line in lines if line["t"] == "events"]
        columns = [block["columns"] for block in blocks if block["kind"] == "collective"]
        events = [dict(zip(block, values)) for block in columns for values in zip(*block.values())]
        self.assertEqual({event["track"] for event in events}, {track["id"]})
        self.assertIn((0, 28, 2), {(event["collective"], event["bytes"], event["values"]) for event in events})
        self.assertIn((2, 96, 1), {(event["collective"], event["bytes"], event["values"]) for event in events})
        waits = [time for block in blocks if block["kind"] == "wait"
                 for device, time in zip(block["columns"]["device"], block["columns"]["duration"]) if device == 0]
        self.assertEqual(sorted(waits), sorted(event["waited"] for event in events))
        self.assertTrue(all(event["duration"] > 0 for event in events))

    def test_explain_prints_starts_and_waits_in_their_order(self):
        text = run(PLUGRAD, "explain", str(self.second)).stdout
        self.assertIn("mesh data=2: rank 0, CPU of rank 1\n", text)
        steps = re.search(r"steps\n((?:  .*\n)*?  +(\d+) start all-reduce 28 bytes of 2 values, ranks 0 1: f32 .*\n(?:  .*\n)*)", text)
        self.assertRegex(steps[1], rf"  +\d+ wait for step {steps[2]}\n")
        self.assertIn(" start all-gather 96 bytes, ranks 0 1: f32 (8, 6)\n", text)

    def test_the_profile_counts_collectives_and_the_wait_for_ranks(self):
        document = json.loads(run(PLUGRAD, "profile", str(self.trace), "--json").stdout)
        rows = {row["kind"]: row for row in document["collectives"]}
        self.assertEqual((rows["all-reduce"]["values"], rows["all-reduce"]["bytes"]), (2, 28))
        self.assertEqual((rows["all-gather"]["count"], rows["all-gather"]["bytes"]), (1, 96))
        self.assertGreater(document["parts"]["collective_wait_seconds"], 0)
        self.assertLessEqual(document["parts"]["collective_wait_seconds"], sum(row["waited_seconds"] for row in rows.values()) + 1e-9)
        text = run(PLUGRAD, "profile", str(self.second)).stdout
        self.assertIn("rank 1 of 2", text.split("\n")[0])
        self.assertRegex(text, r"wait for ranks +\d+\.\d+ +\d+\.\d+  exposed communication; 2 collectives of 0\.000 MiB")
        self.assertRegex(text, r"\nCOLLECTIVES .*\nall-reduce +1 +2 ")

    def test_profile_keeps_the_traces_of_all_ranks(self):
        kept = self.folder / "kept.trace"
        run(PLUGRAD, "profile", "-o", str(kept), "--", *LAUNCHER, PROGRAM)
        self.assertEqual([self.lines(path)[0]["rank"] for path in (kept, self.folder / "kept.trace.rank1")], [0, 1])

    def test_exports_have_the_collectives(self):
        path = self.folder / "chrome.json"
        run(PLUGRAD, "view", str(self.trace), "--export", "chrome", "-o", str(path))
        events = json.loads(path.read_text())["traceEvents"]
        slices = [event for event in events if event.get("cat") == "collective"]
        self.assertEqual(sorted((event["name"], event["args"]["bytes"]) for event in slices), [("all-gather", 96), ("all-reduce", 28)])
        lane = [event for event in events if event["ph"] == "M" and event["args"]["name"] == "collectives"]
        self.assertEqual(len(lane), 1)
        self.assertEqual({event["tid"] for event in slices}, {lane[0]["tid"]})
        self.assertEqual(len([event for event in events if event["name"] == "wait for a collective"]), 2)
        for form in ("perfetto", "speedscope"):
            run(PLUGRAD, "view", str(self.trace), "--export", form, "-o", str(self.folder / form))
            self.assertIn(b"all-gather", (self.folder / form).read_bytes())


@unittest.skipUnless(LAUNCHER, "no launcher of an MPI")
class MovesOfTwoRanks(Case):
    def test_the_profile_and_the_exports_name_sends_and_receives(self):
        done = run(*LAUNCHER, PROGRAM, "move", PLUGRAD_TRACE=str(self.trace))
        self.assertEqual(done.stdout, "288\n")
        for path, pair in ((self.trace, "send"), (self.folder / "step.trace.rank1", "receive")):
            document = json.loads(run(PLUGRAD, "profile", str(path), "--json").stdout)
            kinds = {row["kind"] for row in document["collectives"]}
            self.assertIn(pair, kinds)
            for form in ("chrome", "perfetto", "speedscope"):
                run(PLUGRAD, "view", str(path), "--export", form, "-o", str(self.folder / form))
                text = (self.folder / form).read_bytes()
                self.assertTrue(all(kind.encode() in text for kind in kinds), form)


@unittest.skipUnless(LAUNCHER, "no launcher of an MPI")
class TrainingOfTwoRanks(Case):
    def test_gradients_move_from_the_last_layer_on_and_new_values_arrive_in_place(self):
        run(*LAUNCHER, PROGRAM, "train", PLUGRAD_TRACE=str(self.trace))
        for path in (self.trace, self.folder / "step.trace.rank1"):
            [steps] = [plan["steps"] for plan in self.plans(path) if any(step["kind"] == "collective" for step in plan["steps"])]
            moves = [(step["collective"]["kind"], [tuple(value["shape"]) for value in step["collective"]["values"]])
                     for step in steps if step["kind"] == "collective"]
            self.assertEqual(moves, [("reduce-scatter", [(2,), (2, 6), (6,), (6, 4)]), ("all-gather", [(2,), (2, 6), (6,), (6, 4)])])
            self.assertEqual([step["kind"] for step in steps][-2:], ["collective", "wait"])


@unittest.skipUnless(LAUNCHER, "no launcher of an MPI")
class RanksThatDiffer(unittest.TestCase):
    def test_reading_other_results_is_an_error(self):
        done = subprocess.run([*LAUNCHER, PROGRAM, "differ"], capture_output=True, text=True, timeout=250)
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn("read 96", done.stdout)
        self.assertRegex(done.stdout + done.stderr, "result 3 read last.*result 5 read last|result 5 read last.*result 3 read last")

    def test_learning_rates_that_differ_are_an_error(self):
        done = subprocess.run([*LAUNCHER, PROGRAM, "rates"], capture_output=True, text=True, timeout=250)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stdout + done.stderr, "has recorded other functions before it")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
