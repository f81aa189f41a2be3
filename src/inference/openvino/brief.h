#pragma once
#include <string>

namespace cytra::inference {

/// The message without the places in OpenVINO's source such as "Exception from src/...:117:".
std::string brief_openvino(const std::string& what);

}  // namespace cytra::inference
