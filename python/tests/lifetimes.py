"""Waits for the end of Python objects that a tensor's history holds."""
import gc
import weakref

import plugrad as pg


def ends(x: pg.Tensor, ref: weakref.ref) -> bool:
    """Whether the object ends when the engine drops what nothing reaches, from time to time."""
    for i in range(200_000):
        x + float(i)
        if i % 1000 == 0:
            gc.collect()
            if ref() is None:
                return True
    return False
