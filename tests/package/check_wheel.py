"""check_wheel.py WHEEL REPAIRED: WHEEL's bill of materials fits CycloneDX's schema and names every library inside with a licence that is
there, too; auditwheel found nothing to add in REPAIRED."""

import hashlib
import json
import sys
import zipfile

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator


def libraries(archive):
    return {name for name in archive.namelist() if ".so" in name.rsplit("/")[-1]}


def main(wheel, repaired):
    archive = zipfile.ZipFile(wheel)
    names = archive.namelist()
    (bom_name,) = (name for name in names if name.endswith(".cdx.json"))
    text = archive.read(bom_name).decode()
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    assert problem is None, problem
    bom = json.loads(text)
    files = {}
    for component in bom["components"]:
        if component["name"] == "torch":
            continue
        license = f"{bom_name.split('/')[0]}/licenses/{component['name']}.txt"
        assert license in names and len(archive.read(license)) > 200, license
        files |= {file["name"]: file["hashes"][0]["content"] for file in component.get("components", [])}
    theirs = {n for n in libraries(archive) if "/libcytra" not in n}
    assert {f"cytra_programs/{name}" for name in files} == theirs, theirs.symmetric_difference(f"cytra_programs/{n}" for n in files)
    for name, digest in files.items():
        assert hashlib.sha256(archive.read(f"cytra_programs/{name}")).hexdigest() == digest, name
    more = libraries(zipfile.ZipFile(repaired)) - libraries(archive)
    assert not more, f"auditwheel added {more}"
    print(f"{len(theirs)} libraries of others, {len(bom['components'])} components")


main(*sys.argv[1:])
