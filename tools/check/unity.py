#!/usr/bin/env python3
"""Checks that the files of a target that is compiled in batches can be compiled as one file.

A unity build (CMake option PLUGRAD_UNITY) joins several files of a target. There a name of an
anonymous namespace must differ from those of other files, unless both are the same alias, and from
what a header that any of them includes declares in the same namespace or around it: otherwise a
call could mean another function than in its own file."""
import collections
import functools
import pathlib
import re

import tree

NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*',
    re.S | re.M)
SEPARATOR = re.compile(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])")  # of digits; must not start a character
NAMESPACE = re.compile(r"(?:inline )?namespace\s*([\w:]*)\s*$")
TYPE = re.compile(r"(?:struct|class|union|enum(?: class| struct)?) (?:\[\[.*?\]\] )?(\w+)(?: final)?(?: :.*)?$")
ENUM = re.compile(r"enum (?!class|struct)[^{]*\{(.*)")  # its names are those of the namespace
ALIAS = re.compile(r"(?:using|namespace) (\w+) = (.*)")
USING = re.compile(r"using (?:::)?((?:\w+::)+(\w+))$")
DIRECTIVE = re.compile(r"using namespace ([\w:]+)$")
CALL = re.compile(r"\b(add_library|add_executable|target_sources|plugrad_add_\w+)\s*\(\s*([\w-]+)([^()]*)\)")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
ROOTS = [pathlib.Path(root) for root in
         ("core/src", "core/include", "plugin_api/include", "sdk/include", "sdk", "tools", "tests", ".")]
PREFIXES = {"plugrad_add_room": "plugrad_", "plugrad_add_component": "plugrad_", "plugrad_add_plugin": "plugrad_plugin_"}
UNITING = ("plugrad_add_room", "plugrad_add_test")  # each target of theirs
CONSTANT = re.compile(r"([A-Za-z_]\w*)\s*(?:\[[^]]*\]\s*)*=(?!=)")
NAME = re.compile(r"([A-Za-z_]\w*)\s*(?:\[[^]]*\]\s*)*$")


def split(text):
    """Yields (namespaces, head, body?) of each declaration directly in a namespace."""
    code = NOT_CODE.sub(lambda m: "" if m.group().startswith(("/", " ", "\t", "#")) else '""',
                        SEPARATOR.sub("", text))
    scopes, depth, start, end = [], 0, 0, None
    for match in re.finditer(r"[{};]", code):
        token, at = match.group(), match.start()
        if token == "{":
            head = " ".join(code[start:at].split())
            space = NAMESPACE.search(head) if depth == 0 else None
            if space:
                scopes.append(space.group(1))
                start = match.end()
            else:
                depth += 1
                end = at if depth == 1 and end is None else end
        elif token == "}" and depth == 0:
            if scopes:
                scopes.pop()
            start = match.end()
        elif token == "}":
            depth -= 1
            following = code[match.end():match.end() + 40].lstrip().replace("[[", "attribute", 1)[:1]
            if depth == 0 and (body := ENUM.match(" ".join(code[start:match.start()].split()))):
                for name in body.group(1).split(","):
                    yield tuple(scopes), f"constexpr {name.split('=')[0].strip()} ="
            if depth == 0 and following not in (";", ",", ")", "=", "{", "["):
                yield tuple(scopes), " ".join(code[start:end].split())
                start, end = match.end(), None
        elif depth == 0:
            yield tuple(scopes), " ".join(code[start:at if end is None else end].split())
            start, end = match.end(), None


def without_angles(text):
    """The text without template arguments and parameter lists of templates."""
    before = None
    while before != text:
        before, text = text, re.sub(r"<[^<>]*>", "", text)
    return text.strip()


def names_of(head):
    """The names that a declaration introduces, each with what makes two declarations of it equal."""
    if alias := ALIAS.search(head):
        return [(alias.group(1), alias.group(2))]
    head = without_angles(re.sub(r"\[\[.*?\]\]", "", head)).removeprefix("template").strip().removeprefix("inline ")
    if not head or head.startswith(("using", "friend", "static_assert", "extern", "TEST", "INSTANTIATE", "typedef")):
        return []
    if found := TYPE.match(head):
        return [(found.group(1), None)]
    if head.startswith(("constexpr", "const ")) and "=" in head and "(" not in head.split("=")[0]:
        return [(name, None) for name in CONSTANT.findall(head)]
    head = re.split(r"\(|=(?!=)", head, maxsplit=1)[0]
    if "operator" in head or "::" in head.split(" ")[-1]:
        return []
    return [(found.group(1), None)] if " " in head and (found := NAME.search(head)) else []  # one word: a macro


def names(text, anonymous):
    """The names that a file declares in namespaces, anonymous or not: name -> (namespaces, alias text). What the using
    declarations of a source file bring in is for the rest of a batch too, so it counts as anonymous."""
    found = {}
    for scopes, head in split(text):
        using = USING.match(head)
        if using and anonymous:
            found.setdefault((tuple(filter(None, scopes)), using.group(2)), using.group(1))
        elif not using and ("" in scopes) == anonymous:
            for name, alias in names_of(head):
                found.setdefault((tuple(filter(None, scopes)), name), alias)
    return found


text_of = functools.cache(tree.read)


@functools.cache
def names_in(path, anonymous, read):
    return [("::".join(scopes), name, alias) for (scopes, name), alias in names(read(path), anonymous).items()]


@functools.cache
def directives_in(path, read):
    """The namespaces that a file opens with using directives at its own scope."""
    heads = ((scopes, DIRECTIVE.match(head)) for scopes, head in split(read(path)))
    return {found.group(1) for scopes, found in heads if found and not any(scopes)}


def breaches(files, read=text_of):
    owners, public = collections.defaultdict(list), collections.defaultdict(list)
    opened = {name for path in files if path.suffix == ".cpp" for name in directives_in(path, read)}
    for path in files:
        if path.suffix == ".h":
            for scope, name, _ in names_in(path, False, read):
                public[name].append((scope, path))
        else:
            for scope, name, alias in names_in(path, True, read):
                owners["" if scope in opened else scope, name].append((path, alias))
    for (scope, name), found in sorted(owners.items()):
        aliases = {alias for _, alias in found}
        outer = [path for around, path in public[name]
                 if around in opened or f"{scope}::".startswith(f"{around}::" if around else "")
                 if not any(alias and f"{around}::{name}".endswith(alias) for alias in aliases)]
        if len(found) > 1 and (None in aliases or len(aliases) > 1):
            yield f"{name} is declared in the anonymous namespaces of {', '.join(str(path) for path, _ in found)}"
        elif outer:
            yield f"{name} is declared in an anonymous namespace of {found[0][0]} and in {outer[0]}"


def united(lists):
    """The targets that are compiled in batches, each with its sources and the headers that they include."""
    named, sources = set(), collections.defaultdict(list)
    for path in lists:
        text = re.sub(r"#.*", "", text_of(path))
        named.update(re.findall(r"plugrad_unite\(([\w-]+)", text))
        for call, name, rest in CALL.findall(text):
            target = PREFIXES.get(call, "") + name
            sources[target] += [path.parent / source for source in re.findall(r"[\w./-]+\.cpp", rest)]
            if call in UNITING:
                named.add(target)
    for target in sorted(named):
        files = [file for file in sources[target] if (tree.ROOT / file).is_file()]
        yield files + sorted(headers_of(files))


def headers_of(files):
    """The headers of this tree that the files include, directly or not."""
    found, left = set(), list(files)
    while left:
        file = left.pop()
        for name in INCLUDE.findall(text_of(file)):
            header = next((path for path in included(file.parent, name)), None)
            if header and header not in found:
                found.add(header)
                left.append(header)
    return found


@functools.cache
def included(folder, name):
    """Where an include may lead, the folder of the file first."""
    return [root / name for root in (folder, *ROOTS) if (tree.ROOT / root / name).is_file()]


def main():
    files = tree.tracked_files()
    targets = list(united([path for path in files if path.name == "CMakeLists.txt"]))
    module = [path for path in files if path.suffix == ".cpp" and path.parts[:2] == ("python", "src")]  # python/CMakeLists.txt gets a list of them
    targets.append(module + sorted(headers_of(module)))
    found = [breach for files in targets for breach in breaches(files)]
    tree.finish("unity", found, f"{sum(file.suffix == '.cpp' for files in targets for file in files)} files of {len(targets)} targets")


if __name__ == "__main__":
    main()
