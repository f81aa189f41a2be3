"""MONAI's DynUNet behind FastAPI, as most people serve a network: serve_peer.py WEIGHTS FILTERS THREADS."""
import io
import json
import socket
import sys
import threading

import numpy as np
import safetensors.torch
import torch
import uvicorn
from fastapi import FastAPI, Request, Response
from monai.networks.nets import DynUNet
from starlette.concurrency import run_in_threadpool

weights, filters, threads = sys.argv[1], [int(number) for number in sys.argv[2].split(",")], int(sys.argv[3])
torch.set_num_threads(threads)
layers = len(filters)
net = DynUNet(2, 1, 1, [3] * layers, [1] + [2] * (layers - 1), [2] * (layers - 1), filters=filters).eval()
net.load_state_dict(safetensors.torch.load_file(weights), strict=False)
app = FastAPI()
one_at_a_time = threading.Lock()  # a network that all cores compute is slower when several ask it at once


def mask_of(body):
    image = torch.from_numpy(np.load(io.BytesIO(body)).astype(np.float32))[None, None]
    image = (image - image.mean()) / image.std(correction=0)
    with one_at_a_time, torch.inference_mode():
        mask = (net(image)[0, 0] > 0).to(torch.uint8)
    file = io.BytesIO()
    np.save(file, mask.numpy())
    return file.getvalue()


@app.post("/predict")
async def predict(request: Request):
    return Response(await run_in_threadpool(mask_of, await request.body()), media_type="application/octet-stream")


listener = socket.create_server(("127.0.0.1", 0))
print(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}", "token": ""}), flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[listener])
