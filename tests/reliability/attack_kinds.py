"""The attacks by their kinds, for attacks.py: what was once found, and the same elsewhere."""
import csv
import gzip
import json
import math
import os
import re
import shutil
import signal
import socket
import stat
import struct
import xml.etree.ElementTree
import zipfile
import zlib

import folders
import streams
import strangers
import surroundings
from runs import ROOT, header
from surroundings import write_tiff

GOLDEN = ROOT / "tests/golden"
ENDED = (0, 2, 4, 5)  # done, or one of the errors that are no fault of the program
FORMATS = ("safetensors", "torchscript", "onnx", "openvino")


# What the attacks are made of.

def prepare(a):
    """Images, checkpoints and a video."""
    data = a.programs.samples(train=3)
    a.data, a.image, a.mask = data, data / "images/test_0000_raw.ome.tif", data / "images/test_0000_seg.ome.tif"
    for name, options in {"base": ("experiment=im2im/segmentation", "model.filters=[4,8,8]", "patch_shape=[32,32]"),
                          "detector": ("experiment=detection/cells", "data.batch_size=1"),
                          "segmenter": ("experiment=promptable/cells", "model=sam_tiny", "data.batch_size=1")}.items():
        done = a.run([a.bin / "train", *options, f"data.path={data}", "trainer.accelerator=cpu", "trainer.max_steps=1",
                      "logger=null",
                      "trainer.limit_val_batches=0", "data.num_workers=0", f"paths.output_dir={a.folder / name}"])
        if done.returncode:
            raise SystemExit(done.err)
        setattr(a, name, a.folder / name / "checkpoints/last.ckpt")
    a.video = a.folder / "cells.mp4"
    if a.run([a.bin / "generate_samples", "--video", a.video, "--frames", "6", "--width", "64", "--height", "64"]).returncode:
        a.video = None
    a.precious = a.folder / "precious"


def predict(a, image, *more, model=None, backend="eager"):
    return a.programs.predict(model or a.base, image, a.out, f"performance.backend={backend}", *more)


def segment(a, image, *more):
    return [a.bin / "batch_segment", image, "--detector", a.detector, "--segmenter", a.segmenter, "--device", "cpu",
            "--conf-threshold", "0.01", "detector.max_detections=3", f"paths.output_dir={a.out}", *more]


def train(a, *more, data=None):
    return [a.bin / "train", "experiment=im2im/segmentation", f"data.path={data or a.data}", "trainer.accelerator=cpu",
            "model.filters=[4,8,8]", "patch_shape=[32,32]", "trainer.max_steps=1", "trainer.limit_val_batches=0",
            "data.num_workers=0", "performance.num_threads=1", f"paths.output_dir={a.out}", *more]


def check_data(a, image, *more):
    """train --check-data where one of the images is this one."""
    table = a.fresh("table")
    for name, rows in {"train": [(image, image), (a.image, a.mask)], "valid": [(a.image, a.mask)]}.items():
        with open(table / f"{name}.csv", "w", newline="", errors="surrogateescape") as file:
            csv.writer(file).writerows([("raw", "seg"), *rows])
    return train(a, "--check-data", *more, data=table)


def film(a, source, *more, output=None):
    output = output or a.fresh("film") / "out.mp4"
    return [a.bin / "process_video", source, output, "--ckpt", a.base, "performance.backend=eager", "trainer.accelerator=cpu",
            *more]


def fundus(a, path, *more):
    return [a.bin / "preprocess_fundus", f"data.path={path}", f"paths.output_dir={a.out}", "fundus.size=64", *more]


def export(a, form="safetensors", output=None, model=None):
    return [a.bin / "export_model", f"checkpoint.ckpt_path={model or a.base}", f"format={form}",
            f"output={output if output is not None else a.fresh('exported') / 'model'}"]


def readers(a):
    """Every program that reads an image."""
    some = {"predict": lambda path: predict(a, path), "predict --dry-run": lambda path: predict(a, path, "--dry-run"),
            "train --check-data": lambda path: check_data(a, path), "batch_segment": lambda path: segment(a, path),
            "preprocess_fundus": lambda path: fundus(a, path)}
    return some | ({"process_video": lambda path: film(a, path)} if a.video else {})


def limited(command, limit):
    if limit.startswith("-f"):  # the file of the messages has no limit
        return ["bash", "-c", f'(ulimit {limit}; exec "$@") 2>&1 | cat; exit ${{PIPESTATUS[0]}}', "bash", *command]
    return ["bash", "-c", f'ulimit {limit}; exec "$@"', "bash", *command]


def nodes(a):
    """What may lie where a file is expected; a link to a device is to one that lies in the scratch folder."""
    a.precious.write_text("mine")

    def listener(path):
        with socket.socket(socket.AF_UNIX) as server:
            here = os.open(path.parent, os.O_RDONLY)  # the path may be too long for a socket
            server.bind(f"/proc/self/fd/{here}/{path.name}")
            os.close(here)

    some = {"fifo": os.mkfifo, "folder": os.mkdir, "link": lambda path: os.symlink(a.precious, path),
            "dangling link": lambda path: os.symlink(a.folder / "created", path),
            "link to itself": lambda path: os.symlink(path, path),
            "link to stdout": lambda path: os.symlink("/dev/stdout", path), "socket": listener}
    if a.is_root:
        for name, minor in {"null": 3, "zero": 5, "full": 7}.items():
            some[name] = lambda path, minor=minor: os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
    return some


def altered(a, name, edit, source=None):
    """A checkpoint whose header is changed."""
    head, data = header(source or a.base)
    head["__metadata__"].pop("xxh3", None)
    edit(head)
    path = a.folder / f"{name}.ckpt"
    packed = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(packed)) + packed + data)
    return path


def with_setting(a, name, pattern, text):
    def edit(head):
        head["__metadata__"]["config"] = re.sub(pattern, lambda _: text, head["__metadata__"]["config"], flags=re.M)
    return altered(a, name, edit)


def with_code(path, expression, call="return (conv).forward(x, )", source="printing.pt"):
    """A TorchScript module whose forward gives `expression`."""
    with zipfile.ZipFile(GOLDEN / "scripts" / source) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            new.writestr(zipfile.ZipInfo(name), old.read(name).replace(call.encode(), expression.encode()))
    return path


def png(path, width, height, rows=None, level=9):
    """Grey; a picture of zeros where no rows are given."""
    pack = zlib.compressobj(level)
    body = b"".join(pack.compress(row) for row in rows or (bytes(width + 1) for _ in range(height))) + pack.flush()

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) + chunk(b"IDAT",
                                                                                                                          body) +
                     chunk(b"IEND", b""))


def nifti_header(sizes, offset=352, magic=b"n+1\0"):
    dims = [len(sizes), *sizes, *[1] * (7 - len(sizes))]
    return struct.pack("<i36x8h14xhh2x8ff", 348, *dims, 2, 8, *[1.0] * 8, offset)[:112].ljust(344, b"\0") + magic + bytes(4)


def picture(i=0):
    return bytes((x * 7 + y * 13 + i * 29) % 251 for y in range(64) for x in range(64))


def zarr(path, shape, chunks, content=None):
    (path / "0").mkdir(parents=True)
    (path / ".zgroup").write_text('{"zarr_format":2}')
    axes = [{"name": name, "type": "time" if name == "t" else "space"} for name in "tzyx"[-len(shape):]]
    scale = [{"type": "scale", "scale": [1] * len(shape)}]
    (path / ".zattrs").write_text(json.dumps({"multiscales": [
        {"version": "0.4", "axes": axes, "datasets": [{"path": "0", "coordinateTransformations": scale}]}]}))
    (path / "0/.zarray").write_text(json.dumps({
        "zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": "|u1", "compressor": None, "fill_value": 0, "order": "C",
        "filters": None, "dimension_separator": "/"}))
    if content:
        (path / "0/0").mkdir()
        (path / "0/0/0").write_bytes(content)


def results(folder):
    """What a run gave, without its books."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and path.suffix not in (".log", ".jsonl") and path.name != ".written" and ".hydra" not in path.parts}


def right_results(a, command):
    a.clear(a.out)
    done = a.run(command)
    assert done.returncode == 0, done.err
    return results(a.out)


def expect_right(a, right, may_fail=False, but=""):
    """A check: the results are those of an undisturbed run, where `but` is a node that may be written through."""
    def check(done):
        if done.returncode and may_fail:
            return None
        now = results(a.out)
        differ = [name for name, content in right.items() if now.get(name) != content and not (but and name.startswith(but))]
        return f"other results: {differ}" if done.returncode or differ else None
    return check


def is_untouched(a):
    if a.precious.read_text() != "mine":
        return "a link was followed"
    return "a link was followed: it made a file" if (a.folder / "created").exists() else None


def named(path):
    """A check: predicted, or its name is among the messages."""
    def check(done):
        return None if done.returncode == 0 or path.name in done.err else f"{path.name} is not named: {done.err[-200:]}"
    return check


# The kinds.

def earlier(a):
    """Large images, little memory, endings, and nodes as images."""
    big = a.fresh("big")
    side = 30000
    png(big / "b.png", side, side)
    with gzip.open(big / "b.nii.gz", "wb", compresslevel=6) as file:
        file.write(nifti_header((side, side)))
        for _ in range(side):
            file.write(bytes(side))
    strip = zlib.compress(bytes(side * 100), 9)
    (big / "b.tif").write_bytes(tiff_of_strips(side, side, [strip] * 300))
    for ending in ("png", "nii.gz", "tif"):
        some = readers(a) | {"train --plan": lambda path: check_data(a, path, "--plan",
                                                                     f"plan.output={a.folder / 'plans/experiment/p.yaml'}")}
        del some["predict"]  # by rows: minutes
        for name, command in some.items():
            a.attack("low", f"b.{ending} of {side}x{side} in 0.9 MB within 4 GB: {name}",
                     limited(command(big / f"b.{ending}"), "-v 4000000"),
                     "done, or exit 2 or 5 in a line", (0, 2, 5), memory=4000, seconds=60)
    shutil.rmtree(big)
    rows = [bytes((x * y) % 251 for x in range(1024)) for y in range(256)]
    image = a.folder / "middle.tif"
    image.write_bytes(tiff_of_strips(4096, 4096, [zlib.compress(b"".join(row * 4 for row in rows[i * 16:i * 16 + 16]))
                                                  for i in range(16)] * 16))
    memory = os.path.join("/sys/fs/cgroup/memory", f"cytra_attacks_{os.getpid()}")
    for megabytes in (600, 450, 250, 200):
        try:
            os.mkdir(memory)
            open(f"{memory}/memory.limit_in_bytes", "w").write(str(megabytes << 20))
        except OSError:
            break  # no such control groups here
        command = ["bash", "-c", f'echo $$ > {memory}/cgroup.procs && exec "$@"', "bash", *predict(a, image, backend="auto")]
        codes = (0, 5) if megabytes >= 350 else (0, 5, -9)
        a.attack("low", f"predict of 4096x4096 in a container of {megabytes} MB", command, f"exit code {codes}", codes)
        os.rmdir(memory)
    for ending in ("lsm", "stk", "tiff", "TIF", "btf", "tf2", "tf8", "qptiff", "svs", "scn", "ndpi", "png", "PNG", "npy", "nii",
                   "nii.gz", "bmp",
                   "jpg", "JPEG", "gif", "jp2", "dcm", "h5", "mp4", "czi", "txt", "tmp", "", "ome.tif"):
        folder = a.fresh("endings")
        shutil.copy(a.image, folder / "a.ome.tif")
        other = folder / f"b.{ending}"
        (png(other, 64, 64, [b"\0" + picture()[i * 64:i * 64 + 64] for i in range(64)]) if ending in ("png", "PNG") else
         shutil.copy(a.image, other))
        known = ending not in ("czi", "txt", "tmp", "")
        a.attack("low", f"a folder with .ome.tif and .{ending}: predict", predict(a, folder),
                 "both are predicted, or the second is named",
                 check=lambda done: None if not known or other.name in done.err or [p for p in a.out.glob("b*")]
                 else "left out without a word")
    for kind, make in nodes(a).items():
        for name, command in readers(a).items():
            path = a.fresh("place") / f"x.{'mp4' if name == 'process_video' else 'tif'}"
            make(path)
            ends = {}
            if name == "process_video" and kind in ("fifo", "zero", "full"):  # streams that may still come to something
                ends = {"signal": signal.SIGTERM, "after": 2, "codes": (2, 143)}
            a.attack("low", f"{kind} as an image: {name}", command(path), seconds=10, limit=30, check=lambda done: is_untouched(a),
                     **ends)


def tiff_of_strips(width, height, strips):
    """Grey, deflated."""
    offsets, at = [], 8
    for strip in strips:
        offsets.append(at)
        at += len(strip)
    at += at % 2
    count, end = len(strips), at + 2 + 12 * 9 + 4
    tags = [(256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, 8), (259, 3, 1, 8), (262, 3, 1, 1), (273, 4, count, end),
            (277, 3, 1, 1),
            (278, 4, 1, height // count), (279, 4, count, end + 4 * count)]
    return (struct.pack("<2sHI", b"II", 42, at) + b"".join(strips)).ljust(at, b"\0") + struct.pack("<H", 9) + b"".join(
        struct.pack("<HHII", *tag) for tag in tags) + bytes(4) + struct.pack(f"<{2 * count}I", *offsets, *map(len, strips))


def resumed(a):
    """predict --resume: books of strangers, results and images that have changed, names, caches."""
    a.reuse(strangers.records)
    for length in (200, 240, 247, 250, 251, 255):
        for more in ((), ("predict.measurements=true", "predict.contours=both"),
                     ("predict.save=probability", "predict.format=nifti")):
            folder = a.fresh("long")
            shutil.copy(a.image, folder / ("y" * (length - 4) + ".tif"))
            shutil.copy(a.image, folder / "short.tif")
            a.attack("low", f"image name of {length} bytes, {more}", predict(a, folder, *more),
                     "done, or it is named and the other done", (0, 2),
                     check=lambda done: None if list(a.out.glob("short*")) and (done.returncode == 0 or "yyy" in done.err)
                     else "the other isn't done")
    stale(a)
    measured = ("predict.measurements=true", "predict.contours=geojson")
    right = right_results(a, predict(a, a.image, *measured))
    changes = {"cut": lambda path: os.truncate(path, path.stat().st_size // 2), "emptied": lambda path: os.truncate(path, 0),
               "longer": lambda path: path.open("ab").write(b"x"), "removed": lambda path: path.unlink(),
               "other bytes": lambda path: path.write_bytes(bytes(path.stat().st_size))}
    for name in sorted(right):
        for kind, change in (changes | nodes(a)).items():
            a.clear(a.out)
            a.run(predict(a, a.image, *measured))
            if kind not in changes:
                (a.out / name).unlink()
            change(a.out / name)
            corrected = (a.out / name).read_bytes() if kind in ("longer", "other bytes") else None  # by hand, for all we know

            def check(done):
                if corrected is not None:
                    return None if (a.out / name).read_bytes() == corrected else "the user's correction is gone"
                return is_untouched(a) or expect_right(a, right, may_fail=kind not in changes,
                                                       but="" if kind in changes else name)(done)
            a.attack("low", f"result {name}: {kind} before --resume", predict(a, a.image, *measured, "--resume"),
                     "made anew, or refused in a line; a correction stays", ENDED, keep=True, limit=60, check=check)
    a.clear(a.out)
    a.run(predict(a, a.image, *measured))
    book = (a.out / "predictions.jsonl").read_bytes()
    for name, text in damaged_books(book).items():
        a.clear(a.out)
        a.run(predict(a, a.image, *measured))
        (a.out / "predictions.jsonl").write_bytes(text)
        a.attack("low", f"predictions.jsonl: {name}, --resume", predict(a, a.image, *measured, "--resume"), "the right results",
                 (0,), keep=True,
                 check=expect_right(a, right))


def damaged_books(book):
    """A journal as a damaged disk, or somebody else, leaves it."""
    line = json.loads(book.splitlines()[0])
    changed = {f"without {key}": json.dumps({k: v for k, v in line.items() if k != key}).encode() + b"\n" for key in line}
    changed |= {f"{key} is {value!r:.20}": json.dumps(line | {key: value}).encode() + b"\n" for key in line
                for value in (None, -1, [], {"a": "../x"}, 1e308)}
    return changed | {"empty": b"", "half": book[:len(book) // 2], "no newline": book[:-1], "twice": book * 2,
                      "zeros": bytes(len(book)),
                      "not UTF-8": book.replace(b"name", b"n\xff\xfee"), "nested": b"[" * 100000 + b"\n" + book,
                      "binary": os.urandom(5000),
                      "a list": b"[1]\n" + book, "a number": b"1e999\n" + book, "blank lines": b"\n\n" + book,
                      "a long line": b"x" * 10**7 + b"\n" + book}


def stale(a):
    """An image's content changes, its size and time don't: rsync -t, cp -p."""
    def rewrite(path, change):
        times = path.stat()
        content = bytearray(path.read_bytes())
        for i in change(content):
            content[i] ^= 0x55
        path.write_bytes(content)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def tail(count):
        return lambda content: range(max(len(content) - count, 0), len(content))

    place = a.fresh("stale")
    three = GOLDEN / "checkpoints/format1_3d.ckpt"
    write_tiff(place / "a.tif", picture(), 64, "B")
    (place / "b.nii").write_bytes(nifti_header((64, 64)) + picture())
    (place / "c.hdr").write_bytes(nifti_header((64, 64), 0, b"ni1\0"))
    (place / "c.img").write_bytes(picture())
    (place / "d.npy").write_bytes(b"\x93NUMPY\1\0v\0" + b"{'descr': '|u1', 'fortran_order': False, 'shape': (64, 64), }".ljust(117) + b"\n" + picture())
    zarr(place / "e.ome.zarr", [64, 64], [64, 64], picture())
    shutil.copytree(GOLDEN / "dicom/axial", place / "axial")
    for path in (GOLDEN / "ome_set").glob("*.ome.tif"):
        shutil.copy(path, place)
    (place / "f.csv").write_text(f"raw\n{place / 'a.tif'}\n")
    cases = {"TIFF": ("a.tif", "a.tif", None, lambda content: range(8, 4000)), "NIfTI": ("b.nii", "b.nii", None, tail(3000)),
             "NIfTI pair, the .img": ("c.hdr", "c.img", None, tail(3000)),
             "NumPy": ("d.npy", "d.npy", None, tail(3000)), "Zarr's chunk": ("e.ome.zarr", "e.ome.zarr/0/0/0", None, tail(3000)),
             "a table's image": ("f.csv", "a.tif", None, lambda content: range(8, 4000)),
             "OME-TIFF in two files, the second": ("scenes_0.ome.tif", "scenes_1.ome.tif", three, None),
             "DICOM series, a slice": ("axial", sorted(p.name for p in (place / "axial").iterdir())[0], three, tail(100))}
    for name, (image, part, model, change) in cases.items():
        part = place / image / part if (place / image).is_dir() and not image.endswith("zarr") else place / part
        if change is None:  # the pixels of the first page
            def change(content):
                at, = struct.unpack_from("<I", content, 4)
                tags = [struct.unpack_from("<HHII", content, at + 2 + 12 * i)
                        for i in range(struct.unpack_from("<H", content, at)[0])]
                values = {tag: value for tag, _, _, value in tags}
                return range(values[273], values[273] + values[279])
        command = predict(a, place / image, "predict.save=logits", model=model)
        before = right_results(a, command)
        rewrite(part, change)
        a.run([*command, "--resume"])
        resumed_results = results(a.out)
        right = right_results(a, command)
        a.judge("medium", f"stale result: {name} is rewritten, then --resume", command, "predicted anew",
                None if resumed_results == right else "the results of before")
        if name.startswith("OME") or name.startswith("DICOM"):
            continue  # a changed voxel that no window weighs shows nothing
        a.judge("low", f"stale result: {name}, other content gives other results", command, "other results",
                None if right != before else "the attack changed nothing")
    losses = []
    for ending in ("hdr", "tif"):
        data = a.fresh("cached")
        (data / "m.hdr").write_bytes(nifti_header((64, 64), 0, b"ni1\0"))
        (data / "m.img").write_bytes(bytes(value % 2 for value in picture()))
        (data / "x.hdr").write_bytes(nifti_header((64, 64), 0, b"ni1\0"))
        (data / "x.img").write_bytes(picture())
        write_tiff(data / "x.tif", picture(), 64, "B")
        for table in ("train", "valid"):
            (data / f"{table}.csv").write_text(f"raw,seg\nx.{ending},m.hdr\n")
        more = ("trainer.limit_val_batches=1", "logger=null", "data.allow_shared=true", "--json")
        losses = []
        for cache in (a.fresh("kept"), None, a.folder / "kept", None):
            if len(losses) == 2:
                rewrite(data / ("x.img" if ending == "hdr" else "x.tif"), lambda content: range(8, 4000))
            a.clear(a.out)
            done = a.run(train(a, *more, f"data.cache_dir={cache or 'null'}", data=data))
            losses.append(json.loads(done.out).get("val/loss") if done.returncode == 0 else done.err)
        a.judge("medium", f"stale data.cache_dir: .{ending}", ["train"], "made anew",
                None if losses[2] == losses[3] != losses[0] == losses[1]
                else f"val/loss {losses}")


def foreign(a):
    """Modules, bundles and weights of others."""
    a.reuse(strangers.scripts)
    a.reuse(strangers.hangs, full=False)
    for backend in ("eager", "auto"):
        for expression in ("torch.zeros([0])", "torch.zeros([1, 2, 64, 64, 1])", "torch.zeros([1, 2, 1, 1])",
                           "torch.zeros([2**20, 2**20, 2**20])",
                           "torch.resize_(x, [1099511627776])", "torch.repeat(x, [1, 100000, 1000, 1000])",
                           "torch.mul((conv).forward(x, ), inf)",
                           "torch.to((conv).forward(x, ), 9)", "torch.to((conv).forward(x, ), 11)",
                           "torch.slice((conv).forward(x, ), 2, 0, 3)",
                           "torch.slice((conv).forward(x, ), 1, 0, 0)", "torch.unsqueeze(x, 0)", "torch.select(x, 0, 5)", "x",
                           "conv", "None", "(x, x)",
                           "[x]", "{'out': x}", "annotate(Tensor, None)", "torch.div((conv).forward(x, ), 0)"):
            model = with_code(a.folder / "crafted.pt", f"return {expression}")
            a.attack("low", f"TorchScript that gives {expression} ({backend})",
                     limited(predict(a, a.image, model=model, backend=backend), "-v 8000000"),
                     "an error of this image, or done; no crash", (0, 2, 5), memory=2000)
        for script in ("printing.pt", "endless_load.pt"):
            command = predict(a, a.image, model=GOLDEN / "scripts" / script, backend=backend)
            ends = {} if script == "printing.pt" else {"signal": signal.SIGTERM, "after": 1.5, "limit": 20}
            a.attack("low", f"TorchScript {script} ({backend})", command, "done without forged results, or ended by SIGTERM",
                     (0, 2) if not ends else (2, 143), check=lambda done: "forged results" if "forged" in done.out else None,
                     **ends)
    bundles(a)
    for path in sorted((GOLDEN / "torch").glob("*.p*")) + sorted((GOLDEN / "nnunet").glob("*.pth")) + sorted((GOLDEN / "models").glob("*.*t*")):
        programs = (("predict", predict(a, a.image, model=path)), ("export_model", export(a, model=path)))
        for name, command in programs if "malicious" in path.name else a.some(programs, 1):
            here = a.fresh("here")
            a.attack("high", f"{path.name}: {name}", command, "nothing in it runs", cwd=here,
                     check=lambda done: f"it wrote {os.listdir(here)}" if os.listdir(here) else None)
    for kind, make in nodes(a).items():
        for name, ending in (("predict", "ckpt"), ("export_model", "pt")):
            path = a.fresh("place") / f"model.{ending}"
            make(path)
            a.attack("low", f"{kind} as model.{ending}: {name}",
                     predict(a, a.image, model=path) if name == "predict" else export(a, model=path),
                     seconds=10, limit=40, check=lambda done: is_untouched(a))


def bundles(a):
    """A bundle of MONAI with settings that were not meant."""
    source = json.loads((GOLDEN / "models/a bundle/configs/inference.json").read_text())
    meta = json.loads((GOLDEN / "models/a bundle/configs/metadata.json").read_text())
    image = GOLDEN / "models/image.nii.gz"
    references = {f"a{i}": ["@a" + str(i + 1)] * 10 for i in range(14)} | {"a14": 1}
    pads = [{"_target_": "LoadImaged", "keys": "image"}, {"_target_": "EnsureChannelFirstd", "keys": "image"}]
    settings = {"references 10^14": references | {"preprocessing": "@a0"},
                "references that go round": {"a": "@b", "b": "@a", "preprocessing": "@a"},
                "a reference to itself": {"preprocessing": "@preprocessing"},
                "code": {"preprocessing": "$__import__('os').system('touch pwned')"},
                "code in a list": {"inferer": {"_target_": "SlidingWindowInferer", "roi_size": ["$open('pwned', 'w')", 8, 8]}},
                "imports": {"imports": ["$import os; os.system('touch pwned')"]},
                "a target of Python's": {"preprocessing": {"_target_": "os.system", "command": "touch pwned"}},
                "deep": {"preprocessing": json.loads("[" * 900 + "]" * 900)}, "include": {"preprocessing": "%/etc/passwd"},
                "include of itself": {"preprocessing": "%inference.json::preprocessing"}, "null": {"preprocessing": None},
                "text": {"inferer": "x"}}
    settings |= {f"roi_size {size}": {"inferer": {"_target_": "SlidingWindowInferer", "roi_size": [size] * 3}}
                 for size in (2**40, 2**63, -1, 0, 1.5, "x", None, 1e308)}
    settings |= {f"{name} {size}": {"preprocessing": [*pads, {"_target_": name, "keys": "image", option: [size] * 3}]}
                 for name, option in (("BorderPadd", "spatial_border"), ("SpatialPadd", "spatial_size"),
                                      ("Resized", "spatial_size"), ("Spacingd", "pixdim"))
                 for size in (2**31, 2**33, 2**62, -1, 0)}
    metas = {f"{key} {value!r:.20}": (key, value) for key in ("num_channels", "spatial_shape")
             for value in (2**40, -1, 0, "x", [2**40] * 3, [0, 0, 0], None, ["2**n**9**9"] * 3)}
    for name in (*settings, *metas, "model.ts is a link to a FIFO", "no model", "inference.json is a FIFO",
                 "inference.json is cut"):
        folder = a.fresh("bundle")
        shutil.copytree(GOLDEN / "models/a bundle", folder, dirs_exist_ok=True)
        new = json.loads(json.dumps(meta))
        if name in metas:
            new["network_data_format"]["inputs"]["image"][metas[name][0]] = metas[name][1]
        (folder / "configs/metadata.json").write_text(json.dumps(new))
        (folder / "configs/inference.json").write_text(json.dumps(source | settings.get(name, {})))
        part = folder / ("configs/inference.json" if "inference" in name else "models/model.ts")
        if name.startswith(("model.ts", "no model", "inference.json")):
            content = part.read_bytes()
            part.unlink()
            if "FIFO" in name:
                os.mkfifo(folder / "fifo")
                os.symlink(folder / "fifo", part)
            elif "cut" in name:
                part.write_bytes(content[:len(content) // 2])
        here = a.fresh("here")
        a.attack("low", f"bundle: {name}", predict(a, image, model=folder), "refused with its place, or done; no code", (0, 2, 5),
                 cwd=here,
                 limit=60, check=lambda done: "code has run" if os.listdir(here) else None)

