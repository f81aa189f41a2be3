"""integrations_test.py BIN: predict takes the command lines that the scripts for Fiji and QuPath run; that of Fiji runs in ImageJ, where Debian's is."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(sys.argv[1])


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True)


with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch)
    assert run(BIN / "generate_samples", "--output", folder / "data", "--train", 1, "--valid", 1, "--test", 1, "--size", 64).returncode == 0
    done = run(BIN / "train", "experiment=im2im/segmentation", f"data.path={folder}/data", "patch_shape=[32,32]", "model.filters=[4,8]", "data.num_workers=0",
               "trainer.limit_train_batches=1", "trainer.max_epochs=1", "trainer.accelerator=cpu", f"paths.output_dir={folder}/run")
    assert done.returncode == 0, done.stderr
    known = {"checkpoint.ckpt_path": folder / "run/checkpoints/last.ckpt", "data.path": next((folder / "data/images").glob("test_*_raw*")),
             "trainer.accelerator": "cpu"}
    for script, start, ending in (("fiji/Cytra_Predict.ijm", "exec(program,", "*_rois.zip"), ("qupath/cytra_predict.groovy", "[program,", "*.geojson")):
        line = next(line for line in (ROOT / "integrations" / script).read_text().splitlines() if start in line)
        known["paths.output_dir"] = out = folder / pathlib.Path(script).stem
        words = [f"{key}={known.get(key, value)}" for key, value in re.findall(r'"([a-z_.]+)=([a-z_]*)"?', line)]
        assert len(words) == 6, words
        for flags in (["--check"], []):
            done = run(BIN / "predict", *words, *flags)
            assert done.returncode == 0, f"{script} {flags}: {words}\n{done.stderr}"
        assert list(out.glob(ending)), f"{script}: no {ending} in {sorted(path.name for path in out.iterdir())}"
        print("ok", script)
        if script.endswith(".ijm"):
            rois = len(zipfile.ZipFile(next(out.glob(ending))).namelist())
        misspelt = run(BIN / "predict", *(word.replace("contours", "contour") for word in words), "--check")
        assert misspelt.returncode == 2, "a key that does not exist is refused"

    imagej = pathlib.Path("/usr/share/java/ij.jar")
    if not imagej.exists() or not shutil.which("xvfb-run"):
        print("left out: ImageJ (apt-get install imagej xvfb xauth)")
        sys.exit("CYTRA_REQUIRE_READERS" in os.environ)
    # Its parameters, which Fiji asks for, are set here; two runs of one ImageJ do not meet in one folder.
    macro = [line for line in (ROOT / "integrations/fiji/Cytra_Predict.ijm").read_text().splitlines() if not line.startswith("#@")]
    once = [f'open("{known["data.path"]}");', *macro, f'File.append("" + roiManager("count") + " " + folder, "{folder}/told.txt");', 'roiManager("reset");']
    lines = [f'program = "{BIN.resolve()}/predict"; model = "{known["checkpoint.ckpt_path"]}"; device = "cpu";', *once, *once, 'run("Quit");']
    (folder / "test.ijm").write_text("\n".join(lines))
    done = run("xvfb-run", "-a", "java", f"-Djava.io.tmpdir={folder}", "-cp", imagej, "ij.ImageJ", "-macro", folder / "test.ijm")
    told = [line.split(" ", 1) for line in (folder / "told.txt").read_text().splitlines()]
    assert [int(count) for count, _ in told] == [rois, rois] and told[0][1] != told[1][1], f"{told}, expected {rois}\n{done.stdout}{done.stderr}"
    print(f"ok ImageJ: {rois} outlines, twice")
