"""Loads a server of images over HTTP and prints figures as JSON.

    serve_load.py [options] -- COMMAND...      COMMAND serves until it is told to end, and prints {"url": ..., "token": ...} first

Sixteen images of noise, as NumPy files, are asked for one by one first, then by all clients at once; an answer that is not near the one of
its own image is counted as wrong. With --rate the clients ask at random times (Poisson) of that mean rate, whether or not answers come.
"""
import argparse
import asyncio
import collections
import io
import json
import random
import statistics
import subprocess
import time
import urllib.parse

import numpy as np


class Client:
    """A connection that asks one thing at a time. It is opened again where the server has closed it."""

    def __init__(self, url, token):
        address = urllib.parse.urlsplit(url)
        self.host, self.port, self.token, self.streams = address.hostname, address.port, token, None

    async def ask(self, path, body=b"", method="POST"):
        """The status, the head and the body of the answer."""
        if self.streams is None:
            self.streams = await asyncio.open_connection(self.host, self.port)
        reader, writer = self.streams
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nAuthorization: Bearer {self.token}\r\nContent-Length: {len(body)}\r\n\r\n"
        try:
            writer.write(head.encode() + body)
            await writer.drain()
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
            fields = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
            answer = await reader.readexactly(int(fields.get("content-length", 0)))
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            raise
        if fields.get("connection") == "close":
            self.close()
        return int(lines[0].split()[1]), fields, answer

    def close(self):
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


def memory_mb(process):
    with open(f"/proc/{process}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def cpu_seconds(process):
    with open(f"/proc/{process}/stat") as stat:
        words = stat.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / 100


class Load:
    def __init__(self, options, process, url, token):
        self.options, self.process, self.url, self.token = options, process, url, token
        self.bodies, self.right = [], []
        random_images = np.random.default_rng(0)
        for _ in range(16):
            coarse = random_images.integers(0, 4096, [options.size // 16] * 2).astype(np.uint16)
            file = io.BytesIO()
            np.save(file, np.kron(coarse, np.ones([16, 16], np.uint16)) + random_images.integers(0, 400, [options.size] * 2).astype(np.uint16))
            self.bodies.append(file.getvalue())
        self.ms, self.refused_ms, self.statuses, self.wrong = [], [], collections.Counter(), 0

    async def one(self, client, begin=None):
        index = random.randrange(len(self.bodies))
        begin = begin or time.perf_counter()
        try:
            status, fields, answer = await client.ask(self.options.path, self.bodies[index])
        except (OSError, asyncio.IncompleteReadError):
            self.statuses["broken"] += 1
            return
        ms = 1e3 * (time.perf_counter() - begin)
        self.statuses[status] += 1
        if status == 200:
            self.ms.append(ms)
            mask = np.load(io.BytesIO(answer))
            self.wrong += mask.shape != self.right[index].shape or np.mean(mask != self.right[index]) > 0.01
        elif status == 503:
            self.refused_ms.append(ms)
            self.wrong += "retry-after" not in fields

    async def run(self):
        options = self.options
        first = Client(self.url, self.token)
        for body in self.bodies:
            status, _, answer = await first.ask(options.path, body)
            if status != 200:
                raise SystemExit(f"{options.path}: {status} {answer[:500]!r}")
            self.right.append(np.load(io.BytesIO(answer)))
        first.close()
        assert all(np.mean(one != other) > 0.05 for one in self.right for other in self.right if one is not other), "masks that can't be told apart"
        await self.drive(min(2.0, options.seconds))  # sizes of batches are met for the first time
        self.ms, self.refused_ms, self.statuses = [], [], collections.Counter()
        cpu, begin, memory = cpu_seconds(self.process), time.perf_counter(), memory_mb(self.process)
        watcher = asyncio.create_task(self.watch())
        await self.drive(options.seconds)
        seconds = time.perf_counter() - begin
        watcher.cancel()
        answered = len(self.ms)
        result = {"answered_per_s": answered / seconds, "ms_per_request": 1e3 * seconds / answered, "cpu_ms_per_request": 1e3 * (cpu_seconds(self.process) - cpu) / answered,
                  "statuses": {str(key): count for key, count in self.statuses.items()}, "wrong": int(self.wrong), "rss_mb_before": memory, "rss_mb": memory_mb(self.process),
                  "rss_mb_each_minute": self.memory}
        for name, times in (("", self.ms), ("refused_", self.refused_ms)):
            if len(times) > 1:
                times.sort()
                result |= {name + "p50_ms": statistics.median(times), name + "p99_ms": times[int(0.99 * len(times))], name + "max_ms": times[-1]}
        begin = time.perf_counter()
        await first.ask(options.path, self.bodies[0])
        return result | {"one_afterwards_ms": 1e3 * (time.perf_counter() - begin)}

    async def watch(self):
        self.memory = []
        while True:
            await asyncio.sleep(60)
            self.memory.append(round(memory_mb(self.process), 1))

    async def drive(self, seconds):
        end = time.perf_counter() + seconds
        if self.options.rate is None:
            async def closed():
                client = Client(self.url, self.token)
                while time.perf_counter() < end:
                    await self.one(client)
                client.close()

            await asyncio.gather(*(closed() for _ in range(self.options.clients)))
            return
        idle, tasks, due = [], set(), time.perf_counter()
        while due < end:
            due += random.expovariate(self.options.rate)
            await asyncio.sleep(max(0.0, due - time.perf_counter()))

            async def opened(begin):
                client = idle.pop() if idle else Client(self.url, self.token)
                await self.one(client, begin)
                idle.append(client)

            task = asyncio.create_task(opened(due))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)
        for client in idle:
            client.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", default="/predict?filename=image.npy&format=npy", help="where images are sent")
    parser.add_argument("--clients", type=int, default=64, help="that ask at once, each again when its answer is there")
    parser.add_argument("--rate", type=float, help="requests/s at random times, in place of --clients")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--size", type=int, default=256, help="of an image's sides")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    random.seed(0)
    server = subprocess.Popen(options.command, stdout=subprocess.PIPE)
    try:
        told = json.loads(server.stdout.readline())
        result = asyncio.run(Load(options, server.pid, told["url"], told["token"]).run())
        print(json.dumps(result))
        if result["wrong"] or (options.rate is None and set(result["statuses"]) != {"200"}):
            raise SystemExit("answers were wrong, or missing")
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
