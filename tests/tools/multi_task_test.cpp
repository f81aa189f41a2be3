// `train experiment=im2im/multitask` and `predict` with what it made.
#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.h"
#include "config/json.h"
#include "io/safetensors.h"
#include "tests/support/program.h"

namespace cytra {
namespace {

config::Node task_in(const std::string& checkpoint) {
  const io::SafetensorsFile file(checkpoint);
  return config::parse_yaml(file.metadata().at("config"), checkpoint).at("task");
}

TEST(MultiTaskPrograms, ObjectsAreOneHeadOfSeveral) {
  const test::TmpDir dir;
  const auto at = [&](const std::string& name) { return dir / name; };
  const auto made = test::shell("\"$BIN/generate_samples\" --output '" + at("samples") +
                                "' --train 2 --valid 1 --test 2 --size 64 --seed 3 && sed -i "
                                "1s/raw,seg,instances,stain/raw,mask,seg,target/ '" +
                                at("samples") + "'/*.csv");
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string options =
      "experiment=im2im/multitask trainer.accelerator=cpu patch_shape=[32,32] "
      "'model.backbone.filters=[4,8]' model.heads.seg=null task.heads.seg=null "
      "'+model.heads.cells={_target_: ResBlocksHead, out_channels: 3}' "
      "'+task.heads.cells={_target_: InstanceHead, y_key: seg, decoder: {_target_: "
      "InstanceDecoder}, metrics: {ap: {_target_: AveragePrecision}}}' 'data.path=" +
      at("samples") + "' 'paths.output_dir=" + at("run") + "' ";
  const auto trained = test::shell("\"$BIN/train\" " + options + "trainer.max_steps=2");
  ASSERT_EQ(trained.code, 0) << trained.err;
  for (const char* metric : {"val/loss/cells: ", "val/ap/cells: ", "val/pearson/stain: "})
    EXPECT_NE(trained.out.find(metric), std::string::npos) << metric << trained.out;
  const std::string last = at("run/checkpoints/last.ckpt");
  const config::Node kept = task_in(last);
  EXPECT_EQ(kept.get<std::vector<double>>("heads.stain.decoder.mean").size(), 1U);

  const auto predicted =
      test::shell("\"$BIN/predict\" 'checkpoint.ckpt_path=" + last + "' trainer.accelerator=cpu " +
                  "'data.path=" + at("samples/test.csv") + "' 'paths.output_dir=" + at("out") +
                  "' data.with_target=true");
  ASSERT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_NE(predicted.out.find("ap/cells: "), std::string::npos) << predicted.out;
  for (const char* head : {"/cells", "/stain"})
    EXPECT_TRUE(std::filesystem::is_directory(at("out") + head)) << head;

  const std::string script = at("net.pt");
  const std::string exported = "\"$BIN/export_model\" 'checkpoint.ckpt_path=" + last + "' ";
  const auto refused = test::shell(exported + "format=onnx 'output=" + at("net.onnx") + "'");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("has the heads stain, cells"), std::string::npos) << refused.err;
  ASSERT_EQ(test::shell(exported + "format=torchscript 'output=" + script + "'").code, 0);
  const auto again = test::shell(
      "\"$BIN/predict\" 'checkpoint.ckpt_path=" + script + "' trainer.accelerator=cpu " +
      "'data.path=" + at("samples/test.csv") + "' 'paths.output_dir=" + at("again") + "'");
  ASSERT_EQ(again.code, 0) << again.err;
  for (const char* file : {"/cells/test_0000_raw.ome.tif", "/stain/test_0000_raw.ome.tif"})
    EXPECT_EQ(read_file(at("again") + file).size(), read_file(at("out") + file).size());

  const auto resumed = test::shell("\"$BIN/train\" " + options + "trainer.max_steps=3 " +
                                   "'checkpoint.ckpt_path=" + last + "'");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(config::to_json(task_in(at("run-1/checkpoints/last.ckpt"))), config::to_json(kept));
}

}  // namespace
}  // namespace cytra
