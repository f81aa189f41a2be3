"""A model of one training step, `predict` on its images, and `serve` with it: for the tests of this folder."""
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile


class Checks:
    """Counts what does not hold, and goes on."""

    def __init__(self):
        self.failed = 0

    def expect(self, holds, what):
        if holds:
            print(f"ok      {what}")
        else:
            self.failed += 1
            print(f"FAILED  {what}")


def run(binary, *words):
    done = subprocess.run([str(binary), *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{binary.name} {words}: {done.stderr}"
    return done.stdout


class Model:
    """Generated images, and a small network for masks that saw them once."""

    def __init__(self, binaries):
        self.binaries = pathlib.Path(binaries).resolve()
        self.folder_ = tempfile.TemporaryDirectory(prefix="cytra-serve-test-")
        self.folder = pathlib.Path(self.folder_.name)
        self.samples = self.folder / "samples"
        run(self.binaries / "generate_samples", "--output", self.samples, "--train", 1, "--valid", 1, "--test", 2,
            "--size", 64, "--seed", 3)
        run(self.binaries / "train", "experiment=im2im/segmentation", "trainer.accelerator=cpu", "trainer.max_steps=1",
            "patch_shape=[32,32]", "model.filters=[4,8,8]", f"data.path={self.samples}",
            f"paths.output_dir={self.folder}/run")
        self.checkpoint = self.folder / "run/checkpoints/last.ckpt"
        self.words = []  # of `predict`
        self.images = sorted((self.samples / "images").iterdir())

    def predict(self, image, *words):
        """The files that `predict` writes: kind -> path."""
        out = tempfile.mkdtemp(dir=self.folder)
        told = run(self.binaries / "predict", f"checkpoint.ckpt_path={self.checkpoint}", "trainer.accelerator=cpu",
                   f"data.path={image}", f"paths.output_dir={out}/out", "--json", *self.words, *words)
        return {kind: found[0] if isinstance(found, list) else found for kind, found in json.loads(told).items()}


class Server:
    """A running `serve`."""

    def __init__(self, model, *words, checkpoint=True):
        command = [str(model.binaries / "serve"), "port=0", "--json", "trainer.accelerator=cpu"]
        if checkpoint:
            command.append(f"checkpoint.ckpt_path={model.checkpoint}")
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([*command, *map(str, words)], stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        cwd=model.folder)
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise RuntimeError(self.told())
        self.start = json.loads(line)
        self.token = self.start.get("token")
        self.url = self.start["url"]
        self.port = int(self.url.rsplit(":", 1)[1]) if self.url.startswith("http") else None

    def told(self):
        self.errors.seek(0)
        return self.errors.read()

    def connect(self, timeout=30):
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def ask(self, method, target, body=None, headers=(), token=True, timeout=60):
        """Status, headers, body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        own = dict(headers)
        if token and self.token:
            own.setdefault("Authorization", f"Bearer {self.token}")
        connection.request(method, target, body, own)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, content

    def memory_mb(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0]) / 1000

    def stop(self, by=signal.SIGTERM):
        """The exit code."""
        if self.process.poll() is None:
            os.kill(self.process.pid, by)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
