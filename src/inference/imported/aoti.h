#pragma once
// AOTInductor: what torch._inductor.aoti_compile_and_package wrote.
#include <string>

#include "inference/imported/program.h"

namespace cytra::inference {

Program open_aoti(const std::string& path);

}  // namespace cytra::inference
