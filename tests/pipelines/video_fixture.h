#pragma once
// Videos of known frames, and a model of which every result is known: bright is foreground.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <ATen/ATen.h>

#include "config/node.h"
#include "config/schema.h"
#include "inference/predictor/predictor.h"
#include "io/video_stream.h"

namespace cytra::pipelines {

constexpr int kBright = 60;  // luma from which on a pixel is foreground

/// Frames made by `draw(number)`, at the times `pts`.
class DrawnVideo final : public io::VideoSource {
 public:
  using Draw = std::function<std::vector<unsigned char>(int64_t number)>;
  DrawnVideo(int64_t width, int64_t height, std::vector<int64_t> pts, Draw draw, int turns = 0)
      : pts_(std::move(pts)), draw_(std::move(draw)) {
    info_.width = width;
    info_.height = height;
    info_.turns = turns;
    info_.time_base = {1, 1000};
    info_.frame_rate = 25;
  }
  bool read(io::VideoFrame& frame) override {
    frame = {};
    if (next_ >= static_cast<int64_t>(pts_.size())) return false;
    if (pause_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
    frame.number = next_;
    frame.pts = pts_[static_cast<std::size_t>(next_)];
    frame.rgb = draw_(next_++);
    return true;
  }
  std::string problem() const override { return ""; }
  void be_live() { info_.is_live = true; }
  void count_in(io::TimeBase units, double frame_rate) {
    info_.time_base = units;
    info_.frame_rate = frame_rate;
  }
  int pause_ms = 0;

 private:
  const std::vector<int64_t> pts_;
  const Draw draw_;
  int64_t next_ = 0;
};

/// Keeps what it is given.
class KeptVideo final : public io::VideoSink {
 public:
  void write(const io::VideoFrame& frame) override {
    if (static_cast<int64_t>(frames.size()) == fails_at) throw IoError("no space left");
    frames.push_back(frame);
  }
  void finish(const io::SoundPackets&) override { is_finished = true; }
  std::vector<std::string> notes() const override { return {}; }
  std::vector<io::VideoFrame> frames;
  bool is_finished = false;
  int64_t fails_at = -1;
};

/// A grey picture, black but for a square of 200.
inline std::vector<unsigned char> square_picture(
    int64_t width, int64_t height, int64_t left, int64_t top, int64_t side) {
  std::vector<unsigned char> rgb(static_cast<std::size_t>(3 * width * height), 10);
  for (int64_t y = top; y < std::min(top + side, height); ++y) {
    for (int64_t x = left; x < std::min(left + side, width); ++x)
      std::fill_n(rgb.data() + 3 * (y * width + x), 3, 200);
  }
  return rgb;
}

/// White where the picture is bright, else black: what the model's mask must be.
inline std::vector<unsigned char> bright(std::vector<unsigned char> rgb) {
  for (unsigned char& value : rgb) value = value > kBright ? 255 : 0;
  return rgb;
}

/// What the model does with logits before they are given back.
using Spoil = std::function<void(at::Tensor& logits)>;

inline inference::Predictor bright_predictor(int64_t channels = 1,
                                             const Spoil& spoil = {},
                                             const std::string& fingerprint = "",
                                             const std::string& decoder = "null") {
  inference::LoadedModel model;
  model.fingerprint = fingerprint;
  model.path = "bright.ckpt";
  model.in_channels = channels;
  model.out_channels = 2;
  model.divisor = {1, 1};
  model.config = config::parse_yaml(
      "{patch_shape: [32, 32], task: {_target_: SegmentationTask, x_key: raw, y_key: seg, "
      "num_classes: 2, decoder: " +
          decoder +
          ", inference_args: {roi_size: 32, overlap: 0.25}}, data: {transforms: {train: [], "
          "predict: "
          "null, valid: "
          "[{_target_: LoadImaged, keys: [raw, seg]}]}}}",
      "test");
  model.place = [](c10::Device, bool) {};
  model.forward = [spoil](const at::Tensor& windows) {
    const at::Tensor light = windows.mean(1, true) - kBright;
    at::Tensor logits = at::cat({-light, light}, 1);
    if (spoil) spoil(logits);
    return std::vector<at::Tensor>{logits};
  };
  inference::PredictorOptions options;
  options.accelerator = "cpu";
  options.engine.backend = "eager";
  options.inference_args = config::parse_yaml("{roi_size: 32}", "test");
  std::vector<inference::LoadedModel> models;
  models.push_back(std::move(model));
  return {std::move(models), options};
}

}  // namespace cytra::pipelines
