#pragma once
// POST /preview: an image comes; a picture of it and a picture of its result go, for a page that
// lays one over the other.
#include <memory>

#include "app/serve/served_model.h"
#include "app/serve/spool.h"

namespace cytra::app {

/// Answers a request whose body is an image with multipart/form-data of three parts: `image`, a
/// PNG of a plane, in grey or RGB from its 1st to its 99.8th percentile; `result`, a PNG of the
/// same pixels; `about`, JSON. Its `kind` says what the pixels of `result` are: "probability",
/// grey, 255 stands for 1 (of a mask of one channel, unless `save` asks for another form);
/// "labels", red + 256 green + 65536 blue is the number of a class or an object; "image", as
/// `image`. Of a stack it is the middle plane or that of the parameter `plane`; of planes above
/// 2048 a side it is every `step`-th pixel. Throws: HttpError for its parameters.
void preview_image(ServedModel& model, const std::shared_ptr<HttpExchange>& exchange, Spool& spool);

}  // namespace cytra::app
