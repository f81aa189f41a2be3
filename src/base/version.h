#pragma once
namespace cytra {
/// The release and commit of the program: "0.1.0 (1a2b3c4)".
const char* version();
}  // namespace cytra
