// Calls of graphs that no Python wrote: each is refused by name before it runs, or as it runs, and
// none reads or writes beyond a tensor.
#include "nn/exported/graph.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "nn/exported/file.h"

namespace cytra::nn {
namespace {

using Argument = io::ExportedArgument;
using Kind = Argument::Kind;
using Input = io::ExportedInput;

Argument tensor(const std::string& parameter, const std::string& name) {
  return {Kind::value, parameter, name};
}
Argument whole(const std::string& parameter, int64_t number) {
  return {Kind::integer, parameter, "", number};
}
Argument real(const std::string& parameter, double number) {
  return {Kind::real, parameter, "", 0, number};
}
Argument flag(const std::string& parameter, bool is_on) {
  return {Kind::boolean, parameter, "", is_on ? 1 : 0};
}
Argument wholes(const std::string& parameter, const std::vector<int64_t>& numbers) {
  Argument list{Kind::list, parameter};
  for (const int64_t number : numbers) list.items.push_back(whole("", number));
  return list;
}

/// A graph of one call, of an image x (2,4,8,8) and what the call reads beside it.
struct OneCall {
  explicit OneCall(const std::string& target,
                   std::vector<Argument> inputs,
                   std::map<std::string, at::Tensor> given = {})
      : tensors(std::move(given)) {
    graph.calls.push_back({"torch.ops.aten." + target, "part", std::move(inputs), {}});
    call().outputs = {tensor("", "y")};
  }
  io::ExportedCall& call() { return graph.calls.back(); }
  /// Runs it in evaluation and in training. `are_constants`: no layer takes its tensors.
  void run(bool are_constants = false) const {
    io::ExportedGraph whole = graph;
    for (const auto& [name, values] : tensors)
      whole.inputs.push_back(
          {are_constants ? Input::Kind::constant : Input::Kind::parameter, name, "part." + name});
    whole.inputs.push_back({Input::Kind::user, "x", ""});
    const bool has_result = !call_results().empty() && call_results()[0].kind == Kind::value;
    whole.outputs.push_back({tensor("", has_result ? "y" : "x"), ""});
    naming_file("net.pt2", [&] {
      torch::nn::Module root;
      const ExportedSteps steps(
          whole, root, [&](const std::string& name) { return tensors.at(name.substr(5)); });
      for (const bool trains : {false, true}) {
        const at::NoGradGuard no_grad;
        root.train(trains);
        steps.run({at::ones({2, 4, 8, 8})});
      }
    });
  }
  const std::vector<Argument>& call_results() const { return graph.calls.back().outputs; }
  io::ExportedGraph graph;
  std::map<std::string, at::Tensor> tensors;
};

at::Tensor channels(int64_t count = 4) {
  return at::ones({count});
}

std::vector<OneCall> calls() {
  const std::map<std::string, at::Tensor> affine{{"weight", channels()}, {"bias", channels()}};
  std::map<std::string, at::Tensor> kernel{{"weight", at::ones({4, 4, 3, 3})},
                                           {"bias", channels()}},
      statistics = affine;
  statistics["running_mean"] = statistics["running_var"] = channels();
  const Argument x = tensor("input", "x"), self = tensor("self", "x"),
                 w = tensor("weight", "weight"), b = tensor("bias", "bias"),
                 eps = real("eps", 1e-5), mean = tensor("running_mean", "running_mean"),
                 variance = tensor("running_var", "running_var"), momentum = real("momentum", 0.1),
                 cudnn = flag("cudnn_enabled", true);
  return {OneCall("conv2d.default", {x, w, b, wholes("padding", {1, 1})}, kernel),
          OneCall("conv_transpose2d.input", {x, w, b, wholes("padding", {1, 1})}, kernel),
          OneCall("batch_norm.default",
                  {x, w, b, mean, variance, flag("training", true), momentum, eps, cudnn},
                  statistics),
          OneCall("instance_norm.default",
                  {x, w, b, flag("use_input_stats", true), momentum, eps, cudnn},
                  affine),
          OneCall("group_norm.default", {x, whole("num_groups", 2), w, b, eps}, affine),
          OneCall("layer_norm.default", {x, wholes("normalized_shape", {8}), eps}),
          OneCall("dropout.default", {x, real("p", 0.5), flag("train", true)}),
          OneCall("dropout_.default", {self, real("p", 0.5), flag("train", true)}),
          OneCall("feature_dropout.default", {x, real("p", 0), flag("train", true)}),
          OneCall("bernoulli.p", {self, real("p", 0.5)}),
          OneCall("bernoulli_.float", {self, real("p", 0.5)}),
          OneCall("relu.default", {self}),
          OneCall("leaky_relu_.default", {self}),
          OneCall("gelu.default", {self}),
          OneCall("view.default", {self, wholes("size", {2, 4, 64})}),
          OneCall("add_.Tensor", {self, whole("other", 1)})};
}

/// Expects that the call is refused with its name.
void expect_refused(const OneCall& one, const std::string& how) {
  for (const bool are_constants : {false, true}) {
    try {
      one.run(are_constants);
      ADD_FAILURE() << one.graph.calls.back().target << ", " << how << ": it runs";
    } catch (const DataError& error) {
      EXPECT_EQ(std::string(error.what()).find("net.pt2: " + one.graph.calls.back().target), 0U)
          << error.what();
    }
  }
}

TEST(ExportedCalls, RunAsTheyAre) {
  for (const OneCall& one : calls())
    for (const bool are_constants : {false, true})
      EXPECT_NO_THROW(one.run(are_constants)) << one.graph.calls[0].target;
}

TEST(ExportedCalls, ResultsAreTheOperators) {
  for (const OneCall& given : calls()) {
    for (const auto& [how, outputs] : std::map<std::string, std::vector<Argument>>{
             {"no result", {}},
             {"none", {Argument()}},
             {"an empty list", {wholes("", {})}},
             {"two", {tensor("", "y"), tensor("", "z")}}}) {
      OneCall one = given;
      one.call().outputs = outputs;
      expect_refused(one, how);
    }
  }
}

TEST(ExportedCalls, OperandsAreTensors) {
  for (const OneCall& given : calls()) {
    for (std::size_t i = 0; i < given.graph.calls[0].inputs.size(); ++i) {
      Argument input = given.graph.calls[0].inputs[i];
      if (input.kind != Kind::value) continue;
      OneCall one = given;
      one.call().inputs[i] = whole(input.parameter, 3);
      one.graph.calls.insert(
          one.graph.calls.begin(),  // which reads the image
          {"torch.ops.aten.relu.default", "", {tensor("self", "x")}, {tensor("", "first")}});
      expect_refused(one, input.parameter + " is a number");
    }
  }
}

TEST(ExportedCalls, SizesFitTheImage) {
  for (const OneCall& given : calls()) {
    for (const auto& [name, values] : given.tensors) {
      for (const int64_t count : {0, 1, 3, 5, 4000}) {
        OneCall one = given;
        std::vector<int64_t> sizes = values.sizes().vec();
        sizes.back() = values.dim() == 1 ? count : 0;
        if (values.dim() > 1) sizes[static_cast<std::size_t>(count % 2)] = count;
        one.tensors[name] = at::ones(sizes);
        expect_refused(one, name + " has another size");
      }
    }
  }
  OneCall folded = calls()[0];  // a bias of which each value is the same one
  folded.tensors["bias"] = at::ones({1}).expand({4});
  EXPECT_NO_THROW(folded.run(true));
}

TEST(ExportedCalls, SymbolsHaveTheirNumbers) {
  for (const auto& [target, count] : std::map<std::string, std::size_t>{{"_operator.add", 2},
                                                                        {"_operator.neg", 1},
                                                                        {"torch.sym_ite", 3},
                                                                        {"torch.sym_max", 2}}) {
    for (std::size_t given = 0; given < 5; ++given) {
      OneCall one("relu.default", {tensor("self", "x")});
      io::ExportedCall symbol{target, "", {}, {tensor("", "s")}};
      for (std::size_t i = 0; i < given; ++i) symbol.inputs.push_back(whole("", 1));
      one.graph.calls.push_back(symbol);
      one.graph.calls.push_back(one.graph.calls[0]);
      one.call().outputs = {tensor("", "z")};
      if (given == count) {
        EXPECT_NO_THROW(one.run()) << target;
      } else {
        EXPECT_THROW(one.run(), DataError) << target << " of " << given;
      }
    }
  }
}

/// Changes a call or a tensor of it to what no Python writes.
void mutate(OneCall& one, std::mt19937& random) {
  const auto below = [&](std::size_t most) { return random() % most; };
  io::ExportedCall& call = one.graph.calls[below(one.graph.calls.size())];
  const std::vector<int64_t> odd{-1, 0, 1, 2, 3, 7, int64_t{1} << 40, INT64_MIN};
  const std::vector<double> reals{-1, 0, 0.5, 2, NAN, INFINITY};
  if (below(3) == 0 && !one.tensors.empty()) {
    auto tensor = std::next(one.tensors.begin(), static_cast<int64_t>(below(one.tensors.size())));
    std::vector<int64_t> sizes;
    for (std::size_t d = below(5); d > 0; --d) sizes.push_back(static_cast<int64_t>(below(6)));
    tensor->second = at::ones(sizes, below(8) == 0 ? at::kLong : at::kFloat);
    return;
  }
  if (below(4) == 0 || call.inputs.empty()) {
    if (below(2) == 0) call.outputs.clear();
    call.outputs.push_back(below(2) == 0 ? Argument() : tensor("", "more"));
    return;
  }
  const std::size_t at = below(call.inputs.size());
  Argument& input = call.inputs[at];
  const std::string name = input.parameter;
  switch (below(6)) {
    case 0:
      input = whole(name, odd[below(odd.size())]);
      break;
    case 1:
      input = real(name, reals[below(reals.size())]);
      break;
    case 2:
      input = wholes(name, {odd[below(odd.size())], odd[below(odd.size())]});
      break;
    case 3:
      input = tensor(name, below(2) == 0 ? "x" : "weight");
      break;
    case 4:
      input = {Kind::none, name};
      break;
    default:
      call.inputs.erase(call.inputs.begin() + static_cast<int64_t>(at));
  }
}

TEST(ExportedCalls, MutantsAreRefusedOrRun) {
  const char* given = std::getenv("CYTRA_MUTANTS");
  const unsigned count = given == nullptr ? 300 : static_cast<unsigned>(std::atoll(given));
  int64_t refused = 0, run = 0;
  for (const OneCall& call : calls()) {
    for (unsigned seed = 0; seed < count; ++seed) {
      std::mt19937 random(seed);
      OneCall one = call;
      one.graph.calls.insert(
          one.graph.calls.begin(),  // which reads the image
          {"torch.ops.aten.relu.default", "", {tensor("self", "x")}, {tensor("", "first")}});
      for (std::size_t times = 1 + random() % 3; times > 0; --times) mutate(one, random);
      try {
        one.run(random() % 2 == 0);
        ++run;
      } catch (const DataError&) {
        ++refused;
      } catch (const std::exception& error) {
        ADD_FAILURE() << call.graph.calls[0].target << ", seed " << seed << ": " << error.what();
      }
    }
  }
  EXPECT_GT(refused, run);
  EXPECT_GT(run, count / 2);
}

}  // namespace
}  // namespace cytra::nn
