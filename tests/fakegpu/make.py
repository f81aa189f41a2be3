#!/usr/bin/env python3
"""make.py TORCH_LIB CUDA_INCLUDE OUT [COMPILER]: the stand-ins of CUDA's libraries, to be preloaded under libtorch_cuda.so.

OUT/libfakegpu.so holds everything; OUT/libcudart.so.13, OUT/libcublas.so.13 ... are empty libraries with the names that
LibTorch asks for, which bring it in. What LibTorch takes of those libraries and no source here defines is made: a call
that is counted, and does nothing. OUT/preload: what LD_PRELOAD has to be."""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = ["runtime.cpp", "driver.cpp", "libraries.cpp"]
USERS = ["libtorch_cuda.so", "libc10_cuda.so", "libtorch_cpu.so", "libtorch_nvshmem.so"]
OURS = re.compile(r"lib(cu\w+|nccl|nvshmem_host)\.so")
CALLS = re.compile(r"(cu|nccl|nvshmem|__cuda)\w+")
KERNELS = re.compile(r"(?i)gemm|gemv|dot|execute|matmul|forward|backward|gather|alltoall|reduce|send|recv|sampler|rnn|_on_stream")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main(torch, include, out, compiler="c++"):
    torch, out = pathlib.Path(torch), pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    users = [torch / name for name in USERS if (torch / name).exists()]
    needed, wanted = {"libcuda.so.1"}, set()
    for user in users:
        needed |= {name for name in re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", user)) if OURS.match(name)}
        for line in output("nm", "-D", "--undefined-only", user).splitlines():
            name = line.split()[-1].split("@")[0]
            if CALLS.fullmatch(name):
                wanted.add(name)
    compile_one = [compiler, "-std=c++20", "-O1", "-fPIC", "-w", f"-I{include}"]
    objects = []
    for source in SOURCES:
        objects.append(out / (source + ".o"))
        subprocess.run([*compile_one, "-c", HERE / source, "-o", objects[-1]], check=True)
        wanted -= {line.split()[-1] for line in output("nm", "--defined-only", objects[-1]).splitlines()}
    text = 'extern "C" {\nvoid fakegpu_launch(const char*, void*);\nvoid fakegpu_note(const char*);\n'
    for name in sorted(wanted):
        call = f'fakegpu_launch("library {name}", nullptr)' if KERNELS.search(name) else f'fakegpu_note("library {name}")'
        text += f"long {name}() {{ {call}; return 0; }}\n"
    (out / "rest.cpp").write_text(text + "}\n")
    subprocess.run([*compile_one, "-shared", *objects, out / "rest.cpp", "-o", out / "libfakegpu.so", "-ldl", "-lpthread"],
                   check=True)
    (out / "empty.cpp").write_text("")
    for name in sorted(needed):
        subprocess.run([compiler, "-shared", "-fPIC", out / "empty.cpp", "-o", out / name, f"-Wl,-soname,{name}",
                        "-Wl,--no-as-needed", f"-L{out}", "-lfakegpu", "-Wl,-rpath,$ORIGIN"], check=True)
    (out / "preload").write_text(":".join(str((out / name).resolve()) for name in sorted(needed)))


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    main(*sys.argv[1:])
