#!/usr/bin/env python3
"""headers_test.py COMPILER TORCH_INCLUDE: each installed header that has no ATen in it compiles alone.

ATen brings every type that a header may have forgotten to include, and costs 10 s each.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def included(header, seen):
    """Adds all that a header includes."""
    for name in re.findall(r'^#include [<"]([^>"]+)', (ROOT / "src" / header).read_text(), re.MULTILINE):
        if name not in seen:
            seen.add(name)
            if (ROOT / "src" / name).exists():
                included(name, seen)
    return seen


def main():
    compiler, torch = sys.argv[1:]
    headers = (ROOT / "cmake" / "installed_headers.txt").read_text().split()
    alone = [h for h in headers if not any(name.startswith(("ATen/", "torch/")) for name in included(h, set()))]
    if len(alone) < 40:
        sys.exit(f"{len(alone)} headers, expected 40 or more")
    failed = []
    for header in alone:
        command = [compiler, "-std=c++20", "-fsyntax-only", "-x", "c++", f"-I{ROOT / 'src'}", f"-isystem{torch}", "-"]
        result = subprocess.run(command, input=f'#include "{header}"\n', text=True, capture_output=True)
        if result.returncode:
            failed.append(f"{header}: {next((line for line in result.stderr.splitlines() if 'error' in line), result.stderr)}")
    sys.exit("\n".join(failed) or 0)


if __name__ == "__main__":
    main()
