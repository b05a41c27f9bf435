#!/usr/bin/env python3
"""Saves sharded checkpoints in programs of several ranks of which one fails, and resumes trainings by other numbers of ranks.

usage: checkpoint_faults_test.py MPIEXEC PROGRAM [--schedules N] [--faults NAME …]

resume  a training of 2 ranks goes on by 4 and then by 1, with the losses of an uninterrupted one
kill    a rank is killed while it saves: the folder has one of the last two saves, as a whole
full    a rank has no space for its file: every rank gets the error, and the former save stays
memory  a rank is out of memory in a step: every rank gets the error"""
import argparse
import contextlib
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "unit/distributed"))
from faults_test import OPTIONS_FOR_KILL, processes_with  # noqa: E402

DEADLINE = 5     # seconds of a collective
AFTER = 60       # by which errors come after the deadline, on a machine with other work
MOST = 150       # of a program, with its start
TOLERANCE = 1e-5  # of losses, relative: sums are in another order


class Failure(Exception):
    """What a schedule did wrong."""


class Ranks:
    """A program of several ranks that is started, and its report."""

    def __init__(self, options, ranks, *arguments, alone=False):
        self.mark = f"PLUGRAD_TEST_MARK={uuid.uuid4()}"
        environment = os.environ | dict([self.mark.split("=")], PLUGRAD_COLLECTIVE_SECONDS=str(DEADLINE))
        launcher = [*options.mpiexec.split(), *(OPTIONS_FOR_KILL if alone else []), "-n", str(ranks)] if ranks > 1 else []
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([*launcher, options.program, *arguments], env=environment, stdout=self.log, stderr=self.log)

    def wait(self):
        """The exit code and the output. The launcher may end before the ranks do."""
        end = time.monotonic() + MOST
        while time.monotonic() < end and (self.process.poll() is None or processes_with(self.mark)):
            time.sleep(0.02)
        left = processes_with(self.mark)
        for pid in left:
            os.kill(pid, 9)
        self.process.wait()
        self.log.seek(0)
        text = self.log.read()
        if left:
            raise Failure(f"after {MOST} s there are still processes: {left}\n{text}")
        return self.process.returncode, text


def finished(options, ranks, *arguments):
    code, text = Ranks(options, ranks, *arguments).wait()
    if code != 0:
        raise Failure(f"{arguments} with {ranks} ranks ended with {code}: {text}")
    return text


def saved_value(options, ranks, folder):
    return int(re.search(r"^value (-?\d+)$", finished(options, ranks, "check", folder), re.M)[1])


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def check_resume(options, _, folder):
    def losses(ranks, name, begin, end):
        text = finished(options, ranks, "train", folder / name, str(begin), str(end))
        return [float(loss) for loss in re.findall(r"^step \d+: loss (\S+)$", text, re.M)]

    expected = losses(1, "whole", 0, 9)
    actual = losses(2, "parts", 0, 3) + losses(4, "parts", 3, 6) + losses(1, "parts", 6, 9)
    if len(actual) != 9 or any(abs(a - b) > TOLERANCE * abs(b) for a, b in zip(actual, expected)):
        raise Failure(f"the losses are {actual}, uninterrupted {expected}")
    if not expected[-1] < 0.8 * expected[0]:
        raise Failure(f"the losses do not fall: {expected}")
    return f"losses {actual[0]:.4g} to {actual[-1]:.4g}"


def check_kill(options, schedule, folder):
    ranks, report = schedule.choice([2, 4]), folder / "report"
    program = Ranks(options, ranks, "save", folder / "saved", report, alone=schedule.random() < 0.5)
    end = time.monotonic() + MOST
    while "saved 1" not in lines(report) and time.monotonic() < end and program.process.poll() is None:
        time.sleep(0.005)
    time.sleep(schedule.random() * 0.5)
    pids = dict(line.split()[1:] for line in lines(report) if line.startswith("process "))
    victim = schedule.randrange(ranks)
    if program.process.poll() is not None:
        raise Failure(f"the program ended by itself: {program.wait()}")
    os.kill(int(pids[str(victim)]), 9)
    program.wait()
    numbers = {kind: [int(line.split()[1]) for line in lines(report) if line.startswith(kind)] for kind in ("begin", "saved")}
    value = saved_value(options, schedule.choice([1, 2]), folder / "saved")
    if not max(numbers["saved"]) <= value <= max(numbers["begin"]) <= max(numbers["saved"]) + 1:
        raise Failure(f"the folder has save {value}, the last that ended is {max(numbers['saved'])}")
    finished(options, 2, "train", folder / "saved", "0", "1")  # a save of another program and number of ranks
    left = sorted(path.name for path in (folder / "saved").iterdir())
    if len(left) != 3 or left[0] != "index.json":
        raise Failure(f"after another save the folder has {left}")
    return f"{ranks} ranks, rank {victim}, " + ("in" if max(numbers["begin"]) > max(numbers["saved"]) else "after") + \
        f" save {max(numbers['begin'])}; the folder has save {value}"


@contextlib.contextmanager
def small_disk(folder):
    """A file system for one and a half saves; False if this process may not mount one."""
    disk = folder / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], capture_output=True).returncode != 0:
        yield None
        return
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


def check_full(options, schedule, folder):
    ranks, report = schedule.choice([2, 4]), folder / "report"
    with small_disk(folder) as disk:
        victim = schedule.randrange(ranks) if disk is None or schedule.random() < 0.5 else -1
        place = (folder if victim >= 0 else disk) / "saved"
        code, text = Ranks(options, ranks, "full", place, report, str(victim)).wait()
        found = lines(report)
        began = min((float(line.split()[1]) for line in found if line.startswith("fault")), default=0)
        errors = [line.split(maxsplit=3) for line in found if line.startswith("error")]
        reason = "No space left on device" if victim < 0 else "File too large"
        wanted = rf"rank {'[0-3]' if victim < 0 else victim}: cannot write .*part-.*{reason}"
        wrong = [error for error in errors if not re.search(wanted, error[3]) or float(error[2]) - began > AFTER]
        if code != 0 or wrong or {int(error[1]) for error in errors} != set(range(ranks)):
            raise Failure(f"exit code {code}, errors {errors}: {text}")
        values = [line for line in found if line.startswith("value")]
        if values != ["value 1"] * ranks + ["value 3"] * ranks:
            raise Failure(f"the folder has {values}")
        if len(list(place.iterdir())) != ranks + 1:
            raise Failure(f"files are left: {sorted(place.iterdir())}")
    return f"{ranks} ranks, " + ("the file system" if victim < 0 else f"rank {victim}")


def check_memory(options, schedule, folder):
    ranks, report = schedule.choice([2, 4]), folder / "report"
    victim, kind = schedule.randrange(ranks), schedule.choice(["malloc", "memory"])
    code, text = Ranks(options, ranks, kind, "-", report, str(victim)).wait()
    began = [float(line.split()[1]) for line in lines(report) if line.startswith("fault")]
    errors = {int(rank): (float(at), text) for _, rank, at, text in (line.split(maxsplit=3) for line in lines(report) if line.startswith("error"))}
    if code == 0 or len(errors) != ranks or not began:
        raise Failure(f"exit code {code}, {len(errors)} of {ranks} ranks report an error: {errors}: {text}")
    for rank, (at, error) in errors.items():
        wanted = r"out of memory" if rank == victim else rf"rank {victim} .*out of memory"
        if not re.search(wanted, error) or at - errors[victim][0] > AFTER:
            raise Failure(f"rank {rank} says {at - errors[victim][0]:.1f} s later: {error}")
    return f"{ranks} ranks, rank {victim}, {kind}"


CHECKS = {"resume": check_resume, "kill": check_kill, "full": check_full, "memory": check_memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mpiexec")
    parser.add_argument("program")
    parser.add_argument("--schedules", type=int, default=2)
    parser.add_argument("--faults", nargs="+", choices=CHECKS, default=list(CHECKS))
    options = parser.parse_args()
    is_right = True
    for fault in options.faults:
        for seed in range(1 if fault == "resume" else options.schedules):
            start, outcome = time.monotonic(), "passed"
            with tempfile.TemporaryDirectory() as folder:
                try:
                    outcome = f"passed ({CHECKS[fault](options, random.Random(seed), Path(folder))})"
                except Failure as failure:
                    outcome, is_right = str(failure), False
            print(f"{fault}, schedule {seed}: {time.monotonic() - start:.1f} s, {outcome}", flush=True)
    sys.exit(0 if is_right else 1)


if __name__ == "__main__":
    main()
