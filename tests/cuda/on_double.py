#!/usr/bin/env python3
"""Runs the suite on the CUDA plugin with the double of libcuda: each kernel is rendered, compiled
to PTX for the architecture and run by the double, which also reports misuse of handles and memory.
If ptxas is found, it assembles all PTX.

usage: on_double.py PLUGRAD PLUGIN FOLDER_OF_THE_DOUBLE ARCH [LEVEL ...]    ARCH: 80, 90"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

LEAST_KERNELS = 900  # minimum kernels of a run of L1 and L2
# Tests that compare times, which fail on a busy machine.
TIMED = {"l1.launch.timing", "l3.queue.timeout"}


def run(tool, plugin, environment, *more):
    command = [tool, "conformance", "--plugin", plugin, "--option", "compiler=clang", "--time-limit-factor", "4", "--json", *more]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if not done.stdout.strip():
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout)


def failed(report):
    return [test for test in report["tests"] if test["status"] not in ("pass", "unsupported", "waived")]


def find_ptxas():
    return shutil.which("ptxas") or next(iter(glob.glob("/usr/local/cuda*/bin/ptxas")), None)


def assemble(folder, arch):
    """Number of PTX files that ptxas accepted; None without ptxas."""
    ptxas = find_ptxas()
    if not ptxas:
        return None
    files = sorted(glob.glob(f"{folder}/*.ptx"))
    for path in files:
        done = subprocess.run([ptxas, f"-arch=sm_{arch}", path, "-o", "/dev/null"], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"ptxas refuses {path}:\n{done.stdout}{done.stderr}\n{open(path).read()}")
    return len(files)


def main():
    tool, plugin, folder, arch, *levels = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        log = os.path.join(scratch, "violations")
        environment = dict(os.environ, LD_LIBRARY_PATH=folder, PLUGRAD_CUDA_DOUBLE_ARCH=arch,
                           PLUGRAD_CUDA_DOUBLE_LOG=log, PLUGRAD_CUDA_DOUBLE_PTX=scratch)
        report = run(tool, plugin, environment, *(word for level in levels for word in ("--level", level)))
        bad = failed(report)
        timed = [test["id"] for test in bad if test["id"] in TIMED]
        if timed:
            print(f"once more, alone, since they are timed: {', '.join(timed)}")
            bad = [test for test in bad if test["id"] not in TIMED]
            bad += failed(run(tool, plugin, environment, "--filter", ",".join(timed)))
        for test in bad:
            print(f"{test['status']} {test['id']}\n    {test.get('message', '')}")
        if os.path.exists(log):
            bad.append("violations")
            print("done wrong with the driver:\n" + open(log).read())
        kernels = len(glob.glob(f"{scratch}/*.ptx"))
        assembled = assemble(scratch, arch)
        totals = report["totals"]
        print(f"sm_{arch}: {totals['pass']} tests passed, {totals['unsupported']} unsupported, {kernels} kernels compiled; " +
              (f"ptxas assembled {assembled}" if assembled is not None else "not assembled: SKIPPED, no ptxas was found"))
        if kernels < LEAST_KERNELS and {"L1", "L2"} <= set(levels):
            sys.exit(f"only {kernels} kernels were compiled")
        if bad:
            sys.exit(f"{len(bad)} failures")


if __name__ == "__main__":
    main()
