#!/usr/bin/env python3
"""server_test.py BIN: an agent's work with `cytra mcp` by plain lines of JSON, in both eras of the protocol, and what the server must refuse.

tests/mcp/official_client.py does such work with the official Python package.
"""

import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(sys.argv[1]).resolve()
SMALL = ["experiment=im2im/segmentation", "data.path=samples", "trainer.accelerator=cpu", "patch_shape=[32,32]", "model.filters=[4,4,8]",
         "data.num_workers=0", "trainer.limit_train_batches=20"]  # fmt: skip
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Server:
    def __init__(self, folder, *arguments):
        self.messages = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([BIN / "cytra", "mcp", folder, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.messages)
        self.number, self.buffer, self.notes = 0, b"", []

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def line(self, seconds):
        """The next message; None when none comes."""
        end = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                return None
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                return None
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def ask(self, method, params=None, seconds=240):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params or {}})
        return self.answer_to(self.number, seconds)

    def answer_to(self, number, seconds=240):
        while (message := self.line(seconds)) is not None:
            if message.get("id") == number:
                return message
            self.notes.append(message)
        raise AssertionError(f"no answer to request {number}")

    def call(self, tool, meta=None, **arguments):
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments, **({"_meta": meta} if meta else {})})
        return answer["result"]

    def has_fence(self):
        """Whether the kernel refuses files, too."""
        self.messages.seek(0)
        return "no Landlock" not in self.messages.read()

    def close(self):
        self.process.stdin.close()
        return self.process.wait(60)


def text_of(result):
    return "\n".join(part["text"] for part in result["content"])


def expect(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(each) for each in what))


def expect_refused(result, *parts):
    expect(result["isError"], "not refused:", result)
    for part in parts:
        expect(part in text_of(result), f"no {part!r} in", text_of(result))


def children_of(pid):
    return [int(pid) for pid in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def check_protocol(server):
    expect(server.ask("tools/list")["error"]["code"] == -32602, "a request without a revision was answered")
    server.process.stdin.write(b"not json\n")
    server.process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}}\n")
    server.send({"id": 2, "method": "ping", "params": {str(number): {} for number in range(100_000)}})
    server.send({"id": None, "method": "ping"})
    server.send({"method": "notifications/unknown"})
    refused = [server.line(10) for _ in range(4)]
    expect([(one["error"]["code"], one["id"]) for one in refused] == [(-32700, None), (-32600, 1), (-32600, 2), (-32600, None)], refused)
    other = server.ask("tools/list", {"_meta": {**MODERN, "io.modelcontextprotocol/protocolVersion": "2030-01-01"}})["error"]
    expect(other["code"] == -32022 and "2026-07-28" in other["data"]["supported"], other)
    found = server.ask("server/discover", {"_meta": MODERN})["result"]
    expect(found["resultType"] == "complete" and found["supportedVersions"][0] == "2026-07-28" and "ttlMs" in found, found)
    expect(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "cytra", found)
    modern = server.ask("tools/list", {"_meta": MODERN})["result"]
    greeting = server.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
    expect(greeting["result"]["protocolVersion"] == "2025-06-18", greeting)
    server.send({"method": "notifications/initialized"})
    expect(server.ask("ping")["result"] == {}, "ping")
    tools = server.ask("tools/list")["result"]
    expect("resultType" not in tools and tools["tools"] == modern["tools"], tools)
    names = [tool["name"] for tool in tools["tools"]]
    expect(names == ["describe", "check", "plan", "train", "predict", "report", "stop"], names)
    expect(server.ask("resources/list")["error"]["code"] == -32601, "resources/list")
    unknown = server.ask("tools/call", {"name": "trian", "arguments": {}})["error"]
    expect(unknown["code"] == -32602 and "train" in unknown["message"], unknown)


def check_work(server, folder):
    data = server.call("describe", path="samples")["structuredContent"]
    expect(data["splits"]["train"]["raw"]["images"] == 3 and data["problems"] == [], data)
    image = next((folder / "samples/images").iterdir()).relative_to(folder)
    expect(server.call("describe", path=str(image))["structuredContent"]["shape"] == [1, 1, 64, 64], "describe an image")
    expect("trainer.max_epochs" in text_of(server.call("describe", name="trainer.max_epochs")), "describe a name")
    expect(server.call("check", overrides=SMALL)["structuredContent"] == {"ok": True}, "check")
    expect_refused(server.call("check", overrides=[*SMALL, "trainer.max_epoch=3"]), "max_epochs", "exit code 2")
    expect_refused(server.call("train", overides=SMALL), "overides", "overrides")
    expect_refused(server.call("train", overrides="x"), "a list of texts")
    for arguments in {"path": "samples\0.tif"}, {"name": "loss\0"}, {"path": "samples", "overrides": ["data.columns=[raw]\0"]}:
        expect_refused(server.call("describe", **arguments), "\\u0000")  # it would be read up to there
    plan = server.call("plan", path="samples", output="local/experiment/mine.yaml")
    expect((folder / "local/experiment/mine.yaml").is_file(), plan)

    trained = server.call("train", meta={"progressToken": "t"}, overrides=[*SMALL, "trainer.max_epochs=2"], output="run")
    run = trained["structuredContent"]
    expect(run["output_dir"].endswith("run") and (folder / "run/checkpoints/last.ckpt").is_file(), trained)
    steps = [note["params"] for note in server.notes if note.get("method") == "notifications/progress"]
    expect(steps and all(step["progressToken"] == "t" for step in steps), server.notes)
    expect(all(a["progress"] < b["progress"] for a, b in zip(steps, steps[1:])), steps)
    report = server.call("report", folder="run")["structuredContent"]
    expect(report["program"] == "train" and "best" in report and report["epochs"][-1]["epoch"] == 1, report)

    model = server.call("describe", path="run/checkpoints/best.ckpt")["structuredContent"]
    expect(model["model"] == "DynUNet" and model["parameters"] > 100, model)

    masks = server.call("predict", meta=MODERN, checkpoint="run/checkpoints/last.ckpt", path="samples/test.csv", output="masks")
    expect(len(masks["structuredContent"]["prediction"]) == 2 and masks["resultType"] == "complete", masks)
    expect(all((folder / path).is_file() for path in masks["structuredContent"]["prediction"]), masks)


def check_borders(server, folder, outside):
    image = str(next((outside / "samples/images").glob("*.tif*")))
    (folder / "out").symlink_to(outside)
    (folder / "nothing").symlink_to(outside / "not there")
    refused = [dict(path="../samples"), dict(path=str(outside / "samples")), dict(path="out/samples"), dict(path="~/samples"), dict(path="/etc")]
    for arguments in refused:
        expect_refused(server.call("describe", **arguments), arguments["path"])
    for word in ("paths.output_dir=/tmp/x", "paths.output_dir=out/x", "paths.output_dir=nothing/x", "paths.output_dir=samples/../../x",
                 "data.cache_dir=/tmp/x", "paths.output_dir=${oc.env:HOME}/x", "hydra.run.dir=x", "+trainer.x=[a,{b: /etc/passwd}]",
                 f"paths.output_dir={folder}", "experiment=../../x", "--config-dir=/etc", "-m", "data.path=" + image):  # fmt: skip
        expect_refused(server.call("train", overrides=[*SMALL, word]), word.split("=")[0].lstrip("+"))
    expect_refused(server.call("train", overrides=SMALL, output="/tmp/run"), "/tmp/run")
    expect_refused(server.call("report", folder=".."), "..")
    expect(not (outside / "x").exists() and not (outside / "not there").exists(), "something was written outside")
    if not server.has_fence():
        return print("this kernel has no Landlock: what no name shows is not tried")
    (folder / "list.csv").write_text(f"raw\n{image}\n")
    result = server.call("predict", checkpoint="run/checkpoints/last.ckpt", path="list.csv", output="masks2")
    expect_refused(result, image)
    (folder / "local/experiment/evil.yaml").write_text(f"# @package _global_\npaths:\n  output_dir: {outside}/evil\n")
    expect_refused(server.call("train", overrides=[*SMALL, "+experiment@other=evil"], config_dir="local"), "evil")
    expect_refused(server.call("train", overrides=[*SMALL[1:], "experiment=evil", "trainer.max_steps=1"], config_dir="local"), "evil", "ermission")
    expect(not (outside / "evil").exists(), "something was written outside")


def check_readable(folder, outside):
    server = Server(folder, "--read", str(outside / "samples"))
    masks = server.call("predict", meta=MODERN, checkpoint="run/checkpoints/last.ckpt", path=str(outside / "samples/test.csv"), output="masks3")
    expect(len(masks["structuredContent"]["prediction"]) == 2, masks)
    expect_refused(server.call("predict", meta=MODERN, checkpoint="run/checkpoints/last.ckpt", path=str(outside / "samples/test.csv"),
                               output=str(outside / "samples/masks")), "outside")  # fmt: skip
    expect(server.close() == 0, "exit code")


def check_ends(server):
    """Requests that are cancelled, jobs that are stopped, and a server that goes."""
    long = [*SMALL, "trainer.max_epochs=100000"]
    server.send({"id": "mine", "method": "tools/call", "params": {"name": "train", "arguments": {"overrides": long}}})
    expect(wait_for(lambda: children_of(server.process.pid)), "no training was started")
    server.send({"method": "notifications/cancelled", "params": {"requestId": "mine"}})
    expect(wait_for(lambda: not children_of(server.process.pid)), "the training goes on")
    expect(server.ask("ping")["result"] == {} and not [note for note in server.notes if note.get("id") == "mine"], "a cancelled request was answered")

    job = server.call("train", overrides=long, background=True, output="long")["structuredContent"]["job"]
    expect(wait_for(lambda: server.call("report", job=job)["structuredContent"].get("progress", {}).get("done", 0) > 0), "no progress")
    server.call("stop", job=job)
    expect(wait_for(lambda: server.call("report", job=job)["structuredContent"]["state"] == "stopped"), "the job goes on")
    expect_refused(server.call("report", job="train-7"), "train-7", job)

    server.call("train", overrides=long, background=True)
    (child,) = children_of(server.process.pid)
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    expect(wait_for(lambda: not is_running(child)), "a training outlives its server")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        outside = pathlib.Path(scratch).resolve()
        folder = outside / "agent"
        folder.mkdir()
        for place in (folder, outside):
            subprocess.run([BIN / "generate_samples", "--output", place / "samples", "--train", "3", "--valid", "1", "--test", "2", "--size", "64"],
                           check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        server = Server(folder)
        check_protocol(server)
        check_work(server, folder)
        check_borders(server, folder, outside)
        check_readable(folder, outside)
        check_ends(server)
        last = Server(folder)  # a last line that no newline ends
        last.process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        expect(last.close() == 0 and last.line(10)["result"] == {}, "exit code")
    print("ok")


main()
