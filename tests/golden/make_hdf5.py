#!/usr/bin/env python3
"""make_hdf5.py [REAL_FOLDER]: writes tests/golden/hdf5/, small HDF5 files as h5py writes them, and cases.json with what each
holds as C, Z, Y, X. REAL_FOLDER holds PlantSeg's files; they are not copied, only what is in them is noted.

Needs h5py.
"""
import json
import shutil
import sys
import zlib
from pathlib import Path

import h5py
import numpy as np

FOLDER = Path(__file__).parent / "hdf5"
cases = []


def values(dtype, shape):
    grid = np.indices(shape)
    return (sum(w * g for w, g in zip([149, 97, 31, 7, 3][-len(shape):], grid)) % 251).astype(dtype)


def case(name, array, spacing=None, **more):
    array = np.ascontiguousarray(array)
    array = array.astype({"int64": "i4", "uint64": "u4", "float16": "f4", "bool": "u1"}.get(array.dtype.name, array.dtype))
    array = array.astype(array.dtype.newbyteorder("<"))
    entry = {"file": name, "dtype": array.dtype.name, "shape": array.shape, "crc32": zlib.crc32(array.tobytes())}
    if spacing is not None:
        entry["spacing_um"] = list(spacing)
    cases.append({**entry, **more})


def czyx(array, axes):
    for axis in "tczyx":
        if axis not in axes:
            array, axes = array[None], axis + axes
    return array.transpose([axes.index(a) for a in "tczyx"])


def axistags(axes):
    return json.dumps({"axes": [{"key": a, "typeFlags": 2, "resolution": 0, "description": ""} for a in axes]})


def versions():
    """Files of newer versions of the format, and behind a user block."""
    array = values("u2", (9, 8, 3))
    for name, libver, order in [("v108", "v108", False), ("v110_ordered", "v110", True)]:
        with h5py.File(FOLDER / f"{name}.h5", "w", libver=(libver, libver), track_order=order) as file:
            data = file.create_dataset("raw", data=array, chunks=(4, 4, 3), compression="gzip", track_order=order)
            data.attrs["element_size_um"] = [0.5, 0.25, 0.125]
            data.attrs["note"] = "a" * 1000
            data.attrs["axistags"] = axistags("yxc")
        case(f"{name}.h5", czyx(array, "yxc")[0], [0.5, 0.25, 0.125])
    for block in (512, 2048):
        with h5py.File(FOLDER / f"user_block_{block}.h5", "w", userblock_size=block) as file:
            data = file.create_dataset("raw", data=array, chunks=(4, 4, 3), compression="gzip")
            data.attrs["axistags"] = axistags("yxc")
            file.create_dataset("volume/plain", data=values("u1", (3, 9, 8)))
        for place, found in (("raw", czyx(array, "yxc")[0]), ("volume/plain", values("u1", (3, 9, 8))[None])):
            case(f"user_block_{block}.h5/{place}", found)
    # Not read by libraries of those years; and attributes that do not lie in the object's header
    with h5py.File(FOLDER / "latest.h5", "w", libver="latest") as file:
        file.create_dataset("raw", data=array, chunks=(4, 4, 3), compression="gzip")
    with h5py.File(FOLDER / "attributes.h5", "w", libver=("v108", "v108")) as file:
        data = file.create_dataset("raw", data=array)
        for i in range(12):
            data.attrs[f"a{i}"] = i
        data.attrs["axistags"] = axistags("yxc")


def matlab():
    """Files of MATLAB's -v7.3: behind a block that begins with its name, axes reversed, numbers and texts as arrays."""
    def write(name, arrays):
        with h5py.File(FOLDER / name, "w", userblock_size=512) as file:
            for key, (array, kind) in arrays.items():
                data = file.create_dataset(key, data=array.T, **({"chunks": True, "compression": "gzip"} if array.size > 9 else {}))
                data.attrs["MATLAB_class"] = np.bytes_(kind)
        with open(FOLDER / name, "r+b") as file:
            file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(116) + bytes(8) + b"\0\2IM")

    # In MATLAB's order: Y, X; Y, X, Z; Y, X, C. What is beside it in the file is no image.
    beside = {"spacing": (np.array([[0.5]]), "double"), "unit": (np.array([[117, 109]], "u2"), "char"),
              "#refs#/a": (values("u1", (9, 8)), "uint8")}
    plane, volume, colour = values("f8", (9, 8)), values("u2", (9, 8, 4)), values("u1", (9, 8, 3))
    mask = (values("u1", (9, 8)) > 120).astype("u1")
    write("plane.mat", {"img": (plane, "double"), **beside})
    write("volume.mat", {"stack": (volume, "uint16"), **beside})
    write("colour.mat", {"rgb": (colour, "uint8")})
    write("several.mat", {"img": (plane, "double"), "mask": (mask, "logical"), "s/volume": (volume, "uint16")})
    for name, array in (("plane.mat", plane[None, None]), ("volume.mat", volume.transpose(2, 0, 1)[None]),
                        ("colour.mat", colour.transpose(2, 0, 1)[:, None]), ("several.mat/img", plane[None, None]),
                        ("several.mat/mask", mask[None, None]), ("several.mat/s/volume", volume.transpose(2, 0, 1)[None])):
        case(name, array)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for dtype in ("u1", "i1", "<u2", ">u2", "<i2", ">i2", "<u4", ">i4", "<i8", ">u8", "<f2", "<f4", ">f4", "<f8", ">f8", "?"):
        short = np.dtype(dtype).name + ("_big" if dtype[0] == ">" else "")
        array = values(dtype, (3, 11, 13))
        with h5py.File(FOLDER / f"{short}.h5", "w") as file:
            options = {"chunks": (2, 4, 5), "compression": "gzip", "shuffle": True} if dtype[0] != ">" else {}
            file.create_dataset("volume/data", data=array, **options)
        case(f"{short}.h5", array[None])
    with h5py.File(FOLDER / "sets.hdf5", "w") as file:
        plane, volume, colour = values("u1", (9, 8)), values("u2", (4, 9, 8)), values("u1", (2, 4, 9, 8))
        file.create_dataset("plane", data=plane, chunks=(4, 4), fletcher32=True)
        file.create_dataset("raw", data=volume, chunks=(3, 9, 5), shuffle=True, fletcher32=True, compression=9)
        file["raw"].attrs["element_size_um"] = [0.5, 0.25, 0.125]
        file.create_dataset("a/colour", data=colour, chunks=(2, 1, 5, 8), compression=1)
        file.create_dataset("scalar", data=3)
        file.create_dataset("list", data=[1, 2, 3])
        sparse = file.create_dataset("sparse", (6, 40, 40), "i2", chunks=(2, 16, 16), fillvalue=-7)
        sparse[2:4, 20:30, :10] = 5
        file["soft"] = h5py.SoftLink("/a/colour")
        file["outside"] = h5py.ExternalLink("u1.h5", "/volume/data")
        file.create_dataset("lzf", data=volume, compression="lzf")
        layout = h5py.VirtualLayout((9, 8), "u1")
        layout[:] = h5py.VirtualSource("other.h5", "plane", (9, 8))
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("external", (9, 8), "u1", external=[("/etc/passwd", 0, 72)])
        for name, array in [("plane", plane[None, None]), ("raw", volume[None]), ("a/colour", colour), ("soft", colour),
                            ("sparse", sparse[:][None])]:
            case(f"sets.hdf5/{name}", array, [0.5, 0.25, 0.125] if name == "raw" else None)
    for axes in ("tzyxc", "tczyx", "yxc", "zyxc", "xyz"):
        sizes = {"t": 2, "c": 3, "z": 4, "y": 9, "x": 8}
        array = values("u2", [sizes[a] for a in axes])
        with h5py.File(FOLDER / f"ilastik_{axes}.h5", "w") as file:
            data = file.create_dataset("exported_data", data=array, chunks=tuple(max(1, sizes[a] // 2) for a in axes))
            data.attrs["axistags"] = axistags(axes)
        whole = czyx(array, axes)
        for t in range(len(whole)):
            case(f"ilastik_{axes}.h5", whole[t], **({"timepoint": t, "timepoints": 2} if len(whole) > 1 else {}))
    versions()
    matlab()
    if len(sys.argv) > 1:
        for path in sorted(Path(sys.argv[1]).rglob("*.h5")):
            with h5py.File(path) as file:
                for name in file:
                    array = file[name][:]
                    spacing = file[name].attrs.get("element_size_um")
                    case(f"{path.relative_to(sys.argv[1])}/{name}", czyx(array, "czyx"[-array.ndim:])[0],
                         None if spacing is None else spacing.tolist(), real=True)
    lines = ",\n".join(json.dumps(entry) for entry in cases)
    (FOLDER / "cases.json").write_text(f"[\n{lines}\n]\n")
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
