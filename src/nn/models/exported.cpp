// ExportedProgram: a network of one's own, written in Python, saved by torch.export.save and
// trained and run without Python (docs/networks.md).
#include <algorithm>
#include <cmath>
#include <optional>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/json.h"
#include "config/registry.h"
#include "nn/exported/file.h"
#include "nn/exported/graph.h"
#include "nn/exported/guards.h"
#include "nn/exported/options.h"
#include "nn/model.h"
#include "nn/script/fitting.h"
#include "nn/weights.h"
#include "ops/conv/constant_weights.h"

namespace cytra::nn {
namespace {

constexpr int64_t kMostSide = 1024;  // find_divisor() tries all
constexpr int64_t kMostChecked = int64_t{1} << 28;
constexpr double kReferenceTolerance = 1e-3;  // of the largest value: sums in another order

class ExportedModel final : public Model {
 public:
  using Options = ExportedOptions;
  explicit ExportedModel(const Options& options) : Model(options), path_(options.file) {
    const ExportedFile file(options.file);
    naming_file(path_, [&] {
      read(file, options);
      if (!file.reference.empty())
        check(config::parse_json(file.reference, "cytra_reference.json"));
    });
  }

  at::Tensor forward(const at::Tensor& image) override { return forward_all(image).front(); }
  std::vector<at::Tensor> forward_all(const at::Tensor& image) override {
    std::vector<at::Tensor> results = results_of(image);
    if (!names_.empty()) {
      std::vector<at::Tensor> heads;
      for (const std::size_t result : heads_) heads.push_back(results[result]);
      for (const at::Tensor& head : heads) expect_sides_of(image, head);
      return heads;
    }
    if (first_ > 0)
      std::rotate(results.begin(), results.begin() + first_, results.begin() + first_ + 1);
    expect_sides_of(image, results[0]);
    if (!deep_supervision_ || !is_training()) results.resize(1);
    return results;
  }
  std::vector<std::string> output_names() const override { return names_; }
  std::vector<int64_t> divisor() const override { return divisor_; }
  std::vector<int64_t> fixed_size() const override { return fixed_; }
  int64_t in_channels() const override { return in_channels_; }
  int64_t out_channels() const override { return out_channels_; }
  int64_t spatial_dims() const override { return spatial_dims_; }
  std::vector<std::string> foreign_batch_norms() const override {
    return steps_->foreign_batch_norms();
  }

 private:
  void read(const ExportedFile& file, const Options& options) {
    steps_ = std::make_unique<ExportedSteps>(
        file.graph, *this, [&](const std::string& name) { return file.tensor(name); });
    auto own = steps_->constants();
    own->register_buffer(
        "graph",
        at::tensor(at::ArrayRef<uint8_t>(reinterpret_cast<const uint8_t*>(file.text.data()),
                                         file.text.size())));
    const std::string name(kGraphModule);
    register_module(name.substr(0, name.size() - 1), own);
    read_image(file.graph);
    read_results(file.graph, options);
    expect_as_given(path_, "spatial_dims", options.spatial_dims, spatial_dims_);
    expect_as_given(path_, "in_channels", options.in_channels, in_channels_);
    if (names_.empty()) expect_as_given(path_, "out_channels", options.out_channels, out_channels_);
    if (options.divisor) divisor_ = checked_divisor(*options.divisor, spatial_dims_);
    if (!options.divisor && fixed_.empty()) try_divisor();
    for (const std::string& remark : steps_->remarks()) log::info("{}: {}", path_, remark);
  }

  static bool is_one(const io::ExportedRange& range) {
    return range.least && range.least == range.most;
  }
  static at::Tensor waves(const std::vector<int64_t>& sides) {
    int64_t count = 1;
    for (const int64_t side : sides)
      if (side < 1 || side > kMostSide || (count *= side) > kMostChecked)
        throw DataError("the image that it is tried with is too large");
    return at::arange(count, at::kDouble).sin().to(at::kFloat).view(sides);
  }

  /// Finds a larger divisor where the graph runs for that alone: its conditions need not tell.
  void try_divisor() {
    const at::NoGradGuard no_grad;
    const auto fits = [&](const std::vector<int64_t>& sides) {
      std::vector<int64_t> shape{batch_.value_or(2), in_channels_};
      for (std::size_t d = 0; d < sides.size(); ++d)
        shape.push_back(is_one(ranges_[d + 2]) ? *ranges_[d + 2].least : sides[d]);
      try {
        forward_all(waves(shape));
        return true;
      } catch (const DataError&) {
        return false;
      }
    };
    eval();
    std::vector<int64_t> least;
    for (std::size_t d = 2; d < ranges_.size(); ++d)
      least.push_back(
          std::max<int64_t>(spatial_dims_ == 2 ? 64 : 32, ranges_[d].least.value_or(1)));
    std::vector<at::Tensor> before;  // a graph may change its buffers in evaluation, too
    for (const at::Tensor& buffer : buffers()) before.push_back(buffer.clone());
    divisor_ = find_multiple(divisor_, least, fits);
    for (std::size_t d = 0; d < divisor_.size(); ++d)
      if (is_one(ranges_[d + 2])) divisor_[d] = 1;
    for (std::size_t i = 0; i < before.size(); ++i) buffers()[i].copy_(before[i]);
    train();
  }

  /// Compares with what Python gave for an image of sines: scripts/export_network.py.
  void check(const config::Node& reference) {
    const c10::InferenceMode inference_mode;  // and what predicting keeps: as engines run it
    ops::ConstantWeights weights;
    const ops::ConstantWeights::Scope constant(weights);
    eval();
    const at::Tensor image = waves(reference.get<std::vector<int64_t>>("image"));
    const auto expected = reference.get<std::vector<double>>("values");
    const std::vector<at::Tensor> results = results_of(image);
    const at::Tensor values = results[0].to(at::kDouble).contiguous().flatten();
    const int64_t step = std::max<int64_t>(1, values.numel() / 64);
    double largest = 1e-3, difference = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto at = static_cast<int64_t>(i) * step;
      const double value = at < values.numel() ? values[at].item<double>() : NAN;
      largest = std::max(largest, std::abs(expected[i]));
      if (!(std::abs(value - expected[i]) <= difference))
        difference = std::abs(value - expected[i]);
    }
    train();
    if (!(difference <= kReferenceTolerance * largest)) {
      throw DataError(
          "its outputs differ from Python's by {:.2g} of {:.2g} for the image that it was checked "
          "with: {}",
          difference,
          largest,
          steps_->random_parts().empty()
              ? "Cytra does not run this network rightly, please report it"
              : fmt::format("forward() seems to draw random numbers in evaluation, too ({}); write "
                            "F.dropout(x, p, self.training), export it again, and sample by "
                            "tta.dropout_samples, or please report it",
                            fmt::join(steps_->random_parts(), ", ")));
    }
    log::debug("{}: outputs equal Python's to {:.1g} of {:.2g}", path_, difference, largest);
  }

  void read_image(const io::ExportedGraph& graph) {
    const std::vector<io::ExportedShape> shapes = input_shapes(graph);
    if (shapes.size() != 1)
      throw DataError("forward() takes {} tensors, expected one image", shapes.size());
    const io::ExportedShape* const image = &shapes[0];
    spatial_dims_ = std::ssize(image->sides) - 2;
    if ((spatial_dims_ != 2 && spatial_dims_ != 3) || !image->sides[1].fixed) {
      throw DataError(
          "forward() takes a tensor of {} dimensions, expected an image (N,C,H,W) or (N,C,D,H,W) "
          "of a given number of channels",
          image->sides.size());
    }
    in_channels_ = *image->sides[1].fixed;
    is_double_ = image->dtype == "F64";
    batch_ = image->sides[0].fixed;
    guards_ = graph.guards;
    bool is_fixed = true;
    for (std::size_t d = 0; d < image->sides.size(); ++d) {
      const io::ExportedSide& side = image->sides[d];
      const auto range = graph.ranges.find(symbol_in(side.expression));
      const int64_t factor = factor_of(side.expression, kMostSide);
      ranges_.emplace_back();
      if (range != graph.ranges.end() && !side.fixed) {
        const auto& [least, most] = range->second;
        if (least) ranges_[d].least = std::clamp<int64_t>(*least, 0, kMostRange) * factor;
        if (most && *most < kMostRange) ranges_[d].most = std::max<int64_t>(*most, 0) * factor;
      }
      if (d < 2) continue;
      is_fixed = is_fixed && side.fixed.has_value();
      fixed_.push_back(side.fixed.value_or(0));
      divisor_.push_back(side.fixed ? 1 : factor);
    }
    if (!is_fixed) {
      for (std::size_t d = 0; d < fixed_.size(); ++d)
        if (fixed_[d] > 0)
          ranges_[d + 2] = {fixed_[d], fixed_[d]};  // some sides are fixed, others are not
      fixed_.clear();
      find_divisor();
    }
  }

  /// The smallest number whose multiples, from the least side that the conditions allow, they all
  /// allow.
  void find_divisor() {
    std::vector<bool> allowed(kMostSide + 1, false);
    for (int64_t side = 1; side <= kMostSide; ++side) {
      std::vector<int64_t> sides(ranges_.size(), side);
      sides[0] = batch_.value_or(2);
      sides[1] = in_channels_;
      for (std::size_t d = 2; d < ranges_.size(); ++d)
        if (is_one(ranges_[d])) sides[d] = *ranges_[d].least;
      allowed[static_cast<std::size_t>(side)] = are_allowed(sides);
    }
    for (std::size_t d = 2; d < ranges_.size(); ++d) {
      if (is_one(ranges_[d])) continue;
      const auto is_allowed = [&, factor = divisor_[d - 2]](int64_t side) {
        return side % factor == 0 && allowed[static_cast<std::size_t>(side)];
      };
      int64_t least = 1, divisor = 1;
      while (least <= kMostSide && !is_allowed(least)) ++least;
      if (least > kMostSide) throw DataError("its conditions allow no side from 1 to 1024");
      const auto fits = [&] {
        for (int64_t side = (least + divisor - 1) / divisor * divisor; side <= kMostSide;
             side += divisor)
          if (!is_allowed(side)) return false;
        return true;
      };
      while (divisor <= 256 && !fits()) ++divisor;
      if (divisor <= 256) divisor_[d - 2] = divisor;
    }
  }
  bool are_allowed(const std::vector<int64_t>& sides) const {
    return std::ranges::all_of(guards_,
                               [&](const std::string& guard) { return holds(guard, sides); });
  }

  void read_results(const io::ExportedGraph& graph, const Options& options) {
    const std::vector<const io::ExportedShape*> shapes = result_shapes(graph);
    const std::vector<std::string> names = result_names(graph, shapes.size());
    for (const auto& [name, node] : options.heads.map) {
      if (!node.is_map()) continue;  // null: switched off
      const auto head = config::parse<ExportedHead>(node);
      names_.push_back(name);
      heads_.push_back(result_called(path_, "heads", name, names));
      expect_as_given(path_,
                      fmt::format("heads.{}.out_channels", name).c_str(),
                      head.out_channels,
                      channels_of(shapes[heads_.back()]));
    }
    deep_supervision_ = options.deep_supervision;
    const std::size_t first =
        heads_.empty() ? result_called(path_, "output", options.output.value_or("0"), names)
                       : heads_[0];
    first_ = static_cast<std::ptrdiff_t>(first);
    out_channels_ = channels_of(shapes[first]);
  }
  /// The channels of a result with the image's dimensions. Throws: DataError for another one.
  int64_t channels_of(const io::ExportedShape* shape) const {
    if (shape != nullptr && std::ssize(shape->sides) == spatial_dims_ + 2 && shape->sides[1].fixed)
      return *shape->sides[1].fixed;
    throw DataError(
        "forward() gives a tensor of {} dimensions, expected logits (N,K,{}) of the image's sides",
        shape == nullptr ? 0 : shape->sides.size(),
        spatial_dims_ == 2 ? "H,W" : "D,H,W");
  }
  void expect_sides_of(const at::Tensor& image, const at::Tensor& result) const {
    if (result.sizes().slice(2) == image.sizes().slice(2)) return;
    throw DataError("{}: forward() gives ({}) for an image of ({}), expected its sides",
                    path_,
                    fmt::join(result.sizes(), ","),
                    fmt::join(image.sizes(), ","));
  }

  /// All results, in forward()'s order.
  std::vector<at::Tensor> results_of(const at::Tensor& image) {
    const bool is_two = takes_one_as_two(image);
    const at::Tensor batch = is_two ? at::cat({image, image}) : image;
    expect_sides(batch);
    std::vector<at::Tensor> results = naming_file(path_, [&] {
      return steps_->run({batch.to(input_type(image))}, settings.gradient_checkpointing);
    });
    for (at::Tensor& result : results) {
      if (is_two) result = result.chunk(2)[0];  // in a trace for a batch of any size
      if (result.scalar_type() == at::kDouble) result = result.to(image.scalar_type());
    }
    return results;
  }

  /// Whether one image must be run as a batch of two: torch.export takes a batch of 1 for another
  /// graph, and conditions of its own attention exclude it. The image's result and derivative are
  /// those of a batch of 1; the running variance of a batch norm would not be.
  bool takes_one_as_two(const at::Tensor& image) const {
    std::vector<int64_t> sides = image.sizes().vec();
    if (sides[0] != 1 || batch_ || are_allowed(sides)) return false;
    sides[0] = 2;
    if (!are_allowed(sides)) return false;
    for (const auto& buffer : named_buffers())
      if (is_training() && buffer.key().ends_with("running_var"))
        throw DataError(path_ +
                        ": its batch norms do not train by batches of 1, which torch.export takes "
                        "for another network; use data.batch_size=2 or more, and "
                        "data.drop_last=true");
    return true;
  }

  void expect_sides(const at::Tensor& image) const {
    for (std::size_t d = 0; d < ranges_.size(); ++d) {
      const int64_t side = image.size(static_cast<int64_t>(d));
      if (d == 0 && batch_ && side != *batch_) {
        throw DataError(
            "{}: it was exported for batches of exactly {}, got {}; export it with a dynamic "
            "batch: torch.export.export(net, (x,), dynamic_shapes=({{0: Dim.DYNAMIC, ...}},))",
            path_,
            *batch_,
            side);
      }
      // torch sees a batch or side of 1 as another graph; those that have no such case run.
      const bool is_one_of_two = ranges_[d].least == 2 && side == 1 && d == 0;
      if ((ranges_[d].least && side < *ranges_[d].least && !is_one_of_two) ||
          (ranges_[d].most && side > *ranges_[d].most)) {
        throw DataError(
            "{}: dimension {} of its images is {}, got {}",
            path_,
            d,
            ranges_[d].most
                ? fmt::format("from {} to {}", ranges_[d].least.value_or(0), *ranges_[d].most)
                : fmt::format("{} or more", *ranges_[d].least),
            side);
      }
    }
    for (const std::string& guard : guards_) {
      if (holds(guard, image.sizes().vec())) continue;
      throw DataError("{}: an image of ({}) breaks a condition of the network: {}",
                      path_,
                      fmt::join(image.sizes(), ","),
                      printable(guard, 300));
    }
  }
  /// The type that the weights take: a file in float64 is one of float64.
  at::ScalarType input_type(const at::Tensor& image) const {
    if (!is_double_) return image.scalar_type();
    for (const at::Tensor& parameter : parameters())
      if (parameter.is_floating_point()) return parameter.scalar_type();
    return image.scalar_type();
  }

  static constexpr int64_t kMostRange = int64_t{1} << 40;
  std::string path_;
  std::unique_ptr<ExportedSteps> steps_;
  std::ptrdiff_t first_ = 0;        // the result that is trained and predicted
  std::vector<std::string> names_;  // of heads
  std::vector<std::size_t> heads_;  // their results
  bool deep_supervision_ = false;
  std::vector<int64_t> divisor_, fixed_;
  std::vector<io::ExportedRange> ranges_;  // of each dimension
  std::vector<std::string> guards_;
  std::optional<int64_t> batch_;
  bool is_double_ = false;
  int64_t in_channels_ = 0, out_channels_ = 0, spatial_dims_ = 0;
};
CYTRA_REGISTER(Model, ExportedModel, "ExportedProgram");

}  // namespace
}  // namespace cytra::nn
