#!/usr/bin/env python3
"""wheel.py TREE --version 0.1.0 --torch 2.11 --platform manylinux_2_35_x86_64 --output FOLDER: a wheel of the installed tree.

TREE (bin, lib, share) becomes the package cytra_programs; the entry point `cytra` starts each program in bin. The same tree gives the same
bytes.
"""

import argparse
import base64
import hashlib
import pathlib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
METADATA = """\
Metadata-Version: 2.4
Name: cytra
Version: {version}
Summary: Trains and runs deep-learning models on microscopy and medical images, natively
Author: The Cytra authors
License: Apache-2.0; the libraries inside have licences of their own, which are beside this file
{licenses}Keywords: microscopy,segmentation,medical imaging,deep learning
Classifier: Environment :: Console
Classifier: Intended Audience :: Science/Research
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C++
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Scientific/Engineering :: Image Recognition
Requires-Python: >=3.10
Requires-Dist: torch>={torch},<{next_torch}
Description-Content-Type: text/markdown

# Cytra

Cytra trains and runs deep-learning models on 2D and 3D microscopy and medical images, natively: this wheel holds programs, no Python
modules. Install it in an environment of its own, as `pipx install cytra` or `uv tool install cytra` do. Then:

```sh
cytra generate_samples --output samples
cytra train experiment=im2im/segmentation data.path=samples trainer.max_epochs=5
cytra predict checkpoint.ckpt_path=best data.path=samples/test.csv paths.output_dir=masks
```
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", type=pathlib.Path)
    for name in ("version", "torch", "platform"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    tree, version = options.tree, options.version
    major, minor = options.torch.split(".")

    starter = (HERE / "cytra_programs.py").read_text().replace("@TORCH@", options.torch)
    files = {"cytra_programs/__init__.py": (starter.encode(), False)}
    for path in sorted(p for p in tree.rglob("*") if p.is_file()):
        name = f"cytra_programs/{path.relative_to(tree).as_posix()}"
        files[name] = (path.read_bytes(), bool(path.stat().st_mode & 0o100))
    info = f"cytra-{version}.dist-info"
    licenses = {"LICENSE": HERE.parent.parent / "LICENSE"}
    licenses |= {path.name: path for path in sorted((tree / "share/cytra/licenses").glob("*"))}
    for name, path in licenses.items():
        files[f"{info}/licenses/{name}"] = (path.read_bytes(), False)
        files.pop(f"cytra_programs/share/cytra/licenses/{name}", None)
    for path in sorted((tree / "share/cytra").glob("*.cdx.json")):  # where PEP 770 looks for it
        files[f"{info}/sboms/{path.name}"] = files.pop(f"cytra_programs/share/cytra/{path.name}")
    tag = f"py3-none-{options.platform}"
    for name, text in {
        "METADATA": METADATA.format(
            version=version,
            torch=options.torch,
            next_torch=f"{major}.{int(minor) + 1}",
            licenses="".join(f"License-File: {name}\n" for name in licenses),
        ),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: cytra ({version})\nRoot-Is-Purelib: false\nTag: {tag}\n",
        "entry_points.txt": "[console_scripts]\ncytra = cytra_programs:main\n",
    }.items():
        files[f"{info}/{name}"] = (text.encode(), False)

    options.output.mkdir(parents=True, exist_ok=True)
    wheel = options.output / f"cytra-{version}-{tag}.whl"
    part = wheel.with_suffix(".part")
    record = ""
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:

        def add(name, content, is_program):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if is_program else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)

        for name, (content, is_program) in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(content)}\n"
            add(name, content, is_program)
        add(f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), False)
    part.replace(wheel)
    print(wheel)


if __name__ == "__main__":
    main()
