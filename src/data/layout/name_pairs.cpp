// Part of data/layout/layout_names.h: pairs images with targets whose names differ.
#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"
#include "data/layout/layout_names.h"

namespace cytra::data {
namespace {

bool parts_words(char letter) {
  return letter == '_' || letter == '-' || letter == '.' || letter == ' ';
}

/// The text before and after the part of a name that pairs it.
struct Affixes {
  std::string before, behind;
};

/// The beginnings and ends of names, split between words; the empty ones come first. `share`: the
/// share of names that must have them, since a few of many are often misspelt.
std::vector<Affixes> affixes_of(const std::vector<std::string>& names, double share) {
  std::map<std::string, std::size_t> heads, tails;
  for (const std::string& name : names) {
    for (std::size_t i = 0; i < name.size(); ++i) {
      if (!parts_words(name[i])) continue;
      ++heads[name.substr(0, i + 1)];
      ++tails[name.substr(i)];
    }
  }
  const auto usual = [&](const std::map<std::string, std::size_t>& counts) {
    std::vector<std::string> texts = {""};
    for (const auto& [text, count] : counts)
      if (static_cast<double>(count) >= share * static_cast<double>(names.size()))
        texts.push_back(text);
    std::ranges::stable_sort(
        texts, [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
    return texts;
  };
  std::vector<Affixes> all;
  for (const std::string& before : usual(heads))
    for (const std::string& behind : usual(tails)) all.push_back({before, behind});
  return all;
}

/// The name without the affixes; "" where nothing is left, or the name has others.
std::string without_affixes(const std::string& name, const Affixes& affixes) {
  const std::size_t cut = affixes.before.size() + affixes.behind.size();
  const bool has_them = starts_with(name, affixes.before) && ends_with(name, affixes.behind);
  return name.size() <= cut || !has_them ? ""
                                         : name.substr(affixes.before.size(), name.size() - cut);
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

/// Finds affixes by which each image has its own target; false where there are none.
bool pair_names(const std::vector<std::string>& images,
                const std::vector<std::string>& targets,
                Affixes& of_image,
                Affixes& of_target) {
  if (images.empty() || targets.empty()) return false;
  constexpr double kUsualShare = 0.9;
  const std::vector<Affixes> of_targets = affixes_of(targets, kUsualShare);
  for (const Affixes& image : affixes_of(images, 1)) {
    for (const Affixes& target : of_targets) {
      std::multiset<std::string> keys;
      for (const std::string& name : targets) keys.insert(without_affixes(name, target));
      keys.erase("");  // misspelt names; their images are reported as those without a partner
      const bool are_own = std::ranges::adjacent_find(keys) == keys.end();
      const auto paired = std::ranges::count_if(images, [&](const std::string& name) {
        const std::string key = without_affixes(name, image);
        return !key.empty() && keys.count(key) > 0;
      });
      if (!are_own || 10 * paired < 9 * static_cast<int64_t>(images.size())) continue;
      of_image = image;
      of_target = target;
      return true;
    }
  }
  return false;
}

bool is_target_word(std::string word) {
  while (!word.empty() && is_digit(word.back())) word.pop_back();
  word = in_small_letters(word);
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
  const auto begin = std::ranges::find_if(name, parts_words);
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
