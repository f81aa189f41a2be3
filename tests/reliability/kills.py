"""Ends of all kinds: killed, interrupted, out of disk; and what goes on from there. See run.py."""
import json
import os
import shutil
import signal
import subprocess
import time

import ranks
from runs import (SIGNALS, Skipped, expect, expect_same, is_gone, run, run_folders, start, state, temporaries, value_of)


def wait_for_save(process, output, known, until):
    """Until a file in the folder of this process is half written; False when there was none in time."""
    folder = None
    while time.monotonic() < until and process.poll() is None:
        if folder is None:
            folders = run_folders(output)
            folder = folders[-1] / "checkpoints" if len(folders) > known else None
        elif folder.exists() and any(".tmp." in name for name in os.listdir(folder)):
            return True
    return False


def startup_s(programs, *more):
    begin = time.monotonic()
    done = run(programs.train(programs.folder / "timed", "trainer.max_steps=1", *more))
    expect(done.returncode == 0, done.err)
    shutil.rmtree(programs.folder / "timed")
    return time.monotonic() - begin


def killed(programs, full, count, random):
    wanted, kills, inside, chains, numbers, unreadable = count or (1000 if full else 12), 0, 0, 0, 0, 0
    epochs = "trainer.max_epochs=40" if wanted > 20 else "trainer.max_epochs=15"
    whole = programs.folder / "whole"
    done = run(programs.train(whole, epochs))
    expect(done.returncode == 0, done.err)
    first = startup_s(programs)
    umask = os.umask(0)
    os.umask(umask)
    mode = 0o666 & ~umask
    while kills < wanted:
        output = programs.folder / f"chain {chains}" / "run"
        while True:
            known = len(run_folders(output))
            newest = max((state(path)["step"] for folder in run_folders(output)
                          for path in folder.glob("checkpoints/*.ckpt")), default=0)
            before = temporaries(output.parent)
            with open(programs.folder / "stderr", "w+") as messages:
                process = start(programs.train(output, epochs, "checkpoint.autoresume=true"),
                                stdout=subprocess.DEVNULL, stderr=messages)
                moment = time.monotonic() + first * random.uniform(0.3, 2)
                if random.random() < 0.5:
                    wait_for_save(process, output, known, moment + 5)
                    time.sleep(random.choice([0, random.uniform(0, 0.002)]))
                else:
                    try:
                        process.wait(moment - time.monotonic())
                    except subprocess.TimeoutExpired:
                        pass
                if kills < wanted or newest == 0:
                    process.kill()
                code = process.wait()
                messages.seek(0)
                said = messages.read()
            expect(code in (0, -9), f"exit code {code}: {said}")
            has_begun = len(run_folders(output)) > known
            unreadable += said.count("skipped: ")
            if has_begun:
                lines = said.splitlines()
                place = next((number for number, line in enumerate(lines) if "; run folder " in line), len(lines))
                if newest > 0 and place + 1 < len(lines):  # else it was killed before it could tell
                    expect(f"step {newest}" in lines[place + 1], f"not from step {newest}: {said}")
                left = before & temporaries(output.parent)
                expect(not left, f"left behind: {left}")
            if code == 0:
                break
            kills += 1
            inside += bool(temporaries(output.parent))
            for folder in run_folders(output):
                for path in folder.glob("checkpoints/*.ckpt"):
                    expect(path.stat().st_mode & 0o777 == mode, f"{path}: mode {path.stat().st_mode & 0o777:o}")
        numbers = expect_same(run_folders(output), whole)
        shutil.rmtree(output.parent)
        chains += 1
    expect(unreadable == 0, f"{unreadable} checkpoints were skipped as damaged")
    return (f"{kills} kills, {inside} inside a save", f"0 unreadable, 0 left behind; {chains} finished runs, each with all of "
            f"{numbers} numbers and the last state bit-equal")


def gtest(programs, full, filter):
    """The counts of tests/reliability/save_test.cpp."""
    report = programs.folder / "report.json"
    done = run([programs.tests / "test_reliability", f"--gtest_filter={filter}", f"--gtest_output=json:{report}"],
               env=os.environ | ({"CYTRA_FULL": "1"} if full else {}))
    expect(done.returncode == 0, done.out[-2000:])
    tests = [test for suite in json.loads(report.read_text())["testsuites"] for test in suite["testsuite"]]
    if any(test["result"] == "SKIPPED" for test in tests):
        raise Skipped("can't mount a tmpfs")
    return {test["name"]: int(test["cases"]) for test in tests}


def failing_calls(programs, full, count, random):
    cases = gtest(programs, full, "Save.SurvivesAFailure*:Save.SurvivesTheEnd*")
    return f"{sum(cases.values())} faults", "0 unreadable, nothing left behind"


def power_cuts(programs, full, count, random):
    cases = gtest(programs, full, "Save.SurvivesAPowerCut")
    return f"{sum(cases.values())} states of {50 if full else 10} saves", "0 unreadable, none older than reported"


def full_disks(programs, full, count, random):
    cases = gtest(programs, full, "Save.SurvivesAFullDisk:Save.SurvivesALimit*")
    # The programs: a training that runs into the limit in its course.
    limited = "ulimit -f {} && exec \"$@\""
    stopped = run(["bash", "-c", limited.format(60), "-"] + programs.train(programs.folder / "small", "trainer.max_epochs=2",
                                                                         "logger=none"))
    expect(stopped.returncode == 4 and "File too large" in stopped.err, stopped.err)
    warned = run(["bash", "-c", limited.format(60), "-"] + programs.train(
        programs.folder / "warned", "trainer.max_epochs=2", "logger=none", "callbacks.model_checkpoint.on_save_error=warn"))
    expect(warned.returncode == 0 and "the training goes on without this checkpoint" in warned.err, warned.err)
    expect(value_of(warned.out, "steps") == "6", warned.out)
    return f"{sum(cases.values())} saves, 2 runs", "the checkpoint before loads in all; exit 4 or a warning"


def resumed(programs, full, count, random):
    stops, compared = count or (20 if full else 1), 0
    variants = [(dims, threads, precision) for dims in (2, 3) for threads in (1, 2)
                for precision in (("32", "16-mixed") if dims == 2 else ("32",))]  # a CPU takes minutes for fp16 in 3D
    for dims, threads, precision in variants if full else [(2, 1, "16-mixed"), (3, 2, "32")]:
        name = f"{dims}D {threads} {precision}"
        epochs = "trainer.max_epochs=" + ("8" if stops > 1 else "3")
        common = [epochs, f"performance.num_threads={threads}", f"trainer.precision={precision}",
                  "callbacks.model_checkpoint.monitor=null", "callbacks.model_checkpoint.save_top_k=-1",
                  "callbacks.model_checkpoint.filename='step_{step}'"]
        whole = programs.folder / f"whole {name}"
        done = run(programs.train(whole, *common, dims=dims))
        expect(done.returncode == 0, done.err)
        steps = sorted(int(path.stem[5:]) for path in (whole / "checkpoints").glob("step_*.ckpt"))
        steps = [step for step in steps if step < steps[-1]]
        for step in random.sample(steps, min(stops, len(steps))):
            rest = programs.folder / f"rest {name} {step}"
            done = run(programs.train(rest, *common, f"checkpoint.ckpt_path={whole}/checkpoints/step_{step}.ckpt", dims=dims))
            expect(done.returncode == 0, done.err)
            expect_same([whole, rest], whole)
            compared += 1
            shutil.rmtree(rest)
    return f"{compared} resumed runs", "every number, weight and byte of state equal"


def signalled(programs, full, count, random):
    wanted, sent, early, chains, slowest = count or (200 if full else 4), 0, 0, 0, 0.0
    settings = ["trainer.max_epochs=12", "trainer.val_check_interval=2"]  # validation: half of the batches
    data = programs.samples(valid=4)
    whole = programs.folder / "whole"
    expect(run(programs.train(whole, *settings, data=data)).returncode == 0, "the whole run")
    first = startup_s(programs)
    while sent < wanted:
        output = programs.folder / f"signalled {chains}" / "run"
        while True:
            known = len(run_folders(output))
            process = start(programs.train(output, *settings, "checkpoint.autoresume=true", data=data))
            number = random.choice(list(SIGNALS))
            try:
                process.wait(first * random.uniform(0.4, 1.6))
            except subprocess.TimeoutExpired:
                if sent < wanted or known == 0:
                    os.kill(process.pid, number)
            out, err = process.communicate(timeout=120)
            expect(is_gone(process), "a process stays")
            if process.returncode == -number:  # before the program watches for signals
                early += 1
                expect(len(run_folders(output)) == known, f"killed after its start: {err}")
            elif "interrupted before the first step" in err:
                early += 1
                expect(process.returncode == SIGNALS[number], f"{number}: exit code {process.returncode}: {err}")
                expect(len(run_folders(output)) == known, f"a folder without a step: {err}")
            elif process.returncode != 0:
                sent += 1
                expect(process.returncode == SIGNALS[number], f"{number}: exit code {process.returncode}: {err}")
                expect("go on with it:" in err and "checkpoint.ckpt_path=" in err, err)
                saved = state(run_folders(output)[-1] / "checkpoints/last.ckpt")["step"]
                expect(value_of(out, "steps") == str(saved), f"saved at step {saved}: {out}")
            else:
                break
        expect_same(run_folders(output), whole)
        shutil.rmtree(output.parent)
        chains += 1
    for number in (signal.SIGINT, signal.SIGTERM):  # in a validation that takes minutes
        data_slow = programs.samples(valid=40, size=512) if full else programs.samples(valid=20, size=256)
        process = start(programs.train(programs.folder / f"validating {number}", "trainer.num_sanity_val_steps=0",
                                       "trainer.max_epochs=100", "task.inference_args.overlap=0.9", data=data_slow))
        time.sleep(first * 3)
        begin = time.monotonic()
        os.kill(process.pid, number)
        process.communicate(timeout=60)
        slowest = max(slowest, time.monotonic() - begin)
        expect(process.returncode in (SIGNALS[number], -number), f"in a validation, {number}: {process.returncode}")
    predicted = predict_signalled(programs, whole, count or (60 if full else 2), random)
    several, outcome = ranks.signalled(programs, full, count, random)
    return (f"{sent} in train, {predicted} in predict; {several}", f"saved and told how to go on in all; {chains} finished runs "
            f"bit-equal; in a validation of minutes ended within {slowest:.1f} s; {early} before the first step left no folder; "
            f"ranks: {outcome}")


def predict_signalled(programs, trained, wanted, random):
    """What is there is whole, and it says how many are."""
    sent, tries = 0, 0
    data = programs.samples(test=12, size=256) / "test.csv"
    arguments = (trained / "checkpoints/last.ckpt", data)
    expect(run(programs.predict(*arguments, programs.folder / "all")).returncode == 0, "predict")
    while sent < wanted:
        output = programs.folder / f"predicted {tries}"
        tries += 1
        expect(tries < 20 * wanted + 20, "signals hardly ever meet a prediction at work")
        process = start(programs.predict(*arguments, output))
        number = random.choice(list(SIGNALS))
        done = random.randrange(12)
        while process.poll() is None and len(list(output.glob("*_overlay.png"))) < done:
            time.sleep(0.002)
        time.sleep(random.uniform(0, 0.05))
        os.kill(process.pid, number)
        out, err = process.communicate(timeout=120)
        if process.returncode in (0, -number):  # too late, or too early
            continue
        sent += 1
        expect(process.returncode == SIGNALS[number], f"{number}: {process.returncode}: {err}")
        images = len(list(output.glob("*.ome.tif")))
        expect(f"interrupted: {images} of 12 images predicted" in err, f"{images}: {err}")
        expect(not temporaries(output), "half written")
        for path in output.glob("*.ome.tif"):
            expect(path.read_bytes() == (programs.folder / "all" / path.name).read_bytes(), f"{path} differs")
    return sent
