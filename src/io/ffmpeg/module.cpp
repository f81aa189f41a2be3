// The functions that libcytra_ffmpeg.so exports.
#include "io/ffmpeg/sink.h"
#include "io/ffmpeg/source.h"

extern "C" cytra::io::VideoSource* cytra_open_video(const std::string& path,
                                                    std::function<bool()> stop) {
  return new cytra::io::FFmpegSource(path, std::move(stop));
}

extern "C" cytra::io::VideoSink* cytra_create_video(const std::string& path,
                                                    const cytra::io::VideoSource& like,
                                                    const cytra::io::VideoSinkOptions& options) {
  return new cytra::io::FFmpegSink(path, like, options);
}
