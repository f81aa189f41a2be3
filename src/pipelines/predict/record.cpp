#include "pipelines/predict/record.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/own_files.h"
#include "base/strings.h"
#include "config/json.h"

namespace cytra::pipelines {
namespace {

namespace fs = std::filesystem;
using config::Node;

constexpr char kName[] = "predictions";

std::string record_path(const std::string& folder, int64_t rank) {
  return fmt::format("{}/{}{}.jsonl", folder, kName, rank == 0 ? "" : fmt::format(".rank{}", rank));
}

}  // namespace

PredictRecord::PredictRecord(std::string folder, int64_t rank)
    : folder_(std::move(folder)), own_(record_path(folder_, rank)), file_(own_) {
  keep_own_files(folder_);  // for every process
  for (const std::string& path : paths()) read(path, nullptr);
  const std::string own = read_file(own_);
  if (!own.empty() && own.back() != '\n') file_.append("\n");  // behind a line that was cut
}

std::vector<std::string> PredictRecord::paths() const {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (starts_with(name, kName) && ends_with(name, ".jsonl") &&
        fs::is_regular_file(entry.symlink_status(ignored)))
      paths.push_back(folder_ + "/" + name);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// A file of the folder itself: what else a line names was not written by a run.
std::string PredictRecord::place_of(const std::string& name) const {
  if (name.empty() || name == "." || name == ".." ||
      name.find_first_of(std::string("/\0", 2)) != std::string::npos)
    throw DataError(name + ": no result's name");
  return folder_ + "/" + name;
}

void PredictRecord::take_over(const std::string& name, const inference::ResultFiles& files) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [kind, path] : files) owners_[path] = name;
}

/// A line that was cut short, or is none of ours, says nothing.
void PredictRecord::read(const std::string& path, Others* others) {
  const std::string text = read_file(path);
  int64_t& from = read_[path];
  if (from > static_cast<int64_t>(text.size())) from = 0;  // somebody has cut it
  for (const std::string& line : split(std::string_view(text).substr(from), '\n')) {
    if (line.empty()) continue;
    try {
      const Node node = config::from_utf8(config::parse_json(line, path));
      if (node.has("failed")) {
        if (others != nullptr) {
          others->failed.emplace_back(node.get<std::string>("image"),
                                      static_cast<int>(node.get<int64_t>("failed")));
        }
        continue;
      }
      Entry entry{node.get<std::string>("stamp"), {}};
      if (node.at("files").map.empty()) continue;  // no image is done without a result
      for (const auto& [kind, names] : node.at("files").map) {
        const std::vector<Node> single{names};
        for (const Node& name : names.kind == config::Kind::list ? names.list : single)
          entry.files.emplace_back(kind, place_of(name.as<std::string>()));
      }
      if (others != nullptr) {
        others->files.insert(others->files.end(), entry.files.begin(), entry.files.end());
        others->done += node.get<int64_t>("images", 1);
        others->has_joined = others->has_joined || node.has("images");
      }
      const auto owner = node.get<std::string>("name");
      take_over(owner, entry.files);
      entries_[owner] = std::move(entry);
    } catch (const Error&) {
    }
  }
  from = static_cast<int64_t>(text.size());
}

PredictRecord::Others PredictRecord::of_others() {
  Others others;
  for (const std::string& path : paths()) {
    if (path != own_) read(path, &others);
  }
  if (!others.has_joined) return others;
  const auto is_gone = [](const auto& file) {
    std::error_code ignored;
    return !fs::exists(file.second, ignored);
  };
  others.files.erase(std::remove_if(others.files.begin(), others.files.end(), is_gone),
                     others.files.end());
  return others;
}

void PredictRecord::add_failed(const std::string& image, int code) {
  Node node = Node::make_map();
  node.set("image", Node::make_string(image));
  node.set("failed", Node::make_integer(code));
  file_.append(config::to_json(config::to_utf8(node)) + "\n");
}

std::optional<inference::ResultFiles> PredictRecord::find(const std::string& name,
                                                          const std::string& stamp) const {
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.stamp != stamp) return std::nullopt;
  const inference::ResultFiles& files = found->second.files;
  const auto is_whole = [](const auto& file) { return is_as_written(file.second); };
  if (!std::all_of(files.begin(), files.end(), is_whole)) return std::nullopt;
  take_over(name, files);
  return files;
}

inference::ResultFiles PredictRecord::outdated(const std::string& name,
                                               const inference::ResultFiles& files) const {
  inference::ResultFiles old;
  const auto found = entries_.find(name);
  if (found == entries_.end()) return old;
  const std::lock_guard lock(mutex_);
  for (const auto& file : found->second.files) {
    const bool is_new = std::any_of(
        files.begin(), files.end(), [&](const auto& one) { return one.second == file.second; });
    if (!is_new && owners_.at(file.second) == name && is_as_written(file.second))
      old.push_back(file);
  }
  return old;
}

void PredictRecord::add(const std::string& name,
                        const std::string& image,
                        const std::string& stamp,
                        const inference::ResultFiles& files,
                        int64_t images) {
  take_over(name, files);
  Node names = Node::make_map();
  for (const auto& [kind, path] : files) {
    const Node name = Node::make_string(path.substr(folder_.size() + 1));
    Node* known = names.find_direct(kind);
    if (known == nullptr) {
      names.set(kind, name);
      continue;
    }
    if (known->kind != config::Kind::list)  // of a time lapse there are several
      *known = Node::make_list({*known});
    known->list.push_back(name);
  }
  Node node = Node::make_map();
  node.set("name", Node::make_string(name));
  node.set("image", Node::make_string(image));
  node.set("stamp", Node::make_string(stamp));
  node.set("files", names);
  if (images != 1) node.set("images", Node::make_integer(images));
  file_.append(config::to_json(config::to_utf8(node)) + "\n");
}

}  // namespace cytra::pipelines
