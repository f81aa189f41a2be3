#include "app/serve/http/form_data.h"

#include <gtest/gtest.h>

namespace cytra::app {
namespace {

const std::string kFormType = "multipart/form-data; boundary=b";

std::string form_of(const std::string& head, const std::string& content) {
  return "--b\r\n" + head + "\r\n\r\n" + content + "\r\n--b--\r\n";
}

TEST(FormData, ReadsParts) {
  const auto parts = parse_form(
      kFormType,
      "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.tif\"\r\nContent-Type: "
      "image/tiff\r\n\r\n1\r\n--bX\r\n--b\r\n\r\n\r\n--b--");
  ASSERT_EQ(parts.size(), 2);
  EXPECT_EQ(parts[0].name + parts[0].filename + parts[0].content + parts[0].type,
            "fa.tif1\r\n--bXimage/tiff");
  EXPECT_EQ(parts[1].content, "");
}

TEST(FormData, HasLimits) {
  std::string lines(20'000'000, '\n'), many;
  EXPECT_THROW(parse_form(kFormType, form_of("A: " + lines, "")), HttpError);
  EXPECT_THROW(parse_form(kFormType, form_of("A: " + std::string(17'000, ';'), "")), HttpError);
  EXPECT_THROW(parse_form("multipart/form-data; boundary=" + std::string(71, '-'), "--"),
               HttpError);
  EXPECT_EQ(parse_form(kFormType, form_of("A: b", lines)).at(0).content, lines);
  for (int i = 0; i < 1001; ++i) many += "--b\r\nA: b\r\n\r\n\r\n";
  EXPECT_THROW(parse_form(kFormType, many + "--b--"), HttpError);
  for (const char* body : {"", "--b", "--b\r\n", "--b\r\nA: b\r\n\r\n", "--b\r\n\r\n\r\n--c--"})
    EXPECT_THROW(parse_form(kFormType, body), HttpError) << body;
}

std::string refusal_of_form(const std::string& type, const std::string& body) {
  try {
    parse_form(type, body);
    return "";
  } catch (const HttpError& error) {
    return error.what();
  }
}

TEST(FormData, NeedsItsBoundary) {
  const std::string body = form_of("Content-Disposition: form-data; name=\"a\"", "1");
  for (const char* type : {"Multipart/Form-Data; boundary=b",
                           "multipart/form-data; boundary=\"b\"",
                           "multipart/form-data; charset=x; Boundary=b; more=c"})
    EXPECT_EQ(refusal_of_form(type, body), "") << type;
  for (const char* type : {"",
                           "multipart/form-data",
                           "multipart/form-data; boundary=",
                           "multipart/mixed; boundary=b",
                           "text/plain",
                           "multipart/form-data; noboundary=b"})
    EXPECT_NE(refusal_of_form(type, body).find("with a boundary"), std::string::npos) << type;
  for (const char* type : {"multipart/form-data; boundary=c", "multipart/form-data; boundary=bb"})
    EXPECT_NE(refusal_of_form(type, body).find("before its last boundary"), std::string::npos)
        << type;
  for (std::size_t size = 0; size + 4 < body.size(); ++size)
    EXPECT_NE(refusal_of_form(kFormType, body.substr(0, size)), "") << "cut after " << size;
}

TEST(FormData, NamesFiles) {
  EXPECT_EQ(filename_in("form-data; name=\"file\"; filename=\"a; b.tif\""), "a; b.tif");
  EXPECT_EQ(filename_in("form-data; filename=a.tif; name=file"), "a.tif");
  EXPECT_EQ(filename_in("form-data; filename*=UTF-8''gr%C3%B6%20b.tif"), "gr\u00f6 b.tif");
  EXPECT_EQ(filename_in("form-data; filename=\"a.tif\"; filename*=UTF-8''b.tif"), "a.tif");
  EXPECT_EQ(filename_in("form-data; name=\"filename\""), "");
  EXPECT_EQ(filename_in("form-data; filename*=plain"), "");
  EXPECT_THROW(filename_in("form-data; filename*=UTF-8''%zz"), HttpError);
  EXPECT_EQ(parameter_in("form-data; filename=\"x\"; name=\"y\"", "name"), "y");
  EXPECT_EQ(parameter_in("form-data; name=\"open", "name"), "open");
}

TEST(FormData, HasOneFile) {
  std::vector<FormPart> parts{{"params", "", "{}"}, {"file", "a.tif", "1"}};
  EXPECT_EQ(file_part(parts).content, "1");
  EXPECT_EQ(find_part(parts, "params")->content, "{}");
  EXPECT_EQ(find_part(parts, "a.tif"), nullptr);
  parts.push_back({"file", "b.tif", "2"});
  EXPECT_THROW(file_part(parts), HttpError);
  parts.resize(1);
  EXPECT_THROW(file_part(parts), HttpError);
}

TEST(FormData, IsReadAsItIsWritten) {
  const std::vector<FormPart> parts{{"about", "", "{}", "application/json"},
                                    {"image", "a.png", std::string("\0\r\n--", 5), "image/png"}};
  const HttpResponse first = form_response(parts);
  const std::string boundary = parameter_in(first.type, "boundary");
  std::vector<FormPart> with_it = parts;
  with_it[1].content += "\r\n--" + boundary + "--\r\n";
  const HttpResponse second = form_response(with_it);
  EXPECT_NE(second.type, first.type) << "its boundary is in no part";
  const auto read = parse_form(second.type, second.body);
  ASSERT_EQ(read.size(), 2);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read[i].content, with_it[i].content);
    EXPECT_EQ(read[i].name + " " + read[i].filename + " " + read[i].type,
              parts[i].name + " " + parts[i].filename + " " + parts[i].type);
  }
}

}  // namespace
}  // namespace cytra::app
