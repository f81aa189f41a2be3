#include "io/tiff/ome_xml.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include <fmt/format.h>

#include "base/escape.h"
#include "io/pixels/format.h"

namespace cytra::io {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::string unescape(std::string_view text) {
  static constexpr std::pair<std::string_view, char> kEntities[] = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t end = std::string_view::npos;
    if (text[i] == '&') end = text.substr(i, 11).find(';');  // no name is longer
    if (end == std::string_view::npos) {
      plain += text[i];
      continue;
    }
    end += i;
    const std::string name(text.substr(i + 1, end - i - 1));
    if (name.size() > 1 && name[0] == '#') {
      const bool is_hex = name[1] == 'x';
      const unsigned long code = std::strtoul(name.c_str() + 1 + is_hex, nullptr, is_hex ? 16 : 10);
      constexpr uint32_t kUnknown = 0xFFFD, kLast = 0x10FFFF;
      append_utf8(code > kLast ? kUnknown : static_cast<uint32_t>(code), plain);
    }
    for (const auto& [entity, letter] : kEntities) {
      if (name == entity) plain += letter;
    }
    i = end;
  }
  return plain;
}

std::string without_prefix(std::string_view name) {
  const std::size_t colon = name.find(':');
  if (colon == std::string_view::npos) return std::string(name);
  return (name[0] == '/' ? "/" : "") + std::string(name.substr(colon + 1));
}

}  // namespace

bool next_element(std::string_view text, std::size_t& at, XmlElement& element) {
  constexpr auto kNone = std::string_view::npos;
  element = {};
  for (;;) {
    at = text.find('<', at);
    if (at == kNone || at + 1 >= text.size()) return false;
    if (text[at + 1] != '?' && text[at + 1] != '!') break;
    const bool is_comment = text.substr(at, 4) == "<!--",
               is_text = text.substr(at, 9) == "<![CDATA[";
    at = text.find(is_comment ? "-->" : is_text ? "]]>" : ">", at);
  }
  std::size_t end = text.find_first_of(" \t\r\n/>", at + 2);
  if (end == kNone) return false;
  element.name = without_prefix(text.substr(at + 1, end - at - 1));
  for (at = end;;) {
    at = text.find_first_not_of(kSpace, at);
    if (at == kNone) return false;
    if (text[at] == '>') break;
    const std::size_t equals = text.find_first_of("=>", at);
    if (equals == kNone) return false;
    if (text[equals] == '>') {  // "/>", or a word without a value
      at = equals;
      break;
    }
    std::string_view key = text.substr(at, equals - at);
    key = key.substr(0, key.find_first_of(kSpace));
    const std::size_t open = text.find_first_not_of(kSpace, equals + 1);
    if (open == kNone || (text[open] != '"' && text[open] != '\'')) return false;
    const std::size_t close = text.find(text[open], open + 1);
    if (close == kNone) return false;
    element.attributes[std::string(key)] = unescape(text.substr(open + 1, close - open - 1));
    at = close + 1;
  }
  ++at;
  element.text = unescape(text.substr(at, std::min(text.find('<', at), text.size()) - at));
  return true;
}

std::string xml_escape(std::string_view text) {
  std::string escaped = escaped_html(text);
  for (char& letter : escaped)
    if (static_cast<unsigned char>(letter) < 0x20) letter = ' ';
  return escaped;
}

std::string ome_xml(const ImageInfo& image) {
  const auto [c, z, y, x] = image.shape;
  const int64_t t = image.timepoints;
  const std::string name = image.dtype == Dtype::f32   ? "float"
                           : image.dtype == Dtype::f64 ? "double"
                                                       : name_of(image.dtype);
  std::string xml =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
      "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\" "
      "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
      "xsi:schemaLocation=\"http://www.openmicroscopy.org/Schemas/OME/2016-06 "
      "http://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd\" Creator=\"Cytra\"><Image "
      "ID=\"Image:0\">";
  xml += fmt::format(
      "<Pixels ID=\"Pixels:0\" DimensionOrder=\"XYZCT\" Type=\"{}\" SignificantBits=\"{}\" "
      "BigEndian=\"false\" "
      "SizeX=\"{}\" SizeY=\"{}\" SizeZ=\"{}\" SizeC=\"{}\" SizeT=\"{}\"",
      name,
      8 * size_of(image.dtype),
      x,
      y,
      z,
      c,
      t);
  constexpr const char* kSides[] = {"Z", "Y", "X"};
  for (std::size_t side = 3; side-- > 0;) {
    const double spacing = image.geometry.spacing_um[side];
    if (spacing > 0)
      xml += fmt::format(
          " PhysicalSize{0}=\"{1}\" PhysicalSize{0}Unit=\"\xC2\xB5m\"", kSides[side], spacing);
  }
  xml += '>';
  for (int64_t channel = 0; channel < c; ++channel) {
    xml += fmt::format("<Channel ID=\"Channel:0:{}\" SamplesPerPixel=\"1\"", channel);
    if (!image.channel_names.empty()) {
      xml += " Name=\"" + xml_escape(image.channel_names[static_cast<std::size_t>(channel)]) + '"';
    }
    xml += "/>";
  }
  xml += fmt::format("<TiffData IFD=\"0\" PlaneCount=\"{}\"/>", c * z * t);
  if (const auto origin = axis_aligned_origin_um(image.geometry)) {
    xml += "<Plane TheZ=\"0\" TheT=\"0\" TheC=\"0\"";
    for (std::size_t side = 3; side-- > 0;)
      xml += fmt::format(
          " Position{0}=\"{1}\" Position{0}Unit=\"\xC2\xB5m\"", kSides[side], (*origin)[2 - side]);
    xml += "/>";
  }
  return xml + "</Pixels></Image></OME>";
}

}  // namespace cytra::io
