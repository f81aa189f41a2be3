#!/usr/bin/env python3
"""Writes profile.json: what torch.profiler counts in a small sequence of operations.

    build/peers-venv/bin/python tests/golden/make_profile.py

calls: how often each name is in key_averages(); cpu_memory, self_cpu_memory: bytes. The sequence is
that of tests/perf/operator_profile_test.cpp; what it makes is kept, so that nothing is given back.
"""
import json
import pathlib

import torch
from torch.profiler import ProfilerActivity, profile, record_function


def main():
    image = torch.ones(2, 3, 8)
    weight = torch.ones(4, 8, requires_grad=True)
    matrix = torch.ones(16, 32)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as recorded:
        kept = [torch.mm(matrix, matrix.t()), torch.add(matrix, matrix), torch.relu(matrix)]
        kept.append(torch.ones(5, 7))
        for _ in range(2):
            with record_function("forward"):
                loss = torch.relu(torch.matmul(image, weight.t())).to(torch.float64).mean()
            loss.backward(torch.ones((), dtype=torch.float64))
        kept.append(torch.softmax(matrix, 1))
    rows = {row.key: row for row in recorded.key_averages() if row.key != "[memory]"}
    memory = ["aten::mm", "aten::add", "aten::ones", "aten::softmax", "aten::_softmax"]
    golden = {
        "torch": torch.__version__,
        "calls": {name: row.count for name, row in sorted(rows.items())},
        "cpu_memory": {name: rows[name].cpu_memory_usage for name in memory},
        "self_cpu_memory": {name: rows[name].self_cpu_memory_usage for name in memory},
    }
    path = pathlib.Path(__file__).with_name("profile.json")
    path.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
