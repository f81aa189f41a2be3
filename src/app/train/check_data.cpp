// `train --check-data`: reads every image of the data set once, tries the first batches, and
// reports what is there and what is wrong.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/setup/train_data.h"
#include "app/train/check_targets.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/strings.h"
#include "config/json.h"
#include "data/loader/device_feed.h"
#include "training/precision.h"

namespace cytra::app {
namespace {

using config::Node;
using data::Split;

constexpr std::size_t kMostClasses = 12;  // in the table; instances may have more

/// What is reported about a key, for both forms of output.
struct Summary {
  std::size_t images = 0, broken = 0, shapes = 0, other_spacing = 0;
  std::vector<int64_t> smallest, largest;  // C,[D,]H,W
  std::vector<std::string> dtypes;
  std::array<double, 3> spacing_um{};  // of the most images
  double min = 0, max = 0, mean = 0;
  double low = 0, high = 0;  // the percentiles 0.5 and 99.5
};

Summary summarize(const data::KeyFacts& facts) {
  Summary summary;
  std::set<std::vector<int64_t>> shapes;
  std::set<std::string> dtypes;
  std::map<std::array<double, 3>, std::size_t> spacings;
  double sum = 0, voxels = 0;
  summary.broken = facts.broken();
  for (const data::ImageFacts& image : facts.images) {
    summary.images += !image.path.empty();
    if (image.shape.empty()) continue;
    const bool is_first = shapes.empty();
    shapes.insert(image.shape);
    dtypes.insert(image.dtype);
    ++spacings[image.spacing_um];
    if (is_first) {
      summary.smallest = summary.largest = image.shape;
      summary.min = image.min;
      summary.max = image.max;
    }
    for (std::size_t d = 0; d < std::min(image.shape.size(), summary.smallest.size()); ++d) {
      summary.smallest[d] = std::min(summary.smallest[d], image.shape[d]);
      summary.largest[d] = std::max(summary.largest[d], image.shape[d]);
    }
    summary.min = std::min(summary.min, image.min);
    summary.max = std::max(summary.max, image.max);
    double count = 1;
    for (const int64_t size : image.shape) count *= static_cast<double>(size);
    sum += image.mean * count;
    voxels += count;
  }
  summary.shapes = shapes.size();
  summary.dtypes.assign(dtypes.begin(), dtypes.end());
  if (voxels > 0) summary.mean = sum / voxels;
  std::size_t most = 0, all = 0;
  for (const auto& [spacing, count] : spacings) {
    all += count;
    if (count <= most) continue;
    most = count;
    summary.spacing_um = spacing;
  }
  summary.other_spacing = all - most;
  // A bin's value may lie beyond the extremes.
  summary.low = std::clamp(facts.histogram.percentile(0.005), summary.min, summary.max);
  summary.high = std::clamp(facts.histogram.percentile(0.995), summary.min, summary.max);
  return summary;
}

std::string shape_text(const Summary& summary) {
  static const char* const names[] = {"c", "z", "y", "x"};
  std::vector<std::string> axes;
  for (std::size_t d = 0; d < summary.smallest.size(); ++d) {
    const char* name = names[d > 0 && summary.smallest.size() == 3 ? d + 1 : d];
    axes.push_back(summary.smallest[d] == summary.largest[d]
                       ? fmt::format("{} {}", name, summary.smallest[d])
                       : fmt::format("{} {}..{}", name, summary.smallest[d], summary.largest[d]));
  }
  std::string text = fmt::format("{}", fmt::join(axes, ", "));
  if (summary.shapes > 1) text += fmt::format(" ({} shapes)", summary.shapes);
  return text;
}

std::string key_text(const char* split, const std::string& key, const data::KeyFacts& facts) {
  const Summary summary = summarize(facts);
  std::string text = fmt::format("{} {}: {} images", split, key, summary.images);
  text += summary.broken > 0 ? fmt::format(", {} broken\n", summary.broken) : "\n";
  if (summary.shapes == 0) return text;
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("  {:<10} {}\n", name, value);
  };
  line("shape", shape_text(summary));
  line("type", fmt::format("{}", fmt::join(summary.dtypes, ", ")));
  const std::array<double, 3>& um = summary.spacing_um;
  std::string spacing = um[2] <= 0  ? "unknown"
                        : um[0] > 0 ? fmt::format("{:.4g} um (z, y, x)", fmt::join(um, " x "))
                                    : fmt::format("{:.4g} x {:.4g} um (y, x)", um[1], um[2]);
  if (summary.other_spacing > 0)
    spacing += fmt::format("; {} images differ", summary.other_spacing);
  line("spacing", spacing);
  line("values",
       fmt::format("min {:g}, 0.5 % {:g}, mean {:.6g}, 99.5 % {:g}, max {:g}",
                   summary.min,
                   summary.low,
                   summary.mean,
                   summary.high,
                   summary.max));
  const std::vector<data::ClassFacts> classes = facts.classes();
  double voxels = 0;
  for (const data::ClassFacts& one : classes) voxels += static_cast<double>(one.voxels);
  for (const data::ClassFacts& one : classes) {
    if (&one == classes.data() + kMostClasses) {
      line("", fmt::format("and {} more", classes.size() - kMostClasses));
      break;
    }
    line(&one == classes.data() ? "classes" : "",
         fmt::format("{}: {} voxels ({:.3g} %) in {} images",
                     one.value,
                     one.voxels,
                     100 * static_cast<double>(one.voxels) / voxels,
                     one.images));
  }
  return text;
}

Node key_node(const data::KeyFacts& facts) {
  const Summary summary = summarize(facts);
  const auto count = [](std::size_t value) {
    return Node::make_integer(static_cast<int64_t>(value));
  };
  Node node = Node::make_map();
  node.set("images", count(summary.images));
  node.set("broken", count(summary.broken));
  if (summary.shapes == 0) return node;
  node.set("shapes", count(summary.shapes));
  node.set("shape_min", Node::make_list(summary.smallest));
  node.set("shape_max", Node::make_list(summary.largest));
  node.set("types", Node::make_list(summary.dtypes));
  node.set("spacing_um", Node::make_list(summary.spacing_um));
  node.set("other_spacing", count(summary.other_spacing));
  node.set("min", Node::make_real(summary.min));
  node.set("percentile_00_5", Node::make_real(summary.low));
  node.set("mean", Node::make_real(summary.mean));
  node.set("percentile_99_5", Node::make_real(summary.high));
  node.set("max", Node::make_real(summary.max));
  Node& classes = node.set("classes", Node::make_list());
  for (const data::ClassFacts& one : facts.classes()) {
    Node& entry = classes.list.emplace_back();
    entry.set("value", Node::make_integer(one.value));
    entry.set("voxels", count(one.voxels));
    entry.set("images", count(one.images));
  }
  return node;
}

std::string json_text(const data::Survey& survey) {
  Node splits = Node::make_map();
  for (const data::SplitFacts& split : survey.splits) {
    Node keys = Node::make_map();
    for (const auto& [key, facts] : split.keys) keys.set(key, key_node(facts));
    splits.set(data::name_of(split.split), std::move(keys));
  }
  Node root = Node::make_map();
  root.set("splits", std::move(splits));
  root.set("problems", Node::make_list(survey.problems));
  root.set("notes", Node::make_list(survey.notes));
  return config::to_plain_json(root) + "\n";
}

std::string table_text(const data::Survey& survey) {
  std::string text;
  for (const data::SplitFacts& split : survey.splits) {
    for (const auto& [key, facts] : split.keys)
      text += key_text(data::name_of(split.split), key, facts);
  }
  const auto add = [&](const char* name, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) text += fmt::format("{}: {}\n", name, escaped(line));
  };
  add("note", survey.notes);
  add("problem", survey.problems);
  text += survey.problems.empty() ? "ok\n" : fmt::format("{} problems\n", survey.problems.size());
  return text;
}

constexpr int64_t kLoaded = 32, kComputed = 2;  // batches of a split

std::string sizes_text(const data::Batch& batch) {
  std::vector<std::string> texts;
  for (const auto& [key, images] : batch.tensors)
    texts.push_back(fmt::format("{} {}", key, fmt::join(images.sizes(), "x")));
  return join(texts, ", ");
}

/// Cuts every image to its middle, no larger than `size`.
void cut(data::Batch& batch, const std::vector<int64_t>& size) {
  for (auto& [key, images] : batch.tensors) {
    for (std::size_t d = 0; d < size.size() && images.dim() == std::ssize(size) + 2; ++d) {
      const auto dim = static_cast<int64_t>(d) + 2;
      const int64_t length = std::min(size[d], images.size(dim));
      images = images.narrow(dim, (images.size(dim) - length) / 2, length);
    }
  }
}

class Trial {
 public:
  Trial(const Setup& setup, data::Survey& survey) : setup_(setup), survey_(survey) {}

  void run(Split split) {
    data::DataLoaderSpec spec = loader_spec(setup_, split);
    spec.options.batch_size = std::max<int64_t>(spec.options.batch_size, 1);  // AUTO: 1
    spec.shuffle = false;
    spec.options.num_samples.reset();  // of shuffled images
    spec.limit = [](int64_t batches) { return std::min(batches, kLoaded); };
    data::DataLoader loader(std::move(spec));
    data::DeviceFeed feed(loader, setup_.device);
    feed.start_epoch(0);
    int64_t computed = 0;
    std::size_t loaded = 0;
    std::string first;
    for (int64_t i = 0; i < loader.size(); ++i) {
      std::optional<data::Batch> batch;
      guard(split, "", [&] { batch = feed.next(); });
      if (!batch) continue;
      loaded += batch->ids.size();
      if (first.empty()) first = sizes_text(*batch);
      if (computed++ < kComputed) guard(split, sizes_text(*batch), [&] { compute(split, *batch); });
    }
    if (const auto& broken = loader.stats().broken; !broken.empty()) {
      const std::size_t tried = loaded + broken.size();
      auto& lines = 2 * broken.size() > tried ? survey_.problems : survey_.notes;
      lines.push_back(fmt::format("{}: {} of {} images, which data.on_error={} handles: {}{}",
                                  data::name_of(split),
                                  broken.size(),
                                  tried,
                                  setup_.data->loader().on_error,
                                  broken.begin()->second,
                                  broken.size() > 1 ? " ..." : ""));
    }
    if (!first.empty()) {
      survey_.notes.push_back(fmt::format("{}: {} batches were loaded, the first of {}",
                                          data::name_of(split),
                                          loader.size(),
                                          first));
    }
  }

  void report() {
    for (const auto& [kind, problem] : problems_) {
      const int64_t more = problem.count - 1;
      survey_.problems.push_back(problem.text +
                                 (more > 0 ? fmt::format(" (and {} more batches)", more) : ""));
    }
  }

 private:
  void compute(Split split, data::Batch& batch) {
    const at::NoGradGuard no_gradients;
    const bool trains = split == Split::train;
    training::Task& task = *setup_.task;
    task.model().train(trains);
    training::cast(batch, setup_.precision.parameters);
    const training::Autocast autocast(setup_.precision, setup_.device.type());
    if (!trains) {
      cut(batch, size_);
      return task.validation_step(batch);
    }
    if (!batch.tensors.empty()) size_ = batch.tensors.begin()->second.sizes().slice(2).vec();
    const auto loss = task.training_step(batch).item<double>();
    if (!std::isfinite(loss)) {
      throw DataError("{}: the loss of this batch is {}, expected a finite number",
                      join(batch.ids, ", "),
                      loss);
    }
  }

  void guard(Split split, const std::string& batch, const auto& work) {
    try {
      work();
    } catch (const c10::Error& error) {
      const std::string what = error.what_without_backtrace();
      add(split, fmt::format("a batch of {}: {}", batch, what.substr(0, what.find('\n'))));
    } catch (const std::exception& error) {
      add(split, error.what());
    }
  }

  /// Adds a problem. An image that the survey complains about is not reported twice, and a problem
  /// that several images have is reported once.
  void add(Split split, const std::string& what) {
    const std::size_t end = what.find(": ");
    const std::string image = what.substr(0, end);
    for (const std::string& problem : survey_.problems) {
      if (problem.find(image) != std::string::npos) return;
    }
    const std::string kind = end == std::string::npos ? what : what.substr(end);
    Problem& problem = problems_[data::name_of(split) + kind];
    if (problem.count++ == 0) problem.text = fmt::format("{}: {}", data::name_of(split), what);
  }

  struct Problem {
    std::string text;
    int64_t count = 0;
  };
  const Setup& setup_;
  data::Survey& survey_;
  std::vector<int64_t> size_;                // of a training batch's images
  std::map<std::string, Problem> problems_;  // by split and kind
};

/// Makes what takes a single sample through the transforms and the task's last step.
data::Trial trial_of(const Setup& setup) {
  auto specs = std::make_shared<std::map<Split, data::DataLoaderSpec>>();
  return [&setup, specs](Split split, std::size_t index) -> std::string {
    try {
      auto spec = specs->find(split);
      if (spec == specs->end()) spec = specs->emplace(split, loader_spec(setup, split)).first;
      data::Sample sample = spec->second.items.at(index);
      Rng rng(setup.seed);
      for (const auto& transform : spec->second.transforms) data::apply(*transform, sample, rng);
      return "";
    } catch (const std::exception& error) {
      return error.what();
    }
  };
}

/// Loads the first batches of training and validation as `train` does, through transforms and
/// collation, and gives a few of them to the task. New failures are added to survey.problems, and
/// what the batches hold to survey.notes.
void try_batches(const Setup& setup, data::Survey& survey) {
  Trial trial(setup, survey);
  for (const data::SplitFacts& split : survey.splits) {
    if (split.split != Split::test && split.error.empty()) trial.run(split.split);
  }
  trial.report();
}

int check_data(cli::Run run, const TrainConfig& config) {
  const Setup setup(config, choose_device(config));
  data::Survey survey = survey_of(*setup.data, trial_of(setup));
  constexpr int64_t kCheckedImages = 256;  // images of a split
  for (std::string& problem : check_targets(setup, kCheckedImages))
    survey.problems.push_back(std::move(problem));
  try_batches(setup, survey);
  const std::string text = run.json ? json_text(survey) : table_text(survey);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
  return survey.problems.empty() ? 0 : 2;
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_check_data(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::check_data);
}
