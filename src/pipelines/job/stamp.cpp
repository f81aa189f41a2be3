#include "pipelines/job/stamp.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/cache.h"
#include "io/fingerprint.h"
#include "io/reader.h"

namespace cytra::pipelines {

std::string content_of(const data::Source& source) {
  std::string text = data::content_stamp(io::file_of(source.path));
  for (const std::string& path : source.more) text += data::content_stamp(path);
  return text;
}

std::string stamp_of(const data::Source& source,
                     const std::string& content,
                     const std::string& settings) {
  const io::Selection& chosen = source.selection;
  std::string text = fmt::format("{} {} {} {} {} {} {}",
                                 settings,
                                 chosen.scene,
                                 chosen.level,
                                 chosen.timepoint,
                                 fmt::join(chosen.channels, ","),
                                 chosen.axes,
                                 source.time_is_channel);
  return io::fingerprint(text + content);
}

}  // namespace cytra::pipelines
