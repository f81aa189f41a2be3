#!/usr/bin/env python3
"""Writes tests/golden/nrrd_metaimage/: small NRRD and MetaImage files as SimpleITK and pynrrd write them, and by hand what
these don't, and cases.json with what SimpleITK reads: the type, the sizes, the spacing, the affine to right, anterior,
superior, and the CRC-32 of the values as C, Z, Y, X in little-endian bytes.

Needs numpy, SimpleITK and pynrrd. tests/io/nrrd_test.cpp and metaimage_test.cpp read them.
"""
import gzip
import json
import zlib
from pathlib import Path

import nrrd
import numpy as np
import SimpleITK as sitk

FOLDER = Path(__file__).parent / "nrrd_metaimage"
OBLIQUE = np.array([[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]]) @ np.array([[1, 0, 0], [0, 0.28, -0.96], [0, 0.96, 0.28]])
cases = []


def values(dtype, *shape):
    return (np.arange(np.prod(shape)) * 7 % 251).astype(dtype).reshape(shape)


def affine_of(image, placed):
    """Of SimpleITK's left, posterior, superior; a plane gets 1 mm upwards."""
    count = min(image.GetDimension(), 3)
    full = image.GetDimension()
    direction = np.array(image.GetDirection()).reshape(full, full)[:count, :count]
    spacing, origin = np.array(image.GetSpacing())[:count], np.array(image.GetOrigin())[:count]
    steps, place = np.zeros((3, 3)), np.zeros(3)
    steps[:count, :count], place[:count] = direction * spacing, origin
    flip = np.diag([-1.0, -1, 1])
    steps, place = flip @ steps, flip @ place
    if count == 2:
        up = np.cross(steps[:, 0], steps[:, 1])
        steps[:, 2] = up / np.linalg.norm(up)
    sides = [float(side) * 1000 for side in np.linalg.norm(steps, axis=0)[::-1]]
    if not placed:
        return [0.0 if count == 2 else sides[0], *sides[1:]], None
    return sides, [float(value) + 0.0 for value in np.column_stack([steps, place]).ravel()]


def case(name, placed=True, spacing=True):
    image = sitk.ReadImage(str(FOLDER / name))
    array = sitk.GetArrayFromImage(image)
    dtype = array.dtype.name
    ours = {"int64": "int32", "uint64": "uint32"}.get(dtype, dtype)
    dimensions = image.GetDimension()
    array = np.moveaxis(array, -1, dimensions - 3 if dimensions == 4 else 0) if image.GetNumberOfComponentsPerPixel() > 1 \
        else np.expand_dims(array, dimensions - 3 if dimensions == 4 else 0)
    frames = array if dimensions == 4 else array[None] if dimensions == 3 else array[None, :, None]
    sides, affine = affine_of(image, placed)
    for timepoint, frame in enumerate(frames):
        frame = np.ascontiguousarray(frame.astype(np.dtype(ours).newbyteorder("<")))
        entry = {"file": name, "dtype": ours, "shape": frame.shape, "crc32": zlib.crc32(frame.tobytes()),
                 "spacing_um": sides if spacing else [0, 0, 0]}
        if affine:
            entry["affine"] = affine
        if len(frames) > 1:
            entry.update(timepoint=timepoint, timepoints=len(frames))
        cases.append(entry)


def place(image, direction=None):
    count = image.GetDimension()
    image.SetSpacing((0.5, 0.625, 2.5, 1)[:count])
    image.SetOrigin((10, -20.5, 30, 0)[:count])
    if direction is not None:
        image.SetDirection(np.asarray(direction).ravel().tolist())
    return image


def write(image, name, compressed=False):
    sitk.WriteImage(image, str(FOLDER / name), compressed)
    case(name)


def by_itk(ending, packed, header):
    for dtype in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"):
        write(place(sitk.GetImageFromArray(values(dtype, 2, 3, 4))), f"{dtype}.{ending}")
    write(place(sitk.GetImageFromArray(values("u2", 5, 6))), f"plane.{ending}", packed)
    write(place(sitk.GetImageFromArray(values("u2", 5, 6)), [0, -1, 1, 0]), f"turned.{ending}")
    write(place(sitk.GetImageFromArray(values("i2", 3, 4, 5)), OBLIQUE), f"oblique.{ending}", True)
    write(place(sitk.GetImageFromArray(values("u1", 4, 5, 3), isVector=True)), f"rgb.{ending}")
    write(place(sitk.GetImageFromArray(values("f4", 2, 4, 5, 2), isVector=True), OBLIQUE), f"channels.{ending}", True)
    write(place(sitk.GetImageFromArray(values("u2", 3, 2, 4, 5), isVector=False)), f"time.{ending}")
    write(place(sitk.GetImageFromArray(values("u2", 3, 2, 4, 5), isVector=False)), f"time_packed.{ending}", True)
    write(place(sitk.GetImageFromArray(values("i2", 2, 4, 5)), OBLIQUE), f"detached.{header}")
    write(place(sitk.GetImageFromArray(values("u1", 2, 4, 5)), OBLIQUE), f"detached_packed.{header}", True)


def by_hand(name, header, data=b"", placed=False, spacing=True, end="\n"):
    (FOLDER / name).write_bytes(header.encode() + end.encode() + data)
    case(name, placed, spacing)


def by_pynrrd():
    data = values("i2", 5, 4, 3)  # x, y, z
    header = {"space": "right-anterior-superior", "space directions": (OBLIQUE * [0.5, 0.625, 2.5]).T, "space origin": [1, 2, 3],
              "kinds": ["domain"] * 3}
    for encoding in ("raw", "gzip", "ascii"):
        nrrd.write(str(FOLDER / f"py_{encoding}.nrrd"), data, {**header, "encoding": encoding})
        case(f"py_{encoding}.nrrd")
    nrrd.write(str(FOLDER / "py_las.nrrd"), data, {**header, "space": "left-anterior-superior"})
    case("py_las.nrrd")
    nrrd.write(str(FOLDER / "py_big.nrrd"), data.astype(">i2"), {**header, "endian": "big", "encoding": "raw"})
    case("py_big.nrrd")
    nrrd.write(str(FOLDER / "py_spacings.nrrd"), data, {"spacings": [0.5, 0.25, 2]})
    case("py_spacings.nrrd", placed=False)
    nrrd.write(str(FOLDER / "py_bare.nrrd"), values("u1", 6, 5))
    case("py_bare.nrrd", placed=False, spacing=False)
    nrrd.write(str(FOLDER / "py_detached.nhdr"), data, {**header, "encoding": "gzip"})
    case("py_detached.nhdr")


def nrrd_by_hand():
    slices, start = values("u2", 3, 4, 5), "NRRD0005\n# by hand\ntype: unsigned short\ndimension: 3\nsizes: 5 4 3\nendian: little\n"
    for z, one in enumerate(slices):
        (FOLDER / f"slice{z:02}.raw").write_bytes(one.tobytes())
    by_hand("pattern.nhdr", start + "spacings: 1 1 2\nencoding: raw\ndata file: slice%02d.raw 0 2 1\n")
    by_hand("list.nhdr", start + "spacings: 1 1 2\nencoding: raw\ndata file: LIST\n", b"slice02.raw\nslice01.raw\nslice00.raw\n", end="")
    (FOLDER / "skipped.raw").write_bytes(b"line one\nline two\nxyz" + slices.tobytes())
    by_hand("skip.nhdr", start + "encoding: raw\nline skip: 2\nbyte skip: 3\ndata file: ./skipped.raw\n", spacing=False)
    by_hand("at_end.nhdr", start + "encoding: raw\nbyte skip: -1\ndatafile: skipped.raw\n", spacing=False)
    by_hand("last.nrrd", start.replace("5 4 3", "5 4 3") + "kinds: domain domain vector\nencoding: gzip\nkey:=value: other\n",
            gzip.compress(slices.tobytes(), mtime=0), spacing=False)


def meta_by_hand():
    start = "ObjectType = Image\nNDims = 3\nDimSize = 5 4 3\n"
    slices = values("u2", 3, 4, 5)
    kind = "ElementSpacing = 1 1 2\nElementType = MET_USHORT\n"
    by_hand("pattern.mhd", start + kind + "ElementDataFile = slice%02d.raw 0 2 1")
    by_hand("list.mhd", start + kind + "ElementDataFile = LIST\nslice02.raw\nslice01.raw\nslice00.raw")
    by_hand("at_end.mhd", start + kind + "HeaderSize = -1\nElementDataFile = skipped.raw")
    by_hand("text.mha", start + kind + "BinaryData = False\nElementDataFile = LOCAL",
            " ".join(map(str, slices.ravel())).encode() + b"\n")
    by_hand("big.mha", start + kind + "ElementByteOrderMSB = True\nElementDataFile = LOCAL", slices.astype(">u2").tobytes())
    by_hand("bare.mha", "NDims = 2\nDimSize = 5 4\nElementType = MET_UCHAR\nElementDataFile = LOCAL", values("u1", 4, 5).tobytes(),
            spacing=False)
    by_hand("size.mha", "Comment = by hand\n" + start + "ElementSize = 1 2 3\nElementType = MET_LONG\nElementDataFile = LOCAL",
            values("i4", 3, 4, 5).tobytes())


def main():
    FOLDER.mkdir(exist_ok=True)
    by_itk("nrrd", True, "nhdr")
    by_itk("mha", True, "mhd")
    by_pynrrd()
    nrrd_by_hand()
    meta_by_hand()
    (FOLDER / "cases.json").write_text("[\n" + ",\n".join(json.dumps(entry) for entry in cases) + "\n]\n")


if __name__ == "__main__":
    main()
