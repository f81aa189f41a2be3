#pragma once
// Bodies of several parts: multipart/form-data, RFC 7578.
#include <string>
#include <vector>

#include "app/serve/http.h"

namespace cytra::app {

struct FormPart {
  std::string name, filename, content;
  std::string type = {};  // Content-Type
};

/// Reads a body. Throws: HttpError (400) for one that is no multipart/form-data, or has more than
/// 1000 parts.
std::vector<FormPart> parse_form(const std::string& type, const std::string& body);
/// The part of a name; null: there is none.
const FormPart* find_part(const std::vector<FormPart>& parts, const std::string& name);
/// The part that is a file. Throws: HttpError (400) where there is none, or several.
const FormPart& file_part(const std::vector<FormPart>& parts);
/// Makes an answer of several parts.
HttpResponse form_response(const std::vector<FormPart>& parts);

/// `filename="..."`, or another parameter, of a header's value; "" where there is none.
std::string parameter_in(const std::string& header, const std::string& name);
/// The file's name in a Content-Disposition, from `filename` or `filename*`; "" where there is
/// none.
std::string filename_in(const std::string& header);

}  // namespace cytra::app
