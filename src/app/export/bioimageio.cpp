#include "app/export/bioimageio.h"

#include <algorithm>
#include <filesystem>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/version.h>

#include "app/export/bioimageio_operations.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "base/version.h"
#include "config/registry.h"
#include "data/sample/image_tensor.h"
#include "data/sample/sample.h"
#include "data/transforms/intensity/bioimageio.h"
#include "export/onnx.h"
#include "inference/models/trained_head.h"
#include "inference/outputs/draw_overlay.h"
#include "io/compression/zip_writer.h"
#include "io/npy.h"
#include "io/png/write.h"
#include "io/reader.h"

namespace cytra::app {
namespace {

namespace fs = std::filesystem;
using config::Node;

Node file_node(const std::string& source, const std::string& bytes) {
  return map_of({{"source", text_node(source)}, {"sha256", text_node(sha256(bytes))}});
}

/// The sides of its images: `min` + n `step`.
struct PackageSides {
  std::vector<int64_t> min, step;
  bool is_fixed;

  explicit PackageSides(const inference::LoadedModel& model)
      : is_fixed(!model.fixed_window.empty()) {
    const int64_t least = model.spatial_dims == 3 ? 16 : 32;
    for (std::size_t d = 0; d < static_cast<std::size_t>(model.spatial_dims); ++d) {
      const int64_t side = is_fixed ? model.fixed_window[d] : model.divisor[d];
      step.push_back(side);
      min.push_back(is_fixed ? side : (least + side - 1) / side * side);
    }
  }
};

/// An image (C,[D,]H,W) float32 of sides that the package takes: the middle of the given one, or
/// noise.
at::Tensor test_image(const BioimageioOptions& options,
                      const inference::LoadedModel& model,
                      const PackageSides& sides) {
  std::vector<int64_t> shape{model.in_channels};
  if (options.image.empty()) {
    for (const int64_t side : sides.min) shape.push_back(sides.is_fixed ? side : 2 * side);
    return at::rand(shape, at::detail::createCPUGenerator(1)) * 255;
  }
  at::Tensor image =
      data::to_tensor(io::read_image(options.image), model.spatial_dims, options.image)
          .to(at::kFloat);
  if (image.size(0) != model.in_channels) {
    throw ConfigError("bioimageio.image={}: {} channels, the model takes {}",
                      options.image,
                      image.size(0),
                      model.in_channels);
  }
  for (std::size_t d = 0; d < sides.min.size(); ++d) {
    const auto dim = static_cast<int64_t>(d) + 1;
    const int64_t most = std::min<int64_t>(image.size(dim), model.spatial_dims == 3 ? 64 : 512);
    const int64_t size = sides.is_fixed ? sides.min[d] : most / sides.step[d] * sides.step[d];
    if (size < sides.min[d] || size > image.size(dim)) {
      throw ConfigError("bioimageio.image={}: a side of {} voxels, expected {} at least",
                        options.image,
                        image.size(dim),
                        sides.min[d]);
    }
    image = image.narrow(dim, (image.size(dim) - size) / 2, size);
  }
  return image.contiguous();
}

/// Checks that the package prepares an image as predict does. Throws: std::runtime_error.
void expect_equal_transforms(const PackagePreprocessing& before,
                             const at::Tensor& image,
                             const at::Tensor& prepared) {
  data::Sample sample;
  sample.tensors["image"] = image.clone();
  Rng rng(0);
  for (Node transform : before.transforms) {
    transform.set("keys", Node::make_list(std::vector<std::string>{"image"}));
    make<data::Transform>(transform)->apply(sample, rng);
  }
  const at::Tensor& expected = sample.at("image");
  if (expected.sizes() == prepared.sizes() && expected.allclose(prepared, 1e-4, 1e-4)) return;
  throw ConfigError(
      "format=bioimageio: the package would prepare its test image otherwise than predict does; "
      "another bioimageio.image may tell why");
}

Node axes_of(const inference::LoadedModel& model,
             const PackageSides& sides,
             int64_t channels,
             bool is_input) {
  std::vector<std::string> names;
  for (int64_t c = 0; c < channels; ++c) names.push_back(fmt::format("channel{}", c));
  Node axes = Node::make_list();
  axes.list.push_back(map_of({{"type", text_node("batch")}}));
  axes.list.push_back(
      map_of({{"type", text_node("channel")}, {"channel_names", Node::make_list(names)}}));
  const std::string letters = model.spatial_dims == 3 ? "zyx" : "yx";
  for (std::size_t d = 0; d < letters.size(); ++d) {
    const std::string id(1, letters[d]);
    Node axis = map_of({{"type", text_node("space")}, {"id", text_node(id)}});
    if (!is_input) {
      axis.set("size", map_of({{"tensor_id", text_node("raw")}, {"axis_id", text_node(id)}}));
      if (sides.min[d] >= 4) axis.set("halo", Node::make_integer(sides.min[d] / 4));
    } else if (sides.is_fixed) {
      axis.set("size", Node::make_integer(sides.min[d]));
    } else {
      axis.set("size",
               map_of({{"min", Node::make_integer(sides.min[d])},
                       {"step", Node::make_integer(sides.step[d])}}));
    }
    axes.list.push_back(std::move(axis));
  }
  return axes;
}

std::string npy_of(const at::Tensor& values) {
  std::vector<int64_t> shape = values.sizes().vec();
  shape.insert(shape.begin(), 1);
  return io::npy_bytes(shape, data::to_image(values.reshape({1, 1, -1}), io::Dtype::f32, {}));
}

/// The test image beside its result, twice as wide as high.
std::string cover_of(const at::Tensor& image, const at::Tensor& result) {
  const auto picture = [](at::Tensor values) {
    if (values.dim() == 4) values = values.select(1, values.size(1) / 2);
    values = values.size(0) == 3 ? values : values[values.size(0) > 1 ? 1 : 0].expand({3, -1, -1});
    const double low = values.min().item<double>(), high = values.max().item<double>();
    return (values - low) / std::max(high - low, 1e-9) * 255;
  };
  const at::Tensor both = at::cat({picture(inference::shown_channels(image)), picture(result)}, 2);
  return io::encode_png(data::to_image(both.round(), io::Dtype::u8, {}));
}

/// Authors and citations as maps.
Node people(const Node& authors) {
  Node list = Node::make_list();
  for (const Node& author : authors.list) {
    list.list.push_back(author.is_map() ? author
                                        : map_of({{"name", text_node(author.as<std::string>())}}));
  }
  return list;
}

/// How far another machine's output may be off: 1e-3, or a ten thousandth of large values.
Node tolerance_of(const at::Tensor& result) {
  const double absolute = std::max(1e-3, 1e-4 * result.abs().max().item<double>());
  return map_of({{"reproducibility_tolerance",
                  Node::make_list(std::vector<Node>{
                      map_of({{"absolute_tolerance", Node::make_real(absolute)}})})}});
}

}  // namespace

void expect_package_options(const BioimageioOptions& options, const std::string& output) {
  std::vector<std::string> missing;
  const auto expect = [&](bool is_given, const char* key, const std::string& what) {
    if (!is_given) missing.push_back(fmt::format("bioimageio.{}: {}", key, what));
  };
  if (!output.ends_with(".zip"))
    missing.push_back("output: a name that ends with .zip, not " + output +
                      ": a package is an archive");
  const std::string name = options.name.empty() ? fs::path(output).stem().string() : options.name;
  expect(name.size() >= 5 && name.size() <= 128, "name", "5 to 128 characters, not " + name);
  expect(!options.authors.list.empty(), "authors", "them, bioimageio.authors='[Ada Lovelace]'");
  expect(!options.license.empty(), "license", "one by its SPDX name, bioimageio.license=CC-BY-4.0");
  const bool has_cites = std::ranges::all_of(options.cite.list, [](const Node& entry) {
    return entry.is_map() && entry.find_direct("text") != nullptr &&
           (entry.find_direct("doi") != nullptr || entry.find_direct("url") != nullptr);
  });
  expect(!options.cite.list.empty() && has_cites,
         "cite",
         "what to cite, maps of text, and doi or url: bioimageio.cite='[{text: Ronneberger et al. "
         "2015, doi: 10.1007/978-3-319-24574-4_28}]'");
  if (!missing.empty())
    throw ConfigError("format=bioimageio: the zoo asks for " + join(missing, "; "));
}

void write_bioimageio(const std::string& output,
                      const BioimageioOptions& options,
                      const inference::LoadedModel& model,
                      const std::string& torchscript) {
  if (!inference::heads_of(model.config.at("task")).empty())
    throw ConfigError("format=bioimageio: " + model.path +
                      " has several outputs, expected a model of one");
  const PackagePreprocessing before(model, "bioimageio");
  const PackageOutput after(model);
  const PackageSides sides(model);
  const c10::InferenceMode inference_mode;
  const at::Tensor image = test_image(options, model, sides);
  const at::Tensor prepared = data::BioimageioOperations(before.operations)(image, image);
  expect_equal_transforms(before, image, prepared);
  const at::Tensor result = data::BioimageioOperations(after.operations)(
      model.forward(prepared.unsqueeze(0)).at(0)[0].to(at::kFloat), image);

  std::vector<int64_t> expected = image.sizes().vec();
  expected[0] = model.out_channels;
  if (result.sizes() != at::IntArrayRef(expected)) {
    throw ConfigError(
        "format=bioimageio: the model makes ({}) of ({}), expected a value for each voxel",
        fmt::join(result.sizes(), ","),
        fmt::join(image.sizes(), ","));
  }

  std::string onnx;
  try {
    onnx = exporting::to_onnx(
        torchscript, {model.in_channels, model.spatial_dims, model.fixed_window}, {});
  } catch (const Error& error) {
    log::warn("format=bioimageio: without ONNX: {}", error.what());
  }
  const std::string stem = fs::path(output).stem().string();
  const std::string name = options.name.empty() ? stem : options.name;
  Node weights = map_of(
      {{"torchscript",
        map_of(
            {{"source", text_node("weights.pt")},
             {"sha256", text_node(sha256(torchscript))},
             {"pytorch_version",
              text_node(fmt::format(
                  "{}.{}.{}", TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, TORCH_VERSION_PATCH))}})}});
  if (!onnx.empty())
    weights.set("onnx",
                map_of({{"source", text_node("weights.onnx")},
                        {"sha256", text_node(sha256(onnx))},
                        {"opset_version", Node::make_integer(17)},
                        {"parent", text_node("torchscript")}}));
  const std::string test_input = npy_of(image), test_output = npy_of(result);
  Node input = map_of({{"id", text_node("raw")},
                       {"axes", axes_of(model, sides, model.in_channels, true)},
                       {"test_tensor", file_node("test_input.npy", test_input)},
                       {"preprocessing", before.operations}});
  Node made = map_of({{"id", text_node(after.id)},
                      {"axes", axes_of(model, sides, model.out_channels, false)},
                      {"test_tensor", file_node("test_output.npy", test_output)},
                      {"postprocessing", after.operations_in("raw")}});
  const std::string description =
      options.description.empty()
          ? fmt::format(
                "A network that makes {} of images in {} dimensions.", after.id, model.spatial_dims)
          : options.description;
  std::vector<std::string> tags = options.tags;
  if (tags.empty()) tags = {fmt::format("{}d", model.spatial_dims), "pytorch"};
  Node rdf = map_of({{"format_version", text_node("0.5.4")},
                     {"type", text_node("model")},
                     {"name", text_node(name)},
                     {"description", text_node(description)},
                     {"authors", people(options.authors)},
                     {"license", text_node(options.license)},
                     {"cite", options.cite},
                     {"documentation", text_node("README.md")},
                     {"tags", Node::make_list(tags)},
                     {"timestamp", text_node(format_time("%Y-%m-%dT%H:%M:%S%z"))},
                     {"inputs", Node::make_list(std::vector<Node>{std::move(input)})},
                     {"outputs", Node::make_list(std::vector<Node>{std::move(made)})},
                     {"weights", std::move(weights)},
                     {"config", map_of({{"bioimageio", tolerance_of(result)}})}});
  const std::string readme = options.documentation.empty()
                                 ? fmt::format(
                                       "# {}\n\n{}\n\nWritten by Cytra {}.\n\n# Validation\n\nThe "
                                       "test output is the model's for the test image.\n",
                                       name,
                                       description,
                                       version())
                                 : read_file(options.documentation);
  io::ZipWriter archive(output);
  if (!options.image.empty()) {
    rdf.set("covers", Node::make_list(std::vector<std::string>{"cover.png"}));
    archive.add("cover.png", cover_of(image, result));
  }
  archive.add("rdf.yaml", config::to_yaml(rdf));
  archive.add("README.md", readme);
  archive.add("test_input.npy", test_input);
  archive.add("test_output.npy", test_output);
  archive.add("weights.pt", torchscript);
  if (!onnx.empty()) archive.add("weights.onnx", onnx);
  archive.finish();
}

}  // namespace cytra::app
