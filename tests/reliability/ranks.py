"""Trainings of several processes: one is killed, or some get a signal. See run.py."""
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from runs import SIGNALS, expect, expect_same, is_gone, run, run_folders, start, state, value_of

SETTINGS = ["trainer.max_epochs=12", "data.num_workers=1"]
MOST_S = 60  # until all processes have ended
WHOLE_S = 600  # ... of a run that nothing disturbs


def children(process):
    """Of the first process, those that train, by rank."""
    try:
        return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    except OSError:
        return []


def train(programs, size, output, *more):
    # 3 steps of 2 batches an epoch for any number of processes
    data = programs.samples(train=6 * size, valid=3)
    return programs.train(output, *SETTINGS, f"trainer.devices={size}", *more, data=data)


class Sizes:
    """The undisturbed run for every number of processes, and how long one takes until its first step."""

    def __init__(self, programs, sizes):
        self.programs, self.first = programs, {}
        for size in sizes:
            done = run(train(programs, size, self.whole(size)))
            expect(done.returncode == 0, done.err)
            begin = time.monotonic()
            done = run(train(programs, size, programs.folder / "timed", "trainer.max_steps=1"))
            expect(done.returncode == 0, done.err)
            self.first[size] = time.monotonic() - begin
            shutil.rmtree(programs.folder / "timed")

    def whole(self, size):
        return self.programs.folder / f"whole {size}"


def end(process, since, most=MOST_S):
    """Its messages and how long it and its children took to end."""
    try:
        out, err = process.communicate(timeout=most)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        expect(False, f"{most} s later it has not ended: {process.communicate()[1]}")
    while not is_gone(process):
        expect(time.monotonic() - since < most, f"processes stay: {err}")
        time.sleep(0.05)
    expect("terminate called" not in err and "frame #" not in err, err)
    return out, err, time.monotonic() - since


def disturb(programs, sizes, wanted, random, what, check):
    """Chains of runs that `what(process)` disturbs, each taken up by the next, until `wanted` times were counted. Returns the
    count, the finished runs and the longest end in seconds. `check(process, given, known, output, out, err)`: whether one
    counts, where `given` is what `what` returned."""
    runs, counted, chains, slowest = Sizes(programs, sizes), 0, 0, 0.0
    while counted < wanted:
        size = random.choice(sizes)
        output = programs.folder / f"chain {chains}" / "run"
        while True:
            known = len(run_folders(output))
            process = start(train(programs, size, output, "checkpoint.autoresume=true"))
            try:
                process.wait(runs.first[size] * random.uniform(0.3, 1.5))
            except subprocess.TimeoutExpired:
                pass
            given, since = None, time.monotonic()
            if process.poll() is None and (counted < wanted or known == 0):
                given = what(process)
            out, err, took = end(process, since, WHOLE_S if given is None else MOST_S)
            if process.returncode == 0:
                break
            expect(given is not None, f"not disturbed, but exit code {process.returncode}: {err}")
            slowest = max(slowest, took)
            counted += check(process, given, known, output, out, err)
        expect_same(run_folders(output), runs.whole(size))
        shutil.rmtree(output.parent)
        chains += 1
    return counted, chains, slowest


def killed(programs, full, count, random):
    kills = {"first": 0, "other": 0}

    def kill(process):
        pids = [process.pid] + children(process)
        rank = random.randrange(len(pids))
        os.kill(pids[rank], signal.SIGKILL)
        return rank

    def check(process, rank, known, output, out, err):
        if rank == 0:
            expect(process.returncode == -9, f"exit code {process.returncode}: {err}")
        else:
            expect(process.returncode == 4 and f"rank {rank} was ended by signal 9" in err,
                   f"exit code {process.returncode} after rank {rank} was killed: {err}")
        kills["other" if rank else "first"] += 1
        return True

    sizes = [2, 4] if full else [2]
    counted, chains, slowest = disturb(programs, sizes, count or (100 if full else 2), random, kill, check)
    return (f"{counted} kills of 1 of {' or '.join(map(str, sizes))}, {kills['first']} of them of rank 0",
            f"all ended within {slowest:.1f} s, exit 4 with the rank's name; {chains} finished runs bit-equal")


def signalled(programs, full, count, random):
    """Signals to one process or to all of them."""
    targets = {"one": 0, "all": 0}

    def send(process):
        number, pids = random.choice(list(SIGNALS)), [process.pid] + children(process)
        is_all = random.random() < 0.5
        if is_all:
            os.killpg(process.pid, number)
        else:
            os.kill(random.choice(pids), number)
        return number, "all" if is_all else "one"

    def check(process, given, known, output, out, err):
        number, target = given
        if process.returncode == -number:  # before the program watches for signals
            expect(len(run_folders(output)) == known, f"killed after its start: {err}")
            return False
        expect(process.returncode == SIGNALS[number], f"{number} to {target}: exit code {process.returncode}: {err}")
        if "interrupted before the first step" in err:
            expect(len(run_folders(output)) == known, f"a folder without a step: {err}")
            return False
        if "interrupted while waiting for the other processes" in err:
            return False  # nothing was trained yet
        expect("go on with it:" in err and "checkpoint.ckpt_path=" in err, err)
        saved = state(run_folders(output)[-1] / "checkpoints/last.ckpt")["step"]
        expect(value_of(out, "steps") == str(saved), f"saved at step {saved}: {out}")
        targets[target] += 1
        return True

    sizes = [2, 3] if full else [2]
    counted, chains, slowest = disturb(programs, sizes, count or (100 if full else 2), random, send, check)
    return (f"{counted} to {' or '.join(map(str, sizes))} ranks ({targets['one']} to one, {targets['all']} to all)",
            f"saved in all, ended within {slowest:.1f} s; {chains} finished runs bit-equal")
