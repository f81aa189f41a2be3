#include "app/benchmark_step.h"

#include <algorithm>
#include <chrono>
#include <ctime>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/batch.h"
#include "nn/model.h"
#include "perf/device.h"
#include "training/optimizer.h"
#include "training/precision.h"
#include "training/task.h"

namespace cytra::app {

using config::Node;

Node real(double value) {
  Node node;
  node.kind = config::Kind::real;
  node.real = value;
  return node;
}

Times measure(const std::function<void()>& work,
              int64_t warmup,
              int64_t repeats,
              c10::Device device) {
  Times times;
  std::clock_t cpu_begin = 0;
  for (int64_t i = -warmup; i < repeats; ++i) {
    if (i == 0) cpu_begin = std::clock();
    const auto begin = std::chrono::steady_clock::now();
    work();
    perf::synchronize(device);
    if (i >= 0)
      times.ms.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
              .count());
  }
  times.cpu_ms = 1e3 * static_cast<double>(std::clock() - cpu_begin) /
                 static_cast<double>(CLOCKS_PER_SEC * repeats);
  std::sort(times.ms.begin(), times.ms.end());
  return times;
}

Node measure_train_step(const Subject& subject) {
  const auto name = subject.config.get<std::string>("trainer.precision", "32-true");
  const perf::Precision precision = perf::precision_of(name);
  const auto task = make<training::Task>(subject.config.at("task"));
  const auto optimizer = make<training::Optimizer>(subject.config.at("optimizer"));
  nn::Model& model = task->model();
  nn::place(model, subject.device);
  nn::cast(model, precision.parameters);
  model.train();
  optimizer->attach(model.named_parameters().pairs());
  std::vector<int64_t> target = subject.shape;
  target[1] = 1;
  data::Batch batch;
  batch.tensors[subject.config.get<std::string>("task.x_key")] =
      at::randn(subject.shape).to(subject.device);
  const std::string y_key = subject.config.get<std::string>("task.y_key", "");
  if (!y_key.empty())
    batch.tensors[y_key] = at::randint(2, target).to(at::kFloat).to(subject.device);
  training::cast(batch, precision.parameters);
  const auto loss_of_step = [&] {
    const perf::Autocast autocast(precision, subject.device.type());
    return task->training_step(batch);
  };
  const Times times = measure(
      [&] {
        loss_of_step().backward();
        optimizer->step({optimizer->base_lr()});
        optimizer->zero_grad();
      },
      subject.warmup,
      subject.repeats,
      subject.device);
  Node node = Node::make_map();
  node.set("precision", Node::make_string(name));
  node.set("median_ms", real(times.median()));
  node.set("p95_ms", real(times.at_share(0.95)));
  node.set("min_ms", real(times.ms.front()));
  node.set("cpu_ms", real(times.cpu_ms));
  return node;
}

}  // namespace cytra::app
