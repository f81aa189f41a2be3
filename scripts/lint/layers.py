#!/usr/bin/env python3
"""Checks who includes whom in src/, where third-party headers live, how long files and functions are, what sources are named, and
how doc comments begin.

layers.py [ROOT]     prints `file:line: message` for every finding; exit 1 when there is one
layers.py --self-test
"""
import pathlib
import re
import sys
import tempfile

from declarations import declared, defined

LAYERS = {
    "base": 0, "config": 1, "cli": 2, "io": 2, "device": 2, "ops": 3, "nn": 4, "metrics": 4, "perf": 4, "export": 4,
    "report": 4, "data": 5, "samples": 5, "training": 6, "inference": 6, "tasks": 7, "pipelines": 8, "app": 9,
}
# (a header, where it may be included, that place in words)
HOMES = [
    (r"yaml-cpp/", r"src/config/text/[^/]+\.cpp$", "src/config/text/*.cpp"),
    (r"(tiffio|png|jpeglib|jerror|openjpeg|webp/decode|zlib|isa-l/\w+|blosc|zstd|lz4)\.h$", r"src/io/.+$", "src/io/"),
    (r"dcmtk/", r"src/io/dicom/", "src/io/dicom/"),
    (r"lib(av\w+|swscale)/", r"src/io/ffmpeg/", "src/io/ffmpeg/"),
    (r"(hdf5|H5\w*)\.h$", r"src/io/hdf5/", "src/io/hdf5/"),
    (r"boost/", r"src/app/serve/http/http_server\.cpp$", "src/app/serve/http/http_server.cpp"),
    (r"openvino/", r"src/inference/openvino/", "src/inference/openvino/"),
    (r"CLI/", r"(src/cli|tools)/[^/]+\.cpp$", "src/cli/*.cpp and tools/*.cpp"),
    (r"(cuda|cudnn|cublas|cufft|nvtx|nvToolsExt|nccl|cub/|thrust/|cooperative_groups|(c10|ATen|torch/csrc)/cuda/"
     r"|ATen/cudnn/)", r"src/[^/]+/cuda/", "src/*/cuda/"),
    (r"torch/torch\.h$", r".*\.(cpp|cu)$", ".cpp files: name the headers you need"),
]
LONGEST_FUNCTION = 80
LIMITS = {".h": 150, ".cuh": 150, ".cpp": 400, ".cu": 400}
INCLUDE = re.compile(r'\s*#\s*include\s*(<[^>]+>|"[^"]+")')
COMMENT = re.compile(r"\s*///")
NO_SUBJECT = re.compile(r"\s*///\s*(Of|Those|The same|Likewise|That|As|Also|Its|Their|And|But|Such|Who|So)\b")
# What stands behind code names its subject: "// of the files" makes a reader put one in front. As many are left; they may only become fewer.
FRAGMENT = re.compile(r"\s*[^/\s].*// (of|by) ")
FRAGMENTS = {
    "app": 65, "base": 2, "cli": 11, "config": 16, "data": 47, "device": 4, "inference": 41, "io": 101, "metrics": 6, "nn": 52,
    "ops": 57, "perf": 18, "pipelines": 38, "report": 2, "samples": 6, "tasks": 14, "training": 46,
}
PART_OF = re.compile(r"// Part of (\S+\.h): \S")
# Headers that sources of any name implement, each with the reason.
ANY_SOURCE = {
    "io/pixels/format.h": "what the formats share; each implements its share",
    "io/image.h": "whole images in one call; each format has its own in its writer's file",
    "io/video_stream.h": "io/module.cpp loads FFmpeg's library for it",
}

# An address as a key finds what was at it before, once it is freed; a tensor, or a shared pointer, is held by being the key.
ADDRESS_KEY = re.compile(r"(map|set)<(std::pair<)?(const )?(void|unsigned char|char|float|double|uint8_t|(\w+::)*(TensorImpl|StorageImpl)) ?\*"
                         r"|\[\{?[\w.>()-]*data_ptr(<\w+>)?\(\)")
MAY_HAVE_ADDRESS_KEYS = {
    "src/io/weights/exported_program.cpp": "the tensors of one file that is open meanwhile",
    "src/nn/fold.cpp": "it holds the tensors beside them",
    "src/nn/summary.cpp": "blocks of memory, which it forgets when they are freed",
    "src/perf/transfers.cpp": "code, which stays where it is",
    "src/training/callbacks/memory_profiler.cpp": "blocks of memory, which it forgets when they are freed",
}


def layer_message(folder, header):
    """What is wrong with a file of src/<folder> that includes "header"; None when nothing is."""
    other, slash, _ = header.partition("/")
    if not slash or other == folder:
        return None
    if other not in LAYERS:
        return f'"{header}" starts with no folder of src/'
    if LAYERS[other] < LAYERS[folder]:
        return None
    relation = "its equal" if LAYERS[other] == LAYERS[folder] else "above it"
    return f"{folder} ({LAYERS[folder]}) must not include {other} ({LAYERS[other]}), {relation}"


def read_allowed(path):
    """allow.txt: `path lines reason` per file, or `path:function lines reason`, that may be longer, up to that many lines."""
    allowed, findings = {}, []
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split(None, 2)
        if len(words) < 3 or not words[1].isdigit():
            findings.append(f"{path}:{number}: expected `path lines reason`")
        else:
            allowed[words[0]] = (int(words[1]), number)
    return allowed, findings


def name_findings(root):
    """A source implements the header of its own name, or the one that its first line says it is a part of."""
    headers = {path.relative_to(root / "src").as_posix(): path for path in (root / "src").rglob("*.h")}
    homes = {}  # name: the headers that declare it
    for header, path in headers.items():
        for name in declared(path.read_text()):
            homes.setdefault(name, set()).add(header)
    for path in sorted((root / "src").rglob("*.cpp")):
        source = path.relative_to(root / "src").as_posix()
        if "/cuda/" in source:
            continue
        text = path.read_text()
        own, part = source[:-len("cpp")] + "h", PART_OF.match(text)
        implemented = {}  # header: the first (line, name) of it
        for line, name, wholes in defined(text):
            declaring = next((homes[whole] for whole in wholes if whole in homes), set())
            for header in declaring if own not in declaring else (own,):
                if header.split("/")[0] == source.split("/")[0]:  # another layer declares it again to include less
                    implemented.setdefault(header, (line, name))
        if part and part[1] not in headers:
            yield f"src/{source}:1: no header src/{part[1]}"
        elif part and own in headers:
            yield f'src/{source}:1: part of "{part[1]}", but it has a header of its own name'
        elif part and part[1] not in implemented:
            yield f'src/{source}:1: implements nothing of "{part[1]}"'
        for header, (line, name) in implemented.items():
            if header not in (own, part and part[1]) and header not in ANY_SOURCE:
                yield (f'src/{source}:{line}: "{header}" declares {name}(): give both one name, or begin with '
                       f"`// Part of {header}: what is in here.`")


NO_FUNCTION = re.compile(r" *(namespace|class|struct|enum|union|extern|template <.*> (class|struct)|\}|if |for |while |switch |do |else|try|\[)|.*=")


def function_findings(name, lines, allowed, used):
    """A function has at most 80 lines, from its first to the brace that ends it."""
    for end, line in enumerate(lines):
        if not re.fullmatch(r" {0,4}\}", line):
            continue
        deeper, first = line[:-1] + " ", end - 1
        while first > 0 and (not lines[first].strip() or lines[first][0] == "#" or lines[first].startswith(deeper)):
            first -= 1
        count, head = end - first + 1, re.search(r"([\w:~]+)\(", lines[first])
        if count <= LONGEST_FUNCTION or not head or NO_FUNCTION.match(lines[first]):
            continue
        key = f"{name}:{head[1]}"
        used.add(key)
        if count > allowed.get(key, (LONGEST_FUNCTION, 0))[0]:
            yield f"{name}:{first + 1}: {head[1]}() has {count} lines, at most {allowed.get(key, (LONGEST_FUNCTION, 0))[0]} are allowed"


def circle_findings(root):
    """Folders of a layer never include each other in a circle; a folder and one below it may, and cuda/ is with what it computes."""
    includes = {}  # (folder, folder that it includes): where
    for path in sorted(p for p in (root / "src").rglob("*") if p.suffix in LIMITS):
        source = path.relative_to(root / "src").parent.as_posix()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            folder = match[1][1:-1].rpartition("/")[0] if match else ""
            is_sibling = not (source + "/").startswith(folder + "/") and not folder.startswith(source + "/")
            if is_sibling and "/" in folder and folder.split("/")[0] == source.split("/")[0] and "/cuda" not in folder + source:
                includes.setdefault((source, folder), f"{path.relative_to(root).as_posix()}:{number}")
    before = {}
    while before != includes:  # what includes nothing, or is included by none, is in no circle
        before = includes
        includes = {(a, b): at for (a, b), at in before.items() if any(a == y for _, y in before) and any(b == x for x, _ in before)}
    for (source, folder), at in sorted(includes.items()):
        yield f"{at}: {source} and {folder} are in a circle: of two folders of a layer one is above the other"


def fragment_findings(root):
    for folder in sorted(path for path in (root / "src").iterdir() if path.is_dir()):
        places = [f"{path.relative_to(root).as_posix()}:{number}" for path in sorted(folder.rglob("*")) if path.suffix in LIMITS
                  for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1) if FRAGMENT.match(line)]
        most = FRAGMENTS.get(folder.name, 0)
        if len(places) > most:
            yield (f"{places[-1]}: src/{folder.name} has {len(places)} comments that begin with \"of\" or \"by\" behind code, {most} are "
                   "allowed: name what it is in yours")


def check(root, allow_path):
    allowed, findings = read_allowed(allow_path)
    used = set()  # exceptions of functions
    list_path = root / "cmake/installed_headers.txt"
    installed = list_path.read_text().split()
    findings += [f"{list_path.name}:{number}: no header src/{name}" for number, name in enumerate(installed, 1)
                 if not (root / "src" / name).is_file()]
    for path in sorted(p for top in ("src", "tools") for p in (root / top).rglob("*") if p.suffix in LIMITS):
        name = path.relative_to(root).as_posix()
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        limit = LIMITS[path.suffix]
        if len(lines) > allowed.get(name, (limit, 0))[0]:
            findings.append(f"{name}:{len(lines)}: {len(lines)} lines; {allowed.get(name, (limit, 0))[0]} are allowed: "
                            f"split it, or name it with a reason in {allow_path.name}")
        elif path.suffix == ".cpp" and len(lines) > limit and not lines[0].startswith("// "):
            findings.append(f"{name}:1: {len(lines)} lines: the first one says in a comment which idea they have")
        elif len(lines) <= limit and name in allowed:
            findings.append(f"{allow_path.name}:{allowed[name][1]}: {name} no longer needs its exception")
        findings += function_findings(name, lines, allowed, used)
        findings += [f"{name}:{number}: a comment begins with what it describes, or a verb"
                     for number, line in enumerate(lines, 1)
                     if NO_SUBJECT.match(line) and not (number > 1 and COMMENT.match(lines[number - 2]))]
        parts = name.split("/")
        folder = parts[1] if parts[0] == "src" and len(parts) > 2 else None
        if parts[0] == "src" and folder not in LAYERS:
            findings.append(f"{name}:1: src/{parts[1]} is in no layer")
            continue
        for number, line in enumerate(lines, 1):
            if ADDRESS_KEY.search(line) and name not in MAY_HAVE_ADDRESS_KEYS:
                findings.append(f"{name}:{number}: an address is a key: hold what lies there, and make that the key")
            if line.startswith("TORCH_LIBRARY"):
                findings.append(f"{name}:{number}: an operation of torch would change for the whole process, whoever links us")
            match = INCLUDE.match(line)
            if not match:
                continue
            header = match[1][1:-1]
            for pattern, home, words in HOMES:
                if re.match(pattern, header) and not re.match(home, name):
                    findings.append(f"{name}:{number}: <{header}> belongs in {words}")
            if not folder or match[1][0] != '"':
                continue
            message = layer_message(folder, header)
            if message:
                findings.append(f"{name}:{number}: {message}")
            elif name[4:] in installed and header not in installed:
                findings.append(f'{name}:{number}: a header that is installed includes "{header}", which is not in '
                                f"cmake/{list_path.name}")
    findings += name_findings(root)
    findings += circle_findings(root)
    findings += fragment_findings(root)
    findings += [f"{allow_path.name}:{number}: no file {name}"
                 for name, (_, number) in allowed.items() if ":" not in name and not (root / name).exists()]
    findings += [f"{allow_path.name}:{number}: {name}() no longer needs its exception"
                 for name, (_, number) in allowed.items() if ":" in name and name not in used]
    return findings


def in_space(text, name="cytra"):
    """C++ in a namespace."""
    return f"namespace {name}{' ' if name else ''}{{\n\n{text}\n}}  // namespace {name}\n"


def self_test():
    """Every rule finds its breach, and nothing else is found."""
    files = {  # text, the finding's words or ""
        "src/nn/a.cpp": ('#include "nn/a.h"\n#include "base/x.h"\n#include "ops/y.h"\n#include <vector>\n', ""),
        "src/nn/up.cpp": ('#include "training/task.h"\n', "above it"),
        "src/nn/equal.cpp": ('#  include "metrics/dice.h"\n', "its equal"),
        "src/nn/lost.h": ('#include "layers/conv.h"\n', "no folder of src/"),
        "src/nn/all.h": ("#include <torch/torch.h>\n", "name the headers"),
        "src/nn/yaml.cpp": ("#include <yaml-cpp/yaml.h>\n", "src/config/text/*.cpp"),
        "src/config/text/yaml.h": ("#include <yaml-cpp/yaml.h>\n", "src/config/text/*.cpp"),
        "src/config/text/yaml.cpp": ("#include <yaml-cpp/yaml.h>\n", ""),
        "src/data/png.cpp": ("#include <png.h>\n", "src/io/"),
        "src/io/tiff.cpp": ("#include <tiffio.h>\n", ""),
        "src/io/dicom.cpp": ("#include <dcmtk/dcmdata/dctk.h>\n", "src/io/dicom/"),
        "src/io/hdf5/file.cpp": ("#include <hdf5.h>\n#include \"io/reader.h\"\n", ""),
        "src/inference/vino.cpp": ("#include <openvino/openvino.hpp>\n", "src/inference/openvino/"),
        "src/app/cli.cpp": ("#include <CLI/CLI.hpp>\n", "src/cli/*.cpp"),
        "src/ops/k.cpp": ("#include <c10/cuda/CUDAStream.h>\n", "src/*/cuda/"),
        "src/ops/cuda/k.cu": ("#include <cuda_runtime.h>\n", ""),
        "src/ops/rewires.cpp": ("TORCH_LIBRARY_IMPL(aten, CPU, library) {\n}\n", "for the whole process"),
        "src/ops/keyed.h": ("std::map<std::pair<const void*, int>, int> a;\n", "an address is a key"),
        "src/ops/found.cpp": ("use(known[weight.const_data_ptr()]);\n", "an address is a key"),
        "src/ops/held.h": ("std::map<std::string, void*> a;\nint b = c[0];\n", ""),
        "src/odd/a.h": ("", "in no layer"),
        "src/export/fragment.h": ("int a;  // of the files\n", 'begin with "of" or "by"'),
        "src/device/few.h": ("int a;  // of the files\n// of all\n", ""),
        "src/nn/public.h": ('#include "nn/models/block.h"\n', "which is not in"),
        "src/nn/models/block.h": ('#include "ops/y.h"\n', ""),
        "src/nn/long.h": ("\n" * 151, "151 lines"),
        "src/nn/long.cpp": ("\n" * 401, "401 lines"),
        "src/nn/excused.cpp": ("// A table.\n" + "\n" * 449, ""),
        "src/nn/untold.cpp": ("\n" * 450, "which idea"),
        "src/nn/grown.cpp": ("\n" * 451, "451 lines"),
        "src/nn/short.cpp": ("\n" * 400, "no longer needs"),
        "src/nn/headless.h": ("int a;\n\n  /// Of the windows: their number.\nint b;\n", "h:3: a comment begins with"),
        "src/nn/same.cpp": ("/// The same for planes.\nint b;\n", "begins with what it describes"),
        "src/nn/named.h": ("/// The number of windows, as many as fit.\n/// Of none it is 0.\nint a;\n/// Assigns a number.\n"
                           "int b;\n/// The samest.\nint c;  // Of all.\n//// Of a banner.\n", ""),
        "src/ops/box.h": (in_space("struct Box {\n  float area() const;\n  struct Edge;\n};\n"
                                   "std::pair<int, int> sides(const Box& box = {},\n                          int = 1);\n"
                                   "void grow(Box& box);\ninline int twice(int x) {\n  return 2 * x;\n}\n"), ""),
        "src/ops/box.cpp": (in_space("float Box::area() const {\n  return 0;\n}\n"), ""),
        "src/ops/area.cpp": (in_space("#define OPEN {\nconst char* kWord = \"{\";\nfloat Box::area() const {\n  return '{';\n}\n"),
                             'cpp:5: "ops/box.h" declares Box::area()'),
        "src/ops/edge.cpp": (in_space("Box::Edge::Edge(int a)\n    : a_{a} {}\n"), "Box::Edge::Edge()"),
        "src/ops/ended.cpp": (in_space("Box::~Box() = default;\n"), "Box::~Box()"),
        "src/ops/sides.cpp": (in_space("std::pair<int, int> sides(const cytra::Box& of, int count) {\n  return {};\n}\n"),
                              '"ops/box.h" declares sides()'),
        "src/ops/others.cpp": (in_space(in_space("void grow(Box& box) {\n}\n", "") + in_space("void grow(Box& box) {\n}\n", "other")
                                        + "void grow(Box& box, int by) {\n}\nstatic int sides(const Box& box, int) {\n}\n"), ""),
        "src/data/grow.cpp": (in_space("void grow(Box& box) {\n}\n"), ""),  # box.h declares it for its own use
        "src/ops/part.cpp": ("// Part of ops/box.h: how boxes grow.\n" + in_space("void grow(Box& box) {\n}\n"), ""),
        "src/ops/idle.cpp": ("// Part of ops/box.h: nothing.\n", "implements nothing"),
        "src/ops/astray.cpp": ("// Part of ops/bag.h: how it closes.\n", "no header src/ops/bag.h"),
        "src/nn/deep.cpp": ("void deep(int a,\n          int b) {\n" + "  a += b;\n" * 78 + "}\n", "deep.cpp:1: deep() has 81 lines"),
        "src/nn/told.cpp": ("int told() {\n" + "  ++a;\n\n" * 40 + "}\n", ""),
        "src/nn/list.cpp": ("int list[] = {\n" + "  1,\n" * 99 + "}\n", ""),
        "src/io/a/up.h": ('#include "io/b/down.h"\n', "io/a and io/b are in a circle"),
        "src/io/b/down.h": ('#include "io/a/up.h"\n#include "io/b/c/low.h"\n', "io/b and io/a are in a circle"),
        "src/io/b/c/low.h": ('#include "io/b/down.h"\n#include "io/d/end.h"\n', ""),
        "src/io/d/end.h": ("", ""),
        "src/ops/torn.h": ("", ""),
        "src/ops/torn.cpp": ("// Part of ops/box.h: how boxes grow.\n" + in_space("void grow(Box& box) {\n}\n"), "a header of its own"),
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, (text, _) in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        (root / "cmake").mkdir()
        (root / "cmake/installed_headers.txt").write_text("nn/public.h\nnn/missing.h\n")
        allow = root / "allow.txt"
        allow.write_text("# why\n" + "".join(f"src/nn/{name}.cpp 450 a table\n" for name in ("excused", "untold", "grown", "short"))
                         + "src/nn/told.cpp:told 82 a table\nsrc/nn/deep.cpp:gone 82 a table\nsrc/nn/gone.cpp 450 a table\nbad\n")
        findings = check(root, allow)
    wrong = []
    for name, (_, words) in files.items():
        mine = [f for f in findings if f.startswith(name + ":") or f" {name} " in f]
        if (len(mine) != 1 or words not in mine[0]) if words else mine:
            wrong.append(f"{name}: expected {words or 'nothing'!r}, found {mine}")
    expected = sum(1 for _, words in files.values() if words) + 4  # and gone.cpp, gone(), `bad` and missing.h
    if len(findings) != expected:
        wrong.append(f"{len(findings)} findings, {expected} expected: {findings}")
    return wrong


def main(arguments):
    if arguments == ["--self-test"]:
        findings = self_test()
    elif len(arguments) > 1 or any(a.startswith("-") for a in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    else:
        here = pathlib.Path(__file__).resolve().parent
        root = pathlib.Path(arguments[0]) if arguments else here.parent.parent
        findings = check(root, here / "allow.txt")
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
