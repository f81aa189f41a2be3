#!/usr/bin/env python3
"""Checks the guides: how long their lines are, README.md as a whole, and that links within the repository lead somewhere.

documents.py [ROOT]     prints `file:line: message` for every finding; exit 1 when there is one
documents.py --self-test
"""
import pathlib
import re
import sys
import tempfile

LONGEST_LINE = 160
README_LINES, README_LINE = 120, 120
LINK = re.compile(r"\]\(([^)\s]+)\)")


def documents(root):
    """README.md and what else is at the root, the guides, and the page of src/."""
    return [*sorted(root.glob("*.md")), *sorted(root.glob("docs/*.md")), *root.glob("src/README.md")]


def prose(text):
    """The text without blocks and spans of code, line by line."""
    text = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(path):
    """The anchors of a page: of its headings, as GitHub makes them, and those that it writes."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    names = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in re.findall(r"^#+ +(.*)$", text, re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", name.lower()).strip().replace(" ", "-") for name in names} | set(re.findall(r'<a id="([^"]+)">', text))


def link_message(path, link):
    """What is wrong with a link of a page; None when nothing is."""
    if re.match(r"[a-z]+:", link):
        return None
    name, _, anchor = link.partition("#")
    target = path.parent / name if name else path
    if not target.exists():
        return f"no file {name}"
    if anchor and target.suffix == ".md" and anchor not in anchors(target):
        return f"no anchor #{anchor} in {target.name}"
    return None


def check(root):
    findings = []
    for path in documents(root):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        lines, longest = text.splitlines(), README_LINE if name == "README.md" else LONGEST_LINE
        findings += [f"{name}:{number}: {len(line)} characters; {longest} are allowed" for number, line in enumerate(lines, 1) if len(line) > longest]
        if name == "README.md" and len(lines) > README_LINES:
            findings.append(f"{name}:{len(lines)}: {len(lines)} lines; {README_LINES} are allowed: what is more belongs into docs/")
        for number, line in enumerate(prose(text).split("\n"), 1):
            messages = (link_message(path, link) for link in LINK.findall(line))
            findings += [f"{name}:{number}: {message}" for message in messages if message]
    return findings


def self_test():
    """Every rule finds its breach, and nothing else is found."""
    files = {  # text, the finding's words or ""
        "README.md": ("x\n" * 120 + "[a](docs/a.md#two-words)\n", "121 lines"),
        "CHANGELOG.md": ("x" * 161 + "\n", "161 characters"),
        "docs/a.md": ("x" * 160 + "\n## Two `words`\n<a id=\"here\"></a>[a](#here) [b](b.md) [c](../README.md) [d](#two-words) `[e](none)` [f](https://g.h)\n", ""),
        "docs/b.md": ("```\n# no heading\n[a](nowhere)\n```\n[a](#no-heading)\n", "b.md:5: no anchor #no-heading"),
        "docs/c.md": ("[a](gone.md)\n", "no file gone.md"),
        "src/README.md": ("[a](../docs/a.md#words)\n", "no anchor #words"),
    }
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, (text, _) in files.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text)
        findings = check(root)
        (root / "README.md").write_text("x" * 121 + "\n")
        if not any(finding.startswith("README.md:1: 121 characters") for finding in check(root)):
            wrong.append("README.md: a line of 121 characters is not found")
    for name, (_, words) in files.items():
        mine = [finding for finding in findings if finding.startswith(name + ":")]
        if (len(mine) != 1 or words not in mine[0]) if words else mine:
            wrong.append(f"{name}: expected {words or 'nothing'!r}, found {mine}")
    return wrong


def main(arguments):
    if arguments == ["--self-test"]:
        findings = self_test()
    elif len(arguments) > 1 or any(a.startswith("-") for a in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    else:
        findings = check(pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parents[2])
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
