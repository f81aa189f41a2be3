"""Golden values of networks with several heads: tests/golden/networks/multi_head*.json.

PYTHONPATH=<a checkout of AllenCell/cyto-dl> make_networks_heads.py
"""
import torch
from cyto_dl.nn.head.base_head import BaseHead
from cyto_dl.nn.head.res_blocks_head import ResBlocksHead
from monai.networks.nets import DynUNet
from network_golden import write

BACKBONE = dict(kernel_size=[3, 3, 3], strides=[1, 2, 2], upsample_kernel_size=[2, 2], filters=[4, 5, 6])


class MultiTask(torch.nn.Module):
    """The networks of cyto_dl.models.im2im.MultiTaskIm2Im, and its forward()."""

    def __init__(self, dims, heads):
        super().__init__()
        self.backbone = DynUNet(spatial_dims=dims, in_channels=1, out_channels=4, **BACKBONE)
        self.task_heads = torch.nn.ModuleDict(heads)

    def forward(self, image):
        features = self.backbone(image)
        return [head(features) for head in self.task_heads.values()]


def case(dims):
    heads = {
        "plain": {"_target_": "BaseHead"},
        "res": {"_target_": "ResBlocksHead", "out_channels": 2},
        "dense": {"_target_": "ResBlocksHead", "out_channels": 1, "n_convs": 2, "dense": True},
    }
    made = {}
    for name, options in heads.items():
        options = {k: v for k, v in options.items() if k != "_target_"}
        made[name] = (
            ResBlocksHead(loss=None, in_channels=4, spatial_dims=dims, **options) if options else BaseHead(loss=None)
        )
    backbone = {"_target_": "DynUNet", "spatial_dims": dims, "in_channels": 1, "out_channels": 4, **BACKBONE}
    options = {"_target_": "MultiHead", "backbone": backbone, "heads": heads}
    where = "cyto_dl.models.im2im.MultiTaskIm2Im"
    write(f"multi_head_{dims}d", MultiTask(dims, made), options, [2, 1] + [8] * dims, where)


for dims in (2, 3):
    case(dims)
