#include "pipelines/done_record.h"

#include <fstream>

#include <fmt/format.h>

#include "base/error.h"
#include "config/json.h"

namespace cytra::pipelines {

using config::Node;

DoneRecord::DoneRecord(std::string path) : path_(std::move(path)), file_(path_) {
  read();
}

void DoneRecord::read() {
  std::ifstream file(path_, std::ios::binary);
  done_.clear();
  bool is_whole = true;
  for (std::string line;;) {
    const auto place = static_cast<int64_t>(file.tellg());
    if (!std::getline(file, line)) break;
    is_whole = !file.eof();
    try {
      const Node node = config::from_utf8(config::parse_json(line, path_));
      done_[node.get<std::string>("name")] = {node.get<std::string>("stamp"), place};
    } catch (const Error&) {
    }
  }
  if (!is_whole) file_.append("\n");  // behind a line that was cut
}

bool DoneRecord::has(const std::string& name, const std::string& stamp) const {
  const auto found = done_.find(name);
  return found != done_.end() && found->second.stamp == stamp;
}

Node DoneRecord::line(const std::string& name,
                      const std::string& stamp,
                      const std::string& image) const {
  if (!has(name, stamp)) throw IoError(fmt::format("{}: no line of {}", path_, image));
  std::ifstream file(path_, std::ios::binary);
  file.seekg(done_.at(name).place);
  std::string line;
  std::getline(file, line);
  return config::from_utf8(config::parse_json(line, path_));
}

}  // namespace cytra::pipelines
