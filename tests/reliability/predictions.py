"""Predictions that are killed, go on, and share their work. See run.py."""
import os
import shutil
import time

from runs import expect, run, start
from surroundings import write_tiff


def results(folder):
    """What a user gets: every file but the log and the books."""
    files = {}
    for parent, _, names in os.walk(folder):
        if os.path.basename(parent) == ".hydra":
            continue
        for name in names:
            if not name.startswith((".lock", ".written", "predict", "config")) or name.endswith(".tif"):
                path = os.path.join(parent, name)
                files[os.path.relpath(path, folder)] = open(path, "rb").read()
    return files


def expect_same_results(folder, whole, what):
    found = results(folder)
    left = sorted(name for name in found if name not in whole)
    missing = sorted(name for name in whole if name not in found)
    other = sorted(name for name in whole if name in found and found[name] != whole[name])
    expect(not (left or missing or other), f"{what}: left over {left[:5]}, missing {missing[:5]}, other {other[:5]}")


def prepared(programs, full, random):
    """A model, and a folder of images; the last one so large that it is read by rows."""
    trained = programs.folder / "trained"
    done = run(programs.train(trained, "trainer.max_steps=3"))
    expect(done.returncode == 0, done.err)
    folder = programs.folder / "images"
    folder.mkdir()
    for i in range(30 if full else 12):
        height, width = random.randint(40, 300), random.randint(40, 300)
        write_tiff(folder / f"{i:02}.tif", [float((x * x // 3 + i) % 53) for x in range(height * width)], width)
    if full:
        height, width = 9000, 6100
        line = bytes(x * x // 97 % 251 for x in range(width + 256))
        write_tiff(folder / "zz_large.tif", b"".join(line[y % 256:][:width] for y in range(height)), width, "B")
    return trained / "checkpoints/last.ckpt", folder


OPTIONS = ["inference_args.roi_size=[256,256]", "inference_args.sw_batch_size=4"]


def killed(programs, full, count, random):
    wanted, kills, chain = count or (20 if full else 5), 0, 0
    checkpoint, folder = prepared(programs, full, random)
    begin = time.monotonic()
    done = run(programs.predict(checkpoint, folder, programs.folder / "whole", *OPTIONS))
    took = time.monotonic() - begin
    expect(done.returncode == 0, done.err)
    whole = results(programs.folder / "whole")
    within = 0  # kills that a large image survived in its journal
    while kills < wanted:
        output = programs.folder / f"chain {chain}"
        code = None
        while code != 0:
            process = start(programs.predict(checkpoint, folder, output, "--resume", *OPTIONS))
            moment = time.monotonic() + random.uniform(0.2, max(0.4, took))
            while process.poll() is None and (time.monotonic() < moment or kills >= wanted):
                time.sleep(0.005)
            if process.poll() is None:
                process.kill()
                kills += 1
            process.communicate()
            code = process.returncode
            expect(code in (0, -9), f"exit code {code}")
            within += any(name.endswith(".rows") for name in os.listdir(output)) if output.exists() else 0
        expect_same_results(output, whole, "after kills")
        shutil.rmtree(output)
        chain += 1
    again = run(programs.predict(checkpoint, folder, programs.folder / "whole", "--resume", *OPTIONS))
    expect(again.returncode == 0 and f"{len(list(folder.iterdir()))} of them before" in again.err, again.err)
    expect_same_results(programs.folder / "whole", whole, "when all was done")
    return f"{kills} kills, {chain} folders", f"every result is that of the undisturbed run; {within} kills within the large image"


def shared(programs, full, count, random):
    checkpoint, folder = prepared(programs, full, random)
    whole = programs.folder / "whole"
    done = run(programs.predict(checkpoint, folder, whole, *OPTIONS))
    expect(done.returncode == 0, done.err)
    ranks = programs.folder / "ranks"
    done = run(programs.predict(checkpoint, folder, ranks, "trainer.devices=2", *OPTIONS))
    expect(done.returncode == 0, done.err)
    expect(done.out.count("prediction: ") == len(list(folder.iterdir())), done.out)
    expect_same_results(ranks, results(whole), "two processes, an image each")
    for image in ("zz_large.tif", "03.tif") if full else ("03.tif",):
        one, two = programs.folder / f"one {image}", programs.folder / f"two {image}"
        for output, devices in ((one, 1), (two, 2)):
            done = run(programs.predict(checkpoint, folder / image, output, f"trainer.devices={devices}", *OPTIONS))
            expect(done.returncode == 0, done.err)
        expect_same_results(two, results(one), "two processes, half an image each")
    return "2 ranks", "results are those of one process, by images and by rows of one image"
