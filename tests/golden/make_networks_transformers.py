"""Golden values of transformers: tests/golden/networks/*.json. CYTO_DL: a folder with cytodl's sources."""
import importlib
import os
import sys
import types

import torch
from monai.networks.nets import ViT
from network_golden import write




def vit(name, dims, **more):
    options = dict(spatial_dims=dims, in_channels=2, img_size=[8] * dims, patch_size=[4] * dims, hidden_size=12, mlp_dim=16,
                   num_layers=2, num_heads=2, **more)
    write(name, ViT(**options), {"_target_": "ViT", **options}, [2, 2] + [8] * dims, "monai.networks.nets.ViT",
          run=lambda network, image: [t for part in network(image) for t in ([part] if torch.is_tensor(part) else part)])


vit("vit_2d", 2, qkv_bias=True)
vit("vit_3d", 3, proj_type="perceptron", pos_embed_type="sincos")
vit("vit_classification_2d", 2, classification=True, num_classes=3)
