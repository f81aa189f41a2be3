#!/usr/bin/env python3
"""same_as_predict.py BUILD: `cytra-predict` writes what `predict` writes of the same exported models, byte for byte
(probabilities, whose last bit depends on the compiler, to a millionth), says the same of mistakes, and has nothing of torch.
Exit code 77 where cytra-predict is not built."""
import array
import pathlib
import re
import subprocess
import sys
import tempfile

CHECKPOINTS = pathlib.Path(__file__).parents[1] / "golden/checkpoints"


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)


def files_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and ".hydra" not in path.parts and path.suffix != ".log" and not path.name.startswith(".")
            and path.name != "predictions.jsonl"}


def are_same(files, others):
    return bool(files) and files.keys() == others.keys() and all(
        is_near(content, others[name]) if name.suffix == ".npy" else content == others[name]
        for name, content in files.items())


def is_near(npy, other):
    values = [array.array("f", content[10 + int.from_bytes(content[8:10], "little"):]) for content in (npy, other)]
    return len(npy) == len(other) and all(abs(a - b) <= 1e-6 for a, b in zip(*values))


def main():
    build = pathlib.Path(sys.argv[1])
    light, programs = build / "light/bin/cytra-predict", build / "bin"
    if not light.exists():
        print("cytra-predict is not built: cmake --build BUILD --target cytra-predict")
        return 77
    failures = []

    def expect(is_right, what):
        print("ok  " if is_right else "FAIL", what)
        if not is_right:
            failures.append(what)

    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        for dims, size in (("2", "160"), ("3", "48")):
            done = run(programs / "generate_samples", "--output", work / f"images{dims}", "--train", "0", "--valid", "0", "--test",
                       "2", "--size", size, "--depth", "12", "--spatial-dims", dims)
            assert done.returncode == 0, done.stderr
        cases = [("2d", "2", []), ("2d_64", "2", []), ("3d", "3", []), ("3d", "3", ["predict.format=nifti"]),
                 ("2d", "2", ["predict.measurements=true", "predict.contours=both"]),
                 ("2d", "2", ["predict.save=probability", "predict.overlay=false", "predict.format=npy"]),
                 ("2d", "2", ["predict.save=entropy"]), ("2d", "2", ["tta.mirror_axes=[0,1]", "predict.postprocess=[{_target_: FillHoles}]"])]
        for number, (name, dims, options) in enumerate(cases):
            model = work / f"{name}.onnx"
            if not model.exists():
                done = run(programs / "export_model", f"checkpoint.ckpt_path={CHECKPOINTS}/format1_{name[:2]}.ckpt", "format=onnx",
                           f"output={model}", *(["export.input_shape=[64,64]"] if name == "2d_64" else []))
                assert done.returncode == 0, done.stderr
            outputs = []
            for program in (programs / "predict", light):
                out = work / f"out{number}" / program.name
                done = run(program, f"checkpoint.ckpt_path={model}", f"data.path={work}/images{dims}/test.csv",
                           f"paths.output_dir={out}", *options)
                if done.returncode != 0:
                    print(done.stderr)
                outputs.append(files_of(out) if done.returncode == 0 else {})
            expect(are_same(*outputs), f"{name} {' '.join(options)}")
        mistakes = [["data.path=nowhere.tif", f"checkpoint.ckpt_path={work}/2d.onnx"],
                    [f"data.path={work}/images2/test.csv", "checkpoint.ckpt_path=nowhere.onnx"],
                    [f"data.path={work}/images2/test.csv", f"checkpoint.ckpt_path={work}/2d.onnx", "predict.threshold=2"],
                    [f"data.path={work}/images2/test.csv", f"checkpoint.ckpt_path={work}/2d.onnx", "predict.sav=mask"]]
        for number, mistake in enumerate(mistakes):
            said = [run(program, *mistake, f"paths.output_dir={work}/mistake{number}") for program in (programs / "predict", light)]
            expect(said[0].returncode == said[1].returncode == 2 and said[0].stderr == said[1].stderr, f"mistake: {mistake}")
            if said[0].stderr != said[1].stderr:
                print(said[0].stderr, said[1].stderr, sep="\n---\n")
        for option in ("predict.profiler=memory", "performance.quantization=int8_dynamic", "trainer.limit_predict_batches=1", "--describe=predict"):
            done = run(light, f"checkpoint.ckpt_path={work}/2d.onnx", f"data.path={work}/images2/test.csv", option)
            expect(done.returncode == 2 and f"{option.split('=')[0]}: `predict` of the whole package has it" in done.stderr, f"{option} is refused")
        done = run(light, f"checkpoint.ckpt_path={CHECKPOINTS}/format1_2d.ckpt", f"data.path={work}/images2/test.csv",
                   f"paths.output_dir={work}/network")
        expect(done.returncode == 2 and "expected an ONNX file" in done.stderr, "a checkpoint is refused")
    for library in sorted((build / "light/lib").glob("*.so")):
        needed = run("ldd", library).stdout
        expect(not re.search(r"lib(torch|c10)|/torch/", needed), f"{library.name} has nothing of torch")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
