#!/usr/bin/env python3
"""The reliability programme: breaks runs in every way that docs/reliability.md lists, and keeps its list.

  python3 tests/reliability/run.py --build build/release [--only R1,R4] [--full] [--write]

Short counts without --full: what ctest runs (label reliability). --write puts the results into docs/reliability.md.
Ends with 1 when a promise was not kept.
"""
import argparse
import datetime
import os
import platform
import random
import re
import shutil
import sys
import tempfile
import textwrap
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from runs import ROOT, Failed, Programs, Skipped  # noqa: E402
import folders  # noqa: E402
import kills  # noqa: E402
import predictions  # noqa: E402
import ranks  # noqa: E402
import strangers  # noqa: E402
import streams  # noqa: E402
import surroundings  # noqa: E402

CASES = {
    "R1": (kills.killed,
           "After `kill -9` at any moment the newest checkpoint loads and no half-written file is left. The resumed "
           "run ends with the same logged numbers, weights and state as a run that was never stopped",
           "a training that saves every step (2 workers, accumulation, EMA, warm-up) killed at random and inside "
           "saves, taken up by checkpoint.autoresume"),
    "R2": (kills.failing_calls,
           "Any system call may fail while a checkpoint is saved, or be the last one. Either the earlier or the new "
           "checkpoint loads. The message names the file, the reason and what to do",
           "EIO, ENOSPC, EINTR, a short write, and the end of the process at every call of a save"),
    "R3": (kills.power_cuts,
           "After a power cut at any moment, a checkpoint that was reported as saved loads, or a newer one does",
           "what is written while saving, replayed with unflushed data and names dropped"),
    "R4": (kills.full_disks,
           "On a full disk, or at a limit of file sizes, the earlier checkpoint stays. The program ends with exit "
           "code 4, or warns with callbacks.model_checkpoint.on_save_error=warn",
           "a tmpfs with random room; RLIMIT_FSIZE"),
    "R5": (kills.resumed,
           "A resumed run gives exactly the numbers of a run that was never stopped",
           "from the checkpoints of random steps, in 2D and 3D, with 1 and 2 threads, in float32 and 16-mixed: every "
           "logged number, weight and byte of state"),
    "R6": (kills.signalled,
           "On SIGTERM, SIGINT (Ctrl-C), SIGUSR1 and SIGHUP the program saves its state, prints the command that "
           "continues it, and ends with exit code 143, 130, 75 or 129. The continued run gives exactly the same "
           "numbers. A second Ctrl-C ends the program at once. No process is left behind",
           "random moments of train (half of its time is validation) and predict; two ranks, to one or both"),
    "R7": (ranks.killed,
           "When one process of a training with several is killed, the others end, say which one it was, and the "
           "training can continue from its checkpoint",
           "kill -9 of one of 2 or 4 Gloo ranks at any moment, taken up by checkpoint.autoresume"),
    "R20": (surroundings.numerics,
           "Values that are not numbers (NaN) never go unnoticed",
           "NaN, infinity, constants, empty masks, fp16 overflow and damaged weights in train and predict"),
    "R22": (surroundings.memory,
           "Without enough memory the program ends with exit code 5 and a hint. It never crashes",
           "RLIMIT_AS at 20 levels"),
    "R23": (surroundings.environment,
           "The programs work without a home folder, without a terminal, with LANG=C, in a read-only folder, without "
           "root, with spaces in paths, and when many start at once. Each run has its own folder",
           "train and predict in each"),
    "R24": (surroundings.event_files,
           "After `kill -9` all records of the TensorBoard event file can be read",
           "TensorBoard's own reader"),
    "R25": (folders.containers,
           "When two containers use one run folder, a run that is alive is neither started a second time nor "
           "disturbed, and a run that was killed continues with exactly the same numbers",
           "processes with a PID namespace each: killed, taken up, and started beside a living one"),
    "R26": (folders.strangers,
           "The programs neither remove nor write to files of others",
           "files, folders and links like our temporaries, in the folders of run, checkpoints, logs and cache"),
    "R27": (folders.names,
           "A run continues from a folder of any name",
           "260 letters, bytes that are no UTF-8, a newline, quotes, commas: killed and taken up by "
           "checkpoint.autoresume"),
    "R28": (streams.stopped,
           "When a process is stopped, or a listener never answers, the others wait for a limited time and name it. "
           "They still react to signals, and the training can continue from its checkpoint",
           "SIGSTOP to one of 2 ranks at any moment, with and without SIGTERM to the other; a silent listener at "
           "MASTER_PORT"),
    "R29": (streams.strangers,
           "Other machines can neither see the processes of a training on one machine nor end the training",
           "what each process listens at; c10d's own messages and garbage sent there"),
    "R30": (streams.readers,
           "The run stays the same when its messages are no longer read, or when a stream is closed or full",
           "train with stdin, stdout and stderr closed, into head, to a reader that has ended, to a full device"),
    "R31": (surroundings.growth,
           "Memory does not grow with the number of training steps, nor with the number of images that predict works "
           "on",
           "resident memory at half of a long run and at its end"),
    "R32": (predictions.killed,
           "After `kill -9` of predict at any moment, `--resume` continues. All results equal those of a run that was "
           "never stopped. No half-written or temporary file is left",
           "a folder of images, one so large that it is read by rows, killed at random"),
    "R33": (predictions.shared,
           "Several processes of predict give the results of one process",
           "2 ranks, images each, and rows of one image each"),
    "R34": (strangers.records,
           "A record of a stranger is only data: `--resume` removes and writes nothing but its own results",
           "predict --resume in a folder whose books name files elsewhere, or are links, FIFOs and folders"),
    "R35": (strangers.scripts,
           "A TorchScript model that works on files, or beyond its tensors, is refused before it runs",
           "each of tests/golden/scripts/hostile in predict, export_model and batch_segment"),
    "R36": (strangers.outputs,
           "An output that is a device, a FIFO or a link is written through or refused. It is never replaced",
           "export_model in four formats and predict.prometheus, as root"),
    "R37": (strangers.hangs,
           "A foreign model that never comes back ends five seconds after the signal, with the signal's exit code. No "
           "half-written file is left",
           "SIGTERM and SIGINT to predict, process_video and batch_segment within a window"),
    "R38": (strangers.secrets,
           "Nobody's environment variables are read for a stranger's checkpoint",
           "${oc.env:...} in five places of a checkpoint, in predict and export_model"),
    "R39": (strangers.playlists,
           "A video opens no other file",
           "playlists (HLS, DASH, concat, SDP) under six endings, in process_video and as images"),
    "R40": (strangers.bombs,
           "Small files that claim to be huge are refused, or done, within a minute",
           "OME-Zarr of 10^6 to 2^40 time points, sizes of 2^40 in a checkpoint, damaged TorchScript"),
}


def write_list(results, counts):
    """Replaces what docs/reliability.md says of each case that ran; a case that is not there yet comes last."""
    path = ROOT / "docs/reliability.md"
    text = path.read_text()
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    for name, (_, promise, how) in CASES.items():
        known = re.search(rf"^- \*\*{name}\*\* (.+\n)+?(?=- \*\*|\n)", text, re.M)
        if name not in results and known:
            continue
        outcome = f"{counts.get(name, '')}: {results[name]} ({datetime.date.today()}, {machine})" if name in results else "not run yet"
        line = f"- **{name}** {promise}. *How*: {how}. *Result*: {outcome}"
        item = textwrap.fill(line, 150, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False) + "\n"
        end = "\n<!-- end of the list -->"
        text = text.replace(known[0], item) if known else text.replace(end, item + end)
    path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build/release", type=Path)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--count", type=int, help="instead of the case's own (R1, R5, R6, R7, R24 to R30)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # runs side by side: threads that wait leave the core to others
    results, counts, is_bad = {}, {}, False
    for name in arguments.only.split(","):
        case = CASES[name][0]
        folder = Path(tempfile.mkdtemp(prefix=f"cytra {name} "))
        begin = time.monotonic()
        try:
            counts[name], results[name] = case(Programs(arguments.build, folder), arguments.full, arguments.count,
                                               random.Random(arguments.seed))
            shutil.rmtree(folder)
        except Skipped as why:
            counts.pop(name, None)
            print(f"{name}: skipped: {why}", flush=True)
            continue
        except Failed as why:
            is_bad = True
            results[name] = f"FAILED: {why}"
            print(f"{name}: its files are in {folder}", file=sys.stderr)
        print(f"{name}: {counts.get(name, '')}: {results[name]} ({time.monotonic() - begin:.0f} s)", flush=True)
    if arguments.write:
        write_list(results, counts)
    return 1 if is_bad else 0


if __name__ == "__main__":
    sys.exit(main())
