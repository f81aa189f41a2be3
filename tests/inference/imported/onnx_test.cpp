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

/// A tensor as ONNX's ValueInfoProto; -1: a side of any size.
std::string float_info(const std::string& name, const std::vector<int64_t>& shape) {
  std::string sides;
  for (const int64_t side : shape)
    sides += field(1, side < 0 ? field(2, "any" + std::to_string(sides.size())) : field(1, side));
  return field(1, name) + field(2, field(1, field(1, int64_t{1}) + field(2, sides)));
}

struct Output {
  std::string name, operation;  // of x, or of x and `w`
  std::vector<int64_t> shape;
};

/// A network of single operations of its input `x`; `w`: a tensor of one axis, 1, 2, 3 ...
std::string ends_onnx(const std::vector<int64_t>& shape,
                      const std::vector<Output>& outputs,
                      int64_t channels = 1) {
  std::string graph, values, ends;
  for (const Output& output : outputs) {
    const bool has_w = output.operation == "Mul";
    std::string perm = field(1, "perm") + field(20, int64_t{7});  // of Transpose: channels last
    for (const int64_t axis : {0, 2, 3, 1}) perm += field(8, axis);
    graph += field(1,
                   field(1, "x") + (has_w ? field(1, "w") : "") + field(2, output.name) +
                       field(4, output.operation) +
                       (output.operation == "Transpose" ? field(5, perm) : ""));
    ends += field(12, float_info(output.name, output.shape));
  }
  for (int64_t c = 1; c <= channels; ++c) {
    const auto number = static_cast<float>(c);
    values += std::string(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  const std::string w =
      field(1, channels) + field(2, int64_t{1}) + field(8, "w") + field(9, values);
  return field(1, int64_t{8}) + field(8, field(2, int64_t{17})) +
         field(7, graph + field(2, "g") + field(5, w) + field(11, float_info("x", shape)) + ends);
}

LoadedModel load_ends(const test::TmpDir& dir,
                      const std::string& bytes,
                      const ForeignOptions& foreign = {}) {
  write_file(dir / "net.onnx", bytes);
  return load_models({{dir / "net.onnx"}, std::nullopt, foreign}).at(0);
}

TEST(OnnxEnds, ChannelsLastAreTurned) {
  const test::TmpDir dir;
  struct Case {
    std::vector<int64_t> shape, image;  // of the file; of what is given, (C,[D,]H,W)
    std::string layout;
  };
  for (const Case& one : {Case{{-1, -1, -1, 3}, {3, 8, 12}, ""},
                          Case{{1, 16, 24, 3}, {3, 16, 24}, ""},
                          Case{{2, 16, 24, 3}, {3, 16, 24}, ""},  // two images at a time
                          Case{{-1, 8, 16, 24, 3}, {3, 8, 16, 24}, ""},
                          Case{{1, 3, 12, 3}, {3, 3, 12}, "NHWC"}}) {
    ForeignOptions foreign;
    foreign.layout = one.layout;
    PredictorOptions options;
    options.form = "logits";
    const LoadedModel model =
        load_ends(dir, ends_onnx(one.shape, {{"y", "Mul", one.shape}}, 3), foreign);
    EXPECT_EQ(model.in_channels, 3);
    EXPECT_EQ(model.spatial_dims, static_cast<int64_t>(one.image.size()) - 1);
    const at::Tensor image = at::rand(one.image);
    std::vector<int64_t> each(one.image.size(), 1);
    each[0] = 3;
    const at::Tensor expected = image * at::tensor({1.F, 2.F, 3.F}).view(each);
    EXPECT_TRUE(Predictor({model}, options).predict(image).allclose(expected, 1e-5));
  }
}

TEST(OnnxEnds, AnOutputOfOtherAxesIsTurnedByItself) {
  const test::TmpDir dir;
  for (const int64_t side : {int64_t{-1}, int64_t{16}}) {
    const std::vector<int64_t> shape{1, 3, side, side}, turned{1, side, side, 3};
    const LoadedModel model = load_ends(dir, ends_onnx(shape, {{"y", "Transpose", turned}}));
    const at::Tensor image = at::rand({1, 3, 16, 16});
    EXPECT_TRUE(model.forward(image).at(0).equal(image));
  }
}

TEST(OnnxEnds, WhatTheShapeDoesNotTellIsAsked) {
  const test::TmpDir dir;
  const auto said = [&](const std::vector<int64_t>& shape, const std::string& layout = "") {
    ForeignOptions foreign;
    foreign.layout = layout;
    return message_of<ConfigError>([&] {
      load_ends(dir, ends_onnx(shape, {{"y", "Relu", shape}}), foreign);
    });
  };
  const std::string ask = "set model.layout=NCHW or model.layout=NHWC";
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{-1, 3, -1, 3},
                                            std::vector<int64_t>{-1, -1, -1, -1},
                                            std::vector<int64_t>{1, 64, 64, 64}})
    EXPECT_NE(said(shape).find(ask), std::string::npos) << said(shape);
  EXPECT_NE(said({1, 3, 3, 3, 3}).find("NCDHW or model.layout=NDHWC"), std::string::npos);
  EXPECT_NE(said({1, 64, 64}).find("expected a batch of images"), std::string::npos);
  EXPECT_NE(said({1, 64, 64, 3}, "NDHWC").find("model.layout=NDHWC does not fit"),
            std::string::npos);
}

TEST(OnnxEnds, OneOfSeveralOutputsIsChosen) {
  const test::TmpDir dir;
  const std::vector<int64_t> shape{-1, 2, -1, -1};
  const std::string two = ends_onnx(shape, {{"relu", "Relu", shape}, {"minus", "Neg", shape}}),
                    with_size = ends_onnx(shape, {{"size", "Shape", {4}}, {"minus", "Neg", shape}});
  const std::string asked = message_of<ConfigError>([&] { load_ends(dir, two); });
  EXPECT_NE(asked.find("model.output=relu"), std::string::npos) << asked;
  const auto sign = [&](const std::string& bytes, const std::string& output) {
    ForeignOptions foreign;
    foreign.output = output;
    return load_ends(dir, bytes, foreign).forward(at::ones({1, 2, 4, 4})).at(0).min().item<float>();
  };
  EXPECT_EQ(sign(two, "relu"), 1);
  EXPECT_EQ(sign(two, "minus"), -1);
  EXPECT_EQ(sign(two, "0"), 1);
  EXPECT_EQ(sign(two, "1"), -1);
  EXPECT_EQ(sign(with_size, ""), -1);
  EXPECT_NE(message_of<ConfigError>([&] { sign(two, "nosuch"); }).find("not nosuch"),
            std::string::npos);
}

TEST(OnnxEnds, AClosingActivationIsAppliedOnce) {
  const test::TmpDir dir;
  const std::vector<int64_t> shape{-1, 2, -1, -1};
  const at::Tensor image = at::randn({2, 8, 8});
  const auto probability = [&](const LoadedModel& model) {
    PredictorOptions options;
    options.form = "probability";
    return Predictor({model}, options).predict(image);
  };
  const LoadedModel masks = load_ends(dir, ends_onnx(shape, {{"y", "Sigmoid", shape}}));
  EXPECT_TRUE(masks.config.get<bool>("task.multilabel", false));
  EXPECT_TRUE(probability(masks).allclose(image.sigmoid(), 1e-4, 1e-6));
  const std::vector<int64_t> last{-1, -1, -1, 2};
  const LoadedModel classes = load_ends(dir, ends_onnx(last, {{"y", "Softmax", last}}));
  EXPECT_TRUE(probability(classes).allclose(image.softmax(0), 1e-4, 1e-6));
  ForeignOptions none;
  none.activation = "none";
  const LoadedModel values = load_ends(dir, ends_onnx(shape, {{"y", "Sigmoid", shape}}), none);
  EXPECT_TRUE(probability(values).allclose(image.sigmoid().softmax(0), 1e-4, 1e-6));
}

}  // namespace
}  // namespace cytra::inference
