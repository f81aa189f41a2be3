// generate_samples: a synthetic data set with known truth. See `generate_samples --help`.
#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "samples/fundus.h"
#include "samples/generate.h"
#include "samples/movie.h"

namespace {

/// With a sine of 440 Hz as its sound.
void write_movie(const std::string& path, const cytra::samples::MovieOptions& options) {
  cytra::samples::Movie movie(options);
  cytra::io::VideoSinkOptions encoding;
  encoding.tone_hz = 440;
  const auto sink = cytra::io::create_video(path, movie, encoding);
  cytra::io::VideoFrame frame;
  while (movie.read(frame)) sink->write(frame);
  sink->finish({});
  for (const std::string& note : sink->notes())
    fmt::print(stderr, "generate_samples: {}: {}\n", path, note);
  fmt::print("{}: {} frames of {}x{}\n", path, options.frames, options.width, options.height);
}

}  // namespace

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
  std::string video;
  cytra::samples::MovieOptions movie;
  app.add_option(
      "--video", video, "write a video of moving cells, with sound, to this file instead");
  app.add_option("--width", movie.width, "pixels of the video in x");
  app.add_option("--height", movie.height, "pixels of the video in y");
  app.add_option("--frames", movie.frames, "of the video, 30 per second")
      ->check(CLI::Range(1, 1000000));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    if (!video.empty()) {
      movie.seed = seed;
      write_movie(video, movie);
      return std::fflush(stdout) == 0 ? 0 : 4;
    }
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
