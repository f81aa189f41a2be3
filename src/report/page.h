#pragma once
// What pages consist of that need no other file and no network (share/pages/report.html).
#include <string>

namespace cytra::report {

/// A page; all but its title is HTML.
std::string page(const std::string& title, const std::string& badge, const std::string& body);
/// A value with its name above it.
std::string tile(const std::string& name, const std::string& value);
/// A name beside its colour.
std::string colour_key(int colour, const std::string& name);
/// A chart under its title and HTML of its keys.
std::string chart_card(const std::string& title, const std::string& keys, const std::string& chart);

}  // namespace cytra::report
