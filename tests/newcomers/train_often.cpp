// train_often: runs `train` for each line of its standard input, [folder, what stderr goes to,
// words...] in JSON, and prints the exit codes. The engine is loaded once: each run is a copy of
// this process, made before train has done anything.
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "base/shared_library.h"
#include "cli/program.h"

int train(int argc, char** argv);  // the main() of tools/train.cpp

namespace {

int run(std::vector<std::string> words) {
  if (::chdir(words.at(0).c_str()) != 0) return 99;
  const bool is_open = std::freopen("/dev/null", "r", stdin) != nullptr &&
                       std::freopen("/dev/null", "w", stdout) != nullptr &&
                       std::freopen(words.at(1).c_str(), "w", stderr) != nullptr;
  if (!is_open) return 99;
  words.erase(words.begin(), words.begin() + 2);
  words.insert(words.begin(), "train");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  return train(static_cast<int>(words.size()), arguments.data());
}

}  // namespace

int main() {
  const cytra::SharedLibrary engine(cytra::path_beside(&cytra::cli::run, "libcytra.so"),
                                    cytra::SharedLibrary::Symbols::global);
  if (!engine.is_loaded()) {
    std::fprintf(stderr, "%s\n", engine.problem().c_str());
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const auto words = nlohmann::json::parse(line).get<std::vector<std::string>>();
    const pid_t child = ::fork();
    if (child == 0) ::_exit(run(words));
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) return 1;
    std::printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    std::fflush(stdout);
  }
  return 0;
}
