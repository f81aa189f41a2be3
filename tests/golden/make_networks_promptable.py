"""Golden values of Segment Anything: tests/golden/networks/sam_2d.json, tests/golden/promptable*. Needs segment-anything."""
import importlib.machinery
import json
import sys
import unittest.mock
from functools import partial
from pathlib import Path

try:
    import torchvision  # noqa: F401
except ImportError:  # what the package imports for its generator of masks
    for name in ["torchvision", "torchvision.ops", "torchvision.ops.boxes", "torchvision.transforms",
                 "torchvision.transforms.functional"]:
        sys.modules[name] = unittest.mock.MagicMock(__spec__=importlib.machinery.ModuleSpec(name, None))

import torch
from network_golden import fill, pattern, write
from segment_anything.build_sam import _build_sam
from segment_anything.modeling import ImageEncoderViT, MaskDecoder, PromptEncoder, Sam, TwoWayTransformer
from segment_anything.utils.transforms import ResizeLongestSide

OPTIONS = dict(img_size=40, patch_size=4, embed_dim=16, depth=3, num_heads=2, mlp_ratio=2.0, window_size=4, out_chans=32,
               global_attn_indexes=[1], mask_in_chans=8, num_multimask_outputs=3, decoder_depth=2, decoder_num_heads=4,
               decoder_mlp_dim=24, iou_head_depth=3, iou_head_hidden_dim=12)


def small(**changes):
    o = {**OPTIONS, **changes}
    side = o["img_size"] // o["patch_size"]
    return Sam(
        ImageEncoderViT(depth=o["depth"], embed_dim=o["embed_dim"], img_size=o["img_size"], mlp_ratio=o["mlp_ratio"],
                        norm_layer=partial(torch.nn.LayerNorm, eps=1e-6), num_heads=o["num_heads"],
                        patch_size=o["patch_size"], qkv_bias=True, use_rel_pos=True,
                        global_attn_indexes=o["global_attn_indexes"], window_size=o["window_size"],
                        out_chans=o["out_chans"]),
        PromptEncoder(o["out_chans"], (side, side), (o["img_size"],) * 2, o["mask_in_chans"]),
        MaskDecoder(transformer_dim=o["out_chans"],
                    transformer=TwoWayTransformer(depth=o["decoder_depth"], embedding_dim=o["out_chans"],
                                                  mlp_dim=o["decoder_mlp_dim"], num_heads=o["decoder_num_heads"]),
                    num_multimask_outputs=o["num_multimask_outputs"], iou_head_depth=o["iou_head_depth"],
                    iou_head_hidden_dim=o["iou_head_hidden_dim"]),
    )


def decode(network, embedding, **prompts):
    """All masks and qualities of one image's prompts."""
    sparse, dense = network.prompt_encoder(points=prompts.get("points"), boxes=prompts.get("boxes"), masks=prompts.get("masks"))
    return network.mask_decoder.predict_masks(embedding[None], network.prompt_encoder.get_dense_pe(), sparse, dense)


def of_whole_box(network, image):
    embeddings = network.image_encoder(image)
    box = torch.tensor([[0.0, 0.0, OPTIONS["img_size"], OPTIONS["img_size"]]])
    parts = [decode(network, embedding, boxes=box) for embedding in embeddings]
    return embeddings, torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])


write("sam_2d", small(), {"_target_": "Sam", **OPTIONS}, [2, 3, 40, 40], "segment_anything.modeling.Sam", run=of_whole_box)


def values(tensor):
    flat = tensor.detach().flatten().double()
    return {"shape": list(tensor.shape), "largest": flat.abs().max().item(), "values": flat[:: max(1, len(flat) // 64)][:64].tolist()}


torch.manual_seed(0)
network = small().eval()
fill(network)
embedding = network.image_encoder(pattern([1, 3, 40, 40], 7).float())[0]
boxes = torch.tensor([[3.5, 4.0, 20.0, 31.25], [0.0, 10.0, 12.0, 39.0]])
points = torch.tensor([[[5.0, 6.0], [30.5, 2.0]], [[20.0, 20.0], [39.0, 0.0]]])
labels = torch.tensor([[1, 0], [1, -1]])
masks = pattern([2, 1, 40, 40], 8).float()
cases = {
    "boxes": dict(boxes=boxes),
    "points": dict(points=(points, labels)),
    "points_and_boxes": dict(points=(points, labels), boxes=boxes),
    "masks": dict(masks=masks),
    "boxes_and_masks": dict(boxes=boxes, masks=masks),
}
with torch.no_grad():
    prompted = {name: [values(t) for t in decode(network, embedding, **prompts)] for name, prompts in cases.items()}

# An image of bytes and its way into the square and back. apply_image_torch reads the size wrongly (of a batch, not an image).
resize = ResizeLongestSide(40)
squares = []
for height, width in [(30, 53), (61, 20), (9, 8)]:
    image = ((pattern([3, height, width], 9) + 1) * 127.5).floor()
    size = resize.get_preprocess_shape(height, width, 40)
    scaled = torch.nn.functional.interpolate(image[None], size, mode="bilinear", align_corners=False, antialias=True)[0].float()
    box = torch.tensor([[1.5, 2.0, width, height]])
    logits = pattern([2, 1, 20, 20], 10).float()
    squares.append({
        "size": [height, width],
        "image": values(network.preprocess(scaled)),
        "box": resize.apply_boxes_torch(box, (height, width))[0].tolist(),
        "masks": values(network.postprocess_masks(logits, size, (height, width))[:, 0]),
    })

# Files as users have them: a state dict as Meta's (an OrderedDict, torch.save), and TorchScript.
FOLDER = Path(__file__).resolve().parent / "promptable"
FOLDER.mkdir(exist_ok=True)
loaded = small(embed_dim=8, out_chans=16, mask_in_chans=4, decoder_num_heads=8, window_size=3).eval()
fill(loaded)
with torch.no_grad():  # not the mean of pixels
    for tensor in loaded.parameters():
        tensor.copy_(tensor.half())
    matrix = loaded.prompt_encoder.pe_layer.positional_encoding_gaussian_matrix
    matrix.copy_(matrix.half())
torch.save({name: tensor.half() for name, tensor in loaded.state_dict().items()}, FOLDER / "sam.pth")
picture = ((pattern([3, 30, 53], 11) + 1) * 127.5).floor()
with torch.no_grad():
    out = loaded([{"image": resize_picture, "original_size": (30, 53), "boxes": resize.apply_boxes_torch(torch.tensor(
        [[3.0, 4.0, 20.0, 25.0], [30.0, 2.0, 50.0, 29.0]]), (30, 53))} for resize_picture in [torch.nn.functional.interpolate(
            picture[None], resize.get_preprocess_shape(30, 53, 40), mode="bilinear", align_corners=False,
            antialias=True)[0].float()]], multimask_output=False)[0]


class Bright(torch.nn.Module):
    """What is brighter than half of its box's centre."""

    image_size: int
    pixel_mean: list[float]
    pixel_std: list[float]

    def __init__(self):
        super().__init__()
        self.image_size = 32
        self.pixel_mean = [0.0, 0.0, 0.0]
        self.pixel_std = [255.0, 255.0, 255.0]

    @torch.jit.export
    def encode(self, images: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.avg_pool2d(images, 2)

    @torch.jit.export
    def masks(self, embeddings: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
        x = ((boxes[:, 0] + boxes[:, 2]) / 4).long()
        y = ((boxes[:, 1] + boxes[:, 3]) / 4).long()
        grey = embeddings.mean(1)
        return grey - 0.5 * grey[torch.arange(grey.size(0)), y, x][:, None, None]


class Plain(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


torch.jit.save(torch.jit.script(Bright()), FOLDER / "bright.pt")
torch.jit.save(torch.jit.script(Plain()), FOLDER / "plain.pt")
torch.save({"image_encoder.patch_embed.seq.0.c.weight": torch.zeros(1)}, FOLDER / "mobile_sam.pt")

# Names and shapes of sam_vit_b_01ec64.pth, sam_vit_l_0b3195.pth and sam_vit_h_4b8939.pth.
sizes = {"vit_b": (768, 12, 12, [2, 5, 8, 11]), "vit_l": (1024, 24, 16, [5, 11, 17, 23]), "vit_h": (1280, 32, 16, [7, 15, 23, 31])}
names = {}
for name, size in sizes.items():
    with torch.device("meta"):
        published = _build_sam(*size)
    names[name] = {key: list(tensor.shape) for key, tensor in published.state_dict().items()}
(Path(__file__).resolve().parent / "promptable.json").write_text(
    json.dumps({"model": {"_target_": "Sam", **OPTIONS}, "prompted": prompted, "squares": squares, **names,
                "loaded": values(out["low_res_logits"][:, 0])},
               separators=(",", ":")) + "\n")
