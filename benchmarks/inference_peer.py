"""MONAI's network on one batch of windows, on one thread: inference_peer.py NETWORK ENGINE PRECISION PASSES.

NETWORK: as of bench_inference. ENGINE: eager, compile, quantize_dynamic, onnxruntime, openvino. PRECISION: 32, bf16. CPU
seconds of a pass (median) and of making the engine, as one JSON line.
"""
import io
import json
import resource
import statistics
import sys

import torch
from monai.networks.nets import UNETR, DynUNet, UNet, ViT

network, engine, precision, passes = *sys.argv[1:4], int(sys.argv[4])


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)  # os.times() counts in hundredths
    return usage.ru_utime + usage.ru_stime


torch.set_num_threads(1)
torch.manual_seed(0)


def dynunet(dims, filters):
    levels = len(filters)
    return DynUNet(dims, 1, 1, [3] * levels, [1] + [2] * (levels - 1), [2] * (levels - 1), filters=filters)


net, shape = {
    "2": lambda: (dynunet(2, [32, 64, 128, 256]), (4, 1, 256, 256)),
    "3": lambda: (dynunet(3, [32, 64, 128]), (1, 1, 48, 96, 96)),
    "vit": lambda: (ViT(1, (224, 224), 16, spatial_dims=2), (1, 1, 224, 224)),
    "unetr": lambda: (UNETR(1, 2, (96, 96, 96)), (1, 1, 96, 96, 96)),
    "batchnorm": lambda: (UNet(2, 1, 1, [32, 64, 128, 256], [2, 2, 2], num_res_units=2, norm="batch"), (4, 1, 256, 256)),
}[network]()
net.eval().requires_grad_(False)
windows = torch.randn(shape)
begin = cpu_seconds()
if engine in ("eager", "compile", "quantize_dynamic"):
    fast = net
    if engine == "compile":
        fast = torch.compile(net)
    elif engine == "quantize_dynamic":
        fast = torch.ao.quantization.quantize_dynamic(net, {torch.nn.Linear}, torch.qint8)

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
