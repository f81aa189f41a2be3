// generate_samples: a synthetic data set with known truth. See `generate_samples --help`.
#include <CLI/CLI.hpp>

#include "base/log.h"
#include "cli/program.h"
#include "samples/fundus.h"
#include "samples/generate.h"
#include "samples/movie.h"

namespace {

using cytra::config::Node;

/// With a sine of 440 Hz as its sound.
void write_movie(const std::string& path, const cytra::samples::MovieOptions& options, bool json) {
  cytra::samples::Movie movie(options);
  cytra::io::VideoSinkOptions encoding;
  encoding.tone_hz = 440;
  const auto sink = cytra::io::create_video(path, movie, encoding);
  cytra::io::VideoFrame frame;
  while (movie.read(frame)) sink->write(frame);
  sink->finish({});
  for (const std::string& note : sink->notes()) cytra::log::warn("{}: {}", path, note);
  cytra::cli::Results results(json);
  results.add("video", path);
  results.add("frames", Node::make_integer(options.frames));
  results.add("width", Node::make_integer(options.width));
  results.add("height", Node::make_integer(options.height));
  results.print();
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
  return cytra::cli::run_small(app, argc, argv, [&](bool json) {
    if (!video.empty()) {
      movie.seed = seed;
      return write_movie(video, movie, json);
    }
    if (kind == "fundus") {
      cytra::samples::write_fundus_dataset(output, train, valid, test, seed);
    } else {
      cytra::samples::write_dataset(output, options, train, valid, test, seed);
    }
    cytra::cli::Results results(json);
    results.add("output_dir", output);
    for (const auto& [split, count] :
         {std::pair("train", train), std::pair("valid", valid), std::pair("test", test)})
      results.add(split, Node::make_integer(count));
    results.print();
  });
}
