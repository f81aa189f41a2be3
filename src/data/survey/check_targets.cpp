#include "data/survey/check_targets.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"

namespace cytra::data {
namespace {

using Kind = TargetMeaning::Kind;

constexpr std::size_t kMostLabels = 64, kMostColours = 64;

/// The class of a value: 0 for background; nothing for a value that does not count.
std::optional<double> class_of(const TargetMeaning& meaning, double value) {
  if (meaning.ignore_index && value == static_cast<double>(*meaning.ignore_index)) return {};
  if (meaning.threshold) return value > *meaning.threshold ? 1 : 0;
  if (meaning.target_values.empty()) return value;
  const auto found = std::ranges::find(meaning.target_values, value);
  return static_cast<double>(found - meaning.target_values.begin());
}

/// Finds the problems of a split's targets.
class TargetCheck {
 public:
  TargetCheck(const TargetMeaning& meaning,
              const std::string& split,
              const std::vector<TargetFacts>& facts,
              bool are_all)
      : meaning_(meaning), split_(split), facts_(facts), are_all_(are_all) {}

  std::vector<TargetProblem> run() {
    find();
    return std::move(lines_);
  }

 private:
  bool all(const auto& test) const { return !facts_.empty() && std::ranges::all_of(facts_, test); }

  void add(const std::string& text, bool ends_training = false) {
    lines_.push_back(
        {fmt::format("{} {}: {}", split_, meaning_.key, text), ends_training && split_ == "train"});
  }
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    add(fmt::format(format, std::forward<Args>(args)...));
  }
  std::string images() const {
    return fmt::format("{} {}images", facts_.size(), are_all_ ? "" : "sampled ");
  }

  /// The place of an option; options of a head are below the head's name.
  std::string option(const std::string& name) const {
    if (!meaning_.head.empty()) return fmt::format("+task.heads.{}.{}", meaning_.head, name);
    const bool has_variable = name == "target_values" || name == "ignore_index";
    return has_variable ? name : "task." + name;
  }

  std::string values_option(const std::vector<double>& values) const {
    const bool has_zero = std::ranges::count(values, 0) > 0;
    const std::string list =
        fmt::format("{}=[{}]{}",
                    option("target_values"),
                    fmt::join(values, ","),
                    has_zero ? "" : fmt::format(" {}=0", option("ignore_index")));  // of padding
    const bool are_masks = meaning_.kind == Kind::mask || meaning_.kind == Kind::masks;
    if (are_masks && values.size() == 2) return list;
    return fmt::format("num_classes={} {}", values.size(), list);
  }

  /// The option that makes a value the background. It keeps all classes, as images that were not
  /// looked at may have those that were not found.
  std::string background_option(double background) const {
    std::set<double> others = values_;
    if (meaning_.kind == Kind::classes) {
      if (!are_all_) others.insert(0);
      for (int64_t k = 1; k < meaning_.num_classes; ++k) others.insert(static_cast<double>(k));
    }
    others.erase(background);
    if (meaning_.kind == Kind::objects)
      return fmt::format("{}={:g}", option("background"), background);
    if (meaning_.kind == Kind::masks && others.size() > 1)
      return background_by_map(meaning_.key, background);
    std::vector<double> values{background};
    values.insert(values.end(), others.begin(), others.end());
    return values_option(values);
  }

  void find() {
    const bool is_label = meaning_.kind != Kind::values;
    const auto is_image = [](const TargetFacts& facts) { return facts.is_image; };
    if (const auto one = std::ranges::find_if(facts_, is_image); one != facts_.end()) {
      const auto count = std::ranges::count_if(facts_, is_image);
      const bool are_all = count == static_cast<std::ptrdiff_t>(facts_.size());
      say("the target is the image itself in {}{}{}",
          are_all ? "" : fmt::format("{} of ", count),
          images(),
          are_all ? ": target_col names the targets' column or folder" : ", as " + one->file);
      if (are_all) return;
    }
    if (!is_label) return find_constant();
    const bool is_single = all([](const TargetFacts& facts) { return facts.channels == 1; });
    if (find_colours() || (!is_single && meaning_.kind != Kind::masks)) return;
    if (find_noise() || find_empty()) return;
    if (meaning_.kind == Kind::objects) return find_classes();
    if (meaning_.kind != Kind::masks) find_gaps();
  }

  void find_constant() {
    if (!all([](const TargetFacts& facts) { return facts.min == facts.max; })) return;
    const double value = facts_.front().min;
    if (!all([&](const TargetFacts& facts) { return facts.min == value; })) return;
    say("every value is {:g} in {}, so there is nothing to learn", value, images());
  }

  bool find_colours() {
    if (meaning_.kind == Kind::masks ||
        !all([](const TargetFacts& facts) { return !facts.colours.empty(); }))
      return false;
    std::map<std::string, int64_t> colours;
    for (const TargetFacts& facts : facts_) {
      for (const auto& [colour, count] : facts.colours) colours[colour] += count;
    }
    if (colours.size() < 2 || colours.size() > kMostColours) return false;
    const std::vector<std::string> names = keys_of(colours);
    if (std::ranges::all_of(names, [](const std::string& name) {
          return name.substr(1, 2) == name.substr(3, 2) && name.substr(3, 2) == name.substr(5, 2);
        }))
      return false;  // grey: one channel
    if (meaning_.kind == Kind::objects) {
      say("colours ({}), expected one channel of object numbers; {}=0 takes a colour for "
          "each object, black for none",
          fmt::join(names, ", "),
          option("background"));
      return true;
    }
    if (!meaning_.has_colours) {
      const std::string classes =
          names.size() == 2 ? "" : fmt::format("num_classes={} ", names.size());
      say("colours in place of class numbers: {}\"{}=['{}']\" gives the colours the "
          "classes 0 (background), 1, ... in this order",
          classes,
          option("colours"),
          fmt::join(names, "','"));
    }
    return true;
  }

  bool find_noise() {
    if (!meaning_.target_values.empty() || meaning_.threshold) return false;
    const auto is_noisy = [](const TargetFacts& facts) {
      const bool are_many = facts.counts.empty() || facts.counts.size() > kFewTargetValues;
      return facts.channels == 1 && are_many && facts.alike < 0.7;
    };
    if (!all(is_noisy)) return false;
    double low = facts_.front().min, high = facts_.front().max, at_ends = 0;
    for (const TargetFacts& facts : facts_) {
      low = std::min(low, facts.min);
      high = std::max(high, facts.max);
      at_ends += facts.at_ends / static_cast<double>(facts_.size());
    }
    const bool is_lossy = at_ends > 0.85;
    const double middle = (low + high) / 2;
    const double threshold = high - low > 4 ? std::floor(middle) : middle;
    std::string text = is_lossy ? fmt::format(
                                      "two values ({:g} and {:g}) blurred by a lossy format such "
                                      "as JPEG, or by resizing",
                                      low,
                                      high)
                                : fmt::format(
                                      "looks like intensities from {:g} to {:g}, not like labels; "
                                      "experiment=im2im/labelfree target_col={} learns these",
                                      low,
                                      high,
                                      meaning_.key);
    if (meaning_.kind == Kind::objects) {
      text += "; objects need an image of whole numbers without loss, as PNG or TIFF";
    } else if (meaning_.kind == Kind::classes) {
      text += fmt::format("; a mask of what is brighter: num_classes=1 {}={:g}",
                          option("target_threshold"),
                          threshold);
    } else {
      text += fmt::format(
          "; a mask of what is brighter: {}={:g}", option("target_threshold"), threshold);
    }
    add(text);
    return true;
  }

  /// Collects, over all images, the values that count and the classes that they mean.
  void collect() {
    for (const TargetFacts& facts : facts_) {
      for (const auto& [value, count] : facts.counts) {
        const std::optional<double> number = class_of(meaning_, value);
        if (!number) ignored_.insert(value);
        if (!number) continue;
        values_.insert(value);
        classes_.insert(*number);
      }
    }
  }

  bool find_empty() {
    if (!all([](const TargetFacts& facts) { return !facts.counts.empty(); })) return true;
    collect();
    if (values_.empty()) {
      if (are_all_) say("no voxel of {} counts: all are ignore_index", images());
      return true;
    }
    const bool has_background = classes_.count(0) > 0;
    if (has_background && classes_.size() == 1) {
      if (!are_all_) return true;
      say("{} in {}: {}",
          meaning_.kind == Kind::objects ? "no object" : "no foreground",
          images(),
          split_ == "train" ? "there is nothing to learn" : "its scores will be nan");
      return true;
    }
    if (has_background || !meaning_.target_values.empty() || meaning_.threshold) return false;
    const std::vector<double> values(values_.begin(), values_.end());
    const bool are_objects = meaning_.kind == Kind::objects;
    const bool are_masks = meaning_.kind == Kind::mask || meaning_.kind == Kind::masks;
    if (!ignored_.empty() && ignored_.count(0) == 0 && values.size() <= kFewTargetValues) {
      const double ignored = *ignored_.begin();
      add(fmt::format("ignore_index={:g} leaves no background in {}: where {:g} is the background, "
                      "{}, without ignore_index",
                      ignored,
                      images(),
                      ignored,
                      background_option(ignored)),
          are_masks);
    } else if (!are_objects && values.size() == 1) {
      say("no background: every value is {:g} in {}, so there is nothing to learn; the "
          "value 0 means background",
          values.front(),
          images());
    } else if (are_objects) {
      if (values.size() > 3) return false;  // objects may fill their image
      add(fmt::format("no background (0) in {}, but only {}: expected 0 where no object is, and a "
                      "number for each object; of a mask, {}=[{:g}] makes an object of each region "
                      "of that value",
                      images(),
                      fmt::join(values, ", "),
                      option("object_values"),
                      values.back()),
          regions_of_numbers() >= 2);
    } else if (values.size() <= kFewTargetValues) {
      add(fmt::format(
              "no background (0) in {}, but only {}: {} says what they mean, background "
              "first{}",
              images(),
              fmt::join(values, ", "),
              meaning_.kind == Kind::masks || values.front() < 0 ? background_option(values.front())
                                                                 : values_option(values),
              are_masks
                  ? fmt::format("; {}=0 makes one mask of all of them", option("target_threshold"))
                  : ""),
          are_masks);
    } else {
      return false;
    }
    return true;
  }

  /// Finds classes, or a mask, in place of objects: few numbers, each in many places.
  void find_classes() {
    int64_t regions = 0, numbers = 0;
    for (const TargetFacts& facts : facts_) {
      const auto own = static_cast<int64_t>(facts.counts.size() - facts.counts.count(0));
      if (own > 3) return;
      numbers += own;
      regions += facts.regions;
    }
    if (values_.size() > 4 || regions < 4 * numbers || regions < 8) return;
    std::vector<double> foreground(values_.begin(), values_.end());
    if (foreground.front() == 0) foreground.erase(foreground.begin());
    const std::string classes =
        values_.size() <= 2 ? "num_classes=1" : values_option({values_.begin(), values_.end()});
    say("only {} in {}, in {} separate regions: this is a mask or classes, not a number "
        "for each object; {}=[{}] makes an object of each region, "
        "experiment=im2im/segmentation {} learns the mask",
        fmt::join(values_, ", "),
        images(),
        regions,
        option("object_values"),
        fmt::join(foreground, ","),
        classes);
  }

  /// The numbers other than 0, summed over all images.
  double all_numbers() const {
    double numbers = 0;
    for (const TargetFacts& facts : facts_)
      numbers += static_cast<double>(facts.counts.size() - facts.counts.count(0));
    return numbers;
  }
  double regions_of_numbers() const {
    double regions = 0;
    for (const TargetFacts& facts : facts_) regions += static_cast<double>(facts.regions);
    return regions / std::max(1.0, all_numbers());
  }
  /// Whether each of an image's objects has its own number.
  bool are_objects() const {
    return all_numbers() >= 5 * static_cast<double>(facts_.size()) && regions_of_numbers() < 1.2;
  }

  void find_gaps() {
    if (meaning_.kind != Kind::classes || !meaning_.target_values.empty()) return;
    const std::vector<double> values(values_.begin(), values_.end());
    std::vector<double> beyond;
    for (const double value : values) {
      if (value < 0 || value >= static_cast<double>(meaning_.num_classes)) beyond.push_back(value);
    }
    const std::string found = fmt::format("{}", fmt::join(beyond, ", "));
    const bool is_negative = beyond.size() == 1 && beyond.front() < 0;
    const bool is_largest = beyond.size() == 1 && beyond.front() == 255 && values.size() > 2;
    if ((is_negative || is_largest) && !meaning_.ignore_index) {
      say("{} is no class of num_classes={}; where nothing is known: {}={}{}",
          found,
          meaning_.num_classes,
          option("ignore_index"),
          found,
          is_negative ? "; where it is the background: " + background_option(beyond.front()) : "");
    } else if (!beyond.empty() && are_objects()) {
      say("values up to {:g}, one for each region: these are objects, not "
          "num_classes={} classes; experiment=im2im/instance learns objects",
          values.back(),
          meaning_.num_classes);
    } else if (!beyond.empty() && values.size() <= kMostLabels) {
      say("{} {} no class of num_classes={} (0..{}): {} numbers the values that there "
          "are",
          found,
          beyond.size() == 1 ? "is" : "are",
          meaning_.num_classes,
          meaning_.num_classes - 1,
          is_negative ? background_option(beyond.front()) : values_option(values));
    } else if (beyond.empty() && are_all_ && split_ == "train" &&
               std::ssize(values) < meaning_.num_classes) {
      say("num_classes={}, but only {} in {}: {} numbers the values that there are",
          meaning_.num_classes,
          fmt::join(values, ", "),
          images(),
          values.size() == 2
              ? fmt::format(
                    "num_classes=1 {}=[{}]", option("target_values"), fmt::join(values, ","))
              : values_option(values));
    }
  }

  const TargetMeaning& meaning_;
  const std::string split_;
  const std::vector<TargetFacts>& facts_;
  const bool are_all_;
  std::set<double> values_, classes_, ignored_;
  std::vector<TargetProblem> lines_;
};

}  // namespace

std::string background_by_map(const std::string& key, double background) {
  return fmt::format(
      "{{_target_: MapLabelValued, keys: [{}], orig_labels: [{:g}], target_labels: [0]}} after "
      "LoadImaged in each list of data.transforms",
      key,
      background);
}

std::vector<TargetProblem> check_targets(const TargetMeaning& meaning,
                                         const std::string& split,
                                         const std::vector<TargetFacts>& facts,
                                         bool are_all) {
  return TargetCheck(meaning, split, facts, are_all).run();
}

}  // namespace cytra::data
