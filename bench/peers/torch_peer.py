"""PyTorch as a peer: usage: torch_peer.py LABEL. The environment sets threads, malloc and
waiting."""
import copy
import ctypes
import os
import re
import sys
import tempfile
import time

import torch
from torch import nn
from torch.nn import functional as F

import cold
import networks
import protocol
import torch_kinds
import variation

LABEL = sys.argv[1]
FORMATS = torch_kinds.FORMATS


def values(*tensors):
    return b"".join(t.detach().contiguous().numpy().tobytes() for t in tensors)


class MnistCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2, self.c3, self.c4 = nn.Conv2d(1, 32, 5), nn.Conv2d(32, 32, 5), nn.Conv2d(32, 64, 3), nn.Conv2d(64, 64, 3)
        self.n1, self.n2 = nn.BatchNorm2d(32), nn.BatchNorm2d(64)
        self.out = nn.Linear(576, 10)

    def forward(self, x):
        h = F.max_pool2d(self.n1(F.relu(self.c2(F.relu(self.c1(x))))), 2)
        h = F.max_pool2d(self.n2(F.relu(self.c4(F.relu(self.c3(h))))), 2)
        return self.out(h.contiguous().flatten(1))


class Block(nn.Module):
    """Pre-norm; the projections of query, key and value are one matrix, which is faster in
    PyTorch."""

    def __init__(self, width, heads):
        super().__init__()
        self.n1 = nn.LayerNorm(width)
        self.projection, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.n2 = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.projection(self.n1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(attended)
        return x + self.down(F.gelu(self.up(self.n2(x)), approximate="tanh"))


def load(net, inputs):
    with torch.no_grad():
        for parameter in net.parameters():
            parts = []
            # a stacked matrix takes several
            while sum(p.shape[0] for p in parts) < parameter.shape[0]:
                parts.append(inputs.pop(0))
            parameter.copy_(torch.cat(parts))


def training(net, loss_of, name):
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)

    def step():
        optimiser.zero_grad()
        loss = loss_of()
        loss.backward()
        optimiser.step()
        return loss.item()

    def first():
        """Returns the loss and all gradients."""
        return protocol.floats([step()]) + values(*(parameter.grad for parameter in net.parameters()))

    return name, step, first


def mnist_step(request, inputs):
    variants = []
    for name, memory_format in FORMATS:
        x, y, *parameters = inputs
        net = MnistCnn()
        load(net, parameters)
        net = net.to(memory_format=memory_format)
        x, y = x.clone().contiguous(memory_format=memory_format), y.long()
        variants.append(training(net, lambda net=net, x=x, y=y: F.cross_entropy(net(x), y), f"{LABEL} {name}"))
    return variants


def resident(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))


def peak_memory(request, inputs):
    """Peak memory of the training step above the resident memory before it, in bytes."""
    memory_format = dict(FORMATS)[request["format"]]
    x = torch.randn(request["batch"], 1, 28, 28).contiguous(memory_format=memory_format)
    y = torch.randint(0, 10, (request["batch"],))
    net = MnistCnn().to(memory_format=memory_format)
    _, step, _ = training(net, lambda: F.cross_entropy(net(x), y), "")

    def growth():
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        before = resident("VmRSS:")
        for _ in range(6):
            step()
        return protocol.floats([resident("VmHWM:") - before])

    return [(f"{LABEL} {request['format']}", step, growth)]


def mnist_of(batch):
    net, x, y = MnistCnn(), torch.randn(batch, 1, 28, 28), torch.randint(0, 10, (batch,))
    return training(net, lambda: F.cross_entropy(net(x), y), "")[1]


def cold_call(request, inputs):
    """Processor seconds of the first call."""
    call = mnist_of(64) if request["program"] == "mnist_step" else cold.call_of(request)

    def first():
        start = time.process_time()
        call()
        return protocol.floats([time.process_time() - start])

    return [(LABEL, call, first)]


def transformer_step(request, inputs):
    x, y, *parameters = inputs
    net = Block(x.shape[-1], request["heads"])
    load(net, parameters)
    return [training(net, lambda: F.mse_loss(net(x), y), LABEL)]


def network(request, inputs):
    net, data = networks.load(request, inputs)
    variants = []
    for name, memory_format in FORMATS if data[0].dim() == 4 else (("", None),):
        given = data
        if memory_format is not None:
            net, given = copy.deepcopy(net).to(memory_format=memory_format), [x.contiguous(memory_format=memory_format) for x in data]

        def run(net=net, given=given):
            with torch.no_grad():
                return net(*given)

        variants.append((f"{LABEL} {name}".strip(), run, lambda run=run: values(run())))
    return variants


def varying(request, inputs):
    return [(LABEL, run, lambda: None if (made := first()) is None else values(*made)) for run, first in variation.variants(request, inputs)]


OWN_KINDS = {"network": network, "variation": varying, "cold": cold_call, "mnist_step": mnist_step, "peak_memory": peak_memory, "transformer_step": transformer_step}


def prepare(request):
    torch.manual_seed(0)
    inputs = [torch.frombuffer(data, dtype=torch.float32).view(shape).clone()
              for shape, data in protocol.read_inputs(request)]
    if request["kind"] in OWN_KINDS:
        return OWN_KINDS[request["kind"]](request, inputs)
    if request["kind"] not in torch_kinds.FORWARD:
        return []
    return [(name, run, lambda run=run: values(*run())) for name, run in torch_kinds.variants(LABEL, request, inputs)]


def printed(run):
    """Output of `run` on stdout, including that of C libraries."""
    with tempfile.TemporaryFile() as file:
        sys.stdout.flush()
        before = os.dup(1)
        os.dup2(file.fileno(), 1)
        run()
        ctypes.CDLL(None).fflush(None)
        os.dup2(before, 1)
        os.close(before)
        file.seek(0)
        return file.read().decode(errors="replace")


def small_calls():
    with torch.backends.mkldnn.verbose(1):
        F.conv2d(torch.zeros(4, 16, 28, 28), torch.zeros(16, 16, 3, 3))
    with torch.backends.mkl.verbose(1):
        torch.zeros(64, 64) @ torch.zeros(64, 64)


def level_of(text):
    if re.search(r"AVX-?512|AVX10|AMX", text):
        return 4
    return 3 if "AVX" in text else 2


def isa():
    """PyTorch's own kernels, oneDNN and MKL each choose an instruction set: returns the highest
    level."""
    text = printed(small_calls)
    onednn, mkl = re.search(r"cpu,isa:(.*)", text), re.search(r"MKL_VERBOSE .*?architecture (.*?) enabled", text)
    parts = [torch.backends.cpu.get_cpu_capability()]
    parts += [f"oneDNN {onednn[1]}"] if onednn else []
    parts += [f"MKL {mkl[1]}"] if mkl else []
    return "; ".join(parts), max(map(level_of, parts))


torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
protocol.serve(prepare, isa)
