"""Protocol of the Python peers: reads the requests of bench/peers/peer_process.h from stdin, and
answers on stdout."""
import array
import ctypes
import json
import math
import os
import signal
import sys
import time


LEVEL_OF_ANY = 5


def read_inputs(request):
    """The f32 inputs as (shape, bytes) pairs."""
    with open(request["input"], "rb") as file:
        return [(shape, bytearray(file.read(4 * math.prod(shape)))) for shape in request["shapes"]]


def take_turn(run, seconds, clock):
    run()
    times, total = [], 0.0
    while len(times) < 2 or total < seconds:
        start = clock()
        run()
        times.append(clock() - start)
        total += times[-1]
    return times


def serve(prepare, isa=None):
    """`prepare(request)` returns [(name, run, first)]: run() computes once; first() also computes,
    and returns the values as bytes of floats, or None if there is nothing to compare. `isa()`
    returns the library's instruction set and its x86-64 level; without it the peer cannot be
    restricted to one."""
    # PR_SET_PDEATHSIG: a stopped process would outlive its parent
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # keeps the library's output separate from the answers
    name, level = isa() if isa else ("not told", LEVEL_OF_ANY)
    say(answers, {"found": True, "isa": name, "level": level})
    variants = []
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "setup":
            variants = prepare(request)
            clock = time.process_time if request.get("processor_time") else time.perf_counter
            for number, (_, _, first) in enumerate(variants):
                values = first()
                if values is not None:
                    with open(f"{request['output']}.{number}", "wb") as file:
                        file.write(values)
            say(answers, {"variants": [name for name, _, _ in variants]})
        elif request["do"] == "turn":
            say(answers, {"times": take_turn(variants[request["variant"]][1], request["seconds"], clock)})


def say(file, answer):
    print(json.dumps(answer), file=file, flush=True)


def floats(values):
    return array.array("f", values).tobytes()
