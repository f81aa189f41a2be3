#pragma once
#include "base/error.h"

namespace cytra {

/// Several errors of data, a line each, in which foreign text is escaped already.
struct DataErrors : DataError {
  using DataError::DataError;
};

}  // namespace cytra
