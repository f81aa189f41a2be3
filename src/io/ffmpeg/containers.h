#pragma once
// The containers that videos are written into, and how they keep the times of frames.
#include <string>

#include "io/ffmpeg/handles.h"

namespace cytra::io {

enum class FrameTimes {
  shown,    // when each is shown
  decoded,  // one per frame, in the order of decoding: readers guess wrong for H.264 and H.265
  counted,  // only a rate, from 0
};

/// The expected endings, for messages.
constexpr char kExpectedEndings[] = "expected .mp4, .mov, .mkv, .avi, .ts ...";

/// How a container keeps times. Throws: ConfigError for a container that loses the times of
/// frames.
FrameTimes times_in(const AVOutputFormat& format, const std::string& path);

/// The encoder of FFmpeg with this name; "auto": H.264 where FFmpeg has it and its times are kept,
/// else MPEG-4, which it always has. Throws: ConfigError.
const AVCodec* encoder_for(const AVOutputFormat& format,
                           FrameTimes times,
                           const std::string& name,
                           const std::string& path);

}  // namespace cytra::io
