#include "training/optimizer.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"
#include "training/grad_scaler.h"
#include "training/scheduler.h"
#include "training/trainer/step.h"
#include "training/trainer_options.h"

namespace cytra {
namespace {

using training::NamedParameters;
using training::Optimizer;

const std::vector<std::string> kImplementations{"fused", "foreach", "plain"};

std::shared_ptr<Optimizer> make_optimizer(const std::string& target,
                                          const config::Node& options,
                                          const std::string& implementation) {
  config::Node node = test::component(target, options);
  node.set("fused", config::Node::make_boolean(implementation == "fused"));
  node.set("foreach", config::Node::make_boolean(implementation == "foreach"));
  return cytra::make<Optimizer>(node);
}
std::shared_ptr<Optimizer> make_optimizer(const std::string& text) {
  return cytra::make<Optimizer>(text);
}
const std::vector<std::string> kSlots{"exp_avg",
                                      "exp_avg_sq",
                                      "max_exp_avg_sq",
                                      "momentum_buffer",
                                      "square_avg",
                                      "grad_avg",
                                      "sum",
                                      "exp_inf",
                                      "acc_delta"};
const std::vector<std::string> kNames{"stem.conv.weight",
                                      "stem.conv.bias",
                                      "blocks.0.weight",
                                      "blocks.0.norm.weight",
                                      "blocks.1.weight",
                                      "head.weight",
                                      "head.bias"};

/// The run of one golden case.
struct CaseRun {
  CaseRun(const test::GoldenCase& golden, const std::string& implementation)
      : golden_(golden),
        optimizer(make_optimizer(
            golden.node.get<std::string>("optimizer"), golden.options(), implementation)) {
    for (const std::string& name : kNames)
      parameters.emplace_back(name, golden.stored("start." + name).clone().requires_grad_(true));
    optimizer->attach(parameters);
  }
  /// `change`: of each gradient.
  template <class Change>
  void step(int64_t step, Optimizer::Step settings, const Change& change) {
    const at::Tensor missing = golden_.tensor("missing")[step];
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      auto& [name, parameter] = parameters[i];
      if (!parameter.requires_grad() || missing[static_cast<int64_t>(i)].item<bool>()) continue;
      parameter.mutable_grad() = change(golden_.stored("grads." + name)[step].clone());
    }
    settings.lr = optimizer->base_lr() * (1 - 0.02 * static_cast<double>(step));
    if (golden_.node.get<bool>("cycle"))
      settings.momentum = 0.95 - 0.01 * static_cast<double>(step % 10);
    optimizer->step(settings);
    optimizer->zero_grad();
  }
  void step(int64_t number, const Optimizer::Step& settings = {}) {
    step(number, settings, [](const at::Tensor& gradient) { return gradient; });
  }
  at::Tensor flat() const {
    std::vector<at::Tensor> all;
    for (const auto& [name, parameter] : parameters)
      all.push_back(parameter.detach().reshape({-1}));
    return at::cat(all);
  }
  /// One slot of all parameters that have it, and the counters with slot "step".
  at::Tensor flat(const std::string& slot) const {
    std::vector<at::Tensor> all;
    const auto state = optimizer->state();
    for (const std::string& name : kNames) {
      if (state.count(slot + "." + name) > 0)
        all.push_back(state.at(slot + "." + name).reshape({-1}).clone());
    }
    return at::cat(all);
  }
  std::map<std::string, at::Tensor> copy() const {
    std::map<std::string, at::Tensor> copies;
    for (const auto& [name, tensor] : optimizer->state()) copies[name] = tensor.clone();
    for (const auto& [name, tensor] : parameters) copies["model." + name] = tensor.detach().clone();
    return copies;
  }

 private:
  const test::GoldenCase& golden_;

 public:
  std::shared_ptr<Optimizer> optimizer;
  NamedParameters parameters;
};

void expect_close(const at::Tensor& ours, const at::Tensor& expected) {
  EXPECT_TRUE(at::allclose(ours, expected, /*rtol=*/1e-6, /*atol=*/2e-7))
      << test::max_difference(ours, expected);
}
void expect_equal(const std::map<std::string, at::Tensor>& a,
                  const std::map<std::string, at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) EXPECT_TRUE(at::equal(tensor, b.at(name))) << name;
}

/// Calls action(golden case, implementation) for every implementation that the case's class has.
template <class Action>
int for_each_run(const Action& action) {
  int runs = 0;
  static const test::Golden first("optim"), more("optim_more");
  std::vector<test::GoldenCase> cases = first.cases(76);
  cases.insert(cases.end(), more.cases(21).begin(), more.cases(21).end());
  for (const test::GoldenCase& entry : cases) {
    if (entry.node.find_direct("optimizer") == nullptr) continue;
    const std::string kind = entry.node.get<std::string>("optimizer");
    const std::string of = entry.name.substr(entry.name.find('.') + 1);
    for (const std::string& implementation : kImplementations) {
      const bool has =
          implementation != "fused" || kind == "AdamW" || kind == "Adam" || kind == "SGD";
      if (!has || (of != "all" && of != implementation)) continue;
      SCOPED_TRACE(entry.name + ", " + implementation);
      action(entry, implementation);
      ++runs;
    }
  }
  return runs;
}

TEST(Optimizer, StepsEqualThePeers) {
  const std::vector<int64_t> kept{0, 1, 4, 11, 24};
  const int runs =
      for_each_run([&](const test::GoldenCase& entry, const std::string& implementation) {
        CaseRun run(entry, implementation);
        const at::Tensor expected = entry.tensor("params");
        int64_t row = 0;
        for (int64_t step = 0; step < 25; ++step) {
          run.step(step);
          if (step != kept[static_cast<std::size_t>(row)]) continue;
          SCOPED_TRACE(step);
          expect_close(run.flat(), expected[row++]);
        }
        for (const std::string& slot : kSlots) {
          if (!entry.has(slot)) continue;
          SCOPED_TRACE(slot);
          expect_close(run.flat(slot), entry.tensor(slot));
        }
      });
  EXPECT_EQ(runs, 34 + 3 + 12 + 2 * 15);
}

TEST(Optimizer, FoundInfChangesNothing) {
  for_each_run([&](const test::GoldenCase& entry, const std::string& implementation) {
    CaseRun run(entry, implementation), skipping(entry, implementation);
    const at::Tensor yes = at::ones({}), no = at::zeros({}), scale = at::full({}, 4.0);
    for (int64_t step = 0; step < 8; ++step) {
      const auto before = skipping.copy();
      skipping.step(step, {0, {}, scale, yes}, [](const at::Tensor& gradient) {
        return gradient.fill_(INFINITY);
      });
      expect_equal(skipping.copy(), before);
      skipping.step(step, {0, {}, {}, no});
      run.step(step);
    }
    expect_equal(skipping.copy(), run.copy());
  });
}

TEST(Optimizer, GradScaleDividesTheGradients) {
  for_each_run([&](const test::GoldenCase& entry, const std::string& implementation) {
    CaseRun run(entry, implementation), scaled(entry, implementation);
    for (int64_t step = 0; step < 8; ++step) {
      run.step(step);
      scaled.step(step, {0, {}, at::full({}, 1024.0), {}}, [](const at::Tensor& gradient) {
        return gradient.mul_(1024);
      });
    }
    expect_equal(scaled.copy(), run.copy());  // a power of two: exactly
  });
}

TEST(Optimizer, GoesOnFromItsState) {
  for_each_run([&](const test::GoldenCase& entry, const std::string& implementation) {
    CaseRun run(entry, implementation), resumed(entry, implementation);
    for (int64_t step = 0; step < 25; ++step) {
      if (step == 12) {
        const auto saved = run.copy();
        const at::NoGradGuard no_grad;
        for (auto& [name, tensor] : resumed.optimizer->state())
          at::Tensor(tensor).copy_(saved.at(name));
        for (auto& [name, tensor] : resumed.parameters) tensor.copy_(saved.at("model." + name));
      }
      run.step(step);
      if (step >= 12) resumed.step(step);
    }
    expect_equal(resumed.copy(), run.copy());
  });
}

TEST(Optimizer, CountsTheStepsOfEachParameter) {
  const test::Golden golden("optim");
  for (const std::string& implementation : kImplementations) {
    CaseRun run(golden.at("adam." + implementation), implementation);  // missing: "late"
    for (int64_t step = 0; step < 7; ++step) run.step(step);
    EXPECT_TRUE(at::equal(run.flat("step"), at::tensor({6., 7., 7., 7., 6., 7., 5.}, at::kFloat)))
        << run.flat("step");
  }
}

TEST(Optimizer, FreezesWithoutState) {
  const auto optimizer =
      make_optimizer("{_target_: AdamW, param_groups: [{params: ^a, freeze: true}]}");
  const at::Tensor a = at::ones({2}).requires_grad_(true), b = at::ones({2}).requires_grad_(true);
  optimizer->attach({{"a", a}, {"b", b}});
  EXPECT_FALSE(a.requires_grad());
  EXPECT_TRUE(b.requires_grad());
  std::vector<std::string> names;
  for (const auto& [name, tensor] : optimizer->state()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"exp_avg.b", "exp_avg_sq.b", "step.b"}));
}

TEST(Optimizer, LayersAreBlocksInOrder) {
  const std::vector<std::string> names{"vit.cls_token",  // block vit
                                       "vit.patches.conv.1.weight",
                                       "vit.blocks.0.norm.weight",  // vit.blocks.0
                                       "vit.blocks.0.mlp.2.weight",
                                       "vit.blocks.10.mlp.2.weight",  // vit.blocks.10
                                       "vit.norm.weight",             // vit again
                                       "head"};
  NamedParameters parameters;
  for (const std::string& name : names) parameters.emplace_back(name, at::ones({2, 2}));
  training::GroupOptions options;
  options.layer_decay = 0.5;
  options.param_groups = {{"^head", 0.1, 0.7, false}};
  std::vector<double> scales;
  for (const auto& settings : training::settings_of(options, 0.2, parameters))
    scales.push_back(settings.lr_scale);
  EXPECT_EQ(scales, (std::vector<double>{0.125, 0.125, 0.25, 0.25, 0.5, 0.125, 0.1}));
}

/// What is chosen where fused and foreach are left open, beside parameter by parameter, on a
/// device.
void expect_choice_equals_plain(c10::Device device) {
  const std::vector<std::string> all{"SGD, momentum: 0.9, weight_decay: 0.01",
                                     "SGD, weight_decay: 0.01, maximize: true",
                                     "SGD, momentum: 0.9, nesterov: true",
                                     "SGD, momentum: 0.9, dampening: 0.5",
                                     "Adam, weight_decay: 0.01",
                                     "Adam, amsgrad: true, maximize: true",
                                     "AdamW",
                                     "AdamW, amsgrad: true",
                                     "NAdam",
                                     "NAdam, weight_decay: 0.01, decoupled_weight_decay: true",
                                     "RAdam",
                                     "Adamax",
                                     "Adagrad",
                                     "Adadelta",
                                     "RMSprop, centered: true, momentum: 0.9",
                                     "Lion",
                                     "Novograd"};
  for (const std::string& text : all) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
      at::manual_seed(5);
      const auto like = at::TensorOptions(at::kDouble);
      NamedParameters chosen, plain;
      for (int64_t size = 1; size <= 72; ++size) {  // unaligned; the last ones are larger
        const int64_t count = size <= 70 ? size : 930 + size;
        const at::Tensor start = at::randn({count + 1}, like).to(device, type).slice(0, 1);
        chosen.emplace_back(std::to_string(size), start.clone().requires_grad_(true));
        plain.emplace_back(std::to_string(size), start.detach().requires_grad_(true));
      }
      const auto one = make_optimizer("{_target_: " + text + "}");
      const auto other = make_optimizer("{_target_: " + text + ", fused: false, foreach: false}");
      one->attach(chosen);
      other->attach(plain);
      for (int step = 0; step < 10; ++step) {
        for (std::size_t i = 0; i < chosen.size(); ++i) {
          const at::Tensor any = at::randn(chosen[i].second.sizes(), like);
          // From 1 on: smaller ones have squares that float16 does not.
          const at::Tensor gradient = (any + any.sign()).to(device, type);
          chosen[i].second.mutable_grad() = gradient.clone();
          plain[i].second.mutable_grad() = gradient;
        }
        one->step({0.01});
        other->step({0.01});
      }
      double worst = 0;
      for (std::size_t i = 0; i < chosen.size(); ++i)
        worst = std::max(worst,
                         test::max_difference(chosen[i].second.detach().to(at::kDouble),
                                              plain[i].second.detach().to(at::kDouble)));
      // A fused kernel rounds once, the others at each operation: four units of the type at most,
      // of values up to 4.
      const double bound = type == at::kDouble  ? 2e-15
                           : type == at::kFloat ? 1e-6
                           : type == at::kHalf  ? 8e-3
                                                : 6.3e-2;
      std::printf("%-55s %-9s %.2g\n", text.c_str(), c10::toString(type), worst);
      EXPECT_LE(worst, bound) << text << ' ' << c10::toString(type);
    }
  }
}
TEST(Optimizer, WhatIsChosenEqualsParameterByParameter) {
  expect_choice_equals_plain(c10::kCPU);
}

TEST(Optimizer, FusedFormsThatDifferInShortFloatsAreRefusedOnACpu) {
  for (const auto& [name, type] : std::vector<std::pair<std::string, at::ScalarType>>{
           {"SGD", at::kBFloat16}, {"SGD", at::kHalf}, {"Adam", at::kHalf}, {"AdamW", at::kHalf}}) {
    const NamedParameters parameters{{"w", at::zeros({20}, type).requires_grad_(true)}};
    EXPECT_NE(message_of<ConfigError>([&] {
                make_optimizer("{_target_: " + name + ", fused: true}")->attach(parameters);
              }).find("optimizer.fused"),
              std::string::npos);
  }
}

TEST(Optimizer, RefusesWhatCanNotBe) {
  const auto attach = [](const std::string& text) {
    const auto optimizer = make_optimizer(text);
    optimizer->attach({{"stem.weight", at::ones({2}).requires_grad_(true)},
                       {"head.weight", at::ones({2}).requires_grad_(true)}});
  };
  const auto message = [&](const std::string& text) {
    return message_of<ConfigError>([&] { attach(text); });
  };
  const std::string no_match =
      message("{_target_: SGD, param_groups: [{params: stem}, {params: body}]}");
  for (const char* part : {"param_groups[1]", "'body'", "stem.weight", "head.weight"})
    EXPECT_NE(no_match.find(part), std::string::npos) << no_match;
  EXPECT_NE(message("{_target_: SGD, param_groups: [{params: '(stem'}]}").find("'(stem'"),
            std::string::npos);
  EXPECT_NE(message("{_target_: SGD, param_groups: [{params: ., freeze: true}]}").find("trained"),
            std::string::npos);
  EXPECT_NE(message("{_target_: Lion, fused: true}").find("fused"), std::string::npos);
  EXPECT_NE(message("{_target_: Novograd, fused: true}").find("fused"), std::string::npos);
  EXPECT_NE(message("{_target_: AdamW, fused: true, foreach: true}").find("foreach"),
            std::string::npos);
  EXPECT_NE(message("{_target_: AdamW, layer_decay: 0}").find("layer_decay"), std::string::npos);
  EXPECT_EQ(message("{_target_: AdamW, layer_decay: 0.5, param_groups: [{params: stem}]}"), "");
  const auto sgd = make_optimizer("{_target_: SGD}");
  const at::Tensor parameter = at::ones({2}).requires_grad_(true);
  sgd->attach({{"a", parameter}});
  parameter.mutable_grad() = at::ones({2});
  EXPECT_NE(message_of<ConfigError>([&] {
              sgd->step({0.1, 0.9});
            }).find("momentum"),
            std::string::npos);
  for (const char* kind : {"Adagrad", "Adadelta", "RMSprop"}) {
    const auto optimizer = make_optimizer(std::string("{_target_: ") + kind + "}");
    const at::Tensor other = at::ones({2}).requires_grad_(true);
    optimizer->attach({{"a", other}});
    other.mutable_grad() = at::ones({2});
    const std::string refusal = message_of<ConfigError>([&] { optimizer->step({0.1, 0.9}); });
    EXPECT_NE(refusal.find(kind), std::string::npos) << refusal;
  }
}

TEST(Optimizer, NormsOfOtherPowersClipAsTorch) {
  const test::Golden golden("optim_more");
  int compared = 0;
  for (const test::GoldenCase& entry : golden.cases(21)) {
    if (entry.node.find_direct("clip") == nullptr) continue;
    training::TrainerOptions options;
    options.gradient_clip_val = entry.node.get<double>("limit");
    options.gradient_clip_norm_type = std::stod(entry.node.get<std::string>("norm_type"));
    for (const bool by_host : {true, false}) {
      SCOPED_TRACE(entry.name + (by_host ? " by the host" : " on the device"));
      const auto optimizer = make_optimizer("{_target_: SGD, momentum: 0}");
      NamedParameters parameters;
      for (const char* i : {"0", "1", "2"}) {
        const at::Tensor gradient = entry.tensor(std::string("grad.") + i);
        parameters.emplace_back(i, at::zeros_like(gradient).requires_grad_(true));
        parameters.back().second.mutable_grad() = gradient.clone();
      }
      optimizer->attach(parameters);
      training::GradScaler no_scaler({}, /*enabled=*/false, at::kCPU);
      const training::StepOutcome outcome =
          training::update(*optimizer, no_scaler, options, {1.0}, at::ones({}), by_host).outcome();
      EXPECT_NEAR(outcome.grad_norm, entry.tensor("norm").item<double>(), 1e-5);
      for (const auto& [i, parameter] : parameters)
        expect_close(-parameter.detach(), entry.tensor("clipped." + i));
      ++compared;
    }
  }
  EXPECT_EQ(compared, 6);
}

// Clipping by norm is a part of the step: step_test.cpp.
TEST(Optimizer, NormAndClippedValuesAreThoseOfTorch) {
  const test::Golden golden("optim");
  int compared = 0;
  for (const test::GoldenCase& entry : golden.cases(76)) {
    if (entry.node.find_direct("clip") == nullptr) continue;
    for (const double scale : {1.0, 8.0}) {
      SCOPED_TRACE(entry.name);
      const auto optimizer = make_optimizer("{_target_: SGD}");
      NamedParameters parameters;
      for (const char* i : {"0", "1", "2"}) {
        const at::Tensor gradient = entry.tensor(std::string("grad.") + i);
        parameters.emplace_back(i, at::zeros_like(gradient).requires_grad_(true));
        parameters.back().second.mutable_grad() = gradient * scale;
      }
      optimizer->attach(parameters);
      expect_close(optimizer->gradient_norm() / scale, entry.tensor("norm")[0]);
      ++compared;
      if (entry.node.get<std::string>("clip") == "norm") continue;
      optimizer->clip_grad_value(entry.node.get<double>("limit"),
                                 scale == 1 ? at::Tensor() : at::full({}, scale));
      for (const auto& [i, parameter] : parameters)
        expect_close(parameter.grad() / scale, entry.tensor("clipped." + i));
    }
  }
  EXPECT_EQ(compared, 6);
}

TEST(Optimizer, TheNormOfHalfGradientsIsNoHalf) {
  const auto optimizer = make_optimizer("{_target_: SGD}");
  const at::Tensor parameter = at::zeros({100}, at::kHalf).requires_grad_(true);
  optimizer->attach({{"a", parameter}});
  parameter.mutable_grad() = at::full({100}, 3e4, at::kHalf);
  EXPECT_NEAR(optimizer->gradient_norm().item<double>(), 3e5, 30);  // float16 ends at 65504
}

TEST(Optimizer, WithoutGradientsNothingHappens) {
  for (const char* kind : {"AdamW",
                           "Adam",
                           "SGD",
                           "Lion",
                           "Novograd",
                           "RMSprop",
                           "Adagrad",
                           "RAdam",
                           "NAdam",
                           "Adamax",
                           "Adadelta"}) {
    const auto optimizer = make_optimizer(std::string("{_target_: ") + kind + "}");
    const at::Tensor parameter = at::ones({2}).requires_grad_(true);
    optimizer->attach({{"a", parameter}});
    EXPECT_EQ(optimizer->gradient_norm().item<double>(), 0);
    optimizer->clip_grad_value(1);
    optimizer->step({1.0});
    EXPECT_TRUE(at::equal(parameter.detach(), at::ones({2})));
    for (const auto& [name, tensor] : optimizer->state())
      EXPECT_EQ(tensor.abs().sum().item<double>(), name == "mu_product.a" ? 1 : 0) << name;
  }
}

/// The older golden file: other shapes, and gradients of other sizes.
TEST(Optimizer, TwentyStepsEqualTorch) {
  const test::Golden golden("adamw");
  int compared = 0;
  for (const test::GoldenCase& entry : golden.cases(16)) {
    if (!entry.has("start.0")) continue;
    SCOPED_TRACE(entry.name);
    const auto optimizer = cytra::make<Optimizer>(
        test::component(entry.node.get<std::string>("optimizer"), entry.options()));
    NamedParameters parameters;
    for (const char* i : {"0", "1"}) {
      parameters.emplace_back(i,
                              entry.tensor(std::string("start.") + i).clone().requires_grad_(true));
    }
    optimizer->attach(parameters);
    for (int64_t step = 0; step < entry.node.get<int64_t>("steps"); ++step) {
      for (auto& [i, parameter] : parameters)
        parameter.mutable_grad() = entry.tensor("grads." + i)[step].clone();
      optimizer->step({optimizer->base_lr()});
    }
    for (const auto& [i, parameter] : parameters) {
      EXPECT_LT(test::max_difference(parameter.detach(), entry.tensor("param." + i)), 1e-6);
      for (const char* slot : {"exp_avg.", "exp_avg_sq.", "momentum_buffer."}) {
        if (entry.has(slot + i)) {
          EXPECT_LT(test::max_difference(optimizer->state().at(slot + i), entry.tensor(slot + i)),
                    1e-6)
              << slot;
        }
      }
    }
    ++compared;
  }
  EXPECT_GE(compared, 6);
}

/// By whichever way: a kernel's, undone, or not begun.
TEST(Optimizer, FoundInfLeavesEverythingAsItWas) {
  for (const char* text : {"AdamW",
                           "AdamW, fused: false",
                           "SGD, momentum: 0.9",
                           "SGD, momentum: 0.9, foreach: true",
                           "SGD, momentum: 0.9, dampening: 0.5",
                           "Lion",
                           "Lion, foreach: false",
                           "Novograd",
                           "RMSprop, momentum: 0.9",
                           "Adadelta"}) {
    SCOPED_TRACE(text);
    at::manual_seed(0);
    const at::Tensor weight = at::randn({3, 4}).requires_grad_(true),
                     other = weight.detach().clone().requires_grad_(true);
    const auto guarded = make_optimizer("{_target_: " + std::string(text) + "}"),
               plain = make_optimizer("{_target_: " + std::string(text) + "}");
    guarded->attach({{"w", weight}});
    plain->attach({{"w", other}});
    for (const double found : {0.0, 1.0, 0.0, 1.0}) {
      const at::Tensor gradient = at::randn({3, 4});
      weight.mutable_grad() = found == 1 ? gradient / 0 : gradient.clone();
      guarded->step({0.1, {}, {}, at::scalar_tensor(found)});
      if (found == 0) {
        other.mutable_grad() = gradient.clone();
        plain->step({0.1});
      }
      EXPECT_TRUE(weight.equal(other)) << found;
      for (const auto& [name, state] : plain->state())
        EXPECT_TRUE(guarded->state().at(name).equal(state)) << name << found;
    }
  }
}

}  // namespace
}  // namespace cytra
