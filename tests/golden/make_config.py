"""Writes config.json: what Hydra 1.3.8 makes of small config trees. Needs hydra-core==1.3.8.

Left out on purpose, because we differ (docs/config.md): `=`, `#` and UTF-8 in unquoted values, True/None inside text,
boolean keys, `group=null`, `~key` of a null, `+a/b=1` where a/b is no group, numbers as keys (text here, so
`labels.0=x` reaches them), infinities.
"""

import json
import os
import pathlib
import tempfile
import warnings

from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf, open_dict

TREE = {
    "config.yaml": "defaults:\n  - model: unet\n  - data: cells\n  - _self_\n  - trainer: cpu\nseed: 1\nmodel:\n  width: 16\n",
    "model/unet.yaml": "name: unet\nwidth: 8\nfilters: [8, 16]\nlr: ${trainer.lr}\n",
    "model/vit.yaml": "name: vit\nwidth: 4\nheads: 2\nlr: 0.5\n",
    "data/cells.yaml": "path: /data\nbatch: 4\n",
    "data/none.yaml": "",
    "trainer/cpu.yaml": "lr: 1e-3\nmax_epochs: 3\n",
    "trainer/gpu.yaml": "defaults:\n  - cpu\ndevices: 2\nlr: 0.1\n",
    "experiment/seg.yaml": "# @package _global_\ndefaults:\n  - override /model: vit\n  - override /trainer: gpu\nseed: 7\ndata:\n  batch: 2\n",
    "experiment/im2im/deep.yaml": "# @package _global_\ndefaults:\n  - /experiment/seg\n  - override /data: none\nmodel:\n  heads: 9\n",
}
EXPERIMENT = {**TREE, "config.yaml": TREE["config.yaml"].replace("trainer: cpu", "trainer: cpu\n  - experiment: null")}
FLAT = {
    "config.yaml": "a: 1\nb: {c: 2, d: [1, 2, 3], e: {f: x}}\nn: null\nm: ???\nt: text\nl: [{v: 1}, {v: 2}]\n"
}


def yaml(text):
    return {"config.yaml": text}


def cases():
    # Typing of YAML scalars.
    yield "bools", yaml("a: [yes, No, ON, off, true, False, TRUE, y, n, Y, tRue]\n"), []
    yield "integers", yaml("a: [010, 0x1F, 0b101, 1_000, 1:30, -1:30, 0, -0, +5, 08, 0o17, 1__0, 0x, 0_7]\n"), []
    yield "floats", yaml("a: [1e3, 1E5, 1e-3, .5, 1., -.5, 1.5e+2, 1_0.5, .5e-1, .5e1, 1e, 1_, 1:30.5, 6.0E-4]\n"), []
    yield "strings", yaml("a: [inf, nan, 2020-01-01, '1', \"yes\", 1.2.3, 1e3x, 0x1G, +, '-', .e3, 12:61, '']\n"), []
    yield "nulls", yaml("a: [~, null, Null, NULL, nULL, '~']\nb:\nc: ''\n"), []
    yield "blocks", yaml("a: |\n  one\n  two\nb: >\n  one\n  two\nc: \"x\\ty\\n\"\nd: 'it''s'\ne: plain\n  folded\n"), []
    yield "tags", yaml("a: !!str 1\nb: !!int '5'\nc: !!float 3\nd: !!bool 'yes'\ne: !!null ''\n"), []
    yield "unknown tag", yaml("a: !thing 1\n"), []
    yield "anchors", yaml("a: &x {p: 1, q: 2}\nb: *x\nc: {<<: *x, q: 3}\nd: &y {q: 9, r: 8}\ne: {<<: [*x, *y], s: 1}\n"), []
    yield "merge order", yaml("x: &x {p: 1, q: 2}\nc:\n  q: 3\n  <<: *x\n  z: 4\n"), []
    yield "duplicate key", yaml("a: 1\nb: 2\na: 3\n"), []
    yield "bad yaml", yaml("a: [1, 2\nb: 3\n"), []
    yield "empty", yaml("# nothing\n"), []
    yield "nested lists", yaml("a: [[1, [2]], {b: [c]}]\nd:\n- x\n- y: 1\n  z: 2\n"), []
    # Defaults lists and packages.
    yield "plain tree", TREE, []
    yield "choose", TREE, ["model=vit"]
    yield "choose yaml", TREE, ["model=vit.yaml"]
    yield "unknown option", TREE, ["model=vut"]
    yield "unknown group", TREE, ["modle=vit"]
    yield "nested defaults", TREE, ["trainer=gpu"]
    yield "several options", TREE, ["model=[unet,vit]"]
    yield "no options", TREE, ["model=[]"]
    yield "remove group", TREE, ["~data"]
    yield "remove group by value", TREE, ["~data=cells"]
    yield "remove group, other value", TREE, ["~data=none"]
    yield "append group", TREE, ["+experiment=seg"]
    yield "append at package", TREE, ["+model@teacher=vit"]
    yield "append existing", TREE, ["+model=vit"]
    yield "experiment", EXPERIMENT, ["experiment=seg"]
    yield "deep experiment", EXPERIMENT, ["experiment=im2im/deep"]
    yield "command line beats experiment", EXPERIMENT, ["experiment=seg", "model=unet", "seed=3"]
    yield "experiment first", {**TREE, "config.yaml": "defaults:\n  - trainer: cpu\n  - model: unet\n  - experiment: seg\n  - data: cells\n"}, []
    yield "override before group", {**TREE, "config.yaml": "defaults:\n  - experiment: seg\n  - model: unet\n  - trainer: cpu\n"}, []
    yield "self first", {"config.yaml": "defaults:\n  - _self_\n  - g: a\ng: {x: 1, y: 2}\n", "g/a.yaml": "x: 5\n"}, []
    yield "self implied last", {"config.yaml": "defaults:\n  - g: a\ng: {x: 1, y: 2}\n", "g/a.yaml": "x: 5\nz: 3\n"}, []
    yield "self twice", {"config.yaml": "defaults:\n  - _self_\n  - _self_\n"}, []
    yield "optional", {"config.yaml": "defaults:\n  - optional g: nope\n  - optional h: x\na: 1\n", "g/a.yaml": "x: 1\n"}, []
    yield "must choose", {"config.yaml": "defaults:\n  - g: ???\n", "g/a.yaml": "x: 1\n"}, []
    yield "chosen", {"config.yaml": "defaults:\n  - g: ???\n", "g/a.yaml": "x: 1\n"}, ["g=a"]
    yield "null choice", {"config.yaml": "defaults:\n  - g: null\nb: 1\n", "g/a.yaml": "x: 1\n"}, ["g=a"]
    yield "list of options", {"config.yaml": "defaults:\n  - g: [a, b]\n", "g/a.yaml": "x: 1\ny: 1\n", "g/b.yaml": "y: 2\n"}, []
    packages = {
        "config.yaml": "defaults:\n  - db@source: my\n  - db@target.x: pg\n  - db@_global_: my\n  - db@_here_: pg\n",
        "db/my.yaml": "host: my\n",
        "db/pg.yaml": "host: pg\nport: 1\n",
    }
    yield "packages", {**packages, "config.yaml": packages["config.yaml"].replace("  - db@_here_: pg\n", "")}, []
    yield "package override", {**packages, "config.yaml": "defaults:\n  - db@source: my\n  - db@target: my\n"}, ["db@target=pg"]
    yield "package missing", {**packages, "config.yaml": "defaults:\n  - db@source: my\n"}, ["db=pg"]
    yield "header", {"config.yaml": "defaults:\n  - g: a\n", "g/a.yaml": "# @package x.y\nv: 1\n"}, []
    yield "header beaten", {"config.yaml": "defaults:\n  - g@z: a\n", "g/a.yaml": "# @package x.y\nv: 1\n"}, []
    yield "header later", {"config.yaml": "defaults:\n  - g: a\n", "g/a.yaml": "# words\n# @package x.y\nv: 1\n"}, []
    yield "primary header", {"config.yaml": "# @package top\na: 1\n"}, []
    server = {
        "config.yaml": "defaults:\n  - server@cg: apache\n",
        "server/apache.yaml": "defaults:\n  - /db: my\n  - site: [fb, g]\n  - db@backup: my\nhost: h\n",
        "db/my.yaml": "n: my\n",
        "server/db/my.yaml": "n: inner\n",
        "server/site/fb.yaml": "fb: 1\n",
        "server/site/g.yaml": "g: 1\n",
    }
    yield "relocated", server, []
    yield "relocated override", server, ["db@cg.db=my"]
    yield "group keyword", {**server, "server/apache.yaml": "defaults:\n  - db@_group_: my\nhost: h\n"}, []
    yield "choice by choice", {"config.yaml": "defaults:\n  - a: x\n  - b: y\n  - ab: ${a}_${b}\n", "a/x.yaml": "v: 1\n", "a/z.yaml": "v: 5\n",
                               "b/y.yaml": "v: 2\n", "ab/x_y.yaml": "v: 3\n", "ab/z_y.yaml": "v: 4\n"}, ["a=z"]
    yield "override last", {"config.yaml": "defaults:\n  - override g: b\n  - h: a\n", "g/b.yaml": "", "h/a.yaml": ""}, []
    yield "override unused", {"config.yaml": "defaults:\n  - h: a\n  - override g: b\n", "g/b.yaml": "", "h/a.yaml": ""}, []
    yield "multiple values", {"config.yaml": "defaults:\n  - g: a\n  - g: b\n", "g/a.yaml": "", "g/b.yaml": ""}, []
    yield "same option twice", {"config.yaml": "defaults:\n  - g: a\n  - g: a\n", "g/a.yaml": ""}, []
    yield "parent beats child", {
        "config.yaml": "defaults:\n  - g: a\n  - mid\n  - override g: c\n", "mid.yaml": "defaults:\n  - override g: b\n",
        "g/a.yaml": "v: a\n", "g/b.yaml": "v: b\n", "g/c.yaml": "v: c\n"}, []
    yield "later sibling wins", {
        "config.yaml": "defaults:\n  - g: a\n  - one\n  - two\n", "one.yaml": "defaults:\n  - override g: b\n",
        "two.yaml": "defaults:\n  - override g: c\n", "g/a.yaml": "v: a\n", "g/b.yaml": "v: b\n", "g/c.yaml": "v: c\n"}, []
    deep = {
        "g/a.yaml": "defaults:\n  - sub/x\n  - /h/q@_here_\n  - b@_global_.top\n  - _self_\nv: a\n",
        "g/b.yaml": "w: b\n",
        "g/c.yaml": "# @package _global_.z\nw: c\n",
        "g/sub/x.yaml": "s: x\n",
        "h/q.yaml": "q: 1\n",
        "h/r.yaml": "defaults:\n  - q\n  - ../g/b\nr: 1\n",
    }
    for text, overrides in [
        ("- g: a", []), ("- g/a", []), ("- g/a@p", []), ("- /g/sub: x", []), ("- g: sub/x", []), ("- g@_here_: b", []), ("- g@_global_: a", []),
        ("- g: c", []), ("- g@y: c", []), ("- g: [a, c]", []), ("- g@p.q: [b, c]", []), ("- h: q\n- optional g: ${h}", []), ("- h: q\n- g: ${h}", []),
        ("- g@one: b\n- g@two: b\n- override g@one: c", []), ("- g: b\n- override g: [b, c]", []), ("- g: b\n- override g: null", []),
        ("- g@one: b\n- g@two: b", ["~g@one"]), ("- g@one: b\n- g@two: b", ["g@one=c"]), ("- g: b", ["+h@x.y=q"]), ("- g: b", ["++g=c"]),
        ("- g: b", ["g=3"]), ("- g: b", ["g={a: 1}"]), ("- g: b", ["+g={n: 1}"]), ("- g: b", ["g.w=5"]), ("- g: b", ["~g", "+g.x=1"]),
        ("- optional g@p: nope", []), ("- g: nope", []), ("- nope", []), ("- g: null", []), ("- g: null", ["~g"]), ("- h/r", []), ("- g: b.yaml", []),
        ("- g@a_group_b: b", []), ("- g@_group_.x: b", []), ("- g: b\n- g@_global_.g: b", []), ("- h: q\n- g@${h}: b", []), ("- override g: b", []),
        ("- _self_\n- g: b\n- h: q", ["h.q=[1]", "g.w=null", "+g.k=${h.q}"]), ("- {g: b, h: q}", []), ("- 3", []), ("- g: 3", []), ("- g: {a: 1}", []),
    ]:  # fmt: skip
        yield "list " + text, {**deep, "config.yaml": "defaults:\n" + text + "\n"}, overrides
    # Merging.
    merge = {"config.yaml": "defaults:\n  - base\n  - _self_\n", "base.yaml": "m: {a: 1, b: {c: 2}}\nl: [1, 2]\ns: x\nn: null\nq: ???\nr: ${m}\n"}
    for name, own in {
        "maps": "m: {b: {d: 3}, a: 5}\n", "lists": "l: [3]\n", "map over list": "l: {a: 1}\n", "list over map": "m: [1]\n",
        "map over scalar": "s: {a: 1}\n", "scalar over map": "m: 3\n", "null over map": "m: null\n", "map over null": "n: {a: 1}\n",
        "missing keeps": "s: ???\nm: ???\nnew: ???\n", "map over missing": "q: {a: 1}\n", "map over reference": "r: {z: 1}\n",
        "reference over map": "m: ${l}\n", "scalar over list": "l: 3\n", "types change": "s: 1.5\nl: [x, {y: 1}]\n",
    }.items():  # fmt: skip
        yield "merge " + name, {**merge, "config.yaml": merge["config.yaml"] + own}, []
    # Values of the command line.
    for value in ["1", "-5", "+3", "1_000", "007", "1.5", "1.", ".5", "1e3", "-1.5e-3", "1_0.5", "true", "FALSE", "null", "NULL", "yes",
                  "none", "0x10", "abc", "a b", "'1'", "\"a b\"", "'it\\'s'", "'a\\b'", "'a\\\\'", "[1, 2.0, x]", "[]", "[[1],[a,b]]",
                  "{a: 1, b: {c: [2]}}", "{}", "a:b", "a\\,b", "/x/y-z.tif", "1x", "1 2", "true x", "a\\ ", "x\\[1\\]", "${a}", "'${a}_x'",
                  "[${a}, '${t}']", "${b.c}-${t}", "-", "e3", "1e", "1e+3", "1.5.2", "\\\\x", "a\\nb", "[1,]", "[1,,2]", "[1", "'a'b", "'a",
                  "{a}", "{a:1", "", "  x  ", "'', 'b'", "10e", "1__0", "_1", "00", "0", "-0", "0.0", "1.e3", "$x", "?", "a@b"]:  # fmt: skip
        yield "value " + value, FLAT, ["t=" + value]
    for overrides in [["a=2"], ["b.c=x"], ["b.z=1"], ["z=1"], ["b.c.d=1"], ["l.0.v=5"], ["l.5.v=5"], ["b.d.1=x"], ["b={c: 9}"], ["b={z: 9}"],
                      ["b.d={x: 1}"], ["b=[1]"], ["b=3"], ["b.d=[]"], ["n={x: 1}"], ["m=3"], ["+z=1"], ["+b.z.y=1"], ["+a=2"], ["+n=5"],
                      ["+m=5"], ["+b={z: 1}"], ["+b.d=[9]"], ["+l.9.v=1"], ["++a=2"], ["++z.y=1"], ["++a.b=1"], ["++b={z: {y: 1}}"],
                      ["~a"], ["~b.c"], ["~a=1"], ["~a=2"], ["~z"], ["~a", "+a=5"], ["+k=1", "+k=2"], ["b.e.f=1", "~b.d"], ["x/y=1"],
                      ["a@b=1"], ["a=1,2"], ["=1"], ["a"], ["b.=1"], ["-a=1"], ["a=1", "a=2"], ["b.c={x: 1}"], ["+b.c={x: 1}"]]:  # fmt: skip
        yield "set " + " ".join(overrides), FLAT, overrides
    for override in ["~l.0", "~b.d.1", "~l.0.v", "~l.1={v: 2}", "t=~/x", "t=~", "t=x~", "t=[~/x]", "t={a: ~/x}", "t='~/x'", "t=(a)", "t=( a )",
                     "t=(1)", "t=[(a)]", "t='(a)'", "t=\\(a\\)", "+k.1.b=5", "+k.1=5", "+k.1.2=x"]:  # fmt: skip
        yield "text " + override, FLAT, [override]
    # Interpolation.
    for text in ["a: 1\nb: ${a}\n", "a: {x: 1}\nb: ${a}\n", "a: [1, 2]\nb: ${a.1}\nc: ${a[0]}\n", "a: x\nb: ${a}-${a}\n", "a: ${b}\nb: ${c}\nc: 3\n",
                 "a: ${a}\n", "a: ${b}\nb: ${a}\n", "a: ${nope}\n", "a: {b: 1, c: '${.b}'}\n", "a: {b: {c: '${..d}'}, d: 4}\n",
                 "a: {b: {c: '${...d}'}}\nd: 4\n", "a: {b: 1}\nk: b\nc: ${a.${k}}\nd: ${a[${k}]}\n", "a: 1\nb: \\${a}\nc: \\\\${a}\nd: x\\y${a}\n",
                 "a: ${b\n", "a: '${oc.env:CYTRA_NOT_SET,5}'\n", "a: '${oc.env:CYTRA_NOT_SET}'\n", "a: '${oc.env:CYTRA_NOT_SET,null}'\n",
                 "a: '${oc.select:b.c,7}'\nb: {}\n", "a: '${oc.select:b}'\n", "a: '${oc.decode:\"[1, x]\"}'\n", "a: '${oc.decode:\"1e3\"}'\n",
                 "a: '${nope:1}'\n", "a: {x: {y: '${..z}'}, z: 2}\nb: ${a.x}\n", "a: 1e-5\nb: v${a}\nc: v${d}\nd: 100000.0\n", "a: ???\nb: ${a}\n",
                 "a: [1, '${.0}', '${..b}']\nb: 3\n", "a: {b: ${c}}\nc: {d: 5}\ne: ${a.b.d}\n", "d: {a: 1, b: 2}\nk: '${oc.dict.keys:d}'\nv: '${oc.dict.values:d}'\n",
                 "a: 0.0001\nb: x${a}\nc: 1e16\nd: x${c}\ne: 123456789.125\nf: x${e}\n", "a: '${oc.env:CYTRA_NOT_SET,\"a, b\"}'\n", "a: ${ b }\nb: 1\n",
                 "a: \"${oc.env:CYTRA_NOT_SET,${b}}\"\nb: 3\n", "a: ${b.c}\nb: ${d}\nd: {c: 1}\n"]:  # fmt: skip
        yield "interpolate " + text.replace("\n", "; "), yaml(text), []
    yield from hydra_cases()
    yield from file_cases()
    yield from list_cases()
    yield from merge_cases()
    yield from override_cases()
    yield from type_cases()


def hydra_cases():
    """The `hydra` node: its groups, its keys in trees, and what ${hydra:...} sees."""
    see = "j: ${hydra:job.name}\nc: ${hydra:job.config_name}\no: ${hydra:job.override_dirname}\nt: ${hydra:overrides.task}\nh: ${hydra:overrides.hydra}\nr: ${hydra:runtime.choices}\n"
    tree = {**TREE, "config.yaml": TREE["config.yaml"] + see}
    for overrides in [[], ["model=vit", "seed=5"], ["hydra.job.name=x"], ["+model@teacher=vit"], ["~data"], ["hydra.job.config.override_dirname.kv_sep=_", "seed=3", "trainer=gpu"],
                      ["hydra.job.config.override_dirname.exclude_keys=[seed]", "seed=3", "trainer=gpu"], ["seed=3", "data.batch=2", "hydra.verbose=true"],
                      ["hydra/job_logging=disabled"], ["hydra/job_logging=nope"], ["hydra/nope=x"], ["hydra.nope=1"], ["+hydra.nope=1"], ["hydra.run.dir=x"], ["~hydra/launcher"],
                      ["hydra.job.config.override_dirname.item_sep=+", "seed=3", "trainer=gpu"], ["hydra/launcher=nope"], ["model=[unet,vit]"], ["trainer=[]"]]:  # fmt: skip
        yield "hydra sees " + " ".join(overrides), tree, overrides
    yield "hydra choices with experiment", {**EXPERIMENT, "config.yaml": EXPERIMENT["config.yaml"] + see}, ["experiment=im2im/deep"]
    for text in ["hydra: {run: {dir: 'x/${a}'}}\nd: ${hydra:run.dir}\na: 5\n", "hydra: {job: {name: n}}\nd: ${hydra:job.name}\n", "hydra: {foo: 1}\n", "hydra: {job: {foo: 1}}\n",
                 "hydra: {sweeper: {params: {a: 'choice(1,2)'}}}\nd: ${hydra:sweeper.params}\n",
                 "hydra: {job: {env_set: {A: b}}}\nd: ${hydra:job.env_set.A}\n", "hydra: {callbacks: {x: {_target_: y}}}\nd: ${hydra:callbacks.x._target_}\n",
                 "d: ${hydra:runtime.output_dir}\n", "d: ${hydra:job.num}\n", "d: ${hydra:nope.x}\n", "hydra: {output_subdir: null}\nd: ${hydra:output_subdir}\n",
                 "hydra: {job_logging: {handlers: {file: {filename: z}}}}\nd: ${hydra:job_logging.handlers.file.filename}\ne: ${hydra:job_logging.version}\n",
                 "d: ${hydra:job}\n", "d: ${hydra:output_subdir}-${hydra:job.chdir}\n", "hydra: {runtime: {choices: {q: w}}}\nd: ${hydra:runtime.choices.q}\n",
                 "defaults: [_self_, {hydra: mine}]\na: 1\nd: ${hydra:run.dir}\n"]:  # fmt: skip
        yield "hydra keys " + text.replace("\n", "; "), {**yaml(text), "hydra/mine.yaml": "defaults:\n  - override job_logging: none\n  - override hydra_logging: disabled\nrun: {dir: mine}\n"}, []
    groups = {
        "config.yaml": "defaults:\n  - _self_\n  - hydra: mine\n  - override hydra/job_logging: stdout\nl: ${hydra:job_logging.root}\nc: ${hydra:runtime.choices}\n",
        "hydra/mine.yaml": "sweep: {dir: s, subdir: '${hydra.job.num}'}\n",
        "hydra/job_logging/own.yaml": "version: 7\nroot: {level: x}\n",
    }
    for overrides in [[], ["hydra/job_logging=own"], ["hydra/job_logging=none"], ["hydra=mine"], ["hydra.job_logging.root.level=DEBUG"], ["hydra.sweep.dir=q", "hydra/launcher=basic"]]:
        yield "hydra groups " + " ".join(overrides), groups, overrides
    yield "hydra override elsewhere", {**groups, "config.yaml": groups["config.yaml"].replace("override hydra/job_logging", "override hydra/nope")}, []
    search = {
        "config.yaml": "defaults:\n  - g: a\n  - optional h: z\nhydra:\n  searchpath: ['file://${oc.env:CYTRA_TREE}/more']\nx: 1\n",
        "g/a.yaml": "v: main\n",
        "more/g/a.yaml": "v: more\n",
        "more/g/b.yaml": "v: b\n",
        "more/h/z.yaml": "w: z\n",
    }
    for overrides in [[], ["g=b"], ["g=c"], ["+h@k=z"], ["hydra.searchpath=[]"], ["hydra.searchpath=[]", "g=b"], ["hydra.searchpath=x"], ["hydra.searchpath=null", "g=b"]]:
        yield "searchpath " + " ".join(overrides), search, overrides
    yield "searchpath is no list", {**search, "config.yaml": "hydra: {searchpath: more}\n"}, []
    yield "searchpath of numbers", {**search, "config.yaml": "hydra: {searchpath: [1]}\n"}, []
    yield "searchpath elsewhere", {**search, "config.yaml": "defaults: [s]\n", "s.yaml": "# @package _global_\nhydra: {searchpath: ['/tmp']}\n"}, []
    yield "searchpath by hydra group", {**search, "config.yaml": "defaults: [{hydra: s}]\n", "hydra/s.yaml": "searchpath: ['/tmp']\n"}, []


def group(text, name="g/a.yaml", **more):
    """A primary config that includes one group, and that group's file."""
    files = {"config.yaml": "defaults:\n  - g: a\nz: 1\n", name: text}
    return {**files, **{key.replace("__", "/") + ".yaml": value for key, value in more.items()}}


def file_cases():
    """Headers, and files that hold no map."""
    for header in ["#@package x", "#  @package   x.y  ", "\n\n# @package x", "## @package x", "# note\n# @package x", "# @other v\n# @package x", "# @package x\n# @package y",
                   "# @package _global_", "# @package _global_.x", "# @package _here_", "# @package _group_", "# @package x._global_.y", "# @package x y", "# @package",
                   "v: 0\n# @package x", "# @package: x"]:  # fmt: skip
        yield "header " + header, group(header + "\nw: 1\n"), []
    for text in ["- 1\n- {a: 2}\n", "[]\n", "just text\n", "'v: 1'\n", "3\n", "null\n", "{}\n", "v: 1\n---\nw: 2\n", "---\nv: 1\n", "defaults: []\nv: 1\n",
                 "defaults:\n", "defaults: {h: a}\n", "m: {defaults: [h: a]}\n", "v: {0x1F: a, 010: b, 1.50: c}\n", "v: &x {p: 1, q: {r: 2}}\nw: {<<: *x, q: 3}\n"]:  # fmt: skip
        yield "file " + text, group(text), []
        yield "file at package " + text, {**group(text), "config.yaml": "defaults:\n  - g@p.q: a\n"}, []
        yield "file at root " + text, {"config.yaml": text}, []
    for text in ["a: 1\njust text\n", "a: # c\nb # c\nc: 1\n", "a: 1\njust text\nb: 2\n", "a: 'x\n", 'a: "x\n', 'a: "\\"\n', "a: [x,,y]\n", "a: [,]\n", "a: x\ty\n", "%YAML 1.1\n---\na: 1\n",
                 "a: 1\n%b: 2\n", "a: 1_.5\nb: 1__0.5\nc: .5_0\nd: 1_.5e3\ne: 1_0e3\n", "? a\n: b\n", "? a\n", "a: {b, c: 1}\n", "a:\n- x\n", "a:\n  b\n  c\n", "a: {x:1}\n"]:  # fmt: skip
        yield "yaml " + text, yaml(text), []
    yield "a list below a map", {**group("- 1\n"), "config.yaml": "defaults:\n  - _self_\n  - g: a\ng: {x: 1}\n"}, []
    yield "yml", {"config.yaml": "defaults:\n  - g: a\n", "g/a.yml": "v: 1\n"}, []
    yield "bad syntax that is overwritten", group("v: ${x\n", config="defaults:\n  - g: a\n  - _self_\ng: {v: 1}\n"), []


def list_cases():
    """Defaults lists: order, packages, overrides, choices by other choices."""
    tree = {
        "g/a.yaml": "v: a\n",
        "g/b.yaml": "v: b\nw: b\n",
        "g/h/a.yaml": "x: a\n",
        "h/a.yaml": "defaults:\n  - /g@inner: a\n  - sub: a\ny: a\n",
        "h/b.yaml": "defaults:\n  - _self_\n  - override /g: b\ny: b\n",
        "h/c.yaml": "defaults:\n  - other\n  - sub/a@_here_\n  - optional nope: x\n",
        "h/d.yaml": "defaults:\n  - ${g}\n",
        "h/e.yaml": "defaults:\n  - /g@_group_: a\n  - sub@_global_.s: a\n  - sub@t._global_.u: a\n",
        "h/other.yaml": "o: 1\n",
        "h/sub/a.yaml": "s: 1\nup: ${..y}\n",
        "base.yaml": "defaults:\n  - g: a\n  - _self_\nk: {x: 1}\n",
        "a.yaml": "from: path\n",
        "k/a_a.yaml": "joined: 1\n",
        "k/none_a.yaml": "n: 1\n",
    }
    for text, overrides in [
        ("- _self_\n- g: a", []), ("- g: a\n- _self_\n- h: a", []), ("- g: _self_", []), ("- base", []), ("- base\n- g: b", []), ("- base@x", []),
        ("- base\n- override g: b", []), ("- base@x\n- override g@x.g: b", []), ("- base@x\n- override g: b", []), ("- g: a\n- h: b", []), ("- h: b\n- g: a", []),
        ("- g: a\n- h: b", ["g=a"]), ("- h: c", []), ("- h: c", ["h=a"]), ("- h@p: a", []), ("- h@p: a", ["h/sub@p.sub=a"]), ("- h@p: a", ["g@p.inner=b"]), ("- h: e", []), ("- h@p: e", []),
        ("- h: d\n- g: a", []), ("- g: a\n- ${g}", []), ("- g: a\n- k: ${g}_a", []), ("- g: null\n- k: ${g}_a", []), ("- g: [a]\n- k: ${g}_a", []), ("- g@p: a\n- k: ${g@p}_a", []),
        ("- g: ${oc.env:CYTRA_NOT_SET,b}", []), ("- k: ${nope}", []), ("- optional k: ${g}_zz\n- g: a", []), ("- k: ${k}", []), ("- g: a\n- k: ${oc.select:g}_${g}", []),
        ("- g: a\n- k: ['${g}_a']", []), ("- g: a\n- h: a\n- k: ${g}_${h}", ["g=b"]), ("- g: a\n- h: ${g}", []), ("- g: b\n- h: ${g}", []),
        ("- g: [a, b]\n- h: a", []), ("- g: [b, a]", ["g=a"]), ("- g: a", ["g=[b,a]"]), ("- g: [a, b]", ["~g"]), ("- g: a", ["~g=[a]"]), ("- g: a", ["~g=b"]), ("- g@p: [a, b]", ["g@p=b"]),
        ("- optional g: zz", ["g=yy"]), ("- optional g: zz", ["g=a"]), ("- optional g: [a, zz]", []), ("- optional zz: a", []), ("- optional g@p: zz\n- override g@p: b", []),
        ("- g: a\n- override g: null", []), ("- g: a\n- override g: []", []), ("- g: a\n- override g: zz", []), ("- optional g: a\n- override g: zz", []),
        ("- g: a\n- override g: a\n- override g: b", []), ("- g: a\n- override g: b\n- _self_", []), ("- g: a", ["+h=a", "+h=a"]), ("- h: a", ["+h=a"]), ("- g: a", ["+g=a"]), ("- g: a", ["+g=b"]),
        ("- g: null", ["+g=a"]), ("- g: a", ["+g@_here_=b"]), ("- g: a", ["+g@_global_=b"]), ("- g: a", ["+g@x._global_.y=b"]), ("- g: a", ["+g@p=b", "g@p=a"]), ("- g: a", ["+h=b"]),
        ("- g: ???", ["+h=b"]), ("- g: ???", ["g=???"]), ("- g: a", ["g='b'"]), ("- g: a", ["g=[]", "g=b"]), ("- g: a", ["g@zz=b"]), ("- g/h: a\n- g: a", []), ("- g/h: a\n- g@g.h: a", []), ("- /g: a", ["g=b"]),
        ("- g@_here_: a\n- g@_global_.q: b", ["g@_global_=b"]), ("- g@: a", []), ("- {}", []), ("- [g]", []), ("- g: a\n- optional override g: b", []),
    ]:  # fmt: skip
        yield "tree " + text, {**tree, "config.yaml": "defaults:\n" + text.replace("- ", "  - ", text.count("- ")) + "\n"}, overrides
    inner = {**tree, "h/config.yaml": "defaults:\n  - sub: a\n  - /g: a\n  - _self_\ny: 1\nx: ${..top}\n", "config.yaml": "top: 1\n"}
    for overrides in [[], ["h/sub=a"], ["sub=a"], ["+g=b"], ["+sub@q=a"], ["g@h.g=b"], ["g=b"], ["h.y=2"], ["~g@h.g"], ["+top=3"]]:
        yield "primary below", {**inner, "primary": "h/config"}, overrides
    # A file that is used again brings what others have made of its maps and lists.
    used = {"common.yaml": "m: {v: 1, w: {x: 1}}\nl: [1]\ns: 1\n", "change.yaml": "m: {v: 2, w: {y: 2}}\nl: [2]\ns: 2\n", "drop.yaml": "m: 3\n",
            "a.yaml": "defaults: [common, _self_]\nm: {v: 7}\nl: [7]\n", "b.yaml": "defaults: [common]\nn: 3\n"}  # fmt: skip
    for text in ["[common, change, common]", "[a, b]", "[common, change, common@x]", "[common@x, change, common]", "[common, drop, common]", "[change, common, a, common@x.y]",
                 "[common@m, change, common]", "[_self_, common, change, a]", "[common, change@x, common@x]"]:  # fmt: skip
        yield "again " + text, {**used, "config.yaml": "defaults: " + text + "\nm: {own: 1}\n"}, []


def merge_cases():
    """Every kind of value over every kind of value."""
    base = {"null": "null", "missing": "???", "scalar": "1", "list": "[1, 2]", "map": "{a: 1, b: {c: 2}}", "reference to a map": "${m}", "reference to a list": "${l}",
            "reference to a scalar": "${s}", "reference to null": "${n}", "relative reference": "${.m}", "nested reference": "${k.${s}}", "reference to a reference": "${r}",
            "dangling reference": "${nope}", "made map": "'${oc.create:{a: 1}}'", "made list": "'${oc.dict.values:m}'", "text with a reference": "x${s}"}  # fmt: skip
    source = {"null": "null", "missing": "???", "scalar": "2", "list": "[3]", "map": "{b: {d: 4}, e: 5}", "reference": "${m}"}
    places = "m: {a: 1, b: {c: '${..a}'}}\nl: [{a: 1}, 2]\ns: x\nn: null\nr: ${m}\nk: {x: {a: 1}}\n"
    for old, old_text in base.items():
        for new, new_text in source.items():
            if (new, old) == ("scalar", "made list"):
                continue  # an error there: the list has a type; here the scalar replaces it
            yield f"{new} over {old}", {"config.yaml": f"defaults: [base, _self_]\nv: {new_text}\n", "base.yaml": f"{places}v: {old_text}\n"}, []
    yield "copied reference keeps its place", {"config.yaml": "defaults: [base, _self_]\nv: {z: 1}\nm: {a: 9}\n", "base.yaml": places + "v: ${m}\n"}, []
    yield "package below a reference", {"config.yaml": "defaults: [base, {g@v.b: a}]\n", "base.yaml": places + "v: ${m}\n", "g/a.yaml": "q: 1\n"}, []
    yield "package below a scalar", {"config.yaml": "defaults: [base, {g@s.b: a}]\n", "base.yaml": places, "g/a.yaml": "q: 1\n"}, []
    yield "package below a list", {"config.yaml": "defaults: [base, {g@l.b: a}]\n", "base.yaml": places, "g/a.yaml": "q: 1\n"}, []
    yield "empty file below a reference", {"config.yaml": "defaults: [base, {g@v: a}]\n", "base.yaml": places + "v: ${m}\n", "g/a.yaml": ""}, []


def override_cases():
    """Values of the command line whose way leads through references and other kinds."""
    tree = yaml("a: 1\nm: {p: {q: 1}, n: null, e: ???}\nr: ${m}\ns: ${r}\nc: '${oc.create:{z: 1}}'\nd: ${nope}\nl: [1, {v: 2}, '${m}']\nt: ${a}\nx: ${m.n}\nk: '${oc.dict.keys:m}'\nf: 1.0\n")
    for overrides in [
        ["+r.z=1"], ["r.p=1"], ["r.p.q=5"], ["+r.p=1"], ["+r.p.q=1"], ["++r.z=1"], ["++r.p.q=2"], ["+s.p.w=2"], ["+r={z: 1}"], ["r={z: 1}"], ["++r={p: {z: 1}}"], ["m={p: {z: 1}}"],
        ["~r.p"], ["~s.p.q"], ["~r"], ["~m.p"], ["~r.p.q=1"], ["~r.p.q=2"], ["~r={p: {q: 1}, n: null, e: ???}"], ["~m.p={q: 1.0}"], ["~m.p={q: true}"], ["~m.p={q: 1, z: 2}"], ["~m.p=1"],
        ["+c.z=2"], ["+c.y=2"], ["++c.z=3"], ["c.z=3"], ["~c.z"], ["~c"], ["~c={z: 1}"], ["~d"], ["~d.x"], ["+d=1"], ["+d={a: 1}"], ["++d=1"], ["d=1"], ["d.x=1"], ["++d.x=1"],
        ["l.1.v=3"], ["+l.1.w=3"], ["l.0=x"], ["l.2.p=1"], ["+l.2.p=1"], ["+l.2.z=1"], ["l.3=1"], ["+l.3=1"], ["++l.x=1"], ["l={a: 1}"], ["+l=[9]"], ["m=[1]"], ["+l.0={a: 1}"], ["~l={a: 1}"], ["l.00=5"],
        ["+t=2"], ["t=2"], ["~t=1"], ["~t='${a}'"], ["+x=5"], ["x=5"], ["+m.n.z=1"], ["m.n.z=1"], ["+m.e.z=1"], ["m.e={z: 1}"], ["+m.n={z: 1}"], ["a.b=1"], ["+a.b=1"], ["++a.b.c=1"], ["+k=1"], ["+k.0=1"], ["~k"],
        ["a={b: 1}"], ["+a={b: 1}"], ["++a=[1]"], ["~a=1.0"], ["~a=true"], ["~a='1'"], ["~f=1"], ["~a=null"], ["~m.p=null"], ["m.p=null"], ["m.p=${a}"], ["r=???"], ["+r=???"],
        ["a='${x'"], ["a=${..x}"], ["m.p.q=${..n}"], ["+y='${.a}'"], ["m.p.q.z=1"], ["~m.p.q.z"], ["~a.b"], ["+z.0.y=1"], ["+z.y=1", "z.y=2", "~z"], ["+z={y: 1}", "+z={w: 2}", "++z.w=3"], ["m={}"], ["++m={n: 1, z: {}}"],
    ]:  # fmt: skip
        yield "apply " + " ".join(overrides), tree, overrides


def type_cases():
    """Hydra's own settings have types."""
    see = {"num": "job.num", "name": "job.name", "chdir": "job.chdir", "dir": "run.dir", "subdir": "output_subdir", "mode": "mode", "env": "job.env_set", "id": "job.id"}
    for key, value in [("num", "3"), ("num", "'4'"), ("num", "x"), ("num", "1.0"), ("num", "true"), ("num", "null"), ("name", "5"), ("name", "1.50"), ("name", "null"), ("chdir", "1"), ("chdir", "yes"),
                       ("chdir", "maybe"), ("chdir", "null"), ("dir", "5"), ("dir", "[a]"), ("dir", "null"), ("subdir", "false"), ("subdir", "null"), ("mode", "MULTIRUN"), ("mode", "run"),
                       ("env", "{A: 1, B: true}"), ("env", "{A: null}"), ("env", "null"), ("id", "7")]:  # fmt: skip
        path = see[key]
        tree = yaml("v: ${hydra:%s}\n" % path if key != "mode" else "v: 1\n")
        yield f"type {path}={value}", tree, [f"hydra.{path}={value}"]
        *parents, last = path.split(".")
        text = "".join(f"{parent}: {{" for parent in ["hydra", *parents]) + f"{last}: {value}" + "}" * (len(parents) + 1)
        yield "type in a file " + text, yaml(tree["config.yaml"] + text + "\n"), []
    for overrides in [["hydra.run=null"], ["hydra.run=x"], ["~hydra.run"], ["hydra.job_logging=null"], ["hydra.searchpath=null"], ["hydra.overrides.task=[x]"], ["hydra.callbacks=null"], ["hydra={a: 1}"], ["~hydra"]]:
        yield "type " + " ".join(overrides), yaml("v: ${hydra:overrides.task}\n"), overrides


def expected(files, overrides):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            if name == "primary":
                continue
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        try:
            os.environ["CYTRA_TREE"] = folder
            with initialize_config_dir(folder, version_base="1.3"):
                config = compose(files.get("primary", "config"), overrides, return_hydra_config=True)
            HydraConfig.instance().set_config(config)
            with open_dict(config):
                del config["hydra"]
            return {"expected": OmegaConf.to_container(config, resolve=True)}
        except Exception:
            return {"error": True}


def main():
    warnings.simplefilter("ignore")
    os.environ.pop("CYTRA_NOT_SET", None)
    here = pathlib.Path(__file__).parent
    trees, rows = [], []
    for name, files, overrides in cases():
        if files not in trees:
            trees.append(files)
        rows.append({"name": name, "tree": trees.index(files), "overrides": overrides, **expected(files, overrides)})
    lines = ",\n".join(json.dumps(row, allow_nan=False) for row in rows)
    trees_text = ",\n".join(json.dumps(tree) for tree in trees)
    (here / "config.json").write_text(f'{{"trees": [\n{trees_text}\n],\n"cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
