#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/loader/batch.h"
#include "io/safetensors.h"
#include "nn/model.h"
#include "nn/weights.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"
#include "training/optimizer.h"
#include "training/parameter_groups.h"
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
  EXPECT_NE(message.find("only images of (8,8), got (4,8)"), std::string::npos) << message;
}

TEST(MAETask, Learns) {
  for (const int64_t dims : {2, 3}) {
    for (const char* more : {"", ", use_crossmae: true"}) {
      at::manual_seed(0);
      const auto task = mae_task(dims, more);
      const auto optimizer = make<training::Optimizer>("_target_: AdamW");
      optimizer->attach(task->model().named_parameters().pairs());
      const data::Batch batch = mae_batch(stripes(dims, 8));
      double first = 0, last = 0;
      for (int step = 0; step < 150; ++step) {
        const at::Tensor loss = task->training_step(batch);
        (step < 10 ? first : last) += step < 10 || step >= 140 ? loss.item<double>() : 0;
        loss.backward();
        optimizer->step({5e-3});
        optimizer->zero_grad();
      }
      EXPECT_LT(last, 0.85 * first) << dims << more;
    }
  }
}

std::string seg_vit_model(const std::string& more) {
  return "{_target_: Seg_ViT, spatial_dims: 2, img_size: 16, patch_size: 4, emb_dim: 16, "
         "encoder_layer: 3, encoder_head: 2, n_decoder_filters: 16, " +
         more + "}";
}

TEST(SegVit, BeginsWithAPretrainedEncoder) {
  at::manual_seed(0);
  const auto pretrained = make<nn::Model>(
      "{_target_: MAE, spatial_dims: 2, img_size: 16, patch_size: 4, emb_dim: 16, "
      "encoder_layer: 3, encoder_head: 2, decoder_layer: 1}");
  const test::TmpDir folder;
  const std::string path = folder / "mae.safetensors";
  io::TensorViews tensors;
  const at::Tensor step = at::zeros({});
  for (const auto& [name, tensor] : nn::state_of(*pretrained)) {
    tensors["model." + name] = nn::view_of(tensor);
    tensors["optimizer.step." + name] = nn::view_of(step);
  }
  io::write_safetensors(path, tensors, {});
  const std::string ckpt = "freeze_encoder: true, encoder_ckpt: \"" + path + "\"";
  const auto model = make<nn::Model>(seg_vit_model(ckpt));
  const auto given = nn::state_of(*pretrained), taken = nn::state_of(*model);
  for (const auto& entry : model->named_parameters()) {
    const std::string& name = entry.key();
    EXPECT_EQ(entry.value().requires_grad(), name.rfind("decoder.", 0) == 0) << name;
    if (name.rfind("encoder.", 0) != 0) continue;
    EXPECT_TRUE(at::equal(given.at("_" + name), taken.at(name))) << name;
  }
  const std::string message =
      message_of<DataError>([&] { make<nn::Model>(seg_vit_model(ckpt + ", context_pixels: 1")); });
  EXPECT_NE(message.find("patchify.conv.weight is (16,1,4,4)"), std::string::npos) << message;
  EXPECT_NE(message.find("context_pixels must be"), std::string::npos) << message;
}

TEST(SegVit, LayersLearnFasterTowardsTheOutput) {
  const auto model = make<nn::Model>(seg_vit_model("freeze_encoder: false"));
  training::GroupOptions options;
  options.layer_decay = 0.5;
  const auto parameters = model->named_parameters().pairs();
  const auto settings = training::settings_of(options, 0, parameters);
  const std::map<std::string, double> expected{
      {"encoder.cls_token", 0.0625},
      {"encoder.patchify.conv.weight", 0.0625},
      {"encoder.transformer.0.mlp.fc1.weight", 0.125},
      {"encoder.transformer.2.norm1.bias", 0.5},
      {"decoder.upsampling.layer_0.skip.patch2img.0.weight", 1}};
  std::size_t found = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto value = expected.find(parameters[i].first);
    if (value == expected.end()) continue;
    ++found;
    EXPECT_EQ(settings[i].lr_scale, value->second) << value->first;
  }
  EXPECT_EQ(found, expected.size());
}

TEST(SegVit, LearnsAMask) {
  at::manual_seed(0);
  const auto task =
      make<training::Task>("{_target_: SegmentationTask, loss: {_target_: DiceCELoss}, model: " +
                           seg_vit_model("freeze_encoder: false") + "}");
  const auto optimizer = make<training::Optimizer>("{_target_: AdamW}");
  optimizer->attach(task->model().named_parameters().pairs());
  double first = 0, last = 0;
  for (int step = 0; step < 30; ++step) {
    data::Batch batch = mae_batch(stripes(2, 16));
    batch.tensors["seg"] = batch.at("raw").gt(0).to(at::kFloat);
    const at::Tensor loss = task->training_step(batch);
    (step < 3 ? first : last) += step < 3 || step >= 27 ? loss.item<double>() : 0;
    loss.backward();
    optimizer->step({5e-3});
    optimizer->zero_grad();
  }
  EXPECT_LT(last, 0.85 * first);
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
