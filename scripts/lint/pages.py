#!/usr/bin/env python3
"""Checks the pages of share/pages: HTML whose elements are all closed in turn, the elements that scripts ask for, and how long lines are.

pages.py [ROOT]     prints `file:line: message` for every finding; exit 1 when there is one
pages.py --self-test
"""
import html.parser
import pathlib
import re
import sys
import tempfile

LONGEST_LINE = 160
VOID = {"br", "hr", "img", "input", "link", "meta"}


class Page(html.parser.HTMLParser):
    """The elements of a page that are open, its ids, and what is wrong."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.scripts, self.findings = [], set(), [], []
        self.feed(text)
        self.close()
        self.findings += [(line, f"<{tag}> is not closed") for tag, line in self.open]

    def handle_starttag(self, tag, attributes):
        self.ids |= {value for name, value in attributes if name == "id"}
        self.scripts += [value for name, value in attributes if tag == "script" and name == "src"]
        if tag not in VOID:
            self.open.append((tag, self.getpos()[0]))

    def handle_endtag(self, tag):
        if self.open and self.open[-1][0] == tag:
            self.open.pop()
        else:
            self.findings.append((self.getpos()[0], f"</{tag}> closes nothing, expected </{self.open[-1][0] if self.open else 'no element'}>"))


def check(root):
    findings, folder = [], root / "share/pages"
    for path in sorted(folder.iterdir()):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > LONGEST_LINE:
                findings.append(f"{name}:{number}: {len(line)} characters; {LONGEST_LINE} are allowed")
        if path.suffix != ".html":
            continue
        page = Page(text)
        findings += [f"{name}:{line}: {message}" for line, message in page.findings]
        for script in ["common.js", *page.scripts] if page.scripts else []:  # the server puts them together
            for number, line in enumerate((folder / script).read_text(encoding="utf-8").splitlines(), 1):
                findings += [f"share/pages/{script}:{number}: {path.name} has no element {one}"
                             for one in re.findall(r"\bby\('(\w+)'\)", line) if one not in page.ids]
    return findings


def self_test():
    good = '<!doctype html>\n<html lang="en"><script src="a.js" defer></script><p id="said">a<br>b</p></html>\n'
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        pages = root / "share/pages"
        pages.mkdir(parents=True)
        files = {"a.html": good, "a.js": "by('said');\n", "common.js": "", "a.css": "p { color: red; }\n"}
        cases = [({}, []),
                 ({"a.html": good.replace("</p>", "")}, ["share/pages/a.html:2: </html> closes nothing, expected </p>",
                                                         "share/pages/a.html:2: <html> is not closed", "share/pages/a.html:2: <p> is not closed"]),
                 ({"a.js": "\nby('told');\n"}, ["share/pages/a.js:2: a.html has no element told"]),
                 ({"common.js": "by('token');\n"}, ["share/pages/common.js:1: a.html has no element token"]),
                 ({"a.css": "p { color: red; }\n" + 161 * " "}, ["share/pages/a.css:2: 161 characters; 160 are allowed"])]
        for changed, expected in cases:
            for name, text in {**files, **changed}.items():
                (pages / name).write_text(text)
            assert check(root) == expected, check(root)
    return 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    findings = check(pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parents[2]))
    print(*findings, sep="\n", end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
