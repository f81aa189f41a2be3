#pragma once
// Words for the shell's TAB: flags, groups, options, keys and their values.
#include <string>
#include <vector>

#include "cli/program.h"
#include "config/composer.h"

namespace cytra::cli {

/// The completions of `word`, the last one of the line, as whole words, sorted; empty: the shell
/// offers files. `before`: the words between the program and `word`. Does not throw for a line
/// that is not valid yet.
std::vector<std::string> completions(const Program& program,
                                     const config::Composer& composer,
                                     const std::string& primary,
                                     const std::vector<std::string>& before,
                                     const std::string& word);

/// The line up to the cursor as a shell splits it; the last word may be empty.
std::vector<std::string> shell_words(const std::string& line);

/// `action`: install=SHELL and uninstall=SHELL give the code to evaluate, query=SHELL the
/// completions of the line in COMP_LINE up to COMP_POINT. SHELL: bash, zsh, fish. Throws:
/// ConfigError for anything else.
std::string shell_completion(const Program& program,
                             const config::Composer& composer,
                             const std::string& primary,
                             const std::string& action);

}  // namespace cytra::cli
