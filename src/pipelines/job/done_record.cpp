#include "pipelines/job/done_record.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/own_files.h"
#include "base/strings.h"
#include "config/json.h"
#include "io/fingerprint.h"

namespace cytra::pipelines {

using config::Node;
using inference::ResultFiles;
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kCheck = ",\"check\":\"";  // before the sum
constexpr std::size_t kSumDigits = 32;

/// Throws: DataError for a name that is not below the folder, or behind a link in it.
std::string path_below(const std::string& folder, const std::string& name) {
  for (const std::string& part : split(name, '/')) {
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string::npos)
      throw DataError(name + ": no result's name");
  }
  const fs::path within = fs::path(name).parent_path();
  std::error_code ignored;
  if (!within.empty() && fs::weakly_canonical(fs::path(folder) / within, ignored) !=
                             fs::weakly_canonical(folder, ignored) / within)
    throw DataError(name + ": behind a link");
  return folder + "/" + name;
}

ResultFiles files_of(const Node& line, const std::string& folder) {
  ResultFiles files;
  const Node* const found = line.find_direct("files");
  if (found == nullptr) return files;
  if (!found->is_map()) throw DataError("files: expected their names by their kinds");
  for (const auto& [kind, names] : found->map) {
    const std::vector<Node> single{names};
    for (const Node& name : names.kind == config::Kind::list ? names.list : single)
      files.emplace_back(kind, path_below(folder, name.as<std::string>()));
  }
  return files;
}

/// The names of the files. A time lapse has several of a kind.
Node names_of(const ResultFiles& files, const std::string& folder) {
  Node names = Node::make_map();
  for (const auto& [kind, path] : files) {
    const Node name = Node::make_string(path.substr(folder.size() + 1));
    Node* const known = names.find_direct(kind);
    if (known == nullptr) {
      names.set(kind, name);
    } else if (known->kind == config::Kind::list) {
      known->list.push_back(name);
    } else {
      *known = Node::make_list({*known, name});
    }
  }
  return names;
}

}  // namespace

DoneRecord::DoneRecord(std::string folder, std::string kind, int64_t rank)
    : folder_(std::move(folder)),
      kind_(std::move(kind)),
      own_(fmt::format(
          "{}/{}{}.jsonl", folder_, kind_, rank == 0 ? "" : fmt::format(".rank{}", rank))),
      file_(own_) {
  keep_own_files(folder_);  // for every process
  std::ifstream own(own_, std::ios::binary | std::ios::ate);
  if (own.tellg() > 0 && own.seekg(-1, std::ios::end).get() != '\n')
    file_.append("\n");  // after a line that was cut
  read();
}

void DoneRecord::append(const std::string& line) {
  const std::lock_guard lock(mutex_);
  file_.append(fmt::format("{}{}{}\"}}\n",
                           std::string_view(line).substr(0, line.size() - 1),
                           kCheck,
                           io::fingerprint(line)));
}

/// Throws: DataError for a line that is not as append() wrote it.
Node DoneRecord::parse(const std::string& line) const {
  const std::size_t tail = kCheck.size() + kSumDigits + 2;
  const std::size_t body = line.size() < tail ? 0 : line.size() - tail;
  if (line.compare(body, kCheck.size(), kCheck) != 0 ||
      line.substr(body + kCheck.size(), kSumDigits) != io::fingerprint(line.substr(0, body) + "}"))
    throw DataError(own_ + ": a line that is damaged");
  return config::from_utf8(config::parse_json(line, own_));
}

std::vector<std::string> DoneRecord::paths() const {
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kind_ + ".") && name.ends_with(".jsonl") &&
        fs::is_regular_file(entry.symlink_status(ignored)))
      found.emplace_back(entry.last_write_time(ignored), folder_ + "/" + name);
  }
  std::ranges::sort(found);
  std::vector<std::string> paths;
  for (auto& [time, path] : found) paths.push_back(std::move(path));
  return paths;
}

void DoneRecord::read() {
  for (const std::string& path : paths()) read(path, nullptr);
}

void DoneRecord::read(const std::string& path, Others* others) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  auto& [key, from] = *read_.try_emplace(path).first;
  if (from > file.tellg()) from = 0;  // the file was cut
  file.seekg(from);
  for (std::string line; std::getline(file, line) && !file.eof(); from = file.tellg()) {
    try {
      take(parse(line), {"", "", {}, &key, from}, others);
    } catch (const Error&) {
    }
  }
}

void DoneRecord::take(const Node& node, Line line, Others* others) {
  if (node.has("failed")) {
    if (others != nullptr) {
      others->failed.emplace_back(node.get<std::string>("image"),
                                  static_cast<int>(node.get<int64_t>("failed")));
    }
    return;
  }
  const auto name = node.get<std::string>("name");
  line.image = node.get<std::string>("image");
  line.stamp = node.get<std::string>("stamp");
  line.files = files_of(node, folder_);
  if (others != nullptr) {
    others->files.insert(others->files.end(), line.files.begin(), line.files.end());
    others->done += node.get<int64_t>("images", 1);
    others->has_joined = others->has_joined || node.has("images");
    if (node.has("order"))
      others->images.push_back({node.get<std::vector<int64_t>>("order"), name, line.stamp});
  }
  note_owner(name, line.files);
  lines_[name] = std::move(line);
}

DoneRecord::Others DoneRecord::of_others() {
  Others others;
  for (const std::string& path : paths())
    if (path != own_) read(path, &others);
  if (!others.has_joined) return others;
  std::erase_if(others.files, [](const auto& file) { return !path_exists(file.second); });
  return others;
}

void DoneRecord::note_owner(const std::string& name, const ResultFiles& files) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [kind, path] : files) owners_[path] = name;
}

void DoneRecord::add(const DoneImage& image) {
  note_owner(image.name, image.files);
  Node node = Node::make_map();
  node.set("name", Node::make_string(image.name));
  node.set("image", Node::make_string(image.image));
  node.set("stamp", Node::make_string(image.stamp));
  if (!image.files.empty()) node.set("files", names_of(image.files, folder_));
  if (image.images != 1) node.set("images", Node::make_integer(image.images));
  if (!image.order.empty()) node.set("order", Node::make_list(image.order));
  std::string line = config::to_json(config::to_utf8(node));
  if (!image.more.empty()) line.replace(line.size() - 1, 1, "," + image.more.substr(1));
  append(line);
}

void DoneRecord::add_again(const DoneImage& image) {
  Node node = Node::make_map();
  for (const auto& [key, value] : line(image.name, image.stamp, image.image).map)
    if (key != "check") node.set(key, value);
  node.set("order", Node::make_list(image.order));
  append(config::to_json(config::to_utf8(node)));
}

void DoneRecord::add_failed(const std::string& image, int code) {
  Node node = Node::make_map();
  node.set("image", Node::make_string(image));
  node.set("failed", Node::make_integer(code));
  append(config::to_json(config::to_utf8(node)));
}

bool DoneRecord::has(const std::string& name, const std::string& stamp) const {
  const auto found = lines_.find(name);
  return found != lines_.end() && found->second.stamp == stamp;
}

std::optional<ResultFiles> DoneRecord::find(const std::string& name,
                                            const std::string& stamp) const {
  if (!has(name, stamp)) return std::nullopt;
  const ResultFiles& files = lines_.at(name).files;
  const auto is_whole = [](const auto& file) { return is_as_written(file.second); };
  if (files.empty() || !std::ranges::all_of(files, is_whole)) return std::nullopt;
  note_owner(name, files);
  return files;
}

Node DoneRecord::line(const std::string& name,
                      const std::string& stamp,
                      const std::string& image) const {
  if (has(name, stamp)) {
    const Line& known = lines_.at(name);
    std::ifstream file(*known.path, std::ios::binary);
    file.seekg(known.place);
    std::string text;
    std::getline(file, text);
    try {
      Node node = parse(text);
      if (node.get<std::string>("name") == name && node.get<std::string>("stamp") == stamp)
        return node;
    } catch (const Error&) {  // changed since
    }
  }
  throw IoError("{}: no line for {}", own_, image);
}

ResultFiles DoneRecord::outdated(const std::string& name, const ResultFiles& files) const {
  ResultFiles old;
  const auto found = lines_.find(name);
  if (found == lines_.end()) return old;
  const std::lock_guard lock(mutex_);
  for (const auto& file : found->second.files) {
    const bool is_new =
        std::ranges::any_of(files, [&](const auto& one) { return one.second == file.second; });
    if (!is_new && owners_.at(file.second) == name && is_as_written(file.second))
      old.push_back(file);
  }
  return old;
}

void DoneRecord::remove_outdated(const std::string& name, const ResultFiles& files) const {
  for (const auto& [kind, path] : outdated(name, files)) {
    if (!may_replace(path)) continue;
    remove_all_quietly(path);
    ::rmdir(fs::path(path).parent_path().c_str());  // when it was the last one
  }
}

}  // namespace cytra::pipelines
