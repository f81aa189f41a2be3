#!/usr/bin/env python3
"""Triton's own client (tritonclient[http] of PyPI) gets from `serve` what `predict` writes: by binary tensors, JSON and shared
memory. Ends with 77, which means skipped, where the client is not installed.

triton_test.py FOLDER_OF_PROGRAMS
"""
import os
import sys

try:
    import numpy as np
    import tritonclient.http as http
    import tritonclient.utils.shared_memory as shared_memory
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

from server import Checks, Model, Server


def main():
    checks = Checks()
    model = Model(sys.argv[1])
    model.words = ["performance.backend=eager"]
    pixels = np.random.default_rng(0).integers(0, 4000, (1, 1, 48, 80)).astype(np.uint16)
    raw = model.folder / "raw.npy"
    np.save(raw, pixels[0, 0])
    expected = {form: np.load(model.predict(raw, f"predict.save={form}", "predict.format=npy")["prediction"])
                for form in ("mask", "probability", "logits")}
    with Server(model, *model.words) as server:
        client = http.InferenceServerClient(f"127.0.0.1:{server.port}")

        def token():  # the client writes into the headers that it gets
            return {"Authorization": f"Bearer {server.token}"}

        checks.expect(client.is_server_live() and client.is_server_ready(), "live and ready")
        checks.expect(client.is_model_ready("last", headers=token()) and not client.is_model_ready("other", headers=token()),
                      "is_model_ready")
        checks.expect("binary_tensor_data" in client.get_server_metadata(headers=token())["extensions"], "get_server_metadata")
        metadata = client.get_model_metadata("last", headers=token())
        checks.expect([one["name"] for one in metadata["outputs"]][:3] == ["mask", "probability", "logits"], f"{metadata}")
        checks.expect(client.get_model_repository_index(headers=token())[0]["name"] == "last", "get_model_repository_index")

        for binary in (True, False):
            image = http.InferInput("image", pixels.shape, "UINT16")
            image.set_data_from_numpy(pixels, binary_data=binary)
            wanted = [http.InferRequestedOutput(form, binary_data=binary) for form in expected]
            answer = client.infer("last", [image], outputs=wanted, headers=token(), request_id="7")
            for form, values in expected.items():
                got = answer.as_numpy(form)
                fits = got.dtype == values.dtype and got.shape == (1, 1, 48, 80) and np.array_equal(got[0, 0], values)
                checks.expect(fits, f"{form}, {'binary' if binary else 'JSON'}: {got.dtype} {got.shape}")
            checks.expect(answer.get_response()["id"] == "7", "the request's id")
        requests = [client.async_infer("last", [image], headers=token()) for _ in range(8)]
        checks.expect(all(np.array_equal(one.get_result().as_numpy("mask")[0, 0], expected["mask"]) for one in requests),
                      "8 at once")
        answer = client.infer("last", [image], headers=token(), parameters={"threshold": 1.0})
        checks.expect(not answer.as_numpy("mask").any(), "threshold=1")

        size = pixels.nbytes
        region = shared_memory.create_shared_memory_region("in", "/cytra_test_in", size)
        result = shared_memory.create_shared_memory_region("out", "/cytra_test_out", 4 * pixels.size)
        try:
            shared_memory.set_shared_memory_region(region, [pixels])
            client.register_system_shared_memory("in", "/cytra_test_in", size, headers=token())
            client.register_system_shared_memory("out", "/cytra_test_out", 4 * pixels.size, headers=token())
            status = client.get_system_shared_memory_status(headers=token())
            checks.expect({one["name"] for one in status} == {"in", "out"}, f"get_system_shared_memory_status: {status}")
            image = http.InferInput("image", pixels.shape, "UINT16")
            image.set_shared_memory("in", size)
            wanted = http.InferRequestedOutput("logits")
            wanted.set_shared_memory("out", 4 * pixels.size)
            client.infer("last", [image], outputs=[wanted], headers=token())
            got = shared_memory.get_contents_as_numpy(result, np.float32, pixels.shape)
            checks.expect(np.array_equal(got[0, 0], expected["logits"]), "shared memory in, shared memory out")
            image.set_shared_memory("in", 2 * size)
            try:
                client.infer("last", [image], headers=token())
                checks.expect(False, "more bytes than the region has")
            except http.InferenceServerException as error:
                checks.expect("bytes" in str(error), f"more bytes than the region has: {error}")
            with Server(model, *model.words, "limits.requests_mb=1", "limits.body_mb=1") as small:
                other = http.InferenceServerClient(f"127.0.0.1:{small.port}")
                access = {"Authorization": f"Bearer {small.token}"}
                wide = np.zeros((1, 1, 1024, 1024), np.uint16)
                large = shared_memory.create_shared_memory_region("large", f"/cytra_test_large_{os.getpid()}", wide.nbytes)
                try:
                    other.register_system_shared_memory("large", f"/cytra_test_large_{os.getpid()}", wide.nbytes, headers=dict(access))
                    much = http.InferInput("image", wide.shape, "UINT16")
                    much.set_shared_memory("large", wide.nbytes)
                    other.infer("last", [much], headers=dict(access))
                    checks.expect(False, "shared memory above limits.requests_mb")
                except http.InferenceServerException as error:
                    checks.expect("limits.requests_mb" in str(error), f"shared memory above limits.requests_mb: {error}")
                finally:
                    shared_memory.destroy_shared_memory_region(large)
                other.close()
            client.unregister_system_shared_memory(headers=token())
            checks.expect(client.get_system_shared_memory_status(headers=token()) == [], "unregister_system_shared_memory")
        finally:
            shared_memory.destroy_shared_memory_region(region)
            shared_memory.destroy_shared_memory_region(result)
        client.unload_model("last", headers=token())
        index = client.get_model_repository_index(headers=token())[0]
        checks.expect(index["state"] == "UNAVAILABLE" and not client.is_model_ready("last", headers=token()), f"unload_model: {index}")
        client.load_model("last", headers=token())
        checks.expect(client.is_model_ready("last", headers=token()), "load_model")
        try:
            client.load_model("last", headers=token(), config="{}")
            checks.expect(False, "load_model with another configuration")
        except http.InferenceServerException as error:
            checks.expect("config" in str(error), f"load_model with another configuration: {error}")
        client.close()
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
