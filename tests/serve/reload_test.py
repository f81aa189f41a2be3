#!/usr/bin/env python3
"""A model whose file changes is loaded anew, and no request fails meanwhile; a broken file leaves the one before in service.

reload_test.py FOLDER_OF_PROGRAMS
"""
import json
import os
import shutil
import sys
import threading
import time

from server import Checks, Model, Server, run


def put(content, path):
    """As a training writes it: whole, under another name first."""
    other = path.with_suffix(".new")
    shutil.copy(content, other)
    os.replace(other, path)


def index(server):
    return json.loads(server.ask("POST", "/v2/repository/index")[2])[0]


def comes(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def main():
    checks = Checks()
    model = Model(sys.argv[1])
    run(model.binaries / "train", "experiment=im2im/segmentation", "trainer.accelerator=cpu", "trainer.max_steps=2", "seed=7",
        "patch_shape=[32,32]", "model.filters=[4,8,8]", f"data.path={model.samples}", f"paths.output_dir={model.folder}/other")
    first, second = model.checkpoint, model.folder / "other/checkpoints/last.ckpt"
    served = model.folder / "served.ckpt"
    put(first, served)
    image = model.images[0].read_bytes()
    words = ["performance.backend=eager", "predict.save=probability", "repository_poll_secs=0.2", "batching.max_batch_size=1"]
    model.words = words[:2]
    expected = []
    for checkpoint in first, second:
        model.checkpoint = checkpoint
        expected.append(open(model.predict(model.images[0])["prediction"], "rb").read())
    checks.expect(expected[0] != expected[1], "the models differ")
    model.checkpoint = served
    with Server(model, *words) as server:
        ask = lambda: server.ask("POST", f"/predict?filename={model.images[0].name}", image)
        checks.expect(ask()[2] == expected[0] and index(server)["state"] == "READY", "the first model")
        answers, is_over = [], threading.Event()

        def client():
            while not is_over.is_set():
                status, _, body = ask()
                answers.append((status, expected.index(body) if body in expected else body[:100]))

        threads = [threading.Thread(target=client) for _ in range(4)]
        for thread in threads:
            thread.start()
        before = server.memory_mb()
        for turn in range(6):
            put([second, first][turn % 2], served)
            checks.expect(comes(lambda: ask()[2] == expected[1 - turn % 2]), f"the file changes, the answers follow, turn {turn}")
        is_over.set()
        for thread in threads:
            thread.join()
        kinds = {answer: answers.count(answer) for answer in set(answers)}
        checks.expect(set(kinds) == {(200, 0), (200, 1)}, f"answers of four clients meanwhile: {kinds}")
        checks.expect(server.memory_mb() < before + 200, f"memory: {before:.0f} -> {server.memory_mb():.0f} MB")

        served.write_bytes(second.read_bytes()[:1000])
        checks.expect(comes(lambda: index(server)["reason"]), f"a broken file: {index(server)}")
        checks.expect(index(server)["state"] == "READY" and ask()[2] == expected[0], "the model before answers")
        checks.expect("goes on to answer" in server.told(), "the log says it")
        status, _, body = server.ask("POST", "/v2/repository/models/served/load", b"{}")
        checks.expect(status == 400 and b"served.ckpt" in body, f"load: {status} {body[:200]}")
        put(second, served)
        status, _, body = server.ask("POST", "/v2/repository/models/served/load")
        checks.expect(status == 200 and ask()[2] == expected[1] and index(server)["reason"] == "", f"load: {status} {body[:200]}")

        status, _, body = server.ask("POST", "/v2/repository/models/served/unload", b'{"parameters":{"unload_dependents":false}}')
        checks.expect(status == 200 and index(server)["state"] == "UNAVAILABLE", f"unload: {status} {index(server)}")
        statuses = [ask()[0], server.ask("GET", "/v2/models/served/ready")[0]]
        checks.expect(statuses == [404, 404], f"then: {statuses}")
        put(first, served)
        time.sleep(1)
        checks.expect(ask()[0] == 404, "an unloaded model stays so when its file changes")
        status = server.ask("POST", "/v2/repository/models/served/load")[0]
        checks.expect(status == 200 and ask()[2] == expected[0], f"load: {status}")
        for target, body, headers, wanted in [("served/load", b"[]", {}, 400), ("served/load", b"{", {}, 400), ("nothing/load", b"", {}, 404),
                                              ("served/load", b'{"parameters":{"config":"{}"}}', {}, 400),
                                              ("served/unload", b'{"parameters":{"file:a":"b"}}', {}, 400),
                                              ("..%2f..%2fetc%2fpasswd/load", b"", {}, 404), ("served/load", b"x" * 20_000_000, {}, 413),
                                              ("served/unload", b"x" * 100_000, {}, 413), ("served/load", b"", {"Authorization": "Bearer x"}, 401)]:
            status = server.ask("POST", f"/v2/repository/models/{target}", body, headers)[0]
            checks.expect(status == wanted, f"{target} {body[:40]}: {status}")
        checks.expect(ask()[0] == 200 and server.stop() == 0, "and it ends well")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
