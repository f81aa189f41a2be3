#!/usr/bin/env python3
"""programs.py RUN: the programs of tests/fakegpu/check.py on the GPU that is here, and each training on the CPU, too.

RUN PROGRAM [arguments...] starts a program: a bundle's `run`, or bin/ of a build. A program fails here that ends with an
error, or whose metrics on the GPU, in float32, differ from the CPU's by more than 2 % (of what is random there, dropout has
numbers of its own on each device: a network with it may differ by 5 %)."""
import concurrent.futures
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "fakegpu"))
import check  # noqa: E402

EXACT = " performance.enable_tf32=false performance.matmul_precision=highest"
TOLERANCE, TOLERANCE_OF_DROPOUT = 0.02, 0.05


def jobs():
    """name -> command. {model} is a checkpoint, {script} one that is exported."""
    commands = {name: command for name, (command, devices) in check.PROGRAMS.items() if devices == 1}
    for name, changes in check.STEPS.items():
        commands[f"step {name}"] = f"{check.TRAIN} trainer.max_steps=3 trainer.steps_per_epoch=3 {changes}"
    for name, changes in check.RECORDED.items():
        commands[f"step {name}"] = f"{check.TRAIN} trainer.max_steps=20 trainer.steps_per_epoch=20 model.compile_model=true {changes}"
    return commands


class Programs:
    def __init__(self, run, folder):
        run = pathlib.Path(run).resolve()
        self.start = (lambda program: [run / program]) if run.is_dir() else (lambda program: [run, program])
        self.folder = pathlib.Path(folder)

    def run(self, command, name):
        """Its metrics of the validation. Throws: RuntimeError."""
        program, *rest = command.format(model="trained/checkpoints/last.ckpt", script="script.pt").split()
        if program in ("train", "predict", "optimize", "batch_segment") and "paths.output_dir" not in command:
            rest.append("paths.output_dir=" + re.sub(r"\W+", "_", name))
        done = subprocess.run([*self.start(program), *rest], cwd=self.folder, env={**os.environ, "OMP_NUM_THREADS": "1"}, text=True,
                              capture_output=True, timeout=100)
        if done.returncode:
            raise RuntimeError(f"exit code {done.returncode}: {' '.join([program, *rest])}\n" + "\n".join(done.stderr.splitlines()[-5:]))
        return {key: float(value) for key, value in re.findall(r"^(val/\S+): (\S+)$", done.stdout, re.M)}

    def compare(self, name, command):
        if not command.startswith("train "):
            self.run(command, name)
            return
        gpu = self.run(command + EXACT, f"gpu {name}")
        cpu = self.run(command.replace("accelerator=gpu", "accelerator=cpu"), f"cpu {name}")
        tolerance = TOLERANCE_OF_DROPOUT if "model=vnet" in command else TOLERANCE
        for key, expected in cpu.items():
            found = gpu.get(key, math.inf)
            is_same = found == expected or (math.isnan(found) and math.isnan(expected))
            if not is_same and not abs(found - expected) <= tolerance * max(abs(expected), 0.05):
                raise RuntimeError(f"{key}: {found:.4g} on the GPU, {expected:.4g} on the CPU")


def main():
    failed, begin = [], time.monotonic()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() // 2)) as pool:
        programs = Programs(sys.argv[1], folder)
        check.prepare(programs.folder, lambda command: programs.run(command, "prepared"))
        running = {pool.submit(programs.compare, name, command): name for name, command in jobs().items()}
        for done in concurrent.futures.as_completed(running):
            if problem := done.exception():
                failed.append(running[done])
                print(f"FAILED {running[done]}\n    " + str(problem).replace("\n", "\n    "))
    print(f"{len(running)} programs, {time.monotonic() - begin:.0f} s; failed: {', '.join(failed) or 'none'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
