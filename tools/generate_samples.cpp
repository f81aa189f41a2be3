// generate_samples: a synthetic data set with known truth. See `generate_samples --help`.
#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "samples/fundus.h"
#include "samples/generate.h"

int main(int argc, char** argv) {
  CLI::App app(
      "Writes a synthetic data set: fluorescent nuclei with their masks and a second stain, or "
      "photographs of retinas with their vessels.",
      "generate_samples");
  std::string output = "data/samples", kind = "nuclei";
  int64_t train = 24, valid = 6, test = 6;
  uint64_t seed = 0;
  cytra::samples::NucleiOptions options;
  app.option_defaults()->always_capture_default();
  app.add_option("--output", output, "folder to write to");
  app.add_option("--kind", kind, "fundus: retinas, whose sizes vary; takes the counts and --seed")
      ->check(CLI::IsMember({"nuclei", "fundus"}));
  app.add_option("--train", train, "images in train.csv")->check(CLI::Range(0, 100000));
  app.add_option("--valid", valid, "images in valid.csv")->check(CLI::Range(0, 100000));
  app.add_option("--test", test, "images in test.csv")->check(CLI::Range(0, 100000));
  app.add_option("--size", options.size, "pixels in y and x");
  app.add_option("--spatial-dims", options.spatial_dims, "2 or 3")->check(CLI::Range(2, 3));
  app.add_option("--depth", options.depth, "planes of a 3D image");
  app.add_option("--photons", options.photons, "photons of a bright pixel; lower is noisier");
  app.add_option("--seed", seed, "the same seed gives the same data set");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    if (kind == "fundus") {
      cytra::samples::write_fundus_dataset(output, train, valid, test, seed);
    } else {
      cytra::samples::write_dataset(output, options, train, valid, test, seed);
    }
    fmt::print("{}: {} train, {} valid and {} test samples (train.csv, valid.csv, test.csv)\n",
               output,
               train,
               valid,
               test);
    return std::fflush(stdout) == 0 ? 0 : 4;
  } catch (const std::exception& error) {
    fmt::print(stderr, "generate_samples: error: {}\n", error.what());
    return cytra::exit_code(error);
  }
}
