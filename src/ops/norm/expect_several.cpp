#include "ops/norm/expect_several.h"

#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace cytra::ops {

void expect_several(const at::Tensor& x, int64_t values, const char* norm) {
  if (values != 1) return;
  throw DataError(fmt::format(
      "{} norm of ({}): one value has no variance, expected more than 1 value per channel: a "
      "larger patch_shape or image, a smaller network, {}or another norm",
      norm,
      fmt::join(x.sizes(), ","),
      std::string_view(norm) == "batch" ? "a larger data.batch_size, data.drop_last=true where an "
                                          "epoch's last batch is short, "
                                        : ""));
}

}  // namespace cytra::ops
