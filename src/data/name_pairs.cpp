#include "data/name_pairs.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "data/layout_names.h"

namespace cytra::data {
namespace {

bool parts_words(char letter) {
  return letter == '_' || letter == '-' || letter == '.' || letter == ' ';
}

/// What is before and behind the part of a name that pairs it.
struct Affixes {
  std::string before, behind;
};

/// What all names begin and end with, cut where words are parted; the empty ones first.
std::vector<Affixes> affixes_of(const std::vector<std::string>& names) {
  std::string head = names.front(), tail = names.front();
  for (const std::string& name : names) {
    head.resize(static_cast<std::size_t>(
        std::mismatch(head.begin(), head.end(), name.begin(), name.end()).first - head.begin()));
    const auto ends = std::mismatch(tail.rbegin(), tail.rend(), name.rbegin(), name.rend());
    tail.erase(0, static_cast<std::size_t>(tail.rend() - ends.first));
  }
  std::vector<std::string> heads = {""}, tails = {""};
  for (std::size_t i = 0; i < head.size(); ++i)
    if (parts_words(head[i])) heads.push_back(head.substr(0, i + 1));
  for (std::size_t i = tail.size(); i-- > 0;)
    if (parts_words(tail[i])) tails.push_back(tail.substr(i));
  std::vector<Affixes> all;
  for (const std::string& before : heads)
    for (const std::string& behind : tails) all.push_back({before, behind});
  return all;
}

/// "" where nothing is left.
std::string without_affixes(const std::string& name, const Affixes& affixes) {
  const std::size_t cut = affixes.before.size() + affixes.behind.size();
  return name.size() <= cut ? "" : name.substr(affixes.before.size(), name.size() - cut);
}

std::string escaped_for_regex(const std::string& text) {
  std::string escaped;
  for (const char letter : text) {
    if (std::string_view("^$\\.*+?()[]{}|").find(letter) != std::string_view::npos) escaped += '\\';
    escaped += letter;
  }
  return escaped;
}

std::string regex_of(const Affixes& affixes) {
  return escaped_for_regex(affixes.before) + "(.*)" + escaped_for_regex(affixes.behind);
}

/// Affixes that leave each image a target of its own; false where there are none.
bool pair_names(const std::vector<std::string>& images,
                const std::vector<std::string>& targets,
                Affixes& of_image,
                Affixes& of_target) {
  if (images.empty() || targets.empty()) return false;
  for (const Affixes& image : affixes_of(images)) {
    for (const Affixes& target : affixes_of(targets)) {
      std::set<std::string> keys;
      for (const std::string& name : targets) keys.insert(without_affixes(name, target));
      const auto paired = std::count_if(images.begin(), images.end(), [&](const std::string& name) {
        const std::string key = without_affixes(name, image);
        return !key.empty() && keys.count(key) > 0;
      });
      if (keys.size() != targets.size() || 10 * paired < 9 * static_cast<int64_t>(images.size()))
        continue;
      of_image = image;
      of_target = target;
      return true;
    }
  }
  return false;
}

bool is_target_word(std::string word) {
  while (!word.empty() && is_digit(word.back())) word.pop_back();
  word = in_small(word);
  for (const char* known : {"mask",
                            "masks",
                            "msk",
                            "label",
                            "labels",
                            "lab",
                            "lbl",
                            "seg",
                            "segmentation",
                            "gt",
                            "manual",
                            "annotation",
                            "annotations",
                            "annot",
                            "truth",
                            "groundtruth",
                            "target",
                            "instance",
                            "instances"}) {
    if (word == known) return true;
  }
  return false;
}

bool is_target_name(const std::string& name) {
  const auto begin = std::find_if(name.begin(), name.end(), parts_words);
  const auto end = std::find_if(name.rbegin(), name.rend(), parts_words);
  if (begin == name.end()) return false;
  return is_target_word({name.begin(), begin}) || is_target_word({end.base(), name.end()});
}

}  // namespace

std::vector<std::string> regex_of_folders(const std::vector<std::string>& images,
                                          const std::vector<std::string>& targets) {
  Affixes image, target;
  if (!pair_names(images, targets, image, target)) return {};
  if (regex_of(image) == "(.*)" && regex_of(target) == "(.*)") return {};
  return {regex_of(image), regex_of(target)};
}

std::vector<std::string> regex_of_one_folder(const std::vector<std::string>& names) {
  std::vector<std::string> images, targets;
  for (const std::string& name : names) (is_target_name(name) ? targets : images).push_back(name);
  Affixes image, target;
  if (!pair_names(images, targets, image, target)) return {};
  std::string of_image = regex_of(image);
  if (of_image == "(.*)") {  // takes the targets, too
    of_image = target.behind.empty() ? "(?!" + escaped_for_regex(target.before) + ")(.*)"
                                     : "(?!.*" + escaped_for_regex(target.behind) + "\\.)(.*)";
  }
  return {of_image, regex_of(target)};
}

}  // namespace cytra::data
