"""mutants.py BUILD [NAME…]: checks that the compare layer leads from a broken plugin to the kernel
and operation at fault.

Each row names a mutant of tests/conformance/mutants that breaks the values of kernels, a program of
operations.cpp that uses the broken operation, the kernel (a part of its name), and the operation
that the report must name. The unmodified plugins must give no report."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance/mutants"))
import check  # noqa: E402
import table  # noqa: E402

# mutant: program, kernel (the beginning of its name), operation; "" where the launch as a whole is broken
ROWS = {
    "tail-skipped": ("many_groups", "many_groups", ""),
    "early-completion": ("many_groups", "many_groups", ""),
    "scalars-shifted": ("offsets", "", ""),
    "buffers-reversed": ("subtract", "E_", ""),
    "group-ids-swapped": ("two_axes", "two_axes", "GROUP_ID"),
    "stale-cache": ("two_kernels", "E_", ""),
    "nan-dropped": ("maximum", "E_", "MAX f32"),
    "bf16-truncated": ("cast_bf16", "E_", "CAST f32 bf16"),
    "division-floored": ("trunc_div", "E_", "IDIV i32"),
    "shift-count-masked": ("shift", "E_", "SHL i32"),
    "minus-zero-lost": ("negate", "E_", "NEG f32"),
    "truncated-sign-lost": ("truncate", "E_", "TRUNC f32"),
    "denormals-flushed": ("tiny", "E_", "MUL f32"),
    "contracted": ("multiply_add", "E_", "MUL f32, ADD f32"),
    "zero-times-anything": ("zero_product", "zero_product", "MUL f32"),
    "operand-of-lanes-lost": ("lanes", "lanes", "ADD f32x4"),
    "gate-ignored": ("gates", "gates", "STORE i32 with a gate"),
    "barrier-removed": ("mirror", "mirror", "BARRIER"),
    "wait-removed": ("asynchronous", "asynchronous", "ASYNC_WAIT"),
    "write-past-the-end": ("subtract", "E_", "STORE f32"),
    "stale-binary": ("two_kernels", "E_", ""),
}
# The suite's kernels name their output data2, those of the host data0.
OTHER_EDITS = {"write-past-the-end": table.edited(("  data0[alu3] = ", "  data0[alu3 + 1] = data0[alu3] = "))}
# The other mutants, by reason. Together with ROWS they are the table.
OTHERS = {
    "they break copies and memory, not kernels": (
        "offset-of-copy-in", "offset-of-copy-out", "last-byte-of-copy", "range-that-overflows", "wrong-status",
        "alignment-ignored", "alignment-unchecked", "zero-flag-ignored", "memory-leaked", "used-bytes-grow",
        "null-crashes", "fill-of-half-a-pattern", "map-of-a-copy", "sub-buffer-from-the-start"),
}


def run(build, library, program, device, other):
    with tempfile.TemporaryDirectory() as cache:
        environment = dict(os.environ, DEV=device, PLUGRAD_CACHE_DIR=cache,
                           PLUGRAD_LAYERS=f"compare:with={other}:device={device}",
                           PLUGRAD_PLUGIN_PATH=f"{library.parent}:{build / 'lib/plugrad/plugins'}", DEBUG="1")
        done = subprocess.run([str(build / "tests/pgr_guilty_operations"), program], text=True, capture_output=True,
                              env=environment, timeout=120)
        return done.stdout + done.stderr


def row_of(name):
    return next(row for row in table.ROWS if row[0] == name)


def wrong_report(text, device, kernel, operation):
    """What is missing in a program's output; "" if it names kernel and operation."""
    if not re.search(f"error: compare: {device}:0: kernel {kernel}\\S* differs", text):
        return f"no report of a kernel {kernel}"
    named = re.findall(r"kernel \S+: operation: (.*)", text)
    return "" if any(operation in text for text in named) or not operation else f"the operation is {named}, not {operation}"


def check_mutant(builder, build, name):
    program, kernel, operation = ROWS[name]
    row = row_of(name)
    on_reference = row[2].startswith("reference/")
    device, other = ("REFERENCE", "CPU") if on_reference else ("ACME", "REFERENCE")
    library = builder.mutant(name, row[2], OTHER_EDITS.get(name, row[3]))
    text = run(build, library, program, device, other)
    if os.environ.get("SHOW"):
        print(name, text)
    wrong = wrong_report(text, device, kernel, operation)
    return wrong and f"{name}: {wrong}\n{text}"


def main(build, *names):
    build = pathlib.Path(build).resolve()
    names = names or tuple(ROWS)
    with tempfile.TemporaryDirectory() as folder:
        builder = check.Builder(build, pathlib.Path(folder))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            breaches = [b for b in pool.map(lambda name: check_mutant(builder, build, name), names) if b]
    print("\n".join(breaches))
    print(f"guilty: {len(names) - len(breaches)} of {len(names)} mutants led to their kernel and operation")
    sys.exit(bool(breaches))


if __name__ == "__main__":
    main(*sys.argv[1:])
