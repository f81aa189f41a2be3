"""Golden values of transformers: tests/golden/networks/*.json. CYTO_DL: the folder of CytoDL's package cyto_dl."""
import importlib.abc
import importlib.machinery
import os
import sys
import types
import unittest.mock

import torch
from monai.networks.nets import UNETR, SwinUNETR, ViT
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


def unetr(name, shape, **more):
    options = dict(spatial_dims=len(shape), in_channels=1, out_channels=2, img_size=shape, feature_size=2, hidden_size=6,
                   mlp_dim=8, num_heads=2, **more)
    write(name, UNETR(**options), {"_target_": "UNETR", **options}, [2, 1] + shape, "monai.networks.nets.UNETR")


unetr("unetr_2d", [32, 48])
unetr("unetr_3d", [16, 16, 32], conv_block=False, res_block=False, norm_name="batch", proj_type="perceptron")


def swin_unetr(name, shape, **more):
    options = dict(spatial_dims=len(shape), in_channels=1, out_channels=2, feature_size=12, num_heads=[2, 3, 4, 6], **more)
    write(name, SwinUNETR(**options), {"_target_": "SwinUNETR", **options}, [2, 1] + shape, "monai.networks.nets.SwinUNETR")


GROUPS = ["group", {"num_groups": 3}]  # an instance norm of a few voxels is noise
swin_unetr("swin_unetr_2d", [64, 64], depths=[2, 2, 1, 1], window_size=5, patch_norm=True)
swin_unetr("swin_unetr_v2_2d", [32, 64], depths=[2, 1, 1, 1], window_size=[4, 7], use_v2=True, normalize=False, qkv_bias=False,
           norm_name=GROUPS)
swin_unetr("swin_unetr_3d", [32, 32, 32], depths=[2, 1, 1, 1], window_size=[3, 4, 5], mlp_ratio=1.0, norm_name=GROUPS)
swin_unetr("swin_unetr_mergingv2_3d", [32, 32, 32], depths=[1, 1, 1, 1], window_size=3, mlp_ratio=1.0, downsample="mergingv2",
           norm_name=GROUPS)


def seg_vit(name, dims, patch, layers, weights):
    """Its encoder's options have other names."""
    options = dict(spatial_dims=dims, num_patches=[3, 2, 2][:dims], patch_size=[patch] * dims, emb_dim=8, out_channels=2,
                   n_decoder_filters=64, freeze_encoder=False)
    encoder = dict(num_layer=layers, num_head=2, input_channels=2, n_intermediate_weights=weights)
    ours = dict(encoder_layer=layers, encoder_head=2, input_channels=2, n_intermediate_weights=weights)
    write(name, vits.Seg_ViT(**options, **encoder, upsample_factor=[1.0] * dims), {"_target_": "Seg_ViT", **options, **ours},
          [2, 2] + [n * patch for n in options["num_patches"]], "cyto_dl.nn.vits.Seg_ViT")


seg_vit("seg_vit_2d", 2, 8, 2, 3)
seg_vit("seg_vit_3d", 3, 4, 1, -1)


def hiera_mae(name, dims, **more):
    options = dict(spatial_dims=dims, num_patches=[8, 4, 4][:dims], num_mask_units=[2, 2, 2][:dims], patch_size=[1, 2, 2][:dims],
                   emb_dim=4, decoder_layer=1, decoder_head=2, decoder_dim=6, mask_ratio=0.5, **more)
    shape = [2, 1] + [n * p for n, p in zip(options["num_patches"], options["patch_size"])]
    stages = [dict(repeat=1, q_stride=[2, 1, 1][:dims], num_heads=1), dict(repeat=2, q_stride=[1, 2, 1][:dims], num_heads=2),
              dict(repeat=1, num_heads=4, self_attention=True)]
    network = vits.HieraMAE(architecture=[dict(stage) for stage in stages], **options)
    write(name, network, {"_target_": "HieraMAE", "architecture": stages, **options}, shape, "cyto_dl.nn.vits.mae.HieraMAE",
          run=masked)


hiera_mae("hiera_mae_2d", 2, context_pixels=1)
hiera_mae("hiera_mae_3d", 3, use_crossmae=True)
