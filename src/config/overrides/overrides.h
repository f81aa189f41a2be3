#pragma once
// One word of the command line: key=value, group=option, group@package=option, +key=, ++key=,
// ~key. A value may call int() float() str() bool() sort() shuffle(), and list the values that
// --multirun tries: a,b,c choice() range() interval() glob() tag(). Source: Hydra 1.3.8's override
// grammar. Unlike there, `=`, `#`, `(`, spaces and any UTF-8 need no quotes in a value:
// checkpoint.ckpt_path=logs/epoch=3.ckpt.
#include <optional>
#include <string>
#include <vector>

#include "config/node.h"

namespace cytra::config {

struct Override {
  enum class Action { change, add, force, remove };  // k=v, +k=v, ++k=v, ~k
  /// The form of several values to try: a,b | choice() | range() | interval() | glob().
  enum class Sweep { none, simple, choice, range, interval, glob };
  Action action = Action::change;
  std::string key;                     // "trainer.max_epochs", "experiment/im2im"
  std::optional<std::string> package;  // after '@'
  Sweep sweep = Sweep::none;
  std::vector<Node> values;        // one; of a sweep, any number; none for ~key and glob();
                                   // start and end of interval()
  std::vector<std::string> texts;  // of a sweep: each value as typed, or as it would be typed
  std::vector<std::string> include, exclude;  // patterns of glob()
  Origin origin;                              // line 0, the text as typed

  std::string where() const { return origin.text(); }
  /// Whether it is one of Hydra's own settings: hydra.run.dir=..., hydra/launcher=...
  bool is_hydra() const { return key.rfind("hydra.", 0) == 0 || key.rfind("hydra/", 0) == 0; }
  /// The key with its package: "group@package" or "key".
  std::string full_key() const { return package ? key + "@" + *package : key; }
};

/// Parses one word. Throws: ConfigError that shows the override and, for bad syntax, the column.
Override parse_override(const std::string& text);

/// Writes `node` as text after `key=` that parse_override() reads as the same value.
std::string override_text(const Node& node);
/// Writes KEY=TEXT, with the text in quotes where it would be read as something else.
std::string override_word(const std::string& key, const std::string& text);

}  // namespace cytra::config
