#!/usr/bin/env python3
"""statements.py BIN [PAGE ...]: what README.md and docs/ say of numbers, names, defaults and limits is so.

statements.txt has a statement a line: PAGE ;; TEXT ;; COMMAND ;; EXPECTED. TEXT stands in the page (white space aside), so that a changed page fails.
COMMAND is run by bash beside `data`, a few generated images, with $ROOT for the checkout; an empty one is that of the line before. What it prints, and
`exit code N`, has the regular expression EXPECTED in it.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    rows = [[field.strip() for field in line.split(";;")] for line in (HERE / "statements.txt").read_text().splitlines() if line and line[0] != "#"]
    pages = {page: " ".join((ROOT / page).read_text().split()) for page in {row[0] for row in rows}}
    wrong, printed = [], {}
    with tempfile.TemporaryDirectory() as scratch:
        env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "ROOT": str(ROOT), "OMP_NUM_THREADS": "1", "HOME": scratch}

        def run(command):
            done = subprocess.run(["bash", "-c", command], cwd=scratch, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
            return f"{done.stdout}{done.stderr}\nexit code {done.returncode}"

        run("generate_samples --output data --train 2 --valid 1 --test 1 --size 64")
        command = ""
        for page, text, given, expected in rows:
            command = given or command
            if sys.argv[2:] and page not in sys.argv[2:]:
                continue
            if " ".join(text.split()) not in pages[page]:
                wrong.append(f"{page} no longer says '{text}'")
            printed[command] = printed.get(command) or run(command)
            if not re.search(expected, printed[command], re.MULTILINE):
                wrong.append(f"{page}: '{text}'\n  {command}\n  expected {expected} in:\n{printed[command][-1500:]}")
    print(*wrong, sep="\n", file=sys.stderr)
    print(f"{len(rows)} statements of {len(pages)} pages, {len(printed)} commands, {len(wrong)} are not so")
    sys.exit(1 if wrong or len(rows) < 40 else 0)


if __name__ == "__main__":
    main()
