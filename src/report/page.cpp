#include "report/page.h"

#include <cytra_pages.h>
#include <fmt/format.h>

#include "base/escape.h"
#include "base/strings.h"

namespace cytra::report {

std::string page(const std::string& title, const std::string& badge, const std::string& body) {
  return fmt::format(fmt::runtime(pages::report_html),
                     fmt::arg("title", escaped_html(title)),
                     fmt::arg("style", std::string(pages::common_css) + pages::report_css),
                     fmt::arg("badge", badge),
                     fmt::arg("time", format_time("%Y-%m-%d %H:%M")),
                     fmt::arg("body", body));
}

std::string tile(const std::string& name, const std::string& value) {
  return fmt::format("<div class=card><small>{}</small><b>{}</b></div>\n",
                     escaped_html(name),
                     escaped_html(value));
}

std::string colour_key(int colour, const std::string& name) {
  return fmt::format("<span class=\"key c{}\"><i></i>{}</span>", colour, escaped_html(name));
}

std::string chart_card(const std::string& title,
                       const std::string& keys,
                       const std::string& chart) {
  return fmt::format(
      "<div class=\"card plot\"><h3>{}</h3>{}{}</div>\n", escaped_html(title), keys, chart);
}

}  // namespace cytra::report
