#include "app/predict_output.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "io/reader.h"
#include "io/zarr/write.h"

namespace cytra::app {
namespace {

namespace fs = std::filesystem;

struct Ending {
  const char *text, *format;  // of `predict.format=auto`
};
/// The longer ones first.
constexpr Ending kEndings[] = {
    {".ome.tiff", "ome_tiff"}, {".ome.tif", "ome_tiff"},  {".ome.tf8", "ome_tiff"},
    {".ome.btf", "ome_tiff"},  {".ome.zarr", "ome_zarr"}, {".nii.gz", "nifti"},
    {".tiff", "ome_tiff"},     {".tif", "ome_tiff"},      {".tf8", "ome_tiff"},
    {".btf", "ome_tiff"},      {".zarr", "ome_zarr"},     {".nii", "nifti"},
    {".hdr", "nifti"},         {".npy", "npy"},           {".png", "png"},
    {".jpeg", "png"},          {".jpg", "png"},           {".jp2", "ome_tiff"},
    {".j2k", "ome_tiff"},      {".hdf5", "ome_tiff"},     {".h5", "ome_tiff"},
    {".dcm", "ome_tiff"},      {".mp4", "ome_tiff"},      {".mov", "ome_tiff"},
    {".avi", "ome_tiff"},      {".mkv", "ome_tiff"},      {".webm", "ome_tiff"}};

/// The ending of a file's name, whatever its case; null for none that we know.
const Ending* ending_of(std::string name) {
  for (char& letter : name)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const auto* found = std::find_if(std::begin(kEndings), std::end(kEndings), [&](const Ending& e) {
    return name.size() > std::string_view(e.text).size() && ends_with(name, e.text);
  });
  return found == std::end(kEndings) ? nullptr : found;
}

/// The last part of a path, without its ending: "a" of "in/a.nii.gz", "a_raw" of "a.h5/raw".
std::string stem_of(const std::string& path) {
  const std::string file = io::file_of(path);
  fs::path last = fs::path(file).lexically_normal();
  if (!last.has_filename()) last = last.parent_path();  // "in/series/"
  std::string stem = last.filename().string();
  if (const Ending* ending = ending_of(stem))
    stem.resize(stem.size() - std::string_view(ending->text).size());
  std::string within = path.substr(file.size());  // of an HDF5 file
  std::replace(within.begin(), within.end(), '/', '_');
  return stem + within;
}

/// PNG holds 8- or 16-bit integers, in a plane of one value or three.
bool fits_png(const io::Image& image) {
  return image.shape[1] == 1 && (image.shape[0] == 1 || image.shape[0] == 3) &&
         (image.dtype == io::Dtype::u8 || image.dtype == io::Dtype::u16);
}

std::string format_of(const std::string& source,
                      const io::Image& image,
                      const PredictOptions& options) {
  if (options.format != "auto") return options.format;
  const Ending* ending = ending_of(source);
  const std::string format = ending == nullptr ? "ome_tiff" : ending->format;
  return format == "png" && !(options.save == "mask" && fits_png(image)) ? "ome_tiff" : format;
}

}  // namespace

void PredictOptions::check() const {
  if (format == "png" && save != "mask") {
    throw ConfigError(fmt::format(
        "predict.format=png holds no float32 values as predict.save={} has; use ome_tiff, nifti, "
        "ome_zarr or npy",
        save));
  }
}

std::string OutputNames::next(const data::Source& source) {
  std::string stem = stem_of(source.path);
  if (source.selection.scene >= 0) stem += fmt::format("_s{}", source.selection.scene);
  if (source.selection.timepoint >= 0) stem += fmt::format("_t{}", source.selection.timepoint);
  std::string unique = stem;
  while (taken_.count(unique) + taken_.count(unique + "_overlay") > 0)
    unique = fmt::format("{}_{}", stem, numbers_.try_emplace(stem, 1).first->second += 1);
  taken_.insert({unique, unique + "_overlay"});
  return unique;
}

std::string write_prediction(const std::string& stem,
                             const std::string& source,
                             const io::Image& image,
                             const PredictOptions& options) {
  const std::string format = format_of(source, image, options);
  std::string path = stem;
  if (format == "nifti") {
    io::write_nifti(path += ".nii.gz", image);
  } else if (format == "ome_zarr") {
    io::ZarrOptions zarr;
    zarr.is_labels = options.save == "mask";
    io::write_ome_zarr(path += ".ome.zarr", image, zarr);
  } else if (format == "npy") {
    io::write_npy(path += ".npy", image);
  } else if (format == "png") {
    if (!fits_png(image)) {
      throw DataError(fmt::format(
          "{}: PNG holds one plane of uint8 or uint16, not {} planes of {}; use predict.format="
          "ome_tiff, nifti, ome_zarr or npy",
          source,
          image.shape[1],
          io::name_of(image.dtype)));
    }
    io::write_png(path += ".png", image);
  } else {
    io::write_ome_tiff(path += ".ome.tif", image);
  }
  return path;
}

}  // namespace cytra::app
