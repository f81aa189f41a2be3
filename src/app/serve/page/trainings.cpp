#include "app/serve/page/trainings.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <sys/stat.h>

#include "app/serve/http/json_body.h"
#include "base/files.h"
#include "base/run_lock.h"
#include "base/strings.h"

namespace cytra::app {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 8;                 // folders below the given one
constexpr std::size_t kMostSeen = 100'000;  // entries of folders that are looked at
constexpr std::size_t kMostShown = 1000;    // runs, the newest

struct RunFolder {
  std::string run;
  int64_t changed = 0;
};

int64_t changed_s(const std::string& path) {
  struct stat state {};
  return ::stat(path.c_str(), &state) == 0 ? static_cast<int64_t>(state.st_mtime) : 0;
}

std::vector<RunFolder> run_folders(const std::string& folder) {
  std::vector<RunFolder> runs;
  std::error_code ignored;
  std::size_t seen = 0;
  for (fs::recursive_directory_iterator entry(folder, ignored), last;
       entry != last && seen < kMostSeen;
       entry.increment(ignored), ++seen) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(".") || entry.depth() >= kDeepest) entry.disable_recursion_pending();
    if (name != "report.html" || entry->is_symlink(ignored) || !entry->is_regular_file(ignored))
      continue;
    runs.push_back({entry->path().parent_path().lexically_relative(folder).string(),
                    changed_s(entry->path().string())});
  }
  std::ranges::sort(runs, [](const RunFolder& a, const RunFolder& b) {
    return a.changed != b.changed ? a.changed > b.changed : a.run < b.run;
  });
  if (runs.size() > kMostShown) runs.resize(kMostShown);
  return runs;
}

bool is_running(const std::string& folder) {
  return path_exists(folder + "/.lock") && !holder_of(folder, 0).empty();
}

}  // namespace

HttpResponse list_trainings(const std::string& folder) {
  Json list = Json::array();
  for (const auto& [run, changed] : run_folders(folder))
    list.push_back(
        {{"run", run}, {"is_running", is_running(folder + "/" + run)}, {"changed", changed}});
  return http_json(list);
}

HttpResponse training_report(const std::string& folder, const std::string& run) {
  for (const RunFolder& own : run_folders(folder)) {
    if (own.run != run) continue;
    std::string report = read_file(folder + "/" + run + "/report.html");
    const std::string running = "<span class=\"badge\">running</span>";
    if (const std::size_t at = report.find(running);
        at != std::string::npos && !is_running(folder + "/" + run))
      report.replace(at, running.size(), "<span class=\"badge bad\">ended without a word</span>");
    return html_response(std::move(report), /*has_styles=*/true);
  }
  throw HttpError(
      404, printable(run, 100) + ": there is no such training; GET /trainings/list names all");
}

}  // namespace cytra::app
