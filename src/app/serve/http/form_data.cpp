#include "app/serve/http/form_data.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/rng.h"
#include "base/strings.h"

namespace cytra::app {
namespace {

constexpr std::size_t kMostParts = 1000;
constexpr std::size_t kMostHead = 16 << 10;  // bytes
constexpr std::size_t kMostBoundary = 70;    // as RFC 2046 says

/// The value of a header in a part's head.
std::string header_in(const std::string& head, const std::string& name) {
  for (const std::string& line : split(head, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos && in_small_letters(trim(line.substr(0, colon))) == name)
      return trim(line.substr(colon + 1));
  }
  return "";
}

}  // namespace

std::string parameter_in(const std::string& header, const std::string& name) {
  const std::string mark = name + "=", small = in_small_letters(header);
  for (std::size_t at = small.find(mark); at != std::string::npos; at = small.find(mark, at + 1)) {
    if (at > 0 && small[at - 1] != ' ' && small[at - 1] != ';')
      continue;  // the end of another name
    const std::string value = header.substr(at + mark.size());
    if (!value.empty() && value.front() == '"') return value.substr(1, value.find('"', 1) - 1);
    return trim(value.substr(0, value.find(';')));
  }
  return "";
}

std::string filename_in(const std::string& header) {
  const std::string plain = parameter_in(header, "filename");
  if (!plain.empty()) return plain;
  const std::string other = parameter_in(header, "filename*");  // RFC 8187: UTF-8''a%20b.tif
  const std::size_t mark = other.rfind('\'');
  return mark == std::string::npos ? "" : url_decoded(other.substr(mark + 1), false);
}

std::vector<FormPart> parse_form(const std::string& type, std::string body) {  // NOLINT: freed here
  const std::string boundary = parameter_in(type, "boundary");
  if (!in_small_letters(type).starts_with("multipart/form-data") || boundary.empty() ||
      boundary.size() > kMostBoundary)
    throw HttpError(400, "Content-Type: expected multipart/form-data with a boundary, RFC 2046's");
  const std::string mark = "--" + boundary;
  /// The next boundary: what only begins like one is content.
  const auto find_mark = [&](const std::string& before, std::size_t from) {
    std::size_t at = body.find(before + mark, from);
    while (at != std::string::npos) {
      const std::size_t end = at + before.size() + mark.size();
      if (body.compare(end, 2, "--") == 0 || body.compare(end, 2, "\r\n") == 0) break;
      at = body.find(before + mark, at + 1);
    }
    return at;
  };
  std::vector<FormPart> parts;
  std::size_t at = find_mark("", 0);
  while (at != std::string::npos) {
    const std::size_t begin = at + mark.size();
    if (body.compare(begin, 2, "--") == 0) return parts;
    const std::size_t head = begin + 2, end = body.find("\r\n\r\n", begin);
    at = end == std::string::npos ? end : find_mark("\r\n", end);
    if (at == std::string::npos) break;
    if (end > head + kMostHead)
      throw HttpError(400, "multipart: a head of more than {} bytes", kMostHead);
    if (parts.size() >= kMostParts)
      throw HttpError(400, "multipart: more than {} parts", kMostParts);
    const std::string text = body.substr(head, end > head ? end - head : 0);
    const std::string disposition = header_in(text, "content-disposition");
    const std::size_t from = end + 4;
    parts.push_back({parameter_in(disposition, "name"),
                     filename_in(disposition),
                     from <= at ? body.substr(from, at - from) : "",
                     header_in(text, "content-type")});
    at += 2;
  }
  throw HttpError(400, "multipart: ends before its last boundary");
}

FormPart* find_part(std::vector<FormPart>& parts, const std::string& name) {
  const auto found = std::ranges::find(parts, name, &FormPart::name);
  return found == parts.end() ? nullptr : &*found;
}

FormPart& file_part(std::vector<FormPart>& parts) {
  FormPart* found = nullptr;
  for (FormPart& part : parts) {
    if (part.filename.empty()) continue;
    if (found != nullptr) throw HttpError(400, "multipart: several files, expected one");
    found = &part;
  }
  if (found == nullptr) throw HttpError(400, "multipart: expected a file");
  return *found;
}

HttpResponse form_response(const std::vector<FormPart>& parts) {
  std::string boundary;
  for (uint64_t seed = 0; boundary.empty(); ++seed) {
    boundary = fmt::format("cytra-{:016x}", Rng(seed).next());
    for (const FormPart& part : parts)
      if (part.content.find(boundary) != std::string::npos) boundary.clear();
  }
  HttpResponse response;
  response.type = "multipart/form-data; boundary=" + boundary;
  for (const FormPart& part : parts) {
    response.body +=
        fmt::format("--{}\r\nContent-Disposition: form-data; name=\"{}\"{}\r\n",
                    boundary,
                    part.name,
                    part.filename.empty() ? "" : fmt::format("; filename=\"{}\"", part.filename));
    if (!part.type.empty()) response.body += "Content-Type: " + part.type + "\r\n";
    response.body += "\r\n" + part.content + "\r\n";
  }
  response.body += "--" + boundary + "--\r\n";
  return response;
}

}  // namespace cytra::app
