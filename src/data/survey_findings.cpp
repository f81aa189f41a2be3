#include "data/survey_findings.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "data/same_grid.h"
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
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  void add(std::string line) {
    if (++count_ <= kMostLines) into_.push_back(std::move(line));
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
      without.add(fmt::format("{}: {}", name_of(split.split), line));
  }
  Lines lines(images);
  for (const auto& [key, facts] : split.keys) {
    for (const ImageFacts& image : facts.images) {
      if (image.error.empty()) continue;
      const std::string path = image.error.find(image.path) == std::string::npos
                                   ? image.path + ": "
                                   : "";  // most messages begin with it
      lines.add(fmt::format("{} {}: {}{}", name_of(split.split), key, path, image.error));
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
      if (relation.kind != GridRelation::Kind::other) {
        if (space_of(a) != space_of(b) && relation.kind == GridRelation::Kind::unknown) {
          lines.add(fmt::format("{}: {}: size of '{}' is {}, of '{}' {}",
                                name_of(split.split),
                                split.ids[i],
                                images.front(),
                                fmt::join(space_of(a), "x"),
                                label,
                                fmt::join(space_of(b), "x")));
        }
        continue;
      }
      const std::string wrong = trial ? trial(split.split, i)
                                      : mismatch_text(label,
                                                      b.path,
                                                      b.geometry,
                                                      images.front(),
                                                      a.path,
                                                      a.geometry,
                                                      relation.difference);
      if (wrong.empty()) {
        notes.add(fmt::format("{}: {}: '{}' does not lie on '{}' ({}), which loading takes care of",
                              name_of(split.split),
                              b.path,
                              label,
                              images.front(),
                              relation.difference));
        continue;
      }
      const std::string line = fmt::format("{}: {}", name_of(split.split), wrong);
      (trial ? problems : lines).add(line);
      if (trial || &lines == &problems) survey.misfits.push_back(line);
    }
    if (turned > 0) {
      notes.add(
          fmt::format("{}: '{}' of {} of {} samples has the voxels of '{}' in another order or "
                      "direction: it is "
                      "turned",
                      name_of(split.split),
                      label,
                      turned,
                      split.ids.size(),
                      images.front()));
    }
  }
}

/// Finds images of a key whose `value` differs from that of most; `advice` ends each line.
template <class Value, class Text>
void find_odd(const Survey& survey,
              const std::string& key,
              const Value& value,
              const Text& text,
              const char* what,
              std::vector<std::string>& into,
              const char* advice = "") {
  std::map<std::string, std::size_t> counts;
  for (const SplitFacts& split : survey.splits) {
    const auto facts = split.keys.find(key);
    if (facts == split.keys.end()) continue;
    for (const ImageFacts& image : facts->second.images) {
      if (is_read(image)) ++counts[text(value(image))];
    }
  }
  if (counts.size() < 2) return;
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      });
  Lines lines(into);
  for (const SplitFacts& split : survey.splits) {
    const auto facts = split.keys.find(key);
    if (facts == split.keys.end()) continue;
    for (const ImageFacts& image : facts->second.images) {
      if (!is_read(image) || text(value(image)) == most->first) continue;
      lines.add(fmt::format("{} {}: {}: {} {}, most others {}{}",
                            name_of(split.split),
                            key,
                            image.path,
                            what,
                            text(value(image)),
                            most->first,
                            advice));
    }
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
  for (const SplitFacts& split : survey.splits) {
    const auto facts = split.keys.find(key);
    if (facts == split.keys.end()) continue;
    for (const ImageFacts& image : facts->second.images) {
      if (!is_read(image)) continue;
      // Images of equal content, unless it is a constant, as in many empty images.
      const bool is_constant = image.min == image.max;
      groups[is_constant ? "f" + image.file : "c" + image.content].push_back({split.split, &image});
    }
  }
  Lines problems(survey.problems), notes(survey.notes);
  for (const auto& [name, places] : groups) {
    if (places.size() < 2 || name == "f") continue;
    const ImageInSplit& first = places.front();
    for (std::size_t i = 1; i < places.size(); ++i) {
      const ImageInSplit& other = places[i];
      const bool is_leak = first.split == Split::train && other.split != Split::train;
      if (first.split != Split::train && first.split != other.split) continue;
      (is_leak ? problems : notes)
          .add(fmt::format("{} and {} {}: {} {}{}",
                           name_of(first.split),
                           name_of(other.split),
                           key,
                           first.image->path,
                           !first.image->file.empty() && first.image->file == other.image->file
                               ? "is in both"
                               : "has the same values as " + other.image->path,
                           is_leak ? ": what is trained on must not be validated on" : ""));
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
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  }
  const bool has_images = std::any_of(
      keys.begin(), keys.end(), [&](const std::string& key) { return !is_label(survey, key); });
  for (const std::string& key : keys) {
    find_odd(
        survey,
        key,
        [](const ImageFacts& image) {  // boxes have as many layers as overlap
          return io::is_annotation_path(image.path) ? 1 : image.shape[0];
        },
        [](int64_t channels) { return std::to_string(channels); },
        "channels",
        ends_training ? survey.problems : survey.notes,
        ends_training ? "; data.on_error=skip leaves out what the model can't take" : "");
    find_odd(
        survey,
        key,
        [](const ImageFacts& image) { return image.spacing_um; },
        um_text,
        "spacing",
        survey.notes);
    if (has_images && is_label(survey, key)) continue;
    find_odd(
        survey,
        key,
        [](const ImageFacts& image) { return orientation_of(image.geometry); },
        [](const std::string& codes) { return codes.empty() ? "unknown" : codes; },
        "orientation",
        survey.notes);
    find_twins(survey, key);
    Lines lines(survey.notes);
    for (const SplitFacts& split : survey.splits) {
      const auto facts = split.keys.find(key);
      if (facts == split.keys.end()) continue;
      for (const ImageFacts& image : facts->second.images) {
        if (is_read(image) && image.min == image.max) {
          lines.add(fmt::format(
              "{} {}: {}: every value is {}", name_of(split.split), key, image.path, image.min));
        }
      }
    }
  }
}

}  // namespace cytra::data
