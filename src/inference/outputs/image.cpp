// Results as images: in the format that was asked for, or that of the image.
#include "inference/outputs/image.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/own_files.h"
#include "base/strings.h"
#include "data/image_tensor.h"
#include "inference/outputs/output.h"
#include "inference/result.h"
#include "io/reader.h"
#include "io/writer.h"

namespace cytra::inference {
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

/// PNG holds 8- or 16-bit integers, in a plane of one value or three.
bool fits_png(const io::ImageInfo& info) {
  return info.shape[1] == 1 && (info.shape[0] == 1 || info.shape[0] == 3) &&
         (info.dtype == io::Dtype::u8 || info.dtype == io::Dtype::u16);
}

std::string format_of(const std::string& source,
                      const io::ImageInfo& info,
                      const std::string& format) {
  if (format != "auto") return format;
  const Ending* ending = ending_of(source);
  const std::string own = ending == nullptr ? "ome_tiff" : ending->format;
  return own == "png" && !fits_png(info) ? "ome_tiff" : own;
}

class ImageOutput final : public ResultOutput {
 public:
  explicit ImageOutput(OutputPlace place) : place_(std::move(place)) {}
  void take(const ImageResult& result, const at::Tensor& rows) override {
    const io::ImageInfo& info = result.info();
    if (!writer_) {
      io::OutputOptions options;
      options.is_labels = info.dtype != io::Dtype::f32;
      path_ = output_path(place_.stem, place_.source, info, place_.format);
      expect_replaceable(path_);
      writer_ = io::create_image(path_, info, options);
    }
    writer_->write(data::to_image(rows, info.dtype, {}));
  }
  void finish(ResultFiles& files) override {
    writer_->finish();
    files.emplace_back("prediction", path_);
  }

 private:
  const OutputPlace place_;
  std::string path_;
  std::unique_ptr<io::ImageWriter> writer_;
};

const bool image_output_is_added = add_result_output<ImageOutput>("image", "image");

}  // namespace

std::string stem_of_image(const std::string& path) {
  const std::string file = io::file_of(path);
  fs::path last = fs::path(file).lexically_normal();
  if (!last.has_filename()) last = last.parent_path();  // "in/series/"
  std::string stem = last.filename().string();
  if (const Ending* ending = ending_of(stem)) stem.resize(stem.size() - std::strlen(ending->text));
  std::string within = path.substr(file.size());  // of an HDF5 file
  std::replace(within.begin(), within.end(), '/', '_');
  return stem + within;
}

std::string output_path(const std::string& stem,
                        const std::string& source,
                        const io::ImageInfo& info,
                        const std::string& given) {
  const std::string format = format_of(source, info, given);
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

}  // namespace cytra::inference
