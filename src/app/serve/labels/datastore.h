#pragma once
// A folder of images that annotators work on, with their labels in labels/TAG/, as MONAI Label's.
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace cytra::app {

/// Thread: any; every function sees and leaves the folder whole, also beside another server of it.
/// What lists images throws HttpError (409) where two of them differ in their endings alone: one
/// name can't stand for both. Of two such labels, which a server that is killed may leave, the
/// newer one counts.
class Datastore {
 public:
  using Files = std::map<std::string, std::string>;  // paths by the images' names

  /// Throws: ConfigError where there is no such folder, or two images have one name.
  explicit Datastore(std::string folder);
  Files images() const;
  /// The labels of a tag ("final", "original").
  Files labels(const std::string& tag) const;
  /// The images that have no final label.
  Files unlabelled() const;
  /// The images that have one: the paths of both.
  std::map<std::string, std::pair<std::string, std::string>> labelled() const;
  /// The tags that there are, with the numbers of their labels.
  std::map<std::string, int64_t> tags() const;
  /// The path of an image. Throws: HttpError (404).
  std::string image(const std::string& id) const;
  /// The path and the content of an image, or of its label. Throws: HttpError (404).
  std::pair<std::string, std::string> read_image(const std::string& id) const;
  std::pair<std::string, std::string> read_label(const std::string& id,
                                                 const std::string& tag) const;
  /// Writes a file; its ending is that of `filename`. Throws: HttpError (400) for names that can't
  /// be used, (409) for an image that is there; what AtomicFile throws.
  void add_image(const std::string& id,
                 const std::string& filename,
                 const std::string& content) const;
  void save_label(const std::string& id,
                  const std::string& tag,
                  const std::string& filename,
                  const std::string& content) const;
  /// Throws: HttpError (404).
  void remove_image(const std::string& id) const;
  void remove_label(const std::string& id, const std::string& tag) const;

 private:
  class Hold;
  std::string label_folder(const std::string& tag) const;
  const std::string folder_;
  mutable std::mutex mutex_;
};

}  // namespace cytra::app
