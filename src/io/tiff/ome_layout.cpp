// Part of io/tiff/layout.h: OME-XML in a TIFF. Source:
// https://docs.openmicroscopy.org/ome-model/latest/ome-tiff/specification.html
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "io/pixels/format.h"
#include "io/tiff/layout.h"
#include "io/tiff/ome_xml.h"

namespace cytra::io {
namespace {

using Attributes = std::map<std::string, std::string>;

struct TiffData {
  Attributes attributes;
  std::string uuid, file;  // of the file that holds the pages, when they are given
};
struct OmeXmlImage {
  Attributes pixels;
  std::vector<std::string> channel_names;  // of each Channel
  std::string samples;                     // SamplesPerPixel of the first
  std::vector<TiffData> data;
  Attributes stage;  // StageLabel
  Attributes plane;  // the Plane of the first one, with its position
};

class OmeLayout {
 public:
  OmeLayout(const std::string& path, const std::vector<TiffPage>& pages, const Selection& selection)
      : path_(path), pages_(pages), selection_(selection) {}

  TiffLayout read(const std::string& xml) {
    int64_t scene = selection_.scene;
    read_xml(xml);
    if (!metadata_file_.empty()) {
      const std::string own = uuid_;
      read_xml(read_metadata(metadata_file_));
      uuid_ = own;
      is_one_file_ = false;
    }
    const TiffData* one = nullptr;
    for (const OmeXmlImage& image : images_) {
      for (const TiffData& data : image.data) {
        if (one == nullptr) one = &data;
        is_one_file_ = is_one_file_ && data.uuid == one->uuid && data.file == one->file;
      }
    }
    if (images_.empty()) fail("has no Pixels");
    layout_.own_scenes = scenes_here();
    if (scene == -1) scene = layout_.own_scenes.empty() ? 0 : layout_.own_scenes[0];
    check_scene(path_, scene, images_.size());
    // Without TiffData the planes of one image follow those of the one before it.
    int64_t first = 0;
    for (int64_t i = 0; i < scene; ++i) {
      int64_t planes = 1;
      for (const char* side : {"SizeC", "SizeZ", "SizeT"})
        planes = std::min<int64_t>(
            planes * number(images_[static_cast<std::size_t>(i)].pixels, side, 1), INT32_MAX);
      first = std::min<int64_t>(first + planes, INT32_MAX);
    }
    layout_.scenes = std::ssize(images_);
    read_image(images_[static_cast<std::size_t>(scene)], first);
    return layout_;
  }

  std::vector<std::string> files(const std::string& xml) {
    read_xml(xml);
    std::set<std::string> files;
    if (!metadata_file_.empty()) {
      files.insert(metadata_file_);
      read_xml(read_metadata(metadata_file_));
    }
    for (const OmeXmlImage& image : images_) {
      for (const TiffData& data : image.data)
        if (!data.file.empty()) files.insert(beside(data.file));
    }
    return {files.begin(), files.end()};
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(path_ + ": its OME-XML " + what +
                    ", expected that of an OME-TIFF and its files beside it; save it again as "
                    "OME-TIFF");
  }
  int64_t number(const Attributes& attributes, const std::string& name, int64_t otherwise) const {
    const auto found = attributes.find(name);
    return found == attributes.end() ? otherwise
                                     : whole_number(path_, "OME-XML " + name, found->second);
  }

  void read_xml(const std::string& xml) {
    XmlElement element;
    std::size_t at = 0;
    bool is_in_pixels = false;
    Attributes stage;
    while (next_element(xml, at, element)) {
      const std::string& name = element.name;
      if (name == "OME") uuid_ = element.attributes["UUID"];
      if (name == "BinaryOnly") {
        if (!metadata_file_.empty()) fail("is in a file whose own is in another");
        metadata_file_ = beside(element.attributes["MetadataFile"]);
      }
      if (name == "Pixels") {
        images_.push_back({element.attributes, {}, "", {}, stage, {}});
        is_in_pixels = true;
      } else if (name == "/Pixels") {
        is_in_pixels = false;
      } else if (!is_in_pixels) {
        if (name == "Image" || name == "StageLabel") stage = element.attributes;
      } else if (name == "Channel") {
        if (images_.back().channel_names.empty())
          images_.back().samples = element.attributes["SamplesPerPixel"];
        images_.back().channel_names.push_back(element.attributes["Name"]);
      } else if (name == "TiffData") {
        images_.back().data.push_back({element.attributes, "", ""});
      } else if (name == "Plane" && is_first(element.attributes)) {
        images_.back().plane = element.attributes;
      } else if (name == "UUID" && !images_.back().data.empty()) {
        images_.back().data.back().uuid = element.text;
        images_.back().data.back().file = element.attributes["FileName"];
      }
    }
  }

  /// Whether a Plane is the one of index 0 in Z, C and T.
  bool is_first(const Attributes& plane) const {
    return number(plane, "TheZ", 0) + number(plane, "TheC", 0) + number(plane, "TheT", 0) == 0;
  }

  /// Whether pages are in another file of a set. A renamed file has all of them under its old
  /// name.
  bool is_elsewhere(const TiffData& data) const {
    if (data.uuid.empty() && data.file.empty()) return false;
    if (!uuid_.empty() && data.uuid == uuid_) return false;
    if (data.file == std::filesystem::path(path_).filename().string()) return false;
    return !is_one_file_;
  }

  /// The path of another file of the set.
  std::string beside(const std::string& name) const {
    if (name.empty() || name == "." || name == ".." ||
        name.find_first_of(std::string("/\\\0", 3)) != std::string::npos)
      fail("names the file '" + printable(name, 80) + "', not one in the same folder");
    return (std::filesystem::path(path_).parent_path() / name).string();
  }

  /// The OME-XML that BinaryOnly points to: a text, or another TIFF of the set.
  std::string read_metadata(const std::string& path) const {
    constexpr uint64_t kMostText = uint64_t{64} << 20;
    const InputFile file(path);
    if (is_tiff(file.begin(4), path)) return TiffFile(path).pages()[0].description;
    if (file.bytes() > kMostText) fail("is in a file of more than 64 MB");
    return read_file(path);
  }

  std::vector<int64_t> scenes_here() const {
    std::vector<int64_t> scenes;
    for (std::size_t i = 0; i < images_.size(); ++i) {
      const std::vector<TiffData>& data = images_[i].data;
      const bool is_here = data.empty() || std::ranges::any_of(data, [&](const auto& d) {
                             return !is_elsewhere(d);
                           });
      if (is_here) scenes.push_back(static_cast<int64_t>(i));
    }
    return scenes;
  }

  /// Reads the planes of an image in several files; their pages are found when they are read.
  void read_set(const OmeXmlImage& image) {
    constexpr int64_t kMostPlanes = 1 << 20;
    samples_ = image.samples.empty() ? 1 : whole_number(path_, "SamplesPerPixel", image.samples);
    if (samples_ < 1 || samples_ > UINT16_MAX) fail("has no samples per pixel");
    place_planes(axes_of(image.pixels), kMostPlanes);
    std::vector<std::size_t> pages(layout_.pages.size(), SIZE_MAX), file_of(pages.size(), 0);
    layout_.files = {path_};
    std::map<std::string, std::size_t> numbers;
    for (const TiffData& data : image.data) {
      std::size_t number = 0;
      if (is_elsewhere(data)) {
        const std::string other = beside(data.file);
        number = numbers.emplace(other, layout_.files.size()).first->second;
        if (number == layout_.files.size()) layout_.files.push_back(other);
      }
      if (data.attributes.count("IFD") + data.attributes.count("PlaneCount") == 0)
        fail("has TiffData of several files without IFD or PlaneCount");
      map_pages(data.attributes, pages, number, &file_of);
    }
    for (std::size_t& index : layout_.pages) {
      if (pages[index] == SIZE_MAX) fail("gives a plane no page in any file");
      layout_.file_of.push_back(file_of[index]);
      index = pages[index];
    }
    read_names_and_sizes(image);
  }

  void read_image(const OmeXmlImage& image, int64_t first) {
    const bool is_set =
        std::ranges::any_of(image.data, [&](const auto& data) { return is_elsewhere(data); });
    if (is_set) return read_set(image);
    const Attributes& pixels = image.pixels;
    bool is_mapped = false;
    for (const TiffData& data : image.data) {
      if (data.attributes.empty()) continue;
      if (!is_mapped) first = number(data.attributes, "IFD", 0);
      is_mapped = true;
    }
    const auto page_count = std::ssize(pages_);
    if (first >= page_count) fail("gives a plane no page of this file");
    const TiffPage& page = pages_[static_cast<std::size_t>(first)];
    if (number(pixels, "SizeX", page.width) != page.width ||
        number(pixels, "SizeY", page.height) != page.height) {
      fail("names another width and height than the pages have");
    }
    samples_ = page.samples;
    place_planes(axes_of(pixels), page_count);
    if (is_mapped) {
      std::vector<std::size_t> pages(layout_.pages.size(), SIZE_MAX);
      for (const TiffData& data : image.data) {
        if (!data.attributes.empty()) map_pages(data.attributes, pages, 0, nullptr);
      }
      for (std::size_t& index : layout_.pages) index = pages[index];
    } else {
      for (std::size_t& index : layout_.pages) index += static_cast<std::size_t>(first);
    }
    for (const std::size_t index : layout_.pages) {
      if (index >= pages_.size()) fail("gives a plane no page of this file");
    }
    read_names_and_sizes(image);
  }

  void place_planes(const std::vector<TiffAxis>& axes, int64_t count) {
    place(path_, axes, count, own_);
    place(path_, named(path_, selection_.axes, axes), count, layout_);
  }

  void read_names_and_sizes(const OmeXmlImage& image) {
    const Attributes& pixels = image.pixels;
    if (selection_.axes.empty()) layout_.channel_names = image.channel_names;
    std::vector<double> steps, origin;
    bool is_placed = false;
    for (const char* side : {"X", "Y", "Z"}) {
      steps.push_back(
          std::max(length(pixels, std::string("PhysicalSize") + side, "um").value_or(0), 0.0));
      std::optional<double> place = length(image.plane, std::string("Position") + side, "");
      if (!place) place = length(image.stage, side, "");
      is_placed = is_placed || place;
      origin.push_back(place.value_or(0));
    }
    if (layout_.planes == 1 && steps[2] == 0) steps.pop_back();
    layout_.geometry = axis_aligned_geometry(steps, is_placed ? &origin : nullptr);
  }

  /// The micrometres of a length with its unit, which is `unit` where it is not given; none where
  /// the unit is no length, as the reference frame of a stage.
  static std::optional<double> length(const Attributes& attributes,
                                      const std::string& name,
                                      const char* unit) {
    const auto found = attributes.find(name), stated = attributes.find(name + "Unit");
    const double um = micrometres(stated == attributes.end() ? unit : stated->second);
    if (found == attributes.end() || um == 0) return std::nullopt;
    const double value = std::strtod(found->second.c_str(), nullptr) * um;
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
  }

  std::vector<TiffAxis> axes_of(const Attributes& pixels) const {
    const auto found = pixels.find("DimensionOrder");
    const std::string order = found == pixels.end() ? "XYZCT" : found->second;
    const auto refuse = [&] { fail("has the DimensionOrder '" + printable(order, 20) + "'"); };
    if (order.size() != 5) refuse();
    const int64_t channels = number(pixels, "SizeC", samples_);
    if (channels % samples_ != 0)
      fail("names a number of channels that is not a multiple of the samples per pixel");
    std::vector<TiffAxis> axes;
    for (const char name : {order[4], order[3], order[2]}) {
      for (const TiffAxis& axis : axes) {
        if (axis.name == name) refuse();
      }
      if (name != 'C' && name != 'Z' && name != 'T') refuse();
      axes.push_back(
          {name,
           name == 'C' ? channels / samples_ : number(pixels, std::string("Size") + name, 1)});
    }
    return axes;
  }

  /// Sets pages[n], the page of the n-th plane in DimensionOrder, in file (*file_of)[n].
  void map_pages(const Attributes& data,
                 std::vector<std::size_t>& pages,
                 std::size_t file,
                 std::vector<std::size_t>* file_of) {
    const int64_t channel = number(data, "FirstC", 0) / samples_, plane = number(data, "FirstZ", 0),
                  timepoint = number(data, "FirstT", 0);
    if (timepoint >= own_.timepoints || channel >= own_.channels || plane >= own_.planes) {
      fail("has TiffData outside of its sizes");
    }
    const auto first = static_cast<int64_t>(own_.pages[static_cast<std::size_t>(
        (timepoint * own_.channels + channel) * own_.planes + plane)]);
    const auto total = std::ssize(pages);
    const int64_t page = number(data, "IFD", 0);
    const int64_t count = std::min(
        number(data, "PlaneCount", data.count("IFD") != 0 ? 1 : total - first), total - first);
    mapped_ += count;
    if (mapped_ > 16 * total) fail("maps its planes again and again");
    for (int64_t i = 0; i < count; ++i) {
      pages[static_cast<std::size_t>(first + i)] = static_cast<std::size_t>(page + i);
      if (file_of != nullptr) (*file_of)[static_cast<std::size_t>(first + i)] = file;
    }
  }

  const std::string& path_;
  const std::vector<TiffPage>& pages_;
  const Selection& selection_;
  std::string uuid_, metadata_file_;
  std::vector<OmeXmlImage> images_;
  bool is_one_file_ = true;
  int64_t samples_ = 1, mapped_ = 0;
  TiffLayout own_;  // with the axes' own names, which TiffData uses
  TiffLayout layout_;
};

}  // namespace

std::vector<std::string> files_of_ome_xml(const std::string& path, const std::string& xml) {
  const std::vector<TiffPage> pages;
  const Selection selection;
  return OmeLayout(path, pages, selection).files(xml);
}

TiffLayout ome_layout(const std::string& path,
                      const std::string& xml,
                      const std::vector<TiffPage>& pages,
                      const Selection& selection) {
  return OmeLayout(path, pages, selection).read(xml);
}

}  // namespace cytra::io
