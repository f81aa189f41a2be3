#pragma once
// What is wrong, or remarkable, in a surveyed data set.
#include <string>

#include "data/survey.h"

namespace cytra::data {

/// Fills in problems and notes: broken images, labels that do not lie on their image, channels,
/// spacings and orientations that differ, images that occur twice or in two splits. `on_error`: of
/// the loader; what a training leaves out or replaces is a note.
void add_findings(Survey& survey, const Trial& trial = {}, const std::string& on_error = "fail");

}  // namespace cytra::data
