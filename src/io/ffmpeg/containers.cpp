// Part of io/ffmpeg/sink.h: containers, and how they keep the times of frames.
#include <cstring>

#include "base/error.h"
#include "io/ffmpeg/sink.h"

namespace cytra::io {
namespace {

struct Container {
  const char* name;  // FFmpeg's
  FrameTimes times;
};
/// The containers that keep times. Others lose them without an error (MPEG-PS, MXF), or hold none.
constexpr Container kContainers[] = {{"mp4", FrameTimes::shown},
                                     {"mov", FrameTimes::shown},
                                     {"ipod", FrameTimes::shown},  // .m4v
                                     {"3gp", FrameTimes::shown},
                                     {"3g2", FrameTimes::shown},
                                     {"f4v", FrameTimes::shown},
                                     {"flv", FrameTimes::shown},
                                     {"matroska", FrameTimes::shown},
                                     {"webm", FrameTimes::shown},
                                     {"mpegts", FrameTimes::shown},
                                     {"nut", FrameTimes::shown},
                                     {"null", FrameTimes::shown},
                                     {"asf", FrameTimes::decoded},  // .wmv
                                     {"avi", FrameTimes::counted}};

}  // namespace

FrameTimes times_in(const AVOutputFormat& format, const std::string& path) {
  for (const Container& one : kContainers)
    if (std::strcmp(one.name, format.name) == 0) return one.times;
  throw ConfigError(
      "{}: {} does not keep when each frame is shown; {}", path, format.name, kExpectedEndings);
}

const AVCodec* encoder_for(const AVOutputFormat& format,
                           FrameTimes times,
                           const std::string& name,
                           const std::string& path) {
  const bool is_auto = name == "auto", keeps_shown = times == FrameTimes::shown;
  const AVCodec* codec = avcodec_find_encoder_by_name(is_auto ? "libx264" : name.c_str());
  if (is_auto && (codec == nullptr || !keeps_shown))
    codec = avcodec_find_encoder(AV_CODEC_ID_MPEG4);
  if (codec == nullptr || codec->type != AVMEDIA_TYPE_VIDEO) {
    throw ConfigError(
        "video.codec: FFmpeg's libraries here have no video encoder {}; expected libx264, mpeg4 or "
        "another of `ffmpeg -encoders`",
        name);
  }
  if (!keeps_shown && (codec->id == AV_CODEC_ID_H264 || codec->id == AV_CODEC_ID_HEVC)) {
    throw ConfigError(
        "{}: {} does not keep when each frame of {} is shown; expected video.codec=mpeg4, or .mp4, "
        ".mov, .mkv ...",
        path,
        format.name,
        avcodec_get_name(codec->id));
  }
  if (avformat_query_codec(&format, codec->id, FF_COMPLIANCE_NORMAL) == 0) {
    throw ConfigError("{}: {} holds no {} video; {}",
                      path,
                      format.name,
                      avcodec_get_name(codec->id),
                      kExpectedEndings);
  }
  return codec;
}

}  // namespace cytra::io
