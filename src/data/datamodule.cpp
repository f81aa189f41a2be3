#include "data/datamodule.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "io/csv.h"
#include "io/reader.h"

namespace cytra::data {
namespace fs = std::filesystem;

const char* name_of(Split split) {
  const char* names[] = {"train", "valid", "test", "predict"};
  return names[static_cast<int>(split)];
}

Transforms make_transforms(const SplitTransforms& transforms, Split split) {
  const config::Node* lists[] = {
      &transforms.train, &transforms.valid, &transforms.test, &transforms.predict};
  Transforms result;
  for (const config::Node& node : lists[static_cast<int>(split)]->list) {
    result.push_back(Registry<Transform>::instance().make(node));
    result.back()->name = Registry<Transform>::instance().components().name_of(node);
    result.back()->text = config::to_json(node);
  }
  return result;
}

BatchTransforms make_batch_transforms(const SplitTransforms& transforms) {
  BatchTransforms result;
  for (const config::Node& node : transforms.batch.list)
    result.push_back(Registry<BatchTransform>::instance().make(node));
  return result;
}

std::vector<Sample> read_manifest(const std::string& path,
                                  const std::vector<std::string>& columns) {
  const io::Table table = io::read_table(path);
  const std::vector<std::string>& names = columns.empty() ? table.columns : columns;
  std::vector<std::size_t> indices;
  for (const std::string& name : names) indices.push_back(table.column(name));
  std::vector<Sample> samples;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    Sample sample;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string& cell = table.rows[row][indices[i]];
      if (cell.empty())
        throw DataError(fmt::format(
            "{}:{}: column '{}' is empty", path, table.lines[row], printable(names[i])));
      const std::string file = (fs::path(path).parent_path() / cell).string();
      std::error_code error;  // a name too long, a loop of links
      const fs::file_status status = fs::status(io::file_of(file), error);
      if (!fs::is_regular_file(status) && !fs::is_directory(status)) {
        throw DataError(fmt::format(
            "{}:{}: column '{}': {}: {}",
            path,
            table.lines[row],
            printable(names[i]),
            fs::exists(status) ? "a pipe, socket or device, expected an image" : "no such image",
            printable(file, 300)));
      }
      if (sample.id.empty()) sample.id = file;
      sample.sources[names[i]].path = file;
    }
    samples.push_back(std::move(sample));
  }
  if (samples.empty()) throw DataError(path + ": no rows below the header");
  return samples;
}

std::vector<Sample> list_folder(const std::string& folder, const std::string& key) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) throw ConfigError(folder + ": no such folder");
  fs::directory_iterator entries(folder, error);
  if (error) throw ConfigError(folder + ": can't be read: " + error.message());
  std::vector<Sample> samples;
  for (const fs::directory_entry& entry : entries) {
    const std::string path = entry.path().string();
    std::error_code ignored;  // a loop of links
    const bool is_either = entry.is_regular_file(ignored) || entry.is_directory(ignored);
    if (!is_either || !io::is_image_path(path)) continue;
    Sample sample;
    sample.id = path;
    sample.sources[key].path = path;
    samples.push_back(std::move(sample));
  }
  if (samples.empty())
    throw DataError(folder + ": no images (.tif, .png, .nii, .zarr, ...) in this folder");
  std::sort(
      samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.id < b.id; });
  return samples;
}

}  // namespace cytra::data
