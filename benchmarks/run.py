#!/usr/bin/env python3
"""Measures Cytra against its peers: both do the same work, in turn, on the same machine.

    benchmarks/run.py --list
    benchmarks/run.py startup_help train_step --repeats 9 --write
    benchmarks/run.py all --repeats 3 --write
    benchmarks/run.py gpu --from gpu.json --write    (what scripts/gpu_check.sh measured on another machine)

A benchmark is a file benchmarks/NAME.py with TITLE, comparisons(env) -> [Comparison, ...] and, where it needs data,
prepare(env). The peers' environment (benchmarks/requirements.txt) is made at build/peers-venv on first use; set
CYTRA_PEERS_PYTHON to a python that has them to use that.
"""
import argparse
import dataclasses
import datetime
import functools
import hashlib
import importlib.util
import json
import os
import platform
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEERS = ["torch", "monai", "lightning", "hydra-core"]


@dataclasses.dataclass
class Env:
    """What a benchmark builds its commands from."""

    bin: Path  # Cytra's programs
    python: str  # a python with the peers
    threads: int  # of both sides
    scratch: Path  # removed at the end
    here: Path = HERE
    root: Path = ROOT


@dataclasses.dataclass
class Comparison:
    """One piece of work. `figures`: label -> "wall" (s), "cpu" (s), its parts
    "user" and "sys" (s), "rss" (MB), or "json:a.b" and a unit, read from the
    JSON object that both commands print; less is better."""

    name: str
    ours: list
    peer: list
    figures: dict
    peer_name: str = "peer"


def fail(message):
    sys.exit(f"run.py: {message}")


def run_once(command, env, timeout):
    """Runs a command to its end; returns its figures. CPU and peak RSS are the kernel's (wait4)."""
    variables = os.environ | {"OMP_NUM_THREADS": str(env.threads), "MKL_NUM_THREADS": str(env.threads)}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.perf_counter()
        process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=ROOT, env=variables
        )
        timer = threading.Timer(timeout, process.kill)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        text = out.read().decode(errors="replace")
        if process.returncode != 0:
            tail = (err.read().decode(errors="replace") + text)[-3000:]
            fail(f"{shlex.join(map(str, command))}\nended with {process.returncode} after {wall:.1f} s:\n{tail}")
    return {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "user": usage.ru_utime, "sys": usage.ru_stime,
            "rss": usage.ru_maxrss / 1024, "stdout": text}


def read_json(text):
    """All of stdout, or the last of its lines that is a JSON object."""
    for part in [text] + text.splitlines()[::-1]:
        try:
            value = json.loads(part)
            if isinstance(value, dict):
                return value
        except ValueError:
            pass
    fail(f"no JSON object on stdout:\n{text[-2000:]}")


def figure(source, result):
    if not source.startswith("json:"):
        return result[source]
    value = read_json(result["stdout"])
    for key in source[5:].split()[0].split("."):
        if not isinstance(value, dict) or key not in value:
            fail(f"no {source[5:].split()[0]} in {json.dumps(value)[:500]}")
        value = value[key]
    return float(value)


def unit(source):
    return {"wall": "s", "cpu": "s", "user": "s", "sys": "s", "rss": "MB"}.get(source) or (source.split() + [""])[1]


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def measure(comparison, env, repeats, timeout):
    """A B A B ...: figures of both sides by label, pair by pair. One run of each before, to fill the file cache."""
    values = {label: ([], []) for label in comparison.figures}
    sides = [comparison.ours, comparison.peer]
    for command in sides:
        run_once(command, env, timeout)
    for i in range(repeats):
        for side, command in enumerate(sides):
            result = run_once(command, env, timeout)
            for label, source in comparison.figures.items():
                values[label][side].append(figure(source, result))
        print(f"{comparison.name}: {i + 1}/{repeats}", end="\r", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return values


def table(results):
    """Markdown. A ratio above 1 means that Cytra needs less."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines, bounded, peer_name = [], False, None
    for comparison, values in results:
        if comparison.peer_name != peer_name:
            peer_name = comparison.peer_name
            lines += [""] * bool(lines) + [
                f"| | Cytra: min / median / max | {comparison.peer_name}: min / median / max | ratio of medians "
                "| median ratio of pairs |",
                "|---|---|---|---|---|",
            ]
        for label, (ours, peer) in values.items():
            source = comparison.figures[label]

            def cell(side):
                return " / ".join(map(number, (min(side), statistics.median(side), max(side)))) + f" {unit(source)}"

            infinity = float("inf")
            pairs = statistics.median(b / a if a else infinity for a, b in zip(ours, peer))
            medians = statistics.median(peer) / statistics.median(ours) if statistics.median(ours) else infinity
            at_most = source == "rss" and statistics.median(ours) <= own * 1.05
            bounded |= at_most
            ratios = " | ".join(f"{'≥ ' if at_most else ''}{number(r)}" for r in (medians, pairs))
            shown = f"{'≤ ' if at_most else ''}{cell(ours)}"
            lines.append(f"| {comparison.name}, {label} | {shown} | {cell(peer)} | {ratios} |")
    if bounded:
        lines += ["", f"≤: no peak is reported below that of the process that starts the program, {own:.0f} MB here."]
    return "\n".join(lines)


def machine():
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    ram = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {len(os.sched_getaffinity(0))} cores, {ram:.0f} GiB RAM, {platform.system()}"


@functools.cache  # before --write changes the page
def cytra_version():
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)

    head = git("rev-parse", "--short", "HEAD")
    if head.returncode != 0:
        return "uncommitted"
    return head.stdout.strip() + ("-dirty" if git("status", "--porcelain", "-uno").stdout.strip() else "")


def peer_versions(python):
    code = f"import importlib.metadata as m, sys; print(*(p + ' ' + m.version(p) for p in {PEERS}), sep=', ')"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"{python} does not have the peers (benchmarks/requirements.txt):\n{done.stderr[-500:]}")
    return done.stdout.strip()


def peer_python():
    if named := os.environ.get("CYTRA_PEERS_PYTHON"):
        return named
    venv, requirements = ROOT / "build/peers-venv", HERE / "requirements.txt"
    python, mark = venv / "bin/python", venv / "requirements.sha256"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if not mark.exists() or mark.read_text() != digest:
        print(f"making {venv.relative_to(ROOT)} (once)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", requirements], check=True)
        mark.write_text(digest)
    return str(python)


def shown(command, env):
    """A command as a reader would type it at the root of the checkout."""
    words = []
    for word in map(str, command):
        for path, name in ((env.python, "python"), (env.bin, "build/release/bin"), (env.scratch, "$SCRATCH"), (ROOT, ".")):
            word = word.replace(str(path), name)
        words.append(word)
    return " ".join(w if w.startswith("$SCRATCH") or "=$SCRATCH" in w else shlex.quote(w) for w in words)


def load(name):
    path = HERE / f"{name}.py"
    if name not in names():
        fail(f"no benchmark '{name}'; there are: {', '.join(names())}")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def names():
    return sorted(p.stem for p in HERE.glob("*.py") if "\ndef comparisons(" in p.read_text())


def section(name, module, results, env, repeats, load):
    commands = [f"{side}$ {shown(c, env)}" for r, _ in results for side, c in (("", r.ours), ("", r.peer))]
    return "\n".join(
        [
            f"## {name}",
            "",
            module.TITLE,
            "",
            table(results),
            "",
            f"{repeats} runs of each, in turn; {env.threads} threads; {datetime.date.today()}. {machine()}; "
            f"load average before: {load:.1f}. Cytra {cytra_version()}; {peer_versions(env.python)}. "
            "A ratio above 1: Cytra needs less.",
            "",
            "```",
            *commands,
            "```",
        ]
    )


def gpu_section(path):
    """What scripts/gpu_check.sh measured, one table per subject: a row per piece of work, a column per way."""
    try:
        report = json.loads(path.read_text())
        lines = [
            "## gpu",
            "",
            "DynUNet with 32, 64, 128 and 256 filters. Cytra: as it comes; beside it what it chooses from. Training is Cytra's trainer and "
            "lightning.Trainer with 2 workers, pinned memory, AdamW (fused; in mixed precision Lightning takes no fused one to clip), Dice and cross-entropy, "
            "gradients clipped; compiled: torch.compile for fixed shapes. 'Channels last' of the peers also lays out the images. Each figure is a "
            "median of calls, or the mean of steps, after a warm-up.",
            "",
            f"{report['gpu']} (name, driver, memory, compute capability); {report['date']}. {report.get('peers', '')}".rstrip(),
        ]
        peers = {step["name"].removesuffix(", peers"): step for step in report["steps"] if step["name"].endswith(", peers")}
        for step in report["steps"]:
            if step in peers.values():
                continue
            lines += ["", f"**{step['name']}**: {step['status']}, {step['seconds']} s"]
            step["rows"] += peers.get(step["name"], {"rows": []})["rows"]
            ways = list(dict.fromkeys(row["how"] for row in step["rows"]))
            table = {}
            for row in step["rows"]:
                table.setdefault(row["what"], {})[row["how"]] = f"{number(row['value'])} {row['unit']}"
            if table:
                lines += ["", "| | " + " | ".join(ways) + " |", "|---" * (len(ways) + 1) + "|"]
            for what, values in table.items():
                lines.append(f"| {what} | " + " | ".join(values.get(way, "") for way in ways) + " |")
    except (OSError, ValueError, KeyError, TypeError) as error:
        fail(f"{path} is not a report of scripts/gpu_check.sh: {error!r}")
    return "\n".join(lines + ["", "```", "scripts/gpu_check.sh", "```"])


def write(docs, name, text):
    """Replaces what is between the section's markers, or appends it with markers."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    page = docs.read_text() if docs.exists() else "# Benchmarks\n"
    if begin in page:
        if end not in page.split(begin, 1)[1]:
            fail(f"{docs}: {begin} without {end}")
        head, rest = page.split(begin, 1)
        page = f"{head}{begin}\n{text}\n{end}{rest.split(end, 1)[1]}"
    else:
        page = f"{page.rstrip()}\n\n{begin}\n{text}\n{end}\n"
    docs.parent.mkdir(parents=True, exist_ok=True)
    docs.write_text(page)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true", help="list the benchmarks")
    parser.add_argument("--repeats", type=int, default=7, metavar="N", help="timed runs of each side (default: 7)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="of both sides")
    parser.add_argument("--timeout", type=float, default=600, metavar="S", help="seconds one run may take")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release/bin", help="folder of Cytra's programs")
    parser.add_argument("--write", action="store_true", help="replace the section in docs/benchmarks.md")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs/benchmarks.md", help="the page that --write changes")
    parser.add_argument("--from", dest="report", type=Path, metavar="JSON", help="with gpu: of scripts/gpu_check.sh")
    args = parser.parse_args()
    if args.report or args.names == ["gpu"]:
        if not args.report or args.names != ["gpu"]:
            parser.error("gpu and --from go together: gpu --from gpu.json, the file of scripts/gpu_check.sh")
        text = gpu_section(args.report)
        print(text)
        if args.write:
            write(args.docs, "gpu", text)
        return
    sys.modules["run"] = sys.modules["__main__"]  # the benchmarks' `from run import Comparison`
    if args.list or not args.names:
        for name in names():
            print(f"{name}: {load(name).TITLE}")
        return
    if args.repeats < 1:
        parser.error("--repeats takes 1 or more")
    modules = {name: load(name) for name in (names() if args.names == ["all"] else args.names)}
    programs = args.build.resolve()
    if (programs / "bin").is_dir():
        programs /= "bin"
    if not (programs / "train").exists():
        fail(f"no programs in {programs}: build Cytra first, or name their folder with --build")
    with tempfile.TemporaryDirectory(prefix="cytra-bench-") as scratch:
        env = Env(programs, peer_python(), args.threads, Path(scratch))
        peer_versions(env.python)
        for name, module in modules.items():
            if hasattr(module, "prepare"):
                module.prepare(env)
            load_before = os.getloadavg()[0]
            results = [(c, measure(c, env, args.repeats, args.timeout)) for c in module.comparisons(env)]
            text = section(name, module, results, env, args.repeats, load_before)
            print(text, flush=True)
            if args.write:
                write(args.docs, name, text)


if __name__ == "__main__":
    main()
