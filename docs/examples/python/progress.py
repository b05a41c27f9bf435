"""A training whose loss and accuracy can be watched in a browser.

    python progress.py [FILE.html]
"""
import sys

import plugrad as pg
from plugrad import nn, optim


def main(plot: str = "train.html", steps: int = 200) -> None:
    pg.Tensor.manual_seed(1)
    points = pg.Tensor.uniform((512, 2), -1, 1).realize()
    is_inside = ((points * points).sum(1) < 0.6).cast("int32").realize()  # of a circle
    net = nn.Sequential(nn.Linear(2, 32), pg.relu, nn.Linear(32, 2))
    opt = optim.Adam(nn.parameters(net), lr=0.02)

    with optim.Progress(steps, title="circle", units_a_step=512, plot=plot) as progress:
        for _ in range(steps):
            opt.zero_grad()
            scores = net(points)
            loss = pg.sparse_categorical_crossentropy(scores, is_inside)
            loss.backward()
            opt.step()
            accuracy = (scores.argmax(1) == is_inside).mean()
            progress.update(float(loss.item()), float(accuracy.item()))
    print(f"{plot} shows {steps} steps")


if __name__ == "__main__":
    main(sys.argv[1] if sys.argv[1:] else "train.html")
