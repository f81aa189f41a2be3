#include "training/processes/gradient_average.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "base/error.h"
#include "base/log.h"
#include "nn/model.h"
#include "nn/sync_batch_norm.h"
#include "training/processes/processes.h"

namespace cytra::training {

struct GradientAverage::Shared {
  Processes& processes;
  std::vector<at::Tensor> parameters, buffers;
  std::unordered_map<std::size_t, std::string> names;
  std::unique_ptr<c10d::Reducer> reducer;
  bool finds_unused;
};

GradientAverage::GradientAverage(Processes& processes, const nn::Model& model, bool finds_unused)
    : shared_(new Shared{processes, {}, model.buffers(), {}, nullptr, finds_unused}) {
  std::vector<at::Tensor>& parameters = shared_->parameters;
  for (const auto& parameter : model.named_parameters()) {
    if (!parameter.value().requires_grad()) continue;
    shared_->names[parameters.size()] = parameter.key();
    parameters.push_back(parameter.value());
  }
  {
    const at::NoGradGuard no_grad;
    processes.broadcast(model.parameters());
    share_buffers();
  }
  constexpr std::size_t kFirst = c10d::kDefaultFirstBucketBytes,
                        kCap = c10d::kDefaultBucketBytesCap;
  const std::vector<bool> sparse(parameters.size(), false);
  auto [buckets, limits] =
      c10d::compute_bucket_assignment_by_size(parameters, {kFirst, kCap}, sparse);
  std::ranges::reverse(buckets);  // about the order in which gradients come
  shared_->reducer = std::make_unique<c10d::Reducer>(parameters,
                                                     std::move(buckets),
                                                     processes.group(),
                                                     sparse,
                                                     kCap,
                                                     finds_unused,
                                                     /*gradient_as_bucket_view=*/false,
                                                     shared_->names,
                                                     kFirst,
                                                     /*skip_all_reduce_unused_params=*/false,
                                                     /*use_python_reducer=*/false,
                                                     std::vector<int64_t>{});
  if (finds_unused) return;  // such buckets stay as they are
  // The reducer forms its buckets again after the first backward(); this one is made without a
  // model.
  before_forward();
  at::Tensor nothing = at::zeros({}, parameters.front().options());
  for (const at::Tensor& parameter : parameters) nothing = nothing + parameter.sum() * 0;
  before_backward(nothing);
  nothing.backward();
  after_backward();
  shared_->reducer->rebuild_buckets();
  for (at::Tensor& parameter : parameters) parameter.mutable_grad().reset();
}

GradientAverage::~GradientAverage() = default;

void GradientAverage::share_buffers() {
  if (shared_->buffers.empty()) return;
  const at::NoGradGuard no_grad;
  shared_->processes.broadcast(shared_->buffers);
}

void GradientAverage::before_forward() {
  shared_->processes.group();
  shared_->reducer->prepare_for_forward();
}

void GradientAverage::before_backward(const at::Tensor& loss) {
  shared_->reducer->prepare_for_backward(shared_->finds_unused ? std::vector<at::Tensor>{loss}
                                                               : std::vector<at::Tensor>{});
}

void GradientAverage::after_backward() {
  try {
    shared_->reducer->check_finalized();
  } catch (const c10::Error&) {
    std::vector<std::string> idle;
    for (std::size_t p = 0; p < shared_->parameters.size(); ++p) {
      if (!shared_->parameters[p].grad().defined()) idle.push_back(shared_->names[p]);
    }
    if (idle.empty()) throw;
    const std::size_t count = idle.size();
    if (count > 4) idle.resize(4);
    throw ConfigError(
        "{} parameters had no part in the loss ({}{}), so that their gradients can't be averaged; "
        "set trainer.strategy=ddp_find_unused_parameters_true",
        count,
        fmt::join(idle, ", "),
        count > idle.size() ? ", ..." : "");
  }
}

SyncedBatchNorms::SyncedBatchNorms(Processes* processes, nn::Model& model) : model_(model) {
  if (processes == nullptr) return;
  count_ = nn::sync_batch_norms(
      model, [processes](const at::Tensor& values) { processes->sum({values}); });
}

SyncedBatchNorms::~SyncedBatchNorms() {
  if (count_ > 0) nn::sync_batch_norms(model_, {});
}

bool has_batch_norms(Processes& processes, nn::Model& model) {
  if (SyncedBatchNorms(&processes, model).count_ > 0) return true;
  log::info("trainer.sync_batchnorm: no effect, the model has no batch norm");
  return false;
}

}  // namespace cytra::training
