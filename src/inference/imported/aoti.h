#pragma once
// AOTInductor packages, written by torch._inductor.aoti_compile_and_package.
#include <string>

#include "inference/imported/program.h"

namespace cytra::inference {

Program open_aoti(const std::string& path);

}  // namespace cytra::inference
