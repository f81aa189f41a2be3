"""Composes Cytra's configs with Hydra: as a program of Hydra's, or with --time FOLDER over and over."""
import json
import statistics
import sys
import time

import hydra
from omegaconf import OmegaConf


def measure(folder, overrides):
    times = []
    with hydra.initialize_config_dir(folder, version_base="1.3", job_name="train"):
        for _ in range(20):
            begin = time.perf_counter()
            config = hydra.compose("train", overrides, return_hydra_config=True)
            config.hydra.runtime.output_dir = "logs"
            hydra.core.hydra_config.HydraConfig.instance().set_config(config)
            OmegaConf.to_container(OmegaConf.masked_copy(config, [k for k in config if k != "hydra"]), resolve=True)
            times.append((time.perf_counter() - begin) * 1e3)
    print(json.dumps({"milliseconds": statistics.median(times)}))


@hydra.main(version_base="1.3", config_path="../configs", config_name="train")
def main(config):
    pass


if __name__ == "__main__":
    if sys.argv[1:2] == ["--time"]:
        import hydra.core.hydra_config

        measure(sys.argv[2], sys.argv[3:])
    else:
        main()
