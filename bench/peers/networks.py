"""The networks of bench/networks in PyTorch, with equal weight names."""
import torch
from torch import nn
from torch.nn import functional as F


def conv(i, o, k, **options):
    return nn.Conv2d(i, o, k, bias=False, **options)


class BasicBlock(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1, self.conv2 = conv(i, o, 3, stride=stride, padding=1), conv(o, o, 3, padding=1)
        self.norm1, self.norm2 = nn.BatchNorm2d(o), nn.BatchNorm2d(o)
        self.around, self.around_norm = (conv(i, o, 1, stride=stride), nn.BatchNorm2d(o)) if stride > 1 else (None, None)

    def forward(self, x):
        h = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(h + (self.around_norm(self.around(x)) if self.around else x))


class Bottleneck(nn.Module):
    def __init__(self, i, width, stride):
        super().__init__()
        self.conv1, self.conv2, self.conv3 = conv(i, width, 1), conv(width, width, 3, stride=stride, padding=1), conv(width, 4 * width, 1)
        self.norm1, self.norm2, self.norm3 = nn.BatchNorm2d(width), nn.BatchNorm2d(width), nn.BatchNorm2d(4 * width)
        changes = i != 4 * width
        self.around, self.around_norm = (conv(i, 4 * width, 1, stride=stride), nn.BatchNorm2d(4 * width)) if changes else (None, None)

    def forward(self, x):
        h = self.norm3(self.conv3(F.relu(self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))))))
        return F.relu(h + (self.around_norm(self.around(x)) if self.around else x))


class ResNet(nn.Module):
    def __init__(self, blocks, features):
        super().__init__()
        self.first, self.norm = conv(3, 64, 7, stride=2, padding=3), nn.BatchNorm2d(64)
        self.blocks, self.out = nn.ModuleList(blocks), nn.Linear(features, 1000)

    def forward(self, x):
        h = F.max_pool2d(F.relu(self.norm(self.first(x))), 3, 2, 1)
        for block in self.blocks:
            h = block(h)
        return self.out(h.mean((2, 3)))


def resnet18():
    blocks, i = [], 64
    for width in (64, 128, 256, 512):
        blocks += [BasicBlock(i, width, 1 if width == 64 else 2), BasicBlock(width, width, 1)]
        i = width
    return ResNet(blocks, 512)


def resnet50():
    blocks, i, width = [], 64, 64
    for count in (3, 4, 6, 3):
        for n in range(count):
            blocks.append(Bottleneck(i, width, 2 if n == 0 and width > 64 else 1))
            i = 4 * width
        width *= 2
    return ResNet(blocks, 2048)


class InvertedResidual(nn.Module):
    def __init__(self, i, o, stride, factor):
        super().__init__()
        inner = i * factor
        self.expand, self.expand_norm = (conv(i, inner, 1), nn.BatchNorm2d(inner)) if factor > 1 else (None, None)
        self.middle, self.project = conv(inner, inner, 3, stride=stride, padding=1, groups=inner), conv(inner, o, 1)
        self.middle_norm, self.project_norm = nn.BatchNorm2d(inner), nn.BatchNorm2d(o)
        self.is_residual = stride == 1 and i == o

    def forward(self, x):
        h = F.relu6(self.expand_norm(self.expand(x))) if self.expand else x
        h = self.project_norm(self.project(F.relu6(self.middle_norm(self.middle(h)))))
        return x + h if self.is_residual else h


class MobileNetV2(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = conv(3, 32, 3, stride=2, padding=1), conv(320, 1280, 1)
        self.first_norm, self.last_norm = nn.BatchNorm2d(32), nn.BatchNorm2d(1280)
        blocks, i = [], 32
        for factor, o, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
            for n in range(count):
                blocks.append(InvertedResidual(i, o, stride if n == 0 else 1, factor))
                i = o
        self.blocks, self.out = nn.ModuleList(blocks), nn.Linear(1280, 1000)

    def forward(self, x):
        h = F.relu6(self.first_norm(self.first(x)))
        for block in self.blocks:
            h = block(h)
        return self.out(F.relu6(self.last_norm(self.last(h))).mean((2, 3)))


class DoubleConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.conv1, self.conv2 = conv(i, o, 3, padding=1), conv(o, o, 3, padding=1)
        self.norm1, self.norm2 = nn.GroupNorm(8, o), nn.GroupNorm(8, o)

    def forward(self, x):
        return F.relu(self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))))


class UNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        widths = [width << level for level in range(5)]
        self.down = nn.ModuleList(DoubleConv(i, o) for i, o in zip([3, *widths], widths[:-1]))
        self.bottom = nn.ModuleList([DoubleConv(widths[3], widths[4])])
        self.enlarge = nn.ModuleList(nn.ConvTranspose2d(w, w // 2, 2, stride=2) for w in widths[:0:-1])
        self.up = nn.ModuleList(DoubleConv(w, w // 2) for w in widths[:0:-1])
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        around = []
        for level in self.down:
            around.append(level(x))
            x = F.max_pool2d(around[-1], 2)
        x = self.bottom[0](x)
        for enlarge, up in zip(self.enlarge, self.up):
            x = up(torch.cat((enlarge(x), around.pop()), 1))
        return self.out(x)


def heads_of(x, heads):
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def joined(x):
    return x.transpose(1, 2).flatten(2)


class EncoderLayer(nn.Module):
    def __init__(self, width, heads, norm_first):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.heads, self.norm_first = heads, norm_first

    def attend(self, x):
        q, k, v = (heads_of(part(x), self.heads) for part in (self.query, self.key, self.value))
        return self.out(joined(F.scaled_dot_product_attention(q, k, v)))

    def feed(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        if self.norm_first:
            h = x + self.attend(self.norm1(x))
            return h + self.feed(self.norm2(h))
        h = self.norm1(x + self.attend(x))
        return self.norm2(h + self.feed(h))


class MiniLm(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.positions, self.norm = nn.Embedding(30522, 384), nn.Embedding(512, 384), nn.LayerNorm(384)
        self.layers = nn.ModuleList(EncoderLayer(384, 12, False) for _ in range(6))

    def forward(self, tokens):
        h = self.norm(self.words(tokens) + self.positions.weight[:tokens.shape[1]])
        for layer in self.layers:
            h = layer(h)
        return h


class VitTiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 192, 16, stride=16)
        self.first, self.positions = nn.Parameter(torch.zeros(1, 1, 192)), nn.Parameter(torch.zeros(1, 197, 192))
        self.layers = nn.ModuleList(EncoderLayer(192, 3, True) for _ in range(12))
        self.norm, self.out = nn.LayerNorm(192), nn.Linear(192, 1000)

    def forward(self, x):
        parts = self.patches(x).flatten(2).transpose(1, 2)
        h = torch.cat((self.first.expand(x.shape[0], 1, 192), parts), 1) + self.positions
        for layer in self.layers:
            h = layer(h)
        return self.out(self.norm(h)[:, 0])


class DecoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.stacked, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads

    def forward(self, x, past):
        q, k, v = (heads_of(part, self.heads) for part in self.stacked(self.norm1(x)).chunk(3, -1))
        k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
        h = x + self.out(joined(F.scaled_dot_product_attention(q, k, v)))
        return h + self.down(F.gelu(self.up(self.norm2(h)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
        self.layers, self.norm = nn.ModuleList(DecoderLayer(768, 12) for _ in range(12)), nn.LayerNorm(768)

    def forward(self, token, past):
        h = self.words(token) + self.positions.weight[256:257]
        for number, layer in enumerate(self.layers):
            h = layer(h, past[number])
        return F.linear(self.norm(h), self.words.weight)


NETWORKS = {"resnet18": resnet18, "resnet50": resnet50, "mobilenet_v2": MobileNetV2, "unet": UNet, "minilm": MiniLm, "vit_tiny": VitTiny, "gpt2_decode": Gpt2}
TOKENS = {"minilm", "gpt2_decode"}  # the first input is integer


def load(request, inputs):
    """The network with the request's weights, and the other inputs."""
    names = request["names"]
    data, weights = inputs[:len(inputs) - len(names)], inputs[len(inputs) - len(names):]
    if request["network"] in TOKENS:
        data[0] = data[0].long()
    net = NETWORKS[request["network"]]().eval()
    own = net.state_dict()
    with torch.no_grad():
        for name, weight in zip(names, weights):
            own.pop(name).copy_(weight)
    left = [name for name in own if not name.endswith("num_batches_tracked")]
    if left:
        raise ValueError(f"no weights for {left}")
    return net, data
