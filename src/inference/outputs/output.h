#pragma once
// What the result of an image is written as: each kind is a file of this folder that registers
// itself.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/tensor_fwd.h"

namespace cytra::inference {

class ImageResult;
class ResultObjects;

/// Kind ("prediction", "overlay") and path of what was written.
using ResultFiles = std::vector<std::pair<std::string, std::string>>;

/// Where the outputs of an image go, and what they need to know that no result says.
struct OutputPlace {
  std::string stem;             // of the files' names, with the folder
  std::string source = "";      // the image's path: format=auto writes images as this one
  std::string format = "auto";  // of images: one of predict.format
  /// The name of a class by its number; null: the task names none.
  std::function<std::string(int64_t number)> class_name = {};
};

class ResultOutput {
 public:
  virtual ~ResultOutput() = default;
  /// Whether it takes objects, which need the whole image; else it takes rows as they come.
  virtual bool takes_objects() const { return false; }
  /// The next rows of `result`, (C,count,...), to be written as result.info().dtype (labels may be
  /// int32 here); all rows of one that is kept whole.
  virtual void take(const ImageResult& /*result*/, const Tensor& /*rows*/) {}
  /// The objects of the next channel.
  virtual void take(const ImageResult& /*result*/, const ResultObjects& /*objects*/) {}
  /// All was taken: writes what is left, and adds it to `files`. The last output of an image ends
  /// first. Throws: as AtomicFile.
  virtual void finish(ResultFiles& files) = 0;
};

using MakeOutput = std::unique_ptr<ResultOutput> (*)(const OutputPlace& place);
/// Makes an output known. `group`: "contours" are the choices of predict.contours.
bool add_result_output(const char* group, const char* name, MakeOutput make);
template <class Output>
bool add_result_output(const char* group, const char* name) {
  return add_result_output(
      group, name, [](const OutputPlace& place) -> std::unique_ptr<ResultOutput> {
        return std::make_unique<Output>(place);
      });
}
/// The names of a group, sorted.
std::vector<std::string> result_outputs(const std::string& group);
/// By its name: image, overlay, table, geojson, imagej_roi. Throws: ConfigError for another name;
/// as expect_replaceable() for a file of others in its place.
std::unique_ptr<ResultOutput> make_result_output(const std::string& name, const OutputPlace& place);

}  // namespace cytra::inference
