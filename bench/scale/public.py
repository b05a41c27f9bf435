#!/usr/bin/env python3
"""Compares `plugrad plan-scale` with two public reports on the training of GPT with Megatron-LM.

    bench/scale/public.py [--build build/release] [--folder DIR]

The steps are traced with PLUGRAD_LAYERS=skip: nothing runs. The efficiency of matrix products is fitted to the first row of each
report, the smallest number of devices, because the reported kernels are not plugrad's and compute activations twice; the other rows
are predictions. Traces stay in the folder if one is given."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

VOCABULARY, CONTEXT = 51200, 2048
MACHINES = pathlib.Path(__file__).parent / "machines"


def flops(batch, layers, width):
    """Of a step with activations computed twice; equation 3 of https://arxiv.org/abs/2104.04473."""
    return 96 * batch * CONTEXT * layers * width**2 * (1 + CONTEXT / (6 * width) + VOCABULARY / (16 * layers * width))


# (data, model, batch, layers, width, heads, reported seconds of a step)
def by_sequences(data, model, batch, layers, width, heads, sequences_per_second):
    return data, model, batch, layers, width, heads, batch / sequences_per_second


def by_teraflops(data, model, batch, layers, width, heads, teraflops_per_device):
    return data, model, batch, layers, width, heads, flops(batch, layers, width) / (teraflops_per_device * 1e12 * data * model)


REPORTS = [
    ("DLPerf, Megatron-LM on 4 x 8 V100", "dlperf-4x8xv100", [
        by_sequences(1, 1, 2, 16, 1536, 16, 4.31),
        by_sequences(8, 1, 16, 16, 1536, 16, 33.27),
        by_sequences(16, 1, 32, 16, 1536, 16, 48.16),
        by_sequences(32, 1, 64, 16, 1536, 16, 93.63),
        by_sequences(4, 2, 16, 16, 1536, 16, 26.95),
        by_sequences(2, 4, 16, 16, 1536, 16, 27.75),
        by_sequences(1, 8, 16, 16, 1536, 16, 24.07),
        by_sequences(2, 8, 16, 24, 2304, 24, 12.18),
        by_sequences(4, 8, 32, 24, 2304, 24, 21.21),
    ]),
    ("Narayanan et al. 2021, table 1, on Selene", "selene-384x8xa100", [
        by_teraflops(32, 1, 512, 24, 2304, 24, 137),
        by_teraflops(32, 2, 512, 30, 3072, 32, 138),
        by_teraflops(32, 4, 512, 36, 4096, 32, 142),
        by_teraflops(32, 8, 1024, 40, 6144, 48, 135),
    ]),
]


class Planner:
    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        # With fast math sums of products are moved as bf16, as those of the reports.
        self.environment = {**os.environ, "DEV": "CPU", "PLUGRAD_FAST_MATH": "1", "PLUGRAD_PLUGIN_PATH": str(build / "lib/plugrad/plugins")}

    def run(self, command, **environment):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env={**self.environment, **environment})
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stderr}")
        return done.stdout

    def trace(self, batch, layers, width, heads):
        path = self.folder / f"gpt_{batch}_{layers}_{width}.trace"
        if not path.exists():
            self.run([self.build / "bench/pgr_bench_scale_train", "gpt", 3, batch, CONTEXT, width, heads, layers, VOCABULARY, "bf16"],
                     PLUGRAD_LAYERS="skip", PLUGRAD_TRACE=str(path))
        return path

    def plan(self, row, machine, efficiency):
        data, model, batch, layers, width, heads, _ = row
        figures = json.loads((MACHINES / f"{machine}.json").read_text())
        figures["device"]["efficiency"]["matrix"] = efficiency
        path = self.folder / "machine.json"
        path.write_text(json.dumps(figures))
        command = [self.build / "bin/plugrad", "plan-scale", self.trace(batch, layers, width, heads), "--machine", path, "--json",
                   "--mesh", f"data={data},model={model}", "--batch-axes", "data", "--state-axes", "-", "--batch", batch]
        document = json.loads(self.run([*command, "--given"]))
        if model > 1:
            specs = {(VOCABULARY, width): "model,-", (4 * width, width): "model,-", (width, 4 * width): "-,model", (4 * width,): "model",
                     (VOCABULARY,): "model"}
            cuts = []
            for number, group in enumerate(document["groups"]):
                spec = specs.get(tuple(group["shape"]))
                if not spec and tuple(group["shape"]) != (width, width):  # attention's four: the search finds how
                    spec = ",".join("-" * len(group["shape"]))
                if spec:
                    cuts += ["--cut", f"{number}={spec}"]
            document = json.loads(self.run([*command, *cuts]))
        return document["specs"][0], document["seconds"]

    def fitted(self, row, machine):
        """The efficiency of matrix products with which the row is predicted as reported."""
        least, most = 0.05, 1.0
        for _ in range(8):
            middle = (least + most) / 2
            is_slow = self.plan(row, machine, middle)[0]["step_ms"] > row[-1] * 1e3
            least, most = (middle, most) if is_slow else (least, middle)
        return (least + most) / 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(options.folder or temporary)
        folder.mkdir(exist_ok=True)
        planner = Planner(pathlib.Path(options.build), folder)
        for name, machine, rows in REPORTS:
            print(name)
            efficiency = planner.fitted(rows[0], machine)
            for row in rows:
                spec, seconds = planner.plan(row, machine, efficiency)
                data, model, batch, layers, width, _, reported = row
                print(f"  data {data:>2} model {model} batch {batch:>4} {layers} x {width}: reported {reported * 1e3:>8.0f} ms, predicted "
                      f"{spec['step_ms']:>8.0f} ms (overlapped {spec['overlapped_step_ms']:>8.0f}), ratio "
                      f"{spec['step_ms'] / 1e3 / reported:.2f}; exposed {spec['exposed_ms']:.0f} ms, "
                      f"{spec['memory_bytes'] / 1e9:.0f} GB, planned in {seconds:.1f} s", flush=True)
            print(f"  efficiency of matrix products fitted to the first row: {efficiency:.3f}")


if __name__ == "__main__":
    main()
