#!/usr/bin/env python3
"""Compares the losses that a program prints on one device and on several: same_losses.py PROGRAM ONE
MANY [LAUNCHER], ONE and MANY being its arguments. With a launcher, such as "mpiexec -n 2", MANY runs in
many processes. With PLUGRAD_DETERMINISTIC=1 all losses must be equal."""
import os
import re
import subprocess
import sys

IS_DETERMINISTIC = os.environ.get("PLUGRAD_DETERMINISTIC") == "1"
TOLERANCE = 0 if IS_DETERMINISTIC else 1e-5  # relative: sums are in another order
STEPS = 10  # compared; rounding errors grow with each further step


def losses(program, arguments):
    done = subprocess.run([*program, *arguments.split()], capture_output=True, text=True, timeout=280)
    sys.stdout.write(done.stdout)
    if "MNIST is not here" in done.stdout:
        sys.exit(0)
    if done.returncode != 0:
        sys.exit(f"{program} {arguments} ended with {done.returncode}: {done.stderr}")
    return [float(loss) for loss in re.findall(r"^step \d+: loss (\S+)$", done.stdout, re.M)]


def main():
    program, one, many, *launcher = sys.argv[1:]
    expected = losses([program], one)
    actual = losses([*" ".join(launcher).split(), program], many)
    if len(expected) < STEPS or len(actual) != len(expected):
        sys.exit(f"{len(expected)} and {len(actual)} losses were printed; {STEPS} or more are compared")
    for step, (a, b) in enumerate(zip(expected if IS_DETERMINISTIC else expected[:STEPS], actual)):
        if abs(a - b) > TOLERANCE * abs(a):
            sys.exit(f"step {step}: {a} on one device, {b} on several")
    if not expected[-1] < 0.8 * expected[0]:
        sys.exit(f"the losses do not fall: {expected[0]} to {expected[-1]}")


if __name__ == "__main__":
    main()
