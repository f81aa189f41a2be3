#!/usr/bin/env python3
"""Writes tests/golden/images/: small images of every format as other programs write them, and cases.json with what each
holds: the type, the sizes, the spacing, and the CRC-32 of the values as C, Z, Y, X in little-endian bytes.

Needs numpy, tifffile, imagecodecs, nibabel and Pillow. tests/io/images_test.cpp reads them.
"""
import itertools
import json
import struct
import zlib
from pathlib import Path

import imagecodecs
import nibabel
import numpy as np
import tifffile
from PIL import Image

FOLDER = Path(__file__).parent / "images"
cases = []


def values(dtype, t=1, c=1, z=1, y=12, x=17):
    """Differs along every axis; T, C, Z, Y, X."""
    t, c, z, y, x = np.ogrid[:t, :c, :z, :y, :x]
    return ((149 * t + 97 * c + 31 * z + 7 * y + 3 * x) % 251).astype(dtype)


def case(name, array, spacing=None, affine=None, scene=0, level=0, timepoint=-1, channels=(), scenes=1, levels=1, timepoints=1,
         names=()):
    """`array`: C, Z, Y, X."""
    array = np.ascontiguousarray(array)
    array = array.astype(array.dtype.newbyteorder("<"))
    assert array.ndim == 4, (name, array.shape)
    entry = {"file": name, "dtype": array.dtype.name, "shape": array.shape, "crc32": zlib.crc32(array.tobytes())}
    optional = {"spacing_um": spacing, "affine": affine, "scene": scene, "level": level, "timepoint": timepoint,
                "channels": list(channels), "scenes": scenes, "levels": levels, "timepoints": timepoints, "names": list(names)}
    defaults = {"scene": 0, "level": 0, "timepoint": -1, "scenes": 1, "levels": 1, "timepoints": 1}
    entry.update({k: v for k, v in optional.items() if v is not None and v != [] and defaults.get(k) != v})
    cases.append(entry)


def over_time(name, array, **more):
    for t in range(array.shape[0]):
        case(name, array[t], timepoint=t, timepoints=array.shape[0], **more)


def tiff(name, array, **options):
    tifffile.imwrite(FOLDER / name, array, **{"photometric": "minisblack", **options})


def make_tiff():
    five = values("u1", 2, 2, 3, 5, 7)  # T C Z Y X
    for order in itertools.permutations("TCZ"):
        axes = "".join(order)
        name = f"ome_{axes}.ome.tif"
        tiff(name, five.transpose(["TCZ".index(a) for a in axes] + [3, 4]), metadata={"axes": axes + "YX"}, compression="zlib")
        over_time(name, five)
    over_time("imagej_TZCYX.tif", five)
    tiff("imagej_TZCYX.tif", five.swapaxes(1, 2), imagej=True)
    over_time("shaped_TZCYX.tif", five)
    tiff("shaped_TZCYX.tif", five.swapaxes(1, 2), metadata={"axes": "TZCYX"}, compression="zlib")
    tiff("truncated_CZYX.tif", five[1], metadata={"axes": "CZYX"}, truncate=True)
    case("truncated_CZYX.tif", five[1])
    case("truncated_CZYX.tif", five[1][[1]], channels=[1])
    tiff("truncated_big_endian_f4.tif", five[0].astype("f4"), metadata={"axes": "CZYX"}, truncate=True, byteorder=">")
    case("truncated_big_endian_f4.tif", five[0].astype("f4"))

    large = values("u2", 2, 2, 1, 45, 62)
    name = "pyramid.ome.tif"
    with tifffile.TiffWriter(FOLDER / name, ome=True) as writer:
        writer.write(large[:, :, 0], subifds=2, tile=(16, 16), compression="zlib", predictor=True,
                     metadata={"axes": "TCYX", "PhysicalSizeX": 0.5, "PhysicalSizeY": 0.5})
        for step in (2, 4):
            writer.write(large[:, :, 0, ::step, ::step], subfiletype=1, tile=(16, 16), compression="zlib", predictor=True)
    for level, step in enumerate((1, 2, 4)):
        small = large[..., ::step, ::step]
        spacing = [0, 0.5 * 45 / small.shape[3], 0.5 * 62 / small.shape[4]]
        over_time(name, small, level=level, levels=3, spacing=spacing)
    case(name, large[1, [1]], channels=[1], timepoint=1, timepoints=2, levels=3, spacing=[0, 0.5, 0.5])

    name = "scenes.ome.tif"
    scenes = [values("u1", 1, 2, 3, 5, 7)[0], values("i2", 1, 1, 1, 9, 4)[0] - 100, values("f4", 1, 1, 4, 6, 6)[0] / 3]
    with tifffile.TiffWriter(FOLDER / name, ome=True) as writer:
        for i, scene in enumerate(scenes):
            writer.write(scene, photometric="minisblack", metadata={"axes": "CZYX", "Channel": {"Name": [f"{i}{c}" for c in range(len(scene))]}})
    for i, scene in enumerate(scenes):
        case(name, scene, scene=i, scenes=3, names=[f"{i}{c}" for c in range(len(scene))])

    name = "series.tif"
    with tifffile.TiffWriter(FOLDER / name) as writer:
        for scene in scenes:
            writer.write(scene, photometric="minisblack", metadata={"axes": "CZYX"})
    for i, scene in enumerate(scenes):
        case(name, scene, scene=i, scenes=3)

    name = "sizes.tif"  # pages of other sizes, without a description
    with tifffile.TiffWriter(FOLDER / name) as writer:
        for page in (five[0, 0, 0], five[0, 0, 1], large[0, 0, 0, :9, :8], five[0, 0, 2]):
            writer.write(page, metadata=None)
    case(name, five[0, :1], scenes=2)
    case(name, large[0, :1, :, :9, :8], scene=1, scenes=2)

    name = "reduced.tif"  # a pyramid of pages, and one of a stack
    with tifffile.TiffWriter(FOLDER / name) as writer:
        for i, step in enumerate((1, 2, 4)):
            writer.write(large[0, 0, 0, ::step, ::step], metadata=None, subfiletype=i > 0, tile=(16, 16), compression="lzw")
    name = "reduced_stack.tif"
    with tifffile.TiffWriter(FOLDER / name) as writer:
        for step in (1, 2):
            for z in range(3):
                writer.write(five[0, 0, z, ::step, ::step], metadata=None, subfiletype=step > 1)
    for level, step in enumerate((1, 2, 4)):
        case("reduced.tif", large[0, :1, :, ::step, ::step], level=level, levels=3)
    for level, step in enumerate((1, 2)):
        case("reduced_stack.tif", five[0, :1, :, ::step, ::step], level=level, levels=2)

    rgb = values("u1", 1, 3, 2, 18, 21)[0]  # C Z Y X
    tiff("rgb_contig.ome.tif", rgb.transpose(1, 2, 3, 0), photometric="rgb", compression="zlib", predictor=True,
         metadata={"axes": "ZYXS"})
    tiff("rgb_planar.ome.tif", rgb.swapaxes(0, 1), photometric="rgb", planarconfig="separate", tile=(16, 16), compression="lzw",
         metadata={"axes": "ZSYX"})
    for name in ("rgb_contig.ome.tif", "rgb_planar.ome.tif"):
        case(name, rgb)
        case(name, rgb[[2, 0]], channels=[2, 0])

    for dtype, byteorder in itertools.product(("u1", "u2", "u4", "i2", "f4", "f8", "f2", "u8", "i8"), "<>"):
        kind = np.dtype(dtype)
        name = f"{kind.name}_{'little' if byteorder == '<' else 'big'}.tif"
        array = values(dtype, 1, 1, 1, 20, 19)[0]
        if kind.kind == "i":
            array = array - kind.type(100)
        if kind.kind == "f":
            array = array / kind.type(3)
        tiled = {"tile": (16, 16)} if byteorder == ">" else {"rowsperstrip": 6}
        tiff(name, array[0, 0], byteorder=byteorder, compression="zlib", predictor=kind.itemsize < 8 or kind.kind == "f", metadata=None,
             bigtiff=dtype == "u4", **tiled)
        case(name, array.astype({"f2": "f4", "u8": "u4", "i8": "i4"}.get(dtype, dtype)))
    for compression in ("none", "lzw", "zlib", "zstd", "packbits", "lzma"):
        name = f"{compression}.tif"
        tiff(name, rgb[:, 0].transpose(1, 2, 0), compression=compression, tile=(16, 16), metadata=None, photometric="rgb")
        case(name, rgb[:, :1])
    tiff("webp.tif", rgb[:, 0].transpose(1, 2, 0), compression="webp", compressionargs={"lossless": True}, tile=(16, 16),
         metadata=None, photometric="rgb")
    case("webp.tif", tifffile.imread(FOLDER / "webp.tif").transpose(2, 0, 1)[:, None])
    tiff("jpeg.tif", rgb[:, 0].transpose(1, 2, 0), compression="jpeg", tile=(16, 16), metadata=None, photometric="rgb")
    case("jpeg.tif", tifffile.imread(FOLDER / "jpeg.tif").transpose(2, 0, 1)[:, None])
    for bits in (3, 10, 12, 14):
        array = (values("u2", 1, 1, 1, 9, 11)[0] * 37) % 2**bits
        name = f"bits_{bits}.tif"
        tiff(name, array[0, 0].astype("u1" if bits < 8 else "u2"), bitspersample=bits, metadata=None)
        case(name, array.astype("u1" if bits < 8 else "u2"))
    one = values("u1", 1, 1, 1, 9, 21)[0] % 2
    tiff("bits_1.tif", one[0, 0].astype(bool), metadata=None)
    case("bits_1.tif", one)
    Image.fromarray(one[0, 0].astype(bool)).save(FOLDER / "group4.tif", compression="group4")
    case("group4.tif", tifffile.imread(FOLDER / "group4.tif")[None, None].astype("u1"))


def nifti(name, array, affine=None, kind=nibabel.Nifti1Image, dtype=None, byteorder="<", units="mm", slope=None, codes=(1, 1)):
    """`array`: T, C, Z, Y, X."""
    data = array.transpose(4, 3, 2, 0, 1)
    while data.ndim > 2 and data.shape[-1] == 1 and name.startswith("flat"):
        data = data[..., 0]
    header = kind.header_class(endianness=byteorder)
    header.set_data_dtype(array.dtype)
    image = kind(data, np.eye(4) if affine is None else affine, header)
    image.header.set_xyzt_units(units)
    image.set_sform(image.affine if codes[0] else None, codes[0])
    image.set_qform(image.affine if codes[1] else None, codes[1])
    if slope is not None:
        image.header.set_slope_inter(*slope)
        image.header.set_data_dtype(array.dtype)
        with open(FOLDER / name, "wb") as file:  # the stored values as they are
            image.header["vox_offset"] = 352
            image.header["magic"] = b"n+1"
            image.header.write_to(file)
            file.write(b"\0" * (352 - file.tell()))
            file.write(data.astype(array.dtype).tobytes(order="F"))
    else:
        nibabel.save(image, FOLDER / name)
    read = nibabel.load(FOLDER / name)
    scale = {"mm": 1, "micron": 1e-3, "meter": 1e3}[units]
    more = {}
    if any(codes):
        rows = (read.affine[:3] * scale).ravel().tolist()
        more["affine"] = rows
        more["spacing"] = (np.linalg.norm(read.affine[:3, :3], axis=0)[::-1] * 1000 * scale).tolist()
    got = np.asanyarray(read.dataobj)
    got = got.reshape(got.shape + (1,) * (5 - got.ndim)).transpose(3, 4, 2, 1, 0)  # T C Z Y X
    if slope is not None:
        got = got.astype("f4")
    got = got.astype({"i8": "i4", "u8": "u4"}.get(got.dtype.str[1:], got.dtype.str[1:]))
    if got.shape[0] > 1:
        over_time(name, got, **more)
    else:
        case(name, got[0], **more)


def make_nifti():
    oblique = nibabel.affines.from_matvec(nibabel.eulerangles.euler2mat(0.3, -0.5, 2.0) @ np.diag([0.5, 0.75, 2]), [-10, 20, 30.5])
    mirrored = oblique @ np.diag([-1, 1, 1, 1])
    sheared = oblique + np.array([[0, 0.2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    for dtype, byteorder in itertools.product(("u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8", "i8", "u8"), "<>"):
        array = (values("i8", 1, 1, 2, 3, 5) - (100 if dtype[0] in "if" and dtype != "i1" else 0)) // (2 if dtype == "i1" else 1)
        name = f"{np.dtype(dtype).name}_{'little' if byteorder == '<' else 'big'}.nii"
        nifti(name, array.astype(dtype), oblique, byteorder=byteorder, kind=nibabel.Nifti2Image if byteorder == ">" and dtype[1] == "2" else
              nibabel.Nifti1Image)
    small = values("i2", 1, 1, 4, 5, 6)
    nifti("flat2d.nii", values("u1", 1, 1, 1, 7, 9), np.diag([0.5, 0.25, 1, 1]))
    nifti("time.nii.gz", values("u2", 3, 1, 2, 4, 5), oblique)
    nifti("channels.nii.gz", values("f4", 1, 3, 2, 4, 5), mirrored)
    nifti("five.nii", values("u1", 2, 3, 2, 4, 5), sheared, codes=(2, 0))
    nifti("qform.nii", small, mirrored, codes=(0, 1))
    nifti("sform_second.nii", small, sheared, kind=nibabel.Nifti2Image, codes=(3, 0))
    nifti("microns.nii", small, oblique, units="micron")
    nifti("metres.nii", small, oblique, units="meter")
    nifti("scaled_i2.nii", small, oblique, slope=(0.5, -3))
    nifti("scaled_u1_big.nii", small.astype("u1"), oblique, slope=(2.25, 100), byteorder=">")
    nifti("pair.hdr", small, oblique, kind=nibabel.Nifti1Pair)
    nifti("pair2_big.hdr", small, oblique, kind=nibabel.Nifti2Pair, byteorder=">")
    rgb = values("u1", 1, 3, 2, 4, 5)
    data = np.ascontiguousarray(rgb[0].transpose(3, 2, 1, 0)).view([("R", "u1"), ("G", "u1"), ("B", "u1")])[..., 0]
    nibabel.save(nibabel.Nifti1Image(data, oblique), FOLDER / "rgb.nii")
    case("rgb.nii", rgb[0])
    case("rgb.nii", rgb[0, [1]], channels=[1])


def make_npy():
    for dtype in ("u1", "i1", "<u2", ">u2", "<i2", ">i4", "<u4", "<f4", ">f4", "<f8", ">f8", "<f2", ">f2", "<i8", ">u8", "?"):
        array = values("i8", 1, 2, 3, 5, 4)[0]
        array = (array % 2 if dtype == "?" else array // 2).astype(dtype)
        if array.dtype.kind == "f":
            array = (array / 3).astype(dtype)
        kind = array.dtype
        ours = {"float16": "f4", "int64": "i4", "uint64": "u4", "bool": "u1"}.get(kind.name, kind.name)
        for order in "CF":
            name = f"{kind.name}{'_big' if kind.byteorder == '>' else ''}_{order}.npy"
            np.save(FOLDER / name, np.asarray(array, order=order))
            case(name, array.astype(ours))
    array = values("u2", 1, 1, 3, 5, 4)[0]
    for version, (name, stored, shown) in enumerate((("v1_2d.npy", array[0, 0], array[:, :1]), ("v2_3d.npy", array[0], array),
                                                     ("v3_fortran_3d.npy", np.asfortranarray(array[0]), array)), 1):
        with open(FOLDER / name, "wb") as file:
            np.lib.format.write_array(file, stored, version=(version, 0))
        case(name, shown)


def make_jpeg():
    rgb = values("u1", 1, 3, 1, 33, 45)[0, :, 0].transpose(1, 2, 0)
    for name, array, options in (("grey.jpg", rgb[..., 0], {}), ("rgb.jpg", rgb, {"quality": 90}),
                                 ("progressive.jpg", rgb, {"progressive": True}), ("full.jpeg", rgb, {"subsampling": 0})):
        Image.fromarray(array).save(FOLDER / name, **options)
        read = np.asarray(Image.open(FOLDER / name))
        case(name, read[None, None] if read.ndim == 2 else read.transpose(2, 0, 1)[:, None])


def make_cmyk():
    """Refused: what its colours are, a profile says, and Adobe's are inverted."""
    Image.fromarray(values("u1", 1, 4, 1, 16, 24)[0, :, 0].transpose(1, 2, 0).copy(), "CMYK").save(FOLDER / "cmyk.jpg")


def make_jpeg2000():
    for name, array in (("grey.jp2", values("u1", 1, 1, 1, 33, 45)[0]), ("grey16.j2k", values("u2", 1, 1, 1, 33, 45)[0] * 250),
                        ("rgb.jp2", values("u1", 1, 3, 1, 33, 45)[0]), ("rgb16.jp2", values("u2", 1, 3, 1, 33, 45)[0] * 250),
                        ("signed.j2k", values("i2", 1, 1, 1, 33, 45)[0] - 100)):
        data = array[0, 0] if array.shape[0] == 1 else array[:, 0].transpose(1, 2, 0)
        coded = imagecodecs.jpeg2k_encode(np.ascontiguousarray(data), level=0, reversible=True, codecformat=name[-3:])
        (FOLDER / name).write_bytes(coded)
        case(name, array)


def bitmap(bits, width, height, pixels, palette=b"", compression=0, masks=b"", header=40):
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, len(pixels), 0, 0, len(palette) // 4, 0)
    start = 14 + len(info) + len(masks) + len(palette)
    return struct.pack("<2sIHHI", b"BM", start + len(pixels), 0, 0, start) + info + masks + palette + pixels


def make_bmp():
    """As Pillow writes them, and by hand what it does not; read by Pillow."""
    grey = values("u1")[0, 0, 0]
    rgb = np.stack([grey, grey[::-1], 255 - grey], -1)
    Image.fromarray(grey).save(FOLDER / "grey.bmp")
    Image.fromarray(rgb).save(FOLDER / "rgb.bmp")
    Image.fromarray(grey % 2 == 0).save(FOLDER / "bits1.bmp")
    Image.fromarray(rgb).quantize(7).save(FOLDER / "palette.bmp")
    Image.fromarray(np.dstack([rgb, grey])).save(FOLDER / "rgba.bmp")
    two = b"\0\0\0\0" + b"\xff\xff\xff\0" + b"\x80\x80\x80\0" * 14
    files = {
        "bits4.bmp": bitmap(4, 5, 2, bytes.fromhex("0121200011100000"), two),
        "top_down.bmp": bitmap(24, 2, -2, bytes(range(1, 7)) + b"\0\0" + bytes(range(11, 17)) + b"\0\0"),
        "core.bmp": bitmap(1, 9, 2, b"\xa5\x80\0\0\x5a\0\0\0", b"\0\0\0\xff\xff\xff", header=12),
        "bits16.bmp": bitmap(16, 2, 1, struct.pack("<HH", 0x7C1F, 0x03E0)),
        "fields16.bmp": bitmap(16, 2, 1, struct.pack("<HH", 0xF81F, 0x07E0), compression=3, masks=struct.pack("<III", 0xF800, 0x7E0, 0x1F)),
        # runs, pixels as they are, the end of a row, a jump, the end
        "rle8.bmp": bitmap(8, 6, 3, bytes([3, 1, 0, 3, 2, 1, 2, 0, 0, 0, 0, 2, 2, 0, 4, 2, 0, 0, 6, 1, 0, 1]), two, 1),
        "rle4.bmp": bitmap(4, 6, 2, bytes([6, 0x12, 0, 0, 0, 5, 0x12, 0x12, 0x10, 0, 1, 0x20, 0, 1]), two, 2),
    }
    for name, content in files.items():
        (FOLDER / name).write_bytes(content)
    for path in sorted(FOLDER.glob("*.bmp")):
        with Image.open(path) as file:
            image = file.convert("RGB")
        array = np.asarray(image).transpose(2, 0, 1)[:, None]
        is_grey = path.name in ("grey.bmp", "bits1.bmp", "bits4.bmp", "core.bmp", "rle8.bmp", "rle4.bmp")
        case(path.name, array[:1] if is_grey else array)


def make_gif():
    """As Pillow writes them; read by Pillow."""
    grey = values("u1")[0, 0, 0]
    rgb = np.stack([grey, grey[::-1], 255 - grey], -1)
    mask = (grey % 3 == 0).astype(np.uint8)
    noise = np.random.default_rng(5).integers(0, 200, (90, 110), dtype=np.uint8)  # more than 4096 codes
    Image.fromarray(grey).save(FOLDER / "grey.gif")
    Image.fromarray(mask * 255).save(FOLDER / "mask.gif", interlace=False)
    Image.fromarray(mask == 1).save(FOLDER / "bits1.gif", interlace=True)
    Image.fromarray(rgb).quantize(7).save(FOLDER / "palette.gif", interlace=True)
    Image.fromarray(noise).save(FOLDER / "noise.gif", interlace=True)
    for path in sorted(FOLDER.glob("*.gif")):
        with Image.open(path) as file:
            image = file.convert("RGB")
        array = np.asarray(image).transpose(2, 0, 1)[:, None]
        case(path.name, array if path.name == "palette.gif" else array[:1])


def make_webp():
    """As Pillow writes them; read by Pillow. Alpha is dropped."""
    noise = np.random.default_rng(7).integers(0, 256, (37, 45, 4), dtype=np.uint8)
    smooth = np.stack([values("u1", y=37, x=45)[0, 0, 0]] * 3 + [noise[..., 3]], -1)
    for name, array, options in (("lossless.webp", noise[..., :3], {"lossless": True}), ("lossless_alpha.webp", noise, {"lossless": True}),
                                 ("lossy.webp", noise[..., :3], {"quality": 80}), ("lossy_alpha.webp", noise, {"quality": 60}),
                                 ("grey.webp", smooth[..., :3], {"quality": 80})):
        Image.fromarray(array).save(FOLDER / name, **options)
        with Image.open(FOLDER / name) as file:
            case(name, np.asarray(file)[..., :3].transpose(2, 0, 1)[:, None])
    frames = [Image.fromarray(noise[..., i]) for i in range(2)]
    frames[0].save(FOLDER / "animated.webp", save_all=True, append_images=frames[1:])  # refused


def main():
    FOLDER.mkdir(exist_ok=True)
    for make in (make_tiff, make_nifti, make_npy, make_jpeg, make_cmyk, make_jpeg2000, make_bmp, make_gif, make_webp):
        make()
    lines = ",\n".join(json.dumps(entry) for entry in cases)
    (FOLDER / "cases.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
