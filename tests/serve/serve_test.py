#!/usr/bin/env python3
"""What `serve` answers equals what `predict` writes; mistakes get one clear error; the tensors of the Open Inference
Protocol pass byte by byte.

serve_test.py FOLDER_OF_PROGRAMS
"""
import email
import gzip
import json
import math
import struct
import subprocess
import sys
import threading
import time
import zlib

from server import Checks, Model, Server


def same_as_predict(model, server, checks):
    for image in model.images[:2]:
        for words, query in [((), ""), (("predict.save=probability",), "&save=probability"),
                             (("predict.threshold=0.3",), "&threshold=0.3"), (("predict.format=npy",), "&format=npy")]:
            expected = open(model.predict(image, *words)["prediction"], "rb").read()
            status, headers, body = server.ask("POST", f"/predict?filename={image.name}{query}", image.read_bytes())
            checks.expect(status == 200 and body == expected, f"{image.name} {query}: {status}, {len(body)} bytes, "
                          f"{headers.get('content-type')}, as predict's {len(expected)}")
    image = model.images[0]
    written = model.predict(image, "predict.measurements=true", "predict.contours=geojson")
    for output, kind in [("overlay", "overlay"), ("table", "measurements"), ("geojson", "geojson")]:
        status, _, body = server.ask("POST", f"/predict?filename={image.name}&output={output}", image.read_bytes())
        checks.expect(status == 200 and body == open(written[kind], "rb").read(), f"output={output}: {status}")
    expected = open(model.predict(image, "predict.format=png")["prediction"], "rb").read()
    status, headers, body = server.ask("POST", "/predict", image.read_bytes(), {"Accept": "image/png"})
    checks.expect((status, headers.get("content-type")) == (200, "image/png") and body == expected, "Accept: image/png")


def pictures(server, query, content):
    """The status of /preview, what it tells of the pictures, and the pictures."""
    status, headers, body = server.ask("POST", f"/preview?{query}", content)
    if status != 200:
        return status, body, {}
    message = email.message_from_bytes(b"Content-Type: " + headers["content-type"].encode() + b"\r\n\r\n" + body)
    parts = {part.get_param("name", header="content-disposition"): part.get_payload(decode=True) for part in message.get_payload()}
    return status, json.loads(parts.pop("about")), parts


def preview(model, server, checks, kinds):
    """The parts of /preview, of a kind for each query; page_test.py looks at the pictures."""
    image = model.images[0]
    for query, kind in kinds:
        status, about, parts = pictures(server, f"filename={image.name}{query}", image.read_bytes())
        sizes = [struct.unpack(">II", parts[name][16:24]) for name in ("image", "result")]
        checks.expect(status == 200 and about["kind"] == kind and sizes == [(64, 64)] * 2, f"/preview {query}: {status}, {about}, {sizes}")
    for query, status, words in [("&output=table", 400, b"unknown parameter"), ("&plane=-1", 400, b"plane=-1"),
                                 ("&plane=1e99", 400, b"expected a number"), ("&save=variance", 400, b"variance")]:
        answer = server.ask("POST", f"/preview?filename={image.name}{query}", image.read_bytes())
        checks.expect(answer[0] == status and words in answer[2], f"/preview {query}: {answer[0]} {answer[2][:120]}")
    for target in "/", "/page.js", "/page.css":
        status, headers, body = server.ask("GET", target, token=False)
        checks.expect(status == 200 and server.token.encode() not in body and ("default-src 'none'" in headers["content-security-policy"]
                      if target == "/" else True), f"{target} needs no token and holds none")
    checks.expect(server.start["page"] == f"{server.url}/#token={server.token}", "the page's address")


def dicom_slice(number, side, pixels):
    """A slice of a series, explicit and little endian."""
    def element(group, own, kind, value):
        value += b" " if len(value) % 2 else b""
        size = b"\0\0" + struct.pack("<I", len(value)) if kind == b"OW" else struct.pack("<H", len(value))
        return struct.pack("<HH", group, own) + kind + size + value

    number_of = lambda value: struct.pack("<H", value)
    image = b"".join(element(*words) for words in [
        (0x0008, 0x0016, b"UI", b"1.2.840.10008.5.1.4.1.1.2"), (0x0008, 0x0018, b"UI", b"1.2.3.%d" % number), (0x0008, 0x0060, b"CS", b"CT"),
        (0x0020, 0x000d, b"UI", b"1.2.4"), (0x0020, 0x000e, b"UI", b"1.2.5"), (0x0020, 0x0013, b"IS", b"%d" % number),
        (0x0020, 0x0032, b"DS", b"0\\0\\%d" % number), (0x0020, 0x0037, b"DS", b"1\\0\\0\\0\\1\\0"), (0x0028, 0x0002, b"US", number_of(1)),
        (0x0028, 0x0004, b"CS", b"MONOCHROME2"), (0x0028, 0x0010, b"US", number_of(side)), (0x0028, 0x0011, b"US", number_of(side)),
        (0x0028, 0x0030, b"DS", b"1\\1"), (0x0028, 0x0100, b"US", number_of(16)), (0x0028, 0x0101, b"US", number_of(16)),
        (0x0028, 0x0102, b"US", number_of(15)), (0x0028, 0x0103, b"US", number_of(0)), (0x7fe0, 0x0010, b"OW", pixels)])
    syntax = element(0x0002, 0x0010, b"UI", b"1.2.840.10008.1.2.1")
    return bytes(128) + b"DICM" + element(0x0002, 0x0000, b"UL", struct.pack("<I", len(syntax))) + syntax + image


def stacks(model, checks):
    """A stack's planes are predicted once, and a series' slices may have one name."""
    side, depth = 64, 5
    planes = [struct.pack(f"<{side * side}H", *[(7 * i * i + 13 * i + 900 * z) % 4001 for i in range(side * side)]) for z in range(depth)]
    header = f"{{'descr': '<u2', 'fortran_order': False, 'shape': ({depth}, {side}, {side}), }}".encode().ljust(117) + b"\n"
    stack = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"".join(planes)

    def batches(server):
        return sum(float(line.split()[-1]) for line in server.ask("GET", "/metrics")[2].decode().splitlines()
                   if line.startswith("cytra_serve_batches_total"))

    shown = {}
    for query in "", "&save=mask", "&save=entropy":
        with Server(model, "performance.backend=eager") as server:
            for plane in 2, 0, 1, 2:
                status, about, parts = pictures(server, f"filename=s.npy&plane={plane}{query}", stack)
                checks.expect(status == 200 and about["plane"] == plane and about["planes"] == depth, f"plane {plane} of a stack{query}: {status} {about}")
                shown.setdefault((query, plane), parts)
                checks.expect(shown[query, plane] == parts, f"plane {plane}{query}: its pictures")
            checks.expect(batches(server) == 1, f"a stack{query} is predicted once: {batches(server)}")
            checks.expect(pictures(server, f"filename=s.npy&plane={depth}{query}", stack)[0] == 400, "a plane beyond a stack that was shown")
            checks.expect(len({parts["image"] for (own, _), parts in shown.items() if own == query}) == 3, "each plane has its picture")
        with Server(model, "performance.backend=eager") as server:
            checks.expect(pictures(server, f"filename=s.npy&plane=1{query}", stack)[2] == shown[query, 1], f"plane 1 of a server that knows no stack{query}")
            pictures(server, f"filename=s.npy&plane=1{query}", stack[:-1] + b"\1")
            pictures(server, f"filename=s.npy&plane=1&threshold=0.25{query}", stack)
            checks.expect(batches(server) == 3, f"another stack, another threshold: {batches(server)}")
    words = ["performance.backend=eager", "predict.stitch_threshold=0.3"]
    raw = model.folder / "stack.npy"
    raw.write_bytes(stack)
    with Server(model, *words) as server:
        written = [open(model.predict(raw, *words, *more)["prediction"], "rb").read() for more in ([], ["inference_args.spatial_dim=0"])]
        status, _, body = server.ask("POST", "/predict?filename=stack.npy", stack)
        checks.expect(status == 200 and [body] * 2 == written, f"a stack for a model of planes, as predict writes it: {status} {body[:150]}")
        for shape in [depth, side, side], [1, depth, side, side], [1, 1, depth, side, side], [depth, 1, 1, side, side]:
            image = {"name": "image", "shape": shape, "datatype": "UINT16", "parameters": {"binary_data_size": len(stack) - 128}}
            head = json.dumps({"inputs": [image], "outputs": [{"name": "mask", "parameters": {"binary_data": True}}]}).encode()
            status, headers, body = server.ask("POST", "/v2/models/last/infer", head + stack[128:], {"Inference-Header-Content-Length": str(len(head))})
            length = int(headers.get("inference-header-content-length", 0))
            told = json.loads(body[:length] or body)
            is_one = shape[-3] == depth  # not so many stacks of a plane
            labels = [value for value, in struct.iter_unpack("<I", body[length:])] if is_one and status == 200 else []
            checks.expect(status == 200 and told["outputs"][0]["shape"] == shape and (not is_one or labels == list(npy_pixels(written[0])[2])),
                          f"a stack as a tensor {shape}: {status} {told}"[:200])
        slices = b"".join(b'--b0\r\nContent-Disposition: form-data; name="files"; filename="IM1.dcm"\r\n\r\n' + dicom_slice(z, side, plane) + b"\r\n"
                          for z, plane in enumerate(planes))
        status, _, body = server.ask("PUT", "/session/", slices + b"--b0--\r\n", {"Content-Type": "multipart/form-data; boundary=b0"})
        checks.expect(status == 200, f"a session of slices: {status} {body[:200]}")
        session = json.loads(body).get("session_id")
        headers, body = form(params="{}")
        status, _, body = server.ask("POST", f"/infer/last?output=image&session_id={session}", body, headers)
        shape = struct.unpack("<4h", gzip.decompress(body)[40:48]) if status == 200 else body[:300]
        checks.expect(shape == (3, side, side, depth), f"slices of one name: {status} {shape}")


def together(model, server, checks):
    """Images of many clients at once each get their own answer."""
    images = [image.read_bytes() for image in model.images]
    expected = [server.ask("POST", "/predict?save=mask", image)[2] for image in images]
    wrong = []

    def client(number):
        for turn in range(6):
            at = (number + turn) % len(images)
            status, _, body = server.ask("POST", "/predict?save=mask", images[at])
            if status != 200 or body != expected[at]:
                wrong.append((status, body[:200]))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    checks.expect(not wrong, f"72 images of 12 clients at once: {wrong[:3]}")


def tensor(data=(0, 0, 0, 0), parameters=None, outputs=(), wishes=None):
    """A request of the Open Inference Protocol for 2 x 2 values of UINT8."""
    image = {"name": "image", "shape": [2, 2], "datatype": "UINT8", "data": data, "parameters": parameters or {}}
    return json.dumps({"inputs": [image], "outputs": outputs, "parameters": wishes or {}}).encode()


def mistakes(model, server, checks):
    image = model.images[0].read_bytes()
    for method, target, body, headers, expected, words in [
            ("GET", "/nowhere", None, {}, 404, "openapi.json"),
            ("GET", "/predict", None, {}, 405, "expected POST"),
            ("POST", "/predict/other", image, {}, 404, "no such model"),
            ("POST", "/predict", b"", {}, 400, "empty"),
            ("POST", "/predict", b"no image", {}, 422, "not an image"),
            ("POST", "/predict", image[:200], {}, 422, "image"),
            ("POST", "/predict?threshhold=1", image, {}, 400, "Did you mean 'threshold'?"),
            ("POST", "/predict?threshold=2", image, {}, 400, "from 0 to 1"),
            ("POST", "/predict?save=labels", image, {}, 400, "predict.save=labels"),
            ("POST", "/predict?output=tabel", image, {}, 400, "Did you mean 'table'?"),
            ("POST", "/predict?format=png&save=probability", image, {}, 422, "PNG"),
            ("POST", "/predict?a=1&a=2", image, {}, 400, "twice"),
            ("POST", "/predict", image, {"Content-Length": "2000000000"}, 413, "2000.0 MB, expected at most 256: limits.body_mb"),
            ("GET", "/healthz", None, {"X-Long": "x" * 20000}, 431, "16 kB: limits.header_kb"),
            ("POST", "/infer/last?image=a", b'{"result_extension": ".abc"}', {"Content-Type": "application/json"}, 400, "result_extension: .abc"),
            ("POST", "/predict?threshold=%zz", image, {}, 400, "hexadecimal"),
            ("POST", "/predict%00", image, {}, 400, "%00"),
            ("POST", "/predict", image, {"Content-Encoding": "gzip"}, 415, "Content-Encoding"),
            ("POST", "/predict", b"ObjectType = Image\nNDims = 2\nDimSize = 4 4\nElementType = MET_UCHAR\n"
             b"ElementDataFile = /etc/passwd\n", {}, 422, "'/etc/passwd', expected a file below"),
            ("POST", "/v2/models/last/infer", b"{", {}, 400, "JSON"),
            ("POST", "/v2/models/last/infer", b"[" * 100 + b"]" * 100, {}, 400, "nested"),
            ("POST", "/v2/models/last/infer", b"{}", {}, 400, "inputs"),
            ("POST", "/v2/models/last/infer", json.dumps({"inputs": [{"name": "image", "datatype": "FP32", "shape": [
                2**62, 2**62, 4], "data": []}]}).encode(), {}, 400, "shape"),
            ("POST", "/predict?timepoint=1.5", image, {}, 400, "expected a whole number"),
            ("POST", "/v2/models/last/versions/2/infer", b"{}", {}, 404, "no such version"),
            *[("POST", "/v2/models/last/infer", tensor(**change), {}, 400, words) for change, words in [
                ({"data": [-1, 0, 0, 0]}, "from 0 to 255 for UINT8"), ({"data": [256, 0, 0, 0]}, "from 0 to 255"),
                ({"data": [0.5, 0, 0, 0]}, "expected whole numbers"), ({"data": [1e300, 0, 0, 0]}, "from 0 to 255"),
                ({"data": [[0], [0], [0], [0]]}, "other lengths than the shape"), ({"data": [[0, 0], [0, [0]]]}, "other lengths"),
                ({"data": [0] * 4, "parameters": {"binary_data_size": 4}}, "expected one of data"),
                ({"wishes": {"thresold": 0.9}}, "Did you mean 'threshold'?"),
                ({"outputs": [{"name": "mask", "parameters": {"classification": 3}}]}, "classification"),
                ({"outputs": [{"name": name, "parameters": {"shared_memory_region": "r", "shared_memory_offset": at,
                                                            "shared_memory_byte_size": 4}}
                              for name, at in (("logits", 3), ("mask", 0))]}, "logits and mask overlap")]],
            ("POST", "/v2/systemsharedmemory/region/a/register", b'{"key": "/../etc/passwd", "byte_size": 1}', {}, 400,
             "expected the name"),
    ]:
        status, answer_headers, answer = server.ask(method, target, body, headers)
        try:
            text = json.loads(answer)["error"]
        except (ValueError, KeyError):
            text = f"no JSON: {answer[:100]}"
        fits = status == expected and words in text and "cytra-serve-" not in text
        checks.expect(fits, f"{method} {target} {headers}: {status} {text}")
    for headers, token in [({}, False), ({"Authorization": "Bearer wrong"}, False), ({"Authorization": server.token}, False)]:
        status, _, _ = server.ask("POST", "/predict", image, headers, token=token)
        checks.expect(status == 401, f"without the token, {headers}: {status}")
    for target in "/healthz", "/ready", "/v2/health/live", "/v2/health/ready":
        checks.expect(server.ask("GET", target, token=False)[0] == 200, f"{target} needs no token")
    status, headers, text = server.ask("GET", "/metrics")
    checks.expect(status == 200 and b'cytra_serve_answers_total{route="/predict",status="200"}' in text, "/metrics")
    document = json.loads(server.ask("GET", "/openapi.json")[2])
    checks.expect(document["openapi"].startswith("3.") and "/predict/{model}" in document["paths"], "/openapi.json")


def npy_pixels(content):
    """dtype, shape, bytes of NumPy's format 1.0."""
    length = struct.unpack("<H", content[8:10])[0]
    header = eval(content[10:10 + length], {})  # noqa: S307 - our own file
    return header["descr"], header["shape"], content[10 + length:]


def tensors(model, server, checks):
    raw = model.folder / "raw.npy"
    size = 48
    values = struct.pack(f"<{size * size}H", *[(7 * i * i + 13 * i) % 4001 for i in range(size * size)])
    header = f"{{'descr': '<u2', 'fortran_order': False, 'shape': ({size}, {size}), }}".encode()
    header += b" " * (117 - len(header)) + b"\n"
    raw.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + values)
    for form in "mask", "logits":
        path = model.predict(raw, f"predict.save={form}", "predict.format=npy")["prediction"]
        kind, shape, expected = npy_pixels(open(path, "rb").read())
        words = {"inputs": [{"name": "image", "shape": [1, 1, size, size], "datatype": "UINT16",
                             "parameters": {"binary_data_size": len(values)}}],
                 "outputs": [{"name": form, "parameters": {"binary_data": True}}], "id": "7"}
        head = json.dumps(words).encode()
        status, headers, body = server.ask("POST", "/v2/models/last/infer", head + values,
                                           {"Inference-Header-Content-Length": str(len(head))})
        length = int(headers.get("inference-header-content-length", 0))
        told = json.loads(body[:length] or body)
        name = {"|u1": "UINT8", "<f4": "FP32"}[kind]
        checks.expect(status == 200 and body[length:] == expected, f"binary {form} as predict of the same array: {status}")
        checks.expect(told.get("id") == "7" and told["outputs"][0]["datatype"] == name
                      and told["outputs"][0]["shape"][-2:] == list(shape[-2:]), f"its description: {told}")
    # The same as JSON, twice in one request.
    numbers = list(struct.unpack(f"<{size * size}H", values))
    words = {"inputs": [{"name": "image", "shape": [2, 1, size, size], "datatype": "UINT16", "data": numbers * 2}],
             "outputs": [{"name": "logits"}]}
    status, _, body = server.ask("POST", "/v2/models/last/infer", json.dumps(words))
    output = json.loads(body)["outputs"][0]
    wanted = struct.unpack(f"<{len(expected) // 4}f", expected) * 2
    near = len(output["data"]) == len(wanted) and all(
        math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-5) for a, b in zip(output["data"], wanted))
    checks.expect(status == 200 and output["shape"] == [2, 1, size, size] and near, f"two images as JSON: {output['shape']}")
    # One image of many that can't be predicted ends the request; the others are stopped, and what follows is answered.
    side, count = 512, 64
    floats = struct.pack("<f", math.nan) * side * side + bytes(4 * side * side * (count - 1))
    words = {"inputs": [{"name": "image", "shape": [count, 1, side, side], "datatype": "FP32", "parameters": {"binary_data_size": len(floats)}}]}
    head = json.dumps(words).encode()
    status, _, body = server.ask("POST", "/v2/models/last/infer", head + floats, {"Inference-Header-Content-Length": str(len(head))})
    checks.expect(status in (400, 422) and b"NaN" in body, f"an image of NaN among {count}: {status} {body[:200]}")
    image = model.images[0]
    status, _, body = server.ask("POST", f"/predict?filename={image.name}&timeout=20", image.read_bytes())
    checks.expect(status == 200, f"the next image: {status}")
    status, _, body = server.ask("GET", "/v2/models/last")
    checks.expect(status == 200 and json.loads(body)["inputs"][0]["name"] == "image", f"/v2/models/last: {body[:300]}")


def png(kind, side, rows, *more):
    """A PNG of 8 bits: of greys (0), colours (2) or numbers of a palette (3), which `more` holds."""
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
    body = b"".join(b"\0" + row for row in rows)
    return b"\x89PNG\r\n\x1a\n" + b"".join([chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, kind, 0, 0, 0)), *more,
                                             chunk(b"IDAT", zlib.compress(body)), chunk(b"IEND", b"")])


def grey_in_colours(server, checks):
    """What is grey in three channels is grey to a model of one channel, by every door."""
    side = 48
    rows = [bytes((7 * i * i + 13 * j) % 251 for j in range(side)) for i in range(side)]
    triples = [bytes(value for value in row for _ in range(3)) for row in rows]
    palette = bytes(value for value in range(256) for _ in range(3))
    palette = struct.pack(">I", len(palette)) + b"PLTE" + palette + struct.pack(">I", zlib.crc32(b"PLTE" + palette))
    grey = png(0, side, rows)
    coloured = [bytes([*row[:-1], row[-1] ^ 1]) for row in triples]

    def predicted(content):
        return server.ask("POST", "/predict?format=npy&save=logits&filename=a.png", content)

    def labelled(content):
        headers, body = form(params="{}", file=("a.png", content))
        return server.ask("POST", "/infer/last?output=image", body, headers)

    def inferred(planes):
        words = {"inputs": [{"name": "image", "shape": [1, len(planes), side, side], "datatype": "UINT8",
                             "parameters": {"binary_data_size": len(planes) * side * side}}]}
        head = json.dumps(words).encode()
        return server.ask("POST", "/v2/models/last/infer", head + b"".join(planes), {"Inference-Header-Content-Length": str(len(head))})
    plane = b"".join(rows)
    for door, given, others, wrong in [
            (predicted, grey, [png(2, side, triples), png(3, side, rows, palette)], png(2, side, coloured)),
            (labelled, grey, [png(2, side, triples), png(3, side, rows, palette)], png(2, side, coloured)),
            (inferred, [plane], [[plane] * 3, [plane] * 3 + [b"\xff" * len(plane)]], [plane, plane, plane[::-1]])]:
        status, _, expected = door(given)
        answers = [door(content)[::2] for content in others]
        checks.expect(status == 200 and answers == [(200, expected)] * 2, f"{door.__name__}: grey in colours: {status} {answers[0][0]}")
        status, _, answer = door(wrong)
        checks.expect(status == 422 and b"3 channels" in answer, f"{door.__name__}: colours: {status} {answer[:150]}")
    checks.expect(server.told().count("read as grey") == 1, "grey in colours is told once")


def watched(server, target, body, headers=()):
    """The answer, and what GET /progress/{request_id} tells meanwhile."""
    answers = []
    asking = threading.Thread(target=lambda: answers.append(server.ask("POST", f"{target}request_id=one", body, headers)))
    asking.start()
    told = []
    while asking.is_alive():
        status, _, text = server.ask("GET", "/progress/one")
        if status == 200:
            told.append(json.loads(text))
        time.sleep(0.002)  # else the asking takes more of the processors than the windows
    asking.join()
    return answers[0], told


def progress(model, checks):
    """Windows of 32x32 side by side, so that their number is known."""
    for words in ["tta.mirror_axes=[0]"], ["batching.max_batch_size=1", "batching.max_latency=0.001"]:
        with Server(model, "inference_args.roi_size=[32,32]", "inference_args.overlap=0", "performance.backend=eager", *words) as server:
            side, images, of_plane = 256, 5, 8 * 8
            tensor = {"name": "image", "shape": [images, 1, side, side], "datatype": "UINT16", "parameters": {"binary_data_size": images * 2 * side * side}}
            head = json.dumps({"inputs": [tensor], "outputs": [{"name": name, "parameters": {"binary_data": True}} for name in ("mask", "logits")]}).encode()
            header = f"{{'descr': '<u2', 'fortran_order': False, 'shape': ({3 * side}, {side}), }}".encode()
            header += b" " * (117 - len(header)) + b"\n"
            npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(2 * 3 * side * side)
            for target, body, headers, windows in [
                    ("/predict?filename=a.npy&", npy, {}, 3 * of_plane),
                    ("/v2/models/last/infer?", head + bytes(images * 2 * side * side), {"Inference-Header-Content-Length": str(len(head))}, 2 * images * of_plane)]:
                (status, answered, _), told = watched(server, target, body, headers)
                counts = [one["done"] for one in told]
                checks.expect(status == 200 and answered.get("progress-total") == str(windows) and {one["total"] for one in told} <= {None, windows}
                              and counts == sorted(counts) and max(counts, default=0) <= windows and len(set(counts)) > 2,
                              f"{words} {target}: {status}, {answered.get('progress-total')} windows, seen at {sorted(set(counts))[:9]} ...")
                checks.expect(server.ask("GET", "/progress/one")[0] == 404, "the id of a request that has ended is forgotten")
            # One whose client goes.
            with server.connect() as connection:
                connection.sendall(f"POST /v2/models/last/infer?request_id=two HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
                                   f"Inference-Header-Content-Length: {len(head)}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                while server.ask("GET", "/progress/two")[0] == 404:
                    time.sleep(0.001)
                status, _, text = server.ask("POST", "/predict?request_id=two", npy)
                checks.expect(status == 409 and b"under way" in text, f"an id that another request has: {status} {text}")
            while server.ask("GET", "/progress/two")[0] == 200:
                time.sleep(0.01)
            checks.expect(server.ask("POST", "/predict?request_id=two&filename=a.npy", npy)[0] == 200, "its id can be used again when its client has gone")
    with Server(model) as server:
        for name in "a.b", "", "x" * 65, "%C3%A4", "a%20b":
            status, _, text = server.ask("POST", f"/predict?request_id={name}", b"image")
            checks.expect(status == 400 and b"expected 1 to 64 letters" in text, f"request_id={name[:9]}: {status} {text}")
        for name, expected in ("a.b", 400), ("x" * 65, 400), ("none", 404), ("", 404):
            checks.expect(server.ask("GET", f"/progress/{name}")[0] == expected, f"/progress/{name[:9]}: {expected}")
        checks.expect(server.ask("GET", "/progress/none", token=False)[0] == 401, "/progress needs the token")
        paths = json.loads(server.ask("GET", "/openapi.json")[2])["paths"]
        named = [path for path, methods in paths.items() for one in methods.values()
                 for parameter in one.get("parameters", []) if parameter["name"] == "request_id"]
        checks.expect({"/progress/{request_id}", "/predict", "/predict/{model}", "/v2/models/{model}/infer"} <= set(named), f"/openapi.json: {named}")


def form(**parts):
    """Content-Type and body of multipart/form-data; a file is a pair."""
    lines = []
    for name, value in parts.items():
        filename, content = value if isinstance(value, tuple) else (None, value.encode())
        extra = f'; filename="{filename}"' if filename else ""
        lines += [b"--b0", f'Content-Disposition: form-data; name="{name}"{extra}'.encode(), b"", content]
    return {"Content-Type": "multipart/form-data; boundary=b0"}, b"\r\n".join([*lines, b"--b0--", b""])


def label_clients(model, server, checks):
    """What MONAI Label's clients send; monai_test.py has its own one."""
    image = model.images[-1]
    expected = open(model.predict(image, "predict.format=nifti")["prediction"], "rb").read()
    headers, body = form(params="{}", file=(image.name, image.read_bytes()))
    status, answer_headers, answer = server.ask("POST", "/infer/last?image=", body, headers)
    checks.expect(status == 200 and expected in answer and answer_headers["content-type"].startswith("multipart/form-data"),
                  f"/infer/last: {status}")
    status, _, answer = server.ask("POST", "/infer/last?output=image", body, headers)
    checks.expect(status == 200 and answer == expected, f"/infer/last?output=image: {status}")
    for change, expected_status in [(body[:-20], 400), (b"", 400), (body.replace(b"b0", b"b1"), 400), (b"--b0\r\n\r\n", 400),
                                    (body.replace(b"{}", b"[]"), 400)]:
        status, _, answer = server.ask("POST", "/infer/last", change, headers)
        checks.expect(status == expected_status and b"error" in answer, f"a broken form: {status} {answer[:100]}")
    headers, body = form(image=(image.name, image.read_bytes()))
    status, _, answer = server.ask("POST", "/predict?format=nifti", body, headers)
    checks.expect(status == 200 and answer == expected, f"/predict of a form: {status}")
    # What begins like the boundary is content; a name may come as RFC 8187 says.
    content = image.read_bytes() + b"\r\n--b0X"
    named = form(image=(image.name, content))[1].replace(b'filename="' + image.name.encode() + b'"', b"filename*=UTF-8''a%20b.ome.tif")
    status, answer_headers, answer = server.ask("POST", "/predict?format=nifti", named, headers)
    checks.expect(status == 200 and answer == expected and '"a b.nii.gz"' in answer_headers["content-disposition"], f"a form: {status}")
    for parts, words in [({"threshold": "0.9", "image": (image.name, b"-")}, b"the field threshold"),
                         ({"image": (image.name, b"-"), "other": (image.name, b"-")}, b"several files"), ({"image": "-"}, b"expected a file")]:
        status, _, answer = server.ask("POST", "/predict", form(**parts)[1], headers)
        checks.expect(status == 400 and words in answer, f"a form of {list(parts)}: {status} {answer}")
    status, _, answer = server.ask("GET", "/datastore/")
    checks.expect(status == 404 and b"datastore=FOLDER" in answer, f"no datastore: {answer}")


def labels_of_one_name(model, checks):
    """A label replaces the one before, of whatever format; and no name stands for two files."""
    store = model.folder / "store"
    store.mkdir()
    image = model.images[-1]
    (store / "a.ome.tif").write_bytes(image.read_bytes())
    final = store / "labels/final"
    with Server(model, f"datastore={store}") as server:
        def put(target, name, content=image.read_bytes()):
            headers, body = form(file=(name, content))
            status, _, answer = server.ask("PUT", target, body, headers)
            return status, answer

        endings = [".ome.tif", ".png", ".nii.gz", ".npy", ".mha", ".bmp"]
        for ending in endings * 2:
            status, answer = put("/datastore/label?image=a", f"anything{ending}")
            names = sorted(path.name for path in final.iterdir())
            checks.expect(status == 200 and names == [f"a{ending}"], f"PUT of a{ending}: {status} {answer} {names}")
        checks.expect(server.ask("DELETE", "/datastore/?id=a")[0] == 200, "DELETE of the image")
        status, answer = put("/datastore/?image=a", "a.png")
        checks.expect(status == 409 and b"labels/final still has" in answer, f"its name, while its label is there: {status} {answer}")
        checks.expect(server.ask("DELETE", "/datastore/?id=a&type=label")[0] == 200 and put("/datastore/?image=a", "a.png")[0] == 200,
                      "its name without the label")
        (store / "a.tif").write_bytes(b"")
        for method, target in [("GET", "/datastore/"), ("GET", "/datastore/image?image=a"), ("POST", "/activelearning/first"),
                               ("POST", "/activelearning/uncertainty"), ("POST", "/train/last")]:
            status, _, answer = server.ask(method, target)
            checks.expect(status == 409 and b"a.png and a.tif have one name" in answer, f"{method} {target}: {status} {answer}")
    try:
        with Server(model, f"datastore={store}"):
            checks.expect(False, "a datastore with two files of a name")
    except RuntimeError as error:
        checks.expect("a.png and a.tif have one name" in str(error), f"a datastore with two files of a name: {error}")


def starts(model, checks):
    for words, expected in [(["host=0.0.0.0", "token=null"], "expected auto or a token"),
                            (["models={a: 1, last: 2}"], "expected one of both"), (["port=70000"], "65535"),
                            (["host=nowhere.invalid"], "expected an address")]:
        try:
            with Server(model, *words):
                checks.expect(False, f"{words} starts")
        except RuntimeError as error:
            checks.expect(expected in str(error), f"{words}: {str(error).strip()}")
    with Server(model, f"models={{a: {model.checkpoint}, b: {model.checkpoint}}}", "token=null", checkpoint=False) as server:
        image = model.images[0].read_bytes()
        checks.expect(server.token is None, "token=null: none is printed")
        answers = [server.ask("POST", target, image)[0] for target in ("/predict/a", "/predict/b", "/predict")]
        checks.expect(answers == [200, 200, 404], f"two models: {answers}")
        status, _, _ = server.ask("GET", "/healthz", headers={"Host": "evil.example"})
        checks.expect(status == 421, f"a foreign Host without a token: {status}")
        checks.expect(server.stop() == 0, "SIGTERM: exit code 0")
    socket_path = model.folder / "s.sock"
    with Server(model, f"host=unix:{socket_path}") as server:
        done = subprocess.run(["curl", "-s", "--unix-socket", socket_path, "http://localhost/healthz"], capture_output=True)
        checks.expect(done.stdout == b'{"status":"ok"}\n' and socket_path.stat().st_mode & 0o77 == 0, "a Unix socket")
    checks.expect(not socket_path.exists(), "the socket is removed")


def main():
    checks = Checks()
    model = Model(sys.argv[1])
    eager = "performance.backend=eager"  # other engines are made of the first windows that come, to the last bit
    model.words = [eager]
    with Server(model, eager) as server:
        same_as_predict(model, server, checks)
        preview(model, server, checks, [("", "probability"), ("&save=mask", "labels"), ("&save=entropy", "image")])
        together(model, server, checks)
        mistakes(model, server, checks)
        tensors(model, server, checks)
        grey_in_colours(server, checks)
        label_clients(model, server, checks)
    model.words = []
    with Server(model) as server:
        for image in model.images:
            status, _, body = server.ask("POST", f"/predict?filename={image.name}", image.read_bytes())
            checks.expect(body == open(model.predict(image)["prediction"], "rb").read(), f"{image.name}, the usual engine")
    # Steps make objects: numbers, whose mask has no probability to be shown.
    for steps, kinds in [("[{_target_: ConnectedComponents}]", [("", "labels"), ("&save=mask", "labels")]),
                         ("[{_target_: Threshold, threshold: 0.5}, {_target_: ConnectedComponents}]", [("&save=probability", "labels")])]:
        with Server(model, f"predict.postprocess={steps}") as server:
            preview(model, server, checks, kinds)
    stacks(model, checks)
    labels_of_one_name(model, checks)
    progress(model, checks)
    starts(model, checks)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
