"""ONNX Runtime as a peer, for networks exported from PyTorch: usage: onnxruntime_peer.py LABEL. It
has no setting for the instruction set."""
import io
import itertools
import sys
import time

import torch

import cold
import decoder
import networks
import protocol
from onnxruntime_files import session_of

LABEL = sys.argv[1]


def exported(net, data):
    file = io.BytesIO()
    torch.onnx.export(net, tuple(data), file, dynamo=False, opset_version=17)
    return file.getvalue()


def decoding(inputs, start):
    session, given, numbers = session_of(decoder.model()), [], itertools.count(start)
    names = [place.name for place in session.get_inputs()]
    inputs = [x.numpy() for x in inputs]

    def run():
        nonlocal given
        if next(numbers) % 512 == 0:
            given = inputs
        made = session.run(None, dict(zip(names, [inputs[0], *given[1:]])))
        given = made
        return made[0]

    return [(LABEL, run, lambda: run().tobytes())]


def cold_call(request):
    """Processor seconds until the first result, from the file's bytes on."""
    if not (given := cold.network(request)):
        return []
    net, x = given
    model = exported(net, [x])

    def first():
        start = time.process_time()
        session = session_of(model)
        session.run(None, {session.get_inputs()[0].name: x.numpy()})
        return protocol.floats([time.process_time() - start])

    return [(LABEL, None, first)]


def prepare(request):
    if request["kind"] == "cold":
        return cold_call(request)
    if request["kind"] == "decoder model":
        return [(LABEL, None, decoder.model)]
    if request["kind"] not in ("network", "variation"):
        return []
    inputs = [torch.frombuffer(data, dtype=torch.float32).view(shape).clone()
              for shape, data in protocol.read_inputs(request)]
    if request["kind"] == "variation":
        return decoding(inputs, request["start"]) if "decoder" in request["row"] else []
    net, data = networks.load(request, inputs)
    session = session_of(exported(net, data))
    given = {place.name: value.numpy() for place, value in zip(session.get_inputs(), data)}

    def run():
        return session.run(None, given)

    return [(LABEL, run, lambda: run()[0].tobytes())]


# PyTorch only exports: further threads would keep spinning on cores that ONNX Runtime needs.
torch.set_num_threads(1)
protocol.serve(prepare)
