"""Run folders that others write to as well, and names of any kind. See run.py."""
import os
import shutil
import signal
import subprocess
import time

from runs import Skipped, expect, expect_same, run, run_folders, start, state, temporaries, value_of

CONTAINER = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]  # processes have numbers of their own


def wait_until(condition, process, what):
    end = time.monotonic() + 60
    while not condition():
        expect(process.poll() is None and time.monotonic() < end, f"no {what}: {process.poll()}")
        time.sleep(0.01)


def containers(programs, full, count, random):
    """A run in a container; from others on the same folder it is to be taken up while it is alive, and after a kill."""
    if subprocess.run(CONTAINER + ["true"], capture_output=True).returncode != 0:
        raise Skipped("can't make a namespace (unshare --pid)")
    wanted, kills, refused, beside, chains = count or (40 if full else 2), 0, 0, 0, 0
    epochs, resume = "trainer.max_epochs=25", "checkpoint.autoresume=true"
    whole = programs.folder / "whole"
    expect(run(programs.train(whole, epochs)).returncode == 0, "the whole run")
    while kills < wanted:
        output = programs.folder / f"chain {chains}" / "run"
        mine, others = [], 0
        while True:
            before = temporaries(output.parent)
            known = set(run_folders(output))
            with open(programs.folder / "stderr", "w+") as messages:
                process = start(CONTAINER + programs.train(output, epochs, resume), stdout=subprocess.DEVNULL, stderr=messages)
                wait_until(lambda: set(run_folders(output)) - known, process, "folder")
                own, = set(run_folders(output)) - known
                mine.append(own)
                left = before & temporaries(output.parent)
                expect(not left, f"left behind: {left}")
                wait_until(lambda: (own / "checkpoints/last.ckpt").exists(), process, "checkpoint")
                for more in random.sample([[resume], [], [resume]], 1 if kills < wanted else 2):
                    second = run(CONTAINER + programs.train(output, "trainer.max_steps=1", "logger=none", *more))
                    if process.poll() is not None:  # it was over before the second began
                        break
                    if more:
                        refused += 1
                        expect(second.returncode == 2 and "this run is alive (process " in second.err, second.err)
                    else:
                        beside += 1
                        expect(second.returncode == 0, second.err)
                        folder = value_of(second.out, "output_dir")
                        expect(folder != str(own), f"both in {folder}")
                        shutil.rmtree(folder)
                time.sleep(random.uniform(0, 0.3))
                if kills < wanted:
                    process.kill()
                code = process.wait()
                messages.seek(0)
                said = messages.read()
            expect(code in (0, -signal.SIGKILL), f"exit code {code}: {said}")
            expect("skipped: " not in said, said)
            if code == 0:
                break
            kills += 1
        numbers = expect_same(mine, whole)
        shutil.rmtree(output.parent)
        chains += 1
    return (f"{kills} kills in {chains + kills} containers, {refused + beside} starts beside a living run",
            f"{refused} refused by name, {beside} in a folder of their own; {chains} finished runs with all of {numbers} numbers and "
            "the last state bit-equal")


def strangers(programs, full, count, random):
    """What others have put where a run writes: it stays, and what a link points to is not written to."""
    output, cache = programs.folder / "run", programs.folder / "cache"
    victim = programs.folder / "victim"
    victim.write_text("untouched")
    steps = ("data.num_workers=0", f"data.cache_dir={cache}", "checkpoint.autoresume=true")
    expect(run(programs.train(output, "trainer.max_steps=1", *steps)).returncode == 0, "the first run")
    planted = []
    next_pid = os.getpid()
    for folder in (cache, output, output / "checkpoints", output / "csv/version_0"):
        (folder / ".notes.tmp.2024-10-01").mkdir()
        (folder / ".notes.tmp.2024-10-01/x").write_text("kept")
        planted.append(folder / ".notes.tmp.2024-10-01/x")
        for name in (".a.tmp.1.0", ".b.tmp.999999999.0", ".c.tmp.0123-4567"):
            (folder / name).write_text("kept")
            planted.append(folder / name)
        for name in (".last.ckpt", ".report.json", ".metrics.csv"):
            for pid in range(next_pid, next_pid + (400 if full else 100)):
                link = folder / f"{name}.tmp.{pid}.0"
                link.symlink_to(victim)
                planted.append(link)
    done = run(programs.train(output, "trainer.max_steps=3", *steps))
    expect(done.returncode == 0 and value_of(done.out, "steps") == "3", done.err)
    gone = [path for path in planted if not path.exists()]
    expect(not gone, f"removed: {gone[:5]}")
    expect(victim.read_text() == "untouched", "a planted link was followed")
    return f"{len(planted)} files and links", "all are left, none is followed"


def names(programs, full, count, random):
    """Taken up from folders with names of all kinds."""
    checked, epochs = 0, "trainer.max_epochs=6"
    long_name = "L" * 130
    all_names = [f"{long_name}/{long_name}".encode(), b"k\xe4se", b"a\nb", b"it's \"x\"", "\u00e4\U0001f52c".encode(), b"a, b={c}#"]
    whole = programs.folder / "whole"
    keep = ("callbacks.model_checkpoint.save_top_k=3", "callbacks.model_checkpoint.monitor=null")
    expect(run(programs.train(whole, epochs, *keep)).returncode == 0, "the whole run")
    for name in all_names if full else all_names[:3]:
        output = programs.folder / os.fsdecode(name)
        quoted = os.fsencode(str(output)).replace(b"\\", b"\\\\").replace(b"'", b"\\'")
        command = [os.fsencode(str(word)) for word in programs.train("OUTPUT", epochs, *keep, "checkpoint.autoresume=true")]
        command[command.index(b"paths.output_dir=OUTPUT")] = b"paths.output_dir='" + quoted + b"'"
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        wait_until((output / "checkpoints/last.ckpt").exists, process, "checkpoint")
        process.kill()
        process.communicate()
        process = subprocess.run(command, capture_output=True)
        expect(process.returncode == 0, f"{name}: {os.fsdecode(process.stderr)}")
        folders = run_folders(output)
        expect(len(folders) == 2 and state(folders[1] / "checkpoints/last.ckpt")["step"] == state(
            whole / "checkpoints/last.ckpt")["step"], f"{name}: {folders}")
        expect_same(folders, whole)
        checked += 1
    return f"{checked} names", "taken up at the step that was saved; the finished runs are bit-equal"
