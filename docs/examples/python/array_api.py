"""An algorithm written once, by the Python array API standard, for NumPy and for plugrad."""
from typing import Any

import numpy as np

import plugrad as pg


def k_means(points: Any, centres: Any, steps: int) -> tuple[Any, Any]:
    """Moves each centre to the mean of the points that are nearest to it, `steps` times. Shapes:
    (n, d), (k, d) -> (k, d), and the index of each point's centre, (n)."""
    xp = points.__array_namespace__()
    numbers = xp.arange(centres.shape[0])
    nearest = xp.zeros(points.shape[0], dtype=numbers.dtype)
    for _ in range(steps):
        apart = points[:, None, :] - centres[None, :, :]
        nearest = xp.argmin(xp.vecdot(apart, apart), axis=1)
        is_member = xp.astype(nearest[:, None] == numbers, points.dtype)
        counts = xp.sum(is_member, axis=0)
        centres = is_member.T @ points / xp.maximum(counts, 1.0)[:, None]
    return centres, nearest


def main() -> None:
    random = np.random.default_rng(0)
    corners = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    points = (corners[:, None, :] + random.normal(size=(3, 50, 2))).reshape(-1, 2)

    by_numpy, _ = k_means(points, points[[0, 60, 120]], steps=8)
    x = pg.Tensor(points)
    by_plugrad, nearest = k_means(x, x[[0, 60, 120]], steps=8)

    print("computed by", type(by_plugrad).__name__, "on", by_plugrad.device)
    print("as NumPy:", bool(np.allclose(by_plugrad.numpy(), by_numpy)))
    xp = nearest.__array_namespace__()
    print("points of each centre:", xp.unique_counts(nearest).counts.tolist())


if __name__ == "__main__":
    main()
