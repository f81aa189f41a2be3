#!/usr/bin/env python3
"""official_client.py BIN: ten jobs of an agent with `cytra mcp`, by the official Python package (pip install 'mcp>=2'), by each request's own
revision (2026-07-28) and by the handshake of 2025-11-25. The package validates every message and structured content against its schema.

Exit code 77: the package is not installed.
"""

import asyncio
import pathlib
import subprocess
import sys
import tempfile
import time

try:
    from mcp import Client, MCPError, StdioServerParameters, stdio_client
except ImportError as error:
    print(error)
    sys.exit(77)

BIN = pathlib.Path(sys.argv[1]).resolve()
SMALL = ["experiment=im2im/segmentation", "data.path=samples", "trainer.accelerator=cpu", "patch_shape=[32,32]", "model.filters=[4,4,8]",
         "data.num_workers=0", "trainer.limit_train_batches=20"]  # fmt: skip
VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}  # by the mode of the client


def text_of(result):
    return "\n".join(part.text for part in result.content)


def expect(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(each) for each in what))


def trainings():
    """Running trainings of this test, by their command lines."""
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    return [line for line in found.splitlines() if str(BIN / "train") in line and "trainer.max_epochs=100000" in line]


async def describe_samples(client, folder):
    result = await client.call_tool("describe", {"path": "samples"})
    expect(result.structured_content["splits"]["train"]["raw"]["images"] == 3, result)
    expect("type" in text_of(await client.call_tool("describe", {"name": "optimizer.lr"})), "an option")


async def check(client, folder):
    result = await client.call_tool("check", {"overrides": SMALL})
    expect(result.structured_content == {"ok": True}, result)


async def plan(client, folder):
    result = await client.call_tool("plan", {"path": "samples", "output": "local/experiment/mine.yaml"})
    expect((folder / result.structured_content["plan"]).is_file(), result)


async def train(client, folder):
    seen = []

    async def on_progress(progress, total, message):
        seen.append((progress, total, message))

    result = await client.call_tool("train", {"overrides": [*SMALL, "trainer.max_epochs=2"], "output": "run"}, progress_callback=on_progress)
    expect((folder / result.structured_content["last_checkpoint"]).is_file(), result)
    expect(seen and seen == sorted(seen, key=lambda step: step[0]) and "training" in seen[-1][2], seen)


async def predict(client, folder):
    result = await client.call_tool("predict", {"checkpoint": "run/checkpoints/best.ckpt", "path": "samples/images", "output": "masks"})
    expect(all((folder / path).is_file() for path in result.structured_content["prediction"]), result)


async def report(client, folder):
    result = (await client.call_tool("report", {"folder": "run"})).structured_content
    expect(result["best"]["metric"] == "val/dice" and len(result["epochs"]) == 2, result)


async def wrong_key(client, folder):
    result = await client.call_tool("train", {"overrides": [*SMALL, "optimizer.learning_rate=0.1"]})
    expect(result.is_error and "optimizer.learning_rate" in text_of(result) and "exit code 2" in text_of(result), result)


async def path_outside(client, folder):
    for path in ("../samples", "/etc/passwd", str(folder.parent)):
        result = await client.call_tool("predict", {"checkpoint": "run/checkpoints/best.ckpt", "path": path})
        expect(result.is_error and path in text_of(result), result)


async def cancel(client, folder):
    call = asyncio.create_task(client.call_tool("train", {"overrides": [*SMALL, "trainer.max_epochs=100000"]}))
    for is_begun in (True, False):
        end = time.monotonic() + 60
        while bool(trainings()) != is_begun:
            expect(time.monotonic() < end, "the training", "has not begun" if is_begun else "goes on")
            await asyncio.sleep(0.1)
        call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    expect((await client.list_tools()).tools, "the server is gone")


async def unknown_tool(client, folder):
    try:
        result = await client.call_tool("segment", {})
    except MCPError as error:
        return expect("segment" in str(error), error)
    raise AssertionError(f"a tool that is none has answered: {result}")


JOBS = (describe_samples, check, plan, train, predict, report, wrong_key, path_outside, cancel, unknown_tool)


async def work(mode, folder):
    server = StdioServerParameters(command=str(BIN / "cytra"), args=["mcp", str(folder)])
    async with Client(stdio_client(server), mode=mode) as client:
        expect(client.protocol_version == VERSIONS[mode], client.protocol_version)
        expect(client.server_info is None or client.server_info.name == "cytra", client.server_info)
        expect(len((await client.list_tools()).tools) == 7, "tools")
        for job in JOBS:
            begin = time.monotonic()
            await job(client, folder)
            print(f"{mode:10}  {job.__name__:16}  {time.monotonic() - begin:6.2f} s", flush=True)


def main():
    for mode in VERSIONS:
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch).resolve() / "agent"
            subprocess.run([BIN / "generate_samples", "--output", folder / "samples", "--train", "3", "--valid", "1", "--test", "2", "--size", "64"],
                           check=True, stdout=subprocess.DEVNULL)  # fmt: skip
            asyncio.run(work(mode, folder))
    print("ok")


main()
