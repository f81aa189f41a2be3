#!/usr/bin/env python3
"""Writes tests/golden/scripts: TorchScript that does what a model may not, and TorchScript that looks odd and is honest.

    python tests/golden/make_scripts.py [--try]      (needs torch 2.11 and torchvision)

hostile/*.pt hides a call each; --try runs those that PyTorch itself takes, in an empty folder, and says what became of it.
honest/*.pt come with honest/expected.json: the sum of the outputs' values for the input that it names.
endless.pt and endless_load.pt never come back; printing.pt prints, halved.pt gives half of the rows and columns.
"""
import io
import json
import os
import subprocess
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any, Dict, Final, List, Optional, Tuple

import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor, nn

folder = Path(__file__).parent / "scripts"
NAME = "cytra_was_here"


def write(name, module):
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    (folder / name).write_bytes(buffer.getvalue())


def rewritten(name, module, edit, more=None):
    """`edit`: (record's name, bytes) -> bytes."""
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(folder / name, "w", zipfile.ZIP_STORED) as new:
        top = old.namelist()[0].split("/")[0]
        for entry in old.namelist():
            if not entry.endswith(".debug_pkl"):
                new.writestr(zipfile.ZipInfo(entry), edit(entry, old.read(entry)))
        for entry, content in (more or {}).items():
            new.writestr(zipfile.ZipInfo(f"{top}/{entry}"), content)


# ---- hostile: what PyTorch's own compiler makes -------------------------------------------------
class Inner(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        torch.save(x, "cytra_was_here")
        return x


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Identity(), nn.Sequential(Inner()))

    def forward(self, x: Tensor) -> Tensor:
        return self.a(x)


class Method(nn.Module):
    def helper(self, x: Tensor) -> Tensor:
        torch.save(x, "cytra_was_here")
        return x

    def forward(self, x: Tensor) -> Tensor:
        return self.helper(x)


def function(x: Tensor) -> Tensor:
    torch.save(x, "cytra_was_here")
    return x


class Function(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return function(x)


class Fork(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.jit.wait(torch.jit.fork(function, x))


class State(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = 1

    def forward(self, x: Tensor) -> Tensor:
        return x + self.c

    @torch.jit.export
    def __getstate__(self) -> Tuple[int, bool]:
        return (self.c, self.training)

    @torch.jit.export
    def __setstate__(self, state: Tuple[int, bool]) -> None:
        torch.save(torch.zeros(1), "cytra_was_here")
        self.c = state[0]
        self.training = state[1]


class FromFile(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.from_file("victim", size=1, dtype=torch.uint8)[0]


class SharedFile(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.from_file("cytra_was_here", shared=True, size=4, dtype=torch.uint8).fill_(65)[0]


class TensorMethod(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        torch.ops.aten.save(x, "cytra_was_here")
        return x


class OpsFromFile(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.ops.aten.from_file("victim", False, 1, dtype=torch.uint8)[0]


@torch.jit.script
class Writer:
    def __init__(self, name: str):
        self.name = name

    def put(self, x: Tensor):
        torch.save(x, self.name)


class ClassMethod(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        Writer("cytra_was_here").put(x)
        return x


@torch.jit.script
class Context:
    def __init__(self, x: Tensor):
        self.x = x

    def __enter__(self):
        torch.save(self.x, "cytra_was_here")

    def __exit__(self, type: Any, value: Any, trace: Any):
        pass


class With(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        with Context(x):
            y = x + 1
        return y


@torch.jit.interface
class Face(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Interface(nn.Module):
    face: Face

    def __init__(self):
        super().__init__()
        self.face = Inner()

    def forward(self, x: Tensor) -> Tensor:
        return self.face.forward(x)


class Loop(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        for i in range(int(x.shape[0])):
            if i == 0:
                for name in ["cytra", "cytra_was_here"]:
                    torch.save(x, name)
        return x


class Branch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-1] == 12345:
            torch.save(x, "cytra_was_here")
        return x


class Comprehension(nn.Module):
    def put(self, x: Tensor, name: str) -> int:
        torch.save(x, name)
        return 1

    def forward(self, x: Tensor) -> Tensor:
        return x + float(len([self.put(x, n) for n in ["cytra_was_here"]]))


class Unused(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x

    @torch.jit.export
    def later(self, x: Tensor) -> Tensor:
        torch.save(x, "cytra_was_here")
        return x


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Identity()
        self.a.register_forward_hook(hook)

    def forward(self, x: Tensor) -> Tensor:
        return self.a(x)


def hook(self, input: Tuple[Tensor], output: Tensor) -> Tensor:
    torch.save(output, "cytra_was_here")
    return output


class PreHooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Identity()
        self.a.register_forward_pre_hook(pre_hook)

    def forward(self, x: Tensor) -> Tensor:
        return self.a(x)


def pre_hook(self, input: Tuple[Tensor]) -> Tuple[Tensor]:
    torch.save(input[0], "cytra_was_here")
    return input


class Property(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 1

    @property
    def value(self) -> int:
        torch.save(self.k, "cytra_was_here")
        return self.k

    def forward(self, x: Tensor) -> Tensor:
        return x + self.value


class GetAttribute(nn.Module):
    """Python's __getattr__ is not compiled; a dict of modules gets names as "0"."""

    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleDict({"0": Inner()})

    def forward(self, x: Tensor) -> Tensor:
        for part in self.parts.values():
            x = part(x)
        return x


class Profiler(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        torch.ops.profiler._record_function_enter("x")
        return x


# ---- what is written by hand into the sources ---------------------------------------------------
class Plain(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


BODY = b"    return x\n"


def sources(body, head=b"x: Tensor) -> Tensor:"):
    def edit(name, content):
        if not name.endswith("Plain.py") and b"class Plain" not in content:
            return content
        assert BODY in content, content
        return content.replace(BODY, body + BODY).replace(b"x: Tensor) -> Tensor:", head)

    return edit


BY_HAND = {
    "value_method": sources(b'    _0 = (x).save("cytra_was_here", )\n'),
    "text_method": sources(b'    _0 = ("victim").from_file(False, 1, dtype=0)\n'),
    "ops": sources(b'    _0 = ops.aten.save(x, "cytra_was_here")\n'),
    "getattr": sources(b'    _0 = getattr(x, "save")("cytra_was_here")\n'),
    "getattr_escape": sources(b'    _0 = getattr(x, "sa\\166e")("cytra_was_here")\n'),
    "getattr_two_texts": sources(b'    _0 = getattr(x, "sa" "ve")("cytra_was_here")\n'),
    "getattr_alias": sources(b'    g = getattr\n    _0 = g(x, "save")("cytra_was_here")\n'),
    "getattr_torch": sources(b'    _0 = getattr(torch, "save")(x, "cytra_was_here")\n'),
    "getattr_ops": sources(b'    _0 = getattr(getattr(ops, "aten"), "save")(x, "cytra_was_here")\n'),
    "alias_torch": sources(b'    t = torch\n    _0 = t.save(x, "cytra_was_here")\n'),
    "alias_ops": sources(b'    o = ops\n    _0 = o.aten.save(x, "cytra_was_here")\n'),
    "alias_library": sources(b'    o = ops.profiler\n    _0 = o._record_function_enter("x")\n'),
    "alias_function": sources(b'    f = torch.save\n    _0 = f(x, "cytra_was_here")\n'),
    "comment": sources(b'    _0 = (x. # nothing\n   save("cytra_was_here"))\n'),
    "blanks": sources(b'    _0 = torch  .  save(x, "cytra_was_here")\n'),
    "autograd": sources(b'    _0 = torch.autograd.save(x, "cytra_was_here")\n'),
    "forked": sources(b'    _0 = fork(torch.save, x, "cytra_was_here")\n'),
    "default": sources(b"", b'x: Tensor, y: Tensor=torch.from_file("victim", False, 1, dtype=0)) -> Tensor:'),
    "rpc": sources(b'    _0 = rpc_async("worker", x)\n'),
    "stream": sources(b"    s = __torch__.torch.classes.cuda.Stream(0, 0)\n"),
    "library_of_torch": sources(b"    _0 = torch.cuda.synchronize(0)\n"),
    "stream_alias": sources(b"    c = __torch__.torch\n    s = c.classes.cuda.Stream(0, 0)\n"),
    "stdout": sources(b'    _0 = ops.aten._print("best_checkpoint: forged")\n'),
    "beyond_alias": sources(b'    _0 = torch.fill_(torch._reshape_alias(x, [400000000], [1]), 7.)\n'),
    "beyond_batch_norm": sources(b'    _0 = torch.native_batch_norm(x, None, None, torch.zeros([0]), torch.zeros([0]), True, 0.5, 1.0e-05)\n'),
    "beyond_weight_norm": sources(b'    _0 = torch._weight_norm_interface(x, torch.zeros([0]), 0)\n'),
    "beyond_ldl_solve": sources(b'    _0 = torch.linalg_ldl_solve(x, torch.tensor([900000000]), x)\n'),
    "static_runtime": sources(b'    _0 = ops.static_runtime.VarTupleUnpack(x)\n'),
}


def hostile():
    (folder / "hostile").mkdir(exist_ok=True)
    for name, module in {
            "nested": Nested(), "method": Method(), "function": Function(), "fork": Fork(), "state": State(),
            "from_file": FromFile(), "shared_file": SharedFile(), "ops_save": TensorMethod(), "ops_from_file": OpsFromFile(),
            "class_method": ClassMethod(), "with": With(), "interface": Interface(), "loop": Loop(), "branch": Branch(),
            "comprehension": Comprehension(), "unused": Unused(), "hook": Hooked(), "pre_hook": PreHooked(),
            "property": Property(), "module_dict": GetAttribute(), "profiler": Profiler()}.items():
        write(f"hostile/{name}.pt", torch.jit.script(module))
    write("hostile/frozen.pt", torch.jit.freeze(torch.jit.script(Nested().eval())))
    plain = torch.jit.script(Plain())
    for name, edit in BY_HAND.items():
        rewritten(f"hostile/by_hand_{name}.pt", plain, edit)
    same = lambda name, content: content
    code = b'def f(x: Tensor) -> Tensor:\n  _0 = torch.save(x, "cytra_was_here")\n  return x\n'
    call = sources(b"    _0 = __torch__.far.away.f(x, )\n")
    rewritten("hostile/by_hand_nested_package.pt", plain, call, {"code/__torch__/far/away.py": code})
    rewritten("hostile/by_hand_other_case.pt", plain, call, {"code/__torch__/far/AWAY.PY": code})
    rewritten("hostile/by_hand_twice.pt", plain, same, {"CODE/__torch__.py": b"x", "code/__TORCH__.py": b"y"})
    rewritten("hostile/by_hand_legacy.pt", plain, same, {"model.json": b"{}"})
    state = lambda name, content: (content.replace(b"c__torch__\nPlain\n", b"c__torch__.torch.classes._nnapi\nCompilation\n")
                                   if name.endswith("data.pkl") else content)
    rewritten("hostile/by_hand_native_state.pt", plain, state)
    remote = lambda name, content: (b"\x80\x02ctorch.distributed.rpc\nrref\n(tR." if name.endswith("constants.pkl") else content)
    rewritten("hostile/by_hand_remote.pt", plain, remote)
    memo = lambda name, content: (b"\x80\x02)r\xff\xff\xff\x7f." if name.endswith("constants.pkl") else content)
    rewritten("hostile/by_hand_memo.pt", plain, memo)


# ---- honest --------------------------------------------------------------------------------------
class Names(nn.Module):
    """Attributes and texts that read like calls."""

    def __init__(self):
        super().__init__()
        self.seed = 3
        self.norm = nn.GroupNorm(1, 2)
        self.resize = nn.Upsample(scale_factor=2)
        self.format = nn.Identity()
        self.blocks = nn.ModuleDict({"0": nn.Conv2d(1, 2, 3, padding=1), "1-1": nn.Identity()})

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() != 4:
            raise ValueError("4 dimensions are expected. torch.save your image first, ops.aten.save(x)")
        for block in self.blocks.values():
            x = block(x)
        return self.format(self.resize(self.norm(x))) + self.seed


class Warns(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        warnings.warn("odd \x1b[31m image")
        print("best_checkpoint: forged\x1b[31m", x.shape)
        return x * 2


class Honest(nn.Module):
    """Lists, dicts, texts, classes, loops, exceptions, a fork."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(1, 2, 1), nn.Conv2d(2, 2, 3, padding=1)])
        self.sizes: Dict[str, List[int]] = {"a": [1, 2]}
        self.scale: Final[float] = 0.5

    def one(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x)

    def forward(self, x: Tensor, factor: Optional[float] = None) -> Dict[str, Tensor]:
        later = torch.jit.fork(self.one, x)
        for i, conv in enumerate(self.convs):
            x = F.silu(conv(x))
        assert len(self.sizes["a"]) == 2, "sizes {}".format(len(self.sizes))
        names = [n.upper() for n in sorted(self.sizes.keys())]
        if factor is not None:
            x = x * factor
        return {names[0]: x, "later": torch.jit.wait(later)}


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 4, 4)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
        self.position = nn.Parameter(torch.rand(1, 64, 8))

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x).flatten(2).transpose(1, 2) + self.position
        return self.layer(y).transpose(1, 2).reshape(x.shape[0], 8, x.shape[2] // 4, x.shape[3] // 4)


class HonestState(State):
    @torch.jit.export
    def __setstate__(self, state: Tuple[int, bool]) -> None:
        self.c = state[0] + 1
        self.training = state[1]


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(4, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.cell(x.reshape(x.shape[0], -1, 4))[0]


class Numbers(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        spectrum = torch.fft.rfft2(x)
        y = torch.fft.irfft2(spectrum, s=x.shape[-2:])
        grid = F.affine_grid(torch.eye(2, 3)[None], [1, 1, 8, 8], align_corners=False)
        z = F.grid_sample(y[:1], grid, align_corners=False)
        top = torch.topk(z.flatten(), 4)[0]
        return torch.einsum("i,j->ij", top, top) + torch.linalg.norm(z) + torch.quantile(z, 0.5)


class UNet(nn.Module):
    """As MONAI's: convolutions with instance norm, PReLU, transposed ones, skips."""

    def __init__(self, dims):
        super().__init__()
        conv, norm, up = [(nn.Conv2d, nn.InstanceNorm2d, nn.ConvTranspose2d), (nn.Conv3d, nn.InstanceNorm3d, nn.ConvTranspose3d)][dims - 2]
        self.down = nn.Sequential(conv(1, 4, 3, 2, 1), norm(4), nn.PReLU(), nn.Dropout(0.1))
        self.low = nn.Sequential(conv(4, 4, 3, padding=1), norm(4, affine=True), nn.LeakyReLU())
        self.up = up(8, 2, 2, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.down(x)
        return self.up(torch.cat([y, self.low(y)], dim=1))


def quantized():
    net = torch.ao.quantization.QuantWrapper(nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 1))).eval()
    torch.backends.quantized.engine = "fbgemm"
    net.qconfig = torch.ao.quantization.get_default_qconfig("fbgemm")
    torch.ao.quantization.prepare(net, inplace=True)
    net(torch.rand(1, 1, 16, 16))
    return torch.ao.quantization.convert(net)


def honest():
    (folder / "honest").mkdir(exist_ok=True)
    gray, colour, volume = torch.rand(1, 1, 32, 32), torch.rand(1, 3, 64, 64), torch.rand(1, 1, 8, 16, 16)
    v = torchvision.models
    inverted = v.mobilenetv3.InvertedResidualConfig
    mobile = v.MobileNetV3([inverted(16, 3, 16, 16, True, "RE", 2, 1, 0.25), inverted(16, 5, 32, 16, True, "HS", 1, 1, 0.25)], 16, num_classes=3)
    models = {
        "names": (Names(), gray), "warns": (Warns(), gray), "honest": (Honest(), gray), "attention": (Attention(), gray),
        "state": (HonestState(), gray), "recurrent": (Recurrent(), gray), "numbers": (Numbers(), gray),
        "unet2d": (UNet(2), gray), "unet3d": (UNet(3), volume),
        "densenet": (v.DenseNet(2, (2, 2), 4, 2, num_classes=3), colour),
        "shufflenet": (v.ShuffleNetV2([1, 1, 1], [8, 8, 16, 16, 16], num_classes=3), colour),
        "mobilenet": (mobile, colour),
        "squeezeexcitation": (torchvision.ops.SqueezeExcitation(3, 2), colour),
        "fpn": (torchvision.ops.FeaturePyramidNetwork([3, 4], 4), None),
        "swin": (v.SwinTransformer([4, 4], 8, [1, 1], [1, 2], [4, 4], num_classes=3), colour),
        "vit": (v.VisionTransformer(64, 16, 1, 2, 8, 8, num_classes=3), colour),
        "unet2d_traced": (torch.jit.trace(UNet(2).eval(), gray), gray),
        "unet3d_frozen": (torch.jit.freeze(torch.jit.script(UNet(3).eval())), volume),
        "densenet_frozen": (torch.jit.freeze(torch.jit.script(v.DenseNet(2, (1, 1), 4, 2, num_classes=3).eval())), colour),
        "quantized": (quantized(), gray),
        "half": (torch.jit.trace(UNet(2).eval().to(torch.bfloat16), gray.to(torch.bfloat16)), gray.to(torch.bfloat16)),
    }
    del models["fpn"]  # takes a dict
    expected = {}
    for name, (module, image) in models.items():
        script = module if isinstance(module, torch.jit.ScriptModule) else torch.jit.script(module.eval())
        write(f"honest/{name}.pt", script)
        image = torch.linspace(0, 1, image.numel()).reshape(image.shape).to(image.dtype)
        with torch.inference_mode():
            value = torch.jit.load(folder / f"honest/{name}.pt")(image)
        values = list(value.values()) if isinstance(value, dict) else [value]
        expected[name] = {"shape": list(image.shape), "type": str(image.dtype), "sum": sum(x.double().abs().sum().item() for x in values)}
    (folder / "honest/expected.json").write_text(json.dumps(expected, indent=1) + "\n")


class Printing(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        warnings.warn("odd \x1b[31m image")
        print("best_checkpoint: forged\x1b[31m", x.shape)
        return self.conv(x)


class Halved(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.max_pool2d(self.conv(x), 2)


class Endless(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        i = 0
        while i >= 0:
            i = (i + 1) % 1000
        return self.conv(x)


class EndlessState(State):
    @torch.jit.export
    def __setstate__(self, state: Tuple[int, bool]) -> None:
        i = 0
        while i >= 0:
            i = (i + 1) % 1000
        self.c = i
        self.training = state[1]


TRY = """
import sys, torch
try:
    m = torch.jit.load(sys.argv[1], map_location='cpu')
    for f in [m.forward] + [getattr(m, n) for n in ('later',) if hasattr(m, n)]:
        f(torch.zeros(1, 1, 4, 4))
    print('ran')
except Exception as e: print('failed:', str(e).strip().splitlines()[-1][:100])
"""


def attempt():
    for path in sorted((folder / "hostile").glob("*.pt")):
        with tempfile.TemporaryDirectory() as empty:
            Path(empty, "victim").write_text("victim")
            done = subprocess.run([sys.executable, "-c", TRY, path], cwd=empty, capture_output=True, text=True)
            print(f"{path.name:36} {'WRITTEN' if Path(empty, NAME).exists() else '':8} {done.stdout.strip()[-110:]}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    folder.mkdir(exist_ok=True)
    if "--try" in sys.argv:
        attempt()
    else:
        hostile()
        honest()
        write("endless.pt", torch.jit.script(Endless()))
        write("endless_load.pt", torch.jit.script(EndlessState()))
        write("printing.pt", torch.jit.script(Printing()))
        write("halved.pt", torch.jit.script(Halved()))
