#!/usr/bin/env python3
"""Attacks on the programs: files, nodes, settings and surroundings that are made to do harm, each with what has to happen.

python3 tests/reliability/attacks.py --build build/release               # about a thousand, 20 minutes on two cores
python3 tests/reliability/attacks.py --build build/release --only 2a,5   # some kinds

It prints a line for each attack that got through, and a table for docs/security.md. The attacks are in attack_kinds.py
and attack_programs.py.
What can't be tried on this machine (no root, no FFmpeg) is left out and not counted.
"""
import argparse
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from runs import ROOT, Failed, Programs, Skipped, hint, temporaries

IN_A_LINE = "done, or refused in a line"


def catches_signals(pid):
    """Its own way to end has begun: before, a signal ends it as any other program."""
    caught = re.search(r"^SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text(), re.M)
    return caught is not None and int(caught.group(1), 16) >> (signal.SIGTERM - 1) & 1


class Done:
    """What a program said, and what it took."""

    def __init__(self, code, out, err, is_late, usage):
        self.returncode, self.out, self.err, self.is_late = code, out, err, is_late
        self.seconds, self.megabytes = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


class Attacks:
    """Tries attacks and counts them. Each program gets the empty folder self.out for what it writes."""

    def __init__(self, programs, seed):
        self.programs, self.folder, self.bin, self.random = programs, programs.folder, programs.bin, random.Random(seed)
        self.out, self.kind, self.rows, self.ready = self.folder / "out", "", {}, {}
        self.env = os.environ | {"OMP_WAIT_POLICY": "passive", "XDG_CACHE_HOME": str(self.folder / "cache")}
        os.environ.update(self.env)  # what runs.py starts is to use the same cache
        self.is_root = os.geteuid() == 0

    def run(self, command, limit=120, **how):
        """A command in a process group of its own, ended after `limit` seconds; its memory and the time of its processors."""
        how = {"cwd": self.folder, "env": self.env, "stdin": subprocess.DEVNULL, "start_new_session": True} | how
        end_by, at = how.pop("signal", None), how.pop("after", 1.0)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            how = {"stdout": out, "stderr": err} | how
            process = subprocess.Popen([word if isinstance(word, bytes) else os.fsencode(str(word)) for word in command], **how)
            begin, is_late, pid, ready = time.monotonic(), False, 0, None
            try:
                while not pid:
                    pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                    if not pid and end_by and ready is None and catches_signals(process.pid):
                        ready = time.monotonic()
                    if not pid and end_by and ready and time.monotonic() - ready > at:
                        os.kill(process.pid, end_by)
                        end_by = None
                    if not pid and time.monotonic() - begin > limit and not is_late:
                        is_late = True
                        os.killpg(process.pid, signal.SIGKILL)
                    time.sleep(0.01)
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)  # what it started and left
                except ProcessLookupError:
                    pass
            process.returncode = os.waitstatus_to_exitcode(status)
            texts = []
            for stream in (out, err):
                stream.seek(0)
                texts.append(stream.read().decode(errors="surrogateescape"))
        return Done(process.returncode, *texts, is_late, usage)

    def unsound(self, done, codes, memory, seconds):
        """What is wrong with any program that ends so; nothing, if nothing is."""
        if done.is_late:
            return "no end"
        if done.returncode not in codes:
            return f"exit code {done.returncode}: {hint(done)}"
        for sign in ("error: internal", "terminate called", "frame #", "Segmentation fault"):
            if sign in done.err:
                return next(line for line in done.err.splitlines() if sign in line)
        if done.returncode and not (done.out + done.err).strip():
            return f"exit code {done.returncode} without a word"
        if re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", done.out + done.err):
            return "control characters on the terminal"
        if done.megabytes > memory:
            return f"{done.megabytes:.0f} MB"
        if done.seconds > seconds:
            return f"{done.seconds:.0f} s of the processor"
        if temporaries(self.out) and done.returncode >= 0:
            return f"left behind: {sorted(path.name for path in temporaries(self.out))[:3]}"
        return None

    def judge(self, severity, what, command, expected, problem):
        row = self.rows.setdefault(self.kind, [0, []])
        row[0] += 1
        if problem:
            text = " ".join(str(os.fsdecode(word)) for word in command).replace(str(self.folder), "A").replace(str(self.bin) + "/",
                                                                                                               "")
            line = f"- {self.kind} ({severity}) {what}. `{text[:300]}` expected: {expected}; observed: {problem}"
            line = "".join(c if c.isprintable() and not "\udc80" <= c <= "\udcff" else "?" for c in line)
            row[1].append(line)
            print(line, flush=True)

    def attack(self, severity, what, command, expected=IN_A_LINE, codes=(0, 2), check=None, memory=1500, seconds=30, keep=False,
               **how):
        """One attack: `command` ends well, and `check(done)` finds nothing wrong."""
        if not keep:
            self.clear(self.out)
        done = self.run(command, **how)
        problem = self.unsound(done, codes, memory, seconds)
        if problem is None and check is not None:
            problem = check(done)
        self.judge(severity, what, command, expected, problem)
        return done

    def reuse(self, case, full=True, count=None):
        """The tries of a row of docs/reliability.md; the first that fails ends them."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        row = self.rows.setdefault(self.kind, [0, []])
        try:
            tries, _ = case(Programs(self.bin.parent, folder), full, count, self.random)
            row[0] += sum(int(number) for number in re.findall(r"\d+(?= (?:records|runs|outputs|signals|files|levels|kills|names))",
                                                               tries))
        except Skipped as why:
            print(f"{case.__module__}.{case.__name__}: skipped: {why}", file=sys.stderr)
        except Failed as why:
            self.judge("high", f"{case.__module__}.{case.__name__}", [], "the row of docs/reliability.md", str(why))
        shutil.rmtree(folder, ignore_errors=True)

    def unit_tests(self, program, pattern):
        """Tests in C++ by their names, each a try."""
        done = self.run([self.programs.tests / program, f"--gtest_filter={pattern}"], limit=300, cwd=ROOT)
        results = re.findall(r"^\[ +(OK|FAILED) +\] (\w+\.\S+)(?: \(|, where)", done.out, re.M)
        for result, name in dict((name, (result, name)) for result, name in results).values():
            self.judge("high", name, [program], "passes", None if result == "OK" else "fails")
        if not results or done.returncode < 0:
            self.judge("high", pattern, [program], "the tests run", f"exit code {done.returncode}: {hint(done)}")

    def some(self, items, count):
        """That many of them, by chance: the same in each run."""
        items = list(items.items() if isinstance(items, dict) else items)
        return self.random.sample(items, min(count, len(items)))

    def clear(self, path):
        """A folder, file or node of ours is gone."""
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def fresh(self, name):
        """An empty folder in the scratch folder."""
        path = self.folder / name
        self.clear(path)
        path.mkdir(parents=True)
        return path


def table(attacks, kinds):
    lines = ["| kind | tried | held | through |", "|---|---|---|---|"]
    rows = [(title, attacks.rows.get(kind, [0, []])) for kind, (title, _) in kinds.items()]
    for title, (tried, through) in rows:
        lines.append(f"| {title} | {tried} | {tried - len(through)} | {len(through)} |")
    tried, through = sum(row[0] for _, row in rows), sum(len(row[1]) for _, row in rows)
    return "\n".join(lines + [f"| all | {tried} | {tried - through} | {through} |"])


def main():
    from attack_kinds import prepare
    from attack_programs import KINDS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build/release", type=Path)
    parser.add_argument("--only", default=",".join(KINDS), help="kinds, with commas between them")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    kinds = {kind: KINDS[kind] for kind in arguments.only.split(",")}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # nothing is left in the scratch folder's place
    for number in (signal.SIGINT, signal.SIGHUP):  # a shell in the background, or nohup, may have them ignored
        signal.signal(number, lambda *_: sys.exit(130))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory(prefix="cytra attacks ", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)  # some attacks are those of another user
        attacks = Attacks(Programs(arguments.build, folder), arguments.seed)
        prepare(attacks)
        for attacks.kind, (title, try_all) in kinds.items():
            begin = time.monotonic()
            attacks.rows[attacks.kind] = [0, []]
            try:
                try_all(attacks)
            except Exception:  # the other kinds are still to be tried
                attacks.judge("high", "an attack could not be made", [], "it is tried", traceback.format_exc())
            print(f"{title}: {attacks.rows[attacks.kind][0]} tried in {time.monotonic() - begin:.0f} s", file=sys.stderr,
                  flush=True)
        print("\n" + table(attacks, kinds))
        return 1 if any(through for _, through in attacks.rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
