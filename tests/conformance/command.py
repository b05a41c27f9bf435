#!/usr/bin/env python3
"""Tests the command line of `plugrad conformance`: exit codes, one JSON document, reports, replay,
lists."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

COMMAND, FAULTY = sys.argv[1:3]
failures = []


def run(*arguments):
    done = subprocess.run([COMMAND, "conformance", *arguments], capture_output=True, text=True, timeout=250)
    return done.returncode, done.stdout, done.stderr


def check(what, condition, *facts):
    if not condition:
        failures.append(f"{what}: {facts}")


def check_passing_run(folder):
    code, out, err = run("--device", "REFERENCE", "--filter", "l1.memory.size", "--report", folder)
    check("a passing run exits 0", code == 0, code, out, err)
    last = out.splitlines()[-1]
    check("the last line is the level's", last.startswith("L1 core") and "0 failed" in last, last)
    for name in ("conformance.json", "conformance.xml", "conformance.html"):
        check("the report is written", (pathlib.Path(folder) / name).stat().st_size > 500, name)


def check_json(folder):
    code, out, err = run("--device", "REFERENCE", "--filter", "l1.memory.size", "--json")
    document = json.loads(out)
    check("the JSON run passes", code == 0 and err == "", code, err)
    check("its totals are its tests", document["totals"]["pass"] == len(document["tests"]) > 3, document["totals"])
    for key in ("schema", "device", "suite_version", "seed"):
        check("the shape that others parse", key in document, key)
    path = pathlib.Path(folder) / "report.json"
    path.write_text(out)
    check("the suite knows its own report", run("--verify-report", str(path))[0] == 0)
    path.write_text(out.replace('"status": "pass"', '"status": "waived"', 1))
    check("an edited report is refused", run("--verify-report", str(path))[0] == 1)


def check_failing_run():
    which = ("--plugin", FAULTY, "--option", "fault=launch-crash")
    code, out, _ = run(*which, "--filter", "l1.launch.groups.2x1x1", "--json")
    document = json.loads(out)
    check("a crash exits 1", code == 1, code)
    check("a crash is one result", document["totals"]["crash"] == 1, document["totals"])
    token = document["tests"][0]["replay"]
    code, out, _ = run(*which, "--replay", token, "--json")
    again = json.loads(out)["tests"]
    check("the token runs that test", code == 1 and [t["id"] for t in again] == ["l1.launch.groups.2x1x1"], out)
    code, out, _ = run("--plugin", FAULTY, "--replay", token, "--json")
    check("without the fault it passes", code == 0, code, out)
    check("a damaged token exits 1", run(*which, "--replay", token[:-4])[0] == 1)
    check("so does one with a character too many", run(*which, "--replay", token + "x")[0] == 1)


def check_nothing_to_judge():
    for arguments, told in ((("--device", "REFERENCE:9"), "device 9"),
                            (("--device", "REFERENCE", "--option", "withdraw=nothing"), "nothing"),
                            (("--device", "REFERENCE", "--plugin-option", "colour=red"), "colour"),
                            (("--plugin", FAULTY, "--plugin-option", "fault=entry-crash"), "SIGSEGV")):
        code, out, err = run(*arguments, "--json")
        check("what cannot be opened is one error, no report", code == 1 and out == "" and told in err, arguments, code,
              out, err)
    code, _, err = run("--device", "REFERENCE", "--filter", "l1.memory.size", "--report", "/proc/no/folder")
    check("a folder that cannot be made is named", code == 1 and "--report /proc/no/folder: the folder cannot be made" in err,
          code, err)


# Opening a pipe without a reader would block; for a link, the target is written.
def check_reports_in_the_way(folder):
    pipe, target = pathlib.Path(folder, "pipe"), pathlib.Path(folder, "target")
    for made in (pipe, target):
        made.mkdir()
    os.mkfifo(pipe / "conformance.json")
    code, _, err = run("--device", "REFERENCE", "--filter", "l1.memory.size", "--report", str(pipe))
    check("a pipe is refused", code == 1 and "conformance.json cannot be written: " in err, code, err)
    check("the pipe stays alone", [p.name for p in pipe.iterdir()] == ["conformance.json"])
    (target / "conformance.json").symlink_to("kept.json")
    (target / "kept.json").write_text("old")
    code, _, err = run("--device", "REFERENCE", "--filter", "l1.memory.size", "--report", str(target))
    check("a link stays", code == 0 and (target / "conformance.json").is_symlink(), code, err)
    check("its target is written", (target / "kept.json").stat().st_size > 500)


def check_interruption(folder):
    started = subprocess.Popen([COMMAND, "conformance", "--plugin", FAULTY, "--option", "fault=launch-hang", "--filter",
                                "l1.memory.size,l1.launch", "--json", "--report", folder], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(3)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=250)
    document = json.loads(out)
    check("an interrupted run exits 130 and says so", started.returncode == 130 and "interrupted" in err, err)
    check("its report holds what ran", document["interrupted"] and document["totals"]["pass"] == len(document["tests"]) > 3,
          document["totals"])
    check("no interrupted report is verified", run("--verify-report", f"{folder}/conformance.json")[0] == 1)


def check_usage():
    for arguments in ((), ("--device", "REFERENCE", "--plugin", FAULTY), ("--device", "REFERENCE", "--level", "L9"),
                      ("--device", "REFERENCE", "--seed", "x"), ("--device", "REFERENCE", "--option", "novalue"),
                      ("--device", "REFERENCE", "--quick", "--full"), ("--device", "NONE"),
                      ("--plugin", "/no/such/file.so"), ("--device", "REFERENCE", "--no-such-option"),
                      ("--device", "REFERENCE", "--time-limit-factor", "0"), ("--device", "REFERENCE", "--jobs", "0"),
                      ("--device", "REFERENCE", "--jobs", "x")):
        code, out, err = run(*arguments)
        check("bad usage exits 2 and says why", code == 2 and out == "" and err, arguments, code, out, err)
    code, _, err = run("--device", "REFERENCE", "--filter", "l1.nothing")
    check("a filter that takes nothing exits 1", code == 1 and "l1.nothing" in err, code, err)
    code, _, err = run("--device", "REFERENCE", "--filter", "l1.memory.size,l1.nothing")
    check("so does one beside a good one", code == 1 and "l1.nothing" in err, code, err)


def check_list():
    code, out, _ = run("--list")
    ids = [line.split()[1] for line in out.splitlines()]
    check("at least 500 quick tests", code == 0 and len(ids) >= 500, len(ids))
    check("ids are unique", len(set(ids)) == len(ids))
    full = run("--list", "--full")[1].splitlines()
    check("--full has them all", len(full) >= len(ids), len(full))


with tempfile.TemporaryDirectory() as folder:
    check_passing_run(folder)
    check_json(folder)
    check_reports_in_the_way(folder)
    check_interruption(folder)
check_failing_run()
check_nothing_to_judge()
check_usage()
check_list()
for failure in failures:
    print("conformance command:", failure)
sys.exit(1 if failures else 0)
