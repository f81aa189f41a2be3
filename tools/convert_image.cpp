// convert_image: an image of any format that is read, in another. See `convert_image --help`.
#include <algorithm>

#include <CLI/CLI.hpp>

#include "cli/program.h"
#include "io/writer.h"

namespace {

using cytra::config::Node;
using namespace cytra::io;

void convert(const std::string& input,
             const std::string& output,
             const Selection& selection,
             bool json) {
  const auto reader = open_image(input, selection);
  ImageInfo info = reader->info();
  info.scenes = info.levels = info.timepoints = 1;
  const auto writer = create_image(output, info);
  // The outer axis goes in parts of some 64 MB.
  const std::size_t axis = info.shape[1] > 1 ? 0 : 1;
  int64_t row_bytes = static_cast<int64_t>(size_of(info.dtype)) * info.shape[0];
  for (std::size_t d = axis + 2; d < 4; ++d) row_bytes *= info.shape[d];
  const int64_t rows = std::max<int64_t>(1, (int64_t{64} << 20) / std::max<int64_t>(1, row_bytes));
  for (int64_t first = 0; first < writer->rows(); first += rows) {
    Region region;
    region.begin[axis] = first;
    region.size[axis] = std::min(rows, writer->rows() - first);
    writer->write(region, reader->read(region));
  }
  writer->finish();
  cytra::cli::Results results(json);
  results.add("output", output);
  results.add("shape", Node::make_list(std::vector<int64_t>(info.shape.begin(), info.shape.end())));
  results.add("dtype", name_of(info.dtype));
  results.add("spacing_um",
              Node::make_list(std::vector<double>(info.geometry.spacing_um.begin(),
                                                  info.geometry.spacing_um.end())));
  results.print();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Writes an image of any format that is read (TIFF, NIfTI, DICOM, NRRD, OME-Zarr, HDF5, NumPy "
      "...) in that which the output's ending names: .ome.tif, .nii.gz, .nrrd, .mha, .npy, .png, "
      ".zarr. Values, spacing and place in the world stay.",
      "convert_image");
  std::string input, output;
  Selection selection;
  app.add_option("INPUT", input, "the image")->required();
  app.add_option("OUTPUT", output, "the file to write")->required();
  app.add_option("--scene", selection.scene, "of a file with several; -1: the first")
      ->check(CLI::Range(-1, 1000000));
  app.add_option("--timepoint", selection.timepoint, "of a time lapse; -1: the only one")
      ->check(CLI::Range(-1, 1000000));
  app.add_option("--axes", selection.axes, "the file's axes, as data.axes: TZCYX");
  return cytra::cli::run_small(app, argc, argv, [&](bool json) {
    if (!selection.axes.empty()) check_axes(selection.axes);
    convert(input, output, selection, json);
  });
}
