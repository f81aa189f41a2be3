#pragma once
// One word of the command line: key=value, group=option, group@package=option, +key=, ++key=, ~key.
// Source: Hydra's override grammar. Unlike there, `=`, `#`, `(`, spaces and any UTF-8 need no
// quotes in a value: checkpoint.ckpt_path=logs/epoch=3.ckpt. Missing so far: functions (choice(),
// range(), int(), ...).
#include <optional>
#include <string>
#include <vector>

#include "config/node.h"

namespace cytra::config {

struct Override {
  enum class Action { change, add, force, remove };  // k=v, +k=v, ++k=v, ~k
  Action action = Action::change;
  std::string key;                     // "trainer.max_epochs", "experiment/im2im"
  std::optional<std::string> package;  // after '@'
  std::vector<Node> values;            // one; several for the sweep a,b,c; none for ~key
  Origin origin;                       // line 0, the text as typed

  std::string where() const { return origin.text(); }
  /// Of Hydra's own settings: hydra.run.dir=..., hydra/launcher=...
  bool is_hydra() const { return key.rfind("hydra.", 0) == 0 || key.rfind("hydra/", 0) == 0; }
  /// "group@package" or "key"
  std::string full_key() const { return package ? key + "@" + *package : key; }
};

/// Throws: ConfigError that shows the override.
Override parse_override(const std::string& text);

}  // namespace cytra::config
