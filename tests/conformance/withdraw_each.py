#!/usr/bin/env python3
"""Withdraws each claim of REFERENCE in turn: the device must pass the suite without it, and
networks trained through core, where the host decomposes the missing op, must agree with the
evaluator.

usage: withdraw_each.py PLUGRAD [--full]    the networks without each claim, and L1 without the
claims of the device; --full: also each op on each dtype, and the quick selection with all"""
import concurrent.futures
import json
import os
import subprocess
import sys

MANDATORY_DTYPES = {"bool", "i32", "f32"}
DTYPES = ["i8", "u8", "i16", "u16", "u32", "i64", "u64", "f16", "bf16", "f64", "f8e4m3", "f8e5m2"]
INTS = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
# Claims of ops; mandatory ops are claims only on the other dtypes.
OPTIONAL = {"sub": INTS + FLOATS, "fdiv": FLOATS, "fma": FLOATS, "trunc": FLOATS, "exp2": FLOATS, "log2": FLOATS,
            "sin": FLOATS, "atomic_add": INTS + FLOATS, "local_id": ["i32", "i64"], "barrier": [], "async_copy": []}
MANDATORY = {"add": INTS + FLOATS, "mul": INTS + FLOATS, "neg": INTS + FLOATS, "idiv": INTS, "mod": INTS,
             "max": ["bool"] + INTS + FLOATS, "recip": FLOATS, "sqrt": FLOATS, "and": ["bool"] + INTS,
             "or": ["bool"] + INTS, "xor": ["bool"] + INTS, "shl": INTS, "shr": INTS,
             "cmplt": ["bool"] + INTS + FLOATS, "cmpeq": ["bool"] + INTS + FLOATS, "cmpne": ["bool"] + INTS + FLOATS,
             "where": ["bool"] + INTS + FLOATS, "cast": ["bool"] + INTS + FLOATS, "loop": ["i64"], "group_id": ["i64"]}


OF_THE_DEVICE = ("", "lanes", "local", "synchrony")


def words(full):
    yield from OF_THE_DEVICE
    yield from OPTIONAL
    yield from DTYPES
    # A dtype that cannot be stored has no arithmetic either.
    for dtype in DTYPES:
        yield f"{dtype},load:{dtype},store:{dtype}"
    if full:
        for op, dtypes in OPTIONAL.items():
            yield from (f"{op}:{dtype}" for dtype in dtypes)
        for op, dtypes in MANDATORY.items():
            yield from (f"{op}:{dtype}" for dtype in dtypes if dtype not in MANDATORY_DTYPES)


def judge(tool, word, full):
    """Errors of a run without the claim; empty: none."""
    command = [tool, "conformance", "--device", "REFERENCE", "--json", "--time-limit-factor", "4",
               "--option", f"withdraw={word}"]
    if not full:
        command += ["--filter", "l1.*,l2.models.*" if word in OF_THE_DEVICE else "l2.models.*"]
    run = subprocess.run(command, capture_output=True, text=True)
    try:
        report = json.loads(run.stdout)
    except ValueError:
        return f"no report, exit code {run.returncode}: {run.stderr.strip()}"
    bad = [t for t in report["tests"] if t["status"] in ("fail", "crash", "timeout")]
    if bad:
        return "; ".join(f"{t['id']}: {t['status']}: {t['message'].splitlines()[0]}" for t in bad[:3])
    models = [t for t in report["tests"] if t["id"].startswith("l2.models.")]
    if [t["status"] for t in models] != ["pass"] * 3:
        return f"the models are {[(t['id'], t['status'], t.get('message')) for t in models]}"
    return "" if run.returncode == 0 else f"exit code {run.returncode}: {run.stderr.strip()}"


def main():
    full = "--full" in sys.argv
    todo = list(words(full))
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = dict(zip(todo, pool.map(lambda word: judge(sys.argv[1], word, full), todo)))
    wrong = {word: reason for word, reason in found.items() if reason}
    for word, reason in wrong.items():
        print(f"without {word}: {reason}")
    print(f"withdraw_each: {len(todo) - len(wrong)} of {len(todo)} devices pass")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
