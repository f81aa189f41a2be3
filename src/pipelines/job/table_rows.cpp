#include "pipelines/job/table_rows.h"

#include <map>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "data/datamodule.h"
#include "data/layout/layout_table.h"
#include "io/csv.h"

namespace cytra::pipelines {
namespace {

using config::Node;

/// The rows that data.split names; with targets, and without it, those that nothing was learned
/// from.
std::vector<std::size_t> rows_of(const InputOptions& options, const InputWants& wants) {
  const io::Table table = io::read_table(options.path);
  const bool is_there = contains(table.columns, wants.split_column);
  const std::string name = is_there ? wants.split_column : data::split_column_of(table, 1);
  std::string wanted = options.split.value_or(options.with_target ? "" : "all");
  if (name.empty() && options.split && wanted != "all") {
    throw ConfigError(
        "data.split={}: no column of {} says train, valid or test for each row; expected one, or "
        "data.split=all",
        wanted,
        options.path);
  }
  if (name.empty()) wanted = "all";
  std::map<std::string, std::vector<std::size_t>> rows;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    std::string word = name.empty() ? "" : table.rows[row][table.column(name)];
    if (const Node* other = wants.split_map.find_direct(word)) word = other->as<std::string>();
    if (const auto split = data::split_named(word)) rows[data::name_of(*split)].push_back(row);
    rows["all"].push_back(row);
  }
  if (wanted.empty()) wanted = rows.count("test") > 0 || wants.has_folds ? "test" : "valid";
  if (wanted != "all" && rows[wanted].empty()) {
    throw ConfigError("{}: no row whose column '{}' says {}{}; data.split=all takes all",
                      options.path,
                      name,
                      wanted,
                      options.split ? "" : ", which was not trained on");
  }
  if (wanted != "all") {
    log::info("{}: {} of {} rows, whose column '{}' says {}; data.split=all takes all",
              options.path,
              rows[wanted].size(),
              table.rows.size(),
              name,
              wanted);
  }
  return rows[wanted];
}

}  // namespace

std::vector<data::Sample> read_rows(const data::Manifest& manifest,
                                    const InputOptions& options,
                                    const InputWants& wants,
                                    const std::string& key,
                                    const LeaveOut& leave_out) {
  if (manifest.rows() == 0) return manifest.samples();
  const std::vector<std::size_t> rows = rows_of(options, wants);
  if (options.on_error == "fail") return manifest.samples(rows);
  std::vector<data::Sample> samples;
  for (const std::size_t row : rows) {
    try {
      for (data::Sample& sample : manifest.samples({row})) samples.push_back(std::move(sample));
    } catch (const DataError& error) {
      leave_out(manifest.cell(row, manifest.column(key)), error);
    }
  }
  return samples;
}

}  // namespace cytra::pipelines
