#!/usr/bin/env python3
"""Writes tests/golden/tiff_family/: TIFFs as ImageJ, Zeiss's and MetaMorph's programs lay them out, and cases.json with what
tifffile reads of each, as of make_images.py; `axes` is what the reader is told of them.

Needs numpy, tifffile and imagecodecs. tests/io/tiff/family_test.cpp reads them.
"""
import json
import struct
import zlib
from pathlib import Path

import numpy as np
import tifffile

FOLDER = Path(__file__).parent / "tiff_family"
cases = []


def values(dtype, t=1, z=1, c=1, y=5, x=7, s=1):
    """Differs along every axis; T, Z, C, Y, X, S."""
    t, z, c, y, x, s = np.ogrid[:t, :z, :c, :y, :x, :s]
    return ((149 * t + 31 * z + 97 * c + 7 * y + 3 * x + 61 * s) % 251).astype(dtype)


def case(name, tczyx, spacing=None, axes=None, scene=0, scenes=1, level=0, levels=1):
    """An entry for each time point."""
    count = tczyx.shape[0]
    for t in range(count):
        array = np.ascontiguousarray(tczyx[t])
        array = array.astype(array.dtype.newbyteorder("<"))
        entry = {"file": name, "dtype": array.dtype.name, "shape": array.shape, "crc32": zlib.crc32(array.tobytes())}
        optional = {"timepoint": t if count > 1 else None, "timepoints": count if count > 1 else None, "spacing_um": spacing,
                    "axes": axes, "scene": scene or None, "scenes": scenes if scenes > 1 else None,
                    "level": level or None, "levels": levels if levels > 1 else None}
        entry.update({k: v for k, v in optional.items() if v is not None})
        cases.append(entry)


def to_tczyx(array, axes):
    """Samples (S) are the fastest channels."""
    order = [a for a in "TZCYXS" if a in axes]
    array = array.transpose([axes.index(a) for a in order])
    for i, a in enumerate("TZCYXS"):
        if a not in axes:
            array = np.expand_dims(array, i)
    t, z, c, y, x, s = array.shape
    return array.transpose(0, 2, 5, 1, 3, 4).reshape(t, c * s, z, y, x)


def read(name, series=0, **names):
    """What tifffile reads; `names` of its axes that mean another one to us."""
    with tifffile.TiffFile(FOLDER / name) as file:
        one = file.series[series]
        axes = "".join(names.get(a, a) for a in one.axes)
        return to_tczyx(one.asarray(), axes)


def imagej():
    sizes = {"T": 3, "Z": 4, "C": 2, "Y": 5, "X": 7, "S": 3}
    for axes in ("YX", "TYX", "ZYX", "CYX", "TZYX", "TCYX", "ZCYX", "YXS", "ZYXS", "TYXS", "TZYXS"):
        dtype = "u1" if "S" in axes else {"T": "f4", "Z": "u2", "C": "u1", "Y": "u2"}[axes[0]]
        shape = {a.lower(): sizes[a] if a in axes else 1 for a in "TZCYXS"}
        array = values(dtype, **shape).reshape([sizes[a] for a in axes])
        for name, options in ((f"imagej_{axes}.tif", {}), (f"imagej_{axes}_little.tif", {"byteorder": "<", "compression": "zlib"}),
                              (f"imagej_{axes}_virtual.tif", {"truncate": True})):
            if array.ndim == 2 + ("S" in axes) and "truncate" in options:
                continue
            tifffile.imwrite(FOLDER / name, array, imagej=True, metadata={"axes": axes}, **options)
            case(name, read(name))

    # What a composite of three channels looks like that has them in one page, and RGB over time.
    contig = values("u2", s=3)[0, 0, 0]
    for name, description, array, planar in (
            ("composite_contig.tif", "images=3\nchannels=3\nmode=composite\n", contig, "contig"),
            ("composite_contig_1.tif", "images=1\nchannels=3\nmode=composite\n", contig, "contig"),
            ("composite_planar.tif", "images=3\nchannels=3\nmode=composite\n", contig.transpose(2, 0, 1), "separate")):
        tifffile.imwrite(FOLDER / name, array, photometric="minisblack", planarconfig=planar, metadata=None,
                         description="ImageJ=1.54f\n" + description)
        case(name, to_tczyx(contig, "YXS"))
    frames = values("u1", t=2, s=3)[:, 0, 0]
    name = "composite_frames.tif"
    with tifffile.TiffWriter(FOLDER / name) as writer:
        for i, frame in enumerate(frames):
            writer.write(frame, photometric="rgb", metadata=None, contiguous=False,
                         description="ImageJ=1.54f\nimages=2\nchannels=3\nframes=2\n" if i == 0 else None)
    case(name, to_tczyx(frames, "TYXS"))
    plane = values("u1")[0, 0, 0, ..., 0]
    colors = np.arange(768, dtype="u2").reshape(3, 256) * 85
    tifffile.imwrite(FOLDER / "imagej_palette.tif", plane, photometric="palette", colormap=colors, metadata=None,
                     description="ImageJ=1.54f\nmode=color\n")
    case("imagej_palette.tif", read("imagej_palette.tif"))
    order = values("u1", t=2, z=3, c=2).reshape(2, 3, 2, 5, 7)  # pages T, C, Z
    tifffile.imwrite(FOLDER / "imagej_order.tif", order.swapaxes(1, 2), metadata=None, photometric="minisblack",
                     description="ImageJ=1.54f\nimages=12\nchannels=2\nslices=3\nframes=2\norder=zct\n")
    case("imagej_order.tif", read("imagej_order.tif"))
    for unit, um in (("inch", 25400), ("cm", 10000), ("\\u00B5m", 1), ("pixel", 0)):
        name = f"imagej_unit_{unit.strip(chr(92))}.tif"
        tifffile.imwrite(FOLDER / name, values("u1", z=2)[0, :, 0, ..., 0], imagej=True, resolution=(4, 2),
                         metadata={"axes": "ZYX", "spacing": 3, "unit": unit})
        case(name, read(name), spacing=[3 * um, um / 2, um / 4])


def axes():
    """Told by the reader's user."""
    array = values("u1", t=4, c=3)[:, 0, ..., 0]  # 4 and 3 pages
    tifffile.imwrite(FOLDER / "unnamed_3.tif", array[:, 0])  # tifffile: QYX
    case("unnamed_3.tif", read("unnamed_3.tif", Q="Z"))
    case("unnamed_3.tif", read("unnamed_3.tif", Q="T"), axes="TYX")
    case("unnamed_3.tif", read("unnamed_3.tif", Q="C"), axes="CYX")
    tifffile.imwrite(FOLDER / "unnamed_4.tif", array, photometric="minisblack")  # QQYX
    pages = to_tczyx(array, "TCYX")
    case("unnamed_4.tif", pages.transpose(2, 0, 1, 3, 4))  # taken as C, Z
    case("unnamed_4.tif", pages, axes="TCYX")
    case("unnamed_4.tif", pages.transpose(0, 2, 1, 3, 4), axes="TZYX")
    case("unnamed_4.tif", pages.transpose(1, 2, 0, 3, 4), axes="ZTYX")
    tifffile.imwrite(FOLDER / "plain.tif", array[:, 0], metadata=None, photometric="minisblack")
    case("plain.tif", read("plain.tif", I="T", Q="T"), axes="TYX")
    imagej = to_tczyx(values("u2", z=4, c=2)[0, ..., 0], "ZCYX")
    case("imagej_ZCYX.tif", imagej.transpose(2, 1, 0, 3, 4), axes="TCYX")  # slices that are frames
    case("imagej_TYX.tif", read("imagej_TYX.tif").transpose(2, 1, 0, 3, 4), axes="ZYX")
    case("imagej_YX.tif", read("imagej_YX.tif"), axes="TYX")
    tifffile.imwrite(FOLDER / "named.ome.tif", values("u1", t=2, z=3, c=2)[..., 0].swapaxes(1, 2), metadata={"axes": "TCZYX"})
    ome = read("named.ome.tif")
    case("named.ome.tif", ome)
    case("named.ome.tif", ome.transpose(2, 1, 0, 3, 4), axes="ZCTYX")
    np.save(FOLDER / "array_3.npy", array[:, 0])
    case("array_3.npy", pages[:, :1], axes="TYX")
    np.save(FOLDER / "array_5.npy", np.asfortranarray(values("u2", t=2, z=3, c=2)[..., 0]))
    case("array_5.npy", to_tczyx(values("u2", t=2, z=3, c=2)[..., 0], "TZCYX"), axes="TZCYX")


def lsm_info(scan, x, y, z, c, t, positions=0):
    info = bytearray(512)
    struct.pack_into("<2I5i", info, 0, 67127628, 512, x, y, z, c, t)
    struct.pack_into("<3d", info, 40, 0.25e-6, 0.5e-6, 1.5e-6)  # metres
    struct.pack_into("<H", info, 88, scan)
    struct.pack_into("<2i", info, 264, positions, 0)
    return bytes(info)


def lsm():
    spacing = [1.5, 0.5, 0.25]
    for name, scan, shape, p in (("stack.lsm", 0, {"z": 3, "c": 3}, 0), ("series.lsm", 3, {"t": 3, "c": 3}, 0),
                                 ("hyper.lsm", 6, {"t": 2, "z": 3, "c": 3}, 0), ("grey.lsm", 6, {"t": 2, "z": 2}, 0),
                                 ("places.lsm", 6, {"t": 4, "z": 2, "c": 3}, 2)):  # 2 positions of 2 time points
        array = values("u2", **shape)[..., 0]
        t, z, c, y, x = array.shape
        info = lsm_info(scan, x, y, z, c, t // max(1, p), p)
        with tifffile.TiffWriter(FOLDER / name, byteorder="<") as writer:
            for i in range(t * z):
                tags = [(34412, 1, len(info), info, True)] if i == 0 else []
                page = array[i // z, i % z]
                writer.write(page if c > 1 else page[0], photometric="minisblack", metadata=None, extratags=tags,
                             planarconfig="separate" if c > 1 else None, subfiletype=0, contiguous=False)
                writer.write(np.full((2, 3, 3), i, "u1"), photometric="rgb", metadata=None, subfiletype=1, contiguous=False)
        if not p:
            case(name, read(name), spacing=spacing)
            continue
        with tifffile.TiffFile(FOLDER / name) as file:
            assert file.series[0].axes == "PTZCYX", file.series[0].axes
            for i, one in enumerate(file.series[0].asarray()):
                case(name, to_tczyx(one, "TZCYX"), spacing=spacing, scene=i, scenes=p)


def stk(name, array, z_distances, times):
    """A MetaMorph stack: one directory in front of the planes; the counts in tags are not those of TIFF's types."""
    planes, y, x = array.shape
    data = array.astype("<u2").tobytes()
    text = b"um\0"
    at = 8 + len(data)
    calibration = struct.pack("<4I", 1, 2, 1, 4)  # y, x: 0.5 and 0.25
    uic1_at = at + len(calibration) + 4 + len(text) + 1
    uic1 = struct.pack("<8I", 3, 1, 4, at + 8, 5, at, 6, at + 16)
    uic2 = b"".join(struct.pack("<6I", *distance, 2450000, time, 0, 0) for distance, time in zip(z_distances, times))
    uic3 = struct.pack("<2I", 500, 1) * planes
    uic2_at = uic1_at + len(uic1)
    uic3_at = uic2_at + len(uic2)
    ifd_at = uic3_at + len(uic3)
    tags = [(256, 4, 1, x), (257, 4, 1, y), (258, 3, 1, 16), (259, 3, 1, 1), (262, 3, 1, 1), (273, 4, 1, 8), (277, 3, 1, 1),
            (278, 4, 1, y), (279, 4, 1, 2 * x * y), (33628, 4, 4, uic1_at), (33629, 5, planes, uic2_at), (33630, 5, planes, uic3_at)]
    ifd = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags) + struct.pack("<I", 0)
    middle = calibration + struct.pack("<I", len(text)) + text + b"\0"
    (FOLDER / name).write_bytes(struct.pack("<2sHI", b"II", 42, ifd_at) + data + middle + uic1 + uic2 + uic3 + ifd)


def metamorph():
    array = values("u2", z=4)[0, :, 0, ..., 0]
    stk("stack.stk", array, [(3, 2)] * 4, [0] * 4)
    case("stack.stk", read("stack.stk"), spacing=[1.5, 0.5, 0.25])
    stk("series.stk", array, [(0, 1)] * 4, [0, 10, 20, 30])
    case("series.stk", read("series.stk"), spacing=[0, 0.5, 0.25])
    stk("unknown.stk", array, [(0, 1)] * 4, [0] * 4)
    case("unknown.stk", read("unknown.stk", I="Z"), spacing=[0, 0.5, 0.25])
    case("unknown.stk", read("unknown.stk", I="T"), spacing=[0, 0.5, 0.25], axes="TYX")
    stk("one.stk", array[:1], [(3, 2)], [0])
    case("one.stk", read("one.stk"), spacing=[1.5, 0.5, 0.25])


def others():
    large = values("u1", y=64, x=48)[0, 0, 0, ..., 0]
    name = "thumbnail.tif"  # a page that is no part of the pyramid lies in it
    with tifffile.TiffWriter(FOLDER / name) as writer:
        write = lambda array, **more: writer.write(array, photometric="minisblack", metadata=None, contiguous=False, **more)
        write(large, tile=(16, 16))
        write(large[:11, :12])
        write(large[::2, ::2], tile=(16, 16), subfiletype=1)
        write(large[::4, ::4], tile=(16, 16), subfiletype=1)
    for level in range(3):
        case(name, large[None, None, None, ::2**level, ::2**level], level=level, levels=3, scenes=2)
    tiles = [large[:16, :16].tobytes(), b"", large[16:32, :16].tobytes(), b""]
    tifffile.imwrite(FOLDER / "sparse.tif", iter(tiles), shape=(32, 32), dtype="u1", tile=(16, 16), metadata=None,
                     photometric="minisblack")
    case("sparse.tif", read("sparse.tif"))
    cmyk = values("u1", s=4)[0, 0, 0]
    tifffile.imwrite(FOLDER / "cmyk.tif", cmyk, photometric="separated", metadata=None)
    case("cmyk.tif", read("cmyk.tif"))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for make in (imagej, axes, lsm, metamorph, others):
        make()
    text = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in cases)
    (FOLDER / "cases.json").write_text(f"[\n{text}\n]\n", encoding="utf-8")
