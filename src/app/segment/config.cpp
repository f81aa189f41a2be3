#include "app/segment/config.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "base/control_groups.h"
#include "base/error.h"
#include "base/strings.h"
#include "io/csv.h"
#include "io/formats.h"
#include "io/image_folder.h"
#include "io/reader.h"
#include "perf/device_memory.h"

namespace cytra::app {
namespace {

namespace fs = std::filesystem;
using pipelines::SegmentInput;

constexpr SegmentPreset kSegmentPresets[] = {
    {"cpu", 32, 4, 0},  // a thread for each processor
    {"t4", 32, 8, 4},
    {"a10g", 64, 16, 8},
    {"a100", 128, 32, 8},
    {"h200", 256, 64, 16},
};

/// The path below its folder, without its ending.
std::string name_below(const fs::path& path, const fs::path& folder) {
  const fs::path relative = folder.empty() ? path.filename() : path.lexically_relative(folder);
  const std::string name = io::stem_of(relative.filename().string());
  const fs::path parent = relative.parent_path();
  return parent.empty() ? name : (parent / name).string();
}

/// Images of a folder and those below it; the first folder of the way is the view.
std::vector<SegmentInput> inputs_of_folder(const std::string& folder) {
  std::vector<SegmentInput> inputs;
  for (const fs::path path : io::list_images(folder, /*is_recursive=*/true)) {
    const fs::path below = path.lexically_relative(folder);
    const bool has_view = std::distance(below.begin(), below.end()) > 1;
    inputs.push_back(
        {path.string(), name_below(path, folder), has_view ? below.begin()->string() : ""});
  }
  return inputs;
}

/// Rows of a table: the column `image`, else the first, and `view` where there is one.
std::vector<SegmentInput> inputs_of_table(const std::string& path) {
  const io::Table table = io::read_table(path);
  const auto& names = table.columns;
  const auto has = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const std::size_t image = has("image") ? table.column("image") : 0;
  std::vector<SegmentInput> inputs;
  for (const std::vector<std::string>& row : table.rows) {
    const fs::path file = fs::path(path).parent_path() / row[image];
    const std::string view = has("view") ? row[table.column("view")] : "";
    if (view == "." || view == ".." || view.find('/') != std::string::npos)  // it names a folder
      throw DataError(fmt::format("{}: the view '{}', expected a name without '/'", path, view));
    const std::string name = name_below(file, "");
    inputs.push_back({file.string(), view.empty() ? name : view + "/" + name, view});
  }
  return inputs;
}

}  // namespace

void SegmentDetectorOptions::check() const {
  if (!views.is_null() && !views.is_map()) {
    throw ConfigError("views: expected a detector for each view: {front: a.ckpt, left: b.ckpt}");
  }
  for (const auto& [view, file] : views.map) file.as<std::string>();
  if (!path && views.map.empty())
    throw ConfigError("detector: expected detector.path (--detector PATH), or detector.views");
}

std::string SegmentDetectorOptions::of(const std::string& view) const {
  if (const config::Node* own = views.find_direct(view)) return own->as<std::string>();
  if (path) return *path;
  throw ConfigError(
      fmt::format("images of view '{}' have no detector; there is one for {}: give "
                  "detector.views.{}=PATH, or detector.path",
                  view,
                  join(views.keys(), ", "),
                  view.empty() ? "NAME" : view));
}

pipelines::SegmentModels segment_models(const SegmentDetectorOptions& detector,
                                        const SegmentSegmenterOptions& segmenter,
                                        int64_t image_batch_size,
                                        c10::Device device) {
  pipelines::DetectorOptions options = detector.found;
  options.batch_size = image_batch_size;
  return {[detector](const std::string& view) { return detector.of(view); },
          [options, device](const std::string& path) {
            return pipelines::load_detector(path, device, options);
          },
          [path = segmenter.path, device] { return pipelines::load_segmenter(path, device); }};
}

std::vector<std::string> segment_preset_names() {
  std::vector<std::string> names{"auto"};
  for (const SegmentPreset& preset : kSegmentPresets) names.emplace_back(preset.name);
  return names;
}

SegmentPreset preset_of_device(const std::string& description, int64_t memory) {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"H200", "h200"}, {"H100", "a100"}, {"A100", "a100"}, {"A10", "a10g"}, {"T4", "t4"}};
  std::string name = memory < 20e9    ? "t4"
                     : memory < 32e9  ? "a10g"
                     : memory < 120e9 ? "a100"
                                      : "h200";
  for (const auto& [sign, preset] : kNames) {
    if (description.find(sign) == std::string::npos) continue;
    name = preset;
    break;
  }
  if (starts_with(description, "cpu")) name = "cpu";
  return segment_preset(name, c10::kCPU);
}

SegmentPreset segment_preset(const std::string& name, c10::Device device) {
  if (name == "auto") return preset_of_device(perf::describe(device), perf::free_memory(device));
  for (SegmentPreset preset : kSegmentPresets) {
    if (preset.name != name) continue;
    if (preset.io_workers == 0) preset.io_workers = std::min(available_processors(), 8);
    return preset;
  }
  throw std::logic_error("no preset " + name);
}

std::vector<SegmentInput> list_segment_inputs(const std::string& path,
                                              const std::optional<std::string>& view) {
  std::error_code ignored;
  std::vector<SegmentInput> inputs;
  if (ends_with(path, ".csv") || ends_with(path, ".tsv")) {
    inputs = inputs_of_table(path);
  } else if (fs::is_directory(path, ignored) && !io::is_image_path(path)) {
    inputs = inputs_of_folder(path);
  } else if (fs::exists(path, ignored)) {
    inputs = {{path, name_below(path, ""), view.value_or("")}};
  } else {
    throw ConfigError(fmt::format("data.path: {}: no such image, folder or table", path));
  }
  if (inputs.empty())
    throw DataError(path + ": no images (.tif, .png, .jpg, .nii, ...) in this folder or table");
  std::set<std::string> views, names;
  for (SegmentInput& input : inputs) {
    views.insert(input.view);
    const std::string name = input.name;
    for (int number = 2; !names.insert(input.name).second; ++number)
      input.name = fmt::format("{}_{}", name, number);
  }
  if (!view) return inputs;
  inputs.erase(std::remove_if(inputs.begin(),
                              inputs.end(),
                              [&](const SegmentInput& input) { return input.view != *view; }),
               inputs.end());
  if (views == std::set<std::string>{""}) {
    throw ConfigError(
        fmt::format("data.view: {}: {} has no views (its sub-folders, or a table's column `view`)",
                    *view,
                    path));
  }
  if (inputs.empty()) {
    throw ConfigError(
        fmt::format("data.view: {}: no images of this view.{}",
                    *view,
                    suggestion(*view, std::vector<std::string>(views.begin(), views.end()))));
  }
  return inputs;
}

}  // namespace cytra::app
