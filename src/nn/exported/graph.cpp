#include "nn/exported/graph.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include <ATen/ATen.h>

#include "base/error.h"
#include "device/error.h"
#include "nn/exported/compiler.h"
#include "nn/exported/message.h"
#include "nn/recompute.h"

namespace cytra::nn {

ExportedSteps::ExportedSteps(const io::ExportedGraph& graph,
                             torch::nn::Module& root,
                             const FindTensor& tensor)
    : root_(root) {
  ExportedCompiler(graph, root, tensor, *this).compile();
}

void ExportedSteps::run_steps(std::size_t begin,
                              std::size_t end,
                              Values& values,
                              c10::Device device) const {
  for (std::size_t i = begin; i < end; ++i) {
    const ExportedStep& step = steps_[i];
    try {
      step.run(values, device);
    } catch (const DataError& error) {
      throw DataError(step.name + ": " + error.what());
    } catch (const Error&) {
      throw;
    } catch (const std::logic_error&) {
      throw;                                 // ours
    } catch (const std::exception& error) {  // torch's, or oneDNN's
      if (device::is_out_of_memory(error)) throw;
      throw DataError("{} does not take its inputs of this image: {}", step.name, brief(error));
    }
    for (const int number : step.last) values[static_cast<std::size_t>(number)] = c10::IValue();
  }
}

void ExportedSteps::run_again(const Segment& segment, Values& values, c10::Device device) const {
  Values kept = initial_;
  for (std::size_t i = segment.begin; i < segment.end; ++i) {
    for (const int number : steps_[i].reads) {
      const auto at = static_cast<std::size_t>(number);
      if (!kept[at].isNone() || values[at].isNone()) continue;
      kept[at] = values[at].isTensor() ? without_history(values[at].toTensor()) : values[at];
    }
  }
  const auto result = static_cast<std::size_t>(segment.result);
  const at::Tensor output = checkpoint(
      root_,
      [&] {
        run_steps(segment.begin, segment.end, values, device);
        return values[result].toTensor();
      },
      [this, segment, device, kept = std::move(kept), result] {
        Values again = kept;
        run_steps(segment.begin, segment.end, again, device);
        return again[result].toTensor();
      });
  values[result] = output;
}

std::vector<at::Tensor> ExportedSteps::run(const std::vector<at::Tensor>& inputs,
                                           bool recomputes) const {
  Values values = initial_;
  const c10::Device device = inputs.at(0).device();
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const at::Tensor given = is_row_major_ ? inputs.at(i).contiguous() : inputs.at(i);
    values[static_cast<std::size_t>(inputs_[i])] = changes_in_place_ ? given.clone() : given;
  }
  if (!recomputes) {
    run_steps(0, steps_.size(), values, device);
  } else {
    for (const Segment& segment : segments_) {
      if (segment.result < 0) {
        run_steps(segment.begin, segment.end, values, device);
      } else {
        run_again(segment, values, device);
      }
    }
  }
  for (const auto& [buffer, content] : mutations_) {
    const at::NoGradGuard no_grad;
    at::Tensor target = initial_[static_cast<std::size_t>(buffer)].toTensor();
    target.copy_(values[static_cast<std::size_t>(content)].toTensor());
  }
  std::vector<at::Tensor> results;
  for (const int number : results_)
    results.push_back(values[static_cast<std::size_t>(number)].toTensor());
  return results;
}

void ExportedSteps::find_segments() {
  const auto memory_of = [&](int number) { return memory_[static_cast<std::size_t>(number)]; };
  std::map<int, std::size_t> made, changed, last_read;  // made, changed: by memory; its last change
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    for (const int number : steps_[i].writes)
      if (number >= 0) made.emplace(memory_of(number), i);
    if (steps_[i].changes >= 0) changed[memory_of(steps_[i].changes)] = i;
    for (const int number : steps_[i].reads) last_read[number] = i;
  }
  for (const int number : inputs_) made.erase(memory_of(number));
  for (std::size_t i = 0; i < initial_.size(); ++i)
    if (!initial_[i].isNone()) made.erase(memory_[i]);
  for (const int number : results_) last_read[number] = steps_.size();
  for (const auto& [buffer, content] : mutations_) last_read[content] = steps_.size();
  const auto longest =
      std::max<std::size_t>(6, static_cast<std::size_t>(2 * std::sqrt(steps_.size())));
  for (std::size_t begin = 0; begin < steps_.size();) {
    std::size_t best = begin + 1;
    int result = -1;
    for (std::size_t end = begin + 1; end <= std::min(steps_.size(), begin + longest); ++end) {
      const ExportedStep& step = steps_[end - 1];
      const bool reads_what_changes = std::ranges::any_of(step.reads, [&](int number) {
        const auto last = changed.find(memory_of(number)), first = made.find(memory_of(number));
        return last != changed.end() && last->second >= begin &&
               (first == made.end() || first->second < begin);
      });
      if (reads_what_changes) break;
      int count = 0, left = -1;
      for (std::size_t i = begin; i < end; ++i) {
        for (const int number : steps_[i].writes) {
          const auto read = last_read.find(number);
          if (number < 0 || steps_[i].gives_numbers || read == last_read.end() ||
              read->second < end)
            continue;
          ++count;
          left = number;
        }
      }
      if (count == 1 && end > begin + 1) best = end, result = left;
    }
    segments_.push_back({begin, best, result});
    begin = best;
  }
}

}  // namespace cytra::nn
