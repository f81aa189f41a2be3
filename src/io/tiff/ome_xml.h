#pragma once
// Reads the elements and attributes of an OME-XML; tolerant, without entities beyond XML's own.
#include <map>
#include <string>
#include <string_view>

#include "io/reader.h"

namespace cytra::io {

struct XmlElement {
  std::string name;  // without prefix; "/Pixels" closes Pixels
  std::map<std::string, std::string> attributes;
  std::string text;  // up to the next element
};

/// Reads the next element from text[at] on and moves `at` past it; false at the end.
bool next_element(std::string_view text, std::size_t& at, XmlElement& element);
/// Escapes `text` for an attribute's value.
std::string xml_escape(std::string_view text);
/// Makes the OME-XML 2016-06 of one image whose planes are the pages of a file, in the order T, C,
/// Z: https://docs.openmicroscopy.org/ome-model/latest/ome-tiff/specification.html
std::string ome_xml(const ImageInfo& image);

}  // namespace cytra::io
