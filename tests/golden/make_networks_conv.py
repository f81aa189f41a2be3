"""Golden values of convolutional networks: tests/golden/networks/*.json."""
from monai.networks.nets import DynUNet
from network_golden import write


def dynunet(name, dims, deep=False):
    options = dict(
        spatial_dims=dims, in_channels=2, out_channels=3, kernel_size=[3, 3, 3], strides=[1, 2, 2],
        upsample_kernel_size=[2, 2], filters=[4, 6, 8])
    write(name, DynUNet(**options), {"_target_": "DynUNet", **options}, [2, 2] + [8] * dims, "monai.networks.nets.DynUNet")


dynunet("dynunet_2d", 2)
dynunet("dynunet_3d", 3)
