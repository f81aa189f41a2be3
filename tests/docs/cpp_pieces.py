#!/usr/bin/env python3
"""cpp_pieces.py OUT: writes every ```cpp block of README.md and docs/*.md into one source file, which must compile.

A block with a namespace stands as it is; another one becomes the body of a function, with what stands for the reader's own.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OWN = """template <class... T>
void use(const T&... /*values*/) {}
const std::vector<at::Tensor> many;
const at::Tensor one;
"""
HEADERS = ("ATen/ATen.h", "inference/predictor/predictor.h", "pipelines/batching/batching_service.h")


def main():
    includes, blocks = {f"#include <{HEADERS[0]}>", *(f'#include "{name}"' for name in HEADERS[1:])}, []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = path.read_text()
        for block in re.finditer(r"```cpp\n(.*?)```", text, re.DOTALL):
            lines = block[1].split("\n")
            first = text[: block.start()].count("\n") + 2
            includes.update(line for line in lines if line.startswith("#include"))
            body = "\n".join("" if line.startswith("#include") else line for line in lines)
            place = f'#line {first} "{path}"\n'
            if "namespace" in body:
                blocks.append(place + body)
            else:
                images = "many" if "detector" in body else "one"
                blocks.append(f"void piece_{len(blocks)}() {{\nconst auto& images = {images};\n{place}{body}}}\n")
    if len(blocks) < 3:
        sys.exit(f"{len(blocks)} blocks of C++, expected 3 or more")
    text = "\n".join(sorted(includes)) + "\nusing namespace cytra;\n" + OWN + "\n".join(blocks)
    pathlib.Path(sys.argv[1]).write_text(text)


if __name__ == "__main__":
    main()
