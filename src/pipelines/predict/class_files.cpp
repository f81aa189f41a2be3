#include "pipelines/predict/class_files.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "io/csv.h"

namespace cytra::pipelines {

ClassFiles::ClassFiles(std::string folder, std::vector<std::string> names)
    : folder_(std::move(folder)), names_(std::move(names)), record_(folder_, "classes") {}

std::vector<double> ClassFiles::find(const ClassifiedImage& image) const {
  if (!record_.has(image.name, image.stamp)) return {};
  try {
    auto values =
        record_.line(image.name, image.stamp, image.path).get<std::vector<double>>("probabilities");
    if (values.size() == names_.size()) return values;
  } catch (const Error&) {  // a line that is none of ours
  }
  return {};
}

void ClassFiles::add(const ClassifiedImage& image, const std::vector<double>& probabilities) {
  record_.add({image.name,
               image.path,
               image.stamp,
               {},
               fmt::format("{{\"probabilities\":[{}]}}", fmt::join(probabilities, ","))});
}

std::string ClassFiles::finish(const std::vector<ClassifiedImage>& images) {
  record_.read();
  std::vector<std::string> columns{"image", "class"};
  for (const std::string& name : names_) columns.push_back("probability_" + name);
  std::vector<std::vector<std::string>> rows;
  for (const ClassifiedImage& image : images) {
    const std::vector<double> values = find(image);
    if (values.empty()) throw IoError(folder_ + "/classes.jsonl: no line of " + image.path);
    const auto best = std::max_element(values.begin(), values.end()) - values.begin();
    auto& row = rows.emplace_back();
    row = {io::safe_cell(image.path), io::safe_cell(names_[static_cast<std::size_t>(best)])};
    for (const double value : values) row.push_back(io::cell_of(value));
  }
  std::string path = folder_ + "/classes.csv";
  io::write_table(path, columns, rows);
  return path;
}

}  // namespace cytra::pipelines
