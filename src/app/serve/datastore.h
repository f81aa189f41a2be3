#pragma once
// A folder of images that annotators work on, with their labels in labels/TAG/, as MONAI Label's.
#include <map>
#include <string>

namespace cytra::app {

/// Thread: any; files appear whole. What lists files throws HttpError (409) where two of them
/// differ in their endings alone: one name can't stand for both.
class Datastore {
 public:
  /// Throws: ConfigError where there is no such folder, or two images have one name.
  explicit Datastore(std::string folder);
  /// The images' files by their names without endings.
  std::map<std::string, std::string> images() const;
  /// The labels' files of a tag ("final", "original") by the images' names.
  std::map<std::string, std::string> labels(const std::string& tag) const;
  /// The images that have no final label, as images().
  std::map<std::string, std::string> unlabelled() const;
  /// The tags that there are.
  std::map<std::string, int64_t> tags() const;
  /// The file of an image, or of its label. Throws: HttpError (404).
  std::string image(const std::string& id) const;
  std::string label(const std::string& id, const std::string& tag) const;
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
  std::string label_folder(const std::string& tag) const;
  const std::string folder_;
};

}  // namespace cytra::app
