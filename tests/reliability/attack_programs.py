"""More attacks by their kinds, for attacks.py: videos, settings, texts, caches, surroundings."""
import csv
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import xml.etree.ElementTree
import zipfile

import folders
import strangers
import streams
import surroundings
from runs import header
from attack_kinds import (ENDED, FORMATS, GOLDEN, altered, check_data, damaged_books, earlier, expect_right, export, film, foreign,
                          fundus, is_untouched, limited,
                          nifti_header, nodes, picture, png, predict, readers, results, resumed, right_results, segment, train,
                          with_setting, zarr)

SECRET = "hunter2hunter2"
NAMES = {"quotes": "it's \"x\"", "a command": "$(touch pwned)`id`;x", "newline": "a\nb", "glob": "*?[a]",
         "not UTF-8": os.fsdecode(b"n\xff\xfeu"),
         "blanks": "  a b ", "backslash": "a\\nb", "dash": "-rf", "tilde": "~root", "braces": "${oc.env:HOME}", "comma": "a,b={c}#",
         "escape": "a\x1b[31mb",
         "bell": "a\x07b", "formula": "=1+1", "at": "@SUM(1)", "plus": "+1", "minus": "-1+1", "tab": "a\tb",
         "tag": "<script>alert(1)<", "entity": "&lt;&x;",
         "right to left": "a\u202eb", "line separator": "a\u2028b", "CDATA": "]]>", "percent": "%s%n%d", "long": "L" * 200,
         "dots": "..x", "unicode": "ä🔬"}


def videos(a):
    """Containers, damage, streams without an end, outputs, caches."""
    if a.video is None:
        return
    a.reuse(strangers.playlists)
    damaged = a.folder / "damaged"
    for path in sorted((GOLDEN / "video").glob("*.*")):
        if path.suffix == ".json":
            continue
        content = path.read_bytes()
        for i in a.some(range(14), 7):
            new = bytearray(content)
            if i < 5:
                new = new[:len(new) * i // 5]
            else:
                for _ in range(1 << (i - 5)):
                    new[a.random.randrange(min(len(new), 4096 if i % 2 else len(new)))] = a.random.randrange(256)
            source = damaged.with_suffix(path.suffix)
            source.write_bytes(new)
            a.attack("low", f"{path.name} {'cut' if i < 5 else 'with changed bytes'} ({i})",
                     film(a, source, "trainer.accelerator=cpu"),
                     "done, or refused; a result that plays, or none", ENDED, memory=2500,
                     check=lambda done: "a result that is empty" if (a.folder / "film/out.mp4").exists() and
                     (a.folder / "film/out.mp4").stat().st_size < 100 else None)
    for ending in ("mp4", "mkv", "mov", "avi", "webm", "ts", "gif", "txt", "", "jpg"):
        a.attack("low", f"a video written as .{ending}", film(a, a.video, output=a.fresh("film") / f"out.{ending}"),
                 "a video, or refused in a line",
                 check=lambda done: None if (done.returncode == 0) == bool(os.listdir(a.folder / "film"))
                 else f"{os.listdir(a.folder / 'film')}")
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129), (signal.SIGUSR1, 75)):
        for ending in ("mkv", "mp4", "avi", "ts"):
            source = a.fresh("pipe") / f"fifo.{ending}"
            os.mkfifo(source)
            a.attack("medium", f"a FIFO without a writer as .{ending}, signal {number}", film(a, source), f"ends at once, {code}",
                     (code,), limit=20,
                     signal=number, after=1.5, check=lambda done: f"{os.listdir(a.folder / 'film')}"
                     if os.listdir(a.folder / "film") else None)
    for kind, make in nodes(a).items():
        for name in ("output", "cache", "prometheus"):
            place = a.fresh("film")
            node = place / ("node.mp4" if name == "output" else "node")
            make(node)
            before = os.lstat(node)
            more = {"output": [], "cache": ["--cache-dir", node], "prometheus": ["--prometheus", node]}[name]
            command = [a.bin / "process_video", a.video, node if name == "output" else place / "out.mp4", "--ckpt", a.base,
                       "performance.backend=eager", *more]
            a.attack("high", f"process_video, {name} is {kind}", command, "written into, or refused; the node stays", ENDED,
                     limit=60,
                     check=lambda done: stays(node, before) or (None if "link" == kind else is_untouched(a)))
    for what, source, output in (("its own input", a.video, a.video), ("a link to its input", a.video, a.folder / "same.mp4")):
        if source != output:
            os.symlink(source, output)
        before = a.video.read_bytes()
        a.attack("high", f"the output is {what}", film(a, source, output=output), "refused; the input stays", (2,),
                 check=lambda done: None if a.video.read_bytes() == before else "the input has changed")
    for option in ("video.roi=0,0,0,0", "video.roi=-5,-5,10,10", "video.roi=99999999999,0,5,5", "video.roi=nan",
                   "video.batch_size=1000000", "video.crf=99", "video.scales=[0]",
                   "video.scales=[1e9]", "video.skip_threshold=nan", "video.max_gap=-1", "video.limit_frames=0",
                   "video.limit_frames=-1", "video.preset=x;rm",
                   "video.codec=../x", "video.measure_drift=-1", "video.cache_dir_gb=-1",
                   "video.threshold=inf"):
        a.attack("low", f"process_video {option}", film(a, a.video, option), codes=ENDED, memory=3000)


def stays(node, before):
    """What lay there before lies there."""
    try:
        after = os.lstat(node)
    except FileNotFoundError:
        return "it is gone"
    return None if (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode) else "it was replaced"


def segmented(a):
    """batch_segment: books, nodes in the place of results, tables."""
    images = a.fresh("images")
    for i in range(2):
        shutil.copy(a.image, images / f"i{i}.ome.tif")
    right = right_results(a, segment(a, images))
    for name, text in damaged_books((a.out / "segmented.jsonl").read_bytes()).items():
        a.clear(a.out)
        a.run(segment(a, images))
        (a.out / "segmented.jsonl").write_bytes(text)
        a.attack("low", f"segmented.jsonl: {name}, --resume", segment(a, images, "--resume"), "the right results", (0,), keep=True,
                 check=expect_right(a, right))
    for name in ("segmented.jsonl", "objects.csv", "instances.json", "masks", "masks/i0.png", ".written", "batch_segment.log"):
        for kind, make in a.some(nodes(a), 5):
            a.clear(a.out)
            a.run(segment(a, images))
            a.clear(a.out / name)
            make(a.out / name)
            a.attack("low", f"{name} is {kind}, --resume", segment(a, images, "--resume"),
                     "the right results, or refused in a line; no link followed",
                     ENDED, keep=True, limit=60, check=lambda done: is_untouched(a)
                     or expect_right(a, right, may_fail=True, but=name)(done))
    for option in ("--conf-threshold=nan", "--conf-threshold=-1", "detector.iou_threshold=nan", "detector.max_detections=-1",
                   "segment.sam_batch_size=0",
                   "segment.sam_batch_size=1000000000", "segment.io_workers=100000", "segment.tile=1", "segment.tile=-5",
                   "segment.cache_gb=-1", "segment.cache_dir=/proc/x",
                   "segment.mode=x", "--view=../x", "segment.image_batch_size=99999999999"):
        a.attack("low", f"batch_segment {option}", segment(a, images, option), codes=ENDED, memory=3000)


def bombs(a):
    """Small files that state much."""
    a.reuse(strangers.bombs)
    a.unit_tests("test_io", "Bombs.*:Names.*:Mutants.*")
    place = a.fresh("bombs")
    png(place / "a.png", 2**31 - 1, 2**31 - 1, rows=[b"\0" * 64])
    png(place / "b.png", 65535, 65535, rows=[b"\0" * 64])
    for name, sizes in {"c": (32767,) * 7, "d": (32767, 32767), "e": (-1, 5), "f": (0, 0)}.items():
        (place / f"{name}.nii").write_bytes(nifti_header(sizes) + bytes(100))
    for name, shape in {"g": (2**40,), "h": (2**62, 2**62), "i": (2**20, 2**20), "j": (-1, 64), "k": (1,) * 40}.items():
        (place / f"{name}.npy").write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", 500) + f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".ljust(499).encode() + b"\n")
    (place / "l.bmp").write_bytes(struct.pack("<2sIIIIiiHHIIiiII", b"BM", 200, 0, 54, 40, 2**31 - 1, 2**31 - 1, 1, 24, 0, 0, 1, 1,
                                              0, 0) + bytes(200))
    (place / "m.gif").write_bytes(b"GIF89a" + struct.pack("<HHBBB", 65535, 65535, 0xf0, 0,
                                                          0) + bytes(6) + b"," + struct.pack("<HHHHB", 0, 0, 65535, 65535,
                                                                                             0) + b"\2\1\x4c\0;")
    (place / "n.jpg").write_bytes(b"\xff\xd8\xff\xc0\0\x0b\x08\xff\xff\xff\xff\1\1\x11\0\xff\xda\0\x08\1\1\0\0\x3f\0" + bytes(50) + b"\xff\xd9")
    (place / "o.tif").write_bytes(struct.pack("<2sHIH", b"II", 42, 8, 7) + b"".join(struct.pack("<HHII", *tag) for tag in (
        (256, 4, 1, 2**32 - 1), (257, 4, 1, 2**32 - 1), (258, 3, 1, 8), (259, 3, 1, 8), (262, 3, 1, 1), (273, 4, 1, 8),
        (279, 4, 1, 50))) + bytes(4))
    (place / "p.tif").write_bytes(struct.pack("<2sHIHHHIII", b"II", 42, 8, 1, 256, 3, 1, 5, 8))  # a directory that is its own next
    for name, shape, chunks in (("q", [2**40, 64, 64], [1, 64, 64]), ("r", [2**40, 2**40], [2**40, 2**40]), ("s", [64, 64], [0, 0]),
                                ("t", [2**63 - 1, 1], [1, 1])):
        zarr(place / f"{name}.ome.zarr", shape, chunks)
    (place / "u.nii.gz").write_bytes(b"\x1f\x8b\x08" + bytes(7) + b"\xff" * 100)
    for frames in (10**6, 99 * 10**6, 2**32 - 1):
        content = bytearray((GOLDEN / "video/raw.avi").read_bytes())
        struct.pack_into("<I", content, 48, frames)
        struct.pack_into("<I", content, content.index(b"strh") + 40, frames)
        (place / f"v{frames}.avi").write_bytes(content)
    for path in sorted(place.iterdir()):
        for name, command in a.some(readers(a), 3):
            if path.suffix != ".avi" or a.video is not None:
                a.attack("medium", f"{path.name}: {name}", command(path), "refused or done soon and small", (0, 2, 5), seconds=20)
    rows = {"a line of 300 MB": b"raw,seg\n" + b"x" * (300 << 20), "20000 columns": b"raw," * 20000 + b"seg\n",
            "a million rows": b"raw,seg\n" + b"a.tif,b.tif\n" * 10**6,
            "open quotes": b'raw,seg\n"' + b"x\n" * 10**5, "zeros": bytes(10**6), "not UTF-8": b"raw,seg\n\xff\xfe,\x80\n",
            "no rows": b"raw,seg\n", "nothing": b"",
            "itself": b"raw,seg\ntrain.csv,train.csv\n", "twice one column": b"raw,raw,seg\na,b,c\n"}
    for name, text in rows.items():
        table = a.fresh("rows")
        (table / "train.csv").write_bytes(text)
        (table / "valid.csv").write_bytes(b"raw,seg\n" + f"{a.image},{a.mask}\n".encode())
        programs = {"train --check-data": train(a, "--check-data", data=table), "predict": predict(a, table / "train.csv"),
                    "batch_segment": segment(a, table / "train.csv"), "preprocess_fundus": fundus(a, table / "train.csv")}
        for program, command in a.some(programs, 2):
            a.attack("low", f"a table: {name}: {program}", command, codes=(0, 2, 5), memory=3000, seconds=60)


def exports(a):
    """Outputs of export_model, figures for Prometheus, photographs, plans, optimize."""
    a.reuse(strangers.outputs)
    programs = {"predict": lambda node: predict(a, a.image, f"predict.prometheus={node}"),
                "batch_segment": lambda node: segment(a, a.image, "--prometheus", node),
                "train": lambda node: train(a, "logger=[default,prometheus]", f"logger.prometheus.save_dir={node.parent}",
                                            f"logger.prometheus.filename={node.name}"),
                "train --plan": lambda node: train(a, "--plan", f"plan.output={node.parent}/experiment/{node.name}"),
                "fundus.csv": lambda node: fundus(a, photographs / "train.csv", f"paths.output_dir={node.parent}")}
    programs |= {f"export_model {form}": lambda node, form=form: export(a, form, node) for form in FORMATS}
    photographs = a.folder / "photographs"
    a.run([a.bin / "generate_samples", "--kind", "fundus", "--output", photographs, "--train", "2", "--valid", "0", "--test", "0"])
    for program, command in programs.items():
        for kind, make in a.some(nodes(a), 6) if "export" in program else nodes(a).items():  # those of R36 are there already
            place = a.fresh("place")
            node = place / {"fundus.csv": "fundus.csv", "train --plan": "experiment/plan.yaml"}.get(program, "node")
            node.parent.mkdir(exist_ok=True)
            make(node)
            before = os.lstat(node)
            a.attack("high", f"{program}: its file is {kind}", command(place / node.name if "plan" in program else node),
                     "written into, or refused; the node stays",
                     (2, 4) if kind == "full" and "export" in program else ENDED, limit=60,
                     check=lambda done: stays(node, before) or (None if kind == "link" else is_untouched(a)))
    for form in FORMATS:
        for name, output in {"nothing": "", "a folder": a.fresh("somewhere"), "no such folder": a.folder / "no/such/x",
                             "/proc": "/proc/cytra", "a name of 300 letters": a.folder / ("x" * 300),
                             "a dot": ".", "its own input": a.base, "blank": " "}.items():
            before = a.base.read_bytes()
            a.attack("low", f"export {form} to {name}", export(a, form, output), "refused in a line, or done",
                     (0, 2, 4) if form == "openvino" else (2, 4),  # OpenVINO's two files are the name's and an ending
                    
                     check=lambda done: None if a.base.read_bytes() == before else "the checkpoint is overwritten",
                     cwd=a.fresh("here"))
    right = right_results(a, fundus(a, photographs / "train.csv", "fundus.mask=false", "fundus.contrast=false"))
    a.clear(a.out)
    a.run(fundus(a, photographs / "train.csv"))
    a.attack("low", "preprocess_fundus: other settings into the same folder",
             fundus(a, photographs / "train.csv", "fundus.mask=false", "fundus.contrast=false"),
             "made anew, or refused; nothing of before as a result of now", keep=True,
             check=lambda done: None if done.returncode or results(a.out) == right else
             f"{sorted(set(results(a.out)) - set(right))} of other settings")
    for option in ("size=0", "size=-1", "size=100000000", "fill=nan", "batch_size=-1", "workers=100000", "min_inliers=nan",
                   "min_radius=2", "max_radius=-1", "min_axes_ratio=inf"):
        a.attack("low", f"preprocess_fundus fundus.{option}", fundus(a, photographs / "train.csv", f"fundus.{option}"),
                 codes=(0, 2, 5), memory=3000)
    for option in ("--seconds=nan", "--seconds=-1", "--seconds=0", "--seconds=1e300", "data.batch_size=1000000000",
                   "data.num_workers=100000"):
        command = [a.bin / "optimize", *train(a)[1:], "--detect-bottlenecks", *([] if "seconds" in option else ["--seconds=1"]),
                   option]
        ends = {"signal": signal.SIGTERM, "after": 3} if "300" in option else {}
        a.attack("low", f"optimize {option}", command, codes=(0, 2, 5, 143), memory=4000, limit=60, **ends)


def configurations(a):
    """Settings of strangers, and files that are no settings."""
    a.reuse(strangers.secrets)
    for form in FORMATS:
        a.clear(a.out)
        a.run(train(a, "+token=${oc.env:SECRET}", "logger=null"), env=a.env | {"SECRET": SECRET})
        output = a.fresh("exported") / "model"
        a.attack("medium", f"own run with +token=${{oc.env:SECRET}}: {form}",
                 export(a, form, output, a.out / "checkpoints/last.ckpt"), "kept as written", (0,), keep=True,
                 env=a.env | {"SECRET": SECRET}, check=lambda done: leak(a.folder / "exported"))
    texts = {"laughs": "\n".join([f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9) if i else 'x'}]" for i in range(12)]),
             "round": "a: ${b}\nb: ${a}\n", "itself": "a: &a [*a]\n",
             "deep": "a: " + "[" * 20000 + "]" * 20000, "blocks": "".join(" " * i + "a:\n" for i in range(3000)),
             "python": "a: !!python/object/apply:os.system ['touch pwned']\n",
             "tabs": "a:\n\tb: 1\n", "not UTF-8": "a: \udcff\udcfe\n", "zeros": "\0" * 1000, "BOM": "\ufeffa: 1\n",
             "twice": "a: 1\na: 2\n", "list": "- 1\n- 2\n", "text": "hello\n", "nothing": "",
             "huge number": "seed: " + "9" * 5000 + "\n", "nan": "seed: .nan\n", "long key": "x" * 10**6 + ": 1\n",
             "long text": "run_name: " + "x" * 10**6 + "\n", "two documents": "a: 1\n---\nb: 2\n",
             "a default of itself": "defaults:\n  - hostile\n", "a default elsewhere": "defaults:\n  - ../../../../etc/passwd\n",
             "resolver": "a: ${oc.create:${oc.env:SECRET}}\n",
             "unknown resolver": "run_name: ${os.system:x}\n", "open": "a: [1, 2\n", "quotes": "a: \"x\n",
             "escape": "run_name: \"\\e[31m\"\n", "nested": "a: " + "${" * 3000 + "}" * 3000 + "\n",
             "merge": "a: &x {b: 1}\nc:\n  <<: [*x, *x]\n", "null key": "null: 1\n? [1]\n: 2\n"}
    for name, text in texts.items():
        place = a.fresh("configs")
        (place / "experiment").mkdir()
        (place / "experiment/hostile.yaml").write_bytes(("# @package _global_\n" + text).encode(errors="surrogateescape"))
        here = a.fresh("here")
        for program in a.some(("train", "predict", "optimize", "process_video"), 1):
            command = [a.bin / program, "--config-dir", place, "experiment=hostile", "--cfg", "job", "--resolve"]
            a.attack("low", f"settings: {name}: {program}", command, "printed, or refused in a line", seconds=10, limit=40,
                     cwd=here, memory=800,
                     check=lambda done: "code has run" if os.listdir(here) else None)
        for pattern, into in ((r"\A", text.replace("\udcff\udcfe", "ÿ")),):
            path = with_setting(a, "stranger", pattern, into)
            a.attack("low", f"a checkpoint's settings: {name}", predict(a, a.image, model=path), codes=(0, 2, 5), cwd=here,
                     limit=60,
                     check=lambda done: "code has run" if os.listdir(here) else None)
    for key, old in (("roi_size", r"^( *)roi_size:(.*\n +- .*\n +- .*|.*)$"), ("patch_shape", r"^patch_shape:\n +- .*\n +- .*$"),
                     ("raw_im_channels", r"^raw_im_channels:.*$"), ("num_classes", r"^num_classes:.*$"),
                     ("spatial_dims", r"^spatial_dims:.*$"), ("source_col", r"^source_col:.*$"),
                     ("class_names", r"^class_names:.*$"), ("target_values", r"^target_values:.*$")):
        values = ("[1099511627776, 1099511627776]", "[-1, -1]", "0", "-1", "1e308", "null", "x", "{a: b}", "'../../x'",
                  "9223372036854775807")
        for value in values if key == "roi_size" else a.some(values, 5):
            path = with_setting(a, "stranger", old, f"{key}: {value}")
            a.attack("medium", f"a checkpoint's {key}: {value}", predict(a, a.image, model=path), codes=(0, 2, 5), memory=3000)


def leak(folder):
    found = [path.name for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    return f"the value is in {found}" if found else None


def injected(a):
    """Names and cells that are code elsewhere: in tables, pages, XML, JSON, shells and terminals."""
    for name, text in NAMES.items():
        if "/" in text:
            continue
        folder = a.fresh("named")
        shutil.copy(a.image, folder / f"{text}.ome.tif")
        for program, command in {"predict": predict(a, folder, "predict.measurements=true", "predict.contours=both"),
                                 "batch_segment": segment(a, folder, "--object-masks"),
                                 "train --check-data": check_data(a, folder / f"{text}.ome.tif")}.items():
            a.attack("low", f"image named {name}: {program}", command, "results that parse, no formulas, no escapes",
                     check=lambda done: spoiled(a.out))
        table = a.fresh("cells")
        with open(table / "t.csv", "w", newline="", errors="surrogateescape") as file:
            csv.writer(file).writerows([("raw", "view"), (folder / f"{text}.ome.tif", text)])
        a.attack("low", f"a table's cells: {name}: batch_segment", segment(a, table / "t.csv"), check=lambda done: spoiled(a.out))
        a.attack("low", f"a table's cells: {name}: preprocess_fundus", fundus(a, table / "t.csv"),
                 check=lambda done: spoiled(a.out))
        here = a.fresh("here")
        quoted = os.fsencode(str(here / text)).replace(b"\\", b"\\\\").replace(b"'", b"\\'")
        command = [*train(a, "logger=html")[:-2], b"paths.output_dir='" + quoted + b"'", "logger=html"]
        done = a.attack("low", f"paths.output_dir named {name}: train", command, "done, or refused in a line", cwd=here,
                        check=lambda done: spoiled(here))
        line = re.search(r"^predict: +(.*)$", done.err, re.M)
        if done.returncode == 0 and line:
            pasted = ["bash", "-c",
                      os.fsencode(line.group(1) + " trainer.accelerator=cpu paths.output_dir=") + os.fsencode("pasted")]
            a.attack("low", f"paths.output_dir named {name}: the printed command pasted", pasted, "runs, and nothing else", (0,),
                     cwd=here,
                     check=lambda done: "code has run" if (here / "pwned").exists() else None)
        run = here / text
        if run.is_dir() and not (here / "pwned").exists():
            a.attack("low", f"run folder named {name}: its command.sh", ["bash", os.fsencode(run / ".hydra/command.sh")],
                     "runs, and nothing else", (0, 2), cwd=here,
                     check=lambda done: "code has run" if (here / "pwned").exists() else None)


def spoiled(folder):
    """What in the results is code elsewhere, or does not parse."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or ".hydra" in path.parts:
            continue
        content = path.read_bytes()
        if path.suffix == ".csv":
            for row in csv.reader(content.decode(errors="surrogateescape").splitlines()):
                for cell in row:
                    if cell and cell[0] in "=+-@\t\r" and not re.fullmatch(r"[+-][\d.e+-]*(inf|nan)?", cell):
                        return f"{path.name}: cell {cell!r}"
        elif path.suffix in (".json", ".geojson", ".jsonl"):
            for line in content.splitlines() if path.suffix == ".jsonl" else [content]:
                try:
                    json.loads(line.decode())
                except ValueError as why:
                    return f"{path.name}: {why}"
        elif path.suffix == ".html":
            if b"<script>alert" in content:
                return f"{path.name} has a script of others"
        elif path.suffix == ".tif":
            found = re.search(rb"<OME.*</OME>", content, re.S)
            try:
                xml.etree.ElementTree.fromstring(found.group(0) if found else "<OME/>")
            except xml.etree.ElementTree.ParseError as why:
                return f"{path.name}: {why}"
        elif path.suffix == ".log" and b"\x1b" in content:
            return f"{path.name} has escapes"
    return None


def caches(a):
    """Kept models, and what others put beside them or in their place."""
    cache = a.folder / "cache/cytra"
    command = predict(a, a.image, "predict.save=logits", backend="auto")
    a.clear(cache)
    right = right_results(a, command)
    kept = sorted(cache.glob("*.openvino"))
    if not kept:
        return
    entry, = kept
    content = entry.read_bytes()

    def halved(head):
        head["__metadata__"]["note"] = "other weights"
    other = altered(a, "other", halved)
    data = bytearray(other.read_bytes())
    data[-40000:] = bytes(byte ^ 0x04 if i % 4 == 2 else byte for i, byte in enumerate(data[-40000:]))
    other.write_bytes(data)
    a.clear(cache)
    a.run(predict(a, a.image, model=other, backend="auto"))
    foreign = [path.read_bytes() for path in cache.glob("*.openvino")]
    cases = {f"cut to {size}": content[:size] for size in (0, 1, 8, 100, len(content) // 2, len(content) - 1)}
    cases |= {f"other bytes at {at}": content[:at] + bytes(byte ^ 0xff for byte in content[at:at + 16]) + content[at + 16:]
              for at in range(0, len(content), len(content) // 20)}
    cases |= {"zeros": bytes(len(content)), "longer": content + b"x" * 100, "noise": os.urandom(len(content))}
    cases |= {"a model of other weights, by another user": foreign[0]} if foreign and a.is_root else {}
    cases |= {"a model of other weights, open to all": foreign[0]} if foreign else {}
    for name, text in cases.items():
        a.fresh("cache/cytra")
        entry.write_bytes(text)
        if "by another" in name:
            os.chown(entry, 65534, 65534)
        if "open to" in name:
            entry.chmod(0o666)
        a.attack("medium", f"kept model: {name}", command, "the right results", (0,), check=expect_right(a, right))
    for kind, make in nodes(a).items():
        for path in (entry, cache / "tuned.json", cache):
            a.fresh("cache/cytra")
            a.clear(path)
            make(path)
            a.attack("low", f"{'cache folder' if path == cache else path.suffix} is {kind}", command,
                     "the right results; the node stays", (0, 2, 4), limit=60,
                     check=lambda done: is_untouched(a) or expect_right(a, right, may_fail=True)(done))
    for name in ("mine.openvino", "0123.openvino", "x" * 32 + ".openvino", entry.name + ".old", "." + entry.name):
        a.fresh("cache/cytra")
        with open(cache / name, "wb") as file:
            file.truncate(3 << 30)
        a.attack("low", f"a file of 3 GB named {name} in the cache", command, "only files of ours go", (0,),
                 check=lambda done: expect_right(a, right)(done) or (None if (cache / name).exists() else "it is gone"))
    a.fresh("cache/cytra")
    for name in ("/proc/nope", "/dev/null", "", "relative", str(a.base), "x" * 5000):
        a.attack("low", f"XDG_CACHE_HOME={name:.30}", command, "the right results", (0,), env=a.env | {"XDG_CACHE_HOME": name},
                 cwd=a.fresh("here"), check=expect_right(a, right))


def service(a):
    """BatchingService: tests in C++."""
    a.unit_tests("test_pipelines", "Batching*:Batcher.*:BatchQueue.*:BatchCosts.*:BatchHistogram.*")


def processes(a):
    """Several processes: numbers that are none, listeners, one folder for two."""
    a.reuse(streams.strangers, count=2)
    a.reuse(folders.names, full=False)
    for value in ("1000000000000", "2147483648", "-1", "-2", "0", "1.5", "x", "nan", "[]", "1025", "9223372036854775808", "''"):
        a.attack("low", f"trainer.devices={value}", train(a, f"trainer.devices={value}", "trainer.process_timeout=5"), memory=1000,
                 limit=90)
    names = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
             "MASTER_PORT": "29499"}
    for name in names:
        for value in ("-1", "99999999999999999999", "x", "", "1e9"):
            a.attack("low", f"{name}={value}", train(a, "trainer.process_timeout=3"), "refused by name, or done, within a minute",
                     ENDED, limit=60, env=a.env | names | {name: value})
    for name in ("SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_JOB_ID"):
        for value in ("-1", "x", "99999999999999999999"):
            slurm = {"SLURM_NTASKS": "2", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_JOB_ID": "7",
                     "SLURM_JOB_NODELIST": "localhost", "SLURM_STEP_ID": "0"}
            a.attack("low", f"{name}={value}", train(a, "trainer.process_timeout=3"), "refused by name, or done, within a minute",
                     ENDED, limit=60, env=a.env | slurm | {name: value})
    images = a.fresh("images")
    for i in range(3):
        shutil.copy(a.image, images / f"i{i}.ome.tif")
    for name, command in {"predict": predict(a, images), "batch_segment": segment(a, images),
                          "preprocess_fundus": fundus(a, a.folder / "photographs" if (a.folder / "photographs").exists()
                                                      else images)}.items():
        right = results(a.out) if a.clear(a.out) or a.run(command).returncode == 0 else {}
        a.clear(a.out)
        second = subprocess.Popen([str(word) for word in command], env=a.env, cwd=a.folder, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        a.attack("low", f"{name} twice at once into one folder", command, "whole results, or refused", ENDED, keep=True)
        second.wait(60)
        a.judge("low", f"{name} twice at once: what is left", command, "the right results",
                None if not right or {k: v for k, v in results(a.out).items() if k in right} == right else "other results")


def around(a):
    """Variables, limits, streams, folders, networks."""
    a.reuse(surroundings.environment, full=False)
    a.reuse(surroundings.memory, full=False)
    a.reuse(streams.readers, full=False)
    right = right_results(a, predict(a, a.image))
    programs = {"predict": lambda: predict(a, a.image), "export_model": lambda: export(a), "train": lambda: train(a),
                "batch_segment": lambda: segment(a, a.image),
                "process_video": lambda: film(a, a.video or a.image)}
    checks = {"predict": expect_right(a, right, may_fail=True)}
    settings = {name: value for names, values in (
        (("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_THREAD_LIMIT"), ("100000", "0", "-1", "x", "", "4294967296", "1e9")),
        (("LANG", "LC_ALL", "TERM", "TZ"), ("", "../x", "x" * 10000)),
        (("HOME", "TMPDIR"), ("/nope", "", "relative")), (("OMP_STACKSIZE",), ("1", "999999G")),
        (("NO_COLOR", "COMP_LINE", "TORCH_CPP_LOG_LEVEL", "CUDA_VISIBLE_DEVICES", "GLOO_SOCKET_IFNAME", "PYTORCH_ALLOC_CONF"),
         ("", "x\x1b[31m", "-5")))
                for name, value in (((name, value), {name: value}) for name in names for value in values)}
    for (name, value), env in settings.items():
        for program, command in [("predict", programs["predict"]), *a.some(programs, 1)]:
            a.attack("low", f"{name}={value[:20]!r}: {program}", command(), "done or refused", ENDED, check=checks.get(program),
                     env=a.env | env, memory=2500)
    for limit in ("-n 3", "-n 8", "-n 16", "-n 24", "-n 32", "-f 0", "-f 4", "-s 64", "-s 256", "-l 0", "-c 0", "-v 300000",
                  "-v 800000", "-v 1500000", "-d 50000", "-d 200000"):
        for program, command in a.some(programs, 3):
            codes = (*ENDED, 127) if limit in ("-n 3", "-v 300000", "-d 50000") else ENDED  # 127: the system's loader
            a.attack("low", f"ulimit {limit}: {program}", limited(command(), limit), f"done, or an error by name {codes}", codes,
                     check=checks.get(program))
    for streams_closed in ("<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full"):
        for program, command in programs.items():
            a.attack("low", f"{streams_closed}: {program}", ["bash", "-c", f'exec "$@" {streams_closed}', "bash", *command()],
                     "done, or exit 4", ENDED,
                     check=lambda done: checks.get(program, lambda done: None)(done))
    for name, start in {"a folder that is gone": 'mkdir gone && cd gone && rmdir ../gone && exec "$@"',
                        "umask 777": 'umask 777 && exec "$@"', "umask 0": 'umask 0 && exec "$@"',
                        "nice 19": 'exec nice -n 19 "$@"'}.items():
        for program, command in programs.items():
            a.attack("low", f"{name}: {program}", ["bash", "-c", start, "bash", *command()], codes=ENDED, cwd=a.folder)
    loop = a.folder / "loop"
    os.symlink(loop, loop)
    for name, path in {"a link to itself": loop, "through a link to itself": loop / "x",
                       "a name of 300 letters": a.folder / ("x" * 300), "within a file": a.base / "x"}.items():
        for what, command in {"data.path": predict(a, path), "paths.output_dir": predict(a, a.image, f"paths.output_dir={path}"),
                              "checkpoint.ckpt_path": predict(a, a.image, model=path),
                              "checkpoint.config": predict(a, a.image, f"checkpoint.config={path}"),
                              "predict.prometheus": predict(a, a.image, f"predict.prometheus={path}"),
                              "train data.path": train(a, data=path), "data=folder": train(a, "data=folder", data=path),
                              "data=nnunet": train(a, "data=nnunet", data=path),
                              "data.cache_dir": train(a, f"data.cache_dir={path}"),
                              "plan.output": train(a, "--plan", f"plan.output={path}/experiment/p.yaml"),
                              "--config-dir": [a.bin / "train", "--config-dir", path, "--cfg", "job"],
                              "output": export(a, "safetensors", path), "images": segment(a, path),
                              "--cache-dir": segment(a, a.image, "--cache-dir", path), "photographs": fundus(a, path)}.items():
            a.attack("low", f"{what} is {name}", command, codes=ENDED)
    if a.is_root:
        os.chmod(a.folder, 0o777)
        for processes_allowed in (1, 2, 8):
            for program, command in programs.items():
                words = command()
                for path in (a.out, a.folder / "film", a.folder / "exported"):
                    a.clear(path)
                    path.mkdir()
                    path.chmod(0o777)
                a.attack("low", f"not root, ulimit -u {processes_allowed}: {program}",
                         ["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups", "prlimit", f"--nproc={processes_allowed}",
                          *words],
                         "done, or an error by name, 4 or 5", ENDED, keep=True,
                         env=a.env | {"HOME": "/nope", "XDG_CACHE_HOME": "/nope"})
        for name, command in (programs | {"train trainer.devices=2": lambda: train(a, "trainer.devices=2",
                                                                                   "trainer.process_timeout=10")}).items():
            a.attack("low", f"no network at all: {name}", ["unshare", "-n", *command()], "done, or refused by name within a minute",
                     ENDED, limit=60)
            a.attack("low", f"no /proc: {name}", ["unshare", "-m", "bash", "-c", 'mount -t tmpfs none /proc && exec "$@"', "bash",
                                                  *command()], codes=(*ENDED, 127), limit=60)
            room = a.fresh("room")
            a.attack("low", f"a disk of 16 kB: {name}", ["unshare", "-m", "bash", "-c",
                                                         f"mount -t tmpfs -o size=16k none {re.escape(str(room))} && exec \"$@\"",
                                                         "bash",
                                                       *[str(word).replace(str(a.out),
                                                                           str(room / "out")).replace(str(a.folder / "film"),
                                                                                                      str(room)).replace(str(a.folder / "exported"), str(room)) for word in command()]],
                     "exit 4 or 2 in a line", (2, 4) if name != "process_video" else ENDED)


def upgraded(a):
    """Checkpoints of earlier versions, of later ones, and of none."""
    a.unit_tests("test_inference", "OldCheckpoints.*")
    a.unit_tests("test_tools", "OldCheckpoints*")
    for path in sorted((GOLDEN / "checkpoints").glob("*.ckpt")):
        a.attack("medium", f"{path.name}: export_model", export(a, model=path), "done", (0,))
    image, version = a.image, {}
    edits = {f"cytra_format {value!r}": ("cytra_format", value)
             for value in ("2", "999", "-1", "x", "", "1.5", "99999999999999999999", None)}
    edits |= {f"{key} {value!r:.20}": (key, value) for key in ("config", "cytra_version", "state", "format", "trained_on")
              for value in (None, "", "x", "{}", "[", "x" * 10**6)}
    for name, (key, value) in edits.items():
        def edit(head):
            head["__metadata__"].pop(key, None)
            if value is not None:
                head["__metadata__"][key] = value
        path = altered(a, "later", edit)
        refused = key == "cytra_format" and value is not None
        a.attack("medium", f"a checkpoint with {name}: predict", predict(a, image, model=path),
                 "refused by name" if refused else "done, or refused in a line", (2,) if refused else (0, 2))
        a.attack("medium", f"a checkpoint with {name}: train goes on", train(a, f"checkpoint.ckpt_path={path}", "logger=null"),
                 codes=(2,) if refused else (0, 2))
        a.attack("medium", f"a checkpoint with {name}: export_model", export(a, model=path), codes=(2,) if refused else (0, 2))
    content = a.base.read_bytes()
    length, = struct.unpack_from("<Q", content)
    tensor = next(key for key in header(a.base)[0] if key.startswith("model."))

    def change(key, value):
        def edit(head):
            head[tensor][key] = value
        return altered(a, "tensor", edit)
    damaged = {f"length {value}": struct.pack("<Q", value) + content[8:]
               for value in (0, 1, length - 1, length + 1, 2**31, 2**63, 2**64 - 1)}
    damaged |= {f"cut to {size}": content[:size] for size in (0, 7, 8, 100, length, length + 8,
                                                              len(content) - 1)} | {"longer": content + b"x",
                                                                                    "nested": struct.pack("<Q", 10**6) + b"[" * 10**6}
    damaged |= {f"{key} {value}": change(key, value).read_bytes() for key,
                value in (("dtype", "X9"), ("dtype", None), ("shape", [2**62, 2**62]), ("shape", [-1]), ("shape", []),
                          ("data_offsets", [0, 2**63]),
                                                                                     ("data_offsets", [8, 4]),
                          ("data_offsets", [-4, 0]), ("data_offsets", []))}
    for name, text in damaged.items():
        path = a.folder / "damaged.ckpt"
        path.write_bytes(text)
        programs = {"predict": predict(a, image, model=path),
                    "train goes on": train(a, f"checkpoint.ckpt_path={path}", "logger=null"), "export_model": export(a, model=path)}
        for program, command in a.some(programs, 2):
            a.attack("medium", f"a damaged checkpoint, {name}: {program}", command, "refused in a line", (2,), memory=800,
                     seconds=10)


KINDS = {"1": ("1. attacks of last turn", earlier), "2a": ("2a. predict --resume, journals, outputs", resumed),
         "2f": ("2f. foreign models", foreign),
         "2c": ("2c. process_video: containers, robustness, streams, cache", videos), "2b": ("2b. batch_segment", segmented),
         "5": ("5. fuzz and bombs", bombs),
         "2d": ("2d. fundus, export, optimize, profile, plan", exports), "2e": ("2e. configuration, resolvers", configurations),
         "2h": ("2h. injection: HTML, CSV, JSON, GeoJSON, OME-XML, names", injected),
         "2g": ("2g. OpenVINO cache and caches of others", caches),
         "3": ("3. BatchingService", service), "4": ("4. several processes", processes),
         "6": ("6. surroundings and limits", around),
         "7": ("7. upgrade and compatibility", upgraded)}
