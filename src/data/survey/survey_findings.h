#pragma once
// Finds what is wrong, or remarkable, in a surveyed data set.
#include <string>

#include "data/survey/survey.h"

namespace cytra::data {

/// Fills in problems and notes: broken images, labels that are not on the grid of their image,
/// channels, spacings and orientations that differ, images that occur twice or in two splits.
/// `on_error`: the loader's option; images that a training leaves out or replaces are a note.
void add_findings(Survey& survey, const Trial& trial = {}, const std::string& on_error = "fail");

}  // namespace cytra::data
