// ONNX of others: types of inputs, and weights in other files.
#include <filesystem>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "inference/models/trained_model.h"
#include "inference/predictor/predictor.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra::inference {
namespace {

/// A field of protobuf: a number, or bytes.
std::string field(int number, int64_t value) {
  std::string text;
  const auto add = [&](uint64_t rest) {
    for (; rest > 127; rest >>= 7) text += static_cast<char>(rest | 128);
    text += static_cast<char>(rest);
  };
  add(static_cast<uint64_t>(number) << 3);
  add(static_cast<uint64_t>(value));
  return text;
}
std::string field(int number, const std::string& bytes) {
  std::string text = field(number, static_cast<int64_t>(bytes.size()));
  text[0] = static_cast<char>(text[0] | 2);
  return text + bytes;
}

/// A tensor of (1,1,8,8) as ONNX's ValueInfoProto.
std::string value_info(const std::string& name, int type) {
  std::string sides;
  for (const int64_t side : {1, 1, 8, 8}) sides += field(1, field(1, side));
  return field(1, name) + field(2, field(1, field(1, type) + field(2, sides)));
}

/// A network that gives its input, of ONNX's type `type`, as float32.
std::string cast_onnx(int type, const std::string& more = "") {
  const std::string to = field(1, "to") + field(20, int64_t{2}) + field(3, int64_t{1}),
                    node = field(1, "x") + field(2, "y") + field(4, "Cast") + field(5, to);
  return field(1, int64_t{8}) + field(8, field(2, int64_t{17})) +
         field(7,
               field(1, node) + field(2, "g") + more + field(11, value_info("x", type)) +
                   field(12, value_info("y", 1)));
}

std::vector<LoadedModel> load_onnx_bytes(const test::TmpDir& dir, const std::string& bytes) {
  write_file(dir / "net.onnx", bytes);
  CheckpointOptions options;
  options.ckpt_path = {dir / "net.onnx"};
  return load_models(options);
}

TEST(Onnx, RefusesValuesThatItsInputDoesNotHold) {
  struct Case {
    int type;  // of onnx.proto
    float least, most;
  };
  const test::TmpDir dir;
  for (const Case& one : {Case{2, 0, 255},            // uint8
                          Case{3, -128, 127},         // int8
                          Case{4, 0, 65535},          // uint16
                          Case{5, -32768, 32767},     // int16
                          Case{6, -70000, 70000},     // int32
                          Case{7, -70000, 70000}}) {  // int64
    PredictorOptions options;
    options.form = "logits";
    const Predictor predictor(load_onnx_bytes(dir, cast_onnx(one.type)), options);
    at::Tensor image = at::zeros({1, 8, 8});
    image[0][3][3] = one.least;
    image[0][4][4] = one.most;
    for (int pass = 0; pass < 2; ++pass) {  // the second by the kept engine
      // Windows are weighted sums, which round.
      EXPECT_TRUE(predictor.predict(image).allclose(image, 1e-5)) << one.type;
    }
    for (const float wrong : {0.5F,
                              -0.25F,
                              one.type < 6 ? one.least - 1 : -3e38F,
                              one.type < 6 ? one.most + 1 : 3e38F}) {
      at::Tensor other = image.clone();
      other[0][7][7] = wrong;
      EXPECT_NE(message_of<DataError>([&] { predictor.predict(other); }).find("whole numbers from"),
                std::string::npos)
          << one.type << " " << wrong;
    }
  }
}

/// A tensor `w` of one number, in another file.
std::string outside(const std::string& file) {
  return field(1, int64_t{1}) + field(2, int64_t{1}) + field(8, "w") +
         field(13, field(1, "location") + field(2, file)) + field(14, int64_t{1});
}

/// A network that multiplies its input by `w`.
std::string product_onnx(const std::string& file) {
  const std::string node = field(1, "x") + field(1, "w") + field(2, "y") + field(4, "Mul");
  return field(1, int64_t{8}) + field(8, field(2, int64_t{17})) +
         field(7,
               field(1, node) + field(2, "g") + field(5, outside(file)) +
                   field(11, value_info("x", 1)) + field(12, value_info("y", 1)));
}

void write_number(const std::string& path, float number) {
  write_file(path, std::string(reinterpret_cast<const char*>(&number), sizeof(number)));
}

TEST(Onnx, WeightsInOtherFilesLieBesideIt) {
  const test::TmpDir dir;
  std::filesystem::create_directory(dir / "more");
  PredictorOptions options;
  options.form = "logits";
  float number = 2;
  for (const std::string& name :
       {std::string("weights.bin"), "more/weights of a long name" + std::string(90, 'w')}) {
    write_number(dir / name, ++number);
    const Predictor predictor(load_onnx_bytes(dir, product_onnx(name)), options);
    write_number(dir / name, 0);  // nothing is read later
    const at::Tensor image = at::arange(64, at::kFloat).view({1, 8, 8});
    for (int pass = 0; pass < 2; ++pass)
      EXPECT_TRUE(predictor.predict(image).allclose(image * number, 1e-5)) << name;
  }
  const std::string old = load_onnx_bytes(dir, product_onnx("weights.bin"))[0].fingerprint;
  EXPECT_EQ(load_onnx_bytes(dir, product_onnx("weights.bin"))[0].fingerprint, old);
  write_number(dir / "weights.bin", 7);
  EXPECT_NE(load_onnx_bytes(dir, product_onnx("weights.bin"))[0].fingerprint, old);
}

TEST(Onnx, WeightsElsewhereAreRefused) {
  const test::TmpDir dir;
  write_number(dir / "weights.bin", 3);
  const auto said = [&](const std::string& bytes) {
    return message_of<DataError>([&] { load_onnx_bytes(dir, bytes); });
  };
  EXPECT_NE(said(product_onnx(dir / "weights.bin")).find("expected it in the network's folder"),
            std::string::npos);
  const std::string up = "../" + std::filesystem::path(dir / ".").parent_path().filename().string();
  EXPECT_NE(said(product_onnx(up + "/weights.bin")).find("expected it in the network's folder"),
            std::string::npos);
  EXPECT_NE(said(product_onnx("none.bin")).find("expected it beside the network"),
            std::string::npos);
  EXPECT_NE(said(product_onnx(std::string(300, 'w'))).find("name"), std::string::npos);
  const std::string attribute =
      field(1, "value") + field(5, outside("none.bin")) + field(20, int64_t{4});
  for (const std::string& more :
       {field(5, outside("none.bin")),
        field(1, field(2, "w") + field(4, "Constant") + field(5, attribute)),
        field(15, field(1, outside("none.bin"))),
        field(1,
              field(2, "z") + field(4, "If") + field(5, field(6, field(5, outside("none.bin")))))})
    EXPECT_NE(said(cast_onnx(1, more)).find("none.bin, expected it beside"), std::string::npos)
        << said(cast_onnx(1, more));
  EXPECT_EQ(load_onnx_bytes(dir, cast_onnx(1)).size(), 1U);
}

}  // namespace
}  // namespace cytra::inference
