#include "app/serve/http/request_progress.h"

#include <algorithm>

#include "app/serve/http/http.h"
#include "base/strings.h"

namespace cytra::app {
namespace {

void check_request_id(const std::string& id) {
  const bool is_fine = !id.empty() && id.size() <= 64 && std::ranges::all_of(id, [](char c) {
    return is_letter(c) || is_digit(c) || c == '_' || c == '-';
  });
  if (!is_fine)
    throw HttpError(400,
                    "request_id=" + printable(id, 70) +
                        ": expected 1 to 64 letters, digits, _ and -, as of a UUID");
}

}  // namespace

void RequestProgress::expect(int64_t images) {
  const std::lock_guard lock(mutex_);
  images_ = images;
}

void RequestProgress::add(int64_t& counted, int64_t done, int64_t total) {
  const std::lock_guard lock(mutex_);
  if (per_image_ == 0) per_image_ = total;
  const int64_t now = std::max(counted, done * per_image_ / total);
  done_ += now - counted;
  counted = now;
}

RequestProgress::Windows RequestProgress::windows() const {
  const std::lock_guard lock(mutex_);
  return {done_, images_ * per_image_};
}

void RequestProgress::end() {
  board_.remove(id_);
}

std::shared_ptr<RequestProgress> ProgressBoard::add(const std::string& id) {
  check_request_id(id);
  auto made = std::make_shared<RequestProgress>(*this, id);
  const std::lock_guard lock(mutex_);
  if (!requests_.emplace(id, made).second)
    throw HttpError(409, "request_id=" + id + ": is that of a request under way");
  return made;
}

RequestProgress::Windows ProgressBoard::find(const std::string& id) const {
  check_request_id(id);
  const std::lock_guard lock(mutex_);
  const auto found = requests_.find(id);
  if (found == requests_.end())
    throw HttpError(404, id + ": no request under way has this request_id");
  return found->second->windows();
}

void ProgressBoard::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  requests_.erase(id);
}

}  // namespace cytra::app
