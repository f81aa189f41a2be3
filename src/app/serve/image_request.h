#pragma once
// POST /predict: a file of an image comes, a file of its result goes.
#include <memory>
#include <string>
#include <vector>

#include "app/serve/served_model.h"
#include "app/serve/spool.h"
#include "io/formats.h"

namespace cytra::app {

/// A parameter of a request for an image: its name, what it is, an example.
struct ImageParameter {
  const char *name, *help, *example;
  bool is_of_preview = true;  // which makes pictures, and no files
};
extern const std::vector<ImageParameter> kImageParameters;

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
  ResultWish wish;
};
/// Reads a request, whose body is taken; `known`: the parameters that it may have. Throws:
/// HttpError.
ImageRequest image_request_of(HttpExchange& exchange, const std::vector<std::string>& known);
/// The work on a file; its answer is the file that `output` names, as `predict` writes it.
std::unique_ptr<ImageWork> work_on_file(ImageFile file, Spool& spool);
/// Answers a request whose body is an image. Throws: HttpError for its parameters.
void predict_image(ServedModel& model, const std::shared_ptr<HttpExchange>& exchange, Spool& spool);
/// A client's name of a file without its folder; "" where it can't be used.
std::string safe_name(const std::string& given);
/// Writes an image that a client sent, into a place of the spool, and returns its format by its
/// content; null: unknown. Throws: HttpError (415) for a format that is not taken, (422) where it
/// names other files, which could be any of this machine; IoError.
const io::Format* write_image(const std::string& path, const std::string& content);
/// A number of a request. Throws: HttpError that names it.
double number_of(const std::string& name, const std::string& text, double low, double high);
/// A whole number of a request, 0 to 1e9. Throws: HttpError that names it.
int64_t whole_number_of(const std::string& name, const std::string& text);
/// The media type of a file by the ending of its name.
std::string media_type_of(const std::string& path);

}  // namespace cytra::app
