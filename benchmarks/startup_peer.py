"""A training program as people write them with Hydra, Lightning and MONAI: the peer of Cytra's `train`."""
import csv
from pathlib import Path

import hydra
import lightning
import monai.transforms
import tifffile
import torch
from monai.data import Dataset
from omegaconf import DictConfig


class Segmentation(lightning.LightningModule):
    def __init__(self, net, loss, optimizer):
        super().__init__()
        self.net, self.loss, self.make_optimizer = net, loss, optimizer

    def training_step(self, batch, _):
        return self.loss(self.net(batch["raw"]), batch["seg"])

    def configure_optimizers(self):
        return self.make_optimizer(self.net.parameters())


class ReadTiff(monai.transforms.MapTransform):
    """The plane as (1, Y, X) float32; the shortest way from these files to a tensor."""

    def __call__(self, sample):
        images = {k: torch.from_numpy(tifffile.imread(sample[k]).squeeze()[None].astype("float32")) for k in self.keys}
        return {**sample, **images}


def read_manifest(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return [{k: str(Path(path).parent / row[k]) for k in ("raw", "seg")} for row in rows]


def make_loader(path, batch_size, transforms):
    compose = monai.transforms.Compose([hydra.utils.instantiate(t) for t in transforms])
    dataset = Dataset(read_manifest(Path(path) / "train.csv"), compose)
    # no workers: to start them takes longer than to load one batch
    return torch.utils.data.DataLoader(dataset, batch_size, shuffle=True, num_workers=0, drop_last=True)


@hydra.main(version_base="1.3", config_path="startup_conf", config_name="train")
def main(config: DictConfig):
    lightning.seed_everything(config.seed, verbose=False)
    module = Segmentation(
        hydra.utils.instantiate(config.model.net),
        hydra.utils.instantiate(config.model.loss),
        hydra.utils.instantiate(config.model.optimizer),
    )
    loader = make_loader(config.data.path, config.data.batch_size, config.data.transforms)
    trainer = hydra.utils.instantiate(config.trainer)
    trainer.fit(module, loader)
    print(f"steps: {trainer.global_step}")


if __name__ == "__main__":
    main()
