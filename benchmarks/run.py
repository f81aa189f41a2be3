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


def records(name, results, env, repeats):
    """An object of each figure, as docs/benchmarks.json has them. A ratio above 1 means that Cytra needs less."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    circumstances = {
        "runs": repeats, "threads": env.threads, "date": str(datetime.date.today()), "commit": cytra_version(), "machine": machine(),
        "peers": peer_versions(env.python), "command": f"benchmarks/run.py {name}",
    }  # fmt: skip
    found = []
    for comparison, values in results:
        for label, (ours, peer) in values.items():
            source, median = comparison.figures[label], statistics.median(ours)
            infinity = float("inf")
            pairs = statistics.median(b / a if a else infinity for a, b in zip(ours, peer))
            record = {
                "benchmark": name, "measurement": f"{comparison.name}, {label}", "ours": spread(ours), "peer_name": comparison.peer_name,
                "peer": spread(peer), "unit": unit(source), "ratio": rounded(statistics.median(peer) / median) if median else None,
                "ratio_of_pairs": rounded(pairs) if pairs != infinity else None,
            }  # fmt: skip
            if source == "rss" and median <= own * 1.05:
                record["at_most"] = True  # no peak is reported below that of this process
            found.append(record | circumstances)
    return found


def rounded(value):
    return float(number(value)) if value < 100 else int(number(value))


def spread(values):
    """Least, median and most."""
    return [rounded(value) for value in (min(values), statistics.median(values), max(values))]


def table(found):
    """Markdown of records()."""
    lines, peer_name = [], None
    for record in found:
        if record["peer_name"] != peer_name:
            peer_name = record["peer_name"]
            lines += ["", f"| | Cytra: min / median / max | {peer_name}: min / median / max | ratio |", "|---|---|---|---|"]
        at_most, at_least = ("≤ ", "≥ ") if "at_most" in record else ("", "")
        ours, peer = (f"{' / '.join(map(str, record[side]))} {record['unit']}" for side in ("ours", "peer"))
        lines.append(f"| {record['measurement']} | {at_most}{ours} | {peer} | {at_least}{record['ratio']} |")
    return "\n".join(lines)


def machine():
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    ram = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {len(os.sched_getaffinity(0))} cores, {ram:.0f} GiB RAM, {platform.system()}"


@functools.cache  # before --write changes the file
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


def gpu_records(path):
    """What scripts/gpu_check.sh measured: an object for each piece of work, with a figure for each way."""
    try:
        report = json.loads(path.read_text())
        work = {}
        for step in report["steps"]:
            for row in step["rows"]:
                key = f"{step['name'].removesuffix(', peers')}: {row['what']}"
                record = work.setdefault(key, {"benchmark": "gpu", "measurement": key, "ours": {}, "peer": {}, "unit": row["unit"]})
                record["peer" if step["name"].endswith(", peers") else "ours"][row["how"]] = rounded(row["value"])
        for record in work.values():
            ours = record["ours"].get("Cytra") or min(record["ours"].values(), default=0)
            if not record["peer"]:
                del record["peer"]
            elif ours:
                record["ratio"] = rounded(min(record["peer"].values()) / ours)
            record |= {"date": report["date"], "machine": report["gpu"], "peers": report.get("peers", ""), "command": "scripts/gpu_check.sh"}
    except (OSError, ValueError, KeyError, TypeError) as error:
        fail(f"{path} is not a report of scripts/gpu_check.sh: {error!r}")
    return list(work.values())


def write(path, found):
    """Replaces the figures of the same benchmarks and machines."""
    own = {(record["benchmark"], record["machine"]) for record in found}
    kept = json.loads(path.read_text()) if path.exists() else []
    kept = [record for record in kept if (record["benchmark"], record.get("machine")) not in own]
    lines = ",\n".join(json.dumps(record, ensure_ascii=False) for record in kept + found)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"[\n{lines}\n]\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true", help="list the benchmarks")
    parser.add_argument("--repeats", type=int, default=7, metavar="N", help="timed runs of each side (default: 7)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="of both sides")
    parser.add_argument("--timeout", type=float, default=600, metavar="S", help="seconds one run may take")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release/bin", help="folder of Cytra's programs")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.json")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs/benchmarks.json", help="the file that --write changes")
    parser.add_argument("--from", dest="report", type=Path, metavar="JSON", help="with gpu: of scripts/gpu_check.sh")
    args = parser.parse_args()
    if args.report or args.names == ["gpu"]:
        if not args.report or args.names != ["gpu"]:
            parser.error("gpu and --from go together: gpu --from gpu.json, the file of scripts/gpu_check.sh")
        found = gpu_records(args.report)
        print(*(json.dumps(record, ensure_ascii=False) for record in found), sep="\n")
        if args.write:
            write(args.docs, found)
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
            print(f"{module.TITLE}\nload average before: {os.getloadavg()[0]:.1f}")
            results = [(c, measure(c, env, args.repeats, args.timeout)) for c in module.comparisons(env)]
            found = records(name, results, env, args.repeats)
            print(table(found), *(f"$ {shown(c, env)}" for r, _ in results for c in (r.ours, r.peer)), sep="\n", flush=True)
            if args.write:
                write(args.docs, found)


if __name__ == "__main__":
    main()
