// OME-XML in a TIFF: https://docs.openmicroscopy.org/ome-model/latest/ome-tiff/specification.html
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/strings.h"
#include "io/ome_xml.h"
#include "io/tiff_layout.h"

namespace cytra::io {
namespace {

using Attributes = std::map<std::string, std::string>;

struct TiffData {
  Attributes attributes;
  std::string uuid, file;  // of the file that holds the pages, when they are given
};
struct OmeImage {
  Attributes pixels;
  std::vector<std::string> channel_names;  // of each Channel
  std::vector<TiffData> data;
};

class OmeLayout {
 public:
  OmeLayout(const std::string& path, const std::vector<TiffPage>& pages)
      : path_(path), pages_(pages) {}

  TiffLayout read(const std::string& xml, int64_t scene) {
    read_xml(xml);
    const TiffData* one = nullptr;
    for (const OmeImage& image : images_) {
      for (const TiffData& data : image.data) {
        if (one == nullptr) one = &data;
        is_one_file_ = is_one_file_ && data.uuid == one->uuid && data.file == one->file;
      }
    }
    if (images_.empty()) fail("has no Pixels");
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
    layout_.scenes = static_cast<int64_t>(images_.size());
    read_image(images_[static_cast<std::size_t>(scene)], first);
    return layout_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(path_ + ": its OME-XML " + what +
                    ", expected OME-TIFF in one file; save it again as OME-TIFF");
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
    while (next_element(xml, at, element)) {
      const std::string& name = element.name;
      if (name == "OME") uuid_ = element.attributes["UUID"];
      if (name == "BinaryOnly") fail("is in another file");
      if (name == "Pixels") {
        images_.push_back({element.attributes, {}, {}});
        is_in_pixels = true;
      } else if (name == "/Pixels") {
        is_in_pixels = false;
      } else if (!is_in_pixels) {
        continue;
      } else if (name == "Channel") {
        images_.back().channel_names.push_back(element.attributes["Name"]);
      } else if (name == "TiffData") {
        images_.back().data.push_back({element.attributes, "", ""});
      } else if (name == "UUID" && !images_.back().data.empty()) {
        images_.back().data.back().uuid = element.text;
        images_.back().data.back().file = element.attributes["FileName"];
      }
    }
  }

  /// Pages in another file of a set. A file that was renamed has them all under its old name.
  bool is_elsewhere(const TiffData& data) const {
    if (data.uuid.empty() && data.file.empty()) return false;
    if (!uuid_.empty() && data.uuid == uuid_) return false;
    if (data.file == std::filesystem::path(path_).filename().string()) return false;
    return !is_one_file_;
  }

  void read_image(const OmeImage& image, int64_t first) {
    const Attributes& pixels = image.pixels;
    bool is_mapped = false;
    for (const TiffData& data : image.data) {
      if (is_elsewhere(data))
        fail("has planes in another file, " + printable(data.file.empty() ? data.uuid : data.file));
      if (data.attributes.empty()) continue;
      if (!is_mapped) first = number(data.attributes, "IFD", 0);
      is_mapped = true;
    }
    const auto page_count = static_cast<int64_t>(pages_.size());
    if (first >= page_count) fail("gives a plane no page of this file");
    const TiffPage& page = pages_[static_cast<std::size_t>(first)];
    if (number(pixels, "SizeX", page.width) != page.width ||
        number(pixels, "SizeY", page.height) != page.height) {
      fail("names another width and height than the pages have");
    }
    samples_ = page.samples;
    const std::vector<TiffAxis> axes = axes_of(pixels);
    place(path_, axes, page_count, layout_);
    if (is_mapped) {
      std::vector<std::size_t> pages(layout_.pages.size(), SIZE_MAX);
      for (const TiffData& data : image.data) {
        if (!data.attributes.empty()) map_pages(data.attributes, pages);
      }
      for (std::size_t& index : layout_.pages) index = pages[index];
    } else {
      for (std::size_t& index : layout_.pages) index += static_cast<std::size_t>(first);
    }
    for (const std::size_t index : layout_.pages) {
      if (index >= pages_.size()) fail("gives a plane no page of this file");
    }
    layout_.channel_names = image.channel_names;
    constexpr const char* kSides[] = {"PhysicalSizeZ", "PhysicalSizeY", "PhysicalSizeX"};
    for (std::size_t side = 0; side < 3; ++side) {
      const auto size = pixels.find(kSides[side]);
      if (size == pixels.end()) continue;
      const auto unit = pixels.find(std::string(kSides[side]) + "Unit");
      layout_.geometry.spacing_um[side] =
          spacing_of(std::strtod(size->second.c_str(), nullptr),
                     unit == pixels.end() ? 1 : micrometres(unit->second));
    }
  }

  std::vector<TiffAxis> axes_of(const Attributes& pixels) const {
    const auto found = pixels.find("DimensionOrder");
    const std::string order = found == pixels.end() ? "XYZCT" : found->second;
    const auto refuse = [&] { fail("has the DimensionOrder '" + printable(order, 20) + "'"); };
    if (order.size() != 5) refuse();
    const int64_t channels = number(pixels, "SizeC", samples_);
    if (channels % samples_ != 0)
      fail("names a number of channels that is no multiple of the samples per pixel");
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

  /// pages[n]: the page of the n-th plane in DimensionOrder.
  void map_pages(const Attributes& data, std::vector<std::size_t>& pages) {
    const int64_t channel = number(data, "FirstC", 0) / samples_, plane = number(data, "FirstZ", 0),
                  timepoint = number(data, "FirstT", 0);
    if (timepoint >= layout_.timepoints || channel >= layout_.channels || plane >= layout_.planes) {
      fail("has TiffData outside of its sizes");
    }
    const auto first = static_cast<int64_t>(layout_.pages[static_cast<std::size_t>(
        (timepoint * layout_.channels + channel) * layout_.planes + plane)]);
    const auto total = static_cast<int64_t>(pages.size());
    const int64_t page = number(data, "IFD", 0);
    const int64_t count = std::min(
        number(data, "PlaneCount", data.count("IFD") != 0 ? 1 : total - first), total - first);
    mapped_ += count;
    if (mapped_ > 16 * total) fail("maps its planes again and again");
    for (int64_t i = 0; i < count; ++i)
      pages[static_cast<std::size_t>(first + i)] = static_cast<std::size_t>(page + i);
  }

  const std::string& path_;
  const std::vector<TiffPage>& pages_;
  std::string uuid_;
  std::vector<OmeImage> images_;
  bool is_one_file_ = true;
  int64_t samples_ = 1, mapped_ = 0;
  TiffLayout layout_;
};

}  // namespace

TiffLayout ome_layout(const std::string& path,
                      const std::string& xml,
                      const std::vector<TiffPage>& pages,
                      int64_t scene) {
  return OmeLayout(path, pages).read(xml, scene);
}

}  // namespace cytra::io
