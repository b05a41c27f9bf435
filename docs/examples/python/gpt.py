"""A transformer that learns a text letter by letter and generates a continuation.

    python gpt.py [STEPS]

The parts of a large language model at small size: an embedding turns letters into vectors, blocks
of attention and a two-layer network transform the vectors, and the last vector of each position
predicts the next letter.
"""
import math
import random
import sys

import plugrad as pg
from plugrad import nn, optim

CONTEXT = 32  # letters that a prediction may look at
WIDTH, HEADS, BLOCKS, BATCH = 48, 4, 2, 16


def rhyme() -> str:
    """Each verse repeats the verses before it, so the text is predictable."""
    verse = "the house that jack built.\n"
    text = "this is " + verse
    for line in ("the malt that lay in ", "the rat that ate ", "the cat that killed ",
                 "the dog that worried ", "the cow with the crumpled horn that tossed ",
                 "the maiden all forlorn that milked ",
                 "the man all tattered and torn that kissed "):
        verse = line + verse
        text += "this is " + verse
    return text


class Block:
    """Attention mixes each position with those before it; two layers work on each one alone."""

    def __init__(self) -> None:
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiHeadAttention(WIDTH, HEADS)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def __call__(self, x: pg.Tensor) -> pg.Tensor:
        h = x + self.attention(self.norm1(x), causal=True)
        return h + self.down(self.up(self.norm2(h)).gelu())


class Gpt:
    def __init__(self, letters: int) -> None:
        self.letter, self.place = nn.Embedding(letters, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = [Block() for _ in range(BLOCKS)]
        self.norm, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letters)

    def __call__(self, x: pg.Tensor) -> pg.Tensor:
        """(n, CONTEXT) indices of letters -> (n, CONTEXT, letters) logits."""
        h = self.letter(x) + self.place.weight
        for block in self.blocks:
            h = block(h)
        return self.out(self.norm(h))


def main(steps: int = 240) -> None:
    pg.Tensor.manual_seed(1)
    pieces = random.Random(1)
    text = rhyme()
    alphabet = sorted(set(text))
    numbers = [alphabet.index(letter) for letter in text]
    gpt = Gpt(len(alphabet))
    opt = optim.AdamW(nn.parameters(gpt), lr=3e-3, weight_decay=0.01)
    rate = optim.warm_up(optim.cosine_rate(3e-3, steps, 3e-4), steps // 10 + 1)

    @pg.jit
    def train(x: pg.Tensor, y: pg.Tensor) -> pg.Tensor:
        opt.zero_grad()
        loss = pg.sparse_categorical_crossentropy(gpt(x), y)
        loss.backward()
        optim.clip_grad_norm(nn.parameters(gpt), 1.0)
        opt.step()
        return loss

    loss = math.log(len(alphabet))  # of a blind guess
    for step in range(steps):
        # Random pieces of the text; the targets are the same pieces, one letter later.
        starts = [pieces.randrange(len(numbers) - CONTEXT) for _ in range(BATCH)]
        x = pg.Tensor([numbers[at:at + CONTEXT] for at in starts])
        y = pg.Tensor([numbers[at + 1:at + 1 + CONTEXT] for at in starts])
        opt.lr = rate(step)
        loss = float(train(x, y).item())
        if step % 20 == 0:
            print(f"step {step}: loss {loss:.3f}", flush=True)

    # The text begins with the first letters of the training text. The temperature is 0.5.
    window, made = numbers[:CONTEXT], ""
    with nn.training(False):
        for _ in range(60):
            scores = gpt(pg.Tensor([window]))[0, -1]
            letter = int((scores / 0.5).softmax().multinomial(1).item())
            window = window[1:] + [letter]
            made += alphabet[letter]
    print(f"loss {loss:.3f}\n{text[:CONTEXT]}|{made}")
    if steps >= 240:
        assert loss < 0.8  # a letter is then guessed with probability exp(-0.8), 0.45


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
