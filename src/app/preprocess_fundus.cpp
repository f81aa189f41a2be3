// `preprocess_fundus`: photographs of retinas at one place, size and contrast, with a table of
// where each disc was.
#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/run/entry.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/run_lock.h"
#include "base/signals.h"
#include "base/strings.h"
#include "config/text_of.h"
#include "data/cache.h"
#include "io/csv.h"
#include "io/fingerprint.h"
#include "pipelines/fundus/fundus.h"
#include "pipelines/job/books.h"
#include "pipelines/job/done_record.h"
#include "pipelines/job/inputs.h"
#include "pipelines/job/names.h"
#include "pipelines/job/stamp.h"

namespace cytra::app {
namespace {

using data::fundus::Disc;

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

struct FundusData {
  std::string path, key = "raw";
  template <class V>
  void visit(V& v) {
    v("path", path, "an image, a folder of images, or a manifest (.csv, .tsv)", config::required);
    v("key", key, "the manifest's column of the images");
  }
};

struct FundusConfig : CommonConfig {
  FundusData data;
  pipelines::FundusOptions fundus;
  perf::DeviceOptions trainer;
  template <class V>
  void visit(V& v) {
    v("data", data, "the photographs");
    v("fundus", fundus, "how the retina is found, and what is written");
    v("trainer", trainer, "where to compute");
    CommonConfig::visit(v);
  }
};

const bool fundus_is_added = add_program<FundusConfig>("preprocess_fundus");

/// fundus.csv of a folder: a row for each image, by its name, out of fundus.jsonl.
class FundusTable {
 public:
  explicit FundusTable(const std::string& folder)
      : path_(folder + "/fundus.csv"), record_(folder, "fundus") {
    write();  // from now on the folder is ours
  }
  /// The photograph whose results have this name; "": none.
  std::string image_of(const std::string& name) const {
    const auto found = record_.lines().find(name);
    return found == record_.lines().end() ? "" : found->second.image;
  }
  bool has(const std::string& name, const std::string& stamp) const {
    return record_.find(name, stamp).has_value();
  }
  /// `stamp` is "" of one without results.
  void add(const pipelines::FundusInput& input,
           const std::string& state,
           const Disc& disc,
           const data::fundus::View& view,
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
                                static_cast<double>(view.size),
                                view.fill,
                                disc.rms})
      row.push_back(io::cell_of(number));
    row.push_back(std::to_string(disc.inliers));
    row.push_back(std::to_string(disc.edges));
    if (!stamp.empty()) record_.remove_outdated(input.name, files);
    record_.add({input.name,
                 input.path,
                 stamp,
                 stamp.empty() ? record_.outdated(input.name, {}) : files,
                 fmt::format("{{\"row\":[\"{}\"]}}", fmt::join(row, "\",\""))});
  }
  void write() {
    record_.read();
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
    io::write_table(path_, kFundusColumns, rows);
  }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  pipelines::DoneRecord record_;
};

constexpr const char* kFundusParts[] = {"images", "contrast", "masks"};

/// Throws: ConfigError where photographs, or masks of the user's own, would be overwritten.
void expect_own_folder(const std::string& folder,
                       const std::vector<pipelines::FundusInput>& inputs) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (const char* part : kFundusParts) {
    const fs::path own = fs::path(folder) / part;
    if (!fs::exists(own, ignored)) continue;
    if (!fs::exists(folder + "/fundus.csv", ignored)) {
      throw ConfigError(
          fmt::format("paths.output_dir: {} is there, but no fundus.csv of an earlier run: its "
                      "files would be overwritten; expected a folder of its own",
                      own.string()));
    }
    for (const pipelines::FundusInput& input : inputs) {
      if (fs::equivalent(fs::path(input.path).parent_path(), own, ignored)) {
        throw ConfigError(fmt::format(
            "paths.output_dir: {} would be overwritten; expected another folder", input.path));
      }
    }
  }
}

/// All that the results of an image depend on.
std::string fundus_stamp(const std::string& path, const std::string& settings) {
  return io::fingerprint(data::content_stamp(path) + " " + settings).substr(0, 16);
}

inference::ResultFiles fundus_results(const std::string& folder,
                                      const pipelines::FundusInput& input,
                                      const pipelines::FundusOptions& options) {
  inference::ResultFiles files;
  for (const std::string& name : pipelines::fundus_files(input, options))
    files.emplace_back(name.substr(0, name.find('/')), folder + "/" + name);
  return files;
}

int run_fundus(cli::Run run, const FundusConfig& config) {
  watch_signals();
  perf::prepare(config.performance);
  const c10::Device device = perf::choose_device(config.trainer.accelerator);
  perf::apply(config.performance, device);
  const std::string& folder = config.paths.output_dir;
  pipelines::Books books(run.json);
  pipelines::InputOptions listed;
  listed.path = config.data.path;
  pipelines::OutputNames names;
  std::vector<pipelines::FundusInput> inputs;
  for (const data::Sample& sample : pipelines::list_inputs(
           listed, {config.data.key}, [&](const std::string&id, const std::exception&error) {
             books.leave_out(id, error);
             ++books.images;
           })) {
    const data::Source& source = sample.sources.at(config.data.key);
    inputs.push_back({source.path, names.next(source)});
  }
  books.images += static_cast<int64_t>(inputs.size());
  expect_own_folder(folder, inputs);
  make_folders(folder);
  const RunLock lock(folder);
  for (const char* part : kFundusParts) {
    const std::string own = fmt::format("{}/{}", folder, part);
    std::error_code ignored;
    if (std::filesystem::is_directory(own, ignored)) remove_stale_temporaries(own);
  }
  FundusTable table(folder);
  const std::string settings = "1 " + config::text_of(config.fundus, {"batch_size", "workers"}) +
                               config::text_of(config.performance, pipelines::kOptionsOfSpeed);
  std::map<std::string, std::string> stamps;
  std::vector<pipelines::FundusInput> left;
  bool has_told = false;
  for (const pipelines::FundusInput& input : inputs) {
    const std::string former = table.image_of(input.name);
    if (!former.empty() && former != input.path && !has_told) {
      has_told = true;
      log::warn("{}: takes the place of {} in {}, as others of the same name may",
                input.path,
                former,
                table.path());
    }
    const std::string& stamp = stamps[input.name] = fundus_stamp(input.path, settings);
    if (table.has(input.name, stamp)) {
      ++books.done;
      ++books.resumed;
    } else {
      left.push_back(input);
    }
  }
  pipelines::StageReport report("preprocess_fundus");
  const auto conclude = [&](int signal) {
    table.write();
    books.results.add("images", config::Node::make_integer(books.done));
    books.results.add("table", table.path());
    books.results.add("output_dir", folder);
    log::write(signal == 0 ? log::Level::info : log::Level::warn,
               (signal == 0 ? "" : "interrupted: ") + books.summary("done"));
    books.results.print();
  };
  {
    const pipelines::EndOnSignal end_on_signal(books, conclude);
    Progress progress("retinas", static_cast<int64_t>(left.size()));
    int64_t seen = 0;
    pipelines::FundusEvents events;
    events.done = [&](const pipelines::FundusInput& input, const Disc& disc) {
      const std::lock_guard guard(books.mutex);
      table.add(input,
                name_of(disc.state),
                disc,
                config.fundus.view,
                stamps.at(input.name),
                fundus_results(folder, input, config.fundus));
      ++books.done;
      progress.update(++seen);
    };
    events.failed =
        [&](const pipelines::FundusInput& input, const std::exception& error, const Disc* disc) {
          books.leave_out(input.path, error);
          const std::lock_guard guard(books.mutex);
          table.add(input,
                    disc != nullptr ? name_of(disc->state) : "not read",
                    disc != nullptr ? *disc : Disc(),
                    config.fundus.view,
                    "",
                    {});
          progress.update(++seen);
        };
    pipelines::preprocess_fundus(left, config.fundus, folder, device, report, events);
  }
  report.finish();
  log::info("{}", report.table());
  conclude(0);
  return books.code;
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_preprocess_fundus(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::run_fundus);
}
