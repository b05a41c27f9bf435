#!/usr/bin/env python3
"""Writes recorded/NAME.txt for each program of this folder: PyTorch's losses, gradients, scores and
tokens for the same weights and data. Run once, with PyTorch 2.13 on a CPU; `--time` prints
milliseconds per step instead."""
import math
import pathlib
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

FOLDER = pathlib.Path(__file__).parent / "recorded"


def noise_at(seed, count):
    """24 bits of a multiplied and shifted counter, as in formula.h."""
    i = np.arange(1, count + 1, dtype=np.uint64)
    x = i * np.uint64(6364136223846793005) + np.uint64((seed + 1) * 1442695040888963407 % 2**64)
    x ^= x >> np.uint64(29)
    x *= np.uint64(0x9E3779B97F4A7C15)
    return (x >> np.uint64(40)).astype(np.float64) / 8388608.0 - 1.0


def noise(shape, seed, scale=1.0, offset=0.0):
    return torch.from_numpy((offset + scale * noise_at(seed, math.prod(shape))).astype(np.float32)).reshape(shape)


def integers(shape, seed, count):
    return torch.from_numpy(((noise_at(seed, math.prod(shape)) + 1) / 2 * count).astype(np.int64)).reshape(shape)


def set_parameters(module, gain=1.0):
    with torch.no_grad():
        for k, (name, p) in enumerate(module.named_parameters()):
            is_scale = p.ndim == 1 and name.endswith("weight")
            scale = 0.1 if p.ndim == 1 else gain * math.sqrt(3.0 / (p.numel() // p.shape[0]))
            p.copy_(noise(p.shape, 1000 + k, scale, 1.0 if is_scale else 0.0))


def gradient_norms(module):
    return [p.grad.double().norm().item() for p in module.parameters()]


class Fields(nn.Module):
    """Fields in declaration order."""

    def __init__(self, **fields):
        super().__init__()
        for name, field in fields.items():
            setattr(self, name, field)


class ConvPair(Fields):
    def __init__(self, n, m):
        super().__init__(conv1=nn.Conv2d(n, m, 3, padding=1, bias=False), norm1=nn.BatchNorm2d(m),
                         conv2=nn.Conv2d(m, m, 3, padding=1))

    def forward(self, x):
        return self.conv2(self.norm1(self.conv1(x)).relu()).relu()


class UNet(Fields):
    def __init__(self):
        super().__init__(down1=ConvPair(1, 8), down2=ConvPair(8, 16), bottom=ConvPair(16, 32),
                         up2=nn.ConvTranspose2d(32, 16, 2, stride=2), join2=ConvPair(32, 16),
                         up1=nn.ConvTranspose2d(16, 8, 2, stride=2), join1=ConvPair(16, 8), out=nn.Conv2d(8, 1, 1))

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        d = self.join2(torch.cat([self.up2(self.bottom(F.max_pool2d(b, 2))), b], 1))
        return self.out(self.join1(torch.cat([self.up1(d), a], 1)))


def unet(steps=12):
    net = UNet()
    set_parameters(net)
    clean = noise((4, 1, 24, 24), 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    result = {"losses": []}
    for i in range(steps):
        opt.zero_grad()
        loss = F.mse_loss(net(clean + noise(clean.shape, 10 + i, 0.3)), clean)
        loss.backward()
        opt.step()
        result["losses"].append(loss.item())
        result.setdefault("gradients", gradient_norms(net))
    net.eval()
    result["evaluation"] = [F.mse_loss(net(clean), clean).item()]
    return result


def lstm(steps=12):
    batch, places, letters, width, hidden = 8, 24, 40, 24, 32
    net = Fields(letter=nn.Embedding(letters, width), cell=nn.LSTMCell(width, hidden), out=nn.Linear(hidden, letters))
    set_parameters(net)
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    result = {"losses": [], "norms": []}
    for i in range(steps):
        text = integers((batch, places + 1), 10 + i, letters)
        opt.zero_grad()
        x, state, states = net.letter(text[:, :-1]), None, []
        for t in range(places):
            state = net.cell(x[:, t], state)
            states.append(state[0])
        loss = F.cross_entropy(net.out(torch.stack(states, 1)).flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        result["norms"].append(torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5).item())
        opt.step()
        result["losses"].append(loss.item())
        result.setdefault("gradients", gradient_norms(net))
    return result


class Attention(Fields):
    def __init__(self, width, heads):
        super().__init__(**{name: nn.Linear(width, width) for name in ("q", "k", "v", "out")})
        self.heads = heads

    def forward(self, x, causal=False):
        def split(y):
            return y.unflatten(-1, (self.heads, -1)).transpose(-3, -2)
        y = F.scaled_dot_product_attention(split(self.q(x)), split(self.k(x)), split(self.v(x)), is_causal=causal)
        return self.out(y.transpose(-3, -2).flatten(-2))


class Block(Fields):
    def __init__(self, width, heads, gelu):
        super().__init__(norm1=nn.LayerNorm(width), attention=Attention(width, heads), norm2=nn.LayerNorm(width),
                         up=nn.Linear(width, 4 * width), down=nn.Linear(4 * width, width))
        self.gelu = gelu

    def forward(self, x, causal=False):
        h = x + self.attention(self.norm1(x), causal)
        return h + self.down(F.gelu(self.up(self.norm2(h)), approximate=self.gelu))


class ViT(Fields):
    def __init__(self, width, patches, classes):
        super().__init__(patches=nn.Conv2d(3, width, 4, stride=4), tokens=Fields(
            class_token=nn.Parameter(torch.zeros(1, 1, width)), positions=nn.Parameter(torch.zeros(1, patches + 1, width))),
            blocks=nn.ModuleList([Block(width, 4, "none") for _ in range(2)]), norm=nn.LayerNorm(width),
            head=nn.Linear(width, classes))

    def forward(self, images):
        rows = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.tokens.class_token.expand(len(images), -1, -1), rows], 1) + self.tokens.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))


def vit(steps=12):
    net = ViT(32, 16, 10)
    set_parameters(net)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.05)
    result = {"losses": []}
    for i in range(steps):
        for group in opt.param_groups:
            group["lr"] = 1e-3 * min(i + 1, 4)
        opt.zero_grad()
        loss = F.cross_entropy(net(noise((8, 3, 16, 16), 10 + i)), integers((8,), 50 + i, 10), label_smoothing=0.1)
        loss.backward()
        opt.step()
        result["losses"].append(loss.item())
        result.setdefault("gradients", gradient_norms(net))
    result["scores"] = net(noise((8, 3, 16, 16), 99)).flatten().tolist()
    return result


def vae(steps=20):
    batch, pixels, hidden, code = 16, 64, 48, 6
    net = Fields(into=nn.Linear(pixels, hidden), mean=nn.Linear(hidden, code), log_variance=nn.Linear(hidden, code),
                 from_code=nn.Linear(code, hidden), out=nn.Linear(hidden, pixels))
    set_parameters(net)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    result = {"reconstruction": [], "divergence": [], "penalty": []}
    for i in range(steps):
        x = noise((batch, pixels), 10 + i, 0.5, 0.5)
        random = noise((batch, code), 50 + i, math.sqrt(3.0))
        opt.zero_grad()
        input = x.clone().requires_grad_()
        h = net.into(input).tanh()
        mean, log_variance = net.mean(h), net.log_variance(h)
        logits = net.out(F.silu(net.from_code(mean + (log_variance * 0.5).exp() * random)))
        reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum") / batch
        divergence = (mean.square() + log_variance.exp() - 1.0 - log_variance).sum() * (0.5 / batch)
        slope = torch.autograd.grad(reconstruction * batch, input, create_graph=True)[0]
        penalty = ((slope.square().sum(1) + 1e-6).sqrt() - 1.0).square().mean()
        (reconstruction + divergence + penalty * 10.0).backward()
        opt.step()
        for name, loss in zip(result, (reconstruction, divergence, penalty)):
            result[name].append(loss.item())
        result.setdefault("gradients", gradient_norms(net))
    return result


def gpt_decode(made=64):
    """Without a cache: computes each token from all previous ones, as a reference for the program's
    cache."""
    tokens, width, context, prompt = 200, 48, 96, 8
    net = Fields(token=nn.Embedding(tokens, width), place=nn.Embedding(context, width),
                 blocks=nn.ModuleList([Block(width, 4, "tanh") for _ in range(2)]), norm=nn.LayerNorm(width),
                 out=nn.Linear(width, tokens, bias=False))
    set_parameters(net, 1.5)
    text = integers((prompt,), 7, tokens)
    result = {"tokens": [], "scores": []}
    with torch.no_grad():
        for _ in range(made):
            x = net.token(text) + net.place.weight[:len(text)]
            for block in net.blocks:
                x = block(x, causal=True)
            best = net.out(net.norm(x[-1])).topk(2)
            assert best.values[0] - best.values[1] > 1e-3, "two tokens are about as likely: choose another gain"
            result["tokens"].append(best.indices[0].item())
            result["scores"].append(best.values[0].item())
            text = torch.cat([text, best.indices[:1]])
    return result


def main():
    torch.set_num_threads(2)
    for program in (unet, lstm, vit, vae, gpt_decode):
        if "--time" in sys.argv:
            program()
            start, short = time.perf_counter(), (program(4), time.perf_counter())[1]
            program(54)
            print(f"{program.__name__}: {((time.perf_counter() - short) - (short - start)) / 50 * 1000:.2f} ms a step")
            continue
        lines = [f"{name} " + " ".join(f"{v:.9g}" for v in values) for name, values in program().items()]
        (FOLDER / f"{program.__name__}.txt").write_text("\n".join(lines) + "\n")


main()
