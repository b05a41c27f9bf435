#!/usr/bin/env python3
"""Checks that every public function on tensors has a replay test in tests/jit/surface or a stated
exemption, and that no public header names PLUGRAD_INTERNAL (core/src/base/internal.h).

Functions are read from core/include/plugrad: free functions and public members whose result or
arguments mention Tensor, operators, modules (classes whose operator() takes a Tensor) and
optimisers. Constructors, templates and functions whose header body only calls another function are
excluded. tests/jit/surface/exempt.txt lists exemptions with reasons."""
import re

import sizes
import tree

HEADERS = "core/include/plugrad"
CASES = "tests/jit/surface"
EXEMPT = CASES + "/exempt.txt"
SCOPE = re.compile(r"^(?:template\s*<[^{]*>\s*)?(?:requires[^{]*)?"
                   r"(namespace|class|struct|enum|union)\b(?:\s+class)?(?:\s+PLUGRAD_API)?\s*([\w:]*)")
NAMED = re.compile(r"(operator\s*(?:\(\)|\[\]|[^\s\w(]+|\w+)|~?\w+)\s*\(")
TENSOR = re.compile(r"\b(Tensor|IndexedTensor|ValuesAndPlaces|QR|SVD|State|StateDict)\b")
SKIPPED = re.compile(r"^(template|friend|using|typedef|requires|explicit operator)\b|= (delete|default)$")


def plain(text):
    """Removes comments, literals, preprocessor lines and access labels."""
    text = re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", "", sizes.blank(text), flags=re.M)
    return re.sub(r"\bPLUGRAD_(API|FIELDS\([^)]*\))", "", text)


def statements(text):
    """(head, scope kind, class, is public, body) of each declaration outside function bodies."""
    scopes, start, at, found = [], 0, 0, []
    while at < len(text):
        char = text[at]
        if char == ":" and scopes and text[start:at].strip() in ("public", "private", "protected"):
            scopes[-1][2] = text[start:at].strip() == "public"
            start = at + 1
        elif char == "(":
            at = closing(text, at, "(", ")")
        elif char == "{":
            head = " ".join(text[start:at].split())
            scope = SCOPE.match(head)
            if scope and not ("(" in head and scope[1] not in ("class", "struct")):
                scopes.append([scope[1], scope[2], scope[1] != "class"])
            else:
                end = closing(text, at, "{", "}")
                found.append((head, *place(scopes), text[at + 1:end]))
                at = end
                after = re.match(r"\s*;", text[at + 1:])
                at += after.end() if after else 0
            start = at + 1
        elif char == "}":
            if scopes:
                scopes.pop()
            start = at + 1
        elif char == ";":
            found.append((" ".join(text[start:at].split()), *place(scopes), None))
            start = at + 1
        at += 1
    return found


def closing(text, at, opens, closes):
    depth = 0
    for end in range(at, len(text)):
        depth += (text[end] == opens) - (text[end] == closes)
        if depth == 0:
            return end
    return len(text)


def place(scopes):
    """Kind of the innermost scope, its class, and whether all enclosing scopes are public."""
    kind, name = (scopes[-1][0], scopes[-1][1]) if scopes else ("namespace", "")
    return kind, name if kind in ("class", "struct") else "", all(s[2] for s in scopes)


def public_functions(text):
    """{(class or "", name)} of a header."""
    found = set()
    for head, kind, owner, is_public, body in statements(plain(text)):
        named = NAMED.search(head)
        if kind in ("enum", "union") or not is_public or not named or SKIPPED.search(head):
            continue
        name = named[1].replace(" ", "")
        result, rest = head[:named.start()].strip(), head[named.end():]
        if name == "step" and owner:
            found.add(("", owner))
        if not result or name == "operator=" or not TENSOR.search(result + " " + rest):
            continue
        # a constructor, or a member of type std::function
        if name == owner or result.endswith("<"):
            continue
        if body is not None and re.fullmatch(r"\s*(return )?[\w:>.*-]+\([^;]*\);\s*", body):
            continue
        if name == "operator()":
            found.add(("", owner))
        else:
            found.add((owner if kind in ("class", "struct") else "", name))
    return found


def is_used(owner, name, cases):
    """True if the text of the cases calls it."""
    if name.startswith("operator"):
        sign = name[len("operator"):]
        if sign == "[]":
            return re.search(r"[\w)]\[", cases) is not None
        if owner and "=" not in sign:  # unary
            return re.search(r"(?:[(,{=]|return) ?" + re.escape(sign) + r"[\w(]|operator" + re.escape(sign),
                             cases) is not None
        return f" {sign} " in cases
    if owner:
        return re.search(rf"(?:\.|->|\b\w+::){name}\b", cases) is not None
    if name[0].isupper():
        return re.search(rf"\b{name}\b", cases) is not None
    return re.search(rf"(?<![.>\w]){name}\(", cases) is not None


def exemptions(text):
    """{name: reason} of lines `name, name: reason`."""
    reasons = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        names, _, reason = line.partition(": ")
        for name in names.split(", "):
            reasons[name] = reason.strip()
    return reasons


def written(owner, name):
    return f"{owner}::{name}" if owner else name


def breaches_of(functions, cases, reasons):
    breaches = []
    for owner, name in sorted(functions):
        full, used = written(owner, name), is_used(owner, name, cases)
        if not used and full not in reasons:
            breaches.append(f"{full} has no case in {CASES} and no reason in {EXEMPT}")
        if used and full in reasons:
            breaches.append(f"{full} has a case; take it out of {EXEMPT}")
    names = {written(*f) for f in functions}
    for name, reason in reasons.items():
        if name not in names:
            breaches.append(f"{EXEMPT}: there is no public function {name}")
        if not reason:
            breaches.append(f"{EXEMPT}: {name} has no reason")
    return breaches


def internal_breaches(path, text):
    if re.search(r"\bPLUGRAD_INTERNAL\b", text):
        yield f"{path}: PLUGRAD_INTERNAL marks symbols of headers that users do not have"


def main():
    functions, internal = set(), []
    for path in tree.tracked_files():
        if path.is_relative_to(HEADERS) and path.suffix == ".h":
            functions |= public_functions(tree.read(path))
            internal += internal_breaches(path, tree.read(path))
    cases = "\n".join(sizes.blank(tree.read(p)) for p in tree.sources("tests")
                      if p.is_relative_to(CASES) and p.name != "surface_test.cpp")
    reasons = exemptions(tree.read(EXEMPT))
    tree.finish("surface", internal + breaches_of(functions, cases, reasons),
                f"{len(functions)} public functions, {len(reasons)} without a case")


if __name__ == "__main__":
    main()
