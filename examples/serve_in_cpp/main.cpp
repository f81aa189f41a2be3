// serve_in_cpp MODEL: eight threads ask a trained model at once, each for images of its own; the
// service answers them in batches.
#include <cstdio>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <cytra/base/error.h>
#include <cytra/inference/predictor/predictor.h>
#include <cytra/pipelines/batching/batching_service.h>

using namespace cytra;

int main(int argc, char** argv) try {
  if (argc != 2) throw ConfigError("usage: serve_in_cpp MODEL");
  const inference::Predictor predictor = inference::Predictor::load(argv[1]);
  const int64_t channels = predictor.model().in_channels;

  pipelines::BatchingOptions options;
  options.max_batch_size = 8;
  options.pad_to = 32;  // images of several sizes share batches
  pipelines::BatchingService service(
      [&](const at::Tensor& images) { return predictor.predict(images); }, options);
  for (const auto& [size, seconds] : service.warm_up({channels, 64, 64}))
    std::printf("batches of %d: %.1f images/s\n", int(size), double(size) / seconds);

  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 10; ++k) {
        const at::Tensor image = at::randn({1, channels, 40 + i, 60});
        try {
          const at::Tensor mask =
              service.submit(image, pipelines::BatchClock::now() + std::chrono::seconds(10))
                  .answer.get();
          if (mask.size(2) != 40 + i || mask.size(3) != 60)
            std::printf("the answer has another size\n");
        } catch (const pipelines::RequestError& error) {  // no room, too late
          std::fprintf(stderr, "%s: %s\n", name_of(error.outcome), error.what());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  service.drain();

  const pipelines::BatchingFigures figures = service.figures();
  std::printf("answered: %d of %d, in batches of %.1f\n",
              int(figures.of(pipelines::Outcome::ok)),
              int(figures.received),
              figures.mean_batch());
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return exit_code(error);
}
