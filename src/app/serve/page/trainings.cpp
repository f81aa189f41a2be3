#include "app/serve/page/trainings.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <sys/stat.h>

#include "app/serve/http/json_body.h"
#include "app/serve/page/page.h"
#include "base/files.h"
#include "base/run_lock.h"
#include "base/strings.h"

namespace cytra::app {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 8;                 // folders below the given one
constexpr std::size_t kMostSeen = 100'000;  // entries of folders that are looked at
constexpr std::size_t kMostShown = 1000;    // runs, the newest

constexpr const char* kTrainingsPage = R"html(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Trainings - Cytra</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="page.css">
<script src="trainings.js" defer></script>
<header>
<h1><a href=".">Cytra</a>: trainings</h1>
<label>Token <input id="token" type="password" autocomplete="off" size="34"></label>
</header>
<main>
<p id="status" role="status"></p>
<p id="error" role="alert"></p>
<ul id="runs"></ul>
<iframe id="report" title="the report of a training" sandbox hidden></iframe>
</main>
</html>
)html";

// The report is shown without its script: it comes from a file.
constexpr const char* kTrainingsScript = R"js('use strict';
const by = id => document.getElementById(id);
let chosen = null, chosen_at = 0, last = '';

async function ask(path) {
  const headers = by('token').value ? {Authorization: 'Bearer ' + by('token').value} : {};
  const answer = await fetch(path, {headers});
  const text = await answer.text();
  if (answer.ok) return text;
  let said = text;
  try { said = JSON.parse(text).error; } catch { /* another server's words */ }
  throw new Error(said || `${answer.status} ${answer.statusText}`);
}

async function show(run) {
  chosen = run;
  const text = await ask('trainings/report?' + new URLSearchParams({run}));
  if (chosen !== run || text === last) return;
  last = by('report').srcdoc = text;
  by('report').hidden = false;
}

async function look() {
  try {
    const runs = JSON.parse(await ask('trainings/list'));
    by('status').textContent = runs.length ? '' : 'There is no training yet.';
    by('runs').replaceChildren(...runs.map(({run, is_running, changed}) => {
      const item = document.createElement('li'), button = document.createElement('button');
      button.textContent = run;
      button.ariaPressed = run === chosen;
      button.onclick = () => show(run).then(look).catch(say);
      item.append(button, is_running ? ' runs' : ' ended ' + new Date(1000 * changed).toLocaleString());
      return item;
    }));
    const changed = runs.find(({run}) => run === chosen)?.changed;
    if (changed && changed !== chosen_at) {
      await show(chosen);
      chosen_at = changed;
    }
    by('error').textContent = '';
  } catch (error) {
    say(error);
  }
}

const say = error => { by('error').textContent = error.message; };
const stored = () => { try { return sessionStorage.getItem('token'); } catch { return null; } };
by('token').value = new URLSearchParams(location.hash.slice(1)).get('token') ?? stored() ?? '';
history.replaceState(null, '', location.pathname);
by('token').onchange = look;
look();
setInterval(look, 3000);
)js";

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
    if (starts_with(name, ".") || entry.depth() >= kDeepest) entry.disable_recursion_pending();
    if (name != "report.html" || entry->is_symlink(ignored) || !entry->is_regular_file(ignored))
      continue;
    runs.push_back({entry->path().parent_path().lexically_relative(folder).string(),
                    changed_s(entry->path().string())});
  }
  std::sort(runs.begin(), runs.end(), [](const RunFolder& a, const RunFolder& b) {
    return a.changed != b.changed ? a.changed > b.changed : a.run < b.run;
  });
  if (runs.size() > kMostShown) runs.resize(kMostShown);
  return runs;
}

bool is_running(const std::string& folder) {
  std::error_code ignored;
  return fs::exists(folder + "/.lock", ignored) && !holder_of(folder, 0).empty();
}

}  // namespace

HttpResponse trainings_html() {
  return html_response(kTrainingsPage, /*has_styles=*/true);
}
HttpResponse trainings_script() {
  return {200, kTrainingsScript, "text/javascript; charset=utf-8"};
}

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
