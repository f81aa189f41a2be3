#pragma once
// TensorBoard's event files, written without protobuf or Python. Source: tensorboard/compat/proto,
// tensorboard/plugins/hparams and the summaries of torch.utils.tensorboard.
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/append_file.h"
#include "config/node.h"

namespace cytra::io {

/// TensorBoard's HistogramProto: counts[i] values are in (limits[i - 1], limits[i]]; `count` in
/// all.
struct Histogram {
  double min = 0, max = 0, count = 0, sum = 0, sum_squares = 0;
  std::vector<double> limits, counts;  // of equal length; limits ascend
};

/// Counts the finite values in TensorBoard's buckets, whose limits grow by 10 % from 1e-12 to 1e20
/// on both sides of 0; values beyond them are only in `count` and the other totals. Source:
/// torch.utils.tensorboard's make_histogram with its default bins.
Histogram histogram_of(std::span<const float> values);

// Each returns an encoded Summary, for EventFile::add().
std::string scalar_summary(const std::map<std::string, double>& values);  // stored as float32
/// The summary of an image. `png`: a PNG file; its header has the size.
std::string image_summary(const std::string& tag, std::string_view png);
std::string histogram_summary(const std::string& tag, const Histogram& histogram);
/// The summary of a text, which is shown as Markdown.
std::string text_summary(const std::string& tag, const std::string& text);

// A row of the HPARAMS tab, like torch's hparams(): null values have no cell, numbers and booleans
// a number (torch takes a bool for an int), others a text.
using HyperParameters = std::map<std::string, config::Node>;
std::string session_start_summary(const HyperParameters& parameters);
/// The summary of a row. `metrics`: the scalars that are this row's results.
std::string experiment_summary(const HyperParameters& parameters,
                               const std::vector<std::string>& metrics);
std::string session_end_summary(bool success);

/// Writes FOLDER/events.out.tfevents.<time>.<host>.<pid>.<n>.cytra. Every event is written when
/// add() returns, as base/append_file.h says.
class EventFile {
 public:
  /// Opens a file; TensorBoard drops events of `first_step` and later ones in earlier files of the
  /// folder. Throws: what AtomicFile throws.
  EventFile(const std::string& folder, int64_t first_step);
  void add(std::string_view summary, int64_t step);

 private:
  AppendFile file_;
};

}  // namespace cytra::io
