#include "pipelines/job/done_record.h"

#include <fstream>

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "config/json.h"
#include "io/fingerprint.h"

namespace cytra::pipelines {

using config::Node;
namespace {

constexpr std::string_view kCheck = ",\"check\":\"";  // before the sum
constexpr std::size_t kSumDigits = 32;

}  // namespace

DoneRecord::DoneRecord(std::string path) : path_(std::move(path)), file_(path_) {
  read();
}

void DoneRecord::append(std::string_view line) {
  line.remove_suffix(line.size() - line.rfind('}'));
  file_.append(fmt::format("{}{}{}\"}}\n", line, kCheck, io::fingerprint(std::string(line) + "}")));
}

/// Throws: DataError for a line that is not as append() wrote it.
Node DoneRecord::parse(const std::string& line) const {
  const std::size_t tail = kCheck.size() + kSumDigits + 2;
  const std::size_t body = line.size() < tail ? 0 : line.size() - tail;
  if (line.compare(body, kCheck.size(), kCheck) != 0 ||
      line.substr(body + kCheck.size(), kSumDigits) != io::fingerprint(line.substr(0, body) + "}"))
    throw DataError(path_ + ": a line that is damaged");
  return config::from_utf8(config::parse_json(line, path_));
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
      const Node node = parse(line);
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
  try {
    return parse(line);
  } catch (const DataError&) {  // changed since
    throw IoError(fmt::format("{}: no line of {}", path_, image));
  }
}

}  // namespace cytra::pipelines
