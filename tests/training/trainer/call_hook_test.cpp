#include "training/trainer/call_hook.h"

#include "base/error.h"
#include "tests/support/message_of.h"
#include "tests/training/fixture.h"

namespace cytra::training {
namespace {

struct Hooked : ::testing::Test {
  Hooked() {
    for (const char* name : {"first", "second"}) {
      recorders.push_back(std::make_shared<test::Recorder>());
      recorders.back()->name = name;
      callbacks.push_back(recorders.back());
    }
  }
  void call(const data::Batch* shown) {
    call_hook(callbacks, "on_batch_start", &Callback::on_batch_start, context, shown);
  }
  std::vector<std::shared_ptr<test::Recorder>> recorders;
  std::vector<std::shared_ptr<Callback>> callbacks;
  test::TinyTask task;
  std::shared_ptr<Optimizer> optimizer = make<Optimizer>("{_target_: SGD}");
  std::vector<std::shared_ptr<Logger>> loggers;
  TrainState state;
  Context context{state, task, *optimizer, loggers};
  data::Batch batch;
};

TEST_F(Hooked, CallsAllInOrderWithTheBatch) {
  std::string order;
  for (const auto& recorder : recorders) {
    recorder->each_batch = [&, name = recorder->name](Context& given) {
      EXPECT_EQ(given.batch, &batch);
      order += name + " ";
    };
  }
  call(&batch);
  EXPECT_EQ(order, "first second ");
  EXPECT_EQ(context.batch, nullptr);
}

TEST_F(Hooked, AnErrorLeavesNoBatchBehind) {
  recorders[0]->each_batch = [](Context&) { throw std::out_of_range("no such thing"); };
  recorders[1]->each_batch = [](Context&) { FAIL() << "the one before has failed"; };
  EXPECT_EQ(message_of<std::runtime_error>([&] { call(&batch); }),
            "callbacks.first failed in on_batch_start: no such thing");
  EXPECT_EQ(context.batch, nullptr);
  recorders[0]->each_batch = [](Context&) { throw DataError("7.tif: damaged"); };
  EXPECT_EQ(message_of<DataError>([&] { call(&batch); }), "7.tif: damaged") << "says enough";
  EXPECT_EQ(context.batch, nullptr);
}

}  // namespace
}  // namespace cytra::training
