#pragma once
#include <string>
#include <vector>

namespace cytra::io {

/// A table with a header line: RFC 4180 quoting; ",", ";" or tab, whichever gives all lines
/// equally many cells; UTF-8 with or without BOM, UTF-16 with BOM (columns' names in Windows-1252,
/// too); LF or CRLF. Lines without a value are left out, also those of separators alone, as
/// spreadsheets write.
struct Table {
  std::string path;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::vector<int> lines;  // line of each row in the file
  /// The index of a column. Throws: DataError with the nearest name.
  std::size_t column(const std::string& name) const;
};
/// Reads a table of at most 256 MiB, 10 000 columns and 20 million cells. Throws: DataError (a row
/// with another number of cells, an open quote, an empty file, a larger table), ConfigError (no
/// such file).
Table read_table(const std::string& path);
/// Appends a line of a table, for tables that are written row by row.
void append_row(const std::vector<std::string>& cells, char separator, std::string& out);
/// Writes a table. `rows` have as many cells as `columns`; quoted by RFC 4180, "," (or tab for
/// .tsv), LF. Atomic. Throws: as AtomicFile.
void write_table(const std::string& path,
                 const std::vector<std::string>& columns,
                 const std::vector<std::vector<std::string>>& rows);
/// Makes foreign text a cell that no spreadsheet program takes for a formula: puts ' in front of a
/// text that begins with = + - @ or a control character, and is no number.
std::string safe_cell(const std::string& text);
/// Reads the number in a cell, with "." or ","; false for another text.
bool read_number(const std::string& cell, double& value);
/// Makes a cell of a number: the shortest text that gives the same number, with "." whatever the
/// locale; "" for NaN.
std::string cell_of(double value);

}  // namespace cytra::io
