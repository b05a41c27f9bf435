"""A decoder with a key-value cache: one recording serves every length of the text."""
import plugrad as pg

HEADS, PLACES, WIDTH = 4, 64, 16


def heads(x: pg.Tensor) -> pg.Tensor:
    """(n, heads * width) -> (heads, n, width)"""
    return x.reshape(-1, HEADS, WIDTH).transpose(0, 1)


def main() -> None:
    pg.Tensor.manual_seed(1)
    shape = (HEADS * WIDTH, HEADS * WIDTH)
    wq, wk, wv = ((pg.Tensor.randn(shape) * 0.2).realize() for _ in range(3))
    length = pg.Variable("length", 1, PLACES)
    keys, values = (pg.Tensor.zeros((HEADS, PLACES, WIDTH)) for _ in range(2))

    @pg.jit
    def decode(token: pg.Tensor, n: pg.Tensor) -> pg.Tensor:
        is_new = pg.Tensor.arange(PLACES).reshape(PLACES, 1) == n - 1
        keys.assign(pg.where(is_new, heads(token @ wk), keys))
        values.assign(pg.where(is_new, heads(token @ wv), values))
        mixed = pg.scaled_dot_product_attention(
            heads(token @ wq), length.limit(keys, 1, n), length.limit(values, 1, n))
        return mixed.transpose(0, 1).reshape(1, HEADS * WIDTH)

    text = [pg.Tensor.randn((1, HEADS * WIDTH)).realize()]
    for n in range(1, 41):
        text.append(decode(text[-1], length.bind(n)))
    print(len(text) - 1, "tokens,", decode.recordings, "recording")

    # The last token without a cache: every position is computed again.
    x, last = pg.cat(text[:-1]), text[-2]
    again = pg.scaled_dot_product_attention(heads(last @ wq), heads(x @ wk), heads(x @ wv))
    cached = decode(last, length.bind(40))  # writes the last position again
    same = heads(cached).allclose(again, 1e-4, 1e-5)
    print("the cache agrees:", same)
    assert same and decode.recordings == 1


if __name__ == "__main__":
    main()
