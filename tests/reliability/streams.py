"""Who reads the messages goes away, and strangers knock. See run.py."""
import os
import random as chance
import re
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import ranks
from runs import expect, expect_same, is_gone, run, run_folders, start

STEPS = ("trainer.max_epochs=3",)


def shell(command, rest):
    """In a bash, whose own exit code is that of the program."""
    words = " ".join("'" + str(word).replace("'", "'\\''") + "'" for word in command)
    return start(["bash", "-c", f"{words} {rest}; exit ${{PIPESTATUS[0]}}"])


def readers(programs, full, count, random):
    """Standard streams that are closed at the start, or by their reader meanwhile."""
    whole = programs.folder / "whole"
    expect(run(programs.train(whole, *STEPS)).returncode == 0, "the run that nobody disturbs")
    endings = {"no stdout, no stderr": "1>&- 2>&-", "nothing at all": "0<&- 1>&- 2>&-", "stderr to head": "2> >(head -n 3 >&1)",
               "all to head": "2>&1 | head -n 2", "a reader that never reads": "2> >(exec true)", "a full device": "2>/dev/full"}
    checked = 0
    for _ in range(count or (5 if full else 1)):
        for number, (name, rest) in enumerate(endings.items()):
            output = programs.folder / f"run {checked}"
            process = shell(programs.train(output, *STEPS), rest)
            out, err = process.communicate(timeout=120)
            expect(process.returncode == 0, f"{name}: exit code {process.returncode}: {out} {err}")
            expect_same([output], whole)
            table = (output / "csv/version_0/metrics.csv").read_text()
            expect("info" not in table and all(re.match(r"^[\w/,.+-]*$", row) for row in table.splitlines()), f"{name}: {table}")
            log = (output / "train.log").read_text()
            expect("done in" in log, f"{name}: {log[-300:]}")
            checked += 1
    return f"{checked} runs", "all done, equal to the one that was read, the whole log in its file"


def listeners(pid):
    """Addresses that a process listens at: (address, port)."""
    sockets = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        try:
            sockets |= set(re.findall(r"socket:\[(\d+)\]", os.readlink(file)))
        except OSError:
            pass
    found = []
    for family in ("tcp", "tcp6"):
        for row in Path(f"/proc/{pid}/net/{family}").read_text().splitlines()[1:]:
            words = row.split()
            if words[3] == "0A" and words[9] in sockets:
                address, port = words[1].split(":")
                found.append((address, int(port, 16)))
    return found


def text(value):
    return struct.pack("<Q", len(value)) + value


def strangers(programs, full, count, random):
    """Of a training of two processes: what listens where; what strangers send there."""
    tries = count or (20 if full else 1)
    runs, sent = ranks.Sizes(programs, [2]), 0
    for attempt in range(tries):
        output = programs.folder / f"visited {attempt}"
        process = start(ranks.train(programs, 2, output))
        while process.poll() is None and not (output / "checkpoints/last.ckpt").exists():
            time.sleep(0.02)
        for pid in [process.pid] + ranks.children(process):
            try:
                found = listeners(pid)
            except OSError:  # ended
                continue
            for address, port in found:
                expect(address == "0100007F", f"listens at {address}:{port}, seen from outside")
                hello = b"\x00" + struct.pack("<I", 0x3C85F7CE)  # c10d's TCPStore: VALIDATE, then SET
                for letter in (hello + b"\x01" + text(b"/cytra/0/end") + text(b"2 a stranger's word"),
                               hello + b"\x01" + text(b"/cytra/0/signal") + text(b"15"),
                               bytes(chance.Random(attempt).randrange(256) for _ in range(300)), b"GET / HTTP/1.1\r\n\r\n"):
                    try:
                        with socket.create_connection(("127.0.0.1", port), timeout=5) as stranger:
                            stranger.sendall(letter)
                            sent += 1
                    except OSError:
                        pass
        out, err, _ = ranks.end(process, time.monotonic(), ranks.WHOLE_S)
        expect(process.returncode == 0, f"exit code {process.returncode}: {err}")
        expect_same([output], runs.whole(2))
    expect(sent > 0, "no stranger met a training at work")
    return f"{sent} letters to {tries} trainings", "all listen on the loopback interface alone; all ended well, bit-equal"


def stopped(programs, full, count, random):
    """SIGSTOP to one of two processes, and a listener that says nothing."""
    limit, slowest, ends, named = 5, 0.0, 0, 0
    runs = ranks.Sizes(programs, [2])
    wanted = count or (20 if full else 2)
    while ends < wanted:
        output = programs.folder / f"chain {ends}" / "run"
        process = start(ranks.train(programs, 2, output, "checkpoint.autoresume=true", f"trainer.process_timeout={limit}"))
        try:
            process.wait(runs.first[2] * random.uniform(0.5, 1.3))
        except subprocess.TimeoutExpired:
            pass
        pids = [process.pid] + ranks.children(process)
        if process.poll() is not None or len(pids) < 2:
            ranks.end(process, time.monotonic(), ranks.WHOLE_S)
            continue
        which = random.randrange(2)
        is_signalled = random.random() < 0.5
        begin = time.monotonic()
        os.kill(pids[which], signal.SIGSTOP)
        if is_signalled:
            os.kill(pids[1 - which], signal.SIGTERM)
        while ranks_alive(pids[1 - which]):
            expect(time.monotonic() - begin < 40, f"rank {1 - which} lives 40 s after rank {which} was stopped")
            time.sleep(0.05)
        slowest = max(slowest, time.monotonic() - begin)
        try:
            os.kill(pids[which], signal.SIGCONT)
        except ProcessLookupError:  # rank 1 goes with rank 0
            pass
        out, err, _ = ranks.end(process, time.monotonic())
        logs = err + "".join(path.read_text() for path in output.parent.rglob("train*.log"))
        if which == 1:
            expect(process.returncode in ((143,) if is_signalled else (4,)), f"exit code {process.returncode}: {err}")
        named += f"rank {which}" in logs and "gave no sign of life" in logs
        ends += 1
        for _ in range(3):
            again = run(ranks.train(programs, 2, output, "checkpoint.autoresume=true"))
            if again.returncode == 0:
                break
        expect_same(run_folders(output), runs.whole(2))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begin = time.monotonic()
        environment = os.environ | {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                                    "MASTER_PORT": str(silent.getsockname()[1])}
        done = run(ranks.train(programs, 2, programs.folder / "alone", "trainer.process_timeout=2"), env=environment)
        waited = time.monotonic() - begin
        expect(done.returncode == 4 and "does not answer" in done.err, f"exit code {done.returncode}: {done.err}")
        expect(waited < 30, f"{waited:.0f} s for a timeout of 2 s")
    return (f"{ends} of 1 of 2, half of them with SIGTERM to the other; 1 silent listener",
            f"process_timeout=5: the other ended within {slowest:.1f} s, {named} named the one; all finished bit-equal; "
            f"the silent listener: {waited:.1f} s with a timeout of 2 s")


def ranks_alive(pid):
    """Neither gone nor waiting for its parent to notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False
