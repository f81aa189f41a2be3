#!/usr/bin/env python3
"""MONAI Label's own client (monailabel of PyPI: its client.py alone) gets from `serve` what `predict` writes. Ends with 77,
which means skipped, where that file or what it imports is not there.

monai_test.py FOLDER_OF_PROGRAMS
"""
import gzip
import importlib.util
import json
import pathlib
import shutil
import sys
import time

try:
    package = importlib.util.find_spec("monailabel")
    path = pathlib.Path(package.submodule_search_locations[0]) / "client/client.py"
    spec = importlib.util.spec_from_file_location("monailabel_client", path)
    client_module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(client_module)
except (ImportError, AttributeError, FileNotFoundError) as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

from server import Checks, Model, Server


def correct_and_learn(model, server, client, module, store, checks):
    """A corrected label is saved, the model is trained from it and answers anew, and the next sample is asked for."""
    def refused(work, status, words, what):
        try:
            answer = work()
            checks.expect(False, f"{what}: {answer}")
        except module.MONAILabelClientException as error:
            checks.expect(words in error.msg, f"{what}: {error.msg}")

    checks.expect("last" in client.info()["trainers"] and "uncertainty" in client.info()["strategies"], "info: trainers, strategies")
    sample = client.next_sample("uncertainty", {})
    checks.expect(sample["id"] in ("b", "c") and 0 < sample["score"] <= 1 and sample["scored"] == sample["of"] == 2, f"uncertainty: {sample}")
    refused(lambda: client.next_sample("uncertain", {}), 404, "uncertainty", "a strategy that is not there")
    refused(lambda: client.train_start("nothing", {}), 404, "no such model", "a model that is not there")
    refused(lambda: client.train_start("last", {"trainer.max_epochs": "many"}), 400, "whole number", "epochs that are no number")
    refused(lambda: client.train_start("last", {"paths.output_dir": "/tmp"}), 400, "is not set here", "a key of the disk")
    refused(client.train_stop, 404, "no training runs", "train_stop: none runs")
    before = client.infer("last", "b", {})[0]
    before = gzip.decompress(open(before, "rb").read())
    task = client.train_start("last", {"trainer.max_steps": 6, "optimizer.lr": 0.05, "name": "of other programs"})
    checks.expect(task["status"] == "RUNNING" and task["images"] == 1 and client.train_status(check_if_running=True), f"train_start: {task}")
    refused(lambda: client.train_start("last", {}), 409, "runs already", "a second training")
    deadline = time.monotonic() + 240
    while client.train_status()["status"] == "RUNNING" and time.monotonic() < deadline:
        checks.expect(client.infer("last", "b", {})[0], "infer while it is trained")
        time.sleep(1)
    task = client.train_status()
    checks.expect(task["status"] == "DONE" and not client.train_status(check_if_running=True), f"train_status: {task}")
    after = gzip.decompress(open(client.infer("last", "b", {})[0], "rb").read())
    run = store / "trainings" / task["id"]
    checks.expect(after != before and (run / "checkpoints/last.ckpt").exists(), "the trained model answers")
    checks.expect(model.checkpoint.read_bytes() == model.original, "the checkpoint that was given is as it was")
    best = run / "checkpoints/best.ckpt"
    model.checkpoint, given = best if best.exists() else run / "checkpoints/last.ckpt", model.checkpoint
    predicted = gzip.decompress(open(model.predict(store / "b.ome.tif", "predict.format=nifti")["prediction"], "rb").read())
    model.checkpoint = given
    checks.expect(after == predicted, "as predict does with the new checkpoint")
    fresh = client.next_sample("uncertainty", {})
    checks.expect(fresh["score"] != sample["score"], f"uncertainty of the new model: {fresh}")
    client.train_start("last", {"max_epochs": 1000000})
    client.train_stop()
    while client.train_status()["status"] == "RUNNING" and time.monotonic() < deadline:
        time.sleep(0.2)
    checks.expect(client.train_status()["status"] == "CANCELED", f"train_stop: {client.train_status()}")
    runs = json.loads(server.ask("GET", "/trainings/list")[2])
    checks.expect(task["id"] in [one["run"] for one in runs], f"/trainings/list: {runs}")
    status, headers, report = server.ask("GET", f"/trainings/report?run={task['id']}")
    checks.expect(status == 200 and report == (run / "report.html").read_bytes() and "'none'" in headers["content-security-policy"], "its report")


def main():
    checks = Checks()
    model = Model(sys.argv[1])
    model.words = ["performance.backend=eager"]
    model.original = model.checkpoint.read_bytes()
    store, results = model.folder / "store", model.folder / "results"
    store.mkdir()
    results.mkdir()
    image = model.images[-1]  # the raw image
    for name in "a", "b":
        shutil.copy(image, store / f"{name}.ome.tif")
    expected = gzip.decompress(open(model.predict(image, "predict.format=nifti")["prediction"], "rb").read())
    with Server(model, *model.words, f"datastore={store}") as server:
        client = client_module.MONAILabelClient(server.url, str(results))
        checks.expect(client.auth_enabled(), "auth_enabled")
        try:
            client.auth_token("anybody", "wrong")
            checks.expect(False, "a wrong password")
        except client_module.MONAILabelClientException as error:
            checks.expect(error.status_code == 401, "a wrong password: 401")
        client.update_auth(client.auth_token("anybody", server.token))
        checks.expect(client.auth_valid_token(), "auth_valid_token")
        info = client.info()
        checks.expect(info["models"]["last"]["type"] == "segmentation" and info["datastore"]["total"] == 2
                      and "first" in info["strategies"], f"info: {info}")

        def same(answer, what):
            file, params = answer
            content = gzip.decompress(open(file, "rb").read())
            checks.expect(content == expected and params["label_names"], f"infer, {what}: {file}, {params}")

        same(client.infer("last", "a", {}), "an image of the datastore")
        same(client.infer("last", "", {}, file=str(image)), "a file")
        # Its headers keep the type and length of an earlier body; requests sends those.
        fresh = client_module.MONAILabelClient(server.url, str(results))
        fresh.update_auth({"token_type": "bearer", "access_token": server.token})
        session = fresh.create_session(str(image))
        checks.expect(client.get_session(session["session_id"])["name"] == image.name, f"create_session: {session}")
        same(client.infer("last", "", {}, session_id=session["session_id"]), "a session")
        client.remove_session(session["session_id"])
        try:
            client.get_session(session["session_id"])
            checks.expect(False, "a session that was removed")
        except client_module.MONAILabelClientException as error:
            checks.expect(error.status_code == 404, "a session that was removed: 404")

        checks.expect(client.next_sample("first", {})["id"] == "a", "next_sample")
        label = client.infer("last", "a", {})[0]
        checks.expect(client.save_label("a", label)["label"] == "a", "save_label")
        checks.expect((store / "labels/final/a.nii.gz").exists(), "the label is in labels/final")
        checks.expect(client.next_sample("first", {})["id"] == "b", "next_sample: the other image")
        objects = client.datastore()["objects"]
        checks.expect(client.info()["datastore"]["completed"] == 1 and list(objects) == ["a", "b"]
                      and "final" in objects["a"]["labels"], f"datastore: {objects}")
        kept = open(client.download_label("a", "final"), "rb").read()
        checks.expect(kept == open(label, "rb").read(), "download_label")
        checks.expect(client.upload_image(str(image), "c")["image"] == "c" and (store / "c.ome.tif").exists(), "upload_image")
        try:
            client.upload_image(str(image), "../d")
            checks.expect(False, "an image's name with a folder")
        except client_module.MONAILabelClientException as error:
            checks.expect("plain name" in error.msg and not (model.folder / "d.ome.tif").exists(), f"../d: {error.msg}")
        checks.expect(not client.train_status(check_if_running=True), "train_status: none runs")
        correct_and_learn(model, server, client, client_module, store, checks)
        try:
            client.infer("last", "nothing", {})
            checks.expect(False, "an image that is not there")
        except client_module.MONAILabelClientException as error:
            checks.expect("no such image" in error.msg, f"an image that is not there: {error.msg}")
    with Server(model, *model.words, f"datastore={store}", "token=null") as server:
        client = client_module.MONAILabelClient(server.url, str(results))
        checks.expect(not client.auth_enabled(), "without a token: auth_enabled is false")
        checks.expect(client.save_label("a", label)["label"] == "a", "save_label again, by another server")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
