"""client_test.py BIN: cytra-client as a user calls it, beside the programs. Needs numpy (else exit code 77, which ctest takes for skipped)."""
import copy
import http.server
import os
import pathlib
import pickle
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

try:
    import numpy as np
except ImportError:
    print("skipped: numpy is not installed for this Python")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ["CYTRA_BIN"] = str(pathlib.Path(sys.argv[1]).resolve())
sys.path.insert(0, str(ROOT / "python/client/src"))
import cytra
from cytra import Cancelled

CPU = {"trainer.accelerator": "cpu"}
failures = []


def expect(is_right, what):
    print(f"{'ok' if is_right else 'FAILED':7} {what}", flush=True)
    if not is_right:
        failures.append(what)


def error(kind, what, call):
    try:
        call()
    except kind as found:
        expect(what in str(found), f"{kind.__name__}: {found}"[:200])
    else:
        expect(False, f"no {kind.__name__}: {what}")


def predicted(checkpoint, image, out, *words):
    subprocess.run([os.environ["CYTRA_BIN"] + "/predict", f"checkpoint.ckpt_path={checkpoint}", f"data.path={image}", f"paths.output_dir={out}",
                    "predict.format=npy", "trainer.accelerator=cpu", *words], check=True, capture_output=True)
    return np.load(next(pathlib.Path(out).glob("*.npy")))


class Wrong(http.server.BaseHTTPRequestHandler):
    """A server whose next answer to a prediction is `body`, or comes byte by byte, or never."""
    body, pause = b"", 0.0
    metadata = b'{"outputs": [{"name": "mask"}]}'

    def answer(self):
        sent = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if self.path.startswith("/progress"):
            body = b"7"
        elif self.path.endswith("index"):
            body = b'[{"name": "m"}]'
        elif self.command == "GET":
            body = Wrong.metadata
        else:
            assert sent
            body = Wrong.body
        self.send_response(200)
        self.flush_headers()
        while self.command == "POST" and Wrong.pause:
            time.sleep(Wrong.pause)
            try:
                self.wfile.write(b"X")  # a header that never ends
            except OSError:
                return
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *words):
        pass


def wrong_servers():
    """What a server answers wrongly, slowly or not at all is a CytraError."""
    image = np.zeros((8, 8), np.uint8)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Wrong) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        predictor = cytra.Predictor(server=url)
        output = '{"outputs": [{"datatype": %s, "shape": %s}]}'
        for body in ["", "7", "[]", "{}", "{" * 9, "[" * 100000, '{"outputs": []}', output % ('"UINT9"', "[1]"), output % ("[]", "[1]"), output % ('"UINT8"', "[2]"),
                     output % ('"UINT8"', '"a"'), "\xff"]:
            Wrong.body = body.encode("latin-1")
            error(cytra.CytraError, "understood", lambda: predictor.predict(image))
        for Wrong.body in b"", b"PK\3\4", b"\x93NUMPY\1\0\2\0{}", b"\x80\4K\7.":
            error(cytra.CytraError, "understood", lambda: predictor.predict(__file__, progress=lambda done, total: None))
        for Wrong.metadata in b"", b"7", b"{}", b'{"outputs": []}', b'{"outputs": 7}', b'{"outputs": [{"name": []}]}'[:-3]:
            error(cytra.CytraError, "understood", lambda: cytra.Predictor(server=url))
        Wrong.pause = 0.1
        predictor._seconds = -9.5  # half a second, with the ten of grace
        error(cytra.TimedOut, "in time", lambda: predictor.predict(image))
        server.shutdown()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        predictor._channel = type(predictor._channel)(f"http://127.0.0.1:{silent.getsockname()[1]}", None)
        error(cytra.TimedOut, "in time", lambda: predictor.predict(image))
    for url in "http://", "ftp://a", "http://a:b", "http://[", "":
        error(cytra.CytraError, "expected http", lambda: cytra.Predictor(server=url))


def main(folder):
    subprocess.run([os.environ["CYTRA_BIN"] + "/generate_samples", "--output", folder / "data", "--train", "3", "--valid", "1", "--test", "2", "--size", "160"],
                   check=True, capture_output=True)
    images = sorted((folder / "data/images").glob("test_*_raw*"))
    # Training: its epochs, its end, its mistakes.
    small = {"experiment": "im2im/segmentation", "data.path": folder / "data", "patch_shape": [32, 32], "model.filters": [4, 8, 8], "data.num_workers": 0,
             "trainer.limit_train_batches": 2, "trainer.max_epochs": 3, **CPU}
    epochs = []
    run = cytra.train({**small, "paths.output_dir": folder / "run"}, epochs.append)
    expect([epoch.number for epoch in epochs] == [1, 2, 3] and "val/dice" in epochs[-1].metrics, f"three epochs: {epochs}")
    expect(run.output_dir == str(folder / "run") and pathlib.Path(run.checkpoint).is_file(), f"a run: {run}")
    stopped = []
    cytra.train({**small, "trainer.max_epochs": 500, "paths.output_dir": folder / "stopped"}, lambda epoch: stopped.append(epoch) or len(stopped) < 2)
    expect(2 <= len(stopped) < 100 and (folder / "stopped/checkpoints/last.ckpt").is_file(), f"a training that is ended has saved its state ({len(stopped)} epochs)")
    error(cytra.InputError, "Did you mean 'trainer.max_epochs'", lambda: cytra.train({"trainer.max_epoch": 1}))
    # Configurations and descriptions.
    composed = cytra.compose(["experiment=im2im/segmentation", "trainer.max_epochs=7"])
    expect(composed["trainer"]["max_epochs"] == 7 and composed["patch_shape"] == [128, 128], "compose() gives values")
    error(cytra.InputError, "im2im/segmentation", lambda: cytra.compose("experiment=im2im/segmentatoin"))
    expect("filters" in cytra.describe("DynUNet"), "describe() of a component")
    expect(cytra.describe(images[0])["shape"][-2:] == [160, 160], f"describe() of an image: {cytra.describe(images[0])}")
    # Images.
    pixels = cytra.read_image(images[0])
    expect(pixels.shape == (160, 160) and pixels.dtype == np.uint16, f"read_image(): {pixels.dtype} {pixels.shape}")
    error(cytra.InputError, "no_such.tif", lambda: cytra.read_image(folder / "no_such.tif"))
    # Models at hand, by name.
    expect("nuclei" in [model["name"] for model in cytra.models()], f"models(): {cytra.models()}")
    expect(cytra.predict("nuclei", np.stack([pixels] * 3), options=CPU).max() > 0, "nuclei, of colours")
    error(cytra.InputError, "Did you mean 'nuclei'", lambda: cytra.Predictor("nuclie"))
    # Prediction: of files and of arrays, as predict's.
    checkpoint = run.checkpoint
    mask = predicted(checkpoint, images[0], folder / "mask")
    logits = predicted(checkpoint, images[0], folder / "logits", "predict.save=logits")
    expect(np.array_equal(cytra.predict(checkpoint, images[0], options=CPU), mask), "predict() of a file")
    with cytra.Predictor(checkpoint, options=CPU) as predictor:
        expect(predictor.forms[0] == "mask" and "logits" in predictor.forms, f"forms: {predictor.forms}")
        expect(np.array_equal(predictor.predict(pixels), mask), "an array, through shared memory")
        expect(np.array_equal(predictor.predict(pixels.astype(">u2")), mask), "an array of the other byte order")
        expect(np.array_equal(predictor.predict(pixels[:, ::-1])[:, ::-1].shape, mask.shape), "an array that is not contiguous")
        expect(np.abs(predictor.predict(pixels, "logits") - logits).max() < 1e-5, "logits")
        expect(np.array_equal(predictor.predict(pixels[None]), mask[None]), "(C,Y,X)")
        expect(np.array_equal(predictor.predict(np.stack([pixels[None]] * 3)), np.stack([mask[None]] * 3)), "(N,C,Y,X)")
        large = np.tile(pixels, (40, 40))
        for image in (np.tile(pixels, (10, 10)), np.stack([pixels[None]] * 3), images[0]):
            steps, threads = [], set()
            predictor.predict(image, progress=lambda done, total: (steps.append((done, total)), threads.add(threading.get_ident())))
            total = steps[-1][1]
            expect(steps == sorted(set(steps)) and steps[-1] == (total, total) and {step[1] for step in steps} == {total} and threads == {threading.get_ident()},
                   f"progress within an image: {steps[:3]} ... {steps[-1]}")

        def fail(done, total):
            steps.append((done, total))
            raise ZeroDivisionError("of the caller")

        steps.clear()
        error(ZeroDivisionError, "of the caller", lambda: predictor.predict(large, progress=fail))
        expect(len(steps) == 1 and 0 < steps[0][0] < steps[0][1], f"what progress raises ends a prediction: {steps}")
        small_mask = predictor.predict(pixels[:64, :64])
        expect(small_mask.shape == (64, 64), "a small array, in the body")
        steps = []
        results = list(predictor.predict_many(images, progress=lambda done, total: steps.append((done, total))))
        expect(steps == [(1, 2), (2, 2)] and np.array_equal(results[0], mask), "predict_many() with progress")
        for kind in "?", "i8", "u8", "f2", "f8":
            values = (pixels > 1000 if kind == "?" else pixels // 8).astype(kind)
            same = np.array_equal(predictor.predict(values), predictor.predict(values.astype("u1" if kind == "?" else "u2")))
            expect(same, f"an array of {np.dtype(kind)}")
        error(cytra.InputError, "a masked array", lambda: predictor.predict(np.ma.masked_less(pixels, 9)))
        expect(np.array_equal(predictor.predict(pixels, threshold=np.float32(0.5)), mask), "a number of NumPy as threshold")
        for image, name in (pixels, "scene"), (pixels, "foo"), (images[0], "output"), (images[0], "foo"):
            error(cytra.InputError, f"{name}: no such parameter", lambda: predictor.predict(image, **{name: 1}))
        # Threads take turns; forked processes have connections of their own, and leave the server to this one.
        shifted = [np.roll(pixels, shift, 0) for shift in range(8)]
        wanted = [float(predictor.predict(each, "logits").sum()) for each in shifted]
        with ThreadPoolExecutor(4) as pool:
            sums = list(pool.map(lambda each: float(predictor.predict(each, "logits").sum()), shifted))
        expect(sums == wanted, "eight images of four threads")
        children = []
        for each in shifted[:4]:
            reading, writing = os.pipe()
            if not os.fork():
                os.write(writing, repr(float(predictor.predict(each, "logits").sum())).encode())
                os._exit(0)
            os.close(writing)
            children.append(reading)
        sums = [float(predictor.predict(each, "logits").sum()) for each in shifted]
        expect(sums == wanted and [float(os.read(each, 100) or "nan") for each in children] == wanted[:4], "images of forked processes")
        for end in predictor.close, predictor._child._end:  # the second is what runs at a process's end
            if not (child := os.fork()):
                end()
                os._exit(0)
            os.waitpid(child, 0)
            expect(np.array_equal(predictor.predict(pixels), mask), "a forked process ends: the server goes on")
        name = folder / os.fsdecode(b"\xff&=#.tif")
        name.write_bytes(images[0].read_bytes())
        expect(np.array_equal(predictor.predict(name), mask), "a file's name that is no UTF-8")
        error(cytra.InputError, "probabilty", lambda: predictor.predict(pixels, "probabilty"))
        error(cytra.InputError, "channels before H and W", lambda: predictor.predict(np.zeros((64, 64, 3), np.uint16)))
        stack = folder / "stack.npy"
        np.save(stack, np.stack([pixels, pixels[::-1] // 2]))
        planes = predicted(checkpoint, stack, folder / "planes")
        expect(all(np.array_equal(predictor.predict(each), planes) for each in (stack, np.load(stack))), f"a stack, plane by plane: {planes.shape}")
        for several in [pixels, pixels], (images[0],):
            error(cytra.InputError, "predict_many()", lambda: predictor.predict(several))
        error(cytra.InputError, "predict() takes one", lambda: list(predictor.predict_many(images[0])))
        for call in pickle.dumps, copy.copy, copy.deepcopy:
            error(TypeError, "can't be pickled", lambda: call(predictor))
        error(TimeoutError, "in time", lambda: predictor.predict(large, timeout=1e-6))
        for seconds in 0, -1, float("nan"), float("inf"), "3":
            error(cytra.InputError, "expected seconds", lambda: predictor.predict(pixels, timeout=seconds))
        error(cytra.InputError, "complex", lambda: predictor.predict(pixels.astype(complex)))
        error(cytra.InputError, "no_such.tif", lambda: predictor.predict(folder / "no_such.tif"))
        expect(np.array_equal(predictor.predict(pixels), mask), "after mistakes it goes on")
        leftover = [name for name in os.listdir("/dev/shm") if name.startswith(f"cytra_{os.getpid()}_")]
        expect(not leftover, f"no shared memory is left: {leftover}")
        timer = threading.Timer(0.3, predictor.cancel)
        timer.start()
        begin = time.monotonic()
        error(Cancelled, "cancelled", lambda: predictor.predict(large))
        expect(time.monotonic() - begin < 20, "cancel() ends a prediction")
        timer.join()
        expect(np.array_equal(predictor.predict(pixels), mask), "after cancel() it goes on")
        server = predictor._child._child.pid
    expect(not pathlib.Path(f"/proc/{server}/exe").exists() or os.path.realpath(f"/proc/{server}/exe") == "", "close() ends the server")
    error(cytra.CytraError, "closed", lambda: predictor.predict(pixels))
    for word, call in [("--help", cytra.read_image), ("--version", cytra.read_image), ("a\0b", cytra.read_image), ("--help", cytra.describe), ("a\0b", cytra.describe),
                       ("--version", cytra.compose), ("a\0b", cytra.compose), ("a\0b", cytra.Predictor), ("a\0b", lambda path: predictor.predict(path))]:
        error(cytra.CytraError, "", lambda: call(word))
    wrong_servers()
    for name in "a,b", "[a]", "it's", 'a"b', "~", "a\\", "{a: 1}":
        other = folder / f"{name}.ckpt"
        shutil.copy(checkpoint, other)
        expect(np.array_equal(cytra.predict(other, pixels, options=CPU), mask), f"a checkpoint called {other.name}")
    texts = ["it's", "a\\b", "a\\", "a\\'b", "a: b", "[1]", "null", ""]
    expect([cytra.compose({"run_name": text})["run_name"] for text in texts] == texts, "texts of overrides")
    expect(cytra.compose({"seed": np.int64(3), "patch_shape": np.array([32, 32])})["patch_shape"] == [32, 32], "values of NumPy in overrides")
    error(cytra.InputError, "no_such.ckpt", lambda: cytra.Predictor(folder / "no_such.ckpt", options=CPU))
    # A program that is killed takes its server with it.
    script = f"import sys; sys.path.insert(0, {str(ROOT / 'python/client/src')!r}); import cytra, time\np = cytra.Predictor({checkpoint!r}, options={CPU!r}); " \
             "print(p._child._child.pid, flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    server = int(child.stdout.readline())
    child.kill()
    child.wait()
    for _ in range(100):
        if not pathlib.Path(f"/proc/{server}").exists():
            break
        time.sleep(0.1)
    expect(not pathlib.Path(f"/proc/{server}").exists(), "a program that is killed takes its server with it")
    os.environ["CYTRA_BIN"] = str(folder)
    error(cytra.ProgramNotFound, "pipx install cytra", lambda: cytra.predict(checkpoint, pixels))


with tempfile.TemporaryDirectory() as scratch:
    main(pathlib.Path(scratch))
sys.exit(f"{len(failures)} failures" if failures else 0)
