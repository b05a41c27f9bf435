"""Searches the schedule of a matrix product's kernel, and prints times before and after.

    python search.py [SIZE] [SECONDS]
"""
import os
import sys
import tempfile
import time

# A database of its own makes beam 0 use the heuristic, whatever an earlier search stored.
os.environ["PLUGRAD_SEARCH_DB"] = os.path.join(tempfile.mkdtemp(), "search-example.tsv")

import plugrad as pg  # noqa: E402

CALLS = 15


def measure(beam: int, seconds: float, n: int) -> None:
    """A realised tensor keeps its value, so each call needs a left operand of its own."""
    left = [pg.Tensor.randn((n, n)).realize() for _ in range(CALLS + 1)]
    right = pg.Tensor.randn((n, n)).realize()
    with pg.SearchScope(beam, seconds):
        times = []
        for a in left:
            start = time.perf_counter()
            (a @ right).realize()[0, 0].item()
            times.append(time.perf_counter() - start)
        kernel = (left[0] @ right).schedule()[0]
    best = sorted(times[1:])[CALLS // 2]  # the first call compiles
    print(f"matmul {n}, beam {beam}: {best * 1e3:.3f} ms, {2 * n ** 3 / best * 1e-9:.0f} GFLOP/s, "
          f"{kernel.optimisations}")


def main(n: int = 1024, seconds: float = 15.0) -> None:
    for beam in (0, 4):
        measure(beam, seconds, n)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
