#include "data/datamodule.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/loader/loader.h"
#include "io/tiff/ome_tiff.h"
#include "tests/data/datamodule_fixture.h"
#include "tests/support/at_least.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;

TEST(DataframeDatamodule, ReadsTheManifestOfEachSplit) {
  const test::TmpDir dir;
  touch(dir / "img/a.tif");
  touch(dir / "img/b.tif");
  touch(dir / "train.csv", "raw,seg,note\nimg/a.tif,img/b.tif,first\n");
  const auto module =
      make("{_target_: DataframeDatamodule, path: '" + dir.path() + "', columns: [raw, seg]}");
  const auto items = module->items(data::Split::train);
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(items[0].sources.at("seg").path, dir / "img/b.tif");
  EXPECT_EQ(items[0].id, dir / "img/a.tif");
  EXPECT_NE(message_of([&] { module->items(data::Split::valid); }).find("no valid.csv"),
            std::string::npos);
}

// As a spreadsheet of another country, or on another system, writes it.
TEST(DataframeDatamodule, TablesOfSpreadsheets) {
  const test::TmpDir dir;
  touch(dir / "Zellu\u0308.tif");  // as macOS stores it
  touch(dir / "b.tif");
  const std::string text = "raw;w\r\nZell\u00fc.tif;0,5\r\nb.tif;1,25\r\n";
  std::string utf16 = "\xFF\xFE";
  for (const char letter : std::string("raw\tw\r\nZell")) (utf16 += letter) += '\0';
  utf16 += std::string("\xFC\0", 2);
  for (const char letter : std::string(".tif\t0,5\r\nb.tif\t1,25\r\n")) (utf16 += letter) += '\0';
  for (const std::string& bytes :
       {text, "\xEF\xBB\xBF" + text, utf16, std::string("raw;w\nZell\xFC.tif;0,5\nb.tif;1,25\n")}) {
    touch(dir / "m.csv", bytes);
    const auto items = make("{_target_: DataframeDatamodule, path: '" + (dir / "m.csv") +
                            "', columns: [raw], weight_column: w, just_inference: true}")
                           ->items(data::Split::test);
    ASSERT_EQ(items.size(), 2U);
    EXPECT_TRUE(fs::exists(items[0].sources.at("raw").path));
    EXPECT_EQ(items[0].weight, 0.5);
    EXPECT_EQ(items[1].weight, 1.25);
  }
}

TEST(DataframeDatamodule, FoldersWithoutATableSayWhatToDo) {
  const test::TmpDir dir;
  const auto message = [&](const std::string& more = "") {
    return message_of([&] {
      make("{_target_: DataframeDatamodule, path: '" + dir.path() + "'" + more + "}")
          ->items(more.empty() ? data::Split::train : data::Split::valid);
    });
  };
  EXPECT_NE(message().find("no images in this folder, nor below it; DICOM, TIFF, OME-Zarr"),
            std::string::npos)
      << message();
  touch(dir / "notes.txt");
  fs::create_directories(dir / "empty/below");
  EXPECT_NE(message().find("no images in this folder"), std::string::npos) << message();
  touch(dir / "a.tif");
  touch(dir / "b.tif");
  touch(dir / "all.csv", "raw\na.tif\n");
  EXPECT_NE(message().find("no train.csv in this folder; a table of all images is named itself: "),
            std::string::npos)
      << message();
  touch(dir / "train.csv", "raw\na.tif\n");
  EXPECT_NE(message(", columns: [raw]").find("no valid.csv"), std::string::npos);
  // Whatever people call it; two of one split are none
  touch(dir / "val.csv", "raw\nb.tif\n");
  EXPECT_EQ(make("{_target_: DataframeDatamodule, path: '" + dir.path() + "'}")
                ->items(data::Split::valid)
                .size(),
            1U);
  touch(dir / "train.tsv", "raw\nb.tif\n");
  EXPECT_NE(message().find("train.csv and " + (dir / "train.tsv") + ": two tables for train"),
            std::string::npos)
      << message();
}

TEST(DataframeDatamodule, NamesTheRowThatIsWrong) {
  const test::TmpDir dir;
  touch(dir / "a.tif");
  const auto message = [&](const std::string& csv) {
    touch(dir / "m.csv", csv);
    return message_of([&] {
      make("{_target_: DataframeDatamodule, path: '" + (dir / "m.csv") + "', columns: [raw]}")
          ->items(data::Split::predict);
    });
  };
  EXPECT_NE(message("raw\na.tif\nb.tif\n").find("m.csv:3"), std::string::npos);
  EXPECT_NE(message("raw\n\"\"\n").find("m.csv:2"), std::string::npos);
  EXPECT_NE(message("row\na.tif\n").find("Did you mean 'row'?"), std::string::npos);
  EXPECT_NE(message("raw\n").find("no rows"), std::string::npos);
}

TEST(DataframeDatamodule, NamesOfImagesMayLeadAnywhereButToWhatIsNoFile) {
  const test::TmpDir dir;
  touch(dir / "in/m.csv");
  const auto read = [&](std::string cell) {
    for (std::size_t at = 0; (at = cell.find('"', at)) != std::string::npos; at += 2)
      cell.insert(at, 1, '"');
    touch(dir / "in/m.csv", "raw\n\"" + cell + "\"\n");
    return make("{_target_: DataframeDatamodule, path: '" + (dir / "in/m.csv") +
                "', columns: [raw], just_inference: true}")
        ->items(data::Split::test);
  };
  // The user's own table: absolute names, ".." and links are right
  for (const std::string name : {"a b.tif",
                                 "\xC3\xA4.tif",
                                 "\xE4.tif",
                                 "a=b.tif",
                                 "it's.tif",
                                 "\"q\".tif",
                                 "-a.tif",
                                 "a,b.tif",
                                 "#a.tif",
                                 "%2e%2e.tif",
                                 "a\\b.tif",
                                 "~.tif",
                                 "a.tif.",
                                 "a\nb.tif",
                                 " "}) {
    touch(dir / ("in/" + name));
    touch(dir / ("out/" + name));
    for (const std::string& cell :
         {name, "../out/" + name, dir / ("out/" + name), "./x/../" + name}) {
      if (cell[0] == '.' && cell[1] == '/') fs::create_directory(dir / "in/x");
      EXPECT_TRUE(fs::exists(read(cell)[0].sources.at("raw").path)) << cell;
    }
  }
  fs::create_symlink("../out/a,b.tif", dir / "in/link.tif");
  EXPECT_EQ(read("link.tif").size(), 1U);
  EXPECT_TRUE(fs::exists(read("..\\out\\a,b.tif")[0].sources.at("raw").path));
  ASSERT_EQ(::mkfifo((dir / "in/fifo.tif").c_str(), 0666), 0);
  fs::create_symlink("loop.tif", dir / "in/loop.tif");
  fs::create_symlink("nowhere", dir / "in/dangling.tif");
  for (const std::string& cell : {std::string("fifo.tif"),
                                  std::string("loop.tif"),
                                  std::string("dangling.tif"),
                                  std::string("/dev/zero"),
                                  std::string("/dev/stdin/"),
                                  std::string("nothing\n.tif"),
                                  std::string(300, 'x'),
                                  std::string(5000, 'x'),
                                  std::string("%2e%2e/out/a,b.tif"),
                                  std::string("~/a.tif"),
                                  std::string("\x1b[31m"),
                                  std::string("file:///etc/passwd"),
                                  std::string("$HOME")}) {
    const std::string message = message_of([&] { read(cell); });
    EXPECT_EQ(message.rfind(dir / "in/m.csv:", 0), 0U) << message;
    EXPECT_NE(message.find("column 'raw'"), std::string::npos) << message;
    EXPECT_EQ(message.find_first_of("\n\x1b"), std::string::npos) << message;
    EXPECT_LT(message.size(), 800U);
  }
}

TEST(DataModules, ASplitOfFilesNeedsTransforms) {
  const test::TmpDir dir;
  touch(dir / "a.tif");
  touch(dir / "valid.csv", "raw\na.tif\n");
  const auto module = make("_target_: DataframeDatamodule\npath: '" + dir.path() +
                           "'\ncolumns: [raw]\ntransforms:\n  valid: null\n");
  const std::string message = message_of([&] { data::loader_spec(*module, data::Split::valid); });
  EXPECT_NE(message.find("transforms.valid"), std::string::npos) << message;
  EXPECT_NE(message.find("limit_val_batches=0"), std::string::npos) << message;
}

TEST(DataModules, PathsThatAreNoFoldersAreRefused) {
  const test::TmpDir dir;
  fs::create_symlink("loop", dir / "loop");
  ASSERT_EQ(::mkfifo((dir / "fifo.csv").c_str(), 0666), 0);
  for (const std::string& path : {std::string(300, 'x'),
                                  std::string(5000, 'x'),
                                  dir / "loop",
                                  dir / "fifo.csv",
                                  std::string("/dev/zero"),
                                  std::string("/dev/null")}) {
    for (const char* name : {"DataframeDatamodule", "FolderDatamodule"}) {
      EXPECT_NE(
          message_of([&] {
            make(std::string("{_target_: ") + name + ", path: '" + path + "', columns: [raw]}")
                ->items(data::Split::train);
          }),
          "nothing was thrown");
    }
  }
}

/// DataframeDatamodule over one manifest of the text `csv`; a.tif to e.tif are there.
std::shared_ptr<data::DataModule> of_csv(const test::TmpDir& dir,
                                         const std::string& csv,
                                         const std::string& more) {
  for (const char* name : {"a", "b", "c", "d", "e"}) touch(dir / (std::string(name) + ".tif"));
  touch(dir / "m.csv", csv);
  return make("{_target_: DataframeDatamodule, path: '" + (dir / "m.csv") + "', " + more + "}");
}

std::string names_of(const std::vector<data::Sample>& samples) {
  std::string names;
  for (const data::Sample& sample : samples) names += fs::path(sample.id).stem().string();
  return names;
}

TEST(DataframeDatamodule, SplitsOneManifestByAColumn) {
  const test::TmpDir dir;
  const std::string csv = "raw,kind\na.tif,training\nb.tif,val\nc.tif,hold\nd.tif,train\n";
  const auto module = of_csv(dir, csv, "columns: raw, split_column: kind, split_map: {hold: test}");
  EXPECT_EQ(names_of(module->items(data::Split::train)), "ad");
  EXPECT_EQ(names_of(module->items(data::Split::valid)), "b");
  EXPECT_EQ(names_of(module->items(data::Split::test)), "c");
  EXPECT_EQ(names_of(module->items(data::Split::predict)), "abcd");

  const auto message = [&](const std::string& more) {
    return message_of([&] { of_csv(dir, csv, more)->items(data::Split::train); });
  };
  EXPECT_NE(message("columns: raw, split_column: kind").find("m.csv:4: column 'kind' is 'hold'"),
            std::string::npos)
      << message("columns: raw, split_column: kind");
  EXPECT_NE(message("columns: raw, split_column: kid").find("Did you mean 'kind'?"),
            std::string::npos);
  EXPECT_NE(message("columns: raw").find("split_column"), std::string::npos);
  EXPECT_NE(message("columns: raw, split_map: {hold: tst}").find("Did you mean 'test'?"),
            std::string::npos);
  EXPECT_NE(message("columns: raw, refresh_subsample: true").find("limit_train_batches"),
            std::string::npos);
}

TEST(DataframeDatamodule, JustInferenceTakesEveryRow) {
  const test::TmpDir dir;
  const auto module = of_csv(dir, "raw,kind\na.tif,x\nb.tif,y\n", "just_inference: true");
  EXPECT_EQ(names_of(module->items(data::Split::test)), "ab");
  EXPECT_NE(message_of([&] { module->items(data::Split::train); }).find("just_inference"),
            std::string::npos);
}

TEST(DataframeDatamodule, AFolderWithoutPredictGivesAllItsManifests) {
  const test::TmpDir dir;
  for (const char* name : {"train", "valid", "test"}) {
    touch(dir / (name[0] + std::string(".tif")));
    touch(dir / (std::string(name) + ".csv"), std::string("raw\n") + name[0] + ".tif\n");
  }
  const auto module = make("{_target_: DataframeDatamodule, path: '" + dir.path() + "'}");
  EXPECT_EQ(names_of(module->items(data::Split::predict)), "tvt");
}

TEST(DataframeDatamodule, SubsamplesWithoutReplacementBySeed) {
  const test::TmpDir dir;
  const std::string csv =
      "raw,kind\na.tif,train\nb.tif,train\nc.tif,train\nd.tif,train\ne.tif,test\n";
  const auto train = [&](const std::string& subsample, const std::string& more = "") {
    return names_of(
        of_csv(dir, csv, "split_column: kind, subsample: {train: " + subsample + "}" + more)
            ->items(data::Split::train));
  };
  std::map<std::string, int> seen;
  for (int seed = 0; seed < 120; ++seed) ++seen[train("2", ", seed: " + std::to_string(seed))];
  EXPECT_EQ(seen.size(), 6U);  // every pair of four
  for (const auto& [names, count] : seen) {
    EXPECT_LT(names[0], names[1]);
    EXPECT_GT(count, 5);  // 20 expected
  }
  EXPECT_EQ(train("2"), train("2"));
  EXPECT_EQ(train("0.25").size(), 1U);
  EXPECT_EQ(train("0.5").size(), 2U);
  for (const char* all : {"1.0", "-1", "null", "100"}) EXPECT_EQ(train(all), "abcd");
  for (const char* wrong : {"0", "-2", "1.5", "0.0", "some"}) {
    EXPECT_NE(message_of([&] { train(wrong); }).find("share"), std::string::npos) << wrong;
  }
}

TEST(DataframeDatamodule, ColumnsSelectTheImageOfAFile) {
  const test::TmpDir dir;
  const auto module =
      of_csv(dir,
             "raw,seg,channel,scene,resolution,timepoint,seg_channel,seg_timepoint\n"
             "a.tif,b.tif,\"0,2\",1,2,3.0,,\n"
             "a.tif,b.tif,,,,,1,\n",
             "columns: [raw, seg], just_inference: true");
  const auto items = module->items(data::Split::test);
  ASSERT_EQ(items.size(), 2U);
  const data::Source& raw = items[0].sources.at("raw");
  EXPECT_EQ(raw.selection.channels, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(raw.selection.scene, 1);
  EXPECT_EQ(raw.selection.level, 2);
  EXPECT_EQ(raw.selection.timepoint, 3);
  EXPECT_TRUE(raw.has_level);
  const data::Source& seg = items[0].sources.at("seg");
  EXPECT_TRUE(seg.selection.channels.empty());  // seg_channel stands in for channel
  EXPECT_EQ(seg.selection.scene, 1);
  EXPECT_EQ(seg.selection.timepoint, -1);
  EXPECT_EQ(items[1].sources.at("raw").selection.scene, -1);
  EXPECT_EQ(items[1].sources.at("seg").selection.channels, std::vector<int64_t>{1});
  EXPECT_EQ(items[1].sources.at("raw").selection.timepoint, -1);

  const auto message = [&](const std::string& csv) {
    return message_of([&] { of_csv(dir, csv, "just_inference: true")->items(data::Split::test); });
  };
  EXPECT_NE(message("raw,channel\na.tif,GFP\n").find("m.csv:2: column 'channel' is 'GFP'"),
            std::string::npos);
  EXPECT_NE(message("raw,scene\na.tif,-2\n").find("expected a number from 0"), std::string::npos);
  EXPECT_NE(message("raw,start,stop,step\na.tif,0,5,0\n").find("at least 1"), std::string::npos);
  EXPECT_NE(message("raw,start,stop\na.tif,5,2\n").find("there are no such time points"),
            std::string::npos);
  EXPECT_NE(message("raw,start,stop\na.tif,0,99999999999\n").find("1000000"), std::string::npos);
  EXPECT_NE(message("raw,resolution\na.tif,\"0,1\"\n").find("one number"), std::string::npos);
}

TEST(DataframeDatamodule, TimePointsAndScenesAreSamplesOfTheirOwn) {
  const test::TmpDir dir;
  const auto times = [](const std::vector<data::Sample>& items) {
    std::vector<int64_t> result;
    for (const data::Sample& item : items)
      result.push_back(item.sources.at("raw").selection.timepoint);
    return result;
  };
  const auto of = [&](const std::string& csv) {
    return of_csv(dir, csv, "just_inference: true")->items(data::Split::test);
  };
  // CytoDL: range(start, stop + 1, step)
  EXPECT_EQ(times(of("raw,start,stop,step\na.tif,1,8,3\n")), (std::vector<int64_t>{1, 4, 7}));
  EXPECT_EQ(times(of("raw,stop\na.tif,2\n")), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(times(of("raw,timepoint\na.tif,\"4,2\"\n")), (std::vector<int64_t>{4, 2}));
  const auto both = of("raw,scene,timepoint\na.tif,\"Image:0,Image:1\",\"5,6\"\n");
  ASSERT_EQ(both.size(), 4U);
  EXPECT_EQ(both[1].sources.at("raw").selection.timepoint, 6);
  EXPECT_EQ(both[2].sources.at("raw").selection.scene, 1);
  // One label for all time points.
  const auto labelled = of("raw,seg,timepoint,seg_timepoint\na.tif,b.tif,\"0,1\",\n");
  ASSERT_EQ(labelled.size(), 2U);
  EXPECT_EQ(labelled[1].sources.at("seg").selection.timepoint, -1);
  EXPECT_NE(message_of([&] {
              of("raw,seg,timepoint,seg_timepoint\na.tif,b.tif,\"0,1\",\"0,1,2\"\n");
            }).find("m.csv:2: column 'raw' gives 2 images"),
            std::string::npos);
}

TEST(FolderDatamodule, TimePointsThatImageAndTargetShareAreSamples) {
  const test::TmpDir dir;
  const auto lapse = [&](const std::string& path, int64_t times) {
    std::filesystem::create_directories(std::filesystem::path(dir / path).parent_path());
    io::ImageInfo info;
    info.shape = {1, 1, 4, 4};
    info.timepoints = times;
    io::Image image;
    image.shape = info.shape;
    image.pixels.resize(16);
    io::OmeTiffWriter writer(dir / path, info);
    for (int64_t time = 0; time < times; ++time) writer.write({}, image, time);
    writer.finish();
  };
  const auto times = [&](const std::string& more) {
    const auto module = make("{_target_: FolderDatamodule, path: '" + dir.path() +
                             "', columns: [raw, seg], valid_fraction: 0" + more + "}");
    std::vector<int64_t> result;
    for (const data::Sample& item : data::items_of(*module, data::Split::train)) {
      result.push_back(item.sources.at("raw").selection.timepoint);
      EXPECT_EQ(item.sources.at("seg").selection.timepoint, result.back());
    }
    return result;
  };
  for (const char* name : {"raw/a.tif", "seg/a.tif"}) lapse(name, 3);
  for (const char* name : {"raw/b.tif", "seg/b.tif"}) lapse(name, 2);
  EXPECT_EQ(times(""), (std::vector<int64_t>{0, 1, 2, 0, 1}));
  EXPECT_EQ(times(", transforms: {train: [{_target_: LoadImaged, keys: [raw], timepoint: 1}]}"),
            (std::vector<int64_t>{-1, -1}));
  lapse("seg/a.tif", 1);  // one target of several time points: they may be channels
  EXPECT_EQ(times(""), (std::vector<int64_t>{-1, -1}));
}

TEST(DataframeDatamodule, WeightsAndOtherColumns) {
  const test::TmpDir dir;
  const auto items = of_csv(dir,
                            "raw,seg,base,w\na.tif,b.tif,seg,2.5\nc.tif,d.tif,raw,0\n,,,\n",
                            "columns: [raw, seg, base], weight_column: w, just_inference: true")
                         ->items(data::Split::test);
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[0].weight, 2.5);
  EXPECT_EQ(items[1].weight, 0);
  EXPECT_EQ(items[0].columns, (std::map<std::string, std::string>{{"base", "seg"}}));
  EXPECT_EQ(items[0].sources.size(), 2U);
  for (const char* wrong : {"-1", "nan", "much", ""}) {
    EXPECT_NE(message_of([&] {
                of_csv(dir,
                       std::string("raw,w\na.tif,") + wrong + "\n",
                       "weight_column: w, just_inference: true")
                    ->items(data::Split::test);
              }).find("m.csv:2: column 'w' is"),
              std::string::npos)
        << wrong;
  }
  EXPECT_NE(message_of([&] {
              of_csv(dir, "raw\nword\n", "just_inference: true")->items(data::Split::test);
            }).find("no images"),
            std::string::npos);
}

TEST(DataframeDatamodule, EveryWrongRowIsNamedUpTo20) {
  const test::TmpDir dir;
  std::string csv = "raw\na.tif\n";
  for (int i = 0; i < 25; ++i) csv += "none" + std::to_string(i) + ".tif\n";
  csv += std::string(5000, 'x') + ".tif\n";
  const std::string message =
      message_of([&] { of_csv(dir, csv, "just_inference: true")->items(data::Split::test); });
  EXPECT_NE(message.find("m.csv:3: "), std::string::npos);
  EXPECT_NE(message.find("m.csv:22: "), std::string::npos);
  EXPECT_EQ(message.find("m.csv:23: "), std::string::npos);
  EXPECT_NE(message.find("and 6 rows more"), std::string::npos) << message;
}

TEST(DataframeDatamodule, ReadsTheTableAsPandas) {
  const config::Node golden =
      config::load_yaml(std::string(CYTRA_SOURCE_DIR) + "/tests/golden/datasets.json");
  const test::TmpDir dir;
  touch(dir / "a,1.tif");
  const auto items =
      of_csv(
          dir, golden.get<std::string>("manifest.text"), "weight_column: w, just_inference: true")
          ->items(data::Split::test);
  const auto& rows = test::at_least(2, golden.at("manifest.rows").list);
  ASSERT_EQ(items.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(items[i].id, dir / rows[i].list[0].as<std::string>());
    EXPECT_EQ(items[i].columns.at("note"), rows[i].list[1].as<std::string>());
    EXPECT_EQ(items[i].weight, rows[i].list[2].as<double>());
  }
}

TEST(FolderDatamodule, PairsImagesByNameAndHoldsSomeOut) {
  const test::TmpDir dir;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    touch(dir / ("raw/" + std::string(name) + ".ome.tif"));
    touch(dir / ("seg/" + std::string(name) + ".png"));
  }
  const std::string text = "{_target_: FolderDatamodule, path: '" + dir.path() +
                           "', columns: [raw, seg], valid_fraction: 0.4}";
  const auto train = make(text)->items(data::Split::train),
             valid = make(text)->items(data::Split::valid);
  ASSERT_EQ(train.size(), 3U);
  ASSERT_EQ(valid.size(), 2U);
  EXPECT_EQ(train[0].sources.at("seg").path, dir / "seg/a.png");
  EXPECT_EQ(valid[0].id, dir / "raw/d.ome.tif");
  fs::remove(dir / "seg/b.png");
  EXPECT_NE(message_of([&] { make(text)->items(data::Split::train); }).find("raw/b.ome.tif"),
            std::string::npos);
}

TEST(FolderDatamodule, NamesPairWhateverFormTheirLettersHave) {
  const test::TmpDir dir;
  touch(dir / "raw/Mu\u0308ller.tif");
  touch(dir / "seg/M\u00fcller.tif");
  const auto items = make("{_target_: FolderDatamodule, path: '" + dir.path() +
                          "', columns: [raw, seg], valid_fraction: 0}")
                         ->items(data::Split::train);
  EXPECT_EQ(items.at(0).sources.at("seg").path, dir / "seg/M\u00fcller.tif");
}

TEST(FolderDatamodule, TakesSplitFolders) {
  const test::TmpDir dir;
  touch(dir / "train/raw/a.tif");
  touch(dir / "valid/raw/b.tif");
  const auto module =
      make("{_target_: FolderDatamodule, path: '" + dir.path() + "', columns: raw}");
  EXPECT_EQ(module->items(data::Split::valid)[0].id, dir / "valid/raw/b.tif");
  EXPECT_NE(message_of([&] { module->items(data::Split::test); }).find("no such folder"),
            std::string::npos);
}

TEST(FolderDatamodule, NamesTheFoldersThatHaveImages) {
  const test::TmpDir dir;
  touch(dir / "image/a.tif");
  touch(dir / "label/a.tif");
  touch(dir / "notes/a.txt");
  const std::string hint = "images are in image, label: data=folder 'data.folders=[image,label]'";
  for (const char* kind : {"FolderDatamodule", "DataframeDatamodule"}) {
    const auto module = make(std::string("{_target_: ") + kind + ", path: '" + dir.path() +
                             "', columns: [raw, seg]}");
    EXPECT_NE(message_of([&] { module->items(data::Split::train); }).find(hint), std::string::npos);
  }
}

TEST(DataframeDatamodule, SaysWhatToTypeForImagesAlone) {
  const test::TmpDir dir;
  touch(dir / "t1.nii.gz");
  touch(dir / "gm.nii.gz");
  const auto said_of = [](const std::string& path) {
    const auto module =
        make("{_target_: DataframeDatamodule, path: '" + path + "', columns: [raw, seg]}");
    return message_of([&] { module->items(data::Split::train); });
  };
  EXPECT_NE(said_of(dir.path()).find("train.csv with the columns raw,seg says in each row"),
            std::string::npos);
  EXPECT_EQ(said_of(dir / "t1.nii.gz"),
            "data.path: " + dir / "t1.nii.gz" +
                ": an image, expected its folder, or a table with the columns raw and seg whose "
                "rows name images and what belongs to them");
}

TEST(FolderDatamodule, FiltersAndPairsByNames) {
  const test::TmpDir dir;
  for (const char* name : {"x1_raw.tif",
                           "x1_seg.tif",
                           "x2_raw.tif",
                           "x2_seg.png",
                           "y1_raw.tif",
                           "y1_seg.tif",
                           "._x1_raw.tif",
                           "notes.txt"})
    touch(dir / name);
  const auto train = [&](const std::string& more) {
    return make("{_target_: FolderDatamodule, path: '" + dir.path() +
                "', columns: [raw, seg], folders: ['.', '.'], valid_fraction: 0, " + more + "}")
        ->items(data::Split::train);
  };
  const auto by_group = train("regex: ['(.*)_raw', '(.*)_seg']");
  ASSERT_EQ(by_group.size(), 3U);
  EXPECT_EQ(by_group[1].sources.at("raw").path, dir / "x2_raw.tif");
  EXPECT_EQ(by_group[1].sources.at("seg").path, dir / "x2_seg.png");
  EXPECT_EQ(train("regex: ['(x.*)_raw', '(.*)_seg']").size(), 2U);
  EXPECT_EQ(train("regex: ['(.*)_raw', '(.*)_seg'], startswith: y").size(), 1U);
  EXPECT_EQ(train("regex: ['(.*)_raw', '(.*)_seg'], excludes: y").size(), 2U);
  EXPECT_EQ(train("regex: ['(.*)_raw', '(.*)_seg'], contains: ['1', '']").size(), 2U);
  EXPECT_EQ(train("regex: ['(.*)_raw', '(.*)_seg'], endswith: ['2_raw.tif', '']").size(), 1U);
  touch(dir / "x1_seg.png");
  EXPECT_NE(message_of([&] { train("regex: ['(.*)_raw', '(.*)_seg']"); }).find("several images"),
            std::string::npos);
  EXPECT_NE(message_of([&] { train("regex: '('"); }).find("regular expression"), std::string::npos);
  EXPECT_NE(message_of([&] { train("contains: [a, b, c]"); }).find("one for each column"),
            std::string::npos);
  EXPECT_NE(message_of([&] { train("contains: zzz"); }).find("no images"), std::string::npos);
}

TEST(FolderDatamodule, RecursesAndKeepsNamesWithDotsApart) {
  const test::TmpDir dir;
  for (const char* name : {"raw/p/a.ome.tif", "seg/p/a.png", "raw/q/a.nii.gz", "seg/q/a.tif"})
    touch(dir / name);
  const std::string text = "{_target_: FolderDatamodule, path: '" + dir.path() +
                           "', columns: [raw, seg], valid_fraction: 0, recursive: ";
  const auto items = make(text + "true}")->items(data::Split::train);
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[0].sources.at("seg").path, dir / "seg/p/a.png");
  EXPECT_EQ(items[1].sources.at("seg").path, dir / "seg/q/a.tif");
  EXPECT_NE(message_of([&] { make(text + "false}")->items(data::Split::train); }).find("no images"),
            std::string::npos);
  for (const char* name : {"raw/v.1.tif", "raw/v.2.tif", "seg/v.1.png", "seg/v.2.png"})
    touch(dir / name);
  const auto flat = make(text + "false}")->items(data::Split::train);
  ASSERT_EQ(flat.size(), 2U);
  EXPECT_EQ(flat[1].sources.at("seg").path, dir / "seg/v.2.png");
}

}  // namespace
}  // namespace cytra
