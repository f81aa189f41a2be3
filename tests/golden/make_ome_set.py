#!/usr/bin/env python3
"""Writes tests/golden/ome_set/: OME-TIFFs whose planes lie in several files, and cases.json with what tifffile reads of
them as C, Z, Y, X (of a set whose OME-XML is a text of its own, which tifffile does not read: what was written).

Needs tifffile.
"""
import json
import shutil
import zlib
from pathlib import Path

import numpy as np
import tifffile

FOLDER = Path(__file__).parent / "ome_set"
cases = []
HEAD = '<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" UUID="urn:uuid:{uuid}">'


def values(dtype, shape):
    grid = np.indices(shape)
    return (sum(w * g for w, g in zip([149, 97, 31, 7, 3][-len(shape):], grid)) % 251).astype(dtype)


def image(number, shape, order, data, dtype="uint16", samples=1):
    t, c, z, y, x = shape
    channels = "".join(f'<Channel ID="Channel:{number}:{i}" Name="c{i}" SamplesPerPixel="{samples}"/>' for i in range(c // samples))
    blocks = "".join(f'<TiffData FirstT="{ft}" FirstC="{fc}" FirstZ="{fz}" IFD="{ifd}" PlaneCount="{count}">'
                     f'<UUID FileName="{name}">urn:uuid:{name}</UUID></TiffData>' for ft, fc, fz, ifd, count, name in data)
    return (f'<Image ID="Image:{number}"><Pixels ID="Pixels:{number}" DimensionOrder="{order}" Type="{dtype}" SizeT="{t}" SizeC="{c}" '
            f'SizeZ="{z}" SizeY="{y}" SizeX="{x}" PhysicalSizeX="0.5" PhysicalSizeY="0.25" PhysicalSizeZ="2">{channels}{blocks}'
            "</Pixels></Image>")


def write(name, planes, images, **more):
    xml = HEAD.format(uuid=name) + images + "</OME>"
    tifffile.imwrite(FOLDER / name, planes, description=xml, metadata=None, **({"photometric": "minisblack"} | more))


def case(name, array, spacing=(2, 0.25, 0.5), **more):
    array = np.ascontiguousarray(array)
    cases.append({"file": name, "dtype": array.dtype.name, "shape": array.shape, "crc32": zlib.crc32(array.tobytes()),
                  "spacing_um": list(spacing), **more})


def checked(name, array):
    """`array`: T C Z Y X"""
    with tifffile.TiffFile(FOLDER / name) as file:
        series = file.series[0]
        read, axes = series.asarray(), series.axes.replace("S", "C")
    for axis in "TCZYX":
        if axis not in axes:
            read, axes = read[None], axis + axes
    assert (read.transpose([axes.index(a) for a in "TCZYX"]) == array).all(), name
    for t in range(len(array)):
        case(name, array[t], **({"timepoint": t, "timepoints": len(array)} if len(array) > 1 else {}))


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    # Two channels and two times, each in a file; planes of one in the opposite order of channels and planes
    array = values("u2", (2, 2, 3, 9, 8))
    data = [(t, c, 0, 0, 3, f"split_t{t}_c{c}.ome.tif") for t in range(2) for c in range(2)]
    for t, c, _, _, _, name in data:
        write(name, array[t, c], image(0, array.shape, "XYZCT", data))
    for name in ("split_t0_c0.ome.tif", "split_t1_c1.ome.tif"):
        checked(name, array)
    # Planes one by one, in turns in two files, tiles
    array = values("u1", (1, 1, 5, 40, 33))
    data = [(0, 0, z, z // 2, 1, f"turns_{z % 2}.ome.tif") for z in range(5)]
    for i in range(2):
        write(f"turns_{i}.ome.tif", array[0, 0, i::2], image(0, array.shape, "XYCZT", data, "uint8"), tile=(16, 16), compression="zlib")
    checked("turns_0.ome.tif", array)
    # RGB
    array = values("u1", (1, 3, 2, 9, 8))
    data = [(0, 0, z, 0, 1, f"rgb_{z}.ome.tif") for z in range(2)]
    for z in range(2):
        write(f"rgb_{z}.ome.tif", np.moveaxis(array[0, :, z], 0, -1), image(0, array.shape, "XYCZT", data, "uint8", 3), photometric="rgb")
    checked("rgb_0.ome.tif", array)
    # An image in each file; each file names both
    array = values("u2", (2, 2, 9, 8)).reshape(2, 1, 1, 2, 9, 8)
    both = "".join(image(i, array.shape[1:], "XYZCT", [(0, 0, 0, 0, 2, f"scenes_{i}.ome.tif")]) for i in range(2))
    for i in range(2):
        write(f"scenes_{i}.ome.tif", array[i, 0, 0], both)
    for i in range(2):  # the other one's pixels tifffile takes from the file that it was given
        with tifffile.TiffFile(FOLDER / f"scenes_{i}.ome.tif") as file:
            assert (file.series[i].asarray() == array[i, 0, 0]).all() and len(file.series) == 2
    for name, scene, which in [("scenes_0", -1, 0), ("scenes_1", -1, 1), ("scenes_1", 0, 0), ("scenes_0", 1, 1)]:
        case(f"{name}.ome.tif", array[which, 0], scene=scene, scenes=2)
    # The metadata in another TIFF, and in a text
    array = values("u2", (1, 2, 2, 9, 8))
    for master, prefix in (("master.ome.tif", "slave"), ("text.companion.ome", "text")):
        names = [master if prefix == "slave" else f"{prefix}_0.ome.tif", f"{prefix}_1.ome.tif"]
        xml = image(0, array.shape, "XYZCT", [(0, c, 0, 0, 2, names[c]) for c in range(2)])
        only = f'<BinaryOnly MetadataFile="{master}" UUID="urn:uuid:{master}"/>'
        write(names[0], array[0, 0], xml if prefix == "slave" else only)
        write(names[1], array[0, 1], only)
        if prefix == "text":
            (FOLDER / master).write_text(HEAD.format(uuid=master) + xml + "</OME>")
        if prefix == "slave":
            checked(names[0], array)
        case(names[1], array[0])
    lines = ",\n".join(json.dumps(entry) for entry in cases)
    (FOLDER / "cases.json").write_text(f"[\n{lines}\n]\n")
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
