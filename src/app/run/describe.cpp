// `--describe` and `--schema` of every program, from the one declaration of each option; and what a
// file is.
#include "app/run/describe_file.h"
#include "app/run/entry.h"
#include "config/json_schema.h"

extern "C" int cytra_describe(cytra::cli::DescribeRequest& request) {
  using namespace cytra;
  if (!request.schema) {
    if (const auto text = app::describe_file(request.what, request.json)) {
      request.text = *text;
      return 0;
    }
  }
  const config::Components& programs = config::components_of("program");
  config::Node target = config::Node::make_map();
  target.set("_target_", config::Node::make_string(request.program));
  const config::OptionsType& program = programs.types.at(programs.name_of(target));
  request.text = request.schema ? config::json_schema(program, request.what)
                                : config::describe_text(program, request.what);
  return 0;
}
