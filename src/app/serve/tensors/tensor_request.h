#pragma once
// The Open Inference Protocol, version 2, with its binary extension: tensors come, tensors go.
// https://github.com/open-inference/open-inference-protocol
// https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_binary_data.md
#include <memory>

#include "app/serve/models/served_model.h"
#include "app/serve/tensors/shared_regions.h"

namespace cytra::app {

/// The model's inputs and outputs: `image` (N,C,[D,]H,W), and an output for each form of result.
HttpResponse describe_tensors(ServedModel& model);
/// Answers a request of the protocol. Its input is one image, or N of one size, of any numbers:
/// (N,C,[D,]H,W), (C,[D,]H,W) or ([D,]H,W), with the values of a file, or, with the parameter
/// transforms=false, of the model's own input. Throws: HttpError.
void predict_tensors(ServedModel& model,
                     const std::shared_ptr<HttpExchange>& exchange,
                     const SharedRegions& regions);

}  // namespace cytra::app
