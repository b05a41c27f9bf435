"""Reads plugrad's public headers: classes, structs, enums and functions with their comments.

A reader of this project's own headers, not of C++: they are formatted by one tool, declare one thing
a statement, and document it in `///` lines before it or `///<` behind it. What this reader does not
understand is an error, so that no function is left out silently.
"""
import re
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Parameter:
    type: str  # without "const …&"
    name: str  # empty when the header gives none
    default: str | None


@dataclass
class Function:
    name: str
    result: str
    parameters: list[Parameter]
    doc: str
    section: str
    is_static: bool = False
    is_const: bool = False
    is_template: bool = False


@dataclass
class Field:
    type: str
    name: str
    default: str | None
    doc: str


@dataclass
class Class:
    name: str
    doc: str
    bases: list[str] = field(default_factory=list)
    template: list[str] = field(default_factory=list)  # names of the template's parameters
    functions: list[Function] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)


@dataclass
class Alias:
    name: str
    type: str
    doc: str


@dataclass
class Enum:
    name: str
    doc: str
    values: list[str]


@dataclass
class Header:
    doc: str = ""  # the comment before #pragma once
    classes: list[Class] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    enums: list[Enum] = field(default_factory=list)
    aliases: list[Alias] = field(default_factory=list)


@dataclass
class Statement:
    text: str  # on one line, without comments
    body: str | None  # between the braces, where it has any
    doc: str
    section: str


def read(path: Path) -> Header:
    text = path.read_text()
    first = [line[3:].strip() for line in text.split("#", 1)[0].splitlines()
             if line.startswith("///")]
    header = Header(" ".join(first))
    _read_scope(text, header)
    return header


def split(text: str, separator: str = ",") -> list[str]:
    """Splits at separators that stand in no brackets."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        if char in "(<{[":
            depth += 1
        elif char in ")>}]":
            depth -= 1
        elif char == separator and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return parts + [last] if last or parts else []


_CLASS = r"(?:template <([^<>]*)> )?(class|struct) "


def _read_scope(text: str, header: Header) -> None:
    for statement in _statements(text):
        if statement.text.startswith("namespace"):
            if not statement.text.endswith("detail"):
                _read_scope(statement.body or "", header)
        elif match := re.match(r"enum class (\w+)", statement.text):
            header.enums.append(_enum(match[1], statement))
        elif match := re.match(r"using (\w+) = (.*)$", statement.text):
            header.aliases.append(Alias(match[1], match[2], statement.doc))
        elif re.match(_CLASS, statement.text) and statement.body is not None:
            header.classes.append(_class(statement))
        elif "(" in statement.text and not statement.text.startswith(("using", "concept")):
            if function := _function(statement):
                header.functions.append(function)


def _statements(text: str) -> list[Statement]:
    found: list[Statement] = []
    doc: list[str] = []
    section: list[str] = []
    in_section = False
    i = 0
    while i < len(text):
        line_end = text.find("\n", i)
        line_end = len(text) if line_end < 0 else line_end
        line = text[i:line_end].strip()
        if not line or line.startswith("#"):
            i = _after_directive(text, i) if line.startswith("#") else line_end + 1
            doc = doc if line else []
            in_section = False
        elif line.startswith("///<"):
            found[-1].doc = f"{found[-1].doc} {line[4:].strip()}".strip()
            i = line_end + 1
        elif line.startswith("///"):
            doc.append(line[3:].strip())
            i = line_end + 1
        elif line.startswith("//"):
            if line.startswith("// ----"):
                section, in_section = [line.strip("/- ")], True
            elif in_section:
                section.append(line.strip("/- "))
            i = line_end + 1
        elif line.startswith("PLUGRAD_FIELDS("):
            i = line_end + 1
        elif match := re.match(r"(public|private|protected):$", line):
            if match[1] != "public":
                break  # the rest of a class is not part of the interface
            i = line_end + 1
        else:
            in_section = False
            statement, i = _statement(text, i)
            statement.doc = " ".join(doc + [statement.doc]).strip()
            statement.section = " ".join(section)
            found.append(statement)
            doc = []
    return found


def _after_directive(text: str, i: int) -> int:
    while True:
        end = text.find("\n", i)
        if end < 0:
            return len(text)
        if text[end - 1] != "\\":
            return end + 1
        i = end + 1


def _statement(text: str, i: int) -> tuple[Statement, int]:
    """The statement at i and the place behind it and its trailing comment."""
    head, depth, body, doc = [], 0, None, ""
    while i < len(text):
        if text.startswith("//", i):
            i = text.find("\n", i)
            continue
        char = text[i]
        if char == "{" and depth == 0:
            end = _closing(text, i)
            if _is_initialiser("".join(head)):
                head.append(text[i:end + 1])
                i = end + 1
                continue
            body = text[i + 1:end]
            i = end + 1
            if text[i:i + 1] == ";":
                i += 1
            break
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == ";" and depth == 0:
            i += 1
            break
        head.append(char)
        i += 1
    line_end = text.find("\n", i)
    line_end = len(text) if line_end < 0 else line_end
    trailing = text[i:line_end].strip()
    if trailing.startswith("///<"):
        doc = trailing[4:].strip()
    if trailing.startswith("//"):
        i = line_end
    return Statement(re.sub(r"\s+", " ", "".join(head)).strip(), body, doc, ""), i


def _is_initialiser(head: str) -> bool:
    """Whether a brace after this text opens the value of a member, not a body."""
    return head.rstrip()[-1:] in ("=", ",") or re.search(r"[\w>]$", head) is not None


def _closing(text: str, start: int) -> int:
    depth = 0
    i = start
    while i < len(text):
        if text.startswith("//", i):
            i = text.find("\n", i)
        elif text[i] == '"':
            i += 1
            while text[i] != '"':
                i += 2 if text[i] == "\\" else 1
        elif text[i] == "{":
            depth += 1
        elif text[i] == "}":
            depth -= 1
            if depth == 0:
                return i
        i += 1
    raise SyntaxError(f"no closing brace: {text[start:start + 60]!r}")


def _enum(name: str, statement: Statement) -> Enum:
    body = re.sub(r"//.*", "", statement.body or "")
    values = [part.split("=")[0].strip() for part in split(body) if part]
    return Enum(name, statement.doc, values)


def _class(statement: Statement) -> Class:
    head = statement.text.replace("PLUGRAD_API ", "")
    match = re.match(_CLASS + r"(\w+)(?: final)?(?:\s*:\s*(.*))?$", head)
    if not match:
        raise SyntaxError(f"not understood: {head}")
    bases = [base.replace("public ", "").strip() for base in split(match[4] or "")]
    template = [part.split()[-1] for part in split(match[1] or "")]
    made = Class(match[3], statement.doc, bases, template)
    body = statement.body or ""
    if match[2] == "class":
        at = re.search(r"^\s*public:$", body, re.M)
        body = body[at.end():] if at else ""
    for member in _statements(body):
        if member.text.startswith(("using", "friend", "enum", "PLUGRAD_FIELDS", "static_assert")):
            continue
        if re.match(r"(class|struct)\b", member.text):
            continue
        if "(" in _without_arguments(member.text):
            if function := _function(member, made.name):
                made.functions.append(function)
        else:
            made.fields += _fields(member)
    return made


def _without_arguments(text: str) -> str:
    """The text up to a default value, without template arguments."""
    if text.startswith("template"):
        text = _without_template(text)
    before = ""
    while before != text:
        before, text = text, re.sub(r"<[^<>]*>", "", text)
    return text if "operator" in text else text.split("=")[0]


def _fields(member: Statement) -> list[Field]:
    first, *others = split(member.text)
    match = re.match(r"(.*?[\s>&*])(\w+)\s*(?:=\s*(.*)|\{(.*)\})?$", first)
    if not match:
        raise SyntaxError(f"not understood: {member.text}")
    made = [Field(match[1].strip(), match[2], match[3] or match[4], member.doc)]
    for other in others:
        name, _, default = other.partition("=")
        made.append(Field(made[0].type, name.strip(), default.strip() or None, member.doc))
    return made


def _function(statement: Statement, class_name: str = "") -> Function | None:
    text = re.sub(r"NOLINT\(.*?\)", "", statement.text).replace("PLUGRAD_API ", "")
    text = re.sub(r"^(inline|explicit|constexpr) ", "", text)
    is_template = text.startswith("template")
    if is_template:
        text = re.sub(r"^(inline|explicit|constexpr) ", "", _without_template(text))
    is_static = "static " in text.split("(")[0]
    text = re.sub(r"\b(static|inline|explicit|constexpr|virtual) ", "", text, count=2)
    operator = re.match(r"(.*?)\boperator\s*(\(\)|\[\]|[^\w\s(]+|bool|\w+)\s*\(", text)
    opening = operator.end() - 1 if operator else text.index("(")
    before = text[:opening].strip()
    inside, after = _parenthesised(text, opening)
    if operator:
        name, result = "operator" + operator[2], operator[1].strip()
    else:
        if re.search(r"\w::\w+$", before):  # the definition of a member
            return None
        match = re.match(r"(?:(.*[\s&*>]))?(~?\w+)$", before)
        if not match:
            raise SyntaxError(f"not understood: {text}")
        name, result = match[2], (match[1] or "").strip()
        if name == class_name:
            name, result = "__init__", class_name
    if name.startswith("~") or "= delete" in after or "= default" in after:
        return None
    parameters = [_parameter(part) for part in split(inside)]
    return Function(name, result, parameters, statement.doc, statement.section, is_static,
                    after.startswith("const"), is_template)


def _without_template(text: str) -> str:
    depth, i = 0, text.index("<")
    while True:
        depth += {"<": 1, ">": -1}.get(text[i], 0)
        i += 1
        if depth == 0:
            break
    rest = text[i:].strip()
    if rest.startswith("requires"):
        rest = re.sub(r"^requires\s*(\([^)]*\)+|[\w:]+(<[^>]*>)?)\s*", "", rest)
    return rest


def _parenthesised(text: str, opening: int) -> tuple[str, str]:
    depth = 0
    for i in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return text[opening + 1:i], text[i + 1:].strip()
    raise SyntaxError(f"no closing parenthesis: {text}")


def _parameter(text: str) -> Parameter:
    declared, _, default = text.partition("=")
    declared = declared.strip()
    match = re.match(r"(.+[\s&*])([A-Za-z_]\w*)$", declared)
    type_name, name = (match[1], match[2]) if match and match[1].strip() != "const" else (declared, "")
    type_name = re.sub(r"^const ", "", type_name.strip()).rstrip("&").strip()
    return Parameter(type_name, name, default.strip() or None if default else None)
