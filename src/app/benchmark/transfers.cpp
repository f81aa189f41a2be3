// Part of app/benchmark/measures.h: what the copies to and from a device take beside the model's
// pass.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "app/benchmark/measures.h"
#include "base/table.h"
#include "device/backend.h"
#include "device/memory.h"
#include "nn/model.h"

namespace cytra::app {
namespace {

using config::Node;

/// `copy(host)` copies between the device and `host`, without waiting.
Node row_of(const at::Tensor& pageable,
            const auto& copy,
            const perf::Repeats& repeats,
            c10::Device device) {
  const at::Tensor pinned = device::page_locked(pageable).copy_(pageable);
  const auto median_ms = [&](const at::Tensor& host) {
    return perf::measure([&] { copy(host); }, repeats, device).median();
  };
  Node row = Node::make_map();
  row.set("bytes", Node::make_integer(static_cast<int64_t>(pageable.nbytes())));
  row.set("pinned_ms", Node::make_real(median_ms(pinned)));
  row.set("pageable_ms", Node::make_real(median_ms(pageable)));
  return row;
}

}  // namespace

Node measure_transfers(const Workload& workload, int64_t batch, const perf::Repeats& repeats) {
  const c10::Device device = workload.device;
  if (!device::has_own_memory(device)) return {};
  const at::NoGradGuard no_grad;
  const Node config = prepared(workload, {});
  const auto model = make_model(workload, config.at("task.model"), {});
  const at::Tensor images = at::rand(workload.shape_of(batch));
  const at::Tensor there = images.to(device), output = model->all(there).at(0).to(at::kFloat);
  Node transfers = Node::make_map();
  transfers.set("to_device",
                row_of(
                    images,
                    [&](const at::Tensor& host) { there.copy_(host, /*non_blocking=*/true); },
                    repeats,
                    device));
  transfers.set("to_host",
                row_of(
                    output.cpu(),
                    [&](const at::Tensor& host) { host.copy_(output, /*non_blocking=*/true); },
                    repeats,
                    device));
  return transfers;
}

std::string transfer_table(const Node& report) {
  const Node* transfers = report.find_direct("transfers");
  if (transfers == nullptr || transfers->is_null()) return "";
  std::vector<std::vector<std::string>> lines{{"transfers", "MB", "pinned ms", "pageable ms"}};
  for (const auto& [name, row] : transfers->map) {
    lines.push_back({name == "to_device" ? "images to the device" : "outputs to the host",
                     fmt::format("{:.2f}", 1e-6 * row.get<double>("bytes")),
                     fmt::format("{:.3f}", row.get<double>("pinned_ms")),
                     fmt::format("{:.3f}", row.get<double>("pageable_ms"))});
  }
  return format_table(lines);
}

}  // namespace cytra::app
