"""neon_test.py PREFIX (suite | OP_CASES) [--all]: tests kernels for another processor.

PREFIX is an installed or built plugrad, OP_CASES the program pgr_test_ops. The device NEON is the C
template with its FILL marks replaced: the compiler is Clang for aarch64 with 128-bit vectors;
memory and kernels belong to a child process under qemu-user. Runs a twentieth of the suite's op tests
or of the op cases; --all: every test of levels L0 to L2, or every op case."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
TEMPLATE = SOURCE / "sdk/template/c"
NEEDED = ["clang-19", "aarch64-linux-gnu-gcc", "qemu-aarch64-static"]
FLAGS = ["--target=aarch64-linux-gnu", "-march=armv8.2-a+fp16"]
QEMU = ["/usr/bin/qemu-aarch64-static", "-cpu", "max", "-L", "/usr/aarch64-linux-gnu"]
OPS = re.compile(r"l2\.(alu|known|lanes|cast|dense|access|gate|views|random)\.")
STRIDE = 20
# Replacements; each old text occurs in the template exactly once.
CHANGES = [
    ('#include "plugrad/sdk/c_plugin.h"\n', '#include "plugrad/sdk/c_plugin.h"\n#include "remote.h"\n\n'
     "#undef PGR_CC_DEFAULT\n#define PGR_CC_DEFAULT NEON_CC\n"),
    ("  uint64_t used_bytes;\n  char cc[256];", "  struct neon_remote remote;\n  uint64_t used_bytes;\n  char cc[256];"),
    ("  pgr_cc_library library; /*", "  void *library; /*"),
    ("  return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGE_SIZE);", "  return NEON_ARENA_BYTES;"),
    ('own.arch = pgr_text("host");', 'own.arch = pgr_text("armv8.2-a+fp16");'),
    ("#define FLOATS (BIT(F32) | BIT(F64))", "#define FLOATS (BIT(F16) | BIT(F32) | BIT(F64))"),
    ("{PGR_OP_ATOMIC_ADD, NUMBERS}", "{PGR_OP_ATOMIC_ADD, NUMBERS & ~BIT(F16)}"),
    ("own.vector_lanes[i] = 1;", "own.vector_lanes[i] = lanes_of(i);"),
    ("static pgr_status device_caps(", "/* Of a register of 128 bits. */\nstatic uint32_t lanes_of(size_t dtype) {\n"
     "  static const uint32_t by_dtype[] = {1, 16, 16, 16, 8, 8, 4, 4, 2, 2, 8, 8, 4, 2, 1, 1};\n  return by_dtype[dtype];\n}\n\n"
     "static pgr_status device_caps("),
    ("      posix_memalign(&data, own.align_bytes, own.size_bytes ? own.size_bytes : 1) != 0) {",
     "      !(data = neon_alloc(&device->remote, own.align_bytes, own.size_bytes))) {"),
    ("  free(buffer->data);\n", "  neon_free(&device->remote, buffer->data);\n"),
    ("cc_flags[] = {NULL};", "cc_flags[] = {NEON_CC_FLAGS, NULL};"),
    ("pgr_cc_open(&program->library, output,", "neon_open(&device->remote, &program->library, output,"),
    ("pgr_cc_symbol(&program->library, name)", "neon_symbol(&device->remote, program->library, name)"),
    ("  pgr_cc_call(kernel, addresses, own.scalars, groups, own.group_count);",
     "  PGR_TRY(neon_call(&device->remote, kernel, addresses, &own, groups, error));"),
    ("  dlclose(program->library.handle);\n", "  neon_close(&device->remote, program->library);\n"),
    ("  strcpy(device->cc, cc);\n", "  strcpy(device->cc, cc);\n  if (!neon_begin(&device->remote))\n"
     '    return free(device), pgr_fail(error, PGR_STATUS_IO_ERROR, "no memory that a runner could share");\n'),
    ("  (void)self;\n  free(device);\n", "  (void)self;\n  if (device) neon_end(&device->remote);\n  free(device);\n"),
]


def changed(text, changes):
    for old, new in changes:
        if text.count(old) != 1:
            sys.exit(f"the template has {text.count(old)} times what NEON changes:\n{old}")
        text = text.replace(old, new)
    return text.replace("acme", "neon").replace("ACME", "NEON")



def texts(words):
    return ", ".join(f'"{word}"' for word in words)


def run(*command):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexited with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(folder):
    """Builds the plugin and its runner; returns the plugin's path."""
    includes = [f"-I{HERE}", *(f"-I{SOURCE / room / 'include'}" for room in ("plugin_api", "sdk"))]
    runner, plugin = folder / "runner", folder / "libplugrad_plugin_neon.so"
    run("aarch64-linux-gnu-gcc", "-O1", "-w", *includes, HERE / "runner.c", "-o", runner)
    manifest = changed((TEMPLATE / "manifest.json").read_text(), [])
    (folder / "libplugrad_plugin_neon.json").write_text(manifest)
    (folder / "note.c").write_text(f'#include "plugrad/plugin_api/plugin.h"\nPGR_PLUGIN_NOTE({json.dumps(manifest)});\n')
    (folder / "plugin.c").write_text(changed((TEMPLATE / "plugin.c").read_text(), CHANGES))
    (folder / "config.h").write_text(f'#define NEON_CC "{shutil.which("clang-19")}"\n#define NEON_CC_FLAGS {texts(FLAGS)}\n'
                                     f"#define NEON_COMMAND {texts([*QEMU, runner])}\n")
    run("cc", "-O1", "-fPIC", "-w", "-shared", "-fvisibility=hidden", *includes, "-include", folder / "config.h",
        folder / "plugin.c", folder / "note.c", f"-Wl,--version-script={SOURCE / 'cmake/plugin.map'}", "-o", plugin, "-pthread")
    return plugin


def chosen(plugrad, every):
    if every:
        return ["--level", "L0,L1,L2", "--full"]
    ids = [line.split()[-1] for line in run(plugrad, "conformance", "--list", "--full").splitlines()]
    return ["--full", "--filter", ",".join([name for name in ids if OPS.match(name)][::STRIDE])]


def run_suite(prefix, plugin, every):
    plugrad = prefix / "bin/plugrad"
    command = [plugrad, "conformance", "--time-limit-factor", "4", "--plugin", plugin, *chosen(plugrad, every)]
    return command, {}, r"(\d+) passed, 0 failed, 0 crashed, 0 timed out"


def run_op_cases(prefix, plugin, program, every):
    shards = {} if every else {"GTEST_TOTAL_SHARDS": str(STRIDE), "GTEST_SHARD_INDEX": "0"}
    where = {"DEV": "NEON", "PLUGRAD_PLUGIN_PATH": f"{prefix}/lib/plugrad/plugins:{plugin.parent}"}
    return [program, "--gtest_brief=1"], {**where, **shards}, r"\[  PASSED  \] (\d+) tests?\.\n(?!.*FAILED)"


def main(prefix, what, every=""):
    missing = [name for name in NEEDED if not shutil.which(name)]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}; run tools/setup --all")
    prefix = pathlib.Path(prefix).resolve()
    with tempfile.TemporaryDirectory() as folder:
        plugin = build(pathlib.Path(folder))
        command, environment, passed = (run_suite(prefix, plugin, every) if what == "suite"
                                        else run_op_cases(prefix, plugin, what, every))
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, **environment})
    summary = re.search(passed, done.stdout)
    if done.returncode != 0 or not summary or int(summary[1]) < 50:
        sys.exit(f"{done.stdout[-20000:]}\nexited with {done.returncode}")
    print(summary[0].strip())


main(*sys.argv[1:])
