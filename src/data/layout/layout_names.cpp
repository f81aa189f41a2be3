#include "data/layout/layout_names.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/strings.h"

namespace cytra::data {
namespace {

/// Words in the names of targets and of their folders.
constexpr const char* kTargetWords[] = {
    "mask", "label", "seg", "annot", "manual", "truth", "gt", "target", "instance"};

/// Whether a name, in letters of any case, is one of the words.
bool is_one_of(const std::string& name, std::string_view words) {
  return std::ranges::count(split(words, ' '), in_small_letters(name)) > 0;
}

/// The names that most folders have; the loaders report an image without a target.
std::vector<std::string> shared_by_most(const std::vector<ImageFolder>& folders) {
  std::map<std::string, std::size_t> counts;
  for (const ImageFolder& folder : folders)
    for (const std::string& name : folder.folders) ++counts[name];
  std::vector<std::string> names;
  for (const auto& [name, count] : counts)
    if (4 * count >= 3 * folders.size()) names.push_back(name);
  return names;
}

/// The one name that is asked for, or that is of a kind; "" for none or several.
std::string one_of_kind(std::vector<std::string> names,
                        const std::string& wanted,
                        const auto& is_of_kind) {
  if (std::ranges::count(names, wanted) > 0) return wanted;
  std::erase_if(names, std::not_fn(is_of_kind));
  return names.size() == 1 ? names[0] : "";
}

/// The names without `word`: the image of each folder; empty where the word does not separate
/// them.
std::vector<std::string> images_without(const std::vector<ImageFolder>& folders,
                                        const std::string& word) {
  std::vector<std::string> images;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    for (const std::string& name : folders[i].images)
      if (name.find(word) == std::string::npos) images.push_back(name);
    if (images.size() != i + 1 || folders[i].images.size() < 2) return {};
  }
  return images;
}

bool parts_words(char letter) {
  return letter == '_' || letter == '-' || letter == '.' || letter == ' ';
}

/// The text before and after the part of a name that pairs it, and what is between that and the
/// number of one of several masks of an image.
struct Affixes {
  std::string before, behind;
  std::optional<std::string> numbered = {};
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
  const bool has_them = name.starts_with(affixes.before) && name.ends_with(affixes.behind);
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

/// The expression of an affix; of "_training" that of any word, as other parts have another.
std::string regex_of(const std::string& affix) {
  const auto begin = std::ranges::find_if_not(affix, parts_words);
  const auto end = std::find_if_not(affix.rbegin(), affix.rend(), parts_words).base();
  if (begin >= end || !names_split({begin, end})) return escaped_for_regex(affix);
  return escaped_for_regex({affix.begin(), begin}) + R"(\w+)" +
         escaped_for_regex({end, affix.end()});
}

std::string regex_behind(const Affixes& affixes) {
  const std::string behind = regex_of(affixes.behind);
  return affixes.numbered ? behind + escaped_for_regex(*affixes.numbered) + R"(\d+\.)" : behind;
}

std::string regex_of(const Affixes& affixes) {
  return regex_of(affixes.before) + (affixes.numbered ? "(.*?)" : "(.*)") + regex_behind(affixes);
}

/// A name without the number at its end and what parts it, which goes into `parted`.
std::string without_number(std::string name, std::string& parted) {
  const auto is_part = [](char letter) { return !is_digit(letter); };
  const auto end = std::find_if(name.rbegin(), name.rend(), is_part);
  const auto word = std::find_if_not(end, name.rend(), parts_words);
  parted.assign(word.base(), end.base());
  name.erase(word.base(), name.end());
  return name;
}

/// Finds affixes by which each image has its own target, or half of them have and all targets are
/// one's; false where there are none.
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
      const bool are_most = 10 * paired >= 9 * std::ssize(images);
      const bool have_all =
          2 * paired >= std::ssize(images) && 10 * paired >= 9 * std::ssize(targets);
      if (!are_own || !(are_most || have_all)) continue;
      of_image = image;
      of_target = target;
      return true;
    }
  }
  return false;
}

/// Pairs names, or those of several numbered masks for an image.
bool pair_any_names(const std::vector<std::string>& images,
                    const std::vector<std::string>& targets,
                    Affixes& of_image,
                    Affixes& of_target) {
  if (pair_names(images, targets, of_image, of_target)) return true;
  std::set<std::string> bare, parted;
  for (const std::string& name : targets) {
    std::string part;
    bare.insert(without_number(name, part));
    parted.insert(is_digit(name.back()) ? part : "/");
  }
  if (bare.size() == targets.size() || parted.size() != 1 || parted.count("/") > 0) return false;
  if (!pair_names(images, {bare.begin(), bare.end()}, of_image, of_target)) return false;
  of_target.numbered = *parted.begin();
  return true;
}

bool is_target_word(std::string word) {
  while (!word.empty() && is_digit(word.back())) word.pop_back();
  return is_one_of(word,
                   "mask masks msk label labels lab lbl seg segmentation gt manual annotation "
                   "annotations annot truth groundtruth target instance instances");
}

bool is_target_name(const std::string& name) {
  const auto begin = std::ranges::find_if(name, parts_words);
  const auto end = std::find_if(name.rbegin(), name.rend(), parts_words);
  if (begin == name.end()) return false;
  if (is_target_word({name.begin(), begin}) || is_target_word({end.base(), name.end()}))
    return true;
  std::string parted;
  const std::string bare = without_number(name, parted);
  return bare != name && is_target_name(bare);
}

}  // namespace

bool names_source(const std::string& name) {
  return is_one_of(name,
                   "raw image images img imgs input inputs x jpegimages source file filename "
                   "image_path path tissue_images originals frames");
}

bool names_split(const std::string& name) {
  const std::string word = in_small_letters(name);
  return word == "predict" || split_named(word);
}

std::string part_in(const std::string& place, Split part, const std::string& pattern) {
  const std::size_t at = pattern.find(kSplit), end = at + kSplit.size();
  const bool is_named = at != std::string::npos;
  const std::size_t begin = is_named ? pattern.rfind('/', at) + 1 : 0;  // 0 without a slash
  const std::string before = is_named ? pattern.substr(begin, at - begin) : "";
  const std::string after = is_named ? pattern.substr(end, pattern.find('/', end) - end) : "";
  const std::filesystem::path folder = std::filesystem::path(place) / pattern.substr(0, begin);
  std::string found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const std::size_t affixes = before.size() + after.size();
    if (name.size() <= affixes || !name.starts_with(before) || !name.ends_with(after)) continue;
    const std::string word = name.substr(before.size(), name.size() - affixes);
    std::error_code ignored;  // a loop of links
    if (split_named(in_small_letters(word)) != part || !entry.is_directory(ignored)) continue;
    const bool is_usual = word == name_of(part);
    if (found.empty() || is_usual || (found != name_of(part) && word < found)) found = word;
  }
  return found;
}

std::string with_part(std::string pattern, const std::string& word) {
  const std::size_t at = pattern.find(kSplit);
  return at == std::string::npos ? pattern : pattern.replace(at, kSplit.size(), word);
}

std::string stem_of(std::string name) {
  const auto cut = [&](const char* extension) {
    const std::size_t length = std::string_view(extension).size();
    if (name.size() > length && name.ends_with(extension)) name.resize(name.size() - length);
  };
  cut(".gz");
  const std::size_t dot = name.rfind('.');
  if (dot != std::string::npos && dot > 0 && name.find('/', dot) == std::string::npos)
    name.resize(dot);
  cut(".ome");
  return name;
}

bool names_target(std::string name) {
  name = in_small_letters(name);
  return std::ranges::any_of(
      kTargetWords, [&](const char* word) { return name.find(word) != std::string::npos; });
}

std::vector<std::string> columns_of_image_folders(const std::vector<ImageFolder>& folders,
                                                  const std::string& source,
                                                  const std::string& target) {
  if (folders.size() < 2) return {};
  for (const ImageFolder& folder : folders)
    if (!folder.images.empty()) return {};
  const std::vector<std::string> names = shared_by_most(folders);
  const std::string images = one_of_kind(names, source, names_source);
  const std::string targets = one_of_kind(names, target, names_target);
  if (images.empty() || targets.empty()) return {};
  return {images, targets};
}

std::vector<std::string> regex_of_image_folders(const std::vector<ImageFolder>& folders) {
  if (folders.size() < 2 || folders[0].images.empty()) return {};
  std::vector<std::string> images, regex;
  for (const char* known : kTargetWords) {
    std::string word;  // as it is written
    for (const std::string& name : folders[0].images) {
      const std::size_t at = in_small_letters(name).find(known);
      if (at != std::string::npos) word = name.substr(at, std::string(known).size());
    }
    if (word.empty()) continue;
    const std::vector<std::string> found = images_without(folders, word);
    if (found.empty()) continue;
    if (!images.empty() && found != images) return {};
    if (images.empty()) regex = {"(?!.*" + word + ")", ".*" + word};
    images = found;
  }
  return regex;
}

std::vector<std::string> regex_of_folders(const std::vector<std::string>& images,
                                          const std::vector<std::string>& targets) {
  Affixes image, target;
  if (!pair_any_names(images, targets, image, target)) return {};
  if (regex_of(image) == "(.*)" && regex_of(target) == "(.*)") return {};
  return {regex_of(image), regex_of(target)};
}

std::vector<std::string> regex_of_one_folder(const std::vector<std::string>& names) {
  std::vector<std::string> images, targets;
  for (const std::string& name : names) (is_target_name(name) ? targets : images).push_back(name);
  Affixes image, target;
  if (!pair_any_names(images, targets, image, target)) return {};
  std::string of_image = regex_of(image);
  if (of_image == "(.*)") {  // takes the targets, too
    of_image = target.behind.empty() ? "(?!" + escaped_for_regex(target.before) + ")(.*)"
               : target.numbered     ? "(?!.*" + regex_behind(target) + ")(.*)"
                                     : "(?!.*" + escaped_for_regex(target.behind) + "\\.)(.*)";
  }
  return {of_image, regex_of(target)};
}

}  // namespace cytra::data
