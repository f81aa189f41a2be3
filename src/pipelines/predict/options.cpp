#include "pipelines/predict/options.h"

#include "base/error.h"
#include "config/options.h"
#include "inference/decoders/decoder.h"
#include "inference/outputs/output.h"
#include "inference/predictor/foreground.h"
#include "io/formats.h"

namespace cytra::pipelines {

std::vector<std::string> save_choices() {
  std::vector<std::string> choices = inference::decoder_forms();
  choices.insert(choices.begin(), "auto");
  return choices;
}

std::vector<std::string> contour_choices() {
  std::vector<std::string> choices = inference::result_outputs("contours");
  choices.insert(choices.begin(), "none");
  choices.emplace_back("both");
  return choices;
}

double MadeOptions::temperature_number() const {
  using config::Kind;
  if (temperature.is_null()) return 1;
  if (temperature.kind == Kind::string && temperature.as<std::string>() == "auto") return 0;
  if (temperature.kind == Kind::integer || temperature.kind == Kind::real) {
    const auto number = temperature.as<double>();
    if (number >= 0.01 && number <= 100) return number;
  }
  config::throw_bad_value(temperature, "auto, or a number from 0.01 to 100");
}

void PredictOptions::check() {
  MadeOptions::check();
  inference::foreground_rule(skip_empty);
  const io::Format* written = io::find_format(format);  // null: auto
  io::ImageInfo values;
  values.dtype = io::Dtype::f32;
  const bool holds_values = written == nullptr || written->fits == nullptr || written->fits(values);
  if (!holds_values && save != "auto" && save != "mask" && save != "labels" &&
      postprocess.list.empty()) {
    throw ConfigError("predict.format={} holds no float32 values as predict.save={} has; use {}",
                      format,
                      save,
                      io::output_names([](const io::Format& one) { return one.fits == nullptr; }));
  }
  if (frames == "together" && written != nullptr && !written->holds_time) {
    throw ConfigError(
        "predict.frames=together: predict.format={} has no time points here, expected {}",
        format,
        io::output_names([](const io::Format& one) { return one.holds_time; }));
  }
}

std::vector<std::string> PredictOptions::outputs() const {
  std::vector<std::string> names{"image"};
  if (measurements) names.emplace_back("table");
  if (contours == "both") {
    for (const std::string& name : inference::result_outputs("contours")) names.push_back(name);
  } else if (contours != "none") {
    names.push_back(contours);
  }
  if (overlay) names.emplace_back("overlay");
  return names;
}

}  // namespace cytra::pipelines
