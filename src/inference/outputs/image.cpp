// Writes results as images, in the chosen format or that of the input image.
#include "inference/outputs/image.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/own_files.h"
#include "data/sample/image_tensor.h"
#include "inference/outputs/output.h"
#include "inference/outputs/result.h"
#include "io/formats.h"
#include "io/writer.h"

namespace cytra::inference {
namespace {

bool fits(const io::Format& format, const io::ImageInfo& info) {
  return format.fits == nullptr || format.fits(info);
}

const io::Format& format_of(const std::string& source,
                            const io::ImageInfo& info,
                            const std::string& asked) {
  const std::size_t zarr = source.rfind(".zarr/");  // an image of a plate is in it
  const io::Format* own = io::format_of_name(
      zarr == std::string::npos ? source : source.substr(0, source.find('/', zarr)));
  const bool is_auto = asked == "auto";
  std::string name = !is_auto ? asked : own == nullptr ? "ome_tiff" : own->written_as;
  // A series of DICOM lies in the world, which viewers of volumes read from NIfTI.
  if (is_auto && name == "ome_tiff" && !(own != nullptr && own->name == name) &&
      info.geometry.has_affine())
    name = "nifti";
  const io::Format* format = io::find_format(name);
  const bool is_right = format != nullptr && (!is_auto || fits(*format, info));
  return is_right ? *format : *io::find_format("ome_tiff");
}

class ImageOutput final : public ResultOutput {
 public:
  explicit ImageOutput(OutputPlace place) : place_(std::move(place)) {
    const io::Format* asked = io::find_format(place_.format);  // null: auto
    if (asked != nullptr && asked->expect_source != nullptr) asked->expect_source(place_.source);
  }
  void take(const ImageResult& result, const at::Tensor& rows) override {
    const io::ImageInfo& info = result.info();
    if (!writer_) {
      io::OutputOptions options;
      options.is_labels = info.dtype != io::Dtype::f32;
      options.source = place_.source;
      options.selection = result.selection_of(place_.source);
      options.are_objects = result.is_of_objects();
      options.class_name = place_.class_name;
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

std::string output_path(const std::string& stem,
                        const std::string& source,
                        const io::ImageInfo& info,
                        const std::string& format) {
  const io::Format& chosen = format_of(source, info, format);
  if (fits(chosen, info)) return stem + chosen.output_ending;
  throw DataError("{}: {} holds {}, not {} planes of {}; use predict.format={}",
                  source,
                  chosen.title,
                  chosen.holds,
                  info.shape[1],
                  io::name_of(info.dtype),
                  io::output_names([](const io::Format& one) { return one.fits == nullptr; }));
}

}  // namespace cytra::inference
