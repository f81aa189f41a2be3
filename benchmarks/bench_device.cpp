// bench_device SUBJECT DEVICE SECONDS [small]: what a GPU is good for, row by row: a JSON line as
// soon as a row is measured, for about SECONDS each. `small`: sizes with which a CPU tries it out.
// Subjects: the keys of kSubjects below.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include "config/registry.h"
#include "data/loader/batch.h"
#include "data/loader/batch_transform.h"
#include "data/loader/device_feed.h"
#include "data/loader/loader.h"
#include "device/device.h"
#include "device/error.h"
#include "device/fast_precision.h"
#include "device/precision.h"
#include "inference/engines/engine.h"
#include "inference/windows/sliding_window.h"
#include "nn/model.h"
#include "training/optimizer.h"
#include "training/scheduler.h"
#include "training/trainer.h"

namespace {

using namespace cytra;
using Clock = std::chrono::steady_clock;

c10::Device subject_device = c10::kCPU;
double seconds = 5;
bool is_small = false;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void row(const std::string& what, const std::string& how, double value, const char* unit) {
  std::printf("{\"what\": \"%s\", \"how\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"}\n",
              what.c_str(),
              how.c_str(),
              value,
              unit);
  std::fflush(stdout);
}

/// Median milliseconds of a call, the device's work included, after three to warm up: of three
/// calls at least, of one where they are long. Where all is small, of one call.
double median_ms(const std::function<void()>& work) {
  std::vector<double> times;
  const auto begin = Clock::now();
  const auto is_enough = [&](int64_t count) {
    const double spent = since(begin);
    if (is_small) return count >= 1 && spent > seconds;
    return count >= 3 ? spent > seconds || count == 1000 : count >= 1 && spent > 3 * seconds;
  };
  for (int64_t i = is_small ? 0 : -3; !is_enough(i); ++i) {
    device::synchronize(subject_device);
    const auto start = Clock::now();
    work();
    device::synchronize(subject_device);
    if (i >= 0) times.push_back(1e3 * since(start));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

int64_t side(int64_t size) {
  return is_small ? std::max<int64_t>(32, size / 16) : size;
}

config::Node yaml(const std::string& text) {
  return config::parse_yaml(text, "bench_device");
}

/// What the same work is tried with; the peer's rows (gpu_peer.py) have names of their own.
struct Way {
  std::string name;
  std::string channels_last = "false", compile_model = "false";  // as a configuration says them
};

std::string network(int dims, const Way& way) {
  return fmt::format(
      "{{_target_: DynUNet, spatial_dims: {}, {}, channels_last: {}, compile_model: {}}}",
      dims,
      is_small ? "filters: [4, 8, 8]"
               : "filters: [32, 64, 128, 256], strides: [1, 2, 2, 2], kernel_size: [3, 3, 3, 3], "
                 "upsample_kernel_size: [2, 2, 2]",
      way.channels_last,
      way.compile_model);
}

std::shared_ptr<nn::Model> unet(int dims, const Way& way = {}) {
  const auto model = make<nn::Model>(yaml(network(dims, way)));
  model->eval();
  for (at::Tensor& parameter : model->parameters()) parameter.requires_grad_(false);
  nn::place(*model, subject_device);
  return model;
}

void set_tf32(bool use) {
  at::globalContext().setFloat32MatmulPrecision(use ? "high" : "highest");
  at::globalContext().setAllowTF32CuDNN(use);
}

/// Calls run(name, precision) for every arithmetic.
void each_precision(const std::function<void(const std::string&, const std::string&)>& run) {
  for (const auto& [name, precision] :
       std::vector<std::pair<std::string, std::string>>{{"fp32", "32-true"},
                                                        {"tf32", "32-true"},
                                                        {"bf16", "bf16-mixed"},
                                                        {"fp16", "16-mixed"}}) {
    set_tf32(name == "tf32");
    if (!subject_device.is_cuda() && name != "fp32" && name != "bf16") continue;
    run(name, precision);
  }
  set_tf32(false);
}

void transfer() {
  for (const int64_t megabytes : {1, 64}) {
    const at::Tensor host = at::rand({megabytes << 18});
    const at::Tensor there = at::empty_like(host, subject_device);
    const auto measure = [&](const char* kind, const at::Tensor& from, const at::Tensor& to) {
      const double ms = median_ms([&] { at::Tensor(to).copy_(from, /*non_blocking=*/true); });
      row(fmt::format("copy of {} MiB", megabytes),
          kind,
          static_cast<double>(megabytes) / 1024 / (ms / 1e3),
          "GiB/s");
    };
    measure("host to device, pageable", host, there);
    measure("device to host, pageable", there, host);
    if (!subject_device.is_cuda()) continue;
    const at::Tensor pinned = host.pin_memory();
    measure("host to device, page-locked", pinned, there);
    measure("device to host, page-locked", there, pinned);
    measure("on the device", there, at::empty_like(there));
  }
}

data::DataLoader loader_of(const std::map<std::string, std::vector<int64_t>>& shapes,
                           int64_t images,
                           int64_t batch_size,
                           bool channels_last = false) {
  data::DataLoaderSpec spec;
  spec.channels_last = channels_last;
  spec.options.batch_size = batch_size;
  spec.options.num_workers = 2;
  spec.pin = subject_device.is_cuda();
  spec.items.resize(static_cast<std::size_t>(images));
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [key, shape] : shapes)
    tensors[key] = key == "seg" ? at::randint(2, shape).to(at::kFloat) : at::randn(shape);
  for (auto& item : spec.items) item.tensors = {tensors.begin(), tensors.end()};
  return data::DataLoader(std::move(spec));
}

void loader() {
  data::DataLoader images = loader_of({{"raw", {1, side(512), side(512)}}}, 1600, 16);
  data::DeviceFeed feed(images, subject_device);
  const auto begin = Clock::now();
  int64_t count = 0;
  for (int64_t epoch = 0; since(begin) < seconds; ++epoch) {
    feed.start_epoch(epoch, 0, true);
    while (const auto batch = feed.next()) count += batch->at("raw").size(0);
  }
  device::synchronize(subject_device);
  row(fmt::format("loader to device, {}x{}, batches of 16", side(512), side(512)),
      "2 workers",
      static_cast<double>(count) / since(begin),
      "images/s");
}

void preprocessing() {
  data::BatchTransforms transforms;
  for (const char* text : {"RandFlipd",
                           "RandAffined, rotate_range: 0.3, scale_range: 0.1",
                           "RandGaussianNoised",
                           "RandGaussianSmoothd"})
    transforms.push_back(make<data::BatchTransform>(
        yaml(fmt::format("{{_target_: {}, keys: raw, prob: 1}}", text))));
  for (const int64_t count : {1, 16}) {
    data::Batch batch;
    batch.tensors["raw"] = at::rand({count, 1, side(512), side(512)}).to(subject_device);
    batch.ids.assign(static_cast<std::size_t>(count), "image");
    const std::vector<uint64_t> keys(static_cast<std::size_t>(count), 7);
    const double ms = median_ms([&] {
      data::Batch copy = batch;
      data::apply_all(transforms, copy, keys);
    });
    row(fmt::format("preprocessing {}x{}, batch {}", side(512), side(512), count),
        "flip, affine, noise, smooth",
        ms,
        "ms");
  }
}

void inference_of(const std::string& what, int dims, const std::vector<int64_t>& shape) {
  const at::Tensor images = at::randn(shape).to(subject_device);
  for (const Way& way : {Way{"Cytra, channels first"}, Way{"Cytra, channels last", "true"}}) {
    const auto model = unet(dims, way);
    each_precision([&](const std::string& name, const std::string& precision) {
      {
        const c10::InferenceMode inference_mode;
        const device::Autocast autocast(device::precision_of(precision), subject_device.type());
        row(what + ", " + name, way.name, median_ms([&] { (*model)(images); }), "ms");
      }
      if (!subject_device.is_cuda()) return;
      inference::EngineOptions options;
      options.compile_model = true;
      options.compile_mode = "reduce-overhead";
      options.precision = precision;
      const inference::EngineModel engine_model{
          [&](const at::Tensor& x) { return std::vector<at::Tensor>{(*model)(x)}; },
          subject_device};
      const auto engine = inference::make_engine(engine_model, options, images);
      row(what + ", " + name,
          way.name + ", CUDA graph",
          median_ms([&] { engine->run(images); }),
          "ms");
    });
  }
}

void inference_rows() {
  inference_of(
      fmt::format("segmentation {}x{}", side(512), side(512)), 2, {1, 1, side(512), side(512)});
  inference_of("segmentation 3D", 3, {1, 1, side(128), side(128), side(128)});
  inference_of(
      fmt::format("batch of 16, {}x{}", side(512), side(512)), 2, {16, 1, side(512), side(512)});
}

void sliding_window(int dims) {
  inference::SlidingWindowOptions options;
  const int64_t whole = side(dims == 2 ? 2048 : 512), roi = side(dims == 2 ? 512 : 128);
  options.roi_size = std::vector<int64_t>(static_cast<std::size_t>(dims), roi);
  options.overlap = {0.25};
  options.mode = "gaussian";
  options.sw_batch_size = 4;
  std::vector<int64_t> shape(static_cast<std::size_t>(dims) + 2, whole);
  shape[0] = shape[1] = 1;
  const at::Tensor image = at::randn(shape).to(subject_device);
  for (const Way& way : {Way{"Cytra, channels first"}, Way{"Cytra, channels last", "true"}}) {
    const auto model = unet(dims, way);
    each_precision([&](const std::string& name, const std::string& precision) {
      const c10::InferenceMode inference_mode;
      const auto network = [&](const at::Tensor& windows) {
        const device::Autocast autocast(device::precision_of(precision), subject_device.type());
        return (*model)(windows);
      };
      row(fmt::format("sliding window {}^{}, roi {}, {}", whole, dims, roi, name),
          way.name,
          median_ms([&] { inference::sliding_window(image, network, options); }),
          "ms");
    });
  }
}

/// Ends a training after `seconds` of steps; those before the tenth warm up, or before the first
/// where all is small.
struct Clocked final : training::Callback {
  const int64_t warm_up = is_small ? 1 : 10;
  void on_step_end(training::Context& context) override {
    if (context.state.step < warm_up) return;
    if (context.state.step == warm_up) {
      device::synchronize(subject_device);
      begin = Clock::now();
    }
    steps = context.state.step - warm_up;
    context.stop = steps > 0 && since(begin) > seconds;
  }
  Clock::time_point begin;
  int64_t steps = 0;
};

double trained_ms(const std::string& task_text,
                  const std::string& precision,
                  const std::map<std::string, std::vector<int64_t>>& shapes,
                  int64_t batch_size) {
  at::manual_seed(0);
  const auto task = make<training::Task>(yaml(task_text));
  nn::place(task->model(), subject_device, device::uses_tensor_cores(precision, subject_device));
  const auto optimizer = make<training::Optimizer>(yaml("{_target_: AdamW}"));
  const auto scheduler = make<training::Scheduler>(yaml("{_target_: ConstantLR, factor: 1}"));
  const auto clock = std::make_shared<Clocked>();
  training::Trainer trainer(config::parse<training::TrainerOptions>(yaml(
                                fmt::format("{{max_epochs: -1, max_steps: 1000000, precision: {}, "
                                            "gradient_clip_val: 1, enable_progress_bar: false}}",
                                            precision))),
                            *task,
                            *optimizer,
                            *scheduler,
                            {clock});
  data::DataLoader images =
                       loader_of(shapes, 100 * batch_size, batch_size, task->model().channels_last),
                   none({});
  trainer.fit(images, none);
  device::synchronize(subject_device);
  return 1e3 * since(clock->begin) / static_cast<double>(std::max<int64_t>(1, clock->steps));
}

std::string segmentation(int dims, const Way& way) {
  return fmt::format(
      "{{_target_: SegmentationTask, model: {}, loss: {{_target_: DiceCELoss, sigmoid: true}}, "
      "inference_args: {{}}}}",
      network(dims, way));
}

void training_of(const std::string& what,
                 int dims,
                 const std::map<std::string, std::vector<int64_t>>& shapes,
                 int64_t batch_size) {
  each_precision([&](const std::string& name, const std::string& precision) {
    for (const Way& way : {Way{"Cytra", "null", "null"},
                           Way{"Cytra, channels first"},
                           Way{"Cytra, channels last", "true"},
                           Way{"Cytra, channels first, CUDA graph", "false", "true"},
                           Way{"Cytra, channels last, CUDA graph", "true", "true"}}) {
      if (way.compile_model == "true" && !subject_device.is_cuda()) continue;
      row(what + ", " + name,
          way.name,
          trained_ms(segmentation(dims, way), precision, shapes, batch_size),
          "ms/step");
    }
  });
}

void training_2d() {
  const std::vector<int64_t> shape{1, side(256), side(256)};
  for (const int64_t count : is_small ? std::vector<int64_t>{2} : std::vector<int64_t>{4, 1, 16})
    training_of(fmt::format("training step {}x1x{}x{}", count, shape[1], shape[2]),
                2,
                {{"raw", shape}, {"seg", shape}},
                count);
}

void training_3d() {
  const std::vector<int64_t> shape{1, side(96), side(96), side(96)};
  training_of(
      fmt::format("training step 2x1x{}^3", shape[1]), 3, {{"raw", shape}, {"seg", shape}}, 2);
}

const std::map<std::string, std::function<void()>> kSubjects{
    {"inference", inference_rows},
    {"loader", loader},
    {"preprocessing", preprocessing},
    {"sliding_window_2d", [] { sliding_window(2); }},
    {"sliding_window_3d", [] { sliding_window(3); }},
    {"training_2d", training_2d},
    {"training_3d", training_3d},
    {"transfer", transfer},
};

}  // namespace

int main(int argc, char** argv) {
  const auto subject = argc < 4 ? kSubjects.end() : kSubjects.find(argv[1]);
  if (subject == kSubjects.end()) {
    std::string names;
    for (const auto& [name, run] : kSubjects) names += " " + name;
    std::fprintf(
        stderr, "usage: bench_device SUBJECT DEVICE SECONDS [small]; subjects:%s\n", names.c_str());
    return 2;
  }
  try {
    subject_device = device::choose_device(argv[2]);
    seconds = std::atof(argv[3]);
    is_small = argc > 4 && std::strcmp(argv[4], "small") == 0;
    subject->second();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return device::is_out_of_memory(error) ? 5 : 1;
  }
  return 0;
}
