#include "pipelines/fundus/files.h"

#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/own_files.h"
#include "config/text_of.h"
#include "data/loader/cache.h"
#include "io/csv.h"
#include "io/fingerprint.h"

namespace cytra::pipelines {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kFundusColumns{"image",
                                              "name",
                                              "state",
                                              "y",
                                              "x",
                                              "major",
                                              "minor",
                                              "angle",
                                              "top",
                                              "bottom",
                                              "left",
                                              "right",
                                              "size",
                                              "fill",
                                              "rms",
                                              "inliers",
                                              "edges",
                                              "stamp"};

constexpr const char* kFundusParts[] = {"images", "contrast", "masks"};

/// Makes the folder. Throws: as FundusFiles.
std::string own_folder(const std::string& folder, const std::vector<FundusInput>& inputs) {
  for (const char* part : kFundusParts) {
    const fs::path own = fs::path(folder) / part;
    if (!path_exists(own)) continue;
    if (!path_exists(folder + "/fundus.csv")) {
      throw ConfigError(
          "paths.output_dir: {} exists, but there is no fundus.csv of an earlier run: its files "
          "would be overwritten; expected a folder of its own",
          own.string());
    }
    for (const FundusInput& input : inputs) {
      if (are_same_file(fs::path(input.path).parent_path(), own)) {
        throw ConfigError("paths.output_dir: {} would be overwritten; expected another folder",
                          input.path);
      }
    }
  }
  make_folders(folder);
  keep_own_files(folder);
  expect_replaceable(folder + "/fundus.csv");
  if (path_exists(folder + "/fundus.csv") && !path_exists(folder + "/fundus.jsonl"))
    log::warn(
        "{}/fundus.csv is of an earlier version and is made anew: rows of images that are not "
        "among these are dropped",
        folder);
  return folder;
}

}  // namespace

FundusFiles::FundusFiles(std::string folder,
                         const std::vector<FundusInput>& inputs,
                         const FundusOptions& options,
                         const std::string& settings)
    : folder_(own_folder(folder, inputs)),
      options_(options),
      settings_("1 " + config::text_of(options, {"batch_size", "workers"}) + settings),
      lock_(folder_),
      record_(folder_, "fundus") {
  for (const char* part : kFundusParts) {
    const std::string own = fmt::format("{}/{}", folder_, part);
    if (folder_exists(own)) remove_stale_temporaries(own);
  }
  write_table();  // from now on the folder is ours
}

bool FundusFiles::has(const FundusInput& input) {
  const auto known = record_.lines().find(input.name);
  if (known != record_.lines().end() && known->second.image != input.path && !has_warned_) {
    has_warned_ = true;
    log::warn("{}: takes the place of {} in {}/fundus.csv, as others of the same name may",
              input.path,
              known->second.image,
              folder_);
  }
  std::string& stamp = stamps_[input.name];
  stamp = io::fingerprint(data::content_stamp(input.path) + " " + settings_).substr(0, 16);
  return record_.find(input.name, stamp).has_value();
}

void FundusFiles::add(const FundusInput& input, const data::fundus::Disc& disc) {
  inference::ResultFiles files;
  for (const std::string& name : fundus_files(input, options_))
    files.emplace_back(name.substr(0, name.find('/')), folder_ + "/" + name);
  record_.remove_outdated(input.name, files);
  add(input, name_of(disc.state), disc, stamps_.at(input.name), files);
}

void FundusFiles::add_failed(const FundusInput& input, const data::fundus::Disc* disc) {
  add(input,
      disc != nullptr ? name_of(disc->state) : "not read",
      disc != nullptr ? *disc : data::fundus::Disc(),
      "",
      record_.outdated(input.name, {}));
}

void FundusFiles::add(const FundusInput& input,
                      const std::string& state,
                      const data::fundus::Disc& disc,
                      const std::string& stamp,
                      const inference::ResultFiles& files) {
  std::vector<std::string> row{state};
  for (const double number : {disc.y,
                              disc.x,
                              disc.major,
                              disc.minor,
                              disc.angle,
                              disc.top,
                              disc.bottom,
                              disc.left,
                              disc.right,
                              static_cast<double>(options_.view.size),
                              options_.view.fill,
                              disc.rms})
    row.push_back(io::cell_of(number));
  row.push_back(std::to_string(disc.inliers));
  row.push_back(std::to_string(disc.edges));
  added_[input.name] = input.path;
  record_.add({input.name,
               input.path,
               stamp,
               files,
               fmt::format("{{\"row\":[\"{}\"]}}", fmt::join(row, "\",\""))});
}

std::string FundusFiles::write_table() {
  record_.read();
  for (const auto& [name, image] : added_)
    if (record_.lines().count(name) == 0)
      throw IoError("{}/fundus.jsonl: no line for {}", folder_, image);
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, line] : record_.lines()) {
    try {
      const config::Node known = record_.line(name, line.stamp, line.image);
      auto row = known.get<std::vector<std::string>>("row");
      row.insert(row.begin(), {line.image, name});
      row.push_back(line.stamp);
      for (std::string& cell : row) cell = io::safe_cell(cell);
      if (row.size() == kFundusColumns.size()) rows.push_back(std::move(row));
    } catch (const Error&) {  // none of this program's
    }
  }
  const std::string path = folder_ + "/fundus.csv";
  io::write_table(path, kFundusColumns, rows);
  return path;
}

}  // namespace cytra::pipelines
