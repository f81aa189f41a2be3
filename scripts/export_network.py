#!/usr/bin/env python3
"""Exports a PyTorch network for Cytra: python export_network.py my_networks:make_net --image 1,1,64,64 -o net.pt2

my_networks.py has a function or class that makes the network without arguments; --image is the shape of an image that
it takes, (N,C,H,W) or (N,C,D,H,W). `train model=exported model.file=net.pt2` then trains it. Needs torch 2.7 or later alone."""
import argparse, importlib, json, os, sys
import torch

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("network", help="MODULE:FUNCTION")
parser.add_argument("--image", required=True, help="1,1,64,64: batch, channels, sides")
parser.add_argument("--fixed-sides", action="store_true", help="the network takes images of these sides alone")
parser.add_argument("-o", "--output", default="net.pt2")
options = parser.parse_args()
sys.path.insert(0, os.getcwd())
module, function = options.network.split(":")
torch.manual_seed(0)
network = getattr(importlib.import_module(module), function)().train()  # dropout and batch norm stay in the file
shape = [int(side) for side in options.image.split(",")]
shape[0] = max(shape[0], 2)  # torch takes a batch of 1 for one that is always 1
image = torch.arange(torch.Size(shape).numel(), dtype=torch.float64).sin().float().reshape(shape)
sides = {} if options.fixed_sides else {d: torch.export.Dim.AUTO for d in range(2, len(shape))}
before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
program = torch.export.export(network, (image,), dynamic_shapes=({0: torch.export.Dim.AUTO, **sides},))
for node in program.graph.nodes:
    node.meta.pop("stack_trace", None)  # your source lines and paths
network.load_state_dict(before)
with torch.no_grad():  # what Cytra must give for this image: it is checked when the file is read
    result, again = network.eval()(image.clone()), network(image.clone())
outputs = [result] if torch.is_tensor(result) else list(result.values() if isinstance(result, dict) else result)
values = outputs[0].double().flatten()
reference = {"image": shape, "output": list(outputs[0].shape), "values": values[:: max(1, len(values) // 64)].tolist()}
once_more = [again] if torch.is_tensor(again) else list(again.values() if isinstance(again, dict) else again)
is_random = not torch.allclose(outputs[0], once_more[0], rtol=1e-3, atol=1e-5, equal_nan=True)
if is_random:
    print("forward() gives other values each time, in evaluation, too: its outputs are not compared. In Cytra dropouts drop in training alone, and by",
          "tta.dropout_samples in prediction; write F.dropout(x, p, self.training). Other random numbers are drawn in prediction, too", file=sys.stderr)
torch.export.save(program, options.output, extra_files={} if is_random else {"cytra_reference.json": json.dumps(reference)})
fixed = [d for d in range(2, len(shape)) if isinstance(next(n for n in program.graph.nodes if n.name in
         program.graph_signature.user_inputs).meta["val"].shape[d], int)]
print(f"{options.output}: {sum(p.numel() for p in network.parameters()):,} parameters, {len(program.graph.nodes)} calls,",
      f"sides {'of this image alone: ' + str([shape[d] for d in fixed]) if fixed else 'of any size that the network takes'}")
