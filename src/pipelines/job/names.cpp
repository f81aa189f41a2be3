#include "pipelines/job/names.h"

#include <filesystem>

#include <fmt/format.h>

#include "io/fingerprint.h"
#include "io/formats.h"

namespace cytra::pipelines {
namespace {

/// A name that leaves room for what follows ("_overlay.png") in the 255 bytes of a file's name. A
/// longer one is cut, and a fingerprint at its end makes it unique.
std::string short_name(const std::string& stem) {
  constexpr std::size_t kMost = 200, kDigits = 16;
  std::size_t end = kMost - kDigits - 1;
  if (stem.size() <= kMost) return stem;
  while (end > 0 && (static_cast<unsigned char>(stem[end]) & 0xc0) == 0x80)
    --end;  // within a letter
  return stem.substr(0, end) + "_" + io::fingerprint(stem).substr(0, kDigits);
}

/// The name of an image in an OME-Zarr of several: "plate_A1_0" for plate.zarr/A/1/0; "" for
/// others.
std::string name_in_zarr(const std::filesystem::path& path) {
  std::string name;
  std::size_t below = 0;
  for (const std::filesystem::path& part : path) {
    if (name.empty() && part.extension() != ".zarr") continue;
    if (name.empty()) {
      name = io::stem_of(part.string());
    } else {
      name += (below++ == 1 ? "" : "_") + part.string();
    }
  }
  return below == 3 ? name : "";
}

}  // namespace

std::string OutputNames::next(const data::Source& source) {
  std::string stem = name_in_zarr(source.path);
  if (stem.empty()) stem = io::stem_of(source.path);
  const std::string folder = std::filesystem::path(source.path).parent_path().filename().string();
  const bool is_case = !source.more.empty() || folder == "imagesTr" || folder == "imagesTs";
  if (is_case && stem.ends_with("_0000")) stem.resize(stem.size() - 5);  // nnU-Net's
  if (source.selection.scene >= 0) stem += fmt::format("_s{}", source.selection.scene);
  if (source.selection.timepoint >= 0) stem += fmt::format("_t{}", source.selection.timepoint);
  return unique(short_name(stem));
}

std::string OutputNames::frame(const std::string& stem, const data::Source& source) {
  const io::Selection& chosen = source.selection;
  return unique(chosen.plane >= 0 ? fmt::format("{}_z{}", stem, chosen.plane)
                                  : fmt::format("{}_t{}", stem, chosen.timepoint));
}

std::string OutputNames::scene(const std::string& stem, int64_t scene) {
  return unique(fmt::format("{}_s{}", stem, scene));
}

std::string OutputNames::unique(const std::string& stem) {
  std::string unique = stem;
  while (taken_.count(unique) + taken_.count(unique + "_overlay") > 0)
    unique = fmt::format("{}_{}", stem, numbers_.try_emplace(stem, 1).first->second += 1);
  taken_.insert({unique, unique + "_overlay"});
  return unique;
}

}  // namespace cytra::pipelines
