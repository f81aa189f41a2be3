// Part of data/survey/survey.h: finds what is wrong, or remarkable.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "data/sample/same_grid.h"
#include "data/survey/survey.h"
#include "io/annotations/annotations.h"

namespace cytra::data {
namespace {

constexpr std::size_t kMostLines = 20;  // of one kind

bool is_read(const ImageFacts& image) {
  return image.error.empty() && !image.shape.empty();
}

/// Lines of one kind; those beyond kMostLines are only counted.
class Lines {
 public:
  explicit Lines(std::vector<std::string>& into) : into_(into) {}
  ~Lines() {
    if (count_ > kMostLines) into_.push_back(fmt::format("and {} more", count_ - kMostLines));
  }
  Lines& operator=(Lines&&) = delete;
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    if (++count_ <= kMostLines) into_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::vector<std::string>& into_;
  std::size_t count_ = 0;
};

std::vector<int64_t> space_of(const ImageFacts& image) {
  return {image.shape.begin() + 1, image.shape.end()};
}

bool is_known(const std::array<double, 3>& spacing) {
  return spacing[1] > 0 && spacing[2] > 0;
}

std::string um_text(const std::array<double, 3>& spacing) {
  return is_known(spacing) ? fmt::format("{:.4g} um", fmt::join(spacing, " x ")) : "unknown";
}

/// Whether the key has labels in any split, when other keys are images.
bool is_label(const Survey& survey, const std::string& key) {
  bool is_any = false;
  for (const SplitFacts& split : survey.splits) {
    const auto facts = split.keys.find(key);
    if (facts == split.keys.end() || facts->second.broken() == facts->second.images.size())
      continue;
    if (facts->second.classes().empty()) return false;
    is_any = true;
  }
  return is_any;
}

void find_broken(const SplitFacts& split,
                 std::vector<std::string>& problems,
                 std::vector<std::string>& images) {
  if (!split.error.empty()) {
    Lines without(problems);
    for (const std::string& line : cytra::split(split.error, '\n'))
      without.add("{}: {}", name_of(split.split), line);
  }
  Lines lines(images);
  for (const auto& [key, facts] : split.keys) {
    for (const ImageFacts& image : facts.images) {
      if (image.error.empty()) continue;
      const std::string path = image.error.find(image.path) == std::string::npos
                                   ? image.path + ": "
                                   : "";  // most messages begin with it
      lines.add("{} {}: {}{}", name_of(split.split), key, path, image.error);
    }
  }
}

/// Finds labels that are not on the grid of their image, by size and by the places that both files
/// give, unless transforms solve it. Two images may differ.
void find_misfits(Survey& survey, const SplitFacts& split, const Trial& trial) {
  Lines problems(survey.problems), notes(survey.notes);
  std::vector<std::string> images, labels;
  for (const auto& [key, facts] : split.keys)
    (is_label(survey, key) ? labels : images).push_back(key);
  const bool has_labels = !labels.empty();
  if (images.empty()) images.swap(labels);
  labels.insert(labels.end(), images.begin() + 1, images.end());
  for (const std::string& label : labels) {
    Lines& lines = has_labels && is_label(survey, label) ? problems : notes;
    int64_t turned = 0;
    for (std::size_t i = 0; i < split.ids.size(); ++i) {
      const ImageFacts& a = split.keys.at(images.front()).images[i];
      const ImageFacts& b = split.keys.at(label).images[i];
      if (!is_read(a) || !is_read(b)) continue;
      const GridRelation relation = compare_grids(b.geometry, space_of(b), a.geometry, space_of(a));
      turned += relation.kind == GridRelation::Kind::turned;
      if (relation.kind != GridRelation::Kind::other) continue;
      const std::string wrong = trial ? trial(split.split, i)
                                      : mismatch_text(label,
                                                      b.path,
                                                      b.geometry,
                                                      images.front(),
                                                      a.path,
                                                      a.geometry,
                                                      relation.difference);
      if (wrong.empty()) {
        notes.add("{}: {}: '{}' does not lie on '{}' ({}), which loading takes care of",
                  name_of(split.split),
                  b.path,
                  label,
                  images.front(),
                  relation.difference);
        continue;
      }
      const std::string line = fmt::format("{}: {}", name_of(split.split), wrong);
      (trial ? problems : lines).add("{}", line);
      if (trial || &lines == &problems) survey.misfits.push_back(line);
    }
    if (turned > 0) {
      notes.add(
          "{}: '{}' of {} of {} samples has the voxels of '{}' in another order or "
          "direction: it is "
          "turned",
          name_of(split.split),
          label,
          turned,
          split.ids.size(),
          images.front());
    }
  }
}

/// Calls look(split, image, number) for the images of a key that could be read.
void for_images(const Survey& survey, const std::string& key, const auto& look) {
  for (const SplitFacts& split : survey.splits) {
    const auto facts = split.keys.find(key);
    if (facts == split.keys.end()) continue;
    for (std::size_t i = 0; i < facts->second.images.size(); ++i)
      if (is_read(facts->second.images[i])) look(split, facts->second.images[i], i);
  }
}

/// The text that most images of a key have; "" where all have the same.
std::string most_common(const Survey& survey, const std::string& key, const auto& text) {
  std::map<std::string, std::size_t> counts;
  for_images(survey, key, [&](const SplitFacts&, const ImageFacts& image, std::size_t) {
    ++counts[text(image)];
  });
  if (counts.size() < 2) return "";
  return std::ranges::max_element(counts,
                                  [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

/// Finds images of a key whose `text` differs from that of most; `advice` ends each line.
void find_odd(const Survey& survey,
              const std::string& key,
              const auto& text,
              const char* what,
              std::vector<std::string>& into,
              const std::string& advice = "") {
  const std::string most = most_common(survey, key, text);
  if (most.empty()) return;
  Lines lines(into);
  for_images(survey, key, [&](const SplitFacts& split, const ImageFacts& image, std::size_t) {
    if (text(image) == most) return;
    lines.add("{} {}: {}: {} {}, most others {}{}",
              name_of(split.split),
              key,
              image.path,
              what,
              text(image),
              most,
              advice);
  });
}

/// Whether each folder, and each word of a table, keeps half of its images without the odd ones.
bool keeps_groups(const Survey& survey, const std::string& key, const auto& is_odd) {
  std::map<std::string, std::pair<std::size_t, std::size_t>> counts;  // odd, all
  for_images(survey, key, [&](const SplitFacts& split, const ImageFacts& image, std::size_t i) {
    for (const std::string& group : split.groups.at(i)) {
      counts[group].first += is_odd(image);
      ++counts[group].second;
    }
  });
  return std::ranges::all_of(counts, [](const auto& one) {
    const auto [odd, all] = one.second;
    return all == 1 || 2 * odd <= all;
  });
}

/// Finds images with other channels than most; grey ones that were saved in colours count as grey.
void find_channels(Survey& survey, const std::string& key, bool ends_training) {
  bool has_grey = false;
  for_images(survey, key, [&](const SplitFacts&, const ImageFacts& image, std::size_t) {
    has_grey = has_grey || image.shape[0] == 1;
  });
  const auto channels = [&](const ImageFacts& image) {
    const bool is_one =  // boxes have as many layers as overlap
        io::is_annotation_path(image.path) || (has_grey && image.is_grey);
    return std::to_string(is_one ? 1 : image.shape[0]);
  };
  const std::string most = most_common(survey, key, channels);
  const auto is_odd = [&](const ImageFacts& image) { return channels(image) != most; };
  find_odd(survey,
           key,
           channels,
           "channels",
           ends_training ? survey.problems : survey.notes,
           !ends_training ? ""
           : keeps_groups(survey, key, is_odd)
               ? "; data.on_error=skip leaves out what the model can't take"
               : "; LoadImaged's channel: [0] takes the first channel of each");
}

/// Counts images whose annotations hold no objects.
void find_empty(Survey& survey, const std::string& key) {
  std::map<std::string, std::size_t> empty;
  for_images(survey, key, [&](const SplitFacts& split, const ImageFacts& image, std::size_t) {
    if (image.max == 0 && io::is_annotation_path(image.path)) ++empty[name_of(split.split)];
  });
  for (const auto& [split, count] : empty) {
    survey.notes.push_back(
        fmt::format("{} {}: {} images have no objects in their annotations", split, key, count));
  }
}

struct ImageInSplit {
  Split split;
  const ImageFacts* image;
};

/// Finds images that occur twice. A score of images that are also in training is worthless; valid
/// and test may be equal on purpose.
void find_twins(Survey& survey, const std::string& key) {
  std::map<std::string, std::vector<ImageInSplit>> groups;
  for_images(survey, key, [&](const SplitFacts& split, const ImageFacts& image, std::size_t) {
    // Images of equal content, unless it is a constant, as in many empty images.
    const bool is_constant = image.min == image.max;
    groups[is_constant ? "f" + image.file : "c" + image.content].push_back({split.split, &image});
  });
  Lines problems(survey.problems), notes(survey.notes);
  for (const auto& [name, places] : groups) {
    if (places.size() < 2 || name == "f") continue;
    const ImageInSplit& first = places.front();
    for (std::size_t i = 1; i < places.size(); ++i) {
      const ImageInSplit& other = places[i];
      const bool is_leak = first.split == Split::train && other.split != Split::train;
      if (first.split != Split::train && first.split != other.split) continue;
      (is_leak ? problems : notes)
          .add("{} and {} {}: {} {}{}",
               name_of(first.split),
               name_of(other.split),
               key,
               first.image->path,
               !first.image->file.empty() && first.image->file == other.image->file
                   ? "is in both"
                   : "has the same values as " + other.image->path,
               is_leak ? ": what is trained on must not be validated on" : "");
    }
  }
}

}  // namespace

void add_findings(Survey& survey, const Trial& trial, const std::string& on_error) {
  const bool ends_training = on_error == "fail";
  std::vector<std::string> keys;
  for (const SplitFacts& split : survey.splits) {
    find_broken(split, survey.problems, ends_training ? survey.problems : survey.notes);
    if (!split.keys.empty()) find_misfits(survey, split, trial);
    for (const auto& [key, facts] : split.keys) {
      if (!contains(keys, key)) keys.push_back(key);
    }
  }
  const bool has_images =
      std::ranges::any_of(keys, [&](const std::string& key) { return !is_label(survey, key); });
  for (const std::string& key : keys) {
    find_empty(survey, key);
    find_channels(survey, key, ends_training);
    const auto spacing = [](const ImageFacts& image) { return um_text(image.spacing_um); };
    find_odd(survey, key, spacing, "spacing", survey.notes);
    if (has_images && is_label(survey, key)) continue;
    const auto orientation = [](const ImageFacts& image) {
      const std::string codes = orientation_of(image.geometry);
      return codes.empty() ? "unknown" : codes;
    };
    find_odd(survey, key, orientation, "orientation", survey.notes);
    find_twins(survey, key);
    Lines lines(survey.notes);
    for_images(survey, key, [&](const SplitFacts& split, const ImageFacts& image, std::size_t) {
      if (image.min != image.max || io::is_annotation_path(image.path)) return;
      lines.add("{} {}: {}: every value is {}", name_of(split.split), key, image.path, image.min);
    });
  }
}

}  // namespace cytra::data
