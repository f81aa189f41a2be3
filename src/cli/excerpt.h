#pragma once
#include <string>

namespace cytra::cli {

/// Adds to `message` (a line for each error) the line of the file or override that each error
/// names, and a caret under the place: "a.yaml:3:5: ..." and "command line 'a=[1':4: ...".
std::string with_source(const std::string& message);

}  // namespace cytra::cli
