// Part of config/node.h: parses one value as it is typed on the command line.
#include "base/error.h"
#include "config/node.h"
#include "config/overrides/value.h"

namespace cytra::config {

Node parse_value(const std::string& text, const Origin& origin) {
  OverrideValue value = parse_override_value(text, 0, origin, false);
  if (!value.sweep) return std::move(value.node);
  throw ConfigError(origin.text() + ": '" + text.substr(0, 200) +
                    "' has a bare comma, expected [a, b] or quotes");
}

}  // namespace cytra::config
