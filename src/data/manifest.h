#pragma once
// Manifests: tables with a row per image. Source: cyto_dl.datamodules.dataframe, and
// cyto_dl.datamodules.multidim_image for the columns that select.
#include <string>
#include <vector>

#include "data/sample/sample.h"
#include "io/csv.h"

namespace cytra::data {

/// The path of a cell in `table`, relative to its folder. Backslashes of Windows are separators
/// where no file is named so, and a path with a drive or a server is the longest end of it that is
/// below the folder.
std::string path_in_table(const std::string& table, const std::string& cell);
/// Whether the cell is empty, or a word that pandas reads as NaN.
bool is_empty_cell(const std::string& cell);

/// A .csv or .tsv file whose image columns hold paths relative to its folder. `channel`, `scene`,
/// `resolution` and `timepoint` select an image of the file: a number from 0, or several with
/// commas; an empty cell selects nothing. Each of several scenes or time points of a row is a
/// sample, as is each of those from `start` to `stop` (included; the last when empty or -1) in
/// steps of `step`. They apply to every image column; KEY_channel and similar names apply to the
/// column KEY only, in place of the general one.
class Manifest {
 public:
  /// Reads the table. `columns`: those to read; empty: all. A column whose first cell is neither a
  /// file nor has an image's name holds text, for Sample::columns. Throws: DataError (no table, no
  /// such column, none with images), ConfigError (no such file). `leave_out`: rows that samples()
  /// would throw for are left out with a warning, unless none is left. `allow_empty`: an empty
  /// cell of an image column is text (Sample::columns) where the row has another image.
  Manifest(const std::string& path,
           const std::vector<std::string>& columns,
           const std::string& weight_column = "",
           bool leave_out = false,
           const std::string& axes = "",
           bool allow_empty = false);
  std::size_t rows() const { return table_.rows.size(); }
  /// The number of a column. Throws: DataError with the nearest column.
  std::size_t column(const std::string& name) const { return table_.column(name); }
  const std::string& cell(std::size_t row, std::size_t column) const {
    return table_.rows[row][column];
  }
  /// The place of a cell for messages: "m.csv:3: column 'split'".
  std::string place(std::size_t row, std::size_t column) const;
  /// The samples of these rows. Throws: DataError with a line, file:line first, per row (20 at
  /// most) whose image is missing or whose cell can't be read.
  std::vector<Sample> samples(const std::vector<std::size_t>& rows) const;
  std::vector<Sample> samples() const;

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  /// The columns that select for one image column; kNone: there is none.
  struct Selectors {
    std::size_t channel, scene, level, timepoint, start, stop, step;
  };
  struct ImageColumn {
    std::string name;
    std::size_t index;
    Selectors selectors;
  };
  std::size_t optional_column(const std::string& name) const;
  bool holds_images(std::size_t column, bool when_empty) const;
  Selectors selectors_of(const std::string& image_column) const;
  void add_row(std::size_t row, std::vector<Sample>& samples) const;
  /// The image of a row, or one image per scene and time point.
  std::vector<Source> sources(std::size_t row, const ImageColumn& column) const;
  std::vector<int64_t> numbers(std::size_t row, std::size_t column) const;
  int64_t number(std::size_t row, std::size_t column, int64_t otherwise) const;
  std::vector<int64_t> timepoints(std::size_t row,
                                  const Selectors& selectors,
                                  const std::string& path,
                                  const io::Selection& selection) const;

  io::Table table_;
  bool leave_out_, allow_empty_;
  std::string axes_;
  std::vector<ImageColumn> images_;
  std::vector<std::size_t> texts_;
  std::size_t weight_;
};

}  // namespace cytra::data
