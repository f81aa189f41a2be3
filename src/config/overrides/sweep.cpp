#include "config/overrides/sweep.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"

namespace cytra::config {
namespace {

constexpr std::size_t max_jobs = 10'000, max_bytes = std::size_t{256} << 20;

/// Whether `c` belongs to the [set] at `at`. Moves `at` past the set; a '[' without end is a
/// character.
bool in_set(char c, std::string_view pattern, std::size_t& at) {
  const std::size_t start = at + 1;
  const bool negated = start < pattern.size() && pattern[start] == '!';
  const std::size_t first = start + (negated ? 1 : 0);
  const std::size_t end = pattern.find(']', first + 1);  // a ']' that comes first is a character
  if (end == std::string_view::npos) {
    at = start;
    return c == '[';
  }
  bool found = false;
  for (std::size_t i = first; i < end; ++i) {
    if (i + 2 < end && pattern[i + 1] == '-') {
      found = found || (pattern[i] <= c && c <= pattern[i + 2]);
      i += 2;
    } else {
      found = found || pattern[i] == c;
    }
  }
  at = end + 1;
  return found != negated;
}

struct Axis {
  std::string key;  // "+model@x"
  std::vector<std::string> texts;
};

/// The text before the value: "+model@x=".
std::string before_value(const Override& override) {
  return override.origin.file->substr(0, override.origin.file->find('=') + 1);
}

std::vector<std::string> glob_options(const Override& override,
                                      const GroupOptions& options_of_group) {
  std::vector<std::string> options = options_of_group(override.key);
  std::erase_if(options,
                [](const std::string& option) { return option.find('/') != std::string::npos; });
  std::ranges::sort(options);
  if (options.empty())
    throw ConfigError(override.where() + ": glob() of '" + override.key +
                      "', which is not a group with options, expected one");
  const auto matches = [](const std::string& option, const std::vector<std::string>& patterns) {
    return std::ranges::any_of(
        patterns, [&](const std::string& pattern) { return matches_pattern(option, pattern); });
  };
  std::vector<std::string> found;
  for (const std::string& option : options) {
    if (matches(option, override.include) && !matches(option, override.exclude))
      found.push_back(option);
  }
  if (found.empty())
    throw ConfigError(override.where() + ": glob() matches no option, expected some of '" +
                      override.key + "'." + suggestion(join(override.include, ","), options));
  return found;
}

std::vector<std::string> values_to_try(const Override& override,
                                       const GroupOptions& options_of_group) {
  if (override.is_hydra())
    throw ConfigError(override.where() +
                      ": values to try for a setting of hydra, expected one value");
  if (override.sweep == Override::Sweep::interval) {
    throw ConfigError(override.where() +
                      ": interval() has no values to try, expected a,b, choice() or range()");
  }
  std::vector<std::string> values = override.texts;
  if (override.sweep == Override::Sweep::glob) {
    values.clear();
    for (const std::string& option : glob_options(override, options_of_group))
      values.push_back(override_text(Node::make_string(option)));
  }
  if (values.empty())
    throw ConfigError(override.where() + ": no values to try, expected at least one");
  for (std::string& value : values) value.insert(0, before_value(override));
  return values;
}

void add_axis(std::vector<Axis>& axes,
              const Override& override,
              const GroupOptions& options_of_group) {
  constexpr const char* prefixes[] = {"", "+", "++", "~"};
  Axis axis{prefixes[static_cast<int>(override.action)] + override.full_key(),
            {*override.origin.file}};
  if (override.sweep != Override::Sweep::none)
    axis.texts = values_to_try(override, options_of_group);
  const auto same = std::ranges::find(axes, axis.key, &Axis::key);
  if (same != axes.end()) {
    *same = std::move(axis);
  } else {
    axes.push_back(std::move(axis));
  }
}

/// Adds a parameter of the file; messages name the file's key.
void add_parameter(std::vector<Axis>& axes,
                   const std::pair<std::string, std::string>& parameter,
                   const GroupOptions& options_of_group) {
  try {
    add_axis(axes, parse_override(parameter.first + "=" + parameter.second), options_of_group);
  } catch (const ConfigError& error) {
    std::string text = error.what();
    if (text.starts_with("command line")) text.replace(0, 12, "hydra.sweeper.params:");
    throw ConfigError(text);
  }
}

std::size_t count_jobs(const std::vector<Axis>& axes) {
  std::size_t jobs = 1, bytes = 0;
  for (const Axis& axis : axes) {
    jobs *= axis.texts.size();
    if (jobs > max_jobs)
      throw ConfigError("command line: over " + std::to_string(max_jobs) +
                        " jobs to run, expected fewer values to try");
    std::size_t longest = 0;
    for (const std::string& text : axis.texts) longest = std::max(longest, text.size());
    bytes += longest + sizeof(std::string);
  }
  if (bytes > max_bytes / jobs)
    throw ConfigError("command line: the overrides of " + std::to_string(jobs) +
                      " jobs take over 256 MB, expected fewer or shorter ones");
  return jobs;
}

}  // namespace

bool matches_pattern(std::string_view name, std::string_view pattern) {
  std::size_t at = 0, i = 0, star = std::string_view::npos, resume = 0;
  while (i < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      resume = i;
      continue;
    }
    bool fits = false;
    if (at < pattern.size() && pattern[at] == '[') {
      fits = in_set(name[i], pattern, at);
    } else if (at < pattern.size()) {
      fits = pattern[at] == '?' || pattern[at] == name[i];
      ++at;
    }
    if (fits) {
      ++i;
    } else if (star != std::string_view::npos) {  // let the last * take one more
      at = star + 1;
      i = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

std::vector<std::vector<std::string>> sweep_jobs(
    const std::vector<Override>& overrides,
    const std::vector<std::pair<std::string, std::string>>& file_params,
    const GroupOptions& options_of_group) {
  std::vector<Axis> axes;
  for (const auto& parameter : file_params) add_parameter(axes, parameter, options_of_group);
  for (const Override& override : overrides) add_axis(axes, override, options_of_group);
  std::vector<std::vector<std::string>> jobs(count_jobs(axes));
  std::size_t repeat = jobs.size();
  for (const Axis& axis : axes) {
    repeat /= axis.texts.size();
    for (std::size_t job = 0; job < jobs.size(); ++job)
      jobs[job].push_back(axis.texts[job / repeat % axis.texts.size()]);
  }
  return jobs;
}

}  // namespace cytra::config
