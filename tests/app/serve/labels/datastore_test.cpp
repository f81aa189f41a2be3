#include "app/serve/labels/datastore.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "app/serve/http/http.h"
#include "base/files.h"
#include "tests/support/tmp_dir.h"

namespace cytra::app {
namespace {

namespace fs = std::filesystem;

int status_of_store(const std::function<void()>& work) {
  try {
    work();
    return 200;
  } catch (const HttpError& error) {
    return error.status;
  }
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Datastore, KeepsOneLabelOfTwoThatComeAtOnce) {
  const test::TmpDir folder;
  write_file(folder / "a.tif", "image");
  const Datastore one(folder.path()), two(folder.path());  // as of two servers
  for (int turn = 0; turn < 30; ++turn) {
    std::atomic<int> ready{0};
    const auto save = [&](const Datastore& store, const char* name) {
      for (++ready; ready < 3;) std::this_thread::yield();
      store.save_label("a", "final", name, name);
    };
    std::thread first([&] { save(one, "a.npy"); }), second([&] { save(two, "b.PNG"); });
    save(one, "c.nii.gz");
    first.join();
    second.join();
    const auto names = files_in(folder / "labels/final");
    ASSERT_EQ(names.size(), 1);
    ASSERT_EQ(one.read_label("a", "final").second.substr(1),
              names[0] == "a.png" ? ".PNG" : names[0].substr(1));
  }
}

TEST(Datastore, AddsAnImageOnce) {
  const test::TmpDir folder;
  const Datastore one(folder.path()), two(folder.path());
  std::atomic<int> ready{0}, added{0};
  std::vector<std::thread> threads;
  for (const char* name : {"a.tif", "a.png", "a.nii.gz", "A.npy"})
    threads.emplace_back([&, name] {
      for (++ready; ready < 4;) std::this_thread::yield();
      added += status_of_store([&] {
                 (*name == 'A' ? one : two).add_image(*name == 'A' ? "A" : "a", name, name);
               }) == 200;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(added, 1);
  EXPECT_EQ(files_in(folder.path()).size(), 1);
  EXPECT_NO_THROW(Datastore(folder.path()));
}

// A name is listed as it was given, or refused.
TEST(Datastore, DecidesNamesInOnePlace) {
  const test::TmpDir folder;
  const Datastore store(folder.path());
  fs::create_directories(folder / "folder.png");
  const std::vector<std::tuple<std::string, std::string, int>> cases{
      {"a", "x.ome.tif", 200},
      {"a.ome", "x.tif", 400},
      {"a", "x.tif", 409},
      {"A", "x.png", 409},
      {"b.nii", "x.nii", 200},
      {"b", "x.NII.GZ", 200},
      {"c.tif", "x.png", 200},
      {"c.tif", "x.tif", 409},
      {"c", "x.TIF", 200},
      {"d..", "x.png", 200},
      {"e.ome", "x.ome.tif", 200},
      {".f", "x.tif", 400},
      {"g/h", "x.tif", 400},
      {"..", "x.tif", 400},
      {"", "x.tif", 400},
      {" i", "x.tif", 400},
      {"j", "x.zarr", 415},
      {"k", "x.txt", 415},
      {"folder", "x.png", 409},
      {"l\n", "x.png", 400},
      {std::string(201, 'm'), "x.png", 400},
      {"n.ome", "x.ome.TIFF", 200},
      {"o.x.y", "x.mha", 200}};
  std::map<std::string, std::string> expected;
  for (const auto& [id, name, status] : cases) {
    EXPECT_EQ(status_of_store([&] { store.add_image(id, name, name); }), status)
        << id << " " << name;
    if (status == 200) expected[id] = name;
  }
  const auto images = store.images();
  EXPECT_EQ(images.size(), expected.size());
  for (const auto& [id, name] : expected) EXPECT_EQ(store.read_image(id).second, name);
  EXPECT_EQ(status_of_store([&] { store.save_label("a", "final", "x.png", "1"); }), 200);
  EXPECT_EQ(status_of_store([&] { store.save_label("b.nii", "final", "x.nii", "2"); }), 200);
  EXPECT_EQ(status_of_store([&] { store.save_label("b", "final", "x.nii", "3"); }), 200);
  EXPECT_EQ(store.labelled().size(), 3);
  EXPECT_EQ(Datastore(folder.path()).images(), images);
}

// What a server that was killed between the new label and the end of the old one leaves.
TEST(Datastore, TakesTheNewerOfTwoLabels) {
  const test::TmpDir folder;
  write_file(folder / "a.tif", "image");
  fs::create_directories(folder / "labels/final");
  fs::create_directories(folder / "labels/.hidden");
  write_file(folder / "labels/final/a.npy", "old");
  write_file(folder / "labels/final/a.png", "new");
  const auto now = fs::last_write_time(folder / "labels/final/a.png");
  fs::last_write_time(folder / "labels/final/a.npy", now - std::chrono::seconds(1));
  const Datastore store(folder.path());
  EXPECT_EQ(store.read_label("a", "final").second, "new");
  store.add_image("b", "b.tif", "image");
  store.remove_label("a", "final");
  EXPECT_TRUE(files_in(folder / "labels/final").empty());
}

}  // namespace
}  // namespace cytra::app
