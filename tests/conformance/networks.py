#!/usr/bin/env python3
"""networks.py PLUGRAD FAULTY: tests `plugrad conformance --models` on a network of four nodes that it writes, with a plugin that
computes kernels with XOR wrongly, crashes or hangs."""
import json
import pathlib
import subprocess
import sys
import tempfile

COMMAND, FAULTY = sys.argv[1:3]
failures = []


def varint(value):
    out = b""
    while value >= 0x80:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def field(number, value):
    """One field of a protocol buffer: an integer, a text or a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def node(op, inputs, output, name, *attributes):
    return b"".join(field(1, one) for one in inputs) + field(2, output) + field(3, name) + field(4, op) + b"".join(attributes)


def declared(name, element, sizes):
    dims = b"".join(field(1, field(2, size) if isinstance(size, str) else field(1, size)) for size in sizes)
    return field(1, name) + field(2, field(1, field(1, element) + field(2, dims)))


def model():
    """scores = softmax(float(a ^ b) * x), with an open size of x."""
    to_float = field(5, field(1, "to") + field(3, 1) + field(20, 2))
    nodes = [node("BitwiseXor", ["a", "b"], "c", "mix"), node("Cast", ["c"], "d", "widen", to_float),
             node("MatMul", ["d", "x"], "e", "project"), node("Softmax", ["e"], "scores", "scores")]
    graph = b"".join(field(1, one) for one in nodes) + field(2, "g")
    for name, element, sizes in (("a", 6, [4, 64]), ("b", 6, [4, 64]), ("x", 1, [64, "n"])):
        graph += field(11, declared(name, element, sizes))
    graph += field(12, declared("scores", 1, [4, "n"]))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 18))


def check(what, condition, *facts):
    if not condition:
        failures.append(f"{what}: {facts}")


def run(*arguments):
    done = subprocess.run([COMMAND, "conformance", *map(str, arguments)], capture_output=True, text=True, timeout=250)
    return done.returncode, done.stdout, done.stderr


def judged(*arguments):
    code, out, err = run(*arguments, "--json")
    if not out:
        return code, {}, err
    return code, {test["id"]: test for test in json.loads(out)["tests"]}, err


def whole(tests, name="net"):
    return tests.get(f"l2.networks.{name}", {"status": "missing", "message": ""})


def check_healthy(folder):
    code, tests, err = judged("--device", "CPU", "--models", folder / "net.onnx", "--size", "n=3")
    check("a healthy device passes", code == 0 and whole(tests)["status"] == "pass", tests, err)
    kernels = [test for test in tests if test != "l2.networks.net"]
    check("its kernels are tests", kernels and all(tests[one]["metric"] == "ulp" for one in kernels), tests)
    code, again, _ = judged("--device", "CPU", "--models", folder / "net.onnx", "--size", "n=3", "--replay", tests[kernels[0]]["replay"])
    check("a token runs one kernel", code == 0 and list(again) == kernels[:1], again)


def check_wrong_kernel(folder):
    report = folder / "report"
    code, tests, err = judged("--plugin", FAULTY, "--option", "fault=xor", "--models", folder / "net.onnx", "--report", report)
    message = whole(tests)["message"]
    check("a wrong kernel fails", code == 1 and whole(tests)["status"] == "fail", tests, err)
    check("the node is named", "mix (net.onnx:1)" in message and "project" not in message, message)
    wrong = [test for test in tests.values() if test["status"] == "fail" and test["id"] != "l2.networks.net"]
    check("one kernel is wrong, and gets no wrong inputs", len(wrong) == 1, tests)
    check("it is reduced to its operation", "operation: XOR i32" in wrong[0].get("ir", ""), wrong)
    replay = pathlib.Path(wrong[0]["replay"])
    check("the launch is kept beside the report", replay.is_file() and report in replay.parents, replay)
    code, again, err = judged("--plugin", FAULTY, "--option", "fault=xor", "--replay", replay)
    check("it fails again alone", code == 1 and [test["status"] for test in again.values()] == ["fail"], again, err)
    code, again, err = judged("--device", "CPU", "--replay", replay)
    check("another device computes it rightly", code == 0 and len(again) == 1, again, err)


def check_crash_and_hang(folder):
    for fault, status, factor in (("launch-crash", "crash", "1"), ("launch-hang", "timeout", "0.02")):
        code, tests, err = judged("--plugin", FAULTY, "--option", f"fault={fault}", "--models", folder / "net.onnx",
                                  "--time-limit-factor", factor)
        kernels = {test["status"] for name, test in tests.items() if name != "l2.networks.net"}
        check(f"{fault} is reported by kernel", code == 1 and kernels == {status}, tests, err)
        check(f"{fault} is reported by model and node",
              whole(tests)["status"] == status and "mix (net.onnx:1)" in whole(tests)["message"], tests)


def check_bad_input(folder):
    (folder / "text.onnx").write_text("no model")
    code, tests, err = judged("--device", "REFERENCE", "--models", folder)
    check("other models run", code == 1 and whole(tests, "text")["status"] == "fail" and whole(tests)["status"] == "pass", tests, err)
    (folder / "empty").mkdir()
    for given, said in ((folder / "empty", "there is no .onnx file"), ("no/such/package", "there is no folder or file no/such/package")):
        code, out, err = run("--device", "REFERENCE", "--models", given)
        check("a place without models", code == 1 and said in err, code, out, err)
    code, out, err = run("--device", "REFERENCE", "--models", folder, "--expected", "TPU")
    check("an unknown device", code == 2, code, out, err)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "net.onnx").write_bytes(model())
        for test in (check_healthy, check_wrong_kernel, check_crash_and_hang, check_bad_input):
            test(folder)
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
