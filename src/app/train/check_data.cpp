// `train --check-data`: reads every image of the data set once, tries the first batches, and
// reports what is there and what is wrong.
#include <algorithm>
#include <cstdio>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/setup/setup.h"
#include "app/train/check_targets.h"
#include "app/train/try_batches.h"
#include "base/escape.h"
#include "base/progress.h"
#include "config/json.h"
#include "data/survey/survey.h"

namespace cytra::app {
namespace {

using config::Node;

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

int check_data(cli::Run run, const TrainConfig& config) {
  const Setup setup(config, choose_device(config));
  std::unique_ptr<Progress> progress;
  data::Survey survey = data::survey(
      *setup.data,
      setup.data->loader().workers(),
      [&](data::Split split, int64_t done, int64_t all) {
        if (!progress)
          progress =
              std::make_unique<Progress>(fmt::format("reading {}", data::name_of(split)), all);
        progress->update(done);
        if (done < all) return;
        progress->finish();
        progress.reset();
      },
      trial_of(setup));
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
