#!/usr/bin/env python3
"""Checks that the files of one room, or of one test program, can be compiled as one file.

A unity build (CMake option PLUGRAD_UNITY) joins several files of a target. There a name of an
anonymous namespace must differ from those of other files, unless both are the same alias, and from
what the room's headers declare: otherwise a call could mean another function than in its own file."""
import collections
import pathlib
import re

import tree

NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*',
    re.S | re.M)
NAMESPACE = re.compile(r"(?:inline )?namespace\s*([\w:]*)\s*$")
TYPE = re.compile(r"(?:struct|class|union|enum(?: class| struct)?) (?:\[\[.*?\]\] )?(\w+)(?: final)?(?: :.*)?$")
ALIAS = re.compile(r"(?:using|namespace) (\w+) = (.*)")
NAME = re.compile(r"([A-Za-z_]\w*)\s*(?:\[[^]]*\]\s*)*$")


def split(text):
    """Yields (namespaces, head, body?) of each declaration directly in a namespace."""
    code = NOT_CODE.sub(lambda m: "" if m.group().startswith(("/", " ", "\t", "#")) else '""', text)
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
            following = code[match.end():match.end() + 40].lstrip()[:1]
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


def name_of(head):
    """The declared name and what makes two declarations of it equal."""
    if alias := ALIAS.search(head):
        return alias.group(1), alias.group(2)
    head = without_angles(re.sub(r"\[\[.*?\]\]", "", head)).removeprefix("template").strip()
    if not head or head.startswith(("using", "friend", "static_assert", "extern", "TEST", "INSTANTIATE", "typedef")):
        return None
    if found := TYPE.match(head):
        return found.group(1), None
    head = re.split(r"\(|=(?!=)", head, maxsplit=1)[0]
    if "operator" in head or "::" in head.split(" ")[-1]:
        return None
    found = NAME.search(head)
    return (found.group(1), None) if found else None


def names(text, anonymous):
    """The names that a file declares in namespaces, anonymous or not: name -> (namespaces, alias text)."""
    found = {}
    for scopes, head in split(text):
        if ("" in scopes) == anonymous and (named := name_of(head)):
            found.setdefault((tuple(filter(None, scopes)), named[0]), named[1])
    return found


def breaches(files, read=tree.read):
    owners, public = collections.defaultdict(list), {}
    for path in files:
        if path.suffix == ".h":
            public.update(dict.fromkeys((name for _, name in names(read(path), False)), path))
    for path in files:
        for (scopes, name), alias in names(read(path), True).items():
            if path.suffix == ".cpp":
                owners["::".join(scopes), name].append((path, alias))
    for (_, name), found in sorted(owners.items()):
        aliases = {alias for _, alias in found}
        if len(found) > 1 and (None in aliases or len(aliases) > 1):
            yield f"{name} is declared in the anonymous namespaces of {', '.join(str(path) for path, _ in found)}"
        elif name in public and aliases == {None}:
            yield f"{name} is declared in an anonymous namespace of {found[0][0]} and in {public[name]}"


def rooms():
    """Files that may be compiled as one: the rooms of core but onnx, whose library is not united."""
    groups = collections.defaultdict(list)
    for path in tree.sources("core"):
        if path.suffix in (".cpp", ".h") and path.parts[1] == "src" and path.parts[2] != "onnx":
            groups[pathlib.Path(*path.parts[:3])].append(path)
    return groups


def main():
    groups = rooms()
    found = [breach for files in groups.values() for breach in breaches(files)]
    tree.finish("unity", found, f"{sum(map(len, groups.values()))} files of {len(groups)} rooms")


if __name__ == "__main__":
    main()
