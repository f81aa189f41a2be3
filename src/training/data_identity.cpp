#include "training/data_identity.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/log.h"
#include "config/json.h"
#include "io/fingerprint.h"
#include "io/reader.h"
#include "nn/weights.h"

namespace cytra::training {
namespace {

namespace fs = std::filesystem;
using config::Node;

/// Some bytes from the middle, where formats without compression have pixels.
std::string middle_of(const std::string& file, std::uintmax_t size) {
  constexpr std::uintmax_t kBytes = 1 << 16;
  std::string bytes(std::min(size, kBytes), '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(static_cast<std::streamoff>((size - bytes.size()) / 2));
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return io::fingerprint(bytes);
}

/// The first scalar in which two trees of options differ, "" for none. What one of them leaves to
/// the program (null, AUTO) differs from nothing.
std::string difference(const Node& was, const Node& is, const std::string& key) {
  if (was.is_map() && is.is_map()) {
    for (const auto& [name, value] : was.map) {
      const Node* own = is.find_direct(name);
      if (own == nullptr || name == "encoder_ckpt") continue;
      const std::string found = difference(value, *own, key + "." + name);
      if (!found.empty()) return found;
    }
    return "";
  }
  const auto is_open = [](const Node& node) {
    return node.is_null() || (node.kind == config::Kind::string && node.string == "AUTO");
  };
  const std::string before = config::to_json(was), now = config::to_json(is);
  if (before == now || is_open(was) || is_open(is)) return "";
  return fmt::format("{}: {} there, {} here", key, before, now);
}

std::string identity_text(const Node& identity) {
  return fmt::format(
      "{} ({} images)", identity.get<std::string>("path"), identity.get<int64_t>("images"));
}

}  // namespace

Node identity_of(const std::string& path, const std::vector<data::Sample>& samples) {
  constexpr std::size_t kLookedInto = 32;
  const std::size_t step = samples.size() / kLookedInto + 1;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].sources.empty()) lines.push_back(samples[i].id);
    for (const auto& [key, source] : samples[i].sources) {
      const std::string file = io::file_of(source.path);
      std::error_code error;
      const bool is_file = fs::is_regular_file(file, error);
      const std::uintmax_t size = is_file ? fs::file_size(file, error) : 0;
      const io::Selection& chosen = source.selection;
      lines.push_back(fmt::format("{} {}{} {} {} {} {} {} {}",
                                  key,
                                  fs::path(file).filename().string(),
                                  source.path.substr(file.size()),
                                  size,
                                  chosen.scene,
                                  chosen.timepoint,
                                  chosen.level,
                                  fmt::join(chosen.channels, ","),
                                  is_file && i % step == 0 ? middle_of(file, size) : ""));
    }
  }
  Node identity = Node::make_map();
  std::error_code error;
  identity.set("path", Node::make_string(fs::absolute(path, error).lexically_normal().string()));
  identity.set("images", Node::make_integer(std::ssize(samples)));
  identity.set("fingerprint",
               Node::make_string(io::fingerprint(fmt::format("{}", fmt::join(lines, "\n")))));
  return identity;
}

void expect_same_training(const std::string& checkpoint,
                          const Node& identity,
                          const Node& config,
                          bool chose) {
  const std::string another = fmt::format(
      "run_name=NAME begins a training of its own, checkpoint.ckpt_path={} goes on with "
      "this one all the same",
      checkpoint);
  const io::SafetensorsFile file = nn::open_checkpoint(checkpoint, "");
  const auto kept = file.metadata().find("trained_on");
  if (kept != file.metadata().end()) {
    const Node before = config::from_utf8(config::parse_json(kept->second, checkpoint));
    if (before.get<std::string>("fingerprint") != identity.get<std::string>("fingerprint")) {
      const std::string told = fmt::format("{}: a training on the data of {}, now {}",
                                           checkpoint,
                                           identity_text(before),
                                           identity_text(identity));
      if (!chose) throw ConfigError("{}; {}", told, another);
      log::warn("{}", told);
    }
  }
  if (chose) return;
  const Node before = nn::checkpoint_config(checkpoint);
  const Node *was = before.find("task.model"), *is = config.find("task.model");
  if (was == nullptr || is == nullptr) return;
  const std::string differs = difference(*was, *is, "model");
  if (!differs.empty())
    throw ConfigError("{}: another model ({}); {}",
                      checkpoint,
                      differs,
                      "run_name=NAME begins a training of its own");
}

}  // namespace cytra::training
