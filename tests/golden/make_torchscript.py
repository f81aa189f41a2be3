#!/usr/bin/env python3
"""Writes tests/golden/torchscript: small networks that torch.jit saved, and what PyTorch gives for them without it; under wrong/
what can't be trained. Argument: a folder."""
import logging
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Dict, Optional, Tuple

import torch
from make_exported import Attention, Net, Residual, Shared, without_dropout
from safetensors.torch import save_file
from torch import nn

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)


def save(module, path, state=None):
    """torch.jit.save, without the places in Python's sources; a trace in training mode has changed the buffers."""
    if state:
        module.load_state_dict(state, strict=False)  # a trace has buffers that are not persistent, too
    torch.jit.save(module, path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist() if not name.endswith(".debug_pkl")}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)


class Heads(nn.Module):
    """A dict of results, a helper that training alone runs, a list of layers, a buffer that is assigned."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(2, 6, 3, padding=1), nn.Conv2d(6, 6, 3, padding=1)])
        self.norm = nn.BatchNorm2d(6)
        self.mask = nn.Conv2d(6, 2, 1)
        self.edge = nn.Conv2d(6, 3, 1)
        self.register_buffer("mean", torch.zeros(6))

    def forward(self, x) -> Dict[str, torch.Tensor]:
        for layer in self.layers:
            x = torch.relu(layer(x))
        x = self.norm(x)
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean([0, 2, 3])
        return {"mask": self.mask(x), "edge": self.edge(x - self.mean[:, None, None])}


class Aux(nn.Module):
    """A second result that training alone has."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.InstanceNorm3d(4, affine=True), nn.PReLU())
        self.out = nn.Conv3d(4, 2, 1)
        self.aux = nn.Conv3d(4, 2, 1)

    def forward(self, x) -> Tuple[torch.Tensor, Optional[torch.Tensor]]:
        y = self.body(x)
        return (self.out(y), self.aux(y)) if self.training else (self.out(y), None)


class Recurrent(nn.Module):
    """Rows as sequences. The script holds the layer's parameters in a list, too."""

    def __init__(self):
        super().__init__()
        self.rows = nn.GRU(1, 6, batch_first=True, bidirectional=True)
        self.out = nn.Conv2d(12, 1, 1)

    def forward(self, x):
        n, c, h, w = x.shape
        y = self.rows(x.permute(0, 2, 3, 1).reshape(n * h, w, c))[0]
        return self.out(y.reshape(n, h, w, 12).permute(0, 3, 1, 2))


class Drops(nn.Module):
    """Dropouts, also of attention and of a recurrent layer."""

    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(1, 8, 2, stride=2), nn.BatchNorm2d(8), nn.Dropout2d(0.5))
        self.rows = nn.LSTM(8, 8, 2, dropout=0.5, batch_first=True)
        self.heads = nn.Linear(8, 24)
        self.up = nn.ConvTranspose2d(8, 2, 2, stride=2)

    def forward(self, x):
        y = self.a(x)
        q, k, v = self.heads(self.rows(y.flatten(2).transpose(1, 2))[0]).chunk(3, 2)
        z = nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.5 if self.training else 0.0)
        return self.up(nn.functional.dropout(z, 0.5, self.training).transpose(1, 2).reshape(y.shape))


def script(network, _):
    return torch.jit.script(network)


def trace(network, image):
    return torch.jit.trace(network, image, check_trace=False)


def trace_in_evaluation(network, image):
    return trace(network.eval(), image)


def networks():
    yield "scripted", Net, script, (2, 1, 16, 16)
    yield "scripted_dict", Heads, script, (2, 2, 12, 20)
    yield "scripted_3d", Aux, script, (2, 1, 6, 8, 8)
    yield "scripted_shared", Shared, script, (2, 1, 16, 16)
    yield "scripted_recurrent", Recurrent, script, (2, 1, 8, 12)
    yield "traced", Residual, trace, (2, 1, 16, 24)
    yield "traced_attention", Attention, trace, (2, 1, 16, 16)
    yield "traced_in_evaluation", Net, trace_in_evaluation, (2, 1, 16, 16)


def outputs_of(result):
    results = result.values() if isinstance(result, dict) else result if isinstance(result, tuple) else (result,)
    return [one for one in results if one is not None]


def write(folder, name, make, save_as, shape, steps=30):
    torch.manual_seed(1)
    network = without_dropout(make())
    image = torch.randn(shape)
    for _ in range(2):  # running statistics that differ from the first ones
        network.train()(torch.randn(shape))
    state = {key: value.clone() for key, value in network.state_dict().items()}
    save(save_as(network, image), folder / f"{name}.pt", state)
    network.load_state_dict(state)
    tensors = {"image": image}
    with torch.no_grad():
        for i, output in enumerate(outputs_of(network.eval()(image.clone()))):
            tensors[f"output.{i}"] = output.contiguous().clone()
    network.train()
    outputs = outputs_of(network(image.clone()))
    loss = 0
    for i, output in enumerate(outputs):
        tensors[f"factor.{i}"] = factor = torch.randn(output.shape)
        tensors[f"train_output.{i}"] = output.detach().contiguous().clone()
        loss = loss + (output * factor).mean()
    loss.backward()
    for key, parameter in network.named_parameters():
        tensors["gradient." + key] = parameter.grad.contiguous().clone()
    network.load_state_dict(state)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-2, momentum=0.9)
    tensors["batches"] = torch.randn((4, *shape))
    goals = [torch.randn(output.shape) for output in outputs]
    tensors.update({f"goal.{i}": goal for i, goal in enumerate(goals)})
    curve = []
    for step in range(steps):
        optimizer.zero_grad()
        results = outputs_of(network(tensors["batches"][step % 4].clone()))
        loss = sum((result - goal).square().mean() for result, goal in zip(results, goals))
        loss.backward()
        optimizer.step()
        curve.append(loss.item())
        if step == 9:
            tensors.update({"buffer." + key: value.clone().contiguous() for key, value in network.named_buffers()})
    tensors["curve"] = torch.tensor(curve)
    save_file(tensors, folder / f"{name}.safetensors")


def dropouts(folder):
    folder.mkdir(exist_ok=True)
    torch.manual_seed(2)
    network = Drops()
    image = torch.randn(2, 1, 8, 12)
    network(image)
    state = {key: value.clone() for key, value in network.state_dict().items()}
    output = network.eval()(image).detach().contiguous()
    for name, save_as in (("scripted", script), ("traced", trace), ("traced_in_evaluation", trace_in_evaluation)):
        save(save_as(network.train(), image), folder / f"{name}.pt", state)
    save_file({"image": image, "output": output}, folder / "expected.safetensors")


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 1)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.conv(x)


class NoForward(nn.Module):
    @torch.jit.export
    def other(self, x: torch.Tensor) -> torch.Tensor:
        return x


def wrong(folder):
    folder.mkdir(exist_ok=True)
    torch.manual_seed(3)
    network = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(), nn.Conv2d(2, 1, 1))
    image = torch.randn(1, 1, 8, 8)
    network(image)
    save(torch.jit.freeze(torch.jit.script(network.eval())), folder / "frozen.pt")
    save(torch.jit.script(nn.Conv2d(1, 1, 1).half()), folder / "half.pt")
    save(torch.jit.script(nn.Conv2d(1, 1, 1).double()), folder / "double.pt")
    save(torch.jit.script(nn.Sequential(nn.Conv2d(1, 1, 1), nn.Flatten())), folder / "flat.pt")
    save(torch.jit.script(nn.Sequential(nn.Conv2d(1, 1, 3))), folder / "smaller.pt")
    save(torch.jit.script(nn.Bilinear(1, 1, 1)), folder / "two_inputs.pt")
    save(torch.jit.script(NoForward()), folder / "no_forward.pt")
    save(torch.jit.script(Counter()), folder / "counter.pt")
    torch.save(network.state_dict(), folder / "weights.pth")
    quantized = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Conv2d(1, 4, 1), nn.Flatten(2), nn.Linear(64, 64)), {nn.Linear}, torch.qint8)
    save(torch.jit.freeze(torch.jit.trace(quantized.eval(), image)), folder / "quantized.pt")


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "torchscript"
    folder.mkdir(parents=True, exist_ok=True)
    for one in networks():
        write(folder, *one)
    dropouts(folder / "dropout")
    wrong(folder / "wrong")


if __name__ == "__main__":
    main()
