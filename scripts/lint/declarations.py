"""What a C++ file declares and defines outside of functions: enough to ask which header a source implements. It needs
no compiler, for clang-format begins whatever stands in a namespace, and nothing else, in the first column.

Names are whole (`cytra::Image::plane`), a function's has its parameters' types (`cytra::area(Box&,float)`).
"""
import re

ASIDE = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![\da-fA-F])\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/'
                   r"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.S | re.M)
PART = re.compile(r"^\S[^\n]*(?:\n(?:[ \t][^\n]*)?)*", re.M)
NAMESPACE = re.compile(r"(?:inline )?namespace\b ?([\w:]*) ?\{")
CLASS = re.compile(r"(?:struct|class|union) (?:[A-Z_]+ )?([\w:]+)(?: final)?\s*(?::[^{;]*)?\{")
NAME = re.compile(r"(?!template|using|static|typedef|friend|return|extern template)([^=(]*?)"
                  r"((?:\w+::)*(?:~?\w+|operator[^\w\s(]+|operator\(\)))\(")


def parts(text):
    """(namespaces, text, line) of each declaration in the first column; a namespace without a name is ""."""
    text = ASIDE.sub(lambda match: '""' if match[0][-1] == '"' else "\n" * match[0].count("\n"), text)
    spaces, is_open = [], False
    for match in PART.finditer(text):
        part = match[0]
        space = NAMESPACE.match(part)
        if space:
            spaces.append(space[1])
        elif part[0] == "}" and not is_open:
            del spaces[-1:]
        else:
            is_open = part.count("{") > part.count("}")
            yield spaces, part, text.count("\n", 0, match.start()) + 1


def without_templates(text):
    """`text` without what stands between < and >."""
    while (shorter := re.sub(r"(?<!operator)<[^<>;{}]*>", "", text)) != text:
        text = shorter
    return text


def type_of(parameter):
    """`const at::Tensor& image = {}` -> `Tensor&`: without its default, its name and its namespace."""
    text = re.sub(r"\s*=.*", "", parameter, flags=re.S).strip()
    text = re.sub(r"([\w>&*])(\s+|(?<=[&*]))\w+$", r"\1", text)
    return re.sub(r"\b[a-z]\w*::|\bconst\b|\s", "", text)


def function_of(part):
    """(name, name with the parameters' types, is it defined here) of a function; None for what is none."""
    head = without_templates(re.sub(r"\[\[.*?\]\] ?", "", part))
    match = NAME.match(head)
    if not match or not (match[1].strip() or "::" in match[2]):
        return None
    types, depth, at = [""], 1, match.end()
    while at < len(head):
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(head[at], 0)
        if depth == 0:
            break
        if head[at] == "," and depth == 1:
            types.append("")
        else:
            types[-1] += head[at]
        at += 1
    rest = head[at + 1:]
    return match[2], f"{match[2]}({','.join(map(type_of, types))})", "{" in rest or "= default" in rest


def declared(text):
    """The classes that a header defines, and the functions that it leaves to a source."""
    names = set()
    for spaces, part, _ in parts(text):
        prefix = "".join(space + "::" for space in spaces)
        if match := CLASS.match(part):
            names.add(prefix + match[1])
        elif (function := function_of(part)) and not function[2]:
            names.add(prefix + function[1])
    return names


def defined(text):
    """(line, name, what a header may declare of it: itself or its classes) of each function that is not a source's own."""
    for spaces, part, line in parts(text):
        function = function_of(part)
        if function and function[2] and "" not in spaces:
            prefix = "".join(space + "::" for space in spaces)
            scopes = function[0].split("::")[:-1]
            classes = ["::".join(scopes[:count]) for count in range(len(scopes), 0, -1)]
            yield line, function[0], [prefix + name for name in (function[1], *classes)]
