#include "data/sample/annotations.h"

#include <set>

#include <ATen/ATen.h>

#include "base/error.h"
#include "data/sample/image_tensor.h"

namespace cytra::data {

at::Tensor paint_target(const std::string& path,
                        const AnnotationTarget& target,
                        const std::string& image_path,
                        const io::ImageInfo& image,
                        int64_t spatial_dims) {
  const io::AnnotatedImage frame{image_path, image.shape[1], image.shape[2], image.shape[3]};
  return to_tensor(
      io::paint_annotations(
          path, io::read_annotations(path, frame), frame, target.kind, target.class_names),
      spatial_dims,
      path);
}

std::map<std::string, std::vector<std::string>> annotation_files(const DataModule& module) {
  std::map<std::string, std::set<std::string>> found;
  for (const Split split : {Split::train, Split::valid, Split::test}) {
    if (split != Split::train && found.empty()) break;
    try {
      for (const Sample& sample : module.items(split)) {
        for (const auto& [key, source] : sample.sources)
          if (io::is_annotation_path(source.path)) found[key].insert(source.path);
      }
    } catch (const Error&) {  // reported where the split is needed
    }
  }
  std::map<std::string, std::vector<std::string>> files;
  for (const auto& [key, paths] : found) files[key].assign(paths.begin(), paths.end());
  return files;
}

}  // namespace cytra::data
