#include "config/composition/moved_keys.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"
#include "base/warn_once.h"
#include "config/composition/merge.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

struct MovedKey {
  std::string before, now;
};

/// The moved keys. Of two keys with the same beginning the longer one comes first; of two with the
/// same `before` the first one that the program has is used.
const std::vector<MovedKey>& moved_keys() {
  static const std::vector<MovedKey> keys{{"model.spatial_dims", "spatial_dims"},
                                          {"model.inference_args", "task.inference_args"},
                                          {"model.inference_args", "inference_args"},
                                          {"model.optimizer.generator", "optimizer"},
                                          {"model.optimizer", "optimizer"},
                                          {"model.lr_scheduler.generator", "scheduler"},
                                          {"model.lr_scheduler", "scheduler"},
                                          {"model.prefetch_factor", "data.prefetch_factor"},
                                          {"performance.channels_last", "model.channels_last"},
                                          {"gpu.precision", "trainer.precision"},
                                          {"gpu.allow_tf32", "performance.enable_tf32"},
                                          {"processing.num_threads", "data.num_workers"},
                                          {"processing.max_queue_size", "video.queue_frames"}};
  return keys;
}

/// Keys of the guides that have nothing to set in a program, and why.
constexpr std::pair<const char*, const char*> kIdleKeys[] = {
    {"processing.use_multiprocessing",
     "images are loaded by threads, which share memory (data.num_workers)"},
    {"processing.max_queue_size",
     "each thread that loads keeps data.prefetch_factor batches ready; process_video has "
     "video.queue_frames"}};

/// Whether a key is one of these, which is told.
bool tell_idle(const std::string& key) {
  for (const auto& [name, why] : kIdleKeys) {
    if (key != name) continue;
    warn_once(key + ": no effect, " + why);
    return true;
  }
  return false;
}

/// Writes the guides' names of precisions as Lightning does.
void rename_value(const MovedKey& key, Node& value) {
  if (key.before != "gpu.precision" || value.kind != Kind::string) return;
  const std::string name = in_small_letters(value.string);
  if (name == "fp16") value.string = "16-mixed";
  if (name == "bf16") value.string = "bf16-mixed";
  if (name == "fp32") value.string = "32-true";
}

/// Whether the tree has `now`, and nothing of its own at `before`.
bool is_free(const Node& root, const MovedKey& key) {
  const Node* before = root.find(key.before);
  return root.has(key.now) && (before == nullptr || before->string == "${" + key.now + "}");
}

[[noreturn]] void fail_twice(const std::string& one,
                             const Node& value,
                             const std::string& other,
                             const Node& other_value) {
  throw ConfigError(value.origin.text() + ": " + one + " is " + plain_text(value).substr(0, 100) +
                    ", but " + other + " is " + plain_text(other_value).substr(0, 100) + " (" +
                    other_value.origin.text() +
                    "); they are two names of one value, expected one of them");
}

/// Checks that one file does not give both names different values, as neither comes later.
void check_once(const Node& before, const Node& now, const MovedKey& key) {
  if (before.is_map() && now.is_map()) {
    for (const auto& [name, child] : before.map) {
      const Node* other = now.find_direct(name);
      if (other != nullptr)
        check_once(child, *other, {child_path(key.before, name), child_path(key.now, name)});
    }
    return;
  }
  const bool is_one_file =
      before.origin.line > 0 && now.origin.line > 0 && *before.origin.file == *now.origin.file;
  if (is_one_file && !equal(before, now)) fail_twice(key.before, before, key.now, now);
}

/// Removes a key, and the sections that become empty by it.
void remove(Node& root, std::string key) {
  for (std::size_t dot = 0; dot != std::string::npos;) {
    dot = key.rfind('.');
    Node& parent = dot == std::string::npos ? root : *root.find(key.substr(0, dot));
    const std::string last = key.substr(dot + 1);
    parent.map.erase(
        std::ranges::find_if(parent.map, [&](const auto& entry) { return entry.first == last; }));
    if (!parent.map.empty()) break;
    key.resize(dot == std::string::npos ? 0 : dot);
  }
}

}  // namespace

void take_moved_keys(Node& root) {
  for (const MovedKey& key : moved_keys()) {
    Node* before = root.find(key.before);
    Node* now = root.find(key.now);
    const std::string reference = "${" + key.now + "}";
    if (before == nullptr || now == nullptr || before->string == reference) continue;
    check_once(*before, *now, key);
    Node value = std::move(*before);
    rename_value(key, value);
    if (key.before == "model.spatial_dims") {
      *before = Node::make_string(reference);  // the key is a model's own option, too
    } else {
      remove(root, key.before);
    }
    merge_into(*root.find(key.now), std::move(value), root, key.now);
  }
  for (const auto& [name, why] : kIdleKeys) {
    if (root.find(name) != nullptr && tell_idle(name)) remove(root, name);
  }
}

std::optional<Override> MovedOverrides::current(const Node& root, const Override& override) {
  Override current = override;
  for (const MovedKey& key : moved_keys()) {
    const bool is_below = override.key.starts_with(key.before + ".");
    if ((!is_below && override.key != key.before) || !is_free(root, key)) continue;
    current.key = key.now + override.key.substr(key.before.size());
    for (Node& value : current.values) rename_value(key, value);
    break;
  }
  if (tell_idle(current.key)) return std::nullopt;
  const auto [place, is_first] = given_.emplace(current.key, override);
  const Override& earlier = place->second;
  if (!is_first && earlier.key != override.key && !earlier.values.empty() &&
      !override.values.empty() && !equal(earlier.values[0], override.values[0]))
    fail_twice(override.key, override.values[0], earlier.key, earlier.values[0]);
  place->second = override;
  return current;
}

}  // namespace cytra::config
