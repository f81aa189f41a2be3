#!/usr/bin/env python3
"""headers_test.py COMPILER TORCH_INCLUDE [--whole]: each installed header compiles alone.

A header with ATen or torch in it, which costs 10 or 15 s each, is compiled behind a precompiled ATen/core/Tensor.h or torch/nn/module.h;
truly alone with --whole.
"""

import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

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
    compiler, torch = sys.argv[1:3]
    headers = (ROOT / "cmake" / "installed_headers.txt").read_text().split()
    before = {}  # header -> the precompiled one
    for header in headers:
        names = included(header, set())
        for folder, heavy in (("torch/", "torch/nn/module.h"), ("ATen/", "ATen/core/Tensor.h")):
            if any(name.startswith(folder) for name in names):
                before.setdefault(header, heavy)
    if len(headers) - len(before) < 40:
        sys.exit(f"{len(headers) - len(before)} headers without ATen, expected 40 or more")
    with tempfile.TemporaryDirectory() as folder:
        common = [compiler, "-std=c++20", f"-I{ROOT / 'src'}", f"-isystem{torch}", f"-isystem{torch}/torch/csrc/api/include"]
        if "--whole" in sys.argv:
            before = {}

        def precompile(heavy):
            path = pathlib.Path(folder) / heavy.replace("/", "_")
            path.write_text(f"#include <{heavy}>\n")
            subprocess.run([*common, "-x", "c++-header", path, "-o", f"{path}.gch"], check=True)
            return path

        def error_of(header):
            first = ["-include", precompiled[before[header]]] if header in before else []
            command = [*common, *first, "-fsyntax-only", "-x", "c++", "-"]
            result = subprocess.run(command, input=f'#include "{header}"\n', text=True, capture_output=True)
            errors = [line for line in result.stderr.splitlines() if "error" in line]
            return f"{header}: {errors[0] if errors else result.stderr}" if result.returncode else ""

        with concurrent.futures.ThreadPoolExecutor(2) as threads:
            heavy = sorted(set(before.values()))
            precompiled = dict(zip(heavy, threads.map(precompile, heavy)))
            failed = [error for error in threads.map(error_of, headers) if error]
    sys.exit("\n".join(failed) or 0)


if __name__ == "__main__":
    main()
