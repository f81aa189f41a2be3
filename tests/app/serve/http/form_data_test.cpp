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

}  // namespace
}  // namespace cytra::app
