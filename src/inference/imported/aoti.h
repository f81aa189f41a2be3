#pragma once
// AOTInductor packages, written by torch._inductor.aoti_compile_and_package.
#include <string>

#include "inference/imported/imported_model.h"

namespace cytra::inference {

ImportedModel open_aoti(const std::string& path);

}  // namespace cytra::inference
