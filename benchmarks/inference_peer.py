"""MONAI's DynUNet on one batch of windows, on one thread: inference_peer.py DIMS ENGINE PRECISION PASSES.

ENGINE: eager, compile, onnxruntime, openvino. PRECISION: 32, bf16. CPU seconds of a pass (median) and of making the engine,
as one JSON line.
"""
import io
import json
import resource
import statistics
import sys

import torch
from monai.networks.nets import DynUNet

dims, engine, precision, passes = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)  # os.times() counts in hundredths
    return usage.ru_utime + usage.ru_stime


torch.set_num_threads(1)
torch.manual_seed(0)
filters = [32, 64, 128] if dims == 3 else [32, 64, 128, 256]
levels = len(filters)
net = DynUNet(dims, 1, 1, [3] * levels, [1] + [2] * (levels - 1), [2] * (levels - 1), filters=filters).eval()
net.requires_grad_(False)
windows = torch.randn(1, 1, 48, 96, 96) if dims == 3 else torch.randn(4, 1, 256, 256)
begin = cpu_seconds()
if engine in ("eager", "compile"):
    fast = torch.compile(net) if engine == "compile" else net

    def run():
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            return fast(windows)

elif engine == "onnxruntime":
    import onnxruntime

    onnx = io.BytesIO()
    torch.onnx.export(net, (windows,), onnx, opset_version=17, dynamo=False)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(onnx.getvalue(), settings, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name

    def run():
        return session.run(None, {name: windows.numpy()})

else:
    import openvino

    model = openvino.convert_model(torch.jit.trace(net, windows))
    model.reshape(list(windows.shape))
    compiled = openvino.Core().compile_model(
        model, "CPU", {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32",
                       "PERFORMANCE_HINT": "LATENCY"}
    )
    request = compiled.create_infer_request()

    def run():
        return request.infer([windows.numpy()], share_inputs=True, share_outputs=True)


run()
made = cpu_seconds() - begin
seconds = []
for _ in range(passes):
    start = cpu_seconds()
    run()
    seconds.append(cpu_seconds() - start)
print(json.dumps({"engine": engine, "pass": statistics.median(seconds), "make": made}))
