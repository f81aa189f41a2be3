// Part of config/node.h: builds our own tree from yaml-cpp's events, as yaml-cpp's nodes have no
// merge keys, lose columns and read YAML 1.2 types.
#include <map>
#include <sstream>
#include <unordered_set>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "base/error.h"
#include "base/files.h"
#include "config/node.h"
#include "config/text/scalar.h"
#include "config/text/yaml_text.h"

namespace cytra::config {
namespace {

constexpr std::size_t max_yaml_depth = 64, max_nodes = 10'000, max_yaml_key = 200;
constexpr std::size_t max_file_bytes = 4 << 20;
constexpr std::size_t max_alias_bytes =
    16 << 20;  // an alias in a list of aliases can repeat one long text

class Builder : public YAML::EventHandler {
 public:
  Builder(const std::string& text, const std::string& name)
      : text_(text), file_(std::make_shared<const std::string>(name)) {}

  Node root;
  bool used = false;

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (used) fail(mark, "a second document begins, expected one per file");
    used = true;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check_null(mark);
    // The mark of `key:` without a value is that of the next token, perhaps lines below.
    const bool below =
        !open_.empty() && open_.back().have_key && open_.back().key_mark.line < mark.line;
    add(make(below ? open_.back().key_mark : mark, Kind::null), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      fail(mark, "this alias lies inside its own anchor, expected one that is complete");
    Size size;
    add_size(found->second, size);
    nodes_ += size.nodes - 1;
    copied_bytes_ += size.bytes;
    if (copied_bytes_ > max_alias_bytes)
      fail(mark, "aliases repeat too much text, expected at most 16 MB");
    check_nodes(mark);
    add(found->second, 0, &mark);
  }
  void OnScalar(const YAML::Mark& mark,
                const std::string& tag,
                YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = make(mark, Kind::string);
    scalar_at_ = static_cast<std::size_t>(mark.pos);
    static const std::string prefix = "tag:yaml.org,2002:";
    if (tag == "?" || tag.empty()) {
      if (value.find('\t') != std::string::npos)
        fail(mark, "a tab in text without quotes, expected spaces");
      is_plain_ = true;
      plain_ = value;
      type_yaml_scalar(value, node);
    } else {
      // yaml-cpp lets the end of the file end it.
      const std::size_t at = scalar_at_;
      if (at < text_.size() && (text_[at] == '\'' || text_[at] == '"') && !quote_ends(text_, at))
        fail(mark, "the quoted text does not end, expected another quote");
      node.string = value;
      node.quoted = true;
      if (tag.starts_with(prefix) && tag != prefix + "str") {
        type_yaml_scalar(value, node);
        static const std::map<std::string, Kind> kinds = {{"null", Kind::null},
                                                          {"bool", Kind::boolean},
                                                          {"int", Kind::integer},
                                                          {"float", Kind::real}};
        const auto kind = kinds.find(tag.substr(prefix.size()));
        if (kind == kinds.end()) fail_tag(mark, tag);
        if (kind->second == Kind::real && node.kind == Kind::integer) {
          node.kind = Kind::real;
          node.real = static_cast<double>(node.integer);
        }
        if (node.kind != kind->second)
          fail(mark, "'" + value + "' is no " + kind->first + ", expected one here");
        node.quoted = false;
      } else if (tag != "!" && tag != prefix + "str") {
        fail_tag(mark, tag);
      }
    }
    add(std::move(node), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    if (tag != "?" && !tag.empty() && tag != "!" && tag != "tag:yaml.org,2002:seq")
      fail_tag(mark, tag);
    open(mark, Kind::list, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark,
                  const std::string& tag,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    if (tag != "?" && !tag.empty() && tag != "!" && tag != "tag:yaml.org,2002:map")
      fail_tag(mark, tag);
    open(mark, Kind::map, anchor);
    open_.back().is_block = style == YAML::EmitterStyle::Block;
  }
  void OnMapEnd() override {
    merge_inherited(open_.back());
    close();
  }

 private:
  struct OpenNode {
    Node node;
    YAML::anchor_t anchor = 0;
    bool have_key = false, merge_key = false, is_block = false;
    bool key_is_plain = false, key_is_explicit = false;  // a:, ? a
    std::string key;
    std::size_t key_at = 0;  // in the text
    YAML::Mark key_mark;
    std::vector<Node> inherited;           // the maps of `<<`, in order
    std::unordered_set<std::string> keys;  // find_direct would make large maps quadratic
  };

  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& what) const {
    throw ConfigError(make(mark, Kind::null).origin.text() + ": " + what);
  }
  [[noreturn]] void fail_tag(const YAML::Mark& mark, const std::string& tag) const {
    fail(mark,
         "unknown tag '" + tag +
             "', expected plain values, or !!str, !!int, !!float, !!bool, !!null");
  }
  Node make(const YAML::Mark& mark, Kind kind) const {
    Node node;
    node.kind = kind;
    node.origin = {file_, mark.line + 1, mark.column + 1};
    return node;
  }
  /// Checks a null, as yaml-cpp takes text without ':' at the end of a map for a key, and [a,,b]
  /// for [a, null, b].
  void check_null(const YAML::Mark& mark) const {
    if (open_.empty()) return;
    const OpenNode& top = open_.back();
    const auto at = static_cast<std::size_t>(mark.pos);
    if (top.node.kind == Kind::list && at < text_.size() && text_[at] == ',')
      fail(mark, "nothing before the comma, expected a value");
    if (!top.have_key || !top.is_block || !top.key_is_plain || top.key_is_explicit) return;
    const std::size_t next = text_.find_first_not_of(" \t", top.key_at + top.key.size());
    if (text_.substr(top.key_at, top.key.size()) == top.key &&
        (next >= text_.size() || text_[next] != ':'))
      fail(top.key_mark, "no ':' after '" + top.key + "', expected key: value");
  }
  void check_nodes(const YAML::Mark& mark) const {
    if (nodes_ > max_nodes)
      fail(mark, "too many values (aliases counted), expected at most 10,000");
  }
  void open(const YAML::Mark& mark, Kind kind, YAML::anchor_t anchor) {
    if (open_.size() >= max_yaml_depth) fail(mark, "nested too deep, expected at most 64 levels");
    if (!open_.empty() && open_.back().node.kind == Kind::map && !open_.back().have_key) {
      fail(mark,
           closes(text_, static_cast<std::size_t>(mark.pos))
               ? "a list or map can't be a key, expected text"
               : "the list or map that begins here does not end, expected its bracket");
    }
    open_.emplace_back();
    open_.back().node = make(mark, kind);
    open_.back().anchor = anchor;
  }
  void close() {
    OpenNode done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.node), done.anchor);
  }
  void set_key(const Node& node) {
    OpenNode& top = open_.back();
    const YAML::Mark mark = mark_of(node);
    if (node.kind == Kind::list || node.kind == Kind::map)
      fail(mark,
           closes(text_, static_cast<std::size_t>(mark.pos))
               ? "a list or map can't be a key, expected text"
               : "the list or map that begins here does not end, expected its bracket");
    if (node.kind == Kind::null) fail(mark, "null can't be a key, expected text (quote it)");
    // Numbers are written as Python would (0x1F: is "31"), but `on:` is the key "on", not True.
    top.key = is_plain_ && node.kind == Kind::boolean ? plain_ : plain_text(node);
    top.merge_key = is_plain_ && plain_ == "<<";
    if (top.key.size() > max_yaml_key)
      fail(mark, "a key is too long, expected at most 200 characters");
    if (!top.merge_key && !top.keys.insert(top.key).second)
      fail(mark, "the key '" + top.key + "' stands here for the second time, expected it once");
    top.have_key = true;
    top.key_mark = mark;
    top.key_at = scalar_at_;
    top.key_is_plain = is_plain_;
    const std::size_t before = text_.substr(0, scalar_at_).find_last_not_of(" \t");
    top.key_is_explicit = before != std::string_view::npos && text_[before] == '?';
  }
  void inherit(Node node) {
    const YAML::Mark mark = mark_of(node);
    std::vector<Node> maps;
    if (node.kind == Kind::list) {
      maps = std::move(node.list);
    } else {
      maps.push_back(std::move(node));
    }
    for (Node& map : maps) {
      if (!map.is_map()) fail(mark, "'<<' takes a map or a list of maps, expected *name");
      open_.back().inherited.push_back(std::move(map));
    }
  }
  /// Adds inherited keys. Earlier maps win over later ones and own keys over all. The order is
  /// PyYAML's: inherited keys first, and those of the last map before others.
  static void merge_inherited(OpenNode& top) {
    if (top.inherited.empty()) return;
    std::vector<std::pair<std::string, Node>> result;
    std::map<std::string, std::size_t, std::less<>> places;
    const auto put = [&](std::pair<std::string, Node>& entry) {
      const auto [place, added] = places.emplace(entry.first, result.size());
      if (added) {
        result.push_back(std::move(entry));
      } else {
        result[place->second].second = std::move(entry.second);
      }
    };
    for (auto map = top.inherited.rbegin(); map != top.inherited.rend(); ++map) {
      for (auto& entry : map->map) put(entry);
    }
    for (auto& entry : top.node.map) put(entry);
    top.node.map = std::move(result);
  }
  /// Adds a node. `used_at`: the place of an alias; its copy keeps the anchor's origin, so errors
  /// show where the value is written.
  void add(Node node, YAML::anchor_t anchor, const YAML::Mark* used_at = nullptr) {
    const YAML::Mark mark = used_at != nullptr ? *used_at : mark_of(node);
    const bool is_key =
        !open_.empty() && open_.back().node.kind == Kind::map && !open_.back().have_key;
    if (!is_key) ++nodes_;
    check_nodes(mark);
    if (anchor != 0) {
      Size size;
      add_size(node, size);  // the anchor's own copy takes memory too
      copied_bytes_ += size.bytes;
      anchored_nodes_ += size.nodes;
      if (copied_bytes_ > max_alias_bytes || anchored_nodes_ > max_nodes)
        fail(mark, "anchors hold too much, expected at most 16 MB and 10,000 values");
      anchors_[anchor] = node;
    }
    if (open_.empty()) {
      root = std::move(node);
    } else if (open_.back().node.kind == Kind::list) {
      open_.back().node.list.push_back(std::move(node));
    } else if (is_key) {
      set_key(node);
    } else {
      const OpenNode& top = open_.back();
      const bool is_scalar = node.kind != Kind::list && node.kind != Kind::map;
      if (top.is_block && is_scalar && !top.key_is_explicit && mark.line > top.key_mark.line &&
          mark.column <= top.key_mark.column)
        fail(mark, "no ':' after this text, expected key: value, or the text further in");
      open_.back().have_key = false;
      if (open_.back().merge_key) {
        inherit(std::move(node));
      } else {
        node.key_origin = make(open_.back().key_mark, Kind::null).origin;
        open_.back().node.map.emplace_back(std::move(open_.back().key), std::move(node));
      }
    }
    is_plain_ = false;
  }
  static YAML::Mark mark_of(const Node& node) {
    YAML::Mark mark;
    mark.line = node.origin.line - 1;
    mark.column = node.origin.column - 1;
    return mark;
  }

  std::string_view text_;
  std::shared_ptr<const std::string> file_;
  std::vector<OpenNode> open_;
  std::map<YAML::anchor_t, Node> anchors_;
  std::size_t nodes_ = 0, anchored_nodes_ = 0, copied_bytes_ = 0;
  bool is_plain_ = false;  // the scalar of this event is without quotes, as ...
  std::string plain_;
  std::size_t scalar_at_ = 0;  // in the text
};

}  // namespace

Node parse_yaml(const std::string& text, const std::string& name) {
  if (text.starts_with("\xef\xbb\xbf")) return parse_yaml(text.substr(3), name);
  if (text.size() > max_file_bytes)
    throw ConfigError(name + ": too large for a configuration, expected at most 4 MB");
  check_letters(text, name);
  Builder builder(text, name);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    if (error.mark.is_null()) throw ConfigError(name + ": " + error.msg + ", expected valid YAML");
    fail_yaml(text, name, error.msg, static_cast<std::size_t>(error.mark.pos));
  }
  if (!builder.used || builder.root.is_null()) {
    builder.root.kind = Kind::map;
    builder.root.origin = {std::make_shared<const std::string>(name), 1, 1};
  }
  return std::move(builder.root);
}

Node load_yaml(const std::string& file) {
  return parse_yaml(read_file(file, max_file_bytes), file);
}

}  // namespace cytra::config
