#include "data/layout/folder_layout.h"

#include <algorithm>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/strings.h"
#include "base/unicode.h"
#include "config/overrides/overrides.h"
#include "data/layout/folder_hint.h"
#include "data/layout/layout_names.h"
#include "io/annotations/annotations.h"
#include "io/image_folder.h"
#include "io/input_file.h"
#include "io/reader.h"

namespace cytra::data {
namespace fs = std::filesystem;

Holding look_into(const fs::path& folder, const std::string& name) {
  Holding holding{folder, name, name, {}, {}, {}, ""};
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string own = entry.path().filename().string();
    if (io::is_left_out(entry)) continue;
    std::error_code ignored;  // a loop of links
    const bool is_folder = entry.is_directory(ignored);
    if (io::is_image_path(entry.path().string())) {
      holding.images.push_back(own);
    } else if (is_folder) {
      holding.folders.push_back(own);
    } else if (io::is_annotation_path(entry.path().string())) {
      holding.annotations.push_back(own);
    } else if (!io::conversion_of(own).empty()) {
      holding.foreign = entry.path().string();
    }
  }
  for (auto* names : {&holding.images, &holding.annotations, &holding.folders})
    std::sort(names->begin(), names->end());
  return holding;
}

bool is_of_many(const fs::path& path) {
  const bool is_xml = path.extension() == ".xml";
  if (!is_xml && path.extension() != ".json") return false;
  try {
    return !io::annotated_images(path.string()).empty();
  } catch (const Error&) {  // its first words tell of which kind a damaged one is
    const std::string begin = io::InputFile(path.string()).begin(4096);
    return begin.find(is_xml ? "<annotations" : "\"images\"") != std::string::npos;
  }
}

std::vector<std::string> stems_of(const std::vector<std::string>& names) {
  return mapped(names, stem_of);
}

bool has_partners(const std::vector<std::string>& images, const std::vector<std::string>& others) {
  std::set<std::string> names;
  for (const std::string& image : images) names.insert(decomposed(stem_of(image)));
  return std::ranges::any_of(others, [&](const std::string& other) {
    return names.count(decomposed(stem_of(other))) > 0;
  });
}

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "/" + name;
}

namespace {

class FolderLayout {
 public:
  FolderLayout(const Base& base, const DataNeeds& needs) : base_(base), needs_(needs) {
    holdings_.push_back(look_into(base.place, "."));
    for (const std::string& name : holdings_.front().folders) {
      if (names_split(name)) continue;
      Holding below = look_into(base.place / name, name);
      if (below.images.empty() && below.annotations.empty()) {
        const std::string part = part_in((base.place / name).string(), Split::train);
        if (!part.empty()) below = look_into(base.place / name / part, name);
      }
      holdings_.push_back(std::move(below));
    }
  }

  /// The layout of folders that are looked into already.
  FolderLayout(const Base& base, const DataNeeds& needs, std::vector<Holding> holdings)
      : base_(base), needs_(needs), holdings_(std::move(holdings)) {
    holdings_.insert(holdings_.begin(), Holding{base.place, ".", ".", {}, {}, {}, ""});
  }

  std::optional<Layout> find() const {
    if (std::optional<Layout> layout = folder_per_image()) return layout;
    if (std::optional<Layout> layout = folder_per_class()) return layout;
    const Holding* source = find_source();
    if (source == nullptr) {
      refuse_foreign(/*are_targets=*/false);
      return {};
    }
    if (!needs_.has_target) return of({source->name}, {});
    const Holding* target = find_target(*source);
    if (target == nullptr) {
      std::optional<Layout> layout = in_one(*source);
      if (!layout) layout = in_images(*source);
      if (!layout) refuse_foreign(/*are_targets=*/true);
      return layout;
    }
    if (has_annotations(*source, *target)) return of({source->name, target->name}, {});
    const auto& partners = target->images.empty() ? target->annotations : target->images;
    return of({source->name, target->name},
              regex_of_folders(stems_of(source->images), stems_of(partners)));
  }

 private:
  std::string place_of(const std::string& name) const {
    if (name == ".") return base_.prefix.empty() ? name : base_.prefix;
    return joined(base_.prefix, name);
  }

  Layout of(const std::vector<std::string>& names, const std::vector<std::string>& regex) const {
    Layout layout;
    layout.module = "folder";
    std::vector<std::string> folders;
    for (const std::string& name : names) folders.push_back(place_of(name));
    const std::vector<std::string> usual = {needs_.source_col, needs_.target_col};
    if (!std::equal(folders.begin(), folders.end(), usual.begin()))
      layout.settings.emplace_back("data.folders", folders);
    if (!regex.empty()) layout.settings.emplace_back("data.regex", regex);
    layout.text = fmt::format("images in {}", folders[0] == "." ? "the folder itself" : folders[0]);
    if (folders.size() > 1)
      layout.text +=
          folders[1] == folders[0] ? ", targets beside them" : ", targets in " + folders[1];
    return layout;
  }

  /// The layout with a folder for each image: NAME/images/a.png and NAME/masks/*.png, as in DSB
  /// 2018, or NAME/a.png and NAME/mask_*.png.
  std::optional<Layout> folder_per_image() const {
    std::vector<ImageFolder> folders;
    for (const Holding& one : holdings_) {
      if (one.name == "." && !one.images.empty()) return {};
      if (one.name != ".") folders.push_back({one.images, one.folders});
    }
    const std::vector<std::string> regex = regex_of_image_folders(folders);
    if (!regex.empty()) return of_image_folders({"*", "*"}, regex);
    const std::vector<std::string> below =
        columns_of_image_folders(folders, needs_.source_col, needs_.target_col);
    if (below.empty()) return {};
    return of_image_folders({"*/" + below[0], "*/" + below[1]}, {});
  }
  Layout of_image_folders(std::vector<std::string> names, std::vector<std::string> regex) const {
    if (!needs_.has_target) {
      names.resize(1);
      regex.resize(std::min<std::size_t>(regex.size(), 1));
    }
    return of(names, regex);
  }

  /// The layout with a folder of images for each class. Throws where other folders may be meant,
  /// as all images of the first have namesakes in the second.
  std::optional<Layout> folder_per_class() const {
    if (!needs_.may_be_classes || holdings_.size() < 3 || !holdings_[0].images.empty()) return {};
    std::vector<std::string> names;
    for (auto one = holdings_.begin() + 1; one != holdings_.end(); ++one) {
      if (one->images.empty() || !one->annotations.empty() || names_target(one->kind) ||
          names_source(one->kind))
        return {};
      names.push_back(one->name);
    }
    Layout layout{"class_folders",
                  {{"class_names", names}},
                  "a folder of images for each class",
                  "im2im/classification"};
    const Holding &first = holdings_[1], &second = holdings_[2];
    if (first.images.size() < 2 || stems_of(first.images) != stems_of(second.images)) return layout;
    throw SeveralMeant(
        "data.path: {}: the images of {} and {} have the same names: type experiment=im2im/"
        "classification {} where the folders are classes, or data=folder {} where one has the "
        "targets of the other",
        base_.place.string(),
        first.name,
        second.name,
        shell_quote("class_names=" + config::override_text(config::Node::make_list(names))),
        folders_word({place_of(first.name), place_of(second.name)}));
  }

  /// Throws for targets, or images, of a kind that is not read.
  void refuse_foreign(bool are_targets) const {
    for (const Holding& one : holdings_) {
      if (one.foreign.empty() || names_target(one.kind) != are_targets || !one.images.empty())
        continue;
      throw ConfigError("data.path: {}: not read; {}", one.foreign, io::conversion_of(one.foreign));
    }
  }

  const Holding* named(const std::string& name) const {
    const auto found = std::ranges::find_if(holdings_, [&](const Holding& one) {
      return one.kind == name && one.images.size() + one.annotations.size() > 0;
    });
    return found == holdings_.end() ? nullptr : &*found;
  }

  [[noreturn]] void fail_several(const std::vector<const Holding*>& sources,
                                 const std::vector<const Holding*>& targets) const {
    std::vector<std::string> lines;
    for (const Holding* source : sources) {
      for (const Holding* target : targets) {
        if (source == target) continue;
        std::vector<std::string> folders = {place_of(source->name)};
        if (needs_.has_target) folders.push_back(place_of(target->name));
        lines.push_back("data=folder " + folders_word(folders));
      }
    }
    if (lines.size() > 6) lines.resize(6);
    throw SeveralMeant("data.path: {}: several folders may be meant; type {}",
                       base_.place.string(),
                       join(lines, ", or "));
  }

  const Holding* find_source() const {
    if (const Holding* exact = named(needs_.source_col)) return exact;
    std::vector<const Holding*> found, known;
    for (const Holding& one : holdings_) {
      if (one.name == "." || one.images.empty() || names_target(one.kind)) continue;
      found.push_back(&one);
      if (names_source(one.kind)) known.push_back(&one);
    }
    if (known.size() == 1) return known[0];
    if (found.size() == 1) return found[0];
    if (found.empty()) return holdings_.front().images.empty() ? nullptr : &holdings_.front();
    std::vector<const Holding*> targets;
    for (const Holding& one : holdings_)
      if (names_target(one.kind) && one.images.size() + one.annotations.size() > 0)
        targets.push_back(&one);
    if (targets.empty() && needs_.has_target) return nullptr;  // folders with something else
    fail_several(known.size() > 1 ? known : found, targets.empty() ? found : targets);
  }

  bool is_target_of(const Holding& source, const Holding& one) const {
    if (one.name == "." || &one == &source) return false;
    return !one.images.empty() || has_annotations(source, one) ||
           (names_target(one.kind) &&
            !regex_of_folders(stems_of(source.images), stems_of(one.annotations)).empty());
  }
  bool has_annotations(const Holding& source, const Holding& one) const {
    return has_partners(source.images, one.annotations) ||
           (one.annotations.size() == 1 && is_of_many(one.place / one.annotations[0]));
  }

  /// The folder of the targets; null where there is none.
  const Holding* find_target(const Holding& source) const {
    const Holding* exact = named(needs_.target_col);
    if (exact != nullptr && exact != &source) return exact;
    std::vector<const Holding*> targets, others, liked;
    for (const Holding& one : holdings_) {
      if (!is_target_of(source, one)) continue;
      (names_target(one.kind) ? targets : others).push_back(&one);
    }
    if (targets.size() == 1) return targets[0];
    if (targets.empty()) {
      const Holding& above = holdings_.front();  // with one file of annotations for all images
      if (above.images.empty() && has_annotations(source, above)) return &above;
      const bool is_pair = others.size() == 1 && names_source(source.kind) &&
                           has_partners(source.images, others[0]->images);
      return is_pair ? others[0] : nullptr;
    }
    for (const Holding* one : targets)
      if (one->images.empty() == needs_.prefers_annotations) liked.push_back(one);
    if (liked.size() == 1) return liked[0];
    fail_several({&source}, liked.empty() ? targets : liked);
  }

  /// The layout with images and targets in one folder.
  std::optional<Layout> in_one(const Holding& source) const {
    std::vector<std::string> regex = regex_of_one_folder(stems_of(source.images));
    if (regex.empty() && !has_annotations(source, source))
      regex = regex_of_folders(stems_of(source.images), stems_of(source.annotations));
    const bool has_own = has_annotations(source, source);
    if (has_own && (regex.empty() || needs_.prefers_annotations))
      return of({source.name, source.name}, {});
    if (regex.empty()) return {};
    return of({source.name, source.name}, regex);
  }

  /// The layout with targets in the images, as the labels of OME-Zarrs are.
  std::optional<Layout> in_images(const Holding& source) const {
    const std::vector<std::string> labels =
        look_into(source.place / source.images.front() / "labels", "").images;
    std::vector<std::string> choices;
    for (const std::string& name : labels) {
      const std::string place =
          (fs::path(source.name) / "*/labels" / name).lexically_normal().string();
      if (labels.size() == 1) return of({source.name, place}, {});
      choices.push_back("data=folder " + folders_word({place_of(source.name), place_of(place)}));
    }
    if (choices.empty()) return {};
    throw SeveralMeant("data.path: {}: its images have several labels; type {}",
                       base_.place.string(),
                       join(choices, ", or "));
  }

  const Base& base_;
  const DataNeeds& needs_;
  std::vector<Holding> holdings_;
};

}  // namespace

std::optional<Layout> layout_by_folders(const Base& base, const DataNeeds& needs) {
  return FolderLayout(base, needs).find();
}

std::optional<Layout> layout_by_named_parts(const Base& base, const DataNeeds& needs) {
  std::vector<Holding> holdings;
  for (const std::string& name : look_into(base.place, ".").folders) {
    const std::string small = in_small_letters(name);
    const std::size_t at = small.find("train");
    if (at == std::string::npos || (at > 0 && is_letter(small[at - 1]) && name[at] == 't'))
      continue;
    Holding& found = holdings.emplace_back(look_into(base.place / name, name));
    const std::size_t length = small.substr(at).starts_with("training") ? 8 : 5;
    found.name.replace(at, length, "{split}");
    found.kind.erase(at, length);
    std::erase_if(found.kind, [](char letter) { return !is_letter(letter); });
    if (found.kind.empty()) found.kind = "images";
  }
  if (holdings.size() < 2) return {};
  DataNeeds others = needs;
  others.may_be_classes = false;
  return FolderLayout(base, others, std::move(holdings)).find();
}

}  // namespace cytra::data
