import subprocess

from run import Comparison

TITLE = (
    "One image predicted by sliding windows: DynUNet (32, 64, 128, 256), 2048x2048 float32, windows of 512x512, 4 at a time, "
    "overlap 0.25, Gaussian weights; from the start of the process to the mask in a file. The weights are those of one "
    "training step, the same for both."
)
FILTERS = [32, 64, 128, 256]
NET = [f"model.filters={FILTERS}", "model.strides=[1,2,2,2]", "model.kernel_size=[3,3,3,3]", "model.upsample_kernel_size=[2,2,2]"]


def prepare(env):
    def run(program, *arguments):
        subprocess.run([env.bin / program, *map(str, arguments)], check=True, capture_output=True)

    run("generate_samples", "--output", env.scratch / "small", "--train", 4, "--valid", 1, "--test", 1, "--size", 128)
    run("generate_samples", "--output", env.scratch / "large", "--train", 0, "--valid", 0, "--test", 1, "--size", 2048)
    run(
        "train",
        "experiment=im2im/segmentation",
        f"data.path={env.scratch / 'small'}",
        f"paths.output_dir={env.scratch / 'run'}",
        "trainer.max_steps=1",
        *(word.replace(" ", "") for word in NET),
    )
    run(
        "export_model",
        f"checkpoint.ckpt_path={env.scratch / 'run/checkpoints/last.ckpt'}",
        f"output={env.scratch / 'weights.safetensors'}",
    )


def comparisons(env):
    image = env.scratch / "large/images/test_0000_raw.ome.tif"
    return [
        Comparison(
            f"2048x2048, {threads} thread{'s' if threads > 1 else ''}",
            [
                env.bin / "predict",
                f"checkpoint.ckpt_path={env.scratch / 'run/checkpoints/last.ckpt'}",
                f"data.path={image}",
                f"paths.output_dir={env.scratch / 'masks'}",
                "inference_args.roi_size=[512,512]",
                "inference_args.sw_batch_size=4",
                "inference_args.overlap=0.25",
                "inference_args.mode=gaussian",
                "predict.overlay=false",
                f"performance.num_threads={threads}",
            ],
            [env.python, env.here / "predict_peer.py", env.scratch / "weights.safetensors", image, env.scratch / "peer.tif", threads],
            {"wall": "wall", "user": "user", "system": "sys", "peak memory": "rss"},
            "PyTorch + MONAI",
        )
        for threads in sorted({1, env.threads})
    ]
