#pragma once
// Finds the classes that `train --plan` plans for, by the targets' values and the data set's own
// description.
#include <string>
#include <vector>

#include "data/datamodules/description.h"
#include "data/survey/survey.h"

namespace cytra::data {

/// Applies the description: its labels without the ignored one, including those that no image has;
/// CT where all channels have that name. Warns of channels with another normalisation.
/// Throws: ConfigError for regions, and for values in the targets that the description does not
/// name.
void follow(const DatasetDescription& description, std::vector<ClassFacts>& labels, bool& is_ct);

/// The number of classes; 1 for a mask. `why` gets a sentence about it. Throws: ConfigError where
/// labels are not classes.
int64_t classes_of(const std::vector<ClassFacts>& labels, std::string& why);

}  // namespace cytra::data
