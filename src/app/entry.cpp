#include "app/entry.h"

#include <filesystem>

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"

namespace cytra::app {
namespace {

void replace_prefix(config::Node& node,
                    const std::string& old_prefix,
                    const std::string& new_prefix) {
  if (node.kind == config::Kind::string && starts_with(node.string, old_prefix)) {
    node.string = new_prefix + node.string.substr(old_prefix.size());
  }
  for (auto& child : node.list) replace_prefix(child, old_prefix, new_prefix);
  for (auto& [key, child] : node.map) replace_prefix(child, old_prefix, new_prefix);
}

}  // namespace

int guarded(const std::function<int()>& work) {
  try {
    return work();
  } catch (const c10::OutOfMemoryError& error) {
    throw MemoryError(fmt::format(
        "out of memory: {}; try a smaller data.batch_size, patch or inference_args.sw_batch_size",
        split(error.what_without_backtrace(), '\n').front()));
  } catch (const c10::Error& error) {
    const std::string message = split(error.what_without_backtrace(), '\n').front();
    if (message.find("can't allocate memory") != std::string::npos) {
      throw MemoryError(message +
                        "; try a smaller data.batch_size, patch or inference_args.sw_batch_size");
    }
    if (message.find("Class values must be") != std::string::npos) {
      throw DataError("a target holds class numbers beyond model.out_channels (or below 0): " +
                      message);
    }
    throw std::runtime_error(message);
  }
}

void warn_of(const std::vector<std::string>& notes) {
  if (!notes.empty()) log::warn("{}", join(notes, "; "));
}

std::string open_run_folder(cli::Run& run) {
  const std::string wanted = run.config.get<std::string>("paths.output_dir");
  const std::string folder = make_run_folder(wanted);
  if (folder != wanted) replace_prefix(run.config, wanted, folder);
  make_folders(folder + "/.hydra");
  write_file(folder + "/.hydra/config.yaml", config::to_yaml(run.config));
  config::Node overrides;
  overrides.kind = config::Kind::list;
  for (const std::string& text : run.overrides)
    overrides.list.push_back(config::Node::make_string(text));
  write_file(folder + "/.hydra/overrides.yaml", config::to_yaml(overrides));
  log::set_file(folder + "/" + run.program + ".log");
  log::debug("{}", run.command_line);
  return folder;
}

std::string command(const std::string& program, const std::vector<std::string>& overrides) {
  std::string text = (std::filesystem::path(program_folder()) / program).string();
  std::error_code error;
  const auto relative = std::filesystem::relative(text, error);
  if (!error && !starts_with(relative.string(), "../..")) text = relative.string();
  if (text.find('/') == std::string::npos) text = "./" + text;
  text = cli::shell_quote(text);
  for (const std::string& override_text : overrides) text += " " + cli::shell_quote(override_text);
  return text;
}

}  // namespace cytra::app
