#!/usr/bin/env python3
"""Starts programs of which one rank fails, and checks that every other rank reports it in time.

usage: faults_test.py MPIEXEC PROGRAM [--schedules N] [--ranks N …] [--faults NAME …]

MPICH's launcher kills all ranks of a machine when one is lost, before they can report anything: then only
the end of all is checked ("killed"). With OPTIONS_FOR_KILL it starts each rank as on a machine of its own ("kill", "abort")."""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import uuid
from concurrent import futures

DEADLINE = 2  # seconds of a collective
AFTER = 60    # by which errors come after the deadline, on a machine with other work
MOST = 120    # of a program, with its start
OPTIONS_FOR_KILL = ["-disable-auto-cleanup", "-launcher", "fork", "-hosts", "a,b,c,d", "-ppn", "1"]
AT_ONCE = {"kill", "killed", "abort", "order", "shape", "dtype", "tensor", "program", "end"}  # found without waiting for a deadline
# What an error says of the rank that fails.
SAYS = {
    "kill": r"ended unexpectedly",
    "killed": r"ended unexpectedly",
    "abort": r"ended unexpectedly",
    "stop": r"(did not arrive|sent no data) within 2 s and does not answer: stopped",
    "order": r"has started all-(reduce|gather) of \"[ab]\" .* instead",
    "shape": r"has started all-reduce of \"a\" \(f32, \d+ elements, add\) there instead",
    "dtype": r"has started all-reduce of \"a\" \((i32|f32), \d+ elements, add\) there instead",
    "tensor": r"has started all-reduce of \"[ac]\" \(f32, \d+ elements, add\) there instead",
    "program": r"has recorded other functions before it \([23] functions\) than this rank \([23] functions\)",
    "late": r"did not arrive within 2 s; rank \d has started last: all-gather of \"b\"",
    "end": r"ended the program without it",
}


def processes_with(mark):
    """Processes that have the mark in their environment."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if mark.encode() in file.read():
                    found.append(int(name))
        except OSError:
            continue
    return found


def run(mpiexec, program, ranks, fault, seed):
    """The program's output, and what is wrong with its end."""
    mpiexec = [*mpiexec, *(OPTIONS_FOR_KILL if fault in ("kill", "abort") else [])]
    mark = f"PLUGRAD_TEST_MARK={uuid.uuid4()}"
    environment = os.environ | dict([mark.split("=")], PLUGRAD_COLLECTIVE_SECONDS=str(DEADLINE))
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        report, log = os.path.join(folder, "report"), open(os.path.join(folder, "log"), "w+")
        process = subprocess.Popen([*mpiexec, "-n", str(ranks), program, fault.replace("killed", "kill"), str(seed), report], env=environment,
                                   stdout=log, stderr=log)
        # The launcher may end before the ranks do.
        end = time.monotonic() + MOST
        while time.monotonic() < end and (process.poll() is None or processes_with(mark)):
            time.sleep(0.1)
        left = processes_with(mark)
        if left:
            wrong.append(f"after {MOST} s there are still processes: {left}")
            for pid in left:
                os.kill(pid, 9)
        if process.wait() == 0:
            wrong.append("the launcher ended with exit code 0")
        log.seek(0)
        text = log.read()
        try:
            with open(report) as file:
                text = file.read() + text
        except FileNotFoundError:
            pass
        return text, wrong


def check(output, ranks, fault):
    """What is wrong with the errors of the ranks."""
    began = re.search(r"^fault ([\d.]+)", output, re.M)
    if not began:
        yield "no rank has failed"
        return
    errors = {int(rank): (float(at), text) for rank, at, text in re.findall(r"^error (-?\d+) ([\d.]+) (.*)", output, re.M)}
    # A rank that is late has no more to do with collectives when the others end.
    expected = 0 if fault == "killed" else ranks - 1 if fault in ("kill", "abort", "stop", "end", "late") else ranks
    if len(errors) < expected:
        yield f"{len(errors)} of {expected} ranks report an error"
    limit = AFTER if fault in AT_ONCE else DEADLINE + AFTER
    for rank, (at, text) in errors.items():
        if at - float(began[1]) > limit:
            yield f"rank {rank} reports it after {at - float(began[1]):.1f} s"
        if not re.search(SAYS[fault], text) or not re.search(r"all-(reduce|gather) of \"[abc]\"", text):
            yield f"rank {rank} says: {text}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mpiexec")
    parser.add_argument("program")
    parser.add_argument("--schedules", type=int, default=2)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--at-once", type=int, default=3)
    parser.add_argument("--faults", nargs="+", choices=SAYS, default=list(SAYS))
    options = parser.parse_args()

    def judge(case):
        fault, seed = case
        ranks = options.ranks[seed % len(options.ranks)]
        start = time.monotonic()
        output, wrong = run(options.mpiexec.split(), options.program, ranks, fault, seed)
        wrong += check(output, ranks, fault)
        print(f"{fault}, schedule {seed}, {ranks} ranks: {time.monotonic() - start:.1f} s, "
              + ("; ".join(wrong) + "\n" + output if wrong else "passed"), flush=True)
        return not wrong

    cases = [(fault, seed) for seed in range(options.schedules) for fault in options.faults]
    with futures.ThreadPoolExecutor(options.at_once) as pool:  # most of the time they wait
        sys.exit(0 if all(list(pool.map(judge, cases))) else 1)


if __name__ == "__main__":
    main()
