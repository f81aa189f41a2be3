// Part of inference/imported/imported_model.h: packages of bioimage.io.
#include <algorithm>
#include <filesystem>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/registry.h"
#include "data/sample/image_tensor.h"
#include "data/transforms/intensity/bioimageio.h"
#include "device/error.h"
#include "inference/decoders/decoder.h"
#include "inference/imported/bioimageio/objects.h"
#include "inference/imported/bioimageio/package.h"
#include "inference/imported/imported_model.h"
#include "inference/postprocess/postprocess.h"
#include "io/fingerprint.h"
#include "io/input_file.h"
#include "io/npy.h"
#include "nn/exported/message.h"
#include "nn/model.h"

namespace cytra::inference {
namespace {

namespace fs = std::filesystem;
using config::Node;

/// Opens the weights that can be run here, TorchScript first.
ImportedModel open_weights(const Package& package) {
  const Node& weights = package.root().at("weights");
  std::vector<std::string> found;
  for (const auto& [format, entry] : weights.map) {
    if (!entry.is_null()) found.push_back(printable(format));
  }
  const auto file_of = [&](const char* format) {
    const Node* entry = weights.find_direct(format);
    return entry == nullptr || !entry->is_map() ? std::string()
                                                : package.path_of(entry->at("source"));
  };
  if (const std::string file = file_of("torchscript"); !file.empty()) return open_torchscript(file);
  if (const std::string file = file_of("onnx"); !file.empty()) return open_onnx(file, std::nullopt);
  if (const std::string file = file_of("pytorch_state_dict"); !file.empty()) {
    const Node& entry = weights.at("pytorch_state_dict");
    const Node& architecture = entry.at("architecture");
    const bool is_map = architecture.is_map();
    const std::string name = is_map ? architecture.get<std::string>("import_from", "(a file)") +
                                          "." + architecture.get<std::string>("callable")
                                    : architecture.as<std::string>();
    const std::string last = name.substr(name.rfind('.') + 1);
    if (name.starts_with("monai.") && last != "ExportedProgram" &&
        Registry<nn::Model>::instance().components().types.count(last) != 0) {
      const Node* kwargs =
          is_map ? architecture.find_direct("kwargs") : entry.find_direct("kwargs");
      Node definition = kwargs == nullptr || kwargs->is_null() ? Node::make_map() : *kwargs;
      if (const Node* more = definition.find_direct("encoder_ckpt"))
        refuse_package(*more, "another file, expected the package's weights alone");
      definition.set("_target_", Node::make_string(last));
      ImportedModel imported;
      open_network(imported, std::move(definition), file);
      return imported;
    }
    refuse_package(architecture,
                   "the architecture '" + printable(name) +
                       "' is Python's; expected a network of MONAI that is registered here, or the "
                       "weights as torchscript or onnx, too");
  }
  refuse_package(weights,
                 fmt::format("the weights {} can't be run here, or their files are not there; "
                             "expected torchscript or onnx",
                             fmt::join(found, ", ")));
}

/// Lets a model take windows of any size: they are filled up with zeros to the next that it takes.
void fill_up(ImportedModel& imported,
             const std::vector<int64_t>& least,
             const std::vector<int64_t>& step) {
  imported.torchscript = nullptr;
  imported.onnx = nullptr;
  imported.forward = [least, step, run = std::move(imported.forward)](const at::Tensor& windows) {
    std::vector<int64_t> more;  // the last axis first
    bool fits = true;
    for (std::size_t d = least.size(); d-- > 0;) {
      const int64_t size = windows.size(static_cast<int64_t>(d) + 2);
      const int64_t steps = std::max<int64_t>(0, (size - least[d] + step[d] - 1) / step[d]);
      more.insert(more.end(), {0, least[d] + steps * step[d] - size});
      fits = fits && more.back() == 0;
    }
    if (fits) return run(windows);
    std::vector<at::Tensor> outputs = run(at::constant_pad_nd(windows, more));
    for (at::Tensor& output : outputs) {
      for (int64_t d = 2; d < windows.dim(); ++d) output = output.narrow(d, 0, windows.size(d));
    }
    return outputs;
  };
}

/// Repeats each value of a smaller output, so that every voxel of a window has one.
void enlarge(ImportedModel& imported, const std::vector<int64_t>& times) {
  imported.torchscript = nullptr;
  imported.onnx = nullptr;
  imported.forward = [times, run = std::move(imported.forward)](const at::Tensor& windows) {
    std::vector<at::Tensor> outputs = run(windows);
    for (at::Tensor& output : outputs) {
      for (std::size_t d = 0; d < times.size(); ++d) {
        const auto dim = static_cast<int64_t>(d) + 2;
        if (times[d] > 1) output = output.repeat_interleave(times[d], dim);
        if (output.dim() != windows.dim() || output.size(dim) < windows.size(dim)) {
          throw DataError("it returns ({}), expected one value for {} voxels",
                          fmt::join(output.sizes(), ","),
                          fmt::join(times, "x"));
        }
        output = output.narrow(dim, 0, windows.size(dim));
      }
    }
    return outputs;
  };
}

/// What windows the model takes. `grid`: of objects, as PackageObjects; empty: values.
void set_windows(ImportedModel& imported,
                 const PackageTensor& input,
                 const PackageTensor& output,
                 const std::string& own,
                 const std::vector<int64_t>& grid) {
  const std::string letters = own.substr(2);
  const int64_t usual = letters.size() == 3 ? 96 : 256;
  std::vector<int64_t> divisor, least, window, times;
  std::vector<double> overlap;
  bool is_free = true, is_large = false;
  for (const char letter : letters) {
    const PackageAxis& axis = *input.find(letter);
    if (axis.size == 0 && (axis.min < 1 || axis.step < 1))
      refuse_package(*axis.node, "expected a positive min and step");
    is_free = is_free && axis.size == 0 && axis.min % axis.step == 0;
    is_large = is_large || (axis.size == 0 && axis.min > usual);
    divisor.push_back(axis.step);
    least.push_back(axis.min);
    if (axis.size > 0) {
      window.push_back(axis.size);
    } else if (axis.min % axis.step == 0) {  // as complete() chooses it
      window.push_back(std::max(axis.min, usual / axis.step * axis.step));
    } else {
      const int64_t steps = std::max<int64_t>(0, (usual - axis.min + axis.step - 1) / axis.step);
      window.push_back(axis.min + steps * axis.step);
    }
    const PackageAxis* of_output = output.find(letter);
    if (of_output == nullptr)
      refuse_package(*output.node, fmt::format("expected the axis {}", letter));
    const int64_t size =
        of_output->size > 0
            ? of_output->size
            : static_cast<int64_t>(static_cast<double>(window.back()) * of_output->scale +
                                   of_output->offset);
    const bool is_part = size > 0 && of_output->offset == 0 && window.back() % size == 0;
    times.push_back(grid.empty() ? is_part ? window.back() / size : 1 : grid[times.size()]);
    if (size * times.back() != window.back() && grid.empty()) {
      refuse_package(
          *of_output->node,
          fmt::format("the output has {} voxels along {}, the input {}; expected a model "
                      "that gives each voxel, or each n voxels, a value",
                      size,
                      letter,
                      window.back()));
    }
    overlap.push_back(std::clamp(
        2 * static_cast<double>(of_output->halo) / static_cast<double>(window.back()), 0.25, 0.9));
  }
  const bool has_parts = *std::ranges::max_element(times) > 1;
  if (has_parts) enlarge(imported, times);
  const bool is_whole = has_parts && !grid.empty();  // windows would not begin on the grid
  if (is_whole && !is_free) {
    refuse_package(
        *input.node,
        "objects of a grid from images of one size, expected sides of min + n step where "
        "the step divides the least");
  }
  if (!is_free) {
    imported.window = window;
  } else {
    imported.divisor = divisor;
    if (least != divisor || is_whole) fill_up(imported, least, divisor);
  }
  Node args = Node::make_map();
  args.set("overlap", Node::make_list(overlap));
  args.set("mode", Node::make_string("gaussian"));
  if (is_large) args.set("roi_size", Node::make_list(window));
  if (is_whole) args.set("roi_size", Node::make_list(std::vector<int64_t>(window.size(), 0)));
  imported.config.find("task")->set("inference_args", std::move(args));
}

/// What the model's output is, by the operations at its end: masks, classes, or values.
void set_output(Node& task, const PackageTensor& output, const PackageObjects& objects) {
  if (!objects.decoder.is_null()) {
    task.set("decoder", objects.decoder);
    return;
  }
  std::vector<std::string> ids;
  for (const Node& operation : output.operations.list) {
    const auto id = operation.get<std::string>("id");
    const Node* dtype = operation.find("kwargs.dtype");
    const bool is_float =
        id == "ensure_dtype" && dtype != nullptr && dtype->as<std::string>().starts_with("float");
    if (!is_float) ids.push_back(id);
  }
  const bool are_masks = ids == std::vector<std::string>{"sigmoid"};
  if (are_masks || ids == std::vector<std::string>{"softmax"}) {
    task.set("multilabel", Node::make_boolean(are_masks));
    return;
  }
  task.set("decoder", config::parse_value("{_target_: RegressionDecoder}", {}));
  if (ids.empty()) return;
  Node step = config::parse_value("{_target_: BioimageioProcessing}", {});
  step.set("operations", output.operations);
  task.set("postprocess", Node::make_list(std::vector<Node>{std::move(step)}));
}

/// How far the output may be from the file's: `config.bioimageio.reproducibility_tolerance`.
struct Tolerance {
  double relative = 1e-3, absolute = 1e-3, per_million = 100;
  explicit Tolerance(const Node& root) {
    const Node* all = root.find("config.bioimageio.reproducibility_tolerance");
    if (all == nullptr || all->list.empty()) return;
    relative = all->list[0].get<double>("relative_tolerance", relative);
    absolute = all->list[0].get<double>("absolute_tolerance", absolute);
    per_million = all->list[0].get<double>("mismatched_elements_per_million", per_million);
  }
};

/// Predicts the package's test image. Returns what is to be said of it; "": the output is the
/// file's.
std::string failure_of_test(const Package& package,
                            const ImportedModel& imported,
                            const PackageTensor& input,
                            const PackageTensor& output,
                            const PackageObjects& objects) {
  if (input.test.empty() || output.test.empty())
    return "its test image, or the output for that, is not in the package: it was not tried";
  const auto read = [&](const PackageTensor& tensor) {
    const io::NpyArray array = io::read_npy(tensor.test);
    const at::Tensor flat = data::to_tensor(array.values, 2, tensor.test).to(at::kFloat);
    return AxisOrder(tensor).to_own(flat.view(array.shape))[0];
  };
  try {
    const c10::InferenceMode inference_mode;
    const at::Tensor raw = read(input);
    const at::Tensor image = data::BioimageioOperations(input.operations)(raw, raw);
    Result result;
    result.values = imported.forward(image.unsqueeze(0)).at(0)[0];
    if (objects.decoder.is_null())
      result.values = data::BioimageioOperations(output.operations)(result.values, raw);
    else
      apply_all(make<Decoder>(objects.decoder)->steps("labels"), result);
    const at::Tensor made = result.values.to(at::kFloat), expected = read(output);
    if (made.sizes() != expected.sizes()) {
      return fmt::format("its test image gives ({}), its test output is ({})",
                         fmt::join(made.sizes(), ","),
                         fmt::join(expected.sizes(), ","));
    }
    const Tolerance tolerance(package.root());
    const at::Tensor off = (made - expected).abs();
    const at::Tensor is_far = off.gt(tolerance.absolute + tolerance.relative * expected.abs())
                                  .logical_or(made.isnan().logical_xor(expected.isnan()));
    const double share = 1e6 * is_far.sum().item<double>() /
                         std::max<double>(1, static_cast<double>(is_far.numel()));
    constexpr double kOutlines = 1e4;  // voxels on the edge of a shape may be drawn or not
    if (share <= std::max(tolerance.per_million, objects.decoder.is_null() ? 0 : kOutlines))
      return "";
    return fmt::format(
        "its test image gives another output than its test output: {:.0f} of a million values "
        "differ "
        "by more than {:.1e} + {:.1e} of the value, by {:.3g} at most",
        share,
        tolerance.absolute,
        tolerance.relative,
        off.max().item<double>());
  } catch (const std::exception& error) {
    if (device::is_out_of_memory(error)) throw;
    return "its test image can't be predicted: " + nn::brief(error);
  }
}

}  // namespace

ImportedModel open_bioimageio(const std::string& path) {
  const Package package(path);
  const PackageTensor input = package.input(), output = package.output(input);
  const AxisOrder in(input), out(output);
  if (in.spatial_dims() != out.spatial_dims())
    refuse_package(*output.node, "the output has other axes of space than the input");
  const PackageObjects objects = objects_of(output, in.spatial_dims());
  const data::BioimageioOperations before(input.operations);  // known?
  if (objects.decoder.is_null()) const data::BioimageioOperations after(output.operations);
  ImportedModel imported = open_weights(package);
  imported.spatial_dims = in.spatial_dims();
  const PackageAxis* channel = input.find('c');
  imported.in_channels = channel == nullptr  ? 1
                         : channel->size > 0 ? channel->size
                                             : imported.in_channels;
  if (imported.onnx && !in.has_batch())
    refuse_package(*input.node, "expected the axis of a batch, of ONNX");
  // One image at a time where the batch has no other size; OpenVINO keeps to that itself.
  const PackageAxis* batch = input.find('b');
  const bool is_single = batch == nullptr || batch->size == 1;
  if (!in.is_own() || !out.is_own() || (is_single && !imported.onnx)) {
    imported.torchscript = nullptr;  // they do not turn the axes
    imported.onnx = nullptr;
    imported.forward = [in, out, is_single, run = std::move(imported.forward)](
                           const at::Tensor& windows) {
      if (!is_single) return std::vector<at::Tensor>{out.to_own(run(in.to_package(windows)).at(0))};
      const std::vector<at::Tensor> all = mapped(windows.split(1), [&](const at::Tensor& window) {
        return out.to_own(run(in.to_package(window)).at(0));
      });
      return std::vector<at::Tensor>{at::cat(all)};
    };
  }
  imported.fingerprint = io::fingerprint(imported.fingerprint + io::read_input(package.file()));

  Node task = Node::make_map(), data = Node::make_map(), transforms = Node::make_map();
  const std::string x_key = "raw", y_key = output.id == x_key ? "output" : printable(output.id);
  task.set("x_key", Node::make_string(x_key));
  task.set("y_key", Node::make_string(y_key));
  set_output(task, output, objects);
  Node load = config::parse_value("{_target_: LoadImaged}", {});
  load.set("keys", Node::make_list(std::vector<std::string>{x_key, y_key}));
  load.set("spatial_dims", Node::make_integer(imported.spatial_dims));
  std::vector<Node> steps{std::move(load)};
  if (!input.operations.list.empty()) {
    Node process = config::parse_value("{_target_: BioimageioProcessingd}", {});
    process.set("keys", Node::make_list(std::vector<std::string>{x_key}));
    process.set("operations", input.operations);
    steps.push_back(std::move(process));
  }
  transforms.set("valid", Node::make_list(std::move(steps)));
  data.set("transforms", std::move(transforms));
  imported.config = Node::make_map();
  imported.config.set("task", std::move(task));
  imported.config.set("data", std::move(data));
  set_windows(imported, input, output, in.own(), objects.grid);

  const std::size_t outputs = package.root().at("outputs").list.size();
  if (outputs > 1)
    log::warn(
        "{}: {} outputs, of which the first is predicted: {}", path, outputs, printable(output.id));
  const std::string failure = failure_of_test(package, imported, input, output, objects);
  if (failure.empty())
    log::info("{}: its test image gives its test output", path);
  else
    log::warn("{}: {}", path, failure);
  return imported;
}

}  // namespace cytra::inference
