// predict_in_cpp MODEL IMAGE OUTPUT: a trained model predicts an image of any size, file to file,
// and a tensor in memory.
#include <cstdio>

#include <ATen/ATen.h>
#include <cytra/base/error.h>
#include <cytra/inference/predictor/predictor.h>
#include <cytra/io/reader.h>
#include <cytra/io/writer.h>

using namespace cytra;

int main(int argc, char** argv) try {
  if (argc != 4) throw ConfigError("usage: predict_in_cpp MODEL IMAGE OUTPUT");
  inference::PredictorOptions options;
  options.form = "mask";
  const inference::Predictor predictor = inference::Predictor::load(argv[1], options);

  const auto image = io::open_image(argv[2]);
  const io::ImageInfo result = predictor.describe(image->info());
  io::OutputOptions output;
  output.is_labels = true;
  predictor.predict(*image, *io::create_image(argv[3], result, output));
  std::printf("%s: %d x %d\n", argv[3], int(result.shape[2]), int(result.shape[3]));

  const at::Tensor mask = predictor.predict(at::randn({predictor.model().in_channels, 96, 80}));
  std::printf("a tensor: %d x %d, by %s\n",
              int(mask.size(1)),
              int(mask.size(2)),
              predictor.engine().c_str());
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return exit_code(error);
}
