"""mutants.py BUILD [--half | NAME…]: checks that the compare layer leads from a broken plugin to the kernel
and operation at fault.
mutants.py BUILD --make NAME FOLDER: makes a mutant in the folder and prints the path of its library.

Each row names a mutant of tests/conformance/mutants that breaks the values of kernels, a program of
operations.cpp that uses the broken operation, the kernel (a part of its name), and the operation
that the report must name. The unmodified plugins must give no report."""
import concurrent.futures
import gzip
import json
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


def call(build, library, device, command, **settings):
    """Exit code and output of a command with the plugin and an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        places = f"{library.parent}:{build / 'lib/plugrad/plugins'}"
        environment = dict(os.environ, DEV=device, PLUGRAD_CACHE_DIR=cache, PLUGRAD_PLUGIN_PATH=places, **settings)
        done = subprocess.run([str(word) for word in command], text=True, capture_output=True, env=environment,
                              timeout=250)
        return done.returncode, done.stdout + done.stderr


def run(build, library, program, device, other, **settings):
    layers = f"compare:with={other}:device={device}"
    return call(build, library, device, [build / "tests/pgr_guilty_operations", program],
                **{"PLUGRAD_LAYERS": layers, **settings})[1]


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


def check_originals(builder, build):
    """The unmodified plugins give no report for any program."""
    breaches = []
    for language in ("c", "cpp"):
        library = builder.original(language)
        for program in sorted({row[0] for row in ROWS.values()}):
            text = run(build, library, program, "ACME", "REFERENCE")
            if "compare: ACME:0: kernel" in text:
                breaches.append(f"{language}: {program}: {text}")
    return breaches


def check_repetition(builder, build, folder):
    """The commands that a report names repeat the difference, without the program."""
    name = "division-floored"
    library = builder.mutant(name + "-again", row_of(name)[2], row_of(name)[3])
    files = folder / "replays"
    text = run(build, library, "trunc_div", "ACME", "REFERENCE",
               PLUGRAD_LAYERS=f"compare:device=ACME:folder={files}")
    breaches = []
    for line in re.findall(r"(?:repeat it|whole launch): plugrad (.*)", text):
        code, said = call(build, library, "ACME", [build / "bin/plugrad", *line.split()])
        if code != 1 or "differs from REFERENCE:0" not in said:
            breaches.append(f"plugrad {line}: {code}\n{said}")
    tokens = re.findall(r"plugrad conformance --device \S+ --replay (\S+)", text)
    for token in tokens:
        code, said = call(build, library, "ACME",
                          [build / "bin/plugrad", "conformance", "--plugin", library, "--replay", token])
        # Its single random pair of numbers need not be one that goes wrong.
        if code not in (0, 1) or "L2 full" not in said:
            breaches.append(f"--replay {token}: {code}\n{said}")
    for test in re.findall(r"plugrad conformance --device \S+ --filter (\S+)", text):
        code, said = call(build, library, "ACME",
                          [build / "bin/plugrad", "conformance", "--plugin", library, "--filter", test])
        if code != 1 or test != "l2.alu.idiv.i32":
            breaches.append(f"--filter {test}: {code}\n{said}")
    if len(list(files.glob("*.rec"))) < 2 or not tokens:
        breaches.append(f"no replay files or no token\n{text}")
    return breaches


def check_bisection(builder, build, folder):
    """A sum of vectors is wrong: bisect says so, and that the kernel without vectors is right."""
    name = "operand-of-lanes-lost"
    library = builder.mutant(name + "-again", row_of(name)[2], row_of(name)[3])
    file = folder / "sum.rec"
    call(build, library, "ACME", [build / "tests/pgr_guilty_operations", "two_kernels"],
         PLUGRAD_LAYERS=f"record:file={file}")
    code, said = call(build, library, "ACME", [build / "bin/plugrad", "bisect", file])
    expected = ("computes its kernel IR wrongly", "right without schedule step", "right without schedule all of it: NOOPT=1")
    missing = [part for part in expected if part not in said]
    breaches = [f"bisect: {code}, without {missing}\n{said}"] if code != 1 or missing else []
    for setting in ("NOOPT=1", "PLUGRAD_DISABLE=mul-one", "PLUGRAD_DISABLE=partition loops"):
        variable, value = setting.split("=")
        code, said = call(build, library, "", [build / "bin/plugrad", "bisect", "--", "sh", "-c",
                                               f'test "${variable}" = "{value}"'])
        if code != 0 or f'{variable}="{value}"' not in said or "; 1 mend the program" not in said:
            breaches.append(f"bisect -- a program that needs {setting}: {code}\n{said}")
    healthy = builder.original("cpp")
    code, said = call(build, healthy, "ACME", [build / "bin/plugrad", "bisect", file])
    return breaches + ([] if code == 0 and ", 0 wrong" in said else [f"bisect on a healthy device: {code}\n{said}"])


def check_trace(builder, build, folder):
    """A trace has the first difference as facts, and the text of every report."""
    name = "division-floored"
    library = builder.mutant(name + "-traced", row_of(name)[2], row_of(name)[3])
    file = folder / "broken.trace"
    text = run(build, library, "trunc_div", "ACME", "REFERENCE", PLUGRAD_TRACE=str(file))
    lines = list(map(json.loads, gzip.open(file, "rt")))
    found = [line for line in lines if line["t"] == "finding"]
    devices = sorted(line["name"] for line in lines if line["t"] == "device")
    reported = re.findall(r"error: compare: ACME:0: (kernel .*)", text)
    same = [line["text"].partition("\n")[0] for line in found] == reported
    wanted = {"reference": "REFERENCE:0", "buffer": 0, "index": 0, "ulp": 1, "differing": 3, "elements": 4}
    first = found[0].get("difference", {}) if found else {}
    named = devices == ["ACME:0", "ACME:0 (checks)", "REFERENCE:0 (checks)"]
    if len(found) == 3 and same and named and wanted.items() <= first.items():
        return []
    return [f"trace: {devices} {found}\n{text}"]


def check_validation(builder, build):
    """PLUGRAD_VALIDATE finds the wrong kernel of a long program, reports it once, and nothing else."""
    name = "buffers-reversed"
    library = builder.mutant(name + "-again", row_of(name)[2], row_of(name)[3])
    text = run(build, library, "repeat", "ACME", "", PLUGRAD_LAYERS="", PLUGRAD_VALIDATE="1")
    reports = re.findall(r"error: compare: ACME:0: kernel (\S+) differs", text)
    breaches = [] if reports and len(reports) == len(set(reports)) else [f"validate: {reports}\n{text}"]
    text = run(build, builder.original("c"), "repeat", "ACME", "", PLUGRAD_LAYERS="", PLUGRAD_VALIDATE="1")
    return breaches + ([f"validate: a healthy device\n{text}"] if "differs" in text else [])


def make(build, name, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    row = row_of(name)
    print(check.Builder(build, folder).mutant(name, row[2], OTHER_EDITS.get(name, row[3])))


def main(build, *names):
    build = pathlib.Path(build).resolve()
    if names[:1] == ("--make",):
        return make(build, *names[1:])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        builder = check.Builder(build, folder)
        half = names == ("--half",)
        mutants = tuple(ROWS)[::2] if half else names or tuple(ROWS)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            breaches = [b for b in pool.map(lambda one: check_mutant(builder, build, one), mutants) if b]
        found = len(mutants) - len(breaches)
        if half or not names:
            breaches += check_repetition(builder, build, folder) + check_bisection(builder, build, folder)
            breaches += check_trace(builder, build, folder)
            breaches += check_validation(builder, build) + check_originals(builder, build)
    print("\n".join(breaches))
    print(f"guilty: {found} of {len(mutants)} mutants led to their kernel and operation")
    sys.exit(bool(breaches))


if __name__ == "__main__":
    main(*sys.argv[1:])
