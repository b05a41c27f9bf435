"""The programs of bench/rows/cold.cpp in PyTorch: first calls of networks, and first training steps."""
import torch
from torch import nn
from torch.nn import functional as F

import networks


def norm(channels):
    return nn.GroupNorm(8, channels)


def conv(i, o, **options):
    return nn.Conv2d(i, o, 3, padding=1, **options)


class TimedBlock(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.norm1, self.norm2, self.conv1, self.conv2 = norm(i), norm(o), conv(i, o), conv(o, o)
        self.time, self.around = nn.Linear(128, o), nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(t)[:, :, None, None]
        return self.conv2(F.silu(self.norm2(h))) + self.around(x)


class DiffusionUNet(nn.Module):
    """bench/networks/diffusion_step.h"""

    def __init__(self):
        super().__init__()
        self.time1, self.time2 = nn.Linear(32, 128), nn.Linear(128, 128)
        self.first, self.last, self.norm = conv(1, 32), conv(32, 1), norm(32)
        self.shrink1, self.shrink2 = conv(32, 32, stride=2), conv(64, 64, stride=2)
        self.down1, self.down2, self.up2, self.up1 = (TimedBlock(*sizes) for sizes in ((32, 32), (32, 64), (192, 64), (96, 32)))
        self.middle1, self.middle2 = TimedBlock(64, 128), TimedBlock(128, 128)
        self.attention = nn.MultiheadAttention(128, 4, batch_first=True)
        self.grow2, self.grow1 = nn.ConvTranspose2d(128, 128, 2, 2), nn.ConvTranspose2d(64, 64, 2, 2)

    def forward(self, x, step):
        angles = step[:, None] * (torch.arange(16) * -0.6).exp()
        t = F.silu(self.time2(F.silu(self.time1(torch.cat((angles.sin(), angles.cos()), 1)))))
        a = self.down1(self.first(x), t)
        b = self.down2(self.shrink1(a), t)
        h = self.middle1(self.shrink2(b), t)
        tokens = h.flatten(2).mT
        h = h + self.attention(tokens, tokens, tokens, need_weights=False)[0].mT.reshape(h.shape)
        h = self.up2(torch.cat((self.grow2(self.middle2(h, t)), b), 1), t)
        return self.last(F.silu(self.norm(self.up1(torch.cat((self.grow1(h), a), 1), t))))


def diffusion_step():
    net, x, noise, step = DiffusionUNet(), torch.randn(8, 1, 28, 28), torch.randn(8, 1, 28, 28), torch.rand(8)
    optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3)

    def run():
        loss = F.mse_loss(net(x, step), noise)
        loss.backward()
        optimiser.step()
        return loss.item()

    return run


def network(request):
    """The network and its input; None for training steps."""
    if request["program"] not in networks.NETWORKS:
        return None
    return networks.NETWORKS[request["program"]]().eval(), torch.randn(1, 3, request["side"], request["side"])


def call_of(request):
    if not (given := network(request)):
        return diffusion_step()

    def run():
        with torch.no_grad():
            return given[0](given[1]).numpy()

    return run
