"""make_seeds.py FOLDER: the golden cases and files as seeds of the fuzz targets."""
import json
import pathlib
import re
import struct
import sys
import zipfile
import zlib

golden = pathlib.Path(__file__).parent.parent / "golden"
out = pathlib.Path(sys.argv[1])


def write(target, texts):
    folder = out / target
    folder.mkdir(parents=True, exist_ok=True)
    for i, text in enumerate(sorted(set(texts))):
        data = text if isinstance(text, bytes) else text.encode(errors="surrogateescape")
        (folder / f"golden_{i:04}").write_bytes(data)


def png(depth, colour):
    """A PNG of 5 x 3 pixels."""
    row = b"\0" + bytes(range(5 * max(1, depth // 8) * (3 if colour == 2 else 1)))
    parts = [(b"IHDR", struct.pack(">IIBBBBB", 5, 3, depth, colour, 0, 0, 0)), (b"IDAT", zlib.compress(3 * row)),
             (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts)


def write_files():
    """Seeds of the readers: golden files below 8 kB; what a target puts around its input is taken off."""
    def files(patterns, folders=("images", "tiff")):
        found = [p for folder in folders for pattern in patterns for p in sorted((golden / folder).glob(pattern))]
        return [p.read_bytes() for p in found if p.stat().st_size < 8192]
    write("tiff", files(["*.tif"]))
    write("nifti", files(["*.nii", "*.nii.gz"]))
    write("nrrd", files(["*.nrrd"], ["nrrd_metaimage"]))
    write("metaimage", files(["*.mha"], ["nrrd_metaimage"]))
    write("npy", files(["*.npy"]))
    write("jpeg", files(["*.jpg", "*.jpeg"]))
    write("bmp", files(["*.bmp"]))
    write("gif", files(["*.gif"]))
    write("webp", files(["*.webp"]))
    write("jpeg2000", files(["*.jp2", "*.j2k"]))
    write("png", [png(depth, colour) for depth, colour in ((8, 0), (16, 0), (8, 2), (16, 2))])
    write("csv", ['raw,seg\na.tif,"b, ""c"".tif"\n', "\ufeffraw\r\na.tif\r\n\r\n", "raw\tseg\na\tb\n"])
    weights = [p.read_bytes()[8:] for p in sorted(golden.glob("*.safetensors")) if p.stat().st_size < 40000]
    write("safetensors", [b'{"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}12345678'] + weights)
    kinds = (["*json"], ["*.txt"], ["*.xml"], ["*.zip", "*.roi"])
    write("annotations", [bytes([number]) + one for number, names in enumerate(kinds)
                          for one in files(names, ["annotations", "annotations/yolo"])])
    write("torch", files(["*.pth", "*.ckpt", "*.pt"], ["torch"]))
    descriptions = [m.group() for data in files(["*.tif"])
                    for m in re.finditer(rb'(<\?xml[^\0]*</OME>|ImageJ=[^\0]*|\{"shape"[^\0]*\})', data)]
    write("ome_xml", descriptions)
    arrays = []
    for version, name in (("v2", ".zarray"), ("v3", "zarr.json")):
        for metadata in sorted((golden / "zarr" / version).glob("*/" + name)):
            chunks = [metadata.parent / chunk for chunk in ("0.0.0", "c/0/0/0") if (metadata.parent / chunk).is_file()]
            text = json.dumps(json.loads(metadata.read_text()), separators=(",", ":")).encode()
            arrays += [text + b"\n@@\n" + chunk.read_bytes() for chunk in chunks if chunk.stat().st_size < 4096]
    write("zarr", arrays)


def write_requests():
    """Seeds of the server's readers, and of nnU-Net's plans."""
    part = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.tif"\r\nContent-Type: image/tiff\r\n\r\nx\r\n'
    other = "--b\r\nContent-Disposition: form-data; name=params; filename*=UTF-8''a%20b.tif\r\n\r\n{}\r\n"
    kind = "multipart/form-data; boundary="
    write("form_data", [f"{kind}b\n{part}--b--", f'{kind}"b"\n{part}{other}--b--\r\n', f"{kind}b\nparams=a%20b&c=+d"])
    image = {"name": "image", "datatype": "UINT8", "shape": [1, 2, 3]}
    requests = [({"inputs": [dict(image, datatype=kind, data=data)]}, b"") for kind, data in (
        ("UINT8", [0, 1, 2, 3, 4, 255]), ("FP32", [[[0.5, -1, 2], [1e30, 4, 5]]]), ("BOOL", [True, False] * 3), ("INT64", [9] * 6))]
    for kind, size in (("UINT16", 12), ("FP16", 12), ("FP64", 48), ("BF16", 12), ("UINT64", 48)):
        inputs = [dict(image, datatype=kind, shape=[1, 1, 1, 2, 3], parameters={"binary_data_size": size})]
        outputs = [{"name": "mask", "parameters": {"binary_data": True}}]
        requests.append(({"inputs": inputs, "outputs": outputs, "parameters": {"threshold": 0.5}}, bytes(range(size))))
    region = {"shared_memory_region": "r", "shared_memory_byte_size": 6, "shared_memory_offset": 8}
    requests.append(({"inputs": [dict(image, parameters=region)], "outputs": [
        {"name": "mask", "parameters": region}, {"name": "logits", "parameters": dict(region, shared_memory_offset=32)}]}, b""))
    folders = sorted((golden / "nnunet_models").glob("*/*/plans.json"))
    old = {"plans_name": "p", "configurations": {"2d": {
        "UNet_class_name": "PlainConvUNet", "n_conv_per_stage_encoder": [2, 2], "n_conv_per_stage_decoder": [2],
        "UNet_base_num_features": 4, "unet_max_num_features": 8, "patch_size": [16, 16], "spacing": [1, 1],
        "conv_kernel_sizes": [[3, 3]] * 2, "pool_op_kernel_sizes": [[1, 1], [2, 2]],
        "normalization_schemes": ["RGBTo01Normalization"], "use_mask_for_norm": [False], "resampling_fn_data": "f",
        "resampling_fn_data_kwargs": {"order": 3}}}}
    regions = {"modality": {"0": "R"}, "labels": {"background": 0, "all": [1, 2], "part": 2, "ignore": 3}}
    write("nnunet", ["\n@@\n".join(json.dumps(one, separators=(",", ":")) for one in pair) for pair in [(old, regions)] + [
        (json.loads(p.read_text()), json.loads((p.parent / "dataset.json").read_text())) for p in folders]])
    write("tensor_input", [json.dumps(body).encode() + b"\n@@\n" + binary for body, binary in requests])


def write_networks():
    """Seeds of networks of torch.export: the JSON of their archives, with the numbers of bytes of their weights."""
    seeds = []
    for path in sorted((golden / "exported").glob("**/*.pt2")):
        with zipfile.ZipFile(path) as archive:
            read = {name: archive.read(name) for name in archive.namelist() if re.search(r"/(models|data/(weights|constants))/", name)}
        if any(name.endswith(".pt") for name in read):
            continue
        seed = {name: json.loads(data) if name.endswith(".json") else len(data) for name, data in read.items()}
        for content in seed.values():
            for node in content["graph_module"]["graph"]["nodes"] if isinstance(content, dict) and "graph_module" in content else []:
                node["metadata"] = {k: v for k, v in node["metadata"].items() if k == "nn_module_stack"}
        seeds.append(json.dumps(seed, separators=(",", ":")))
    write("exported", [seed for seed in seeds if len(seed) < 32768])


def strings(value):
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from strings(part)


def main():
    config = json.loads((golden / "config.json").read_text())
    composer, overrides = [], []
    for case in config["cases"]:
        files = config["trees"][case["tree"]]
        lines = list(case["overrides"])
        for name, text in files.items():
            lines += ["@@ " + name.removesuffix(".yaml"), text]
        composer.append("\n".join(lines))
        overrides += case["overrides"]
    yaml = [text for files in config["trees"] for text in files.values()]
    values = [line.split(":", 1)[-1].strip() for text in yaml for line in text.splitlines() if "${" in line]
    for name, target in (("overrides", overrides), ("interpolation", values)):
        if (golden / f"{name}.json").exists():
            target += [s for s in strings(json.loads((golden / f"{name}.json").read_text())) if len(s) < 1000]
    write("composer", composer)
    write("overrides", overrides)
    write("yaml", yaml)
    write("interpolation", values)
    write_files()
    write_requests()
    write_networks()


if __name__ == "__main__":
    main()
