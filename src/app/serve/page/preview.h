#pragma once
// POST /preview: an image comes; a picture of it and a picture of its result go, for a page that
// lays one over the other.
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "app/serve/http/json_body.h"
#include "app/serve/models/image_request.h"

namespace cytra::app {

/// What is shown of a stack's result: of each plane, or of one.
struct ShownStack {
  std::string key;  // of the file, and how it is read
  std::weak_ptr<const PreparedModel> model;
  std::shared_ptr<const inference::ModelInput> image;
  std::vector<at::Tensor> planes;  // (C,H,W)
  int64_t first = 0;               // plane
  Json about;
  int64_t bytes() const;
};

/// The stacks that were shown last: another plane of one needs no prediction. Thread: any.
class ShownStacks {
 public:
  /// `bytes`: that they take at most.
  explicit ShownStacks(int64_t bytes) : most_(bytes) {}
  /// Null: there is none of this model.
  std::shared_ptr<const ShownStack> find(const std::string& key,
                                         const std::shared_ptr<const PreparedModel>& model);
  void add(std::shared_ptr<const ShownStack> stack);

 private:
  const int64_t most_;
  std::mutex mutex_;
  std::list<std::shared_ptr<const ShownStack>> stacks_;  // the last one first; guarded by mutex_
};

/// Returns what /preview takes, which makes pictures and no files.
const std::vector<Parameter>& preview_parameters();
/// Answers a request whose body is an image with multipart/form-data of three parts: `image`, a
/// PNG of a plane, in grey or RGB from its 1st to its 99.8th percentile; `result`, a PNG of the
/// same pixels; `about`, JSON. Its `kind` says what the pixels of `result` are: "probability",
/// grey, 255 stands for 1 (of a mask of one channel, unless `save` asks for another form);
/// "labels", red + 256 green + 65536 blue is the number of a class or an object; "image", as
/// `image`. Of a stack it is the middle plane or that of the parameter `plane`; of planes above
/// 2048 a side it is every `step`-th pixel. Throws: HttpError for its parameters.
void preview_image(ServedModel& model,
                   const std::shared_ptr<HttpExchange>& exchange,
                   RequestFolders& folders,
                   ShownStacks& stacks);

}  // namespace cytra::app
