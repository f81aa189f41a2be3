#pragma once
namespace cytra {
/// "0.1.0 (1a2b3c4)": release and commit.
const char* version();
}  // namespace cytra
