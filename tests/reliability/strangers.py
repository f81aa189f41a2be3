"""Files that others made to do harm, given to the programs as a user would. See run.py and docs/security.md."""
import ctypes
import json
import os
import re
import shutil
import signal
import stat
import struct
import time
import zipfile

from runs import ROOT, expect, header, hint, run, start

SCRIPTS = ROOT / "tests/golden/scripts"
SECRET = "hunter2hunter2"


def prepared(programs):
    """Checkpoints and an image."""
    trained = programs.folder / "trained"
    done = run(programs.train(trained, "trainer.max_steps=1", "data.num_workers=0"))
    expect(done.returncode == 0, done.err)
    return trained / "checkpoints/last.ckpt", programs.samples() / "images/test_0000_raw.ome.tif"


def expect_refused(process, what, codes=(2,)):
    """One clear line of error, or done."""
    errors = [line for line in process.err.splitlines() if line.startswith("error")]
    expect(process.returncode in codes and len(errors) <= 1, f"{what}: exit code {process.returncode}: {process.err}")
    expect("error: internal" not in process.err, f"{what}: {process.err}")


def checked(line):
    """A line of a record with a right sum: a stranger can make it, too."""
    class Sum(ctypes.Structure):
        _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]
    make = ctypes.CDLL("libxxhash.so.0").XXH3_128bits
    make.restype, make.argtypes = Sum, [ctypes.c_char_p, ctypes.c_size_t]
    made = make(line.encode(), len(line.encode()))
    return f'{line[:-1]},"check":"{made.high:016x}{made.low:016x}"}}\n'


def records(programs, full, count, random):
    """predict --resume where a stranger wrote the books."""
    checkpoint, image = prepared(programs)
    files = [["../precious", "../deep/file"], [".", ""], [str(programs.folder / "host/precious")], ["a/../../precious"],
             ["mine.txt"], ["link/precious"], [1, None, {"a": ["../precious"]}], ["../precious"] * 100000]
    books = ["predictions.jsonl", ".written", "predict.log", ".lock", ".hydra"]
    kinds = {"link": lambda path, host: os.symlink(host / "precious", path), "fifo": lambda path, host: os.mkfifo(path),
             "dangling": lambda path, host: os.symlink(host / "created", path), "folder": lambda path, host: path.mkdir()}
    tried = 0
    cases = [(None, names) for names in files] + [(book, kind) for book in books for kind in kinds]
    for case in cases if full else random.sample(cases, 6):
        host = programs.folder / "host"
        shutil.rmtree(host, ignore_errors=True)
        output = host / "out"
        output.mkdir(parents=True)
        (host / "deep").mkdir()
        for name in ("precious", "deep/file", "out/mine.txt"):
            (host / name).write_text("mine")
        if case[0] is None:
            os.symlink("..", output / "link")
            stem = image.name.split(".")[0]
            line = {"name": stem, "image": str(image), "stamp": "0" * 32,
                    "files": dict((f"file{i}", name) for i, name in enumerate(case[1]))}
            (output / "predictions.jsonl").write_text(checked(json.dumps(line)))
        else:
            kinds[case[1]](output / case[0], host)
        done = run(["timeout", "-k", "5", "60", *programs.predict(checkpoint, image, output, "--resume")])
        expect_refused(done, str(case)[:80], (0, 2, 4))
        for name in ("precious", "deep/file", "out/mine.txt"):
            expect((host / name).is_file() and (host / name).read_text() == "mine", f"{str(case)[:80]}: {name} has changed")
        expect(not (host / "created").exists(), f"{case}: a link was followed")
        tried += 1
    return f"{tried} records and books", "nothing outside and nothing of the user's was removed or written to; each done, or refused in a line"


def scripts(programs, full, count, random):
    """TorchScript that works on files, or beyond its tensors."""
    _, image = prepared(programs)
    hostile = sorted((SCRIPTS / "hostile").glob("*.pt"))
    if not full:
        hostile = random.sample(hostile, 3)
    tried = 0
    for model in hostile:
        for name, command in (
                ("predict", programs.predict(model, image, programs.folder / "out", "performance.backend=eager")),
                ("export_model", [programs.bin / "export_model", f"checkpoint.ckpt_path={model}", "format=torchscript",
                                  f"output={programs.folder / 'out.pt'}"]),
                ("batch_segment", [programs.bin / "batch_segment", image, "--detector", model, "--segmenter", model,
                                   "--device", "cpu", f"paths.output_dir={programs.folder / 'out'}"])):
            here = programs.folder / "here"
            shutil.rmtree(here, ignore_errors=True)
            here.mkdir()
            done = run(command, cwd=here)
            expect_refused(done, f"{name} {model.name}")
            expect(not os.listdir(here) and not (programs.folder / "out.pt").exists(), f"{name} {model.name}: something is written")
            tried += 1
    honest = sorted((SCRIPTS / "honest").glob("*.pt"))
    return (f"{tried} runs of {len(hostile)} modules", f"all refused before they ran, nothing written; the {len(honest)} honest ones "
            "give what PyTorch gives (ScriptCheck)")


def outputs(programs, full, count, random):
    """Outputs that are devices, pipes, links."""
    checkpoint, image = prepared(programs)
    kinds = {"fifo": os.mkfifo, "folder": os.mkdir, "link": lambda path: os.symlink(programs.folder / "precious", path),
             "dangling": lambda path: os.symlink(programs.folder / "created", path)}
    if os.geteuid() == 0:
        kinds |= {"null": lambda path: os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3)),
                  "full": lambda path: os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 7))}
    tried = 0
    for kind, make in kinds.items():
        node = programs.folder / "node"
        exports = [[programs.bin / "export_model", f"checkpoint.ckpt_path={checkpoint}", f"format={form}", f"output={node}"]
                   for form in (("safetensors", "torchscript", "onnx", "openvino") if full else ("safetensors",))]
        for command in [*exports, programs.predict(checkpoint, image, programs.folder / "out", f"predict.prometheus={node}")]:
            if node.is_dir() and not node.is_symlink():
                node.rmdir()
            else:
                node.unlink(missing_ok=True)
            (programs.folder / "precious").write_text("mine")
            make(node)
            before = os.lstat(node)
            done = run(["timeout", "-k", "5", "60", *command])
            expect_refused(done, f"{kind}: {command[1]}", (2, 4) if kind == "full" and "export" in str(command[0]) else (0, 2, 4))
            after = os.lstat(node)
            expect((after.st_ino, after.st_mode) == (before.st_ino, before.st_mode), f"{kind}: {command} replaced it")
            tried += 1
        expect((programs.folder / "precious").read_text() == "mine" or kind == "link", kind)
    return f"{tried} outputs, {len(kinds)} kinds", "the node stays in all; written through it, or refused in a line; a full one is exit 2 or 4"



def wait_for_work(process):
    """Until signals are noted: before, one ends a program as any other, and nothing is written yet."""
    while process.poll() is None:
        caught = int(re.search(r"^SigCgt:\s*(\w+)", open(f"/proc/{process.pid}/status").read(), re.M).group(1), 16)
        if caught >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.05)


def hangs(programs, full, count, random):
    """A module that never comes back from a window."""
    _, image = prepared(programs)
    done = run([programs.bin / "train", "experiment=promptable/cells", "model=sam_tiny", f"data.path={programs.samples()}",
                "trainer.accelerator=cpu", "trainer.max_steps=1", "trainer.limit_val_batches=0", "data.num_workers=0",
                "data.batch_size=1", "logger=null", f"paths.output_dir={programs.folder / 'segmenter'}"])
    expect(done.returncode == 0, done.err)
    segmenter = programs.folder / "segmenter/checkpoints/last.ckpt"
    video = programs.folder / "in.mp4"
    made = run([programs.bin / "generate_samples", "--frames", "4", "--video", video, "--size", "64"])
    seconds, tried = [], 0
    endless = SCRIPTS / "endless.pt"
    for _ in range(3 if full else 1):
        begun = []  # side by side, as each takes a core until it ends
        for code, number in ((143, signal.SIGTERM), (130, signal.SIGINT)):
            folder = programs.folder / f"hung {code}"
            shutil.rmtree(folder, ignore_errors=True)
            (folder / "video").mkdir(parents=True)
            for name, command in {
                    "predict": programs.predict(endless, image, folder / "out", "performance.backend=eager"),
                    "process_video": [programs.bin / "process_video", video, folder / "video/out.mp4", "--ckpt", endless,
                                      "performance.backend=eager", "trainer.accelerator=cpu"],
                    "batch_segment": [programs.bin / "batch_segment", image, "--detector", endless, "--segmenter", segmenter,
                                      "--device", "cpu", f"paths.output_dir={folder / 'segmented'}"]}.items():
                if name == "process_video" and made.returncode != 0:
                    continue  # a build without FFmpeg
                begun.append((name, code, number, start(command)))
        for *_, process in begun:
            wait_for_work(process)
        time.sleep(random.uniform(1, 3))
        for name, _, number, process in begun:
            expect(process.poll() is None, f"{name}: ended by itself: {process.returncode}")
            process.send_signal(number)
        begin = time.monotonic()
        for name, code, _, process in begun:
            _, process.err = process.communicate(timeout=60)
            seconds.append(time.monotonic() - begin)
            expect(process.returncode == code, f"{name}: exit code {process.returncode}: {process.err}")
            tried += 1
        left = [path.name for path in programs.folder.glob("hung */**/*") if ".tmp." in path.name or path.suffix in (".mp4", ".tif")]
        expect(not left, f"left behind {left}")
    return f"{tried} signals", f"all ended within {max(seconds):.1f} s with the signal's exit code, nothing half written left"


def secrets(programs, full, count, random):
    """${oc.env:...} in a stranger's checkpoint."""
    checkpoint, image = prepared(programs)
    values = {"y_key": (r"^  y_key: .*$", "  y_key: ${oc.env:SECRET}"), "run_name": (r"^run_name: .*$", "run_name: ${oc.env:SECRET}"),
              "class_names": (r"^  class_names: .*$", '  class_names: ["${oc.env:SECRET}"]'),
              "nested": (r"^run_name: .*$", "run_name: ${oc.env:NOPE,${oc.env:SECRET}}"),
              "decoded": (r"^run_name: .*$", "run_name: ${oc.decode:${oc.env:SECRET}}")}
    tried = 0
    for name, (old, new) in values.items() if full else list(values.items())[:1]:
        head, data = header(checkpoint)
        text = head["__metadata__"]
        text["config"] = re.sub(old, lambda _: new, text["config"], flags=re.M)
        expect(new in text["config"], f"{name} is not in the configuration")
        text.pop("xxh3")  # a stranger writes what he likes
        packed = json.dumps(head).encode()
        path = programs.folder / f"{name}.ckpt"
        path.write_bytes(struct.pack("<Q", len(packed)) + packed + data)
        output = programs.folder / "out"
        commands = [programs.predict(path, image, output / "predicted", f"predict.save={save}") for save in ("mask", "probability", "logits")]
        commands += [[programs.bin / "export_model", f"checkpoint.ckpt_path={path}", f"format={form}", f"output={output / form}"]
                     for form in ("safetensors", "torchscript", "onnx", "openvino")]
        for command in commands:
            shutil.rmtree(output, ignore_errors=True)
            output.mkdir()
            done = run(command, env=os.environ | {"SECRET": SECRET})
            expect_refused(done, f"{name}: {command[1:]}", (0, 2))
            found = [file.name for file in output.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()]
            expect(not found and SECRET not in done.out + done.err, f"{name}: {command}: in {found}")
            tried += 1
    return f"{tried} runs", "no variable of the user in results, exports or messages"


def playlists(programs, full, count, random):
    """Playlists under any name: files that name others."""
    checkpoint, _ = prepared(programs)
    other, folder = programs.folder / "other.mp4", programs.folder / "videos"
    if run([programs.bin / "generate_samples", "--frames", "4", "--video", other, "--size", "64"]).returncode != 0:
        return "0", "not tested: a build without FFmpeg"
    folder.mkdir()
    hls = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n{}#EXTINF:1.0,\n{}\n#EXT-X-ENDLIST\n"
    texts = {"hls": hls.format("", other), "file": hls.format("", f"file://{other}"), "concat": f"ffconcat version 1.0\nfile '{other}'\n",
             "key": hls.format(f'#EXT-X-KEY:METHOD=AES-128,URI="{other}"\n', other), "map": hls.format(f'#EXT-X-MAP:URI="{other}"\n', other),
             "subfile": hls.format("", f"subfile,,start,0,end,0,,:{other}"), "sdp": "v=0\nc=IN IP4 127.0.0.1\nm=video 9 RTP/AVP 96\n",
             "dash": f'<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"><Period><AdaptationSet mimeType="video/mp4">'
                     f'<Representation id="0" bandwidth="1"><BaseURL>{other}</BaseURL></Representation></AdaptationSet></Period></MPD>'}
    tried = 0
    for name, text in texts.items() if full else list(texts.items())[:3]:
        for ending in ("mp4", "m3u8", "mkv", "avi", "ts", "mpd") if full else ("mp4",):
            path = folder / f"{name}.{ending}"
            path.write_text(text)
            for command in ([programs.bin / "process_video", path, folder / "out.mp4", "--ckpt", checkpoint],
                            programs.predict(checkpoint, path, programs.folder / "out")):
                done = run(["timeout", "-k", "5", "60", *command])
                expect_refused(done, f"{path.name}")
                expect(not (folder / "out.mp4").exists(), f"{path.name}: the other file's frames are in a video")
                tried += 1
    return f"{tried} runs of {len(texts)} playlists", "all refused in a line, no frame of another file"


def bombs(programs, full, count, random):
    """Small files that state much."""
    checkpoint, image = prepared(programs)
    worst, tried = 0.0, 0
    paths = []
    for points in (10**6, 10**8, 2**40):
        folder = programs.folder / f"t{points}.ome.zarr"
        (folder / "0").mkdir(parents=True)
        (folder / ".zgroup").write_text('{"zarr_format":2}')
        axes = [{"name": "t", "type": "time"}, {"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
        scale = [{"type": "scale", "scale": [1, 1, 1]}]
        (folder / ".zattrs").write_text(json.dumps({"multiscales": [
            {"version": "0.4", "axes": axes, "datasets": [{"path": "0", "coordinateTransformations": scale}]}]}))
        (folder / "0/.zarray").write_text(json.dumps({
            "zarr_format": 2, "shape": [points, 64, 64], "chunks": [1, 64, 64], "dtype": "|u1", "compressor": None,
            "fill_value": 0, "order": "C", "filters": None, "dimension_separator": "/"}))
        paths += [(checkpoint, folder)]
    for key in ("roi_size", "sw_batch_size", "num_classes", "in_channels", "filters"):
        head, data = header(checkpoint)
        text = head["__metadata__"]
        text["config"] = re.sub(rf"^( *{key}:)(.*(?:\n +- .*)?)$",
                                lambda found: found.group(1) + re.sub(r"\d+", str(2**40), found.group(2)), text["config"], flags=re.M)
        text.pop("xxh3")
        packed = json.dumps(head).encode()
        path = programs.folder / f"{key}.ckpt"
        path.write_bytes(struct.pack("<Q", len(packed)) + packed + data)
        paths += [(path, image)]
    damaged = sorted((SCRIPTS / "honest").glob("*.pt"))
    for i in range(100 if full else 3):
        path = programs.folder / f"damaged{i}.pt"
        with zipfile.ZipFile(damaged[i % len(damaged)]) as old, zipfile.ZipFile(path, "w") as new:
            for name in old.namelist():
                content = bytearray(old.read(name))
                if name.endswith((".pkl", ".py")) and content:
                    for _ in range(random.randint(1, 3)):
                        content[random.randrange(len(content))] = random.randrange(256)
                new.writestr(zipfile.ZipInfo(name), bytes(content))
        paths += [(path, image)]
    for model, data in paths:
        begin = time.monotonic()
        command = programs.predict(model, data, programs.folder / "out", "performance.backend=eager")
        done = run(["bash", "-c", 'ulimit -v 12000000; exec timeout -k 5 60 "$@"', "bash", *command])
        shutil.rmtree(programs.folder / "out", ignore_errors=True)
        worst = max(worst, time.monotonic() - begin)
        expect_refused(done, f"{model.name} {data.name}", (0, 2, 5))
        expect(worst < 60, f"{model.name} {data.name}: {worst:.0f} s: {hint(done)}")
        tried += 1
    return f"{tried} files", f"each done, or refused in a line, within {worst:.1f} s below a limit of 12 GB"
