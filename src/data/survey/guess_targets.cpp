#include "data/survey/guess_targets.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/strings.h"
#include "config/overrides/overrides.h"
#include "data/sample/annotations.h"
#include "data/sample/image_tensor.h"
#include "data/survey/target_facts.h"
#include "io/annotations/annotations.h"
#include "io/annotations/colour_table.h"
#include "io/grey.h"

namespace cytra::data {
namespace {

constexpr std::size_t kMostNumbers = 32, kMostHeaders = 32;
constexpr int64_t kMostLookedAt = int64_t{1} << 27;  // voxels
constexpr const char* kSegmentation = "experiment=im2im/segmentation";
constexpr const char* kInstances = "experiment=im2im/instance";
constexpr const char* kDetection = "experiment=detection/cells";

/// Every k-th index of `count`, at most `most` of them.
std::vector<std::size_t> spread(std::size_t count, std::size_t most) {
  std::vector<std::size_t> chosen;
  const std::size_t number = std::min(count, most);
  for (std::size_t k = 0; k < number; ++k) chosen.push_back(k * count / number);
  return chosen;
}

/// The properties of the targets' values.
struct Values {
  std::map<double, std::size_t> images_with;
  double numbers = 0, regions = 0;  // numbers and regions other than 0, summed over all images
  double at_ends = 0, alike = 0;    // means
  std::size_t images = 0;
  bool is_whole = true, are_many = false, is_colour = false;
  std::set<std::string> colours;  // "#ff0000"; empty: too many
};

Values values_of(const std::vector<Sample>& items, const std::string& key, std::size_t most) {
  Values all;
  int64_t voxels = 0;
  for (const std::size_t i : spread(items.size(), most)) {
    const Source& source = items[i].sources.at(key);
    if (voxels > kMostLookedAt || !source.more.empty()) break;
    try {
      const at::Tensor target = without_equal_channels(
          to_tensor(io::read_image(source.path, source.selection), 3, source.path));
      TargetFacts facts = look_at_target(target, at::zeros({1}), true);
      voxels += target.numel();
      ++all.images;
      all.is_colour = all.is_colour || facts.channels > 1;
      for (const auto& [colour, count] : facts.colours) all.colours.insert(colour);
      if (!facts.colours.empty()) facts = look_at_target(as_numbers(target), at::zeros({1}), true);
      all.is_whole = all.is_whole && facts.is_whole;
      all.are_many = all.are_many || facts.counts.empty();
      all.at_ends += facts.at_ends;
      all.alike += facts.alike;
      all.regions += static_cast<double>(facts.regions);
      for (const auto& [value, count] : facts.counts) {
        ++all.images_with[value];
        all.numbers += value != 0;
      }
    } catch (const Error&) {  // the loaders report it
    }
  }
  const auto count = static_cast<double>(std::max<std::size_t>(all.images, 1));
  all.at_ends /= count;
  all.alike /= count;
  return all;
}

/// Whether the targets are numbered objects, by values only. Numbers of objects have one region
/// each and differ from image to image, or are many; classes have several regions. Nothing where
/// both interpretations fit.
std::optional<bool> are_objects(const Values& all, const std::vector<double>& values) {
  if (all.numbers == 0) return false;
  const double regions = all.regions / all.numbers;
  const bool are_many = all.numbers >= 5 * static_cast<double>(all.images);
  if (values.size() > kMostNumbers || (regions < 1.2 && are_many)) return true;
  if (regions >= (values.size() <= 5 ? 1.5 : 3)) return false;
  std::size_t shared = 0;  // values that most images have, as for classes
  for (const double value : values)
    shared += value != 0 && 4 * all.images_with.at(value) >= 3 * all.images;
  if (regions < 1.2 && 2 * shared < values.size() - 1) return true;
  return {};
}

TargetGuess of_values(const Values& all) {
  TargetGuess guess;
  guess.looked_at = all.images;
  if (all.images == 0 || all.is_colour) return guess;
  const bool is_noisy = all.are_many || (all.images_with.size() > 64 && all.alike < 0.7);
  if (is_noisy && all.alike < 0.7 && all.at_ends < 0.85) {
    guess.why = "intensities";
    guess.experiments = {"experiment=im2im/labelfree"};
    return guess;
  }
  if (all.are_many || !all.is_whole) return guess;
  std::vector<double> values;
  for (const auto& [value, count] : all.images_with) values.push_back(value);
  if (values.size() > kFewTargetValues && all.alike < 0.7 && all.at_ends >= 0.85) {
    guess.why = fmt::format(
        "two values ({:g} and {:g}) blurred by a lossy format", values.front(), values.back());
    guess.experiments = {kSegmentation};
    guess.classes = {fmt::format("task.target_threshold={:g}",
                                 std::floor((values.front() + values.back()) / 2))};
    return guess;
  }
  const std::string listed =
      values.size() <= 8 ? fmt::format("{}", fmt::join(values, ", "))
                         : fmt::format("{} values up to {:g}", values.size(), values.back());
  guess.why = "the targets' values are " + listed;
  const bool is_below = values.front() == -1 && all.images_with.count(0) == 0;  // the background
  if (values.size() <= 2) {
    guess.experiments = {kSegmentation};
    if (is_below)
      guess.classes = {fmt::format("target_values=[-1,{:g}]", values.back()), "ignore_index=0"};
    return guess;
  }
  const std::optional<bool> objects = are_objects(all, values);
  if (is_below) guess.objects = {"task.background=-1"};
  if (objects.value_or(true)) guess.experiments.emplace_back(kInstances);
  if (objects.value_or(false)) {
    guess.why += ", a region each";
    return guess;
  }
  if (values.front() != 0 && !is_below && objects) return guess;
  std::vector<double> classes = values;
  const bool has_ignored = classes.back() == 255 &&
                           classes[classes.size() - 2] == static_cast<double>(classes.size() - 2);
  if (has_ignored) classes.pop_back();
  std::vector<std::string> words;
  if (classes.size() > 2 || !has_ignored) {
    words.push_back(fmt::format("num_classes={}", classes.size()));
    if (classes.front() != 0 || classes.back() != static_cast<double>(classes.size() - 1))
      words.push_back(fmt::format("target_values=[{}]", fmt::join(classes, ",")));
  }
  if (classes.front() != 0) words.emplace_back("ignore_index=0");  // of padding
  if (has_ignored) words.emplace_back("ignore_index=255");
  if (objects) guess.classes = words;
  guess.experiments.push_back(fmt::format("{}{}{}",
                                          kSegmentation,
                                          objects ? "" : " ",
                                          objects ? "" : fmt::format("{}", fmt::join(words, " "))));
  return guess;
}

/// A guess by colours alone: an object each, or classes in the colours' order, with black as the
/// background, else white. Empty where there is neither.
TargetGuess of_colours_alone(const Values& all) {
  TargetGuess guess;
  guess.looked_at = all.images;
  std::vector<std::string> colours(all.colours.begin(), all.colours.end());
  const bool is_black = colours.front() == "#000000";
  if (colours.size() < 2 || (!is_black && colours.back() != "#ffffff")) return guess;
  if (!is_black) std::ranges::rotate(colours, colours.end() - 1);
  std::vector<double> values;
  for (const auto& [value, count] : all.images_with) values.push_back(value);
  const std::optional<bool> objects = are_objects(all, values);
  guess.objects = {is_black ? "task.background=0" : "task.background=16777215"};
  const std::string paints =
      "task.colours=" + config::override_text(config::Node::make_list(colours));
  if (colours.size() > 2) guess.classes.push_back(fmt::format("num_classes={}", colours.size()));
  guess.classes.push_back(paints);
  const bool are_few = colours.size() <= kFewTargetValues;
  guess.why = fmt::format("the targets' colours are {}", are_few ? join(colours, ", ") : "many");
  if (objects.value_or(true)) guess.experiments.emplace_back(kInstances);
  if (!objects.value_or(false) && are_few) guess.experiments.emplace_back(kSegmentation);
  if (guess.experiments.size() > 1) {
    guess.experiments = {fmt::format("{} {}", kInstances, guess.objects[0]),
                         fmt::format("{} {}{}",
                                     kSegmentation,
                                     colours.size() > 2 ? guess.classes[0] + " " : "",
                                     shell_quote(paints))};
  }
  return guess;
}

/// A guess by colours that a table beside the targets, or in a folder above, names. Empty where it
/// does not have them all.
TargetGuess of_colours(const Values& all, const std::string& target) {
  constexpr int kMostFolders = 3;
  TargetGuess guess;
  guess.looked_at = all.images;
  std::optional<io::ColourTable> table;
  std::filesystem::path folder(target);
  for (int up = 0; up < kMostFolders && !table && folder.has_parent_path(); ++up) {
    folder = folder.parent_path();
    table = io::find_colour_table(folder.string());
  }
  if (!table) return of_colours_alone(all);
  std::vector<std::string> colours, names;
  std::set<std::string> rest = all.colours;
  for (const io::ColourTable::Class& one : table->classes) {
    rest.erase(one.colour);
    colours.push_back(one.colour);
    if (colours.size() > 1) names.push_back(one.name);
  }
  if (!rest.empty()) return guess;
  guess.why = fmt::format("the targets have the colours of a table in {}", folder.string());
  guess.experiments = {kSegmentation};
  if (colours.size() > 2) guess.classes.push_back(fmt::format("num_classes={}", colours.size()));
  guess.classes.push_back("class_names=" + config::override_text(config::Node::make_list(names)));
  guess.classes.push_back("task.colours=" +
                          config::override_text(config::Node::make_list(colours)));
  return guess;
}

/// Whether the annotation has a shape besides its box.
bool has_shape(const io::Annotation& one) {
  const auto is_corner = [&](const auto& point) {
    return (point[0] == one.box[0] || point[0] == one.box[2]) &&
           (point[1] == one.box[1] || point[1] == one.box[3]);
  };
  return !one.masks.empty() ||
         std::ranges::any_of(one.parts, [&](const std::vector<io::Ring>& rings) {
           return rings.size() != 1 || !std::ranges::all_of(rings[0], is_corner);
         });
}

TargetGuess of_annotations(const std::vector<std::string>& files,
                           const std::vector<Sample>& items,
                           const std::string& key,
                           std::size_t most) {
  TargetGuess guess;
  const std::vector<std::string> names = io::class_names_of(files);
  const std::string classes = fmt::format("num_classes={}", names.size() + 1);
  bool has_shapes = false;
  for (const std::size_t i : spread(items.size(), most)) {
    const Source& source = items[i].sources.at(key);
    ++guess.looked_at;
    const io::ImageInfo image = io::open_image(items[i].id)->info();
    const io::AnnotatedImage frame{items[i].id, image.shape[1], image.shape[2], image.shape[3]};
    for (const io::Annotation& one : io::read_annotations(source.path, frame))
      has_shapes = has_shapes || has_shape(one);
    if (has_shapes) break;
  }
  guess.why = names.size() > 1 ? fmt::format("annotations of {}", fmt::join(names, ", "))
                               : std::string("annotations");
  if (names.size() > 1) {
    guess.classes = {classes};
    guess.box_classes = {fmt::format("num_classes={}", names.size())};
  }
  if (!has_shapes) {
    guess.why += ", boxes alone";
    guess.experiments = {kDetection};
  } else if (names.size() > 1) {
    guess.experiments = {fmt::format("{} {}", kSegmentation, classes), kInstances, kDetection};
  } else {
    guess.experiments = {kInstances};
  }
  return guess;
}

}  // namespace

ImageHeaders look_at_images(const std::vector<Sample>& items, const std::string& key) {
  ImageHeaders facts;
  std::vector<const Source*> coloured;
  for (const std::size_t i : spread(items.size(), kMostHeaders)) {
    const auto found = items[i].sources.find(key);
    if (found == items[i].sources.end()) continue;
    const Source& source = found->second;
    try {
      io::Selection selection = source.selection;
      if (source.time_is_channel && selection.timepoint < 0) selection.timepoint = 0;
      const io::ImageInfo info = io::open_image(source.path, selection)->info();
      const int64_t channels = (source.time_is_channel ? info.timepoints : info.shape[0]) *
                               static_cast<int64_t>(1 + source.more.size());
      facts.all_channels.insert(channels);
      if (channels == 3 || channels == 4) coloured.push_back(&source);
      const bool is_first = facts.example.empty();
      facts.least_planes = is_first ? info.shape[1] : std::min(facts.least_planes, info.shape[1]);
      facts.most_planes = std::max(facts.most_planes, info.shape[1]);
      if (!is_first) continue;
      facts.example = source.path;
      for (const std::string& more : source.more) facts.example += " with " + more;
      facts.example_planes = info.shape[1];
    } catch (const Error&) {  // the loaders report it
    }
  }
  const auto is_grey = [](const Source* source) {
    try {
      io::Image image = io::read_image(source->path, source->selection);
      return io::make_grey(image, source->path);
    } catch (const Error&) {  // the loaders report it
      return false;
    }
  };
  if (facts.all_channels.size() > 1 && std::ranges::all_of(coloured, is_grey)) {
    for (const int64_t channels : {3, 4})
      if (facts.all_channels.erase(channels) > 0) facts.all_channels.insert(1);
  }
  if (facts.all_channels.size() == 1) facts.channels = *facts.all_channels.begin();
  return facts;
}

TargetGuess guess_targets(const DataModule& module,
                          const std::vector<Sample>& items,
                          const std::string& key,
                          int64_t most) {
  const auto annotations = annotation_files(module);
  const auto found = annotations.find(key);
  const auto number = static_cast<std::size_t>(most);
  if (found != annotations.end()) return of_annotations(found->second, items, key, number);
  const Values values = values_of(items, key, number);
  if (values.is_colour && !values.colours.empty())
    return of_colours(values, items.front().sources.at(key).path);
  return of_values(values);
}

}  // namespace cytra::data
