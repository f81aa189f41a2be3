#!/usr/bin/env python3
"""Checks files of configs/ against the schemas that the programs print, with python's jsonschema.

check_schema.py SCHEMAS CONFIGS: SCHEMAS holds PROGRAM.json and PROGRAM.GROUP.json. Exit code 77: jsonschema or yaml
(Debian: python3-jsonschema, python3-yaml) is not installed.
"""
import json
import pathlib
import re
import sys

try:
    import jsonschema
    import yaml
except ImportError as error:
    print(error)
    sys.exit(77)


class Loader(yaml.SafeLoader):
    """1e-3 is a number, as OmegaConf and editors read it."""


Loader.yaml_implicit_resolvers = {key: list(value) for key, value in yaml.SafeLoader.yaml_implicit_resolvers.items()}
for first in "-+0123456789.":
    Loader.yaml_implicit_resolvers.setdefault(first, []).insert(
        0, ("tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$")))

# program, group, text, whether an editor must mark it
CASES = [
    ("train", "experiment", "trainer: {max_epochs: 3}", True),
    ("train", "experiment", "defaults: [override /optimizer: sgd]\npatch_shape: [8, 8]\nmine: 1", True),
    ("train", "experiment", "trainer: {max_epoch: 3}", False),
    ("train", "experiment", "trainer: {max_epochs: three}", False),
    ("train", "experiment", "trainer: {max_epochs: '${epochs}'}", True),
    ("train", "experiment", "trainer:\n  max_epochs: ???", True),
    ("train", "experiment", "trainer: {max_epochs: -2}", False),
    ("train", "experiment", "trainer: {accelerator: tpu}", False),
    ("train", "experiment", "trainer: {precision: 32}", True),
    ("train", "experiment", "optimiser: {lr: 1e-3}", False),
    ("train", "experiment", "_shared: {lr: 1e-3}", True),
    ("train", "experiment", "optimizer: {lr: 1e-3}", True),
    ("train", "experiment", "optimizer: {learning_rate: 1e-3}", False),
    ("train", "experiment", "optimizer: {_target_: SGD, momentum: 0.9}", True),
    ("train", "experiment", "optimizer: {_target_: Adam, momentum: 0.9}", False),
    ("train", "experiment", "optimizer: {_target_: torch.optim.Adam, _partial_: true}", True),
    ("train", "experiment", "optimizer: {_target_: Adamm}", False),
    ("train", "experiment", "optimizer: {_args_: [1]}", False),
    ("train", "experiment", "task: {loss: {_target_: DiceCELoss, reduction: sum}}", True),
    ("train", "experiment", "task: {loss: {_target_: DiceCELoss, reduction: median}}", False),
    ("train", "experiment", "task: {inference_args: {overlap: 0.5, roi_size: [1, 2]}}", True),
    ("train", "experiment", "task: {inference_args: {over_lap: 0.5}}", False),
    ("train", "experiment", "data: {transforms: {train: [{_target_: LoadImaged, keys: raw}]}}", True),
    ("train", "experiment", "data: {transforms: {train: [{_target_: LoadImaged}]}}", False),
    ("train", "experiment", "data: {transforms: {train: [{keys: raw}]}}", False),
    ("train", "experiment", "data: {transforms: {trian: []}}", False),
    ("train", "experiment", "data: {_aux: {patch_shape: [1, 2]}}", True),
    ("train", "experiment", "callbacks: {early_stopping: null, mine: {_target_: EarlyStopping, patience: 2}}", True),
    ("train", "experiment", "callbacks: {mine: {_target_: EarlyStopping, patients: 2}}", False),
    ("train", "experiment", "logger: null", True),
    ("train", "experiment", "tags: [a]\ntest: true\nextras: {print_config: true}", True),
    ("train", "model", "_target_: DynUNet\nfilters: [8, 16, 32]\nchannels_last: null", True),
    ("train", "model", "defaults: [dynunet]\nfilters: 8", True),
    ("train", "model", "_target_: DynUNet\nfilter: [8]", False),
    ("train", "model", "filter: [8]", False),
    ("train", "model", "_target_: DynUNet\nkernel_size: [[3, 3], 3]", True),
    ("train", "model", "_target_: DynUNet\nkernel_size: [[3, x]]", False),
    ("train", "trainer", "max_steps: 10\naccelerator: cpu", True),
    ("train", "trainer", "max_step: 10", False),
    ("predict", "experiment", "inference_args: {overlap: null, mode: constant}", True),
    ("predict", "experiment", "inference_args: {mode: linear}", False),
    ("predict", "predict", "save: probability", True),
    ("predict", "predict", "save: masks", False),
]


def main(schemas, configs):
    validators = {}
    for path in sorted(pathlib.Path(schemas).glob("*.json")):
        schema = json.loads(path.read_text())
        jsonschema.Draft7Validator.check_schema(schema)
        validators[path.stem] = jsonschema.Draft7Validator(schema)
    failures = files = 0
    for path in sorted(pathlib.Path(configs).rglob("*.yaml")):
        parts = path.relative_to(configs).parts
        name = parts[0][:-len(".yaml")] if len(parts) == 1 else "train." + parts[0]
        text = path.read_text()
        if text.startswith("# @package _global_"):  # keys of the whole program, whatever the group
            name = "train.experiment"
        files += 1
        for error in validators[name].iter_errors(yaml.load(text, Loader)):
            failures += 1
            print(f"{path}: {'.'.join(map(str, error.absolute_path))}: {error.message[:300]}")
    for program, group, text, is_valid in CASES:
        errors = list(validators[f"{program}.{group}"].iter_errors(yaml.load(text, Loader)))
        if (not errors) != is_valid:
            failures += 1
            print(f"{program} {group}: {text!r} should be {'valid' if is_valid else 'marked'}: {[e.message for e in errors]}")
    print(f"{files} files, {len(CASES)} cases, {failures} failures")
    return 1 if failures or files < 10 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
