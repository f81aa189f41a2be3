#pragma once
// The meaning of the channels of a model's output, defined once for metrics, previews and
// predictions.
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "config/node.h"
#include "io/image.h"
#include "metrics/metric.h"

namespace cytra::ops {
struct Finish;  // ops/windows/sums.h
}

namespace cytra::inference {

struct Postprocess;  // inference/postprocess/postprocess.h

/// A logit that is as good as certain: a probability of 1 - 5e-5.
constexpr double kSureLogit = 10;

class Decoder {
 public:
  static constexpr const char* kKind = "decoder";
  virtual ~Decoder() = default;
  /// The forms of result that it can make of an output, the usual one first: "mask",
  /// "probability", "logits"; "entropy" of the probabilities; "variance", which the output then is.
  virtual std::vector<std::string> forms() const = 0;
  /// Converts a model's output (N,K,...) to the units of the result, where it was trained in
  /// others. It is linear in each channel, so that it may come before or after any mean.
  virtual at::Tensor in_units(const at::Tensor& output) const { return output; }
  /// The last computation on the channels of a voxel. `threshold`: of a mask's probability, in (0,
  /// 1).
  virtual ops::Finish finish(const std::string& form, double threshold) const = 0;
  /// The steps that make the form from the whole image's finished values, before the user's own
  /// steps, such as objects from flows. By default there are none.
  virtual std::vector<std::shared_ptr<Postprocess>> steps(const std::string& /*form*/) const {
    return {};
  }
  /// Whether a form is labels: whole numbers without a mean, 0 for the background.
  virtual bool is_labels(const std::string& form) const = 0;

  /// Decodes a model's output (N,K,...) to a form, (N,C,...).
  at::Tensor decode(const at::Tensor& logits,
                    const std::string& form,
                    double threshold = 0.5) const;
  /// The output (units of in_units()) of each of the network's channels where there is nothing but
  /// background; empty: there is no such value.
  virtual std::vector<double> background(int64_t /*channels*/) const { return {}; }
  /// The voxels of the image for one of the network's values, per dimension, where it is a network
  /// on a grid (SlidingWindowOptions::unit); empty: none.
  virtual std::vector<int64_t> grid() const { return {}; }
  /// Whether a test-time augmentation may turn its values back with the image; flows it may not.
  virtual bool turns_with_image() const { return true; }
  /// How metrics compare its results with targets: as objects where the results are labels, else
  /// as values.
  virtual metrics::Metric::Input compares_as() const;
  /// Whether labels_of() makes labels of a voxel's values: whether one of its forms is labels
  /// without steps.
  bool gives_labels() const;
  /// Whether a form tells how sure a result is, not what it is.
  static bool is_uncertainty(const std::string& form);
  /// Whether labels_of() makes labels of this form.
  bool gives_labels(const std::string& form) const;
  /// Converts values of a form, (C,...), to labels, for overlays and scores. Throws: ConfigError
  /// where only steps make them.
  at::Tensor labels_of(const at::Tensor& values, const std::string& form, double threshold) const;
  /// The form `form`, or the usual one for "". Throws: ConfigError naming `key` and the forms.
  std::string form_of(const std::string& form, const std::string& key) const;
};

/// The decoder of a task's configuration: its `decoder`, else ClassDecoder with its num_classes
/// (without: the model's out_channels) and multilabel. Throws: ConfigError.
std::shared_ptr<Decoder> decoder_of(const config::Node& task);

/// The forms of all decoders.
std::vector<std::string> decoder_forms();

/// The type of a decoded voxel in a file.
io::Dtype dtype_of(const ops::Finish& finish);

}  // namespace cytra::inference
