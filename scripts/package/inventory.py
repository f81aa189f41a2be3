#!/usr/bin/env python3
"""inventory.py TREE ORIGINS --version 0.1.0 --torch 2.11: what the libraries in TREE/lib are, and their licences.

ORIGINS has a line for each library that was copied, "name TAB file"; Debian's package or the Python wheel of that file tells its version
and licence. Written are TREE/share/cytra/licenses/PACKAGE.txt, TREE/share/cytra/cytra.cdx.json (CycloneDX 1.6) and, for `cytra --licenses`,
TREE/share/cytra/licenses.txt.
"""

import argparse
import email.parser
import gzip
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import uuid

COMPILED_IN = {  # headers alone, with the program that needs them
    "libfmt-dev": "train",
    "libcli11-dev": "train",
    "nlohmann-json3-dev": "train",
    "libboost-dev": "serve",
}


def fields(package):
    names = ("Package", "Version", "source:Package", "Homepage")
    text = subprocess.run(
        ["dpkg-query", "-W", "-f", "\\n".join("${%s}" % name for name in names), package], capture_output=True, text=True
    )
    if text.returncode != 0:
        sys.exit(f"error: {package} is not installed: {text.stderr.strip()}")
    return dict(zip(names, text.stdout.split("\n")))


def debian_package(path):
    for name in (path, path.removeprefix("/usr"), "/usr" + path):  # dpkg may know the file by either of its paths
        found = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.split(": ")[0].split(",")[0].split("\n")[0]
    return None


def license_names(text):
    """Those of the files that are shipped, from Debian's machine-readable form; others are read by people."""
    if not text.startswith("Format:"):
        return []
    names = []
    for paragraph in re.split(r"\n\s*\n", text):
        files = re.match(r"Files:(.*(?:\n .*)*)", paragraph)
        if not files or set(files[1].split()) <= {"debian/*", "doc/*", "docs/*", "test/*", "tests/*"}:
            continue
        license = re.search(r"^License: *(\S.*)$", paragraph, re.MULTILINE)
        if license and license[1].strip() not in names:
            names.append(license[1].strip())
    return names


def from_debian(package, distribution):
    about = fields(package)
    copyright = pathlib.Path("/usr/share/doc", about["Package"], "copyright")
    packed = copyright.with_name("copyright.gz")
    text = gzip.open(packed, "rt").read() if packed.exists() else copyright.read_text(errors="replace")
    # Debian's files name the usual licences by where they lie on a Debian system
    for common in sorted(set(re.findall(r"/usr/share/common-licenses/([A-Za-z]+-?[0-9.]*[0-9]|[A-Za-z]+)", text))):
        file = pathlib.Path("/usr/share/common-licenses", common)
        if file.exists():
            text += f"\n\n--- {common}\n\n{file.read_text()}"
    return {
        "name": about["Package"],
        "version": about["Version"],
        "purl": f"pkg:deb/debian/{about['Package']}@{about['Version'].replace('+', '%2B').replace(':', '%3A')}?arch=amd64&distro={distribution}",
        "homepage": about["Homepage"],
        "licenses": license_names(text),
        "text": text,
    }


def from_wheel(path):
    """The Python wheel that a file of site-packages belongs to."""
    site = next(folder for folder in path.parents if folder.name == "site-packages")
    relative = path.relative_to(site).as_posix()
    for info in site.glob("*.dist-info"):
        if re.search(rf"^{re.escape(relative)},", (info / "RECORD").read_text(), re.MULTILINE):
            about = email.parser.Parser().parsestr((info / "METADATA").read_text())
            texts = sorted(p for p in (info / "licenses").rglob("*") if p.is_file())
            return {
                "name": about["Name"],
                "version": about["Version"],
                "purl": f"pkg:pypi/{about['Name'].lower()}@{about['Version']}",
                "homepage": about["Home-page"],
                "licenses": [about["License-Expression"] or about["License"] or "see the text"],
                "text": "\n\n".join(f"--- {p.name}\n\n{p.read_text(errors='replace')}" for p in texts),
            }
    sys.exit(f"error: no wheel in {site} has {relative}")


def component(about, files, tree):
    entry = {"type": "library", "bom-ref": about["purl"], "name": about["name"], "version": about["version"], "purl": about["purl"]}
    if about["licenses"]:
        entry["licenses"] = [{"license": {"name": name}} for name in about["licenses"]]
    if about["homepage"]:
        entry["externalReferences"] = [{"type": "website", "url": about["homepage"]}]
    if files:
        entry["components"] = [
            {
                "type": "file",
                "bom-ref": f"lib/{name}",
                "name": f"lib/{name}",
                "hashes": [{"alg": "SHA-256", "content": hashlib.sha256((tree / "lib" / name).read_bytes()).hexdigest()}],
            }
            for name in sorted(files)
        ]
    return entry


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("origins", type=pathlib.Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--torch", required=True)
    options = parser.parse_args()
    tree = options.tree
    system = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', pathlib.Path("/etc/os-release").read_text(), re.MULTILINE))
    distribution = f"{system['ID']}-{system.get('VERSION_ID', 'unstable')}"

    packages, unknown = {}, []
    for line in options.origins.read_text().splitlines():
        name, path = line.split("\t")
        if "/site-packages/" in path:
            about = from_wheel(pathlib.Path(path))
        else:
            package = debian_package(path)
            if package is None:
                unknown.append(f"{name} ({path})")
                continue
            about = from_debian(package, distribution)
        packages.setdefault(about["name"], (about, []))[1].append(name)
    if unknown:
        sys.exit(f"error: no Debian package and no wheel has these libraries, so their licences are not known: {', '.join(unknown)}")
    for package, program in COMPILED_IN.items():
        if not (tree / "bin" / program).exists():
            continue
        about = from_debian(package, distribution)
        packages.setdefault(about["name"], (about, []))

    folder = tree / "share/cytra/licenses"
    folder.mkdir(parents=True, exist_ok=True)
    for name, (about, _) in packages.items():
        (folder / f"{name}.txt").write_text(about["text"])
    torch = f"pkg:pypi/torch@{options.torch}"
    cytra = f"pkg:pypi/cytra@{options.version}"
    components = [component(about, files, tree) for _, (about, files) in sorted(packages.items())]
    components.append(
        {"type": "library", "bom-ref": torch, "name": "torch", "version": options.torch, "purl": torch, "scope": "required",
         "description": "Not included: installed beside", "licenses": [{"license": {"id": "BSD-3-Clause"}}]}
    )  # fmt: skip
    content = json.dumps(components, sort_keys=True)
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, cytra + content)}",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "bom-ref": cytra, "name": "cytra", "version": options.version, "purl": cytra,
                          "licenses": [{"license": {"id": "Apache-2.0"}}]}
        },
        "components": components,
        "dependencies": [{"ref": cytra, "dependsOn": [c["bom-ref"] for c in components]}],
    }  # fmt: skip
    (tree / "share/cytra/cytra.cdx.json").write_text(json.dumps(bom, indent=1) + "\n")
    lines = [(name, about["version"], ", ".join(about["licenses"]) or "see its text") for name, (about, _) in sorted(packages.items())]
    lines.append(("torch", options.torch, "BSD-3-Clause (installed beside)"))
    widths = [max(len(line[column]) for line in lines) for column in (0, 1)]
    (tree / "share/cytra/licenses.txt").write_text("".join(f"{name:{widths[0]}}  {version:{widths[1]}}  {words}\n" for name, version, words in lines))


if __name__ == "__main__":
    main()
