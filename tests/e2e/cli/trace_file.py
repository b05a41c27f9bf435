"""Writes trace files (docs/trace-format.md) for tests."""
import gzip
import json

SOURCE = "/src/net.cpp"


def events(kind, **columns):
    """A block of events; `start` are times, which become differences."""
    starts = columns["start"]
    columns["start"] = [b - a for a, b in zip([0, *starts], starts)]
    return {"t": "events", "kind": kind, "count": len(starts), "columns": columns}


def header(**keys):
    return {"t": "trace", "version": 1, "program": "step", "pid": 42, "start_ns": 1000, "start_unix_ns": 0, "rules": False,
            "threads": 4, "cpu": "A Processor", **keys}


def definitions():
    kernel = {"t": "kernel", "device": 1, "source": "", "disassembly": "", "schedule": "upcast(0, 4)", "why": "",
              "global": [4, 1, 1], "local": [1, 1, 1], "predicted_ns": 900, "compile_ns": 1000, "from_cache": False, "candidates": []}
    return [
        {"t": "device", "id": 1, "name": "CUDA:0", "arch": "sm_90", "hardware": "A GPU", "clock": "device", "clock_error_ns": 50,
         "memory_bytes": 1 << 30},
        {"t": "machine", "device": 1, "peak_gflops": 100, "peak_gbps": 10, "launch_ns": 40},
        {"t": "track", "id": 1, "kind": "queue", "device": 1, "name": "queue"},
        {"t": "track", "id": 2, "kind": "transfers", "device": 1, "name": "transfers"},
        {"t": "track", "id": 3, "kind": "thread", "device": 0, "name": "main"},
        {"t": "operation", "id": 1, "name": "matmul", "file": SOURCE, "line": 12, "function": "step", "stack": ["main (main.cpp:3)"]},
        {"t": "operation", "id": 2, "name": "add", "file": SOURCE, "line": 13, "function": "step"},
        {**kernel, "id": 1, "name": "product", "flops": 80000, "work": 90000, "bytes": 1000, "operations": [1, 2]},
        {**kernel, "id": 2, "name": "sum", "flops": 10, "bytes": 4000, "operations": [2]},
        {**kernel, "id": 3, "name": "tiny", "flops": 1, "bytes": 4, "operations": []},
        {"t": "name", "id": 1, "text": "product"}, {"t": "name", "id": 2, "text": "step"},
        {"t": "plan", "id": 1, "run": 1, "nodes": [], "steps": [], "buffers": []},
    ]


def example():
    """Launches take 1000, 1000, 500 and 50 ns, one copy lies beside a launch, the host waits and compiles."""
    return [
        header(), *definitions(),
        events("span", track=[3, 3, 3], category=[2, 0, 3], name=[1, 2, 2], start=[0, 1000, 1200], duration=[1000, 200, 4000],
               value=[1, 0, 0]),
        events("launch", track=[1, 1, 1, 1], kernel=[1, 1, 2, 3], start=[2000, 3000, 4000, 4500], duration=[1000, 1000, 500, 50],
               submit=[100, 200, 300, 0], plan=[1, 1, 1, 1], step=[0, 0, 1, 2]),
        events("copy", track=[2, 2], direction=[0, 1], bytes=[4096, 1024], start=[1500, 2600], duration=[500, 100]),
        events("wait", track=[3], device=[1], start=[4100], duration=[600]),
        events("memory", device=[1, 1, 1], start=[1300, 1400, 4600], used=[1 << 20, 3 << 20, 1 << 20], cached=[0, 0, 2 << 20],
               change=[1 << 20, 2 << 20, -(2 << 20)], buffer=[1, 2, 2]),
        {"t": "end", "launches": 4, "copies": 2, "copied_bytes": 5120, "waits": 1, "rewrites": 0, "dropped": 0, "time_ns": 6000},
    ]


def pack(lines, per_member=3):
    """Bytes of a trace; each gzip member holds this number of lines."""
    texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    return b"".join(gzip.compress(b"".join(t + b"\n" for t in texts[i:i + per_member])) for i in range(0, len(texts), per_member))


def write(path, lines, per_member=3):
    with open(path, "wb") as file:
        file.write(pack(lines, per_member))
    return str(path)
