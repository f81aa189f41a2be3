#include "cli/completion.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "cli/arguments.h"
#include "config/keys.h"

namespace cytra::cli {
namespace {

using config::Kind;
using config::Node;

// Bash and zsh take '=' for the end of a word, so what stands before it is cut off again.
constexpr const char* bash_script = R"(_cytra_NAME() {
  local word="${COMP_LINE:0:COMP_POINT}" line
  word="${word##*[[:space:]]}"
  local cut="${word%"${word##*[=:@]}"}"
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("${line#"$cut"}")
  done < <(COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" "${COMP_WORDS[0]}" -sc query=bash 2>/dev/null)
  [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" != *[=./] ]] && compopt +o nospace
}
complete -o nospace -o default -F _cytra_NAME NAME
)";
constexpr const char* zsh_script = R"(_cytra_NAME() {
  local -a found
  found=("${(@f)$(COMP_LINE="$BUFFER" COMP_POINT="$CURSOR" "${words[1]}" -sc query=zsh 2>/dev/null)}")
  if [[ -n "${found[*]}" ]]; then
    compadd -Q -S '' -- "${found[@]}"
  else
    _files
  fi
}
compdef _cytra_NAME NAME
)";
constexpr const char* fish_script = R"(function _cytra_NAME
  set -lx COMP_LINE (commandline -cp)
  set -lx COMP_POINT (string length -- $COMP_LINE)
  set -l program (commandline -opc)[1]
  eval $program -sc query=fish 2>/dev/null
end
complete -c NAME -a '(_cytra_NAME)'
)";
constexpr std::pair<const char*, const char*> removals[] = {
    {"bash", "complete -r NAME\nunset -f _cytra_NAME\n"},
    {"zsh", "compdef -d NAME\nunfunction _cytra_NAME\n"},
    {"fish", "complete -e -c NAME\nfunctions -e _cytra_NAME\n"}};

/// The script for a program, or for `cytra`, whose first two words start one.
std::string script(const char* text, const std::string& program) {
  const bool is_launched = std::getenv(kLauncherVariable) != nullptr;
  std::vector<std::pair<std::string, std::string>> changes{
      {"NAME", is_launched ? "cytra" : program}};
  if (is_launched) {
    changes.insert(changes.end(),
                   {{R"("${COMP_WORDS[0]}")", R"("${COMP_WORDS[@]:0:2}")"},
                    {R"("${words[1]}")", R"("${(@)words[1,2]}")"},
                    {"-opc)[1]", "-opc)[1..2]"}});
  }
  std::string result = text;
  for (const auto& [from, to] : changes)
    for (std::size_t at = 0; (at = result.find(from, at)) != std::string::npos; at += to.size())
      result.replace(at, from.size(), to);
  return result;
}

/// Adds the keys below a node: "a.b." for a map, "a.b=" for a value.
void add_children(const Node& root, const std::string& key, std::vector<std::string>& out) {
  const std::size_t dot = key.rfind('.');
  const std::string parent = dot == std::string::npos ? "" : key.substr(0, dot);
  const Node* node = parent.empty() ? &root : root.find(parent);
  if (node == nullptr) return;
  const std::string prefix = parent.empty() ? "" : parent + ".";
  const auto add = [&](const std::string& name, const Node& child) {
    out.push_back(prefix + name + (child.is_map() && !child.map.empty() ? "." : "="));
  };
  for (const auto& [name, child] : node->map) add(name, child);
  for (std::size_t i = 0; i < node->list.size(); ++i) add(std::to_string(i), node->list[i]);
}

/// The values that may follow a flag; nullopt where the flag takes none.
std::vector<std::string> flag_values(const std::string& flag, const Node& root) {
  static const std::map<std::string, std::vector<std::string>> fixed = {
      {"--cfg", {"all", "hydra", "job"}},
      {"-c", {"all", "hydra", "job"}},
      {"--info", {"all", "config", "defaults", "groups", "searchpath"}},
      {"-i", {"all", "config", "defaults", "groups", "searchpath"}},
      {"--shell-completion", {"install=bash", "install=fish", "install=zsh"}},
      {"-sc", {"install=bash", "install=fish", "install=zsh"}}};
  if (const auto found = fixed.find(flag); found != fixed.end()) return found->second;
  std::vector<std::string> keys;
  if (flag == "--explain" || flag == "--package" || flag == "-p" || flag == "--describe")
    config::add_keys(root, "", keys);
  return keys;
}

/// The values after `key=`: the options of a group, or the known values of a key.
std::vector<std::string> values_of(const config::Composer& composer,
                                   const Node& root,
                                   const std::string& key) {
  const std::string group = key.substr(0, key.find('@'));
  std::vector<std::string> values = composer.options(group);
  if (!values.empty()) return values;
  const Node* node = root.find(key);
  if (node == nullptr) return {};
  if (node->kind == Kind::boolean) return {"false", "true"};
  if (node->kind == Kind::integer || node->kind == Kind::real) return {config::to_json(*node)};
  return {};  // text: perhaps a path
}

config::Composition compose_so_far(const config::Composer& composer,
                                   const std::string& primary,
                                   const std::vector<std::string>& before) {
  std::vector<std::string> overrides;
  for (const std::string& word : before) {
    if (!word.empty() && word[0] != '-' && word.find('=') != std::string::npos)
      overrides.push_back(word);
  }
  try {
    return composer.load(primary, overrides, true);
  } catch (const Error&) {
    return composer.load(primary, {}, true);
  }
}

}  // namespace

std::vector<std::string> shell_words(const std::string& line) {
  std::vector<std::string> words(1);
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else {
        words.back() += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '\\' && i + 1 < line.size()) {
      words.back() += line[++i];
    } else if (c == ' ' || c == '\t') {
      if (!words.back().empty()) words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

std::vector<std::string> completions(const Program& program,
                                     const config::Composer& composer,
                                     const std::string& primary,
                                     const std::vector<std::string>& before,
                                     const std::string& word) {
  const config::Composition composition = compose_so_far(composer, primary, before);
  const Node& root = composition.root;
  std::vector<std::string> found;
  std::string prefix;
  if (!before.empty() && before.back().size() > 1 && before.back()[0] == '-')
    found = flag_values(before.back(), root);
  if (found.empty() && !word.empty() && word[0] == '-') found = flag_names(program);
  if (found.empty()) {
    prefix = word.substr(0, std::min(word.find_first_not_of("+~"), word.size()));
    const std::string rest = word.substr(prefix.size());
    const std::size_t equals = rest.find('=');
    if (equals != std::string::npos) {
      prefix += rest.substr(0, equals + 1);
      found = values_of(composer, root, rest.substr(0, equals));
    } else {
      add_children(root, rest, found);
      if (rest.find('.') == std::string::npos) {
        for (const config::Group& group : composer.groups()) {
          if (prefix == "+" && !group.options.empty()) found.push_back(group.name + "=");
        }
        for (const auto& [group, option] : composition.choices) {
          if (!group.starts_with("hydra/") || rest.starts_with("hydra/"))
            found.push_back(group + "=");
        }
      }
    }
  }
  std::vector<std::string> result;
  for (const std::string& text : found) {
    if ((prefix + text).starts_with(word)) result.push_back(prefix + text);
  }
  std::ranges::sort(result);
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::string shell_completion(const Program& program,
                             const config::Composer& composer,
                             const std::string& primary,
                             const std::string& action) {
  const std::map<std::string, const char*> scripts = {
      {"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
  const std::size_t equals = std::min(action.find('='), action.size());
  const std::string verb = action.substr(0, equals);
  const std::string shell = equals < action.size() ? action.substr(equals + 1) : "";
  const auto known = scripts.find(shell);
  if (known == scripts.end() || (verb != "install" && verb != "uninstall" && verb != "query")) {
    throw ConfigError(
        "--shell-completion {}: expected install=SHELL, uninstall=SHELL or query=SHELL for bash, "
        "zsh or fish; eval \"$({} -sc install=bash)\" turns it on",
        action,
        program.name);
  }
  if (verb == "install") return script(known->second, program.name);
  if (verb == "uninstall") {
    for (const auto& [name, text] : removals) {
      if (shell == name) return script(text, program.name);
    }
  }
  const char* line = std::getenv("COMP_LINE");
  const char* point = std::getenv("COMP_POINT");
  std::string text = line == nullptr ? "" : line;
  if (point != nullptr) text = text.substr(0, std::strtoul(point, nullptr, 10));
  std::vector<std::string> words = shell_words(text);
  const std::string word = words.back();
  words.pop_back();
  if (!words.empty()) words.erase(words.begin());
  std::string result;
  for (const std::string& one : completions(program, composer, primary, words, word))
    result += one + "\n";
  return result;
}

}  // namespace cytra::cli
