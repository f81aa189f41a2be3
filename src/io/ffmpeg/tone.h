#pragma once
// A sound track with a sine: for generated videos.
#include "io/ffmpeg/handles.h"

namespace cytra::io {

class Tone {
 public:
  /// Adds a stream to `container`, mono AAC of 48 kHz. Throws: DataError.
  Tone(AVFormatContext& container, double hz);
  /// Writes the sound before `until_s`.
  void write(AVFormatContext& container, double until_s);
  void finish(AVFormatContext& container);

 private:
  void encode(AVFormatContext& container, const AVFrame* frame);
  const double hz_;
  CodecPointer encoder_;
  int stream_ = 0;
  int64_t samples_ = 0;
};

}  // namespace cytra::io
