// predict_folder MODEL FOLDER OUTPUT: masks, overlays, tables of objects and their outlines, of
// every image of a folder, each scene and time point by itself.
#include <cstdio>
#include <filesystem>

#include <cytra/base/error.h>
#include <cytra/inference/outputs/result.h>
#include <cytra/inference/predictor/subject.h>
#include <cytra/pipelines/job/inputs.h>
#include <cytra/pipelines/job/names.h>

using namespace cytra;

int main(int argc, char** argv) try {
  if (argc != 4) throw ConfigError("usage: predict_folder MODEL FOLDER OUTPUT");
  const std::string folder = argv[3];
  std::filesystem::create_directories(folder);

  inference::ModelConfig config;
  config.checkpoint.ckpt_path = {argv[1]};
  const inference::Subject subject =
      inference::load_subject(config, device::choose_device("auto"), {});
  if (subject.result() != inference::Subject::Result::images)
    throw ConfigError("this model finds boxes or numbers; expected one of masks");
  const inference::Predictor predictor =
      inference::predictors_of(subject, config, {}, {}).front().predictor;
  const inference::ResultOptions options{inference::result_steps(predictor, {})};

  const auto left_out = [](const std::string& id, const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", id.c_str(), error.what());
  };
  pipelines::InputOptions data;
  data.path = argv[2];
  const std::string key = pipelines::source_key(predictor);
  pipelines::OutputNames names;
  for (const data::Sample& sample : pipelines::list_inputs(
           data, {key}, left_out, pipelines::wants_of(predictor, config.inference_args))) {
    try {
      const pipelines::Frames frames =
          pipelines::frames_of(sample, key, pipelines::parts_to_take(predictor));
      for (std::size_t i = 0; i < frames.size(); ++i) {
        const data::Source source = frames[i].sources.at(key);
        inference::OutputPlace place;
        place.stem = folder + "/" + names.next(source);
        place.source = source.path;
        for (const auto& [kind, path] : inference::predict_files(
                 predictor, frames[i], options, place, {"image", "table", "geojson", "overlay"}))
          std::printf("%s: %s\n", kind.c_str(), path.c_str());
      }
    } catch (const DataError& error) {
      left_out(sample.id, error);
    }
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return exit_code(error);
}
