#include "app/predict_output.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <filesystem>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/own_files.h"
#include "base/strings.h"
#include "data/image_tensor.h"
#include "inference/measure.h"
#include "inference/original_grid.h"
#include "io/csv.h"
#include "io/fingerprint.h"
#include "io/geojson.h"
#include "io/imagej_roi.h"
#include "io/palette.h"
#include "io/polygons.h"
#include "io/reader.h"
#include "ops/window_sums.h"
#include "tasks/annotation_targets.h"

namespace cytra::app {
namespace {

namespace fs = std::filesystem;

struct Ending {
  const char *text, *format;  // of `predict.format=auto`
};
constexpr Ending kEndings[] = {  // the longer ones first
    {".ome.tiff", "ome_tiff"}, {".ome.tif", "ome_tiff"},  {".ome.tf8", "ome_tiff"},
    {".ome.btf", "ome_tiff"},  {".ome.zarr", "ome_zarr"}, {".nii.gz", "nifti"},
    {".tiff", "ome_tiff"},     {".tif", "ome_tiff"},      {".tf8", "ome_tiff"},
    {".btf", "ome_tiff"},      {".zarr", "ome_zarr"},     {".nii", "nifti"},
    {".hdr", "nifti"},         {".npy", "npy"},           {".png", "png"},
    {".jpeg", "png"},          {".jpg", "png"},           {".jp2", "ome_tiff"},
    {".j2k", "ome_tiff"},      {".hdf5", "ome_tiff"},     {".h5", "ome_tiff"},
    {".dcm", "ome_tiff"},      {".mp4", "ome_tiff"},      {".mov", "ome_tiff"},
    {".bmp", "png"},           {".gif", "png"},           {".avi", "ome_tiff"},
    {".mkv", "ome_tiff"},      {".webm", "ome_tiff"},     {".lsm", "ome_tiff"},
    {".stk", "ome_tiff"}};

/// The ending of a file's name, whatever its case; null for none that we know.
const Ending* ending_of(std::string name) {
  for (char& letter : name)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const auto* found = std::find_if(std::begin(kEndings), std::end(kEndings), [&](const Ending& e) {
    return name.size() > std::strlen(e.text) && ends_with(name, e.text);
  });
  return found == std::end(kEndings) ? nullptr : found;
}

/// The last part of a path, without its ending: "a" of "in/a.nii.gz", "a_raw" of "a.h5/raw".
std::string stem_of(const std::string& path) {
  const std::string file = io::file_of(path);
  fs::path last = fs::path(file).lexically_normal();
  if (!last.has_filename()) last = last.parent_path();  // "in/series/"
  std::string stem = last.filename().string();
  if (const Ending* ending = ending_of(stem)) stem.resize(stem.size() - std::strlen(ending->text));
  std::string within = path.substr(file.size());  // of an HDF5 file
  std::replace(within.begin(), within.end(), '/', '_');
  return stem + within;
}

/// With room for what follows ("_overlay.png") in the 255 bytes of a name; of a longer one its
/// beginning, and what tells it from others of that beginning.
std::string short_name(const std::string& stem) {
  constexpr std::size_t kMost = 200, kDigits = 16;
  std::size_t end = kMost - kDigits - 1;
  if (stem.size() <= kMost) return stem;
  while (end > 0 && (static_cast<unsigned char>(stem[end]) & 0xc0) == 0x80)
    --end;  // within a letter
  return stem.substr(0, end) + "_" + io::fingerprint(stem).substr(0, kDigits);
}

/// PNG holds 8- or 16-bit integers, in a plane of one value or three.
bool fits_png(const io::ImageInfo& info) {
  return info.shape[1] == 1 && (info.shape[0] == 1 || info.shape[0] == 3) &&
         (info.dtype == io::Dtype::u8 || info.dtype == io::Dtype::u16);
}

std::string format_of(const std::string& source,
                      const io::ImageInfo& info,
                      const PredictOptions& options) {
  if (options.format != "auto") return options.format;
  const Ending* ending = ending_of(source);
  const std::string format = ending == nullptr ? "ome_tiff" : ending->format;
  return format == "png" && !fits_png(info) ? "ome_tiff" : format;
}

/// The smallest type that holds the labels.
io::Dtype label_dtype(const at::Tensor& labels) {
  const int64_t most = labels.numel() == 0 ? 0 : labels.max().item<int64_t>();
  return most <= UINT8_MAX ? io::Dtype::u8 : most <= UINT16_MAX ? io::Dtype::u16 : io::Dtype::u32;
}

}  // namespace

void PredictOptions::check() const {
  if (format == "png" && save != "auto" && save != "mask" && save != "labels" &&
      postprocess.list.empty()) {
    throw ConfigError(fmt::format(
        "predict.format=png holds no float32 values as predict.save={} has; use ome_tiff, nifti, "
        "ome_zarr or npy",
        save));
  }
  if (frames == "together" && format != "auto" && format != "ome_tiff" && format != "ome_zarr") {
    throw ConfigError(fmt::format(
        "predict.frames=together: predict.format={} has no time points here, expected ome_tiff or "
        "ome_zarr",
        format));
  }
}

std::string OutputNames::next(const data::Source& source) {
  std::string stem = stem_of(source.path);
  if (!source.more.empty() && ends_with(stem, "_0000")) stem.resize(stem.size() - 5);  // nnU-Net's
  if (source.selection.scene >= 0) stem += fmt::format("_s{}", source.selection.scene);
  if (source.selection.timepoint >= 0) stem += fmt::format("_t{}", source.selection.timepoint);
  return unique(short_name(stem));
}

std::string OutputNames::frame(const std::string& stem, int64_t timepoint) {
  return unique(fmt::format("{}_t{}", stem, timepoint));
}

std::string OutputNames::scene(const std::string& stem, int64_t scene) {
  return unique(fmt::format("{}_s{}", stem, scene));
}

std::string OutputNames::unique(const std::string& stem) {
  std::string unique = stem;
  while (taken_.count(unique) + taken_.count(unique + "_overlay") > 0)
    unique = fmt::format("{}_{}", stem, numbers_.try_emplace(stem, 1).first->second += 1);
  taken_.insert({unique, unique + "_overlay"});
  return unique;
}

std::string output_path(const std::string& stem,
                        const std::string& source,
                        const io::ImageInfo& info,
                        const PredictOptions& options) {
  const std::string format = format_of(source, info, options);
  if (format == "png" && !fits_png(info)) {
    throw DataError(fmt::format(
        "{}: PNG holds one plane of uint8 or uint16, not {} planes of {}; use predict.format="
        "ome_tiff, nifti, ome_zarr or npy",
        source,
        info.shape[1],
        io::name_of(info.dtype)));
  }
  return stem + (format == "nifti"      ? ".nii.gz"
                 : format == "ome_zarr" ? ".ome.zarr"
                 : format == "npy"      ? ".npy"
                 : format == "png"      ? ".png"
                                        : ".ome.tif");
}

PredictionFiles::PredictionFiles(const Common& common,
                                 std::shared_ptr<const inference::ModelInput> input,
                                 std::string stem,
                                 std::string source)
    : common_(common),
      input_(std::move(input)),
      stem_(std::move(stem)),
      source_(std::move(source)),
      keeps_all_(common.scores || !common.steps.empty() || common.options.original_grid ||
                 common.options.measurements || common.options.contours != "none") {
  const PredictOptions& options = common_.options;
  for (const char* end : {"_overlay.png", ".csv", ".geojson", "_rois.zip"}) {
    const std::string_view kind = end;
    const std::string& contours = options.contours;
    const bool is_wanted = kind == "_overlay.png" ? options.overlay
                           : kind == ".csv"       ? options.measurements
                           : kind == ".geojson"   ? contours == "geojson" || contours == "both"
                                                  : contours == "imagej_roi" || contours == "both";
    if (is_wanted) expect_replaceable(stem_ + end);
  }
  if (!takes_objects()) return;
  objects_ = std::make_unique<inference::ObjectSlabs>(common.steps, input_->sample.geometry());
  keeps_all_ = false;
}

/// Of an image that is read by rows, if nothing wants the whole of it.
bool PredictionFiles::takes_objects() const {
  const PredictOptions& options = common_.options;
  const inference::PostprocessSteps& steps = common_.steps;
  return input_->is_by_rows() && !steps.empty() && !common_.scores && !options.original_grid &&
         !options.measurements && options.contours == "none" &&
         common_.predictor.finish().channels(common_.predictor.model().out_channels) == 1 &&
         common_.predictor.decoder().is_labels(common_.predictor.form()) &&
         std::all_of(
             steps.begin(), steps.end(), [](const auto& step) { return step->works_by_objects(); });
}

/// `shape`: (C,[D,]H,W).
io::ImageInfo PredictionFiles::describe(at::IntArrayRef shape, io::Dtype dtype) const {
  io::ImageInfo image;
  image.geometry = keeps_all_ ? result_.geometry : input_->sample.geometry();
  image.shape = {
      input_->shape[0], shape.size() == 4 ? shape[1] : 1, shape[shape.size() - 2], shape.back()};
  io::ImageInfo info = common_.predictor.describe(image);
  info.dtype = dtype;
  if (info.shape[0] == shape[0]) return info;
  info.shape[0] = shape[0];  // steps have made others
  info.channel_names.assign(static_cast<std::size_t>(shape[0]), common_.predictor.y_key());
  return info;
}

/// The next rows, or all.
void PredictionFiles::put(const at::Tensor& rows, io::Dtype dtype) {
  if (!writer_) {
    std::vector<int64_t> shape = rows.sizes().vec();
    if (!keeps_all_) shape[1] = input_->shape[1];
    const io::ImageInfo info = describe(shape, dtype);
    io::OutputOptions options;
    options.is_labels = dtype != io::Dtype::f32;
    const std::string path = output_path(stem_, source_, info, common_.options);
    expect_replaceable(path);
    writer_ = io::create_image(path, info, options);
    files_.emplace_back("prediction", path);
  }
  writer_->write(data::to_image(rows, dtype, {}));
}

/// A model of others may give results of another size.
void PredictionFiles::expect_size(int64_t rows, int64_t columns) const {
  if (rows == input_->shape[1] && columns == input_->shape.back()) return;
  throw DataError(fmt::format(
      "the model's result has {} rows (or planes) and {} columns, the image {} and {}; expected a "
      "model that gives each pixel a value",
      rows,
      columns,
      input_->shape[1],
      input_->shape.back()));
}

void PredictionFiles::take(const at::Tensor& rows) {
  taken_ += rows.size(1);
  if (keeps_all_) {
    rows_.push_back(rows);
    return;
  }
  if (objects_) {
    const at::Tensor ended = objects_->add(rows[0]).unsqueeze(0);
    if (ended.numel() == 0) return;
    draw(ended);
    return put(ended, io::Dtype::u32);
  }
  expect_size(std::max(taken_, input_->shape[1]), rows.size(-1));
  draw(rows);
  put(rows, inference::dtype_of(common_.predictor.finish()));
}

void PredictionFiles::draw(const at::Tensor& values) {
  const inference::Decoder& decoder = common_.predictor.decoder();
  if (!common_.options.overlay || !(result_.is_labels || decoder.gives_labels())) return;
  if (!overlay_) overlay_ = std::make_unique<inference::OverlayRows>(shown_ ? *shown_ : *input_);
  const bool is_labels =
      result_.values.defined() ? result_.is_labels : decoder.is_labels(common_.predictor.form());
  overlay_->take(
      is_labels ? values
                : decoder.labels_of(values, common_.predictor.form(), common_.options.threshold));
}

void PredictionFiles::finish() {
  if (keeps_all_) finish_whole();
  if (!keeps_all_) expect_size(taken_, input_->shape.back());
  if (objects_) {
    const at::Tensor rest = objects_->finish().unsqueeze(0);
    if (rest.numel() > 0) {
      draw(rest);
      put(rest, io::Dtype::u32);
    }
  }
  if (overlay_) {
    const std::string path = stem_ + "_overlay.png";
    io::write_png(path, overlay_->picture());
    files_.emplace_back("overlay", path);
  }
  writer_->finish();
}

/// The decoder's steps, then the user's; in between is what is scored.
void PredictionFiles::apply_steps() {
  const auto apply = [&](auto from, auto to) {
    inference::apply_all(inference::PostprocessSteps(from, to), result_);
  };
  const auto first = common_.steps.begin(), last = common_.steps.end();
  const auto own = first + static_cast<std::ptrdiff_t>(common_.predictor.steps().size());
  auto scored = own == first ? own : last;  // of objects all steps count
  if (common_.predictor.decoder().gives_labels()) {
    scored = std::find_if(own, last, [](const auto& step) { return step->works_by_objects(); });
  }
  apply(first, scored);
  if (common_.scores) scored_ = result().clone();
  apply(scored, last);
}

void PredictionFiles::finish_whole() {
  const PredictOptions& options = common_.options;
  result_.values = at::cat(rows_, 1);
  rows_.clear();
  result_.geometry = input_->sample.geometry();
  result_.is_labels = common_.predictor.steps().empty() &&
                      common_.predictor.decoder().is_labels(common_.predictor.form());
  io::Dtype dtype = inference::dtype_of(common_.predictor.finish());
  if (!common_.steps.empty()) {
    if (result_.is_labels) result_.values = result_.values.to(at::kInt);
    apply_steps();
    dtype = result_.is_labels ? label_dtype(result_.values) : io::Dtype::f32;
  }
  if (common_.scores && common_.steps.empty()) scored_ = result();
  if (options.original_grid) {
    const std::vector<int64_t> size{input_->loaded_shape.begin() + 1, input_->loaded_shape.end()};
    if (options.overlay || options.measurements) {
      inference::Result image;
      image.values = input_->shown(0, input_->shape[1]).to(at::kFloat);
      image.geometry = result_.geometry;
      inference::to_grid(image, size, input_->loaded_geometry);
      shown_ = inference::ModelInput(image.values);
    }
    inference::to_grid(result_, size, input_->loaded_geometry);
  }
  draw(result_.values);
  put(result_.values, dtype);
  if (options.measurements || options.contours != "none") write_objects();
}

/// Of the labels; of classes and masks their connected components.
void PredictionFiles::write_objects() {
  const at::Tensor labels = result();
  if (!result_.is_labels && !common_.predictor.decoder().gives_labels()) {
    throw ConfigError(fmt::format(
        "predict.measurements, predict.contours: values of predict.save={} are no "
        "objects; expected a mask or labels: predict.postprocess=[{{_target_: Threshold, "
        "threshold: 0.5}}]",
        common_.predictor.form()));
  }
  const at::Tensor image =
      shown_ ? shown_->shown(0, shown_->shape[1]) : input_->shown(0, input_->shape[1]);
  const bool is_same_grid = image.sizes().slice(1) == labels.sizes().slice(1);
  const bool has_classes = !result_.is_objects || labels.size(0) > 1;
  inference::Measurements table;
  std::vector<io::Polygon> polygons;
  std::map<int64_t, int64_t> classes;  // by label
  int64_t first = 0;                   // labels of a channel come after those of the one before
  for (int64_t c = 0; c < labels.size(0); ++c) {
    inference::MaskObjects objects{labels[c].to(at::kInt), {}};
    if (!result_.is_objects) objects = inference::objects_of(labels[c]);
    const auto own =
        inference::measure(objects.labels, is_same_grid ? image : at::Tensor(), result_.geometry);
    table.columns = own.columns;
    for (std::vector<double> row : own.rows) {
      const auto label = static_cast<std::size_t>(row[0]);
      const int64_t kind = labels.size(0) > 1 || result_.is_objects ? c : objects.classes[label];
      row[0] += static_cast<double>(first);
      classes[first + static_cast<int64_t>(label)] = kind;
      if (has_classes) row.insert(row.begin() + 1, static_cast<double>(kind));
      table.rows.push_back(std::move(row));
    }
    if (common_.options.contours != "none") {
      for (io::Polygon& one : io::trace_labels(
               data::to_image(objects.labels.unsqueeze(0), io::Dtype::i32, result_.geometry))) {
        one.label += first;
        polygons.push_back(std::move(one));
      }
    }
    if (!own.rows.empty()) first += static_cast<int64_t>(own.rows.back()[0]);
  }
  if (has_classes) table.columns.insert(table.columns.begin() + 1, "class");
  const config::Node& task = common_.predictor.model().config.at("task");
  has_components_ = !result_.is_objects;
  if (common_.options.measurements) {
    const std::string path = stem_ + ".csv";
    std::vector<std::vector<std::string>> cells = table.cells();
    if (has_classes && tasks::has_class_names(task)) {
      table.columns.insert(table.columns.begin() + 2, "class_name");
      for (std::size_t i = 0; i < cells.size(); ++i)
        cells[i].insert(cells[i].begin() + 2,
                        io::safe_cell(tasks::class_name_of(
                            task, static_cast<int64_t>(std::lround(table.rows[i][1])))));
    }
    io::write_table(path, table.columns, cells);
    files_.emplace_back("measurements", path);
  }
  const std::string& contours = common_.options.contours;
  if (contours == "none") return;
  const bool is_stack = labels.dim() == 4;
  if (contours != "imagej_roi") {
    io::GeoJsonOptions options;
    options.is_stack = is_stack;
    if (has_classes) {
      options.describe = [&](int64_t label) {
        const int64_t kind = classes.at(label);
        const std::string name = tasks::class_name_of(task, kind);
        return io::ObjectProperties{"", name, io::label_colour(kind), {}};
      };
    }
    io::write_geojson(stem_ + ".geojson", polygons, options);
    files_.emplace_back("geojson", stem_ + ".geojson");
  }
  if (contours != "geojson" && !polygons.empty()) {  // an archive without an entry is none to Fiji
    io::write_imagej_rois(stem_ + "_rois.zip", polygons, is_stack, image.size(0));
    files_.emplace_back("rois", stem_ + "_rois.zip");
  }
}

at::Tensor PredictionFiles::result() const {
  if (result_.is_labels || !common_.predictor.decoder().gives_labels()) return result_.values;
  return common_.predictor.decoder().labels_of(
      result_.values, common_.predictor.form(), common_.options.threshold);
}

}  // namespace cytra::app
