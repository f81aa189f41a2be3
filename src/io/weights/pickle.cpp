#include "io/weights/pickle.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"

namespace cytra::io {
namespace {

constexpr std::size_t kMaxNodes = 2'000'000, kMaxStack = 1'000'000, kMaxBytes = 256'000'000,
                      kMaxNameBytes = 16'000'000;
constexpr uint32_t kEmpty = UINT32_MAX;

class PickleReader {
 public:
  PickleReader(const std::string& path, std::string_view bytes) : path_(path), bytes_(bytes) {}

  Pickle read() {
    if (number(1) != 0x80) refuse("it begins with no protocol");
    const uint64_t protocol = number(1);
    if (protocol < 2 || protocol > 5) refuse(fmt::format("protocol {}", protocol));
    for (;;) {
      const auto code = static_cast<unsigned char>(take(1)[0]);
      if (code == '.') break;
      if (!read_constant(code) && !read_stack(code) && !read_object(code))
        refuse(fmt::format("operation 0x{:02x} at byte {}", code, at_ - 1));
      if (stack_.size() > kMaxStack) refuse("too many values in one list");
    }
    pickle_.root = pop();
    pickle_.bytes = at_;
    return std::move(pickle_);
  }

 private:
  using Kind = Pickle::Kind;
  using Node = Pickle::Node;

  [[noreturn]] void refuse(const std::string& what) const {
    throw DataError(
        "{}: its pickle is damaged or unusual: {}, expected what torch.save writes, or numpy.save; "
        "save it again",
        path_,
        what);
  }

  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) refuse("it ends too early");
    if (at_ + count > kMaxBytes) refuse("more than 256 MB");
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  uint64_t number(std::size_t size) {  // little-endian, as all numbers but floats
    uint64_t value = 0;
    const std::string_view digits = take(size);
    for (std::size_t i = size; i > 0; --i)
      value = value << 8 | static_cast<unsigned char>(digits[i - 1]);
    return value;
  }
  std::string_view line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) refuse("it ends too early");
    const std::string_view text = take(end - at_);
    take(1);
    return text;
  }

  Node& push(Kind kind) {
    if (pickle_.nodes.size() >= kMaxNodes) refuse("more than 2 million values");
    stack_.push_back(static_cast<uint32_t>(pickle_.nodes.size()));
    Node& node = pickle_.nodes.emplace_back();
    node.kind = kind;
    return node;
  }
  void push_integer(int64_t value) { push(Kind::integer).integer = value; }
  void push_text(std::string_view text) { push(Kind::text).text = text; }
  void push_bytes(uint64_t count) {
    take(count);
    Node& node = push(Kind::bytes);
    node.integer = static_cast<int64_t>(count);
    node.place = at_ - count;
  }
  void push_items(Kind kind, std::size_t count) {
    std::vector<uint32_t> items(count);
    for (std::size_t i = count; i > 0; --i) items[i - 1] = pop();
    push(kind).items = std::move(items);
  }

  std::size_t above_mark() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }
  uint32_t top() const {
    if (above_mark() == 0) refuse("a value is missing");
    return stack_.back();
  }
  uint32_t pop() {
    const uint32_t value = top();
    stack_.pop_back();
    return value;
  }
  std::vector<uint32_t> pop_to_mark() {
    if (marks_.empty()) refuse("a mark is missing");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<uint32_t> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }

  void put(uint64_t slot) {
    if (slot >= kMaxNodes) refuse("more than 2 million values");
    if (slot >= memo_.size()) memo_.resize(slot + 1, kEmpty);
    memo_[slot] = top();
    memoized_ = slot + 1;
  }
  void get(uint64_t slot) {
    if (slot >= memo_.size() || memo_[slot] == kEmpty) refuse("a reference to nothing");
    stack_.push_back(memo_[slot]);
  }

  /// Whether `code` is an instruction that pushes a constant, which is read.
  bool read_constant(unsigned char code) {
    switch (code) {
      case 'N':  // None
        push(Kind::other);
        return true;
      case 0x88:  // true
      case 0x89:
        push(Kind::boolean).integer = code == 0x88 ? 1 : 0;
        return true;
      case 'J':
        push_integer(static_cast<int32_t>(number(4)));
        return true;
      case 'K':
        push_integer(static_cast<int64_t>(number(1)));
        return true;
      case 'M':
        push_integer(static_cast<int64_t>(number(2)));
        return true;
      case 0x8a:
      case 0x8b:
        read_long(number(code == 0x8a ? 1 : 4));
        return true;
      case 'G':  // a float
        take(8);
        push(Kind::other);
        return true;
      case 0x8c:
      case 'U':  // a text of Python 2
        push_text(take(number(1)));
        return true;
      case 'X':
      case 'T':
        push_text(take(number(4)));
        return true;
      case 0x8d:
        push_text(take(number(8)));
        return true;
      case 'C':
        push_bytes(number(1));
        return true;
      case 'B':
        push_bytes(number(4));
        return true;
      case 0x8e:
      case 0x96:
        push_bytes(number(8));
        return true;
      default:
        return false;
    }
  }
  void read_long(uint64_t size) {
    if (size > 8) {
      take(size);
      push(Kind::other);
      return;
    }
    uint64_t value = number(size);
    if (size > 0 && size < 8 && (value >> (8 * size - 1)) != 0) value |= UINT64_MAX << (8 * size);
    push_integer(static_cast<int64_t>(value));
  }

  /// Executes instructions for the stack, the memo, and the pickle itself.
  bool read_stack(unsigned char code) {
    switch (code) {
      case '(':
        if (marks_.size() >= kMaxStack) refuse("too many marks");
        marks_.push_back(stack_.size());
        return true;
      case '0':
        if (above_mark() == 0 && !marks_.empty()) {
          marks_.pop_back();  // as in CPython
        } else {
          pop();
        }
        return true;
      case '1':
        pop_to_mark();
        return true;
      case '2':
        stack_.push_back(top());
        return true;
      case 'h':
        get(number(1));
        return true;
      case 'j':
        get(number(4));
        return true;
      case 'q':
        put(number(1));
        return true;
      case 'r':
        put(number(4));
        return true;
      case 0x94:
        put(memoized_);
        return true;
      case 0x95:  // a frame: a hint for readers of streams
        take(8);
        return true;
      default:
        return false;
    }
  }

  bool read_object(unsigned char code) {
    switch (code) {
      case ']':
        push(Kind::list);
        return true;
      case ')':
        push(Kind::tuple);
        return true;
      case '}':
        push(Kind::dict);
        return true;
      case 0x91:  // a frozen set
        pop_to_mark();
        [[fallthrough]];
      case 0x8f:  // a set
        push(Kind::other);
        return true;
      case 't':
      case 'l': {
        std::vector<uint32_t> items = pop_to_mark();
        push(code == 't' ? Kind::tuple : Kind::list).items = std::move(items);
        return true;
      }
      case 'd':
        push_dict();
        return true;
      case 0x85:
      case 0x86:
      case 0x87:
        push_items(Kind::tuple, code - 0x84U);
        return true;
      case 'a':
        add({pop()}, Kind::list);
        return true;
      case 'e':
        add(pop_to_mark(), Kind::list);
        return true;
      case 's': {
        const uint32_t value = pop(), key = pop();
        add({key, value}, Kind::dict);
        return true;
      }
      case 'u':
        add(pop_to_mark(), Kind::dict);
        return true;
      case 0x90:
        pop_to_mark();
        top();
        return true;
      case 'b': {
        const uint32_t state = pop();
        pickle_.nodes[top()].state = state;
        return true;
      }
      case 'c': {
        const std::string_view module = line();
        push_global(module, line());
        return true;
      }
      case 0x93: {
        const uint32_t name = pop(), module = pop();
        const auto& nodes = pickle_.nodes;
        if (nodes[name].kind != Kind::text || nodes[module].kind != Kind::text)
          refuse("a name that is not text");
        push_global(nodes[module].text, nodes[name].text);
        return true;
      }
      case 'R':
      case 0x81:
      case 0x92: {
        if (code == 0x92) pop();  // arguments by name
        const uint32_t arguments = pop(), function = pop();
        Node& call = push(Kind::call);
        call.function = function;
        call.arguments = arguments;
        return true;
      }
      case 'Q': {
        const uint32_t name = pop();
        push(Kind::persistent).arguments = name;
        return true;
      }
      default:
        return false;
    }
  }
  void push_global(std::string_view module, std::string_view name) {
    name_bytes_ += module.size() + name.size();  // texts of the memo may be repeated
    if (name_bytes_ > kMaxNameBytes) refuse("names of more than 16 MB");
    push(Kind::global).text = fmt::format("{}.{}", module, name);
  }
  void push_dict() {
    std::vector<uint32_t> items = pop_to_mark();
    if (items.size() % 2 != 0) refuse("a key without a value");
    push(Kind::dict).items = std::move(items);
  }
  /// Adds items to the list or dict on top, or to an object like one.
  void add(const std::vector<uint32_t>& items, Kind kind) {
    Node& target = pickle_.nodes[top()];
    if (target.kind != kind && target.kind != Kind::call) refuse("items for what holds none");
    if (kind == Kind::list && target.kind == Kind::call) return;  // its items are keys and values
    if (kind == Kind::dict && items.size() % 2 != 0) refuse("a key without a value");
    target.items.insert(target.items.end(), items.begin(), items.end());
  }

  const std::string& path_;
  std::string_view bytes_;
  std::size_t at_ = 0;
  Pickle pickle_;
  std::vector<uint32_t> stack_, memo_;
  std::vector<std::size_t> marks_;
  std::size_t memoized_ = 0, name_bytes_ = 0;
};

}  // namespace

Pickle read_pickle(const std::string& path, std::string_view bytes) {
  return PickleReader(path, bytes).read();
}

}  // namespace cytra::io
