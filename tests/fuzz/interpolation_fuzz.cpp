// Values with ${...}, resolved in a small tree.
#include "config/composer.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace cytra;
  static const config::Node tree = config::parse_yaml(
      "a: 1\nb: {c: [1, 2.5, x], d: '${a}', e: {f: '${..d}'}}\nt: true\nn: null\nm: \?\?\?\n"
      "s: 'it''s'\nhydra: {job: {name: n, num: '\?\?\?'}, runtime: {choices: {g: o}}}\n",
      "fuzz.yaml");
  const std::string text(reinterpret_cast<const char*>(data), size);
  config::Node root = tree;
  const std::size_t line =
      text.find('\n');  // a second value, so that the two can refer to each other
  root.set("x", config::Node::make_string(text.substr(0, line)));
  if (line != std::string::npos)
    root.find("b.e")->set("y", config::Node::make_string(text.substr(line + 1)));
  config::set_paths(root);
  fuzz::run([&] { config::evaluate(root, "x"); });
  fuzz::run([&] { config::resolve(root); });
  return 0;
}
