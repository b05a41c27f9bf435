"""Functions that are recorded at their second call and replayed from then on."""
import plugrad as pg


def main() -> None:
    runs = 0
    total = pg.Tensor.zeros(2)

    @pg.jit
    def step(x: pg.Tensor, scale: float) -> pg.Tensor:
        nonlocal runs, total
        runs += 1  # runs twice for each scale, then no more
        total += x  # every replay does this
        return (x * scale).sum()

    sums = [step(pg.Tensor([float(i), 10.0 * i]), 2.0).item() for i in range(1, 6)]
    print(sums, "in", runs, "runs; total", total.tolist())
    assert runs == 2 and total.tolist() == [15.0, 150.0]

    # One recording for every length: the cache has its full size, unused rows are masked.
    length = pg.Variable("length", 1, 64)
    cache = pg.Tensor.zeros((64, 8))

    @pg.jit
    def decode(token: pg.Tensor, n: pg.Tensor) -> pg.Tensor:
        place = pg.Tensor.arange(64).reshape(64, 1)
        cache.assign(pg.where(place == n - 1, token, cache))
        scores = cache @ token.reshape(8, 1)
        return (pg.where(place < n, scores, -1e30).softmax(0) * cache).sum(0)

    results = [decode(pg.Tensor.full(8, 0.1 * n).contiguous(), length.bind(n))
               for n in range(1, 11)]
    print(decode.recordings, "recording,", results[-1][0].item())
    try:
        decode(pg.Tensor.zeros(8), length.bind(65))
    except pg.UserError as error:
        print(error)


if __name__ == "__main__":
    main()
