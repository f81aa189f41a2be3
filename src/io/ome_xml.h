#pragma once
// The elements and attributes of an OME-XML; tolerant, without entities beyond XML's own.
#include <map>
#include <string>
#include <string_view>

namespace cytra::io {

struct XmlElement {
  std::string name;  // without prefix; "/Pixels" closes Pixels
  std::map<std::string, std::string> attributes;
};

/// Reads the next element from text[at] on and moves `at` behind it; false at the end.
bool next_element(std::string_view text, std::size_t& at, XmlElement& element);
/// `text` as an attribute's value.
std::string xml_escape(std::string_view text);

}  // namespace cytra::io
