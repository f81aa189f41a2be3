// Descriptions of a TIFF of two pages: OME-XML, ImageJ's, tifffile's.
#include "io/tiff/directory.h"
#include "tests/fuzz/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  std::string file("II*\0\x18\0\0\0", 8);
  file.append(16, 'x');
  for (const bool is_first : {true, false}) {
    cytra::io::TiffDirectory directory(false);
    for (const uint16_t tag : {256, 257, 278}) directory.set_long(tag, 4);
    directory.set_short(258, 8);
    directory.set_short(262, 1);
    directory.set_offsets(273, {8});
    directory.set_offsets(279, {16});
    if (is_first) directory.set_text(270, std::string(reinterpret_cast<const char*>(data), size));
    const std::string alone = directory.bytes(file.size(), 0);
    file += is_first ? directory.bytes(file.size(), file.size() + alone.size()) : alone;
  }
  return cytra::fuzz::run_image(
      "a.ome.tif", reinterpret_cast<const uint8_t*>(file.data()), file.size());
}
