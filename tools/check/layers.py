#!/usr/bin/env python3
"""Checks includes and link lines against the dependencies between rooms."""
import functools
import re

import tree

# A room of core and its direct dependencies; indirect dependencies are allowed too.
BUILDS_ON = {
    "base": [],
    "ir": ["base"],
    "rewrite": ["ir"],
    "symbolic": ["rewrite"],
    "autodiff": ["symbolic"],
    "cost": ["symbolic"],
    "sharding": ["ir"],
    "schedule": ["cost", "sharding"],
    "codegen": ["cost"],
    "runtime": ["base"],
    "tuning": ["codegen", "runtime"],
    "distributed": ["ir", "runtime"],
    "engine": ["schedule", "sharding", "tuning", "distributed"],
    "jit": ["engine"],
    "tensor": ["jit", "autodiff"],
    "io": ["base"],
    "nn": ["tensor", "io"],
    "onnx": ["nn"],
}
# The parts of the plugin API visible to these rooms: the kernel IR and the device's capabilities.
NARROW_API = {"kernel_ir.h", "kernel_ops.h", "device.h"}
NARROW_ROOMS = {"cost", "schedule", "codegen"}
# uop::DType is public; runtime needs only the dtype from the rooms above base.
PUBLIC_ROOM = {"export.h": "base", "error.h": "base", "source_scope.h": "base", "binding.h": "base", "dtype.h": "base", "plugrad.h": "nn", "jit.h": "nn", "numpy.h": "nn", "search.h": "tuning",
               "sharding.h": "tensor", "uop.h": "tensor", "gradient.h": "tensor"}
DEVICE_SDK = re.compile(r"^(llvm|clang|clang-c|lld|CL|vulkan|cuda|nvrtc|hip|shaderc)(/|\.h|$)")
# Rooms with a library of their own, which stands on core's.
LIBRARIES = ("onnx",)
# No public header names the namespaces of these rooms; ir, jit, nn and io have a public part.
HIDDEN_ROOMS = "engine|runtime|tuning|schedule|codegen|rewrite|symbolic|cost|autodiff|tensor"
HIDDEN_NAME = re.compile(rf"\b(?:namespace (?:\w+::)?({HIDDEN_ROOMS})\b|({HIDDEN_ROOMS})::)")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.M)
LLVM_LINK = re.compile(r"\b(LLVM\w*|clang-cpp|clang[A-Z]\w*|libclang)\b")


def closure(room):
    seen, todo = set(), [room]
    while todo:
        current = todo.pop()
        if current not in seen:
            seen.add(current)
            todo += BUILDS_ON[current]
    return seen


@functools.cache
def room_of_public_header(name):
    """The room of a public header: named by its folder, or holding its source; tensor if there is
    none."""
    if "/" in name:
        return name.split("/")[0]
    if name in PUBLIC_ROOM:
        return PUBLIC_ROOM[name]
    stem = name.removesuffix(".h")
    for room in BUILDS_ON:
        folder = tree.ROOT / "core/src" / room
        if room == stem or any(folder.rglob(f"{stem}.cpp")):
            return room
    return "tensor"


def core_breach(room, header):
    if header.startswith("plugrad/sdk/") or DEVICE_SDK.match(header):
        return "core includes neither the SDK nor a device's libraries"
    if header.startswith("plugrad/plugin_api/"):
        if room in NARROW_ROOMS and header.rsplit("/", 1)[1] not in NARROW_API:
            return f"{room} knows only {', '.join(sorted(NARROW_API))} of plugin_api"
        return None
    if header.startswith("plugrad/"):
        target = room_of_public_header(header.removeprefix("plugrad/"))
    else:
        target = header.split("/", 1)[0] if "/" in header else room
    if target in BUILDS_ON and target not in closure(room):
        return f"{room} must not enter {target}"
    return None


def public_breaches(path, text):
    """Users compile public headers without the plugin API and without the rooms of core."""
    for match in INCLUDE.finditer(text):
        if not match.group(2).startswith("plugrad/") and match.group(1) == '"':
            yield f"{path}: includes {match.group(2)}: a public header includes public headers only"
        if match.group(2).startswith("plugrad/plugin_api/"):
            yield f"{path}: includes {match.group(2)}: a public header includes nothing of plugin_api"
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("//", 1)[0]
        if match := HIDDEN_NAME.search(code):
            yield f"{path}:{number}: names {match.group(1) or match.group(2)}, a room inside core"


def outside_breach(folder, header):
    """Checks plugin_api, sdk, plugins, tools, tests, bench and python."""
    public = header.startswith("plugrad/")
    part = header.split("/")[1] if public else header.split("/")[0]
    if folder == "plugin_api" and public and part != "plugin_api":
        return "plugin_api depends on nothing"
    if folder in ("sdk", "plugins"):
        if public and part not in ("plugin_api", "sdk"):
            return f"{folder} never includes core"
        if header.startswith("core/") or (not public and part in BUILDS_ON and "/" in header):
            return f"{folder} never includes core"
    if folder != "plugins" and header.startswith("plugins/"):
        return "only a plugin enters plugins/"
    if folder == "python" and (part in ("plugin_api", "sdk") if public else part in BUILDS_ON and "/" in header):
        return "python uses core's public headers only"
    if folder != "sdk" and DEVICE_SDK.match(header) and folder in ("tools", "tests", "bench"):
        return f"{folder} includes no device library"
    return None


def include_breaches(path):
    for match in INCLUDE.finditer(tree.read(path)):
        header = match.group(2)
        # The cost of a driver's own functions is measured by calling them; the driver is opened at
        # run time.
        if path.parts[0] == "bench" and path.name.startswith("raw_") and DEVICE_SDK.match(header):
            continue
        if path.parts[:2] == ("core", "src"):
            why = core_breach(path.parts[2], header)
        elif path.parts[0] == "core":
            why = core_breach(room_of_public_header(str(path).split("include/plugrad/")[1]), header)
        else:
            why = outside_breach(path.parts[0], header)
        if why:
            yield f"{path}: includes {header}: {why}"


LINK_CALL = re.compile(r"\b(target_link_libraries|plugrad_add_\w+)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
CORE_LINK = re.compile(rf"\bplugrad(_|::)(core\w*|foundation|{'|'.join(BUILDS_ON)})\b")


def link_breaches(path):
    code = "\n".join(line.split("#", 1)[0] for line in tree.read(path).splitlines())
    for call in LINK_CALL.finditer(code):
        linked, folder = call.group(2), path.parts[0]
        number = code.count("\n", 0, call.start()) + 1
        if path.parts[:2] != ("sdk", "clang") and LLVM_LINK.search(linked):
            yield f"{path}:{number}: only sdk/clang links LLVM or Clang"
        if folder in ("sdk", "plugins") and CORE_LINK.search(linked):
            yield f"{path}:{number}: {folder} never links core"
        if folder == "core" and re.search(r"plugrad(_|::)(sdk|render|clang|plugin_(?!api))", linked):
            yield f"{path}:{number}: core links neither the SDK nor a plugin"
        if folder == "core" and not set(path.parts) & set(LIBRARIES) and re.search(rf"plugrad(_|::)({'|'.join(LIBRARIES)})\b", linked):
            yield f"{path}:{number}: core links no library that stands on it"


def main():
    breaches, files = [], tree.sources("plugin_api", "sdk", "plugins", "core", "tools", "tests", "bench", "python")
    for path in files:
        breaches += include_breaches(path)
        if path.parts[:2] == ("core", "include"):
            breaches += public_breaches(path, tree.read(path))
    for path in tree.tracked_files():
        if path.name == "CMakeLists.txt" and path.parts[0] != "CMakeLists.txt":
            breaches += link_breaches(path)
    tree.finish("layers", breaches, f"{len(files)} files")


if __name__ == "__main__":
    main()
