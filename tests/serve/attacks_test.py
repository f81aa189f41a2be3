#!/usr/bin/env python3
"""What strangers may send to `serve`: each attack gets the right answer, memory stays, and an honest client is served.

attacks_test.py FOLDER_OF_PROGRAMS
"""
import json
import os
import pathlib
import resource
import shutil
import signal
import struct
import sys
import threading
import time

from server import Checks, Model, Server


def raw(server, parts, timeout=20):
    """Sends bytes as they are; the status of the answer, 0 where the connection is closed without one."""
    with server.connect(timeout) as connection:
        try:
            for part in parts:
                connection.sendall(part)
        except OSError:
            pass  # the server has closed it; its answer may still be there
        answer = b""
        try:
            while b"\r\n" not in answer:
                got = connection.recv(4096)
                if not got:
                    break
                answer += got
        except OSError:
            pass
    return int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/1.") else 0


def head(server, *lines, target="/predict", method="POST"):
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {server.token}", *lines, "", ""]
    return "\r\n".join(lines).encode()


def attacks(server, checks):
    big = b"x" * (1 << 20)
    cases = [
        ("a body that says it is too large", [head(server, "Content-Length: 999999999999")], 413),
        ("an endless body in chunks", [head(server, "Transfer-Encoding: chunked"), *[b"100000\r\n" + big + b"\r\n"] * 300], 413),
        ("an endless header", [b"GET / HTTP/1.1\r\nX: ", *[big] * 50], 431),
        ("100,000 headers", [b"GET / HTTP/1.1\r\n" + b"".join(b"A%d: b\r\n" % i for i in range(100_000))], 431),
        ("Content-Length and Transfer-Encoding", [head(server, "Content-Length: 5", "Transfer-Encoding: chunked"), b"0\r\n\r\n"],
         400),
        ("two Content-Lengths", [head(server, "Content-Length: 5", "Content-Length: 6"), b"abcdef"], 400),
        ("a negative Content-Length", [head(server, "Content-Length: -1")], 400),
        ("a Content-Length beyond 64 bits", [head(server, "Content-Length: 99999999999999999999999")], 400),
        ("a chunk's size that is no number", [head(server, "Transfer-Encoding: chunked"), b"zz\r\nabc\r\n"], 400),
        ("gzip and chunked", [head(server, "Transfer-Encoding: gzip, chunked"), b"0\r\n\r\n"], 501),
        ("an address of 9 kB", [head(server, target="/" + "a" * 9000, method="GET")], 414),
        ("a NUL in a header", [b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n"], 400),
        ("no HTTP", [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200)], 400),
        ("no Host", [b"GET /healthz HTTP/1.1\r\n\r\n"], 400),
        ("HTTP 9", [b"GET /healthz HTTP/9.1\r\nHost: a\r\n\r\n"], (400, 505)),
        ("a body of gzip", [head(server, "Content-Encoding: gzip", "Content-Length: 10"), bytes(10)], 415),
        ("a path outside", [head(server, target="/../../etc/passwd", method="GET")], 404),
        ("a coded path outside", [head(server, target="/predict/%2e%2e%2f%2e%2e%2fetc%2fpasswd"), b""], (404, 400)),
        ("an unknown expectation", [head(server, "Expect: a pony", "Content-Length: 3"), b"abc"], 417),
    ]
    server.ask("GET", "/healthz")
    before = server.memory_mb()
    for name, parts, expected in cases:
        status = raw(server, parts)
        expected = expected if isinstance(expected, tuple) else (expected,)
        checks.expect(status in expected, f"{name}: {status}")
        checks.expect(server.ask("GET", "/healthz", timeout=5)[0] == 200, "    and then an honest client")
    checks.expect(server.memory_mb() < before + 64, f"memory: {before:.0f} -> {server.memory_mb():.0f} MB")


def folders(model, checks):
    """Trainings and labels are those of their folders; no path leaves them."""
    store, secret = model.folder / "attacked", model.folder / "secret"
    (store / "trainings/a/b").mkdir(parents=True)
    secret.mkdir()
    (secret / "report.html").write_text("secret")
    (store / "trainings/a/b/report.html").write_text("<p>a report")
    (store / "trainings/linked").symlink_to(secret)
    (store / "trainings/file").mkdir()
    (store / "trainings/file/report.html").symlink_to(secret / "report.html")
    (store / "x.ome.tif").write_bytes(model.images[0].read_bytes())
    with Server(model, f"datastore={store}", "limits.body_mb=8") as server:
        status, _, body = server.ask("GET", "/trainings/list")
        checks.expect(status == 200 and b'"a/b"' in body and b"linked" not in body and b'"file"' not in body, f"/trainings/list: {body}")
        checks.expect(server.ask("GET", "/trainings/report?run=a/b")[2] == b"<p>a report", "a report")
        (store / "trainings/killed").mkdir()
        (store / "trainings/killed/report.html").write_text('<p><span class="badge">running</span>')  # and no process holds its lock
        report = server.ask("GET", "/trainings/report?run=killed")[2]
        checks.expect(b"ended without a word" in report and b"running" not in report, f"a training that was killed: {report}")
        for run in ("linked", "file", "../../secret", "a/../../../secret", "%2e%2e/%2e%2e/secret", "/etc", "", ".", "a/b/", "a/b/report.html",
                    str(secret), "a%2fb%2f..%2fb", "a" * 5000):
            status, _, body = server.ask("GET", f"/trainings/report?run={run}")
            checks.expect(status == 404 and b"secret" not in body.replace(run.encode(), b"").replace(b"../secret", b""), f"run={run[:40]}: {status}")
        deep = b"[" * 100_000
        for method, target, body, expected in [
                ("POST", "/train/last", b"{", 400), ("POST", "/train/last", b"[]", 400), ("POST", "/train/last", deep, 400),
                ("POST", "/train/last", b"x" * 9_000_000, 413), ("POST", "/train/..%2flast", b"{}", 404), ("POST", "/train/last", b"{}", 422),
                ("GET", "/train/", None, 404), ("DELETE", "/train/", None, 404), ("PATCH", "/train/", None, 405),
                ("POST", "/activelearning/uncertainty", b"{", 400), ("POST", "/activelearning/uncertainty", b'{"model":7}', 400),
                ("POST", "/activelearning/uncertainty", b'{"model":"../last"}', 404), ("POST", "/activelearning/..%2f", b"{}", 404),
                ("POST", "/preview", b"", 400), ("POST", "/preview", b"x" * 9_000_000, 413), ("POST", "/preview/nothing", b"x", 404),
                ("PUT", "/datastore/label?image=..%2fx", b"--b\r\n\r\n--b--\r\n", 400)]:
            status = server.ask(method, target, body, {"Content-Type": "multipart/form-data; boundary=b"} if method == "PUT" else {})[0]
            checks.expect(status == expected, f"{method} {target} {(body or b'')[:30]}: {status}")
        (store / "labels/final").mkdir(parents=True)
        (store / "labels/final/x.ome.tif").write_bytes(model.images[0].read_bytes())
        for body in (b'{"data.path":"/etc"}', b'{"paths.output_dir":"/tmp/x"}', b'{"trainer.max_epochs":1e99}', b'{"optimizer.lr":"1"}', b'{"seed":0.5}'):
            status, _, answer = server.ask("POST", "/train/last", body)
            checks.expect(status == 400, f"/train/last {body}: {status} {answer[:100]}")
        for method, target in [("GET", "/trainings/list"), ("GET", "/trainings/report?run=a/b"), ("POST", "/train/last"), ("POST", "/preview"),
                               ("DELETE", "/train/"), ("POST", "/v2/repository/models/last/unload"), ("POST", "/activelearning/uncertainty")]:
            for token in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {server.token}"}):
                status = server.ask(method, target, headers=token, token=False)[0]
                checks.expect(status == 401, f"{method} {target} with {list(token.values())}: {status}")
        # A header that names another file would show that of somebody else.
        header = "ObjectType = Image\nNDims = 2\nDimSize = 4 4\nElementType = MET_UCHAR\nElementDataFile = x.ome.tif\n".encode()
        for target in "/session/", "/datastore/?image=h", "/datastore/label?image=x", "/infer/last":
            for name, content, expected in (("h.mhd", header, 422), ("h.mha", header, 422), ("h.h5", b"\x89HDF\r\n\x1a\n" + bytes(600), 415)):
                body = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode() + content + b"\r\n--b--\r\n"
                status, _, answer = server.ask("POST" if "infer" in target else "PUT", target, body, {"Content-Type": "multipart/form-data; boundary=b"})
                checks.expect(status == expected, f"{target} {name}: {status} {answer[:200]}")
        checks.expect(not list(store.glob("h.*")) and len(list((store / "labels/final").iterdir())) == 1, "nothing of it is kept")
        described = server.ask("GET", "/openapi.json")[2]
        checks.expect(all(f'"{path}"'.encode() in described for path in ("/", "/preview", "/train/{model}", "/trainings/report",
                      "/v2/repository/models/{model}/load")), "/openapi.json has the new routes")


def npy(height, width, value=0):
    header = f"{{'descr': '<u2', 'fortran_order': False, 'shape': ({height}, {width}), }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack("<H", value) * (height * width)


FORM = {"Content-Type": "multipart/form-data; boundary=b"}


def form(*files):
    return b"".join(f'--b\r\nContent-Disposition: form-data; name="f"; filename="{name}"\r\n\r\n'.encode() + content + b"\r\n" for name, content in files) + b"--b--\r\n"


def at_once(*works):
    """What each of them gives."""
    got = [None] * len(works)
    threads = [threading.Thread(target=lambda at=at, work=work: got.__setitem__(at, work())) for at, work in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return got


def labels(model, checks):
    """What annotators save at once is there; names of files are decided before they are written; a new image has a new score."""
    store = model.folder / "labelled"
    store.mkdir()
    content = model.images[0].read_bytes()
    (store / "a.tif").write_bytes(content)
    final = store / "labels/final"
    with Server(model, f"datastore={store}") as server:
        put = lambda target, name, content=content: server.ask("PUT", target, form((name, content)), FORM)[0]
        lost = 0
        for _ in range(10):
            got = at_once(*[lambda name=name: put("/datastore/label?image=a", name) for name in ("a.npy", "b.png", "c.TIF")])
            lost += got != [200] * 3 or len(list(final.iterdir())) != 1
        checks.expect(lost == 0, f"labels of one image at once: {lost} of 10 lost")
        for _ in range(10):
            got = at_once(*[lambda name=name: put("/datastore/?image=b", name) for name in ("b.npy", "b.png", "b.bmp")])
            lost += sorted(got) != [200, 409, 409]
            server.ask("DELETE", "/datastore/?id=b")
        checks.expect(lost == 0, f"images of one name at once: {lost} of 10 wrong")
        for target, name, sent, expected in [("?image=c.ome", "x.tif", content, 400), ("?image=A", "x.png", content, 409), ("?image=c", "x.zarr", content, 415),
                                             ("label?image=a", "x.png", b"no image", 415), ("label?image=a&tag=.x", "x.png", content, 400), ("?image=%20c", "x.tif", content, 400)]:
            status = put(f"/datastore/{target}", name, sent)
            checks.expect(status == expected, f"PUT /datastore/{target} {name}: {status}")
        checks.expect(len(list(final.iterdir())) == 1 and [path.name for path in store.glob("*.*")] == ["a.tif"], "nothing else is there")
        status, _, answer = server.ask("POST", "/infer/last?image=a&output=image")
        checks.expect(status == 200 and answer[:2] == b"\x1f\x8b", f"/infer without a form: {status}")
        status, _, answer = server.ask("POST", "/infer/last?image=a&output=image", 'params={"result_extension":".npy"}', {"Content-Type": "application/x-www-form-urlencoded"})
        checks.expect(status == 200 and answer[1:6] == b"NUMPY", f"/infer with a form of an address: {status}")
        scores = []
        for number in 1, 7, 31:
            pixels = bytes(number * i * i % 251 for i in range(8192))
            checks.expect(put("/datastore/?image=d", "d.npy", npy(64, 64)[:-8192] + pixels) == 200, "a new image d")
            status, _, answer = server.ask("POST", "/activelearning/uncertainty")
            scores.append(json.loads(answer).get("score"))
            server.ask("DELETE", "/datastore/?id=d")
        checks.expect(len(set(scores)) == 3 and None not in scores, f"three images, one after the other d: scores {scores}")
    with Server(model, f"datastore={store}") as server:
        checks.expect(server.ask("GET", "/datastore/")[0] == 200, "the next start")


def bodies(model, checks):
    """Every byte and second of a request counts, also of what is in the body, and of answers that nobody reads."""
    store, infer = f"datastore={model.folder / 'labelled'}", "/v2/models/last/infer"
    with Server(model, store) as server:
        server.ask("POST", "/predict", model.images[0].read_bytes())
        before = server.memory_mb()
        many = b"{" + b",".join(b'"%08d":1' % i for i in range(1_000_000)) + b"}"
        objects = b"[" + b"{}," * 5_000_000 + b"{}]"
        forms = {name: [f"/datastore/{target}", b"--b\r\nA: " + sent + b"\r\n\r\nx\r\n--b--", FORM] for name, target, sent in [
            ("a form's head of lines", "?image=q", b"\n" * 30_000_000), ("a head of one name", "label?image=a", b'filename="' + b"a" * 30_000_000)]}
        for name, (target, sent, headers) in {"1,000,000 keys": [infer, many, {}], "5,000,000 objects": [infer, objects, {}], "keys in params": ["/activelearning/uncertainty", many, {}],
                                              **forms, "a boundary of 8000 letters": ["/datastore/?image=q", b"-" * 30_000_000, {"Content-Type": "multipart/form-data; boundary=" + "-" * 8000}]}.items():
            method = "PUT" if "datastore" in target else "POST"
            (status, _, answer), honest = at_once(lambda: server.ask(method, target, sent, headers), lambda: server.ask("POST", "/predict", model.images[0].read_bytes())[0])
            checks.expect(status in (400, 413, 503) and honest in (200, 503), f"{name}: {status} {answer[:100]}, beside it {honest}")
        checks.expect(server.memory_mb() < before + 1024, f"memory: {before:.0f} -> {server.memory_mb():.0f} MB")
        threads = [threading.Thread(target=raw, args=(server, [head(server, f"Content-Length: {len(objects)}", target=infer) + objects], 5)) for _ in range(8)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        begin = time.monotonic()
        code = server.stop()
        checks.expect(code == 0 and time.monotonic() - begin < 30, f"SIGTERM among them: {code} after {time.monotonic() - begin:.1f} s")
    with Server(model, "limits.requests_mb=64", "limits.body_mb=32", store) as server:
        def tensor(side, outputs, kind="UINT8", item=1, change=lambda words: words):
            image = {"name": "image", "shape": [side, side], "datatype": kind, "parameters": {"binary_data_size": side * side * item}}
            words = json.dumps(change({"inputs": [image], "outputs": [{"name": name, "parameters": {"binary_data": True}} for name in outputs]})).encode()
            status, _, answer = server.ask("POST", infer, words + bytes(side * side * item), {"Inference-Header-Content-Length": str(len(words))})
            return status, answer
        def with_image(**values):
            return lambda words: {**words, "inputs": [{**words["inputs"][0], **values}]}
        for name, answer in [("twice", tensor(64, ["mask", "mask"])), ("a shape of 64.9", tensor(64, ["mask"], change=with_image(shape=[64.9, 64]))),
                             ("a size of 4096.7", tensor(64, ["mask"], change=with_image(parameters={"binary_data_size": 4096.7})))]:
            checks.expect(answer[0] == 400, f"{name}: {answer[0]}")
        for kind, item in ("FP16", 2), ("BF16", 2), ("INT64", 8), ("UINT64", 8), ("BOOL", 1):
            answer, known = tensor(64, ["logits"], kind, item), tensor(64, ["logits"])
            checks.expect(answer[0] == 200 and answer[1][-16384:] == known[1][-16384:], f"{kind}: {answer[0]}")
        # Answers that nobody reads.
        (model.folder / "labelled/large.npy").write_bytes(npy(2000, 2000))
        before, unread = server.memory_mb(), []
        for _ in range(40):
            unread.append(server.connect())
            unread[-1].sendall(head(server, target="/datastore/image?image=large", method="GET"))
        time.sleep(3)
        checks.expect(server.memory_mb() < before + 160, f"40 answers of 8 MB that nobody reads: {before:.0f} -> {server.memory_mb():.0f} MB")
        for connection in unread:
            connection.close()
        deadline = time.monotonic() + 20
        while b"cytra_serve_requests_bytes 0" not in server.ask("GET", "/metrics")[2] and time.monotonic() < deadline:
            time.sleep(0.1)
        checks.expect(server.ask("GET", "/datastore/image?image=large")[0] == 200, "when they have gone there is room")
    with Server(model, "limits.requests_mb=16", "limits.body_mb=8") as server:
        status, answer = tensor(1600, ["logits", "probability"])
        checks.expect(status in (413, 503), f"results of 20 MB: {status} {answer[:100]}")


def files(model, checks):
    """The folder of files is made anew where it is removed, and a server that is killed leaves nothing to the next one."""
    def folder_of(server):
        held = [os.readlink(link) for link in pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir()]
        return pathlib.Path(next(path for path in held if "cytra-serve-" in path and path.endswith("/.lock"))).parent

    image = model.images[0].read_bytes()
    with Server(model) as server:
        session = json.loads(server.ask("PUT", "/session/", form(("patient.npy", npy(64, 64))), FORM)[2])["session_id"]
        for turn in range(3):
            shutil.rmtree(folder_of(server))
            statuses = [server.ask("GET", "/ready")[0], server.ask("POST", "/predict", image)[0], server.ask("GET", f"/session/{session}")[0]]
            checks.expect(statuses == [200, 200, 404], f"its folder is removed, {turn}: {statuses}")
        names = ["result.tif", "result_overlay.png", "result.png", "result.ome.tif"]
        statuses = [server.ask("POST", f"/predict?filename={name}&output={output}", image)[0] for name in names for output in ("image", "overlay")]
        checks.expect(statuses == [200] * 8, f"images named like results: {statuses}")
        for listed in [[("zarr.json", b'{"zarr_format":3}'), ("c", b"0")], [(".zarray", b"{}"), ("0.0", bytes(64))], [("a.npy", npy(8, 8)), ("b.npy", npy(8, 8))]]:
            status = server.ask("PUT", "/session/", form(*listed), FORM)[0]
            checks.expect(status == 415, f"a session of {[name for name, _ in listed]}: {status}")
        server.ask("PUT", "/session/", form(("patient.npy", npy(64, 64))), FORM)
        left = folder_of(server)
        server.stop(signal.SIGKILL)
    with Server(model) as server:
        checks.expect(not left.exists(), "the next server removes what a killed one has left")
        left = folder_of(server)
        status, headers, _ = server.ask("GET", "/predict", token=False)
        checks.expect((status, headers.get("allow")) == (405, "POST"), f"405: {headers}")
        status, headers, _ = server.ask("POST", "/predict", image, token=False)
        checks.expect(status == 401 and headers.get("www-authenticate", "").startswith("Bearer"), f"401: {headers}")
    checks.expect(not left.exists(), "nothing is left")


def slow_clients(server, checks):
    before = server.memory_mb()
    idle = [server.connect() for _ in range(1000)]
    slow = [server.connect() for _ in range(1000)]
    for connection in slow:
        connection.sendall(b"POST /predict HTTP/1.1\r\nHost: ")
    worst = 0
    for turn in range(20):
        for connection in slow[turn::20]:
            try:
                connection.sendall(b"a")
            except OSError:
                pass  # it made room
        begin = time.monotonic()
        status = server.ask("GET", "/healthz", timeout=10)[0]
        worst = max(worst, time.monotonic() - begin)
        if status != 200:
            checks.expect(False, f"an honest client among slow ones: {status}")
    checks.expect(worst < 1, f"an honest client among 1000 idle and 1000 slow ones: {worst * 1000:.0f} ms at most")
    checks.expect(server.memory_mb() < before + 64, f"memory: {before:.0f} -> {server.memory_mb():.0f} MB")
    for connection in idle + slow:
        connection.close()
    # A head that does not end, and a body that does not come, get 408.
    statuses = []
    threads = [threading.Thread(target=lambda parts=parts: statuses.append(raw(server, parts, 30))) for parts in
               ([b"GET /healthz HTTP/1.1\r\nHost: a"], [head(server, "Content-Length: 100000"), b"abc"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    checks.expect(statuses == [408, 408], f"what never ends: {statuses}")


def one_connection(server, image, checks):
    """Several requests in one packet, and a body that waits for `100 Continue`."""
    with server.connect() as connection:
        connection.sendall(head(server, target="/healthz", method="GET") * 3)
        answer = b""
        while answer.count(b'{"status":"ok"}') < 3:
            got = connection.recv(65536)
            if not got:
                break
            answer += got
        checks.expect(answer.count(b"HTTP/1.1 200") == 3, "three requests in one packet")
        connection.sendall(head(server, f"Content-Length: {len(image)}", "Expect: 100-continue"))
        checks.expect(connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n", "100 Continue")
        connection.sendall(image)
        checks.expect(connection.recv(100).startswith(b"HTTP/1.1 200"), "and the answer")


def overload(model, checks):
    image = model.images[0].read_bytes()
    with Server(model, "limits.requests=2", "batching.max_batch_size=1") as server:
        server.ask("POST", "/predict", image)
        ends = []

        def client():
            for _ in range(10):
                begin = time.monotonic()
                status, headers, _ = server.ask("POST", "/predict", image)
                ends.append((status, time.monotonic() - begin, headers.get("retry-after")))

        threads = [threading.Thread(target=client) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        refused = [end for end in ends if end[0] == 503]
        checks.expect(len(ends) == 160 and {end[0] for end in ends} == {200, 503},
                      f"16 clients, two places: {len(ends) - len(refused)} answered, {len(refused)} refused")
        checks.expect(all(end[2] for end in refused), "each refusal has Retry-After")
        metrics = server.ask("GET", "/metrics")[2]
        checks.expect(b"cytra_serve_requests_open 0" in metrics and b"cytra_serve_requests_bytes 0" in metrics,
                      "no place is lost")


def vanished(model, checks):
    """Clients that go while their image waits; then others are served, and nothing is open."""
    image = model.images[0].read_bytes()
    with Server(model) as server:
        for turn in range(100):
            connection = server.connect()
            connection.sendall(head(server, f"Content-Length: {len(image)}") + image[:None if turn % 2 else 100])
            connection.close()
        status = server.ask("POST", "/predict", image)[0]
        deadline = time.monotonic() + 20
        while b"cytra_serve_requests_open 0" not in server.ask("GET", "/metrics")[2] and time.monotonic() < deadline:
            time.sleep(0.1)
        checks.expect(status == 200 and b"cytra_serve_requests_open 0" in server.ask("GET", "/metrics")[2],
                      f"after 100 clients that went: {status}")
        status, _, body = server.ask("POST", "/predict?timeout=0.001", image)
        checks.expect(status == 504 and b"in time" in body, f"a deadline: {status}")


def drain(model, checks):
    """SIGTERM while images are predicted: each is answered, /ready is 503, no new one is taken, exit code 0."""
    side = 512
    header = f"{{'descr': '<u2', 'fortran_order': False, 'shape': ({side}, {side}), }}".encode().ljust(117) + b"\n"
    image = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(range(256)) * (side * side // 128)
    with Server(model, "batching.max_batch_size=1") as server:
        connections = []
        for _ in range(30):
            connection = server.connect()
            connection.sendall(head(server, f"Content-Length: {len(image)}", "Connection: close") + image)
            connections.append(connection)
        def begun():
            lines = server.ask("GET", "/metrics")[2].decode().splitlines()
            return sum(float(line.split()[-1]) for line in lines if line.startswith(("cytra_serve_requests_open ", 'cytra_serve_answers_total{route="/predict"')))

        while begun() < 30:
            time.sleep(0.01)
        os.kill(server.process.pid, signal.SIGTERM)
        late = []
        try:
            while 503 not in late:
                late.append(server.ask("GET", "/ready", timeout=5)[0])
            late.append(-server.ask("POST", "/predict", image, timeout=5)[0])
        except OSError:
            pass  # it has ended
        checks.expect(503 in late and 200 not in late[late.index(503):] and -200 not in late, f"/ready then: {set(late)}")
        statuses = []
        for connection in connections:
            answer = b""
            try:
                while got := connection.recv(65536):
                    answer += got
            except OSError:
                pass
            statuses.append(answer[9:12])
        checks.expect(set(statuses) <= {b"200", b"503"} and b"200" in statuses,
                      f"30 images under way at SIGTERM: {statuses.count(b'200')} answered, {statuses.count(b'503')} refused")
        checks.expect(server.process.wait(60) == 0, "exit code 0")


def main():
    checks = Checks()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8192), most))
    model = Model(sys.argv[1])
    with Server(model, "limits.body_mb=8", "limits.requests_mb=64") as server:
        attacks(server, checks)
        slow_clients(server, checks)
        one_connection(server, model.images[0].read_bytes(), checks)
    folders(model, checks)
    labels(model, checks)
    bodies(model, checks)
    files(model, checks)
    overload(model, checks)
    vanished(model, checks)
    drain(model, checks)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
