#pragma once
// Bodies of several parts: multipart/form-data, RFC 7578.
#include <string>
#include <vector>

#include "app/serve/http/http.h"

namespace cytra::app {

struct FormPart {
  std::string name, filename, content;
  std::string type = {};  // Content-Type
};

/// Reads a body, which is given up where the caller moves it: contents are copies of it. Throws:
/// HttpError (400) for one that is no multipart/form-data, has more than 1000 parts, or a part
/// whose head has more than 16 kB.
std::vector<FormPart> parse_form(const std::string& type, std::string body);
/// The part of a name; null: there is none.
FormPart* find_part(std::vector<FormPart>& parts, const std::string& name);
/// The part that is a file. Throws: HttpError (400) where there is none, or several.
FormPart& file_part(std::vector<FormPart>& parts);
/// Makes an answer of several parts.
HttpResponse form_response(const std::vector<FormPart>& parts);

/// `filename="..."`, or another parameter, of a header's value; "" where there is none.
std::string parameter_in(const std::string& header, const std::string& name);
/// The file's name in a Content-Disposition, from `filename` or `filename*`; "" where there is
/// none.
std::string filename_in(const std::string& header);

}  // namespace cytra::app
