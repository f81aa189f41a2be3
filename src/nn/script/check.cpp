#include "nn/script/check.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/lexer.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/operator.h>

#include "base/error.h"
#include "base/strings.h"
#include "nn/allowed_operators.h"

namespace cytra::nn {
namespace {

namespace jit = torch::jit;

char lower_letter(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

[[noreturn]] void refuse_script(const std::string& path,
                                const std::string& where,
                                const std::string& what) {
  throw DataError(
      "{}: {} {}, which models from others must not do (docs/security.md): it is not run",
      path,
      printable(where),
      what);
}

[[noreturn]] void refuse_call(const std::string& path,
                              const std::string& where,
                              const std::string& name) {
  refuse_script(path, where, "calls " + printable(name));
}

/// Checks every way of the language to call an operator: torch.NAME, ops.LIBRARY.NAME, VALUE.NAME
/// and getattr(VALUE, "NAME"). Code that gives one of these another name is refused.
class SourceCheck {
 public:
  SourceCheck(const std::string& path, std::string file, const std::string& source)
      : path_(path), file_(std::move(file)) {
    jit::Lexer lexer(std::make_shared<jit::Source>(source, file_));
    for (jit::Token token = lexer.next(); token.kind != jit::TK_EOF; token = lexer.next()) {
      // Line ends do not matter for these checks, and may be anywhere
      if (token.kind == jit::TK_NEWLINE || token.kind == jit::TK_INDENT ||
          token.kind == jit::TK_DEDENT)
        continue;
      tokens_.push_back({token.kind, token.text()});
    }
  }

  void run() {
    for (at_ = 0; at_ < tokens_.size(); ++at_) {
      if (kind(0) != jit::TK_IDENT) continue;
      const std::string& name = tokens_[at_].text;
      if (at_ > 0 && kind(-1) == '.') {
        expect_attribute(name);
      } else if (kind(1) == ':') {
        continue;  // a class declares the attribute
      } else if (name == "torch") {
        const std::vector<std::string> names = chain();
        if (names.size() < 2) refuse_script(path_, file_, "gives `torch` another name");
        // torch.autograd.NAME is torch.NAME, which is checked as an attribute
        if (names[1] == "autograd" && names.size() == 3) continue;
        if (names.size() > 2) refuse_call(path_, file_, fmt::format("{}", fmt::join(names, ".")));
        expect_operator("aten", names[1]);
      } else if (name == "ops") {
        if (chain().size() < 3) refuse_script(path_, file_, "gives `ops` another name");
        expect_operator(chain()[1], chain()[2]);
      } else if (name == "__torch__") {
        expect_class(chain());
      } else if (name == "getattr") {
        expect_getattr();
      } else if (name.starts_with("rpc_")) {
        refuse_call(path_, file_, name);
      }
    }
  }

 private:
  struct Word {
    int kind;
    std::string text;
  };

  int kind(std::ptrdiff_t ahead) const {
    const std::size_t place = at_ + static_cast<std::size_t>(ahead);
    return place < tokens_.size() ? tokens_[place].kind : jit::TK_EOF;
  }

  /// The names of a chain "a.b.c" that begins here.
  std::vector<std::string> chain() const {
    std::vector<std::string> names{tokens_[at_].text};
    for (std::size_t i = at_ + 2;
         i < tokens_.size() && tokens_[i - 1].kind == '.' && tokens_[i].kind == jit::TK_IDENT;
         i += 2)
      names.push_back(tokens_[i].text);
    return names;
  }

  void expect_operator(const std::string& library, const std::string& name) const {
    if (!is_allowed_operator(library, name)) refuse_call(path_, file_, library + "::" + name);
  }

  /// Checks an attribute, as operators can be called as methods: `("file").from_file()`.
  void expect_attribute(const std::string& name) const {
    if (is_allowed_operator("aten", name)) return;
    if (!jit::getAllOperatorsFor(c10::Symbol::aten(name)).empty())
      refuse_call(path_, file_, "aten::" + name);
  }

  /// Checks a class, as classes in C++ have a __setstate__ of their own.
  void expect_class(const std::vector<std::string>& names) const {
    const bool is_whole = names.size() > 2;
    if (is_whole && (names[1] != "torch" || names[2] != "classes")) return;
    if (names.size() == 2 && names[1] != "torch") return;
    if (names.size() > 3 && names[3] == "quantized") return;
    refuse_script(path_, file_, fmt::format("names {}", fmt::join(names, ".")));
  }

  void expect_getattr() const {
    // getattr ( value , "name" ): PyTorch writes this for names as "0"
    std::size_t i = at_ + 1;
    int depth = 0;
    std::size_t comma = 0;
    do {
      if (i >= tokens_.size()) break;
      const int kind = tokens_[i].kind;
      if (kind == '(' || kind == '[' || kind == '{') ++depth;
      if (kind == ')' || kind == ']' || kind == '}') --depth;
      if (kind == ',' && depth == 1 && comma == 0) comma = i;
      ++i;
    } while (depth > 0);
    const bool is_plain = kind(1) == '(' && comma != 0 && comma + 2 < tokens_.size() &&
                          tokens_[comma + 1].kind == jit::TK_STRINGLITERAL &&
                          tokens_[comma + 2].kind == ')';
    const std::string quoted = is_plain ? tokens_[comma + 1].text : "";
    if (quoted.size() < 2 || quoted.find('\\') != std::string::npos ||
        quoted.find_first_of("'\"", 1) != quoted.size() - 1)
      refuse_script(path_, file_, "calls getattr with no plain name");
    expect_attribute(quoted.substr(1, quoted.size() - 2));
  }

  const std::string& path_;
  std::string file_;
  std::vector<Word> tokens_;
  std::size_t at_ = 0;
};

/// Checks that a pickle makes only tensors, and objects of classes whose code is in the archive.
/// Pickles have no jumps, so the instructions can be read in order.
class PickleCheck {
 public:
  PickleCheck(const std::string& path, std::string file, std::string_view bytes)
      : path_(path), file_(std::move(file)), bytes_(bytes) {}

  void run() {
    using namespace std::string_view_literals;
    // The instructions with so many bytes after them, and with so many that tell a length.
    static const std::pair<std::string_view, std::size_t> kFixed[] = {
        {"()]}taesuRbNQ\x81\x85\x86\x87\x88\x89"sv, 0},
        {"Kqh\x80"sv, 1},
        {"M"sv, 2},
        {"Jj"sv, 4},
        {"G"sv, 8}};
    static const std::pair<std::string_view, std::size_t> kWithLength[] = {{"U\x8a"sv, 1},
                                                                           {"XT"sv, 4}};
    const std::size_t size = bytes_.size();
    for (char instruction = take(1)[0]; instruction != '.'; instruction = take(1)[0]) {
      const auto has = [&](const auto& row) {
        return row.first.find(instruction) < row.first.size();
      };
      const auto* fixed = std::ranges::find_if(kFixed, has);
      const auto* with_length = std::ranges::find_if(kWithLength, has);
      if (fixed != std::end(kFixed)) {
        take(fixed->second);
      } else if (with_length != std::end(kWithLength)) {
        take(number(with_length->second));
      } else if (instruction == 'r') {
        // An index into a list that is made as long as this number
        if (number(4) > size) refuse_damage("names more objects than it has bytes");
      } else if (instruction == 'c') {
        expect_global();
      } else {
        refuse_damage(fmt::format("has an unknown instruction {:#04x}",
                                  static_cast<unsigned char>(instruction)));
      }
    }
  }

 private:
  [[noreturn]] void refuse_damage(const std::string& what) const {
    throw DataError("{}: TorchScript that can't be loaded: {} {}", path_, printable(file_), what);
  }
  std::string_view take(std::size_t count) {
    if (count > bytes_.size()) refuse_damage("is cut off");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  std::size_t number(std::size_t bytes) {
    std::size_t value = 0;
    const std::string_view taken = take(bytes);
    for (std::size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(taken[i]);
    return value;
  }
  std::string line() {
    const std::size_t end = bytes_.find('\n');
    if (end == std::string_view::npos) refuse_damage("is cut off");
    const std::string text(take(end));
    take(1);
    return text;
  }
  void expect_global() {
    const std::string library = line(), name = line(), whole = library + "." + name;
    if (library.starts_with("__torch__")) {
      if (!whole.starts_with("__torch__.torch.classes.") ||
          whole.starts_with("__torch__.torch.classes.quantized."))
        return;
    } else if (library == "torch" || library == "torch._utils" || library == "torch.jit._pickle" ||
               whole == "collections.OrderedDict") {
      return;
    }
    refuse_script(path_, file_, "makes a " + printable(whole));
  }

  const std::string& path_;
  std::string file_;
  std::string_view bytes_;
};

void expect_harmless_block(const std::string& path,
                           const std::string& where,
                           const jit::Block* block) {
  for (const jit::Node* node : block->nodes()) {
    const std::string kind = node->kind().toQualString();
    const std::size_t colon = kind.find("::");
    if (colon == std::string::npos ||
        !is_allowed_operator(kind.substr(0, colon), kind.substr(colon + 2)))
      refuse_call(path, where, kind);
    for (const jit::Block* inner : node->blocks()) expect_harmless_block(path, where, inner);
    for (const c10::Symbol name : node->attributeNames()) {
      if (node->kindOf(name) == jit::AttributeKind::g)
        expect_harmless_block(path, where, node->g(name)->block());
      if (node->kindOf(name) == jit::AttributeKind::gs)
        refuse_script(path, where, "has graphs in a node");
    }
  }
}

}  // namespace

void expect_harmless_archive(const std::string& path,
                             caffe2::serialize::PyTorchStreamReader& archive) {
  std::set<std::string> names;
  for (const std::string& name : archive.getAllRecords()) {
    std::string small = name;
    std::transform(small.begin(), small.end(), small.begin(), lower_letter);
    // Names are compared without regard to case
    if (!names.insert(small).second)
      throw DataError(
          "{}: TorchScript that can't be loaded: it holds {} twice", path, printable(name));
    if (small == "model.json")
      throw DataError(path +
                      ": TorchScript of PyTorch 1.0 or earlier; save it again with a later one");
    const bool is_source = small.ends_with(".py"), is_pickle = small.ends_with(".pkl");
    if (!is_source && !is_pickle) continue;
    const auto [data, size] = archive.getRecord(name);
    const std::string_view bytes(static_cast<const char*>(data.get()), size);
    if (is_source) {
      SourceCheck(path, name, std::string(bytes)).run();
    } else if (small != "bytecode.pkl") {  // for mobile phones: not read here
      PickleCheck(path, name, bytes).run();
    }
  }
}

void expect_harmless_graphs(const std::string& path, const jit::Module& module) {
  for (jit::Function* function : module._ivalue()->compilation_unit()->get_functions()) {
    if (function == nullptr) continue;
    const std::string where = function->qualname().qualifiedName();
    jit::GraphFunction* code = jit::tryToGraphFunction(*function);
    if (code == nullptr) refuse_script(path, where, "has no code to look at");
    expect_harmless_block(path, where, code->graph()->block());
  }
}

}  // namespace cytra::nn
