"""CytoDL's masked autoencoder from its sources (CYTO_DL: the folder that holds its package cyto_dl), without the rest of it."""
import importlib.machinery
import os
import sys
import types
import unittest.mock


class Absent(types.ModuleType):
    """A package that CytoDL imports, and this network does not use."""

    __path__ = []

    def __getattr__(self, name):
        return unittest.mock.MagicMock()


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "positional_encodings":
            return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec):
        return Absent(spec.name)

    def exec_module(self, module):
        pass


def make_mae(size, channels):
    """Of configs/model/mae.yaml."""
    sys.meta_path.append(Finder())
    for package in ["cyto_dl", "cyto_dl.nn"]:  # the folders alone: their __init__.py import all of CytoDL
        sys.modules[package] = types.ModuleType(package)
        sys.modules[package].__path__ = [os.path.join(os.environ["CYTO_DL"], *package.split(".")[1:])]
    from cyto_dl.nn.vits.mae import MAE

    patch = 8
    return MAE(
        spatial_dims=len(size),
        num_patches=[side // patch for side in size],
        patch_size=patch,
        emb_dim=192,
        encoder_layer=12,
        encoder_head=3,
        decoder_layer=4,
        decoder_head=3,
        decoder_dim=192,
        mask_ratio=0.75,
        input_channels=channels,
    )
