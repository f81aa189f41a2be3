#include "pipelines/predict/whole_image_files.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "io/csv.h"
#include "io/png/write.h"

namespace cytra::pipelines {

WholeImageFiles::WholeImageFiles(std::string folder, bool pictures)
    : folder_(std::move(folder)), pictures_(pictures), record_(folder_, "predictions") {}

std::vector<double> WholeImageFiles::find(const WholeImage& image, std::size_t count) const {
  const bool is_there = pictures_ ? record_.find(image.name, image.stamp).has_value()
                                  : record_.has(image.name, image.stamp);
  if (!is_there) return {};
  try {
    auto numbers =
        record_.line(image.name, image.stamp, image.path).get<std::vector<double>>("numbers");
    if (numbers.size() == count) return numbers;
  } catch (const Error&) {  // a line that is none of ours
  }
  return {};
}

void WholeImageFiles::add(const WholeImage& image,
                          const std::vector<double>& numbers,
                          const io::Image* picture) {
  inference::ResultFiles files;
  if (picture != nullptr) {
    files = {{"saliency", folder_ + "/" + image.name + "_saliency.png"}};
    io::write_png(files[0].second, *picture);
  }
  record_.remove_outdated(image.name, files);
  record_.add({image.name,
               image.path,
               image.stamp,
               files,
               fmt::format("{{\"numbers\":[{}]}}", fmt::join(numbers, ","))});
}

std::string WholeImageFiles::finish(const std::vector<WholeImage>& images,
                                    std::vector<std::string> columns,
                                    std::size_t count,
                                    const CellsOf& cells_of) {
  record_.read();
  columns.insert(columns.begin(), "image");
  std::vector<std::vector<std::string>> rows;
  for (const WholeImage& image : images) {
    const std::vector<double> numbers = find(image, count);
    if (numbers.empty()) throw IoError(folder_ + "/predictions.jsonl: no line of " + image.path);
    rows.push_back(cells_of(numbers));
    rows.back().insert(rows.back().begin(), io::safe_cell(image.path));
  }
  std::string path = folder_ + "/predictions.csv";
  io::write_table(path, columns, rows);
  return path;
}

}  // namespace cytra::pipelines
