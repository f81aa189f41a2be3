#!/usr/bin/env python3
"""Folders and tables as labs have them, small, each under three sets of names: `train data.path=FOLDER` decides what they are.

    layouts.py TRAIN_OFTEN [NAME ...]

Each layout of LAYOUTS has what is expected: the experiment that is taken at first try, "LINE" where an error prints a line to type, which is
then run on the same data, or the words of a refusal. TRAINED ones train a step by their first names; others are checked, a quarter of the time.
Prints a table and its sums; a layout that does worse than LAYOUTS says fails the test, and one that does better has to be written down.
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

SIDE, COUNT = 32, 6
NAMES = [  # folders of images and of targets, names of files, where the set lies
    ("images", "masks", "cell_{:02}", ""),
    ("Imgs", "GroundTruth", "Well A{}", "Data/set 1"),
    ("RAW", "my_labels", "2024-05-03_p{:03}_x", "a/b"),
]


def squares(i):
    """Five objects: rows of numbers, 0 for none."""
    rows = [[0] * SIDE for _ in range(SIDE)]
    for k, (y, x) in enumerate([(2, 2), (3, 20), (14, 11), (23, 3), (22, 22)]):
        for dy in range(6):
            for dx in range(6):
                rows[y + dy + i % 3][x + dx - i % 2] = k + 1
    return rows


def grey(i):
    return [[(150 if v else 20) + (7 * y + 13 * x + i) % 30 for x, v in enumerate(row)] for y, row in enumerate(squares(i))]


def mapped(rows, of):
    return [[of(v) for v in row] for row in rows]


def mask(i, value=255):
    return mapped(squares(i), lambda v: value if v else 0)


def classes(i):
    return mapped(squares(i), lambda v: v and v % 2 + 1)


def put(path, data):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def png(path, rows):
    """Numbers are grey, tuples RGB."""
    is_rgb = isinstance(rows[0][0], tuple)
    raw = b"".join(b"\0" + bytes(v for p in row for v in p) if is_rgb else b"\0" + bytes(row) for row in rows)
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2 if is_rgb else 0, 0, 0, 0)
    put(path, b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def tif(path, pages, code="B", text=None):
    """A TIFF of planes, in the type of `struct`."""
    pages = pages if isinstance(pages[0][0], list) else [pages]
    kind = {"B": 1, "H": 1, "I": 1, "b": 2, "h": 2, "f": 3}[code]
    out, links = b"II*\0", []
    for page in pages:
        data = b"".join(struct.pack(f"<{len(row)}{code}", *row) for row in page)
        at, bits = len(out) + 4, struct.calcsize(code) * 8
        tags = [(256, 4, SIDE), (257, 4, SIDE), (258, 3, bits), (259, 3, 1), (262, 3, 1), (273, 4, at), (277, 3, 1), (278, 4, SIDE),
                (279, 4, len(data)), (339, 3, kind)]
        links.append(at + len(data))
        out += struct.pack("<I", links[-1]) + data if len(links) == 1 else b"\0\0\0\0" + data
        out += struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", t, k, 1, v) for t, k, v in tags)
        if len(links) > 1:  # the page before links to this one
            out = out[:links[-2] + 2 + 12 * len(tags)] + struct.pack("<I", links[-1]) + out[links[-2] + 2 + 12 * len(tags) + 4:]
    put(path, out + b"\0\0\0\0")


def npy(path, rows, kind="<f4", code="f"):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({len(rows)}, {len(rows[0])}), }}"
    head += " " * (117 - len(head)) + "\n"
    put(path, b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + b"".join(struct.pack(f"<{len(r)}{code}", *r) for r in rows))


def nii(path, pages):
    head = struct.pack("<i", 348) + b"\0" * 36 + struct.pack("<8h", 3, SIDE, SIDE, len(pages), 1, 1, 1, 1) + b"\0" * 14
    head += struct.pack("<hh", 2, 8) + b"\0\0" + struct.pack("<8f", 1, 1, 1, 1, 1, 1, 1, 1) + struct.pack("<f", 352)
    head += b"\0" * (252 - len(head)) + struct.pack("<hh", 0, 1) + b"\0" * 24
    head += struct.pack("<12f", 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0) + b"\0" * 16 + b"n+1\0\0\0\0\0"
    put(path, head + bytes(v for page in pages for row in page for v in row))


def zarr(folder, rows, version):
    """An OME-Zarr image of one level."""
    ome = {"multiscales": [{"version": version, "axes": [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}], "datasets": [
        {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 1]}]}]}]}
    group(folder, ome, version)
    data = bytes(v for row in rows for v in row)
    if version == "0.4":
        put(f"{folder}/0/.zarray", json.dumps({"zarr_format": 2, "shape": [SIDE, SIDE], "chunks": [SIDE, SIDE], "dtype": "|u1", "order": "C",
                                               "compressor": None, "filters": None, "fill_value": 0}))
        put(f"{folder}/0/0.0", data)
    else:
        put(f"{folder}/0/zarr.json", json.dumps({
            "zarr_format": 3, "node_type": "array", "shape": [SIDE, SIDE], "data_type": "uint8", "fill_value": 0, "attributes": {},
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [SIDE, SIDE]}}, "codecs": [{"name": "bytes"}],
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}}))
        put(f"{folder}/0/c/0/0", data)


def group(folder, ome, version):
    if version == "0.4":
        put(f"{folder}/.zgroup", '{"zarr_format": 2}')
        put(f"{folder}/.zattrs", json.dumps(ome))
    else:
        put(f"{folder}/zarr.json", json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {"ome": dict(ome, version=version)}}))


def plate(root, version):
    wells = ["A/1", "A/2", "B/1"]
    group(root, {"plate": {"rows": [{"name": r} for r in "AB"], "columns": [{"name": c} for c in "12"], "wells": [
        {"path": w, "rowIndex": "AB".index(w[0]), "columnIndex": int(w[2]) - 1} for w in wells]}}, version)
    for k, well in enumerate(wells):
        group(f"{root}/{well[0]}", {}, version)
        group(f"{root}/{well}", {"well": {"images": [{"path": "0"}, {"path": "1"}]}}, version)
        for field in (0, 1):
            zarr(f"{root}/{well}/{field}", grey(2 * k + field), version)
            group(f"{root}/{well}/{field}/labels", {"labels": ["nuclei"]}, version)
            zarr(f"{root}/{well}/{field}/labels/nuclei", squares(2 * k + field), version)


def outline(i):
    """Corners and boxes of the objects."""
    found = []
    for k in range(1, 6):
        at = [(y, x) for y, row in enumerate(squares(i)) for x, v in enumerate(row) if v == k]
        found.append((min(x for _, x in at), min(y for y, _ in at), max(x for _, x in at) + 1, max(y for y, _ in at) + 1))
    return found


class Set:
    """Where a layout is written: `n` chooses the names."""

    def __init__(self, root, n):
        self.images, self.masks, self.stem, below = NAMES[n]
        self.root, self.below = root, Path(root) / below

    def __truediv__(self, path):
        return self.below / path

    def each(self, split=""):
        """The number and the name of each image; of a split those of its own."""
        own = {"": range(COUNT), "train": range(4), "val": range(4, 6), "test": range(0)}[split]
        return [(i, self.stem.format(i)) for i in own]


def pairs(write_image=lambda p, i: png(f"{p}.png", grey(i)), write_target=lambda p, i: png(f"{p}.png", mask(i)), suffix=""):
    def write(s):
        for i, name in s.each():
            write_image(s / s.images / name, i)
            write_target(s / s.masks / (name + suffix), i)
    return write


def colours(of, table):
    return pairs(write_target=lambda p, i: png(f"{p}.png", mapped(of(i), lambda v: table[v])))


def one_folder(suffix):
    def write(s):
        for i, name in s.each():
            png(s / f"{name}.png", grey(i))
            png(s / f"{name}{suffix}.png", mask(i))
    return write


def objects(place, name_of):
    def write(s):
        for i, name in s.each():
            png(s / (s.images if place else "") / f"{name}.png", grey(i))
            for k in range(1, 6 if i else 2):
                png(s / (s.masks if place else "") / (name_of(name, k) + ".png"), mapped(squares(i), lambda v: 255 * (v == k)))
    return write


def parts(words, name_of):
    def write(s):
        for split, word in zip(("train", "val"), words):
            for i, name in s.each(split):
                png(s / name_of(word, s.images) / f"{name}.png", grey(i))
                png(s / name_of(word, s.masks) / f"{name}.png", mask(i))
    return write


def named_parts(image, target):
    def write(s):
        for split in ("train", "val"):
            for i, name in s.each(split):
                png(s / image.format(split) / f"{name}.png", grey(i))
                png(s / target.format(split) / f"{name}.png", mask(i))
    return write


def class_folders(splits, rgb=False):
    def write(s):
        for split in splits:
            for c, kind in enumerate((s.images + "_few", "Many")):
                for i, name in s.each(split.lower() if split else ""):
                    rows = grey(i) if c else mapped(grey(i), lambda v: 255 - v)
                    png(s / split / kind / f"{name}_{c}.png", mapped(rows, lambda v: (v, v, v)) if rgb and not c and i else rows)
    return write


def table(name, head, row, image=lambda s, n: s / "pics" / f"{n}.png", target=lambda s, n: s / "truth" / f"{n}.png"):
    def write(s):
        lines = [head]
        for i, stem in s.each():
            png(image(s, stem), grey(i))
            png(target(s, stem), mask(i))
            lines.append(row(i, stem))
        put(s / name, "\n".join(lines) + "\n")
        s.root = s / name
    return write


def annotated(write_one, finish=lambda s: None):
    def write(s):
        for i, name in s.each():
            png(s / s.images / f"{name}.png", grey(i))
            write_one(s, i, name)
        finish(s)
    return write


def coco(s):
    images = [{"id": i, "file_name": f"{n}.png", "width": SIDE, "height": SIDE} for i, n in s.each()]
    shapes = [{"id": 9 * i + k, "image_id": i, "category_id": 1, "bbox": [a, b, c - a, d - b], "iscrowd": 0, "area": 36,
               "segmentation": [[a, b, c, b, c, d, a + 1, d - 1]]} for i, _ in s.each() for k, (a, b, c, d) in enumerate(outline(i))]
    put(s / "labels.json", json.dumps({"images": images, "annotations": shapes, "categories": [{"id": 1, "name": "cell"}]}))


def labelme(s, i, name):
    put(s / s.images / f"{name}.json", json.dumps({"version": "5", "imagePath": f"{name}.png", "imageHeight": SIDE, "imageWidth": SIDE, "shapes": [
        {"label": "cell", "shape_type": "polygon", "points": [[a, b], [c, b], [c, d], [a + 1, d - 1]]} for a, b, c, d in outline(i)]}))


def voc(s, i, name):
    objects = "".join(f"<object><name>cell</name><bndbox><xmin>{a + 1}</xmin><ymin>{b + 1}</ymin><xmax>{c}</xmax><ymax>{d}</ymax></bndbox></object>"
                      for a, b, c, d in outline(i))
    put(s / "Annotations" / f"{name}.xml", f"<annotation><filename>{name}.png</filename><size><width>{SIDE}</width><height>{SIDE}</height>"
        f"<depth>1</depth></size>{objects}</annotation>")


def yolo(s, i, name):
    put(s / "labels" / f"{name}.txt", "".join(f"0 {(a + c) / 64} {(b + d) / 64} {(c - a) / 32} {(d - b) / 32}\n" for a, b, c, d in outline(i)))


def geojson(s, i, name):
    put(s / "annotations" / f"{name}.geojson", json.dumps({"type": "FeatureCollection", "features": [
        {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [[[a, b], [c, b], [c, d], [a + 1, d - 1], [a, b]]]}}
        for a, b, c, d in outline(i)]}))


def cvat(s):
    images = "".join(f'<image id="{i}" name="{n}.png" width="{SIDE}" height="{SIDE}">' + "".join(
        f'<polygon label="cell" points="{a},{b};{c},{b};{c},{d};{a + 1},{d - 1}"/>' for a, b, c, d in outline(i)) + "</image>" for i, n in s.each())
    put(s / "annotations.xml", f"<annotations><version>1.1</version>{images}</annotations>")


def tracking(s):
    for k in ("01", "02"):
        for i in range(3):
            tif(s / k / f"t{i:03}.tif", grey(i))
            tif(s / f"{k}_GT/SEG/man_seg{i:03}.tif", squares(i), "H")
            tif(s / f"{k}_GT/TRA/man_track{i:03}.tif", squares(i), "H")


def image_folders(s):
    for i, name in s.each():
        png(s / name / "images" / f"{name}.png", grey(i))
        for k in (1, 2, 3):
            png(s / name / "masks" / f"{k}f.png", mapped(squares(i), lambda v: 255 * (v == k)))


def volumes(of, count=16):
    return [of(0) for _ in range(count)]


def bids(s):
    put(s / "dataset_description.json", '{"Name": "x", "BIDSVersion": "1.8.0"}')
    for i in range(1, 5):
        nii(s / f"sub-{i:02}/anat/sub-{i:02}_T1w.nii", volumes(grey))
        nii(s / f"derivatives/manual/sub-{i:02}/anat/sub-{i:02}_dseg.nii", volumes(lambda i: mask(i, 1)))


def medical(image, described):
    def write(s):
        names = [f"case_{i:03}" for i in range(5)]
        for name in names:
            nii(s / "Dataset7_X/imagesTr" / image.format(name), volumes(grey))
            nii(s / f"Dataset7_X/labelsTr/{name}.nii", volumes(lambda i: mask(i, 1)))
        put(s / "Dataset7_X/dataset.json", json.dumps(described([{"image": f"./imagesTr/{n}.nii", "label": f"./labelsTr/{n}.nii"} for n in names])))
    return write


def zarrs(version):
    def write(s):
        for i, name in s.each():
            zarr(s / f"{name}.zarr", grey(i), version)
            group(s / f"{name}.zarr/labels", {"labels": ["cells"]}, version)
            zarr(s / f"{name}.zarr/labels/cells", squares(i), version)
    return write


def plates(version, is_path):
    def write(s):
        plate(s / "Plate 7.zarr", version)
        if is_path:
            s.root = s / "Plate 7.zarr"
    return write


def mixed(s):
    pairs()(s)
    os.remove(s / s.masks / (s.stem.format(1) + ".png"))


def two_targets(s):
    pairs(write_target=lambda p, i: [png(f"{p}.png", mask(i)), png(str(p).replace(s.masks, "other_seg") + ".png", mask(i))])(s)


BLACK, WHITE, RED, BLUE = (0, 0, 0), (255, 255, 255), (255, 0, 0), (0, 0, 255)
PAINTS = [BLACK] + [(40 + 30 * k, 250 - 40 * k, 10 + 17 * k) for k in range(6)]
MASK, OBJECTS, CLASSES, WHOLE = "im2im/segmentation", "im2im/instance", "num_classes=3", "im2im/classification"
LINE = "LINE"
LAYOUTS = {
    "pairs": (pairs(), MASK),
    "pairs_suffix": (pairs(suffix="_mask"), MASK),
    "pairs_tiff": (pairs(lambda p, i: tif(f"{p}.tif", grey(i), "H"), lambda p, i: tif(f"{p}.tif", squares(i), "H")), OBJECTS),
    "pairs_float": (pairs(write_target=lambda p, i: tif(f"{p}.tif", mask(i, 1), "f")), MASK),
    "pairs_npy": (pairs(lambda p, i: npy(f"{p}.npy", grey(i)), lambda p, i: npy(f"{p}.npy", mask(i, 1), "|b1", "B")), MASK),
    "pairs_classes": (pairs(write_target=lambda p, i: png(f"{p}.png", classes(i))), CLASSES),
    "pairs_grey_rgb": (pairs(write_target=lambda p, i: png(f"{p}.png", mapped(mask(i), lambda v: (v, v, v)))), MASK),
    "objects_grey_rgb": (pairs(write_target=lambda p, i: png(f"{p}.png", mapped(squares(i), lambda v: (v, v, v)))), OBJECTS),
    "one_folder_mask": (one_folder("_mask"), MASK),
    "one_folder_seg": (one_folder("-seg"), MASK),
    "parts_outer": (parts(("train", "val"), lambda word, f: f"{word}/{f}"), MASK),
    "parts_inner": (parts(("train", "valid"), lambda word, f: f"{f}/{word}"), MASK),
    "parts_words": (parts(("Training", "Validation"), lambda word, f: f"{word}/{f}"), MASK),
    "camvid": (named_parts("{}", "{}annot"), MASK),
    "kaggle_parts": (named_parts("{}_images", "{}_masks"), MASK),
    "classes": (class_folders([""]), WHOLE),
    "classes_parts": (class_folders(["Train", "Val"]), WHOLE),
    "classes_grey_rgb": (class_folders([""], rgb=True), WHOLE),
    "objects_files": (objects(True, "{}_{:03}".format), OBJECTS),
    "objects_files_word": (objects(True, "{}_mask_{}".format), OBJECTS),
    "objects_files_beside": (objects(False, "{}-mask{}".format), OBJECTS),
    "objects_folders": (image_folders, OBJECTS),
    "colours_classes": (colours(classes, [BLACK, RED, BLUE]), CLASSES),
    "colours_on_white": (colours(classes, [WHITE, RED, BLUE]), CLASSES),
    "colours_mask": (colours(lambda i: mask(i, 1), [BLACK, RED]), "task.colours"),
    "colours_objects": (colours(squares, PAINTS), OBJECTS),
    "below_objects": (pairs(write_target=lambda p, i: tif(f"{p}.tif", mapped(squares(i), lambda v: v or -1), "h")), "task.background=-1"),
    "below_classes": (pairs(write_target=lambda p, i: tif(f"{p}.tif", mapped(classes(i), lambda v: v or -1), "h")), CLASSES),
    "below_mask": (pairs(write_target=lambda p, i: tif(f"{p}.tif", mapped(mask(i, 1), lambda v: v or -1), "b")), "target_values=[-1,1]"),
    "below_zero": (pairs(write_target=lambda p, i: tif(f"{p}.tif", mapped(squares(i), lambda v: v - 1), "h")), LINE),
    "ilastik": (pairs(write_target=lambda p, i: png(f"{p}.png", mapped(mask(i, 1), lambda v: v + 1)), suffix="_Simple Segmentation"), LINE),
    "nan": (pairs(lambda p, i: npy(f"{p}.npy", [[float("nan")] * SIDE] + grey(i)[1:])), LINE),
    "without_target": (mixed, LINE),
    "two_targets": (two_targets, LINE),
    "tracking": (tracking, OBJECTS),
    "bids": (bids, "im2im/segmentation_3d"),
    "nnunet": (medical("{}_0000.nii", lambda _: {"channel_names": {"0": "T1"}, "labels": {"background": 0, "x": 1}, "numTraining": 5,
                                                "file_ending": ".nii"}), "data=nnunet"),
    "decathlon": (medical("{}.nii", lambda all: {"modality": {"0": "T1"}, "labels": {"0": "background", "1": "x"}, "numTraining": 5,
                                                "training": all}), "data=decathlon"),
    "zarrs_4": (zarrs("0.4"), OBJECTS),
    "zarrs_5": (zarrs("0.5"), OBJECTS),
    "plate_4": (plates("0.4", True), OBJECTS),
    "plate_5": (plates("0.5", False), OBJECTS),
    "stacks": (pairs(lambda p, i: tif(f"{p}.tif", volumes(grey)), lambda p, i: tif(f"{p}.tif", volumes(mask))), "spatial_dims=3"),
    "pages": (pairs(lambda p, i: tif(f"{p}.tif", [grey(i), mask(i)])), "data.axes=CYX"),
    "table": (table("table.csv", "Image,Mask", lambda i, n: f"pics/{n}.png,truth/{n}.png"), MASK),
    "table_windows": (table("t.csv", "\ufeffBild;Maske\r", lambda i, n: f"pics\\{n}.png;truth\\{n}.png\r"), MASK),
    "table_split": (table("t.csv", "raw,seg,set", lambda i, n: f"pics/{n}.png,truth/{n}.png,{'train' if i < 4 else 'valid'}"), "split_column=set"),
    "table_counts": (table("t.csv", "file,cells", lambda i, n: f"pics/{n}.png,{7 + 3 * i}"), "regression_scalar"),
    "table_words": (table("t.csv", "file,diagnosis", lambda i, n: f"pics/{n}.png,{'no' if i % 2 else 'yes'}"), WHOLE),
    "table_missing": (table("t.csv", "raw,seg", lambda i, n: f"pics/{n}0.png,truth/{n}.png"), "no such image"),
    "coco": (annotated(lambda *_: None, coco), OBJECTS),
    "cvat": (annotated(lambda *_: None, cvat), OBJECTS),
    "labelme": (annotated(labelme), OBJECTS),
    "voc": (annotated(voc), "detection/cells"),
    "yolo": (annotated(yolo), "detection/cells"),
    "geojson": (annotated(geojson), OBJECTS),
    "cvat_damaged": (annotated(lambda *_: None, lambda s: put(s / "annotations.xml", "<annotations><image id='0' name='a.png'><poly")), "annotations.xml"),
    "foreign": (pairs(lambda p, i: put(f"{p}.czi", b"ZISRAWFILE")), "bfconvert"),
    "other_size": (pairs(write_target=lambda p, i: png(f"{p}.png", [row[:16] for row in mask(i)[:16]])), "another size"),
}
REFUSED = {"table_missing", "foreign", "other_size", "cvat_damaged"}
KNOWN = set()  # what fails still: a line less here is progress
TRAINED = {"pairs_npy", "objects_grey_rgb", "classes_grey_rgb", "objects_files", "objects_files_beside", "colours_objects", "colours_on_white",
           "below_objects", "below_mask", "plate_4", "plate_5", "table_windows", "cvat", "yolo"}


def lines_in(text):
    """The lines to type that a message has: words with `=`, side by side."""
    lines, last = [], None
    for word in re.finditer(r"(?:'[^']*'|\"[^\"]*\"|[^\s'\";])+", text):
        bare = word.group().rstrip(",.;)").lstrip("(")
        if not re.match(r"['\"]?[+a-z_][\w.+]*=[^ ]", bare):
            continue
        if last is not None and text[last:word.start()] == " ":
            lines[-1].append(bare)
        else:
            lines.append([bare])
        last = word.start() + len(bare)
    return [" ".join(words) for words in lines]


class Train:
    """`train` many times: train_often.cpp loads the engine once."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=dict(os.environ, OMP_NUM_THREADS="1"))

    def __call__(self, path, typed, cwd):
        """The exit code and the messages; `typed` is what a reader types after the rest, for the shell to take apart."""
        taken = subprocess.run(f"printf '%s\\0' {typed}", shell=True, cwd=cwd, capture_output=True, text=True)
        if taken.returncode != 0:
            return taken.returncode, taken.stderr
        line = [f"{cwd}", f"{cwd}/said", f"data.path={json.dumps(str(path))}", "trainer.accelerator=cpu", "performance.num_threads=1",
                *taken.stdout.split("\0")[:-1]]
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline()), (cwd / "said").read_text()


STEP = ("data.num_workers=0 logger=none trainer.max_steps=1 trainer.limit_val_batches=1 callbacks=none paths.output_dir=run ")


def outcome(train, name, n, cwd):
    """("first" | "line" | "refused" | "failed", why)."""
    write, expected = LAYOUTS[name]
    s = Set(str(cwd / "data"), n)  # beside the run folder
    write(s)
    is_whole = expected == LINE or name in REFUSED or (n == 0 and name in TRAINED)
    code, said = train(s.root, STEP if is_whole else "--check", cwd)
    if expected != LINE and name not in REFUSED:
        taken = [line for line in said.splitlines() if "from the data:" in line]
        return ("first", "") if code == 0 and any(expected in line for line in taken) else ("failed", said)
    error = next((line for line in said.splitlines() if line.startswith("error")), "")
    if name in REFUSED:
        return ("refused", "") if code == 2 and expected in error else ("failed", said)
    lines = lines_in(error)
    if code != 2 or not lines:
        return "failed", said
    for line in lines:
        code, said = train(s.root, STEP + line, cwd)
        if code != 0:
            return "failed", f"{line}: {said}"
    return "line", ""


def main():
    train, chosen = Train(Path(sys.argv[1]).resolve()), sys.argv[2:] or list(LAYOUTS)
    sums, wrong = {}, []
    for name in chosen:
        wanted = "failed" if name in KNOWN else "line" if LAYOUTS[name][1] == LINE else "refused" if name in REFUSED else "first"
        for n in range(len(NAMES)):
            with tempfile.TemporaryDirectory() as folder:
                found, why = outcome(train, name, n, Path(folder))
            sums[found] = sums.get(found, 0) + 1
            if found != wanted:
                wrong.append(f"{name} ({NAMES[n][0]}): {found}, expected {wanted}\n{why}")
    print(f"{len(chosen)} layouts, {len(NAMES)} sets of names: " + ", ".join(f"{count} {kind}" for kind, count in sorted(sums.items())))
    print("\n".join(wrong))
    train.process.stdin.close()
    return 1 if wrong or train.process.wait() else 0


if __name__ == "__main__":
    sys.exit(main())
