"""mutants.py BUILD [NAME…]: checks that the compare layer leads from a broken plugin to the kernel
and operation at fault.

Each row names a mutant of tests/conformance/mutants that breaks the values of kernels, a program of
operations.cpp that uses the broken operation, the kernel (a part of its name), and the operation
that the report must name. The unmodified plugins must give no report."""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance/mutants"))
import check  # noqa: E402
import table  # noqa: E402

# mutant: program, operation
ROWS = {
    "tail-skipped": ("large", ""),
    "early-completion": ("large", ""),
    "scalars-shifted": ("scalars", ""),
    "buffers-reversed": ("subtract", ""),
    "group-ids-swapped": ("two_axes", "GROUP_ID"),
    "stale-cache": ("two_kernels", ""),
    "nan-dropped": ("maximum", "MAX f32"),
    "bf16-truncated": ("cast_bf16", "CAST f32 bf16"),
    "division-floored": ("trunc_div", "IDIV i32"),
    "shift-count-masked": ("shift", "SHL i32"),
    "minus-zero-lost": ("negate", "NEG f32"),
    "truncated-sign-lost": ("truncate", "TRUNC f32"),
    "denormals-flushed": ("tiny", "MUL f32"),
    "contracted": ("multiply_add", "ADD f32"),
    "zero-times-anything": ("zero_product", "MUL f32"),
    "operand-of-lanes-lost": ("lanes", "ADD f32x4"),
    "gate-ignored": ("gates", "STORE i32"),
    "barrier-removed": ("mirror", "BARRIER"),
    "wait-removed": ("asynchronous", "ASYNC_WAIT"),
    "write-past-the-end": ("subtract", "STORE f32"),
    "stale-binary": ("two_kernels", ""),
}


def run(build, library, program):
    with tempfile.TemporaryDirectory() as cache:
        environment = dict(os.environ, DEV="ACME", PLUGRAD_CACHE_DIR=cache, PLUGRAD_LAYERS="compare:device=ACME",
                           PLUGRAD_PLUGIN_PATH=f"{library.parent}:{build / 'lib/plugrad/plugins'}", DEBUG="1")
        done = subprocess.run([str(build / "tests/pgr_guilty_operations"), program], text=True, capture_output=True,
                              env=environment, timeout=120)
        return done.stdout + done.stderr


def row_of(name):
    return next(row for row in table.ROWS if row[0] == name)


def check_mutant(builder, build, name):
    program, operation = ROWS[name]
    row = row_of(name)
    text = run(build, builder.mutant(name, row[2], row[3]), program)
    reports = [line for line in text.splitlines() if "error: compare: ACME:0: kernel " in line]
    if not reports:
        return f"{name}: no report\n{text}"
    return "" if operation in text else f"{name}: the operation is not {operation}\n{text}"


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
