#include "io/csv.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "io/input_file.h"

namespace cytra::io {
namespace {

// A cell takes 32 bytes beside its text.
constexpr uint64_t kMostBytes = uint64_t{256} << 20;
constexpr std::size_t kMostColumns = 10'000, kMostCells = 20'000'000;

class TableParser {
 public:
  TableParser(const std::string& path, std::string_view text)
      : path_(path), text_(text), separator_(ends_with(path, ".tsv") ? '\t' : ',') {
    if (separator_ == '\t') return;
    // Excel's first line says it; else, where commas are in numbers, it writes ';'
    if (starts_with(text_, "sep=;")) {
      separator_ = ';';
      at_ = 5;
      end_line();
      return;
    }
    const std::string_view header = text_.substr(0, text_.find_first_of("\r\n"));
    if (header.find(',') == std::string_view::npos && header.find(';') != std::string_view::npos)
      separator_ = ';';
  }

  /// The next line that is not empty; false at the end. Sets line() to where it began.
  bool next_row(std::vector<std::string>& cells) {
    for (; at_ < text_.size(); end_line()) {
      if (text_[at_] != '\r' && text_[at_] != '\n') break;
    }
    if (at_ >= text_.size()) return false;
    row_line_ = line_;
    cells.clear();
    do {
      cells.push_back(text_.substr(at_, 1) == "\"" ? quoted_cell() : plain_cell());
    } while (at_ < text_.size() && text_[at_] == separator_ && ++at_);
    end_line();
    return true;
  }
  int line() const { return row_line_; }
  [[noreturn]] void fail(int line, const std::string& what) const {
    throw DataError(fmt::format("{}:{}: {}", path_, line, what));
  }

 private:
  std::string plain_cell() {
    const std::size_t end =
        std::min(text_.find_first_of(std::string{separator_, '\r', '\n'}, at_), text_.size());
    const std::string_view cell = text_.substr(at_, end - at_);
    at_ = end;
    return std::string(cell);
  }

  std::string quoted_cell() {
    std::string cell;
    const int begin = line_;
    for (++at_;; ++at_) {
      if (at_ >= text_.size())
        fail(begin, "a quote that is never closed, expected '\"' at the cell's end");
      if (text_[at_] == '"' && text_.substr(at_ + 1, 1) != "\"") break;
      if (text_[at_] == '"') ++at_;
      line_ += text_[at_] == '\n';
      cell += text_[at_];
    }
    ++at_;
    if (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\r' &&
        text_[at_] != '\n') {
      fail(line_,
           "text after a closing quote, expected a separator; write a quote within a cell as "
           "'\"\"'");
    }
    return cell;
  }

  void end_line() {
    if (at_ >= text_.size()) return;
    at_ += text_.substr(at_, 2) == "\r\n" ? 2 : 1;
    ++line_;
  }

  const std::string& path_;
  std::string_view text_;
  char separator_;
  std::size_t at_ = 0;
  int line_ = 1, row_line_ = 1;
};

/// As a spreadsheet program sees it, or with ' in front of that.
bool is_formula(const std::string& text) {
  const std::size_t first = text.find_first_not_of('\'');
  return first != std::string::npos &&
         std::string_view("=+-@\t\r\n").find(text[first]) != std::string_view::npos;
}

void check_header(const TableParser& parser, const std::vector<std::string>& columns) {
  if (columns.size() > kMostColumns) {
    parser.fail(parser.line(),
                fmt::format("{} columns, expected at most {}", columns.size(), kMostColumns));
  }
  std::set<std::string_view> seen;
  for (const std::string& column : columns) {
    // An empty name may repeat: pandas writes one above its row numbers, spreadsheets add some at
    // the end.
    if (!seen.insert(column).second && !column.empty()) {
      parser.fail(parser.line(),
                  "the column '" + printable(column) + "' occurs twice, expected every name once");
    }
  }
  if (columns.size() != 1) return;
  for (const char separator : {'\t', ',', ';'}) {
    if (columns[0].find(separator) != std::string::npos) {
      parser.fail(
          parser.line(),
          fmt::format("the cells are separated by '{}', expected ',' or ';' (or tabs in a .tsv)",
                      separator == '\t' ? "\\t" : std::string(1, separator)));
    }
  }
}

}  // namespace

void append_row(const std::vector<std::string>& cells, char separator, std::string& out) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) out += separator;
    const std::string& cell = cells[i];
    const char special[] = {separator, '"', '\r', '\n', '\0'};
    if (cell.find_first_of(special) == std::string::npos && !(cell.empty() && cells.size() == 1)) {
      out += cell;
      continue;
    }
    out += '"';
    for (const char letter : cell) {
      if (letter == '"') out += '"';
      out += letter;
    }
    out += '"';
  }
  out += '\n';
}

std::string safe_cell(const std::string& text) {
  if (!is_formula(text)) return text;
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  const bool is_number = std::isspace(static_cast<unsigned char>(text[0])) == 0 && *end == '\0';
  return is_number ? text : "'" + text;
}

std::string text_of_cell(const std::string& cell) {
  return starts_with(cell, "'") && is_formula(cell) ? cell.substr(1) : cell;
}

std::string cell_of(double value) {
  return std::isnan(value) ? "" : fmt::format("{}", value);
}

void write_table(const std::string& path,
                 const std::vector<std::string>& columns,
                 const std::vector<std::vector<std::string>>& rows) {
  constexpr std::size_t kFlush = std::size_t{1} << 20;
  const char separator = ends_with(path, ".tsv") ? '\t' : ',';
  AtomicFile file(path);
  std::string out;
  append_row(columns, separator, out);
  for (const std::vector<std::string>& row : rows) {
    if (row.size() != columns.size())
      throw std::logic_error("a row of other cells than the header");
    append_row(row, separator, out);
    if (out.size() < kFlush) continue;
    file.write(out);
    out.clear();
  }
  file.write(out);
  file.commit();
}

std::size_t Table::column(const std::string& name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found != columns.end()) return static_cast<std::size_t>(found - columns.begin());
  std::vector<std::string> shown;
  for (const std::string& known : columns) shown.push_back(printable(known, 40));
  throw DataError(path + ": no column '" + printable(name) + "', expected it in the header line." +
                  suggestion(name, shown));
}

Table read_table(const std::string& path) {
  const std::string text = read_input(path, kMostBytes);
  Table table;
  table.path = path;
  std::string_view body = text;
  if (starts_with(body, "\xEF\xBB\xBF")) body.remove_prefix(3);
  if (body.find('\0') != std::string_view::npos) {
    throw DataError(path +
                    ": not a text file in UTF-8, expected a CSV table; a spreadsheet program saves "
                    "one as 'CSV UTF-8'");
  }
  TableParser parser(path, body);
  if (!parser.next_row(table.columns))
    throw DataError(path + ": empty, expected a header line with the columns' names");
  check_header(parser, table.columns);
  std::vector<std::string> cells;
  const auto is_empty = [](const std::string& cell) { return cell.empty(); };
  while (parser.next_row(cells)) {
    if (cells.size() > 1 && std::all_of(cells.begin(), cells.end(), is_empty)) continue;
    if (cells.size() != table.columns.size()) {
      parser.fail(
          parser.line(),
          fmt::format("{} cells, expected {} as in the header; quote a cell that holds a separator",
                      cells.size(),
                      table.columns.size()));
    }
    if ((table.rows.size() + 1) * cells.size() > kMostCells)
      parser.fail(parser.line(), fmt::format("more cells, expected at most {}", kMostCells));
    table.rows.push_back(cells);
    table.lines.push_back(parser.line());
  }
  return table;
}

}  // namespace cytra::io
