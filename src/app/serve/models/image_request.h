#pragma once
// POST /predict: a file of an image comes, a file of its result goes.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/serve/http/request_folders.h"
#include "app/serve/models/served_model.h"
#include "io/formats.h"

namespace cytra::app {

/// A parameter of a request, in its query.
struct Parameter {
  std::string name, help;
};
inline const Parameter kRequestId{"request_id",
                                  "made by the client, for GET /progress/{request_id} meanwhile"};
/// Returns what any request with an image takes, and an endpoint's own parameters.
std::vector<Parameter> image_parameters(std::vector<Parameter> own);
/// Returns what /predict takes.
const std::vector<Parameter>& predict_parameters();

/// An image that came as a file, and what is asked of it.
struct ImageFile {
  std::string content, name;         // the name that the client gave it, "" where it gave none
  std::string type;                  // Content-Type
  std::string path;                  // of a file that is there already, in place of content
  std::shared_ptr<const void> kept;  // what has to live as long as that file
  std::string output = "image", format = "auto";
  int64_t scene = -1, timepoint = -1;
};

/// A request whose body is an image.
struct ImageRequest {
  ImageFile file;
  AskedResult asked;
};
/// Reads a request, whose body is taken. Throws: HttpError.
ImageRequest image_request_of(HttpExchange& exchange, const std::vector<Parameter>& parameters);
/// The work on a file; its answer is the file that `output` names, as `predict` writes it.
class FileWork : public ImageWork {
 public:
  /// Throws: HttpError for an unknown output or format.
  FileWork(ImageFile file, RequestFolders& folders);
  std::shared_ptr<const inference::ModelInput> read(const PreparedModel& model) override;
  inference::ImageResult::Outputs outputs(const PreparedModel& model) override;
  HttpResponse respond(const inference::ImageResult& result) override;
  HttpError told(int status, std::string text) const override;

 private:
  void take_file();
  ImageFile file_;
  const std::unique_ptr<RequestFolders::Folder> folder_;
  std::string name_, path_;
};
/// Answers a request whose body is an image. Throws: HttpError for its parameters.
void predict_image(ServedModel& model,
                   const std::shared_ptr<HttpExchange>& exchange,
                   RequestFolders& folders);
/// A client's name of a file without its folder; "" where it can't be used.
std::string safe_name(const std::string& given);
/// Writes an image that a client sent, into a folder of a request, and returns its format by its
/// content; null: unknown. Throws: HttpError (415) for a format that is not taken, (422) where it
/// names other files, which could be any of this machine; IoError.
const io::Format* write_image(const std::string& path, const std::string& content);
/// A parameter of the query that is a whole number, 0 to 1e9. Throws: HttpError that names it.
std::optional<int64_t> whole_number_in(const HttpHead& head, const std::string& name);
/// Answers with a file that a browser saves under a name, whose ending tells its type.
HttpResponse attachment(std::string content, const std::string& name);

}  // namespace cytra::app
