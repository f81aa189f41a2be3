// bench_losses [REPEATS]: CPU milliseconds of a loss, forward and backward, with the kernel of
// ops/dice_ce/dice_ce.h (targets of float) and composed of ATen's operations (of bytes); of bfloat16 and
// float16 logits, as they are and with a float32 copy of them. One JSON line.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "config/registry.h"
#include "nn/loss.h"

namespace {

double cpu_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

/// The median and the largest minus the least.
std::string time_of(cytra::nn::Loss& loss,
                    const at::Tensor& logits,
                    const at::Tensor& target,
                    int repeats,
                    bool copies = false) {
  std::vector<double> times;
  for (int i = 0; i < repeats + 2; ++i) {
    logits.mutable_grad().reset();
    const double begin = cpu_milliseconds();
    loss(copies ? logits.to(at::kFloat) : logits, target).backward();
    if (i >= 2) times.push_back(cpu_milliseconds() - begin);
  }
  std::sort(times.begin(), times.end());
  return fmt::format(
      "[{:.2f}, {:.2f}, {:.2f}]", times[times.size() / 2], times.front(), times.back());
}

}  // namespace

int main(int count, char** arguments) {
  using namespace cytra;
  const int repeats = count > 1 ? std::atoi(arguments[1]) : 20;
  struct Case {
    const char *name, *loss;
    std::vector<int64_t> size;
    bool channels_last;
  };
  const char* const mask = "{_target_: DiceCELoss, sigmoid: true}";
  const char* const classes = "{_target_: DiceCELoss, softmax: true, to_onehot_y: true}";
  std::printf("{");
  for (const Case& entry :
       {Case{"mask 4x1x256^2", mask, {4, 1, 256, 256}, false},
        Case{"classes 2x4x64^3", classes, {2, 4, 64, 64, 64}, false},
        Case{"classes 2x4x64^3, channels last", classes, {2, 4, 64, 64, 64}, true}}) {
    at::manual_seed(0);
    at::Tensor logits = at::randn(entry.size);
    if (entry.channels_last) logits = logits.contiguous(at::MemoryFormat::ChannelsLast3d);
    logits.requires_grad_(true);
    std::vector<int64_t> size = entry.size;
    size[1] = 1;
    const at::Tensor target = at::randint(std::max<int64_t>(entry.size[1], 2), size).to(at::kFloat);
    const auto loss = make<nn::Loss>(entry.loss);
    std::printf("%s\"%s\": {\"kernel\": %s, \"composed\": %s",
                entry.name == std::string("mask 4x1x256^2") ? "" : ", ",
                entry.name,
                time_of(*loss, logits, target, repeats).c_str(),
                time_of(*loss, logits, target.to(at::kByte), repeats).c_str());
    for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
      const at::Tensor values = logits.detach().to(type).requires_grad_(true);
      std::printf(", \"%s\": %s, \"%s, copied\": %s",
                  c10::toString(type),
                  time_of(*loss, values, target, repeats).c_str(),
                  c10::toString(type),
                  time_of(*loss, values, target, repeats, true).c_str());
    }
    std::printf("}");
  }
  std::printf("}\n");
}
