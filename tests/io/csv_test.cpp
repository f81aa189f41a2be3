#include "io/csv.h"

#include <fmt/format.h>

#include "tests/io/fixture.h"

namespace cytra::io {
namespace {

using Row = std::vector<std::string>;

Table parse(const std::string& text, const std::string& name = "a.csv") {
  const Folder folder;
  put(folder / name, text);
  return read_table(folder / name);
}

std::string csv_error(const std::string& text, const std::string& name = "a.csv") {
  const std::string message = message_of<DataError>([&] { parse(text, name); });
  const std::size_t at = message.find("/" + name + ":");
  return at == std::string::npos ? message : message.substr(at + 1);
}

TEST(Csv, Oddities) {
  const Table table =
      parse("\xEF\xBB\xBFraw,\"seg, mask\",\r\n\r\n1,\"a \"\"b\"\"\r\nc\",\r\n,\"\",x y \n3,4,5");
  EXPECT_EQ(table.columns, (Row{"raw", "seg, mask", ""}));
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[0], (Row{"1", "a \"b\"\r\nc", ""}));
  EXPECT_EQ(table.rows[1], (Row{"", "", "x y "}));
  EXPECT_EQ(table.rows[2], (Row{"3", "4", "5"}));
  EXPECT_EQ(table.lines, (std::vector<int>{3, 5, 6}));
  EXPECT_EQ(table.column("seg, mask"), 1U);
  EXPECT_EQ(parse("a\tb,c\n1\t2\n", "a.tsv").columns, (Row{"a", "b,c"}));
  EXPECT_EQ(parse("a\rb\r").rows.at(0), Row{"b"});
  EXPECT_EQ(parse("a,b\n1,2\n\n\n").rows.size(), 1U);
  EXPECT_EQ(parse("a,b\n,\n1,\n,,\n").rows.size(), 1U);
  EXPECT_EQ(parse("a,b\n").rows.size(), 0U);
  EXPECT_EQ(parse("a,b\nx\"y,\"\"\n").rows.at(0), (Row{"x\"y", ""}));
  EXPECT_EQ(parse("a,b\n1,").rows.at(0), (Row{"1", ""}));
  EXPECT_EQ(parse("\xC3\xA9,b\nd\xC3\xBC/x.tif,2\n").rows.at(0)[0], "d\xC3\xBC/x.tif");
}

// As spreadsheets write them where a comma is in numbers.
TEST(Csv, Semicolons) {
  for (const char* start : {"", "sep=;\r\n", "\xEF\xBB\xBFsep=;\r\n"}) {
    const Table table =
        parse(std::string(start) + "raw;weight;\r\na,b.tif;0,5;\r\n\"c;d.tif\";1;\r\n");
    EXPECT_EQ(table.columns, (Row{"raw", "weight", ""}));
    ASSERT_EQ(table.rows.size(), 2U);
    EXPECT_EQ(table.rows[0], (Row{"a,b.tif", "0,5", ""}));
    EXPECT_EQ(table.rows[1], (Row{"c;d.tif", "1", ""}));
    EXPECT_EQ(table.lines[0], *start == '\0' ? 2 : 3);
  }
  EXPECT_EQ(parse("raw,x;y\n1,2\n").columns, (Row{"raw", "x;y"}));
}

std::string utf16(const std::string& ascii, bool is_big) {
  std::string bytes = is_big ? "\xFE\xFF" : "\xFF\xFE";
  for (const char letter : ascii) {
    if (is_big) bytes += '\0';
    bytes += letter;
    if (!is_big) bytes += '\0';
  }
  return bytes;
}

// Whatever the ending: what parts the lines alike parts the cells.
TEST(Csv, SeparatorsAndEncodingsOfSpreadsheets) {
  for (const char* name : {"a.csv", "a.tsv"}) {
    for (const char separator : {',', ';', '\t'}) {
      const std::string text =
          fmt::format("raw{0}seg\r\na.tif{0}b.tif\r\nc.tif{0}d.tif\r\n", separator);
      for (const std::string& bytes :
           {text, "\xEF\xBB\xBF" + text, utf16(text, false), utf16(text, true)}) {
        const Table table = parse(bytes, name);
        EXPECT_EQ(table.columns, (Row{"raw", "seg"})) << name << separator;
        ASSERT_EQ(table.rows.size(), 2U);
        EXPECT_EQ(table.rows[1], (Row{"c.tif", "d.tif"}));
      }
    }
  }
  EXPECT_EQ(parse("raw;note, long\na.tif;x\n").columns, (Row{"raw", "note, long"}));
  EXPECT_EQ(parse("sep=\t\nraw\tseg\n1\t2\n").columns, (Row{"raw", "seg"}));
  EXPECT_EQ(parse("raw;weight\na.tif;0,5\nb.tif;1,5\n").rows[1], (Row{"b.tif", "1,5"}));
  EXPECT_EQ(parse("\"a;b\";seg\n1;2\n").columns, (Row{"a;b", "seg"}));
  EXPECT_EQ(parse(std::string("\xFF\xFE\xE4\0\n\0"
                              "1\0",
                              8))
                .columns,
            Row{"\xC3\xA4"});
  EXPECT_EQ(parse("\xDC"
                  "bersicht,b\n\xE4,2\n")
                .columns[0],
            "\xC3\x9C"
            "bersicht");
  EXPECT_EQ(parse("a,b\n\xE4,2\n").rows[0][0], "\xE4");  // the name of a file may be so
}

TEST(Csv, Numbers) {
  double value = 0;
  for (const auto& [text, expected] :
       {std::pair{"0,5", 0.5}, {"0.5", 0.5}, {" 3 ", 3.0}, {"+1e-3", 1e-3}, {"-2,25", -2.25}}) {
    EXPECT_TRUE(read_number(text, value)) << text;
    EXPECT_EQ(value, expected);
  }
  for (const char* text : {"", "a", "1,2,3", "1.000,5", "0x10", "1 2", ","})
    EXPECT_FALSE(read_number(text, value)) << text;
}

TEST(Csv, ErrorsNameTheLine) {
  EXPECT_EQ(csv_error("").substr(0, 21), "a.csv: empty, expecte");
  EXPECT_EQ(csv_error("\n\r\n").substr(0, 12), "a.csv: empty");
  EXPECT_EQ(csv_error("a,b\n1,2\n1\n"),
            "a.csv:3: 1 cells, expected 2 as in the header; quote a cell that holds a separator");
  EXPECT_EQ(csv_error("a,b\n\"x\ny\",1\n1,2,3\n").substr(0, 17), "a.csv:4: 3 cells,");
  EXPECT_EQ(csv_error("a,b\n1,\"x\n2,3\n").substr(0, 40),
            "a.csv:2: a quote that is never closed, e");
  EXPECT_EQ(csv_error("a,b\n1,\"").substr(0, 15), "a.csv:2: a quot");
  EXPECT_EQ(csv_error("a,b\n\"x\"y,1\n").substr(0, 36), "a.csv:2: text after a closing quote,");
  EXPECT_EQ(csv_error("a,b,a\n").substr(0, 36), "a.csv:1: the column 'a' occurs twice");
  EXPECT_NE(csv_error(std::string("a\0,\0b", 5)).find("UTF-8"), std::string::npos);
  EXPECT_THROW(read_table("/proc/none/a.csv"), ConfigError);
}

TEST(Csv, SuggestsTheNearestColumn) {
  const std::string message =
      message_of<DataError>([] { parse("raw,segmentation\n1,2\n").column("segmentaton"); });
  EXPECT_NE(message.find("a.csv: no column 'segmentaton'"), std::string::npos) << message;
  EXPECT_NE(message.find("Did you mean 'segmentation'?"), std::string::npos) << message;
}

TEST(Csv, ForeignTextsAreNoFormulas) {
  for (const char* text :
       {"=1+1", "+1+1", "-cmd", "@SUM(1)", "\t=1", "\r=1", "'=1", "''@", "-1.5.tif"}) {
    EXPECT_EQ(safe_cell(text), std::string("'") + text);
  }
  for (const char* text : {"", "a.tif", "-1.5", "+2e3", "-0", "1=1", "'a", "/in/=1"})
    EXPECT_EQ(safe_cell(text), text);
}

}  // namespace
}  // namespace cytra::io
