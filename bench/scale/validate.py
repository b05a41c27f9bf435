#!/usr/bin/env python3
"""Compares `plugrad plan-scale` with measured steps of 2 and 4 processes on this machine.

    bench/scale/validate.py [--build build/release] [--turns 5] [--processes 2 4] [--json FILE]

Each turn measures the machine with that number of processes, traces the program in one process, predicts the step from both, and
measures the program in the processes. The ratio of a case is the median over the turns of predicted over measured. Every process has
one thread. Run it while nothing else does."""
import argparse
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

# name, arguments of pgr_bench_scale_train, axis, environment
CASES = [
    ("MNIST cnn, batch 128, data parallel", ["mnist", "45", "128"], "data", {}),
    ("MNIST cnn, batch 128, data parallel, state cut", ["mnist", "45", "128"], "data", {"SCALE_STATE": "1"}),
    ("GPT of the example, tensor parallel", ["gpt", "90", "16", "32", "48", "4", "2", "28"], "model", {}),
    ("GPT of width 256, tensor parallel", ["gpt", "45", "8", "64", "256", "8", "2", "320"], "model", {}),
]


class Runner:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.build = pathlib.Path(options.build)
        self.environment = {**os.environ, "PLUGRAD_THREADS": "1", "PLUGRAD_TUNE": "0", "DEV": "CPU",
                            "PLUGRAD_PLUGIN_PATH": str(self.build / "lib/plugrad/plugins")}

    def run(self, command, **environment):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env={**self.environment, **environment})
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stderr}")
        return done.stdout

    def plugrad(self, *arguments):
        return [self.build / "bin/plugrad", "plan-scale", *arguments]

    def machine(self, processes):
        path = self.folder / f"machine{processes}.json"
        self.run([self.options.mpiexec, "-n", processes, *self.plugrad("--measure", path)])
        return path

    def measured(self, case, processes):
        _, arguments, _, environment = case
        command = [self.build / "bench/pgr_bench_scale_train", *arguments]
        if processes > 1:
            command = [self.options.mpiexec, "-n", processes, *command]
        lines = self.run(command, **environment).splitlines()  # MPI's library may write between them
        return json.loads([line for line in lines if line.startswith("{")][-1])

    def trace(self, case):
        path = self.folder / "trace"
        path.unlink(missing_ok=True)
        self.run([self.build / "bench/pgr_bench_scale_train", *case[1]], PLUGRAD_TRACE=str(path))
        return path

    def predicted(self, case, trace, machine, processes):
        _, arguments, axis, environment = case
        command = self.plugrad(trace, "--mesh", f"{axis}={processes}", "--machine", machine, "--json", "--given", "--batch-axes",
                               "data" if axis == "data" else "-", "--state-axes", axis if environment else "-")
        choices = [[]] if axis == "data" else self.cuts(arguments, json.loads(self.run(command))["groups"])
        specs = [json.loads(self.run([*command, *cuts]))["specs"][0] for cuts in choices]
        return min(specs, key=lambda spec: spec["step_ms"])

    def cuts(self, arguments, groups):
        """The specs of nn::tensor_parallel, by the shapes of the groups. Attention's four matrices have one shape, and one of each
        block is cut by columns: the fastest choice is taken."""
        width, blocks, letters = (int(arguments[i]) for i in (4, 6, 7))
        specs = {(letters, width): "model,-", (4 * width, width): "model,-", (width, 4 * width): "-,model", (4 * width,): "model",
                 (letters,): "model"}
        square = [number for number, group in enumerate(groups) if group["shape"] == [width, width]]
        known = [f"{number}={specs[tuple(group['shape'])]}" for number, group in enumerate(groups) if tuple(group["shape"]) in specs]
        for size in range(1, len(square) + 1):
            for columns in itertools.combinations(square, size):
                if sum(groups[number]["parameters"] for number in columns) == blocks:
                    cuts = known + [f"{number}={'-,model' if number in columns else 'model,-'}" for number in square]
                    yield [word for cut in cuts for word in ("--cut", cut)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--mpiexec", default="mpiexec.mpich")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--case", type=int, nargs="+", default=range(len(CASES)))
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(options, pathlib.Path(folder))
        for processes in options.processes:
            for number in options.case:
                case, turns = CASES[number], []
                for _ in range(options.turns):
                    machine, trace = runner.machine(processes), runner.trace(case)
                    one = runner.measured(case, 1)
                    spec, measured = runner.predicted(case, trace, machine, processes), runner.measured(case, processes)
                    turns.append((spec["step_ms"], measured["step_ms"], one["step_ms"], spec["exposed_ms"],
                                  spec["memory_bytes"], measured["peak_bytes"], one["peak_bytes"]))
                medians = [statistics.median(turn[i] for turn in turns) for i in range(7)]
                ratios = [turn[0] / turn[1] for turn in turns]
                rows.append({"case": case[0], "processes": processes, "predicted_ms": medians[0], "measured_ms": medians[1],
                             "one_process_ms": medians[2], "predicted_exposed_ms": medians[3], "ratio": statistics.median(ratios),
                             "least_ratio": min(ratios), "most_ratio": max(ratios), "predicted_bytes": medians[4],
                             "measured_bytes": medians[5], "one_process_bytes": medians[6]})
                print(f"{processes} processes, {case[0]}: predicted {medians[0]:.2f} ms (of which exposed {medians[3]:.2f}), "
                      f"measured {medians[1]:.2f} ms (one process {medians[2]:.2f}); ratio {statistics.median(ratios):.2f}, "
                      f"{min(ratios):.2f} to {max(ratios):.2f}; memory predicted {medians[4] / 1e6:.1f} MB, measured {medians[5] / 1e6:.1f} MB "
                      f"(one process {medians[6] / 1e6:.1f})", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
