#pragma once
// Values that were set, and that nothing reads.
#include <string>
#include <vector>

#include "config/composer.h"
#include "config/problems.h"

namespace cytra::config {

/// Tells of top-level values of a composed tree that the command line, or a file that is none of
/// their group's, set although nothing reads them. Read are the program's `sections`, and what a
/// ${...} in a value that is read refers to. A value of the user's own is noted; one of
/// `components` (sections for others to refer to: "loss") was to change what is made, and is a
/// problem.
void tell_unread(const Node& composed,
                 const std::vector<IncludedFile>& files,
                 const std::vector<std::string>& sections,
                 const std::vector<std::string>& components,
                 Problems& problems);

}  // namespace cytra::config
