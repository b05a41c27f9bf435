"""The interpreter ends cleanly, whatever plugrad's threads and tensors are doing."""
import os
import subprocess
import sys

import pytest

#: How often each program runs; a race shows in some runs only.
TIMES = int(os.environ.get("PLUGRAD_TEST_EXITS", "5"))

COMPUTING = """
import plugrad as pg, threading, time
def work():
    while True:
        x = pg.Tensor.randn(64, 64)
        (x @ x).relu().sum().item()
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
kept = pg.Tensor.ones(5)
time.sleep(0.1)
"""
CALLED_BACK = """
import plugrad as pg, threading, time
double = pg.function(lambda context, x: x * 2, lambda context, g: g * 2)
def work():
    while True:
        x = pg.Tensor.ones(8, 8).requires_grad_()
        double(x).sum().backward()
        x.grad.realize()
threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
"""
LAZY = "import plugrad as pg\nkept = [pg.Tensor.ones(3) + 1, pg.Tensor([1.0]).realize()]\n"
FORKED = COMPUTING + """
import os, sys
child = os.fork()
if child == 0:
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize("program", [COMPUTING, CALLED_BACK, LAZY, FORKED],
                         ids=["computing", "called_back", "lazy", "forked"])
def test_it_ends_with_status_0_and_says_nothing(program: str) -> None:
    for _ in range(TIMES):
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True,
                              text=True, timeout=250)
        assert (done.returncode, done.stderr) == (0, "")
