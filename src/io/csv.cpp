#include "io/csv.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/files.h"
#include "base/strings.h"
#include "base/unicode.h"
#include "io/input_file.h"

namespace cytra::io {
namespace {

// A cell takes 32 bytes besides its text.
constexpr uint64_t kMostBytes = uint64_t{256} << 20;
constexpr std::size_t kMostColumns = 10'000, kMostCells = 20'000'000;

class TableParser {
 public:
  TableParser(const std::string& path, std::string_view text) : path_(path), text_(text) {
    const bool says = text_.starts_with("sep=") && text_.size() > 4 &&
                      kSeparators.find(text_[4]) != std::string_view::npos;
    if (says) {  // Excel's first line
      separator_ = text_[4];
      at_ = 5;
      end_line();
    } else {
      find_separator(path.ends_with(".tsv"));
    }
  }

  /// Reads the next line that is not empty; false at the end. Sets line() to its first line.
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
    throw DataError("{}:{}: {}", path_, line, what);
  }

 private:
  static constexpr std::string_view kSeparators = ",;\t";

  /// Finds the separator that gives the first lines equally many cells; of several the most
  /// frequent, else the one by the file's name.
  void find_separator(bool is_tsv) {
    std::size_t best = 0;
    for (const char candidate : is_tsv ? std::string("\t;,") : std::string(kSeparators)) {
      TableParser trial(*this);
      trial.separator_ = candidate;
      std::vector<std::string> header, cells;
      trial.is_lenient_ = true;
      if (!trial.next_row(header) || header.size() < 2) continue;
      std::size_t alike = 0, others = 0;
      while (alike + others < 8 && trial.next_row(cells))
        ++(cells.size() == header.size() ? alike : others);
      const std::size_t score = header.size() + (others == 0 ? kMostColumns : 0);
      if (score > best) separator_ = candidate;
      best = std::max(best, score);
    }
    if (best == 0) separator_ = is_tsv ? '\t' : ',';
  }

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
      if (at_ >= text_.size() && is_lenient_) return cell;
      if (at_ >= text_.size())
        fail(begin, "a quote that is never closed, expected '\"' at the cell's end");
      if (text_[at_] == '"' && text_.substr(at_ + 1, 1) != "\"") break;
      if (text_[at_] == '"') ++at_;
      line_ += text_[at_] == '\n';
      cell += text_[at_];
    }
    ++at_;
    if (is_lenient_) return cell + plain_cell();
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
  char separator_ = ',';
  bool is_lenient_ = false;  // while the separator is searched
  std::size_t at_ = 0;
  int line_ = 1, row_line_ = 1;
};

/// Whether spreadsheet programs take the text for a formula, or would without a ' in front.
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
}

/// Reads the text of a table: UTF-16 becomes UTF-8; other bytes stay, as names of files may have
/// any.
std::string text_of_table(const std::string& path) {
  std::string text = read_input(path, kMostBytes);
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    text = from_utf16(text);
  } else if (text.starts_with("\xEF\xBB\xBF")) {
    text.erase(0, 3);
  }
  if (text.find('\0') != std::string::npos) {
    throw DataError(path +
                    ": not a text file, expected a CSV table; a spreadsheet program saves one as "
                    "'CSV UTF-8'");
  }
  return text;
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

std::string cell_of(double value) {
  return std::isnan(value) ? "" : fmt::format("{}", value);
}

void write_table(const std::string& path,
                 const std::vector<std::string>& columns,
                 const std::vector<std::vector<std::string>>& rows) {
  constexpr std::size_t kFlush = std::size_t{1} << 20;
  const char separator = path.ends_with(".tsv") ? '\t' : ',';
  AtomicFile file(path);
  std::string out;
  append_row(columns, separator, out);
  for (const std::vector<std::string>& row : rows) {
    if (row.size() != columns.size())
      throw std::logic_error("a row with other cells than the header");
    append_row(row, separator, out);
    if (out.size() < kFlush) continue;
    file.write(out);
    out.clear();
  }
  file.write(out);
  file.commit();
}

bool read_number(const std::string& cell, double& value) {
  std::string text = trim(cell);
  const std::size_t comma = text.find(',');
  if (comma != std::string::npos && text.find('.') == std::string::npos) text[comma] = '.';
  if (text.empty() || text.find_first_of("xXpP") != std::string::npos) return false;
  const auto [end, error] =
      std::from_chars(text.data() + (text[0] == '+' ? 1 : 0), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::size_t Table::column(const std::string& name) const {
  const auto found = std::ranges::find(columns, name);
  if (found != columns.end()) return static_cast<std::size_t>(found - columns.begin());
  std::vector<std::string> shown;
  for (const std::string& known : columns) shown.push_back(printable(known, 40));
  throw DataError(path + ": no column '" + printable(name) + "', expected it in the header line." +
                  suggestion(name, shown));
}

Table read_table(const std::string& path) {
  const std::string text = text_of_table(path);
  Table table;
  table.path = path;
  TableParser parser(path, text);
  if (!parser.next_row(table.columns))
    throw DataError(path + ": empty, expected a header line with the columns' names");
  for (std::string& name : table.columns)
    if (!is_utf8(name)) name = from_windows_1252(name);
  check_header(parser, table.columns);
  std::vector<std::string> cells;
  const auto is_empty = [](const std::string& cell) { return cell.empty(); };
  while (parser.next_row(cells)) {
    if (cells.size() > 1 && std::ranges::all_of(cells, is_empty)) continue;
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
