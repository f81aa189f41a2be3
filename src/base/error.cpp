#include "base/error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>
#include <numeric>
#include <utility>

#include "base/other_names.h"
#include "base/signals.h"
#include "base/strings.h"

namespace cytra {
namespace {

/// The number of insertions, deletions, changes and swaps of neighbours (Damerau 1964, optimal
/// string alignment).
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before, above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::exchange(above, row);
  }
  return above.back();
}

}  // namespace

int exit_code(const std::exception& error) noexcept {
  if (const auto* interrupted = dynamic_cast<const Interrupted*>(&error)) return interrupted->code;
  if (dynamic_cast<const ConfigError*>(&error) || dynamic_cast<const DataError*>(&error)) return 2;
  if (dynamic_cast<const IoError*>(&error)) return 4;
  if (dynamic_cast<const MemoryError*>(&error) || dynamic_cast<const std::bad_alloc*>(&error))
    return 5;
  if (dynamic_cast<const DivergedError*>(&error)) return 6;
  if (const auto* of_a_path = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    try {
      throw_errno("", "", of_a_path->code().value());
    } catch (const std::exception& known) {
      return exit_code(known);
    }
  }
  return 1;
}

std::string nearest(const std::string& word, const std::vector<std::string>& choices) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(word.size(), 3) / 3 + 1;
  for (const std::string& choice : choices) {
    const std::size_t distance = edit_distance(word, choice);
    if (distance < best_distance) {
      best = choice;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggestion(const std::string& word, const std::vector<std::string>& choices) {
  const std::string near = near_hint(word, choices);
  if (!near.empty() || choices.empty()) return near;
  const std::size_t shown = std::min<std::size_t>(choices.size(), 20);
  const std::vector<std::string> first(choices.begin(),
                                       choices.begin() + static_cast<std::ptrdiff_t>(shown));
  return " Choices: " + join(first, ", ") + (shown < choices.size() ? ", ..." : ".");
}

void throw_errno(const std::string& what, const std::string& path, int error_number) {
  const std::string message = path + ": " + what + ": " + std::strerror(error_number);
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      throw IoError(message + "; free some space or choose another folder (paths.output_dir=...)");
    case EIO:
      throw IoError(message +
                    "; the storage device reports a fault, choose another folder "
                    "(paths.output_dir=...)");
    case ENOMEM:
      throw MemoryError(message + "; end other programs, or work on smaller images and batches");
    case EMFILE:
    case ENFILE:
      throw IoError(message + "; allow more with `ulimit -n 4096`, or fewer data.num_workers");
    case EACCES:
    case EPERM:
    case EROFS:
      throw ConfigError(message +
                        "; choose a path that you may write to, or change its permissions");
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EEXIST:
    case ENAMETOOLONG:
    case ELOOP:
      throw ConfigError(message);
    default:
      throw IoError(message);
  }
}

}  // namespace cytra
