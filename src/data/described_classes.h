#pragma once
// The classes that `train --plan` plans for: by the targets' values, and by the data set's own
// description.
#include <string>
#include <vector>

#include "data/description.h"
#include "data/survey.h"

namespace cytra::data {

/// Takes what the description says: its labels, without the ignored one, also those that no image
/// has; CT where all channels have that name. Warns of channels whose normalisation is another.
/// Throws: ConfigError for regions, and for values in the targets that the description does not
/// name.
void follow(const DatasetDescription& description, std::vector<ClassFacts>& labels, bool& is_ct);

/// Their number; 1 for a mask. `why`: a sentence. Throws: ConfigError where labels are no classes.
int64_t classes_of(const std::vector<ClassFacts>& labels, std::string& why);

}  // namespace cytra::data
