#include "pipelines/job/stamp.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/loader/cache.h"
#include "io/fingerprint.h"
#include "io/reader.h"

namespace cytra::pipelines {

std::string content_of(const data::Sample& sample, const std::string& left_out) {
  std::string text;
  for (const auto& [key, source] : sample.sources) {
    if (key == left_out) continue;
    text += key + data::content_stamp(io::file_of(source.path));
    for (const std::string& path : source.more) text += data::content_stamp(path);
  }
  return text;
}

std::string stamp_of(const data::Sample& sample,
                     const std::string& content,
                     const std::string& settings,
                     const std::string& left_out) {
  std::string text = settings;
  for (const auto& [key, source] : sample.sources) {
    if (key == left_out) continue;
    const io::Selection& chosen = source.selection;
    text += fmt::format(" {} {} {} {} {} {} {} {}",
                        key,
                        chosen.scene,
                        chosen.level,
                        chosen.timepoint,
                        chosen.plane,
                        fmt::join(chosen.channels, ","),
                        chosen.axes,
                        source.time_is_channel);
  }
  return io::fingerprint(text + content);
}

}  // namespace cytra::pipelines
