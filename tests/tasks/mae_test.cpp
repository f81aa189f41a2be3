#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/batch.h"
#include "nn/model.h"
#include "tests/support/message_of.h"
#include "training/optimizer.h"
#include "training/task.h"

namespace cytra {
namespace {

std::shared_ptr<training::Task> mae_task(int64_t dims, const std::string& more = "") {
  return make<training::Task>(
      "{_target_: MAETask, inference_args: {sw_batch_size: 2}, loss: {_target_: MSELoss}, model: "
      "{_target_: MAE, spatial_dims: " +
      std::to_string(dims) +
      ", img_size: 8, patch_size: 2, emb_dim: 16, encoder_layer: 1, encoder_head: 2, "
      "decoder_layer: 1, decoder_dim: 16" +
      more + "}}");
}

data::Batch mae_batch(const at::Tensor& image) {
  data::Batch batch;
  batch.tensors["raw"] = image;
  return batch;
}

/// Stripes that differ from image to image.
at::Tensor stripes(int64_t dims, int64_t side) {
  std::vector<int64_t> shape(static_cast<std::size_t>(dims) + 2, side);
  shape[0] = 8;
  shape[1] = 1;
  std::vector<int64_t> each(shape.size(), 1);
  each[0] = 8;
  return (at::arange(side).to(at::kFloat) * 0.8 + at::rand(each) * 6).sin().expand(shape);
}

TEST(MAETask, CountsHiddenVoxelsAlone) {
  const auto task = mae_task(2);
  const at::Tensor image = at::randn({2, 1, 8, 8});
  at::manual_seed(1);
  const double loss = task->training_step(mae_batch(image)).item<double>();
  at::manual_seed(1);
  const std::vector<at::Tensor> outputs = task->model().all(image);
  const at::Tensor mask = outputs[1];
  EXPECT_EQ(mask.sum().item<double>(), 0.75 * 128);
  const at::Tensor squares = (outputs[0] - image).square() * mask;
  EXPECT_NEAR(loss, squares.sum().item<double>() / mask.sum().item<double>(), 1e-5 * loss);
}

TEST(MAETask, EvaluationIsAlwaysTheSame) {
  const auto task = mae_task(2);
  task->model().eval();
  const at::NoGradGuard no_grad;
  const at::Tensor image = at::randn({3, 1, 8, 8});
  const std::vector<at::Tensor> all = task->model().all(image);
  const std::vector<at::Tensor> one = task->model().all(image.narrow(0, 2, 1));
  EXPECT_TRUE(at::equal(all[1].narrow(0, 2, 1), one[1]));
  EXPECT_TRUE(at::allclose(all[0].narrow(0, 2, 1), one[0], 1e-4, 1e-5));
  EXPECT_TRUE(at::equal(all[0].masked_select(all[1].eq(0)), image.masked_select(all[1].eq(0))));
}

TEST(MAETask, ValidatesWholeImagesByParts) {
  const auto task = mae_task(2);
  task->model().eval();
  const at::NoGradGuard no_grad;
  const at::Tensor image = at::randn({1, 1, 19, 8});  // one row above, two below: left out
  task->validation_step(mae_batch(image));
  const double loss = task->validation_end().at("loss");
  const at::Tensor parts = image.narrow(2, 1, 16).view({2, 1, 8, 8});
  const double expected = task->training_step(mae_batch(parts)).item<double>();
  EXPECT_NEAR(loss, expected, 1e-5 * expected);
  const auto preview = task->preview(mae_batch(image));
  EXPECT_EQ(preview.at("reconstruction").sizes().vec(), (std::vector<int64_t>{1, 8, 8}));
  EXPECT_EQ(preview.at("masked").eq(0).sum().item<int64_t>(), 48);
  const std::string message = message_of<DataError>([&] {
    task->validation_step(mae_batch(at::zeros({1, 1, 4, 8})));
  });
  EXPECT_NE(message.find("(8,8) alone, got (4,8)"), std::string::npos) << message;
}

TEST(MAETask, Learns) {
  for (const int64_t dims : {2, 3}) {
    for (const char* more : {"", ", use_crossmae: true"}) {
      at::manual_seed(0);
      const auto task = mae_task(dims, more);
      const auto optimizer = make<training::Optimizer>("_target_: AdamW");
      optimizer->attach(task->model().named_parameters().pairs());
      double first = 0, last = 0;
      for (int step = 0; step < 80; ++step) {
        const at::Tensor loss = task->training_step(mae_batch(stripes(dims, 8)));
        (step < 10 ? first : last) += step < 10 || step >= 70 ? loss.item<double>() : 0;
        loss.backward();
        optimizer->step({5e-3});
        optimizer->zero_grad();
      }
      EXPECT_LT(last, 0.6 * first) << dims << more;
    }
  }
}

TEST(MAETask, NeedsAnAutoencoder) {
  const std::string message = message_of<ConfigError>([] {
    make<training::Task>(
        "{_target_: MAETask, loss: {_target_: MSELoss}, model: {_target_: DynUNet}}");
  });
  EXPECT_NE(message.find("MAE"), std::string::npos) << message;
}

}  // namespace
}  // namespace cytra
