"""Golden values of convolutional networks: tests/golden/networks/*.json.

make_networks_conv.py [NAME...]: all cases, or those whose name begins with one of these.
"""
import json
import sys
from pathlib import Path

import torch
from dynamic_network_architectures.architectures import unet
from monai.networks import nets
from network_golden import IMAGE, pattern, write

SIDE = {2: 16, 3: 8}


def case(name, dims, target, options, side=None, peer=None, **more):
    """Options are the peer's and ours; `peer` makes the peer's network of them where MONAI's class does not."""
    if sys.argv[1:] and not name.startswith(tuple(sys.argv[1:])):
        return
    options = {"spatial_dims": dims, "in_channels": 2, "out_channels": 3, **options}
    network = (peer or getattr(nets, target))(**options)
    shape = [2, 2] + [side or SIDE[dims]] * dims
    where = f"{type(network).__module__}.{type(network).__name__}"
    write(f"{name}_{dims}d", network, {"_target_": target, **options}, shape, where, **more)


DYNUNET = dict(kernel_size=[3, 3, 3], strides=[1, 2, 2], upsample_kernel_size=[2, 2], filters=[4, 6, 8])
FOUR = dict(kernel_size=[3, 3, 3, 1], strides=[1, 2, 2, 2], upsample_kernel_size=[2, 2, 2], filters=[4, 6, 8, 8])


def all_levels(network, image):
    """The coarser outputs before MONAI makes them as large as the finest."""
    network(image)
    finest = network.output_block(network.skip_layers(image))
    return [finest, *network.heads]


def nnunet(kind):
    """Makes nnU-Net's network, with the norm and activation that its planner chooses, of our options."""
    def make(spatial_dims, in_channels, out_channels, kernel_sizes, **options):
        kernels = kernel_sizes[0] if len(kernel_sizes) == 1 else kernel_sizes
        return getattr(unet, kind)(
            in_channels, num_classes=out_channels, kernel_sizes=kernels, **nnunet_style(spatial_dims), **options)

    return make


def nnunet_style(dims):
    return dict(
        conv_op=(torch.nn.Conv2d, torch.nn.Conv3d)[dims - 2], conv_bias=True,
        norm_op=(torch.nn.InstanceNorm2d, torch.nn.InstanceNorm3d)[dims - 2], norm_op_kwargs={"eps": 1e-5, "affine": True},
        nonlin=torch.nn.LeakyReLU, nonlin_kwargs={"inplace": True})


def write_nnunet_run():
    """plans.json and checkpoint_final.pth as nnU-Net writes them, and logits of that network."""
    folder = Path(__file__).resolve().parent / "nnunet"
    folder.mkdir(exist_ok=True)
    kwargs = dict(
        n_stages=3, features_per_stage=[4, 6, 6], conv_op="torch.nn.modules.conv.Conv2d", kernel_sizes=[[3, 3]] * 3,
        strides=[[1, 1], [2, 2], [2, 1]], n_blocks_per_stage=[1, 2, 1], n_conv_per_stage_decoder=[1, 1], conv_bias=True,
        norm_op="torch.nn.modules.instancenorm.InstanceNorm2d", norm_op_kwargs={"eps": 1e-05, "affine": True},
        dropout_op=None, dropout_op_kwargs=None, nonlin="torch.nn.LeakyReLU", nonlin_kwargs={"inplace": True})
    architecture = {
        "network_class_name": "dynamic_network_architectures.architectures.unet.ResidualEncoderUNet",
        "arch_kwargs": kwargs, "_kw_requires_import": ["conv_op", "norm_op", "dropout_op", "nonlin"]}
    plans = {"dataset_name": "Dataset001_Cells", "plans_name": "nnUNetResEncUNetMPlans", "configurations": {
        "2d": {"batch_size": 2, "patch_size": [16, 16], "architecture": architecture},
        "2d_more": {"inherits_from": "2d", "batch_size": 4}}}
    (folder / "plans.json").write_text(json.dumps(plans, indent=1) + "\n")
    torch.manual_seed(1)
    kwargs = {k: v for k, v in kwargs.items() if "_op" not in k and not k.startswith("nonlin") and k != "conv_bias"}
    network = unet.ResidualEncoderUNet(input_channels=1, num_classes=3, deep_supervision=False, **nnunet_style(2), **kwargs)
    network.apply(network.initialize)
    optimizer = torch.optim.SGD(network.parameters(), 0.01, momentum=0.99, nesterov=True)
    image = pattern([1, 1, 16, 16], IMAGE).float()
    network(image).square().sum().backward()
    optimizer.step()
    torch.save({
        "network_weights": network.state_dict(), "optimizer_state": optimizer.state_dict(), "grad_scaler_state": None,
        "logging": {"train_losses": [0.5]}, "_best_ema": 0.5, "current_epoch": 1, "init_args": {"plans": plans, "fold": 0},
        "trainer_name": "nnUNetTrainer", "inference_allowed_mirroring_axes": (0, 1)}, folder / "checkpoint_final.pth")
    logits = network.eval()(image).detach().double().flatten()[::12].tolist()
    (folder / "logits.json").write_text(json.dumps({"image": [1, 1, 16, 16], "every": 12, "logits": logits}) + "\n")


if not sys.argv[1:] or "nnunet" in sys.argv[1:]:
    write_nnunet_run()
for dims in 2, 3:
    case("dynunet", dims, "DynUNet", DYNUNET, side=8)
    case("dynunet_deep", dims, "DynUNet", dict(
        FOUR, deep_supervision=True, deep_supr_num=2, norm_name=["group", {"num_groups": 2}], act_name="prelu",
        res_block=True, trans_bias=True), run=all_levels)
    case("dynunet_batch", dims, "DynUNet", dict(DYNUNET, norm_name="batch", act_name="gelu"))
    case("dynunet_eval", dims, "DynUNet", dict(DYNUNET, norm_name="batch", act_name=["swish", {"alpha": 0.5}]), mode="eval")
    residual = dict(channels=[4, 6, 8], strides=[2, 2], num_res_units=2, norm=["batch", {}], dropout=0.0)
    case("unet", dims, "UNet", dict(channels=[4, 6, 8, 10], strides=[2, 1, 2]))
    case("unet_res", dims, "UNet", dict(residual, kernel_size=5, act=["leakyrelu", {"negative_slope": 0.1}]))
    case("unet_order", dims, "UNet", dict(channels=[4, 6], strides=[2], num_res_units=1, adn_ordering="AN", bias=False))
    for mode in "deconv", "nontrainable", "pixelshuffle":
        case(f"basic_unet_{mode}", dims, "BasicUNet", dict(features=[4, 4, 4, 6, 6, 5], upsample=mode), side=32)
    case("attention_unet", dims, "AttentionUnet", dict(channels=[4, 6, 8], strides=[2, 2]))
    case("seg_resnet", dims, "SegResNet", dict(init_filters=4, blocks_down=[1, 2, 1], blocks_up=[1, 2], norm=["group", {"num_groups": 2}]))
    case("seg_resnet_deconv", dims, "SegResNet", dict(
        init_filters=4, blocks_down=[1, 1, 1], blocks_up=[1, 1], norm="instance", act="swish", upsample_mode="deconv"))
    case("seg_resnet_ds", dims, "SegResNetDS", dict(init_filters=4, blocks_down=[1, 1, 2], dsdepth=2))
    case("seg_resnet_ds_flat", dims, "SegResNetDS", dict(
        init_filters=4, blocks_down=[1, 1, 1, 1], blocks_up=[1, 2, 1], dsdepth=3, norm="instance", act="prelu",
        upsample_mode="nontrainable", resolution=[4, 1, 1.5][:dims]))
    case("vnet", dims, "VNet", dict(act="prelu", bias=True) if dims == 2 else {}, side=16, mode="eval")
    case("mednext", dims, "MedNeXt", dict(
        init_filters=4, encoder_expansion_ratio=[2, 3], decoder_expansion_ratio=[3, 2], blocks_down=[1, 2], blocks_up=[1, 1],
        blocks_bottleneck=1, kernel_size=3, deep_supervision=True, use_residual_connection=True))
    case("mednext_response", dims, "MedNeXt", dict(
        init_filters=4, blocks_down=[1, 1], blocks_up=[1, 1], kernel_size=5, global_resp_norm=True))
    for kind, blocks in ("ResidualEncoderUNet", dict(n_blocks_per_stage=[1, 2, 1])), ("PlainConvUNet", dict(n_conv_per_stage=[2, 1, 1])):
        name = "res_enc" if kind == "ResidualEncoderUNet" else "plain_conv"
        options = dict(
            n_stages=3, features_per_stage=[4, 6, 6], kernel_sizes=[[3] * dims, [1] + [3] * (dims - 1), [3] * dims],
            strides=[[1] * dims, [1] + [2] * (dims - 1), [2] * dims], n_conv_per_stage_decoder=[2, 1],
            deep_supervision=True, **blocks)
        case(name, dims, kind, options, peer=nnunet(kind))
    case("res_enc_stem", dims, "ResidualEncoderUNet", dict(
        n_stages=2, features_per_stage=[4, 6], kernel_sizes=[3], strides=[1, 2], n_blocks_per_stage=[1, 1],
        n_conv_per_stage_decoder=[1], stem_channels=3), peer=nnunet("ResidualEncoderUNet"))
