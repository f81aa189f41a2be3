#!/usr/bin/env python3
"""headers_test.py COMPILER TORCH_INCLUDE [--whole]: each installed header compiles alone.

A header's text is written out with that of ours that it includes, in a namespace of its own, behind headers that include no more of the standard
library and torch than it does: it sees what it sees alone, and such a row of headers takes the time of its last. Those with ATen in them
are compiled behind a precompiled ATen/core/Tensor.h. One by one, with all that they include, with --whole.
"""

import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^#include [<"]([^>"]+)')
ATEN = "ATen/core/Tensor.h"


def written_out(header, alone, seen):
    """The lines of a header with its includes of ours in their places; adds to `seen` all that it includes. `alone`: whose text it is part of."""
    lines = [f'#line 1 "{alone}: {header}"\n']
    for number, line in enumerate((ROOT / "src" / header).read_text().splitlines(keepends=True), 1):
        name = INCLUDE.match(line)
        ours = name and (ROOT / "src" / name[1]).exists()
        if ours and name[1] not in seen:
            seen.add(name[1])
            lines += [*written_out(name[1], alone, seen), f'#line {number + 1} "{alone}: {header}"\n']
        elif not ours and line != "#pragma once\n":
            if name:
                seen.add(name[1])
            lines.append(line)
    return lines


def rows_of(theirs):
    """Rows in which each header is behind those that include no more of others' headers, which are in `theirs`."""
    rows = []
    for header in sorted(theirs, key=lambda header: (len(theirs[header]), header)):
        fitting = [row for row in rows if theirs[row[-1]] <= theirs[header]]
        if fitting:
            max(fitting, key=lambda row: len(theirs[row[-1]])).append(header)
        else:
            rows.append([header])
    return rows


def main():
    compiler, torch = sys.argv[1:3]
    headers = (ROOT / "cmake" / "installed_headers.txt").read_text().split()
    texts, theirs = {}, {}
    for number, header in enumerate(headers):
        seen = {header}
        lines = written_out(header, header, seen)
        texts[header] = "".join([f"#define cytra cytra_{number}\n", *lines, "#undef cytra\n"])
        theirs[header] = frozenset(name for name in seen if not (ROOT / "src" / name).exists())
    plain = [header for header in headers if not any(name.startswith(("torch/", "ATen/")) for name in theirs[header])]
    if len(plain) < 40:
        sys.exit(f"{len(plain)} headers without ATen, expected 40 or more")
    with tempfile.TemporaryDirectory() as folder:
        common = [compiler, "-std=c++20", f"-I{ROOT / 'src'}", f"-isystem{torch}", f"-isystem{torch}/torch/csrc/api/include"]
        tensor = pathlib.Path(folder) / "tensor.h"

        def precompile():
            tensor.write_text(f"#include <{ATEN}>\n")
            subprocess.run([*common, "-x", "c++-header", tensor, "-o", f"{tensor}.gch"], check=True)

        def error_of(row, text, first=()):
            command = [*common, *first, "-fsyntax-only", "-x", "c++", "-"]
            result = subprocess.run(command, input=text, text=True, capture_output=True)
            errors = [line for line in result.stderr.splitlines() if "error" in line]
            return (errors[0] if errors else f"{row[-1]}: {result.stderr}") if result.returncode else ""

        with concurrent.futures.ThreadPoolExecutor(2) as threads:
            if "--whole" in sys.argv:
                tasks = [threads.submit(error_of, [header], f'#include "{header}"\n') for header in headers]
            else:
                ready = threads.submit(precompile)
                tasks = []
                for group, first in ((plain, []), (set(headers) - set(plain), ["-include", tensor])):
                    if first:
                        ready.result()
                    for row in rows_of({header: theirs[header] for header in group}):
                        tasks.append(threads.submit(error_of, row, "".join(texts[header] for header in row), first))
            failed = [error for error in (task.result() for task in tasks) if error]
    sys.exit("\n".join(failed) or 0)


if __name__ == "__main__":
    main()
