#include "app/optimize/settings.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/files.h"
#include "base/strings.h"
#include "config/overrides/overrides.h"

namespace cytra::app {
namespace {

using config::Node;

std::vector<std::string> overrides_of(const cli::Run& run, const Changes& changes) {
  std::vector<std::string> overrides;
  for (const Change& change : changes) {
    const bool is_new = run.composed.find(change.first) == nullptr;
    overrides.push_back((is_new ? "++" : "") + text_of(change));
  }
  return overrides;
}

}  // namespace

Aim aim_of(const std::string& key) {
  if (key.starts_with("task.inference_args.")) return Aim::validation;
  return key.starts_with("data.") && key != key::kBatch ? Aim::loading : Aim::training;
}

std::vector<Node> values_of(const std::string& key, const Facts& facts) {
  if (key == key::kLayout)
    return Node::make_list(std::vector<bool>{facts.channels_last, !facts.channels_last}).list;
  if (key == key::kAlgorithms) return Node::make_list(std::vector<bool>{false, true}).list;
  if (key == key::kPrecision) {
    const bool is_single = facts.precision == "32" || facts.precision == "32-true";
    std::vector<Node> values{Node::make_string(facts.precision)};
    if (is_single) values.push_back(Node::make_string("bf16-mixed"));
    return values;
  }
  std::vector<int64_t> values;
  if (key == key::kBatch) {
    values = {facts.batch_size};
    if (facts.best_batch_size > facts.batch_size) values.push_back(facts.best_batch_size);
  } else if (key == key::kWorkers) {
    std::set<int64_t, std::greater<>> numbers{1};
    for (const int64_t share : {1, 2, 4}) numbers.insert(std::max<int64_t>(1, facts.cores / share));
    numbers.erase(facts.num_workers);
    values = {facts.num_workers};
    values.insert(values.end(), numbers.begin(), numbers.end());
  } else if (key == key::kPrefetch) {
    values = {facts.prefetch_factor, 2 * facts.prefetch_factor};
  } else if (key == key::kThreads) {
    for (int64_t count = facts.threads; count >= 1; count /= 2) values.push_back(count);
  } else if (key == key::kWindows) {
    values = {facts.windows};
    while (values.back() < facts.most_windows) values.push_back(2 * values.back());
    for (int64_t count = std::min(facts.windows, facts.most_windows); count > 1;)
      values.push_back(count /= 2);
  }
  return Node::make_list(values).list;
}

std::vector<Node> others_of(const std::string& key, const Facts& facts) {
  std::vector<Node> values = values_of(key, facts);
  values.erase(values.begin());
  return values;
}

std::string text_of(const Change& change) {
  return change.first + "=" + config::override_text(change.second);
}

Changes with(Changes changes, const std::string& key, Node value) {
  for (Change& change : changes) {
    if (change.first != key) continue;
    change.second = std::move(value);
    return changes;
  }
  changes.emplace_back(key, std::move(value));
  return changes;
}

std::string text_of(const cli::Run& run, const Changes& changes) {
  return join(overrides_of(run, changes), " ");
}

std::vector<std::string> experiment_overrides(const cli::Run& run, const std::string& performance) {
  std::vector<std::string> words;
  for (const std::string& word : run.overrides) {
    const bool is_replaced = !performance.empty() && word.starts_with("performance=");
    if (!word.starts_with("optimize.") && !is_replaced) words.push_back(word);
  }
  if (!performance.empty()) words.push_back("performance=" + performance);
  return words;
}

std::string train_command(const cli::Run& run,
                          const Changes& changes,
                          const std::string& performance) {
  std::vector<std::string> words;
  if (!are_same_file(run.config_folders.front(), config_folder()))
    words = {"--config-path", run.config_folders.front()};
  if (run.config_folders.size() > 1)
    words.insert(words.end(), {"--config-dir", run.config_folders[1]});
  for (const auto& more : {experiment_overrides(run, performance), overrides_of(run, changes)})
    words.insert(words.end(), more.begin(), more.end());
  return command("train", words);
}

}  // namespace cytra::app
