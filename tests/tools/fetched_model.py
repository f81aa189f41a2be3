#!/usr/bin/env python3
"""fetched_model.py BIN: a model that is named by an address is fetched once, checked, and gone on with where it broke off.

Exit code 77: curl or openssl is not installed.
"""

import hashlib
import http.server
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(sys.argv[1]).resolve()
MODEL = (ROOT / "models/nuclei.ckpt").read_bytes()
DIGITS = hashlib.sha256(MODEL).hexdigest()
if not shutil.which("curl") or not shutil.which("openssl"):
    print("no curl, or no openssl for the test's certificate")
    sys.exit(77)

asked = []  # the ranges of the requests, "" for a whole file

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked.append(self.headers.get("Range", ""))
        if self.path == "/moved/nuclei.ckpt":
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{server.server_port}/nuclei.ckpt")
            self.end_headers()
            return
        if not self.path.endswith("/nuclei.ckpt"):
            self.send_error(404)
            return
        first = int(asked[-1].removeprefix("bytes=").removesuffix("-") or 0)
        self.send_response(206 if first else 200)
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(MODEL) - 1}/{len(MODEL)}")
        self.send_header("Content-Length", str(len(MODEL) - first))
        self.end_headers()
        self.wfile.write(MODEL[first:])

    def log_message(self, *_):
        pass

folder = pathlib.Path(tempfile.mkdtemp())
subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", folder / "key", "-out", folder / "certificate",
                "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(folder / "certificate", folder / "key")
server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
HOST = f"https://localhost:{server.server_port}"
CACHE = folder / "cache/cytra/models"
ENVIRONMENT = dict(os.environ, CURL_CA_BUNDLE=str(folder / "certificate"), XDG_CACHE_HOME=str(folder / "cache"), NO_PROXY="localhost")

def predict(address, code, *words):
    run = subprocess.run([BIN / "predict", f"checkpoint.ckpt_path={address}", "data.path=" + str(folder / "image.tif"),
                          "trainer.accelerator=cpu", "paths.output_dir=" + str(folder / "out")],
                         env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    assert run.returncode == code, (address, run.returncode, run.stderr)
    assert all(word in run.stderr for word in words), (address, run.stderr)
    assert code == 0 or run.stderr.splitlines()[-1].startswith("error:"), run.stderr

subprocess.run([BIN / "generate_samples", "--output", folder / "data", "--train", "1", "--valid", "1", "--size", "64"], check=True, capture_output=True)
shutil.copy(next((folder / "data").rglob("*_raw*.tif")), folder / "image.tif")

predict(f"{HOST}/nuclei.ckpt", 2, "@sha256:", "sha256sum")
predict(f"http://localhost/nuclei.ckpt@sha256:{DIGITS}", 2, "expected https://")
predict(f"{HOST}/@sha256:{DIGITS}", 2, "a file's name")
predict(f"{HOST}/nuclei.ckpt@sha256:{'0' * 64}", 2, DIGITS)
predict(f"{HOST}/other.ckpt@sha256:{DIGITS}", 2, "404")
predict(f"{HOST}/moved/nuclei.ckpt@sha256:{DIGITS}", 4, "http")
assert not list(CACHE.rglob("*.ckpt")), "nothing is kept of what is wrong"

part = CACHE / DIGITS / "nuclei.ckpt.part"
part.write_bytes(MODEL[:1000])
asked.clear()

predict(f"{HOST}/nuclei.ckpt@sha256:{DIGITS}", 0, "is kept as")
assert asked == ["bytes=1000-"], asked
assert (CACHE / DIGITS / "nuclei.ckpt").read_bytes() == MODEL and not part.exists()
predict(f"{HOST}/nuclei.ckpt@sha256:{DIGITS}", 0)
assert len(asked) == 1, "it is fetched once"
(CACHE / DIGITS / "nuclei.ckpt").write_bytes(MODEL[:-1] + b"x")
predict(f"{HOST}/nuclei.ckpt@sha256:{DIGITS}", 0)
assert len(asked) == 2, "what was changed is fetched again"

shutil.rmtree(CACHE)
asked.clear()
runs = [threading.Thread(target=predict, args=(f"{HOST}/nuclei.ckpt@sha256:{DIGITS}", 0)) for _ in range(2)]
for run in runs:
    run.start()
for run in runs:
    run.join()
assert len(asked) == 1, "two runs at once fetch it once"
server.shutdown()
predict(f"https://localhost:1/nuclei.ckpt@sha256:{'1' * 64}", 4, "curl: (7)")
shutil.rmtree(folder)
