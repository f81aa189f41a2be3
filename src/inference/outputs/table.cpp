// NAME.csv: the measurements of a result's objects.
#include <cmath>
#include <optional>

#include <ATen/ATen.h>

#include "base/own_files.h"
#include "inference/outputs/measure.h"
#include "inference/outputs/objects.h"
#include "inference/outputs/output.h"
#include "inference/outputs/result.h"
#include "io/csv.h"

namespace cytra::inference {
namespace {

class TableOutput final : public ResultOutput {
 public:
  explicit TableOutput(OutputPlace place) : place_(std::move(place)), path_(place_.stem + ".csv") {
    expect_replaceable(path_);
  }
  bool takes_objects() const override { return true; }
  bool takes_object_rows() const override { return true; }
  void take(const ImageResult& result, const at::Tensor& rows) override {
    if (result.is_whole()) return;
    if (!measures_) measures_.emplace();
    const at::Tensor image = result.image().shown(rows_, rows.size(1));
    rows_ += rows.size(1);
    measures_->add(rows[0], image.sizes().slice(1) == rows.sizes().slice(1) ? image : at::Tensor());
    geometry_ = result.info().geometry;
    numbered_ = result.classes();
  }
  void take(const ImageResult& result, const ResultObjects& objects) override {
    if (!image_.defined()) image_ = result.image().shown(0, result.image().shape[1]);
    const bool is_same_grid = image_.sizes().slice(1) == objects.labels().sizes();
    Measurements own =
        measure(objects.labels(), is_same_grid ? image_ : at::Tensor(), result.info().geometry);
    has_classes_ = result.has_classes();
    table_.columns = std::move(own.columns);
    for (std::vector<double>& row : own.rows) {
      const auto kind = static_cast<double>(objects.class_of(static_cast<int64_t>(row[0])));
      row[0] += static_cast<double>(objects.first());
      if (has_classes_) row.insert(row.begin() + 1, kind);
      table_.rows.push_back(std::move(row));
    }
  }
  void finish(ResultFiles& files) override {
    if (measures_) table_ = measures_->finish(geometry_);
    if (numbered_) {
      has_classes_ = true;
      for (std::vector<double>& row : table_.rows)
        row.insert(row.begin() + 1, numbered_->at(static_cast<std::size_t>(row[0])));
    }
    std::vector<std::vector<std::string>> cells = table_.cells();
    if (has_classes_) table_.columns.insert(table_.columns.begin() + 1, "class");
    if (has_classes_ && place_.class_name) {
      table_.columns.insert(table_.columns.begin() + 2, "class_name");
      for (std::size_t i = 0; i < cells.size(); ++i)
        cells[i].insert(
            cells[i].begin() + 2,
            io::safe_cell(place_.class_name(static_cast<int64_t>(std::lround(table_.rows[i][1])))));
    }
    io::write_table(path_, table_.columns, cells);
    files.emplace_back("measurements", path_);
  }

 private:
  const OutputPlace place_;
  const std::string path_;
  at::Tensor image_;  // with the loaded values
  Measurements table_;
  std::optional<RowMeasures> measures_;  // of objects that come as rows
  ObjectClasses numbered_;               // their classes
  io::Geometry geometry_;
  int64_t rows_ = 0;
  bool has_classes_ = false;
};

const bool table_is_added = add_result_output<TableOutput>("table", "table");

}  // namespace
}  // namespace cytra::inference
