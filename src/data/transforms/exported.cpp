// ExportedTransformd: a transform of one's own, written in Python and saved by torch.export.save
// (docs/networks.md).
#include "data/sample/per_key.h"
#include "io/fingerprint.h"
#include "io/input_file.h"
#include "nn/exported/function.h"

namespace cytra::data {
namespace {

struct ExportedTransformd : KeyOptions {
  std::string file;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("file",
      file,
      "what torch.export.save wrote of a module that makes an image (C,[D,]H,W) of an image",
      config::required);
  }
  void check() const {
    function_ =
        std::make_shared<const nn::ExportedFunction>(file, std::vector<std::string>{"image"}, 1);
  }
  /// Tells caches what the file is.
  std::string content() const { return io::fingerprint(io::read_input(file)); }
  at::Tensor operator()(const at::Tensor& image) const { return (*function_)({image}); }

 private:
  mutable std::shared_ptr<const nn::ExportedFunction> function_;
};
CYTRA_REGISTER(Transform, PerKey<ExportedTransformd>, "ExportedTransformd");

}  // namespace
}  // namespace cytra::data
