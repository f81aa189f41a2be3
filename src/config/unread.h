#pragma once
// Finds values that were set although nothing reads them.
#include <string>
#include <vector>

#include "config/composer.h"
#include "config/problems.h"

namespace cytra::config {

/// Reports top-level values of a composed tree that the command line, or a file outside their
/// group, set although nothing reads them. The program's `sections` are read, and whatever a
/// ${...} in a value that is read refers to. A value of the user's own is noted; one of
/// `components` (sections that others refer to: "loss") was meant to change the run, and is a
/// problem.
void tell_unread(const Node& composed,
                 const std::vector<IncludedFile>& files,
                 const std::vector<std::string>& sections,
                 const std::vector<std::string>& components,
                 Problems& problems);

}  // namespace cytra::config
