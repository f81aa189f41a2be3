#include "inference/decoders/decoder.h"

#include <algorithm>
#include <stdexcept>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "config/registry.h"
#include "ops/windows/sums.h"

namespace cytra::inference {

at::Tensor Decoder::decode(const at::Tensor& logits,
                           const std::string& form,
                           double threshold) const {
  return ops::finish(in_units(logits), {}, finish(form, threshold));
}

bool Decoder::gives_labels() const {
  const std::vector<std::string> known = forms();
  return std::ranges::any_of(
      known, [this](const std::string& form) { return is_labels(form) && steps(form).empty(); });
}

bool Decoder::is_uncertainty(const std::string& form) {
  return form == "entropy" || form == "variance";
}

bool Decoder::gives_labels(const std::string& form) const {
  return gives_labels() && !is_uncertainty(form);
}

metrics::Metric::Input Decoder::compares_as() const {
  const bool are_labels = gives_labels() || !steps(forms().front()).empty();
  return are_labels ? metrics::Metric::Input::objects : metrics::Metric::Input::values;
}

at::Tensor Decoder::labels_of(const at::Tensor& values,
                              const std::string& form,
                              double threshold) const {
  if (is_labels(form)) return values;
  if (!steps(forms().front()).empty()) {
    throw ConfigError("'{}' holds no labels, expected predict.save={}", form, forms().front());
  }
  // The order of probabilities is that of their logits.
  const at::Tensor logits = form == "probability" ? values.logit(1e-7) : values;
  return ops::finish(logits.unsqueeze(0), {}, finish("mask", threshold))[0];
}

std::vector<std::string> decoder_forms() {
  std::vector<std::string> all;
  for (const std::string& name : Registry<Decoder>::instance().names()) {
    for (std::string& form : make<Decoder>("_target_: " + name)->forms()) {
      if (std::ranges::find(all, form) == all.end()) all.push_back(std::move(form));
    }
  }
  return all;
}

std::string Decoder::form_of(const std::string& form, const std::string& key) const {
  const std::vector<std::string> known = forms();
  if (form.empty()) return known.front();
  if (std::ranges::find(known, form) != known.end()) return form;
  throw ConfigError(
      "{}={}: this model gives {}.{}", key, form, fmt::join(known, ", "), suggestion(form, known));
}

std::shared_ptr<Decoder> decoder_of(const config::Node& task) {
  const config::Node* own = task.find_direct("decoder");
  if (own != nullptr && !own->is_null()) return make<Decoder>(*own);
  config::Node classes = config::Node::make_map();
  classes.set("_target_", config::Node::make_string("ClassDecoder"));
  classes.set("num_classes",
              config::Node::make_integer(
                  task.get<int64_t>("num_classes", task.get<int64_t>("model.out_channels", 1))));
  for (const char* key : {"multilabel", "activation"})
    if (const config::Node* given = task.find(key)) classes.set(key, *given);
  return make<Decoder>(classes);
}

io::Dtype dtype_of(const ops::Finish& finish) {
  switch (finish.type) {
    case at::kByte:
      return io::Dtype::u8;
    case at::kUInt16:
      return io::Dtype::u16;
    case at::kFloat:
      return io::Dtype::f32;
    default:
      throw std::logic_error("a decoder's type that no file has");
  }
}

}  // namespace cytra::inference
