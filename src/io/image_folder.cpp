#include "io/image_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/files.h"
#include "base/strings.h"
#include "base/warn_once.h"
#include "io/module.h"
#include "io/pixels/format.h"
#include "io/tiff/layout.h"
#include "io/zarr/ome_zarr.h"

namespace cytra::io {
namespace fs = std::filesystem;
namespace {

/// The endings of formats that Bio-Formats reads and we don't.
constexpr const char* kForeign[] = {".czi",  ".nd2",  ".lif", ".lei",  ".oib",  ".oif", ".oir",
                                    ".vsi",  ".ets",  ".zvi", ".ims",  ".dv",   ".r3d", ".dm3",
                                    ".dm4",  ".mrc",  ".rec", ".mrcs", ".mrxs", ".bif", ".sld",
                                    ".flex", ".xdce", ".c01", ".ics"};
/// The endings of photographs that ImageMagick reads and we don't.
constexpr const char* kPhotographs[] = {".avif", ".heic", ".heif", ".jxl"};

std::string ending_in_small(const std::string& path) {
  return in_small_letters(fs::path(path).extension().string());
}

bool is_tiff_name(const std::string& path) {
  const Format* const format = format_of_name(path);
  return format != nullptr && format->name == "ome_tiff";
}

/// Whether a file may be a part of an image in several files. `looks`: of any name, since opening
/// a few files costs little.
bool may_be_part(const std::string& path, bool looks) {
  return is_tiff_name(path) && (looks || path.find(".ome.") != std::string::npos);
}

/// The begin_of_ome_set() of a TIFF. As a data set is listed several times, a file that is no part
/// of a set is opened once, until it changes.
std::string begin_of_set(const std::string& path) {
  static std::mutex mutex;
  static std::set<std::array<int64_t, 5>> alone;
  struct stat status {};
  const bool is_there = ::stat(path.c_str(), &status) == 0;
  const std::array<int64_t, 5> state{static_cast<int64_t>(status.st_dev),
                                     static_cast<int64_t>(status.st_ino),
                                     status.st_size,
                                     status.st_mtim.tv_sec,
                                     status.st_mtim.tv_nsec};
  {
    const std::lock_guard lock(mutex);
    if (alone.count(state) > 0) return path;
  }
  std::string begin = begin_of_ome_set(path);
  const std::lock_guard lock(mutex);
  if (is_there && begin == path) alone.insert(state);
  return begin;
}

/// Keeps of each set of files that are one image the file that begins it.
void leave_out_parts(const std::string& folder, std::vector<std::string>& images) {
  const bool looks = images.size() <= kLookedInto;
  const auto may_be = [&](const std::string& path) { return may_be_part(path, looks); };
  if (std::ranges::count_if(images, may_be) < 2) return;
  std::string first_part, whole;
  const std::size_t before = images.size();
  const std::vector<std::string> all = images;
  const auto is_part = [&](const std::string& path) {
    if (!may_be(path)) return false;
    const std::string begin = begin_of_set(path);
    if (begin == path || !std::ranges::binary_search(all, begin)) return false;
    if (first_part.empty()) {
      first_part = path;
      whole = begin;
    }
    return true;
  };
  std::erase_if(images, is_part);
  if (images.size() == before) return;
  warn_once(fmt::format(
      "{}: {} files are parts of OME-TIFF images that begin in another file and are taken once, as "
      "{} with {}",
      folder,
      before - images.size(),
      fs::path(whole).filename().string(),
      fs::path(first_part).filename().string()));
}

/// Whether a folder is that of a run, or has such folders alone, beside tables and logs of sweeps.
bool has_only_runs(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / ".hydra", error)) return true;
  bool has_run = false;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string ending = ending_in_small(entry.path().string());
    if (is_hidden(entry.path().filename().string())) continue;
    const bool is_run =
        entry.is_directory(error) && !entry.is_symlink(error) && has_only_runs(entry.path());
    if (!is_run && ending != ".yaml" && ending != ".log") return false;
    has_run |= is_run;
  }
  return has_run;
}

}  // namespace

bool is_hidden(const std::string& name) {
  if (name.starts_with(".")) return true;
  for (const char* left :
       {"__MACOSX", "Thumbs.db", "thumbs.db", "desktop.ini", "$RECYCLE.BIN", "@eaDir"}) {
    if (name == left) return true;
  }
  return false;
}

bool is_left_out(const fs::directory_entry& entry) {
  std::error_code error;
  return is_hidden(entry.path().filename().string()) ||
         (entry.is_directory(error) && has_only_runs(entry.path()));
}

std::vector<std::string> list_images(const std::string& folder, bool is_recursive) {
  std::vector<std::string> images;
  std::map<std::string, int64_t> foreign;  // count by ending
  std::string example;
  std::vector<std::string> broken;  // links
  std::error_code error;
  fs::recursive_directory_iterator entries(folder, error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    const std::string path = entries->path().string();
    std::error_code ignored;  // a loop of links
    const bool is_folder = entries->is_directory(ignored);
    const bool left_out = is_left_out(*entries);
    const bool is_image =
        !left_out && (is_folder || entries->is_regular_file(ignored)) && is_image_path(path);
    if (is_folder && (left_out || is_image || !is_recursive)) entries.disable_recursion_pending();
    if (is_image) images.push_back(path);
    if (!left_out && !is_image && !fs::exists(path, ignored) && is_image_path(path))
      broken.push_back(path);
    if (is_image || left_out || is_folder || conversion_of(path).empty()) continue;
    ++foreign[ending_in_small(path)];
    if (example.empty() || path < example) example = path;
  }
  if (error) throw ConfigError(folder + ": can't be read: " + error.message());
  std::ranges::sort(images);
  leave_out_parts(folder, images);
  if (!broken.empty())
    warn_once(fmt::format("{}: {} links to files that do not exist are left out, such as {}",
                          folder,
                          broken.size(),
                          broken[0]));
  if (foreign.empty()) return images;
  std::vector<std::string> counts;
  for (const auto& [ending, count] : foreign) counts.push_back(fmt::format("{} {}", count, ending));
  const std::string line = fmt::format("{}: files that are not read are left out: {}; {}",
                                       folder,
                                       join(counts, ", "),
                                       conversion_of(example));
  if (images.empty()) throw DataError(line);
  warn_once(line);
  return images;
}

bool is_one_image(const std::string& folder) {
  if (is_zarr("", folder)) return true;
  if (!is_dicom("", folder)) return false;
  constexpr int64_t kMostSeries = 8;  // that are looked at
  int64_t scenes = 1;
  for (int64_t scene = 0; scene < std::min(scenes, kMostSeries); ++scene) {
    const ImageInfo info = open_dicom(folder, {scene, 0, 0})->info();
    scenes = info.scenes;
    if (scenes == 1 || info.shape[1] * info.timepoints > 1) return true;
  }
  return false;
}

std::vector<std::string> plate_images(const std::string& folder) {
  if (!is_zarr("", folder)) return {};
  ZarrStore store(folder);
  const ZarrNode group = find_zarr_node(store, "");
  const bool is_plate = group.attributes.is_object() && group.attributes.contains("plate");
  return is_plate ? find_ome_scenes(store, group) : std::vector<std::string>();
}

std::string whole_of(const std::string& path, bool looks) {
  const std::string ending = ending_in_small(path);
  if (is_tiff_name(path)) return may_be_part(path, looks) ? begin_of_set(path) : path;
  if (ending == ".img") {
    const std::string header = fs::path(path).replace_extension(".hdr").string();
    return path_exists(header) ? header : path;
  }
  if (ending != ".dcm" || folder_exists(path)) return path;
  static std::mutex mutex;
  static std::map<std::string, bool> known;  // folders that are one image
  const std::lock_guard lock(mutex);
  std::error_code error;
  const std::string folder = fs::absolute(path, error).parent_path().string();
  const auto found = known.find(folder);
  bool is_one = found != known.end() && found->second;
  try {
    if (found == known.end()) is_one = is_one_image(folder);
  } catch (const Error&) {  // reported when the file is read
  }
  known[folder] = is_one;
  return is_one ? folder : path;
}

bool may_hold_images(const std::string& folder) {
  constexpr int kMost = 2000;
  std::error_code error;
  int count = 0;
  fs::recursive_directory_iterator entries(folder, error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    const std::string path = entries->path().string();
    if (is_left_out(*entries)) {
      entries.disable_recursion_pending();
      continue;
    }
    if (++count > kMost || is_image_path(path) || !conversion_of(path).empty()) return true;
  }
  return false;
}

std::string kinds_read() {
  return format_titles("and", [](const Format&) { return true; }) + " are read";
}

std::string conversion_of(const std::string& path) {
  const std::string ending = ending_in_small(path);
  const std::string from = shell_quote(path), stem = path.substr(0, path.size() - ending.size());
  if (std::ranges::find(kPhotographs, ending) != std::end(kPhotographs)) {
    return fmt::format(
        "convert it with ImageMagick: magick {} {}", from, shell_quote(stem + ".png"));
  }
  if (ending == ".mat") {
    return fmt::format(
        "save it in MATLAB with '-v7.3', or: python3 -c \"import sys, numpy, scipy.io; "
        "a = max(scipy.io.loadmat(sys.argv[1]).values(), key=numpy.size); "
        "numpy.save(sys.argv[2], a.T.swapaxes(-1, -2))\" {} {}",
        from,
        shell_quote(stem + ".npy"));
  }
  if (std::ranges::find(kForeign, ending) == std::end(kForeign)) return "";
  return fmt::format(
      "convert it with Bio-Formats: bfconvert {} {}", from, shell_quote(stem + ".ome.tif"));
}

std::vector<int64_t> scenes_of(const std::string& path) {
  std::vector<int64_t> scenes;
  if (tiff_scenes(path, scenes)) return scenes;
  const int64_t count = open_image(path, {0, 0, 0})->info().scenes;
  for (int64_t scene = 0; scene < count; ++scene) scenes.push_back(scene);
  return scenes;
}

void tell_other_scenes(const std::string& path) {
  const std::vector<int64_t> scenes = scenes_of(path);
  if (scenes.size() < 2) return;
  warn_once(fmt::format(
      "{}: scene {} is taken, {} others are left out; a manifest's column 'scene' (0,1 for two of "
      "them) or LoadImaged's option 'scene' chooses",
      path,
      scenes[0],
      scenes.size() - 1));
}

}  // namespace cytra::io
