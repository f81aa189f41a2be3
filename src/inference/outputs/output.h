#pragma once
// The outputs that the result of an image is written to: each kind is a file in this folder that
// registers itself.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/tensor_fwd.h"

namespace cytra::inference {

class ImageResult;
class ResultObjects;

/// The kind ("prediction", "overlay") and path of each written file.
using ResultFiles = std::vector<std::pair<std::string, std::string>>;

/// The place of an image's outputs, and data for them that the result does not have.
struct OutputPlace {
  std::string stem;             // of the files' names, with the folder
  std::string source = "";      // the image's path: format=auto writes images as this one
  std::string format = "auto";  // of images: one of predict.format
  /// The name of a class by its number; null: the task has no names.
  std::function<std::string(int64_t number)> class_name = {};
};

class ResultOutput {
 public:
  virtual ~ResultOutput() = default;
  /// Whether it needs objects, and so the whole image; else it gets rows when they are made.
  virtual bool takes_objects() const { return false; }
  /// Whether one that takes objects takes those of one channel as rows of their numbers, too. Then
  /// ImageResult::is_whole() may be false, and no ResultObjects come. (No rows of classes: their
  /// components come, after the last ones.)
  virtual bool takes_object_rows() const { return false; }
  /// Writes the next rows of `result`, (C,count,...), as result.info().dtype (labels may be int32
  /// here); all rows of a result that is kept whole.
  virtual void take(const ImageResult& /*result*/, const Tensor& /*rows*/) {}
  /// Writes the objects of the next channel.
  virtual void take(const ImageResult& /*result*/, const ResultObjects& /*objects*/) {}
  /// Finishes the output and adds its files to `files`. The last output of an image is finished
  /// first. Throws: what AtomicFile throws.
  virtual void finish(ResultFiles& files) = 0;
};

using MakeOutput = std::unique_ptr<ResultOutput> (*)(const OutputPlace& place);
/// Registers an output. `group`: "contours" has the choices of predict.contours.
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
/// Makes an output by its name: image, overlay, table, geojson, imagej_roi. Throws: ConfigError
/// for another name; what expect_replaceable() throws for a foreign file in its place.
std::unique_ptr<ResultOutput> make_result_output(const std::string& name, const OutputPlace& place);

}  // namespace cytra::inference
