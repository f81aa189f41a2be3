"""Golden values of transformers: tests/golden/networks/*.json. CYTO_DL: the folder of CytoDL's package cyto_dl."""
import importlib.abc
import importlib.machinery
import os
import sys
import types
import unittest.mock

import torch
from monai.networks.nets import ViT
from network_golden import write


class Stub(types.ModuleType):
    """What CytoDL and timm import, and these networks do not use."""

    __path__ = []

    def __getattr__(self, name):
        return unittest.mock.MagicMock()


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torchvision", "positional_encodings"):
            return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec):
        return Stub(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.append(Stubs())
for package in ["cyto_dl", "cyto_dl.nn"]:  # the folders alone: their __init__.py import all of CytoDL
    sys.modules[package] = types.ModuleType(package)
    sys.modules[package].__path__ = [os.path.join(os.environ["CYTO_DL"], *package.split(".")[1:])]
from cyto_dl.nn import vits  # noqa: E402
from cyto_dl.nn.vits.blocks.patchify import patchify_base  # noqa: E402


def random_indexes(size, device):
    """Ours: one call for all images of a batch."""
    order = torch.argsort(torch.rand(size, device=device))
    return order, torch.argsort(order)


patchify_base.random_indexes = random_indexes




def vit(name, dims, **more):
    options = dict(spatial_dims=dims, in_channels=2, img_size=[8] * dims, patch_size=[4] * dims, hidden_size=12, mlp_dim=16,
                   num_layers=2, num_heads=2, **more)
    write(name, ViT(**options), {"_target_": "ViT", **options}, [2, 2] + [8] * dims, "monai.networks.nets.ViT",
          run=lambda network, image: [t for part in network(image) for t in ([part] if torch.is_tensor(part) else part)])


vit("vit_2d", 2, qkv_bias=True)
vit("vit_3d", 3, proj_type="perceptron", pos_embed_type="sincos")
vit("vit_classification_2d", 2, classification=True, num_classes=3)


def masked(network, image):
    torch.manual_seed(0)
    reconstruction, mask = network(image)
    return reconstruction, mask[:, :1].to(reconstruction.dtype)


def mae(name, dims, **more):
    options = dict(spatial_dims=dims, num_patches=[4, 3, 2][:dims], patch_size=[2, 4, 2][:dims], emb_dim=8, encoder_layer=2,
                   encoder_head=2, decoder_layer=2, decoder_head=2, decoder_dim=6, input_channels=2, **more)
    shape = [2, 2] + [n * p for n, p in zip(options["num_patches"], options["patch_size"])]
    write(name, vits.MAE(**options), {"_target_": "MAE", **options}, shape, "cyto_dl.nn.vits.MAE", run=masked)


mae("mae_2d", 2, context_pixels=1)
mae("mae_3d", 3)
mae("mae_cross_2d", 2, use_crossmae=True)
mae("mae_cross_3d", 3, use_crossmae=True, mask_ratio=0.5, context_pixels=2)
