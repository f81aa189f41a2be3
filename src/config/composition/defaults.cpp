#include "config/composition/defaults.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/composer.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

constexpr std::size_t max_defaults_depth = 64, max_files = 10'000;

/// The option that a group was set to, by the command line or by `override` in a file.
struct Choice {
  DefaultsItem item;
  std::string text;  // "model=unet" of the command line; empty for one from a file
  bool used = false;
};

struct KnownChoice {
  std::string key, name;
  Origin origin;
  bool appended;
};

class TreeBuilder {
 public:
  TreeBuilder(Repository& repository, const std::vector<Override>& choices, bool planning)
      : repository_(repository), planning_(planning) {
    for (const Override& choice : choices) add_choice(choice);
  }

  DefaultsTree build(const std::string& primary) {
    DefaultsTree tree;
    tree.primary.item.path = primary;
    expand(tree.primary, true, false);  // first: its overrides reach the groups of hydra
    tree.hydra.item.path = "hydra/config";
    expand(tree.hydra, false, false);
    check_all_used();
    std::set<std::string> seen;
    check_duplicates(tree.hydra, seen);
    check_duplicates(tree.primary, seen);
    for (const KnownChoice& known : known_) tree.choices.emplace_back(known.key, known.name);
    return tree;
  }

 private:
  [[noreturn]] static void fail(const Origin& origin, const std::string& what) {
    throw ConfigError(origin.text() + ": " + what);
  }

  void add_choice(const Override& choice) {
    DefaultsItem item;
    item.path = choice.key;
    item.is_group = true;
    item.package = choice.package;
    item.origin = choice.origin;
    item.appended = choice.action == Override::Action::add;
    if (!choice.values.empty()) {
      const Node& value = choice.values[0];
      item.is_list = value.kind == Kind::list;
      for (const Node& option : item.is_list ? value.list : choice.values) {
        if (option.is_null() && !item.is_list) continue;  // group=null: no choice
        if (option.kind != Kind::string) {
          fail(item.origin,
               "'" + choice.key + "' is a group, expected the name of an option or [a, b]." +
                   suggestion("", repository_.options(choice.key)));
        }
        item.options.push_back(option.string);
      }
    }
    const std::string key = choice.full_key();
    switch (choice.action) {
      case Override::Action::force:
        fail(item.origin,
             "'" + choice.key + "' is a group, expected group=option or +group=option");
      case Override::Action::remove:
        if (item.is_list)
          fail(item.origin, "expected the name of one option, or ~" + choice.key + " alone");
        deletions_[key] = {std::move(item), *choice.origin.file};
        break;
      case Override::Action::add:
        if (item.package == "_here_") item.package = "";
        appended_.push_back(std::move(item));
        break;
      case Override::Action::change:
        choices_[key] = {std::move(item), *choice.origin.file};
    }
  }

  void expand(DefaultsNode& node, bool is_root, bool interpolated) {
    const DefaultsItem& item = node.item;
    const bool none = item.is_group && item.options.empty();
    if (!none) node.file = repository_.load(node.config_path());
    if (node.file != nullptr) node.header = node.file->header;
    if (is_deleted(node)) {
      node.file = nullptr;
      return;
    }
    remember_choice(node);
    const bool open = !none && node.config_path().ends_with("???");
    if (none || (open && planning_)) return;
    if (open) fail_unchosen(node);
    if (node.file == nullptr) {
      if (item.optional) {
        // This is as in Hydra, but a typo should not pass in silence.
        if (item.origin.line == 0)
          log::warn("{}: no such option of the optional group '{}'", item.origin.text(), item.path);
        return;
      }
      fail_not_found(node, is_root);
    }
    enter(node);
    std::vector<DefaultsItem> list = node.file->defaults;
    if (!list.empty() || (is_root && !appended_.empty())) add_self(list);
    if (is_root) list.insert(list.end(), appended_.begin(), appended_.end());
    register_overrides(list, node, interpolated);
    expand_children(list, node, interpolated);
    chain_.pop_back();
  }

  void enter(const DefaultsNode& node) {
    const std::string path = node.config_path();
    if (++files_ > max_files || chain_.size() >= max_defaults_depth) {
      const auto again = std::find(chain_.rbegin(), chain_.rend(), path);
      const std::size_t steps = std::min<std::size_t>(
          again == chain_.rend() ? 5 : static_cast<std::size_t>(again - chain_.rbegin()) + 1,
          chain_.size());
      const std::vector<std::string> last(chain_.end() - static_cast<std::ptrdiff_t>(steps),
                                          chain_.end());
      fail(node.item.origin,
           "these defaults lists include each other without an end: " + join(last, " -> ") +
               " -> " + path + ", expected no file that includes itself");
    }
    chain_.push_back(path);
  }

  /// Adds `_self_` at the end where it is missing: such a file comes after what it includes.
  static void add_self(std::vector<DefaultsItem>& list) {
    const DefaultsItem* self = nullptr;
    bool includes = false;
    for (const DefaultsItem& item : list) {
      includes = includes || !item.overrides;
      if (!item.is_self()) continue;
      if (self != nullptr)
        fail(item.origin, "_self_ stands here for the second time, expected it once");
      self = &item;
    }
    if (self != nullptr || (!includes && !list.empty())) return;
    DefaultsItem item;
    item.path = "_self_";
    list.push_back(std::move(item));
  }

  DefaultsNode child_of(const DefaultsNode& parent, const DefaultsItem& item) const {
    DefaultsNode child;
    child.item = item;
    child.parent_group = parent.group();
    child.parent_package = parent.package();
    auto& package = child.item.package;
    if (const std::size_t place = package ? package->find("_group_") : std::string::npos;
        place != std::string::npos) {
      package = "_global_." + package->replace(place, 7, child.default_package());
    }
    return child;
  }

  void register_overrides(const std::vector<DefaultsItem>& list,
                          const DefaultsNode& parent,
                          bool interpolated) {
    const DefaultsItem* seen = nullptr;
    for (const DefaultsItem& item : list) {
      if (item.is_self()) continue;
      if (!item.overrides) {
        if (seen == nullptr || item.appended) continue;
        fail(item.origin,
             "'" + item.path + "' stands after 'override " + seen->path +
                 "', expected overrides at the end of the defaults list");
      }
      seen = &item;
      if (interpolated) {
        fail(
            item.origin,
            "'override " + item.path + "' in a file chosen by ${...}, expected it in another file");
      }
      const DefaultsNode child = child_of(parent, item);
      choices_.try_emplace(child.override_key(),
                           Choice{item, "", false});  // the first registered wins
    }
  }

  /// Expands from right to left: a later sibling's overrides reach the groups before it.
  void expand_children(const std::vector<DefaultsItem>& list,
                       DefaultsNode& node,
                       bool interpolated) {
    std::vector<DefaultsNode> children;
    std::vector<std::size_t> later;
    for (auto item = list.rbegin(); item != list.rend(); ++item) {
      if (item->overrides) continue;
      DefaultsNode child = child_of(node, *item);
      if (item->is_self()) {
        child.self = true;
        child.file = node.file;
        children.push_back(std::move(child));
        continue;
      }
      if (item->is_group) choose(child);
      if (child.item.is_list) {
        expand_options(child, node, interpolated, children);
      } else if (is_interpolated(child.item)) {
        later.push_back(children.size());
        children.push_back(std::move(child));
      } else {
        expand(child, false, interpolated);
        children.push_back(std::move(child));
      }
    }
    for (const std::size_t i : later) {
      fill_name(children[i]);
      expand(children[i], false, true);
    }
    node.children.assign(std::make_move_iterator(children.rbegin()),
                         std::make_move_iterator(children.rend()));
  }

  void expand_options(const DefaultsNode& group,
                      const DefaultsNode& parent,
                      bool interpolated,
                      std::vector<DefaultsNode>& out) {
    const auto& options = group.item.options;
    for (auto option = options.rbegin(); option != options.rend(); ++option) {
      if (option->find("${") != std::string::npos) {
        fail(group.item.origin,
             "'" + *option + "' in a list of options, expected names without ${...}");
      }
      DefaultsItem item = group.item;
      item.path = group.item.path + "/" + *option;
      item.is_group = item.is_list = false;
      DefaultsNode child = child_of(parent, item);
      expand(child, false, interpolated);
      out.push_back(std::move(child));
    }
  }

  void choose(DefaultsNode& node) {
    const auto choice = choices_.find(node.override_key());
    if (choice == choices_.end()) return;
    choice->second.used = true;
    const DefaultsItem& chosen = choice->second.item;
    node.item.options = chosen.options;
    node.item.is_list = chosen.is_list;
    node.item.origin = chosen.origin;
    keys_of_group_[node.group()].insert(choice->first);
  }

  bool is_deleted(const DefaultsNode& node) {
    if (!node.item.is_group || deletions_.empty()) return false;
    const auto found = deletions_.find(node.override_key());
    if (found == deletions_.end()) return false;
    const auto& wanted = found->second.item.options;
    if (!wanted.empty() && wanted != node.item.options) return false;
    return found->second.used = true;
  }

  void remember_choice(const DefaultsNode& node) {
    if (!node.item.is_group) return;
    const std::string key = node.override_key();
    const std::string name = node.item.options.empty() ? "null" : node.item.options[0];
    const KnownChoice* known = find_known(key);
    if (known == nullptr) {
      known_.push_back({key, name, node.item.origin, node.item.appended});
    } else if (known->name != name) {
      fail(known->origin,
           "group '" + key + "' is already '" + name + "' (" + node.item.origin.text() +
               "), expected '" + (known->appended ? key + "=" : "override " + key + ": ") +
               known->name + "'" + (known->appended ? " without '+'" : ""));
    }
    keys_of_group_[node.group()].insert(key);
  }

  const KnownChoice* find_known(const std::string& key) const {
    const auto found = std::ranges::find(known_, key, &KnownChoice::key);
    return found == known_.end() ? nullptr : &*found;
  }
  std::vector<std::string> known_keys() const { return mapped(known_, &KnownChoice::key); }

  static bool is_interpolated(const DefaultsItem& item) {
    const std::string* name = &item.path;
    if (item.is_group) name = item.options.empty() ? nullptr : &item.options[0];
    return name != nullptr && name->find("${") != std::string::npos;
  }

  /// Fills in ${other_group}, which stands for the option chosen there.
  void fill_name(DefaultsNode& node) const {
    DefaultsItem& item = node.item;
    std::string& name = item.is_group ? item.options[0] : item.path;
    Node known = Node::make_map();
    for (const KnownChoice& one : known_)
      known.set(one.key, one.name == "null" ? Node() : Node::make_string(one.name));
    // Hydra resolves the text one level below the choices. A path becomes the whole one, and still
    // counts from the group of its list.
    Node text = Node::make_string(item.is_group ? name : node.config_path());
    text.origin = item.origin;
    known.set("defaults", Node::make_map()).set("item", std::move(text));
    const Node value = evaluate(known, "defaults.item");
    if (value.kind != Kind::string) {
      fail(item.origin,
           "'" + name + "' is " + plain_text(value) + ", expected the name of an option");
    }
    name = value.string;
  }

  [[noreturn]] void fail_unchosen(const DefaultsNode& node) {
    if (!node.item.is_group)
      fail(node.item.origin, "'" + node.item.path + "' can't be ???, expected a file");
    fail(node.item.origin,
         "'" + node.override_key() + "' must be chosen, expected " + node.override_key() +
             "=OPTION. Choices: " + join(repository_.options(node.group()), ", ") + ".");
  }

  [[noreturn]] void fail_not_found(const DefaultsNode& node, bool is_root) const {
    const DefaultsItem& item = node.item;
    if (is_root) {
      std::vector<std::string> primaries;
      for (const std::string& option : repository_.options("")) {
        if (option.find('/') == std::string::npos) primaries.push_back(option);
      }
      throw ConfigError("no config '" + item.path + "' in " + join(repository_.folders(), ", ") +
                        "." + suggestion(item.path, primaries));
    }
    const std::string path = node.config_path();
    const std::string group = node.group();
    const std::string name = item.is_group   ? item.options[0]
                             : group.empty() ? path
                                             : path.substr(group.size() + 1);
    fail(item.origin,
         (group.empty() ? "no config '" + name + "'."
                        : "no option '" + name + "' in group '" + group + "'.") +
             suggestion(name, repository_.options(group)));
  }

  void check_all_used() const {
    for (const auto* all : {&choices_, &deletions_}) {
      for (const auto& [key, choice] : *all) {
        if (choice.used) continue;
        const auto others = keys_of_group_.find(key.substr(0, key.find('@')));
        std::string hint = suggestion(key, known_keys());
        if (others != keys_of_group_.end()) {
          hint = " Did you mean '" +
                 join({others->second.begin(), others->second.end()}, "' or '") + "'?";
        } else if (all == &deletions_) {
          hint += " A list of options is removed by '" + key + "=[]'.";
        } else if (!choice.text.empty()) {
          hint = " '+" + choice.text + "' adds it.";
        }
        fail(choice.item.origin, "group '" + key + "' is in no defaults list." + hint);
      }
    }
  }

  static void check_duplicates(const DefaultsNode& node, std::set<std::string>& seen) {
    if (node.children.empty() && node.item.is_group && node.file != nullptr &&
        !seen.insert(node.override_key()).second) {
      fail(node.item.origin,
           "group '" + node.override_key() + "' is in the defaults list already, expected it once" +
               (node.item.appended ? " or '" + node.item.origin.file->substr(1) + "'" : ""));
    }
    for (const DefaultsNode& child : node.children) check_duplicates(child, seen);
  }

  Repository& repository_;
  const bool planning_;
  std::map<std::string, Choice> choices_, deletions_;
  std::vector<DefaultsItem> appended_;
  std::vector<KnownChoice> known_;
  std::map<std::string, std::set<std::string>> keys_of_group_;
  std::vector<std::string> chain_;
  std::size_t files_ = 0;
};

}  // namespace

DefaultsTree build_defaults_tree(Repository& repository,
                                 const std::string& primary,
                                 const std::vector<Override>& choices,
                                 bool planning) {
  return TreeBuilder(repository, choices, planning).build(primary);
}

}  // namespace cytra::config
