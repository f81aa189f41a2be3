"""Writes interpolation.json: how OmegaConf 2.3 with Hydra 1.3.8's functions resolves small documents, what Hydra
composes when maps merge onto references, and what Python makes of expressions. Needs hydra-core==1.3.8.

kv_to_dict and eval are registered as CytoDL does. Where we differ on purpose, so that no case may ask for it:
- keys of maps are text: {1: a} prints as {'1': 'a'}, and ${m.1} finds the key 1; OmegaConf finds no integer key by text;
- integers have 64 bits: longer ones become floats in documents and are errors in expressions;
- expressions are a small part of Python's (is_ours()); `/` of integers over 2^53 divides them as real numbers;
- ${hydra:key} of a missing key is an error, where Hydra gives null; ${python_version:} is refused;
- what is merged onto ${oc.dict.values:..} may be a scalar, where Hydra complains of the list's type.
"""

import ast
import json
import math
import os
import pathlib
import re
import tempfile
import warnings

from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import setup_globals
from omegaconf import ListConfig, OmegaConf

ENVIRONMENT = {"CYTRA_GOLDEN_NUMBER": "5", "CYTRA_GOLDEN_TEXT": "a b", "CYTRA_GOLDEN_EMPTY": ""}
N, T, E, U = "CYTRA_GOLDEN_NUMBER", "CYTRA_GOLDEN_TEXT", "CYTRA_GOLDEN_EMPTY", "CYTRA_GOLDEN_UNSET"

# One value `t` beside these others; most cases need no more.
BASE = "a: {b: 1, c: [1, two, {d: 3.5}], n: null, r: '${.b}', up: '${..k}'}\nk: b\nks: a.b\ntrue_: true\nm: ???\nf: 1e-5\n"
VALUES = [
    # References.
    "${a.b}", "${a}", "${a.c}", "${a.c.1}", "${a.c[1]}", "${a[c][2].d}", "${[a][b]}", "${[a].b}", "${a[b]}", "${ a.b }", "${\ta.b\t}",
    "${a.r}", "${a.up}", "${a.n}", "${.a.b}", "${..a}", "${a.c.01}", "${a.c.+1}", "${a.c.-1}", "${a.c.3}", "${a.c.x}", "${a.b.x}", "${a.n.x}",
    "${nope}", "${a.nope}", "${m}", "${m.x}", "${}", "${.}", "${a.}", "${a..b}", "${a b}", "${a", "${a}}", "${a.[b]}", "${a[]}", "${a[b}", "${a]}",
    "${a.${k}}", "${a[${k}]}", "${${ks}}", "${${k}}", "${a.${a.b}}", "${a.c.${a.b}}", "${a_${k}}", "${${k}_a}", "${a.b$}", "$a", "${a{b}}", "${a.'b'}",
    "${a.b}${k}", "x${a.b}", "${a.b} ", " ${a.b}", "${true_} ${a.n} ${f}", "${a.c}!", "${a}!", "x${m}", "${a.c.2} and ${a.c.0}", "$${k}", "${k}$", "{${k}}",
    # Escapes.
    "\\${a.b}", "\\\\${a.b}", "\\\\\\${a.b}", "x\\y${k}", "\\\\x${k}", "${k}\\", "${k}\\\\", "\\$${k}", "\\${${k}}", "\\${a", "\\\\${a",
    # Arguments: types, quotes, containers.
    "${oc.create:[1, -2, +3, 1.5, 1e3, 1_000, .5, 1., inf, -nan, true, FALSE, null, abc, a b, 007, 1 2, a-b, 1x, 0x1F, 1e1_0]}",
    "${oc.create:['1', \"x\", '', 'a\\'b', \"a\\\"b\", 'a\\\\', 'a\\nb', '\\\\${k}', '\\${k}', 'x${k}', '${a.b}', 'a, b', '[x]', '}', '\"']}",
    "${oc.create:[\\,, \\[\\], a\\:b, a:b, \\{\\}, \\ x, x\\ , \\\\, \\a, \\(\\), a\\=b]}", "${oc.create:[/x/y-z.tif, 50%, $x, *, @, ?, |, a+b, -, .]}",
    "${oc.create:{a: 1, b: [x, {c: y}], c: {}, d: '', e: '${k}', f: ${a.b}, 'g': 1}}", "${oc.create:{a: 1, b: [x, {c: y}], c: {}, d: '', e: '${k}', f: ${a.b}}}",
    "${oc.create:{a: 1, a: 2}}", "${oc.create:{a b: 1, null-x: 2}}", "${oc.create:{null: 1}}", "${oc.create:[[{null: 1}]]}", "${oc.create:{a: 1,}}", "${oc.create:{a}}",
    "${oc.create:{${k}: 1}}", "${oc.create:[1,]}", "${oc.create:[,1]}", "${oc.create:[1,,2]}", "${oc.create:[ ]}", "${oc.create:{ }}", "${oc.create:[1 , 2 ]}",
    "${oc.create:[a=b]}", "${oc.create:[a#b]}", "${oc.create:[\u00e9]}", "${oc.create:['\u00e9']}", "${oc.create:['a'b]}", "${oc.create:['a' ]}", "${oc.create:['a]}", "${oc.create:[a}",
    "${oc.create:[${a}]}", "${oc.create:[${a.c}, x${a.c}]}", "${oc.create:${a}}", "${oc.create:${a.c}}", "${oc.create:null}", "${oc.create:5}", "${oc.create:true}",
    "${oc.create:abc}", "${oc.create:''}", "${oc.create:'[1, {a: b}]'}", "${oc.create:'a: \\${k}'}", "${oc.create:'a: [1'}", "${oc.create:\"\\${.z}\"}", "${oc.create:{x: '\\${.y}', y: 2}}",
    "${oc.create:{x: '\\${..k}', y: '\\${a.b}'}}", "${oc.create:['\\${.1}', 4]}", "${oc.create:['\\${nope}']}", "${oc.create:['\\${a']}", "${oc.create:1,2}",
    # Functions.
    f"${{oc.env:{N}}}", f"${{oc.env:{T}}}", f"${{oc.env:{E}}}", f"${{oc.env:{U}}}", f"${{oc.env:{U},1.50}}", f"${{oc.env:{U},true}}", f"${{oc.env:{U},null}}", f"${{oc.env:{U},}}",
    f"${{oc.env:{U},[1,a,{{b: null}}]}}", f"${{oc.env:{U},${{a}}}}", f"${{oc.env:{U},${{a.n}}}}", f"${{oc.env:{U},'${{a.n}}'}}", f"${{oc.env:{N},${{nope}}}}", "${oc.env:5}", "${oc.env:}", f"${{oc.env:{N},1,2}}",
    f"${{oc.decode:${{oc.env:{N}}}}}", f"${{oc.decode:${{oc.env:{U},null}}}}", "${oc.decode:'1'}", "${oc.decode:' 1'}", "${oc.decode:'[1, {a: ${k}}]'}", "${oc.decode:'\\${a.b}'}", "${oc.decode:'${a.b}'}",
    "${oc.decode:'{a: [}'}", "${oc.decode:''}", "${oc.decode:' '}", "${oc.decode:5}", "${oc.decode:abc}", "${oc.decode:'null'}", "${oc.decode:null}", "${oc.decode:\"'x'\"}", "${oc.decode:'}'}", "${oc.decode:${a}}",
    "${oc.select:a.b}", "${oc.select:a}", "${oc.select:a.nope}", "${oc.select:a.nope,5}", "${oc.select:nope.x,[1]}", "${oc.select:m}", "${oc.select:m,7}", "${oc.select:m.x,7}", "${oc.select:a.n}", "${oc.select:a.n,7}",
    "${oc.select:a.n.x,7}", "${oc.select:a.b.x,7}", "${oc.select:a.c.9,7}", "${oc.select:a.c.x,7}", "${oc.select:.a.b}", "${oc.select:...a}", "${oc.select:a[c].1}", "${oc.select:${ks}}", "${oc.select:nope,${k}}", "${oc.select:5}",
    "${oc.select:nope,null}", "${oc.select:nope,${nope}}", "x${oc.select:''}", "${oc.select:t2,3}", "${oc.select:a.c.2.d}",
    "${oc.dict.keys:a}", "${oc.dict.values:a}", "${oc.dict.keys:a.c}", "${oc.dict.keys:k}", "${oc.dict.keys:nope}", "${oc.dict.keys:${a}}", "${oc.dict.values:.a}", "${oc.dict.values:a.c.2}", "${oc.dict.keys:m}", "x${oc.dict.keys:a}",
    "x${oc.dict.values:a}", "${oc.deprecated:a.b}", "${oc.deprecated:a}", "${oc.deprecated:nope}", "${oc.deprecated:m}", "${oc.deprecated:a.r,'use $NEW_KEY, not ${k} $OLD_KEY'}", "${oc.deprecated:5}",
    "${kv_to_dict:${a}}", "${kv_to_dict:[[a, {b: 1}]]}", "${kv_to_dict:a}", "${nope:1}", "${oc.nope:1}", "${oc.${k}:1}", "${oc.env}", "${${k}:1}", "${oc.select :a.b}", "${ oc.select : a.b }", "${oc.select:a.b}${k}", "${1x:2}", "${.x:1}",
    "${eval:'1 + ${a.b}'}", "${eval:2*3}", "${eval:5}", "${eval:true}", "${eval:None}", "${eval:'None if ${a.b}==3 else 38'}", "${eval:'\"ZYX\" if \"${k}\"==\"b\" else \"YX\"'}", "x${eval:'[1, [2]]'}", "${eval:'1/0'}", "${eval:'nope'}",
    "${eval:'[1, ${a.c.2.d}]'}", "${eval:'len(\"${k}\") > 0 and ${true_}'}",
]  # fmt: skip
DOCUMENTS = [
    "a: ${b}\nb: {x: 1, y: '${a.x}'}\n", "a: ${b}\nb: {y: '${a.y}'}\n", "a: ${b.c}\nb: {c: '${a}'}\n", "a: {c: '${a}'}\n", "a: {c: 'x${a}'}\n", "a: {c: 'x${oc.select:a}'}\n", "a: {x: '${b}'}\nb: {y: '${a}'}\n",
    "a: {x: '${b}'}\nb: {y: 'z${a}'}\n", "a: ${a}\n", "a: ${.b}\nb: ${.c}\nc: ${a}\n", "a: {b: ${c}}\nc: {d: '${..k}', k: 1}\nk: 2\ne: ${a.b.d}\n", "x: {p: '${..q}', r: '${.q}', q: 1}\ny: {z: '${x}', q: 7}\nq: 5\n",
    "x: {y: {z: '${...k}'}}\nk: 1\nw: {x: ${x.y}}\n", "x: {y: {z: '${....k}'}}\nk: 1\n", "a: [1, '${.0}', ['${..0}', '${.0}']]\n", "l: ['${..m}', {a: '${..1.b}'}]\nm: 3\n", "l: [5, {b: '${..0}', c: '${...k}'}]\nk: x\n",
    "a: ${b}\nb: ${c}\nc: ???\n", "a: ${b.x}\nb: ${c}\nc: {x: ???}\n", "a: {x: ???}\nb: ${a}\nc: x${a}\n", "m: ???\na: ${oc.deprecated:m}\nb: ${a}\nc: ${oc.select:a,3}\n",
    "d: {p: 1, q: '${.p}', r: {s: '${..p}'}}\nk: ${oc.dict.keys:d}\nv: ${oc.dict.values:d}\nw: {v: '${oc.dict.values:..d}', d: {z: '${..e}'}, e: 4, y: '${oc.dict.values:.d}'}\nz: ${v.1}\n",
    "d: {'a b': 1}\nv: ${oc.dict.values:d}\n", "d: {a.b: 1}\nv: ${oc.dict.values:d}\n", "d: {a.b: 1}\nk: ${oc.dict.keys:d}\nv: ${d[a.b]}\n", "d: {}\nv: ${oc.dict.values:d}\n",
    "c: {y: 3, b: '${oc.create:${..a}}'}\na: {x: '${.y}', y: 2, z: '${..k}'}\nk: 1\n", "a: ${oc.create:{x: [1]}}\nb: ${a.x.0}\nc: t${a}\n", "a: \"${oc.decode:'[1]'}\"\nb: ${a.0}\n", "a: \"${oc.decode:'[1]'}\"\nb: ${oc.select:a.0,7}\nc: x${a}\n",
    "a: \"${oc.decode:'${..b}'}\"\nb: 3\n", "x: {a: \"${oc.decode:'\\\\${..b}'}\"}\nb: 3\n", "kv: [[a, {x: '${k}'}], ['${k}', [1, '${..0.0}']], [a, {y: 2}]]\nk: b\nd: ${kv_to_dict:${kv}}\ne: ${d.a.y}\nf: t${d}\n", "kv: [[a, 1]]\nd: ${kv_to_dict:${kv}}\n",
    "kv: [[a]]\nd: ${kv_to_dict:${kv}}\n", "kv: [{a: 1, b: 2}]\nd: ${kv_to_dict:${kv}}\n", "kv: []\nd: ${kv_to_dict:${kv}}\n", "kv: [[???, {x: 1}]]\nd: ${kv_to_dict:${kv}}\n", "kv: [[a, {x: ???}]]\nd: ${kv_to_dict:${kv}}\n", "kv: [[1, {x: 1}], [true, {y: 1}], [1.5, []]]\nd: ${kv_to_dict:${kv}}\n",
    "hydra: {run: {dir: 'o/${name}'}, job: {num: ???, id: null}}\nname: n\na: ${hydra:run.dir}\nb: ${hydra:run}\nc: ${hydra:job.num}\nd: ${hydra:job.id}\ne: x${hydra:run}\nf: ${hydra:..name}\n", "a: ${hydra:}\nhydra: {}\n", "a: ${hydra:5}\nhydra: {}\n",
    "s: [it's, 'a\"b', 'a''\"b', \"a\\tb\\n\\\\\", \"\\u00e9 \\u200b \\u0001 \\u3000 \\U0001F600\", '', ' ']\nt: x${s}\n", "v: [1e16, 1e15, 123456789.125, 1e-4, 0.00001, -0.0, .inf, .nan, 1., yes, ~, 010, 1e22, 5e-324]\nt: x${v}\nu: ${v.0} ${v.6} ${v.4}\n",
    "d: {a: {b: [1, {c: '${x}'}]}, e: {}, l: []}\nx: 1\nt: x${d}\nu: '${d.e}${d.l}'\n", "a: ${b.c}\nb: ${oc.create:{c: '\\${..e}', d: 1}}\ne: 9\n", "a: {b: '${c}'}\nc: {d: '${oc.select:.e,4}', e: '${oc.select:..f}'}\nf: 6\n", "a: \"${eval:'[1, 2]'}\"\nb: ${a}\nc: ${a.0}\n",
    "k: a.b\nr: .x\nx: 1\na: {b: 5}\nt: ${${k}}\nu: ${${r}}\n", "a: 'x${b}'\nb: '\\${c}'\nd: ${b}\ne: {f: '${..b}'}\n", "a: 1\nb: '${a'\n", "a: {b: '${c d}'}\nc: 1\n", "a: ${oc.env:\"CYTRA_GOLDEN_UNSET\",'${b}, ${c}'}\nb: 1\nc: [x]\n", "f: ${oc.dict.keys:g}\ng: ${h}\nh: {x: 1}\n",
]  # fmt: skip
# Files merged in order by Hydra.
MERGES = [
    ["m: {p: 1, q: {r: 2}}\na: ${m}\n", "a: {q: {s: 3}}\nm: {p: 9}\n"], ["m: {p: 1}\nx: {a: '${..m}'}\n", "x: {a: {q: 2}}\n"], ["m: {p: '${.q}', q: 1}\na: ${m}\n", "a: {q: 5}\n"], ["m: {p: '${..k}'}\nx: {a: '${m}', k: 1}\nk: 2\n", "x: {a: {q: 5}}\n"],
    ["m: {n: {p: 1}}\nk: n\na: ${m.${k}}\n", "a: {q: 5}\n"], ["m: {p: 1}\na: ${oc.select:m}\nb: ${oc.select:z,{y: 1}}\nc: ${oc.create:{u: '${k}'}}\nk: 1\n", "a: {q: 5}\nb: {q: 5}\nc: {q: 5}\n"], ["kv: [[x, {y: 1}]]\na: ${kv_to_dict:${kv}}\n", "a: {x: {z: 2}}\n"],
    ["m: {p: 1}\na: x${m}\nb: \\${m}\nc: ${nope}\nd: ${k}\nk: 1\n", "a: {q: 5}\nb: {q: 5}\nc: {q: 5}\nd: {q: 5}\n"], ["m: {p: 1}\na: ${m}\n", "a: ???\n", "m: {p: 2}\n"], ["m: {p: 1}\na: ${b}\nb: ${m}\n", "a: {q: 1}\n"], ["m: [1]\na: ${m}\n", "a: {q: 1}\n"], ["m: [1]\na: ${m}\n", "a: [2]\n"],
    ["m: {p: 1}\na: ${m}\n", "a: [2]\n"], ["m: {p: 1}\na: ${m}\n", "a: null\n"], ["a: ${a}\n", "a: {q: 1}\n"], ["m: {p: ???}\na: ${m.p}\n", "a: {q: 1}\n"], ["m: {p: {r: '${...a}'}}\na: {s: '${m.p}'}\n", "a: {s: {t: 1}}\n"],
]  # fmt: skip
EXPRESSIONS = [
    # Numbers.
    "1", "-1", "+1", "1.5", ".5", "1.", "1e3", "1E-3", "1_000", "1_0.5_0", "0x1F", "0o17", "0b101", "0x_f", "00", "007", "1__0", "1_", "1.2.3", "1e", "1j", "9223372036854775807", "9223372036854775808", "1e400", "1e-400", "0xg",
    "1+2", "1 + 2 * 3", "(1 + 2) * 3", "7 / 2", "6 / 2", "7 // 2", "-7 // 2", "7 // -2", "-7 % 3", "7 % -3", "7.5 // 2", "-7.5 // 2", "7.5 % 2", "-7.5 % 2", "7.5 % -2", "5 % 0.3", "1e20 // 3", "-0.0 // 1", "1 / 3", "1 / 0", "1 // 0", "1 % 0", "1.0 / 0",
    "2 ** 10", "2 ** -1", "2 ** 0.5", "-2 ** 2", "(-2) ** 2", "2 ** 3 ** 2", "2 ** 62", "2 ** 63", "0 ** 0", "0 ** -1", "0.0 ** -1", "(-8) ** (1/3)", "10.0 ** 400", "(-1) ** 1000001", "1 ** 999999999999", "3 ** 40", "(-2) ** 63", "9223372036854775807 + 1", "9223372036854775807 * 2",
    "-9223372036854775807 - 1", "(-9223372036854775807 - 1) // -1", "9223372036854775807 / 9223372036854775806", "123456789012345678 / 1000000007", "1e308 * 10", "1 - 0.9", "0.1 + 0.2", "1e16", "1e15", "123456789.125", "1 + True", "True + True", "-True", "+False", "--1", "- - -2", "2 - -2",
    "1.0", "100000000000000000000.0", "3 * 1.0", "7 // 2.0", "1e3 == 1000", "1/2/2", "2*3%4", "2+3-4", "1 << 2", "~1", "1 & 2", "1 | 2", "1 ^ 2", "1 +", "* 2", "1 2", "()", "(1", "1)", "", "   ", " 1", "1 ", "\t1", "1\n", "(1 +\n 2)", "1 # one",
    # Text.
    "'a'", '"a"', "'it\\'s'", '"it\'s"', "'a\\n\\t\\\\b'", "'\\x41\\u00e9\\U0001F600\\101'", "'\\q'", "'a' 'b'", "'''a'b'''", "'a' + 'b'", "'a' * 3", "3 * 'ab'", "'a' * -1", "'a' * 1.5", "'a' + 1", "'a' - 'b'", "-'a'", "'abc'[0]", "'abc'[-1]", "'abc'[3]", "'abc'['a']", "'h\u00e9llo'[1]", "len('h\u00e9llo')",
    "'a' < 'b'", "'a' < 'B'", "'a' == 'a'", "'a' != \"a\"", "'b' in 'abc'", "'x' not in 'abc'", "1 in 'abc'", "'' in 'abc'", "'a' < 1", "'a", "\"a'", "'\\x4'", "'a\nb'", "r'a'", "f'a'", "b'a'", "''", "'\\u00e9' == '\u00e9'",
    # Names and logic.
    "True", "False", "None", "true", "nope", "None == None", "None is None", "1 is not None", "True and False", "True or nope", "False and nope", "1 and 2", "0 or 'x'", "'' or [] or 0", "not 1", "not not 'x'", "not None", "not 1 == 2", "1 if True else 2", "1 if 0 else 2", "1 if True else nope", "nope if False else 3",
    "1 if 0 else 2 if 0 else 3", "(1 if True else 2) + 3", "1 if True", "1 == 1", "1 == 1.0", "1 == True", "1 == '1'", "1 != 2", "1 < 2 < 3", "1 < 3 < 2", "3 > 2 > 1 > 0", "1 < 2 > 1", "2 < 1 < nope", "1 < 'a'", "None < 1", "1 <= 1 >= 1", "1 = 2", "1 === 2", "1 <> 2", "1 < 2 == True", "9007199254740993 == 9007199254740992.0",
    "9007199254740993 > 9007199254740992.0", "float('nan') == float('nan')", "float('inf') > 9223372036854775807", "1 < float('nan')", "True == 1.0", "False < True", "a if b else c", "lambda: 1", "print(1)", "__import__('os')", "'a'.upper()", "[].append(1)", "x := 1", "1; 2", "import os", "1 if True else 2 if nope else 3",
    # Containers.
    "[1, 2]", "[]", "[1,]", "[1, [2, 'a']]", "(1, 2)", "(1,)", "1, 2", "1,", "[,]", "[1 2]", "[1, 2][0]", "[1, 2][-1]", "[1, 2][2]", "[[1, 2], [3]][0][1]", "(1, 2)[1]", "[1, 2][True]", "[1][1.0]", "[1] + [2]", "[1] + (2,)", "(1,) + (2,)", "[0] * 3", "2 * [1, 2]", "[1] * 0", "[1] == [1]", "[1] == (1,)", "[1, 2] < [1, 3]", "[1] < [1, 0]",
    "1 in [1, 2]", "3 not in (1, 2)", "[1] in [[1]]", "1 in 1", "[1, 2] if [] else (3, [4])", "5[0]", "None[0]", "[1, 2][0:1]", "{}", "{'a': 1}", "{1}", "[x for x in [1]]", "*[1]", "[*[1]]", "str((1,))", "str([1, 'a', None, True, 1.5])", "str({})", "[1, 'a'] == [1.0, 'a']",
    # Functions.
    "int(3.7)", "int(-3.7)", "int('12')", "int(' +1_2 ')", "int('1.5')", "int('0x1F')", "int('')", "int(True)", "int(None)", "int([1])", "int(1e30)", "int(float('nan'))", "int()", "int('12', 8)", "float(3)", "float('1.5')", "float('1e3')", "float(' -inf ')", "float('1_0.5')", "float('x')", "float('')", "float(True)", "float('Infinity')", "float('0x1')", "float()", "float(None)",
    "str(1)", "str(1.0)", "str(1e-5)", "str(True)", "str(None)", "str('a')", "str()", "str(1, 2)", "len([1, 2])", "len('')", "len((1,))", "len(1)", "len()", "len([1], [2])", "min(1, 2)", "max(1, 2)", "min([3, 1, 2])", "max('abc')", "min('b', 'a')", "max(1, 1.0)", "max(1.0, 1)", "min(1)", "min([])", "min()", "max(1, 'a')", "min((2, 1))", "max([[1, 2], [1, 3]])",
    "abs(-1)", "abs(-1.5)", "abs('a')", "abs(True)", "abs(-0.0)", "abs()", "abs(1, 2)", "round(2.5)", "round(3.5)", "round(-2.5)", "round(2.675, 2)", "round(0.5)", "round(1.15, 1)", "round(1234, -2)", "round(1250, -2)", "round(1350, -2)", "round(15, -1)", "round(25, -1)", "round(-25, -1)", "round(1234.5, -2)", "round(1250.0, -2)", "round(2.5, 0)", "round(2.5, None)", "round(7)", "round(True)", "round('a')",
    "round(1e300, 2)", "round(1.5, 'a')", "round(float('inf'))", "round(123.456, 400)", "round(5, -400)", "round(5.5, -400)", "round(0.05, 1)", "round(55.0, -1)", "sum([1, 2])", "sorted([2, 1])", "bool(1)", "pow(2, 3)", "list('ab')", "int", "int (3)", "min(1,)", "min(1, key=2)",
]  # fmt: skip


def kv_to_dict(pairs):
    if not isinstance(pairs, ListConfig):
        raise TypeError("not a list of the configuration")
    result = {}
    for pair in pairs:
        assert len(pair) == 2
        result[pair[0]] = OmegaConf.to_container(pair[1], resolve=True)
    return OmegaConf.create(result)


def plain(value):
    """As our JSON: text for inf and nan, keys as text."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else json.dumps(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def too_long(value):
    if isinstance(value, (list, tuple)):
        return any(map(too_long, value))
    return isinstance(value, complex) or isinstance(value, int) and not -(2**63) <= value < 2**63


def row(text, make):
    try:
        return {"text": text, "expected": plain(make(text))}
    except Exception:
        return {"text": text, "error": True}


def resolve(text):
    config = OmegaConf.create(text)
    HydraConfig.instance().cfg = config
    return OmegaConf.to_container(config, resolve=True)


def merge(files):
    HydraConfig.instance().cfg = None
    with tempfile.TemporaryDirectory() as folder:
        for i, text in enumerate(files):
            pathlib.Path(folder, f"f{i}.yaml").write_text(text)
        names = "".join(f"  - f{i}\n" for i in range(len(files)))
        pathlib.Path(folder, "config.yaml").write_text("defaults:\n" + names)
        with initialize_config_dir(folder, version_base="1.3"):
            return OmegaConf.to_container(compose("config"), resolve=True)


def is_ours(text):
    """Whether it is of the small part of Python that eval has, as far as the text alone tells."""
    functions = ["float", "int", "len", "max", "min", "str"]
    for node in ast.walk(ast.parse(text.strip(" \t"), mode="eval")):
        if not isinstance(node, OURS) or (isinstance(node, ast.Call) and getattr(node.func, "id", "") not in functions):
            return False
    return text not in NOT_OURS and not re.search(r"\b0[xob0]|\\|' '|'''|#|\br'", text)


def evaluate(text):
    value = eval(text, {"true": True, "false": False, "null": None})  # the reference itself, with our three words
    if not is_ours(text) or not isinstance(value, (int, float, str, list, type(None))) or too_long(value):
        raise ValueError(text)
    return value


OURS = (ast.Expression, ast.Constant, ast.List, ast.Name, ast.Load, ast.Call, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.UAdd, ast.USub,
        ast.Not, ast.And, ast.Or, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)  # fmt: skip
# Operators of texts and lists that eval has for numbers alone, and functions without the arguments that eval needs.
NOT_OURS = ["'a' * 3", "3 * 'ab'", "'a' * -1", "[0] * 3", "2 * [1, 2]", "[1] * 0", "[1, 2] < [1, 3]", "[1] < [1, 0]", "max('abc')", "max([[1, 2], [1, 3]])",
            "int()", "float()", "str()", "int('12', 8)"]  # fmt: skip


def main():
    warnings.simplefilter("ignore")
    os.environ.update(ENVIRONMENT)
    os.environ.pop(U, None)
    setup_globals()
    OmegaConf.register_new_resolver("kv_to_dict", kv_to_dict)
    OmegaConf.register_new_resolver("eval", eval)
    documents = [BASE + "t: " + json.dumps(value) + "\n" for value in VALUES] + DOCUMENTS
    sections = {
        "documents": [row(text, resolve) for text in documents],
        "merges": [row(files, merge) for files in MERGES],
        "expressions": [row(text, evaluate) for text in EXPRESSIONS],
    }
    lines = [f'"environment": {json.dumps(ENVIRONMENT)}', f'"unset": {json.dumps(U)}']
    for name, rows in sections.items():
        lines.append(f'"{name}": [\n' + ",\n".join(json.dumps(row, allow_nan=False) for row in rows) + "\n]")
        print(name, len(rows), "of these errors:", sum("error" in row for row in rows))
    (pathlib.Path(__file__).parent / "interpolation.json").write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
