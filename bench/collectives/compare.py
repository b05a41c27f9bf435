#!/usr/bin/env python3
"""Measures an all-reduce of f32 by plugrad's backend against MPI_Allreduce, in turns.

    bench/collectives/compare.py [--build DIR] [--mpiexec mpiexec.mpich] [--ranks 2] [--megabytes 64] [--turns 7]

Each turn starts both programs once, in alternating order; the number of a turn is the median of its rounds, the first of
which is not counted. The ratio is MPI's time over plugrad's: more than 1 where plugrad is faster."""
import argparse
import pathlib
import statistics
import subprocess

SIDES = ("by_plugrad", "by_mpi")


def measure(options, side):
    program = pathlib.Path(options.build) / "bench" / f"pgr_bench_all_reduce_{side}"
    done = subprocess.run([options.mpiexec, "-n", str(options.ranks), program, str(options.megabytes), str(options.rounds + 1)],
                          capture_output=True, text=True, check=True)
    return statistics.median(map(float, done.stdout.split()[1:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--mpiexec", default="mpiexec.mpich")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--megabytes", type=float, default=64)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    seconds = {side: [] for side in SIDES}
    for turn in range(options.turns):
        for side in SIDES if turn % 2 else reversed(SIDES):
            seconds[side].append(measure(options, side))
    for side, found in seconds.items():
        print(f"{side}: median {statistics.median(found) * 1e3:.2f} ms, least {min(found) * 1e3:.2f} ms")
    ratios = [mpi / own for own, mpi in zip(*seconds.values())]
    print(f"ratio: median {statistics.median(ratios):.2f}, least {min(ratios):.2f}, most {max(ratios):.2f}")


if __name__ == "__main__":
    main()
