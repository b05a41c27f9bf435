#!/usr/bin/env python3
"""Checks rules of plugin_api that no compiler checks: every function of a table documents its
thread-safety; fields are fixed-width integers, pointers and function pointers; headers include only
the two standard ones and each other."""
import pathlib
import re
import sys

HEADERS = pathlib.Path("plugin_api/include/plugrad/plugin_api")
MARK = re.compile(r"\[(any|init|serial[a-z ]*)\]")
BANNED = re.compile(r"\b(bool|_Bool|size_t|ssize_t|long|short|unsigned|wchar_t|union|float|double|va_list|time_t|off_t)\b|\.\.\.")
FIELD = re.compile(r"^(const )?(u?int(8|16|32|64)_t|pgr_status|pgr_string|char|void|pgr_\w+)\b")
ENUM_FIELD = re.compile(r"^\s*enum\b", re.M)
FUNCTION = re.compile(r"^([\w ]+?\**) ?\(\*(\w+)\)\((.*)\)$")
TYPEDEF = re.compile(r"^typedef ((?!struct|enum)[^;]*);", re.M)
STRUCT = re.compile(r"typedef struct (\w+) \{\n(.*?)\n\} (\w+);", re.S)
# Types that a struct may hold by value; pgr_string is the only struct exempt from this rule.
VALUES = ("uint8_t", "uint16_t", "uint32_t", "uint64_t", "int32_t", "int64_t", "pgr_string", "pgr_status", "pgr_span_fn")


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def unmarked(table, body):
    """Functions of a table without a preceding mark: a mark applies to the functions up to the next
    blank line or comment."""
    mark = None
    for part in re.split(r"(/\*.*?\*/)", body, flags=re.S):
        if part.startswith("/*"):
            if part.endswith("*/") and (MARK.search(part) or "\n" in part or "first argument" not in part):
                mark = MARK.search(part)
            continue
        for name in re.findall(r"\(\*(\w+)\)\(", part):
            if not mark:
                yield f"{table}.{name} does not say who may call it when"


def bad_fields(name, body):
    for declaration in without_comments(body).split(";"):
        text = " ".join(declaration.split())
        if not text:
            continue
        banned = BANNED.search(text)
        if banned:
            yield f"{name}: \"{banned.group(0)}\" in \"{text}\""
        elif ENUM_FIELD.match(text) or not FIELD.match(text):
            yield f"{name}: \"{text}\" is of no type that may cross the line"
        elif "*" not in text and text.removeprefix("const ").split()[0] not in VALUES:
            yield f"{name}: \"{text}\" is a struct by value"


def bad_functions(name, declarations):
    """Result and parameter types of function pointers, in structs and typedefs."""
    for declaration in declarations:
        function = FUNCTION.match(" ".join(declaration.split()))
        if not function:
            continue
        result, called, parameters = function.groups()
        kinds = [result] + [p for p in parameters.split(", ") if p != "void"]
        for kind in (kind.replace("struct ", "") for kind in kinds):
            plain = kind.removeprefix("const ").split()[0]
            if BANNED.search(kind) or not FIELD.match(kind):
                yield f"{name}.{called}: \"{kind}\" is of no type that may cross the line"
            elif "*" not in kind and plain not in VALUES and kind != "void":
                yield f"{name}.{called}: \"{kind}\" is a struct by value"


def breaches_of(text):
    for include in re.findall(r"#include (\S+)", text):
        if include not in ("<stddef.h>", "<stdint.h>") and not include.startswith('"plugrad/plugin_api/'):
            yield f"includes {include}"
    for name, body, _ in STRUCT.findall(text):
        if name.endswith("_api"):
            yield from unmarked(name, body)
        yield from bad_fields(name, body)
        yield from bad_functions(name, without_comments(body).split(";"))
    yield from bad_functions("typedef", TYPEDEF.findall(without_comments(text)))


# Violations that the rules must detect: each is inserted into a copy of a header.
WRONG = [
    ("memory.h", "  uint32_t flags;       /* PGR_ALLOC_* */", "  bool flags;", '"bool"'),
    ("memory.h", "  uint64_t size_bytes;  /*", "  size_t size_bytes;  /*", '"size_t"'),
    ("memory.h", "  /* [any] Work already queued", "  /* Work already queued", "pgr_allocator_api.free does not say"),
    ("device.h", "  uint32_t denormals;", "  enum pgr_op_number denormals;", "no type that may cross"),
    ("queue.h", "  uint64_t value;  /*", "  pgr_error value;  /*", "a struct by value"),
    ("plugin.h", "uint64_t end, uint32_t worker);", "uint64_t end, size_t worker);", "typedef.pgr_span_fn"),
    ("plugin.h", "typedef void (*pgr_span_fn)", "typedef int (*pgr_span_fn)", "no type that may cross"),
    ("plugin.h", "const pgr_host_api *host, const pgr_string *interface_name,", "pgr_host_api host, const pgr_string *interface_name,",
     "a struct by value"),
    ("status.h", "#include <stdint.h>", "#include <stdlib.h>", "includes <stdlib.h>"),
]


def main():
    breaches = []
    for header in sorted(HEADERS.glob("*.h")):
        breaches += [f"{header.name}: {b}" for b in breaches_of(header.read_text())]
    for name, good, bad, said in WRONG:
        text = (HEADERS / name).read_text()
        if good not in text:
            breaches.append(f"{name} lacks what the rules are tried on: {good}")
        elif not any(said in b for b in breaches_of(text.replace(good, bad, 1))):
            breaches.append(f"the rules do not see {bad} in {name}")
    functions = sum(len(re.findall(r"\(\*\w+\)\(", h.read_text())) for h in HEADERS.glob("*.h"))
    print("\n".join(breaches) or f"rules: {functions} functions, {len(WRONG)} wrong ones seen")
    sys.exit(bool(breaches))


if __name__ == "__main__":
    main()
