#!/usr/bin/env python3
"""Writes tests/golden/exported: small networks that torch.export saved in training mode, and what PyTorch gives for
them. Arguments: a folder, and `--all` for networks of torchvision, timm and MONAI, which are too large to keep
(check_exported.py makes and compares them); the beginnings of names choose some."""
import functools
import itertools
import json
import logging
import sys
import warnings
import zipfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from torch.export import Dim
from torch.nn import functional

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)


def without_dropout(network):
    """Random numbers are not the same in two programs."""
    for module in network.modules():
        for name in ("p", "drop_prob", "drop_rate", "dropout", "dropout_rate", "attn_drop"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    return network


class Two(nn.Module):
    def __init__(self, as_dict=False):
        super().__init__()
        self.as_dict = as_dict
        self.a = nn.Conv2d(1, 4, 3, padding=1)
        self.b = nn.BatchNorm2d(4)
        self.mask = nn.Conv2d(4, 2, 1)
        self.edge = nn.Conv2d(4, 3, 1)

    def forward(self, x):
        y = torch.relu(self.b(self.a(x)))
        return {"mask": self.mask(y), "edge": self.edge(y)} if self.as_dict else (self.mask(y), self.edge(y))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, 2))

    def forward(self, x):
        return self.layers(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Shared(nn.Module):
    """A layer that runs twice, and a weight that two layers have."""

    def __init__(self):
        super().__init__()
        self.e = nn.Conv2d(1, 4, 3, padding=1)
        self.m = nn.Conv2d(4, 4, 3, padding=1)
        self.n = nn.BatchNorm2d(4)
        self.o = nn.Conv2d(4, 2, 1)
        self.m2 = nn.Conv2d(4, 4, 3, padding=1)
        self.m2.weight = self.m.weight

    def forward(self, x):
        y = self.e(x)
        for _ in range(2):
            y = torch.relu(self.n(self.m(y)))
        return self.o(self.m2(y))


class Residual(nn.Module):
    """Changes in place behind norms, a frozen batch norm, dilation, sides that are computed, constants."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, stride=2, padding=1, bias=False)
        self.n1 = nn.BatchNorm2d(8)
        self.c1 = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=2)
        self.n2 = nn.BatchNorm2d(8)
        self.n3 = nn.BatchNorm2d(8, track_running_stats=False)
        self.n4 = nn.InstanceNorm2d(8, affine=True)
        self.n5 = nn.GroupNorm(2, 8)
        self.act = nn.ReLU(inplace=True)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.head = nn.Conv2d(4, 2, 1)
        self.register_buffer("shift", torch.linspace(-1, 1, 8).view(1, 8, 1, 1), persistent=False)

    def train(self, mode=True):
        super().train(mode)
        self.n2.eval()  # frozen
        return self

    def forward(self, x):
        y = self.act(self.n1(self.stem(x)))
        z = self.n2(self.c1(y))
        z += y
        z = self.act(z) + self.shift
        z = self.n4(z)
        z.mul_(0.5)
        z = functional.leaky_relu(self.n5(z), 0.2) + functional.elu(self.n3(z))
        b, c, h, w = z.shape
        z = z * torch.sigmoid(z.reshape(b, c, h * w).mean(2)).view(b, c, 1, 1)
        z = functional.interpolate(z, size=(x.shape[2] // 2, x.shape[3] // 2), mode="bilinear")
        return self.head(self.up(torch.where(z > 3, torch.tensor(3.0), z)))


class Tricky(nn.Module):
    """Changes its image in place, views that merge channels, a chain of activations, types that are named."""

    def __init__(self):
        super().__init__()
        self.chain = nn.Sequential(*[layer for i in range(7) for layer in (nn.Conv2d(4 if i else 1, 4, 3, padding=1), nn.ReLU())])
        self.norm = nn.InstanceNorm2d(4, affine=True, track_running_stats=True)
        self.head = nn.Conv2d(4, 1, 1)

    def forward(self, x):
        x -= 0.5
        y = self.chain(x) + 0.25
        y[:, :2] += 1
        b, c, h, w = y.shape
        y = y.clone().view(b * c, 1, h, w).abs().view(b, c, h, w)
        return self.head(torch.softmax(self.norm(y).float(), 1).to(x.dtype))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(1, 16, 4, stride=4)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.head = nn.ConvTranspose2d(16, 2, 4, stride=4)

    def forward(self, x):
        y = self.patch(x)
        tokens = self.block(y.flatten(2).transpose(1, 2))
        return self.head(tokens.transpose(1, 2).reshape(y.shape))


class Net(nn.Module):
    """That of docs/networks.md."""

    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.b = nn.Sequential(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Dropout2d(0.1))
        self.up = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.out = nn.Conv2d(32, 1, 1)

    def forward(self, x):
        a = self.a(x)
        return self.out(torch.cat([a, self.up(self.b(a))], 1))


class Regions(nn.Module):
    """Parts without derivatives and without autocast, which are graphs of their own in the file."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(inplace=True))
        self.block = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
        self.out = nn.Conv2d(4, 2, 1)

    def forward(self, x):
        with torch.no_grad():  # a frozen stem
            y = self.stem(x)
            low, high = y.amin((2, 3), keepdim=True), y.amax((2, 3), keepdim=True)
        with torch.autocast("cpu", enabled=False):
            z = self.block((y - low) / (high - low + 1).float())
        with torch.no_grad():
            share = z.mean((2, 3), keepdim=True)
        return self.out(z * share + y)


class Weights(nn.Module):
    """Convolutions whose weights are computed, or views of one parameter."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 32, 3, padding=1)
        self.w = nn.Parameter(torch.randn(32, 32, 3, 3) / 17)
        self.gain = nn.Parameter(torch.rand(32, 1, 1, 1) + 0.5)
        self.out = nn.Conv2d(32, 2, 1)

    def forward(self, x):
        w = self.w
        standardised = (w - w.mean((1, 2, 3), keepdim=True)) / w.std((1, 2, 3), keepdim=True) / 17
        y = self.stem(x)
        for weight in (w, w.transpose(0, 1), standardised, w * self.gain, w / w.flatten(1).norm(dim=1).view(-1, 1, 1, 1), w * x.mean(), w):
            y = y + torch.tanh(functional.conv2d(y, weight, None, 1, 1))
        y = y + functional.conv2d(y[:, :16], w[:, :16], None, 1, 1)
        y = torch.cat([functional.conv2d(y, w[:16], None, 1, 1), y[:, 16:]], 1)
        return self.out(y)


class Views(nn.Module):
    """Changes in place of what has views: behind norms, dropouts and activations."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(2, 8, 3, padding=1)
        self.n = nn.ModuleList([nn.BatchNorm2d(8), nn.GroupNorm(2, 8), nn.BatchNorm2d(8), nn.InstanceNorm2d(8, affine=True), nn.BatchNorm2d(8)])
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        z = self.stem(x)
        a = self.n[0](z)
        v = a[:, :4]
        a.relu_()
        b = self.n[1](z)
        p = b.permute(0, 2, 3, 1)
        b.add_(1)
        c = functional.leaky_relu(self.n[2](z), 0.1)
        c[:, :4] += z[:, 4:]
        d = functional.leaky_relu(self.n[3](z), 0.1)
        d.flatten(2).mul_(3)
        e = self.n[4](z)
        w = e.view(e.shape[0], 8, -1)[:, 2:6]
        e.mul_(0.5)
        f = z * 2
        g = f[:, 4:]
        functional.dropout(f, 1.0, self.training, True)
        z = torch.cat([v, v], 1) + p.permute(0, 3, 1, 2) + c + d + e * w.mean() + torch.cat([g, g], 1)
        return self.out(z)


class Spectral(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.utils.parametrizations.spectral_norm(nn.Conv2d(1, 4, 3, padding=1))
        self.b = nn.utils.spectral_norm(nn.Conv2d(4, 2, 1))

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


def small():
    yield "net", Net, (2, 1, 16, 16)
    yield "tuple", Two, (2, 1, 16, 16)
    yield "dict", lambda: Two(True), (2, 1, 16, 16)
    yield "regions", Regions, (2, 1, 16, 16)
    yield "mlp", Mlp, (2, 3, 8, 8)
    yield "shared", Shared, (2, 1, 16, 16)
    yield "residual", Residual, (2, 1, 16, 24)
    yield "tricky", Tricky, (2, 1, 16, 16)
    yield "weights", Weights, (2, 1, 16, 16)
    yield "views", Views, (2, 2, 12, 16)
    yield "spectral", Spectral, (2, 1, 16, 16)
    yield "attention", Attention, (2, 1, 16, 16)
    yield "volume", lambda: nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.InstanceNorm3d(4), nn.LeakyReLU(), nn.Conv3d(4, 2, 1)), (2, 1, 6, 8, 8)


class Fcn(nn.Module):
    """A network of classes as an encoder."""

    def __init__(self, body, width, pick=None):
        super().__init__()
        self.body = body
        self.head = nn.Conv2d(width, 3, 1)
        self.pick = pick

    def forward(self, x):
        features = self.body(x)
        if self.pick is not None:
            features = features[self.pick]
        return functional.interpolate(self.head(features), size=x.shape[2:], mode="bilinear", align_corners=False)


class ChannelsFirst(nn.Module):
    def __init__(self, body, pick=None):
        super().__init__()
        self.body = body
        self.pick = pick

    def forward(self, x):
        features = self.body(x)
        return (features if self.pick is None else features[self.pick]).permute(0, 3, 1, 2)


class Tokens(nn.Module):
    """The tokens of a transformer of classes as the pixels of an image."""

    def __init__(self, body, side):
        super().__init__()
        self.body = body
        self.side = side

    def forward(self, x):
        tokens = self.body.forward_features(x) if hasattr(self.body, "forward_features") else self.body(x)
        tokens = tokens[0] if isinstance(tokens, tuple) else tokens
        return tokens[:, -self.side**2 :].transpose(1, 2).unflatten(2, (self.side, self.side))


def large():
    import timm
    import torchvision
    from monai.networks import nets

    vision, segmentation = torchvision.models, torchvision.models.segmentation
    image, pixels = (2, 3, 64, 64), (2, 1, 32, 32)
    yield "tv_resnet18", lambda: Fcn(nn.Sequential(*list(vision.resnet18().children())[:-2]), 512), image
    yield "tv_deeplabv3", lambda: segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=3, aux_loss=True), image
    yield "tv_lraspp", lambda: segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=3), image
    yield "tv_fcn", lambda: segmentation.fcn_resnet50(weights=None, weights_backbone=None, num_classes=3), image
    yield "tv_convnext", lambda: Fcn(vision.convnext_tiny(stochastic_depth_prob=0).features, 768), image
    yield "tv_efficientnet", lambda: Fcn(vision.efficientnet_b0(stochastic_depth_prob=0).features, 1280), image
    yield "tv_densenet", lambda: Fcn(vision.densenet121().features, 1024), image
    yield "tv_shufflenet", lambda: Fcn(nn.Sequential(*list(vision.shufflenet_v2_x0_5().children())[:-1]), 1024), image
    yield "tv_squeezenet", lambda: Fcn(vision.squeezenet1_1().features, 512), image
    yield "tv_googlenet", lambda: Fcn(nn.Sequential(*list(vision.googlenet(aux_logits=False, init_weights=False).children())[:-3]), 1024), image
    yield "tv_inception", lambda: Fcn(nn.Sequential(*list(vision.inception_v3(aux_logits=False, init_weights=False).children())[:-3]), 2048), (2, 3, 96, 96)
    yield "tv_mnasnet", lambda: Fcn(vision.mnasnet0_5().layers, 1280), image
    yield "tv_swin", lambda: Fcn(ChannelsFirst(vision.swin_t().features), 768), image
    for name in ("resnet10t", "convnextv2_atto", "efficientnet_lite0", "mobilenetv3_small_050", "regnetx_002", "edgenext_xx_small", "pvt_v2_b0", "resnest14d", "hrnet_w18_small"):
        def make(name=name):
            body = timm.create_model(name, features_only=True)
            return Fcn(body, body.feature_info.channels()[-1], -1)
        yield "timm_" + name, make, image
    yield "timm_vit_tiny", lambda: Fcn(timm.create_model("vit_tiny_patch16_224", img_size=64, features_only=True), 192, -1), image
    yield "timm_swinv2_tiny", lambda: Fcn(ChannelsFirst(timm.create_model("swinv2_tiny_window8_256", img_size=64, features_only=True), -1), 768), image
    yield "timm_coat_lite_tiny", lambda: Fcn(Tokens(timm.create_model("coat_lite_tiny", img_size=64), 2), 320), image
    yield "monai_unet", lambda: nets.UNet(2, 1, 2, (8, 16, 32), (2, 2), num_res_units=2), pixels
    yield "monai_unet_batch", lambda: nets.UNet(3, 1, 2, (8, 16, 32), (2, 2), num_res_units=1, norm="batch"), (2, 1, 16, 16, 16)
    yield "monai_segresnet", lambda: nets.SegResNet(3, 8, 1, 2), (1, 1, 16, 16, 16)
    yield "monai_swinunetr", lambda: nets.SwinUNETR(in_channels=1, out_channels=2, feature_size=12, spatial_dims=2), (2, 1, 64, 64)
    yield "monai_unetr", lambda: nets.UNETR(1, 2, (32, 32), feature_size=4, hidden_size=48, mlp_dim=96, num_heads=4, spatial_dims=2), pixels
    yield "monai_attention", lambda: nets.AttentionUnet(2, 1, 2, (8, 16, 32), (2, 2)), pixels
    yield "monai_vnet", lambda: nets.VNet(2, 1, 2), pixels
    yield "monai_dynunet", lambda: nets.DynUNet(2, 1, 2, [3, 3, 3], [1, 2, 2], [2, 2], filters=[8, 16, 32]), pixels
    yield "monai_highresnet", lambda: nets.HighResNet(2, 1, 2), pixels
    yield "monai_densenet", lambda: Fcn(nets.DenseNet121(2, 1, 2).features, 1024), pixels
    yield "monai_vit", lambda: Fcn(Tokens(nets.ViT(1, 32, 8, 48, 96, 2, 4, spatial_dims=2), 4), 48), pixels
    yield "monai_basicunet", lambda: nets.BasicUNet(2, 1, 2, (8, 8, 16, 32, 64, 8)), pixels


def outputs_of(result):
    return [result] if torch.is_tensor(result) else list(result.values() if isinstance(result, dict) else result)


def write(folder, name, make, shape, dtype, steps, has_fixed_sides=False):
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float32)
    network = without_dropout(make()).to(dtype).train()
    torch.set_default_dtype(dtype)
    image = torch.randn(shape)
    state = {key: value.clone() for key, value in network.state_dict().items()}
    sides = {} if has_fixed_sides or "swin" in name else {d: Dim.AUTO for d in range(2, len(shape))}  # sympy takes minutes
    program = torch.export.export(network, (image.clone(),), dynamic_shapes=({0: Dim.AUTO, **sides},))
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # paths of this machine
    torch.export.save(program, folder / f"{name}.pt2")
    network.load_state_dict(state)
    tensors = {"image": image}
    network.eval()
    with torch.no_grad():
        for i, output in enumerate(outputs_of(network(image.clone()))):
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
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        tensors["gradient." + key] = gradient.contiguous().clone()
    network.load_state_dict(state)
    rate = 1e-3 if name.startswith(("timm_convnext", "weights")) else 1e-2  # with 1e-2 it diverges
    tensors["rate"] = torch.tensor(rate)
    optimizer = torch.optim.SGD(network.parameters(), lr=rate, momentum=0.9)
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
    print(name, len(program.graph.nodes), "calls", flush=True)


class Tversky(nn.Module):
    """That of docs/networks.md: a loss with a mask and a weight of its own."""

    def __init__(self):
        super().__init__()
        self.register_buffer("alpha", torch.tensor(0.3))

    def forward(self, logits, target, mask):
        p = torch.sigmoid(logits) * mask
        t = target * mask
        hit, missed, wrong = (p * t).sum(), ((1 - p) * t).sum(), (p * (mask - t)).sum()
        return 1 - hit / (hit + self.alpha * wrong + (1 - self.alpha) * missed + 1e-5)


class Edges(nn.Module):
    """An image with its edges as a second channel."""

    def forward(self, image):
        kernel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]).view(1, 1, 3, 3)
        return torch.cat([image, functional.conv2d(image.unsqueeze(0), kernel, padding=1)[0].abs()])


def functions(folder):
    folder.mkdir(exist_ok=True)
    any_image = {0: Dim.AUTO, 2: Dim.AUTO, 3: Dim.AUTO}
    example = torch.zeros(2, 1, 8, 8)
    examples = tuple(torch.zeros(2, 1, 8, 8) for _ in range(3))  # of one tensor torch.export makes one input
    program = torch.export.export(Tversky(), examples, dynamic_shapes=(any_image,) * 3)
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)
    torch.export.save(program, folder / "tversky.pt2")
    program = torch.export.export(Tversky(), (example,) * 3, dynamic_shapes=(any_image,) * 3)
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)
    torch.export.save(program, folder / "one_tensor.pt2")  # it computes with one of the three
    edges = torch.export.export(Edges(), (torch.zeros(1, 8, 8),), dynamic_shapes=({1: Dim.AUTO, 2: Dim.AUTO},))
    for node in edges.graph.nodes:
        node.meta.pop("stack_trace", None)
    torch.export.save(edges, folder / "edges.pt2")
    image = torch.rand(1, 9, 11, generator=torch.Generator().manual_seed(1))
    save_file({"image": image, "result": Edges()(image)}, folder / "edges.safetensors")
    torch.manual_seed(3)
    logits = torch.randn(3, 1, 12, 10, requires_grad=True)
    target, mask = (torch.rand(3, 1, 12, 10) > 0.5).float(), (torch.rand(3, 1, 12, 10) > 0.2).float()
    value = Tversky()(logits, target, mask)
    value.backward()
    save_file({"logits": logits.detach(), "target": target, "mask": mask, "value": value.detach(), "gradient": logits.grad}, folder / "tversky.safetensors")


def hostile(folder):
    """Archives of one convolution, each with one thing that must be refused."""
    folder.mkdir(exist_ok=True)
    network = nn.Sequential(nn.Conv2d(1, 1, 1), nn.ReLU())
    program = torch.export.export(network, (torch.zeros(2, 1, 4, 4),), dynamic_shapes=({0: Dim.AUTO, 2: Dim.AUTO, 3: Dim.AUTO},))
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)
    plain = folder / "plain.pt2"
    torch.export.save(program, plain)
    with zipfile.ZipFile(plain) as archive:
        parts = {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}
    plain.unlink()
    del parts["data/sample_inputs/model.pt"]

    def save(name, change_graph=None, change_weights=None, compression=zipfile.ZIP_STORED, more=None):
        changed = dict(parts)
        graph, weights = json.loads(parts["models/model.json"]), json.loads(parts["data/weights/model_weights_config.json"])
        if change_graph:
            change_graph(graph["graph_module"]["graph"], graph)
        if change_weights:
            change_weights(weights["config"])
        changed["models/model.json"] = json.dumps(graph).encode()
        changed["data/weights/model_weights_config.json"] = json.dumps(weights).encode()
        changed.update(more or {})
        with zipfile.ZipFile(folder / f"{name}.pt2", "w", compression) as archive:
            for part, content in changed.items():
                archive.writestr(zipfile.ZipInfo(f"{name}/{part}"), content, compression)

    def text(value):
        return {"as_string": value}

    def call(target, *inputs):
        def change(graph, _):
            graph["nodes"][-1] |= {"target": target, "inputs": [{"name": n, "arg": a, "kind": 1} for n, a in inputs]}
        return change

    def tensor(name):
        return {"as_tensor": {"name": name}}

    def weight(**values):
        def change(config):
            for key, value in values.items():
                (config["0.weight"]["tensor_meta"] if key in config["0.weight"]["tensor_meta"] else config["0.weight"])[key] = value
        return change

    def sizes(*values):
        return [{"as_int": v} for v in values]

    halves = torch.export.export(nn.Conv2d(1, 1, 2, stride=2), (torch.zeros(2, 1, 4, 4),), dynamic_shapes=({0: Dim.AUTO, 2: Dim.AUTO, 3: Dim.AUTO},))
    for node in halves.graph.nodes:
        node.meta.pop("stack_trace", None)
    torch.export.save(halves, folder / "half_sides.pt2")
    save("from_file", call("torch.ops.aten.from_file.default", ("filename", text("/etc/passwd")), ("size", {"as_int": 8})))
    save("higher_order", call("torch.ops.higher_order.cond", ("pred", tensor("conv2d"))))
    save("custom_operator", call("torch.ops.mylib.run.default", ("x", tensor("conv2d"))))
    save("python_function", call("builtins.eval", ("a", text("1"))))
    save("cycle", call("torch.ops.aten.relu.default", ("self", tensor("relu"))))
    save("wrong_type", call("torch.ops.aten.relu.default", ("self", text("conv2d"))))
    save("deep", lambda graph, _: graph["nodes"][-1].update(metadata=functools.reduce(lambda inner, _: {"a": inner}, range(100), {})))
    save("other_version", lambda _, graph: graph["schema_version"].update(major=9))
    save("names_outside", None, weight(path_name="../../weight_0"))
    save("negative_strides", None, weight(strides=sizes(-1, -1, -1, -1)))
    save("beyond_the_file", None, weight(sizes=sizes(1, 1, 4096, 4096), strides=sizes(0, 0, 4096, 1)))
    save("pickled", None, weight(use_pickle=True))
    save("complex", None, weight(dtype=10))
    save("compressed", compression=zipfile.ZIP_DEFLATED)
    save("shape_of_a_billion", call("torch.ops.aten.zeros.default", ("size", {"as_ints": [1 << 20, 1 << 20]})))


def main():
    arguments = [a for a in sys.argv[1:] if a != "--all"]
    folder = Path(arguments[0]) if arguments else Path(__file__).parent / "exported"
    folder.mkdir(parents=True, exist_ok=True)
    is_large = "--all" in sys.argv
    for name, make, shape in itertools.chain(small(), large() if is_large else ()):
        if len(arguments) > 1 and not name.startswith(tuple(arguments[1:])):
            continue
        # The large ones in float64: deep networks of random weights make much of a last bit.
        try:
            write(folder, name, make, shape, torch.float64 if is_large else torch.float32, 30 if is_large else 20)
        except Exception as error:  # one that torch does not export
            if not is_large:
                raise
            print(name, "not exported:", str(error)[:200], flush=True)
    if not is_large:
        hostile(folder / "hostile")
        functions(folder / "functions")


if __name__ == "__main__":
    main()
