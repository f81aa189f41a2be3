#include "pipelines/batch_segment/inputs.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "io/csv.h"
#include "io/formats.h"
#include "io/image_folder.h"
#include "io/reader.h"

namespace cytra::pipelines {
namespace {

namespace fs = std::filesystem;

/// The path of a file below its folder, without its ending.
std::string name_below(const fs::path& path, const fs::path& folder) {
  const fs::path relative = folder.empty() ? path.filename() : path.lexically_relative(folder);
  const std::string name = io::stem_of(relative.filename().string());
  const fs::path parent = relative.parent_path();
  return parent.empty() ? name : (parent / name).string();
}

/// The images of a folder and its sub-folders; the first folder of the path is the view.
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
  const auto has = [&](const char* name) { return std::ranges::find(names, name) != names.end(); };
  const std::size_t image = has("image") ? table.column("image") : 0;
  std::vector<SegmentInput> inputs;
  for (const std::vector<std::string>& row : table.rows) {
    const fs::path file = fs::path(path).parent_path() / row[image];
    const std::string view = has("view") ? row[table.column("view")] : "";
    if (view == "." || view == ".." || view.find('/') != std::string::npos)  // it names a folder
      throw DataError("{}: the view '{}', expected a name without '/'", path, view);
    const std::string name = name_below(file, "");
    inputs.push_back({file.string(), view.empty() ? name : view + "/" + name, view});
  }
  return inputs;
}

}  // namespace

std::vector<SegmentInput> list_segment_inputs(const std::string& path,
                                              const std::optional<std::string>& view) {
  std::vector<SegmentInput> inputs;
  if (path.ends_with(".csv") || path.ends_with(".tsv")) {
    inputs = inputs_of_table(path);
  } else if (folder_exists(path) && !io::is_image_path(path)) {
    inputs = inputs_of_folder(path);
  } else if (path_exists(path)) {
    inputs = {{path, name_below(path, ""), view.value_or("")}};
  } else {
    throw ConfigError("data.path: {}: no such image, folder or table", path);
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
  std::erase_if(inputs, [&](const SegmentInput& input) { return input.view != *view; });
  if (views == std::set<std::string>{""}) {
    throw ConfigError(
        "data.view: {}: {} has no views (its sub-folders, or a table's column `view`)",
        *view,
        path);
  }
  if (inputs.empty()) {
    throw ConfigError("data.view: {}: no images of this view.{}",
                      *view,
                      suggestion(*view, std::vector<std::string>(views.begin(), views.end())));
  }
  return inputs;
}

}  // namespace cytra::pipelines
