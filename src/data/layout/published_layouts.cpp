// Part of data/layout/folder_layout.h: the layouts in which data sets are published. Sources: the
// Cell Tracking Challenge's "Naming and file content conventions"; BIDS 1.10, "Derivatives".
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/files.h"
#include "base/strings.h"
#include "config/overrides/overrides.h"
#include "data/layout/folder_hint.h"
#include "data/layout/folder_layout.h"
#include "data/layout/layout_names.h"
#include "io/image_folder.h"
#include "io/reader.h"

namespace cytra::data {
namespace fs = std::filesystem;
namespace {

/// Settings of data=folder with which whole paths are paired.
Layout of_paths(const Base& base, const std::vector<std::string>& regex, const std::string& text) {
  const std::string place = base.prefix.empty() ? "." : base.prefix;
  return {"folder",
          {{"data.folders", {place, place}}, {"data.recursive", {"true"}}, {"data.regex", regex}},
          text};
}

/// The Cell Tracking Challenge's sequences: 01/t000.tif, 01_GT/SEG/man_seg000.tif, or the silver
/// truth 01_ST/SEG, which has more images.
std::optional<Layout> of_tracking(const Base& base) {
  for (const char* truth : {"_ST", "_GT"}) {
    std::size_t images = 0, targets = 0;
    for (const std::string& name : look_into(base.place, ".").folders) {
      const Holding masks = look_into(base.place / (name + truth) / "SEG", name);
      if (masks.images.empty() || !std::ranges::all_of(name, is_digit)) continue;
      images += look_into(base.place / name, name).images.size();
      targets += masks.images.size();
    }
    if (images == 0) continue;
    Layout layout =
        of_paths(base,
                 {R"((\d+)/t(\d+)\.)", fmt::format(R"((\d+){}/SEG/man_seg(\d+)\.)", truth)},
                 fmt::format("sequences of the Cell Tracking Challenge, {}", truth + 1));
    if (targets < images) layout.settings.push_back({"data.on_error", {"skip"}});
    return layout;
  }
  return {};
}

/// BIDS: sub-01/anat/sub-01_T1w.nii.gz with derivatives/NAME/sub-01/anat/..._dseg.nii.gz.
std::optional<Layout> of_bids(const Base& base) {
  std::error_code error;
  std::set<std::string> kinds, masks;
  if (!path_exists(base.place / "dataset_description.json")) return {};
  for (auto file = fs::recursive_directory_iterator(base.place, error);
       file != fs::recursive_directory_iterator();
       file.increment(error)) {
    const std::string path = file->path().lexically_relative(base.place).generic_string();
    const std::size_t anat = path.find("/anat/");
    if (anat == std::string::npos || !io::is_image_path(path)) continue;
    const std::string stem = stem_of(path), kind = stem.substr(stem.rfind('_') + 1);
    if (path.starts_with("sub-")) kinds.insert(kind);
    const bool is_mask = kind == "dseg" || kind == "mask";
    if (path.starts_with("derivatives/") && is_mask)
      masks.insert(path.substr(0, path.find("/sub-")) + " " + kind);
  }
  std::vector<std::string> choices;
  std::optional<Layout> layout;
  for (const std::string& image : kinds) {
    for (const std::string& mask : masks) {
      const std::size_t space = mask.rfind(' ');
      const std::string one = R"((sub-[^/]+)/(ses-[^/]+/)?anat/[^/]*_)";
      layout = of_paths(base,
                        {one + image + R"(\.)",
                         mask.substr(0, space) + "/" + one + mask.substr(space + 1) + R"(\.)"},
                        fmt::format("BIDS, {} and {}", image, mask));
      choices.push_back(fmt::format(
          "data=folder {} data.recursive=true {}",
          folders_word(layout->settings[0].second),
          shell_quote("data.regex=" +
                      config::override_text(config::Node::make_list(layout->settings[2].second)))));
    }
  }
  if (choices.size() < 2) return layout;
  throw SeveralMeant("data.path: {}: several images or masks may be meant; type {}",
                     base.place.string(),
                     join(choices, ", or "));
}

/// The first image of a plate of OME-Zarr; "" for others.
fs::path first_of_plate(const fs::path& folder) {
  try {
    const std::vector<std::string> images = io::plate_images(folder.string());
    return images.empty() ? fs::path() : folder / images[0];
  } catch (const Error&) {  // reported when it is read
    return {};
  }
}

/// Plates of OME-Zarr, with labels in their images: plate.zarr/A/1/0/labels/cells.
std::optional<Layout> of_plates(const Base& base, const DataNeeds& needs) {
  const std::vector<std::string> inside = look_into(base.place, ".").images;
  std::string stars = joined(base.prefix, "*/*/*");
  fs::path first = first_of_plate(base.place);
  if (first.empty() && !inside.empty()) {
    first = first_of_plate(base.place / inside[0]);
    stars = joined(base.prefix, (inside.size() == 1 ? inside[0] : "*") + "/*/*/*");
  }
  if (first.empty()) return {};
  const auto layout = [&](std::vector<std::string> folders) {
    return Layout{"folder", {{"data.folders", std::move(folders)}}, "the wells of OME-Zarr plates"};
  };
  if (!needs.has_target) return layout({stars});
  const std::vector<std::string> labels = look_into(first / "labels", "").images;
  std::vector<std::string> choices;
  for (const std::string& name : labels)
    choices.push_back("data=folder " + folders_word({stars, stars + "/labels/" + name}));
  if (labels.empty()) return {};
  if (labels.size() == 1) return layout({stars, stars + "/labels/" + labels[0]});
  throw SeveralMeant("data.path: {}: its images have several labels; type {}",
                     base.place.string(),
                     join(choices, ", or "));
}

}  // namespace

std::optional<Layout> layout_by_publisher(const Base& base, const DataNeeds& needs) {
  std::optional<Layout> layout = of_plates(base, needs);
  if (layout || !needs.has_target || needs.prefers_annotations) return layout;
  layout = of_tracking(base);
  return layout ? layout : of_bids(base);
}

}  // namespace cytra::data
