"""Writes overrides.json: what Hydra 1.3.8 makes of words of the command line and of sweeps. Needs hydra-core==1.3.8.

Left out on purpose, because we differ (docs/config.md):
- blanks after a last `:`, which Hydra keeps; ${...} with uneven braces or quotes; sweeps in a map that a later key replaces;
- unquoted `=`, `#`, `!`, `(`, UTF-8, line breaks and other signs, blanks after quotes and calls,
  nested ${...}; parentheses that are no call; quoted map keys; quoted text in sort() and in the lists of glob();
- keys of letters beyond ASCII, words of a key that begin with a digit, `$` in a group; group=null;
- an empty key (`=1`, `@x=1`), which no configuration has;
- integers over 64 bits, which become floats; map keys, which are always text; inf and nan in range(), nan in sort();
- the order that shuffle() gives: one that the text decides here, so every process of a run has the same;
- in a sweep: choice('1') and str(1,2) stay text (Hydra drops the quotes); a glob() or range() without values is an error,
  a shuffle() of no values too; interval() over hydra's keys.
"""

import json
import math
import pathlib
import random
import tempfile
import warnings

from hydra import compose, initialize_config_dir
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Glob, IntervalSweep, Override, RangeSweep, Sweep, ValueType
from omegaconf import OmegaConf

KINDS = {
    ValueType.ELEMENT: "element", ValueType.SIMPLE_CHOICE_SWEEP: "simple", ValueType.CHOICE_SWEEP: "choice",
    ValueType.RANGE_SWEEP: "range", ValueType.INTERVAL_SWEEP: "interval", ValueType.GLOB_CHOICE_SWEEP: "glob",
}  # fmt: skip
ACTIONS = {"CHANGE": "change", "ADD": "add", "FORCE_ADD": "force", "DEL": "remove"}

WORDS = """
a=1|+a=1|++a=1|~a|~a=1|~a=|a=|a.b.0.c=1|$x=1|a$b.$c=1|a-b.c_d=1|0.a=1|a.1_0=1|a/b=c|hydra/launcher=basic|hydra.run.dir=x|a@b=c|a@=c|a/b@c.d=e
a@_global_=b|+a/b@c=d|~a@b|~a/b@c=d|a.b@c=d|a@b:c=d|a@:b=c|a/b@c/d=e|a/b.c=d|a.b/c=d|a =1|a|+a|-a=1|a.-b=1|a..b=1|.a=1|a.=1|/a=1|a/=1|+++a=1
+ +a=1|a[0]=1|a@b@c=1|a:b=1|
a=-5|a=+3|a=1_000|a=007|a=1_|a=_1|a=1.|a=.5|a=-.5|a=1.e3|a=1e1_0|a=1_0.5_0|a=1e|a=e1|a=inf|a=-INF|a=nan|a=infinity|a=true|a=tRuE|a=null|a=nulls|a=none
a=x y|a= x |a=1 2|a=a:b|a=a : b|a=a\\,b|a=a\\ |a=\\\\|a=\\n|a=\\[x\\]|a=$x|a=${b.c}|a=${b}/${c}|a=a${b}|a='x'|a="x"|a='it\\'s'|a='a\\\\'|a='\\\\\\'b'|a=''|a='${b}'
a='a"b'|a='a|a='a'b|a=[]|a=[1,2.5,x,true,null]|a=[ 1 , 'b' ,[c d] ]|a=[1,]|a=[,]|a=[1|a={}|a={b:1,c:{d:[2]},e:x:y}|a={b: 1 , b:2}|a={b}|a={b:}|a={:1}
a={b c:d}|a={b\\:c:d}|a={1:x}|a={b:1|a={b:1,}|a=?/*%@|a=/x/y-z.tif|a=a,b|a=1, 2 ,x|a=1,|a=,1|a='a','b'|a=[1,2],[3]|a={b:1},c|a=a\\,b,c|~a=1,2|+a=1,2|a@b=c,d|a= ,b
a=int(3.7)|a=int(-3.7)|a=int('007')|a=int(007)|a=int(0_7)|a=int(1_)|a=int(' 12 ')|a=int('+5')|a=int('10.0')|a=int(abc)|a=int(0x10)|a=int(inf)|a=int(nan)|a=int(true)
a=int(null)|a=int()|a=int([1.5,'2',[true]])|a=int({x:1.5,y:'2'})|a=int(1.5,2.5)|a=int(choice(1.5,2.5))|a=int(range(1.5,4.5))|a=int(interval(1.5,2.5))|a=int(value=3.5)
a=int(1,value=2)|a=int(value=1,value=2)|a=int(1,value=null)|a=int(value=null)|a=int(x=1)|a=int(glob(*))|a=int([x])|a=int (3)|a=int( 3 )|a=int(3|a=int(3)x|a=int(3))|a=int(,)|a=int(3,)
a=int('')|a=int(1e3)|a=int(-0.5)|a=int(int(2.5))|a=[int(1.5),2]|a={b:int('3')}|a=int(1.5),2
a=float(1)|a=float('1e1_0')|a=float(x)|a=float('-Infinity')|a=float('NaN')|a=float('.')|a=float('1.')|a=float(true)|a=float([1,'2'])|a=float(range(1,3))|a=float(interval(1,2))
a=float(1,2)|a=float(0x1p3)|a=float(1__0)|a=float(' .5 ')
a=str(1)|a=str(1_000)|a=str(1.50)|a=str(1e-05)|a=str(1e16)|a=str(0.0001)|a=str(true)|a=str(FALSE)|a=str(inf)|a=str(x y)|a=str('x')|a=str(null)|a=str([1,[true],2.0])|a=str({x:1})
a=str(range(3))|a=str(interval(0,1))|a=str(choice(1,true))|a=str(1,x)|a=str(-0.0)|a=str()
a=bool(true)|a=bool('FALSE')|a=bool(x)|a=bool('')|a=bool(0)|a=bool(2)|a=bool(0.0)|a=bool(nan)|a=bool(yes)|a=bool([1,0,'true'])|a=bool(1,0)|a=bool(range(3))|a=bool(interval(0,1))
a=bool(null)|a=bool(' true')|a=bool(choice(0,1))
a=sort(3,1,2)|a=sort([3,1,2])|a=sort([3,1,2],reverse=true)|a=sort(3,1,2,reverse=True)|a=sort(b,a,C)|a=sort([b,a])|a=sort([])|a=sort()|a=sort(1)|a=sort(x)|a=sort(null)|a=sort({b:1})
a=sort([1,true,0.5])|a=sort([x,1])|a=sort(1,x)|a=sort([[2],[1,5],[1]])|a=sort([1],[0])|a=sort(choice(b,a))|a=sort(choice(b,1))|a=sort(range(3,1,-1))|a=sort(range(1,10,4),reverse=true)
a=sort(range(1,4))|a=sort(range(1.5,0.0,-0.5))|a=sort(list=[2,1])|a=sort(sweep=choice(2,1))|a=sort(5,list=[2,1])|a=sort(list=3)|a=sort(sweep=3)|a=sort([1],reverse=1)|a=sort(interval(0,1))
a=sort([null,null])|a=sort([null])|a=sort('b','a')|a=sort([{x:1},{x:2}])|a=sort(true,false)|a=sort([2,1],reverse=false)|a=sort(tag(x,choice(2,1)))|a=sort(range(3),reverse=true)
a=shuffle([3,1,2])|a=shuffle(3,1,2)|a=shuffle(choice(a,b,c))|a=shuffle(range(5))|a=shuffle(3)|a=shuffle(x)|a=shuffle({b:1})|a=shuffle(null)|a=shuffle(interval(0,1))|a=shuffle(list=[1,2])
a=shuffle(sweep=range(3))|a=shuffle([])|a=shuffle(sort(choice(2,1)))|a=int(shuffle(1.5,2.5))
a=choice(a)|a=choice(a,b,1,true,[x],{y:1})|a=choice()|a=choice(null)|a=choice(a,null)|a=choice(choice(a,b))|a=choice(float(1,2))|a=choice(int(choice(1,2)))|a=choice(sort(2,1))|a=choice('a b',c)
a=choice(range(3))|a=choice(interval(0,1))|a=choice(glob(*))|a=choice(a=1)|a=choice(a,)|a=choice(a b, c\\,d)|a=choice(${b},c)|a=choice (a,b)|a=choice(choice(a,b),c)|a=choice(a,b),c|a=[choice(a,b)]
a={b:choice(1,2)}|a=choice([1,2],[3])|+a=choice(a,b)|~a=choice(a,b)|a@b=choice(c,d)|a=choice(\\(x\\),y)|a=choice(a,a)|a=choice(x:y)
a=range(3)|a=range(1,4)|a=range(1,10,3)|a=range(5,0,-2)|a=range(3,1)|a=range(0)|a=range(start=1,stop=4,step=2)|a=range(1,stop=3)|a=range(stop=4)|a=range(3,start=1)|a=range(1,2,3,4)|a=range()
a=range(x)|a=range('3')|a=range(true)|a=range(null)|a=range(3,null)|a=range(1,3,null)|a=range(0,1,0.25)|a=range(0.0,3)|a=range(3.0)|a=range(0,1,0.1)|a=range(0,0.2,0.1)|a=range(0.1,0.5,0.1)
a=range(1,0,-0.25)|a=range(1e-3,1e-2,1e-3)|a=range(-1.5,1)|a=range(0,1,0)|a=range(0,1,0.0)|a=range(1,2,1e-3)|a=range([1])|a=range(-3)|a=range(-2,0.25)|a=range(0,10,3.5)|a=range(step=2,start=5)|a=range(1e20,3e20,1e20)
a=interval(0,1)|a=interval(0.5,2)|a=interval(start=0,end=1)|a=interval(0)|a=interval(0,1,2)|a=interval(a,b)|a=interval(1,end=2)|a=interval(0,stop=1)|a=tag(interval(0,1))
a=glob(*)|a=glob([a*,b*])|a=glob(*,exclude=x*)|a=glob(include=*,exclude=[x,y?])|a=glob(x,y)|a=glob()|a=glob(*,null)|a=glob('[ab]*')|a=glob(a,b,c)|a/b=glob(*)|a=tag(glob(*))
a=tag(x,choice(1,2))|a=tag(choice(1,2))|a=tag(x,y,range(3))|a=tag(x)|a=tag()|a=tag(1,choice(1,2))|a=tag(x,sweep=choice(1,2))|a=tag(sweep=choice(1,2))|a=tag(x,interval(0,1))|a=tag('x',choice(1))
a=tag(choice(1),choice(2))|a=int(tag(x,choice(1.5,2.5)))|a=foo(1)|a=foo()|a=[foo(1)]|a=Int(3)|a=json_str(x)|a=range(1,3)x|a=int(float(3))|a=sort(int(3.5,1.5))|a=float(str(3))
"""  # fmt: skip

TREE = {
    "config.yaml": "defaults:\n  - model: unet\n  - _self_\na: 1\nb: {c: 2}\ns: x\n",
    "model/unet.yaml": "name: unet\n",
    "model/vit.yaml": "name: vit\n",
    "model/vnet.yaml": "name: vnet\n",
    "model/deep/other.yaml": "name: other\n",
    "data/x.yaml": "d: x\n",
    "data/y y.yaml": "d: yy\n",
}

SWEEPS = [
    ({}, []), ({}, ["a=1"]), ({}, ["a=1,2"]), ({}, ["a=1,2", "s=x,y"]), ({}, ["a=1,2", "b.c=9", "s=choice(x,y)"]), ({}, ["a=range(3)"]),
    ({}, ["a=range(1,0,-0.25)", "b.c=1e-3,1_000"]), ({}, ["a=1,2", "a=3,4,5"]), ({}, ["a=1,2", "s=x,y", "a=7"]), ({}, ["a=7", "s=x,y", "a=1,2"]),
    ({"a": "1,2"}, []), ({"a": "1,2"}, ["s=x,y"]), ({"a": "1,2", "s": "x,y"}, ["a=5"]), ({"a": "choice(1,2)", "b.c": "range(2)"}, ["a=3,4"]),
    ({"+z": "1,2", "model": "unet,vit"}, ["a=3"]), ({"a": "5"}, []), ({}, ["model=unet,vit"]), ({}, ["model=glob(*)"]), ({}, ["model=glob(v*)"]),
    ({}, ["model=glob([u*,v*],exclude=vit)"]), ({}, ["model=glob(*,exclude=[u*,vit])"]), ({}, ["+data=glob(*)"]), ({}, ["+data=x,y\\ y"]),
    ({}, ["model=[unet,vit],vnet"]), ({}, ["+z=1,2"]), ({}, ["++a=1,2", "a=3,4"]), ({}, ["~s", "a=1,2"]), ({}, ["~a=1,1"]), ({}, ["~model", "a=1,2"]),
    ({}, ["s='1','a b',\"c'd\""]), ({}, ["s=a\\,b,c"]), ({}, ["s=[1,2],[3,'x']", "+z={a:1},{b:[2]}"]), ({}, ["s=true,null,1.50"]), ({}, ["s=${a},${b.c}"]),
    ({}, ["s='a\\'b\\\\',x"]), ({}, ["a=int(1.5,2.5)"]), ({}, ["a=sort(3,1,2,reverse=true)"]), ({}, ["a=tag(x,range(2))"]), ({}, ["a=float(range(1,3))"]),
    ({}, ["a=interval(0,1)"]), ({}, ["a=choice(1,2),3"]), ({}, ["a=1,2,"]), ({}, ["nope=1,2"]), ({}, ["model=unet,nope"]), ({"a": "1,"}, []),
    ({}, ["a=range(0,1,0)"]), ({}, ["hydra.job.name=x,y"]), ({}, ["hydra/launcher=basic,basic"]), ({}, ["s=int('3')", "a=1,2"]), ({}, ["s='x y','z'", "a=range(2)"]),
]  # fmt: skip


def stray_words(count=500):
    """Words of brackets, quotes, colons and commas in any order: most are wrong. Without blanks, parentheses and quoted map keys (above)."""
    rng, words = random.Random(13), {}
    while len(words) < count:
        pieces = rng.choices(["[", "]", "{", "}", "'", '"', ":", ",", "x", "y/z", "7", "true", "\\", "${b}"], [2] * 6 + [3, 2, 4, 2, 2, 1, 0.5, 0.5],
                             k=rng.randint(1, 8))  # fmt: skip
        word = rng.choice(["a=", "+a=", "++a=", "a/b=", "a=[", "a={x:"]) + "".join(pieces)
        if not any(quoted in word for quoted in ("{'", '{"', ",'", ',"')):
            words[word] = None
    return list(words)


def plain(value):
    """Values as JSON has them; None for what later fails."""
    if isinstance(value, (Sweep, Glob)):
        raise ValueError("values to try inside a value")
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    value = Override._convert_value(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def described(text):
    try:
        override = OverridesParser.create().parse_override(text)
        value = override._value
        row = {"action": ACTIONS[override.type.name], "key": override.key_or_group, "package": override.package}
        if override.value_type is None:
            return row
        row["kind"] = KINDS[override.value_type]
        if isinstance(value, ChoiceSweep):
            row["values"] = [plain(item) for item in value.list]
        elif isinstance(value, RangeSweep):
            row["values"] = [plain(item) for item in value.range()]
        elif isinstance(value, IntervalSweep):
            row["values"] = [plain(value.start), plain(value.end)]
        elif isinstance(value, Glob):
            row["include"], row["exclude"] = ([plain(p) for p in value.include], [plain(p) for p in value.exclude])
        else:
            row["values"] = [plain(value)]
        if "shuffle" in text:
            row["any_order"] = True
        return row
    except Exception:
        return {"error": True}


def swept(folder, params, overrides):
    try:
        with initialize_config_dir(folder, version_base="1.3"):
            loader = GlobalHydra.instance().config_loader()
            words = [f"{key}={value}" for key, value in params.items()] + overrides
            parsed = OverridesParser.create(loader).parse_overrides(words)
            if any(word.is_sweep_override() and word.is_hydra_override() for word in parsed):
                return {"error": True}  # as ConfigLoaderImpl.validate_sweep_overrides_legal
            (jobs,) = BasicSweeper.split_arguments(parsed, None)
            return {"jobs": [OmegaConf.to_container(compose("config", job), resolve=True) for job in jobs]}
    except (Exception, AssertionError):
        return {"error": True}


def main():
    warnings.simplefilter("ignore")
    words = [word for line in WORDS.strip("\n").split("\n") for word in line.split("|")] + stray_words()
    rows = [{"text": word, **described(word)} for word in words]
    with tempfile.TemporaryDirectory() as folder:
        for name, text in TREE.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        sweeps = [{"params": params, "overrides": overrides, **swept(folder, params, overrides)} for params, overrides in SWEEPS]
    parts = [",\n".join(json.dumps(row, allow_nan=False) for row in part) for part in (rows, sweeps)]
    text = f'{{"tree": {json.dumps(TREE)},\n"words": [\n{parts[0]}\n],\n"sweeps": [\n{parts[1]}\n]}}\n'
    pathlib.Path(__file__).with_name("overrides.json").write_text(text)


if __name__ == "__main__":
    main()
