#pragma once
// Reads the SVG that we write, as strictly as an XML parser.
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cytra::test {

struct SvgElement {
  std::string name, text;  // the text up to the next tag, as written
  std::map<std::string, std::string> attributes;
  double number(const std::string& attribute) const { return std::stod(attributes.at(attribute)); }
  /// The numbers of `points`, in pairs.
  std::vector<std::pair<double, double>> points() const {
    std::istringstream stream(attributes.at("points"));
    std::vector<std::pair<double, double>> all;
    char comma = 0;
    for (std::pair<double, double> point; stream >> point.first >> comma >> point.second;)
      all.push_back(point);
    return all;
  }
};

/// Its elements in order. Throws: std::runtime_error for what is not well-formed.
inline std::vector<SvgElement> parse_svg(const std::string& svg) {
  std::vector<SvgElement> elements;
  std::vector<std::string> open;
  std::size_t at = 0;
  const auto check = [&](bool is_right) {
    if (!is_right) throw std::runtime_error("no XML at byte " + std::to_string(at) + ": " + svg);
  };
  const auto until = [&](const char* ends) {
    const std::size_t begin = at;
    at = svg.find_first_of(ends, at);
    check(at != std::string::npos);
    return svg.substr(begin, at - begin);
  };
  const auto is_text = [](const std::string& text) {
    for (std::size_t i = text.find('&'); i != std::string::npos; i = text.find('&', i + 1)) {
      bool is_known = false;
      for (const char* entity : {"&amp;", "&lt;", "&gt;", "&quot;"})
        is_known = is_known || text.compare(i, std::string(entity).size(), entity) == 0;
      if (!is_known) return false;
    }
    return text.find_first_of("<>") == std::string::npos;
  };
  check(svg.rfind("<svg ", 0) == 0);
  while (at < svg.size()) {
    if (svg[at] != '<') {
      check(!open.empty() || svg.find_first_not_of('\n', at) == std::string::npos);
      if (open.empty()) break;
      elements.back().text += until("<");
      check(is_text(elements.back().text));
      continue;
    }
    ++at;
    if (svg[at] == '/') {
      ++at;
      check(!open.empty() && until(">") == open.back());
      open.pop_back();
      ++at;
      continue;
    }
    SvgElement element;
    element.name = until(" />");
    while (svg[at] == ' ') {
      ++at;
      const std::string name = until("=\"> /");
      check(!name.empty() && svg.compare(at, 2, "=\"") == 0);
      at += 2;
      const std::string value = until("\"");
      ++at;
      check(is_text(value) && element.attributes.emplace(name, value).second);
    }
    const bool is_empty = svg[at] == '/';
    if (is_empty) ++at;
    check(svg[at] == '>');
    ++at;
    if (!is_empty) open.push_back(element.name);
    elements.push_back(std::move(element));
  }
  check(open.empty());
  return elements;
}

/// Those of one name.
inline std::vector<SvgElement> elements_of(const std::string& svg, const std::string& name) {
  std::vector<SvgElement> found;
  for (SvgElement& element : parse_svg(svg)) {
    if (element.name == name) found.push_back(std::move(element));
  }
  return found;
}

}  // namespace cytra::test
