#include "report/findings.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/svg.h"

namespace cytra::report {
namespace {

TEST(Findings, TheWorstImagesComeFirstAndLeadToTheirPictures) {
  Findings findings;
  for (const auto& [name, dice] : {std::pair{"good", 0.9}, {"none", NAN}, {"<bad>", 0.25}})
    findings.images.push_back({name, "few", "many", {{"dice", dice}, {"loss", 1 - dice}}});
  const auto order = [&](const std::string& monitor, bool is_higher_better) {
    const std::string html =
        images_html(findings, monitor, is_higher_better, {{"<bad>", "val_images/0"}});
    EXPECT_NE(html.find("<a href=\"#val_images/0\">&lt;bad&gt;</a>"), std::string::npos) << html;
    EXPECT_NE(html.find("<td>few</td><td>many</td>"), std::string::npos) << html;
    return html.find(">good<") < html.find("bad")      ? "good first"
           : html.find(">none<") < html.find(">good<") ? "none first"
                                                       : "bad first";
  };
  EXPECT_STREQ(order("val/dice", true), "bad first");
  EXPECT_STREQ(order("val/dice", false), "good first");
  EXPECT_STREQ(order("val/roc_auc", true), "bad first") << "by the loss, as no image has it";
  findings.images.clear();
  EXPECT_EQ(images_html(findings, "val/dice", true, {}), "");
}

TEST(Findings, ConfusionsAndCurvesAreDrawnWhereTheyAre) {
  Findings findings;
  EXPECT_EQ(confusion_html(findings) + precision_recall_html(findings), "");
  findings.classes = {"a", "b & c"};
  findings.confusion = {{3, 1}, {0, 1'234'567}};
  const std::string table = confusion_html(findings);
  for (const char* part : {"<th>b &amp; c</th>",
                           "--share:49%\">3</td><td style=\"--share:16%\">1</td><td>0.750</td>",
                           ">1.23M</td><td>1.000</td>"})
    EXPECT_NE(table.find(part), std::string::npos) << part << table;
  findings.precision_recall = {{"a", {{0.5, 1}, {0.5, 0.5}, {1, 0.75}}}, {"b & c", {{NAN, 0}}}};
  const std::string chart = precision_recall_html(findings);
  const auto lines = test::elements_of(
      chart.substr(chart.find("<svg"), chart.find("</svg>") + 6 - chart.find("<svg")), "polyline");
  ASSERT_EQ(lines.size(), 1U) << "a class that no image has is left out";
  EXPECT_EQ(lines[0].points().size(), 4U);
  EXPECT_NE(chart.find("data-of=\"recall\""), std::string::npos);
}

}  // namespace
}  // namespace cytra::report
