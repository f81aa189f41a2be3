#include "config/interpolation/interpolate.h"

#include <algorithm>

#include "base/error.h"
#include "config/composer.h"
#include "config/interpolation/resolvers.h"
#include "config/text/python_text.h"
#include "config/text/scalar.h"

namespace cytra::config {
namespace {

// References copy: without limits a few lines would grow to any size.
constexpr std::size_t max_chain = 100, max_interpolated_nodes = 200'000, max_text = 1 << 20,
                      max_interpolated_bytes = 32 << 20, max_open_references = 200;

std::string chain_text(const std::vector<const Site*>& sites, std::size_t from) {
  std::string text;
  for (std::size_t i = from; i < sites.size(); ++i) text += sites[i]->path() + " -> ";
  return text;
}

void set_origin(Node& node, const Origin& origin) {
  node.origin = origin;
  for (Node& item : node.list) set_origin(item, origin);
  for (auto& [key, child] : node.map) set_origin(child, origin);
}

}  // namespace

Interpolator::Interpolator(const Node& root) : tree_(root) {
  Site& site = sites_[&root];
  site.node = &root;
  root_ = &site;
}

void Interpolator::fail(const Site& node, const std::string& what) const {
  const std::string path = node.path();
  std::string text = node.node->origin.text() + ": " + path + (path.empty() ? "" : ": ") + what;
  if (active_.size() > 1) {
    text += " (read by " + chain_text(active_, 0);
    text.replace(text.size() - 4, 4, ")");
  }
  throw ConfigError(text);
}

void Interpolator::count(const Size& size, const Site& node) {
  copied_.nodes += size.nodes;
  copied_.bytes += size.bytes;
  if (copied_.nodes <= max_interpolated_nodes && copied_.bytes <= max_interpolated_bytes) return;
  fail(node, "the references copy too much, expected at most 200,000 values and 32 MB");
}

const Site& Interpolator::child(const Site& container, std::size_t i) {
  const bool is_map = container.node->is_map();
  const Node& node = is_map ? container.node->map[i].second : container.node->list[i];
  const auto [entry, added] = sites_.try_emplace(&node);
  if (added) {
    entry->second.node = &node;
    entry->second.parent = &container;
    entry->second.index = i;
    if (is_map) entry->second.key = container.node->map[i].first;
  }
  return entry->second;
}

Value Interpolator::read(const Site& site) {
  const Node& node = *site.node;
  Value value;
  if (node.is_container()) {
    value.kind = Value::Kind::container;
    value.site = &site;
    return value;
  }
  if (node.kind != Kind::string || !has_interpolation(node.string)) {
    value = Value::of(node);
    value.site = &site;
    return value;
  }
  if (const auto done = done_.find(&node); done != done_.end()) return done->second;
  const auto again = std::ranges::find(active_, &site);
  if (again != active_.end()) {
    const auto from = static_cast<std::size_t>(again - active_.begin());
    const std::string chain = chain_text(active_, from) + site.path();
    active_.clear();  // the message has the chain already
    fail(site, "a cycle: " + chain + ", expected a value at its end");
  }
  if (active_.size() >= max_chain) {
    active_.clear();
    fail(site, "references lead from one to the next too often, expected at most 100");
  }
  active_.push_back(&site);
  try {
    value = evaluate(parse_interpolated(node.string), site);
  } catch (const SyntaxError& error) {
    fail(site, error.what());
  }
  active_.pop_back();
  return done_.emplace(&node, std::move(value)).first->second;
}

Value Interpolator::evaluate(const Element& element, const Site& node) {
  if (element.kind == Element::Kind::scalar) return Value::of(element.scalar);
  if (element.kind == Element::Kind::text) {
    if (element.parts.size() == 1 && element.parts[0].inside != nullptr && !element.quoted)
      return evaluate(*element.parts[0].inside, node);
    std::string text;
    for (const Piece& part : element.parts) {
      text += part.inside == nullptr ? part.text : python_str(evaluate(*part.inside, node));
      if (text.size() > max_text) fail(node, "the text grows too long, expected at most 1 MB");
    }
    count({1, text.size()}, node);
    return Value::make_text(std::move(text));
  }
  Value value;
  value.kind = element.kind == Element::Kind::list ? Value::Kind::list : Value::Kind::map;
  // A key's last value wins, at the key's first place. Like in Python, 1, 1.0 and true are one
  // key.
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < element.items.size(); ++i) {
    Value item = evaluate(element.items[i], node);
    if (value.kind == Value::Kind::list) {
      value.items.push_back(std::move(item));
      continue;
    }
    Value key = Value::of(element.keys[i]);
    const auto [place, added] = places.emplace(key_identity(key), value.items.size());
    if (added) {
      value.keys.push_back(std::move(key));
      value.items.push_back(std::move(item));
    } else {
      value.items[place->second] = std::move(item);
    }
  }
  return value;
}

std::string Interpolator::name_of(const Interpolation& interpolation, const Site& node) {
  std::string name;
  for (const Piece& part : interpolation.name) {
    if (part.inside == nullptr) {
      name += part.text;
      continue;
    }
    const Value value = evaluate(*part.inside, node);
    if (!value.is_text()) {
      fail(node,
           part.inside->source + " is " + config::name_of(value.kind) + " in " +
               quote(interpolation.source) + ", expected text there (a number in quotes)");
    }
    name += value.text;
  }
  return name;
}

Value Interpolator::evaluate(const Interpolation& interpolation, const Site& node) {
  const std::string name = name_of(interpolation, node);
  Value value;
  if (interpolation.is_call) {
    std::vector<Value> arguments;
    for (const Element& argument : interpolation.arguments)
      arguments.push_back(evaluate(argument, node));
    value = call_resolver(*this, node, quote(interpolation.source), name, arguments);
  } else {
    const std::string source = quote(interpolation.source);
    Selection selection = select(node, name, source, true);
    if (selection.result != Selection::Result::found) fail_missing_key(node, selection, source);
    value = std::move(selection.value);
    if (value.kind == Value::Kind::container) {
      for (const Site* round = node.parent; round != nullptr; round = round->parent) {
        if (round == value.site) {
          fail(node,
               source + " is a cycle: '" + round->path() +
                   "' holds this value itself, expected one that stands elsewhere");
        }
      }
    }
  }
  Size size;
  config::add_size(value, size);
  count(size, node);
  return value;
}

Value Interpolator::decode(const std::string& text, const Site& node) {
  count({1, text.size()}, node);
  try {
    return evaluate(parse_argument(text), node);
  } catch (const SyntaxError& error) {
    fail(node, std::string("oc.decode: ") + error.what());
  }
}

Value Interpolator::adopt(Node tree, const Site* parent, const Site& node) {
  Size size;
  add_size(tree, size);
  count(size, node);
  set_origin(tree, node.node->origin);
  adopted_.push_back(std::make_unique<const Node>(std::move(tree)));
  const Node* root = adopted_.back().get();
  try {
    check_syntax(*root);
  } catch (const ConfigError& error) {
    fail(node, std::string(error.what()).substr(root->origin.text().size() + 2));
  }
  Site& site = sites_[root];
  site.node = root;
  site.parent = parent;
  site.key = node.key;
  site.index = node.index;
  Value value;
  value.kind = Value::Kind::container;
  value.site = &site;
  return value;
}

Node Interpolator::resolved(const Value& value, const Origin& origin) {
  if (value.kind == Value::Kind::container) return resolved_container(*value.site, origin);
  Node node;
  if (value.kind == Value::Kind::list) {
    node.kind = Kind::list;
    for (const Value& item : value.items) node.list.push_back(resolved(item, origin));
  } else if (value.kind == Value::Kind::map) {
    node.kind = Kind::map;
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      const Node key = to_node(value.keys[i]);
      node.map.emplace_back(plain_text(key), resolved(value.items[i], origin));
    }
  } else {
    node = to_node(value);
  }
  node.origin = origin;
  return node;
}

Node Interpolator::resolved_container(const Site& site, const Origin& origin) {
  for (const Open& open : open_) {
    if (open.site != &site) continue;
    std::string chain = chain_text(trail_, open.trail);
    chain = site.path().empty() ? chain.substr(0, chain.size() - 4) : chain + site.path();
    fail(*trail_.back(), "a cycle: " + chain + ", expected a value at its end");
  }
  if (open_.size() >= max_open_references)
    fail(*trail_.back(), "references nest too deep, expected at most 200 levels");
  open_.push_back({&site, trail_.size()});
  Node out;
  out.kind = site.node->kind;
  out.origin = origin;
  const std::size_t size = site.node->list.size() + site.node->map.size();
  out.list.reserve(site.node->list.size());
  out.map.reserve(site.node->map.size());
  for (std::size_t i = 0; i < size; ++i) {
    const bool is_map = out.kind == Kind::map;
    const Node& node = is_map ? site.node->map[i].second : site.node->list[i];
    if (is_map && open_.size() == 1 && &site == &root() && site.node->map[i].first == "hydra") {
      out.map.push_back(site.node->map[i]);  // see resolve()
      continue;
    }
    const bool is_reference = node.kind == Kind::string && has_interpolation(node.string);
    if (!trail_.empty()) count({1, node.string.size()}, *trail_.back());
    Node result;
    if (is_reference || node.is_container()) {
      const Site& place = child(site, i);
      if (is_reference) trail_.push_back(&place);
      result = resolved(read(place), node.origin);
      if (is_reference) trail_.pop_back();
    } else {
      result = node;
    }
    result.key_origin = node.key_origin;
    if (is_map) {
      out.map.emplace_back(site.node->map[i].first, std::move(result));
    } else {
      out.list.push_back(std::move(result));
    }
  }
  open_.pop_back();
  return out;
}

void check_syntax(const Node& root) {
  if (root.kind == Kind::string && has_interpolation(root.string)) {
    try {
      parse_interpolated(root.string);
    } catch (const SyntaxError& error) {
      throw ConfigError(root.where() + ": " + error.what());
    }
  }
  for (const Node& item : root.list) check_syntax(item);
  for (const auto& [key, child] : root.map) check_syntax(child);
}

}  // namespace cytra::config
