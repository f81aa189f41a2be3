"""Starts Cytra's native programs, which lie in bin/ beside this file.

They find torch's libraries beside this package; where torch is elsewhere, the loader is told. Python's torch is never imported.
"""

import os
import sys

TORCH = "@TORCH@"  # the minor of torch that the programs were built with
HERE = os.path.dirname(os.path.abspath(__file__))


def fail(message):
    sys.stderr.write(f"error: {message}\n")
    sys.exit(2)


def torch_folder():
    beside = os.path.join(os.path.dirname(HERE), "torch")
    if os.path.isfile(os.path.join(beside, "lib", "libtorch_cpu.so")):
        return beside
    import importlib.util  # here, since the others need it seldom and it takes as long as all of this

    found = importlib.util.find_spec("torch")
    if found is None or not found.submodule_search_locations:
        fail(f"torch is not installed: {sys.executable} -m pip install 'torch=={TORCH}.*'")
    return found.submodule_search_locations[0]


def environment():
    torch = torch_folder()
    with open(os.path.join(torch, "version.py")) as file:
        version = file.read().partition("__version__ = '")[2].partition("'")[0]
    if version and not version.startswith(TORCH + "."):
        fail(f"torch {version} is installed, but this Cytra needs {TORCH}: install it by itself (pipx install cytra)")
    environment = dict(os.environ)
    if os.path.dirname(torch) != os.path.dirname(HERE):
        folders = [os.path.join(torch, "lib"), os.environ.get("LD_LIBRARY_PATH")]
        environment["LD_LIBRARY_PATH"] = ":".join(filter(None, folders))
    return environment


def main():
    os.execve(os.path.join(HERE, "bin", "cytra"), sys.argv, environment())
