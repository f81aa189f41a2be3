"""A training program as people write them with Hydra, Lightning and MONAI: the peer of Cytra's `train`."""
import csv
from pathlib import Path

import hydra
import lightning
import monai.transforms
import tifffile
import torch
from monai.data import Dataset
from monai.inferers import sliding_window_inference
from monai.metrics import DiceMetric
from omegaconf import DictConfig


class Segmentation(lightning.LightningModule):
    def __init__(self, net, loss, optimizer, roi_size):
        super().__init__()
        self.net, self.loss, self.make_optimizer, self.roi_size = net, loss, optimizer, roi_size
        self.dice = DiceMetric()

    def training_step(self, batch, _):
        return self.loss(self.net(batch["raw"]), batch["seg"])

    def validation_step(self, batch, _):
        logits = sliding_window_inference(batch["raw"], self.roi_size, 4, self.net, overlap=0.25, mode="gaussian")
        self.log("val/loss", self.loss(logits, batch["seg"]))
        self.dice((logits > 0).float(), batch["seg"])

    def on_validation_epoch_end(self):
        self.log("val/dice", self.dice.aggregate().item())
        self.dice.reset()

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


def make_loader(manifest, transforms, **options):
    compose = monai.transforms.Compose([hydra.utils.instantiate(t) for t in transforms])
    # no workers: to start them takes longer than to load one batch
    return torch.utils.data.DataLoader(Dataset(read_manifest(manifest), compose), num_workers=0, **options)


@hydra.main(version_base="1.3", config_path="startup_conf", config_name="train")
def main(config: DictConfig):
    lightning.seed_everything(config.seed, verbose=False)
    module = Segmentation(
        hydra.utils.instantiate(config.model.net),
        hydra.utils.instantiate(config.model.loss),
        hydra.utils.instantiate(config.model.optimizer),
        list(config.data.patch_size),
    )
    data, path = config.data, Path(config.data.path)
    train = make_loader(path / "train.csv", data.transforms, batch_size=data.batch_size, shuffle=True, drop_last=True)
    valid = make_loader(path / "valid.csv", data.valid_transforms, batch_size=1)
    trainer = hydra.utils.instantiate(config.trainer)
    trainer.fit(module, train, valid)
    print(f"steps: {trainer.global_step}")


if __name__ == "__main__":
    main()
