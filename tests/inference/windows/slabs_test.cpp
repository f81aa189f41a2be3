#include "inference/windows/slabs.h"

#include <filesystem>

#include <ATen/ATen.h>

#include "base/error.h"
#include "ops/windows/sums.h"
#include "tests/inference/window_model.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

/// An image (C,[D,]H,W) row by row; notes what is asked for.
struct Rows {
  explicit Rows(at::Tensor of) : image(std::move(of)) {}
  inference::RowSource source() {
    return {image.sizes().vec(), [this](int64_t first, int64_t count) {
              EXPECT_EQ(first, read);
              read += count;
              most = std::max(most, count);
              return image.narrow(1, first, count);
            }};
  }
  at::Tensor image;
  int64_t read = 0, most = 0;
};

/// All rows, put together again.
struct Collected {
  inference::RowSink sink() {
    return [this](int64_t first, const std::vector<at::Tensor>& values) {
      EXPECT_EQ(first, next);
      next += values[0].size(1);
      rows.resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) rows[i].push_back(values[i].clone());
    };
  }
  at::Tensor output(std::size_t i = 0) const { return at::cat(rows.at(i), 1).unsqueeze(0); }
  int64_t next = 0;
  std::vector<std::vector<at::Tensor>> rows;
};

TEST(PredictSlabs, EqualTheWholeImage) {
  for (const char* topic : {"windows_2d", "windows_3d", "windows_outputs", "windows_spacing"}) {
    const test::Golden golden(topic);
    for (const test::GoldenCase& entry : golden.cases(20)) {
      SCOPED_TRACE(entry.name);
      const at::Tensor image = entry.tensor("input");
      if (image.dim() < 4 || image.size(0) > 1) continue;
      Rows rows(image[0]);
      Collected collected;
      const int64_t bad = inference::predict_slabs(rows.source(),
                                                   test::window_model(entry),
                                                   test::window_options(entry),
                                                   {},
                                                   collected.sink());
      EXPECT_EQ(bad, 0);
      EXPECT_EQ(rows.read, image.size(2));
      for (std::size_t i = 0; i < collected.rows.size(); ++i) {
        const at::Tensor expected = entry.tensor("output_" + std::to_string(i));
        EXPECT_LT(test::relative_difference(collected.output(i), expected), 2e-6) << i;
      }
    }
  }
}

inference::SlidingWindowOptions windows_of(std::vector<int64_t> roi, double overlap = 0.5) {
  inference::SlidingWindowOptions options;
  options.roi_size = std::move(roi);
  options.overlap = {overlap};
  return options;
}

TEST(PredictSlabs, EqualTheWholeImageOnAGrid) {
  const at::Tensor image = at::randn({2, 53, 30});
  auto options = windows_of({16, 16}, 0.25);
  options.unit = {16, 8};
  options.padding_mode = "reflect";
  Rows rows(image);
  Collected collected;
  const inference::Forward model = [](const at::Tensor& windows) {
    return std::vector<at::Tensor>{windows.cumsum(2)};
  };
  inference::predict_slabs(rows.source(), model, options, {}, collected.sink());
  const at::Tensor expected = inference::sliding_window(image.unsqueeze(0), model, options)[0];
  EXPECT_LT(test::relative_difference(collected.output(), expected), 2e-6);
}

TEST(PredictSlabs, FinishesRows) {
  const at::Tensor image = at::randn({3, 30, 21});
  const auto options = windows_of({8, 8});
  const auto model = [](const at::Tensor& x) { return std::vector<at::Tensor>{x}; };
  const auto run = [&](ops::Finish finish) {
    Rows rows(image);
    Collected collected;
    inference::predict_slabs(rows.source(), model, options, finish, collected.sink());
    return collected.output()[0];
  };
  EXPECT_TRUE(
      run({ops::Finish::Kind::argmax, 0.5, at::kByte}).equal(image.argmax(0, true).to(at::kByte)));
  EXPECT_LT(test::max_difference(run({ops::Finish::Kind::softmax}), image.softmax(0)), 1e-6);
}

TEST(PredictSlabs, SumInAFileAsInMemory) {
  const test::TmpDir dir;
  at::manual_seed(0);
  const at::Tensor image = at::randn({2, 60, 33});
  inference::SlidingWindowOptions options;
  options.roi_size = {16, 16};
  const inference::Forward forward = [](const at::Tensor& windows) {
    return std::vector<at::Tensor>{at::cat({windows, windows.square()}, 1)};
  };
  const auto predicted = [&](const std::string& folder) {
    options.slab_folder = folder;
    Rows rows(image);
    Collected collected;
    inference::predict_slabs(rows.source(), forward, options, {}, collected.sink());
    return collected.output();
  };
  EXPECT_TRUE(predicted(dir.path()).equal(predicted("")));
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  EXPECT_THROW(predicted(dir.path() + "/absent"), IoError);
}

TEST(PredictSlabs, ReadNoMoreThanTheyNeed) {
  Rows rows(at::rand({1, 100, 16}));
  Collected collected;
  auto options = windows_of({16, 8});
  options.sw_batch_size = 1;  // the windows of a batch may be of several rows
  inference::predict_slabs(
      rows.source(),
      [&](const at::Tensor& x) {
        EXPECT_LE(rows.read, collected.next + 16);
        return std::vector<at::Tensor>{x};
      },
      options,
      {},
      collected.sink());
  EXPECT_EQ(rows.most, 16);
  EXPECT_EQ(rows.read, 100);
  EXPECT_EQ(collected.next, 100);
}

TEST(PredictSlabs, KeepRowsThatTheSinkKeeps) {
  Rows rows(at::rand({1, 64, 16}));
  std::vector<at::Tensor> kept;
  inference::predict_slabs(
      rows.source(),
      [](const at::Tensor& x) { return std::vector<at::Tensor>{x}; },
      windows_of({16, 8}),
      {},
      [&](int64_t, const std::vector<at::Tensor>& values) { kept.push_back(values[0]); });
  EXPECT_GT(kept.size(), 3U);
  EXPECT_LT(test::max_difference(at::cat(kept, 1), rows.image), 1e-6);
}

TEST(PredictSlabs, CountWhatIsNotFinite) {
  at::Tensor image = at::rand({2, 40, 16});
  image[0][3][4] = NAN;
  image[1][33][5] = INFINITY;
  Rows rows(image);
  Collected collected;
  const int64_t bad = inference::predict_slabs(
      rows.source(),
      [](const at::Tensor& x) { return std::vector<at::Tensor>{x}; },
      windows_of({16, 8}),
      {ops::Finish::Kind::argmax, 0.5, at::kByte},
      collected.sink());
  EXPECT_EQ(bad, 2);
  EXPECT_LE(collected.next, 3) << "rows behind the first bad one were passed on";
}

TEST(PredictSlabs, RefuseRowsOfAnotherShape) {
  const inference::RowSource source{{1, 40, 16}, [](int64_t, int64_t count) {
                                      return at::rand({1, count, 15});
                                    }};
  EXPECT_THROW(inference::predict_slabs(
                   source,
                   [](const at::Tensor& x) { return std::vector<at::Tensor>{x}; },
                   windows_of({16, 8}),
                   {},
                   [](int64_t, const std::vector<at::Tensor>&) {}),
               std::logic_error);
}

}  // namespace
}  // namespace cytra
